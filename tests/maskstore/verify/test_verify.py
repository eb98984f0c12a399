"""`verify` passes on what is built, and refuses every automaton that gives another mask somewhere."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from automaton_mutator import AutomatonMutator, Places, ids_of, naive_mask, small_stores
from engine_cases import MAKERS, longest, random_vocabulary
from grammars import JSON
from naive_engine import NaiveEngine, moved
from shares import parts, share
from table_mutator import opened
from test_layers import imports, sources

from maskwright.analysis.errors import LimitError, MaskwrightError, StoreError
from maskwright.analysis.grammar.columns import Column
from maskwright.analysis.loading import load_grammar
from maskwright.analysis.loading.names import known_grammars
from maskwright.maskstore.table import schema
from maskwright.maskstore.table.check import check_table
from maskwright.maskstore.tokens.events import move_of
from maskwright.maskstore.verify import verification, verify_table
from maskwright.maskstore.verify.reading import Move, Reader
from maskwright.maskstore.verify.trusted import Lexer
from maskwright.maskstore.vocabulary import load_vocabulary
from maskwright.stores.build import build_store, compile_store
from maskwright.stores.store import Store
from maskwright.verification import verify

QUICK = (
    "json",
    "json.compact",
    "domino.conll",
    "domino.json_gsm8k",
    "domino.rpg_template",
    "domino.xml_person",
    "toml",
)
SLOW = [name for name in known_grammars() if name not in QUICK]


@pytest.mark.parametrize("name", share([*QUICK, *SLOW], 4))
def test_the_library_passes(name: str) -> None:
    report = verify(build_store(load_grammar(name), load_vocabulary("python-tiny")))
    assert report.passed, report.to_dict()["differences"][:1]
    assert report.counts["look-ups"] > 0 and report.counts["roots"] > 0


@pytest.mark.parametrize("seeds", share(parts(400, 8), 1))
def test_random_grammars_pass(seeds: range) -> None:
    """Of all kinds of lexing, conflicts followed or decided by shifts."""
    n = 0
    for seed in seeds:
        try:
            grammar = MAKERS[seed % len(MAKERS)](seed)
            if seed % 3 == 0:
                grammar = replace(grammar, conflicts="shift")
            store = compile_store(grammar, random_vocabulary(grammar, seed, 30))
        except MaskwrightError:
            continue
        n += 1
        report = verify(store)
        assert report.passed, (seed, report.to_dict()["differences"][:1])
    assert n > len(seeds) // 2


def mutations(stores: list[Store], n: int) -> Counter[str]:
    """Alter automata, until n of them give another mask somewhere, which `verify` must then refuse.

    That is decided by brute force, and at the first such text the plain engine says which mask is right.
    """
    tally: Counter[str] = Counter()
    places = [Places(store, number, 150) for number, store in enumerate(stores)]
    judges = [NaiveEngine(store.grammar, store.grammar.conflicts) for store in stores]
    known: dict[tuple[int, bytes], bool] = {}
    for i in range(20 * n):
        number = i % len(stores)
        store = stores[number]
        table = AutomatonMutator(store, random.Random(i)).mutate()
        try:
            check_table("x", store.grammar, store.vocabulary, table)
        except StoreError:
            tally["no table"] += 1
            continue
        place = places[number].difference(table)
        try:
            has_passed = not verify_table("x", store.grammar, store.vocabulary, table).differences
        except LimitError:
            has_passed = False
        if place is None:
            tally["same, passed" if has_passed else "same, refused"] += 1
            continue
        assert not has_passed, (store.grammar.name, i, place.text)
        tally["different"] += 1
        key = number, place.text
        if key not in known:
            expected = naive_mask(judges[number], store.vocabulary, place.text)
            known[key] = ids_of(place.words) == expected
        assert known[key], (store.grammar.name, place.text)
        if tally["different"] == n:
            return tally
    raise AssertionError(f"too few altered tables give another mask: {tally}")


@pytest.mark.parametrize("n", share([2, 8], 1))
def test_altered_automata_are_refused(n: int) -> None:
    tally = mutations(small_stores(n), 50)
    assert tally["same, passed"] > n


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_a_thousand_altered_automata_are_refused(part: int) -> None:
    tally = mutations(small_stores(30, 1000 * (part + 1)), 250)
    assert tally["same, passed"] > 25


def test_it_shares_nothing_with_the_builder() -> None:
    """Beside its own modules it imports what a table is, checks it as one from a file, and takes a stack of its own."""
    allowed = {"schema", "check", "vocabulary", "errors", "nesting", "damaged", "grammar", "verify"}
    for path in sources("maskstore"):
        if path.parent.name == "verify":
            for module, _ in imports(path):
                names = module.split(".")
                assert names[0] != "maskwright" or set(names) & allowed, (path.name, module)
                assert names[1:3] not in (["maskstore", "tokens"], ["maskstore", "automaton"], ["analysis", "lr"])


def json_store() -> Store:
    grammar = longest(JSON, "json")
    return compile_store(grammar, random_vocabulary(grammar, 0))


def test_a_difference_says_where() -> None:
    """The token that is taken out of a mask is named, with the stack on which it is missing."""
    store = json_store()
    table = store.table.copy()
    token = next(t for t, text in enumerate(store.vocabulary.tokens) if text == b"1")
    bits = table[table[schema.ROWS] : table[schema.MASK_IDS]].reshape(-1, store.n_words)
    rows = np.flatnonzero(bits[:, token // 32] >> token % 32 & 1)
    assert len(rows)
    bits[rows, token // 32] &= ~(np.int32(1) << np.int32(token % 32))
    report = verify(Store(store.grammar, store.vocabulary, table, store.counts))
    assert not report.passed
    lacks = [each for each in report.differences if not each.is_allowed]
    assert lacks and all(token in each.tokens for each in lacks)
    assert any(each.cells[0].startswith("0:start") for each in lacks)
    assert "lacks what the parser accepts: '1'" in report.described(lacks[0])
    facts = report.to_dict()
    assert facts["passed"] is False and facts["differences"][0]["says"]


def without(store: Store, text: bytes) -> Store:
    """A store whose masks all lack a token."""
    table = store.table.copy()
    token = store.vocabulary.tokens.index(text)
    bits = table[table[schema.ROWS] : table[schema.MASK_IDS]].reshape(-1, store.n_words)
    bits[:, token // 32] &= ~(np.int32(1) << np.int32(token % 32))
    return Store(store.grammar, store.vocabulary, table, store.counts)


def test_what_was_found_before_a_limit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    forged = without(json_store(), b"1")
    assert not verify(forged).passed
    monkeypatch.setattr(verification, "MOST_VISITS", 3)
    assert not verify(forged).passed
    with pytest.raises(LimitError, match="more than 3 visits: nothing was decided"):
        verify(json_store())


def test_what_cannot_be_verified_is_refused() -> None:
    store = json_store()
    with pytest.raises(MaskwrightError, match="open, since it went over its budget"):
        verify(opened(store.grammar, store.vocabulary))
    with pytest.raises(MaskwrightError, match="EntryStore has no stack automaton"):
        verify(build_store(replace(store.grammar, lexing="nfa"), store.vocabulary))  # type: ignore[arg-type]
    with pytest.raises(MaskwrightError, match="SchemaStore has no stack automaton"):
        verify(build_store({"type": "integer"}, store.vocabulary))  # type: ignore[arg-type]
    for seconds in (0, -1, float("nan"), "5", True):
        with pytest.raises(MaskwrightError, match="seconds is"):
            verify("no such file", seconds=seconds)  # type: ignore[arg-type]


def test_a_table_that_no_engine_may_read_is_refused() -> None:
    store = json_store()
    table = store.table.copy()
    table[table[schema.ROOTS]] = 1 << 20
    with pytest.raises(StoreError, match="roots"):
        verify(Store(store.grammar, store.vocabulary, table, store.counts))


def test_time_and_progress() -> None:
    store = json_store()
    with pytest.raises(LimitError, match="nothing was decided"):
        verify(store, seconds=1e-9)
    steps: list[str] = []
    verify(store, progress=lambda what, done, total: steps.append(what))
    assert {"lexer states", "tokens", "look-ups", "visits"} <= set(steps)


def test_moves_are_the_layouts() -> None:
    """What a piece of a newline does to columns, from here and from the definition."""
    rng = random.Random(3)
    for seed in range(1, 30):
        try:
            grammar = MAKERS[1](seed)
            store = compile_store(grammar, random_vocabulary(grammar, seed, 5))
        except MaskwrightError:
            continue
        layout = grammar.layout
        assert layout is not None
        reader = Reader(Lexer(store.table, grammar.n_terminals), int(store.table[schema.N_COLUMNS]))
        for _ in range(20):
            piece = bytes(rng.choices(b"\n \t\f \t ", k=rng.randint(0, 9)))
            before = columns = (8, 3) if layout.tabs == "consistent" else (8, 8)
            number = 0
            for byte in piece:
                number, columns = reader.step_move(number, byte), moved(layout, columns, byte)
            move = reader.moves[number]
            expected = move_of(layout, piece)
            assert move == Move(-3 if expected.stop < -1 else expected.stop, *expected[1:])
            assert expected.after(Column(*before)) == columns
