"""ConfigurationSets parses against parsing on whole stacks by the reference parser, all actions followed."""

from __future__ import annotations

import itertools
import random
from functools import reduce

import numpy as np
import pytest
from engine_cases import longest, random_longest_grammar
from shares import share

from maskwright.analysis.lr.bisimulation import bisimulate
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.decoding.reference.parser import Parser, Stack
from maskwright.maskstore.automaton.configuration_sets import NEVER_LEGAL, ConfigurationSets, explore
from maskwright.maskstore.automaton.exploration_tables import ACCEPTED, FIRST_STATE, REFUSED
from maskwright.maskstore.tokens.continuations import WHATEVER, Continuations

Continuation = tuple[tuple[int, ...], frozenset[int] | None]


def random_stack(tables: LrTables, rng: random.Random) -> tuple[int, ...]:
    """A path of the LR(0) automaton from the start state, the top last."""
    stack = [rng.randrange(len(tables.action))]
    while stack[-1] != 0 and len(stack) < 60:
        state = stack[-1]
        below = tables.predecessors[tables.predecessor_start[state] : tables.predecessor_start[state + 1]].tolist()
        stack.append(min(below) if len(stack) > 12 else rng.choice(below))
    return tuple(reversed(stack))


def accepts(configuration_sets: ConfigurationSets, root: int, stack: tuple[int, ...]) -> bool:
    """What the configuration sets say of a stack, read from the top."""
    number = int(configuration_sets.root_of[root])
    if number == NEVER_LEGAL:
        return False
    begin, end = (int(configuration_sets.root_start[number + i]) for i in range(2))
    cells = configuration_sets.root_cell[begin:end].tolist()
    if stack[-1] not in cells:
        return False
    state = int(configuration_sets.root_state[begin + cells.index(stack[-1])])
    followed, parser = configuration_sets.followed, configuration_sets.parser
    pair_of = {key: pair for pair, key in enumerate(followed.pairs.keys[: configuration_sets.n_pairs].tolist())}
    for last, cell in itertools.pairwise(reversed(stack)):
        if state < FIRST_STATE:
            break
        pair = pair_of[state * len(parser.action) + last]
        below = parser.predecessors[slice(*parser.predecessor_start[last : last + 2])].tolist()
        edges = followed.after[slice(*followed.pairs.edge_start[pair : pair + 2])].tolist()
        assert len(below) == len(edges)
        state = edges[below.index(cell)]
    assert state in (REFUSED, ACCEPTED), "the bottom was reached and nothing is decided"
    return state == ACCEPTED


def naively_accepts(parser: Parser, continuation: Continuation, stack: tuple[int, ...]) -> bool:
    symbols, last = continuation
    stacks = parser.shift_all((reduce(Stack.push, stack[1:], Stack(stack[0], None)),), symbols)
    return bool(stacks) and (last is None or any(parser.shift(stacks, column).stacks for column in last))


def prepared(seed: int) -> tuple[LrTables, Parser]:
    tables = bisimulate(build_lr_tables(random_longest_grammar(seed)))
    return tables, Parser(tables, "g")


def every_continuation(tables: LrTables, rng: random.Random) -> list[Continuation]:
    columns = range(tables.n_terminals)
    continuations: list[Continuation] = []
    for n in range(4):
        for symbols in itertools.product(columns, repeat=n):
            ends = [frozenset(rng.sample(range(tables.n_terminals + 1), rng.randint(1, tables.n_terminals)))]
            continuations += [(symbols, last) for last in ([None] if n else []) + ends]
    return rng.sample(continuations, min(150, len(continuations)))


@pytest.mark.parametrize("seed", share(range(25), 6))
def test_verdicts_are_those_of_whole_stacks(seed: int) -> None:
    tables, parser = prepared(seed)
    rng = random.Random(seed)
    continuations = Continuations(tables.n_terminals + 1)
    wanted = every_continuation(tables, rng)
    roots = [
        (continuations.before(list(s), WHATEVER if last is None else continuations.end(last)), 0) for s, last in wanted
    ]
    allowed = np.ones((1, len(tables.action)), np.bool_)
    configuration_sets = explore(tables, np.zeros(len(tables.action), np.int32), continuations, roots, allowed)
    stacks = [random_stack(tables, rng) for _ in range(25)]
    verdicts = set()
    for root, continuation in enumerate(wanted):
        for stack in stacks:
            verdict = accepts(configuration_sets, root, stack)
            assert verdict == naively_accepts(parser, continuation, stack), (continuation, stack)
            verdicts.add(verdict)
            if configuration_sets.root_of[root] == NEVER_LEGAL:
                assert not verdict
    assert verdicts == {True, False}


def test_only_the_states_allowed_on_top_are_asked() -> None:
    tables, parser = prepared(0)
    continuations = Continuations(tables.n_terminals + 1)
    columns = range(tables.n_terminals)
    roots = [(continuations.before([column], WHATEVER), kind) for column in columns for kind in (0, 1)]
    allowed = np.ones((2, len(tables.action)), np.bool_)
    allowed[1] = False
    allowed[1, 0] = True
    configuration_sets = explore(tables, np.zeros(len(tables.action), np.int32), continuations, roots, allowed)
    for root, (continuation, kind) in enumerate(roots):
        expected = naively_accepts(parser, ((continuations.symbols[continuation],), None), (0,))
        if kind == 1:
            assert accepts(configuration_sets, root, (0,)) == expected
            assert (configuration_sets.root_of[root] != NEVER_LEGAL) == expected


def test_equal_rests_are_one() -> None:
    continuations = Continuations(5)
    assert continuations.before([1, 2, 3], WHATEVER) == continuations.before(
        [1], continuations.before([2, 3], WHATEVER)
    )
    assert (
        continuations.end(frozenset({1, 2}))
        == continuations.end(frozenset({2, 1}))
        != continuations.end(frozenset({1}))
    )
    assert len(continuations.symbols) == 3 and continuations.sets[0] == frozenset()
    bits = continuations.set_bits()
    assert [int(row[0]) for row in bits] == [0, 6, 2]


def test_what_every_stack_accepts_is_decided_at_once() -> None:
    """In S : a S | b, both terminals are acceptable after a, whatever is below: no configuration set is left."""
    tables = bisimulate(build_lr_tables(longest('start: "a" start | "b"')))
    continuations = Continuations(tables.n_terminals + 1)
    a = int(tables.terminal_column[0])
    roots = [(continuations.before([a] * n, WHATEVER), 0) for n in (1, 2, 5)]
    allowed = (tables.accessing == a)[None, :]
    configuration_sets = explore(tables, np.zeros(len(tables.action), np.int32), continuations, roots, allowed)
    assert configuration_sets.n_classes == 0 and set(configuration_sets.root_state.tolist()) == {ACCEPTED}
    assert len(set(configuration_sets.root_of.tolist())) == 1, "all three are always legal there, hence one"
