"""What names know of a lexer is read from a store's table: it must be what the parser's tables, made anew, say."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from engine_cases import contextual, longest, random_contextual_grammar, random_vocabulary, vocabulary_of
from shares import share

import maskwright as mw
from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.decoding.endings.ending import endings_of
from maskwright.decoding.grammar.text import GrammarText
from maskwright.decoding.names import lexer
from maskwright.decoding.names.ending import fitting
from maskwright.maskstore.automaton.stack_automaton import build_modes
from maskwright.maskstore.table import schema
from maskwright.maskstore.table.compiled import EngineTable
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store


def made_by(grammar: Grammar) -> Store:
    return compile_store(grammar, vocabulary_of(singles=bytes(range(128))))


def check(store: EngineTable, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store.table[schema.N_MODES] > 1
    found = lexer._made(store)
    modes = build_modes(store.grammar)[1]
    monkeypatch.setattr(lexer, "_modes", lambda _: modes)
    expected = lexer._made(store)
    for field in fields(lexer.NameLexer):
        assert np.array_equal(getattr(found, field.name), getattr(expected, field.name)), field.name


@pytest.mark.parametrize("seed", share(range(60), 20))
def test_modes_of_the_table_are_those_of_tables_made_anew(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = random_contextual_grammar(seed)
    try:
        store = compile_store(grammar, random_vocabulary(grammar, seed, 25))
    except MaskwrightError as error:
        pytest.skip(str(error))
    if store.table[schema.N_MODES] == 1:
        pytest.skip("one mode")
    check(store, monkeypatch)


@pytest.mark.parametrize("name", ["python", "toml"])
def test_modes_of_library_grammars(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(mw.cached_store(name, "python-tiny"), monkeypatch)  # type: ignore[arg-type]


def test_terminals_that_lead_into_dead_ends_compete() -> None:
    """A shift is taken, so none is left for the last `c`: the table takes no `c`, and yet it is no WORD."""
    grammar = longest('start: "q" s | "r" NAME\ns: WORD | x "c"\nx: "c" x |\nWORD: /[a-z]+/\nNAME: /[a-z]+/')
    store = made_by(replace(contextual(grammar, "none"), conflicts="shift"))
    undecided = EngineTable(replace(store.grammar, conflicts="all"), store.vocabulary, store.table, store.counts)
    assert lexer._modes(store).competing == build_modes(store.grammar)[1].competing
    assert lexer._modes(undecided).competing != build_modes(store.grammar)[1].competing


@pytest.mark.parametrize(
    "begin", ["", "x = ", "def f():\n    return ", "import ", "from os import ", "f(a)\nx.", "if y: x = (1,) + "]
)
def test_what_only_names_keep_from_ending_has_the_empty_ending_without_them(begin: str) -> None:
    """So `short_ending` need not search for it."""
    matcher = mw.cached_store("python", "python-tiny").matcher()
    matcher.advance_bytes(begin.encode())
    matcher.restrict("NAME", ["ab", "abc"])
    matcher.advance_bytes(b"a")
    text = matcher.text
    assert GrammarText.can_end(text) and not text.can_end()
    assert fitting(text, found := endings_of(text).short(text)) is None
    assert found.data == b""
    assert matcher.short_ending().data == b"b"
