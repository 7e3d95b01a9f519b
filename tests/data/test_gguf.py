"""data/from_gguf.py on small files that are made here."""
import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "data"))
gguf = pytest.importorskip("gguf", reason="no gguf; type: pip install gguf safetensors tokenizers")
safetensors = pytest.importorskip("safetensors.numpy")
tokenizers = pytest.importorskip("tokenizers")
np = pytest.importorskip("numpy")
import from_gguf  # noqa: E402

WIDTH, HEADS, GROUPS, FFN, LAYERS = 64, 4, 2, 32, 2
HEAD = WIDTH // HEADS
TOKENS = ["<end>", "<start>", "a", "b", "Ġ", "ab", "1", "2", "12"]


def interleaved(weight, heads):
    """Returns the rows of q and k in GGUF's order, in which the two rows that a rotation turns are
    neighbours."""
    out = np.empty_like(weight)
    head = len(weight) // heads
    for h in range(heads):
        for i in range(head // 2):
            out[h * head + 2 * i] = weight[h * head + i]
            out[h * head + 2 * i + 1] = weight[h * head + i + head // 2]
    return out


def model():
    """Returns the tensors by transformers' names, and those of GGUF."""
    random = np.random.default_rng(1)
    shapes = {"q": (WIDTH, WIDTH), "k": (GROUPS * HEAD, WIDTH), "v": (GROUPS * HEAD, WIDTH), "o": (WIDTH, WIDTH)}
    ours, theirs = {}, {}

    def add(name, other, *shape, heads=None):
        ours[name] = random.standard_normal(shape).astype("f4")
        theirs[other] = interleaved(ours[name], heads) if heads else ours[name]

    add("model.embed_tokens.weight", "token_embd.weight", len(TOKENS), WIDTH)
    add("model.norm.weight", "output_norm.weight", WIDTH)
    for i in range(LAYERS):
        layer, block = f"model.layers.{i}.", f"blk.{i}."
        add(layer + "input_layernorm.weight", block + "attn_norm.weight", WIDTH)
        add(layer + "post_attention_layernorm.weight", block + "ffn_norm.weight", WIDTH)
        for name, shape in shapes.items():
            add(f"{layer}self_attn.{name}_proj.weight", block + ("attn_output" if name == "o" else f"attn_{name}")
                + ".weight", *shape, heads={"q": HEADS, "k": GROUPS}.get(name))
        add(layer + "mlp.gate_proj.weight", block + "ffn_gate.weight", FFN, WIDTH)
        add(layer + "mlp.up_proj.weight", block + "ffn_up.weight", FFN, WIDTH)
        add(layer + "mlp.down_proj.weight", block + "ffn_down.weight", WIDTH, FFN)
    return ours, theirs


def q4_1(weight):
    """Quantises rows of 32 numbers, and returns the bytes of the format and the numbers that they stand
    for: d and m in 16 bits, then the low four bits of the first 16 numbers, with the others above."""
    raw, back = [], []
    for block in weight.reshape(-1, 32):
        m, d = np.float16(block.min()), np.float16((block.max() - block.min()) / 15)
        q = np.clip(np.round((block - np.float32(m)) / np.float32(d)), 0, 15).astype("u1")
        raw.append(d.tobytes() + m.tobytes() + (q[:16] | q[16:] << 4).tobytes())
        back.append(np.float32(d) * q.astype("f4") + np.float32(m))
    return b"".join(raw), np.stack(back).reshape(weight.shape)


def write(path, theirs, quantised=(), **changed):
    writer = gguf.GGUFWriter(path, changed.get("architecture", "llama"))
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(GROUPS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HEAD)
    writer.add_rope_freq_base(100000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(changed.get("pre", "smollm"))
    writer.add_token_list(TOKENS)
    writer.add_token_types(changed.get("types", [3, 3] + [1] * (len(TOKENS) - 2)))
    writer.add_token_merges(["a b", "1 2"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(0)
    if "scale" in changed:
        writer.add_float32("llama.rope.scale_linear", changed["scale"])
    if "experts" in changed:
        writer.add_expert_count(changed["experts"])
    if "ends" in changed:
        writer.add_add_eos_token(changed["ends"])
    writer.add_chat_template("{{ messages }}")
    for name, weight in theirs.items():
        if name in quantised:
            raw = np.frombuffer(q4_1(weight)[0], "u1").reshape(len(weight), -1)
            writer.add_tensor(name, raw, raw_dtype=gguf.GGMLQuantizationType.Q4_1)
        else:
            writer.add_tensor(name, weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def convert(monkeypatch, path, directory):
    monkeypatch.setattr(sys, "argv", ["from_gguf.py", str(path), str(directory)])
    from_gguf.main()


def test_model(tmp_path, monkeypatch):
    ours, theirs = model()
    write(tmp_path / "m.gguf", theirs, quantised=["blk.1.ffn_up.weight"])
    ours["model.layers.1.mlp.up_proj.weight"] = q4_1(theirs["blk.1.ffn_up.weight"])[1]
    convert(monkeypatch, tmp_path / "m.gguf", tmp_path / "out")
    found = safetensors.load_file(tmp_path / "out" / "model.safetensors")
    assert found.keys() == ours.keys()
    for name, weight in ours.items():
        assert found[name].dtype == np.float32 and np.array_equal(found[name], weight), name
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    expected = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_key_value_heads": GROUPS,
                "rms_norm_eps": 1e-5, "rope_theta": 100000.0, "tie_word_embeddings": True,
                "eos_token_id": 0, "vocab_size": len(TOKENS), "max_position_embeddings": 128}
    assert {name: config[name] for name in expected} == expected
    settings = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert (settings["eos_token"], settings["bos_token"], settings["chat_template"]) == (
        "<end>", "<start>", "{{ messages }}")
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    # Each digit is a word of its own, so the merge 12 never happens; special tokens are not cut.
    assert tokenizer.encode("ab 12<end>").ids == [5, 4, 6, 7, 0]


def test_tokens_of_a_user_are_not_cut(tmp_path, monkeypatch):
    """Those that are not special, too: "12" is one, although each digit is a word of its own."""
    types = [3, 3] + [4 if token == "12" else 1 for token in TOKENS[2:]]
    write(tmp_path / "m.gguf", model()[1], types=types)
    convert(monkeypatch, tmp_path / "m.gguf", tmp_path / "out")
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    assert tokenizer.encode("a12").tokens == ["a", "12"]


@pytest.mark.parametrize("changed, error", [
    ({"architecture": "qwen2"}, "general.architecture is qwen2; only llama is supported"),
    ({"pre": "llama-bpe"}, "tokenizer.ggml.pre is llama-bpe; only smollm is supported"),
    ({"scale": 0.25}, "llama.rope.scale_linear is 0.25; only 1.0 is supported"),
    ({"experts": 8}, "llama.expert_count is not supported"),
    ({"ends": True}, "tokenizer.ggml.add_eos_token is True; only False is supported"),
])
def test_refused(tmp_path, monkeypatch, changed, error):
    write(tmp_path / "m.gguf", model()[1], **changed)
    with pytest.raises(from_gguf.Stop, match=error):
        convert(monkeypatch, tmp_path / "m.gguf", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_directory_with_another_model(tmp_path, monkeypatch):
    write(tmp_path / "m.gguf", model()[1])
    (tmp_path / "out").mkdir()
    convert(monkeypatch, tmp_path / "m.gguf", tmp_path / "out")
    with pytest.raises(from_gguf.Stop, match="out: is not empty; give another name"):
        convert(monkeypatch, tmp_path / "m.gguf", tmp_path / "out")


def test_tensor_of_another_model(tmp_path, monkeypatch):
    theirs = model()[1] | {"blk.0.attn_q.bias": np.zeros(WIDTH, "f4")}
    write(tmp_path / "m.gguf", theirs)
    with pytest.raises(from_gguf.Stop, match="has a tensor blk.0.attn_q.bias"):
        convert(monkeypatch, tmp_path / "m.gguf", tmp_path / "out")
