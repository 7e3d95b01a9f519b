#!/usr/bin/env python3
"""Encodes text with a model's own tokenizer; `bcd tokenize --tokenizer DIR` runs it.

    encode.py DIR FILE...        tokens of files
    encode.py --prompt DIR TEXT  tokens of a text to continue: no first line, no end token
    encode.py --decode DIR FILE  the text of tokens

DIR is a model's directory.  Its tokenizer.json is read by the package `tokenizers`, or else its
tokenizer.model by `sentencepiece`.  A FILE is plain text, one document, or JSON lines (.jsonl):

    {"text": "..."}                       every token is a target of the loss
    {"prompt": "...", "answer": "..."}    the answer is ("completion" and "response" are other names
                                          of it)
    {"messages": [{"role": "...", "content": "..."}]}
                                          what the assistant says is; rendered by the model's
                                          chat template (jinja2)

Standard output gets a line "NAME VOCABULARY MASKED" and then 32-bit little-endian tokens, whose
highest bit marks those that are no targets.  An error is one line, with exit status 1, or 3 if a
package is missing."""
import array
import json
import os
import sys

FNV_START, FNV_PRIME, ALL = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1
NO_TARGET = 1 << 31
ANSWERS = ("answer", "completion", "response")
BATCH = 256


class Stop(Exception):
    status = 1


class Missing(Stop):
    status = 3  # another Python may have the package


def name_of(path):
    """Returns hf: and twelve digits of the file's FNV-1a checksum, as in data/checksum.h."""
    total = FNV_START
    with open(path, "rb") as file:
        for byte in file.read():
            total = ((total ^ byte) * FNV_PRIME) & ALL
    return "hf:%012x" % (total & 0xFFFFFFFFFFFF)


def read_text(directory, name):
    path = os.path.join(directory, name)
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def read_json(directory, name):
    return json.loads(read_text(directory, name) or "{}")


def package(name):
    try:
        return __import__(name)
    except ImportError:
        raise Missing(f"the Python package {name} is missing; type: pip install {name}") from None


class JsonTokenizer:
    """tokenizer.json, read by `tokenizers`"""

    def __init__(self, path):
        self.tokenizer = package("tokenizers").Tokenizer.from_file(path)
        ids = self.tokenizer.get_vocab(with_added_tokens=True).values()
        self.vocabulary = max(ids) + 1
        self.id_of = self.tokenizer.token_to_id

    def encode(self, texts, special):
        """Returns for each text its tokens, and the position in the text at which each begins."""
        batch = self.tokenizer.encode_batch(texts, add_special_tokens=special)
        return [(e.ids, [begin for begin, _ in e.offsets]) for e in batch]

    def decode(self, ids):
        return self.tokenizer.decode(ids)


class ModelTokenizer:
    """tokenizer.model, read by `sentencepiece`"""

    def __init__(self, path):
        self.pieces = package("sentencepiece").SentencePieceProcessor(model_file=path)
        self.vocabulary = self.pieces.vocab_size()
        self.id_of = self.pieces.piece_to_id

    def encode(self, texts, special):
        return [(self.pieces.encode(t, add_bos=special), None) for t in texts]

    def decode(self, ids):
        return self.pieces.decode(ids)


class Encoder:
    def __init__(self, directory):
        kinds = (("tokenizer.json", JsonTokenizer), ("tokenizer.model", ModelTokenizer))
        paths = [(os.path.join(directory, name), kind) for name, kind in kinds]
        found = [(path, kind) for path, kind in paths if os.path.exists(path)]
        if not found:
            raise Stop(f"{directory}: neither tokenizer.json nor tokenizer.model is there")
        path, kind = found[0]
        self.directory = directory
        self.tokenizer, self.name = kind(path), name_of(path)
        self.settings = read_json(directory, "tokenizer_config.json")
        self.end = self.special("eos_token", directory)
        self.template = None

    def special(self, name, directory):
        """Returns the number of a special token, as the tokenizer or the model says, or None."""
        token = self.settings.get(name)
        if isinstance(token, dict):
            token = token.get("content")
        if isinstance(token, str):
            return self.tokenizer.id_of(token)
        number = read_json(directory, "config.json").get(name + "_id")
        number = number[0] if isinstance(number, list) and number else number
        return number if isinstance(number, int) and number < self.tokenizer.vocabulary else None

    def ending(self):
        return [] if self.end is None else [self.end]

    def texts(self, texts):
        for ids, _ in self.tokenizer.encode([t for t in texts if t], True):
            yield ids + self.ending()

    def answers(self, pairs):
        prompts = self.tokenizer.encode([p for p, _ in pairs], True)
        answers = self.tokenizer.encode([a for _, a in pairs], False)
        for (prompt, _), (answer, _) in zip(prompts, answers):
            yield [t | NO_TARGET for t in prompt] + answer + self.ending()

    def render(self, messages, prompt=False):
        if self.template is None:
            source = read_text(self.directory, "chat_template.jinja") or self.settings.get("chat_template")
            if isinstance(source, list):
                source = next((t["template"] for t in source if t.get("name") == "default"), None)
            if not source or not isinstance(source, str):
                raise Stop(f"{self.directory} has no chat template, and the file has messages")
            sandbox = __import__("jinja2.sandbox").sandbox if package("jinja2") else None
            environment = sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
            self.template = environment.from_string(source)
        names = ("bos_token", "eos_token", "unk_token", "pad_token")
        tokens = {n: self.settings.get(n) or "" for n in names}
        tokens = {n: t["content"] if isinstance(t, dict) else t for n, t in tokens.items()}
        return self.template.render(messages=messages, add_generation_prompt=prompt, **tokens)

    def chats(self, chats):
        for messages in chats:
            whole, learned = self.render(messages), []
            for i, message in enumerate(messages):
                if message["role"] == "assistant":
                    begin = self.render(messages[:i], prompt=True)
                    end = self.render(messages[: i + 1])
                    if not (whole.startswith(begin) and whole.startswith(end)):
                        raise Stop("the chat template changes what was said before")
                    learned.append((len(begin), len(end)))
            (ids, places), = self.tokenizer.encode([whole], False)
            if places is None:
                raise Stop("chats need tokenizer.json")
            yield [t if any(b <= at < e for b, e in learned) else t | NO_TARGET
                   for t, at in zip(ids, places)]


def record_of(item, where):
    """Returns ("texts", text), ("answers", (prompt, answer)) or ("chats", messages)."""
    if isinstance(item, dict):
        answer = next((item[name] for name in ANSWERS if name in item), None)
        if isinstance(item.get("text"), str):
            return "texts", item["text"]
        if isinstance(item.get("prompt"), str) and isinstance(answer, str):
            return "answers", (item["prompt"], answer)
        messages = item.get("messages")
        if isinstance(messages, list) and all(
                isinstance(m, dict) and isinstance(m.get("role"), str) for m in messages):
            return "chats", messages
    raise Stop(f"{where}: no object with \"text\", \"prompt\" and \"answer\", or \"messages\"")


def records_of(file, lines):
    """Yields what record_of returns for each of the JSON lines, or for the whole text."""
    if not lines:
        yield "texts", file.read()
        return
    for number, line in enumerate(file, 1):
        if line.strip():
            where = f"{file.name}:{number}"
            try:
                yield record_of(json.loads(line), where)
            except json.JSONDecodeError as error:
                raise Stop(f"{where}: no JSON: {error.msg}") from None


def records(path):
    if path.endswith(".zst"):
        raise Stop(f"{path}: is compressed, which only bytes and gpt2 read; type: zstd -d {path}")
    lines = path.endswith((".jsonl", ".ndjson"))
    try:
        with open(path, encoding="utf-8-sig" if lines else "utf-8") as file:
            yield from records_of(file, lines)
    except UnicodeDecodeError:
        raise Stop(f"{path}: is not in UTF-8; convert it first, for example with iconv") from None


def bytes_of(ids):
    numbers = array.array("I", ids)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def prompt(encoder, text, out):
    (ids, _), = encoder.tokenizer.encode([text], True)
    out.write(bytes_of(ids))


def decode(encoder, path, out):
    with open(path, "rb") as file:
        numbers = array.array("I", file.read())
    if sys.byteorder == "big":
        numbers.byteswap()
    out.write(encoder.tokenizer.decode(numbers.tolist()).encode())


def encode_all(encoder, paths, out):
    kinds = {next(records(path), ("texts", None))[0] for path in paths}
    masked = kinds != {"texts"}
    out.write(f"{encoder.name} {encoder.tokenizer.vocabulary} {int(masked)}\n".encode())

    def flush(kind, batch):
        for ids in getattr(encoder, kind)(batch) if batch else ():
            out.write(bytes_of(ids))

    for path in paths:
        kind, batch = "texts", []
        for other, record in records(path):
            if other != "texts" and not masked:
                raise Stop(f"{path}: has texts before prompts; put them into separate files")
            if other != kind or len(batch) == BATCH:
                flush(kind, batch)
                kind, batch = other, []
            batch.append(record)
        flush(kind, batch)


def main():
    if len(sys.argv) < 3:
        raise Stop("usage: encode.py DIR FILE...")
    modes = {"--prompt": prompt, "--decode": decode}
    if sys.argv[1] in modes:
        modes[sys.argv[1]](Encoder(sys.argv[2]), sys.argv[3], sys.stdout.buffer)
    else:
        encode_all(Encoder(sys.argv[1]), sys.argv[2:], sys.stdout.buffer)
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except Stop as reason:
        print(f"tokenize: {reason}", file=sys.stderr)
        sys.exit(reason.status)
    except OSError as reason:
        sys.exit(f"tokenize: {reason.filename}: {reason.strerror}")
    except ValueError as reason:
        sys.exit(f"tokenize: {reason}")
