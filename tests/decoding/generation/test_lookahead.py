"""Domino's lookahead: how many lexemes begin inside tokens, and texts written under such masks."""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np
import pytest
from engine_cases import longest
from naive_lexing import NaiveLexing

from maskwright.analysis.errors import DeadEndError, MaskwrightError
from maskwright.analysis.loading import parse_grammar
from maskwright.analysis.schema.text_patterns import load_regex
from maskwright.decoding.generation.completion import Completion
from maskwright.decoding.generation.generation import generate
from maskwright.decoding.generation.lookahead import Borders, Lookahead
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import tokens_of
from maskwright.stores.build import build_store, compile_store
from maskwright.stores.store import Store

WORDS = """
start: (NAME | NUMBER | EXPONENT | "(" | ")" | STRING)+
NAME: /[a-z]+/
NUMBER: /[0-9]+/
EXPONENT: /[0-9]+e[0-9]+/
STRING: /"[^"]*"/
WS: / +/
%ignore WS
"""
PIECES = (b"a", b"ab", b"1", b"12e", b"e", b"3", b"(", b")(", b" ", b" a", b'"', b'"x', b'" (', b"a)", b"))1", b"b (c)")
EOS = len(PIECES)


def pieces(*data: bytes) -> Vocabulary:
    return Vocabulary("pieces", (*data, b""), {len(data): "</s>"}, (len(data),))


@functools.cache
def store() -> Store:
    return compile_store(longest(WORDS), pieces(*PIECES))


def begins_of(naive: NaiveLexing, text: bytes) -> set[int]:
    """Where the lexemes of a text begin, by its longest matches; the last one may be unfinished."""
    begin, found = 0, set()
    while begin < len(text):
        found.add(begin)
        _, end, state = naive.scan(text, begin)
        if state >= 0:
            break
        begin = end
    return found


def crossed(naive: NaiveLexing, text: bytes, token: int) -> int:
    return sum(at > len(text) for at in begins_of(naive, text + PIECES[token])) if token < EOS else 0


def allowed(matcher: Matcher) -> list[int]:
    return [token for token in range(EOS + 1) if matcher.is_allowed(token)]


def test_borders_are_those_of_the_whole_text() -> None:
    rng, naive, borders, compared = random.Random(1), NaiveLexing(store().grammar), Borders(store()), 0
    narrowing = [0, 1, 2]
    for _ in range(60):
        matcher, text = store().matcher(), b""
        lookaheads = [Lookahead(matcher, k) for k in narrowing] if not compared else []
        for _ in range(12):
            legal = [token for token in allowed(matcher) if token < EOS]
            counts = borders.counts(borders.place(matcher))
            for token in legal:
                assert counts[token] == crossed(naive, text, token), (text, PIECES[token])
                compared += 1
            for k, lookahead in zip(narrowing, lookaheads, strict=False):
                words = np.zeros(1, np.int32)
                matcher.fill(words)
                lookahead.narrow(words)
                expected = [token for token in allowed(matcher) if crossed(naive, text, token) <= k]
                assert tokens_of(words).tolist() == expected
            token = rng.choice(legal)
            matcher.advance(token)
            text += PIECES[token]
    assert compared > 1000


def write(k: int | None, seed: int, **options: Any) -> Completion:
    """The text of a random model under a lookahead."""

    def logits(tokens: Any) -> Any:
        found = np.random.default_rng((seed, len(tokens))).normal(size=EOS + 1)
        found[EOS] -= 2
        return found

    return generate(logits, store().matcher(), [EOS], max_tokens=12, close=False, lookahead=k, **options).run()


@pytest.mark.parametrize("k", [0, 1])
def test_texts_have_no_token_that_crosses_more(k: int) -> None:
    naive, n_crossing, n_interventions = NaiveLexing(store().grammar), 0, {k: 0, None: 0}
    for seed in range(12):
        for lookahead in (k, None):
            found, text = write(lookahead, seed), b""
            for token in found.tokens:
                assert lookahead is None or crossed(naive, text, token) <= lookahead
                n_crossing += lookahead is None and crossed(naive, text, token) > k
                text += PIECES[token]
            n_interventions[lookahead] += len(found.interventions)
        one, other = write(k, seed), write(k, seed, opportunistic=True)
        assert (one.tokens, one.interventions) == (other.tokens, other.interventions)
        assert write(9, seed).tokens == write(None, seed).tokens
    assert n_crossing and n_interventions[k] > n_interventions[None]


def test_where_every_token_crosses() -> None:
    few = compile_store(longest('start: "(" NAME ")"\nNAME: /[a-z]+/'), pieces(b"(a", b"b)", b"b"))
    model = lambda tokens: np.zeros(4)  # noqa: E731
    with pytest.raises(
        DeadEndError, match="every token that can come next crosses more than 0 lexemes; give a greater"
    ):
        generate(model, few.matcher(), [3], close=False, lookahead=0).run()
    assert generate(model, few.matcher(), [3], close=False, lookahead=1).run().data == b"(ab)"


def test_what_lookahead_does_not_go_with() -> None:
    modes = compile_store(parse_grammar('start: "a" B | "c" A\nA: /a+/\nB: /[ab]/'), pieces(b"a", b"b", b"c"))
    pattern = build_store(load_regex("[a-c]+"), pieces(b"a", b"b", b"c"))
    model = lambda tokens: np.zeros(4)  # noqa: E731
    for matcher, options, message in (
        (
            modes.matcher(),
            {"lookahead": 1},
            "has several lexing modes, so where lexemes begin in a token depends on the parser",
        ),
        (pattern.matcher(), {"lookahead": 1}, "one of a schema, a pattern or a composition has none"),
        (modes.matcher(), {"lookahead": -1}, "lookahead is -1; expected 0 or more, or None"),
        (modes.matcher(), {"lookahead": "1"}, "lookahead is '1'"),
        (
            modes.matcher(),
            {"lookahead": 1, "fast_forward": True},
            "lookahead goes with neither canonical nor fast_forward",
        ),
    ):
        with pytest.raises(MaskwrightError, match=message):
            generate(model, matcher, [3], **options)  # type: ignore[arg-type]
    free = generate(model, None, [3], vocabulary=modes.vocabulary, max_tokens=2, lookahead=0).run()
    assert len(free.tokens) == 2, "without a matcher the model is free"
