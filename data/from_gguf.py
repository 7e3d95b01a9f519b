#!/usr/bin/env python3
"""Writes the model in a GGUF file as a directory that transformers and `bcd train --init` read.

    from_gguf.py FILE.gguf DIR

DIR gets config.json, model.safetensors in 32 bits (which hold every quantised value exactly),
tokenizer.json, and tokenizer_config.json with the special tokens and the chat template.  It reads
LLaMA models whose tokenizer is SmolLM's, and refuses others by name.  It needs the packages gguf,
safetensors and tokenizers.  An error is one line, with exit status 1, or 3 if a package is
missing."""
import json
import os
import sys

try:
    import gguf
    import numpy as np
    from safetensors.numpy import save_file
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
except ImportError as error:
    print(f"from_gguf: the Python package {error.name} is missing; type: "
          "pip install gguf safetensors tokenizers", file=sys.stderr)
    sys.exit(3)

# GGUF's name of a tensor, and that of transformers.
OUTSIDE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
IN_LAYER = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}
# GGUF's name of a special token, and those of transformers.
SPECIAL = {"bos": "bos", "eos": "eos", "unknown": "unk", "padding": "pad"}
CONTROL, USER_DEFINED = 3, 4  # types of tokens: those that stand for no text, and others that are never split


class Stop(Exception):
    pass


class Fields:
    """The settings of a GGUF file; one that is missing is an error unless a default is given."""

    def __init__(self, reader, path):
        self.fields, self.path, self.asked = reader.fields, path, set()

    def get(self, name, *default):
        self.asked.add(name)
        if name in self.fields:
            value = self.fields[name].contents()
            # The shortest decimal number that is this 32-bit one: 1e-05, not 9.999999747378752e-06.
            return float(str(np.float32(value))) if isinstance(value, float) else value
        if default:
            return default[0]
        raise Stop(f"{self.path}: has no {name}")

    def must_be(self, name, *supported):
        value = self.get(name, supported[0])
        if value not in supported:
            raise Stop(f"{self.path}: {name} is {value}; only {' or '.join(map(str, supported))} "
                       "is supported")

    def refuse_others(self, prefix):
        """Refuses what nobody asked for: it would change what the model computes."""
        for name in self.fields:
            if name.startswith(prefix) and name not in self.asked:
                raise Stop(f"{self.path}: {name} is not supported")


def config_of(fields, tied):
    fields.must_be("general.architecture", "llama")
    fields.must_be("llama.rope.scaling.type", "none")
    width, heads = fields.get("llama.embedding_length"), fields.get("llama.attention.head_count")
    fields.must_be("llama.rope.scaling.factor", 1.0)
    fields.must_be("llama.rope.scale_linear", 1.0)  # in older files
    for name in ("rope.dimension_count", "attention.key_length", "attention.value_length"):
        fields.must_be(f"llama.{name}", width // heads)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "hidden_act": "silu",
        "hidden_size": width,
        "intermediate_size": fields.get("llama.feed_forward_length"),
        "max_position_embeddings": fields.get("llama.context_length"),
        "mlp_bias": False,
        "num_attention_heads": heads,
        "num_hidden_layers": fields.get("llama.block_count"),
        "num_key_value_heads": fields.get("llama.attention.head_count_kv", heads),
        "rms_norm_eps": fields.get("llama.attention.layer_norm_rms_epsilon"),
        "rope_theta": fields.get("llama.rope.freq_base", 10000.0),
        "tie_word_embeddings": tied,
        "torch_dtype": "float32",
        "vocab_size": len(fields.get("tokenizer.ggml.tokens")),
    }
    fields.must_be("llama.vocab_size", config["vocab_size"])
    fields.refuse_others("llama.")
    for name in ("bos", "eos", "padding"):
        number = fields.get(f"tokenizer.ggml.{name}_token_id", None)
        if number is not None:
            config[SPECIAL[name] + "_token_id"] = number
    return config


def name_of(name, path):
    parts = name.split(".", 2)
    if name in OUTSIDE:
        return OUTSIDE[name]
    if parts[0] == "blk" and len(parts) == 3 and parts[2] in IN_LAYER:
        return f"model.layers.{parts[1]}.{IN_LAYER[parts[2]]}"
    raise Stop(f"{path}: has a tensor {name}, which no supported model has")


def halves(weight, heads):
    """Undoes GGUF's order of the rows of q and k.

    Rotary positions turn pairs of rows of each head: rows 2i and 2i + 1 in GGUF, i and i + d / 2 in
    transformers."""
    out, width = weight.shape
    return weight.reshape(heads, out // heads // 2, 2, width).swapaxes(1, 2).reshape(out, width)


def weights_of(reader, config, path):
    heads = {"attn_q.weight": config["num_attention_heads"],
             "attn_k.weight": config["num_key_value_heads"]}
    weights = {}
    for tensor in reader.tensors:
        weight = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        weight = weight.reshape([int(n) for n in reversed(tensor.shape)])
        last = tensor.name.split(".", 2)[-1]
        if last in heads:
            weight = halves(weight, heads[last])
        weights[name_of(tensor.name, path)] = np.ascontiguousarray(weight)
    return weights


def tokenizer_of(fields):
    fields.must_be("tokenizer.ggml.model", "gpt2")
    fields.must_be("tokenizer.ggml.pre", "smollm")
    fields.must_be("tokenizer.ggml.add_bos_token", False)
    fields.must_be("tokenizer.ggml.add_eos_token", False)
    fields.must_be("tokenizer.ggml.add_space_prefix", False)
    tokens, types = fields.get("tokenizer.ggml.tokens"), fields.get("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in fields.get("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    # Each digit is a word of its own, then words are as in GPT-2.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([
        AddedToken(token, special=True, normalized=False)
        for token, kind in zip(tokens, types) if kind == CONTROL])
    tokenizer.add_tokens([
        AddedToken(token, special=False, normalized=False)
        for token, kind in zip(tokens, types) if kind == USER_DEFINED])
    return tokenizer


def tokenizer_config_of(fields, config):
    tokens = fields.get("tokenizer.ggml.tokens")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast",
                "clean_up_tokenization_spaces": False,
                "model_max_length": config["max_position_embeddings"]}
    for name, other in SPECIAL.items():
        number = fields.get(f"tokenizer.ggml.{name}_token_id", None)
        if number is not None:
            settings[other + "_token"] = tokens[number]
    template = fields.get("tokenizer.chat_template", None)
    return settings | ({"chat_template": template} if template else {})


def write_json(directory, name, value):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")


def main():
    if len(sys.argv) != 3:
        raise Stop("usage: from_gguf.py FILE.gguf DIR")
    path, directory = sys.argv[1:]
    # What of another model stays there would be read as a part of this one.
    if os.path.isdir(directory) and os.listdir(directory):
        raise Stop(f"{directory}: is not empty; give another name")
    reader = gguf.GGUFReader(path)
    fields = Fields(reader, path)
    tied = all(tensor.name != "output.weight" for tensor in reader.tensors)
    config = config_of(fields, tied)
    tokenizer = tokenizer_of(fields)
    os.makedirs(directory, exist_ok=True)
    save_file(weights_of(reader, config, path), os.path.join(directory, "model.safetensors"),
              metadata={"format": "pt"})
    tokenizer.save(os.path.join(directory, "tokenizer.json"))
    write_json(directory, "tokenizer_config.json", tokenizer_config_of(fields, config))
    write_json(directory, "config.json", config)


if __name__ == "__main__":
    try:
        main()
    except (Stop, ValueError) as reason:
        sys.exit(f"from_gguf: {reason}")
    except OSError as reason:
        sys.exit(f"from_gguf: {reason.filename}: {reason.strerror}")
