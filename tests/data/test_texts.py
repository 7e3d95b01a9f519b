"""Texts, prompts and chats in the tokens of a model's own tokenizer. The expected results are
written here as text; the package tokenizers decodes the tokens to compare."""
import io
import json
import os
import subprocess
import sys

import pytest

from model_directory import (FORGETS, HI, MARKED, OPENS, PROMPT, ROOT, SYSTEM, TURNS, TWICE, Model, around,
                             bcd, encode, encoded, jsonl, learned_of, lines, model, numpy, read_tokens, tokenizers,
                             trained)
import texts
from records import Stop


TRUNCATION = {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
PADDING = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None, "pad_id": 2,
           "pad_type_id": 0, "pad_token": "<pad>"}
LONG = "The quick brown fox jumps over the lazy dog, and some more words make this long."

# What a row tests; what tokenizer.json has; the chat template; records; the whole text; the
# targets.
CASES = [
    ("truncation saved in tokenizer.json", {"truncation": TRUNCATION}, None, [{"text": LONG}],
     LONG + "</s>", LONG + "</s>"),
    ("padding saved in tokenizer.json", {"padding": PADDING}, None, [{"text": "Hi."}, {"text": LONG}],
     f"Hi.</s>{LONG}</s>", f"Hi.</s>{LONG}</s>"),
    ("a start and an end around texts", {"post_processor": around(["<s>"], ["</s>"])}, None,
     [{"text": "one"}, {"text": "two"}], "<s>one</s><s>two</s>", "<s>one</s><s>two</s>"),
    ("a start and an end around answers", {"post_processor": around(["<s>"], ["</s>"])}, None,
     [{"prompt": "2 + 2 =", "answer": " 4"}, {"prompt": "3 + 3 =", "answer": " 6"}],
     "<s>2 + 2 = 4</s><s>3 + 3 = 6</s>", " 4</s> 6</s>"),
    ("only a start", {"post_processor": around(["<s>"], [])}, None, [{"prompt": "a", "answer": "b"}],
     "<s>ab</s>", "b</s>"),
    ("the template marks answers", {}, MARKED, [{"messages": HI}], "user: Hi\nassistant: Hello\n",
     " Hello\n"),
    ("a template that asks for tools", {}, "{% if tools is not none %}You have tools.\n{% endif %}" + TURNS + PROMPT,
     [{"messages": HI}], "user: Hi\nassistant: Hello\n", " Hello\n"),
    ("tools", {}, "{% if tools is not none %}You have {{ tools[0].name }}.\n{% endif %}" + TURNS + PROMPT,
     [{"messages": HI, "tools": [{"name": "f"}]}], "You have f.\nuser: Hi\nassistant: Hello\n", " Hello\n"),
    ("tojson", {}, "{% for m in messages %}{{ m['role'] + ': ' }}{{ m['content'] | tojson }}\n{% endfor %}" + PROMPT,
     [{"messages": SYSTEM}], 'system: "Be nice"\nuser: "Hi <b>"\nassistant: "Hello"\n', ' "Hello"\n'),
    ("two answers", {}, TURNS + PROMPT, [{"messages": TWICE}],
     "user: Hi\nassistant: Hello\nuser: Bye\nassistant: Ciao\n", " Hello\n Ciao\n"),
    ("the second answer", {}, MARKED, [{"prompt": TWICE[:3], "completion": TWICE[3:]}],
     "user: Hi\nassistant: Hello\nuser: Bye\nassistant: Ciao\n", " Ciao\n"),
    ("thoughts of the last answer only", {}, FORGETS, [{"messages": TWICE}],
     "user: Hi\nassistant: <think></think>Hello\n"
     "user: Hi\nassistant: Hello\nuser: Bye\nassistant: <think></think>Ciao\n",
     " <think></think>Hello\n <think></think>Ciao\n"),
    ("Alpaca's form as a chat", {}, TURNS + PROMPT, [{"instruction": "Add", "input": "1 2", "output": "3"}],
     "user: Add\n\n1 2\nassistant: 3\n", " 3\n"),
    ("Alpaca's form as a prompt", {}, None, [{"instruction": "Add", "input": "1 2", "output": "3"}],
     "Below is an instruction that describes a task, paired with an input that provides further context. "
     "Write a response that appropriately completes the request.\n\n### Instruction:\nAdd\n\n"
     "### Input:\n1 2\n\n### Response:3</s>", "3</s>"),
    ("everything in one file", {}, TURNS + PROMPT,
     [{"text": "one"}, {"prompt": "a", "answer": " b"}, {"messages": HI}, {"text": ""}, {"text": "two"}],
     "one</s>a b</s>user: Hi\nassistant: Hello\ntwo</s>", "one</s> b</s> Hello\ntwo</s>"),
]

REFUSED = [
    ("the template's own words", "{% if messages[0].role == 'system' %}{{ raise_exception('No system role') }}"
     "{% endif %}" + TURNS + PROMPT, [{"messages": HI}, {"messages": SYSTEM}], "line 2: No system role"),
    ("a damaged template", "{% for %}", [{"messages": HI}], "line 1: "),
    ("no template", None, [{"messages": HI}], "has no chat template"),
    ("an answer to nothing", TURNS + PROMPT, [{"messages": HI}, {"messages": HI[1:]}],
     "line 2: message 1 is an answer, and nothing is before it"),
    ("the prompt opens thoughts", OPENS, [{"messages": HI}],
     "line 1: the chat template opens an answer with '<think>\\n'"),
]


@pytest.mark.parametrize("changed, template, items, whole, learned", [pytest.param(*row[1:], id=row[0]) for row in CASES])
def test_case(model, changed, template, items, whole, learned):
    assert learned_of(model(template, **changed), items) == (whole, learned)


@pytest.mark.parametrize("answer", ["Paris", "Paris is", "\nParis"])
def test_answer_after_a_blank(tmp_path, answer):
    """A tokenizer that begins a text with a blank does not put one between a prompt and its answer."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token=None))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="first")
    made.decoder = tokenizers.decoders.Metaspace(prepend_scheme="first")
    made.train_from_iterator(["Paris is A: \n"], tokenizers.trainers.BpeTrainer(vocab_size=40, special_tokens=["<s>", "</s>"]))
    model = Model(tmp_path, json.loads(made.to_str()))
    _, raw = encoded(model, lines([{"prompt": "A: ", "answer": answer}]))
    ids, counts = raw & 0x7fffffff, raw >> 31 == 0
    assert model.text(ids) == f"A: {answer}</s>" and model.text(ids[~counts]) == "A: "
    assert ids[~counts].tolist() == made.encode("A: ").ids


def test_tokens_beyond_the_model(model):
    """The tokens that the model has are counted, not one that its tokenizer has beyond them, and that one is refused."""
    model = model(added_tokens=[{"id": 600, "content": "<unused>", "single_word": False, "lstrip": False, "rstrip": False,
                                 "normalized": False, "special": True}])
    assert encoded(model, lines([{"text": "Hi"}]))[0] == "601 "
    model.write("config.json", {"vocab_size": 600})
    assert encoded(model, lines([{"text": "Hi"}]))[0] == "600 "
    beyond = ": has the token 600, '<unused>', which the tokenizer has beyond the 600 tokens of the model in .*config.json"
    with pytest.raises(Stop, match="^F: line 2" + beyond):
        encoded(model, lines([{"text": "Hi"}, {"prompt": "a", "answer": "b<unused>"}]))
    with pytest.raises(Stop, match="^F" + beyond):
        encoded(model, b"text\nHi <unused>")


def test_a_template_that_marks_nothing(model):
    model = model(MARKED.replace("m.role == 'assistant'", "m.role == 'model'"))
    with pytest.raises(Stop, match="^F: line 1: the chat template marks no token of an answer"):
        encoded(model, lines([{"messages": HI}]))


@pytest.mark.parametrize("template, items, error", [pytest.param(*row[1:], id=row[0]) for row in REFUSED])
def test_refused(model, template, items, error):
    with pytest.raises(Stop, match="^F: line ") as stop:
        encoded(model(template), lines(items))
    assert error in str(stop.value) and "\n" not in str(stop.value)


def test_program(model, tmp_path):
    """bcd tokenize itself reads several files."""
    _, changed, template, items, whole, learned = CASES[-1]
    model, path = model(template, **changed), tmp_path / "in.jsonl"
    path.write_text("\n" + jsonl(items))
    (tmp_path / "b.json").write_text(json.dumps(items, indent=1))
    said = bcd("tokenize", path, tmp_path / "b.json", "--tokenizer", model.directory)
    ids, counts = read_tokens(tmp_path / "in.tokens")
    assert model.text(ids) == 2 * whole and model.text(ids[counts]) == 2 * learned
    assert said.startswith(f"{tmp_path}/in.tokens: {len(ids)} tokens\ntrain on it with: bcd train --init ")
    model.write("tokenizer_config.json", {})
    path.write_text(jsonl([{"text": "a"}, {"messages": HI}]))
    out = ["--out", tmp_path / "in.tokens"]
    assert bcd("tokenize", path, "--tokenizer", model.directory, *out, status=1) == (
        f"bcd: tokenize: {path}: line 2: has messages, and {model.directory} has no chat template\n")
    path.write_text(jsonl([{"text": "a"}]))
    assert "nothing marks where a text ends" in bcd("tokenize", path, "--tokenizer", model.directory, *out)


def test_where_records_begin(model):
    """Also one that is encoded in pieces, as a line of JSON or as plain text, is one."""
    model = model(TURNS + PROMPT)
    long = "one two three " * (2 * texts.PIECE // 14)
    _, first = encoded(model, lines([{"messages": HI}]))
    assert model.begins == [0]
    _, text = encoded(model, b"text\n" + long.encode())
    assert model.begins == [0]
    encoded(model, lines([{"messages": HI}, {"text": long}, {"prompt": "a", "answer": "b"}]))
    assert model.begins == [0, len(first), len(first) + len(text)]


def test_records_kept_whole(model, tmp_path):
    """No chat that fits is cut by a window; without --context some are."""
    model, path = model(TURNS + PROMPT), tmp_path / "in.jsonl"
    path.write_text(jsonl([{"messages": HI}] * 9))
    bcd("tokenize", path, "--tokenizer", model.directory)
    ids, counts = read_tokens(tmp_path / "in.tokens")
    one, size = len(ids) // 9, len(ids) // 9 + 3
    said = bcd("tokenize", path, "--tokenizer", model.directory, "--context", size, "--out", tmp_path / "whole.tokens")
    assert f"--context {size}" in said
    windowed, windowed_counts = read_tokens(tmp_path / "whole.tokens")
    assert len(windowed) == 9 * size + 1
    for first in range(0, 9 * size, size):
        assert windowed[first:first + one].tolist() == ids[:one].tolist()
        assert windowed_counts[first:first + size].tolist() == counts[:one].tolist() + 3 * [False]


@pytest.mark.parametrize("arguments, error", [
    (["--chat", "{}"], "sample: {}: has no chat template"),
    (["{}", "chats"], "tokenize: chats: line 1: has messages, and {} has no chat template")])
def test_errors_name_the_command(model, arguments, error):
    """What bcd sample asks is not said to be of bcd tokenize."""
    directory = model(template=None).directory
    asked = len(b"hi").to_bytes(4, "little") + b"hi" if "--chat" in arguments else lines([{"messages": HI}])
    done = subprocess.run([sys.executable, encode.__file__, *(word.format(directory) for word in arguments)],
                          input=asked, capture_output=True)
    assert done.returncode == 1 and done.stderr.decode().strip() == error.format(directory)


def test_a_long_error_is_whole(model, tmp_path):
    """Here it is longer than 400 characters, by the names of directories."""
    folder = tmp_path / ("a" * 200) / ("b" * 200)
    folder.mkdir(parents=True)
    (folder / "pairs.jsonl").write_text('{"prompt": "a", "chosen": "b", "rejected": "c"}\n')
    error = bcd("tokenize", folder / "pairs.jsonl", "--tokenizer", model().directory, status=1)
    assert error.startswith(f"bcd: tokenize: {folder}/pairs.jsonl: line 1: has preferences"), error


def test_template_in_a_file(model, tmp_path):
    """Newer models have their chat template in a file of its own."""
    model = model()
    (tmp_path / "chat_template.jinja").write_text(TURNS + PROMPT)
    _, ids = encoded(model, lines([{"messages": HI}]))
    assert model.text(ids[ids >> 31 == 0]) == " Hello\n"


def test_a_line_that_cannot_be_encoded_is_named(tmp_path):
    """The tokenizer has whole words, and no token for words that it does not know."""
    words = {"version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None, "decoder": None,
             "pre_tokenizer": {"type": "WhitespaceSplit"},
             "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"a": 0, "</s>": 1}}}
    with pytest.raises(Stop, match="^F: line 2: "):
        encoded(Model(tmp_path, words), lines([{"text": "a"}, {"text": "a b"}, {"text": "a"}]))


def test_plain_text_keeps_its_line_ends(model):
    model = model()
    head, ids = encoded(model, b"text\na\r\nb\rc\n")
    assert head == "600 " and model.text(ids) == "a\r\nb\rc\n</s>"


@pytest.mark.parametrize("piece", [64, 100, 1000])
@pytest.mark.parametrize("threads", [1, 3])
def test_pieces_give_the_tokens_of_the_whole(model, monkeypatch, piece, threads):
    model = model(post_processor=around(["<s>"], []))
    text = (ROOT / "README.md").read_text()[:8000] + "ab" * 400 + " \n\n  日本語 " + LONG * 20
    monkeypatch.setattr(texts, "PIECE", piece)
    monkeypatch.setattr(texts, "THREADS", threads)
    monkeypatch.setattr(texts, "OVERLAP", piece // 2)
    monkeypatch.setattr(texts, "AGREE", 8)
    expected = [0] + model.tokenizer.encode(text).ids + [1]
    assert encoded(model, b"text\n" + text.encode())[1].tolist() == expected
    line = b"line\n1 " + json.dumps({"text": text}).encode() + b"\n"
    assert encoded(model, line)[1].tolist() == expected


def test_long_text_is_cut(model, monkeypatch):
    """In all, little more than the text itself is encoded, so pieces do not grow with what came
    before."""
    model = model()
    text = (ROOT / "README.md").read_text()
    batches = []
    real = texts.Encoder.encode_spans
    monkeypatch.setattr(texts.Encoder, "encode_spans", lambda self, ts: batches.append(ts) or real(self, ts))
    monkeypatch.setattr(texts, "PIECE", 1000)
    monkeypatch.setattr(texts, "OVERLAP", 200)
    monkeypatch.setattr(texts, "THREADS", 4)
    encoded(model, b"text\n" + text.encode())
    assert all(len(batch) == 4 for batch in batches[:-2]), "not encoded together"
    lengths = [len(text) for batch in batches for text in batch]
    assert len(lengths) >= len(text) // 1000 and sum(lengths) < 1.3 * len(text) and max(lengths) <= 1200


LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
DIGITS = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, LEVEL]}
SPACES = {"pre_tokenizer": None, "decoder": None, "normalizer": {
    "type": "Replace", "pattern": {"String": "\n"}, "content": "\u0120"}}


@pytest.mark.parametrize("kind, family, changed", [
    ("GPT2Tokenizer", "llama", {"pre_tokenizer": DIGITS}), ("PreTrainedTokenizerFast", "qwen2", {"pre_tokenizer": DIGITS}),
    ("Qwen2Tokenizer", "llama", {"pre_tokenizer": DIGITS}), ("Qwen2Tokenizer", "qwen2", SPACES),
    ("LlamaTokenizerFast", "llama", SPACES), ("PreTrainedTokenizerFast", "llama", {"pre_tokenizer": DIGITS})])
def test_steps_are_those_of_the_file(model, kind, family, changed):
    """transformers 5 has steps of its own for some of these."""
    model = model(config={"tokenizer_class": kind}, **changed)
    model.write("config.json", {"model_type": family, "vocab_size": 600})
    text = "x     12 = 34\n    6"
    head, ids = encoded(model, b"text\n" + text.encode())
    saved = tokenizers.Tokenizer.from_file(os.path.join(model.directory, "tokenizer.json"))
    assert ids[:-1].tolist() == saved.encode(text).ids and ids[-1] == 1
    if kind == "GPT2Tokenizer":
        assert "its pre_tokenizer: as in tokenizer.json; transformers " in head
    if kind == "PreTrainedTokenizerFast" and family == "llama":
        assert head == "600 "


@pytest.mark.parametrize("kind", ["GPT2Tokenizer", "Qwen2Tokenizer", "GPTNeoXTokenizer"])
def test_the_model_is_that_of_the_file(model, kind):
    """These classes make a BPE of whatever the file has."""
    pieces = [[piece, -1.0 - n] for n, piece in enumerate(["<unk>", "</s>", "\u2581The", "\u2581", *"The", "\u2581quick", *"quick"])]
    blanks = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    model = model(config={"tokenizer_class": kind}, model={"type": "Unigram", "unk_id": 0, "vocab": pieces},
                  normalizer=None, pre_tokenizer=blanks, decoder=blanks, post_processor=None,
                  added_tokens=[{"id": 1, "content": "</s>", "single_word": False, "lstrip": False, "rstrip": False,
                                 "normalized": False, "special": True}])
    head, ids = encoded(model, b"text\nThe quick The")
    saved = tokenizers.Tokenizer.from_file(os.path.join(model.directory, "tokenizer.json"))
    assert ids[:-1].tolist() == saved.encode("The quick The").ids == [2, 7, 2]
    assert "its model, " in head and "more token" in head


@pytest.mark.parametrize("settings, begins", [({}, True), ({"add_bos_token": False}, False)])
def test_tokens_around_a_text_are_those_of_the_file(model, settings, begins):
    """Unless the settings say which; transformers puts none around those of this class."""
    model = model(config={"tokenizer_class": "GPTNeoXTokenizer", **settings}, pre_tokenizer=LEVEL,
                  post_processor=around(["<s>"], ["</s>"]))
    head, ids = encoded(model, b"text\nHello")
    assert ids.tolist() == [0] * begins + model.tokenizer.encode("Hello", add_special_tokens=False).ids + [1]
    assert ("post_processor" in head) == begins


def test_a_class_that_cannot_read_the_file_is_named(model):
    model = model(config={"tokenizer_class": "T5Tokenizer"})
    with pytest.raises(texts.Stop, match='cannot read its tokenizer: .*read as T5Tokenizer, .*"PreTrainedTokenizerFast"'):
        encoded(model, b"text\nHello")


def test_a_blank_before_a_text_is_as_the_settings_say(model):
    model = model(config={"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True}, pre_tokenizer=LEVEL)
    assert encoded(model, b"text\nHello")[1][:-1].tolist() == model.tokenizer.encode(" Hello").ids


def test_a_pattern_that_transformers_says_is_wrong(model, trained):
    """Of Mistral's tokenizers, which have more than 100,000 tokens: it splits numbers into digits."""
    vocabulary = trained["model"]["vocab"] | {f"zz{n}zz": n for n in range(600, 100100)}
    split = {"type": "Split", "pattern": {"Regex": r"\p{L}+|\p{N}+|\s+"}, "behavior": "Isolated", "invert": False}
    model = model(model=trained["model"] | {"vocab": vocabulary},
                  pre_tokenizer={"type": "Sequence", "pretokenizers": [split, LEVEL | {"use_regex": False}]})
    model.write("config.json", {"model_type": "mistral", "vocab_size": 100100, "transformers_version": "4.48.0"})
    head, ids = encoded(model, b"text\n1234")
    assert "of which it says that it is wrong" in head
    assert len(ids) == 5 and model.text(ids) == "1234</s>"


# The end token: what the tokenizer's settings and the other files say, the token, and the note that
# is printed.
ENDS = [
    ({}, {}, 1, ""),
    ({"eos_token": None}, {"generation_config.json": {"eos_token_id": [2, 1]}}, 2, "generation_config.json says"),
    ({"eos_token": None}, {"config.json": {"eos_token_id": 1}}, 1, "config.json says"),
    ({"eos_token": None}, {"special_tokens_map.json": {"eos_token": "<pad>"}}, 2, ""),
    ({"eos_token": None}, {}, None, "nothing marks where a text ends"),
]


@pytest.mark.parametrize("config, files, end, note", ENDS)
def test_end_token(model, config, files, end, note):
    model = model(config=config)
    if config.get("eos_token", "") is None:
        model.write("tokenizer_config.json", {"bos_token": "<s>"})
    for name, value in files.items():
        model.write(name, value)
    head, ids = encoded(model, b'line\n1 {"text": "Hi"}\n')
    assert note in head and (note or head == "600 ")
    assert ids.tolist() == model.tokenizer.encode("Hi").ids + ([] if end is None else [end])


def test_tokens_that_end_a_text(model):
    """As transformers: those of generation_config.json, else those of config.json."""
    model = model()
    model.write("config.json", {"eos_token_id": [1, 2]})
    assert texts.Encoder(model.directory).ends() == [1, 2]
    model.write("generation_config.json", {})
    assert texts.Encoder(model.directory).ends() == [1]


def test_packages_that_read_another_format(tmp_path, monkeypatch):
    (tmp_path / "tokenizer.model").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(texts.Missing, match="is missing; type: pip install -U transformers jinja2 sentencepiece protobuf"):
        texts.load(str(tmp_path))


@pytest.mark.parametrize("mode", [["F"], ["--prompt"]])
def test_programs_of_the_directory_are_not_run(model, tmp_path, mode):
    """Also if the text says yes, which a question on standard input would read."""
    directory = model(config={"tokenizer_class": "Mine", "auto_map": {"AutoTokenizer": ["mine.Mine", None]}}).directory
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n"
                                      "from transformers import PreTrainedTokenizerFast as Mine\n")
    arguments = [directory, *mode] if mode == ["F"] else [*mode, directory]
    done = subprocess.run([sys.executable, encode.__file__, *arguments], input=b"text\nyes\nyes\n", capture_output=True)
    assert not (tmp_path / "ran").exists() and done.returncode == 1 and done.stdout == b""
    assert done.stderr.decode().endswith(
        f"{directory}: its tokenizer needs a program of its own (auto_map), which is not run\n")
    assert done.stderr.count(b"\n") == 1


def test_end_token_that_the_model_does_not_have(model):
    model = model(config={"eos_token": "<end>"})
    model.write("config.json", {"vocab_size": 600})
    with pytest.raises(Stop, match="the end token '<end>' is unknown to the model, which has 600 tokens"):
        encoded(model, b'line\n1 {"text": "Hi"}\n')


def conversed(model, monkeypatch, *questions, **options):
    """The first line, and the answers."""
    asked = b"".join(len(question).to_bytes(4, "little") + question for question in questions)
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(asked)))
    encode.converse(out, model.directory, **options)
    head, _, rest = out.getvalue().partition(b"\n")
    return head.decode(), list(encode.questions(io.BytesIO(rest)))


def prompted(model, monkeypatch, text, **options):
    head, (raw,) = conversed(model, monkeypatch, text, **options)
    return head, model.text(numpy.frombuffer(raw, "<u4"))


def test_prompt(model, monkeypatch):
    """A prompt has no end token after it. The first line lists the end tokens."""
    model = model(TURNS + PROMPT, post_processor=around(["<s>"], ["</s>"]))
    model.write("generation_config.json", {"eos_token_id": [1, 2]})
    assert prompted(model, monkeypatch, "Grüße".encode()) == ("600 1 2", "<s>Grüße")
    assert prompted(model, monkeypatch, b"Hi", chat=True) == ("600 1 2", "user: Hi\nassistant: ")
    with pytest.raises(Stop, match="the prompt: is not in UTF-8"):
        prompted(model, monkeypatch, b"\xff")


def test_prompt_in_another_locale(model):
    model, text = model(), "Grüße".encode()
    run = subprocess.run([sys.executable, ROOT / "data" / "encode.py", "--prompt", model.directory],
                         input=len(text).to_bytes(4, "little") + text, capture_output=True,
                         env=os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"})
    raw, = encode.questions(io.BytesIO(run.stdout.partition(b"\n")[2]))
    assert model.text(numpy.frombuffer(raw, "<u4")) == "Grüße"


def test_text_comes_token_by_token(model, monkeypatch):
    """A character of several tokens comes with the last of them; the pieces together are the whole text."""
    model, text = model(TURNS + PROMPT, post_processor=around(["<s>"], ["</s>"])), "Grüße, 山!"
    head, (raw, *nothing) = conversed(model, monkeypatch, text.encode())
    tokens = [raw[at:at + 4] for at in range(0, len(raw), 4)]
    assert nothing == [] and len(tokens) > 5
    _, (_, *pieces) = conversed(model, monkeypatch, b"", *tokens, b"")
    pieces = [piece.decode() for piece in pieces]
    assert "".join(pieces) == text and "" in pieces[:-1] and pieces[-1] == ""
    # What is no character, because the tokens end, comes at the end.
    cut = next(number for number, piece in enumerate(pieces) if piece == "山")
    _, (_, *pieces) = conversed(model, monkeypatch, b"", *tokens[:cut], b"")
    assert b"".join(pieces).decode() == "Grüße, \N{REPLACEMENT CHARACTER}"
