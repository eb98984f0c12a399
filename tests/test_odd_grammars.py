"""Odd little grammars, drawn at random: loading, building, masks and lint give an answer or a `MaskwrightError`, and nothing else."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable

import numpy as np
import pytest
from mask_bits import ids
from naive_engine import NaiveEngine
from shares import share

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.grammar import Grammar, Lexing
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.reference import ReferenceDecoder
from maskwright.lint.run import lint_grammar
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import n_words
from maskwright.stores.build import build_store
from maskwright.stores.entry_store import EntryStore
from maskwright.stores.store import Store

BITS = [
    b"a", b"b", b";", b"}", b"\n", b" ", b"(", b")", b"ab", b"aa", b";\n}", b";\n", b"\n ", b"(\n", b"a\n  b", b"\xc3",
    b"\xa9", b"1",
]  # fmt: skip
"""Pieces of tokens: what the terminals below are spelled with."""
PATTERNS = [
    "/[ab]+/", "/a/", "/b*a/", '"a"', '"ab"', '"("', '")"', '";"', r"/(?<!a)b/", "/a+?/", "/(a|b)+(?!;)/", "/é/",
    r"/;\n/", '"a" B', '"A"i',
]  # fmt: skip
NEWLINES = [r"/(\r?\n[\t ]*)+/", r"/\n/", r'"\n"', r"/[\n ]+/", "/ +/"]
OPTIONS = ["lexing = contextual", "lexing = nfa", "conflicts = shift", "soft = a", "verbatim = A", "refused = B", "tabs = consistent",
           "start = r0", "restriction no_b = B:", "convention words = r0", "allowed words = r1"]  # fmt: skip


def odd_text(seed: int) -> str:
    """The text of a grammar that may be empty, endless, without terminals or rules, with layout in part, and with options that clash."""
    rng = random.Random(seed)
    rules = ["start", *(f"r{i}" for i in range(rng.randint(0, 3)))]
    terminals = list("ABC"[: rng.randint(0, 3)])
    layout = [name for name in ("_NEWLINE", "_INDENT", "_DEDENT") if rng.random() < 0.8] if rng.random() < 0.4 else []
    symbols = [*rules, *terminals * 2, *layout, '"a"', '";"', '"("', '")"', '"}"']

    def alternative() -> str:
        parts = [
            rng.choice(symbols) + rng.choice(["", "", "", "?", "*", "+", "~2", "~0..2"])
            for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))
        ]
        return " ".join(f"[{part}]" if rng.random() < 0.1 else part for part in parts)

    lines = [
        f"{rng.choice(['', '', '', '?', '!'])}{rule}: "
        + " | ".join(alternative() for _ in range(rng.choice([1, 1, 2, 3])))
        for rule in rules
    ]
    lines += [
        f"{name}{rng.choice(['', '', '.1', '.-1'])}: {rng.choice(PATTERNS)}"
        for name in terminals
        if rng.random() < 0.95
    ]
    if "_NEWLINE" in layout:
        lines.append(f"_NEWLINE: {rng.choice(NEWLINES[:1] * 6 + NEWLINES)}")
    if declared := [name for name in layout if name != "_NEWLINE"]:
        lines.append("%declare " + " ".join(declared))
    lines += [f"%ignore {ignored}" for ignored in ('" "', "A", "/#[ab]*/", "_NEWLINE") if rng.random() < 0.15]
    lines += [f"// maskwright: {option}" for option in OPTIONS if rng.random() < 0.06]
    rng.shuffle(lines)
    return "\n".join(lines) + "\n"


def odd_vocabulary(rng: random.Random) -> Vocabulary:
    tokens = [*BITS, *(b"".join(rng.choices(BITS, k=rng.randint(2, 4))) for _ in range(20)), b"", b""]
    return Vocabulary("odd", tuple(tokens), {len(tokens) - 1: "</s>"}, (len(tokens) - 1,))


def try_masks(
    grammar: Grammar, vocabulary: Vocabulary, rng: random.Random, check: Callable[[bytes, set[int]], None]
) -> None:
    store = build_store(grammar, vocabulary)
    decoder = store.matcher() if isinstance(store, Store) else ReferenceDecoder(store)
    words, text = np.zeros(n_words(vocabulary.size), np.uint32), b""
    for _ in range(6):
        if isinstance(decoder, ReferenceDecoder):
            words = decoder.mask()
        else:
            decoder.fill(words)
        allowed = sorted(ids(words))
        check(text, set(allowed))
        going_on = [token for token in allowed if token not in vocabulary.eos]
        if not going_on:
            break
        token = rng.choice(going_on)
        decoder.advance(token)
        text += vocabulary.tokens[token]


def _naive_engine(grammar: Grammar) -> NaiveEngine | None:
    """None where it does not know what the grammar says, or where the grammar leads into dead ends: it waits for what it ignores, or for an
    indent where no newline has come, and the engine sees this a terminal later.
    """
    in_rules = {symbol for rule in grammar.rules for symbol in rule.rhs}
    has_flags = any(terminal.flags for terminal in grammar.terminals)
    if (
        grammar.lexing != "longest"
        or grammar.conflicts != "all"
        or grammar.verbatim
        or has_flags
        or grammar.ignored & in_rules
    ):
        return None
    layout = grammar.layout
    for rule in grammar.rules if layout else ():
        for before, symbol in zip((-1, *rule.rhs), rule.rhs, strict=False):
            if layout and symbol == layout.indent and before != layout.newline:
                return None
    try:
        return NaiveEngine(grammar)
    except (MaskwrightError, ValueError, KeyError, NotImplementedError):  # it knows fewer patterns
        return None


def try_all(seed: int) -> bool:
    """Whether a grammar had masks; all that is raised is a `MaskwrightError`. Masks are right where the naive engine knows them."""
    rng = random.Random(seed)
    vocabulary = odd_vocabulary(rng)
    had_masks = False
    try:
        grammar = parse_grammar(odd_text(seed), lexing=rng.choice([None, None, "longest", "contextual", "nfa"]))
    except MaskwrightError:
        return False
    with contextlib.suppress(MaskwrightError):
        lint_grammar(grammar, vocabulary if rng.random() < 0.3 else None)
    naive = _naive_engine(grammar)

    def check(text: bytes, allowed: set[int]) -> None:
        nonlocal had_masks
        had_masks = True
        if naive is not None:
            eos = set(vocabulary.eos) if naive.is_legal_text(text) else set()
            assert allowed == naive.allowed(text, vocabulary.tokens) | eos, text

    with contextlib.suppress(MaskwrightError):
        try_masks(grammar, vocabulary, rng, check)
    return had_masks


@pytest.mark.parametrize("text", ["start:\n", "start: a\na:\n", "start: | a\na: start?\n"])
@pytest.mark.parametrize("lexing", ["longest", "contextual"])
def test_the_empty_text_alone_is_a_language(text: str, lexing: Lexing) -> None:
    vocabulary = odd_vocabulary(random.Random(1))
    store = build_store(parse_grammar(text, lexing=lexing), vocabulary)
    matcher, words = store.matcher(), np.zeros(n_words(vocabulary.size), np.uint32)
    matcher.fill(words)
    assert sorted(ids(words)) == list(vocabulary.eos)
    assert matcher.is_accepting()


def test_the_empty_text_under_several_hypotheses() -> None:
    vocabulary = odd_vocabulary(random.Random(1))
    store = build_store(parse_grammar("start:\n", lexing="nfa"), vocabulary)
    assert isinstance(store, EntryStore)
    decoder = ReferenceDecoder(store)
    assert sorted(ids(decoder.mask())) == list(vocabulary.eos)
    assert decoder.is_accepting()


@pytest.mark.parametrize("brackets", ["", '"(" "a" ")"'])
def test_a_newline_that_no_rule_takes_is_refused_outside_brackets(brackets: str) -> None:
    text = f'start: {brackets} ";" "}}"\n%declare _INDENT _DEDENT\n_NEWLINE: /(\\r?\\n[\\t ]*)+/\n'
    vocabulary = odd_vocabulary(random.Random(1))
    store = build_store(parse_grammar(text), vocabulary)
    naive = NaiveEngine(parse_grammar(text))
    matcher, words, read = store.matcher(), np.zeros(n_words(vocabulary.size), np.uint32), b""
    for step in [b"(", b"\n ", b"a", b")", b";", b"}"] if brackets else [b";", b"}"]:
        matcher.fill(words)
        allowed = ids(words)
        assert allowed == naive.allowed(read, vocabulary.tokens)
        assert vocabulary.tokens.index(b";\n}") not in allowed
        matcher.advance_bytes(step)
        read += step
    matcher.fill(words)
    assert sorted(ids(words)) == list(vocabulary.eos)


@pytest.mark.parametrize("seeds", share([range(7), range(7, 40)], 1), ids=str)
def test_odd_grammars_give_masks_or_typed_errors(seeds: range) -> None:
    assert sum(map(try_all, seeds)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(1_000, 1_600), range(1_600, 2_200)], ids=str)
def test_many_odd_grammars_give_masks_or_typed_errors(seeds: range) -> None:
    assert sum(map(try_all, seeds)) > 60
