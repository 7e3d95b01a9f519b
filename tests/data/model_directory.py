"""The directory of a small model with a tokenizer, and what encode.py makes of records; for the tests of it."""
import io
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("BCD_PROGRAM", str(ROOT / "build" / "bcd"))
sys.path.insert(0, str(ROOT / "data"))
pytest.importorskip("transformers", reason="no transformers; type: pip install -U transformers jinja2")
pytest.importorskip("jinja2", minversion="3.1.6", reason="jinja2 is too old for transformers; type: pip install -U jinja2")
tokenizers = pytest.importorskip("tokenizers")
numpy = pytest.importorskip("numpy")
import encode  # noqa: E402

HI = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
SYSTEM = [{"role": "system", "content": "Be nice"}, {"role": "user", "content": "Hi <b>"}, HI[1]]
TWICE = HI + [{"role": "user", "content": "Bye"}, {"role": "assistant", "content": "Ciao"}]
TURNS = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"
PROMPT = "{% if add_generation_prompt %}assistant: {% endif %}"
MARKED = ("{% for m in messages %}{% if m.role == 'assistant' %}assistant: {% generation %}{{ m.content }}\n"
          "{% endgeneration %}{% else %}{{ m.role }}: {{ m.content }}\n{% endif %}{% endfor %}" + PROMPT)
# As in Qwen3's template: only the last answer shows its thoughts, even if there are none.
FORGETS = ("{% for m in messages %}{{ m.role }}: {% if loop.last and m.role == 'assistant' %}<think></think>"
           "{% endif %}{{ m.content }}\n{% endfor %}" + PROMPT)
# As in DeepSeek-R1's template: the prompt opens the thoughts, and the chat has none.
OPENS = TURNS + "{% if add_generation_prompt %}assistant: <think>\n{% endif %}"


@pytest.fixture(scope="module")
def trained():
    """Returns a tokenizer of bytes and pairs with <s> 0, </s> 1, <pad> 2, as JSON. A blank belongs
    to the word after it."""
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    words = [" Hello Ciao <think></think> 1 2 3 4 6 =" for _ in range(1000)] + [" \"Hello\""] * 1000
    tokenizer.train_from_iterator(words + [(ROOT / "README.md").read_text()], vocab_size=600,
                                  special_tokens=["<s>", "</s>", "<pad>"], show_progress=False)
    return json.loads(tokenizer.to_str())


def around(before, after):
    """Returns the post-processor that puts special tokens around a text."""
    ids = {"<s>": 0, "</s>": 1}
    special = [[{"SpecialToken": {"id": token, "type_id": 0}} for token in side] for side in (before, after)]
    return {"type": "TemplateProcessing", "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                                                   {"Sequence": {"id": "B", "type_id": 1}}],
            "single": special[0] + [{"Sequence": {"id": "A", "type_id": 0}}] + special[1],
            "special_tokens": {token: {"id": token, "ids": [i], "tokens": [token]}
                               for token, i in ids.items() if token in before + after}}


class Model:
    """The directory of a model."""

    def __init__(self, directory, trained, template=None, config={}, **changed):
        self.directory = str(directory)
        self.tokenizer = tokenizers.Tokenizer.from_str(json.dumps(trained))
        settings = {"bos_token": "<s>", "eos_token": "</s>"} | config
        if template:
            settings["chat_template"] = template
        self.write("tokenizer.json", trained | changed)
        self.write("tokenizer_config.json", settings)

    def write(self, name, value):
        path = pathlib.Path(self.directory, name)
        path.write_text(json.dumps(value))
        return path

    def text(self, ids):
        return self.tokenizer.decode([int(i) for i in ids], skip_special_tokens=False)


@pytest.fixture
def model(tmp_path, trained):
    def make(template=None, config={}, **changed):
        return Model(tmp_path, trained, template, config, **changed)
    return make


def bcd(*arguments, status=0):
    run = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                         env=os.environ | {"PYTHON": sys.executable})
    assert run.returncode == status, run.stderr
    return run.stdout if status == 0 else run.stderr


def read_tokens(path):
    """Returns the tokens of a token file (tokens.h), and which of them count."""
    header = path.read_bytes()[:64]
    width, masked = int.from_bytes(header[12:16], "little"), int.from_bytes(header[36:40], "little")
    raw = numpy.fromfile(path, dtype=f"<u{width}", offset=64).astype("i8")
    mask = 1 << (8 * width - 1) if masked else 0
    return raw & ~mask, (raw & mask) == 0


def jsonl(items):
    return "".join(json.dumps(item) + "\n" for item in items)


def encoded(model, feed, name="F"):
    out, stdin = io.BytesIO(), sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(feed))
    try:
        encode.encode(out, model.directory, name)
    finally:
        sys.stdin = stdin
    head, _, raw = out.getvalue().partition(b"\n")
    marked = numpy.frombuffer(raw, "<u4")
    model.begins = numpy.flatnonzero(marked & encode.BEGINS).tolist()
    return head.decode(), marked & ~numpy.uint32(encode.BEGINS)


def lines(items):
    """Returns what the program sends for JSON lines (tokenize.h)."""
    return b"line\n" + b"".join(b"%d %b\n" % (n, json.dumps(item).encode()) for n, item in enumerate(items, 1))


def learned_of(model, items):
    """Returns the text of all tokens of these records, and of those that count in the loss."""
    _, raw = encoded(model, lines(items))
    ids, masked = raw & 0x7fffffff, raw >> 31
    return model.text(ids), model.text(ids[masked == 0])
