"""`maskwright verify`: exit codes, reports, and what it refuses."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from table_mutator import mapped
from typer.testing import CliRunner

from maskwright import verification
from maskwright.analysis.errors import LimitError, StoreError
from maskwright.analysis.loading import load_grammar
from maskwright.cli import app
from maskwright.maskstore.table import schema
from maskwright.stores.build import build_store


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


def test_a_grammar_passes(runner: CliRunner) -> None:
    run = runner.invoke(app, ["verify", "json", "-t", "python-tiny"])
    assert run.exit_code == 0, run.output
    assert "verify: passed" in run.output
    run = runner.invoke(app, ["verify", "json", "-t", "python-tiny", "--json", "-"])
    facts = json.loads(run.stdout)
    assert run.exit_code == 0 and facts["passed"] is True and facts["differences"] == []


def test_tables_that_were_not_checked_are_told(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: object) -> None:
        raise LimitError("too many states")

    monkeypatch.setattr(verification, "build_lr_tables", too_large)
    run = runner.invoke(app, ["verify", "json", "-t", "python-tiny"])
    assert run.exit_code == 0 and "LALR tables: not checked" in run.output and "verify: passed" in run.output
    facts = json.loads(runner.invoke(app, ["verify", "json", "-t", "python-tiny", "--json", "-"]).stdout)
    assert facts["passed"] is True and facts["has_checked_tables"] is False


def test_a_forged_file_fails(runner: CliRunner, tmp_path: Path) -> None:
    """Its checksums are right; one token is missing from all masks."""
    store = build_store("json", "python-tiny")
    table = store.table.copy()
    token = next(t for t, text in enumerate(store.vocabulary.tokens) if text == b"1")
    rows = table[table[schema.ROWS] : table[schema.MASK_IDS]].reshape(-1, store.n_words)
    rows[:, token // 32] &= ~(np.int32(1) << np.int32(token % 32))
    mapped(store, table, tmp_path)
    run = runner.invoke(app, ["verify", str(tmp_path / "forged.safetensors")])
    assert run.exit_code == 1, run.output
    assert "FAILED" in run.output and "lacks what the parser accepts: '1'" in run.output.replace("\n", " ")


def test_a_file_of_another_grammar_fails(runner: CliRunner, tmp_path: Path) -> None:
    """Name and text change no mask, and so only a grammar from elsewhere tells that they were altered."""
    store = build_store("json", "python-tiny")
    path = str(tmp_path / "forged.safetensors")
    store.save(path)
    run = runner.invoke(app, ["verify", path, "--grammar", "json", "--json", "-"])
    facts = json.loads(run.stdout)
    assert run.exit_code == 0 and facts["is_given_grammar"] and facts["grammar_sha256"] == store.grammar.digest
    text = store.grammar.text.replace("array", "list", 1)
    number = next(i for i, line in enumerate(text.splitlines(), 1) if line not in store.grammar.text.splitlines())
    for parts, found in [
        ({"name": "safe-sql"}, "differ in name, where the store has 'safe-sql', expected 'json', and in nothing else"),
        ({"text": text}, f"They differ in text in line {number}, where the store has"),
    ]:
        replace(store, grammar=replace(store.grammar, **parts)).save(path)
        run = runner.invoke(app, ["verify", path])
        assert run.exit_code == 0 and "named so by the store" in run.output, run.output
        for run in (
            runner.invoke(app, ["verify", path, "--grammar", "json"]),
            runner.invoke(app, ["verify", path, "--grammar", "json", "--json", "-"]),
        ):
            assert run.exit_code == 2 and found in run.stderr.replace("\n", " "), run.stderr
    with pytest.raises(StoreError, match="They differ in lexing, where the store has 'longest', expected 'contextual'"):
        verification.verify(store, grammar=load_grammar("json", lexing="contextual"))
    run = runner.invoke(app, ["verify", path, "--lexing", "longest"])
    assert run.exit_code == 2 and "is a store, whose grammar is fixed" in run.stderr.replace("\n", " ")
    run = runner.invoke(app, ["verify", "json", "-t", "python-tiny"])
    assert "the one that was named" in run.output


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_no_store(runner: CliRunner, tmp_path: Path) -> None:
    path = tmp_path / "ff.safetensors"
    os.mkfifo(path)
    run = runner.invoke(app, ["verify", str(path)])
    assert run.exit_code == 2 and "is a pipe, and a store is read from a regular file" in run.stderr.replace("\n", " ")


def test_what_is_refused(runner: CliRunner, tmp_path: Path) -> None:
    run = runner.invoke(app, ["verify", "json"])
    assert run.exit_code == 2 and "name the tokenizer" in run.stderr
    run = runner.invoke(app, ["verify", '{"type": "integer"}', "-t", "python-tiny"])
    assert run.exit_code == 2 and "has no stack automaton" in run.stderr.replace("\n", " ")
    run = runner.invoke(app, ["verify", "json", "-t", "python-tiny", "--lexing", "nfa"])
    assert run.exit_code == 2 and "has no stack automaton" in run.stderr.replace("\n", " ")
    parts = 'start: "x" A\n%regex A /[a-z]+/\n'
    (tmp_path / "parts.lark").write_text(parts)
    run = runner.invoke(app, ["verify", str(tmp_path / "parts.lark"), "-t", "python-tiny"])
    assert run.exit_code == 2 and "names parts of other languages" in run.stderr.replace("\n", " ")
    run = runner.invoke(app, ["verify", "json", "-t", "python-tiny", "--seconds", "0.000001"])
    assert run.exit_code == 2 and "nothing was decided" in run.stderr.replace("\n", " ")
