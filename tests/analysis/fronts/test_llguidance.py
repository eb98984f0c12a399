"""llguidance's dialect: its lexing against the definition, its syntax, and what is refused by name."""

from __future__ import annotations

import itertools

import pytest
from front_cases import is_legal, random_llguidance
from naive_llguidance import ALPHABET, Naive
from paths import SHARED
from shares import share

import maskwright as mw
from maskwright.analysis.fronts import parse_llguidance

EVERY = mw.Vocabulary.from_tokens([b"</s>", *(bytes([byte]) for byte in range(256))], eos=[0])
SMALL = mw.Vocabulary.from_tokens([b"</s>", *(c.encode() for c in ALPHABET)], eos=[0])
PEERS = SHARED / "peer_grammars"
TEXTS = ["".join(word) for n in range(5) for word in itertools.product(ALPHABET, repeat=n)]


@pytest.mark.parametrize("seed", share(range(0, 72, 6), 1))
def test_random_grammars(seed: int) -> None:
    n = 0
    for each in range(seed, seed + 6):
        text, ignores = random_llguidance(each)
        naive = Naive(text, ignores)
        try:
            store = mw.build_store(parse_llguidance(text), SMALL)
        except mw.DeadEndError:
            assert not any(naive.matches(one) for one in TEXTS)
            continue
        except mw.GrammarError as error:
            assert not naive.is_productive or "stand where different terminals compete" in str(error)
            continue
        for one in TEXTS:
            wanted = naive.matches(one)
            if wanted is not None:
                assert is_legal(store, one) == wanted, (text, one)
                n += 1
    assert n > 300


def test_attributes_that_say_nothing_of_the_texts_are_named() -> None:
    with pytest.warns(UserWarning, match="capture, temperature of rules say nothing of the texts"):
        parse_llguidance('start: a\na[capture, temperature=0.2]: "x"')


def test_lexing_is_one_of_two() -> None:
    with pytest.raises(mw.GrammarError, match="lexing is 'nfa'; expected 'contextual' or 'longest'"):
        parse_llguidance('start: "a"', lexing="nfa")
