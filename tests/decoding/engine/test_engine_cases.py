"""Cases that are written down (`data/cases/engine.toml`): every engine says so, and the matcher whatever tokens a text is cut into."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

import numpy as np
import pytest
from engine_cases import longest, vocabulary_of
from engines import ENGINES, Says, said_by
from mask_bits import ids
from naive_engine import NaiveEngine
from paths import TESTS
from shares import every

from maskwright.analysis.errors import GrammarError, IllegalTokenError, MaskwrightError, MaskwrightWarning
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

FILE = TESTS / "data" / "cases" / "engine.toml"
CASES: list[dict[str, Any]] = tomllib.loads(FILE.read_text())["case"]


@cache
def store_of(number: int) -> Store:
    case = CASES[number]
    tokens = [token.encode() for token in case["tokens"]]
    return compile_store(longest(case["grammar"], case["name"]), vocabulary_of(*tokens, singles=bytes(range(256))))


@cache
def twin_of(number: int) -> NaiveEngine:
    return NaiveEngine(longest(CASES[number]["grammar"], CASES[number]["name"]))


def is_built(case: dict[str, Any]) -> bool:
    """Whether the matcher and its naive twin read the grammar."""
    return not {"engine", "naive"} & set(case.get("without", []))


@cache
def engine_of(name: str, number: int) -> Says:
    case = CASES[number]
    if name == "naive":
        return said_by(twin_of(number))  # which remembers what it has been asked
    return ENGINES[name](longest(case["grammar"], case["name"]))


def judges(names: set[str]) -> list[tuple[int, str]]:
    return [(number, name) for number in range(len(CASES)) for name in ENGINES if name in names]


# the last two are of the tests alone, and slow
@pytest.mark.parametrize(
    ("number", "name"), [*judges(ENGINES.keys() - {"oracle", "naive"}), *every(7, judges({"oracle", "naive"}))]
)
def test_every_engine_says_so(number: int, name: str) -> None:
    case = CASES[number]
    if name in case.get("without", []):
        with pytest.raises((MaskwrightError, NotImplementedError)):
            for text in ["", *case.get("legal", []), *case.get("open", [])]:
                engine_of(name, number)(text.encode())
        return
    if name == "device":
        pytest.importorskip("torch")
    says = engine_of(name, number)
    assert {text for text in case.get("legal", []) if says(text.encode()) != (True, True)} == set()
    assert {text for text in case.get("open", []) if says(text.encode()) != (True, False)} == set()
    for text, more in [(text.encode(), more.encode()) for text, more in case.get("illegal", [])]:
        assert says(text + more[:-1])[0] and says(text + more) == (False, False), (text, more)
    for text, good, bad in (map(bytes.fromhex, parts) for parts in case.get("cut", [])):
        assert says(text + good)[0] and not says(text + bad)[0], text


def texts(kind: str) -> list[Any]:
    return [
        pytest.param(number, text.encode(), id=f"{number}-{text!r}")
        for number, case in enumerate(CASES)
        for text in (case.get(kind, []) if is_built(case) else [])
    ]


def pairs(kind: str) -> list[Any]:
    return [
        pytest.param(
            number, *(bytes.fromhex(part) if kind == "cut" else part.encode() for part in parts), id=f"{number}-{parts}"
        )
        for number, case in enumerate(CASES)
        for parts in (case.get(kind, []) if is_built(case) else [])
    ]


def is_accepting(number: int, text: bytes) -> bool:
    """Whether the engine takes a text, all at once, byte by byte, and whatever tokens it is cut into; and its twin says the same."""
    store, whole, single = store_of(number), store_of(number).matcher(), store_of(number).matcher()
    whole.advance_bytes(text)
    words = np.zeros(store.n_words, np.uint32)
    for at, byte in enumerate(text):
        single.fill(words)
        allowed = ids(words) - set(store.vocabulary.eos)
        starts = {i for i, token in enumerate(store.vocabulary.tokens) if token and text.startswith(token, at)}
        assert starts <= allowed, (text[:at], [store.vocabulary.tokens[i] for i in starts - allowed])
        single.advance_bytes(bytes([byte]))
    assert single.is_accepting() == whole.is_accepting() == twin_of(number).is_legal_text(text)
    whole.fill(words)
    assert (store.vocabulary.eos[0] in ids(words)) == whole.is_accepting()
    assert ids(words) - set(store.vocabulary.eos) == twin_of(number).allowed(text, store.vocabulary.tokens)
    return whole.is_accepting()


@pytest.mark.parametrize(("number", "text"), every(3, texts("legal")))
def test_legal_texts(number: int, text: bytes) -> None:
    assert is_accepting(number, text)


@pytest.mark.parametrize(("number", "text"), every(3, texts("open")))
def test_legal_prefixes_that_are_no_texts(number: int, text: bytes) -> None:
    assert not is_accepting(number, text)


@pytest.mark.parametrize(("number", "text", "more"), every(3, pairs("illegal")))
def test_illegal_continuations(number: int, text: bytes, more: bytes) -> None:
    matcher = store_of(number).matcher()
    matcher.advance_bytes(text + more[:-1])
    rolled = store_of(number).matcher()
    rolled.advance_bytes(text)
    with pytest.raises(IllegalTokenError, match=f"Byte {len(more) - 1} of it"):
        rolled.advance_bytes(more)
    words = np.zeros(store_of(number).n_words, np.uint32)
    matcher.fill(words)
    tokens = store_of(number).vocabulary.tokens
    assert not any(tokens[i].startswith(more[-1:]) for i in ids(words) if tokens[i])
    assert not twin_of(number).is_legal_prefix(text + more)


@pytest.mark.parametrize(("number", "text", "good", "bad"), pairs("cut"))
def test_parts_of_characters(number: int, text: bytes, good: bytes, bad: bytes) -> None:
    matcher = store_of(number).matcher()
    for byte in text:
        matcher.advance_bytes(bytes([byte]))
    with pytest.raises(IllegalTokenError):
        matcher.advance_bytes(bad)
    matcher.advance_bytes(good)
    assert twin_of(number).is_legal_prefix(text + good) and not twin_of(number).is_legal_prefix(text + bad)


def test_the_empty_language_is_refused() -> None:
    with pytest.raises(GrammarError, match="unproductive"):
        compile_store(longest('start: "a" start'), vocabulary_of(b"a"))


def test_the_empty_text_alone() -> None:
    store = compile_store(longest('start: x\nx: |\n_Z: "z"\n%ignore _Z'), vocabulary_of(b"z", b"a"))
    words = np.zeros(1, np.uint32)
    store.matcher().fill(words)
    assert ids(words) == {0, 2}


def test_a_newline_of_the_layout_without_line_feeds_is_refused() -> None:
    text = "start: (NAME _NEWLINE)*\nNAME: /a+/\n_NEWLINE: /;+/\n%declare _INDENT _DEDENT"
    with pytest.raises(GrammarError, match="newline _NEWLINE matches no text with a line feed"):
        compile_store(longest(text), vocabulary_of(b"a"))


def test_a_lexer_that_would_back_up_without_end_says_that_it_does_not() -> None:
    with pytest.warns(MaskwrightWarning, match="back up"):
        compile_store(longest('start: (A | B | C)*\nA: "aaa"\nB: /a+b+z/\nC: /b+x/'), vocabulary_of(b"a"))
