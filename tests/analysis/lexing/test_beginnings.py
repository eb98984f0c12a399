"""How many states a lexer of literals has at least, known before it is built."""

from __future__ import annotations

import random

import pytest
from lark.load_grammar import load_grammar

from maskwright.analysis.errors import LimitError
from maskwright.analysis.fronts import lexicon
from maskwright.analysis.fronts.expressions import literal
from maskwright.analysis.lexing.lexemes import check_literals, n_beginnings_of
from maskwright.analysis.lexing.terminal_nfa import build_terminal_nfa, build_union_dfa
from maskwright.analysis.lexing.terminals import compile_pattern
from maskwright.analysis.loading import lark_loader, parse_grammar
from maskwright.analysis.loading.lark_limits import literals_used
from maskwright.analysis.lr import splits
from maskwright.analysis.regex.dfa import Dfa


@pytest.mark.parametrize("seed", range(30))
def test_a_lexer_has_a_state_for_each_beginning(seed: int) -> None:
    rng = random.Random(seed)
    texts = {"".join(rng.choices("ab\u00e9", k=rng.randrange(1, 6))) for _ in range(rng.randrange(1, 20))}
    beginnings = {text.encode()[:n] for text in texts for n in range(1, len(text.encode()) + 1)}
    assert n_beginnings_of(texts) == len(beginnings)
    others = [compile_pattern(pattern) for pattern in rng.sample(["[ab]+", "a|b", r"\w*b", "."], k=2)]
    automata = [*(Dfa.literal(text.encode()) for text in sorted(texts)), *others]
    union = build_union_dfa(build_terminal_nfa(automata), [str(n) for n in range(len(automata))])
    assert len(union.members) > n_beginnings_of(texts)


def test_long_literals_are_refused_before_the_lexer_is_built() -> None:
    text = "start: " + " ".join(f'"{letter * 8000}"' for letter in "abc")
    with pytest.raises(LimitError, match=r"string literals with 24000 different beginnings, .* with 8000 characters"):
        check_literals(parse_grammar(text), 20_000)


def test_literals_that_are_too_many_are_refused_before_lark_compiles_them(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'start: "a" | "b" | "c"'
    monkeypatch.setattr(lark_loader, "STATE_LIMIT", 2)
    assert parse_grammar(text).n_terminals == 3
    with pytest.raises(LimitError, match="grammar <text> has 3 string literals, but a lexer has at most 2 states"):
        parse_grammar(text, must_compile=True)
    assert parse_grammar(text, must_compile=True, lexing="nfa").n_terminals == 3


def test_literals_that_are_certainly_used() -> None:
    text = r"""
start: "a" | "b"~0 | "c"~0..1 | "d"i | "e" other* -> f | "g".."h" | "\x69" | /j/ | T
other: "k" [other] ("l" | "m"?)
unused: "n"
T: "o"
"""
    builder, _ = load_grammar(text, "text", [], False)
    assert literals_used(builder, "start") == set("aceklm")
    used = {terminal.literal for terminal in parse_grammar(text).terminals}
    assert literals_used(builder, "start") <= used
    builder, _ = load_grammar('start: t{"a"} "b"\nt{x}: "c"', "text", [], False)
    assert literals_used(builder, "start") == set()


def test_literals_that_are_too_many_need_no_tables_to_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the rules were looked at")

    grammar = parse_grammar('start: "a" "b" "c"')
    monkeypatch.setattr(splits, "STATE_LIMIT", 2)
    monkeypatch.setattr(splits, "is_lexed_by_endless_rules", never)
    assert splits.default_conflicts(grammar) == "all"


def test_texts_that_are_too_many_are_split_before_their_automata_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("an automaton was made")

    monkeypatch.setattr(lexicon, "_automaton", never)
    leaves = {str(one.pattern): one for one in (literal(f"{n}x") for n in range(12_000))}
    leaves["longest"] = literal("the longest")
    with pytest.raises(lexicon.Overlap) as found:
        lexicon.Lexicon(leaves, "g")
    # as many of the largest as must be, and no more
    kept = sorted((one for key, one in leaves.items() if key not in found.value.patterns), key=lambda one: one.size)
    split = [one for key, one in leaves.items() if key in found.value.patterns]
    last = min(one.size for one in split)
    assert leaves["longest"] in split and kept[-1].size <= last
    (*_, last_split) = (one for one in split if one.size == last)
    texts = [str(one.text) for one in kept]
    assert n_beginnings_of(texts) <= lexicon.MAX_STATES < n_beginnings_of([*texts, str(last_split.text)])


def test_too_many_characters_alone_are_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "MAX_STATES", 3)
    leaves = {one: literal(one) for one in "abcdefgh"}
    assert {one.kind for one in leaves.values()} == {"class"}
    with pytest.raises(LimitError, match="more than 3 pieces; make them more alike"):
        lexicon.Lexicon(leaves, "g")
