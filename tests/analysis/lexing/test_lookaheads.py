"""Look-aheads at the end of terminals: texts and masks against the definition, on random grammars."""

from __future__ import annotations

import itertools
import random
import re
from functools import cache

import numpy as np
import pytest

import maskwright as mw
from maskwright.analysis.lexing.lexemes import terminal_rank
from maskwright.analysis.lexing.terminals import Terminal, refused_before
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store

ALPHABET = "ab1- "
BODIES = ("a", "b", "ab", "a+", "[ab]+", "1", "a1", "-", "[ab1]", "a?b", "(ab)+", "[a1]+", "aba")
LOOKS = (
    r"\b",
    r"\B",
    "(?!1)",
    "(?=1)",
    "(?![ab])",
    "(?=[b1-])",
    "(?=a|$)",
    r"(?!\w)",
    r"(?=\b1|-)",
    r"\Z",
    r"(?!a|\Z)",
)
TOKENS = [bytes([byte]) for byte in range(256)]
TOKENS += ["".join(text).encode() for n in (2, 3) for text in itertools.product(ALPHABET, repeat=n)]
VOCABULARY = Vocabulary("lookaheads", (*TOKENS, b""), {len(TOKENS): "</s>"}, (len(TOKENS),))

Rules = list[tuple[dict[str, int], bool]]
"""For each nonterminal the one behind each terminal, and whether the text may end."""


class Skipped(Exception):
    """A text at whose end a lexeme is open that only the end makes fail: it is not backed up over."""


@cache
def may_grow(body: str, text: str) -> bool:
    longer = ("".join(more) for n in range(4) for more in itertools.product(ALPHABET, repeat=n))
    return any(re.fullmatch(body, text + more) for more in longer)


def ends(body: str, look: str, text: str, end: int) -> bool:
    """Whether a lexeme of a terminal may be just text[:end]. The lexeme's beginning is the text's."""
    return bool(re.fullmatch(body, text[:end]) and re.compile(look).match(text, end))


def accepts(rules: Rules, terminals: dict[str, tuple[str, str]], rank: dict[str, int], text: str) -> bool:
    at = 0
    while text:
        longest = (
            (end, [t for t, (body, look) in terminals.items() if ends(body, look, text, end)])
            for end in range(len(text), 0, -1)
        )
        end, found = next(((end, found) for end, found in longest if found), (0, []))
        if not found:
            return False
        if end < len(text) and any(may_grow(body, text) for body, _ in terminals.values()):
            raise Skipped
        best = min(found, key=rank.__getitem__)
        if best != "WS" and best not in rules[at][0]:
            return False
        at, text = rules[at][0].get(best, at), text[end:]
    return rules[at][1]


def random_grammar(rng: random.Random) -> tuple[str, Rules, dict[str, tuple[str, str]]]:
    parts = [
        (rng.choice(BODIES), rng.choice(LOOKS) if rng.random() < 0.6 else "") for _ in range(rng.choice([2, 3, 4]))
    ]
    terminals = {f"T{i}": part for i, part in enumerate(dict.fromkeys(parts))}
    n = rng.choice([1, 2, 3])
    rules = [({t: rng.randrange(n) for t in terminals if rng.random() < 0.6}, rng.random() < 0.7) for _ in range(n)]
    text = "start: s0\n"
    for i, (after, is_end) in enumerate(rules):
        text += f"s{i}: " + " | ".join([f"{t} s{j}" for t, j in after.items()] + [""] * (is_end or not after)) + "\n"
        rules[i] = after, is_end or not after
    text += "".join(f"{t}{rng.choice(['', '.1'])}: /{body}{look}/\n" for t, (body, look) in terminals.items())
    if rng.random() < 0.5:
        text += 'WS: " "\n%ignore WS\n'
        terminals["WS"] = " ", ""
    return text, rules, terminals


@pytest.mark.parametrize("seed", range(4))
def test_texts_and_masks_are_those_of_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    words = np.zeros(-(-len(VOCABULARY.tokens) // 32), np.int32)
    n_told = n_refused = 0
    while n_told < 600:
        text, rules, terminals = random_grammar(rng)
        try:
            grammar = mw.parse_grammar(text, lexing="longest")
            matcher = compile_store(grammar, VOCABULARY).matcher()
        except mw.MaskwrightError:
            continue  # no text, or backing up without bound
        rank = dict(zip([t.name for t in grammar.terminals], terminal_rank(grammar.terminals), strict=True))
        if grammar.plain is not None:
            continue  # of equal terminals the parser chooses
        used = {name: part for name, part in terminals.items() if name in rank}
        for _ in range(12):
            said = "".join(rng.choice(["a", "b", "ab", "1", "a1", "-", "aba", " "]) for _ in range(rng.randint(1, 3)))
            try:
                wanted = accepts(rules, used, rank, said)
            except Skipped:
                continue
            matcher.reset()
            assert (matcher.try_bytes(said.encode()) and matcher.is_accepting()) == wanted, (text, said)
            n_told, n_refused = n_told + 1, n_refused + (not wanted)
        matcher.reset()
        if not any(matcher.fork().try_bytes(token) for token in TOKENS[:256]) and not matcher.is_accepting():
            continue  # a dead end, which is said
        matcher.fill(words)
        allowed = np.unpackbits(words.view(np.uint8), bitorder="little")
        for token in rng.sample(range(256, len(TOKENS)), 20):
            assert matcher.fork().try_bytes(TOKENS[token]) == bool(allowed[token]), (text, TOKENS[token])
    assert 60 < n_refused < n_told - 60


@pytest.mark.parametrize("lexing", ["longest", "contextual"])
def test_a_keyword_that_ends_at_a_word_boundary(lexing: mw.Lexing) -> None:
    rules = 'start: KW (NAME | NUMBER) | NAME\nKW.2: /if\\b/\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/\n%ignore " "'
    matcher = mw.build_store(mw.parse_grammar(rules, lexing=lexing), VOCABULARY).matcher()
    for text, is_legal in (
        ("if x", True),
        ("ifx", True),
        ("if1", False),
        ("if 1", True),
        ("if", False),
        ("ifx x", False),
    ):
        matcher.reset()
        assert (matcher.try_bytes(text.encode()) and matcher.is_accepting()) == is_legal, text


@pytest.mark.parametrize("lexing", ["longest", "contextual"])
def test_a_name_that_is_no_keyword(lexing: mw.Lexing) -> None:
    """A part of the keyword is no name either: the look-ahead sees the text, not the lexeme."""
    rules = 'start: NAME+\nNAME: /(?!(?:to|int)\\b)[a-z]+/\n%ignore " "'
    matcher = mw.build_store(mw.parse_grammar(rules, lexing=lexing), VOCABULARY).matcher()
    for text in ("to", "x to", "int", "to x", "tox", "t", "in", "ints", "x tox int"):
        matcher.reset()
        is_legal = not {"to", "int"} & set(text.split())
        assert (matcher.try_bytes(text.encode()) and matcher.is_accepting()) == is_legal, text


def test_what_the_next_byte_does_not_decide_is_let_pass() -> None:
    ((some, lexemes),) = refused_before(Terminal("A", r"a\b"))
    assert {*b"bZ_9"} <= {*some} and not {*b"-\n", 0xC3, 256} & {*some} and lexemes.matches(b"a")
    assert 0xD0 in some and 0xD7 not in some  # Cyrillic letters only; Hebrew has other characters, too
    assert refused_before(Terminal("A", "a(?!bc)")) == ()
    ((some, lexemes),) = refused_before(Terminal("A", "a(?=.)", "s"))
    assert some == (256,) and lexemes.matches(b"a")


def test_what_wins_where_a_look_ahead_in_front_refuses_all() -> None:
    rules = 'start: (FUNC "(" ")" | NAME)*\nFUNC: /(?=[a-z]+\\()[a-z]+/\nNAME: /[a-z]/\n'
    with pytest.warns(mw.MaskwrightWarning, match="back up"):
        matcher = mw.build_store(mw.parse_grammar(rules), VOCABULARY).matcher()
    for text in ("x", "xy", "f()", "fg()", "xyf()"):
        matcher.reset()
        assert matcher.try_bytes(text.encode()) and matcher.is_accepting(), text


def test_a_look_ahead_that_several_modes_cannot_hold_is_named() -> None:
    rules = 'start: (x ";")*\nx: INT ".." INT | FLOAT\nINT: /\\d+/\nFLOAT: /\\d+\\.(?!\\.)\\d*/\n'
    with pytest.warns(mw.MaskwrightWarning, match="look-aheads of FLOAT are not held"):
        mw.build_store(mw.parse_grammar(rules, lexing="contextual"), VOCABULARY)
    matcher = mw.build_store(mw.parse_grammar(rules, lexing="longest"), VOCABULARY).matcher()
    matcher.advance_bytes(b"1..2;1.5;2.;")
    assert matcher.is_accepting()
