"""The check of LALR tables: what is built passes, and what passes accepts words of the grammar only; beside the one proved in Coq."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from coq_runs import needs_coq, verdicts
from coq_tables import HEAD, coq_symbols, coq_tables, listed
from grammars import make_grammar, random_grammar
from growth import growth
from naive import words
from shares import parts, share
from table_cases import BYTES, LONGEST, Case, TooManyStacks, accepted, altered, case

from maskwright.analysis.errors import LimitError, StoreError
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.analysis.loading.names import known_grammars
from maskwright.maskstore.table import schema
from maskwright.maskstore.verify import verify_table
from maskwright.maskstore.verify.tables import EarleyItems, _Tables, missing_entries, unsound_reductions
from maskwright.maskstore.verify.trusted import ACCEPTS, Parser
from maskwright.stores.build import compile_store


@pytest.mark.parametrize("name", share(sorted(known_grammars(), key=lambda name: name not in ("json", "toml")), 2))
def test_tables_of_the_library_pass(name: str) -> None:
    grammar = load_grammar(name)
    one = Case(grammar, np.array(compile_store(grammar, BYTES).table))
    assert one.faults() == ()
    assert bool(one.missing()) == (name in {"java", "lark:python"})  # docs/verify.md says so
    assert not one.missing() or one.certificate().has_conflicts


@pytest.mark.parametrize("seeds", share(parts(400, 16), 1))
def test_tables_of_random_grammars_pass(seeds: range) -> None:
    cases = [one for one in map(case, seeds) if one is not None]
    assert len(cases) > len(seeds) // 2
    assert [one.faults() for one in cases if one.faults()] == []
    plain = [one for one in cases if not one.certificate().has_conflicts]
    assert len(plain) > len(seeds) // 8
    assert [one.missing() for one in plain if one.missing()] == []


@pytest.mark.parametrize("seeds", share(parts(120, 40), 1))
def test_altered_tables_that_pass_accept_words_only(seeds: range) -> None:
    rng = random.Random(seeds.start)
    tally: Counter[str] = Counter()
    for seed in seeds:
        one = case(seed)
        if one is None or one.grammar.n_terminals > 6:
            continue
        known = words(one.grammar, LONGEST)
        for _ in range(12):
            other = altered(one, rng)
            try:
                parser, lexer = other.read()
            except IndexError:
                continue
            faults = unsound_reductions(one.certificate(), parser, lexer)
            wrong = set(accepted(parser, lexer.column, LONGEST)) - known
            tally["found" if faults else "passed"] += 1
            tally["wrong"] += bool(wrong)
            assert faults or not wrong, (seed, sorted(wrong)[:3])
    assert tally["found"] > tally["passed"] // 2 and tally["wrong"] > 3, tally


@pytest.mark.parametrize("seeds", share(parts(120, 20), 1))
def test_altered_tables_that_lack_nothing_accept_all_words(seeds: range) -> None:
    rng = random.Random(seeds.start)
    tally: Counter[str] = Counter()
    for seed in seeds:
        one = case(seed)
        if one is None or one.grammar.n_terminals > 6:
            continue
        known, certificate = set(words(one.grammar, LONGEST)), one.certificate()
        for other in [one, *(altered(one, rng) for _ in range(12))]:
            try:
                parser, lexer = other.read()
            except IndexError:
                continue
            missing = missing_entries(certificate, parser, lexer)
            try:
                refused = known - set(accepted(parser, lexer.column, LONGEST, every=True))
            except TooManyStacks:
                continue
            tally["found" if missing else "passed"] += 1
            tally["refused"] += bool(refused)
            assert missing or not refused, (seed, sorted(refused)[:3])
    assert tally["found"] > 10 and tally["passed"] > 10 and tally["refused"] > 3, tally


@pytest.mark.parametrize("step", ["steps in rules", "tokens"])
def test_faults_are_told_where_the_time_does_not_suffice(step: str) -> None:
    def over(what: str, done: int, total: int) -> None:
        if what == step:
            raise LimitError("the time is over")

    rng = random.Random(1)
    grammar = load_grammar("json")
    one = Case(grammar, np.array(compile_store(grammar, BYTES).table))
    n_told = 0
    for _ in range(60):
        other = altered(one, rng)
        try:
            found = verify_table("json", grammar, BYTES, other.table, over, None, one.certificate())
        except StoreError:
            continue  # no engine may read this
        except LimitError:
            assert unsound_reductions(one.certificate(), *other.read()) == ()
            continue
        assert found.faults and not found.differences
        n_told += 1
    assert n_told > 3


def test_a_terminal_without_a_column_is_missing() -> None:
    """Where nothing stands behind a rule, no item would ask for what comes there."""
    grammar = parse_grammar('start: a "x" | "y"\na: "b"', name="test")
    one = Case(grammar, np.array(compile_store(grammar, BYTES).table))
    assert one.missing() == ()
    for name in "XYB":
        table = one.table.copy()
        table[table[schema.SYMBOL_COLUMN] + grammar.terminal_number[name]] = -1
        assert f"{name} has no column" in Case(grammar, table).missing()


def coq_check(one: Case) -> str:
    """A command that prints the verdict of the first checker on these tables."""
    parser, lexer = one.read()
    tables = _Tables(one.certificate(), parser, lexer)
    n = tables.grammar.n_terminals
    column_of = {number - n: column for column, numbers in tables._of_goto.items() for number in numbers}
    sides = [str(column_of[number]) for number in range(len(column_of))]
    terminals = [str(t) for t, column in enumerate(lexer.column) if column >= 0]
    begin = coq_tables(tables.grammar, parser, lexer, "check_tables", f"(fun b => nth b {listed(sides)} 0)")
    return begin + (f"  {listed(terminals)} (seq 0 {len(sides)}) Nat.eq_dec Nat.eq_dec Nat.eq_dec {len(sides) + 1}).\n")


def coq_complete(one: Case) -> str:
    """A command that prints the verdict of the second checker on these tables, with the items as its certificate."""
    parser, lexer = one.read()
    found = EarleyItems(one.certificate(), parser, lexer)
    found.find(lambda done, known: None)
    grammar, n = found.grammar, found.grammar.n_terminals
    of_column: dict[int, list[str]] = {parser.n_columns - 1: ["None"]}
    for terminal, column in enumerate(lexer.column):
        if column >= 0:
            of_column.setdefault(column, []).append(f"Some {terminal}")

    def lookaheads(columns: int) -> list[str]:
        return [name for column, names in of_column.items() if columns >> column & 1 for name in names]

    states = range(parser.n_states)
    items: list[dict[str, None]] = [{} for _ in states]
    for (_, item, state), columns in found.columns.items():
        number = found.rule_of[item]
        rule, read = grammar.rules[number], item - found.begin[number]
        done, rest = coq_symbols(grammar, rule.rhs[:read]), coq_symbols(grammar, rule.rhs[read:])
        for name in lookaheads(columns):
            items[state][f"({rule.lhs - n}, {done}, {rest}, {name})"] = None
    arrivals = [
        listed(
            listed(
                f"({after}, {name})"
                for after, columns in found.arrivals.get((state, n + number), {}).items()
                for name in lookaheads(columns)
            )
            for number in range(grammar.n_nonterminals)
        )
        for state in states
    ]
    firsts = [
        listed(name.removeprefix("Some ") for name in lookaheads(columns & ~(1 << parser.n_columns - 1)))
        for columns in found.firsts
    ]
    empties = [str(one).lower() for one in found.can_be_empty]
    return coq_tables(grammar, parser, lexer, "check_complete") + (
        f"  Nat.eq_dec Nat.eq_dec Nat.eq_dec (fun q => nth q {listed(listed(each) for each in items)} [])\n"
        f"  (fun b => nth b {listed(empties)} false) (fun b => nth b {listed(firsts)} [])\n"
        f"  (fun q b => nth b (nth q {listed(arrivals)} []) [])).\n"
    )


def coq_cases(chunk: int, command: Callable[[Case], str]) -> Iterator[tuple[str, Case, Case]]:
    """Commands on small tables, each as it was made and altered: the command, the case, and the case that was made."""
    rng = random.Random(chunk)
    for seed in range(20 * chunk, 20 * chunk + 20):
        one = case(seed, random_grammar)
        if one is None or Parser(one.table).n_states > 25:
            continue
        for other in [one, *(altered(one, rng) for _ in range(4))]:
            try:
                yield command(other), other, one
            except IndexError:
                continue


def has_idle_entries(one: Case) -> bool:
    """Whether there is a shift that no terminal makes, or a state that accepts and stands on no other."""
    parser, lexer = one.read()
    unread = set(range(parser.n_columns)) - set(lexer.column)  # the column of the end among them
    for state in range(parser.n_states):
        row = parser.acts[state * parser.n_columns : (state + 1) * parser.n_columns]
        if any(0 < action < ACCEPTS for column in unread for action in row[column]):
            return True
        if not parser.below[state] and any(ACCEPTS in actions for actions in row):
            return True
    return False


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(4))
def test_the_check_says_what_the_proved_one_says(chunk: int, tmp_path: Path) -> None:
    """It may be stricter, and never laxer, where entries stand that no text comes to: it looks at all of them."""
    commands, expected, is_strict = [], [], []
    for command, other, one in coq_cases(chunk, coq_check):
        commands.append(command)
        expected.append(not other.faults())
        is_strict.append(has_idle_entries(other) or other.read()[1].column != one.read()[1].column)
    found = verdicts(tmp_path, ["grammar", "tables"], HEAD + "".join(commands))
    assert len(found) == len(expected) > 20 and is_strict.count(False) > 20
    for proved, checked, may_be_stricter in zip(found, expected, is_strict, strict=True):
        assert proved == checked or (may_be_stricter and proved)
    assert True in expected and False in expected


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(4))
def test_what_is_missing_is_what_the_proved_check_misses(chunk: int, tmp_path: Path) -> None:
    commands, expected = [], []
    for command, other, _ in coq_cases(chunk, coq_complete):
        commands.append(command)
        expected.append(not other.missing())
    assert len(expected) > 20 and True in expected and False in expected
    assert verdicts(tmp_path, ["grammar", "tables"], HEAD + "".join(commands)) == expected


def test_first_columns_of_a_chain_of_rules_take_linear_time() -> None:
    def cost(n: int) -> float:
        grammar = make_grammar("\n".join([*(f"X{k} : X{k + 1}" for k in range(n)), f"X{n} : a"]))
        rules = tuple(reversed(grammar.rules))  # each says nothing before the next has
        certificate: Any = SimpleNamespace(grammar=replace(grammar, rules=rules), columns=())
        begin = time.process_time()
        items = EarleyItems(certificate, SimpleNamespace(n_columns=2), SimpleNamespace(column=[0]))  # type: ignore[arg-type]
        assert items.firsts == [1] * (n + 1)
        return time.process_time() - begin

    assert growth(cost, 500) < 3
