"""Texts in the tokens of a model's own tokenizer, with the special tokens around them."""
import io
import itertools
import json
import os

from records import Stop, Stream

NO_TARGET = 1 << 31  # marks a token that is no target of the loss
PIECE = 1 << 18  # characters that are encoded at once; the tokenizer takes some 200 bytes for each
OVERLAP, AGREE = 1 << 12, 32  # characters, and tokens
THREADS = min(len(os.sched_getaffinity(0)), 8)  # pieces that are encoded together; more take memory
PACKAGES = "transformers jinja2"
CORRECTED = ("words are split by the pattern that transformers has for Mistral, not by that of tokenizer.json, of which "
             "it says that it is wrong")


class Missing(Stop):
    status = 3  # another Python may have the package


def missing(error):
    more = " sentencepiece protobuf" if error.name in ("sentencepiece", "google", "google.protobuf") else ""
    what = f"the Python package {error.name} is missing" if error.name else first_line(error).split(". ")[0]
    return Missing(f"{what}; type: pip install -U {PACKAGES}{more} (in a virtual environment, as python3 -m venv makes one)")


def load(directory):
    """Returns the tokenizer, and a note for the user.  Nothing is downloaded, and no code of the directory is run."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error",
                      TRANSFORMERS_NO_ADVISORY_WARNINGS="1", TOKENIZERS_PARALLELISM="true")
    try:
        from transformers import AutoTokenizer
        if not os.path.exists(os.path.join(directory, "tokenizer.json")):
            import google.protobuf, sentencepiece  # which read tokenizer.model
    except ImportError as error:
        raise missing(error) from None
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
        if not has_wrong_pattern(tokenizer):
            return tokenizer, take_steps(tokenizer, directory)
        return AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False,
                                             fix_mistral_regex=True), CORRECTED
    except ImportError as error:
        raise missing(error) from None
    except Exception as error:  # each kind of tokenizer has its own
        if "trust_remote_code" in str(error):
            raise Stop(f"{directory}: its tokenizer needs a program of its own (auto_map), which is not run") from None
        kind = settings(directory, "tokenizer_config.json").get("tokenizer_class")
        hint = (f"; it is read as {kind}, and as it is with \"tokenizer_class\": \"PreTrainedTokenizerFast\" in "
                "tokenizer_config.json" if kind and os.path.exists(os.path.join(directory, "tokenizer.json")) else "")
        raise Stop(f"{directory}: cannot read its tokenizer: {first_line(error)}{hint}") from None


def has_wrong_pattern(tokenizer):
    """Tells whether transformers found the pattern of an older tokenizer of Mistral's, of which it warns.  It then sets
    this attribute to False, and to nothing elsewhere."""
    return getattr(getattr(tokenizer, "backend_tokenizer", None), "fix_mistral_regex", None) is False


def take_steps(tokenizer, directory):
    """Gives a tokenizer the steps of its tokenizer.json, with which the model was trained, and returns a note if it had
    others.  transformers 5 takes only the vocabulary and the merges from the file for some classes, and the steps from
    its own code."""
    path = os.path.join(directory, "tokenizer.json")
    if not tokenizer.is_fast or not os.path.exists(path):
        return ""
    import tokenizers
    import transformers
    saved, own, taken = tokenizers.Tokenizer.from_file(path), tokenizer.backend_tokenizer, []
    config = settings(directory, "tokenizer_config.json")
    more = own.get_vocab().keys() - saved.get_vocab().keys()
    if state_of(saved.model) != state_of(own.model):
        own.model = saved.model
        taken.append("model")
    for name in ("normalizer", "pre_tokenizer", "decoder"):
        step = getattr(saved, name)
        blank = config.get("add_prefix_space")
        if isinstance(blank, bool) and hasattr(step, "add_prefix_space"):
            step.add_prefix_space = blank
        if state_of(step) != state_of(getattr(own, name)):
            setattr(own, name, step)
            taken.append(name)
    # The last step puts tokens around a text, unless tokenizer_config.json says which.
    if own.encode("").ids != saved.encode("").ids and not any(
            config.get(name) is not None for name in ("add_bos_token", "add_eos_token")):
        own.post_processor = saved.post_processor
        taken.append("post_processor")
    notes = [f"its {', '.join(taken)}: as in tokenizer.json; transformers {transformers.__version__} has its own"] * bool(taken)
    if more:
        notes.append(f"transformers has {len(more)} more tokens than tokenizer.json, such as {min(more)!r}")
    return "; ".join(notes)


def state_of(step):
    """The settings of a step, or of a model but for its tokens.  False and "" are what is not set."""
    if not step:
        return None
    state = json.loads(step.__getstate__())
    return {name: value for name, value in state.items() if name not in ("vocab", "merges") and value not in (None, "")
            and value is not False}


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
        self.directory = directory
        self.tokenizer, loaded = load(directory)
        self.vocabulary = named = max(self.tokenizer.get_vocab().values()) + 1
        if tokens := settings(directory, "config.json").get("vocab_size"):
            self.vocabulary = min(self.vocabulary, tokens)
        self.names_more = named > self.vocabulary  # some tokenizers name one token more, as <pad>
        self.before, self.after = self.surroundings()
        self.end, ended = self.find_end()
        self.note = "; ".join(filter(None, [loaded, ended]))
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

    # ---- answers ----

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

    def masked(self, text, learned):
        """Tokens count that have a character in one of the ranges `learned`.  Some tokenizers trim
        the range of a blank to its end."""
        (ids, spans), = self.encode_spans([text])
        if spans is None:
            raise Stop(f"{self.directory}: chats need a tokenizer.json")
        return [t if any(b < end and min(begin, end - 1) < e for b, e in learned) else t | NO_TARGET
                for t, (begin, end) in zip(ids, spans)]


class More(list):
    """Tokens that go on with the record before."""


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
