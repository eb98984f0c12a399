"""Endings under vocabularies that lack bytes, against trying all sequences of tokens."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from lacking_bytes import EVERY_MAKER, allowed, lacking_vocabulary, naive_ending
from shares import parts, share

from maskwright.analysis.errors import DeadEndError, GrammarError, LimitError
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.dead import refuse_dead
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import build_store, compile_store

LIMIT = 150
"""States of texts that are tried for an ending."""


def check_text(matcher: Matcher, counts: Counter[str]) -> None:
    """All that is said of a text's endings is what trying all tokens finds."""
    naive = naive_ending(matcher, LIMIT)
    tokens = matcher.store.vocabulary.tokens
    try:
        ending = matcher.shortest_ending()
    except DeadEndError:
        assert naive.data is None
        counts["no ending" if naive.is_whole else "no ending, not all tried"] += 1
        with pytest.raises(DeadEndError):
            matcher.short_ending()
        return
    except LimitError:
        counts["given up" + (", a dead end" if naive.is_whole else "")] += 1
        assert naive.data is None
        return
    assert ending.is_shortest and matcher.min_bytes_left() <= len(ending.data)
    for found in (ending, matcher.short_ending()):
        assert len(found.data) >= len(ending.data)
        assert b"".join(tokens[token] for token in found.tokens) == found.data
        reader = matcher.fork()
        for token in found.tokens:
            assert reader.is_allowed(token)
            reader.advance(token)
        assert reader.is_accepting()
    if naive.data is not None:
        assert ending.data == naive.data
        counts["an ending of no bytes" if not naive.data else "an ending"] += 1
    else:
        assert not naive.is_whole and len(ending.data) >= naive.least
        counts["an ending, not all tried"] += 1


def check_seed(seed: int) -> Counter[str]:
    """A random grammar with a vocabulary that lacks bytes: whether it is refused, and endings of a few of its texts."""
    counts: Counter[str] = Counter()
    rng = random.Random(-seed)
    try:
        grammar = EVERY_MAKER[seed % len(EVERY_MAKER)](seed)
        store = compile_store(grammar, lacking_vocabulary(grammar, seed))
    except (GrammarError, LimitError) as error:
        return Counter({f"not read: {type(error).__name__}": 1})
    matcher = store.matcher()
    naive = naive_ending(matcher, LIMIT)
    try:
        refuse_dead(store)
        assert naive.data is not None or not naive.is_whole or matcher_gives_up(matcher)
        counts["let through"] += 1
    except DeadEndError:
        assert naive.data is None
        counts["refused as dead"] += 1
    check_text(matcher, counts)
    for _ in range(rng.randint(1, 3)):
        choice = allowed(matcher)
        if not choice:
            break
        matcher.advance(rng.choice(choice))
    check_text(matcher, counts)
    return counts


def matcher_gives_up(matcher: Matcher) -> bool:
    try:
        matcher.short_ending()
    except LimitError:
        return True
    return False


@pytest.mark.parametrize("seeds", share([range(40), *parts(20_000, 400)], 1))
def test_endings_under_random_vocabularies(seeds: range) -> None:
    counts = sum(map(check_seed, seeds), Counter())
    assert counts["an ending"] > len(seeds) // 2
    assert counts["no ending"] and counts["refused as dead"]
    assert sum(n for what, n in counts.items() if what.startswith("given up")) <= len(seeds) // 10


def vocabulary_of_tokens(*tokens: bytes) -> Vocabulary:
    return Vocabulary.from_tokens([b"</s>", *tokens], eos=[0])


def test_a_byte_stands_for_no_other_that_no_token_spells() -> None:
    store = build_store(parse_grammar('start: A "ca"\nA: /[ab]/'), vocabulary_of_tokens(b"b", b"ca"))
    ending = store.matcher().shortest_ending()
    assert (ending.data, ending.tokens) == (b"bca", (1, 2))


def test_what_was_learnt_before_one_beginning_of_a_token_says_nothing_of_another() -> None:
    text = "start: (A B)+ C\nA: /[ab]/\nB: /[cd]/\nC: /[xy]/"
    store = build_store(parse_grammar(text), vocabulary_of_tokens(b"a", b"ac", b"bd", b"d", b"cy", b"dx"))
    matcher = store.matcher()
    assert matcher.shortest_ending().data == b"acy"
    for token, data in ((1, b"cy"), (4, b"acy"), (3, b"acy")):
        matcher.advance(token)
        assert matcher.shortest_ending().data == data


def test_a_dead_end_over_few_states_is_told_though_bounds_rise_for_ever() -> None:
    grammar = parse_grammar('start: A "d"\nA: /[ab]+/')
    with pytest.raises(DeadEndError, match="cannot finish any text"):
        build_store(grammar, vocabulary_of_tokens(b"a", b"b", b"xd"))


def test_where_names_are_held_other_terminals_are_spelled_by_tokens() -> None:
    text = 'start: (NAME | NUMBER) ";"\nNAME: /[a-z]+/\nNUMBER: /[0-9]{2}/'
    matcher = build_store(parse_grammar(text), vocabulary_of_tokens(b"a", b"7", b";")).matcher()
    matcher.restrict("NAME", ["zz"])  # which no tokens spell
    ending = matcher.short_ending()
    assert (ending.data, ending.tokens) == (b"77;", (2, 2, 3))
