"""Texts that go wrong at a known byte: refused there, too early, too late; and whose fault it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary.encoders import Encoder
from maskwright.stores.store import Store
from maskwright.validation import ValidationReport, validate
from maskwright.validation.checks import EARLY, EARLY_GRAMMAR, LATE, LATE_GRAMMAR, RIGHT
from maskwright.validation.corpus import CorpusError
from maskwright.validation.replay import plain_replay


def run(store: Any, path: Path, encoder: Encoder, *cases: dict[str, Any]) -> ValidationReport:
    file = path / "cases.jsonl"
    file.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return validate(store, file, tokenizer=encoder, check="negative")


def case(text: str, lower: int, upper: int | None = None) -> dict[str, Any]:
    if upper is None:
        return {"text": text, "first_bad_byte": lower}
    return {"text": text, "first_bad_lower": lower, "first_bad_upper": upper}


RIGHT_CASES = [
    case("x = = y\n", 4),
    case("é = + y\n", 5),  # bytes, not characters
    case("x = y", 5),  # only the end is wrong
    case("x = (y\n", 7),
    case("if x:\n y = z\n  z = y\n", 15, 15),
    case("x = abc + y\n", 5, 9),
    case("é\xa0= y\n", 2),
]


def test_refused_where_they_go_wrong(store: Store, tmp_path: Path, encoder: Encoder) -> None:
    report = run(store, tmp_path, encoder, *RIGHT_CASES)
    assert report.passed, report.findings
    assert report.classes == {RIGHT: len(RIGHT_CASES), EARLY: 0}


def test_what_the_grammar_is_to_blame_for(store: Store, tmp_path: Path, encoder: Encoder) -> None:
    pytest.importorskip("regex")
    report = run(
        store,
        tmp_path,
        encoder,
        case("x = y + z\nif\n", 11),
        case("x = y\n\n", 3),
        case("x = (y)\n", 5, 5),
        case("x = (y", 2),
    )
    assert report.classes == {RIGHT: 0, EARLY_GRAMMAR: 1, EARLY: 0, LATE_GRAMMAR: 3}
    early, late, *_ = report.findings
    assert (early.line, early.column, early.byte, early.is_failure) == (1, 7, 6, False)
    assert early.more["expected"] == [11, 11]
    assert late.is_failure and "accepted as a whole" in late.why and not report.passed


def spoil(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    fill = Matcher.fill

    def spoiled(self: Matcher, bitmask: Any) -> None:
        fill(self, bitmask)
        change(self.store.vocabulary.tokens.index(b"("), bitmask)

    monkeypatch.setattr(Matcher, "fill", spoiled)
    monkeypatch.setattr(Matcher, "replay", plain_replay)


def test_an_engine_that_refuses_too_early_is_found(
    store: Store, tmp_path: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(token: int, words: Any) -> None:
        words[token >> 5] &= ~np.uint32(1 << (token & 31))

    spoil(monkeypatch, change)
    report = run(store, tmp_path, encoder, case("x = (y = z\n", 7))
    assert report.classes[EARLY] == 1 and not report.passed and report.findings[0].byte == 4


def test_an_engine_that_refuses_too_late_is_found(wrong_store: Store, tmp_path: Path, encoder: Encoder) -> None:
    """It takes the token of `abc` for a bracket and a line feed, so what follows a bracket that is opened is let in."""
    text = "x = (yabc"
    report = run(wrong_store, tmp_path, encoder, case(text + "?", 9), case("x = (y\nabc = y\n", 7))
    assert report.classes[LATE] + report.classes[EARLY] >= 1 and not report.passed


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"first_bad_byte": -1},
        {"first_bad_byte": 99},
        {"first_bad_byte": "3"},
        {"first_bad_lower": 3, "first_bad_upper": 2},
    ],
)
def test_records_that_do_not_say_where(record: dict[str, Any], store: Store, tmp_path: Path, encoder: Encoder) -> None:
    with pytest.raises(CorpusError, match=r"cases\.jsonl:1: does not say where its text goes wrong"):
        run(store, tmp_path, encoder, {"text": "x = = y\n", **record})
