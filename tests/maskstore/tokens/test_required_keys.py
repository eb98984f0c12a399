"""What keys require, and which states' results decide it, against the naive twins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engine_cases import MAKERS, random_vocabulary, settled
from naive_compile import depth_cases, requires, sequence_of
from shares import share

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.loading import load_grammar
from maskwright.maskstore.automaton.stack_automaton import build_automaton
from maskwright.maskstore.tokens import required_keys, requirements
from maskwright.maskstore.tokens.requirements import Requirements
from maskwright.maskstore.vocabulary import load_vocabulary


def kept(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """The arguments and results of all calls of `require` from now on."""
    calls: list[tuple[Any, Any]] = []

    def require(*arguments: Any) -> Any:
        found = required_keys.require(*arguments)
        calls.append((arguments, found))
        return found

    monkeypatch.setattr(requirements, "require", require)
    return calls


def check(required: Requirements, arguments: Any, results: Any) -> int:
    """Every key and depth case; the numbers of continuations, sets and line breaks too. Returns how many there are."""
    (keys, endings), (found, line_breaks) = arguments[:2], results
    continuations = required.continuations
    spelled: dict[int, tuple[tuple[int, ...], frozenset[int] | None]] = {}

    def spell(number: int) -> tuple[tuple[int, ...], frozenset[int] | None]:
        if number not in spelled:
            symbols, here = [], number
            while here >= 0:
                symbols.append(int(continuations.pairs.keys[here]) >> 32)
                here = int(np.int64(continuations.pairs.keys[here]).astype(np.int32))
            spelled[number] = tuple(symbols), None if here == -1 else continuations.sets[-1 - here]
        return spelled[number]

    n = 0
    first: list[int] = []  # continuations by first use
    breaks_met: dict[int, None] = {0: None}
    for i, key in enumerate(keys.tolist()):
        sequence, ending = divmod(key, len(endings))
        symbols = sequence_of(required, sequence)
        assert found.n_depth_cases[i] == depth_cases(required, symbols, endings[ending])
        for depth in range(int(found.n_depth_cases[i])):
            row = int(found.first[i]) + depth
            here = range(int(found.start[row]), int(found.start[row + 1]))
            breaks, numbers = found.line_breaks[here].tolist(), found.continuation[here].tolist()
            expected = requires(required, symbols, endings[ending], depth)
            assert [(line_breaks[b], *spell(c)) for b, c in zip(breaks, numbers, strict=True)] == expected
            first += numbers
            breaks_met |= dict.fromkeys(breaks)
            n += 1
    assert list(breaks_met) == list(range(len(line_breaks))), "numbered as they are met"
    top = -1
    for number in dict.fromkeys(first):
        assert number <= top + len(spell(number)[0]), "numbered as they are met, ends first"
        top = max(top, number)
    return n


@pytest.mark.parametrize("seed", share(range(12), 3))
@pytest.mark.parametrize("make", MAKERS)
def test_keys_require_what_the_definition_says(make: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = kept(monkeypatch)
    if seed % 2:  # room for a few rows at first, and a pause after each
        monkeypatch.setattr(required_keys, "PAUSE", 1)
        for module in ("continuations", "required_keys"):
            monkeypatch.setattr(f"maskwright.maskstore.tokens.{module}.FIRST_CAPACITY", 2)
    grammar = make(seed)
    try:
        required = build_automaton(settled(grammar), random_vocabulary(grammar, seed)).required
    except (GrammarError, LimitError):
        pytest.skip("the grammar has no store")
    ((arguments, found),) = calls
    assert check(required, arguments, found) >= len(arguments[0])


@pytest.mark.parametrize("name", share(["json.indent2", "lark:python"], 1))
def test_keys_of_real_grammars(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = kept(monkeypatch)
    required = build_automaton(load_grammar(name), load_vocabulary("python-tiny")).required
    ((arguments, found),) = calls
    assert check(required, arguments, found) > 500
    if required.newline >= 0:
        assert len(found[1]) > 1 and found[0].n_depth_cases.max() > 1


def test_what_the_tokens_alone_decide() -> None:
    texts = load_vocabulary("python-tiny").sorted_texts

    def common(one: bytes, other: bytes) -> int:
        n = 0
        while n < min(len(one), len(other)) and one[n] == other[n]:
            n += 1
        return n

    shared = [0, *(common(one, other) for one, other in zip(texts.texts, texts.texts[1:], strict=False))]
    assert texts.shared.tolist() == shared
    moving = {bytes(byte for byte in text if byte in b"\n \t\f") for text in texts.texts}
    assert texts.newline_pieces == tuple(sorted(moving)) and len(moving) > 10
