"""The records that `bcd tokenize` sends to encode.py: one of the forms below for each line of JSON or
element of an array, or the text of a whole file."""
import codecs
import json
from typing import NamedTuple

ANSWERS = ("answer", "completion", "response")
UNUSED = ("context", "documents", "functions")  # what an answer was given for; without it another thing is learned
LABELS = ("label", "kto_tag")  # true or false: whether an answer is a good one, for TRL and LLaMA-Factory
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
    """What the assistant says counts, but for the messages whose indices are in `left_out`."""
    where: str
    messages: list
    tools: list = None
    left_out: tuple = ()


class Instruction(NamedTuple):
    """Alpaca's form: the output counts, and so do the answers in the messages before the instruction."""
    where: str
    instruction: str
    input: str
    output: str
    before: tuple = ()


def message_of(item, where, number):
    """Returns a message with "role" and "content", from "from" and "value" if it is ShareGPT's."""
    if isinstance(item, dict) and "role" not in item and "from" in item:
        if not isinstance(item["from"], str) or item["from"] not in ROLES:
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
    if item.get("function_call"):
        raise Stop(f"{where}: message {number} has a function_call; write it as tool_calls")
    calls = item.get("tool_calls") or []
    if not isinstance(calls, list) or not all(is_call(call) for call in calls):
        raise Stop(f"{where}: message {number} has tool_calls that are no list of functions with a name")
    return item


def is_call(call):
    """Tells whether a call has the name of a function, by itself or in "function"."""
    named = call.get("function", call) if isinstance(call, dict) else None
    return isinstance(named, dict) and isinstance(named.get("name"), str)


def is_learned(item, where, number):
    """Returns false for an answer that is not to be learned, by OpenAI's "weight" or axolotl's "train"."""
    given = [item[name] for name in ("weight", "train") if item.get(name) is not None]
    if any(value not in (0, 1) for value in given):
        raise Stop(f'{where}: message {number} has a "weight" or "train" that is neither 0 nor 1, false nor true')
    return all(given)


def text_of(item, name, where):
    """Returns a field that may be absent or null."""
    text = item.get(name)
    if text is not None and not isinstance(text, str):
        raise Stop(f'{where}: "{name}" is neither a string nor null')
    return text or ""


def system_of(item, where):
    system = text_of(item, "system", where)
    return [{"role": "system", "content": system}] if system else []


def before_of(item, where):
    """Returns the messages before an instruction: a system prompt, and a history of questions and answers."""
    history = item.get("history") or []
    if not isinstance(history, list) or not all(
            isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair) for pair in history):
        raise Stop(f'{where}: "history" is no list of pairs of strings')
    return tuple(system_of(item, where) + [{"role": role, "content": text} for pair in history
                                           for role, text in zip(("user", "assistant"), pair)])


def tools_of(item, where):
    tools = item.get("tools")
    try:
        return json.loads(tools) if isinstance(tools, str) and tools.strip() else tools or None
    except ValueError as error:
        raise Stop(f'{where}: "tools" is no JSON: {error}') from None


def chat_of(item, messages, where, given=0):
    """Returns a chat, of which the first `given` messages are not to be learned."""
    system = system_of(item, where)
    items, given = system + messages, given + len(system)
    messages = [message_of(m, where, n) for n, m in enumerate(items, 1)]
    if system and messages[1:] and messages[1]["role"] == "system":
        if messages[1]["content"] != messages[0]["content"]:
            raise Stop(f'{where}: has a "system" beside a message of that role, which says something else')
        items, messages, given = items[1:], messages[1:], given - 1
    answers = [n for n, m in enumerate(messages) if m["role"] == "assistant"]
    if not any(n >= given for n in answers):
        roles = ", ".join(dict.fromkeys(m["role"] for m in messages[given:])) or "none"
        raise Stop(f"{where}: no message {'of the answer ' * (given > len(system))}has the role assistant, so nothing "
                   f"would be learned; those there are: {roles}")
    left_out = tuple(n for n in answers if not is_learned(items[n], where, n + 1) or n < given)
    return Chat(where, messages, tools_of(item, where), left_out)


def prompt_of(item, prompt, answer, where):
    """Returns a prompt and its answer, as an instruction if other fields say what is before it."""
    if text_of(item, "input", where):
        raise Stop(f'{where}: has "input" beside "prompt"; write "instruction", "input" and "output"')
    before = before_of(item, where)
    return Instruction(where, prompt, "", answer, before) if before else Answer(where, prompt, answer)


def record_of(item, where):
    """Returns the record of a JSON value."""
    item = item if isinstance(item, dict) else {}
    record = form_of(item, where)
    if isinstance(record, Text):
        return record
    for name in LABELS:
        if isinstance(item.get(name), bool):
            raise Stop(f"{where}: has a preference ({name}), which cannot be trained on here")
    for name in UNUSED:
        if item.get(name):
            raise Stop(f'{where}: has "{name}", which is not used; write it into the prompt or a message')
    return record


def answer_of(item, where):
    """Returns the answer to a prompt, by whichever name it has, or None."""
    first, *others = [name for name in ANSWERS if item.get(name) is not None] or [ANSWERS[0]]
    for name in others:
        if item[name] != item[first]:
            raise Stop(f'{where}: has both "{first}" and "{name}", which are not the same')
    return item.get(first)


def form_of(item, where):
    """Returns the record of an object, by the first of these forms that it has."""
    if item.get("chosen") is not None and item.get("rejected") is not None:
        raise Stop(f"{where}: has preferences (chosen and rejected), which cannot be trained on here; "
                   "without these two what is beside them can")
    if item.get("chat_template_kwargs"):
        raise Stop(f"{where}: has chat_template_kwargs, which are not passed to the chat template here")
    for name in ("messages", "conversations"):
        if item.get(name) and isinstance(item[name], list):
            return chat_of(item, item[name], where)
    prompt = item.get("prompt")
    answer = None if prompt is None else answer_of(item, where)
    if isinstance(prompt, list) and isinstance(answer, list):
        return chat_of(item, prompt + answer, where, len(prompt))
    if isinstance(prompt, str) and isinstance(answer, str):
        return prompt_of(item, prompt, answer, where)
    if isinstance(item.get("instruction"), str) and isinstance(item.get("output"), str):
        return Instruction(where, item["instruction"], text_of(item, "input", where), item["output"],
                           before_of(item, where))
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


def once_each(where):
    """A hook that refuses an object with a key twice, of which readers take different values."""
    def hook(pairs):
        made = dict(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            raise Stop(f'{where}: has "{next(name for name in names if names.count(name) > 1)}" twice')
        return made
    return hook


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
            yield record_of(json.loads(value.decode("utf-8"), object_pairs_hook=once_each(where)), where)
        except json.JSONDecodeError as error:
            raise Stop(f"{where}: no JSON: {error.msg}") from None
        except RecursionError:
            raise Stop(f"{where}: no JSON: nested too deeply") from None
        except UnicodeDecodeError:
            raise not_utf8(where) from None
        except ValueError:  # Python refuses it, as others refuse it as a number
            raise Stop(f"{where}: has a whole number of too many digits") from None
