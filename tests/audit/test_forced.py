"""Masks that force one spelling of what must come are told apart from masks that refuse legal texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from maskwright.analysis.loading import parse_grammar
from maskwright.audit import AuditReport, audit, compare
from maskwright.audit.report import FORCED, TRUE_REFUSED
from maskwright.maskstore.vocabulary.encoders import Encoder
from maskwright.stores.build import compile_store

HERE = Path(__file__).parent
LONGER = ("be", "gin", "beg", "inx")

Run = Callable[[dict[str, str]], AuditReport]


@pytest.fixture
def run(
    forcing_engine: ModuleType, encoder_with: Callable[..., Encoder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    """The audit of two texts, which are spelled `beg` `inx` and `beg` `i` `n` `y`."""
    encoder, grammar = encoder_with(*LONGER), forcing_engine.GRAMMAR
    store = compile_store(parse_grammar(grammar, name="forcing"), encoder.vocabulary)
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "beginx"}\n{"text": "beginy"}\n')
    monkeypatch.setenv("PYTHONPATH", str(HERE))

    def audited(case: dict[str, str]) -> AuditReport:
        monkeypatch.setenv("FORCING_CASE", json.dumps(case))
        return audit(store, path, "forcing_engine:make", grammar_text=grammar, tokenizer=encoder)

    return audited


def test_a_forced_token_costs_no_text(run: Run) -> None:
    report = run({"": "beg"})
    assert report.agrees and report.texts == {compare.WHOLE: 2}
    (found,) = report.differences
    assert (found.kind, found.prefix, found.before, found.is_shortest) == (FORCED, b"", "the start", True)
    assert found.token is not None and found.token[1] == b"beg" and found.true_refusals == 0
    # `b` and `be` are left out at the beginning of both texts
    assert (report.counts["forced"], report.counts["tokens_forced"], found.tokens) == (2, 4, 4)
    assert report.counts["masks_over"] == report.counts["tokens_over"] == report.counts["respelled"] == 0
    assert report.rates["forced"] == round(2 / report.counts["masks"], 6)
    content = json.loads(json.dumps(report.to_dict()))
    assert (
        content["agrees"] is True and content["counts"]["forced"] == 2 and content["differences"][0]["kind"] == FORCED
    )


def test_a_text_that_has_other_tokens_is_no_refused_text(run: Run) -> None:
    report = run({"": "be"})
    assert report.texts == {compare.RESPELLED: 2} and not report.agrees  # the rest of them could not be compared
    (found,) = report.differences
    assert found.kind == FORCED and found.true_refusals == 2 == report.counts["respelled"]
    assert report.counts["true_refused"] == report.counts["masks_over"] == 0


def test_one_text_may_have_the_forced_tokens(run: Run) -> None:
    report = run({"beg": "i"})  # the first text has `inx` there, the second one `i`
    assert report.texts == {compare.WHOLE: 1, compare.RESPELLED: 1} and not report.agrees
    assert (report.counts["forced"], report.counts["respelled"]) == (2, 1)


def test_a_token_that_is_not_all_that_may_come_is_a_refusal(run: Run) -> None:
    report = run({"begin": "x"})
    assert not report.agrees and report.texts == {compare.WHOLE: 1, compare.REFUSED: 1}
    assert report.counts["forced"] == 0 and report.counts["true_refused"] == 1
    (found,) = report.differences
    assert (found.kind, found.prefix) == (TRUE_REFUSED, b"begin")


def test_the_terminal_says_it_apart(run: Run) -> None:
    from rich.console import Console

    console = Console(width=120, record=True)
    console.print(run({"": "beg"}))
    text = console.export_text()
    assert "force one spelling of what must come" in text and "tokens left out for a forced one" in text
    assert "forces one spelling of what must come: 1 place of the grammar" in text
    assert "refuse a legal token                  0" in text and "forcing_engine:make: agrees" in text
