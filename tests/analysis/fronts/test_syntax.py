"""The syntax of other engines' languages: what texts are read as, what is refused, where errors point, and hostile texts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from front_cases import legal
from naive_fronts import Recogniser, read
from paths import SHARED
from shares import share
from written_cases import parameters

import maskwright as mw
from maskwright.analysis.fronts import parse_ebnf, parse_gbnf, parse_llguidance
from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.fronts.rust_regex import read_rust_regex

PEERS = SHARED / "peer_grammars"
READERS: dict[str, tuple[Callable[[Any], Any], type[mw.MaskwrightError]]] = {
    "gbnf": (parse_gbnf, mw.GrammarError),
    "ebnf": (parse_ebnf, mw.GrammarError),
    "llguidance": (parse_llguidance, mw.GrammarError),
    "rust_regex": (lambda text: read_rust_regex(Reader(text, "p"), 0, len(text), ""), mw.GrammarError),
    "parts": (mw.read_llguidance, mw.MaskwrightError),
}
"""Of each language what reads its texts, and the kind of its errors."""


@pytest.mark.parametrize(
    ("language", "text", "good", "bad"), parameters("fronts", "gbnf_texts", "ebnf_texts", "llguidance_texts")
)
@pytest.mark.filterwarnings("ignore:grammar")
def test_texts(language: str, text: str, good: list[str], bad: list[str]) -> None:
    parse, _ = READERS[language.removesuffix("_texts")]
    assert legal(parse(text), *good, *bad) == [True] * len(good) + [False] * len(bad)


@pytest.mark.parametrize(
    ("language", "text", "message"),
    [
        *parameters("fronts", *READERS),
        ("gbnf", "root ::= \ud800", "the text has a lone surrogate"),
        ("rust_regex", "a" + "{2}" * 200, "too many repetitions of repetitions"),
        ("rust_regex", "(" * 5000, "groups are nested more than"),
        ("rust_regex", "[" * 5000, "groups are nested more than"),
        ("parts", {"grammars": [{}]}, "grammar 0 has neither lark_grammar, a text, nor json_schema"),
    ],
)
def test_errors_say_what_and_where(language: str, text: Any, message: str) -> None:
    parse, kind = READERS[language]
    with pytest.raises(kind, match=re.escape(message)):
        parse(text)


def test_no_finite_text_is_an_error_of_its_own() -> None:
    with pytest.raises(mw.GrammarError) as caught:
        parse_gbnf('root ::= "(" root ")"')
    assert type(caught.value).__name__ == "EmptyLanguageError"


def test_arguments_of_other_types() -> None:
    with pytest.raises(mw.GrammarError, match="the text of a grammar"):
        parse_gbnf(b'root ::= "a"')  # type: ignore[arg-type]


def test_the_root_of_an_ebnf_can_be_named() -> None:
    grammar = parse_ebnf('main ::= ("a"{2} | "b"{1, -1}){1,2} | ("c"+)?', root_rule="main")
    assert legal(grammar, "aa", "a", "bbb", "aabb", "ccc", "") == [True, False, True, True, True, True]


MANY = 200_000
HOSTILE: dict[str, dict[str, str]] = {
    "gbnf": {
        "groups": "root ::= " + "(" * MANY,
        "signs": 'root ::= "a"' + "*" * MANY,
        "text": 'root ::= "' + "a" * MANY + '"',
        "set": "root ::= [" + "a" * MANY + "]",
        "blanks": " " * MANY + "#" * MANY,
        "copies": 'root ::= ("a" root | "b"){1000000}',
        "nested copies": "root ::= (([a-z]{0,900}){0,900}){0,900}",
        "doubling": "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1} r{i + 1}\n" for i in range(60)) + 'r60 ::= "c"',
        "chain": "root ::= r0\n" + "".join(f'r{i} ::= "a" r{i + 1} "b"\n' for i in range(3000)) + 'r3000 ::= "c"',
        "NUL": "\0" * MANY,
        "names": "a" * MANY,
        "pieces": "root ::= "
        + " | ".join(f'[\\u{i:04x}-\\u{i + 99:04x}] root "b"' for i in range(256, 1256))
        + ' | "x"',
    },
    "ebnf": {
        "groups": "root ::= " + "(" * MANY,
        "blanks": "root ::= x" + " " * MANY + "y",
        "texts": "root ::= " + '"a" ' * 50_000,
    },
    "llguidance": {
        "groups": "start: " + "(" * MANY,
        "negations": "start: " + "~" * MANY + '"a"',
        "pattern": "start: /" + "(" * MANY + "/",
        "classes": "start: /" + "[" * MANY + "/",
        "chain": "start: T0\n" + "".join(f'T{i}: "a" T{i + 1}\n' for i in range(5000)) + 'T5000: "x"',
        "doubling": "start: T0\n" + "".join(f"T{i}: T{i + 1} T{i + 1}\n" for i in range(60)) + 'T60: "x"',
        "options": "%llguidance " + "[" * MANY,
        "choices": "start: " + " | ".join(f'"w{i}"' for i in range(3000)),
        "copies": 'start: "a"{1000000}',
        "blanks": "start: x" + " " * MANY + "y",
        "text": 'start: "' + "a" * MANY + '"',
        "NUL": "\0" * MANY,
        "larks": "start: " + "%lark { start: " * 3000,
        "attributes": "start[" + "lazy," * MANY + "]: /a/",
        "tokens": "start: " + "<[1-64]> " * 3000,
        "substring": 'start: %regex {"substring_chars": "' + "ab" * MANY + '"}',
    },
}
LONG = [("llguidance", "choices"), ("llguidance", "tokens")]
"""They take seconds."""
SOON = [(language, name) for language, texts in HOSTILE.items() for name in texts if (language, name) not in LONG]


@pytest.mark.parametrize(("language", "name"), share([*SOON, *LONG], len(SOON)))
def test_hostile_texts_end_soon(language: str, name: str) -> None:
    start = time.process_time()
    try:
        assert READERS[language][0](HOSTILE[language][name]).n_terminals > 0
    except mw.MaskwrightError as error:
        assert len(str(error)) < 2_000
    assert time.process_time() - start < (30 if language == "ebnf" else 60)


PEERS_TEXTS: list[Any] = [
    ("json.ebnf", ['{"a": [1, -2.5e3, null]}', "[]", '"x"'], ["{", "[1,]", "01"]),
    (
        "c_toy.ebnf",
        ["int f(int x){return x;}", "void g(){whiley=1;}", "int f(){returnx;}"],
        ["int f()", "int f(int){}"],
    ),
    ("json.lark", ['{"a": [1, null]}'], ["[1,]", " []"]),
    ("c_toy.lark", ["int f(int x) { return x; }"], ["int f(intx) { return x; }"]),
    ("c11.lark", ["int f(void) { return (a) * b; } // x\n"], ["int f( {}"]),
    ("python_flat.lark", ["def f(a, b=2): return a\n"], ["def f("]),
]


@pytest.mark.skipif(not PEERS.is_dir(), reason="no peers' grammars here")
@pytest.mark.parametrize(("name", "good", "bad"), share(PEERS_TEXTS, 4))
def test_grammars_of_the_peers(name: str, good: list[str], bad: list[str]) -> None:
    text = (PEERS / name).read_text(encoding="utf-8")
    if name.endswith(".ebnf"):
        grammar = parse_ebnf(text, name)
    elif name == "json.lark":
        grammar = parse_llguidance(text)
    else:
        with pytest.raises(mw.GrammarError, match="parses of one text stand where different terminals compete"):
            parse_llguidance(text, name)
        grammar = parse_llguidance(text, name, lexing="longest")
    assert legal(grammar, *good, *bad) == [True] * len(good) + [False] * len(bad)


@pytest.mark.skipif(not PEERS.is_dir(), reason="no peers' grammars here")
@pytest.mark.parametrize("name", share(["c11_nocomment", "python_flat"], 1))
def test_large_grammars_of_the_peers(name: str) -> None:
    assert parse_ebnf((PEERS / f"{name}.ebnf").read_text(encoding="utf-8")).n_terminals > 50


def test_large_repetitions_of_a_set_are_one_terminal() -> None:
    grammar = parse_gbnf('root ::= "<" [a-z]{0,3000} ">"')
    assert grammar.n_terminals == 1
    naive = Recogniser(read('root ::= "<" [a-z]{0,3} ">"'))
    assert naive.matches(b"<abc>") and not naive.matches(b"<abcd>")


def test_places_of_a_text() -> None:
    reader = Reader("ab\ncd", "x")
    assert [reader.place(at) for at in (0, 2, 3, 5)] == [(1, 1), (1, 3), (2, 1), (2, 3)]
