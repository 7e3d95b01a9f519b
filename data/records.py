"""The records that `bcd tokenize` sends to encode.py: one of the forms below for each line of JSON or
element of an array, or the text of a whole file."""
import codecs
import json
from typing import NamedTuple

ANSWERS = ("answer", "completion", "response")
# ShareGPT's names of roles, and those of chat templates.
ROLES = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant",
         "system": "system", "tool": "tool", "observation": "tool"}
FORMS = '"text"; "prompt" and "answer"; "instruction" and "output"; "messages"; or "conversations"'


class Stop(Exception):
    """An error for the user, in one line."""
    status = 1


class Text(NamedTuple):
    """Every token is a target of the loss."""
    where: str
    text: str


class Stream(NamedTuple):
    """A text of any length; read(n) returns about n more characters, and "" at the end."""
    where: str
    read: object


class Answer(NamedTuple):
    """Only the answer counts."""
    where: str
    prompt: str
    answer: str


class Chat(NamedTuple):
    """What the assistant says counts, but for the first `given` messages."""
    where: str
    messages: list
    tools: list = None
    given: int = 0


class Instruction(NamedTuple):
    """Alpaca's form; only the output counts."""
    where: str
    instruction: str
    input: str
    output: str


def message_of(item, where, number):
    """Returns a message with "role" and "content", from "from" and "value" if it is ShareGPT's."""
    if isinstance(item, dict) and "role" not in item and "from" in item:
        if item["from"] not in ROLES:
            raise Stop(f"{where}: message {number} is from {item['from']!r}; "
                       f"there are {', '.join(ROLES)}")
        item = {"role": ROLES[item["from"]], "content": item.get("value")}
    if not isinstance(item, dict) or not isinstance(item.get("role"), str):
        raise Stop(f"{where}: message {number} has no role")
    content = item.get("content")
    if isinstance(content, list) and all(
            isinstance(part, dict) and isinstance(part.get("text"), str) for part in content):
        item = item | {"content": "".join(part["text"] for part in content)}
    elif not isinstance(content, str) and not (content is None and item.get("tool_calls")):
        raise Stop(f"{where}: message {number} has no text as its content")
    return item


def chat_of(item, messages, where, given=0):
    system = item.get("system")
    if isinstance(system, str) and system:
        messages, given = [{"role": "system", "content": system}] + messages, given + bool(given)
    messages = [message_of(m, where, n) for n, m in enumerate(messages, 1)]
    if not any(m["role"] == "assistant" for m in messages[given:]):
        raise Stop(f"{where}: no message has the role assistant, so nothing would be learned")
    tools = item.get("tools")
    return Chat(where, messages, json.loads(tools) if isinstance(tools, str) else tools, given)


def record_of(item, where):
    """Returns the record of a JSON value, by the first of these forms that it has."""
    item = item if isinstance(item, dict) else {}
    prompt, answer = item.get("prompt"), next((item[a] for a in ANSWERS if a in item), None)
    for name in ("messages", "conversations"):
        if isinstance(item.get(name), list):
            return chat_of(item, item[name], where)
    if isinstance(prompt, list) and isinstance(answer, list):
        return chat_of(item, prompt + answer, where, len(prompt))
    if isinstance(prompt, str) and isinstance(answer, str):
        return Answer(where, prompt, answer)
    if isinstance(item.get("instruction"), str) and isinstance(item.get("output"), str):
        return Instruction(where, item["instruction"], item.get("input") or "", item["output"])
    if "chosen" in item and "rejected" in item:
        raise Stop(f"{where}: has preferences (chosen and rejected), which cannot be trained on here")
    if isinstance(item.get("text"), str):
        return Text(where, item["text"])
    raise Stop(f"{where}: no object with {FORMS}")


class Reader:
    """Decodes a file piece by piece."""

    def __init__(self, name, file):
        self.name, self.file, self.line = name, file, 1
        self.decoder = codecs.getincrementaldecoder("utf-8")()

    def read(self, count):
        text, raw = "", b" "
        while raw and not text:
            raw = self.file.read(count)
            try:
                text = self.decoder.decode(raw, final=not raw)
            except UnicodeDecodeError as error:
                line = self.line + error.object.count(b"\n", 0, error.start)
                raise not_utf8(f"{self.name}: line {line}") from None
            self.line += raw.count(b"\n")
        return text


def not_utf8(where):
    return Stop(f"{where}: is not in UTF-8; convert the file first, for example with iconv")


def records(name, file):
    """Yields the records in what tokenize_feed (tokenize.h) wrote."""
    unit = file.readline().decode().strip()
    if unit == "text":
        yield Stream(name, Reader(name, file).read)
        return
    for line in file:
        number, _, value = line.partition(b" ")
        where = f"{name}: {unit} {number.decode()}"
        try:
            yield record_of(json.loads(value.decode("utf-8")), where)
        except json.JSONDecodeError as error:
            raise Stop(f"{where}: no JSON: {error.msg}") from None
        except RecursionError:
            raise Stop(f"{where}: no JSON: nested too deeply") from None
        except UnicodeDecodeError:
            raise not_utf8(where) from None
