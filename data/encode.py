#!/usr/bin/env python3
"""Encodes text with a model's own tokenizer, as `transformers` does; bcd tokenize and bcd sample run it.

    encode.py DIR NAME           tokens of the records on standard input (records.py); NAME is the
                                 file's, for errors
    encode.py --prompt DIR       answers with the tokens of a text, which a model is to continue, and
                                 then with the text of tokens, for as long as some come
    encode.py --chat DIR         the same for a message, which the model is to answer

DIR is a model's directory.  Output is a line and then 32-bit little-endian tokens, whose highest bit
marks those that are no targets of the loss.  Of records the next bit marks the first token.  The line begins with the vocabulary.  For records it
may go on with a note for the user, for prompts with the tokens that end a text.  Questions and
answers are their length as such a number, and then that many bytes.  An error is one line, with exit
status 1, or 3 if a package is missing."""
import array
import io
import itertools
import json
import os
import re
import sys

from records import Answer, Chat, Instruction, Stop, Stream, Text, not_utf8, records

NO_TARGET = 1 << 31
BEGINS = 1 << 30  # a record
BATCH = 256  # records
PIECE = 1 << 18  # characters that are encoded at once; the tokenizer takes some 200 bytes for each
OVERLAP, AGREE = 1 << 12, 32  # characters, and tokens
THREADS = min(len(os.sched_getaffinity(0)), 8)  # pieces that are encoded together; more take memory
PACKAGES = "transformers jinja2"

# What Stanford's Alpaca was trained on (Taori et al. 2023), for models without a chat template.  The output
# follows without a line break.
ALPACA = ("Below is an instruction that describes a task{}. Write a response that appropriately "
          "completes the request.\n\n### Instruction:\n{}\n\n{}### Response:")


class Missing(Stop):
    status = 3  # another Python may have the package


def missing(error):
    more = " sentencepiece protobuf" if error.name in ("sentencepiece", "google", "google.protobuf") else ""
    what = f"the Python package {error.name} is missing" if error.name else first_line(error).split(". ")[0]
    return Missing(f"{what}; type: pip install -U {PACKAGES}{more}")


def load(directory):
    """Returns the tokenizer.  Nothing is downloaded, and no code of the directory is run."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error",
                      TRANSFORMERS_NO_ADVISORY_WARNINGS="1", TOKENIZERS_PARALLELISM="true")
    try:
        from transformers import AutoTokenizer
        if not os.path.exists(os.path.join(directory, "tokenizer.json")):
            import google.protobuf, sentencepiece  # which read tokenizer.model
    except ImportError as error:
        raise missing(error) from None
    try:
        return AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except ImportError as error:
        raise missing(error) from None
    except Exception as error:  # each kind of tokenizer has its own
        if "trust_remote_code" in str(error):
            raise Stop(f"{directory}: its tokenizer needs a program of its own (auto_map), which is not run") from None
        raise Stop(f"{directory}: cannot read its tokenizer: {first_line(error)}") from None


def first_line(error):
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def settings(directory, name):
    path = os.path.join(directory, name)
    if not os.path.exists(path):
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Stop(f"{path}: is no JSON object")
    return found


def end_ids(directory, name):
    ids = settings(directory, name).get("eos_token_id")
    return ids if isinstance(ids, list) else [] if ids is None else [ids]


class Encoder:
    """A tokenizer, the special tokens that go around a text, and the token that ends it."""

    def __init__(self, directory):
        self.directory, self.tokenizer = directory, load(directory)
        self.vocabulary = named = max(self.tokenizer.get_vocab().values()) + 1
        if tokens := settings(directory, "config.json").get("vocab_size"):
            self.vocabulary = min(self.vocabulary, tokens)
        self.names_more = named > self.vocabulary  # some tokenizers name one token more, as <pad>
        self.written = set()  # kinds of messages that the chat template does not leave out
        self.before, self.after = self.surroundings()
        self.end, self.note = self.find_end()
        if self.end is not None and self.after[-1:] != [self.end]:
            self.after = self.after + [self.end]

    def encode(self, texts, **options):
        """Returns the tokens of each text, without special ones around it."""
        return self.tokenizer(texts, add_special_tokens=False, padding=False, truncation=False,
                              return_attention_mask=False, return_token_type_ids=False,
                              verbose=False, **options)

    def known(self, ids):
        """Returns the tokens, none of which may be one that the model does not have."""
        last = max((token & ~NO_TARGET for token in ids), default=0) if self.names_more else 0
        if last >= self.vocabulary:
            raise ValueError(
                f"has the token {last}, {self.tokenizer.convert_ids_to_tokens(last)!r}, which the tokenizer has beyond "
                f"the {self.vocabulary} tokens of the model in {os.path.join(self.directory, 'config.json')}")
        return ids

    def surroundings(self):
        if not self.tokenizer("")["input_ids"]:
            return [], []
        encoded = self.tokenizer("a", return_special_tokens_mask=True)
        pairs = list(zip(encoded["input_ids"], encoded["special_tokens_mask"]))
        sides = [[i for i, _ in itertools.takewhile(lambda pair: pair[1], side)]
                 for side in (pairs, pairs[::-1])]
        return sides[0], sides[1][::-1]

    def find_end(self):
        """Returns the end token, or None, and a note on where it comes from if that is unusual."""
        end, unknown = self.tokenizer.eos_token_id, self.tokenizer.unk_token_id
        tokens = settings(self.directory, "config.json").get("vocab_size")
        if end is not None and tokens and end >= tokens:
            raise Stop(f"{self.directory}: the end token {self.tokenizer.eos_token!r} is unknown to "
                       f"the model, which has {tokens} tokens")
        if end is not None and (end != unknown or self.tokenizer.eos_token == self.tokenizer.unk_token):
            return end, ""
        for name in ("generation_config.json", "config.json"):
            for end in end_ids(self.directory, name):
                return end, f"texts end in token {end}, as {name} says; the tokenizer names none"
        return None, "nothing marks where a text ends: the model's directory names no end token"

    def ends(self):
        """Returns the tokens at which the model ends a text."""
        ids, name = [] if self.end is None else [self.end], "generation_config.json"
        if not os.path.exists(os.path.join(self.directory, name)):
            name = "config.json"  # as transformers
        return list(dict.fromkeys(ids + end_ids(self.directory, name)))

    # ---- texts ----

    def texts(self, batch):
        short = [record.text for record in batch if 0 < len(record.text) <= PIECE]
        encoded = iter(self.encode(short)["input_ids"] if short else ())
        for where, text in batch:
            if len(text) > PIECE:
                yield from self.stream(Stream(where, io.StringIO(text, newline="").read))
            elif text:
                ids = next(encoded)
                yield self.before_of(ids) + ids + self.after_of(ids)

    def before_of(self, ids):
        """The special tokens before a text, unless it has them written out, as some data do."""
        return [] if ids[:len(self.before)] == self.before else self.before

    def after_of(self, ids):
        return [] if ids[-1:] == self.after[-1:] else self.after

    def stream(self, record):
        """Yields the tokens of a long text, in pieces of which all but the first are More."""
        for n, ids in enumerate(filter(None, self.joined(record))):
            yield More(ids) if n else ids

    def joined(self, record):
        """Yields the tokens of a long text.  Its pieces overlap, and are joined in the middle of AGREE
        tokens that are the same in both; where they never are, the piece grows."""
        text, ids, spans = "", [], None
        done = 0  # of these tokens
        for tail, more, (next_ids, next_spans) in self.pieces(record):
            start = len(text) - len(tail)
            cut = common_run(ids, spans, done, next_ids, next_spans, start) if text else (0, 0)
            if not text:
                yield self.before_of(next_ids)
            if cut:
                yield ids[done:cut[0]]
                text, ids, spans, done = tail + more, next_ids, next_spans, cut[1]
            else:
                text += more
                (ids, spans), = self.encode_spans([text])
        if text:
            yield ids[done:]
            yield self.after_of(ids)

    def pieces(self, record):
        """Yields the pieces of a text: the end of the one before, what is new, and the tokens of both
        with their characters.  As many as there are threads are encoded at a time."""
        tail, more, size = "", " ", PIECE if self.tokenizer.is_fast else -1
        while more:
            batch = []
            while len(batch) < THREADS and (more := record.read(size)):
                batch.append((tail, more))
                tail = (tail + more)[-OVERLAP:]
            encoded = self.encode_spans([before + new for before, new in batch])
            yield from ((*piece, tokens) for piece, tokens in zip(batch, encoded))

    def encode_spans(self, texts):
        """Returns for each text its tokens, and the characters that each stands for."""
        if not texts:
            return []
        if not self.tokenizer.is_fast:
            return [(ids, None) for ids in self.encode(texts)["input_ids"]]
        encoded = self.encode(texts, return_offsets_mapping=True)
        return list(zip(encoded["input_ids"], encoded["offset_mapping"]))

    # ---- prompts and answers ----

    def answers(self, batch):
        prompts = self.encode([record.prompt for record in batch])["input_ids"]
        wholes = self.encode([record.prompt + record.answer for record in batch])["input_ids"]
        for record, prompt, whole in zip(batch, prompts, wholes):
            # The prompt's tokens are those of bcd sample, also where a token would reach over its end.
            answer = whole[len(prompt):]
            if whole[:len(prompt)] != prompt:
                answer = self.continued(record.answer)
            yield [t | NO_TARGET for t in self.before_of(prompt) + prompt] + answer + self.after_of(answer)

    def continued(self, text):
        """The tokens of a text that goes on from another.  Some tokenizers begin a text with a blank of
        their own; behind a new line they do not."""
        before, whole, alone = self.encode(["\n", "\n" + text, text])["input_ids"]
        return whole[len(before):] if whole[:len(before)] == before else alone

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
            yield from self.answers([Answer(where, prompt, output)])

    # ---- chats ----

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
            self.check_written(chat)
            template = self.tokenizer.get_chat_template(tools=chat.tools)
            marked = re.search(r"{%[-+]?\s*generation\s*[-+]?%}", template)
            yield from self.by_marks(chat) if marked else self.by_prefixes(chat)

    def check_written(self, chat):
        """Refuses a chat of which the template leaves out messages, tools or calls."""
        self.check_nulls(chat)
        self.check_messages(chat)
        calls = [n for n, message in enumerate(chat.messages) if message.get("tool_calls")]
        whole = self.render(chat.messages, chat.tools) if chat.tools or calls else ""
        if chat.tools and whole == self.rendered(chat.messages):
            raise Stop(f"{chat.where}: the chat template leaves out the tools")
        for n in calls:
            if whole == self.rendered(renamed_call(chat, n), chat.tools):
                raise Stop(f"{chat.where}: the chat template leaves out tool calls (message {n + 1})")

    def check_messages(self, chat):
        """Refuses a message that the template leaves out.  Of each role one that comes first and one that does not
        are tried, as some templates write a system in the first place alone."""
        for n, message in enumerate(chat.messages):
            kind, content = (message["role"], n == 0), message.get("content")
            if kind in self.written or not (content or "").strip():
                continue
            other = [*chat.messages[:n], message | {"content": content + "."}, *chat.messages[n + 1:]]
            if self.render(chat.messages, chat.tools) == self.rendered(other, chat.tools):
                raise Stop(f"{chat.where}: the chat template leaves out message {n + 1}, of the role {message['role']!r}")
            self.written.add(kind)

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
            masked = self.masked(whole, [self.place(chat, whole, i) for i in chat.left_out])
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
            yield self.masked(whole, [(len(begin), len(end)) for begin, end in turns])
            return
        # Some templates leave out of a chat what an earlier answer began with, its thoughts for
        # example.  Then each answer is a record, after what the model will see before it.
        for begin, end in turns:
            if not end.startswith(begin):
                opening = begin[len(os.path.commonprefix([begin, end])):]
                raise Stop(f"{chat.where}: the chat template opens an answer with {opening!r}, and "
                           "then leaves that out of the chat; it cannot be trained on")
            yield self.masked(end, [(len(begin), len(end))])

    def turn(self, chat, i):
        """Returns the chat before answer i, with the prompt for it, and the chat up to its end."""
        if i == 0:  # transformers would say that the conversation is empty
            raise Stop(f"{chat.where}: message 1 is an answer, and nothing is before it")
        return (self.render(chat.messages[:i], chat.tools, prompt=True),
                self.render(chat.messages[:i + 1], chat.tools))

    def masked(self, text, learned):
        """Tokens count that have a character in one of the ranges `learned`.  Some tokenizers trim
        the range of a blank to its end."""
        (ids, spans), = self.encode_spans([text])
        if spans is None:
            raise Stop(f"{self.directory}: chats need a tokenizer.json")
        return [t if any(b < end and min(begin, end - 1) < e for b, e in learned) else t | NO_TARGET
                for t, (begin, end) in zip(ids, spans)]


def renamed_call(chat, n):
    """Returns the messages of a chat, of which message n calls a function of another name first."""
    call, *more = chat.messages[n]["tool_calls"]
    named = call.get("function", call)
    other = named | {"name": named["name"] + "_"}
    calls = [call | {"function": other} if "function" in call else other, *more]
    return [*chat.messages[:n], chat.messages[n] | {"tool_calls": calls}, *chat.messages[n + 1:]]


def common_run(ids, spans, done, next_ids, next_spans, shift):
    """Finds AGREE tokens, after the first `done`, that stand for the same characters in both; those of
    the second begin at `shift`.  Returns the positions in the middle of them, or None."""
    places = {(begin + shift, end + shift, token): j
              for j, ((begin, end), token) in enumerate(zip(next_spans, next_ids))}
    run, last = 0, None
    for i in range(done, len(ids)):
        j = places.get((*spans[i], ids[i])) if spans[i][0] >= shift else None
        run = 0 if j is None else run + 1 if last is not None and j == last + 1 else 1
        last = j
        if run == AGREE:
            return i - AGREE // 2, j - AGREE // 2
    return None


# ---- what is asked for ----

def bytes_of(ids):
    numbers = array.array("I", ids)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def ids_of(raw):
    numbers = array.array("I", raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


class More(list):
    """Tokens that go on with the record before."""


def begun(encoded):
    """Marks the first token of each record."""
    for ids in filter(None, encoded):
        yield ids if isinstance(ids, More) else [ids[0] | BEGINS, *ids[1:]]


def encode_batch(encoder, batch, out):
    """Writes the tokens of records of one kind; an error says which record it is about."""
    kinds = {Text: encoder.texts, Stream: lambda batch: encoder.stream(batch[0]),
             Answer: encoder.answers, Chat: encoder.chats, Instruction: encoder.instructions}
    encoded = map(bytes_of, begun(map(encoder.known, kinds[type(batch[0])](batch))))
    try:
        if isinstance(batch[0], Stream):  # of any length
            out.writelines(encoded)
            return
        encoded = list(encoded)
    except (Stop, MemoryError, OSError):
        raise
    except ImportError as error:
        raise missing(error) from None
    except Exception as error:  # whatever a template or a tokenizer raises
        if len(batch) == 1:
            raise Stop(f"{batch[0].where}: {first_line(error)}") from None
        for record in batch:
            encode_batch(encoder, [record], out)
        return
    out.writelines(encoded)


def batches(found):
    """Groups neighbouring records of one kind, so that a group is neither long nor large."""
    batch, size = [], 0
    for record in found:
        if batch and (type(record) is not type(batch[0]) or len(batch) == BATCH or size > PIECE):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += len(record.text) if isinstance(record, Text) else PIECE // BATCH
    if batch:
        yield batch


def encode(out, directory, name):
    encoder = Encoder(directory)
    out.write(f"{encoder.vocabulary} {encoder.note}\n".encode())
    for batch in batches(records(name, sys.stdin.buffer)):
        encode_batch(encoder, batch, out)


class Decoder:
    """The text of tokens that come one after the other."""

    def __init__(self, tokenizer):
        self.tokenizer, self.ids, self.shown = tokenizer, [], ""

    def more(self, ids):
        """Returns the text that is certain now and was not before; without ids, all that is left.  A
        character may take several tokens; and where later tokens change what was shown, nothing is
        shown until the end."""
        self.ids += ids
        text = self.tokenizer.decode(self.ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        certain = text.rstrip("\N{REPLACEMENT CHARACTER}") if ids else text
        known = os.path.commonprefix([self.shown, certain])
        if ids and known != self.shown:
            return ""
        self.shown += certain[len(known):]
        return certain[len(known):]


def questions(stream):
    while head := stream.read(4):
        yield stream.read(int.from_bytes(head, "little"))


def answer(out, data):
    out.write(len(data).to_bytes(4, "little") + data)
    out.flush()


def converse(out, directory, chat=False):
    encoder = Encoder(directory)
    out.write(" ".join(map(str, [encoder.vocabulary] + encoder.ends())).encode() + b"\n")
    out.flush()
    asked = questions(sys.stdin.buffer)
    answer(out, bytes_of(prompt(encoder, next(asked, b""), chat)))
    decoder = Decoder(encoder.tokenizer)
    for raw in asked:
        answer(out, decoder.more(ids_of(raw)).encode())


def prompt(encoder, raw, chat):
    """Returns the tokens of a text that is to be continued, or of a message that is to be answered."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise not_utf8("the prompt") from None
    if not chat:
        ids, = encoder.encode([text])["input_ids"]
        return encoder.before_of(ids) + ids
    if not encoder.tokenizer.chat_template:
        raise Stop(f"{encoder.directory}: has no chat template")
    ids, = encoder.encode([encoder.render([{"role": "user", "content": text}], prompt=True)])["input_ids"]
    return ids


MODES = {"--prompt": converse, "--chat": lambda out, directory: converse(out, directory, chat=True)}


def main():
    mode, *rest = sys.argv[1:] or [""]
    if mode in MODES:
        MODES[mode](sys.stdout.buffer, *rest)
    else:
        encode(sys.stdout.buffer, mode, *rest)
    sys.stdout.flush()


if __name__ == "__main__":
    # Errors name the command that the user typed.
    command = "sample" if sys.argv[1:] and sys.argv[1] in MODES else "tokenize"
    try:
        main()
    except Stop as reason:
        print(f"{command}: {reason}", file=sys.stderr)
        sys.exit(reason.status)
    except OSError as reason:
        sys.exit(f"{command}: {reason.filename or 'a temporary file'}: {reason.strerror}")
    except MemoryError:
        sys.exit(f"{command}: out of memory")
    except ValueError as reason:
        sys.exit(f"{command}: {reason}")
