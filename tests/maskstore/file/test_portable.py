"""Stores in other processes: a pickle of a loaded store is its file's name, and is refused where the file is another by then."""

from __future__ import annotations

import copy
import dataclasses
import multiprocessing
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stores import layout_grammar, small_vocabulary

from maskwright.analysis.errors import MaskwrightError, StoreError
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.engine import slot
from maskwright.maskstore.file.fileformat import save_store
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import build_store, compile_store
from maskwright.stores.entry_store import EntryStore
from maskwright.stores.store import Store, load_store

VOCABULARY = Vocabulary("abc", (b"a", b"b", b"aa", b""), {3: "</s>"}, (3,))


def automaton(text: str = 'start: "a" start "b" | "a" "b"') -> Store:
    return compile_store(parse_grammar(text, name="pairs"), VOCABULARY)


def entries() -> EntryStore:
    return build_store(layout_grammar(), small_vocabulary())  # type: ignore[return-value]


def writeable(value: Any, name: str = "store") -> list[str]:
    """The arrays of a store that can be written, those of its parts too."""
    if isinstance(value, np.ndarray):
        return [name] * value.flags.writeable
    parts = [part for part in ("nfa", "masks") if hasattr(value, part)] if name == "store" else []
    return [
        found
        for key, one in vars(value).items()
        if isinstance(one, np.ndarray) or key in parts
        for found in writeable(one, f"{name}.{key}")
    ]


def same(first: Any, second: Any) -> bool:
    if isinstance(first, Store):
        is_same = np.array_equal(first.table, second.table)
    else:
        is_same = np.array_equal(first.entry_mask, second.entry_mask) and first.rules == second.rules
    is_same = is_same and not writeable(second)
    names = (first.vocabulary.name, first.vocabulary.checked) == (second.vocabulary.name, second.vocabulary.checked)
    facts = first.grammar.digest == second.grammar.digest and first.vocabulary == second.vocabulary
    return bool(is_same and names and facts and first.counts.keys() == second.counts.keys())


@pytest.mark.parametrize("make", [automaton, entries])
@pytest.mark.parametrize("is_loaded", [False, True])
def test_pickles_and_copies(make: Any, is_loaded: bool, tmp_path: Path) -> None:
    store = make()
    path = tmp_path / "store.safetensors"
    if is_loaded:
        save_store(store, path)
        store = load_store(path)
        assert store.origin.path == str(path)
    assert copy.copy(store) is store and copy.deepcopy(store) is store, "nothing in it can change"
    pickled = pickle.dumps(store)
    assert same(store, pickle.loads(pickled))
    assert (str(path).encode() in pickled) == is_loaded and (len(pickled) < 1000) == is_loaded
    assert same(store, pickle.loads(pickle.dumps(pickle.loads(pickled))))


def test_a_file_that_is_another_by_then(tmp_path: Path) -> None:
    path = tmp_path / "store.safetensors"
    save_store(automaton(), path)
    store = load_store(path, vocabulary=dataclasses.replace(VOCABULARY, name="named", checked=True))
    pickled = pickle.dumps(store)
    back = pickle.loads(pickled)
    assert same(store, back) and back.origin == store.origin
    save_store(automaton('start: "a"'), path)
    with pytest.raises(StoreError, match="is not the store that was pickled under this path"):
        pickle.loads(pickled)
    by_content = pickle.dumps(store)
    path.unlink()
    with pytest.raises(StoreError, match=r"there is no file .*store\.safetensors here; put it there"):
        pickle.loads(pickled)
    assert same(store, pickle.loads(by_content)), "its file was replaced, so it went by content"


def test_a_changed_copy_has_no_file(tmp_path: Path) -> None:
    """`dataclasses.replace` makes another store: its pickle must not name the file of the first."""
    path = tmp_path / "store.safetensors"
    save_store(automaton(), path)
    store = load_store(path)
    other = dataclasses.replace(store, grammar=parse_grammar('start: "a" start "b" | "a" "b"', name="renamed"))
    assert other.origin is None and pickle.loads(pickle.dumps(other)).grammar.name == "renamed"


def test_matchers_and_batches(tmp_path: Path) -> None:
    """They go with their texts, history included."""
    path = tmp_path / "store.safetensors"
    save_store(automaton(), path)
    for store in (automaton(), load_store(path)):
        matcher = store.matcher(max_rollback=5)
        for token in (0, 2, 1):
            matcher.advance(token)
        batch = store.batch(2, n_threads=2)
        batch.advance([0, 2])
        for moved, batches in (
            (pickle.loads(pickle.dumps(matcher)), pickle.loads(pickle.dumps(batch))),
            (copy.deepcopy(matcher), copy.deepcopy(batch)),
        ):
            assert moved.is_allowed(1) and not moved.is_allowed(0)
            moved.rollback(2)
            assert moved.is_allowed(0)
            words = np.zeros((2, store.n_words), np.int32)
            batches.fill(words)
            batches.advance([1, 1])
            assert words.any() and batches.is_accepting(0) and not batches.is_accepting(1)
        assert not matcher.is_allowed(0), "the first is where it was"


def test_matchers_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    pickled = pickle.dumps(automaton().matcher())
    monkeypatch.setattr(slot, "SOURCE", slot.SOURCE + 1)
    with pytest.raises(MaskwrightError, match="pickled by another version of maskwright"):
        pickle.loads(pickled)


def _advance(store: Store) -> tuple[int, bool]:
    matcher = store.matcher()
    matcher.advance(2)
    return os.getpid(), matcher.is_allowed(1)


def test_a_spawned_process_maps_the_file(tmp_path: Path) -> None:
    path = tmp_path / "store.safetensors"
    save_store(automaton(), path)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        process, is_allowed = pool.apply(_advance, (load_store(path),))
    assert process != os.getpid() and is_allowed
