"""The index of a pattern is the automaton over tokens: equal to the definition, and to the masks of both engines."""

from __future__ import annotations

import random

import numpy as np
import pytest
from random_patterns import random_pattern
from shares import share

import maskwright as mw
from maskwright.maskstore.index import build_index
from maskwright.maskstore.index.build import functions_of, trie_levels

SINGLES = ("a", "b", "[a-c]", "[^a]", "0", "[0-9]", ".", "é", "ab", "name")
SMALL = [
    b"</s>", b"a", b"b", b"ab", b"aba", b"ba", b"c", b"0", b"00", b"\xc3", b"\xa9", b"\xc3\xa9", b"a", b"name", b"nam",
    b"e",
]  # fmt: skip


def naive_index(automaton, vocabulary):
    """state -> token -> next state, from the definition: each token is read byte by byte, in each state that tokens lead to."""
    found, todo = {}, [0]
    while todo:
        state = todo.pop()
        if state in found:
            continue
        row = {}
        for token, text in enumerate(vocabulary.tokens):
            after = automaton.run(text, state) if text else -1
            if after >= 0:
                row[token] = after
        todo.extend(sorted(set(row.values())))
        if automaton.is_accepting[state]:
            row |= dict.fromkeys(vocabulary.eos, state)
        found[state] = row
    return found


def naive_chain(index, state):
    """The forced chain from a state, where each state's tokens are looked at one by one."""
    tokens, met, is_only = [], {state}, True
    while state not in index.final_states:
        texts = {t: index.vocabulary.tokens[t] for t in index.allowed_tokens(state).tolist()}
        longest = max(texts.values(), key=len)
        onward = [
            np.flatnonzero(index.automaton.next_state[index.automaton.run(longest[:k], state)] >= 0)
            for k in range(len(longest))
        ]
        ends = [
            bool(index.automaton.is_accepting[index.automaton.run(longest[:k], state)]) for k in range(len(longest))
        ]
        lies_on_path = all(longest.startswith(text) for text in texts.values())
        only_path = all(len(each) == 1 for each in onward) and not any(ends)
        if len(texts) > 1 and not (lies_on_path and only_path):
            break
        token = min(t for t, text in texts.items() if text == longest)
        after = index.next_state(state, token)
        if after in met:
            break
        met.add(after)
        is_only &= len(texts) == 1
        tokens.append(token)
        state = after
    return (tuple(tokens), state, is_only) if tokens else None


@pytest.fixture(scope="module")
def small():
    return mw.load_vocabulary(SMALL, eos=[0], name="small")


@pytest.mark.parametrize("seed", share(range(400), 30))
def test_an_index_is_what_the_definition_says(small, seed):
    rng = random.Random(seed)
    regex = mw.load_regex(random_pattern(rng, 3, SINGLES))
    index = build_index(regex, small)
    expected = naive_index(regex.automaton, small)
    assert index.to_dict() == expected
    assert index.states.tolist() == sorted(expected)
    assert index.final_states == {q for q in expected if regex.automaton.is_accepting[q]}
    assert index.n_transitions == sum(token not in small.eos for row in expected.values() for token in row)
    for state, row in expected.items():
        assert index.allowed_tokens(state).tolist() == sorted(row)
        assert [index.next_state(state, token) for token in range(small.size)] == [
            row.get(t) for t in range(small.size)
        ]
        if not row:  # a dead end of the vocabulary has no chain, and no tokens
            assert index.chain(state) is None
            continue
        chain, naive = index.chain(state), naive_chain(index, state)
        assert (chain and (chain.tokens, chain.end, chain.is_only)) == naive


@pytest.mark.parametrize(("seed", "name"), share([(s, n) for s in range(60) for n in ("mistral-7b-v0.1", "tekken")], 2))
def test_masks_are_those_of_the_matcher(seed, name):
    rng = random.Random(seed)
    vocabulary = mw.load_vocabulary(name)
    regex = mw.load_regex(
        random_pattern(rng, 4, (*SINGLES, r"\w", r"\d+", "https?://", "[A-Za-z_]+", r"[^\n]{1,20}", "ж|中"))
    )
    index = build_index(regex, vocabulary)
    matcher = mw.build_store(regex, vocabulary).matcher()
    words, state = np.zeros(-(-vocabulary.size // 32), np.uint32), 0
    for _ in range(12):
        matcher.fill(words)
        assert np.array_equal(words, index.mask(state))
        assert matcher.is_accepting() == index.is_final(state)
        tokens = [t for t in rng.choices(index.allowed_tokens(state).tolist(), k=8) if t not in vocabulary.eos]
        if not tokens:
            break
        matcher.advance(tokens[0])
        state = index.next_state(state, tokens[0])


@pytest.mark.parametrize("seed", share(range(60), 4))
def test_masks_are_those_of_a_grammar_of_one_terminal(seed):
    rng = random.Random(seed)
    vocabulary = mw.load_vocabulary("python-tiny")
    pattern = f"x({random_pattern(rng, 3, SINGLES)})"
    index = build_index(mw.load_regex(pattern), vocabulary)
    matcher = mw.build_store(mw.parse_grammar(f"start: X\nX: /{pattern}/"), vocabulary).matcher()
    words, state = np.zeros(-(-vocabulary.size // 32), np.uint32), 0
    for _ in range(12):
        matcher.fill(words)
        assert np.array_equal(words, index.mask(state))
        tokens = [t for t in rng.choices(index.allowed_tokens(state).tolist(), k=8) if t not in vocabulary.eos]
        if not tokens:
            break
        matcher.advance(tokens[0])
        state = index.next_state(state, tokens[0])


def test_chains_of_json():
    vocabulary = mw.load_vocabulary("python-tiny")
    index = build_index(mw.load_regex(r'\{"name": "[a-z]+", "age": [0-9]+\}'), vocabulary)
    assert [chain.text for chain in index.chains] == [b'{"name": "', b', "age":']  # tokens such as b" 1" cross the end
    for chain in index.chains:
        assert index.run(chain.tokens, chain.start) == chain.end
        assert b"".join(vocabulary.tokens[token] for token in chain.tokens) == chain.text
        assert index.chain(chain.end) is None


def test_a_choice_and_a_vocabulary_without_all_bytes():
    index = build_index(mw.load_choice(["ab", "abab"]), [b"<e>", b"ab", b"b"])
    assert index.to_dict() == {0: {1: 2}, 2: {1: 4}, 4: {}}
    assert index.n_states == 3 and index.automaton.n_states == 5
    assert index.chains == ((0, 2, (1,), b"ab", True),)


def test_tokens_that_go_round_have_an_end():
    index = build_index(mw.load_regex("(ab)*ac"), [b"a", b"b"])
    assert index.next_state(1, 1) == 0 and index.allowed_tokens(1).tolist() == [1]
    assert index.chain(0) == (0, 1, (0,), b"a", True)


def test_limits_and_bad_arguments(small):
    regex = mw.load_regex("[ab]{1,40}")
    with pytest.raises(mw.LimitError, match="more than 60 pairs"):
        build_index(regex, small, most_pairs=60)
    index = build_index(regex, small)
    with pytest.raises(mw.LimitError, match="transitions, more than 3"):
        index.to_dict(most=3)
    for bad in (-1, 41, "a", None, 1.5, [1], {}):
        with pytest.raises(mw.MaskwrightError, match="the state is"):
            index.allowed_tokens(bad)
        with pytest.raises(mw.MaskwrightError, match="the state is"):
            index.mask(bad)
        with pytest.raises(mw.MaskwrightError, match="the state is"):
            index.next_state(bad, 1)
    for bad in (-1, small.size, "a", None):
        with pytest.raises(mw.MaskwrightError, match="token"):
            index.next_state(0, bad)
    with pytest.raises(mw.MaskwrightError, match="the pattern is"):
        build_index("[ab]", small)
    with pytest.raises(mw.MaskwrightError, match="most_pairs"):
        build_index(regex, small, most_pairs=0)
    with pytest.raises(mw.EmptyLanguageError, match="no text matches"):
        build_index(mw.load_regex("[^\\s\\S]"), small)


def test_few_functions_whatever_the_words():
    vocabulary = mw.load_vocabulary("mistral-7b-v0.1")
    regex = mw.load_regex("[a-z]{1,9}")
    found = functions_of(regex.automaton, trie_levels(vocabulary), vocabulary.size, 1 << 20)
    assert len(found.start) - 1 == 10  # of 0 to 9 letters
    assert build_index(regex, vocabulary).n_classes == 9
