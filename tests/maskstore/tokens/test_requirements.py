"""What tokens require in each lexer state, against reading every token's bytes one by one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from engine_cases import (
    MAKERS,
    longest,
    random_layout_grammar,
    random_longest_grammar,
    random_vocabulary,
    vocabulary_of,
)
from naive import states_after
from naive_compile import sequence_of
from shares import share

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.encoding import Transducer
from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.automaton.stack_automaton import build_automaton
from maskwright.maskstore.tokens import _kernels
from maskwright.maskstore.tokens.continuations import WHATEVER
from maskwright.maskstore.tokens.events import ABSOLUTE, PLAIN, Move
from maskwright.maskstore.tokens.requirements import Requirements
from maskwright.maskstore.tokens.state_tokens import NO_LINE_BREAKS, DepthCase, StateTokens
from maskwright.maskstore.vocabulary import Vocabulary

Alternative = tuple[tuple[int, ...], frozenset[int] | None]


def read(transducer: Transducer, state: int, data: bytes) -> tuple[int, tuple[int, ...]] | None:
    """The state after some bytes and what is emitted on the way; None if the lexer refuses them."""
    emitted: tuple[int, ...] = ()
    for byte in data:
        klass = int(transducer.byte_class[byte])
        emitted += transducer.outputs[int(transducer.output[state, klass])]
        state = int(transducer.next_state[state, klass])
        if state < 0:
            return None
    return state, emitted


def spelled(required: Requirements, continuation: int) -> Alternative:
    symbols = []
    while continuation >= 0:
        symbols.append(required.continuations.symbols[continuation])
        continuation = required.continuations.next_continuation[continuation]
    return tuple(symbols), None if continuation == WHATEVER else required.continuations.sets[-1 - continuation]


def groups(required: Requirements, state: StateTokens) -> list[list[int]]:
    ids, starts = required.classes.tokens(state.members, state.member_start)
    return [ids[begin:end].tolist() for begin, end in pairwise(starts.tolist())]


def alternatives(required: Requirements, depth_case: DepthCase, group: int) -> set[tuple[int, Alternative]]:
    here = np.flatnonzero(depth_case.group == group).tolist()
    return {
        (int(depth_case.group_line_breaks[i]), spelled(required, int(depth_case.group_continuation[i]))) for i in here
    }


def can_be(required: Requirements, emitted: tuple[int, ...]) -> bool:
    """Whether some parser can read terminals, newlines that end, and in modes (see test_feasible)."""
    tables, newline = required._tables, required.newline
    states = every = set(range(tables.n_states))
    for terminal in emitted:
        if terminal >= required.mode_code:
            states = {state for state in states if required.modes.of_state[state] == terminal - required.mode_code}
        elif terminal == newline or terminal >= required.grammar.n_terminals:
            states = every if states else states
        else:
            column = required.column_of[terminal]
            states = states_after(tables, states, column) if column >= 0 else set()
    return bool(states)


def prepared(make: Any, seed: int) -> tuple[Requirements, Vocabulary]:
    grammar = make(seed)
    vocabulary = random_vocabulary(grammar, seed)
    try:
        return build_automaton(grammar, vocabulary).required, vocabulary
    except GrammarError as error:
        reasons = (
            "one lexer cannot serve both",
            "so no newline could be read there",
            "terminals that compete depend on them",
        )
        assert any(reason in str(error) for reason in reasons)
        pytest.skip("the grammar has no store")


@pytest.mark.parametrize("seed", share(range(12), 3))
@pytest.mark.parametrize("make", [random_longest_grammar, random_layout_grammar])
def test_each_token_that_the_lexer_takes_is_in_one_group(make: Any, seed: int) -> None:
    required, vocabulary = prepared(make, seed)
    transducer = required.transducer
    text = vocabulary.text_ids().tolist()
    assert len(required.states) == transducer.n_states
    for number, state in enumerate(required.states):
        members = [token for group in groups(required, state) for token in group]
        taken = {token: read(transducer, number, vocabulary.tokens[token]) for token in text}
        lexed = {token: found[1] for token, found in taken.items() if found is not None}
        assert sorted(set(members) - set(vocabulary.eos)) == [
            t for t, emitted in lexed.items() if can_be(required, emitted)
        ]
        assert len(members) == len(set(members))
        for group in groups(required, state):
            assert group == sorted(group)


@pytest.mark.parametrize("seed", share(range(12), 3))
@pytest.mark.parametrize("make", [random_longest_grammar, random_layout_grammar])
def test_groups_do_the_same_and_the_first_thing_required_is_what_is_emitted(make: Any, seed: int) -> None:
    required, vocabulary = prepared(make, seed)
    transducer, layout = required.transducer, required.grammar.layout
    for number, state in enumerate(required.states):
        for index, group in enumerate(groups(required, state)):
            if group[0] in vocabulary.eos:
                continue
            outcomes = {read(transducer, number, vocabulary.tokens[token]) for token in group}
            assert None not in outcomes
            emitted = {found[1] for found in outcomes if found}
            assert len(emitted) == 1
            columns = tuple(required.column_of[t] for t in next(iter(emitted)))
            for depth, depth_case in enumerate(state.depth_cases):
                if -1 in columns:
                    assert not alternatives(required, depth_case, index)
                for breaks, (symbols, _) in alternatives(required, depth_case, index):
                    if layout is None:
                        assert breaks == NO_LINE_BREAKS and symbols[: len(columns)] == columns
                        continue
                    newline = required.column_of[layout.newline]
                    passed = tuple(c for before, _ in required.line_breaks[breaks] for c in before)
                    found = passed + symbols
                    wanted = tuple(c for c in columns if c != newline)
                    assert found[: len(wanted)] == wanted
                    if depth == 0 and required.bracket == {}:
                        assert len(required.line_breaks[breaks]) >= columns.count(newline)


@pytest.mark.parametrize("seed", share(range(12), 3))
@pytest.mark.parametrize("make", MAKERS)
def test_what_no_parser_can_read_is_not_followed(make: Any, seed: int) -> None:
    try:
        required, _ = prepared(make, seed)
    except LimitError:
        pytest.skip("the grammar has no store")
    assert required.n_sequences > 1
    assert all(can_be(required, sequence_of(required, number)) for number in range(required.n_sequences))


@pytest.mark.parametrize(("n", "n_keys"), [(0, 0), (0, 3), (1, 1), (500, 7), (500, 2000)])
def test_sorting_by_counting_is_stable(n: int, n_keys: int) -> None:
    keys = np.random.default_rng(n + n_keys).integers(0, max(1, n_keys), n).astype(np.int32)
    starts, order = np.zeros(n_keys + 1, np.int64), np.empty(n, np.int64)
    _kernels.stable_order(keys, starts, order)
    assert order.tolist() == np.argsort(keys, kind="stable").tolist()
    assert starts.tolist() == np.searchsorted(np.sort(keys), np.arange(n_keys + 1)).tolist()


def keywords_in_as_many_states(n: int) -> Grammar:
    """After each of n keywords a name, and then just one keyword: a mode each."""
    pairs = "".join(f'r{i}: "k{i}" NAME "e{i}"\n' for i in range(n))
    return parse_grammar(f'start: ({" | ".join(f"r{i}" for i in range(n))})+\n{pairs}NAME: /[a-z]+/\n%ignore " "\n')


def test_work_is_in_proportion_to_keywords_and_modes() -> None:
    vocabulary = vocabulary_of(
        b" e1 k", b" k1 x ", b"x e", b" x e1 k2", b" ke", singles=b"abcdefghijklmnopqrstuvwxyz0123456789 "
    )
    small, large = (build_automaton(keywords_in_as_many_states(n), vocabulary).required for n in (100, 200))
    assert (small.transducer.n_modes, large.transducer.n_modes) == (101, 201)
    assert large.n_sequences < 2.2 * small.n_sequences


@pytest.mark.parametrize("seed", share(range(12), 3))
def test_what_the_lexeme_under_way_may_become_is_asked_last(seed: int) -> None:
    required, vocabulary = prepared(random_longest_grammar, seed)
    transducer, ignored = required.transducer, required.grammar.ignored
    for number, state in enumerate(required.states):
        (depth_case,) = state.depth_cases
        for index, group in enumerate(groups(required, state)):
            if group[0] in vocabulary.eos:
                continue
            after, emitted = read(transducer, number, vocabulary.tokens[group[0]]) or (0, ())
            columns = tuple(required.column_of[t] for t in emitted)
            if -1 in columns:
                continue
            live = transducer.live[after]
            found = {continuation for _, continuation in alternatives(required, depth_case, index)}
            if not live or ignored.intersection(live):
                assert found == {(columns, None)}
                continue
            becomes = frozenset(required.column_of[t] for t in live) - {-1}
            assert ((columns, becomes) in found) == bool(becomes)
            assert len(found) >= bool(becomes) and (transducer.fallback[after] >= 0 or len(found) <= 1)


LINES = r"""
start: (st | _NEWLINE)*
st: NAME _NEWLINE | "(" NAME ")" _NEWLINE | NAME ":" _NEWLINE _INDENT st+ _DEDENT
NAME: "a"
_NEWLINE: /(\n[ \t]*)+/
%ignore " "
%declare _INDENT _DEDENT
"""


def test_paths_and_views_of_newlines() -> None:
    """Columns: absolute after a line feed in the token, relative else; a bracket view drops newlines until the bracket closes."""
    tokens = (b"\n  a", b"  a", b")\n a", b"\n\ta", b"a\n")
    required = build_automaton(longest(LINES), vocabulary_of(*tokens, singles=b"a\n ():")).required
    transducer, layout = required.transducer, required.grammar.layout
    assert layout is not None
    names = required.grammar.terminal_number
    column_of = required.column_of
    name, closing = column_of[names["NAME"]], column_of[names["RPAR"]]

    def ask(text: bytes, token: int, depth: int) -> set[tuple[Any, Alternative]]:
        state, _ = read(transducer, 0, text) or (0, ())
        index = next(i for i, group in enumerate(groups(required, required.states[state])) if token in group)
        depth_cases = required.states[state].depth_cases
        found = alternatives(required, depth_cases[min(depth, len(depth_cases) - 1)], index)
        return {(required.line_breaks[breaks], continuation) for breaks, continuation in found}

    def ways(found: set[tuple[Any, Alternative]]) -> set[Any]:
        return {(breaks, symbols) for breaks, (symbols, _) in found}

    assert ways(ask(b"a", 0, 0)) == {
        ((((), Move(ABSOLUTE, 2, 2)),), (name,))
    }  # NAME has been emitted with its last byte
    assert ways(ask(b"a\n ", 1, 0)) == {((((), Move(PLAIN, 2, 2)),), (name,))}
    assert ways(ask(b"a", 3, 0)) == {((((), Move(ABSOLUTE, 8, 8)),), (name,))}
    assert ways(ask(b"(a", 0, 1)) == {((), (name,))}
    assert ways(ask(b"(a", 2, 1)) == {((((closing,), Move(ABSOLUTE, 1, 1)),), (name,))}
    assert ways(ask(b"(a", 2, 2)) == {((), (closing, name))}
