"""The fast deciders against brute force: exactly for never, and way by way for always and jointly."""

from __future__ import annotations

import itertools
import random

import pytest
from grammars import make_grammar, random_grammar
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import affordable_length, is_factor, is_prefix, refutes_always, refutes_joint
from naive import never_legal as naive_never_legal
from naive_store import WaysUp
from shares import share

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.grammar.normalise import normalise
from maskwright.analysis.legality.deciders import ALWAYS, ANYWHERE, MAX_LENGTH, NEVER, SOMETIMES, Deciders, Query
from maskwright.analysis.legality.explain import Explainer
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.loading import load_grammar

CHUNK = 20
CHUNKS = share(range(16), 1)

seeds = st.integers(0, 2**32 - 1)


def sequences(grammar: Grammar, rng: random.Random, n: int) -> list[tuple[int, ...]]:
    """Sequences of 1-4 terminals, most of them drawn from the words of a walk through the rules."""
    found: list[tuple[int, ...]] = []
    while len(found) < n:
        length = rng.randint(1, 4)
        sequence: tuple[int, ...] = ()
        for _ in range(length):
            choices = [t for t in range(grammar.n_terminals) if is_factor(grammar, (*sequence, t))]
            wild = not choices or rng.random() < 0.1
            sequence += (rng.randrange(grammar.n_terminals) if wild else rng.choice(choices),)
        found.append(sequence)
    return found


def contexts(grammar: Grammar, rng: random.Random) -> list[tuple[int, ...]]:
    x, y = rng.randrange(grammar.n_terminals), rng.randrange(grammar.n_terminals)
    pairs = [
        (a, b) for a in range(grammar.n_terminals) for b in range(grammar.n_terminals) if is_factor(grammar, (a, b))
    ]
    return [(), (START,), (START, x), (x,), (y,), (x, y), rng.choice(pairs or [(y, x)])]


def is_never(grammar: Grammar, context: tuple[int, ...], sequence: tuple[int, ...]) -> bool:
    """The definition, with START and "anywhere" as the deciders write them."""
    if not context:
        return not is_factor(grammar, sequence)
    if context[0] == START:
        return not is_prefix(grammar, context[1:] + sequence)
    return naive_never_legal(grammar, context, sequence)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_never_legal_is_exact(chunk: int) -> None:
    legal = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        grammar, rng = random_grammar(seed), random.Random(seed)
        deciders = Deciders(grammar)
        for context in contexts(grammar, rng):
            for sequence in [(), *sequences(grammar, rng, 3)]:
                expected = is_never(grammar, context, sequence)
                assert deciders.is_never_legal(context, sequence) == expected, (seed, context, sequence)
                legal += not expected
    assert legal > 4 * CHUNK  # both answers occur


@pytest.mark.parametrize("chunk", CHUNKS)
def test_verdicts_equal_the_ways_up(chunk: int) -> None:
    """judge, one query at a time and all at once, and the prover, against sets of remainders on every derivation path."""
    found = [0, 0, 0]
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        grammar, rng = random_grammar(seed), random.Random(seed)
        deciders, paths = Deciders(grammar), WaysUp(grammar)
        prover = deciders.prover()
        queries = [Query(t, s) for s in sequences(grammar, rng, 5) for t in range(grammar.n_terminals)]
        rng.shuffle(queries)
        verdicts = deciders.judge(queries).tolist()
        assert verdicts == [deciders.judge([query]).tolist()[0] for query in queries], seed
        for query, verdict in zip(queries, verdicts, strict=True):
            found[verdict] += 1
            always = paths.implies(query.left, (), query.sequence)
            never = naive_never_legal(grammar, (query.left,), query.sequence)
            assert verdict == (NEVER if never else ALWAYS if always else SOMETIMES), (seed, query)
        for left in range(grammar.n_terminals):
            first, second = rng.choice(queries).sequence, rng.choice(queries).sequence
            expected = paths.implies(left, first, second)
            assert prover.implies(left, first, second) == expected, (seed, left, first, second)
            both = expected and paths.implies(left, second, first)
            assert prover.is_jointly_legal(left, first, second) == both, (seed, left, first, second)
            # which begins one terminal earlier if need be; `test_no_context_refutes_a_proof` tells whether it goes too far
            assert deciders.is_jointly_legal((left,), first, second) or not both
    assert min(found) > CHUNK // 4


@pytest.mark.parametrize("chunk", CHUNKS)
def test_no_context_refutes_a_proof(chunk: int) -> None:
    """Every word of P up to some length, under Lark's rules and the normalised ones."""
    proved = unrefuted = joint = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        grammar, rng = random_grammar(seed), random.Random(seed)
        plain, normal = Deciders(grammar), Deciders(normalise(grammar))
        length = max(1, affordable_length(grammar, 60) - 1)
        drawn = sequences(grammar, rng, 4)
        for context in contexts(grammar, rng)[1:]:
            word = context[1:] if context[0] == START else context
            for sequence in drawn:
                if context[0] == START:
                    expected = not is_prefix(grammar, word) or is_prefix(grammar, word + sequence)
                    assert plain.is_always_legal(context, sequence) == expected, (seed, context, sequence)
                    continue
                assert plain.is_never_legal(context, sequence) == normal.is_never_legal(context, sequence)
                refuted = refutes_always(grammar, word, sequence, length) is not None
                unrefuted += not refuted
                for deciders in (plain, normal):
                    holds = deciders.is_always_legal(context, sequence)
                    assert not (holds and refuted), (seed, context, sequence)
                    proved += holds
            for first, second in itertools.pairwise(drawn):
                for deciders in (plain, normal):
                    if deciders.is_jointly_legal(context, first, second):
                        joint += first != second
                        if context[0] == START:
                            legal = [is_prefix(grammar, word) and is_prefix(grammar, word + s) for s in (first, second)]
                            assert legal[0] == legal[1], (seed, context, first, second)
                        else:
                            refutation = refutes_joint(grammar, word, first, second, length)
                            assert refutation is None, (seed, context, first, second, refutation)
    assert 2 * proved > unrefuted  # of 2 * unrefuted at most
    assert joint > CHUNK


@settings(max_examples=60, deadline=None)
@given(seeds, st.lists(st.integers(0, 1), min_size=1, max_size=4), st.lists(st.integers(0, 1), max_size=4))
def test_anywhere_and_start(seed: int, first: list[int], second: list[int]) -> None:
    grammar = random_grammar(seed)
    deciders = Deciders(grammar)
    one, other = (tuple(t % grammar.n_terminals for t in drawn) for drawn in (first, second))
    assert deciders.judge([Query(ANYWHERE, one)])[0] == (SOMETIMES if is_factor(grammar, one) else NEVER)
    assert deciders.judge([Query(START, one)])[0] == (ALWAYS if is_prefix(grammar, one) else NEVER)
    length = max(1, affordable_length(grammar, 100) - 2)
    if deciders.is_always_legal((), one):
        assert all(refutes_always(grammar, (x,), one, length) is None for x in range(grammar.n_terminals))
        assert is_prefix(grammar, one)
    same_at_start = is_prefix(grammar, one) == is_prefix(grammar, other)
    assert deciders.is_jointly_legal((START,), one, other) == same_at_start
    if deciders.is_jointly_legal((), one, other):
        assert all(refutes_joint(grammar, (x,), one, other, length) is None for x in range(grammar.n_terminals))
        assert same_at_start


def test_by_hand() -> None:
    grammar = normalise(make_grammar("S : a S b | a b"))
    a, b = 0, 1
    deciders = Deciders(grammar)
    assert deciders.is_always_legal((a,), (a,)) and deciders.is_always_legal((a,), (b,))
    assert deciders.is_always_legal((a,), (a, b)) and not deciders.is_always_legal((a,), (b, b))
    assert deciders.is_never_legal((b,), (a,)) and not deciders.is_never_legal((b,), (b,))
    assert not deciders.is_always_legal((b,), (b,))
    assert deciders.is_always_legal((a, a), (b, b)) and deciders.is_always_legal((START, a), (a,))
    assert deciders.is_never_legal((START,), (b,)) and deciders.is_never_legal((START, a), (b, b))
    # on the rules as they are the two a's part at once; beginning one terminal earlier sees both
    plain = Deciders(make_grammar("S : a S b | a b"))
    assert plain.judge([Query(a, (a,)), Query(a, (b,))]).tolist() == [SOMETIMES, SOMETIMES]
    assert plain.is_always_legal((a,), (a,)) and plain.is_always_legal((a,), (b,))
    assert not plain.is_always_legal((b,), (b,)) and not plain.is_always_legal((a,), (b, b))
    assert deciders.is_jointly_legal((b,), (a,), (b, a)) and not deciders.is_jointly_legal((b,), (b,), (b, b))
    assert deciders.live_terminals == (a, b)
    assert deciders.judge([]).tolist() == []
    reported: list[int] = []
    deciders.judge([Query(a, (b,)), Query(a, ()), Query(b, (b,))], reported.append)
    assert sum(reported) == 2  # the empty sequence needs no judging


def test_terminals_before_prove_what_symbols_before_do_not() -> None:
    """After d or b, `a` may end the text or go on with b: asking from the nonterminal Z sees the former only."""
    grammar = make_grammar("S : Z a\nZ : d T\nT : | a b T")
    a, b, d = (grammar.terminal_number[name] for name in "abd")
    deciders, z = Deciders(grammar), grammar.n_terminals + grammar.nonterminals.index("Z")
    assert not deciders.prover().implies(a, (), (b,)) and not deciders.prover().implies(z, (a,), (a, b))
    assert all(deciders.prover().implies(before, (a,), (a, b)) for before in (b, d))
    assert deciders.is_always_legal((a,), (b,)) and refutes_always(grammar, (a,), (b,), 9) is None


def test_a_terminal_in_no_word() -> None:
    """After a terminal that occurs nowhere everything is never legal, and so, vacuously, always legal."""
    deciders = Deciders(make_grammar("S : a S | a\nZ : z a"))
    a, z = 0, 1
    assert deciders.live_terminals == (a,)
    for sequence in ((), (a,), (a, z)):
        assert deciders.is_never_legal((z,), sequence) and deciders.is_always_legal((z,), sequence)
    assert deciders.is_never_legal((a,), (z,)) and not deciders.is_never_legal((a,), ())
    assert not deciders.is_never_legal((), ()) and not deciders.is_never_legal((START,), ())


def test_erased_terminals_count_as_the_empty_string() -> None:
    grammar = make_grammar("S : a i b d | a b")
    a, i, b, d = range(4)
    deciders = Deciders(grammar, erased=(i, d))
    assert deciders.live_terminals == (a, b)
    assert not deciders.is_never_legal((a,), (b,)) and deciders.is_never_legal((a,), (i,))


def test_prefixes_are_implied() -> None:
    grammar = normalise(make_grammar("S : a S b | a b"))
    a, b = 0, 1
    prover = Deciders(grammar).prover()
    for conclusion in ((), (b,), (b, a), (b, a, b)):
        assert prover.implies(b, (b, a, b), conclusion)
    assert prover.implies(b, (b, b), (b,)) and not prover.implies(b, (b,), (b, b))
    assert prover.implies(a, (), (a, b)) and not prover.implies(a, (), (b, b))


def test_sequences_past_the_limit() -> None:
    grammar = normalise(make_grammar("S : a S b | a b | c S | c"))
    a, b, c = range(3)
    deciders = Deciders(grammar)
    longest, longer = (a,) * MAX_LENGTH, (a,) * (MAX_LENGTH + 1)
    assert deciders.is_always_legal((a,), longest) and deciders.judge([Query(START, longest)])[0] == ALWAYS
    assert not deciders.is_always_legal((a,), longer)  # unknown
    for context in ((a,), (START,), (START, a)):
        assert Explainer(deciders).always_legal(context, longer).holds is None
    assert deciders.judge([Query(a, longer), Query(START, longer)]).tolist() == [SOMETIMES, SOMETIMES]
    for context in ((), (a,), (START,), (a, a)):
        assert not deciders.is_never_legal(context, longer)
        assert deciders.is_never_legal(context, (*longer[:-2], b, a, *longer))
    prover = deciders.prover()
    assert not prover.implies(a, longest, longer) and not prover.implies(a, longer, (*longest[:-1], c))
    assert prover.implies(a, longer, longest)  # a prefix
    assert not deciders.is_jointly_legal((START,), longer, (b,))  # legal and illegal
    assert not deciders.is_jointly_legal((a,), longer, (b,))
    with pytest.raises(LimitError, match="a sequence of 64 terminals cannot be judged at once; the limit is 63"):
        deciders.levels(longer)


def test_python_figures() -> None:
    """Pairs of python.lark's 98 live terminals: never, and always on Lark's and on normalised rules."""
    grammar = load_grammar("lark:python", soft=())
    plain, normal = (Deciders(g).pairs for g in (grammar, normalise(grammar)))
    live = list(Deciders(grammar).live_terminals)
    pairs = plain[live][:, live], normal[live][:, live]
    assert pairs[0].size == 9604
    assert [(p == NEVER).sum() for p in pairs] == [6825, 6825]
    assert [(p == ALWAYS).sum() for p in pairs] == [685, 1234]
