"""Indentation by blanks, tabs and form feeds: the engine, its naive twin, the oracle and the plain readers against CPython."""

from __future__ import annotations

import functools
import random
from dataclasses import replace

import numpy as np
import pytest
from indentation import TOKENS, blocks, is_python, random_cuts, random_text, vocabulary
from library_cases import byte_parser
from naive_engine import NaiveEngine
from oracle import Oracle
from shares import parts, share

from maskwright.analysis.errors import IllegalTokenError
from maskwright.analysis.grammar.columns import MOST_COLUMN
from maskwright.analysis.loading import Indenter, load_grammar, parse_grammar
from maskwright.decoding.explain import explain_text
from maskwright.decoding.matcher import Matcher
from maskwright.decoding.reference import ReferenceDecoder
from maskwright.stores.build import build_store, compile_entry_store
from maskwright.stores.store import Store

BY_HAND = [
    ("if a:\n\tif b:\n    \ta\n", False),  # 8 columns both times by tabs of 8, 1 and 5 by tabs of 1
    ("if a:\n\t    b\n    \tb\n", False),
    ("if a:\n" + " " * 10 + "if b:\n" + " " * 1000 + "a\n", True),
    ("if a:\n\tif b:\n" + " " * 1000 + "a\n", True),  # further in by both
    ("if a:\n\tif b:\n        a\n", False),
    ("if a:\n\tif b:\n         a\n", True),
    ("if a:\n \tb\n\tb\n", False),
    ("if a:\n\tb\n\tb\n", True),
    ("if a:\n  \tb\n  \tb\n", True),
    ("if a:\n  \tif a:\n  \t\tb\n  \tb\nb\n", True),
    ("if a:\n        if a:\n        \tb\n\tb\n", False),
    ("if a:\n\t \f  b\n  b\n", True),  # what is before a form feed does not count
    ("if a:\n  b\n\t\f  b\n", True),
    ("if a:\n  b\n\f b\n", False),
    ("if a:\n\f\tb\n\tb\n", True),
    ("if a:\n       \tb\n\tb\n", False),
    ("if a:\n        \tb\n\t\tb\n", False),  # 16 columns both times
    ("if a:\n" + "\t" * 3000 + "b\n" + "\t" * 3000 + "b\n", True),
    ("if a:\n" + "\t" * 3000 + "b\n" + " " * 24000 + "b\n", False),
]  # fmt: skip


@functools.cache
def store() -> Store:
    found = build_store(blocks(), vocabulary())
    assert isinstance(found, Store)
    return found


@functools.cache
def tokens() -> dict[bytes, int]:
    return {token: number for number, token in enumerate(vocabulary().tokens) if token}


def takes(matcher: Matcher, data: bytes) -> bool:
    """Whether it is a whole text; read at once, which decides as reading it in pieces does."""
    matcher.reset()
    try:
        matcher.advance_bytes(data)
    except IllegalTokenError:
        return False
    return matcher.is_accepting()


def takes_pieces(matcher: Matcher, data: bytes, rng: random.Random) -> bool:
    """The same by tokens: what is read is in the mask before it, and the mask is what reading allows."""
    matcher.reset()
    words = np.zeros(matcher.store.n_words, np.uint32)
    for token in random_cuts(rng, data, tokens()):
        matcher.fill(words)
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        if rng.random() < 0.15:
            assert [number for number in tokens().values() if bits[number] != matcher.is_allowed(number)] == []
        if not bits[token]:
            return False
        matcher.advance(token)
    return matcher.is_accepting()


def check(seed: int, matchers: tuple[Matcher, Matcher]) -> bool:
    """One text at random; whether CPython takes it."""
    rng = random.Random(seed)
    text = random_text(rng, rng.randint(2, 9), 30 if seed % 3 else 6)
    data, expected = text.encode(), is_python(text)
    library, small = matchers
    assert takes(library, data) == expected, text
    assert takes(small, data) == expected, text
    if len(data) < 300:
        assert takes_pieces(small, data, rng) == expected, text
    return expected


def matchers() -> tuple[Matcher, Matcher]:
    return byte_parser("python").store.matcher(0), store().matcher(0)


@pytest.mark.parametrize(("text", "expected"), BY_HAND)
def test_by_hand(text: str, expected: bool) -> None:
    assert is_python(text) == expected
    library, small = matchers()
    assert takes(library, text.encode()) == takes(small, text.encode()) == expected
    if len(text) < 100:
        assert takes_pieces(small, text.encode(), random.Random(1)) == expected
        assert NaiveEngine(blocks(), "all").is_legal_text(text.encode()) == expected
    if len(text) < 5000:
        assert Oracle(blocks()).is_legal_text(text.encode()) == expected
        found = explain_text(blocks(), text.encode())
        assert bool(found.is_allowed and found.is_whole) == expected


def test_random_texts() -> None:
    both = matchers()
    found = [check(seed, both) for seed in range(400)]
    assert 100 < sum(found) < 360


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(8))
def test_many_random_texts(chunk: int) -> None:
    both = matchers()
    found = [check(seed, both) for seed in range(1000 + 1500 * chunk, 1000 + 1500 * (chunk + 1))]
    assert 300 < sum(found) < 1400


def compare_engines(seeds: range) -> None:
    """Each prefix and some tokens behind it: the naive engine and the oracle, which know no columns of tokens."""
    naive, oracle = NaiveEngine(blocks(), "all"), Oracle(blocks(), "all")
    mixed = [tokens()[token] for token in TOKENS]
    words = np.zeros(store().n_words, np.uint32)
    for seed in seeds:
        rng = random.Random(seed)
        data = random_text(rng, rng.randint(2, 5), 10).encode()[:120]
        matcher = store().matcher(0)
        prefix = b""
        for token in random_cuts(rng, data, tokens()):
            matcher.fill(words)
            bits = np.unpackbits(words.view(np.uint8), bitorder="little")
            for number in {token, *rng.sample(mixed, 3)}:
                after = prefix + vocabulary().tokens[number]
                assert naive.is_legal_prefix(after) == bool(bits[number]), (seed, after)
                assert oracle.is_legal_prefix(after) == bool(bits[number]), (seed, after)
            assert naive.is_legal_text(prefix) == matcher.is_accepting() == oracle.is_legal_text(prefix), (seed, prefix)
            if not bits[token]:
                break
            matcher.advance(token)
            prefix += vocabulary().tokens[token]


@pytest.mark.parametrize("seeds", share(parts(25, 2), 1), ids=str)
def test_the_naive_engine_and_the_oracle(seeds: range) -> None:
    compare_engines(seeds)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(first, first + 25) for first in range(100, 200, 25)], ids=str)
def test_the_naive_engine_and_the_oracle_on_more(seeds: range) -> None:
    compare_engines(seeds)


def test_more_tabs_than_an_int32_of_thousands() -> None:
    """2,147,484 tabs are 17,179,872 columns for CPython, and no trouble."""
    text = "if a:\n" + "\t" * 2_147_484 + "b\n"
    assert is_python(text)
    for matcher in matchers():
        assert takes(matcher, text.encode()) and takes(matcher, text.encode() + b"b\n")
        assert not takes(matcher, text.encode() + b"\tb\n")


def test_columns_end_where_a_c_int_does() -> None:
    """As Lark counts them, with tabs of 1,000 columns: further in than any column is refused, at once and bit by bit."""
    layout = Indenter("_NEWLINE", "_INDENT", "_DEDENT", tab_length=1000)
    own = build_store(parse_grammar(BLOCKS_AS_LARK, layout=layout), vocabulary())
    matcher = own.matcher(0)
    most = MOST_COLUMN // 1000
    assert takes(matcher, b"if a:\n" + b"\t" * most + b"b\n")
    for more in (1, 2, 1000):
        matcher.reset()
        matcher.advance_bytes(b"if a:\n" + b"\t" * (most + more))
        words = np.zeros(own.n_words, np.uint32)
        matcher.fill(words)
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        assert not bits[tokens()[b"a\n"]] and not matcher.is_allowed(tokens()[b"a\n"]) and bits[tokens()[b"\n\t"]]
        matcher.advance_bytes(b"\n\tb\n")  # another line begins at another column
        assert matcher.is_accepting()


@pytest.mark.slow
def test_columns_that_end_are_explained() -> None:
    grammar = parse_grammar(BLOCKS_AS_LARK, layout=Indenter("_NEWLINE", "_INDENT", "_DEDENT", tab_length=1000))
    text = b"if a:\n" + b"\t" * (MOST_COLUMN // 1000 + 1) + b"b\n"
    assert f"begins {MOST_COLUMN} columns in, or more" in explain_text(grammar, text).summary


def test_lark_s_tabs_are_what_they_were() -> None:
    """A tab counts eight columns wherever it stands, a length of 1,000 is a length, and form feeds count nothing."""
    matcher = build_store(parse_grammar(BLOCKS_AS_LARK), vocabulary()).matcher(0)
    assert takes(matcher, b"if a:\n  \tb\n          b\n") and takes(matcher, b"if a:\n\tb\n        b\n")
    assert takes(matcher, b"if a:\n \f b\n  b\n")
    assert not takes(matcher, b"if a:\n  \tb\n\tb\n")
    long = parse_grammar(BLOCKS_AS_LARK, layout=Indenter("_NEWLINE", "_INDENT", "_DEDENT", tab_length=1000))
    assert long.layout is not None and long.layout.tabs == "lark"
    assert takes(build_store(long, vocabulary()).matcher(0), b"if a:\n\tb\n" + b" " * 1000 + b"b\n")


BLOCKS_AS_LARK = """
start: (line | _NEWLINE)*
line: NAME _NEWLINE | "if" NAME ":" _NEWLINE _INDENT line+ _DEDENT
NAME: /[ab]/
_NEWLINE: /(\\r?\\n[ \\t\\f]*)+/
%ignore /[ \\t\\f]+/
%declare _INDENT _DEDENT
"""


def test_the_reference_decoder() -> None:
    """Lexing "nfa": what the store's codes say of a token is what reading it does, and the texts are CPython's."""
    grammar = replace(blocks(), lexing="nfa")
    decoder = ReferenceDecoder(compile_entry_store(grammar, vocabulary()))
    n_legal = 0
    for seed in range(12):
        rng = random.Random(seed)
        text = random_text(rng, rng.randint(2, 4), 10)
        data = text.encode()
        decoder.reset()
        is_legal = True
        for token in random_cuts(rng, data, tokens()):
            bits = np.unpackbits(decoder.mask().view(np.uint8), bitorder="little")
            for number in {token, *rng.sample([tokens()[t] for t in TOKENS], 6)}:
                assert bool(bits[number]) == bool(decoder.successors(vocabulary().tokens[number])), (seed, number)
            if not bits[token]:
                is_legal = False
                break
            decoder.advance(token)
        if text.endswith("\n"):
            assert (is_legal and decoder.is_accepting()) == is_python(text), text
            n_legal += is_legal
    assert n_legal > 3


def test_the_library_s_python_asks_for_it() -> None:
    layout = load_grammar("python").layout
    assert layout is not None and (layout.tabs, layout.tab_length) == ("consistent", 8)
    layout = load_grammar("lark:python").layout
    assert layout is not None and layout.tabs == "lark"


def test_a_closing_bracket_that_closes_nothing() -> None:
    """It leaves the depth at 0, where the grammar takes it."""
    text = 'start: _NL | T2 T1 T0*\nT0: ")"\nT1: "ab"\nT2: "("\n_NL: /(\\r?\\n[ \\t]*)+/\n%declare _INDENT _DEDENT\n%ignore /[ \\t]+/\n'
    grammar = parse_grammar(text, lexing="longest")
    store, oracle, naive = build_store(grammar, [b"", *TOKENS_OF_BRACKETS]), Oracle(grammar), NaiveEngine(grammar)
    for data, legal in ((b"(ab", True), (b"(ab)", True), (b"(ab))", True), (b"(ab)\n)", False)):
        matcher = store.matcher()
        found = True
        try:
            matcher.advance_bytes(data)
        except IllegalTokenError:
            found = False
        assert (found, oracle.is_legal_prefix(data), naive.is_legal_prefix(data)) == (legal,) * 3, data


TOKENS_OF_BRACKETS = (b"a", b"b", b"(", b")", b"\n")
