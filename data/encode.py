#!/usr/bin/env python3
"""Encodes text with a model's own tokenizer, as `transformers` does; bcd tokenize and bcd sample run it.

    encode.py DIR NAME           tokens of the records on standard input (records.py); NAME is the
                                 file's, for errors
    encode.py --prompt DIR       answers with the tokens of a text, which a model is to continue, and
                                 then with the text of tokens, for as long as some come
    encode.py --chat DIR         the same for a message, which the model is to answer

DIR is a model's directory.  Output is a line and then 32-bit little-endian tokens, whose highest bit
marks those that are no targets of the loss.  Of records the next bit marks the first token.  The line
begins with the vocabulary.  For records it may go on with a note for the user, for prompts with the
tokens that end a text.  Questions and answers are their length as such a number, and then that many
bytes.  An error is one line, with exit status 1, or 3 if a package is missing."""
import array
import os
import sys

from chats import Chats
from records import Answer, Chat, Instruction, Stop, Stream, Text, not_utf8, records
from texts import PIECE, Encoder, More, first_line, missing

BEGINS = 1 << 30  # marks the first token of a record
BATCH = 256  # records


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


def begun(encoded):
    """Marks the first token of each record."""
    for ids in filter(None, encoded):
        yield ids if isinstance(ids, More) else [ids[0] | BEGINS, *ids[1:]]


def kinds_of(encoder):
    """Returns what encodes the records of each kind."""
    chats = Chats(encoder)
    return {Text: encoder.texts, Stream: lambda batch: encoder.stream(batch[0]), Answer: encoder.answers,
            Chat: chats.chats, Instruction: chats.instructions}


def encode_batch(kinds, known, batch, out):
    """Writes the tokens of records of one kind; an error says which record it is about.  known() checks
    the tokens."""
    encoded = map(bytes_of, begun(map(known, kinds[type(batch[0])](batch))))
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
            encode_batch(kinds, known, [record], out)
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
    kinds = kinds_of(encoder)
    out.write(f"{encoder.vocabulary} {encoder.note}\n".encode())
    for batch in batches(records(name, sys.stdin.buffer)):
        encode_batch(kinds, encoder.known, batch, out)


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
    ids, = encoder.encode([Chats(encoder).render([{"role": "user", "content": text}], prompt=True)])["input_ids"]
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
