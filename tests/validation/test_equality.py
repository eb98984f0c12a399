"""Masks before and after streamlining: equal for right stores of both kinds, and one token more or less is found."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from maskwright.analysis.errors import GrammarError, MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.table import schema
from maskwright.maskstore.vocabulary.encoders import Encoder
from maskwright.stores.build import compile_entry_store
from maskwright.stores.entry_store import EntryStore
from maskwright.stores.store import Store
from maskwright.validation import ValidationReport, validate
from maskwright.validation.checks import DIFFERENT, SAME, original_store
from maskwright.validation.replay import ENDED_EARLY, NOT_COMPLETE, find_stop


def run(store: Store | EntryStore, corpus: Path, encoder: Encoder, amount: int = 10**6) -> ValidationReport:
    return validate(store, corpus, tokenizer=encoder, suffixes=[".txt"], check="streamlined", amount=amount)


@pytest.fixture(scope="module")
def entries(grammar: Grammar, encoder: Encoder) -> EntryStore:
    return compile_entry_store(dataclasses.replace(grammar, lexing="nfa"), encoder.vocabulary)


def test_an_automaton_store_equals_its_open_twin(store: Store, corpus: Path, encoder: Encoder) -> None:
    report = run(store, corpus, encoder)
    assert report.passed and report.classes == {SAME: 4, ENDED_EARLY: 3, DIFFERENT: 0}
    assert report.figures["positions"] > 80 and report.figures["different"] == 0


def test_the_twin_asks_the_parser_about_everything(store: Store) -> None:
    twin = original_store(store)
    assert isinstance(twin, Store)
    assert twin.counts["open"] > 0 and twin.counts["edges"] == 0 and twin.counts["never"] == 0
    assert store.counts["open"] == 0 and store.counts["never"] > 0


def test_a_store_of_entries_equals_its_original(entries: EntryStore, corpus: Path, encoder: Encoder) -> None:
    report = run(entries, corpus, encoder)
    assert (
        report.passed and report.classes == {SAME: 4, ENDED_EARLY: 3, DIFFERENT: 0} and report.figures["positions"] > 80
    )


def test_states_that_were_met_before_are_counted(entries: EntryStore, tmp_path: Path, encoder: Encoder) -> None:
    (tmp_path / "a.txt").write_text("x = y\n" * 50)
    report = run(entries, tmp_path, encoder)
    n = len(encoder.exact_tokens("x = y\n" * 50).tokens) + 1
    assert report.figures["positions"] == n


def spoiled(store: Store) -> Store:
    """The store with the bit of one token taken out of every dense mask, or its id changed in every list."""
    table = store.table.copy()
    begins, n_masks = int(table[schema.MASK_START]), int(table[schema.N_MASKS])
    token = store.vocabulary.tokens.index(b"(")
    for mask in range(n_masks):
        begin, end = int(table[begins + mask]), int(table[begins + mask + 1])
        values = table[begin:end]
        values[values == token] = store.vocabulary.tokens.index(b")")
    table.setflags(write=False)
    return dataclasses.replace(store, table=table)


def test_one_token_too_few_is_found(
    store: Store, corpus: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maskwright.decoding.matcher import Matcher

    fill = Matcher.fill
    token = store.vocabulary.tokens.index(b"(")

    def lossy(self: Matcher, bitmask: np.ndarray) -> None:
        fill(self, bitmask)
        if self.store is store:
            bitmask[token >> 5] &= ~np.uint32(1 << (token & 31))

    monkeypatch.setattr(Matcher, "fill", lossy)
    report = run(store, corpus, encoder)
    assert not report.passed and report.classes[DIFFERENT] >= 5
    finding = next(finding for finding in report.findings if Path(finding.name).name == "plain.txt")
    assert (finding.line, finding.column, finding.before) == (1, 6, "abc =") or finding.before.endswith("= ")
    assert f"lacks 1 tokens [{token}] and adds 0 []" in finding.why


def test_one_entry_too_few_is_found(entries: EntryStore, corpus: Path, encoder: Encoder) -> None:
    """An entry of a store of entries is given the mask of another."""
    masks = entries.entry_mask.copy()
    busiest = int(np.bincount(masks).argmax())
    masks[masks == busiest] = (busiest + 1) % (int(masks.max()) + 1)
    report = run(dataclasses.replace(entries, entry_mask=masks), corpus, encoder)
    assert not report.passed and report.figures["different"] > 0


def test_the_amount_is_met_by_the_first_texts(store: Store, corpus: Path, encoder: Encoder) -> None:
    report = run(store, corpus, encoder, amount=10)
    assert sum(report.classes.values()) < 7 and report.figures["positions"] >= 10


def test_what_has_no_original(entries: EntryStore, corpus: Path, encoder: Encoder, grammar: Grammar) -> None:
    plain = original_store(entries)
    with pytest.raises(MaskwrightError, match="not streamlined: there is nothing to compare it with"):
        run(plain, corpus, encoder)
    with pytest.raises(GrammarError, match="has no matcher, so --check replay cannot use it"):
        validate(entries, corpus, tokenizer=encoder, suffixes=[".txt"])


def test_texts_are_followed_to_their_end(store: Store, encoder: Encoder, corpus: Path) -> None:
    """Positions: one before each token that is legal, and one after the last."""
    path = corpus / "more" / "operator.txt"
    tokens = encoder.exact_tokens(path.read_text()).tokens
    stop = find_stop(store.matcher(), tokens)
    assert stop is not None
    assert run(store, path, encoder).figures["positions"] == stop.n_tokens + 1


@pytest.mark.parametrize("kind", ["engine", "entries"])
def test_texts_that_end_early_are_said_with_their_place(
    kind: str, store: Store, entries: EntryStore, tmp_path: Path, encoder: Encoder
) -> None:
    """As `replay` says them; where all texts do, it may be the wrong grammar, and nothing was shown."""
    (tmp_path / "a.txt").write_text("x = y\nab = é + x\n")
    (tmp_path / "b.txt").write_text("x = (y\n")
    tried = store if kind == "engine" else entries
    report = run(tried, tmp_path, encoder)
    assert not report.passed and report.n_failures == 0
    assert report.classes == {SAME: 0, ENDED_EARLY: 2, DIFFERENT: 0}
    first, second = report.findings
    assert first.place == f"{tmp_path}/a.txt:2:8" and first.token is not None and "+" in first.token[1] and first.why
    assert first.before.startswith("x = y\nab = é")
    assert second.place == f"{tmp_path}/b.txt:2:1" and second.token is None and second.why == NOT_COMPLETE
    (tmp_path / "c.txt").write_text("x = y\n")
    assert run(tried, tmp_path, encoder).passed
