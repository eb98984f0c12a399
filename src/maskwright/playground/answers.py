"""Answers to the questions of the page, for one vocabulary. All of it runs in a worker process.

A question is a dict of JSON values, and so is an answer. What a question names is never opened:
constraints go through `serving.reading`.
"""

from __future__ import annotations

import importlib.util
import time
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import clip
from maskwright.analysis.deadline import OutOfTimeError, time_limit
from maskwright.analysis.errors import EmptyLanguageError, MaskwrightError, SchemaError
from maskwright.analysis.kept import cached_property
from maskwright.analysis.schema.load import parse_schema
from maskwright.completion import LanguageModel, load_model, start_completion
from maskwright.decoding.engines import explain_after
from maskwright.decoding.explain.explanation import position_of
from maskwright.decoding.generation.logits import reader_of
from maskwright.lint import lint_grammar, lint_schema
from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary
from maskwright.maskstore.vocabulary.masks import flags_of
from maskwright.models import BUNDLED, model_folder
from maskwright.playground.questions import bytes_of, constraint_of, name_of, number_of, text_of
from maskwright.playground.server import QUESTIONS
from maskwright.serving.options import RequestLimits
from maskwright.serving.requests import RequestCompiler

if TYPE_CHECKING:
    from maskwright.decoding.matcher import Matcher
    from maskwright.lint.finding import Report
    from maskwright.serving.requests import RequestStore

Sort = Literal["likely", "model", "text", "length", "id"]
SORTS: tuple[Sort, ...] = ("likely", "model", "text", "length", "id")
"""How lists are sorted. `likely`: what is printed as text before pieces of characters and control
characters, then by id, since tokenizers number frequent tokens first. `model`: what the bundled
model finds likely."""


class TokenLists:
    """The lists of a vocabulary's tokens.

    vocabulary : the tokens.
    is_text : (V,) bool; whether the id stands for text.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.texts = tuple(data.decode(errors="replace") for data in vocabulary.tokens)
        self.is_text = np.array([bool(data) for data in vocabulary.tokens], np.bool_)
        self._orders: dict[str, npt.NDArray[np.intp]] = {}

    def order(self, sort: str, logits: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[np.intp]:
        """(V,): all ids, sorted; equal ones by their number.

        sort : one of `SORTS`.
        logits : (N,) of the model, for the sort `model`.
        """
        tokens = self.vocabulary.tokens
        if sort == "model":
            return np.argsort(-logits()[: len(tokens)], kind="stable")
        if sort not in self._orders:
            keys: dict[str, Callable[[int], Any]] = {
                "likely": self._looks,
                "text": tokens.__getitem__,
                "length": lambda token: -len(tokens[token]),
                "id": int,
            }
            self._orders[sort] = np.array(sorted(range(len(tokens)), key=keys[sort]), np.intp)
        return self._orders[sort]

    def _looks(self, token: int) -> int:
        """What is printed as it is comes first, then pieces of characters, then the rest."""
        text = self.texts[token]
        if not text:
            return 3
        if "\ufffd" in text or any(unicodedata.category(c) in ("Cc", "Co", "Cn") for c in text.strip("\n\t ")):
            return 2
        return int(token in self.vocabulary.byte_pieces)

    def page(
        self, wanted: npt.NDArray[np.bool_], order: npt.NDArray[np.intp], search: str, first: int, size: int
    ) -> dict[str, Any]:
        """A page of a list, ready for JSON.

        wanted : (V,) bool; the tokens of the list.
        order : (V,) ids.
        search : a part of the tokens' texts, or ``#`` and an id; "" for all.
        first, size : of the page, in tokens.
        """
        found: Any = order[wanted[order]].tolist()
        if search.startswith("#") and search[1:].isdecimal():
            found = [token for token in found if str(token) == search[1:].lstrip("0") or str(token) == search[1:]]
        elif search:
            found = [token for token in found if search in self.texts[token]]
        return {
            "total": len(found),
            "first": first,
            "tokens": [self.facts(token) for token in found[first : first + size]],
        }

    def facts(self, token: int) -> dict[str, Any]:
        """A token, ready for JSON: its id, its text or None, its bytes, its special name."""
        data = self.vocabulary.tokens[token]
        text = self.texts[token]
        return {
            "id": token,
            "text": None if "\ufffd" in text else text,
            "hex": data.hex(" "),
            "special": self.vocabulary.special.get(token, "") if data == b"" else "",
        }


MOST_KEPT = 16
"""The most compiled constraints that a worker keeps."""
MOST_ON_A_PAGE = 500
"""The most tokens of one page of a list."""


class Read(NamedTuple):
    """A text under a constraint.

    matcher : behind `data[:good]`.
    data : the text up to the cursor.
    good : how many of these bytes are the beginning of a legal text.
    """

    matcher: Matcher
    data: bytes
    good: int


class Answers:
    """What answers questions.

    vocabulary : the tokens of all masks.
    seconds : of CPU time that one answer may take.

    Raises: as `RequestCompiler`.
    """

    def __init__(self, vocabulary: Vocabulary, seconds: float) -> None:
        self.seconds = seconds
        limits = RequestLimits(check_seconds=seconds, compile_seconds=seconds)
        # no other processes: this one is a worker itself
        self.compiler = RequestCompiler(vocabulary, cache_entries=MOST_KEPT, limits=limits, on_disk=False, workers=0)
        self.vocabulary = self.compiler.vocabulary
        self.lists = TokenLists(self.vocabulary)
        self.model = BundledModel(self.vocabulary)

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a question: `ask` says to which, `error` of the answer what went wrong.

        Raises: nothing.
        """
        try:
            name = question.get("ask")
            if name not in QUESTIONS:
                raise MaskwrightError(f"there is no question {clip(name)}")
            with time_limit(self.seconds, f"the answer to {name}"):
                found: dict[str, Any] = getattr(self, name)(question)
                return found
        except MaskwrightError as error:
            facts: dict[str, Any] = {"message": str(error), "kind": type(error).__name__}
            if isinstance(error, SchemaError):
                facts["pointer"] = error.pointer
            if isinstance(error, OutOfTimeError):
                facts["is_late"] = True
            return {"error": facts}
        except (RecursionError, MemoryError) as error:
            return {"error": {"message": f"this is too large ({type(error).__name__})", "kind": "LimitError"}}
        except Exception as error:
            said = f"{type(error).__name__}: {clip(str(error))}; this is an error of maskwright, please report it"
            return {"error": {"message": said, "kind": "error"}}

    def about(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """What the page says of the server: the vocabulary, whether there is a model for it."""
        own = self.vocabulary
        return {
            "vocabulary": own.name,
            "size": own.size,
            "model": None if self.model.why_not else BUNDLED,
            "why_no_model": self.model.why_not,
            "seconds": self.seconds,
        }

    # -- masks

    def store(self, question: Mapping[str, Any]) -> RequestStore:
        """The store of a question's constraint. Raises: as `RequestCompiler.compile`."""
        asked = constraint_of(question)
        return self.compiler.compile(asked.kind, asked.spec, asked.options, language=asked.language)

    def mask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The mask at the cursor, or where the text before it stops being legal.

        question : `constraint` and `kind`; `before` and `after` the cursor; which tokens of it are
            listed: `show` (allowed, refused), `sort`, `search`, `first`, `size`.

        In the answer, places in the text are numbers of UTF-16 units, as browsers count.
        """
        asked = constraint_of(question)
        before, after = bytes_of(question, "before"), bytes_of(question, "after")
        begin = time.perf_counter()
        store = self.store(question)
        compiled = time.perf_counter()
        read = read_text(store, before)
        good, is_whole = read.good, False
        if good == len(before):
            whole = read_text(store, before + after)
            good = whole.good
            is_whole = good == len(before) + len(after) and _is_whole(whole.matcher)
        began = time.perf_counter()
        words = np.zeros(store.n_words, np.uint32)
        dead = ""
        try:
            read.matcher.fill(words)
        except MaskwrightError as error:
            dead = str(error)
        filled = time.perf_counter()
        allowed = flags_of(words)[: self.vocabulary.size]
        allowed_bytes = [read.matcher.text.allows(bytes([byte])) for byte in range(256)]
        at = position_of(before, read.good)
        eos = [token for token in self.vocabulary.eos if allowed[token]]
        return {
            "syntax": asked.syntax,
            "name": store.name,
            "at": utf16_units(before[: read.good]),
            "line": at.line,
            "column": at.column,
            "is_at_cursor": read.good == len(before),
            "legal": utf16_units((before + after)[:good]),
            "is_legal": good == len(before) + len(after),
            "is_whole": is_whole,
            "ends": [self.lists.facts(token) for token in eos],
            "n_allowed": int(allowed.sum()),
            "n_refused": int((~allowed & self.lists.is_text).sum()),
            "dead": dead,
            "bytes": "".join("1" if each else "0" for each in allowed_bytes),
            "list": self._list(question, allowed, before[: read.good]),
            "compile_ms": round(1e3 * (compiled - begin), 1),
            "fill_us": round(1e6 * (filled - began), 1),
        }

    def _list(self, question: Mapping[str, Any], allowed: npt.NDArray[np.bool_], text: bytes) -> dict[str, Any]:
        shown = name_of(question, "show", ("allowed", "refused"))
        wanted = allowed if shown == "allowed" else ~allowed & self.lists.is_text
        sort = name_of(question, "sort", SORTS)
        order = self.lists.order(sort, lambda: self.model.logits(text))
        first = number_of(question, "first", 0, 0, self.vocabulary.size)
        size = number_of(question, "size", 100, 1, MOST_ON_A_PAGE)
        found = self.lists.page(wanted, order, text_of(question, "search", 200), first, size)
        return {**found, "show": shown, "sort": sort}

    # -- the rest

    def explain(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Why a `token`, by its id, or a `byte` may or may not come behind `before`."""
        store, text = self.store(question), bytes_of(question, "before")
        wanted: int | bytes
        if "byte" in question:
            wanted = bytes([number_of(question, "byte", 0, 0, 255)])
        else:
            wanted = number_of(question, "token", 0, 0, self.vocabulary.size - 1)
        found = explain_after(store, text, wanted)
        return {"verdict": found.verdict, "what": found.what, "lines": str(found).splitlines()}

    def ending(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """A shortest ending of `before`, as text.

        Raises: DeadEndError, LimitError as `Matcher.short_ending`; MaskwrightError for an illegal
            text.
        """
        matcher = legal(read_text(self.store(question), bytes_of(question, "before"))).matcher
        found = matcher.short_ending()
        return {
            "text": found.data.decode(errors="replace"),
            "n_bytes": len(found.data),
            "is_shortest": found.is_shortest,
            "tokens": [self.lists.facts(token) for token in found.tokens],
        }

    def lint(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The findings of lint, also where no store can be made."""
        asked = constraint_of(question)
        reader = self.compiler.reader
        request = reader.request(asked.kind, asked.spec, asked.options, asked.language)
        found: Any
        if asked.kind == "json":
            schema = parse_schema(request.spec)
            if isinstance(schema, dict | bool):
                return _findings(lint_schema(schema, self.vocabulary, file="schema"))
        try:
            found = reader.read(request)
        except EmptyLanguageError as error:
            if error.grammar is None:
                raise
            found = error.grammar
        if found.kind == "grammar":
            return _findings(lint_grammar(found, self.vocabulary, file="grammar"))
        what = asked.syntax if found.kind in ("schema", "pattern") else "texts of several languages"
        return {"findings": [], "skipped": [f"lint does not look at this: {what}"]}

    def complete(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """What the bundled model writes behind `before`: under the mask, and free.

        question : `max_tokens`; `temperature` in hundredths; `seed`.

        Raises: as `start_completion` and `BundledModel.loaded`.
        """
        store, data = self.store(question), bytes_of(question, "before")
        legal(read_text(store, data))
        options: dict[str, Any] = {
            "max_tokens": number_of(question, "max_tokens", 40, 1, 200),
            "temperature": number_of(question, "temperature", 0, 0, 200) / 100,
            "seed": number_of(question, "seed", 0, 0, 1 << 31),
            "seconds": self.seconds / 3,
        }
        model = self.model.loaded
        masked = start_completion(store, data, model, **options).run()
        free = start_completion(store, data, model, constrained=False, **options).run()
        read = read_text(store, data + free.data)
        good = max(0, read.good - len(data))
        return {
            "model": BUNDLED,
            "masked": {
                "text": masked.data.decode(errors="replace"),
                "closing": masked.closing.decode(errors="replace"),
                "reason": masked.reason,
                "is_whole": bool(masked.is_complete),
                "mask_ms": round(1e3 * masked.mask_seconds, 2),
                "model_ms": round(1e3 * masked.model_seconds, 2),
            },
            "free": {
                "text": free.data.decode(errors="replace"),
                "reason": free.reason,
                "legal": utf16_units(free.data[:good]),
                "is_legal": good == len(free.data),
                "is_whole": good == len(free.data) and _is_whole(read.matcher),
            },
        }


class BundledModel:
    """The bundled model, if a vocabulary is its own. It is loaded when it is first asked for."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    @cached_property
    def why_not(self) -> str:
        """Why there are no completions; "" if there are."""
        if self._vocabulary.tokens != load_vocabulary(model_folder(BUNDLED)).tokens:
            return f"the bundled model has other tokens than {self._vocabulary.name}: start with --tokenizer {BUNDLED}"
        if importlib.util.find_spec("tokenizers") is None:
            return "tokenizers is not installed: pip install 'maskwright[tokenizers]'"
        return ""

    @cached_property
    def loaded(self) -> LanguageModel:
        """The model. Raises: MaskwrightError if there is none for the vocabulary."""
        if self.why_not:
            raise MaskwrightError(f"no completions: {self.why_not}")
        return load_model(BUNDLED)

    def logits(self, text: bytes) -> npt.NDArray[Any]:
        """(N,) float32; the model's logits behind a text. Raises: as `loaded`."""
        tokens = self.loaded.tokens_of(text.decode(errors="ignore"))
        return np.asarray(reader_of(self.loaded.model, tokens).logits(), np.float32)


def answering(tokenizer: str, seconds: float) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """What answers in a worker. What the vocabulary needs is made before the first question.

    tokenizer : as for `load_vocabulary`. seconds : as of `Answers`.

    Raises: as `load_vocabulary`.
    """
    answers = Answers(load_vocabulary(tokenizer), seconds)
    for constraint in ('{"type": "object"}', 'start: "a" start?'):
        answers.answer({"ask": "mask", "constraint": constraint})
    return answers.answer


def read_text(store: RequestStore, data: bytes) -> Read:
    """Read as much of a text as is the beginning of a legal one.

    Raises: LimitError for too many readings.
    Cost: twice that of reading the text.
    """
    matcher: Matcher = store.matcher()
    return Read(matcher, data, matcher.text.read_longest(data))


def legal(read: Read) -> Read:
    """A text that was read as a whole. Raises: MaskwrightError for one that was not."""
    if read.good < len(read.data):
        at = position_of(read.data, read.good)
        raise MaskwrightError(f"the text is not legal from line {at.line}, column {at.column} on: mend it first")
    return read


def utf16_units(data: bytes) -> int:
    """The length of a text in UTF-16 units; a character that is not whole does not count.

    >>> utf16_units("aé😀".encode()), utf16_units("é".encode()[:1])
    (4, 0)
    """
    text = data.decode(errors="ignore")
    return len(text) + sum(character > "\uffff" for character in text)


def _is_whole(matcher: Matcher) -> bool:
    with suppress(MaskwrightError):
        return matcher.is_accepting()
    return False


def _findings(report: Report) -> dict[str, Any]:
    facts = report.to_dict()
    return {name: facts[name] for name in ("findings", "skipped", "counts", "passed")}
