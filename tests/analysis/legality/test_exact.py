"""Exact verdicts beside all stacks up to a depth, all prefixes (Earley), the approximating deciders, and Lark itself."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import cast

import numpy as np
import pytest
from grammars import make_grammar, random_grammar
from lark import Lark
from naive import affordable_length, contexts, is_prefix, never_legal, prefixes
from naive_lr import unchecked_tables
from shares import share

from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.grammar.grammar import Conflicts
from maskwright.analysis.legality import exact as exact_module
from maskwright.analysis.legality.certificate import (
    AnyContext,
    Claim,
    Kind,
    LrState,
    Proof,
    Simulator,
    Witness,
    check_certificate,
    spell,
)
from maskwright.analysis.legality.deciders import ALWAYS, ANYWHERE, NEVER, Deciders, Query
from maskwright.analysis.legality.exact import ExactDeciders, ExactVerdict
from maskwright.analysis.legality.judge import Judge, joint_representatives
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.lexing.terminals import compile_terminals
from maskwright.analysis.loading import load_grammar
from maskwright.analysis.loading.lark_loader import parse_grammar
from maskwright.validation.oracle_live import Stack
from maskwright.validation.oracle_parsing import Parser

Word = tuple[int, ...]
KINDS: tuple[Kind, ...] = ("never", "always", "jointly")
CHUNK = 40

JSON = r"""
start: value
value: object | array | STRING | NUMBER | "true" | "false" | "null"
object: "{" [pair ("," pair)*] "}"
array: "[" [value ("," value)*] "]"
pair: STRING ":" value
STRING: /"[^"\\]*"/
NUMBER: /-?[0-9]+/
%ignore " "
"""


def try_deciders(grammar: Grammar, conflicts: Conflicts = "all") -> ExactDeciders | None:
    """None for a grammar that no parser of ours reads: of the empty language, or where one action a cell would not end."""
    try:
        return ExactDeciders(grammar, conflicts)
    except GrammarError:
        return None


def random_deciders(seeds: Sequence[int], conflicts: Conflicts = "all") -> Iterator[tuple[int, ExactDeciders]]:
    for seed in seeds:
        found = try_deciders(random_grammar(seed), conflicts)
        if found is not None:
            yield seed, found


def ask(deciders: ExactDeciders, kind: str, context: AnyContext, first: Word, second: Word) -> ExactVerdict:
    match kind:
        case "never":
            return deciders.never_legal(context, first)
        case "always":
            return deciders.always_legal(context, first)
        case _:
            return deciders.jointly_legal(context, first, second)


def holds(deciders: ExactDeciders, kind: Kind, *case: AnyContext | Word) -> bool:
    """case : a context and a sequence, or two of them."""
    context, *words = case
    return deciders.holds(Claim(kind, context, tuple(words)))


def random_context(rng: random.Random, n_terminals: int) -> Word:
    length = rng.choice([0, 1, 1, 1, 1, 2, 2, 3])
    start = (START,) if rng.random() < 0.15 else ()
    return start + tuple(rng.randrange(n_terminals) for _ in range(length - len(start)))


def random_question(rng: random.Random, n_terminals: int) -> tuple[str, Word, Word, Word]:
    words = [tuple(rng.randrange(n_terminals) for _ in range(rng.randint(0, 4))) for _ in range(2)]
    return rng.choice(KINDS), random_context(rng, n_terminals), words[0], words[1]


def is_refuted(kind: str, first: bool, second: bool) -> bool:
    return {"never": first, "always": not first, "jointly": first != second}[kind]


class Stacks:
    """All feasible stacks of up to `depth` states, on Lark's own automaton: the naive twin of the search."""

    def __init__(self, grammar: Grammar, depth: int) -> None:
        self.parser = Parser(grammar, "all")
        self.shift = cache(lambda stack, terminal: self.parser.shift((stack,), f"T{terminal}"))
        self.after: dict[int, list[Stack]] = {START: [*self.parser.initial.stacks]}
        level = self.after[START]
        for _ in range(depth - 1):
            edges = [
                (symbol, (to, stack))
                for stack in level
                for symbol, to in self.parser.shifts[stack[0]].items()
                if symbol != "$END"
            ]
            level = [stack for _, stack in edges]
            for symbol, stack in edges:
                if symbol.startswith("T"):
                    self.after.setdefault(int(symbol[1:]), []).append(stack)
            if len(level) > 2000:
                break
        self.terminals = range(grammar.n_terminals)

    def of(self, context: Word) -> list[Stack]:
        lefts = context[:1] or (START, *self.terminals)
        return [stack for left in lefts for stack in self.after.get(left, [])]

    def accepts(self, stack: Stack, word: Word) -> bool:
        stacks: tuple[Stack, ...] = (stack,)
        for terminal in word:
            stacks = tuple(dict.fromkeys(after for one in stacks for after in self.shift(one, terminal)))
        return bool(stacks)

    def refutes(self, kind: str, context: Word, first: Word, second: Word) -> bool:
        """Whether some stack that accepts the rest of the context refutes the claim."""
        rest = context[1:]
        return any(
            is_refuted(kind, self.accepts(stack, rest + first), self.accepts(stack, rest + second))
            for stack in self.of(context)
            if self.accepts(stack, rest)
        )


@pytest.mark.slow
@pytest.mark.parametrize("chunk", share(range(5), 1))
def test_verdicts_beside_all_stacks(chunk: int) -> None:
    """What holds, no stack of any depth tried refutes; what does not is refuted by its certificate. Conflicts or not."""
    counts = {(kind, holds): 0 for kind in KINDS for holds in (True, False)}
    refuted_by_stacks = 0
    for seed, deciders in random_deciders(range(chunk * CHUNK, (chunk + 1) * CHUNK)):
        rng = random.Random(seed)
        grammar = random_grammar(seed)
        stacks = Stacks(grammar, 7)
        simulator = Simulator(deciders.tables)
        for _ in range(25):
            kind, context, first, second = random_question(rng, grammar.n_terminals)
            verdict = ask(deciders, kind, context, first, second)
            check_certificate(simulator, verdict.certificate)
            refuted = stacks.refutes(kind, context, first, second)
            assert not (verdict.holds and refuted), (seed, kind, context, first, second)
            counts[kind, verdict.holds] += 1
            refuted_by_stacks += refuted
    assert min(counts.values()) > 20, counts
    assert refuted_by_stacks > 0.9 * sum(n for (_, holds), n in counts.items() if not holds)


@lru_cache(maxsize=64)
def known_prefixes(grammar: Grammar) -> tuple[int, frozenset[Word]]:
    length = affordable_length(grammar, 400)
    return length, prefixes(grammar, length)


def refuting_prefix(grammar: Grammar, kind: str, context: Word, first: Word, second: Word) -> Word | None:
    """The first short word of P that ends in the context and refutes the claim, by Earley's recogniser."""
    length, known = known_prefixes(grammar)
    length -= max(len(first), len(second))
    if length < len(context):
        return None
    if not context:
        found: Iterator[Word] = iter(sorted((w for w in known if len(w) <= length), key=lambda w: (len(w), w)))
    elif context[0] == START:
        found = (w for w in [context[1:]] if w in known)
    else:
        found = contexts(grammar, context, length)
    return next((w for w in found if is_refuted(kind, w + first in known, w + second in known)), None)


@pytest.mark.parametrize(
    ("conflicts", "chunk"), share([(conflicts, chunk) for chunk in range(4) for conflicts in (False, True)], 2)
)
def test_verdicts_beside_the_language(conflicts: bool, chunk: int) -> None:
    """Both answers on conflict-free grammars, and all that are called proofs on others, against Earley's recogniser."""
    counts = {(kind, holds): 0 for kind in KINDS for holds in (True, False)}
    unknown = 0
    for seed, deciders in random_deciders(range(1000 + chunk * CHUNK, 1000 + (chunk + 1) * CHUNK)):
        if bool(deciders.tables.n_conflicts) != conflicts:
            continue
        rng = random.Random(seed)
        grammar = random_grammar(seed)
        for _ in range(20):
            kind, context, first, second = random_question(rng, grammar.n_terminals)
            verdict = ask(deciders, kind, context, first, second)
            case = (seed, kind, context, first, second)
            counts[kind, verdict.holds] += 1
            if verdict.holds:
                assert verdict.is_proof and refuting_prefix(grammar, kind, context, first, second) is None, case
            elif verdict.is_proof:
                text = cast(Witness, verdict.certificate).text
                assert is_prefix(grammar, text), case
                assert is_refuted(kind, is_prefix(grammar, text + first), is_prefix(grammar, text + second)), case
                if context[:1] == (START,):
                    assert text == context[1:], case
                elif context:
                    assert text[-len(context) :] == context, case
            else:
                unknown += 1
                assert conflicts and kind != "never", case
            if kind == "never" and START not in context[:1]:
                # a text that ends in the context, then the sequence; anywhere: the sequence is no factor at all
                assert verdict.holds == (bool(context + first) and never_legal(grammar, context + first, ())), case
    assert min(counts.values()) >= 5, counts
    assert conflicts or not unknown


@pytest.mark.parametrize("n", share([40, 80], 1))
def test_conflicts_resolved_by_shifting(n: int) -> None:
    """The certificates of conflicts="shift" are right, and "holds" is right for what such a parser does not refuse."""
    n_conflicts = n_spurious = 0
    for seed, deciders in random_deciders(range(2000, 2000 + n), "shift"):
        rng = random.Random(seed)
        grammar = random_grammar(seed)
        simulator = Simulator(deciders.tables)
        every = try_deciders(grammar)
        has_conflicts = bool(unchecked_tables(grammar).n_conflicts)
        n_conflicts += every is not None and has_conflicts
        for _ in range(15):
            kind, context, first, second = random_question(rng, grammar.n_terminals)
            verdict = ask(deciders, kind, context, first, second)
            check_certificate(simulator, verdict.certificate)
            n_spurious += not verdict.is_proof
            if every is not None and not has_conflicts:
                assert verdict == ask(every, kind, context, first, second), seed
            if not verdict.holds:
                continue
            for _ in range(5):
                word: Word = ()
                for _ in range(6):
                    legal = [t for t in range(grammar.n_terminals) if simulator.parse({(0,)}, (*word, t))]
                    if not legal:
                        break
                    word = (*word, rng.choice(legal))
                    if context[:1] != (START,) and word[len(word) - len(context) :] == context:
                        accepted = [bool(simulator.parse({(0,)}, word + s)) for s in (first, second)]
                        assert not is_refuted(kind, *accepted), (seed, kind, context, first, second, word)
    assert n_conflicts > n // 8 and n_spurious > n // 8


def test_contexts_of_an_lr_state() -> None:
    """A claim about a state is about the stacks with this state on top."""
    n_refuted = 0
    for seed, deciders in random_deciders(range(60)):
        rng = random.Random(seed)
        simulator = Simulator(deciders.tables)
        n_states = deciders.tables.action.shape[0]
        stacks: list[tuple[int, ...]] = [(0,)]
        begin = 0
        for _ in range(5):
            level = stacks[begin : begin + 500]
            begin = len(stacks)
            stacks += [(*s, above) for s in level for above in range(n_states) if s[-1] in simulator.below[above]]
        for _ in range(20):
            kind, _, first, second = random_question(rng, deciders.grammar.n_terminals)
            state = rng.randrange(n_states)
            verdict = ask(deciders, kind, LrState(state), first, second)
            check_certificate(simulator, verdict.certificate)
            assert verdict.is_proof
            refuted = any(
                is_refuted(kind, bool(simulator.parse({stack}, first)), bool(simulator.parse({stack}, second)))
                for stack in stacks
                if stack[-1] == state
            )
            assert not (verdict.holds and refuted), (seed, state)
            n_refuted += refuted
    assert n_refuted > 100


def test_a_n_b_n() -> None:
    grammar = make_grammar("S : a S b | a b")
    a, b = 0, 1
    deciders = ExactDeciders(grammar)
    assert deciders.tables.n_conflicts == 0
    assert deciders.always_legal((a,), (a,)) and deciders.always_legal((a,), (b,))
    assert deciders.always_legal((a,), (a, b, b))
    assert deciders.always_legal((a, a), (b, b))
    assert deciders.never_legal((b,), (a,)) and not deciders.never_legal((b,), (b,))
    assert deciders.never_legal((START,), (b,)) and deciders.always_legal((START,), (a, a, b, b))
    assert deciders.never_legal((START, a, b), (b,)) and not deciders.always_legal((), (a,))
    assert deciders.jointly_legal((b,), (a,), (b, a)) and not deciders.jointly_legal((b,), (b,), (b, b))
    longer = deciders.always_legal((b,), (b,))
    assert not longer and cast(Witness, longer.certificate).text == (a, b)
    assert cast(Witness, deciders.always_legal((b, b), (b,)).certificate).text == (a, a, b, b)
    assert cast(Witness, deciders.jointly_legal((b,), (b,), (b, b)).certificate).text == (a, a, b)
    assert cast(Proof, deciders.always_legal((a,), (a,)).certificate).nodes == ()
    assert len(cast(Proof, deciders.never_legal((b,), (b, a)).certificate).nodes) > 0


def test_a_pair_is_more_than_the_terminal_before() -> None:
    grammar = make_grammar("S : a X b | c X d\nX : x | x X")
    number = grammar.terminal_number
    a, b, x, d = (number[name] for name in "abxd")
    deciders = ExactDeciders(grammar)
    assert not deciders.always_legal((x,), (b,))
    assert deciders.always_legal((a, x), (b,)) and deciders.never_legal((a, x), (d,))
    assert deciders.always_legal((a, x, x, x), (x, x, b)) and deciders.never_legal((a, x, x, x), (x, d))
    assert not deciders.jointly_legal((x,), (b,), (x, d)) and deciders.jointly_legal((a, x), (b,), (x, x, b))
    assert deciders.always_legal((b, b), (a, a)) and deciders.never_legal((b, b), ())


def test_what_no_approximation_proves() -> None:
    """After "(" of the head the parser cannot know which rule it is in, but every stack goes on; the derivation paths refuse one each."""
    grammar = make_grammar("S : a P b | a Q c\nP : x\nQ : x y | z")
    number = grammar.terminal_number
    a, x, z = number["a"], number["x"], number["z"]
    assert ExactDeciders(grammar).always_legal((a,), (x,)) and ExactDeciders(grammar).always_legal((a,), (z,))
    assert Deciders(grammar).judge([Query(a, (x,)), Query(a, (z,))]).tolist() != [ALWAYS, ALWAYS]


@lru_cache(maxsize=1)
def python() -> tuple[Grammar, ExactDeciders, Deciders, Judge]:
    grammar = load_grammar("lark:python")
    return grammar, ExactDeciders(grammar), Deciders(grammar), Judge(grammar)


def python_sequences(n: int) -> list[tuple[Word, Word]]:
    """Contexts of one terminal, and sequences that mostly are paths of the follow graph."""
    grammar, _, deciders, judge = python()
    rng = random.Random(5)
    found: list[tuple[Word, Word]] = []
    while len(found) < n:
        path = [rng.choice(deciders.live_terminals)]
        for _ in range(rng.randint(2, 6)):
            following = [t for t in range(grammar.n_terminals) if judge.follow[path[-1], t]]
            path.append(rng.choice(following if following and rng.random() < 0.95 else deciders.live_terminals))
        found.append(((path[0],), tuple(path[1:])))
    return found


def assert_consistent(cases: list[tuple[Word, Word]]) -> tuple[int, int]:
    """The approximations' verdicts are the exact ones; how often "always" is proved by them, and is exact."""
    _, exact, deciders, judge = python()
    never = np.array([holds(exact, "never", *case) for case in cases])
    always = np.array([holds(exact, "always", *case) for case in cases])
    queries = [Query(context[0] if context else ANYWHERE, sequence) for context, sequence in cases]
    for approximate in (deciders, judge.always_deciders):
        verdicts = approximate.judge(queries)
        assert ((verdicts == NEVER) == never).all()
        assert always[verdicts == ALWAYS].all()
    return int((verdicts == ALWAYS).sum()), int((always & ~never).sum())


def test_all_pairs_of_python() -> None:
    grammar, _, _, _ = python()
    terminals = range(grammar.n_terminals)
    approximate, exact = assert_consistent([((x,), (y,)) for x in (START, *terminals) for y in terminals])
    assert 0 < approximate < exact


@pytest.mark.slow
def test_longer_sequences_of_python() -> None:
    approximate, exact = assert_consistent(python_sequences(2000))
    assert 0 < approximate < exact
    assert_consistent([((), sequence) for _, sequence in python_sequences(100)])


def test_joint_verdicts_of_python() -> None:
    _, exact, deciders, judge = python()
    lefts = deciders.live_terminals[::12]
    cases = [(left, (t,)) for left in lefts for t in deciders.live_terminals]
    cases += [(left, sequence) for left in lefts for _, sequence in python_sequences(40)]
    leaders = joint_representatives(judge, cases)
    merged = [(i, leader) for i, leader in enumerate(leaders) if i != leader]
    assert len(merged) > 200
    for i, leader in merged:
        assert holds(exact, "jointly", (cases[i][0],), cases[leader][1], cases[i][1]), (i, leader)


def test_certificates_of_python() -> None:
    _, exact, _, _ = python()
    simulator = Simulator(exact.tables)
    rng = random.Random(2)
    kinds = {(kind, holds): 0 for kind in KINDS for holds in (True, False)}
    sequences = python_sequences(120)
    for (context, first), (_, second) in zip(sequences, sequences[1:] + sequences[:1], strict=True):
        context = (*context, first[0]) if rng.random() < 0.3 else context
        for kind in KINDS:
            verdict = ask(exact, kind, context, first[1:3], second[:2])
            check_certificate(simulator, verdict.certificate)
            kinds[kind, verdict.holds] += 1
            assert exact.holds(verdict.certificate.claim) == verdict.holds
    assert min(kinds.values()) >= 5, kinds


def test_witnesses_are_texts_that_lark_reads() -> None:
    """Of all pairs that can follow each other in JSON, each witness's text with the second terminal is the beginning of a text."""
    grammar = parse_grammar(JSON, name="json.lark")
    deciders = ExactDeciders(grammar)
    lark = Lark(JSON, parser="lalr")
    spellings = tuple(dfa and dfa.shortest() for dfa in compile_terminals(grammar))
    n_read = 0

    def is_read(text: str) -> bool:
        try:
            lark.parse_interactive(text).exhaust_lexer()
        except Exception:
            return False
        return True

    for x, y in itertools.product(sorted({*range(grammar.n_terminals)} - grammar.ignored), repeat=2):
        legal = deciders.never_legal((x,), (y,))
        if not legal.holds:
            n_read += 1
            assert is_read(spell(grammar, (*cast(Witness, legal.certificate).text, y), spellings)), (x, y)
        refused = deciders.always_legal((x,), (y,))
        if not refused.holds:
            text = cast(Witness, refused.certificate).text
            assert is_read(spell(grammar, text, spellings))
            assert not is_read(spell(grammar, (*text, y), spellings)), (x, y)
    assert n_read > 20


def test_long_words() -> None:
    deciders = ExactDeciders(make_grammar("S : a S b | a b"))
    assert not holds(deciders, "never", (1,), (1,) * 5000)
    assert holds(deciders, "always", (0,), (0,) * 300 + (1,) * 301)
    assert not holds(deciders, "always", (0,), (0,) * 300 + (1,) * 302)


def test_a_very_ambiguous_grammar_stays_small() -> None:
    """Equal stacks are merged while a word is read: the number of parses of a^n is exponential."""
    deciders = ExactDeciders(make_grammar("S : S S | a"))
    assert deciders.always_legal((0,), (0,) * 30)


def test_a_grammar_too_ambiguous_for_a_long_word() -> None:
    """The stacks of this one do not merge: 18 after four terminals, 346 after eight, 6,462 after twelve, from one stack."""
    deciders = ExactDeciders(make_grammar("S : A | | a S S b\nA : a | S b S | A b"))
    a, b = 0, 1
    assert not deciders.never_legal((a,), (a, a, a, b) * 2)
    with pytest.raises(
        LimitError, match=r"a a a b a a a b a a a b is never legal takes more than .* or 8192 stacks in one"
    ):
        deciders.never_legal((a,), (a, a, a, b) * 3)


def test_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    deciders = ExactDeciders(make_grammar("S : a S b | a b"))
    with pytest.raises(MaskwrightError, match="no terminal number 7; expected 0 to 1"):
        deciders.never_legal((0,), (7,))
    with pytest.raises(MaskwrightError, match="no terminal number -1"):
        deciders.always_legal((0, START), (1,))
    with pytest.raises(MaskwrightError, match="no LR state 99"):
        deciders.always_legal(LrState(99), (1,))
    monkeypatch.setattr(exact_module, "MAX_NODES", 1 << 12)
    with pytest.raises(LimitError, match="is never legal takes more than 4096 situations"):
        deciders.never_legal((1,), (1,) * 5000)
    with pytest.raises(MaskwrightError, match="expected one of"):
        ExactDeciders(deciders.grammar, "both")  # type: ignore[arg-type]
