"""The tables are LALR(1): state by state those of Lark's analysis and of canonical LR(1) merged by core, and Earley's language."""

from __future__ import annotations

import random
import re
import sys
import time

import numpy as np
import pytest
from grammars import make_grammar, random_grammar
from naive import Earley, prefixes
from naive_lr import (
    MendedAnalyzer,
    TooMany,
    accepts_end,
    all_words,
    assert_same,
    lark_machine,
    merged_lr1,
    shift,
    unchecked_tables,
)
from own_process import prints_the_same
from shares import share

from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError
from maskwright.analysis.grammar import Grammar, Rule, Terminal
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.analysis.lr import automaton as automaton_module
from maskwright.analysis.lr.automaton import build_automaton
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT
from maskwright.analysis.lr.loops import endless_cycle
from maskwright.analysis.lr.tables import build_lr_tables

JSON = r"""
start: value
value: object | array | STRING | NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: STRING ":" value
STRING: /"[^"]*"/
NUMBER: /[0-9]+/
"""
CHUNK = 30


def named_grammar(name: str) -> Grammar:
    return parse_grammar(JSON, name="json") if name == "json" else load_grammar(name)


@pytest.mark.parametrize("name", ["lark:python", "lark:lark", "json"])
def test_real_grammars_equal_lark(name: str) -> None:
    grammar = reduce(named_grammar(name))
    tables = build_lr_tables(grammar)
    assert_same(tables, lark_machine(grammar), grammar)
    assert tables.n_conflicts == (10 if name == "lark:python" else 0)


@pytest.mark.parametrize("chunk", share(range(12), 1))
def test_random_grammars_equal_merged_lr1_and_lark(chunk: int) -> None:
    """Lark's own look-aheads are sometimes too large; with its `includes` mended they are these, but for endless grammars."""
    n_conflicted = n_endless = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        grammar = reduce(random_grammar(seed))
        tables = unchecked_tables(grammar)
        assert_same(tables, merged_lr1(grammar), grammar)
        assert_same(tables, lark_machine(grammar), grammar, may_reduce_more=True)
        # where states read each other in a circle Lark's `digraph` gives all of them one set object, and adds to it later
        is_endless = endless_cycle(grammar) is not None
        assert_same(tables, lark_machine(grammar, MendedAnalyzer), grammar, may_reduce_more=is_endless)
        n_conflicted += tables.n_conflicts > 0
        n_endless += is_endless
    assert CHUNK // 10 < n_conflicted < CHUNK and n_endless < CHUNK // 2


def test_lark_looks_ahead_too_far() -> None:
    """After `b b` of this grammar an `a` ends nothing that b B could be; Lark says it does. Ours is LALR(1) by definition."""
    grammar = reduce(random_grammar(320))
    tables = unchecked_tables(grammar)
    assert assert_same(tables, merged_lr1(grammar), grammar) == 0
    assert assert_same(tables, lark_machine(grammar), grammar, may_reduce_more=True) > 0
    assert assert_same(tables, lark_machine(grammar, MendedAnalyzer), grammar) == 0


def test_json_equals_merged_lr1() -> None:
    grammar = reduce(named_grammar("json"))
    assert_same(build_lr_tables(grammar), merged_lr1(grammar), grammar)


def test_lookaheads_finer_than_slr() -> None:
    """The textbook's assignment grammar is LALR(1) and not SLR(1); the one after it is LR(1) and not LALR(1)."""
    assert build_lr_tables(make_grammar("S : L = R | R\nL : * R | id\nR : L")).n_conflicts == 0
    grammar = make_grammar("S : a A d | b B d | a B e | b A e\nA : c\nB : c")
    assert build_lr_tables(grammar).n_conflicts == 2


@pytest.mark.parametrize("chunk", share(range(8), 1))
def test_accepts_what_earley_accepts(chunk: int) -> None:
    """All actions together accept just the language, and every prefix of it that has a reading lives on."""
    n_words = 0
    for seed in range(500 + chunk * 15, 500 + (chunk + 1) * 15):
        grammar = random_grammar(seed)
        earley = Earley(grammar)
        tables = build_lr_tables(grammar)
        length = 4 if grammar.n_terminals < 4 else 3
        known = prefixes(grammar, length)
        for word in all_words(grammar.n_terminals, length):
            if word[:-1] not in known:
                continue
            stacks = [(0,)]
            for terminal in word:
                stacks = shift(tables, stacks, terminal)
            n_words += 1
            assert bool(stacks) == (word in known), (seed, word)
            assert accepts_end(tables, stacks) == (word in known and earley.is_word(earley.read_word(word))), (
                seed,
                word,
            )
    assert n_words > 250


def test_derived_arrays() -> None:
    """Predecessors, accessing symbols and default rules, from their definitions."""
    n_default = n_plain = 0
    for grammar in [random_grammar(seed) for seed in range(150)] + [load_grammar("lark:python")]:
        tables = unchecked_tables(grammar)
        below: dict[int, set[int]] = {state: set() for state in range(tables.n_states)}
        entered: dict[int, set[int]] = {state: set() for state in range(tables.n_states)}
        for state in range(tables.n_states):
            for column in range(tables.n_terminals + 1):
                for action in tables.actions(state, column):
                    if 0 < action < ACCEPT:
                        below[action - 1].add(state)
                        entered[action - 1].add(column)
            for nonterminal, target in enumerate(tables.goto[state].tolist()):
                if target >= 0:
                    below[target].add(state)
                    entered[target].add(tables.n_terminals + 1 + nonterminal)
            cells = [tables.actions(state, column) for column in range(tables.n_terminals + 1)]
            whole = {action for cell in cells for action in cell}
            default = int(tables.default_rule[state])
            if len(whole) == 1 and min(whole) < 0:
                assert default == -min(whole) - 1
                n_default += 1
            else:
                assert default == -1
                n_plain += 1
        start = tables.predecessor_start
        for state in range(tables.n_states):
            assert tables.predecessors[start[state] : start[state + 1]].tolist() == sorted(below[state])
            assert entered[state] == ({int(tables.accessing[state])} if state else set())
        assert below[0] == set() and tables.accessing[0] == -1
        reduced = reduce(grammar)
        used = {symbol for rule in reduced.rules for symbol in rule.rhs}
        assert tables.terminal_column.tolist() == [t if t in used else -1 for t in range(grammar.n_terminals)]
        assert tables.rule_lhs.tolist() == [rule.lhs - grammar.n_terminals for rule in reduced.rules]
        assert tables.rule_length.tolist() == [len(rule.rhs) for rule in reduced.rules]
    assert n_default > 500 and n_plain > 500


def test_arrays_cannot_be_written() -> None:
    tables = build_lr_tables(make_grammar("S : a S b | "))
    arrays = [value for value in vars(tables).values() if isinstance(value, np.ndarray)]
    assert len(arrays) == 11
    for array in arrays:
        assert array.dtype == np.int32 and array.flags.c_contiguous and not array.flags.writeable
    assert repr(tables) == "<LrTables: 5 states, 2 terminals, 1 nonterminals, 2 rules, 0 conflicts>"


def test_states_are_numbered_breadth_first() -> None:
    for seed in range(60):
        found = build_automaton(reduce(random_grammar(seed)))
        order = [0]
        for state in order:
            order += [t for t in found.transitions[state].tolist() if t >= 0 and t not in order]
        assert order == list(range(found.n_states))


def test_alternatives_and_policies() -> None:
    """Dangling else, two rules for one text, and both: shift first, then reductions ascending; "shift" keeps the first."""
    grammar = make_grammar("S : A | B | x y | I\nA : x\nB : x C\nC : | D\nD : | y\nI : i I | i I e I | o")
    every, first = unchecked_tables(grammar), unchecked_tables(grammar, "shift")
    assert first.n_conflicts == 0 and len(first.alternatives) == 0
    n_cells = set()
    for state, column in np.argwhere(every.action >= CONFLICT).tolist():
        actions = every.actions(state, column)
        assert len(actions) > 1 and list(actions) == sorted(actions, reverse=True)
        assert all(action > 0 for action in actions[:1]) or all(action < 0 for action in actions)
        assert first.action[state, column] == actions[0]
        n_cells.add((actions[0] > 0, len(actions)))
    assert n_cells == {(True, 2), (False, 2), (False, 3)}
    assert ((every.action == first.action) | (every.action >= CONFLICT)).all()
    with pytest.raises(MaskwrightError, match="conflicts is 'first'; expected one of 'all', 'shift'"):
        build_lr_tables(grammar, "first")  # type: ignore[arg-type]


def test_accepting_conflicts_with_reductions() -> None:
    grammar = make_grammar("S : S N | a\nN : ")
    for policy, expected in (("all", 2), ("shift", 1)):
        tables = unchecked_tables(grammar, policy)  # type: ignore[arg-type]
        state = int(tables.goto[0, 0])
        actions = tables.actions(state, tables.n_terminals)
        assert actions[0] == ACCEPT and len(actions) == expected


def chain(depth: int) -> Grammar:
    """An expression grammar of `depth` levels of precedence: n0 : n1 | n0 t0 n1, and so on."""
    rules = []
    for level in range(depth):
        here = depth + 1 + level
        if level + 1 < depth:
            rules += [Rule(here, (here + 1,)), Rule(here, (here, level, here + 1))]
        else:
            rules.append(Rule(here, (depth,)))
    terminals = tuple(Terminal(f"T{t}", "x") for t in range(depth + 1))
    return Grammar("chain", terminals, tuple(f"n{i}" for i in range(depth)), tuple(rules), start=depth + 1)


def test_deep_grammars_meet_no_recursion_limit() -> None:
    depth = 400
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(250)
    try:
        tables = build_lr_tables(chain(depth))
    finally:
        sys.setrecursionlimit(limit)
    assert tables.n_conflicts == 0
    stacks = [(0,)]
    for terminal in (depth, 0, depth, depth - 2, depth, 3, depth):
        stacks = shift(tables, stacks, terminal)
    assert accepts_end(tables, stacks)
    assert not shift(tables, stacks, depth)


def test_python_takes_well_under_a_second() -> None:
    grammar = load_grammar("lark:python")
    begin = time.process_time()
    build_lr_tables(grammar)
    assert time.process_time() - begin < 1


@pytest.mark.slow
def test_ten_thousand_rules() -> None:
    """2,000 nonterminals over 500 terminals, each reached from the one before; some 30,000 states."""
    rng, n_terminals, n = random.Random(0), 500, 2000
    rules = []
    for i in range(n):
        rules.append(Rule(n_terminals + i, (rng.randrange(n_terminals), n_terminals + min(i + 1, n - 1))))
        rules.append(Rule(n_terminals + i, (rng.randrange(n_terminals),)))
        for _ in range(3):
            first = rng.randrange(n_terminals) if rng.random() < 0.8 else n_terminals + rng.randrange(i, n)
            rest = (
                rng.randrange(n_terminals + n if rng.random() < 0.5 else n_terminals) for _ in range(rng.randrange(4))
            )
            rules.append(Rule(n_terminals + i, (first, *rest)))
    terminals = tuple(Terminal(f"T{t}", "x") for t in range(n_terminals))
    grammar = reduce(Grammar("large", terminals, tuple(f"n{i}" for i in range(n)), tuple(rules), start=n_terminals))
    assert len(grammar.rules) > 9_900
    begin = time.process_time()
    tables = unchecked_tables(grammar)
    assert tables.n_states > 20_000 and time.process_time() - begin < 40


def exponential(n: int) -> Grammar:
    """An LR(0) automaton with a state for each subset of n: S : Ai; Ai : t Ai for t other than i, or e_i."""
    rules = [Rule(2 * n, (2 * n + 1 + i,)) for i in range(n)]
    for i in range(n):
        rules += [Rule(2 * n + 1 + i, (t, 2 * n + 1 + i)) for t in range(n) if t != i]
        rules.append(Rule(2 * n + 1 + i, (n + i,)))
    terminals = tuple(Terminal(f"T{t}", "x") for t in range(2 * n))
    return Grammar("subsets", terminals, ("s", *(f"a{i}" for i in range(n))), tuple(rules), start=2 * n)


def test_the_limits_name_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    assert build_automaton(exponential(6)).n_states > 2**6
    monkeypatch.setattr(automaton_module, "MAX_STATES", 500)
    with pytest.raises(
        LimitError,
        match=r"grammar subsets: its LR automaton has at least 501 states over 37 symbols, past the limit of 500 states; "
        r"rules of 'a\d+' are under way in \d+ states",
    ):
        build_lr_tables(exponential(12))
    long = make_grammar("S : a b c d e f g h a b c d e f g h a b c d e f g h a b c d e f g h a b c d e f")
    monkeypatch.setattr(automaton_module, "MAX_CELLS", 300)
    with pytest.raises(LimitError, match="past the limit of 300 cells; rules of 'S' are under way"):
        build_lr_tables(long)
    monkeypatch.setattr(automaton_module, "MAX_TRANSITIONS", 20)
    with pytest.raises(LimitError, match="past the limit of 20 transitions; rules of 'S' are under way"):
        build_automaton(long)


def test_an_empty_language_is_refused() -> None:
    with pytest.raises(GrammarError, match="start symbol 'S' is unproductive"):
        build_lr_tables(make_grammar("S : a S"))


@pytest.mark.parametrize(
    ("name", "seed"), share([("lark:lark", "4711"), *(("lark:python", seed) for seed in ("4711", "0", "1"))], 1)
)
def test_the_same_tables_under_every_hash_seed(name: str, seed: str) -> None:
    script = (
        "import hashlib, numpy, maskwright\n"
        "from maskwright.analysis.lr.bisimulation import bisimulate\n"
        "from maskwright.analysis.lr.conflicts import conflicts\n"
        "from maskwright.analysis.lr.tables import build_lr_tables\n"
        f"grammar = maskwright.load_grammar({name!r})\n"
        "tables = build_lr_tables(grammar)\n"
        "digest = hashlib.sha256()\n"
        "for found in (tables, bisimulate(tables), build_lr_tables(grammar, 'shift')):\n"
        "    for value in vars(found).values():\n"
        "        digest.update(numpy.asarray(value).tobytes())\n"
        "for conflict in conflicts(grammar):\n"
        "    digest.update(repr(conflict).encode())\n"
        "print(digest.hexdigest())\n"
    )
    assert re.fullmatch(r"[0-9a-f]{64}\n", prints_the_same(script, seed))


def test_many_readings_are_kept_apart() -> None:
    """The helper that follows all actions really is stopped where a grammar has no end (what `loops` refuses)."""
    with pytest.raises(TooMany):
        shift(unchecked_tables(make_grammar("S : N S a | b\nN : ")), [(0,)], 1)
