"""Results that are kept up to a number of bytes."""

from __future__ import annotations

import numpy as np
import pytest

from maskwright.analysis.kept import SHARED, Budget, Cache, Kept, kept_with, size
from maskwright.analysis.lexing import terminals
from maskwright.analysis.regex import Dfa, whole
from maskwright.analysis.schema import load
from maskwright.analysis.schema.constraints import STRING, Among, Pattern
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.load import load_schema
from maskwright.analysis.schema.scalars import scalar_shape
from maskwright.analysis.schema.shapes import StringLiterals, Strings
from maskwright.analysis.schema.strings import finite_language


def test_a_result_is_made_once_and_an_error_each_time() -> None:
    asked = []

    def half(n: int) -> int:
        asked.append(n)
        if n % 2:
            raise ValueError("odd")
        return n // 2

    kept = Kept(half)
    assert [kept(4), kept(4), kept(6)] == [2, 2, 3]
    for _ in range(2):
        with pytest.raises(ValueError, match="odd"):
            kept(3)
    assert asked == [4, 6, 3, 3] and len(kept.cache) == 2
    kept.forget()
    assert len(kept.cache) == 0 and kept(4) == 2 and asked[-1] == 4


def test_the_first_results_are_forgotten_past_the_limit() -> None:
    kept = Kept(lambda n: np.zeros(n, np.uint8), budget=Budget(5000))
    first = kept(2000)
    kept(2001), kept(2002)
    again = kept(2000)
    assert again is not first and kept(2000) is again
    large = kept(10_000)  # more than the limit by itself: it is all that is kept
    assert kept(10_000) is large
    assert size(large) > 5000


def test_long_texts_are_forgotten_as_large_results_are() -> None:
    kept = Kept(lambda *texts: object(), budget=Budget(5000))
    for texts in (("a" * 4000,), (("b" * 2000, b"c" * 2000),)):
        first = kept(*texts)
        kept("d" * 4000)
        assert kept(*texts) is not first


def test_what_automata_of_patterns_hold_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server reads patterns of many requests: it keeps a number of bytes, not of automata."""
    for kept, arguments in ((whole._automaton, ("", "python")), (terminals._compile, ("", 20_000))):
        kept.forget()
        monkeypatch.setattr(SHARED, "most", 1 << 20)
        found = [kept(f"[a-c]{{{n}}}", *arguments) for n in range(400, 410)]
        assert 4 * size(found[-1]) > 1 << 20 > size(found[-1]) > 400 * 256 * 4
        assert len(kept.cache) < 3 and SHARED.held <= 1 << 20
        assert kept("[a-c]{409}", *arguments) is found[-1] and kept("[a-c]{400}", *arguments) is not found[0]
        kept.forget()


def test_what_shapes_and_clauses_hold_is_counted() -> None:
    texts = [f"{'a' * 1_000}{number}" for number in range(50)]
    data = tuple(text.encode() for text in texts)
    for held in (
        data,
        StringLiterals(data),
        frozenset(texts),
        Among(frozenset(texts), True),
        (STRING, (Among(frozenset(texts), True),)),
    ):
        assert 50_000 < size(held) < 60_000
    assert 10_000 < size((STRING, (Pattern("a" * 10_000, True),))) < 11_000
    automaton = Dfa.literal(b"a" * 100)
    assert size(Strings(automaton, 0, None)) > automaton.next_state.nbytes
    assert size((automaton, automaton)) < 2 * automaton.next_state.nbytes
    assert size((1, None, 2.5)) < 300


def test_automata_that_a_result_was_made_of_are_counted() -> None:
    kept = Kept(lambda one, other: None, budget=Budget(300_000))
    for number in range(20):
        kept(Dfa.literal(b"a" * 100), Dfa.literal(b"b" * number))
    assert len(kept.cache) == len(kept.cache._budget.entries) == 2 and kept.cache._budget.held <= 300_000


def test_an_automaton_that_many_results_hold_counts_once() -> None:
    budget = Budget(400_000)
    caches: list[Cache[int, Dfa]] = [Cache(budget) for _ in range(10)]
    shared = Dfa.literal(b"a" * 100)
    for number, cache in enumerate(caches):
        cache.put(number, shared)
    table = shared.next_state.nbytes
    assert all(map(len, caches)) and table < budget.held < 1.1 * table
    for cache in caches[:-1]:
        cache.forget()
        assert table < budget.held < 1.1 * table
    caches[-1].forget()
    assert budget.held == 0 and not budget._holders


def test_schemas_that_each_have_a_list_of_their_own_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    scalar_shape.forget()  # small ones that others asked for may stay
    monkeypatch.setattr(SHARED, "most", 1_000_000)
    for number in range(40):
        build_graph({"enum": [f"{number} {k} {'x' * 900}" for k in range(100)]})
        assert len(scalar_shape.cache) < 7 and SHARED.held <= 1_000_000


def test_what_was_given_is_counted_too() -> None:
    """An automaton is held as an argument as well, for instance with the few numbers that it has."""
    assert size((Dfa.literal(b"a" * 1000), "text")) > 1000 * 256 * 4
    finite_language.forget()
    assert finite_language(Dfa.literal(b"1" * 1000), 10) is not None
    (entry,) = (entry for entry in SHARED.entries if entry.of is finite_language.cache)
    assert sum(entry.tables.values()) > 1000 * 256 * 4


def test_schemas_are_forgotten_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request may bring another schema, of automata of megabytes."""
    kept = load.GRAPHS
    kept.forget()
    monkeypatch.setattr(SHARED, "most", 4 << 20)

    def schema(k: int) -> dict[str, object]:
        member = {"type": "string", "pattern": f"^{k}a[^b]{{100}}$"}
        return {"properties": {"a": member, "b": member, "c": {"enum": ["x" * 100, k]}}}

    graphs = [load_schema(schema(k)).texts.graph for k in range(10)]
    strings = [shape for node in graphs[0].nodes for shape in node if isinstance(shape, Strings)]
    of_pattern = max(shape.automaton.next_state.nbytes for shape in strings if shape.automaton is not None)
    assert of_pattern < size(graphs[0]) < 1.5 * of_pattern  # an automaton counts once
    assert 1 <= len(kept) < 5 and SHARED.held <= 4 << 20
    assert load_schema(schema(9)).texts.graph is graphs[9]
    assert load_schema(schema(0)).texts.graph is not graphs[0]
    kept.forget()


def test_a_result_that_two_threads_make_is_kept_once() -> None:
    """Also one that is the same object wherever it is made, as a bool is."""
    budget = Budget(4000)
    kept: Kept[int, bool]

    def odd(n: int) -> bool:
        if n < 20:  # as if another thread had made it meanwhile
            kept.cache.put((n,), n % 2 == 1)
        return n % 2 == 1

    kept = Kept(odd, budget)
    assert [kept(n) for n in range(200)] == [n % 2 == 1 for n in range(200)]
    assert len(budget.entries) == len(kept.cache) < 20


def test_caches_share_a_budget_and_what_is_asked_for_stays() -> None:
    budget = Budget(10_000)
    one: Cache[int, bytes] = Cache(budget)
    other: Cache[int, bytes] = Cache(budget)
    one.put(0, b"x" * 1000)
    for number in range(100):
        other.put(number, b"y" * 1000)
        assert one.get(0) == b"x" * 1000
        assert budget.held == sum(entry.n_bytes for entry in budget.entries) <= 10_000
    assert len(one) == 1 and 5 < len(other) < 10
    assert [number for number in range(100) if number in other._entries][-1] == 99
    one.forget()
    assert len(one) == 0 and budget.held == sum(entry.n_bytes for entry in budget.entries) > 5_000


def test_a_result_is_kept_with_its_object() -> None:
    class Owner:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    first, second, asked = Owner(), Owner(), list[Owner]()

    def number(owner: Owner) -> int:
        asked.append(owner)
        return len(asked)

    kept = kept_with(number)
    assert [kept(first), kept(second), kept(first), kept(second)] == [1, 2, 1, 2]
    assert asked[0] is first and asked[1] is second and kept.__name__ == "number"
