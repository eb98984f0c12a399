"""What an exploration proves against the definitions, what it shows for a^n b^n, and that it always ends."""

from __future__ import annotations

import random
from typing import Literal
from xml.etree import ElementTree

import naive
import pytest
from grammars import grammars, make_grammar, random_grammar
from hypothesis import given, settings
from hypothesis import strategies as st
from shares import share

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.legality.deciders import Deciders
from maskwright.analysis.legality.explain import Explainer
from maskwright.analysis.legality.exploration import Exploration
from maskwright.analysis.legality.pushdown import Configuration, Position, Pushdown

A, B, C = 0, 1, 2
AFTER: Literal["after"] = "after"


@pytest.fixture
def a_n_b_n() -> Grammar:
    return make_grammar("S : a S b | a b")


@pytest.mark.parametrize(
    ("context", "sequence", "expected"),
    [
        ((A,), (A,), True),
        ((A,), (B,), True),
        ((A,), (A, A, B, B), True),
        ((A,), (B, B), False),
        ((A, A), (B, B), True),
        ((A, A, A), (B, B, B), True),
        ((B,), (B,), False),
        ((A, B), (B,), False),
        ((A, A, B), (B,), True),
        ((B,), (A,), False),
        ((), (A, A, B), True),
        ((), (B,), False),
        ((A,), (), True),
        ((B, A), (B, B, B), True),  # no word of P ends in b a
    ],
)
def test_a_n_b_n_by_hand(a_n_b_n: Grammar, context: naive.Word, sequence: naive.Word, expected: bool) -> None:
    assert Exploration(a_n_b_n, context, sequence).is_proved is expected
    assert naive.always_legal(a_n_b_n, context, sequence, 8) is expected


def test_starting_after_an_occurrence_as_in_the_post(a_n_b_n: Grammar) -> None:
    left_factored = make_grammar("S : a T\nT : S b | b")
    for y in (A, B):
        assert Exploration(left_factored, (A,), (y,), AFTER).is_proved
        assert not Exploration(a_n_b_n, (A,), (y,), AFTER).is_proved
    exploration = Exploration(a_n_b_n, (A,), (B,), AFTER)
    assert exploration.starts == (Configuration(Position(0, 1), 0, ()), Configuration(Position(1, 1), 0, ()))
    assert exploration.unproved == (exploration.starts[0], (Position(0, 2),))


def test_pushdown_of_a_n_b_n(a_n_b_n: Grammar) -> None:
    pushdown = Pushdown(a_n_b_n)
    assert [pushdown.text(state) for state in pushdown.states[:4]] == [
        "S : · a S b",
        "S : a · S b",
        "S : a S · b",
        "S : a S b ·",
    ]
    assert len(pushdown.states) == 9
    moves = [
        (pushdown.text(t.source), t.read, t.popped, t.pushed, pushdown.text(t.target)) for t in pushdown.transitions
    ]
    assert ("S : a S · b", B, None, None, "S : a S b ·") in moves
    assert ("S : a · S b", None, None, Position(0, 2), "S : · a b") in moves
    assert ("S : a b ·", None, pushdown.last, None, "text : S ·") in moves
    assert len(moves) == 4 + 4 + 4  # four terminals read; two rules called at two places; two rules returning to two


def test_unproved_names_the_stack(a_n_b_n: Grammar) -> None:
    exploration = Exploration(a_n_b_n, (B,), (B,))
    start, borrowed = exploration.unproved or (None, ())
    assert start == Configuration(Position(0, 2), 0, ())
    assert borrowed == (exploration.pushdown.last,)
    assert not exploration.is_truncated


def test_coaccessible_nodes(a_n_b_n: Grammar) -> None:
    exploration = Exploration(a_n_b_n, (B,), (B,))
    assert {exploration.pushdown.text(node.position) for node in exploration.coaccessible} == {
        "S : a S · b",
        "S : a S b ·",
    }
    assert exploration.accepting < exploration.coaccessible < frozenset(exploration.nodes)
    borrowed = [exploration.pushdown.text(edge.borrowed) for edge in exploration.edges if edge.borrowed is not None]
    assert sorted(borrowed) == ["S : a S · b", "S : a S · b", "text : S ·", "text : S ·"]


def random_query(grammar: Grammar, rng: random.Random) -> tuple[naive.Word, naive.Word]:
    terminals = range(grammar.n_terminals)
    context = tuple(rng.choices(terminals, k=rng.choice([0, 1, 1, 1, 1, 2])))
    return context, tuple(rng.choices(terminals, k=rng.choice([1, 1, 1, 2])))


@pytest.mark.parametrize("n", share([16, 320], 1))
@pytest.mark.parametrize("start", ["before", "after"])
def test_no_proof_is_refuted(start: Literal["before", "after"], n: int) -> None:
    n_proved = n_refuted = 0
    for seed in range(n):
        grammar, rng = random_grammar(seed), random.Random(seed)
        length = naive.affordable_length(grammar, 150)
        for _ in range(5):
            context, sequence = random_query(grammar, rng)
            if naive.never_legal(grammar, context, ()):
                continue
            refuted = naive.refutes_always(grammar, context, sequence, max(length - len(sequence), 0)) is not None
            is_proved = Exploration(grammar, context, sequence, start, max_stack=4, max_states=2000).is_proved
            assert not (is_proved and refuted), (grammar.text, context, sequence)
            n_proved, n_refuted = n_proved + is_proved, n_refuted + refuted
    assert n_proved > 0.3 * n
    assert n_refuted > 1.5 * n


@settings(max_examples=60, deadline=None)
@given(grammars(), st.integers(0, 10**6), st.integers(0, 3), st.integers(1, 40))
def test_cutting_off_only_loses_proofs(grammar: Grammar, seed: int, max_stack: int, max_states: int) -> None:
    context, sequence = random_query(grammar, random.Random(seed))
    cut = Exploration(grammar, context, sequence, "before", max_stack, max_states)
    assert len(cut.nodes) <= max_states
    if cut.is_proved:
        assert naive.refutes_always(grammar, context, sequence, 4) is None
    if not cut.is_truncated and len(context) < 2:
        assert cut.is_proved == Exploration(grammar, context, sequence, "before", max_stack + 2, 5000).is_proved


@settings(max_examples=60, deadline=None)
@given(grammars(), st.integers(0, 10**6))
def test_before_proves_what_after_proves_and_pairs_what_single_terminals_prove(grammar: Grammar, seed: int) -> None:
    context, sequence = random_query(grammar, random.Random(seed))
    deep = 2 + len(grammar.nonterminals)
    if len(context) == 1 and Exploration(grammar, context, sequence, "after", 2).is_proved:
        before = Exploration(grammar, context, sequence, "before", deep, 40_000)
        assert before.is_proved or len(before.nodes) == before.max_states
    if len(context) == 2 and Exploration(grammar, context[1:], sequence, "before", 2).is_proved:
        pair = Exploration(grammar, context, sequence, "before", 2, 40_000)
        assert pair.is_proved or len(pair.nodes) == pair.max_states


@pytest.mark.parametrize(
    ("text", "context", "sequence", "expected"),
    [
        ("S : a S | a", (A,), (A,), True),  # right recursion
        ("S : S a | a", (A,), (A,), False),  # left recursion: true, but the run that is about to end cannot go on
        ("S : S a | a b", (A,), (A,), False),
        ("S : S a b | a", (B,), (A,), False),
        ("S : S a b | a", (A,), (B,), False),
        ("S : S S | a |", (A,), (A,), True),  # ambiguous, nullable, cyclic
        ("S : T\nT : S | a S b |", (A,), (B,), True),  # unit cycle
        ("S : a N b\nN : M M\nM : | c", (A,), (B,), True),  # everything between may vanish
        ("S : a N b\nN : M M\nM : | c", (A,), (C,), True),
        ("S : a b | a U\nU : c U", (A,), (C,), False),  # c leads nowhere
        ("S : a b | a U\nU : c U", (A,), (B,), True),
        ("S : a S", (A,), (B,), True),  # L is empty, nothing ends in a
        ("S : a S", (), (A,), True),
        ("S : ", (), (), True),
        ("S : a x c | d x e\nZ : x", (A, 1), (C,), True),  # pairs of terminals see more
        ("S : a x c | d x e\nZ : x", (1,), (C,), False),
    ],
)
def test_difficult_grammars_end(text: str, context: naive.Word, sequence: naive.Word, expected: bool) -> None:
    grammar = make_grammar(text if "b" in text else text + "\nZ : b")
    assert Exploration(grammar, context, sequence).is_proved is expected


def test_too_many_starts_prove_nothing() -> None:
    grammar = make_grammar("S : a x c | d x c | e x c | f x c")
    whole = Exploration(grammar, (1,), (C,), AFTER)
    assert whole.is_proved
    assert not whole.is_truncated
    few = Exploration(grammar, (1,), (C,), AFTER, max_states=3)
    assert few.is_truncated
    assert few.unproved == (None, ())


def test_pictures(a_n_b_n: Grammar) -> None:
    svg = "{http://www.w3.org/2000/svg}"
    pictures = [Pushdown(a_n_b_n).to_svg()]
    for x, y in ((A, A), (A, B), (B, B)):
        pictures.append(Exploration(a_n_b_n, (x,), (y,)).to_svg())
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        assert root.tag == svg + "svg"
        assert "pop" in picture or "to read: done" in picture
    exploration = Exploration(a_n_b_n, (B,), (B,))
    nfa = ElementTree.fromstring(exploration.to_svg("nfa"))
    filled = [box for box in nfa.iter(svg + "rect") if box.get("fill") == "#cfe8cf"]
    assert len(filled) == len(exploration.coaccessible) == 2
    texts = [text.text for text in nfa.iter(svg + "text")]
    assert texts.count("ε") == sum(edge.borrowed is None for edge in exploration.edges)
    assert texts.count("borrow text : S ·") == 2
    assert exploration.to_svg("nfa") == Exploration(a_n_b_n, (B,), (B,)).to_svg("nfa")


def test_pictures_of_loops_and_of_names_that_need_escaping() -> None:
    picture = Exploration(make_grammar("S : S S | < |"), (A,), (A,), max_stack=1).to_svg()
    assert "S : &lt; ·" in picture
    ElementTree.fromstring(picture)
    ElementTree.fromstring(Exploration(make_grammar("S : a S"), (A,), (A,)).to_svg())


def test_not_a_terminal(a_n_b_n: Grammar) -> None:
    with pytest.raises(GrammarError, match=r"grammar test: symbol number 2 is not a terminal, expected 0\.\.1"):
        Exploration(a_n_b_n, (2,), (A,))


@pytest.mark.parametrize("n", share([10, 250], 1))
@pytest.mark.parametrize("start", ["before", "after"])
def test_deciders_prove_whatever_an_exploration_proves(start: Literal["before", "after"], n: int) -> None:
    proved = refuted = 0
    for seed in range(n):
        grammar, rng = random_grammar(seed), random.Random(seed)
        if grammar.start not in naive.productive(grammar):
            continue
        deciders = Deciders(grammar)
        for length in (1, 1, 1, 2):
            context = tuple(rng.randrange(grammar.n_terminals) for _ in range(length))
            sequence = tuple(rng.randrange(grammar.n_terminals) for _ in range(rng.randint(1, 3)))
            holds = deciders.is_always_legal(context, sequence)
            assert holds or not Exploration(grammar, context, sequence, start).is_proved, (seed, context, sequence)
            proved += holds
            verdict = Explainer(deciders).always_legal(context, sequence)
            assert (verdict.holds is True) == holds, (seed, context, sequence)
            if verdict.holds is False:
                witness = tuple(grammar.terminal_number[name] for name in verdict.witness)
                assert witness[-length:] == context and naive.is_prefix(grammar, witness)
                assert not naive.is_prefix(grammar, witness + sequence)
                refuted += 1
    assert proved > 0.4 * n and refuted > 0.4 * n
