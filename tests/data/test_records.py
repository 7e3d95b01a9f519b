"""The records that data/records.py finds in what `bcd tokenize` sends it."""
import errno
import io
import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "data"))
import encode  # noqa: E402
import texts  # noqa: E402
from records import Answer, Chat, Instruction, Stop, Stream, Text, records  # noqa: E402

HI = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
SYSTEM = {"role": "system", "content": "Be brief"}
LIGHT, HEAVY = HI[1] | {"weight": 0}, HI[1] | {"weight": 1.0, "train": None}

FORMS = [
    ("text", {"text": "a"}, Text("W", "a")),
    ("answer", {"prompt": "a", "answer": "b"}, Answer("W", "a", "b")),
    ("completion", {"prompt": "a", "completion": "b"}, Answer("W", "a", "b")),
    ("response", {"prompt": "a", "response": "b", "text": "ab"}, Answer("W", "a", "b")),
    ("chat", {"messages": HI, "prompt": "Hi"}, Chat("W", HI)),
    ("chat with tools", {"messages": HI, "tools": [{"name": "f"}]}, Chat("W", HI, [{"name": "f"}])),
    ("tools as text", {"messages": HI, "tools": '[{"name": "f"}]'}, Chat("W", HI, [{"name": "f"}])),
    ("TRL's prompt and completion", {"prompt": HI[:1], "completion": HI[1:]}, Chat("W", HI)),
    ("a completion after an answer", {"prompt": HI, "completion": HI}, Chat("W", HI + HI, None, (1,))),
    ("no tools, as text", {"messages": HI, "tools": ""}, Chat("W", HI)),
    ("ShareGPT", {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]},
     Chat("W", HI)),
    ("ShareGPT with a system", {"system": "Be brief", "conversations": [
        {"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}, Chat("W", [SYSTEM] + HI)),
    ("all roles of ShareGPT", {"conversations": [
        {"from": role, "value": role} for role in ("system", "human", "observation", "tool", "user", "gpt", "assistant")]},
     Chat("W", [{"role": role, "content": name} for role, name in (
         ("system", "system"), ("user", "human"), ("tool", "observation"), ("tool", "tool"), ("user", "user"),
         ("assistant", "gpt"), ("assistant", "assistant"))])),
    ("conversations with roles", {"conversations": HI}, Chat("W", HI)),
    ("a completion after a system", {"system": "Be brief", "prompt": HI, "completion": HI[1:]},
     Chat("W", [SYSTEM] + HI + HI[1:], None, (2,))),
    ("an answer without weight", {"messages": [HI[0], LIGHT, HI[0], HEAVY]},
     Chat("W", [HI[0], LIGHT, HI[0], HEAVY], None, (1,))),
    ("an answer not to train on", {"system": "Be brief", "conversations": [
        {"from": "human", "value": "Hi", "train": False}, {"from": "gpt", "value": "Hello", "train": False},
        {"from": "gpt", "value": "Hello", "train": True}]}, Chat("W", [SYSTEM] + HI + HI[1:], None, (2,))),
    ("the first answer that is not null", {"prompt": "a", "answer": None, "completion": "b", "text": "ab"},
     Answer("W", "a", "b")),
    ("an answer given twice", {"prompt": "a", "response": "b", "answer": "b"}, Answer("W", "a", "b")),
    ("a text with a context", {"text": "a", "context": "b"}, Text("W", "a")),
    ("fields that are not used, empty", {"prompt": "a", "answer": "b", "context": "", "documents": [], "functions": None},
     Answer("W", "a", "b")),
    ("messages that are empty", {"messages": [], "conversations": HI}, Chat("W", HI)),
    ("messages that are empty, and a prompt", {"messages": [], "prompt": "a", "answer": "b"}, Answer("W", "a", "b")),
    ("answers beside a chat", {"messages": HI, "answer": "a", "response": "b"}, Chat("W", HI)),
    ("the same system twice", {"system": "Be brief", "messages": [SYSTEM] + HI}, Chat("W", [SYSTEM] + HI)),
    ("a system and a system from ShareGPT", {"system": "Be brief", "conversations": [
        {"from": "system", "value": "Be brief"}, {"from": "gpt", "value": "Hello"}]}, Chat("W", [SYSTEM] + HI[1:])),
    ("half of a preference", {"prompt": "a", "answer": "b", "rejected": "c"}, Answer("W", "a", "b")),
    ("an answer with a weight that is not to train on", {"messages": HI + [LIGHT | {"weight": 1, "train": False}]},
     Chat("W", HI + [LIGHT | {"weight": 1, "train": False}], None, (2,))),
    ("a text with a label", {"text": "a", "label": True}, Text("W", "a")),
    ("preferences that are null", {"text": "a", "chosen": None, "rejected": None}, Text("W", "a")),
    ("a system before a prompt", {"system": "Be brief", "prompt": "a", "response": "b"},
     Instruction("W", "a", "", "b", (SYSTEM,))),
    ("LLaMA-Factory's Alpaca", {"instruction": "a", "input": None, "output": "b", "system": "Be brief",
                                "history": [["Hi", "Hello"]]}, Instruction("W", "a", "", "b", (SYSTEM, *HI))),
    ("fields that are empty", {"prompt": "a", "input": "", "response": "b", "system": None, "history": []},
     Answer("W", "a", "b")),
    ("Alpaca", {"instruction": "Add", "input": "1 2", "output": "3", "text": "Below"},
     Instruction("W", "Add", "1 2", "3")),
    ("Alpaca with blanks", {"instruction": " Add ", "input": " 1 2\n", "output": " 3 "},
     Instruction("W", " Add ", " 1 2\n", " 3 ")),
    ("Alpaca without input", {"instruction": "Add", "output": "3"}, Instruction("W", "Add", "", "3")),
    ("parts of text", {"messages": [{"role": "user", "content": [
        {"type": "text", "text": "H"}, {"type": "text", "text": "i"}]}, HI[1]]}, Chat("W", HI)),
]

ASKS = {"role": "assistant", "tool_calls": [{"name": "f"}]}
REFUSED = [
    ("null", "no object with \"text\""),
    ('{"txt": "a"}', "no object with \"text\"; \"prompt\" and \"answer\""),
    ('{"prompt": "a", "answer": 3}', "no object with"),
    ('{"messages": [{"role": "user", "content": "a"}]}', "no message has the role assistant"),
    ('{"messages": [{"role": "user", "content": "a"}, {"role": "model", "content": "b"}]}', "those there are: user, model"),
    ('{"messages": []}', "no object with \"text\""),
    ('{"prompt": "a", "response": "c", "answer": "b"}', 'has both "answer" and "response"'),
    ('{"prompt": "a", "answer": "b", "context": "c"}', 'has "context", which is not used'),
    ('{"instruction": "a", "output": "b", "context": "c"}', 'has "context", which is not used'),
    ('{"messages": [{"role": "assistant", "content": "a"}], "functions": [{"name": "f"}]}', 'has "functions", which'),
    ('{"messages": [{"role": "assistant", "content": "a"}], "documents": [{"text": "b"}]}', 'has "documents", which'),
    ('{"system": "a", "messages": [{"role": "system", "content": "b"}, {"role": "assistant", "content": "c"}]}',
     'has a "system" beside a message of that role'),
    ('{"prompt": [{"role": "assistant", "content": "a"}], "completion": []}',
     "no message of the answer has the role assistant, so nothing would be learned; those there are: none"),
    ('{"messages": [{"content": "a"}]}', "message 1 has no role"),
    ('{"messages": [{"role": "user", "content": 3}]}', "message 1 has no text as its content"),
    ('{"messages": [{"role": "assistant"}]}', "message 1 has no text as its content"),
    ('{"messages": [{"role": "assistant", "content": null, "tool_calls": []}]}', "message 1 has no text as its content"),
    ('{"instruction": 3, "output": "b"}', "no object with"),
    ('{"messages": [{"role": "user", "content": [{"type": "image"}]}]}', "message 1 has no text"),
    ('{"conversations": [{"from": "bing", "value": "a"}]}', "message 1 is from 'bing'; there are human"),
    ('{"conversations": [{"from": ["human"], "value": "a"}]}', "message 1 is from ['human']; there are human"),
    ('{"chosen": "a", "rejected": "b", "prompt": "c"}', "has preferences"),
    ('{"chosen": "a", "rejected": "b", "prompt": "c", "answer": "d"}', "has preferences"),
    ('{"chosen": "a", "rejected": "b", "messages": [{"role": "assistant", "content": "a"}]}', "has preferences"),
    ('{"chosen": "a", "rejected": "b", "instruction": "c", "output": "d"}', "has preferences"),
    ('{"chosen": "a", "rejected": "b", "text": "c"}', "has preferences"),
    ('{"prompt": "a", "completion": "b", "label": false}', "has a preference (label)"),
    ('{"instruction": "a", "output": "b", "kto_tag": true}', "has a preference (kto_tag)"),
    ('{"messages": [{"role": "assistant", "content": "a"}], "label": true}', "has a preference (label)"),
    ('{"messages": [{"role": "assistant", "content": "a", "weight": 0.5}]}', "message 1 has a \"weight\" or \"train\""),
    ('{"messages": [{"role": "assistant", "content": "", "function_call": {}}, {}]}', "message 2 has no role"),
    ('{"messages": [{"role": "assistant", "content": "", "function_call": {"name": "f"}}]}', "message 1 has a function_call"),
    ('{"messages": [{"role": "assistant", "tool_calls": [{"function": "f"}]}]}', "message 1 has tool_calls that are no list"),
    ('{"messages": [{"role": "assistant", "content": "a"}], "system": 3}', '"system" is neither a string nor null'),
    ('{"messages": [{"role": "assistant", "content": "a"}], "tools": "["}', '"tools" is no JSON: Expecting'),
    ('{"instruction": "a", "input": 0, "output": "b"}', '"input" is neither a string nor null'),
    ('{"instruction": "a", "input": [1, 2], "output": "b"}', '"input" is neither'),
    ('{"instruction": "a", "output": "b", "history": [["c"]]}', '"history" is no list of pairs of strings'),
    ('{"prompt": "a", "input": "c", "response": "b"}', 'has "input" beside "prompt"'),
    ('{"text": "a", "id": ' + "1" * 5000 + "}", "has a whole number of too many digits"),
    ('{"text": "a", "text": "b"}', 'has "text" twice'),
    ('{"messages": [{"role": "user", "role": "assistant", "content": "a"}]}', 'has "role" twice'),
    ('{"text": "a"', "no JSON: Expecting"),
    ("[" * 100000, "no JSON: nested too deeply"),
]


def feed(*lines, unit="line"):
    """Returns what tokenize_feed writes for lines of JSON."""
    return io.BytesIO(b"".join([unit.encode() + b"\n"] + [
        b"%d %b\n" % (number, line if isinstance(line, bytes) else line.encode())
        for number, line in enumerate(lines, 1)]))


@pytest.mark.parametrize("item, expected", [pytest.param(*row[1:], id=row[0]) for row in FORMS])
def test_form(item, expected):
    record, = records("F", feed(json.dumps(item)))
    assert record == expected._replace(where="F: line 1")


def test_tool_calls_have_no_content():
    record, = records("F", feed(json.dumps({"messages": [HI[0], ASKS]})))
    assert record.messages == [HI[0], ASKS]


@pytest.mark.parametrize("line, error", REFUSED, ids=[error[:24] for _, error in REFUSED])
def test_refused(line, error):
    with pytest.raises(Stop, match="^F: element 2: ") as stop:
        list(records("F", feed('{"text": "a"}', line, unit="element")))
    assert error in str(stop.value)


def test_line_that_is_not_in_utf8():
    with pytest.raises(Stop, match="^F: line 2: is not in UTF-8; convert the file first"):
        list(records("F", feed('{"text": "a"}', b'{"text": "\xff"}')))


def test_text_is_read_in_pieces_of_every_size():
    text = "é\r\n日本\rx\n🙂"
    for size in range(1, 25):
        stream, = records("F", io.BytesIO(b"text\n" + text.encode()))
        assert isinstance(stream, Stream)
        assert "".join(iter(lambda: stream.read(size), "")) == text


def test_text_that_is_not_in_utf8_has_its_line():
    for size in (1, 3, 100):
        stream, = records("F", io.BytesIO(b"text\none\ntwo \xff\nthree"))
        with pytest.raises(Stop, match="^F: line 2: is not in UTF-8"):
            while stream.read(size):
                pass
    stream, = records("F", io.BytesIO(b"text\none\n\xe6\x97"))
    with pytest.raises(Stop, match="^F: line 2: is not in UTF-8"):
        while stream.read(100):
            pass


def test_an_output_that_cannot_be_written_is_no_error_of_a_record():
    """Its records are not written again either, one by one, which would double what is there."""
    class Full:
        calls = 0

        def writelines(self, encoded):
            self.calls += 1
            raise OSError(errno.ENOSPC, "No space left on device")

    kinds = {Text: lambda batch: [[1]] * len(batch)}
    out = Full()
    with pytest.raises(OSError, match="No space left"):
        encode.encode_batch(kinds, lambda ids: ids, [Text("W", "a"), Text("W", "b")], out)
    assert out.calls == 1


@pytest.mark.parametrize("text", ["", "{", "[1]"])
def test_a_damaged_file_of_the_model_is_named(text, tmp_path):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(Stop, match="config.json: is no JSON object"):
        texts.settings(str(tmp_path), "config.json")
