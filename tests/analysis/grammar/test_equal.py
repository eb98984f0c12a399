"""Terminals that match the same texts, against all short sentences of the rules with these terminals taken for each other."""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from contextlib import suppress
from itertools import product

import pytest
from grammars import random_grammar
from shares import parts, share

from maskwright.analysis.deadline import time_limit
from maskwright.analysis.errors import DeadEndError, GrammarError, LimitError, MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar, Lexing
from maskwright.analysis.loading import parse_grammar
from maskwright.analysis.loading.overlaps import equal_groups
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import build_store

EVERY = Vocabulary.from_tokens([b"</s>", *(bytes([byte]) for byte in range(256))], eos=[0])

SPELLED = {"x": ("/x/", "/[x]/", "/(?:x|x)/"), "y": ("/[yY]/", '"y"i', "/Y|y/"), "z": ("/z/", "/z|z/", "/z{1,1}/")}
"""Ways to write a terminal of one letter."""

LONGEST = 4
"""The most lexemes of the texts that are compared."""


def written(seed: int) -> tuple[str, dict[str, str]]:
    """A random grammar's text in which several terminals are one letter; and the letter of each terminal."""
    rng = random.Random(seed)
    grammar = random_grammar(seed)
    names = [f"T{i}" for i in range(grammar.n_terminals)]
    letter = {name: rng.choice("xyz"[: rng.choice((1, 2, 2, 3))]) for name in names}
    symbols = [*names, *(f"n{i}" for i in range(grammar.n_nonterminals))]
    lines = [f"start: {symbols[grammar.start]}"]
    for lhs, rules in grammar.rules_of.items():
        lines.append(f"{symbols[lhs]}: " + " | ".join(" ".join(symbols[s] for s in rule.rhs) for rule in rules))
    for name in names:
        lines.append(f"{name}{rng.choice(('', '', '', '.1'))}: {rng.choice(SPELLED[letter[name]])}")
    return "\n".join(lines), letter


def sentences(grammar: Grammar, letter: dict[str, str]) -> set[str]:
    """All texts of up to LONGEST letters that the rules derive."""
    found: list[set[str]] = [{letter[t.name]} for t in grammar.terminals] + [set() for _ in grammar.nonterminals]
    changed = True
    while changed:
        changed = False
        for rule in grammar.rules:
            texts = {""}
            for symbol in rule.rhs:
                texts = {one + two for one, two in product(texts, found[symbol]) if len(one) + len(two) <= LONGEST}
            changed |= not texts <= found[rule.lhs]
            found[rule.lhs] |= texts
    return found[grammar.start]


def check_seed(seed: int) -> Counter[str]:
    text, letter = written(seed)
    lexing: Lexing = "longest" if seed % 2 else "contextual"
    try:
        expected = sentences(parse_grammar(text, lexing="nfa"), letter)  # "nfa" leaves equal terminals apart
        grammar = parse_grammar(text, lexing=lexing)
    except (GrammarError, LimitError) as error:
        return Counter({f"not read: {type(error).__name__}": 1})
    try:
        store = build_store(grammar, EVERY)
    except DeadEndError:
        assert not expected or grammar.conflicts == "shift", text
        dead = build_store(grammar, EVERY, allow_dead=True).matcher(0)
        for word in expected:
            there = dead.fork()
            with contextlib.suppress(MaskwrightError):
                there.advance_bytes(word.encode())
                assert not there.is_accepting(), (text, word)
        return Counter({"refused": 1})
    except (GrammarError, LimitError) as error:
        return Counter({f"not read: {type(error).__name__}": 1})
    counts = Counter({"joined" if grammar.plain is not None else "all apart": 1})
    if grammar.conflicts == "shift":
        counts["decided by a shift"] += 1
    begun = {word[:n] for word in expected for n in range(len(word) + 1)}
    alphabet = sorted(set(letter.values()))
    for word in map("".join, (word for n in range(LONGEST + 1) for word in product(alphabet, repeat=n))):
        matcher = store.matcher()
        try:
            matcher.advance_bytes(word.encode())
        except LimitError:
            counts["too many readings"] += 1
            continue
        except MaskwrightError:
            assert word not in begun or grammar.conflicts == "shift", (text, word)
            continue
        assert matcher.is_accepting() == (word in expected) or (grammar.conflicts == "shift" and word in expected), (
            text,
            word,
        )
        if word in begun or len(word) > 3:
            continue
        try:
            whole = word + matcher.short_ending().data.decode()
        except LimitError:
            counts["an ending not found"] += 1
            continue
        assert len(whole) > LONGEST, (text, word)
    return counts


@pytest.mark.parametrize("seed", [1665, 2325, 3693])
def test_too_many_readings_are_no_dead_end(seed: int) -> None:
    counts = check_seed(seed)
    assert counts["too many readings"] or counts["an ending not found"]


@pytest.mark.parametrize("seeds", share([range(40), *parts(20_000, 400)], 1))
def test_of_equal_terminals_the_one_that_the_parser_can_take_counts(seeds: range) -> None:
    counts = sum(map(check_seed, seeds), Counter())
    assert counts["joined"] > len(seeds) // 4
    assert counts["all apart"] > len(seeds) // 10


def groups_of(text: str) -> list[list[str]]:
    grammar = parse_grammar(text, lexing="nfa")
    return [[grammar.terminals[t].name for t in group] for group in equal_groups(grammar)]


@pytest.mark.parametrize(
    ("one", "other", "is_equal"),
    [
        ('"if"', "/if/", True),
        ('"if"', "/i[f]/", True),
        ('"if"', "/iff?/", False),
        ('"or"i', "/[oO][rR]/", True),
        ('"if"i', "/[iI][fF]/", False),  # the flag lets the dotless i be one
        ('"if"i', '"if"', False),
        ("/[0-9]+/", "/[0-9][0-9]*/", True),
        ("/[0-9]+/", "/[0-9]{1,9}/", False),
        ("/(ab)+/", "/ab(ab)*/", True),
        ("/a(?!b)b/", "/a/", False),  # matches nothing, so it has no automaton
    ],
)
def test_which_terminals_are_equal(one: str, other: str, is_equal: bool) -> None:
    assert groups_of(f'start: A "x" | B "y"\nA: {one}\nB: {other}') == ([["A", "B"]] if is_equal else [])


def test_what_stays_apart() -> None:
    apart = "start: A B C\nA: /a+/\nB: /[a]+/\nC: /b/\n"
    assert groups_of(apart) == [["A", "B"]]
    assert groups_of(apart + "%ignore B\n") == []
    assert groups_of("// maskwright: verbatim = A\n" + apart) == []
    assert groups_of("// maskwright: length A = ..3\n" + apart) == []


def test_the_rules_read_the_strongest_in_the_stead_of_all() -> None:
    text = 'start: one "1" | two "2"\none: LOW\ntwo: UP\nLOW: /[a-f]/\nUP.2: /[abcdef]/'
    grammar = parse_grammar(text, lexing="longest")
    assert "LOW" not in grammar.terminal_number
    assert [grammar.rule_text(rule) for rule in grammar] == [
        "start : one __ANON_0",
        "start : two __ANON_1",
        "one : UP",
        "two : UP",
    ]
    assert grammar.plain is not None and "LOW" in grammar.plain.terminal_number
    assert parse_grammar(text, lexing="nfa").plain is None


def test_where_they_never_compete_both_names_stay() -> None:
    grammar = parse_grammar('start: FUNCTION "=" VARIABLE\nFUNCTION: /[a-z]+/\nVARIABLE: /[a-z]+/')
    assert {"FUNCTION", "VARIABLE"} <= grammar.terminal_number.keys()
    matcher = build_store(grammar, EVERY).matcher()
    matcher.advance_bytes(b"abc=")
    matcher.restrict("VARIABLE", ["x", "y"])
    assert [byte for byte in b"abxyz" if matcher.is_allowed(EVERY.tokens.index(bytes([byte])))] == list(b"xy")


def test_a_use_that_is_open_until_later_is_followed_on_several_stacks() -> None:
    text = 'start: one "." "1" | two "." "2"\none: A\ntwo: B\nA: /a/\nB: /[a]/'
    grammar = parse_grammar(text)
    assert grammar.conflicts == "all"
    store = build_store(grammar, EVERY)
    for whole in (b"a.1", b"a.2"):
        matcher = store.matcher()
        matcher.advance_bytes(whole)
        assert matcher.is_accepting()


def test_equal_terminals_may_be_equal_only_once_others_are_one() -> None:
    text = 'start: (a | "!" a S) E | "?" (b | "!" b T) U\na: N\nb: N\nS: ";"\nE: ";"\nT: ";"\nU: ";"\nN: /[a-z]/'
    store = build_store(parse_grammar(text), EVERY)
    for whole in (b"a;", b"!a;;", b"?a;", b"?!a;;"):
        matcher = store.matcher()
        matcher.advance_bytes(whole)
        assert matcher.is_accepting()


@pytest.mark.parametrize("n", [24, 80])
def test_patterns_that_others_would_try_for_ever_are_compared(n: int) -> None:
    """They are foreign: only automata read them, within the limit of who asks."""
    text = f"start: A | B\nA: /((a?){{{n}}}){{{n}}}b/\nB: /x+/\n"
    begin = time.thread_time()
    with suppress(LimitError), time_limit(2.0, "loading"):
        parse_grammar(text)
    assert time.thread_time() - begin < 4.0
