"""Stores that are closed in the background: the same masks from the beginning, whenever the table is replaced."""

from __future__ import annotations

import gc
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_cases import MAKERS, random_vocabulary, vocabulary_of
from mask_bits import row
from shares import parts, share

import maskwright as mw
from maskwright.analysis.errors import DeadEndError, GrammarError, IllegalTokenError, LimitError, MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.automaton import stack_automaton
from maskwright.maskstore.automaton.stack_automaton import Budget
from maskwright.maskstore.table.build import prepare_engine_table
from maskwright.maskstore.table.compiled import EngineTable, Progress
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

LISTS = 'start: "[" [start ("," start)*] "]" | "x"'


class Gated:
    """A store that is closed when the test says so."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, error: BaseException | None = None) -> None:
        self._gate = threading.Event()
        found, close = prepare_engine_table(grammar, vocabulary)

        def closed(progress: Progress) -> EngineTable:
            while not self._gate.wait(0.01):
                progress("closure", 0, 1)
            if error is not None:
                raise error
            return close(progress)

        self.store = Store.of(found).close_in_background(closed)

    def open_gate(self) -> None:
        self._gate.set()


def lists() -> tuple[Grammar, Vocabulary]:
    return mw.parse_grammar(LISTS), vocabulary_of(b"[", b"]", b"[[", b",", b"x", b"x,", b"]]", b"]],[")


def test_a_store_built_lazily_becomes_the_store_built_at_once() -> None:
    grammar, vocabulary = lists()
    expected = compile_store(grammar, vocabulary)
    store = mw.build_store(grammar, vocabulary, lazy=True)
    assert isinstance(store, Store)
    matcher = store.matcher()
    assert row(matcher) == row(expected.matcher())
    store.close()
    assert store.is_closed and not store.is_closing
    assert (store.table == expected.table).all() and store.counts == expected.counts
    assert not store.table.flags.writeable
    store.close()
    assert "being closed" not in repr(store)


def test_a_store_built_at_once_has_nothing_to_close() -> None:
    store = compile_store(*lists())
    assert store.is_closed and not store.is_closing
    store.close()


@pytest.mark.parametrize("seed", share(range(12), 1))
@pytest.mark.parametrize("make", MAKERS)
def test_masks_are_the_same_whenever_the_table_is_replaced(make: Callable[[int], Grammar], seed: int) -> None:
    """Fills, advances, rollbacks, forks, resets and answers in any order, with the table replaced between any two."""
    grammar = make(seed)
    vocabulary = random_vocabulary(grammar, seed)
    try:
        store = compile_store(grammar, vocabulary)
    except (GrammarError, LimitError):
        pytest.skip("no store")
    rng = random.Random(seed)
    for n_steps in (0, 1, 2, 5, 20):
        gated = Gated(grammar, vocabulary)
        pairs = [(store.matcher(), gated.store.matcher())]
        if rng.random() < 0.5:
            pairs[0][1].fill(words := np.zeros(store.n_words, np.uint32))
        for step in range(n_steps + 20):
            if step == n_steps:
                assert gated.store.is_closing
                gated.open_gate()
                gated.store.close()
                assert gated.store.is_closed == store.is_closed
            known, asked = rng.choice(pairs)
            kind = rng.choice(
                ("fill", "fill", "advance", "advance", "step", "rollback", "fork", "ask", "bytes", "pickle")
            )
            try:
                allowed = sorted(row(known))
            except LimitError:
                break
            if kind == "fill":
                words = np.zeros(store.n_words, np.uint32)
                for _ in range(2):  # the second time it is no new array
                    asked.fill(words)
                    assert set(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))) == set(allowed)
            elif kind in ("advance", "step") and allowed:
                token = rng.choice(allowed)
                results = []
                for matcher in (known, asked):
                    words = np.zeros(store.n_words, np.uint32)
                    try:
                        matcher.step(token, words) if kind == "step" else matcher.advance(token)
                    except (LimitError, DeadEndError) as error:
                        results.append(type(error))
                    else:
                        results.append(words.tobytes())
                assert results[0] == results[1]
            elif kind == "rollback":
                n = rng.randrange(3)
                try:
                    known.rollback(n)
                except MaskwrightError:
                    continue
                asked.rollback(n)
            elif kind == "fork":
                pairs.append((known.fork(), asked.fork()))
            elif kind == "ask":
                assert known.is_accepting() == asked.is_accepting()
                token = rng.randrange(vocabulary.size)
                assert known.is_allowed(token) == asked.is_allowed(token)
            elif kind == "bytes":
                data = vocabulary.tokens[rng.randrange(vocabulary.size)]
                results = []
                for matcher in (known, asked):
                    try:
                        matcher.advance_bytes(data)
                    except (IllegalTokenError, LimitError) as error:
                        results.append(type(error))
                    else:
                        results.append(None)
                assert results[0] == results[1]
            elif kind == "pickle" and step > n_steps:
                pairs.append((known.fork(), pickle.loads(pickle.dumps(asked))))
            known.reset() if known.is_finished() else None
            asked.reset() if asked.is_finished() else None


def test_a_batch_in_threads_while_the_table_is_replaced() -> None:
    grammar = mw.load_grammar("json")
    vocabulary = mw.load_vocabulary("python-tiny")
    expected = compile_store(grammar, vocabulary)
    gated = Gated(grammar, vocabulary)
    size = 24
    begun = threading.Barrier(4)

    def decode(n_threads: int, seed: int) -> None:
        rng = random.Random(seed)
        batch, known = gated.store.batch(size, n_threads=n_threads), expected.batch(size)
        words, right = (np.zeros((size, expected.n_words), np.uint32) for _ in range(2))
        opened = batch.many._table
        begun.wait(60)  # a table that is closed before is not the open one
        for step in range(60):
            if step == 20:
                gated.open_gate()
            if step == 40:
                gated.store.close()
            batch.fill(words)
            known.fill(right)
            assert (words == right).all()
            bits = np.unpackbits(right.view(np.uint8), axis=1, bitorder="little")
            tokens = [int(rng.choice(np.flatnonzero(each).tolist() or [-1])) for each in bits]
            batch.advance(tokens)
            known.advance(tokens)
        assert not np.array_equal(opened, expected.table) and np.array_equal(batch.many._table, expected.table)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(decode, n_threads, seed) for seed, n_threads in enumerate((1, 1, 2, 3))]:
            done.result()
    gated.store.close()
    assert (gated.store.table == expected.table).all()


@pytest.fixture
def waiting() -> Iterator[Gated]:
    gated = Gated(*lists())
    yield gated
    gated.open_gate()


def opened_soon(gated: Gated) -> None:
    threading.Timer(0.2, gated.open_gate).start()


@pytest.mark.parametrize("use", ["save", "save_store", "pickle", "rows", "gpu"])
def test_what_needs_the_closed_table_waits_for_it(use: str, waiting: Gated, tmp_path: Path) -> None:
    store, expected = waiting.store, compile_store(*lists())
    matcher = store.matcher()
    assert row(matcher) == row(expected.matcher())
    path = tmp_path / "lists.store"
    opened_soon(waiting)
    if use == "save":
        store.save(path)
    elif use == "save_store":
        mw.save_store(store, path)
    elif use == "pickle":
        assert (pickle.loads(pickle.dumps(store)).table == expected.table).all()
    elif use == "rows":
        pytest.importorskip("torch")
        rows = mw.ResidentRows(store, "cpu")
        (number,) = rows.ids([matcher]).tolist()
        assert set(rows.allowed(number).tolist()) == row(expected.matcher())
    else:
        pytest.importorskip("torch")
        batch = mw.GpuBatch(store, 1, device="cpu")
        batch.admit([0])
        assert (batch._table.numpy() == expected.table).all()
    assert store.is_closed
    if path.exists():
        assert (mw.load_store(path).table == expected.table).all()


def test_a_store_that_nobody_needs_is_not_closed_further(waiting: Gated) -> None:
    closing: Any = waiting.store._closing
    assert closing.is_at_work
    del waiting.store
    gc.collect()
    assert closing._has_ended.wait(5) and closing.is_done


def test_memory_that_runs_out_leaves_an_open_store() -> None:
    grammar, vocabulary = lists()
    gated = Gated(grammar, vocabulary, MemoryError("none left"))
    gated.open_gate()
    for _ in range(2):
        with pytest.raises(MemoryError, match="none left"):
            gated.store.close()
    assert not gated.store.is_closed and not gated.store.is_closing
    assert "open" in repr(gated.store)
    assert row(gated.store.matcher()) == row(compile_store(grammar, vocabulary).matcher())


def test_an_automaton_past_its_limits_stays_open() -> None:
    grammar, vocabulary = lists()
    gated = Gated(grammar, vocabulary, LimitError("too large"))
    gated.open_gate()
    gated.store.close()
    assert not gated.store.is_closed and not gated.store.is_closing


def test_progress_is_told_while_one_waits(waiting: Gated) -> None:
    told: list[tuple[str, int, int]] = []

    def progress(*step: Any) -> None:
        told.append(step)
        waiting.open_gate()

    waiting.store.close(progress)
    assert ("closure", 0, 1) in told


def test_waiting_can_be_interrupted(waiting: Gated) -> None:
    def interrupt(*step: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        waiting.store.close(interrupt)
    assert waiting.store.is_closing
    waiting.open_gate()
    waiting.store.close()
    assert waiting.store.is_closed


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no such signals here")
@pytest.mark.parametrize("use", ["close", "save", "pickle"])
def test_one_waits_again_after_an_interrupt(use: str, waiting: Gated, tmp_path: Path) -> None:
    """An interrupted Thread.join takes the thread for ended, and what followed was done with an open store."""
    store, path = waiting.store, tmp_path / "lists.store"
    act = {"close": store.close, "save": lambda: store.save(path), "pickle": lambda: pickle.dumps(store)}[use]
    threading.Timer(0.3, signal.pthread_kill, (threading.get_ident(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        act()
    assert store.is_closing and not path.exists()
    opened_soon(waiting)
    act()
    assert store.is_closed
    assert use != "save" or mw.load_store(path).is_closed


def test_progress_that_is_no_function_is_refused_in_any_state(waiting: Gated) -> None:
    for _ in range(2):
        with pytest.raises(MaskwrightError, match="expected a function"):
            waiting.store.close(3)  # type: ignore[arg-type]
        waiting.open_gate()
        waiting.store.close()


def test_lexing_nfa_has_nothing_to_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = mw.parse_grammar(LISTS, lexing="nfa")
    _, vocabulary = lists()
    with pytest.raises(GrammarError, match="nothing to close"):
        mw.build_store(grammar, vocabulary, lazy=True)
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    assert isinstance(mw.cached_store(grammar, vocabulary, lazy=True), mw.EntryStore)


def test_a_grammar_without_texts_is_refused_at_once() -> None:
    before = threading.active_count()
    with pytest.raises(DeadEndError):
        mw.build_store('start: "ab"', vocabulary_of(b"a"), lazy=True)
    gc.collect()
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_the_cache_gets_the_closed_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    grammar, vocabulary = lists()
    store = mw.cached_store(grammar, vocabulary, lazy=True)
    assert isinstance(store, Store) and store.origin is None
    store.close()
    again = mw.cached_store(grammar, vocabulary, lazy=True)
    assert isinstance(again, Store) and again.origin is not None
    assert again.is_closed and not again.is_closing and (again.table == store.table).all()


def test_a_grammar_without_texts_does_not_get_into_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(folder))
    for _ in range(2):
        with pytest.raises(DeadEndError):
            mw.cached_store('start: "ab"', vocabulary_of(b"a"), lazy=True)
        time.sleep(0.2)
    assert not list(folder.iterdir())


def test_an_automaton_past_its_budget_is_kept_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As without lazy: what is built again takes as long as before."""
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(stack_automaton, "Budget", lambda: Budget(edges=0))
    store = mw.cached_store(*lists(), lazy=True)
    assert isinstance(store, Store)
    store.close()
    assert not store.is_closed
    again = mw.cached_store(*lists(), lazy=True)
    assert isinstance(again, Store) and again.origin is not None and not again.is_closed
    again.close()
    assert row(again.matcher()) == row(compile_store(*lists()).matcher())


@pytest.mark.parametrize("numbers", share(parts(300, 40), 1), ids=str)
def test_each_store_has_its_own_endings_whenever_its_table_is_replaced(numbers: range) -> None:
    """What was learnt about a table that is gone must not be found for another that is where it was."""
    wrong = []
    kept = []
    for number in numbers:
        word = "".join(random.Random(number).choices("abcdefghijk", k=4))
        store = mw.build_store(f'start: "{word}" | "(" start ")"', vocabulary_of(singles=b"abcdefghijk()"), lazy=True)
        assert isinstance(store, Store)
        if store.matcher().shortest_ending().data != word.encode():
            wrong.append(word)
        if number % 7 == 0:
            kept.append(store)
    assert not wrong


def test_an_error_holds_no_tables() -> None:
    class Tables:
        pass

    found, _ = prepare_engine_table(*lists())
    tables: list[weakref.ref[Tables]] = []

    def closed(progress: Progress) -> EngineTable:
        large = Tables()
        tables.append(weakref.ref(large))
        raise MemoryError

    store = Store.of(found).close_in_background(closed)
    for _ in range(3):
        with pytest.raises(MemoryError) as caught:
            store.close()
        assert len(traceback.extract_tb(caught.value.__traceback__)) < 6
    del caught
    gc.collect()
    assert tables[0]() is None


@pytest.mark.slow
def test_a_process_ends_while_a_store_is_being_closed() -> None:
    """Its thread neither delays the end nor says anything."""
    code = "import maskwright as mw\nstore = mw.build_store('c', 'python-tiny', lazy=True)\nassert store.is_closing\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_closes_its_own() -> None:
    """The thread is not there after a fork; waiting makes another."""
    code = """
import os, threading, time, warnings
import maskwright as mw, numpy as np
warnings.simplefilter("ignore")
from maskwright.maskstore.table.build import prepare_engine_table
from maskwright.stores.closing import Closing
from maskwright.stores.store import Store
grammar, vocabulary = mw.load_grammar("json"), mw.load_vocabulary("python-tiny")
found, close = prepare_engine_table(grammar, vocabulary)
gate = threading.Event()
parent = os.getpid()
def closed(progress):
    if os.getpid() == parent:
        gate.wait()
    return close(progress)
def begin_slowly(closing, begin=Closing._begin):
    begun.append(closing)
    time.sleep(0.1)
    begin(closing)
begun = []
store = Store.of(found).close_in_background(closed)
Closing._begin = begin_slowly
child = os.fork()
if not child:
    assert not store.is_closing and not store.is_closed and "open" in repr(store)
    matcher = store.matcher()
    words = np.zeros(store.n_words, np.uint32)
    matcher.fill(words)
    threads = [threading.Thread(target=store.close) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    matcher.fill(words)
    os._exit(0 if store.is_closed and len(begun) == 1 and matcher.text.texts._table.base is store.table else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert store.is_closing
gate.set()
store.close()
assert store.is_closed
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
