"""Files of stores of lexing `longest` and `contextual`: the same store comes back, as the file's own pages."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mask_bits import ids
from stores import (
    COMMITTED,
    COMMITTED_ALLOWED,
    COMMITTED_TOKENS,
    Facts,
    Tensors,
    content_digest,
    layout_grammar,
    read_parts,
    refusal,
    short_allowed,
    small_automaton,
    small_store,
    small_vocabulary,
    write_parts,
)

from maskwright.analysis.errors import GrammarError, MaskwrightError, StoreError
from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.file import automaton_file, fileformat
from maskwright.maskstore.file.fileformat import read_tensor, store_info
from maskwright.maskstore.table import schema
from maskwright.maskstore.table.check import table_sizes
from maskwright.stores.build import build_store
from maskwright.stores.entry_store import EntryStore
from maskwright.stores.store import Store, load_store

NAMES = ["lines", "sums", "modes"]


def checksum_by_definition(table: np.ndarray) -> str:
    """The member `table_checksum` as the format's text says."""
    values = table.astype("<i4").view("<u4").tolist()
    return f"{sum((2 * i + 1) * value for i, value in enumerate(values)) % 2**64:016x}"


def masks_along(store: Store, seed: int, n: int = 60) -> list[bytes]:
    """The masks along random legal texts."""
    rng = random.Random(seed)
    matcher = store.matcher()
    words = np.zeros(store.n_words, np.uint32)
    found = []
    for _ in range(n):
        try:
            matcher.fill(words)
        except MaskwrightError:
            matcher.reset()
            continue
        found.append(words.tobytes())
        allowed = sorted(ids(words))
        if not allowed or len(found) % 12 == 0:
            matcher.reset()
        else:
            short = [token for token in allowed if len(store.vocabulary.tokens[token]) < 3]
            matcher.advance(rng.choice(short or allowed))
    return found


# What comes back


@pytest.mark.parametrize("name", NAMES)
def test_the_same_store_comes_back(tmp_path: Path, name: str) -> None:
    store = small_automaton(name)
    store.save(tmp_path / "s")
    found = load_store(tmp_path / "s")
    assert isinstance(found, Store)
    assert (found.grammar, found.vocabulary, dict(found.counts)) == (
        store.grammar,
        store.vocabulary,
        dict(store.counts),
    )
    assert found.vocabulary.name == "small" and repr(found) == repr(store)
    np.testing.assert_array_equal(found.table, store.table)
    masks = masks_along(store, 1)
    assert masks == masks_along(found, 1) and len(set(masks)) > 2


def test_a_file_altered_in_place_alters_no_store(tmp_path: Path) -> None:
    """`cp` over a store that a server had loaded ended the server, or made it follow the new bytes unchecked."""
    path = tmp_path / "s"
    small_automaton().save(path)
    store = load_store(path)
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 2)
        file.write(b"\xff" * 100)
        file.truncate(4096)
    table = store.table  # type: ignore[union-attr]
    assert type(table) is np.ndarray and not table.flags.writeable and table.flags.aligned
    assert checksum_by_definition(table) == checksum_by_definition(small_automaton().table)
    assert masks_along(store, 1) == masks_along(small_automaton(), 1)  # type: ignore[arg-type]


def test_the_mapped_table_is_the_file_s_own_pages(tmp_path: Path) -> None:
    small_automaton().save(tmp_path / "s")
    table = load_store(tmp_path / "s", mapped=True).table  # type: ignore[union-attr]
    assert type(table) is np.ndarray and not table.flags.writeable and table.flags.aligned and not table.flags.owndata
    base: Any = table
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap) and base.mode == "r"
    with pytest.raises(ValueError, match=r"read-only|cannot set WRITEABLE"):
        table.setflags(write=True)
    (tmp_path / "s").unlink()
    assert checksum_by_definition(table) == checksum_by_definition(small_automaton().table)


def test_a_table_out_of_line_is_copied(tmp_path: Path) -> None:
    """safetensors lets a header be of any length, so the table may lie anywhere; it is found all the same."""
    small_automaton().save(tmp_path / "s")
    data = (tmp_path / "s").read_bytes()
    n = int.from_bytes(data[:8], "little")
    (tmp_path / "s").write_bytes((n + 1).to_bytes(8, "little") + data[8 : 8 + n] + b" " + data[8 + n :])
    found = load_store(tmp_path / "s")
    assert isinstance(found, Store) and found.table.flags.aligned
    np.testing.assert_array_equal(found.table, small_automaton().table)


def test_the_metadata_are_what_the_format_says(tmp_path: Path) -> None:
    store = small_automaton()
    store.save(tmp_path / "s")
    facts, tensors = read_parts(tmp_path / "s")
    assert facts["sha256"] == content_digest(facts, tensors)
    assert facts["table_checksum"] == checksum_by_definition(store.table)
    assert (facts["kind"], facts["lexing"], facts["version"]) == ("automaton", "longest", 3)
    assert facts["counts"] == [[name, count] for name, count in store.counts.items()]
    assert str(tmp_path).encode() not in (tmp_path / "s").read_bytes()


def test_info(tmp_path: Path) -> None:
    store = small_automaton()
    store.save(tmp_path / "s")
    info = store_info(tmp_path / "s")
    sizes = table_sizes(store.table)
    assert info["kind"] == "automaton" and info["conflicts"] == "all" and info["lexing"] == "longest"
    assert info["counts"] == dict(store.counts)
    assert (info["nodes"], info["masks"]["all"]) == (store.counts["nodes"], store.counts["masks"])
    assert (info["lexer_states"], info["parser_states"]) == (sizes["lexer states"], sizes["states"])
    assert sum(info["table_bytes"].values()) == store.table.nbytes == 4 * info["tensors"]["table"]["shape"][0]
    assert info["table_bytes"]["rows"] == 4 * store.n_words * info["masks"]["rows"]
    assert info["table_bytes"]["token_start"] == 4 * (store.vocabulary.size + 1)
    assert info["bytes"] == (tmp_path / "s").stat().st_size


def test_whose_store_it_is(tmp_path: Path) -> None:
    path = tmp_path / "s"
    small_automaton().save(path)
    grammar, vocabulary = replace(small_automaton().grammar), replace(small_vocabulary(), name="renamed", checked=True)
    found = load_store(path, grammar=grammar, vocabulary=vocabulary)
    assert found.grammar is grammar and found.vocabulary is vocabulary
    for other in (replace(grammar, conflicts="shift"), replace(grammar, lexing="nfa"), replace(grammar, text="")):
        with pytest.raises(StoreError, match=r"was made for the grammar 'lines' .* export a store for that grammar"):
            load_store(path, grammar=other)
    with pytest.raises(StoreError, match="was made for the vocabulary 'small'"):
        load_store(path, vocabulary=replace(vocabulary, eos=()))


def test_a_file_that_is_replaced_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at its header and the mapping of its table, another file is put in its place."""
    path = tmp_path / "s"
    small_automaton("lines").save(path)
    attempts = []

    def replaced(*arguments: Any) -> Any:
        attempts.append(arguments)
        small_automaton(NAMES[len(attempts) % 2]).save(path)
        return read_tensor(*arguments)

    monkeypatch.setattr(fileformat, "read_tensor", replaced)
    assert "was replaced during every attempt to read it; load it when its writers have finished" in refusal(path)
    assert len(attempts) == fileformat.ATTEMPTS
    path.write_bytes(b"no header")
    assert all(read_tensor(path, "table", attempts[0][2], mapped) is None for mapped in (False, True))


# The committed file


def test_the_committed_store_loads_and_decodes() -> None:
    """If this fails, the table's layout has changed: raise FORMAT_VERSION if a version with it has been released."""
    store = load_store(COMMITTED / "version-3-automaton.safetensors")
    assert isinstance(store, Store)
    matcher = store.matcher()
    words = np.zeros(store.n_words, np.uint32)
    texts = []
    for token in (*COMMITTED_TOKENS, None):
        matcher.fill(words)
        texts.append(short_allowed(words))
        if token is not None:
            matcher.advance(store.vocabulary.tokens.index(token))
    assert texts == COMMITTED_ALLOWED


# Checksums and imports


def test_checksum() -> None:
    rng = np.random.default_rng(1)
    block = automaton_file._BLOCK
    for n in (0, 1, 2, 1000, block, 2 * block + 3):
        table = rng.integers(-(2**31), 2**31, n).astype(np.int32)
        assert automaton_file.table_checksum(table) == checksum_by_definition(table)
    assert automaton_file.table_checksum(np.full(3 * block, -1, np.int32)) == checksum_by_definition(
        np.full(3 * block, -1)
    )


def test_an_automaton_is_loaded_without_what_builds_it(tmp_path: Path) -> None:
    """Importing that takes twice as long as all the rest together, and a decoder is kept waiting."""
    small_automaton().save(tmp_path / "s")
    script = (
        "import sys, maskwright as mw, numpy as np\n"
        "store = mw.load_store(sys.argv[1])\n"
        "matcher, batch = store.matcher(), store.batch(2)\n"
        "matcher.fill(np.zeros(store.n_words, np.uint32))\n"
        "batch.fill(np.zeros((2, store.n_words), np.uint32))\n"
        "print(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "s")], capture_output=True, text=True, check=True
    )
    modules = set(run.stdout.split())
    assert {"maskwright.maskstore.table.check", "maskwright.decoding.matcher"} <= modules
    assert (
        not {
            *("networkx", "lark", "regex", "interegular", "numpy.ma", "yaml"),
            *("maskwright.analysis.legality", "maskwright.analysis.loading", "maskwright.analysis.lexing.transducer"),
            *("maskwright.maskstore.automaton", "maskwright.maskstore.entries.build", "maskwright.lint"),
            *("maskwright.decoding.endings.ending", "maskwright.decoding.explain"),
            "maskwright.maskstore.vocabulary.tokenizer_files",
        }
        & modules
    )


# Files made up to mislead


def damage(path: Path, change: Callable[[Facts, Tensors], object], checksum: bool = True) -> None:
    """A store file with a change, its hashes made right again."""
    store = small_automaton()
    store.save(path)
    facts, tensors = read_parts(path)
    tensors["table"] = tensors["table"].copy()
    change(facts, tensors)
    if checksum and "table" in tensors:
        facts["table_checksum"] = checksum_by_definition(tensors["table"].ravel())
    write_parts(path, facts, tensors)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f, _: f.update(kind="entries"), r"metadata lacks the members \['codes', 'rules', 'steps'\]"),
        (lambda f, _: f.update(counts=[["nodes"]]), r"metadata.counts\[0\] is \['nodes'\], expected a list of 2"),
        (
            lambda f, _: f.update(counts=[["nodes", 1], ["nodes", 1]]),
            "the counts are .*, expected no name twice and no count below 0",
        ),
        (
            lambda f, _: f.update(counts=[["nodes", -1]]),
            "the counts are .*, expected no name twice and no count below 0",
        ),
        (lambda f, _: f["grammar"].update(lexing="nfa"), "lexing is 'nfa', expected 'longest' or 'contextual'"),
        (lambda f, _: f.update(lexing="contextual"), "lexing is 'contextual', expected 'longest', that of the grammar"),
        (lambda _, t: t.pop("table"), r"these tensors are missing: \['table'\]"),
        (
            lambda _, t: t.update(table=t["table"].astype(np.int64)),
            "tensor table has dtype I64, expected one that widens",
        ),
        (lambda _, t: t.update(table=t["table"].astype(np.int16)), "tensor table has dtype I16, expected I32"),
        (
            lambda _, t: t.update(table=t["table"].reshape(-1, 1)),
            r"tensor table has shape \[\d+, 1\], expected \[\d+\]",
        ),
        (
            lambda _, t: t.update(table=t["table"][:0]),
            rf"tensor table has 0 integers, expected {schema.HEADER} or more",
        ),
        (
            lambda _, t: t.update(table=t["table"][:40]),
            rf"tensor table has 40 integers, expected {schema.HEADER} or more",
        ),
        (
            lambda _, t: t.update(table=t["table"][:-1]),
            "the table's part eos has 0 integers, expected 1|do not lie end to end",
        ),
        (lambda _, t: t.update(table=np.append(t["table"], np.int32(0))), "part eos has 2 integers, expected 1"),
    ],
)
def test_metadata_that_mislead(tmp_path: Path, change: Callable[[Facts, Tensors], object], message: str) -> None:
    damage(tmp_path / "s", change)
    assert re.search(message, refusal(tmp_path / "s"))


def test_a_table_of_another_checksum(tmp_path: Path) -> None:
    damage(tmp_path / "s", lambda f, _: f.update(table_checksum="0" * 16), checksum=False)
    assert "its table has checksum" in refusal(tmp_path / "s")


# Which store a grammar gets


def test_the_lexing_decides() -> None:
    grammar, vocabulary = parse_grammar('start: "a" start "b" | "a" "b"'), small_vocabulary()
    assert grammar.lexing == "contextual"
    stages: list[str] = []
    store = build_store(grammar, vocabulary, progress=lambda what, done, total: stages.append(what))
    assert isinstance(store, Store) and {"walk", "parses"} <= set(stages) <= {"walk", "parses", "closure"}
    assert isinstance(build_store(replace(grammar, lexing="nfa"), vocabulary), EntryStore)
    for option in ({"streamlined": False}, {"rules": "lark"}):
        with pytest.raises(
            GrammarError, match=r"has lexing 'contextual', whose stores hold no entries, so .* does not apply"
        ):
            build_store(grammar, vocabulary, **option)  # type: ignore[arg-type]


def test_entries_have_no_engine() -> None:
    assert layout_grammar().lexing == "nfa"
    for ask in (lambda store: store.matcher(), lambda store: store.batch(3)):
        with pytest.raises(MaskwrightError, match="a store with lexing 'nfa' has no matcher; load the grammar"):
            ask(small_store())
