"""The engine against its twins where the parser's state decides which terminals compete: contextual lexing and verbatim terminals.

With conflicts="shift" there is one stack, and everything must agree. With "all" stacks may read a text in different ways: the masks are
those of all ways, but the engine follows a text only as long as its stacks read alike.
"""

from __future__ import annotations

import dataclasses
import random
from functools import cache

import numpy as np
import pytest
from engine_cases import (
    ids,
    longest,
    random_contextual_grammar,
    random_verbatim_grammar,
    random_vocabulary,
    row,
    vocabulary_of,
)
from naive_engine import NaiveEngine, check_endings
from oracle import Oracle
from shares import share

from maskwright.analysis.errors import DeadEndError, GrammarError, IllegalTokenError, LimitError
from maskwright.analysis.grammar.grammar import Conflicts, Grammar
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store
from maskwright.validation.oracle import GrammarParse

KINDS = {"contextual": random_contextual_grammar, "verbatim": random_verbatim_grammar}
SEEDS = {"contextual": range(16), "verbatim": range(28)}
MORE = 150

Case = tuple[Store, NaiveEngine]


def takes_newline_beside_verbatim(naive: NaiveEngine) -> bool:
    """Whether some state of the parser takes the layout's newline where a verbatim terminal keeps it from being read."""
    if naive.layout is None:
        return False
    newline = naive.layout.newline
    states = range(len(naive.tables.action))
    return any(
        naive.tables.action[state, naive.column(newline)] != 0 and newline not in naive.competing(state)
        for state in states
    )


@cache
def prepared(kind: str, seed: int, conflicts: Conflicts) -> Case | None:
    """Store and twin of a random grammar; None if the engine refuses it, or if it is a trap in which no line can end."""
    grammar = dataclasses.replace(KINDS[kind](seed), conflicts=conflicts)
    try:
        naive = NaiveEngine(grammar, conflicts)
        if takes_newline_beside_verbatim(naive):
            return None
        return compile_store(grammar, random_vocabulary(grammar, seed)), naive
    except (GrammarError, LimitError) as error:
        reasons = (
            "for ever",
            "differ sooner",
            "one lexer cannot serve both",
            "terminals that compete depend on them",
            "clear sooner where",
        )
        if "no text comes to an end" in str(error):
            assert conflicts == "shift" and not NaiveEngine(grammar, conflicts).is_legal_prefix(b"")
            return None
        assert conflicts == "shift" or "for ever" not in str(error)
        assert any(reason in str(error) for reason in reasons)
        return None


def case(kind: str, seed: int, conflicts: Conflicts = "shift") -> Case:
    return prepared(kind, seed, conflicts) or pytest.skip("the grammar has no store, or lines that cannot end")


CASES = [
    case for kind in KINDS for case in share([pytest.param(kind, seed, id=f"{kind}-{seed}") for seed in SEEDS[kind]], 3)
]


def expected(naive: NaiveEngine, store: Store, text: bytes) -> set[int]:
    eos = set(store.vocabulary.eos) if naive.is_legal_text(text) else set()
    return naive.allowed(text, store.vocabulary.tokens) | eos


def check_rows(store: Store, naive: NaiveEngine, seed: int, length: int) -> list[int]:
    """Rows at every place of a random text that the masks allow. Returns its tokens."""
    rng = random.Random(seed)
    matcher, text, tokens = store.matcher(), b"", list[int]()
    for _ in range(length):
        wanted = expected(naive, store, text)
        assert matcher.is_accepting() == naive.is_legal_text(text), text
        if not wanted:  # a terminal that none of its bytes can spell here
            with pytest.raises(DeadEndError):
                row(matcher)
            break
        assert row(matcher) == wanted, text
        allowed = {i for i in range(store.vocabulary.size) if matcher.is_allowed(i)}
        assert allowed == wanted, text
        going_on = sorted(allowed - set(store.vocabulary.eos))
        if not going_on:
            break
        tokens.append(rng.choice(going_on))
        matcher.advance(tokens[-1])
        text += store.vocabulary.tokens[tokens[-1]]
    return tokens


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_rows_equal_the_naive_engines(kind: str, seed: int) -> None:
    for number in range(3):
        check_rows(*case(kind, seed), number, 8)


@pytest.mark.parametrize(("kind", "seed"), CASES[::3])
def test_rows_equal_the_naive_engines_on_several_stacks(kind: str, seed: int) -> None:
    for number in range(2):
        check_rows(*case(kind, seed, "all"), number, 8)


@pytest.mark.slow
@pytest.mark.parametrize("conflicts", ["all", "shift"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_equal_the_naive_engines_on_many_grammars(kind: str, conflicts: Conflicts) -> None:
    compared = 0
    for seed in range(1000, 1000 + MORE):
        try:
            found = prepared.__wrapped__(kind, seed, conflicts)
            for number in range(3 if found else 0):
                assert found is not None
                compared += len(check_rows(*found, number, 10))
        except LimitError as error:
            assert "readings" in str(error)  # too many of them
    assert compared > 5 * MORE


def test_the_random_grammars_have_modes() -> None:
    for kind in KINDS:
        found = [prepared(kind, seed, "shift") for seed in SEEDS[kind]]
        assert sum(len(naive.begins) > 1 for _, naive in filter(None, found)) > len(SEEDS[kind]) / 2


@pytest.mark.parametrize(("kind", "seed"), CASES[::2])
def test_rollback_fork_and_reset_give_the_rows_back(kind: str, seed: int) -> None:
    store, naive = case(kind, seed)
    tokens = check_rows(store, naive, 5, 10)
    matcher, rows = store.matcher(), list[tuple[set[int], bool]]()
    for token in tokens:
        rows.append((row(matcher), matcher.is_accepting()))
        matcher.advance(token)
    at, rng = len(tokens), random.Random(seed)
    for _ in range(12 if tokens else 0):
        back = rng.randint(1, max(1, at)) if at else 0
        twin = matcher.fork()
        matcher.rollback(back)
        twin.rollback(back)
        at -= back
        assert (row(matcher), matcher.is_accepting()) == rows[at] == (row(twin), twin.is_accepting())
        for token in tokens[at : at + rng.randint(0, 5)]:
            matcher.advance(token)
            at += 1
        assert at == len(tokens) or (row(matcher), matcher.is_accepting()) == rows[at]
    matcher.reset()
    assert not tokens or row(matcher) == rows[0][0]


@pytest.mark.parametrize(("kind", "seed"), CASES[::3])
def test_no_refused_text_can_be_completed(kind: str, seed: int) -> None:
    """By searching for a continuation, which asks no rule of when a lexeme is backed up."""
    store, naive = case(kind, seed)
    rng = random.Random(seed)
    matcher, text, vocabulary = store.matcher(), b"", store.vocabulary.tokens
    for token in check_rows(store, naive, 13, 4):
        refused = [i for i in range(store.vocabulary.size) if vocabulary[i] and not matcher.is_allowed(i)]
        for other in rng.sample(refused, min(3, len(refused))):
            assert naive.ending(text + vocabulary[other], 60) is None, text + vocabulary[other]
        matcher.advance(token)
        text += vocabulary[token]


@pytest.mark.parametrize("step", share([6, 3], 1))
def test_allowed_texts_can_be_completed(step: int) -> None:
    found = missed = 0
    for kind, seed in [(some, seed) for some in KINDS for seed in SEEDS[some][::step]]:
        store, naive = prepared(kind, seed, "shift") or (None, None)
        if store is None or naive is None:
            continue
        text = b"".join(store.vocabulary.tokens[token] for token in check_rows(store, naive, 11, 3))
        n_found, n_missed = check_endings(store, naive, [text], 200)
        found, missed = found + n_found, missed + n_missed
    assert found > 30 // step and found > missed


@pytest.mark.parametrize(("kind", "seed"), CASES[::2])
def test_the_oracle_says_the_same(kind: str, seed: int) -> None:
    """Python's `re` and Lark's item sets instead of derivatives and our tables."""
    pytest.importorskip("regex")
    store, naive = case(kind, seed, "all")
    oracle, parse = Oracle(naive.grammar, "all"), GrammarParse(naive.grammar)
    rng = random.Random(seed)
    tokens = [token for token in store.vocabulary.tokens if token]
    text = b""
    for _ in range(6):
        some = rng.sample(tokens, min(10, len(tokens)))
        legal = [token for token in some if naive.is_legal_prefix(text + token)]
        assert legal == [token for token in some if oracle.is_allowed(text, token)], text
        assert oracle.is_legal_text(text) == naive.is_legal_text(text), text
        if not legal:
            break
        text += rng.choice(legal)
        try:
            assert (parse.refusal(text.decode()) is None) == naive.is_legal_text(text), text
        except UnicodeDecodeError:
            assert not naive.is_legal_text(text)


NESTED = r"""
start: (NAME | fstring)*
fstring: FS part* FE
part: TEXT | "{" start "}"
FS: "f'"
FE: "'"
TEXT: /[^{}']+/
NAME: /[a-z]+/
COMMENT: /#[^\n]*/
%ignore /[ \n]+/
%ignore COMMENT
// maskwright: verbatim = TEXT FE
"""


@cache
def nested() -> Case:
    grammar = longest(NESTED, "nested")
    vocabulary = vocabulary_of(b"f'", b"{f'", b"'}", b"a{b", b"}'", b" #", b"'}'", b"f", singles=bytes(range(128)))
    return compile_store(grammar, vocabulary), NaiveEngine(grammar)


@pytest.mark.parametrize("seed", range(6))
def test_strings_in_holes_of_strings(seed: int) -> None:
    check_rows(*nested(), seed, 12)


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("f'a # b'", True),  # no comment within a string
        ("f'a {b # '\n}'", True),  # but in its hole
        ("f'a {b # '}'", False),
        ("f'{f'{f'{x}'}'}' y", True),
        ("f'{f'{f'{x}'}' y", False),
        ("f' ' x", True),
        ("x # f'", True),
        ("f'{}{ }'", True),
    ],
)
def test_texts_within_texts(text: str, is_whole: bool) -> None:
    store, naive = nested()
    matcher = store.matcher()
    matcher.advance_bytes(text.encode())
    assert matcher.is_accepting() == naive.is_legal_text(text.encode()) == is_whole
    assert (GrammarParse(naive.grammar).refusal(text) is None) == is_whole


@pytest.mark.parametrize(("before", "after"), [("f'", "}"), ("f'a{b", "'"), ("", "'"), ("f'{f'}", "x"), ("}", "")])
def test_what_a_mode_refuses(before: str, after: str) -> None:
    store, naive = nested()
    matcher = store.matcher()
    with pytest.raises(IllegalTokenError):
        matcher.advance_bytes((before + after).encode())
    assert not naive.is_legal_prefix((before + after).encode())


@pytest.mark.parametrize("pattern", ["(ab)*c", "(ab|b)*a?c", "(ab)*(ba)*c"])
def test_a_lexeme_that_comes_back_to_where_its_mode_begins(pattern: str) -> None:
    """Behind `ab` the lexer may stand where the mode's lexemes begin, in the middle of one."""
    grammar = longest(f'// maskwright: verbatim = A\nstart: "q" A "r"\nA: /{pattern}/')
    store = compile_store(grammar, vocabulary_of(b"ab", b"cr", b"qab", singles=b"abcqr"))
    naive = NaiveEngine(grammar, "shift")
    for text in (b"", b"q", b"qa", b"qab", b"qb", b"qabab", b"qabc", b"qababcr"):
        if not naive.is_legal_prefix(text):
            continue
        matcher = store.matcher()
        matcher.advance_bytes(text)
        words = np.zeros(store.n_words, np.uint32)
        matcher.fill(words)
        eos = set(store.vocabulary.eos) if naive.is_legal_text(text) else set()
        assert ids(words) == naive.allowed(text, store.vocabulary.tokens) | eos, text


def test_the_twin_finds_a_missing_mode() -> None:
    """The comparison can fail: verbatim terminals change what is legal."""
    plain: Grammar = dataclasses.replace(longest(NESTED, "nested"), verbatim=frozenset())
    store, _ = nested()
    with pytest.raises((AssertionError, DeadEndError)):
        for seed in range(4):
            check_rows(store, NaiveEngine(plain), seed, 12)
