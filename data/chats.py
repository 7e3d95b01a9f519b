"""Chats and instructions in a model's tokens, as its own chat template writes them."""
import json
import os
import re

from records import Answer, Chat, Stop
from texts import NO_TARGET

# What Stanford's Alpaca was trained on (Taori et al. 2023), for models without a chat template.  The output
# follows without a line break.
ALPACA = ("Below is an instruction that describes a task{}. Write a response that appropriately "
          "completes the request.\n\n### Instruction:\n{}\n\n{}### Response:")


# Messages have the thoughts of an answer under these names.
THOUGHTS = "reasoning_content", "reasoning", "thinking"


class Chats:
    """What the chat template of an encoder's tokenizer writes."""

    def __init__(self, encoder):
        self.encoder, self.directory, self.tokenizer = encoder, encoder.directory, encoder.tokenizer
        self.written = set()  # kinds of messages that the chat template does not leave out

    def instructions(self, batch):
        for where, instruction, more, output, before in batch:
            if self.tokenizer.chat_template:
                question = instruction + ("\n\n" + more if more else "")
                yield from self.chats([Chat(where, [*before, {"role": "user", "content": question},
                                                    {"role": "assistant", "content": output}])])
                continue
            if before:
                raise Stop(f"{where}: has a system or history, and {self.directory} has no chat template")
            prompt = ALPACA.format(
                ", paired with an input that provides further context" if more else "", instruction,
                f"### Input:\n{more}\n\n" if more else "")
            yield from self.encoder.answers([Answer(where, prompt, output)])

    def render(self, messages, tools=None, prompt=False):
        return self.tokenizer.apply_chat_template(messages, tools=tools, tokenize=False,
                                                  add_generation_prompt=prompt)

    def rendered(self, messages, tools=None):
        """Does the same to compare, and returns None where the template raises something."""
        try:
            return self.render(messages, tools)
        except ImportError:
            raise
        except Exception:
            return None

    def chats(self, batch):
        for chat in batch:
            if not self.tokenizer.chat_template:
                raise Stop(f"{chat.where}: has messages, and {self.directory} has no chat template")
            chat = self.with_objects(chat)
            self.check_written(chat)
            template = self.tokenizer.get_chat_template(tools=chat.tools)
            marked = re.search(r"{%[-+]?\s*generation\s*[-+]?%}", template)
            yield from self.by_marks(chat) if marked else self.by_prefixes(chat)

    def with_objects(self, chat):
        """Returns the chat with the arguments of its calls as objects, where they are a string of JSON, as from OpenAI,
        that the template would write as a string of JSON again."""
        calls = [call.get("function", call) for message in chat.messages for call in message.get("tool_calls") or []]
        texts = [named["arguments"] for named in calls if isinstance(named.get("arguments"), str)]
        whole = self.rendered(chat.messages, chat.tools) if texts else None
        if not any(json.dumps(text, ensure_ascii=False) in (whole or "") for text in texts):
            return chat
        return chat._replace(messages=[parsed_arguments(message, chat.where, n)
                                       for n, message in enumerate(chat.messages, 1)])

    def check_written(self, chat):
        """Refuses a chat of which the template leaves out messages, tools or calls."""
        self.check_nulls(chat)
        self.check_messages(chat)
        self.check_thoughts(chat)
        calls = [(n, i) for n, message in enumerate(chat.messages) for i in range(len(message.get("tool_calls") or []))]
        whole = self.render(chat.messages, chat.tools) if chat.tools or calls else ""
        if chat.tools and whole == self.rendered(chat.messages):
            raise Stop(f"{chat.where}: the chat template leaves out the tools")
        for n, i in calls:
            if whole == self.rendered(renamed_call(chat, n, i), chat.tools):
                raise Stop(f"{chat.where}: the chat template leaves out tool calls (message {n + 1})")

    def check_messages(self, chat):
        """Refuses a message that the template leaves out.  Of each role one that comes first and one that does not
        are tried, as some templates write a system in the first place alone; and with tools and calls apart, for which
        some have another template, or leave out what is said beside a call."""
        for n, message in enumerate(chat.messages):
            kind = message["role"], n == 0, bool(message.get("tool_calls")), bool(chat.tools)
            content = message.get("content")
            if kind in self.written or not (content or "").strip():
                continue
            if not self.writes(chat, n, "content", len(chat.messages)):
                raise Stop(f"{chat.where}: the chat template leaves out message {n + 1}, of the role {message['role']!r}")
            self.written.add(kind)

    def check_thoughts(self, chat):
        """Refuses thoughts that the template leaves out of an answer even where that is the last one."""
        for n, message in enumerate(chat.messages):
            for name in THOUGHTS:
                kind = name, bool(message.get("tool_calls")), bool(chat.tools)
                if kind in self.written or not isinstance(message.get(name), str) or not message[name].strip():
                    continue
                if message["role"] == "assistant" and not self.writes(chat, n, name, n + 1):
                    raise Stop(f"{chat.where}: the chat template leaves out the {name} of message {n + 1}")
                self.written.add(kind)

    def writes(self, chat, n, name, end):
        """Returns true if a text of message n is in what the template writes of the first `end` messages."""
        message = chat.messages[n]
        other = [*chat.messages[:n], message | {name: message[name] + "."}, *chat.messages[n + 1:end]]
        return self.render(chat.messages[:end], chat.tools) != self.rendered(other, chat.tools)

    def check_nulls(self, chat):
        """Refuses null as a content where the template would fail, or write "None"."""
        nulls = [n for n, message in enumerate(chat.messages) if message.get("content") is None]
        if not nulls:
            return
        filled = [m | {"content": m.get("content") or ""} for m in chat.messages]
        whole, empty = self.rendered(chat.messages, chat.tools), self.rendered(filled, chat.tools)
        if empty is not None and (whole is None or whole.count("None") > empty.count("None")):
            raise Stop(f'{chat.where}: message {nulls[0] + 1} has the content null, and the chat template needs '
                       'a string; write ""')

    def by_marks(self, chat):
        """The template itself marks what the assistant says."""
        encoded = self.tokenizer.apply_chat_template(
            chat.messages, tools=chat.tools, return_dict=True, return_assistant_tokens_mask=True)
        ids, marks = encoded["input_ids"], encoded["assistant_masks"]
        if not any(marks):
            raise Stop(f"{chat.where}: the chat template marks no token of an answer as the assistant's")
        if chat.left_out:
            whole = self.render(chat.messages, chat.tools)
            masked = self.encoder.masked(whole, [self.place(chat, whole, i) for i in chat.left_out])
            marks = [mark and token & NO_TARGET for mark, token in zip(marks, masked)]
        yield [t if counts else t | NO_TARGET for t, counts in zip(ids, marks)]

    def place(self, chat, whole, i):
        """Returns the characters of message i.  With some templates an answer is another where it is the
        last; then what follows it is taken as well, up to a message that is found."""
        begin = self.render(chat.messages[:i], chat.tools) if i else ""
        for n in range(i + 1, len(chat.messages) + 1):
            if n > i + 1 and chat.messages[n - 1]["role"] == "assistant" and n - 1 not in chat.left_out:
                break
            end = self.render(chat.messages[:n], chat.tools)
            if whole.startswith(begin) and whole.startswith(end):
                return len(begin), len(end)
        raise Stop(f"{chat.where}: message {i + 1} is not to be learned, but the chat template writes it in another "
                   "way, or what is before it, when more follows")

    def by_prefixes(self, chat):
        """An answer is what the template adds to the prompt for it."""
        whole = self.render(chat.messages, chat.tools)
        turns = [self.turn(chat, i) for i, message in enumerate(chat.messages)
                 if i not in chat.left_out and message["role"] == "assistant"]
        if all(whole.startswith(begin) and whole.startswith(end) for begin, end in turns):
            yield self.encoder.masked(whole, [(len(begin), len(end)) for begin, end in turns])
            return
        # Some templates leave out of a chat what an earlier answer began with, its thoughts for
        # example.  Then each answer is a record, after what the model will see before it.
        for begin, end in turns:
            if not end.startswith(begin):
                opening = begin[len(os.path.commonprefix([begin, end])):]
                raise Stop(f"{chat.where}: the chat template opens an answer with {opening!r}, and "
                           "then leaves that out of the chat; it cannot be trained on")
            yield self.encoder.masked(end, [(len(begin), len(end))])

    def turn(self, chat, i):
        """Returns the chat before answer i, with the prompt for it, and the chat up to its end."""
        if i == 0:  # transformers would say that the conversation is empty
            raise Stop(f"{chat.where}: message 1 is an answer, and nothing is before it")
        return (self.render(chat.messages[:i], chat.tools, prompt=True),
                self.render(chat.messages[:i + 1], chat.tools))


def with_call(message, i, changed):
    """Returns a message with what changes in the function of its call i."""
    calls = list(message["tool_calls"])
    other = calls[i].get("function", calls[i]) | changed
    calls[i] = calls[i] | {"function": other} if "function" in calls[i] else other
    return message | {"tool_calls": calls}


def renamed_call(chat, n, i):
    """Returns the messages of a chat, of which message n has another name in its call i."""
    call = chat.messages[n]["tool_calls"][i]
    other = with_call(chat.messages[n], i, {"name": call.get("function", call)["name"] + "_"})
    return [*chat.messages[:n], other, *chat.messages[n + 1:]]


def parsed_arguments(message, where, number):
    """Returns a message whose calls have objects as their arguments."""
    for i, call in enumerate(message.get("tool_calls") or []):
        arguments = call.get("function", call).get("arguments")
        if not isinstance(arguments, str):
            continue
        try:
            found = json.loads(arguments)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Stop(f"{where}: message {number} has a call whose arguments are no JSON object")
        message = with_call(message, i, {"arguments": found})
    return message
