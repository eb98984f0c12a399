"""The validation of LR tables: what is built passes, and what passes reads the beginnings of words and nothing else."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from coq_runs import needs_coq, verdicts
from coq_tables import HEAD, coq_symbols, coq_tables, listed
from grammars import make_grammar, random_grammar
from naive import is_prefix
from shares import parts, share

from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.kept import Cache
from maskwright.analysis.legality.certificate import Simulator
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.maskstore.verify import tables as table_checks
from maskwright.maskstore.verify.trusted import read_full_tables
from maskwright.maskstore.verify.viable import kernels, stuck_states
from maskwright.report import lr_tables
from maskwright.report.lr_tables import Validation, tables_digest, validate_lr_tables

NESTED = make_grammar("S : a S b | a b | c T\nT : T d | d")
PALINDROMES = make_grammar("S : a S a | b S b | a | b")
SUMS = parse_grammar('start: e\ne: e "+" e | A\nA: "a"')
LONGEST = 4
MODULES = [
    "grammar", "subset", "never_legal", "always_legal", "implication", "jointly_legal", "stack_automaton", "partial_stacks",
    "certificate", "tables", "viable",
]  # fmt: skip


def built(grammar: Grammar, conflicts: Any = "all") -> tuple[Grammar, LrTables]:
    return parsed_grammar(grammar, conflicts), build_lr_tables(grammar, conflicts)


def changed(tables: LrTables, part: str, at: tuple[int, ...], value: int) -> LrTables:
    array = getattr(tables, part).copy()
    array[at] = value
    return replace(tables, **{part: array})


def altered(tables: LrTables, rng: random.Random) -> LrTables:
    """The tables with one entry changed to another value that this entry may have."""
    part = rng.choice(("action", "action", "goto", "rule_lhs", "rule_length"))
    array = getattr(tables, part)
    at = tuple(rng.randrange(n) for n in array.shape)
    values = {
        "action": [0, 1 + rng.randrange(tables.n_states), -1 - rng.randrange(tables.n_rules)],
        "goto": [-1, rng.randrange(tables.n_states)],
        "rule_lhs": [rng.randrange(tables.n_nonterminals)],
        "rule_length": [max(0, int(array[at]) + rng.choice((-1, 1)))],
    }[part]
    return changed(tables, part, at, rng.choice(values))


@pytest.mark.parametrize("name", ["json", "lark:python", "c", "java"])
def test_the_library_is_validated(name: str) -> None:
    """Conflicts included: under "all" each action is there that some text needs."""
    assert str(validate_lr_tables(*built(load_grammar(name)))) == "validated"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["python", "sql", "go", "toml"])
def test_the_larger_library_is_validated(name: str) -> None:
    assert validate_lr_tables(*built(load_grammar(name))) == Validation()


@pytest.mark.parametrize("seed", share(range(400), 40))
def test_validated_tables_read_the_beginnings_of_words(seed: int) -> None:
    grammar, rng, n_right = random_grammar(seed), random.Random(seed), 0
    try:
        rules, tables = built(grammar)
    except MaskwrightError:
        return
    assert not validate_lr_tables(rules, tables).faults
    kinds: Counter[str] = Counter()
    for number in range(12):
        other = tables if number == 0 else altered(tables, rng)
        found = validate_lr_tables(rules, other)
        kinds[str(found)] += 1
        if found.faults or n_right == 3:
            continue
        n_right += 1
        simulator = Simulator(other)
        for length in range(1, LONGEST + 1):
            for word in itertools.product(range(grammar.n_terminals), repeat=length):
                is_read = bool(simulator.parse({(0,)}, word))
                if found.is_complete:
                    assert is_read == is_prefix(grammar, word), (number, word)
                else:
                    assert not is_read or is_prefix(grammar, word), (number, word)
    assert len(kinds) > 1, kinds


def test_a_dead_end_is_a_fault() -> None:
    """A shift to a state where nothing is read: sound and complete, but what has been read begins no word."""
    rules, tables = built(NESTED)
    row = np.zeros((1, tables.action.shape[1]), np.int32)
    action = np.concatenate([tables.action, row])
    goto = np.concatenate([tables.goto, np.full((1, tables.goto.shape[1]), -1, np.int32)])
    action[0, rules.terminal_number["b"]] = len(action)
    found = validate_lr_tables(rules, replace(tables, action=action, goto=goto))
    assert found.faults == (f"what leads to state {len(action) - 1} may begin no text of the grammar",)


def test_what_is_missing_is_a_fault_without_conflicts() -> None:
    rules, tables = built(NESTED)
    column = rules.terminal_number["d"]
    bare = tables.action.copy()
    bare[:, column] = 0
    found = validate_lr_tables(rules, replace(tables, action=bare))
    assert str(found) == "WRONG" and any("does not shift d" in each for each in found.faults)


def test_decided_conflicts_are_not_shown_to_be_complete() -> None:
    assert str(validate_lr_tables(*built(PALINDROMES))) == "validated"
    for tables in (built(PALINDROMES, "shift"), built(load_grammar("lark:python"), "shift"), built(SUMS)):
        found = validate_lr_tables(*tables)  # of SUMS one of two equal parses is left out
        assert str(found) == "sound, but not shown to be complete" and not found.faults and found.not_shown


def test_what_is_no_table() -> None:
    rules, tables = built(NESTED)
    reduction = tuple(int(each[0]) for each in np.nonzero(tables.action < 0))
    goto = tuple(int(each[0]) for each in np.nonzero(tables.goto >= 0))
    for other, fault in [
        (changed(tables, "action", (0, 0), 999), "state 0 has the action 999"),
        (changed(tables, "action", (0, 0), -999), "state 0 has the action -999"),
        (changed(tables, "goto", (0, 0), 999), "state 0 goes to state 999"),
        (changed(tables, "goto", goto, -1), "has no goto for what"),
        (changed(tables, "rule_lhs", (0,), 9), "reduces 3 symbols to nonterminal 9"),
        (changed(tables, "rule_length", (int(-1 - tables.action[reduction]),), 9), "the stack may have less"),
        (changed(tables, "terminal_column", (0,), 1), "has the column of another one"),
        (replace(tables, n_terminals=1), "there are columns for 1 terminals, expected 4"),
        (replace(tables, action=tables.action[:, 1:]), "there are 4 columns for 4 terminals"),
        (replace(tables, goto=tables.goto[:, 1:]), "the gotos are not those of 2 nonterminals"),
    ]:
        found = validate_lr_tables(rules, other)
        assert len(found.faults) == 1 and fault in found.faults[0], found


def test_limits_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lr_tables, "_KEPT", Cache())
    monkeypatch.setattr(lr_tables, "MOST_STEPS", 3)
    monkeypatch.setattr(table_checks, "PAUSE", 1)
    found = validate_lr_tables(*built(NESTED))
    assert str(found) == "sound, but not shown to be complete" and "more than 3 steps" in found.not_shown

    def too_many(*_: object) -> tuple[str, ...]:
        raise LimitError("too many labels")

    monkeypatch.setattr(lr_tables, "_KEPT", Cache())
    monkeypatch.setattr(lr_tables, "unsound_reductions", too_many)
    found = validate_lr_tables(*built(NESTED))
    assert str(found) == "not validated" and found.not_shown == "too many labels" and not found.is_complete


def test_equal_tables_are_validated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[LrTables] = []

    def count(rules: Grammar, tables: LrTables) -> Validation:
        calls.append(tables)
        return Validation()

    monkeypatch.setattr(lr_tables, "_KEPT", Cache())
    monkeypatch.setattr(lr_tables, "_validate", count)
    rules, tables = built(NESTED)
    other = changed(tables, "action", (0, 0), 3)
    assert tables_digest(rules, tables) == tables_digest(*built(NESTED)) != tables_digest(rules, other)
    for each in (tables, built(NESTED)[1], other, tables):
        validate_lr_tables(rules, each)
    assert len(calls) == len(lr_tables._KEPT) == 2


def coq_viable(rules: Grammar, tables: LrTables) -> str:
    """A command that prints the verdict of the proved check on what is left of the rules in each state."""
    read = read_full_tables(rules, tables)
    assert not isinstance(read, str)
    parser, columns = read
    found = kernels(rules, parser, columns)

    def left(item: tuple[int, int]) -> str:
        number, n_read = item
        body = rules.rules[number].rhs if number >= 0 else (rules.start,)
        return coq_symbols(rules, body[n_read:])

    of_state = [
        f"Some {listed(map(left, sorted(found[state])))}" if state in found else "None"
        for state in range(parser.n_states)
    ]
    terminals, nonterminals = rules.n_terminals, rules.n_nonterminals
    return coq_tables(rules, parser, columns, "check_viable", "(fun b => b)") + (
        f"  (seq 0 {terminals}) (seq 0 {nonterminals}) Nat.eq_dec Nat.eq_dec Nat.eq_dec\n"
        f"  (fun q => nth q {listed(of_state)} None) {nonterminals}).\n"
    )


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize("seeds", parts(60, 20))
def test_the_check_of_stacks_says_what_the_proved_one_says(seeds: range, tmp_path: Path) -> None:
    commands, expected = [], []
    for seed in seeds:
        rng = random.Random(seed)
        try:
            rules, tables = built(random_grammar(seed))
        except MaskwrightError:
            continue
        if tables.n_states > 25:
            continue
        for other in [tables, *(altered(tables, rng) for _ in range(8))]:
            read = read_full_tables(rules, other)
            if not isinstance(read, str):
                commands.append(coq_viable(rules, other))
                expected.append(not stuck_states(rules, *read))
    assert len(expected) > 30 and True in expected and False in expected
    head = HEAD.replace("grammar tables", "grammar tables viable")
    assert verdicts(tmp_path, MODULES, head + "".join(commands)) == expected
