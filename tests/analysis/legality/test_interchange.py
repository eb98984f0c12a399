"""Interchange classes: never refuted by a word, and the known ones of python.lark."""

from __future__ import annotations

import itertools

import pytest
from grammars import make_grammar, random_grammar
from naive import refutes_interchange, words
from naive_store import dress, random_layout_grammar
from shares import share

from maskwright.analysis.grammar import Grammar, Layout
from maskwright.analysis.legality.interchange import interchange_classes, representatives
from maskwright.analysis.loading import load_grammar

PYTHON_CLASSES = [
    "%= &= **= *= += -= //= /= <<= >>= @= ^= |=",
    "!= < <= <> == > >=",
    "BIN_NUMBER DEC_NUMBER FLOAT_NUMBER HEX_NUMBER IMAG_NUMBER OCT_NUMBER",
    "False None True",
    "+ -",
    "<< >>",
    "% //",
]
REWRITTEN_CLASSES = [
    *PYTHON_CLASSES[:2],
    "BIN_NUMBER DEC_NUMBER FLOAT_NUMBER False HEX_NUMBER IMAG_NUMBER None OCT_NUMBER True",
    "break continue pass",
    "global nonlocal",
    *PYTHON_CLASSES[4:],
]


def spelled(grammar: Grammar, classes: tuple[tuple[int, ...], ...]) -> list[str]:
    """The classes' members, literals as they are and others by name."""
    terminals = grammar.terminals
    return sorted(" ".join(sorted(terminals[t].literal or terminals[t].name for t in members)) for members in classes)


def twin(grammar: Grammar, seed: int) -> Grammar:
    """The grammar with some rules that hold terminal 0 or 1 repeated with the other one in any of the places."""
    rules = dict.fromkeys(grammar.rules)
    for rule in grammar.rules[: seed % 3 + 2]:
        places = [i for i, symbol in enumerate(rule.rhs) if symbol in (0, 1)]
        for choice in itertools.product((0, 1), repeat=len(places)):
            body = list(rule.rhs)
            for place, symbol in zip(places, choice, strict=True):
                body[place] = symbol
            rules[type(rule)(rule.lhs, tuple(body))] = None
    return grammar.with_rules(grammar.nonterminals, tuple(rules), grammar.start)


@pytest.mark.parametrize("chunk", share(range(4), 1))
def test_no_word_refutes_a_class(chunk: int) -> None:
    proved = 0
    for seed in range(80 * chunk, 80 * (chunk + 1)):
        grammar = random_grammar(seed)
        if grammar.n_terminals < 2:
            continue
        grammar = twin(grammar, seed)
        length = 6 if len(words(grammar, 6)) < 200 else 4
        plain, more = (interchange_classes(grammar, rewrite=rewrite) for rewrite in (False, True))
        for classes in (plain, more):
            assert all(list(members) == sorted(set(members)) and len(members) > 1 for members in classes)
            assert [members[0] for members in classes] == sorted(members[0] for members in classes)
            for members in classes:
                for x, y in itertools.combinations(members, 2):
                    proved += 1
                    refutation = refutes_interchange(grammar, x, y, length)
                    assert refutation is None, (seed, x, y, refutation)
        for members in plain:
            assert any(set(members) <= set(larger) for larger in more)
    assert proved > 20


def test_swapping_all_is_not_enough() -> None:
    """`A : x x | y y` is mapped onto itself when x and y are swapped, but x y is no word."""
    grammar = make_grammar("A : x x | y y")
    assert interchange_classes(grammar) == interchange_classes(grammar, rewrite=True) == ()
    assert refutes_interchange(grammar, 0, 1, 2) is not None
    assert interchange_classes(make_grammar("A : x x | x y | y x | y y")) == ((0, 1),)


def test_wrappers_need_rewriting() -> None:
    grammar = make_grammar("S : T e\nT : A | B\nA : x\nB : y")
    assert interchange_classes(grammar) == ()
    (members,) = interchange_classes(grammar, rewrite=True)
    assert {grammar.terminals[t].name for t in members} == {"x", "y"}


def test_terminals_with_a_meaning_of_their_own_are_in_no_class() -> None:
    grammar = make_grammar("S : w | x | y | z")
    assert interchange_classes(grammar) == ((0, 1, 2, 3),)
    assert interchange_classes(dress(grammar, grammar.terminals, ignored=[1])) == ((0, 2, 3),)
    layout = Layout(newline=0, indent=1, dedent=2, brackets=())
    assert interchange_classes(dress(grammar, grammar.terminals, layout=layout)) == ()
    grammar = make_grammar("S : v | w | x | y | z")
    assert interchange_classes(dress(grammar, grammar.terminals, layout=layout)) == ((3, 4),)
    assert interchange_classes(dress(grammar, grammar.terminals, ignored=[3], layout=layout)) == ()
    for seed in range(60):
        grammar = random_layout_grammar(seed)
        assert grammar.layout is not None
        special = {grammar.layout.newline, grammar.layout.indent, grammar.layout.dedent, *grammar.ignored}
        special |= set(sum(grammar.layout.brackets, ()))
        for rewrite in (False, True):
            assert not special & set(sum(interchange_classes(grammar, rewrite=rewrite), ()))


def test_representatives() -> None:
    assert representatives(6, ((0, 3, 4), (1, 5))) == [0, 1, 2, 0, 0, 1]
    assert representatives(3, ()) == [0, 1, 2]


def test_python_classes() -> None:
    """The post's seven classes with 35 terminals; other rules for the same language prove eight with 40."""
    grammar = load_grammar("lark:python", soft=())
    plain, more = (interchange_classes(grammar, rewrite=rewrite) for rewrite in (False, True))
    assert spelled(grammar, plain) == sorted(PYTHON_CLASSES)
    assert sorted(map(len, plain), reverse=True) == [13, 7, 6, 3, 2, 2, 2]
    assert spelled(grammar, more) == sorted(REWRITTEN_CLASSES)
    assert sum(map(len, more)) == 40
    assert all(any(set(members) <= set(larger) for larger in more) for members in plain)
