"""Sampled pairs before the oracle: agreement on a right store, and both kinds of error found on wrong ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary.encoders import Encoder
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store
from maskwright.validation import ValidationReport, checks, validate
from maskwright.validation.checks import AGREED, FALSE_PERMISSION, FALSE_REFUSAL
from maskwright.validation.oracle import Oracle
from maskwright.validation.replay import ENDED_EARLY, NOT_COMPLETE

pytest.importorskip("regex")


def run(store: Store, corpus: Path, encoder: Encoder, **options: Any) -> ValidationReport:
    return validate(store, corpus, tokenizer=encoder, suffixes=[".txt"], check="oracle", **options)


def test_a_right_store_agrees(store: Store, corpus: Path, encoder: Encoder) -> None:
    report = run(store, corpus, encoder)
    assert report.passed and report.classes == {AGREED: 4, ENDED_EARLY: 3, FALSE_REFUSAL: 0}
    kinds = {name: count for name, count in report.figures.items() if name.startswith("pairs: ")}
    assert set(kinds) == {
        "pairs: allowed",
        "pairs: allowed, long",
        "pairs: refused",
        "pairs: refused, begins well",
        "pairs: end of text",
    }
    assert sum(kinds.values()) == report.figures["pairs"] > 300 and min(kinds.values()) > 20


def spoil(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    fill = Matcher.fill

    def spoiled(self: Matcher, bitmask: Any) -> None:
        fill(self, bitmask)
        change(self.store.vocabulary.tokens.index(b"="), bitmask)

    monkeypatch.setattr(Matcher, "fill", spoiled)


@pytest.mark.slow
def test_both_kinds_of_error_are_found(
    store: Store, corpus: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turn(token: int, words: Any) -> None:
        words[token >> 5] ^= np.uint32(1 << (token & 31))

    spoil(monkeypatch, turn)
    monkeypatch.setattr(checks, "TOKENS", 4 * store.vocabulary.size)  # all of them
    report = run(store, corpus, encoder)
    assert not report.passed
    found = {(f.kind, f.token[1]) for f in report.findings if f.token is not None}
    found |= {(m["class"], m["token"][1]) for f in report.findings for m in f.more["more"]}
    assert (FALSE_PERMISSION, "=") in found and (FALSE_REFUSAL, "=") in found
    assert report.figures["disagreements"] >= len(report.findings)


def test_a_wrong_end_is_found(store: Store, corpus: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    def always(token: int, words: Any) -> None:
        words[0] |= np.uint32(1)

    spoil(monkeypatch, always)
    report = run(store, corpus, encoder)
    assert report.classes[FALSE_PERMISSION] >= 5
    assert all(finding.token is None and finding.why == "drawn as: end of text" for finding in report.findings)


def test_seed_and_amount(store: Store, corpus: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(store, corpus, encoder, amount=20).figures["pairs"] < run(store, corpus, encoder).figures["pairs"]
    monkeypatch.setattr(Oracle, "is_allowed", lambda self, prefix, token: False)
    found = [run(store, corpus, encoder, seed=seed).to_dict()["findings"] for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2] and len(found[0]) == 7


def test_contextual_lexing(store: Store, corpus: Path, encoder: Encoder) -> None:
    grammar = dataclasses.replace(store.grammar, lexing="contextual")
    assert run(compile_store(grammar, store.vocabulary), corpus, encoder).passed


def test_texts_that_end_early_are_said_with_their_place(store: Store, tmp_path: Path, encoder: Encoder) -> None:
    """Also far behind the positions that are drawn; where all texts do, it may be the wrong grammar."""
    (tmp_path / "a.txt").write_text("x = y\n" * 30 + "ab = é + x\n")
    (tmp_path / "b.txt").write_text("x = (y\n")
    report = run(store, tmp_path, encoder)
    assert not report.passed and report.n_failures == 0
    assert report.classes == {AGREED: 0, ENDED_EARLY: 2, FALSE_REFUSAL: 0}
    first, second = report.findings
    assert first.place == f"{tmp_path}/a.txt:31:8" and first.token is not None and "+" in first.token[1] and first.why
    assert second.place == f"{tmp_path}/b.txt:2:1" and second.token is None and second.why == NOT_COMPLETE
    (tmp_path / "c.txt").write_text("x = y\n")
    assert run(store, tmp_path, encoder).passed
