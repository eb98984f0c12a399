"""The tops of two parsers in step: never fewer pairs than texts lead to."""

from __future__ import annotations

from itertools import product

import pytest
from grammars import make_grammar, random_looping_grammar
from naive_lr import Stack, TooMany, shift, unchecked_tables
from shares import share

from maskwright.analysis.grammar import Grammar
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.lr import splits
from maskwright.analysis.lr.acyclic import without_endless
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.splits import tops_in_step

LENGTH = 5


def by_words(first: LrTables, second: LrTables) -> set[tuple[int, int]]:
    """The pairs of tops after all words up to a length, by parsing them."""
    found = {(0, 0)}
    level: list[tuple[list[Stack], list[Stack]]] = [([(0,)], [(0,)])]
    for _ in range(LENGTH):
        longer = []
        for ones, others in level:
            for column in range(first.n_terminals):
                try:
                    after = shift(first, ones, column), shift(second, others, column)
                except TooMany:
                    continue
                if all(after):
                    longer.append(after)
                    found.update(product((stack[-1] for stack in after[0]), (stack[-1] for stack in after[1])))
        level = longer[:50]
    return found


def check(grammar: Grammar) -> int:
    rules = reduce(grammar)
    larks, ours = unchecked_tables(rules, "shift"), unchecked_tables(without_endless(rules))
    assert larks.terminal_column.tolist() == ours.terminal_column.tolist()
    found, wanted = tops_in_step(larks, ours), by_words(larks, ours)
    assert found is not None and wanted <= found, grammar.text
    return len(found) == len(wanted)


@pytest.mark.parametrize("chunk", share(range(20), 1))
def test_pairs_of_random_grammars(chunk: int) -> None:
    exact = sum(check(random_looping_grammar(seed)) for seed in range(15 * chunk, 15 * chunk + 15))
    assert exact > 3


def test_too_many_pairs_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = unchecked_tables(make_grammar("S : a S b | c"))
    assert len(tops_in_step(tables, tables) or ()) > 3
    monkeypatch.setattr(splits, "MAX_PAIRS", 3)
    assert tops_in_step(tables, tables) is None
