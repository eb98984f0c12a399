"""The mask store: cells, the figures of python.lark, and what it says of itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from naive_store import (
    mask_ids,
    python_grammar,
    python_store,
    random_layout_grammar,
    random_lexed_grammar,
    random_vocabulary,
)

import maskwright as mw
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.loading import parse_grammar
from maskwright.analysis.schema.text_patterns import Regex
from maskwright.decoding.reference import ReferenceDecoder
from maskwright.maskstore.entries.entry_table import NO_CELL
from maskwright.maskstore.entries.streamline import STEPS
from maskwright.maskstore.file.fileformat import store_info
from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary
from maskwright.stores.build import compile_entry_store, compile_store


def test_cells() -> None:
    """A cell for each state in which a text can rest; one for each last terminal where the state does not tell."""
    for seed in range(40):
        grammar = random_layout_grammar(seed)
        store = compile_entry_store(grammar, random_vocabulary(grammar, seed))
        assert grammar.layout is not None
        n = store.nfa.n_states
        resting = [*store.nfa.is_resting.tolist(), True]
        assert [cell != NO_CELL for cell in store.cell_of_state.tolist()] == resting
        unclear = {grammar.layout.newline, *grammar.ignored}
        expected = [s for s in range(n) if resting[s] and int(store.nfa.terminal[s]) in unclear]
        assert store.dependent.tolist() == expected
        for state in (s for s in range(n + 1) if resting[s]):
            own = int(store.cell_of_state[state])
            assert store.cell(state) == own
            for last in (START, *range(grammar.n_terminals)):
                cell = store.cell(state, last)
                if state not in expected or (
                    int(store.nfa.terminal[state]) == grammar.layout.newline and last != grammar.layout.newline
                ):
                    assert cell == own
                assert 0 <= cell < store.n_cells
        assert max(store.cell_of_state.max(), store.cell_of_last.max(initial=-1)) == store.n_cells - 1


def test_sequences_and_entries() -> None:
    grammar = random_lexed_grammar(7)
    store = compile_entry_store(grammar, random_vocabulary(grammar, 7), streamlined=False)
    assert store.sequence(0) == ()
    assert store.n_entries == sum(len(store.entries(cell)) for cell in range(store.n_cells))
    n_sequences = len(store.sequence_start) - 1
    assert len({store.sequence(i) for i in range(n_sequences)}) == n_sequences
    assert set(store.entry_sequence.tolist()) | {0} == set(range(n_sequences))


@pytest.mark.slow
def test_python_figures() -> None:
    """Entries of python.lark x Mistral 7B, true bytes: at least the reductions that docs/measurements.md shows."""
    pytest.importorskip("mistral_common")
    vocabulary = load_vocabulary("mistral-7b-v0.1")
    lark = compile_entry_store(python_grammar(), vocabulary, rules="lark").counts
    normalised = python_store().counts
    assert tuple(lark) == tuple(normalised) == ("original", *STEPS)
    totals = [{step: int(counts[step].sum()) for step in counts} for counts in (lark, normalised)]
    assert totals[0]["ignored"] == totals[1]["ignored"]
    assert totals[0]["ignored"] / totals[0]["always"] >= 8.7
    assert totals[1]["ignored"] / totals[1]["always"] >= 10.9
    assert totals[1]["joint"] < 0.6 * totals[1]["always"]
    assert int(python_store(False).counts["original"].sum()) == totals[0]["original"]


def test_repr() -> None:
    pytest.importorskip("mistral_common")
    store = python_store()
    text = repr(store)
    assert text.startswith("<EntryStore python.lark x mistral-7b-v0.1: ")
    assert f"{store.n_entries} entries in {store.n_cells} cells" in text and "streamlined on normalised rules>" in text
    assert repr(python_store(False)).endswith("masks, not streamlined>")


ODD = ("v\x1b]0;title\x07\x1b[2J\nPASS", "v\r\u202e", "v\x9b2J")


@pytest.mark.parametrize("name", [*ODD, "v\ud800"])
def test_printing_sends_nothing_but_text(tmp_path: Path, name: str) -> None:
    """Names are those of a stranger's file, or of a file of an odd name."""
    vocabulary = Vocabulary.from_tokens([b"", b"1", b"2"], eos=[0], name=name if name in ODD else "v")
    grammar = mw.parse_grammar('start: "1"', name=name)
    entries = mw.parse_grammar('start: "1"', name=name, lexing="nfa")
    schema = mw.load_schema({"const": 1}, name=name)
    pattern = Regex(name, mw.load_regex("1").automaton)
    composed = mw.compose("start: PART\n%declare PART", {"PART": pattern}, name=name)
    stores = [mw.build_store(one, vocabulary) for one in (grammar, entries, schema, pattern, composed)]
    for shown in (vocabulary, schema, pattern, *stores):
        assert repr(shown).isprintable() and repr(shown).encode()
        assert r"v\x1b]0;title\x07\x1b[2J\nPASS" in repr(shown) or name != ODD[0]
    for number, store in enumerate(stores[:4]):
        store.save(tmp_path / str(number))
        loaded = mw.load_store(tmp_path / str(number))
        assert repr(loaded) == repr(store)
        info = store_info(tmp_path / str(number))
        said = [info["vocabulary"], info.get("grammar") or info.get("schema") or info["pattern"]]
        assert all(one["name"].isprintable() for one in said)
        if number < 2:
            assert loaded.grammar.name.isprintable() and loaded.vocabulary.name.isprintable()
            assert mw.load_store(tmp_path / str(number), grammar=store.grammar).grammar is store.grammar


@pytest.mark.parametrize("name", ["日本\u3000語.lark", "a\xa0b\u202fc", "👩\u200d💻\u200b", "\\n\ue000"])
def test_loading_changes_no_name(tmp_path: Path, name: str) -> None:
    """A grammar's digest is of its name too, so a loaded store can be saved as one of the same grammar."""
    vocabulary = Vocabulary.from_tokens([b"", b"1", b"2"], eos=[0], name=name)
    for lexing in ("longest", "nfa"):
        grammar = mw.parse_grammar('start: "1"', name=name, lexing=lexing)
        path = tmp_path / lexing
        mw.build_store(grammar, vocabulary).save(path)
        loaded = mw.load_store(path)
        loaded.save(path)
        assert loaded.vocabulary.name == name and store_info(path)["grammar"]["name"] == name
        assert loaded.grammar.digest == mw.load_store(path, grammar=grammar, vocabulary=vocabulary).grammar.digest
    for constraint in (mw.load_schema({"const": 1}, name=name), Regex(name, mw.load_regex("1").automaton)):
        mw.build_store(constraint, vocabulary).save(path)
        assert mw.load_store(path).name == name


def test_equal_tokens_are_allowed_together() -> None:
    """Ids with the same bytes, ids without, and padded ids."""
    grammar = random_lexed_grammar(4)
    plain = random_vocabulary(grammar, 4)
    doubled = Vocabulary("doubled", (*plain.tokens, *plain.tokens, b"", b""), {0: "</s>"}, (0,))
    first, second = (ReferenceDecoder(compile_entry_store(grammar, v)) for v in (plain, doubled))
    ids = mask_ids(first.mask())
    assert ids and mask_ids(second.mask()) == ids | {i + plain.size for i in ids if i}
    assert second.mask().shape == (-(-doubled.size // 32),) and second.mask().dtype == np.uint32


def test_names_in_a_file_are_shown_with_escapes(tmp_path: Path) -> None:
    grammar = parse_grammar("start: WORD\nWORD: /[a-z]+/", name="g")
    odd = replace(
        grammar,
        terminals=(replace(grammar.terminals[0], name="\x1b[31mEVIL\x1b[2J"),),
        nonterminals=("a\x1b[2J", *grammar.nonterminals[1:]),
    )
    store = compile_store(odd, mw.load_vocabulary("python-tiny"))
    mw.save_store(store, tmp_path / "s.safetensors")
    loaded = mw.load_store(tmp_path / "s.safetensors").grammar
    assert loaded.terminals[0].name == "\\x1b[31mEVIL\\x1b[2J" and loaded.nonterminals[0] == "a\\x1b[2J"
