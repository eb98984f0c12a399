"""Dead ends: what a table's parser has read begins a text of the grammar, if nothing is said against it."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from engine_cases import random_vocabulary
from grammars import make_grammar
from naive import is_prefix
from shares import parts, share
from table_cases import BYTES, LONGEST, Case, altered, case, read

from maskwright.analysis.errors import StoreError
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.analysis.loading.names import known_grammars
from maskwright.analysis.lr.automaton import build_automaton
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.lookaheads import lookaheads
from maskwright.analysis.lr.tables import tables_of
from maskwright.maskstore.table.check import check_table
from maskwright.maskstore.verify import verification, verify_table
from maskwright.maskstore.verify.tables import TooManyChoices
from maskwright.maskstore.verify.trusted import read_full_tables
from maskwright.maskstore.verify.viable import _Comparison, dead_ends, without_text
from maskwright.report.lr_tables import validate_lr_tables
from maskwright.stores.build import compile_store
from maskwright.verification import verify


@pytest.mark.parametrize("name", share(sorted(known_grammars(), key=lambda name: name not in ("json", "toml")), 2))
def test_tables_of_the_library_pass(name: str) -> None:
    one = Case(load_grammar(name), np.array(compile_store(load_grammar(name), BYTES).table))
    assert one.certificate().full is not None
    assert dead_ends(one.certificate(), *one.read()) == ()


@pytest.mark.parametrize("seeds", share(parts(400, 16), 1))
def test_tables_of_random_grammars_pass(seeds: range) -> None:
    """Decided conflicts aside: there a parser may have read what it cannot go on with."""
    cases = [one for one in map(case, seeds) if one is not None]
    asked = [one for one in cases if one.certificate().full is not None]
    assert len(asked) > len(seeds) // 3
    assert all(
        one.grammar.conflicts == "shift" and one.certificate().has_conflicts for one in cases if one not in asked
    )
    assert [found for one in asked if (found := dead_ends(one.certificate(), *one.read()))] == []


@pytest.mark.parametrize("seeds", share(parts(120, 20), 1))
def test_altered_tables_that_pass_read_the_beginnings_of_words(seeds: range) -> None:
    rng = random.Random(seeds.start)
    tally: Counter[str] = Counter()
    for seed in seeds:
        one = case(seed)
        if one is None or one.grammar.n_terminals > 6 or one.certificate().full is None:
            continue
        for other in [one, *(altered(one, rng) for _ in range(40))]:
            try:
                parser, lexer = other.read()
            except IndexError:
                continue
            has_faults = bool(dead_ends(one.certificate(), parser, lexer))
            wrong = [word for word, _ in read(parser, lexer.column, LONGEST) if not is_prefix(one.grammar, word)]
            tally["found" if has_faults else "passed"] += 1
            tally["wrong"] += bool(wrong)
            assert has_faults or not wrong, (seed, wrong[:3])
    assert tally["found"] > 10 and tally["passed"] > 10 and tally["wrong"] > 3, tally


@pytest.mark.parametrize("seed", [20, 164])
def test_a_dead_end_is_refused(seed: int) -> None:
    """One entry more, with which the parser accepts no word more: it reads what begins no text."""
    one = case(seed)
    assert one is not None
    vocabulary = random_vocabulary(one.grammar, seed, 8)
    n_found = 0
    for number in range(60):
        other = altered(one, random.Random(number))
        try:
            check_table("test", one.grammar, vocabulary, other.table)
        except StoreError:
            continue
        parser, lexer = other.read()
        wrong = [word for word, _ in read(parser, lexer.column, LONGEST) if not is_prefix(one.grammar, word)]
        if wrong and not other.faults():
            n_found += 1
            found = verify_table("test", one.grammar, vocabulary, other.table, certificate=one.certificate())
            assert any("behind which there may be no text of the grammar" in fault for fault in found.faults), found
    assert n_found


def test_full_tables_are_not_believed() -> None:
    """Nor are those that a wrong builder would give as the full ones."""
    one = Case(load_grammar("json"), np.array(compile_store(load_grammar("json"), BYTES).table))
    right = one.certificate()
    assert isinstance(right.full, LrTables)
    action = right.full.action.copy()
    column = one.grammar.terminal_number["RSQB"]
    assert action[0, column] == 0
    action[0, column] = action[0, one.grammar.terminal_number["LSQB"]]
    for full, said in (
        (replace(right.full, action=action), "of the full LR tables: "),
        (replace(right.full, goto=right.full.goto[:, 1:]), "the full LR tables are none of the grammar: "),
    ):
        (fault, *_) = dead_ends(replace(right, full=full), *one.read())
        assert fault.startswith(said)


def test_a_column_that_no_terminal_has_is_not_read() -> None:
    """The validators of full tables pass over it, so what stands there is not validated."""
    grammar = parse_grammar('start: "a" start "b" | "c"\nX: "x"\n%ignore X', name="test")
    one = Case(grammar, np.array(compile_store(grammar, BYTES).table))
    certificate, ignored = one.certificate(), grammar.terminal_number["X"]
    full, (parser, lexer) = certificate.full, one.read()
    assert isinstance(full, LrTables) and full.terminal_column[ignored] == -1
    action = np.concatenate([full.action, np.zeros((1, full.action.shape[1]), np.int32)])
    action[0, ignored] = len(action)
    goto = np.concatenate([full.goto, np.full((1, full.goto.shape[1]), -1, np.int32)])
    lexer.column[ignored] = lexer.column[grammar.terminal_number["A"]]  # as in an altered table
    other = replace(certificate, full=replace(full, action=action, goto=goto))
    assert any("shifts X" in fault for fault in dead_ends(other, parser, lexer))


def test_a_nonterminal_without_a_text_is_a_dead_end() -> None:
    """Rules that are not reduced: what leads to it begins no text."""
    grammar = make_grammar("S : a | b X\nX : x X")
    tables = tables_of(build_automaton(grammar), lookaheads(build_automaton(grammar)), "all")
    assert without_text(grammar) == ("X derives no text",)
    assert validate_lr_tables(grammar, tables).faults == ("X derives no text",)
    assert without_text(make_grammar("S : a | b X\nX : x X | Y\nY :")) == ()


def test_a_reduction_is_renamed_on_all_states_below() -> None:
    """Behind q no x comes of an a; a reduction to x is like the full tables' one only where there is no q."""
    grammar = parse_grammar('start: x | "q" y\nx: a\ny: a "r"\na: "t"', name="test")
    one = Case(grammar, np.array(compile_store(grammar, BYTES).table))
    certificate = one.certificate()
    assert certificate.full is not None
    read_full = read_full_tables(certificate.grammar, certificate.full)
    assert not isinstance(read_full, str)
    comparison = _Comparison(*read_full, certificate, *one.read())
    full = read_full[0]
    (column,) = (
        certificate.columns[n] for n in range(grammar.n_nonterminals) if certificate.grammar.nonterminals[n] == "x"
    )
    shift = full.acts[grammar.terminal_number["T"]][0] - 1
    assert len(full.deep_below(shift, 1)) == 2 and not comparison._is_like_full(shift, (column, 1))
    comparison._known.clear()
    full._deep_below[shift][1] = frozenset([0])
    assert comparison._is_like_full(shift, (column, 1))


def test_what_was_not_asked_is_told() -> None:
    """A parser that has decided a conflict may come to a dead end."""
    grammar = parse_grammar('start: s\ns: "a" "b" "c" | t "b" "d"\nt: "a"', name="test")
    for conflicts, said in (("all", ""), ("shift", "conflicts that are decided")):
        report = verify(compile_store(replace(grammar, conflicts=conflicts), BYTES))
        assert report.passed and said in report.dead_ends_not_shown and bool(said) == bool(report.dead_ends_not_shown)
        assert report.to_dict()["dead_ends_not_shown"] == report.dead_ends_not_shown


def test_too_many_ways_leave_the_masks_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_many(*_: object) -> tuple[str, ...]:
        raise TooManyChoices("too many stacks")

    monkeypatch.setattr(verification, "dead_ends", too_many)
    report = verify(compile_store(load_grammar("json"), BYTES))
    assert report.passed and report.dead_ends_not_shown == "the full LR tables: too many stacks"
