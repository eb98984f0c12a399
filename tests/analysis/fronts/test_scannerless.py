"""GBNF and EBNF against Earley over characters: complete texts, and the bits of masks."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from front_cases import GBNF, compare, random_gbnf
from naive_fronts import Recogniser, read
from shares import share

import maskwright as mw
from maskwright.analysis.fronts import parse_ebnf, parse_gbnf, scannerless

PIECES = [b"a", b"b", b"c", b"(", b")", b" ", b"ab", b"ba", b"aab", b"abc", b"((", b"))", b"a b", b"()", b"\n"]
PIECES += ["é".encode(), b"\xc3", b"\xa9", b"a\xc3", b"\xa9b"]
WORDS = [b'": ', b'"a', b"],", b"}}", b"int ", b"if", b"1. ", b"- ", "ぁ".encode(), "ぁ".encode()[:2], "一".encode()]
TOKENS = [*PIECES, *WORDS, *(bytes([byte]) for byte in range(256) if bytes([byte]) not in PIECES)]
SMALL = mw.Vocabulary.from_tokens([b"</s>", *PIECES], eos=[0])
LARGER = mw.Vocabulary.from_tokens([b"</s>", *TOKENS], eos=[0])


@pytest.mark.parametrize("n_texts", share([1, 5], 1))
@pytest.mark.parametrize("name", GBNF)
def test_examples_say_what_their_rules_say(name: str, n_texts: int) -> None:
    naive = Recogniser(read(GBNF[name]))
    assert compare(parse_gbnf(GBNF[name], name), naive, LARGER, len(name), n_texts, 9) >= n_texts


@pytest.mark.parametrize("seed", share(range(0, 96, 4), 3))
def test_random_grammars(seed: int) -> None:
    n = 0
    for each in range(seed, seed + 4):
        text = random_gbnf(each)
        rules = read(text)
        if "root" not in rules.alive:
            with pytest.raises(mw.GrammarError, match="rule 'root' has no finite text"):
                parse_gbnf(text)
            continue
        n += compare(parse_gbnf(text), Recogniser(rules), SMALL, each, 4, 5)
    assert n > 3


def test_ebnf_says_the_same_where_it_reads_the_same() -> None:
    n = 0
    for seed in range(60):
        text = random_gbnf(seed).replace(".", "[^]")
        rules = read(random_gbnf(seed))
        if "root" in rules.alive:
            assert parse_ebnf(text).rules == parse_gbnf(random_gbnf(seed)).rules
            n += 1
    assert n > 40


@pytest.mark.parametrize("n", share([12, 150], 1))
@pytest.mark.parametrize("name", ["json", "arithmetic", "chess"])
def test_masks_of_a_real_vocabulary(name: str, n: int) -> None:
    vocabulary = mw.load_vocabulary("python-tiny")
    naive = Recogniser(read(GBNF[name]))
    store = mw.build_store(parse_gbnf(GBNF[name]), vocabulary)
    matcher, data = store.matcher(), b""
    mask = np.zeros(-(-vocabulary.size // 32), np.uint32)
    choose = random.Random(name)
    for _ in range(6):
        matcher.fill(mask)
        naive.remember(data)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: vocabulary.size].astype(bool)
        sample = choose.sample([i for i in range(vocabulary.size) if vocabulary.tokens[i]], n)
        allowed = [i for i in np.flatnonzero(bits).tolist() if vocabulary.tokens[i] and i not in vocabulary.eos]
        for token in {*sample, *choose.sample(allowed, min(len(allowed), n // 2))} - set(vocabulary.eos):
            assert bits[token] == naive.is_beginning(data + vocabulary.tokens[token]), (data, vocabulary.tokens[token])
        if not allowed:
            break
        token = choose.choice(allowed)
        matcher.advance_bytes(vocabulary.tokens[token])
        data += vocabulary.tokens[token]
    assert data


def test_terminals_are_as_large_as_they_may_be() -> None:
    grammar = parse_gbnf(GBNF["json"])
    assert "string" in grammar.terminal_number and "number" in grammar.terminal_number
    assert grammar.lexing == "longest" and grammar.conflicts == "all"
    assert parse_gbnf(GBNF["chess"]).n_terminals == 1  # the whole is regular
    keyword = parse_gbnf('root ::= "if" group "!" | ident group | ident\ngroup ::= "(" root ")"\nident ::= [a-z]+')
    assert {terminal.literal for terminal in keyword.terminals} >= {None, "if"}
    assert "ident" in keyword.terminal_number  # a text of it may be the literal
    naive = Recogniser(read(keyword.text))
    assert compare(keyword, naive, LARGER, 1, 8, 6) > 8


def test_a_keyword_may_run_into_a_name() -> None:
    grammar = parse_gbnf('root ::= "(" root ")" | "return" ws ident\nws ::= [ ]*\nident ::= [a-z]+')
    store = mw.build_store(grammar, LARGER)
    for text, is_legal in (
        ("returnx", True),
        ("return x", True),
        ("return", False),
        ("(returnreturn)", True),
        ("x", False),
    ):
        matcher = store.matcher()
        try:
            matcher.advance_bytes(text.encode())
            assert matcher.is_accepting() == is_legal, text
        except mw.IllegalTokenError:
            assert not is_legal, text


@pytest.mark.slow
@pytest.mark.parametrize("n", share([1_200, 3_500], 1))
def test_thousands_of_words_are_split_at_once(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading goes a few rounds, however many of the words have to be split until the automaton of the others fits."""
    rounds = 0
    lower = scannerless.lower

    def counted(*given: Any) -> Any:
        nonlocal rounds
        rounds += 1
        return lower(*given)

    monkeypatch.setattr(scannerless, "lower", counted)
    rng = random.Random(0)
    words = {"".join(rng.choices("abcdefghijklmnop", k=rng.randint(3, 9))) for _ in range(n)}
    grammar = parse_gbnf("root ::= " + " | ".join(f'"{word}"' for word in sorted(words)))
    assert rounds < 8
    matcher = mw.build_store(grammar, LARGER).matcher()
    for word in sorted(words)[::500]:
        assert matcher.fork().try_bytes(word.encode())
