"""Tables that pass for tables: what is refused when they are loaded, and what ends by itself when they are run."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from engine_cases import random_layout_grammar, random_vocabulary
from paths import TESTS
from shares import parts, share
from stores import small_automaton
from table_mutator import BACKING_TEXT, EMPTY_TEXT, RIGHT_TEXT, Mutator, opened, small_vocabulary, stores, tried

from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError, StoreError
from maskwright.analysis.lexing.encoding import RESTART
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.decoding.endings import ending, ending_lexer, ending_search
from maskwright.decoding.engine import constants
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.table import check, schema
from maskwright.maskstore.table.check import _spans, check_table
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

Change = Callable[[np.ndarray, Callable[[int], np.ndarray]], object]


def forged(store: Store, change: Change) -> Store:
    """The store with its table changed, checked as one from a file. change : is given the table, and its parts by number."""
    table = store.table.copy()
    spans = _spans("x", store.table)
    change(table, lambda place: table[slice(*spans[place])])
    table.setflags(write=False)
    check_table("x", store.grammar, store.vocabulary, table)
    return Store(store.grammar, store.vocabulary, table, store.counts)


def backing() -> Store:
    grammar = parse_grammar(BACKING_TEXT, name="backing", lexing="contextual")
    return compile_store(grammar, small_vocabulary())


def layout() -> Store:
    """With several paths."""
    return next(
        store
        for seed in range(1, 20)
        if len(part_of(store := layout_of(seed), schema.LINE_BREAKS_START)) > 3 and store.grammar.layout is not None
    )


def layout_of(seed: int) -> Store:
    grammar = random_layout_grammar(seed)
    return compile_store(grammar, random_vocabulary(grammar, seed))


def part_of(store: Store, place: int) -> np.ndarray:
    return store.table[slice(*_spans("x", store.table)[place])]


def right() -> Store:
    return compile_store(parse_grammar(RIGHT_TEXT, name="right"), small_vocabulary())


def put(place: int, at: int, value: int) -> Change:
    def change(_: np.ndarray, part: Callable[[int], np.ndarray]) -> None:
        part(place)[at] = value

    return change


def no_ending(_: np.ndarray, part: Callable[[int], np.ndarray]) -> None:
    part(schema.ENDING_START)[-2] = part(schema.ENDING_START)[-1]


def odd_ending(_: np.ndarray, part: Callable[[int], np.ndarray]) -> None:
    endings = part(schema.ENDINGS)
    starts = part(schema.ENDING_START)[:-1]
    at = next(at for at in starts.tolist() if endings[at] >= 0)
    endings[at] |= 1


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("sums", put(schema.SET_BITS, -1, -(1 << 31)), r"set_bits holds -2147483648 at \[\d+, 0\], expected no bit past \d+"),
        ("lines", put(schema.SHIFT_BITS, 0, 1 << 30), r"shift_bits holds 1073741824 at \[0, 0\], expected no bit past \d+"),
        ("sums", no_ending, r"ending_start holds \d+ at \[\d+\], expected 2 to 1024 more than the integer before it"),
        ("sums", odd_ending, r"endings holds \d+ at \[\d+\], expected twice a set's number, because the grammar has no layout"),
        ("lines", put(schema.LINE_BREAKS_START, 1, 1),
         r"line_breaks_start holds 1 at \[1\], expected 0 to 0 more than the integer before it"),
        ("layout", put(schema.LINE_BREAKS_START, 2, 0),
         r"line_breaks_start holds 0 at \[2\], expected 1 to \d+ more than the integer before it"),
        ("sums", put(schema.STATE_FLAGS, 0, schema.IS_NEWLINE),
         r"state_flags holds 2 at \[0\], expected 0, because the grammar has no layout"),
        ("lines", put(schema.END_OUTPUT, 0, RESTART), r"end_output holds -2 at \[0\], expected -1 or more, because the lexer has one mode"),
        ("sums", put(schema.NEXT_STATE, 0, RESTART),
         r"next_state holds -2 at \[0, 0\], expected -1 or more, because the lexer has one mode"),
        ("modes", put(schema.END_OUTPUT, 0, RESTART), r"end_output holds -2 at \[0\], expected -1 or more, because the lexer has nothing"),
    ],
)  # fmt: skip
def test_what_is_refused(name: str, change: Change, message: str) -> None:
    with pytest.raises(StoreError, match=f"the table's part {message}"):
        forged(layout() if name == "layout" else small_automaton(name), change)


def test_a_lexer_of_one_mode_reads_nothing_anew() -> None:
    def change(table: np.ndarray, _: object) -> None:
        table[schema.AGAIN] = 8

    with pytest.raises(
        StoreError, match="lexer has one mode, but room for 8 bytes to read anew and 0 states with such bytes"
    ):
        forged(small_automaton("sums"), change)


@pytest.mark.parametrize(
    ("offset", "most", "message"),
    [
        (
            schema.OUTPUT_START,
            0,
            r"part output_start holds \d+ at \[\d+\], expected 0 to 0 more than the integer before it",
        ),
        (
            schema.ENDING_START,
            1,
            r"part ending_start holds \d+ at \[\d+\], expected 0 to 1 more than the integer before it",
        ),
        (
            schema.PENDING_START,
            0,
            r"part pending_start holds \d+ at \[\d+\], expected 0 to 0 more than the integer before it",
        ),
    ],
)
def test_bounds_of_what_an_engine_does_not_count(
    monkeypatch: pytest.MonkeyPatch, offset: int, most: int, message: str
) -> None:
    part = schema.PARTS[offset]
    (starts,) = part.columns
    assert isinstance(starts, schema.Starts) and starts.most is not None
    monkeypatch.setitem(schema.PARTS, offset, replace(part, columns=(replace(starts, least=0, most=most),)))
    with pytest.raises(StoreError, match=message):
        forged(backing(), lambda table, part: None)


def test_full_slots_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "MOST_PROBES", 0)
    with pytest.raises(StoreError, match=r"part edges has \d+ full slots in a row, expected -1 at most"):
        forged(backing(), lambda table, part: None)


# Tables that are let through, and never come to an end by themselves


def limits_of(store: Store, texts: tuple[bytes, ...]) -> int:
    """How often the answer is that something takes too many steps. Anything else than a MaskwrightError fails."""
    words = np.zeros(store.n_words, np.uint32)
    n = 0
    for text in texts:
        matcher = store.matcher(0)
        n += is_limit(matcher.fill, words) + is_limit(matcher.advance_bytes, text)
        n += is_limit(matcher.fill, words) + is_limit(matcher.is_accepting)
    return n


def is_limit(call: Callable[..., object], *arguments: object) -> bool:
    try:
        call(*arguments)
    except LimitError as error:
        return "takes too many steps" in str(error)
    except MaskwrightError:
        pass
    return False


@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize("length", [1, 0], ids=["in a circle", "ever higher"])
def test_reductions_without_end(is_open: bool, length: int) -> None:
    """A state that a rule leads to is made to reduce by that rule again, and a state that an empty rule leads to itself."""
    grammar = parse_grammar(EMPTY_TEXT, name="empty")
    store = (opened if is_open else compile_store)(grammar, small_vocabulary())
    spans = _spans("x", store.table)
    lengths, sides, gotos = (store.table[slice(*spans[p])] for p in (schema.RULE_LENGTH, schema.RULE_LHS, schema.GOTO))
    n_sides, n_columns = int(store.table[schema.N_NONTERMINALS]), int(store.table[schema.N_COLUMNS])
    kept = endless = 0
    for rule in np.flatnonzero(lengths == length).tolist():
        targets = gotos[sides[rule] :: n_sides]
        for state in sorted(set(targets[targets >= 0].tolist())):

            def change(_: np.ndarray, part: Callable[[int], np.ndarray], state: int = state, rule: int = rule) -> None:
                part(schema.DEFAULT)[state] = rule
                if length == 0:
                    part(schema.GOTO)[state * n_sides + sides[rule]] = state
                    part(schema.ACTION)[state * n_columns : (state + 1) * n_columns] = 0

            try:
                altered = forged(store, change)
            except StoreError:
                continue
            kept += 1
            endless += limits_of(altered, (b"a", b"aa", b"b", b"=b", b"(b", b"if")) > 0
    assert kept >= endless > 0


def test_a_lexer_that_reads_the_same_anew_for_ever() -> None:
    store = backing()
    n_classes = int(store.table[schema.N_CLASSES])
    kept = endless = 0
    for state in range(1, int(store.table[schema.N_LEXER_STATES])):
        for change in (
            lambda table, part, state=state: part(schema.NEXT_STATE)[state * n_classes : (state + 1) * n_classes].fill(
                RESTART
            ),
            lambda table, part, state=state: part(schema.END_OUTPUT).__setitem__(state, RESTART),
        ):
            try:
                altered = forged(store, change)
            except StoreError:
                continue
            kept += 1
            endless += limits_of(altered, (b"=", b"=a", b"=ab", b"=abb", b"=abba", b"(a)")) > 0
    # back up into the state in which one is
    pending = np.flatnonzero(np.diff(store.table[slice(*_spans("x", store.table)[schema.PENDING_START])])).tolist()
    assert pending
    for state in pending:

        def change(table: np.ndarray, part: Callable[[int], np.ndarray], state: int = state) -> None:
            part(schema.NEXT_STATE)[:] = state
            part(schema.OUTPUT)[:] = 0
            part(schema.FALLBACK)[:] = -1
            part(schema.END_OUTPUT)[state] = RESTART

        altered = forged(store, change)
        kept += 1
        endless += limits_of(altered, (b"=", b"a", b"ab")) > 0
    assert kept > 5 and endless > 0


def test_counting_does_not_end_honest_work() -> None:
    """A stack of 300,000 frames is reduced at once, and looked through from top to bottom."""
    store = compile_store(parse_grammar('start: a\na: "a" a | "b"', name="right"), small_vocabulary())
    matcher = store.matcher(0)
    words = np.zeros(store.n_words, np.uint32)
    matcher.advance_bytes(b"a" * 300_000)
    matcher.fill(words)
    assert words.any() and not matcher.is_accepting()
    matcher.advance_bytes(b"b")
    assert matcher.is_accepting() and len(matcher.text.stacks()[0]) > 300_000


def test_a_call_that_had_room_made_once_gets_more() -> None:
    """Freed records may be made anew by each attempt; so the second time the region grows."""
    matcher = right().matcher(0)
    matcher.advance_bytes(b"aab")
    capacity = int(matcher.text.texts._memory[constants.CAPACITY])
    matcher.text.texts._give_room(0, 1)
    assert matcher.text.texts._memory[constants.CAPACITY] == 2 * capacity
    tried(lambda: matcher.advance_bytes(b"a"))


# At random


def mutated(seed: int, first: int, end: int, environment: dict[str, str], timeout: float) -> dict[str, int]:
    """Run the mutator in a process of its own; the test fails with the table's number if it dies or hangs."""
    script = [sys.executable, "table_mutator.py", *map(str, (seed, first, end))]
    run = subprocess.run(
        script,
        cwd=TESTS / "support",
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    lines = run.stdout.splitlines()
    assert run.returncode == 0, f"seed {seed}, table {lines[-1:]}: rc {run.returncode}\n{run.stderr[-3000:]}"
    return json.loads(lines[-1])


@pytest.mark.slow
def test_searches_for_endings_do_not_take_ever_more() -> None:
    """A table with a state that leads to itself: each search gave the next one 128 times as much to do."""
    mutated(1, 4740, 4741, {}, 100)


def test_bytes_read_again_that_cost_less_than_nothing() -> None:
    """Nothing is emitted, and each byte leads to a state that reads four bytes again: least costs sank for half a minute."""
    text = 'start: (p | q)+\np: "(" /[ab]/ ")"\nq: "=" ("abcdef" | "a") /[b-e]/* ":"\n%ignore " "'
    store = compile_store(parse_grammar(text, name="backing", lexing="contextual"), small_vocabulary())
    table = store.table.copy()
    n_states = int(table[schema.N_LEXER_STATES])
    after = ending_lexer.part_of(table, schema.NEXT_STATE, n_states, int(table[schema.N_CLASSES]))
    pending = np.diff(ending_lexer.part_of(table, schema.PENDING_START, n_states + 1))
    assert pending.max() == 4
    after[[0, *ending_lexer.part_of(table, schema.MODE_STATE, int(table[schema.N_MODES]))]] = int(pending.argmax())
    ending_lexer.part_of(table, schema.OUTPUT, *after.shape)[:] = 0
    end_output = ending_lexer.part_of(table, schema.END_OUTPUT, n_states)
    end_output[end_output > 0] = -1
    check_table("x", store.grammar, store.vocabulary, table)
    ending_lexer.EndingLexer(store, b"a")  # compiles
    begin = time.process_time()
    lexer = ending_lexer.EndingLexer(Store(store.grammar, store.vocabulary, table, store.counts), bytes(range(128)))
    assert time.process_time() - begin < 1
    assert lexer.least.min() >= -4


def test_endings_under_tables_that_are_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search is plain Python: it ends, or gives up."""
    monkeypatch.setattr(ending_search, "MAX_NODES", 50)
    monkeypatch.setattr(ending, "SHORT_STEPS", 20)
    monkeypatch.setattr(ending, "SHORT_NODES", 20)
    originals = stores()
    kept = 0
    # of the first three, one made the lexer read bytes anew for ever and one reduced for ever
    for seed in ("9-398", "991-42", "4242-1214", *(f"9-{i}" for i in range(12))):
        rng = random.Random(seed)
        store = originals[rng.choice(list(originals))]
        table = Mutator(store, rng).mutate()
        try:
            check_table("x", store.grammar, store.vocabulary, table)
        except StoreError:
            continue
        kept += 1
        matcher = Store(store.grammar, store.vocabulary, table, store.counts).matcher()
        for call in (matcher.short_ending, matcher.shortest_ending, matcher.min_bytes_left):
            tried(call)
    assert kept > 2


@pytest.mark.slow
@pytest.mark.parametrize("seeds", share([range(50), *parts(400, 100)], 1), ids=str)
def test_some_hundred_tables(seeds: range) -> None:
    tally = mutated(7, seeds.start, seeds.stop, {}, 300)
    assert tally["tried"] == len(seeds) and tally["let through"] > len(seeds) // 5 and tally["mapped"] > 0


@pytest.mark.slow
def test_five_thousand_tables_with_every_index_checked(tmp_path: Path) -> None:
    environment = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    tally = mutated(1, 0, 5_000, environment, 1800)
    assert tally["tried"] == 5_000 and tally["let through"] > 1_000 and tally["mapped"] > 100


def test_a_search_stays_not_long_over_few_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that always returns to the same state: the bound rises for ever, and no state is new."""
    monkeypatch.setattr(ending_search, "MAX_NODES", 1_000)
    vocabulary = Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b""], eos=[256])
    store = compile_store(load_grammar("toml"), vocabulary)
    matcher = Matcher(forged(store, put(schema.MODE_STATE, 2, int(part_of(store, schema.MODE_STATE)[2]) + 1)))
    for token in b"k = ":
        matcher.advance(token)
    visited = 0
    visit = ending_search.EndingSearch._moves

    def count(search: ending_search.EndingSearch, node: ending_search.Node) -> object:
        nonlocal visited
        visited += 1
        return visit(search, node)

    monkeypatch.setattr(ending_search.EndingSearch, "_moves", count)
    with pytest.raises(DeadEndError, match="no bytes complete this text"):
        matcher.shortest_ending()
    assert 0 < visited < 4_000
