"""Tables without dead ends: they read what the parser reads from which some text ends, by the definition, and nothing else."""

from __future__ import annotations

import heapq
import inspect
import random
import sys
from collections.abc import Iterable

import pytest
from grammars import make_grammar, random_expressions, random_grammar, random_looping_grammar, random_tails
from naive_lexing import futures_of
from naive_lr import Stack, accepts_end, shift, unchecked_tables
from shares import parts, share

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.loading import load_grammar
from maskwright.analysis.lr import live
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.live import Live, without_dead_ends
from maskwright.analysis.lr.loops import refuse_endless_tables
from maskwright.analysis.lr.tables import build_merged_tables
from maskwright.validation.oracle_live import Futures

MAKERS = (random_grammar, random_expressions, random_tails, random_looping_grammar)
LENGTH = 5


def is_live(futures: Futures, stack: Stack) -> bool:
    linked = None
    for state in stack:
        linked = state, linked
    return futures.is_live(linked)


def by_search(tables: LrTables, stack: Stack) -> bool | None:
    """Whether some text ends, by reading texts, those on low stacks first; None if that was given up."""
    seen, heap, was_cut = {stack}, [(len(stack), 0, stack)], False
    for n in range(300):
        if not heap:
            return None if was_cut else False
        _, _, here = heapq.heappop(heap)
        if accepts_end(tables, [here]):
            return True
        for column in range(tables.n_terminals):
            for after in shift(tables, [here], column):
                was_cut |= len(after) > 30
                if after not in seen and len(after) <= 30:
                    seen.add(after)
                    heapq.heappush(heap, (len(after), n, after))
    return None


def check(grammar: Grammar, seed: int, search: bool = False) -> tuple[int, int]:
    """How many shifts there were on words to some length, and how many of them led into dead ends."""
    rules = reduce(grammar)
    tables = unchecked_tables(rules, "shift")
    try:
        refuse_endless_tables(rules, lambda: tables)
    except GrammarError:
        return 0, 0
    futures = futures_of(tables)
    stacks = Live(tables)
    found, origin = without_dead_ends(stacks)
    assert stacks.has_dead_ends or found.n_states <= tables.n_states  # then nothing is split
    n_shifts = n_dead = 0
    level: list[tuple[Stack, Stack]] = [((0,), (0,))]
    for _ in range(LENGTH):
        longer = []
        for one, other in level:
            for column in range(tables.n_terminals):
                mine, theirs = shift(found, [other], column), shift(tables, [one], column)
                assert theirs or not mine, grammar.text
                if theirs:
                    n_shifts += 1
                    wanted = is_live(futures, theirs[0])
                    assert bool(mine) == wanted, (grammar.text, theirs[0], column)
                    assert not search or by_search(tables, theirs[0]) in (None, wanted), (grammar.text, theirs[0])
                    n_dead += not wanted
                if mine:
                    assert [origin[state] for state in mine[0]] == list(theirs[0])
                    assert accepts_end(found, mine) == accepts_end(tables, theirs), grammar.text
                    longer.append((theirs[0], mine[0]))
        level = longer if len(longer) < 40 else random.Random(seed).sample(longer, 40)
    return n_shifts, n_dead


def check_all(seeds: Iterable[int], search: bool = False) -> tuple[int, int]:
    found = [check(MAKERS[seed % 4](seed), seed, search) for seed in seeds]
    return sum(n for n, _ in found), sum(n for _, n in found)


@pytest.mark.parametrize("seeds", share(parts(240, 60), 1), ids=str)
def test_random_grammars(seeds: range) -> None:
    n_shifts, n_dead = check_all(seeds)
    assert n_shifts > 1_000 and n_dead > 40


@pytest.mark.parametrize("first", share(range(1000, 1060, 20), 1))
def test_random_grammars_by_search(first: int) -> None:
    n_shifts, n_dead = check_all(range(first, first + 20), search=True)
    assert n_shifts > 300 and n_dead > 10


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 14_000, 1000))
def test_many_random_grammars(first: int) -> None:
    n_shifts, n_dead = check_all(range(first, first + 1000))
    assert n_shifts > 20_000 and n_dead > 800


def test_a_list_that_takes_what_comes_behind_it() -> None:
    grammar = make_grammar("S : d | X c\nX : c X |")
    tables = unchecked_tables(grammar, "shift")
    found, _ = without_dead_ends(Live(tables))
    names = [terminal.name for terminal in grammar.terminals]
    d, c = names.index("d"), names.index("c")
    assert shift(tables, shift(tables, [(0,)], c), c) and not shift(found, [(0,)], c)
    assert accepts_end(found, shift(found, [(0,)], d))


@pytest.mark.parametrize("name", share(["json", "toml", "lark", "c", "go"], 3))
def test_grammars_of_languages_have_no_dead_ends(name: str) -> None:
    tables = build_merged_tables(reduce(load_grammar(name)), "shift").tables
    assert not Live(tables).has_dead_ends


@pytest.mark.parametrize(
    ("name", "message"), [("MAX_EXITS", "more than 3 exits"), ("MAX_QUERIES", "3 queries"), ("MAX_KINDS", "3 kinds")]
)
def test_limits(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, name, 3)
    tables = unchecked_tables(make_grammar("S : A | c | S B c\nA : f e\nB : S"), "shift")
    with pytest.raises(LimitError, match=message):
        without_dead_ends(Live(tables))


def test_exits_that_differ_in_the_terminal_only_are_followed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one they were 3,477, and the calls between them: each level of the rules has those of all levels below."""
    monkeypatch.setattr(live, "MAX_EXITS", 1_500)
    n = 15
    levels = "\n".join(f"E{i} : E{i} o{i} E{i + 1} | E{i + 1}" for i in range(n))
    grammar = make_grammar(f"S : E0\n{levels}\nE{n} : x | i E0 | i E0 e E0")
    assert not Live(unchecked_tables(grammar, "shift")).has_dead_ends


def test_deep_rules_meet_no_recursion_limit() -> None:
    n = 40
    levels = "\n".join(f"E{i} : E{i} o{i} E{i + 1} | E{i + 1}" for i in range(n))
    tables = unchecked_tables(make_grammar(f"S : E0\n{levels}\nE{n} : x | i E0 | i E0 e E0"), "shift")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 30)
    try:
        assert not Live(tables).has_dead_ends
    finally:
        sys.setrecursionlimit(limit)


def test_what_no_text_leads_to_is_not_shifted() -> None:
    tables = unchecked_tables(make_grammar("S : a S b | c"), "shift")
    kinds = Live(tables)
    assert not kinds.has_dead_ends and not kinds.can_shift(0, 0, 0)
