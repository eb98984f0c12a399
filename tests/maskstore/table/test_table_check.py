"""Tables of engines made up to mislead: no engine reads a place outside of one that is let through."""

from __future__ import annotations

import contextlib
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from grammars import random_grammar
from paths import TESTS
from shares import share
from stores import small_automaton

from maskwright.analysis.errors import LimitError, StoreError
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT, LrTables
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.maskstore.table import check, schema
from maskwright.maskstore.table.check import check_table, part_bytes, range_of
from maskwright.maskstore.table.schema import NUMBERS, PARTS, SETTINGS, Bits, Coded
from maskwright.maskstore.table.stackcheck import bad_reduction
from maskwright.stores.store import Store

NAMES = ["lines", "sums", "modes"]


def refused_table(store: Store, table: np.ndarray) -> str:
    """What is said of a table in a store's place; the test fails if nothing is."""
    table.setflags(write=False)
    with pytest.raises(StoreError, match=r"^x: .*export the store again$") as caught:
        check_table("x", store.grammar, store.vocabulary, table)
    return str(caught.value)


STORES = pytest.mark.parametrize("store", [small_automaton(name) for name in NAMES], ids=NAMES)


@STORES
def test_the_header_is_what_the_schema_describes(store: Store) -> None:
    described = {*NUMBERS, *PARTS, *SETTINGS}
    assert set(np.flatnonzero(store.table[: schema.HEADER]).tolist()) <= described
    assert sum(part_bytes("x", store.table).values()) == store.table.nbytes


def test_parts_have_their_names_in_the_schema() -> None:
    for offset, part in PARTS.items():
        name = "default" if part.name == "default_rule" else part.name
        assert getattr(schema, name.upper()) == offset


def test_every_word_of_a_type_is_counted() -> None:
    """By a number of the header, by a part's rows, or by a sum of such."""
    words = {entry.name for entry in NUMBERS.values()} | {part.shape[0].partition("+")[0] for part in PARTS.values()}
    for part in PARTS.values():
        for column in part.columns:
            asked = {getattr(column, name, "states") for name in ("of", "first", "second")}
            assert {word.partition("+")[0] for word in asked} <= words | {"symbols"}, part


@STORES
def test_a_header_that_misleads(store: Store) -> None:
    for place in (*NUMBERS, *PARTS, *SETTINGS):
        for value in (-1, -(2**31), 2**31 - 1, len(store.table), int(store.table[place]) + 1):
            if place in (schema.AGAIN, schema.AFTER_NEWLINE) and value == store.table[place] + 1:
                continue  # may be in range
            table = store.table.copy()
            table[place] = value
            if value != store.table[place]:
                refused_table(store, table)


@STORES
def test_values_out_of_range(store: Store) -> None:
    """One value of each column of each part, just below and just above what is allowed."""
    rng = random.Random(0)
    checks = check._Checks("x", store.grammar, store.vocabulary, store.table)
    n_tried = 0
    for place, part in PARTS.items():
        begin, end = checks.spans[place]
        for column, values in enumerate(part.columns):
            span = range_of(values, checks.sizes)
            if span is None or begin == end:
                continue
            least, high = span
            for value in (least - 1, high, -(2**31), 2**31 - 1):
                if least <= value < high or not -(2**31) <= value < 2**31:
                    continue
                table = store.table.copy()
                row = rng.randrange((end - begin) // len(part.columns))
                table[begin + row * len(part.columns) + column] = value
                assert f"the table's part {part.name} holds {value} at [" in refused_table(store, table)
                n_tried += 1
    assert n_tried > 100


@STORES
def test_values_that_are_no_numbers(store: Store) -> None:
    """Sets have no bit past their members; what is coded is decoded by some check."""
    checks = check._Checks("x", store.grammar, store.vocabulary, store.table)
    tried = set()
    for place, part in PARTS.items():
        begin, end = checks.spans[place]
        if begin == end or range_of(part.columns[0], checks.sizes) is not None:
            continue
        at = begin if place != schema.TOKEN_BYTES else end - 1
        if isinstance(part.columns[0], Bits):
            last = checks.sizes[part.columns[0].of] % 32
            if last == 0:
                continue  # all bits of the last word are members
            at = begin + checks.sizes[part.shape[1]] - 1
        table = store.table.copy()
        table[at] = -(1 << 31) if isinstance(part.columns[0], Bits) else -(1 << 30)
        refused_table(store, table)
        tried.add(type(part.columns[0]))
    assert tried == {Bits, Coded}


def put(place: int, at: int, value: int) -> Callable[[np.ndarray], None]:
    """Put a value at a place of a part, counted from its end if negative. StopIteration: the part is empty."""

    def change(table: np.ndarray) -> None:
        starts = [int(table[p]) for p in PARTS] + [len(table)]
        number = list(PARTS).index(place)
        if starts[number] == starts[number + 1]:
            raise StopIteration
        table[starts[number] + at if at >= 0 else starts[number + 1] + at] = value

    return change


def first_of(place: int, wanted: Callable[[int], bool]) -> Callable[[np.ndarray], int]:
    def find(table: np.ndarray) -> int:
        starts = [int(table[p]) for p in PARTS] + [len(table)]
        number = list(PARTS).index(place)
        part = table[starts[number] : starts[number + 1]].tolist()
        return next(i for i, value in enumerate(part) if wanted(value))

    return find


def at_first(place: int, wanted: Callable[[int], bool], value: int, beside: int = 0) -> Callable[[np.ndarray], None]:
    """Put a value where a part first has a certain one, or beside it."""
    return lambda table: put(place, first_of(place, wanted)(table) + beside, value)(table)


def last_ids_too_many(table: np.ndarray) -> None:
    """A mask's ids begin where another's end, and are as many as all together."""
    masks = table[table[schema.MASKS] : table[schema.ROWS]].reshape(-1, 3)
    masks[-1, 1:] = masks[:, 2].sum()


def fill_slots(table: np.ndarray) -> None:
    """Leave no slot of the hash table free."""
    begin = int(table[schema.EDGES])
    slots = table[begin : begin + 2 * int(table[schema.N_EDGE_SLOTS])].reshape(-1, 2)
    slots[slots[:, 0] < 0] = (0, 0)


def is_plain(action: int) -> bool:
    return 0 < action < 1 << 29


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (at_first(schema.ACTION, is_plain, 1 << 28), r"part action holds 268435456 at \[\d+, \d+\], expected one of \d+ states"),
        (at_first(schema.ACTION, lambda a: a < 0, -999), r"part action holds -999 at \[\d+, \d+\], expected one of \d+ states"),
        (at_first(schema.ACTION, is_plain, (1 << 29) + 1), "part action holds 536870913 at"),
        (at_first(schema.ACTION, is_plain, (1 << 30) + 99_999), "part action holds 1073841823 at"),
        (put(schema.ALTERNATIVES, 0, 17), "part action holds 1073741824 at"),
        (put(schema.ALTERNATIVES, 0, 0), "part action holds 1073741824 at"),
        (put(schema.ALTERNATIVES, 1, 0), "part action holds 1073741824 at"),
        (put(schema.ALTERNATIVES, 1, 1 << 30), "part action holds 1073741824 at"),
        (put(schema.ALTERNATIVES, -1, -999), "part action holds 10737418.. at"),
        (put(schema.OUTPUT_START, 1, -1), r"part output_start holds -1 at \[1\], expected 0 to"),
        (put(schema.OUTPUT_START, 0, 1), r"part output_start holds 1 at \[0\], expected 0;"),
        (put(schema.DEPTH_CASE_START, 1, 0), r"part depth_case_start holds 0 at \[1\], expected 1 to \d+ more than the integer before it"),
        (put(schema.LOOKUP_START, -1, 0), r"part lookup_start holds 0 at \[\d+\], expected 0 to \d+ more than the integer before it"),
        (put(schema.ENDINGS, 0, 999), r"part endings holds 999 at \[0\], expected a set, a number of terminals, and"),
        (put(schema.ENDINGS, 0, -2), r"part endings holds -2 at \[0\], expected a set"),
        (put(schema.ENDINGS, 1, 99), r"part endings holds -?\d+ at \[0\], expected a set"),
        (put(schema.ENDINGS, 1, -1), r"part endings holds -?\d+ at \[0\], expected a set"),
        (at_first(schema.EDGES, lambda key: key > 0, 1 << 30), r"part edges holds 1073741824 at \[\d+, 0\], expected -1, or"),
        (at_first(schema.EDGES, lambda key: key == -1, -2), r"part edges holds -2 at \[\d+, 0\], expected -1, or 0 to"),
        (at_first(schema.EDGES, lambda key: key > 0, 9999, 1), r"part edges holds \d+ at \[\d+, 0\], expected -1, or"),
        (at_first(schema.EDGES, lambda key: key > 0, -1, 1), r"part edges holds \d+ at \[\d+, 0\], expected -1, or"),
        (fill_slots, "part edges has no free slot, expected one or more"),
        (put(schema.EDGE_PAIRS, 2, 1), r"part edge_pairs holds 1 at \[1, 0\], expected 0, or \d+ or more: no edge leads to a root"),
        (put(schema.MASKS, 3, 99_999), r"part masks holds 99999 at \[1, 0\], expected -1 to \d+"),
        (put(schema.MASKS, 4, 99_999), r"part masks holds 99999 at \[1, 1\], expected 0 to \d+"),
        (put(schema.MASKS, -1, 99_999), r"part masks holds 99999 at \[\d+, 2\], expected 0 to \d+"),
        (last_ids_too_many, r"part masks holds \d+ at \[\d+, 2\], expected \d+ at most"),
        (put(schema.FALLBACK, 0, 9999), r"part fallback holds 9999 at \[0\], expected -1 to \d+"),
        (put(schema.MODE_OF_STATE, 0, 3), r"part mode_of_state holds 3 at \[0\], expected 0 to [02]"),
        (put(schema.PENDING, 0, 256), r"part pending holds 256 at \[0\], expected 0 to 255"),
        (put(schema.ROWS, 3, 1 << 20), r"part rows holds 1048576 at \[0, 3\], expected no bit past"),
        (put(schema.ROWS, 2, -(2**31)), "row 0 of masks allows token 95, which stands for no text"),
        (put(schema.MASK_IDS, 0, 60), r"part mask_ids holds 60 at \[0\], expected a token that stands for text or ends it"),
        (put(schema.TOKEN_START, 1, 0), "part token_start does not match the vocabulary in the file"),
        (put(schema.TOKEN_BYTES, 0, 0), "part token_bytes does not match the vocabulary in the file"),
        (put(schema.EOS, 0, 3), "part eos does not match the vocabulary in the file"),
    ],
)  # fmt: skip
def test_parts_that_mislead(change: Callable[[np.ndarray], None], message: str) -> None:
    for store in map(small_automaton, NAMES):
        table = store.table.copy()
        with contextlib.suppress(StopIteration):
            change(table)
            if not np.array_equal(table, store.table):
                assert re.search(message, refused_table(store, table))
                return
    pytest.fail("no store has what this test alters")


def test_a_layout_that_is_not_the_grammar_s() -> None:
    store = small_automaton("lines")
    other = replace(store.grammar, layout=replace(store.grammar.layout, tab_length=4))
    with pytest.raises(StoreError, match="the table's tab length is 8, expected 4"):
        check_table("x", other, store.vocabulary, store.table)
    with pytest.raises(StoreError, match=r"the table.s newline is .*, expected -9"):
        check_table("x", replace(store.grammar, layout=None), store.vocabulary, table_without_tabs(store))


def table_without_tabs(store: Store) -> np.ndarray:
    table = store.table.copy()
    table[schema.TAB_LENGTH] = 1
    table.setflags(write=False)
    return table


# Stacks


def naive_bad_reduction(tables: LrTables) -> bool:
    """Whether some reduction pops a stack below its bottom or has no goto, over sets of states."""
    n_states = len(tables.action)

    def actions(state: int, column: int) -> list[int]:
        action = int(tables.action[state, column])
        if action < 1 << 30:
            return [action]
        first = action - (1 << 30)
        return tables.alternatives[first + 1 : first + 1 + int(tables.alternatives[first])].tolist()

    each = {state: {a for c in range(tables.action.shape[1]) for a in actions(state, c)} for state in range(n_states)}
    below: dict[int, set[int]] = {state: set() for state in range(n_states)}
    for state in range(n_states):
        for target in [a - 1 for a in each[state] if 0 < a < 1 << 29] + [
            g for g in tables.goto[state].tolist() if g >= 0
        ]:
            below[target].add(state)
    for state in range(n_states):
        rules = {-a - 1 for a in each[state] if a < 0} | ({int(tables.default_rule[state])} - {-1})
        for rule in rules:
            tops = {state}
            for _ in range(int(tables.rule_length[rule])):
                if 0 in tops:
                    return True
                tops = set().union(*(below[top] for top in tops))
            if any(tables.goto[top, tables.rule_lhs[rule]] < 0 for top in tops):
                return True
    return False


def found_reduction(tables: LrTables, limit: int = 1 << 20) -> tuple[int, int] | None:
    flat = [np.ascontiguousarray(a, np.int32).ravel() for a in (tables.action, tables.alternatives, tables.goto)]
    rest = [np.ascontiguousarray(a, np.int32) for a in (tables.default_rule, tables.rule_lhs, tables.rule_length)]
    return bad_reduction(*flat, *rest, limit)


def only_reduction(tables: LrTables, state: int, rule: int) -> dict[str, np.ndarray]:
    """The tables with no reduction but one: shifts and gotos stay, so the stacks are the same."""
    alternatives = tables.alternatives.copy()
    for first in {int(a) - CONFLICT for a in tables.action.ravel().tolist() if a >= CONFLICT}:
        members = slice(first + 1, first + 1 + int(alternatives[first]))
        alternatives[members] = np.where(alternatives[members] < 0, ACCEPT, alternatives[members])
    default = np.full_like(tables.default_rule, -1)
    default[state] = rule
    return {"action": np.maximum(tables.action, 0), "alternatives": alternatives, "default_rule": default}


def test_reductions_are_checked_as_the_definition_says() -> None:
    """Real tables pass; altered ones pass or not as over plain sets."""
    rng = random.Random(3)
    n_bad = n_good = 0
    for seed in range(120):
        tables = build_lr_tables(random_grammar(seed))
        assert found_reduction(tables) is None and not naive_bad_reduction(tables)
        for _ in range(6):
            name = rng.choice(["goto", "rule_length", "rule_lhs", "action", "default_rule"])
            array = getattr(tables, name).copy()
            at = tuple(rng.randrange(n) for n in array.shape)
            array[at] = {
                "goto": rng.randrange(-1, len(tables.action)),
                "rule_length": rng.randrange(5),
                "rule_lhs": rng.randrange(tables.goto.shape[1]),
                "action": rng.randrange(-len(tables.rule_lhs), len(tables.action) + 1),
                "default_rule": rng.randrange(-1, len(tables.rule_lhs)),
            }[name]
            changed = replace(tables, **{name: array})
            expected = naive_bad_reduction(changed)
            found = found_reduction(changed)
            assert (found is not None) == expected
            if found is not None:
                only = replace(changed, **only_reduction(changed, *found))
                assert naive_bad_reduction(only), "the state and the rule named are not those at fault"
            n_bad += expected
            n_good += not expected
    assert n_bad > 100 and n_good > 100


def test_reductions_that_take_too_long_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    store = small_automaton()
    monkeypatch.setattr(check, "WORK_LIMIT", 3)
    assert "reductions need more than 3 steps to check" in refused_table(store, store.table.copy())


@pytest.mark.parametrize("shape", ["stacks", "rules", "conflicts"])
def test_made_up_tables_take_neither_for_ever_nor_all_memory(shape: str) -> None:
    """Long rules where any stack is possible, many rules in one state, and conflicts that share their alternatives."""
    n = 100
    column = np.arange(n, dtype=np.int32)[:, None]
    arrays = {
        # no state but 0 itself is above state 0, so that no stack is too short
        "action": np.broadcast_to(column.T + 1, (n, n)).copy() if shape == "stacks" else column + 1,
        "goto": np.zeros_like(column),
        "alternatives": np.zeros(0, np.int32),
        "default_rule": np.zeros(n, np.int32),
        "rule_lhs": np.zeros(2000, np.int32),
        "rule_length": np.full(2000, 1, np.int32),
    }
    arrays["action"][0], arrays["default_rule"][0] = 0, -1
    arrays["action"][1:, 0] = np.where(arrays["action"][1:, 0] == 1, 2, arrays["action"][1:, 0])
    assert found_reduction(SimpleNamespace(**arrays), 30_000) is None
    if shape == "conflicts":
        arrays["action"] = CONFLICT + 0 * column + column.T
        arrays["alternatives"] = np.full(
            200, 15, np.int32
        )  # 15 actions from each place on, all of them shifts to state 14
    else:
        arrays["rule_length"][:] = 4000
    if shape == "rules":
        arrays["action"] = np.repeat(arrays["action"], 2000, axis=1)
        arrays["action"][7] = -1 - np.arange(2000)
    with pytest.raises(LimitError, match="reductions need more than 30,000 steps to check"):
        found_reduction(SimpleNamespace(**arrays), 30_000)


def test_a_stack_that_is_popped_below_its_bottom() -> None:
    store = small_automaton()
    table = store.table.copy()
    begin = int(table[schema.RULE_LENGTH])
    table[begin : begin + int(table[schema.N_RULES])] += 40
    assert re.search(r"state \d+ reduces by rule \d+ on a stack that is too short", refused_table(store, table))


@pytest.mark.slow
@pytest.mark.parametrize("n", share([30, 300], 1))
def test_what_is_let_through_can_be_run(n: int) -> None:
    """The engine in plain Python, over arrays that refuse every index outside them, on tables altered at random."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    script = [sys.executable, "-W", "ignore", "strict_engine.py", "1", str(n)]
    run = subprocess.run(script, cwd=TESTS / "support", env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    kept, endless = map(int, run.stdout.split())
    assert kept > n // 12 and endless == 0
