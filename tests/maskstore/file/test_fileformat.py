"""Store files that are as they should be: the same store comes back, the same bytes go out, and writing leaves no halves."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive_store import python_store
from stores import (
    COMMITTED,
    COMMITTED_ALLOWED,
    COMMITTED_TOKENS,
    content_digest,
    layout_grammar,
    read_parts,
    short_allowed,
    small_store,
    small_vocabulary,
    write_parts,
)

from maskwright.analysis.errors import MaskwrightError, StoreError
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.reference import ReferenceDecoder
from maskwright.maskstore.file import fileformat
from maskwright.maskstore.file.fileformat import FORMAT_VERSION, save_store, store_info
from maskwright.maskstore.file.fileheader import TENSORS
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.entry_store import EntryStore
from maskwright.stores.store import load_store


def arrays_of(store: EntryStore) -> dict[str, np.ndarray]:
    """All arrays of a store by the names that they have in a file, without the vocabulary's."""
    found = {"counts": np.stack(list(store.counts.values()))}
    for name in TENSORS:
        group, _, member = name.rpartition(".")
        if group != "vocabulary" and name != "counts":
            found[name] = getattr(getattr(store, group) if group else store, member)
    return found


def assert_equal_stores(first: EntryStore, second: EntryStore) -> None:
    for name in ("grammar", "vocabulary", "codes", "rules", "is_streamlined"):
        assert getattr(first, name) == getattr(second, name)
    assert first.vocabulary.name == second.vocabulary.name
    assert first.masks.n_tokens == second.masks.n_tokens
    assert list(first.counts) == list(second.counts)
    arrays = arrays_of(second)
    for name, array in arrays_of(first).items():
        assert array.dtype == arrays[name].dtype == TENSORS[name][0], name
        np.testing.assert_array_equal(array, arrays[name], name)


# What comes back


@pytest.mark.parametrize("has_layout", [True, False])
@pytest.mark.parametrize("streamlined", [True, False])
def test_the_same_store_comes_back(tmp_path: Path, streamlined: bool, has_layout: bool) -> None:
    store = small_store(streamlined, has_layout)
    save_store(store, tmp_path / "s.safetensors")
    found = load_store(tmp_path / "s.safetensors")
    assert_equal_stores(store, found)
    assert repr(found) == repr(store)
    assert not any(array.flags.writeable for name, array in arrays_of(found).items() if name != "counts")
    assert not any(counts.flags.writeable for counts in found.counts.values())


def test_a_store_of_python_comes_back(tmp_path: Path) -> None:
    pytest.importorskip("mistral_common")
    store = python_store()
    path = tmp_path / "python.safetensors"
    save_store(store, path)
    assert path.stat().st_size < 2_000_000
    assert_equal_stores(store, load_store(path, grammar=store.grammar, vocabulary=store.vocabulary))


def test_path_may_be_text(tmp_path: Path) -> None:
    path = str(tmp_path / "störe [1]")
    save_store(small_store(), path)
    assert_equal_stores(small_store(), load_store(path))
    assert store_info(path)["bytes"] == os.path.getsize(path)


def test_arrays_need_not_be_contiguous(tmp_path: Path) -> None:
    store = small_store()
    nfa = replace(store.nfa, next_state=np.asfortranarray(store.nfa.next_state))
    masks = replace(store.masks, dense=np.repeat(store.masks.dense, 2, axis=0)[::2])
    save_store(replace(store, nfa=nfa, masks=masks), tmp_path / "strided")
    save_store(store, tmp_path / "plain")
    assert (tmp_path / "strided").read_bytes() == (tmp_path / "plain").read_bytes()


def test_wide_integers_are_read_too(tmp_path: Path) -> None:
    save_store(small_store(), tmp_path / "s")
    facts, tensors = read_parts(tmp_path / "s")
    wide = {
        name: array.astype(TENSORS[name][0] if array.dtype.kind != "b" else np.uint8) for name, array in tensors.items()
    }
    wide |= {name: tensors[name] for name in ("nfa.is_accepting", "nfa.is_resting")}
    write_parts(tmp_path / "wide", facts, wide)
    assert (tmp_path / "wide").stat().st_size > 2 * (tmp_path / "s").stat().st_size
    assert_equal_stores(small_store(), load_store(tmp_path / "wide"))


def test_integers_take_the_smallest_dtype(tmp_path: Path) -> None:
    save_store(small_store(), tmp_path / "s")
    _, tensors = read_parts(tmp_path / "s")
    found = {name: tensors[name].dtype.str for name in ("nfa.next_state", "nfa.terminal", "nfa.is_accepting", "counts")}
    assert found == {"nfa.next_state": "|i1", "nfa.terminal": "|u1", "nfa.is_accepting": "|u1", "counts": "|u1"}
    assert tensors["vocabulary.token_offsets"].dtype == np.uint16  # the vocabulary has 256 bytes or more
    assert tensors["masks.dense"].dtype == np.uint32


# The metadata


def test_the_metadata_are_what_the_format_says(tmp_path: Path) -> None:
    store = small_store()
    save_store(store, tmp_path / "s")
    facts, tensors = read_parts(tmp_path / "s")
    assert facts["sha256"] == content_digest(facts, tensors)
    assert facts["grammar"] == json.loads(json.dumps(store.grammar.to_dict()))
    assert facts["grammar_sha256"] == store.grammar.digest
    assert facts["vocabulary"] == {"name": "small", "sha256": store.vocabulary.digest, "size": 110}
    assert (facts["format"], facts["version"], facts["kind"], facts["lexing"], facts["rules"]) == (
        "maskwright mask store",
        3,
        "entries",
        "nfa",
        "normalised",
    )
    assert str(tmp_path).encode() not in (tmp_path / "s").read_bytes()


# What a file says of itself


def test_info(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = small_store()
    path = tmp_path / "s"
    save_store(store, path)
    monkeypatch.setattr(fileformat, "_content_digest", None)  # only reading the arrays needs it
    info = store_info(path)
    assert info.pop("tensors")["nfa.next_state"] == {"dtype": "I8", "shape": [store.nfa.n_states, 256]}
    assert json.loads(json.dumps(info)) == info
    assert info == {
        "format_version": FORMAT_VERSION,
        "kind": "entries",
        "grammar": {
            "name": "lines",
            "sha256": store.grammar.digest,
            "terminals": store.grammar.n_terminals,
            "nonterminals": store.grammar.n_nonterminals,
            "rules": len(store.grammar.rules),
        },
        "vocabulary": {"name": "small", "sha256": store.vocabulary.digest, "size": 110},
        "lexing": "nfa",
        "rules": "normalised",
        "is_streamlined": True,
        "steps": {step: int(counts.sum()) for step, counts in store.counts.items()},
        "lexer_states": store.nfa.n_states,
        "cells": store.n_cells,
        "entries": store.n_entries,
        "masks": {"dense": len(store.masks.dense), "sparse": len(store.masks.sparse_start) - 1},
        "sha256": read_parts(path)[0]["sha256"],
        "bytes": path.stat().st_size,
    }


def test_info_of_a_store_that_is_not_streamlined(tmp_path: Path) -> None:
    save_store(small_store(False), tmp_path / "s")
    info = store_info(tmp_path / "s")
    assert not info["is_streamlined"]
    assert list(info["steps"]) == ["original"]


# Whose store it is


def test_store_for_another_grammar_or_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "s"
    save_store(small_store(), path)
    grammar = parse_grammar('start: "a"', name="other")
    with pytest.raises(StoreError, match=named("grammar", "lines", layout_grammar().digest, "other", grammar.digest)):
        load_store(path, grammar=grammar)
    vocabulary = Vocabulary("little", (b"a",), {}, ())
    own = small_vocabulary()
    with pytest.raises(StoreError, match=named("vocabulary", "small", own.digest, "little", vocabulary.digest)):
        load_store(path, vocabulary=vocabulary)


def named(what: str, own: str, own_digest: str, given: str, digest: str) -> str:
    return re.escape(
        f"was made for the {what} '{own}' ({own_digest[:8]}), not for '{given}' ({digest[:8]}); export a store for that {what}"
    )


def test_the_given_objects_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "s"
    save_store(small_store(), path)
    grammar, vocabulary = replace(layout_grammar()), replace(small_vocabulary(), name="renamed", checked=True)
    found = load_store(path, grammar=grammar, vocabulary=vocabulary)
    assert found.grammar is grammar and found.vocabulary is vocabulary
    assert load_store(path).vocabulary.name == "small"


# Writing


def test_missing_folder_and_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot write .*there is no folder .*nowhere; make it first"):
        save_store(small_store(), tmp_path / "nowhere" / "s")
    with pytest.raises(StoreError, match=r"cannot write .*it exists and is not a file; give a file's path"):
        save_store(small_store(), tmp_path)
    with pytest.raises(StoreError, match=r"cannot write /dev/null: it exists and is not a file"):
        save_store(small_store(), os.devnull)
    with pytest.raises(StoreError, match=r"cannot write .*embedded null (byte|character)"):
        save_store(small_store(), f"{tmp_path}/a\0b")
    with pytest.raises(StoreError, match=r"cannot write .*: File name too long"):
        save_store(small_store(), tmp_path / ("x" * 300))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt, None),
        (OSError(28, "No space left"), StoreError, "cannot write .*: No space left"),
    ],
)
def test_an_interrupted_write_leaves_the_old_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing: str,
    error: BaseException,
    expected: type[BaseException],
    message: str | None,
) -> None:
    path = tmp_path / "s"
    save_store(small_store(), path)
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(expected, match=message):
        save_store(small_store(False), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    save_store(small_store(), tmp_path / "s")
    (tmp_path / "plain").touch()
    assert (tmp_path / "s").stat().st_mode == (tmp_path / "plain").stat().st_mode
    for mode in (10**20, -1, 0o10000):
        with pytest.raises(MaskwrightError, match=r"mode is .*; expected a file's permissions, as in 0o644"):
            save_store(small_store(), tmp_path / "s", mode=mode)


# Committed files


def test_the_committed_store_loads_and_decodes() -> None:
    store = load_store(COMMITTED / "version-3.safetensors")
    decoder = ReferenceDecoder(store)
    texts: list[list[str]] = []
    for token in COMMITTED_TOKENS:
        texts.append(short_allowed(decoder.mask()))
        decoder.advance(store.vocabulary.tokens.index(token))
    texts.append(short_allowed(decoder.mask()))
    assert texts == COMMITTED_ALLOWED


@pytest.mark.parametrize(("name", "version"), [("version-1", 1), ("version-2", 2), ("version-2-automaton", 2)])
def test_the_committed_stores_of_the_versions_before_are_refused(name: str, version: int) -> None:
    for read in (load_store, store_info):
        with pytest.raises(
            StoreError,
            match=rf"{name}\.safetensors: expected version 3 but found version {version}: an older maskwright wrote it: "
            "export the store again",
        ):
            read(COMMITTED / f"{name}.safetensors")


def test_the_committed_store_of_another_version_is_refused() -> None:
    for read in (load_store, store_info):
        with pytest.raises(
            StoreError,
            match=r"version-7\.safetensors: expected version 3 but found version 7: a newer maskwright wrote it: "
            r"update maskwright, or export the store again",
        ):
            read(COMMITTED / "version-7.safetensors")
