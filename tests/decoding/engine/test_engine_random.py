"""The engine against its naive twin: random grammars of all kinds, vocabularies cut from their texts, every place of random legal texts.

Where the parser's state decides which terminals compete (contextual lexing and verbatim terminals), there is one stack with
conflicts="shift", and everything must agree. With "all" stacks may read a text in different ways: the masks are those of all ways, but
the engine follows a text only as long as its stacks read alike.
"""

from __future__ import annotations

import dataclasses
import random
from functools import cache

import pytest
from engine_cases import (
    compile_strictly,
    longest,
    random_contextual_grammar,
    random_layout_grammar,
    random_longest_grammar,
    random_run_grammar,
    random_verbatim_grammar,
    random_vocabulary,
    vocabulary_of,
)
from mask_bits import row
from naive_engine import NaiveEngine, check_endings
from oracle import Oracle
from shares import share

from maskwright.analysis.errors import DeadEndError, GrammarError, IllegalTokenError, LimitError
from maskwright.analysis.grammar.grammar import Conflicts, Grammar
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store
from maskwright.validation.oracle import GrammarParse

ALIKE = {"plain": random_longest_grammar, "layout": random_layout_grammar}
"""Kinds of grammars whose terminals compete alike everywhere; here conflicts are followed. In the others they are shifted."""
MODAL = {"contextual": random_contextual_grammar, "verbatim": random_verbatim_grammar, "runs": random_run_grammar}
KINDS = {**ALIKE, **MODAL}
SEEDS = {"plain": range(24), "layout": range(14), "contextual": range(16), "verbatim": range(28), "runs": range(40)}
WALKS = {"plain": 1, "layout": 1, "contextual": 3, "verbatim": 3, "runs": 3}

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
    if kind in ALIKE:
        return compile_strictly(grammar, random_vocabulary(grammar, seed)), NaiveEngine(grammar)
    try:
        naive = NaiveEngine(grammar, conflicts)
        if takes_newline_beside_verbatim(naive):
            return None
        return compile_strictly(grammar, random_vocabulary(grammar, seed)), naive
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


def case(kind: str, seed: int, conflicts: Conflicts | None = None) -> Case:
    found = prepared(kind, seed, conflicts or ("all" if kind in ALIKE else "shift"))
    return found or pytest.skip("the grammar has no store, or lines that cannot end")


def cases_of(kinds: dict[str, object]) -> list[object]:
    chosen = {"plain": 4}  # how many are in every run
    return [
        case
        for kind in kinds
        for case in share([pytest.param(kind, seed, id=f"{kind}-{seed}") for seed in SEEDS[kind]], chosen.get(kind, 3))
    ]


CASES = cases_of(KINDS)
MODAL_CASES = cases_of(MODAL)


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
    for number in range(WALKS[kind]):
        check_rows(*case(kind, seed), number, 10 if kind in ALIKE else 8)


@pytest.mark.parametrize(("kind", "seed"), MODAL_CASES[::3])
def test_rows_equal_the_naive_engines_on_several_stacks(kind: str, seed: int) -> None:
    for number in range(2):
        check_rows(*case(kind, seed, "all"), number, 8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "conflicts"), [*((kind, "all") for kind in KINDS), *((kind, "shift") for kind in MODAL)]
)
def test_rows_equal_the_naive_engines_on_many_grammars(kind: str, conflicts: Conflicts) -> None:
    compared, seeds = 0, range(100, 300) if kind in ALIKE else range(1000, 1150)
    for seed in seeds:
        try:
            found = prepared.__wrapped__(kind, seed, conflicts)
            for number in range(3 if found else 0):
                assert found is not None
                compared += len(check_rows(*found, number, 10))
        except LimitError as error:  # of texts with very many readings, or lexemes that back up without end
            assert "readings" in str(error) or (kind in ALIKE and "back up" in str(error))
    assert compared > 5 * len(seeds)


def test_the_random_grammars_have_modes() -> None:
    for kind in MODAL:
        found = [prepared(kind, seed, "shift") for seed in SEEDS[kind]]
        assert sum(len(naive.begins) > 1 for _, naive in filter(None, found)) > len(SEEDS[kind]) / 2


def walk(store: Store, naive: NaiveEngine, seed: int, length: int) -> list[tuple[int, bytes]]:
    """A random text that the masks allow, held against the twin: for each token its id, and the text before it."""
    tokens = check_rows(store, naive, seed, length)
    texts = [b"".join(store.vocabulary.tokens[token] for token in tokens[:at]) for at in range(len(tokens))]
    return list(zip(tokens, texts, strict=True))


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_rollback_fork_and_reset_give_the_rows_back(kind: str, seed: int) -> None:
    store, naive = case(kind, seed)
    tokens = check_rows(store, naive, 5, 10)
    matcher, rows = store.matcher(), list[tuple[set[int], bool]]()
    for token in tokens:
        rows.append((row(matcher), matcher.is_accepting()))
        matcher.advance(token)
    if kind in ALIKE:  # in others this may be a dead end
        rows.append((row(matcher), matcher.is_accepting()))
    at, rng = len(tokens), random.Random(seed)
    for _ in range(20 if tokens else 0):
        back = rng.randint(min(1, at), at)
        twin = matcher.fork()
        matcher.rollback(back)
        assert at == len(rows) or (row(twin), twin.is_accepting()) == rows[at], "a fork does not follow the original"
        twin.rollback(back)
        at -= back
        assert at == len(rows) or (row(matcher), matcher.is_accepting()) == rows[at] == (row(twin), twin.is_accepting())
        for token in tokens[at : at + rng.randint(0, 6)]:
            matcher.advance(token)
            at += 1
        assert at == len(rows) or (row(matcher), matcher.is_accepting()) == rows[at]
    matcher.reset()
    for token, (expected_row, is_accepting) in zip(tokens, rows, strict=False):
        assert (row(matcher), matcher.is_accepting()) == (expected_row, is_accepting)
        matcher.advance(token)


@pytest.mark.parametrize(("kind", "seed"), CASES[::4])
def test_refused_tokens_leave_no_trace(kind: str, seed: int) -> None:
    store, naive = case(kind, seed)
    matcher = store.matcher()
    for token, _ in walk(store, naive, 7, 8):
        before = row(matcher)
        for other in sorted(set(range(store.vocabulary.size)) - before)[::5]:
            with pytest.raises(IllegalTokenError):
                matcher.advance(other)
        assert row(matcher) == before
        matcher.advance(token)


@pytest.mark.parametrize(("kind", "seed"), CASES[::3])
def test_how_a_text_is_cut_does_not_matter(kind: str, seed: int) -> None:
    """After the same bytes the same row, whether they came as tokens, one by one, or at once."""
    store, naive = case(kind, seed)
    matcher, single = store.matcher(), store.matcher()
    for token, text in walk(store, naive, 9, 12):
        whole = store.matcher()
        whole.advance_bytes(text)
        assert row(whole) == row(single) == row(matcher), text
        matcher.advance(token)
        for byte in store.vocabulary.tokens[token]:
            single.advance_bytes(bytes([byte]))


@pytest.mark.parametrize("first", share(range(12), 1))
def test_allowed_texts_can_be_completed(first: int) -> None:
    """The definition itself, by searching for a continuation: no dead end is let in. Some are too far away to be found."""
    found = missed = 0
    for kind, seed in [("plain", seed) for seed in SEEDS["plain"][first::12]] + [
        ("layout", seed) for seed in SEEDS["layout"][first::12]
    ]:
        store, naive = case(kind, seed)
        texts = [text + store.vocabulary.tokens[token] for token, text in walk(store, naive, 11, 6)[::3]]
        n_found, n_missed = check_endings(store, naive, texts, 400)
        found, missed = found + n_found, missed + n_missed
    assert found > 5 and found > 2 * missed


@pytest.mark.parametrize("step", share([6, 3], 1))
def test_allowed_texts_can_be_completed_where_modes_decide(step: int) -> None:
    found = missed = 0
    for kind, seed in [(some, seed) for some in MODAL for seed in SEEDS[some][::step]]:
        store, naive = prepared(kind, seed, "shift") or (None, None)
        if store is None or naive is None:
            continue
        text = b"".join(store.vocabulary.tokens[token] for token in check_rows(store, naive, 11, 3))
        n_found, n_missed = check_endings(store, naive, [text], 200)
        found, missed = found + n_found, missed + n_missed
    assert found > 30 // step and found > missed


@pytest.mark.parametrize(("kind", "seed"), CASES[::3])
def test_no_refused_text_can_be_completed(kind: str, seed: int) -> None:
    """By searching for a continuation, which asks no rule of when a lexeme is backed up."""
    store, naive = case(kind, seed)
    rng = random.Random(seed)
    matcher, tokens = store.matcher(), store.vocabulary.tokens
    for token, text in walk(store, naive, 13, 6 if kind in ALIKE else 4):
        refused = [i for i in range(store.vocabulary.size) if tokens[i] and not matcher.is_allowed(i)]
        for other in rng.sample(refused, min(3, len(refused))):
            assert naive.ending(text + tokens[other], 60) is None, text + tokens[other]
        matcher.advance(token)


@pytest.mark.parametrize(("kind", "seed"), cases_of({kind: MODAL[kind] for kind in ("contextual", "verbatim")})[::2])
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


def test_the_twin_finds_a_wrong_row() -> None:
    """The comparison can fail: a store of one grammar is not the twin of another."""
    store = compile_store(longest('start: "a" start | "b"'), vocabulary_of(b"a", b"b", b"ab"))
    with pytest.raises(AssertionError):
        check_rows(store, NaiveEngine(longest('start: "a" start | "a" "b"')), 0, 5)


def test_a_vocabulary_that_lacks_a_byte_leads_to_a_dead_end() -> None:
    store = compile_store(longest('start: "a" "b"', "pair"), vocabulary_of(b"a", b"c"))
    matcher = store.matcher()
    matcher.advance(0)
    with pytest.raises(
        DeadEndError, match=r"no token of vocabulary small can come next, .* under grammar pair.* bytes b'b'"
    ):
        row(matcher)
    assert not matcher.is_accepting()


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
        assert row(matcher) == expected(naive, store, text), text


def test_the_twin_finds_a_missing_mode() -> None:
    """The comparison can fail: verbatim terminals change what is legal."""
    plain: Grammar = dataclasses.replace(longest(NESTED, "nested"), verbatim=frozenset())
    store, _ = nested()
    with pytest.raises((AssertionError, DeadEndError)):
        for seed in range(4):
            check_rows(store, NaiveEngine(plain), seed, 12)
