"""Random vocabularies that lack bytes, cut from texts of a grammar, and endings by trying all tokens."""

from __future__ import annotations

import heapq
import random
from typing import Any, NamedTuple

from engine_cases import MAKERS
from mask_bits import mask_of
from random_texts import random_string

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.terminals import compile_lexemes
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.engine import constants
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary import Vocabulary

PREFERRED = bytes([*range(0x20, 0x7F), *range(0x20), *range(0x7F, 0x100)])

PATTERNS = (
    '"a"', '"b"', '"ca"', '"d"', '"ab"', '"cd"', "/[ab]/", "/[a-d]/", "/[ab]+/", "/[abc]+d/", "/[cd]?[ab]/", "/a|bc/", "/[bc]{2}/",
    "/([ab]c)+/", "/x[^x]*x/", "/[a-f]{1,3}/",
)  # fmt: skip
SHAPES = ("A", "A B", "A s", "s B", "A s B", "A B C", "", "s s", "A C", "t", "A t", "t B", "t t")


def random_class_grammar(seed: int) -> Grammar:
    """A few rules over terminals whose bytes the lexer does not tell apart in most places; mostly nothing is ignored."""
    rng = random.Random(seed)
    patterns = rng.sample(PATTERNS, 3)
    bodies = {name: rng.sample(SHAPES, rng.randint(1, 3)) for name in ("start", "t")}
    bodies["start"].append(rng.choice(["A", "A B", "t C", "B t"]))
    bodies["t"].append(rng.choice(["B", "C A", "A", "B C"]))
    lines = [f"{name}: {' | '.join(alternatives)}".replace(" s", " start") for name, alternatives in bodies.items()]
    lines += [f"{name}: {pattern}" for name, pattern in zip("ABC", patterns, strict=True)]
    lines += ['%ignore " "'] if rng.random() < 0.3 else []
    return parse_grammar("\n".join(lines), name=f"classes-{seed}", lexing=rng.choice(("contextual", "longest")))


EVERY_MAKER = [random_class_grammar, *MAKERS]


def random_texts(grammar: Grammar, rng: random.Random, n: int) -> list[bytes]:
    """Texts that the rules spell at random, of short derivations; the lexer may read some of them otherwise."""
    automata = compile_lexemes(grammar)
    depth: dict[int, int] = dict.fromkeys(range(grammar.n_terminals), 0)
    for _ in grammar.nonterminals:
        for rule in grammar.rules:
            if all(symbol in depth for symbol in rule.rhs):
                depth[rule.lhs] = min(depth.get(rule.lhs, 1 << 20), 1 + max((depth[s] for s in rule.rhs), default=0))

    def derived(symbol: int, left: int) -> bytes:
        if symbol < grammar.n_terminals:
            automaton = automata[symbol]
            gap = b" " if grammar.ignored and rng.random() < 0.3 else b""
            return gap + (b"" if automaton is None else random_string(rng, automaton)[:12])
        rules = [rule for rule in grammar.rules_of[symbol] if all(s in depth for s in rule.rhs)]
        near = [rule for rule in rules if max((depth[s] for s in rule.rhs), default=0) < max(left, depth[symbol])]
        return b"".join(derived(s, left - 1) for s in rng.choice(near or rules).rhs)

    return [derived(grammar.start, rng.randint(2, 5))[:40] for _ in range(n)]


def lacking_vocabulary(grammar: Grammar, seed: int) -> Vocabulary:
    """Pieces of a few texts, each in one cut or several, and some single bytes; few bytes have a token of their own."""
    rng = random.Random(seed)
    tokens: set[bytes] = set()
    texts = random_texts(grammar, rng, rng.randint(1, 5))
    for text in texts:
        at = 0
        while at < len(text):
            size = rng.choice((1, 1, 2, 2, 3, 4))
            if rng.random() < 0.9:
                tokens.add(text[at : at + size])
            at += size
    single = sorted(set(b"".join(texts)))
    tokens |= {bytes([byte]) for byte in single if rng.random() < rng.choice((0.1, 0.3, 0.6))}
    found = sorted(tokens - {b""}) or [b"a"]
    rng.shuffle(found)
    return Vocabulary(f"lacking-{seed}", (*found, b""), {len(found): "</s>"}, (len(found),))


def key_of(matcher: Matcher) -> tuple[object, ...]:
    """All that the engine knows of a text."""
    numbers = tuple(
        int(matcher.text.texts._memory[place])
        for place in (constants.LEXER, constants.COLUMN, constants.NARROW, constants.DEPTH)
    )
    return (*numbers, tuple(matcher.text.columns()), frozenset(map(tuple, matcher.text.stacks())))


def allowed(matcher: Any) -> list[int]:
    """The tokens that may come next, without the end of the text."""
    eos = set(matcher.store.vocabulary.eos)
    return sorted(mask_of(matcher) - eos)


class Found(NamedTuple):
    """What trying all tokens has found.

    data : the first of the shortest endings, None if none was found. least : no ending has fewer bytes. is_whole : whether nothing
    was left to try, so that there is none if none was found.
    """

    data: bytes | None
    least: int
    is_whole: bool


def naive_ending(matcher: Matcher, limit: int) -> Found:
    """The first of the shortest endings that tokens spell, from all sequences of tokens, those of fewest bytes first.

    limit : states of texts that are tried.
    """
    tokens = matcher.store.vocabulary.tokens
    order = bytes(PREFERRED.index(byte) for byte in range(256))
    heap: list[tuple[int, bytes, int, bytes, Matcher]] = [(0, b"", 0, b"", matcher.fork())]
    seen: set[tuple[object, ...]] = set()
    count = 0
    while heap:
        length, _, _, data, reader = heapq.heappop(heap)
        if (key := key_of(reader)) in seen:
            continue
        if len(seen) >= limit:
            return Found(None, length, False)
        seen.add(key)
        try:
            if reader.is_accepting():
                return Found(data, length, True)
        except LimitError:
            return Found(None, length, False)
        for token in allowed(reader):
            after = reader.fork()
            try:
                after.advance(token)
            except LimitError:
                return Found(None, length, False)
            count += 1
            longer = data + tokens[token]
            heapq.heappush(heap, (len(longer), longer.translate(order), count, longer, after))
    return Found(None, 1 << 30, True)
