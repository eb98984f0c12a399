"""Verdicts under layout against all short texts of a layout machine; without layout against the definition."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pytest
from grammars import make_grammar, random_grammar
from naive import is_factor, is_prefix, never_legal
from naive_store import Decoder, Reading, WaysUp, dress, random_layout_grammar, random_vocabulary, terminal_of
from shares import share

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar import Grammar, Layout, Terminal
from maskwright.analysis.legality.deciders import ANYWHERE
from maskwright.analysis.legality.judge import ENDED_NEWLINE, Judge, Symbols
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.loading import load_grammar

COLUMNS = (0, 1, 2)
CHUNK = 15


@dataclass(frozen=True)
class Situation:
    """A legal text so far: its reading, and the terminal that the parser has seen last and text spells (or START)."""

    reading: Reading
    last: int


class Machine:
    """All texts over the spelled terminals and newlines of some columns, as a parser behind a layout sees them."""

    def __init__(self, grammar: Grammar) -> None:
        assert grammar.layout is not None
        self.grammar = grammar
        self.newline = grammar.layout.newline
        self.decoder = Decoder(grammar, random_vocabulary(grammar, 0))
        self.spelled = [
            t
            for t in range(grammar.n_terminals)
            if t not in grammar.ignored and t != self.newline and not grammar.terminals[t].is_declared
        ]

    def step(self, now: Situation, symbol: int, column: int) -> Situation | None:
        """After one more symbol (ENDED_NEWLINE: a newline that ends at the column); None if that is not legal."""
        terminal = self.newline if symbol == ENDED_NEWLINE else symbol
        dropped = terminal == self.newline and now.reading.depth
        reading: Reading | None = self.decoder.begin(now.reading, terminal)
        if symbol == ENDED_NEWLINE:
            assert reading is not None
            reading = self.decoder.end(reading, (self.newline, b"\n" + b" " * column))
        if reading is None or not self.decoder.is_prefix(reading.word):
            return None
        return Situation(reading, now.last if dropped else terminal)

    def situations(self, limit: int) -> list[Situation]:
        """The first situations by length of the text, all of them up to some length."""
        found = dict.fromkeys([Situation(Reading(), START)])
        agenda = list(found)
        for now in agenda:  # grows while it is read
            if len(found) > limit:
                break
            for symbol in (*self.spelled, ENDED_NEWLINE):
                for column in COLUMNS if symbol == ENDED_NEWLINE else (0,):
                    after = self.step(now, symbol, column)
                    if after is not None and after not in found:
                        found[after] = None
                        agenda.append(after)
        return list(found)

    def is_legal(self, now: Situation | None, sequence: Symbols, columns: tuple[int, ...]) -> bool:
        for symbol, column in zip(sequence, columns, strict=True):
            if now is not None:
                now = self.step(now, symbol, column)
        return now is not None

    def answers(self, now: Situation, sequence: Symbols) -> set[bool]:
        """Whether the sequence is legal, for every choice of its newlines' columns."""
        choices = [COLUMNS if symbol == ENDED_NEWLINE else (0,) for symbol in sequence]
        return {self.is_legal(now, sequence, columns) for columns in itertools.product(*choices)}


def sequences(machine: Machine, situations: list[Situation], rng: random.Random, n: int) -> list[Symbols]:
    """Sequences of 1-4 symbols, most of them legal somewhere; a newline under way comes last."""
    found: list[Symbols] = []
    while len(found) < n:
        now: Situation | None = rng.choice(situations)
        sequence: Symbols = ()
        for _ in range(rng.randint(1, 4)):
            options = [*machine.spelled, ENDED_NEWLINE]
            rng.shuffle(options)
            steps = {s: machine.step(now, s, rng.choice(COLUMNS)) for s in options} if now is not None else {}
            legal = [s for s in options if steps.get(s) is not None]
            symbol = rng.choice(options) if not legal or rng.random() < 0.15 else rng.choice(legal)
            sequence, now = (*sequence, symbol), steps.get(symbol)
        if sequence[-1] == ENDED_NEWLINE and rng.random() < 0.5:
            sequence = (*sequence[:-1], machine.newline)
        found.append(sequence)
    return found


@pytest.mark.parametrize("chunk", share(range(8), 1))
def test_no_text_refutes_a_verdict_under_layout(chunk: int) -> None:
    never = always = joint = legal = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        rng = random.Random(seed)
        grammar = random_layout_grammar(seed)
        machine = Machine(grammar)
        situations = machine.situations(60)
        judges = Judge(grammar, "lark"), Judge(grammar)
        lefts = [START, ANYWHERE, machine.newline, *machine.spelled]
        drawn = sequences(machine, situations, rng, 8)
        cases = [(left, sequence) for left in lefts for sequence in drawn]
        answers = {(now, sequence): machine.answers(now, sequence) for now in situations for sequence in drawn}
        lived = {left: [now for now in situations if left in (ANYWHERE, now.last)] for left in lefts}
        possible = {(left, word): set().union(*(answers[now, word] for now in lived[left])) for left, word in cases}
        legal += sum(True in found for found in possible.values())
        for judge in judges:
            prover = judge.always_deciders.prover()
            verdicts = zip(cases, judge.never(cases).tolist(), judge.always(cases).tolist(), strict=True)
            for case, is_never, is_always in verdicts:
                assert not (is_never and True in possible[case]), (seed, case)
                assert not (is_always and False in possible[case]), (seed, case)
                assert is_never or judge.is_path(*case), (seed, case)
                never, always = never + is_never, always + is_always
            for left in (machine.newline, *machine.spelled):
                for first, second in itertools.combinations(drawn[:5], 2):
                    if judge.jointly(prover, left, first, second):
                        joint += first != second
                        for now in lived[left]:
                            both = answers[now, first] | answers[now, second]
                            assert len(both) == 1, (seed, left, first, second, now)
    assert never > 20 * CHUNK and always > CHUNK and joint > CHUNK and legal > 10 * CHUNK


@pytest.mark.parametrize("chunk", share(range(8), 1))
def test_without_layout_never_is_exact(chunk: int) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        rng = random.Random(seed)
        grammar = random_grammar(seed)
        n = grammar.n_terminals
        words = [tuple(rng.choices(range(n), k=rng.randint(1, 3))) for _ in range(8)]
        cases = [(left, word) for left in (START, ANYWHERE, *range(n)) for word in words]
        expected = [
            not is_prefix(grammar, word)
            if left == START
            else not is_factor(grammar, word)
            if left == ANYWHERE
            else never_legal(grammar, (left,), word)
            for left, word in cases
        ]
        for judge in (Judge(grammar, "lark"), Judge(grammar)):
            assert judge.never(cases).tolist() == expected, seed
            assert all(never or judge.is_path(*case) for case, never in zip(cases, expected, strict=True))
            ways = WaysUp(judge.always_deciders.grammar)
            live = judge.always_deciders.live_terminals
            chosen = [(left, word) for left, word in cases if left in live]
            proved = [ways.implies(left, (), word) for left, word in chosen]
            assert judge.always(chosen).tolist() == proved, seed
            assert not judge.always([(ANYWHERE, word) for word in words]).any()
            assert judge.always([(START, word) for word in words]).tolist() == [is_prefix(grammar, w) for w in words]


@pytest.fixture(scope="module")
def lines() -> Grammar:
    """Lines of names and of calls whose arguments go over lines, and blocks."""
    grammar = make_grammar("F : F L | \nL : x n | x o A p n | x c n i L d\nA : x | A m x")
    names = [t.name for t in grammar.terminals]
    patterns = {"n": r"(\n[ ]*)+", "x": "x", "o": r"\(", "p": r"\)", "c": ":", "m": ","}
    terminals = [terminal_of(t, (None, patterns[t])) if t in patterns else Terminal(t, None) for t in names]
    number = {name: i for i, name in enumerate(names)}
    layout = Layout(number["n"], number["i"], number["d"], ((number["o"], number["p"]),))
    return dress(grammar, terminals, layout=layout)


def test_by_hand(lines: Grammar) -> None:
    t = lines.terminal_number
    n, x, o, p, c, m = (t[name] for name in "nxopcm")
    judge = Judge(lines)
    ended = ENDED_NEWLINE
    cases = [
        (x, (n,)),  # ends the line, or is dropped
        (c, (n,)),
        (c, (x,)),
        (c, (ended, x)),  # an indent comes between
        (m, (ended, x)),  # stands in brackets always, but that is not known
        (o, (ended, x)),  # the newline is dropped
        (o, (ended,)),
        (x, (ended, m)),  # inside brackets only
        (START, (x,)),
        (START, (ended, x)),
        (n, (x,)),
        (n, (m,)),  # a newline that was kept stands outside brackets
        (ANYWHERE, (m,)),
        (p, (ended, p)),  # brackets do not nest in the rules
    ]
    never = judge.never(cases).tolist()
    assert [case for case, verdict in zip(cases, never, strict=True) if verdict] == [
        (c, (x,)),
        (START, (ended, x)),
        (n, (m,)),
        (p, (ended, p)),
    ]
    always = judge.always(cases).tolist()
    assert [case for case, verdict in zip(cases, always, strict=True) if verdict] == [
        (c, (n,)),
        (o, (ended, x)),
        (o, (ended,)),
        (START, (x,)),
    ]
    prover = judge.always_deciders.prover()
    assert judge.jointly(prover, o, (ended, x), (x,))
    assert not judge.jointly(prover, c, (ended, x), (ended, x, n))  # legal at different columns
    assert not judge.jointly(prover, x, (n,), (m,))


def test_readings(lines: Grammar) -> None:
    t = lines.terminal_number
    n, x, o, p, m = (t[name] for name in "nxopm")
    judge, e = Judge(lines), ENDED_NEWLINE
    assert judge.variants(x, (m, x)) == [(m, x)]
    assert judge.variants(x, (e, x)) == [(e, x), (x,)]
    assert judge.variants(x, (o, e, x)) == [(o, x)]
    assert judge.variants(x, (e, p, e, x)) == [(e, p, e, x), (p, e, x), (p, x)]
    assert judge.variants(START, (x, n)) == judge.variants(n, (x, n)) == [(x, n)]
    assert judge.variants(p, (n,)) == [(n,), ()]
    assert Judge(make_grammar("S : a S | ")).variants(0, (0, 0)) == [(0, 0)]


def test_the_empty_sequence() -> None:
    judge = Judge(make_grammar("S : a S | "))
    assert judge.always([(0, ()), (ANYWHERE, ()), (START, ())]).all()
    assert not judge.never([(0, ()), (ANYWHERE, ()), (START, ())]).any()
    assert judge.never([]).tolist() == judge.always([]).tolist() == []


def test_a_grammar_of_too_many_terminals_is_refused() -> None:
    """Each terminal is judged after each other one: without end for ten thousand of them."""
    words = " | ".join(f'"w{number}x"' for number in range(2_001))
    grammar = load_grammar(f"start: word+\nword: {words}\n")
    with pytest.raises(LimitError, match=r"has 2,001 terminals; .* 2,000 are the most that are analysed"):
        Judge(grammar)
