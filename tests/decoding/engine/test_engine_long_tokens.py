"""Tokens of tens of brackets against the naive engine, in texts where more or fewer of them are open."""

from __future__ import annotations

import random

import numpy as np
import pytest
from engine_cases import longest, vocabulary_of
from grammars import JSON
from mask_bits import ids
from naive_engine import NaiveEngine
from shares import share

from maskwright.stores.build import compile_store

GRAMMARS = {
    "json": (JSON, b"[", b"]", b'{"a":', b"}", b"1"),
    "right recursion": ('start: "(" start ")" start | "[" start "]" | "a" start | "a"', b"(", b")", b"[", b"]", b"a"),
    "left recursion": ('start: "a" | start "(" start ")" | "[" start "]"', b"a(", b")", b"[", b"]", b"a"),
    "ambiguous": ('start: start start | "(" start ")" | "[" start? "]" | "a"', b"(", b")", b"[", b"]", b"a"),
    "rules in rules": (
        'start: a\na: b | a "x" b\nb: c | b "y" c\nc: "(" a ")" | "[" a "]" | "a"',
        b"(", b")", b"[", b"]", b"a",
    ),
}  # fmt: skip


def tokens_of(rng: random.Random, opening: bytes, closing: bytes, other: bytes, other_closing: bytes) -> list[bytes]:
    made = [closing * n for n in (1, 2, 7, 30, 60)] + [opening * n for n in (1, 3, 40)]
    made += [other, other_closing, other_closing * 20, (closing + other_closing) * 15, (other + opening) * 10]
    made += [opening * 20 + closing * n for n in (10, 20, 25)]
    made += [
        b"".join(rng.choice([closing, closing, other_closing]) for _ in range(rng.randint(3, 40))) for _ in range(20)
    ]
    return list(dict.fromkeys(made))


@pytest.mark.parametrize("n", share([5, 12], 1))
@pytest.mark.parametrize("name", GRAMMARS)
def test_tokens_of_tens_of_brackets(name: str, n: int) -> None:
    text, opening, closing, other, other_closing, leaf = GRAMMARS[name]
    rng = random.Random(name)
    grammar = longest(text)
    tokens = tokens_of(rng, opening, closing, other, other_closing)
    vocabulary = vocabulary_of(*tokens, leaf)
    store, naive = compile_store(grammar, vocabulary), NaiveEngine(grammar)
    words = np.zeros(store.n_words, np.uint32)
    seen: set[int] = set()
    for _ in range(n):
        pairs = [
            rng.choice([(opening, closing), (opening, closing), (other, other_closing)])
            for _ in range(rng.randint(0, 70))
        ]
        if rng.random() < 0.6:
            pairs = [(opening, closing)] * len(pairs)
        begun = b"".join(begin for begin, _ in pairs) + leaf
        for end in (begun[: -len(leaf)], begun, begun + b"".join(end for _, end in reversed(pairs[len(pairs) // 2 :]))):
            if not naive.is_legal_prefix(end):
                continue
            matcher = store.matcher()
            matcher.advance_bytes(end)
            matcher.fill(words)
            eos = set(vocabulary.eos) if naive.is_legal_text(end) else set()
            assert ids(words) == naive.allowed(end, vocabulary.tokens) | eos, end
            seen |= ids(words)
    # some of the longest are allowed at some place, and some are not
    assert any(len(vocabulary.tokens[token]) >= 30 for token in seen)
    assert len(seen) < vocabulary.size


LAYOUT = r"""
start: (_NEWLINE | st)*
st: v _NEWLINE | "if" v ":" _NEWLINE _INDENT st+ _DEDENT
v: NAME | "(" v* ")" | "[" v* "]"
NAME: /[ab]+/
_NEWLINE: /(\r?\n[ \t]*)+/
%ignore " "
%declare _INDENT _DEDENT
"""


def test_tokens_that_close_brackets_and_lines() -> None:
    """With layout it depends on the brackets that are left whether a newline counts."""
    grammar = longest(LAYOUT)
    closing = [b")" * n for n in (1, 5, 12, 13)] + [b"]" * 4 + b")" * 8, b"b" + b")" * 12]
    ends = [b"", b"\n", b"\n  a", b"\na\n", b":\n a"]
    vocabulary = vocabulary_of(
        *(token + end for token in closing for end in ends), b"a", b"\n", b"(" * 30, b"(a\n)" * 9
    )
    store, naive = compile_store(grammar, vocabulary), NaiveEngine(grammar)
    words = np.zeros(store.n_words, np.uint32)
    seen: set[int] = set()
    for before in (b"", b"if ", b"if a:\n  "):
        for opening in (b"", b"(" * 5, b"(" * 12, b"(" * 13, b"(" * 8 + b"[" * 4, b"(" * 20):
            text = before + opening + b"a"
            matcher = store.matcher()
            matcher.advance_bytes(text)
            matcher.fill(words)
            eos = set(vocabulary.eos) if naive.is_legal_text(text) else set()
            assert ids(words) == naive.allowed(text, vocabulary.tokens) | eos, text
            seen |= ids(words)
    assert len(seen) > 20
