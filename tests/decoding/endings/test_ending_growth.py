"""Short endings of deep texts take time in proportion to the depth."""

from __future__ import annotations

import time
from functools import cache

import pytest
from growth import growth

from maskwright.analysis.errors import LimitError
from maskwright.analysis.fronts import parse_gbnf
from maskwright.analysis.loading import load_grammar
from maskwright.decoding.endings import ending_search
from maskwright.decoding.endings.ending import Ending
from maskwright.decoding.grammar.ending_states import GrammarStates
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import build_store, compile_store
from maskwright.stores.store import Store


@cache
def json() -> Store:
    tokens = [*(bytes([byte]) for byte in range(128)), b"]]", b""]
    return compile_store(load_grammar("json"), Vocabulary("bytes", tuple(tokens), {129: "</s>"}, (129,)))


def short_ending(depth: int) -> tuple[Ending, float]:
    matcher = json().matcher()
    matcher.advance_bytes(b"[" * depth)
    start = time.process_time()
    return matcher.short_ending(), time.process_time() - start


def test_what_will_not_fit_is_seen_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    depth = 3_000
    assert short_ending(depth)[0] == Ending(b"]" * depth, (128,) * (depth // 2))
    searched = []
    of_class = GrammarStates.moves
    monkeypatch.setattr(GrammarStates, "moves", lambda *both: searched.append(1) or of_class(*both))
    monkeypatch.setattr(ending_search, "MAX_HELD", 10_000_000)
    monkeypatch.setattr(ending_search, "MAX_KEPT", 0)  # nothing is known from before
    monkeypatch.setattr(ending_search, "_SAMPLE", 500)
    found, _ = short_ending(depth)
    assert found.data == b"]" * depth
    assert found.is_shortest  # it is as near as the bound says
    assert len(searched) < depth + 500 + 100


@pytest.mark.slow
def test_short_endings_take_time_in_proportion_to_the_depth() -> None:
    short_ending(10)
    ratio = growth(lambda n: short_ending(n)[1], 50_000)
    assert ratio < 2.6
    assert short_ending(200_000)[0].data == b"]" * 200_000


@pytest.mark.parametrize("other", ["", "[x] | "])
def test_texts_longer_than_the_search_counts_are_beyond_a_limit(other: str) -> None:
    """They are no dead end: a store is made, and the search says what it cannot do."""
    grammar = parse_gbnf(f"root ::= {other}(([a-c]{{1000}}){{1000}}){{1000}}\n", "long")
    matcher = build_store(grammar, Vocabulary.from_tokens([b"a", b"x", b""], eos=[2])).matcher()
    matcher.advance_bytes(b"aa")
    with pytest.raises(LimitError, match="at least 1,000,000,000 bytes"):
        matcher.short_ending()
