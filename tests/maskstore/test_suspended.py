"""Suspended parses against parsing on whole stacks: lists that are copied, all actions followed."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from engine_cases import longest, random_longest_grammar
from naive_engine import NaiveEngine

from maskwright.analysis.lr.bisimulation import bisimulate
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.maskstore.automaton._hash_kernels import slot_of
from maskwright.maskstore.automaton.exploration_tables import ACCEPTED, FIRST_STATE, REFUSED
from maskwright.maskstore.automaton.suspended import NEVER_LEGAL, Suspended, explore
from maskwright.maskstore.tokens.rests import WHATEVER, Rests

Rest = tuple[tuple[int, ...], frozenset[int] | None]


def random_stack(tables: LrTables, rng: random.Random) -> tuple[int, ...]:
    """A path of the LR(0) automaton from the start state, the top last."""
    stack = [rng.randrange(len(tables.action))]
    while stack[-1] != 0 and len(stack) < 60:
        state = stack[-1]
        below = tables.predecessors[tables.predecessor_start[state] : tables.predecessor_start[state + 1]].tolist()
        stack.append(min(below) if len(stack) > 12 else rng.choice(below))
    return tuple(reversed(stack))


def accepts(suspended: Suspended, root: int, stack: tuple[int, ...]) -> bool:
    """What the suspended states say of a stack, read from the top."""
    number = int(suspended.root_of[root])
    if number == NEVER_LEGAL:
        return False
    begin, end = (int(suspended.root_start[number + i]) for i in range(2))
    cells = suspended.root_cell[begin:end].tolist()
    if stack[-1] not in cells:
        return False
    state = int(suspended.root_state[begin + cells.index(stack[-1])])
    for cell in reversed(stack[:-1]):
        if state < FIRST_STATE:
            break
        steps = suspended.steps
        key = state * len(suspended.parser.action) + cell
        slot = slot_of(key, steps.keys, steps.slots)
        assert steps.slots[slot] >= 0, f"state {state} has no step for cell {cell}"
        state = int(steps.result[steps.slots[slot]])
    assert state in (REFUSED, ACCEPTED), "the bottom was reached and nothing is decided"
    return state == ACCEPTED


def naively_accepts(naive: NaiveEngine, rest: Rest, stack: tuple[int, ...]) -> bool:
    symbols, last = rest
    stacks = frozenset({stack})
    for column in symbols:
        stacks = naive.shift(stacks, column)
    end = naive.tables.n_terminals
    return bool(stacks) and (
        last is None
        or any(
            naive.accepts_end(naive.root._replace(stacks=stacks)) if column == end else naive.shift(stacks, column)
            for column in last
        )
    )


def prepared(seed: int) -> tuple[LrTables, NaiveEngine]:
    grammar = random_longest_grammar(seed)
    tables, naive = bisimulate(build_lr_tables(grammar)), NaiveEngine(grammar)
    naive.tables = tables
    return tables, naive


def every_rest(tables: LrTables, rng: random.Random) -> list[Rest]:
    columns = range(tables.n_terminals)
    rests: list[Rest] = []
    for n in range(4):
        for symbols in itertools.product(columns, repeat=n):
            ends = [frozenset(rng.sample(range(tables.n_terminals + 1), rng.randint(1, tables.n_terminals)))]
            rests += [(symbols, last) for last in ([None] if n else []) + ends]
    return rng.sample(rests, min(150, len(rests)))


@pytest.mark.parametrize("seed", range(25))
def test_verdicts_are_those_of_whole_stacks(seed: int) -> None:
    tables, naive = prepared(seed)
    rng = random.Random(seed)
    rests = Rests(tables.n_terminals + 1)
    wanted = every_rest(tables, rng)
    roots = [(rests.before(list(s), WHATEVER if last is None else rests.end(last)), 0) for s, last in wanted]
    allowed = np.ones((1, len(tables.action)), np.bool_)
    suspended = explore(tables, np.zeros(len(tables.action), np.int32), rests, roots, allowed)
    stacks = [random_stack(tables, rng) for _ in range(25)]
    verdicts = set()
    for root, rest in enumerate(wanted):
        for stack in stacks:
            verdict = accepts(suspended, root, stack)
            assert verdict == naively_accepts(naive, rest, stack), (rest, stack)
            verdicts.add(verdict)
            if suspended.root_of[root] == NEVER_LEGAL:
                assert not verdict
    assert verdicts == {True, False}


def test_only_the_states_allowed_on_top_are_asked() -> None:
    tables, naive = prepared(0)
    rests = Rests(tables.n_terminals + 1)
    columns = range(tables.n_terminals)
    roots = [(rests.before([column], WHATEVER), kind) for column in columns for kind in (0, 1)]
    allowed = np.ones((2, len(tables.action)), np.bool_)
    allowed[1] = False
    allowed[1, 0] = True
    suspended = explore(tables, np.zeros(len(tables.action), np.int32), rests, roots, allowed)
    for root, (rest, kind) in enumerate(roots):
        expected = naively_accepts(naive, ((rests.symbols[rest],), None), (0,))
        if kind == 1:
            assert accepts(suspended, root, (0,)) == expected
            assert (suspended.root_of[root] != NEVER_LEGAL) == expected


def test_equal_rests_are_one() -> None:
    rests = Rests(5)
    assert rests.before([1, 2, 3], WHATEVER) == rests.before([1], rests.before([2, 3], WHATEVER))
    assert rests.end(frozenset({1, 2})) == rests.end(frozenset({2, 1})) != rests.end(frozenset({1}))
    assert len(rests.symbols) == 3 and rests.sets[0] == frozenset()
    bits = rests.set_bits()
    assert [int(row[0]) for row in bits] == [0, 6, 2]


def test_what_every_stack_accepts_is_decided_at_once() -> None:
    """In S : a S | b, both terminals are acceptable after a, whatever is below: no suspended state is left."""
    tables = bisimulate(build_lr_tables(longest('start: "a" start | "b"')))
    rests = Rests(tables.n_terminals + 1)
    a = int(tables.terminal_column[0])
    roots = [(rests.before([a] * n, WHATEVER), 0) for n in (1, 2, 5)]
    allowed = (tables.accessing == a)[None, :]
    suspended = explore(tables, np.zeros(len(tables.action), np.int32), rests, roots, allowed)
    assert suspended.n_classes == 0 and set(suspended.root_state.tolist()) == {ACCEPTED}
    assert len(set(suspended.root_of.tolist())) == 1, "all three are always legal there, hence one"
