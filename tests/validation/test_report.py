"""What is shown and written of a validation: places, texts before, tokens, reasons; and markup in texts is only text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from maskwright.maskstore.vocabulary.encoders import Encoder
from maskwright.stores.store import Store
from maskwright.validation import ValidationReport, validate


def shown(report: ValidationReport) -> str:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(report)
    return console.export_text()


def test_failures_are_shown_with_their_place(wrong_store: Store, corpus: Path, encoder: Encoder) -> None:
    (corpus / "more" / "z.txt").write_text('x = "[red]markup[/red]"\ny = abc\n')
    report = validate(wrong_store, corpus, tokenizer=encoder, suffixes=[".txt"])
    text = shown(report)
    assert f"{corpus}/more/z.txt:2:5" in text
    assert "[red]markup[/red]\"\\ny = '  then  'abc'" in text
    assert "the grammar's own parse takes the text" in text
    assert "false refusal: 2" in text and "replay: FAILED: 2 of 8" in text
    assert f"{corpus}/more/no end.txt:1:6" in text


def test_only_the_first_of_each_class_are_shown(store: Store, corpus: Path, encoder: Encoder) -> None:
    for i in range(8):
        (corpus / f"{i}.txt").write_text("x = + y\n")
    report = validate(store, corpus, tokenizer=encoder, suffixes=[".txt"])
    text = shown(report)
    assert text.count(": no terminal matches") == 5 and "and 6 more: --json has them all" in text
    assert "replay: passed" in text and len(report.findings) == 11


def test_json(wrong_store: Store, corpus: Path, encoder: Encoder) -> None:
    report = validate(wrong_store, corpus, tokenizer=encoder, suffixes=[".txt"])
    facts = json.loads(json.dumps(report.to_dict()))
    assert facts["passed"] is False and facts["failures"] == 1 and facts["texts"] == 7
    assert facts["store"]["vocabulary_sha256"] == wrong_store.vocabulary.digest
    (finding,) = [finding for finding in facts["findings"] if finding["failure"]]
    assert finding["token"] == {"id": wrong_store.vocabulary.tokens.index(b"abc"), "text": "abc"}
    assert (finding["class"], finding["line"], finding["column"], finding["before"]) == ("false refusal", 1, 1, "")


@pytest.mark.parametrize("reference", ["sh -c 'if grep -q x; then echo bad x; exit 3; fi'"])
def test_samples(reference: str, store: Store) -> None:
    report = validate(store, check="sample", amount=30, budget=6, reference=reference)
    text = shown(report)
    assert "refused by the reference" in text and "shortest such text: " in text and "closed with " in text
    assert any(line.split() == ["bad", "x", str(report.causes["bad x"])] for line in text.splitlines())


@pytest.mark.parametrize("check", ["replay", "streamlined", "oracle"])
def test_a_check_of_nothing_does_not_pass(check: Any, store: Store, tmp_path: Path, encoder: Encoder) -> None:
    """All texts outside the grammar: it may be the wrong grammar."""
    if check == "oracle":
        pytest.importorskip("regex")
    (tmp_path / "a.txt").write_text("x = + y\n")
    report = validate(store, tmp_path, tokenizer=encoder, suffixes=[".txt"], check=check)
    how = "replayed" if check == "replay" else "followed"
    text = shown(report)
    assert not report.passed and report.to_dict()["passed"] is False
    assert f"{check}: FAILED: no text could be {how} to its end; is it the right grammar?" in text
    assert f"{tmp_path}/a.txt:1:5" in text and "x =" in text
    (tmp_path / "b.txt").write_text("x = y\n")
    assert validate(store, tmp_path, tokenizer=encoder, suffixes=[".txt"], check=check).passed
