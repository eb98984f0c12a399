"""Dead ends: what a table's parser has read begins a text of the grammar, if nothing is said against it."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from engine_cases import random_vocabulary
from naive import is_prefix
from shares import parts, share
from table_cases import BYTES, LONGEST, Case, altered, case, read

from maskwright.analysis.errors import StoreError
from maskwright.analysis.loading import load_grammar
from maskwright.analysis.loading.names import known_grammars
from maskwright.analysis.lr.encoding import LrTables
from maskwright.maskstore.table.check import check_table
from maskwright.maskstore.verify import verify_table
from maskwright.maskstore.verify.viable import dead_ends
from maskwright.stores.build import compile_store


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
                has_faults = bool(dead_ends(one.certificate(), parser, lexer))
            except IndexError:
                continue
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
