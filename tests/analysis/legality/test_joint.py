"""Merged sequences are legal after the same prefixes, and no merge that the derivation paths prove is missed."""

from __future__ import annotations

import random

import pytest
from grammars import make_grammar, random_grammar
from naive import affordable_length, refutes_joint
from naive_store import WaysUp
from shares import share

from maskwright.analysis.grammar.normalise import Rules
from maskwright.analysis.legality.deciders import ANYWHERE, MAX_LENGTH, Deciders, Query
from maskwright.analysis.legality.judge import Judge, joint_representatives
from maskwright.analysis.legality.verdict import START

CHUNK = 15


@pytest.mark.parametrize("chunk", share(range(14), 1))
def test_representatives_equal_the_ways_up(chunk: int) -> None:
    merged = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        rng = random.Random(seed)
        grammar = random_grammar(seed)
        rules: Rules = rng.choice(["lark", "normalised"])
        judge = Judge(grammar, rules)
        paths = WaysUp(judge.always_deciders.grammar)
        live = judge.always_deciders.live_terminals
        words = [tuple(rng.choices(live, k=rng.randint(1, 3))) for _ in range(10)]
        cases = [(rng.choice(live), word) for word in words for _ in range(3)]
        expected = []
        for index, (left, word) in enumerate(cases):
            same = (
                other
                for other in range(index + 1)
                if cases[other][0] == left
                and paths.implies(left, cases[other][1], word)
                and paths.implies(left, word, cases[other][1])
            )
            expected.append(next(same))
        found = joint_representatives(judge, cases)
        assert found == expected, seed
        merged += sum(cases[leader][1] != cases[i][1] for i, leader in enumerate(found))
    assert merged > 2 * CHUNK


def test_no_context_refutes_a_merge() -> None:
    for seed in range(300, 360):
        rng = random.Random(seed)
        grammar = random_grammar(seed)
        judge = Judge(grammar)
        live = judge.always_deciders.live_terminals
        cases = [(rng.choice(live), tuple(rng.choices(live, k=rng.randint(1, 3)))) for _ in range(20)]
        length = max(1, affordable_length(grammar, 60) - 1)
        for (left, word), leader in zip(cases, joint_representatives(judge, cases), strict=True):
            assert cases[leader][0] == left
            assert refutes_joint(grammar, (left,), word, cases[leader][1], length) is None, (seed, left, word)


def test_cases_that_stand_for_themselves() -> None:
    judge = Judge(make_grammar("S : a S | b S | c"))
    a, b = judge.grammar.terminal_number["a"], judge.grammar.terminal_number["b"]
    long = (a,) * (MAX_LENGTH + 1)
    cases = [(a, ()), (a, ()), (START, (a,)), (START, (b,)), (ANYWHERE, (a,)), (ANYWHERE, (b,)), (a, long), (a, long)]
    reported: list[int] = []
    assert joint_representatives(judge, [*cases, (a, (a,)), (b, (a,)), (a, (b,))], reported.append) == [
        *range(len(cases)),
        len(cases),
        len(cases) + 1,
        len(cases),
    ]
    assert sum(reported) == 3
    assert joint_representatives(judge, []) == []


def test_witness_paths_and_signatures() -> None:
    """A way is there if and only if the sequence is legal somewhere; jointly legal sequences sign alike on any ways."""
    for seed in range(120):
        rng = random.Random(seed)
        grammar = random_grammar(seed)
        deciders = Deciders(grammar)
        live = deciders.live_terminals
        queries = [Query(rng.choice(live), tuple(rng.choices(live, k=rng.randint(1, 4)))) for _ in range(15)]
        paths = deciders.witness_paths(queries)
        for query, path in zip(queries, paths, strict=True):
            assert (path[0] >= 0) == (not deciders.is_never_legal((query.left,), query.sequence)), (seed, query)
        for query, path in zip(queries, paths, strict=True):
            mine = [q for q in queries if q.left == query.left]
            signed = deciders.signatures(mine, [0] * len(mine), path[None, None, :])
            for one, bits in zip(mine, signed.tolist(), strict=True):
                if one == query:
                    assert bits == [int(path[0] >= 0)], (seed, query)
                if deciders.prover().is_jointly_legal(query.left, query.sequence, one.sequence):
                    assert bits == [int(path[0] >= 0)], (seed, query, one)
