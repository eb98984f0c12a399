"""Configuration sets against their definition (`naive_configurations`), cell by cell."""

from __future__ import annotations

import random

import pytest
from engine_cases import MAKERS, random_vocabulary
from naive_configurations import NaiveConfigurations, Said
from shares import parts, share

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.verify import configurations
from maskwright.maskstore.verify.configurations import ACCEPTED, REFUSED, WHATEVER, Configurations
from maskwright.maskstore.verify.trusted import Lexer, Parser
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.verification import verify

SAID = {REFUSED: "refused", ACCEPTED: "accepted"}


def in_words(said: Said) -> str:
    """What the naive ones say: accepted, refused, or open."""
    return said if isinstance(said, str) else "open" if said else "refused"


@pytest.mark.parametrize("at_once", [configurations.MOST_AT_ONCE, 2])
@pytest.mark.parametrize("seeds", share(parts(400, 10), 2))
def test_sets_say_what_the_naive_ones_say(seeds: range, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the second round all continuations are long ones, for whom there are other ways."""
    monkeypatch.setattr(configurations, "MOST_AT_ONCE", at_once)
    monkeypatch.setattr(configurations, "MOST_LOOKED_AT", at_once)
    compared = decided = with_modes = 0
    for seed in seeds:
        rng = random.Random(seed)
        try:
            grammar = MAKERS[seed % len(MAKERS)](seed)
            store = compile_store(grammar, random_vocabulary(grammar, seed, 10))
        except MaskwrightError:
            continue
        parser, lexer = Parser(store.table), Lexer(store.table, grammar.n_terminals)
        ours, naive = Configurations(parser, lexer), NaiveConfigurations(parser, lexer)
        for _ in range(12):
            asked = []
            for _ in range(rng.choice((1, 1, 2, 3))):
                n_symbols = parser.n_columns + (len(lexer.mode_state) if rng.random() < 0.5 else 0)
                symbols = [rng.randrange(n_symbols) for _ in range(rng.choice((0, 1, 1, 2, 3, 5)))]
                with_modes += any(symbol > parser.n_columns for symbol in symbols)
                asked.append((symbols, rng.choice((WHATEVER, *range(len(lexer.sets))))))
            first = ours.first(frozenset(ours.continuation(*each) for each in asked))
            for top in range(parser.n_states):
                found, wanted, cell = int(first[top]), naive.first(asked, top), top
                for _ in range(6):
                    compared += 1
                    decided += found in (REFUSED, ACCEPTED)
                    assert SAID.get(found, "open") == in_words(wanted), (seed, asked, top)
                    if found in (REFUSED, ACCEPTED) or not parser.below[cell]:
                        break
                    cell = rng.choice(parser.below[cell])
                    found, wanted = ours.after(found, cell), naive.after(wanted, cell)
    assert compared > 1_000 and 0 < decided < compared and with_modes


@pytest.mark.slow
def test_tokens_of_thousands_of_terminals_are_read() -> None:
    tokens = (*(bytes([byte]) for byte in range(256)), b"a" * 3_000, b"")
    vocabulary = Vocabulary("long", tokens, {257: "</s>"}, (257,))
    for text in ('start: A+\nA: "a"\n', 'start: "a" start "b" | "b"\n'):
        assert verify(compile_store(parse_grammar(text), vocabulary)).passed
