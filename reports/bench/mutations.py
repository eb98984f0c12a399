"""One-place damage to valid texts, seeded: the mutants of which a reference parser's refusals make must-refuse corpora.

A token is deleted, doubled, inserted, replaced or swapped with its neighbour; a bracket is deleted, inserted or turned into another; a
string's end is cut off, a word mistyped, a strange character put in, or the text ends early. What is inserted comes from the same text, so
mutants stay near the language. Whether a mutant is still valid is for the caller's reference parser to say.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

BRACKETS = "()[]{}"
STRANGE = "@#$?\\`\x01\u00a7"


@dataclass(frozen=True, slots=True)
class Mutant:
    """lower : bytes that the mutant begins with as the valid text does, so a legal prefix: no refusal can come before."""

    text: str
    mutation: str
    lower: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A token's place in its text, and the name of the group that matched: "word", "string", or None."""

    begin: int
    end: int
    kind: str | None


def pieces(text: str, lexeme: re.Pattern[str]) -> list[Piece]:
    """The tokens of a text. lexeme : matches tokens and, in its group "skip", comments; its groups "word" and "string" are optional."""
    found = (Piece(match.start(), match.end(), match.lastgroup) for match in lexeme.finditer(text))
    return [piece for piece in found if piece.kind != "skip" and piece.begin < piece.end]


def mutate(text: str, lexeme: re.Pattern[str], n: int, rng: random.Random) -> Iterator[Mutant]:
    """n different mutants of a text (fewer if it has no tokens), of all kinds in turn. lexeme : see `pieces`."""
    tokens = pieces(text, lexeme)
    seen = {text}
    kinds = list(KINDS)
    rng.shuffle(kinds)
    for kind in itertools.islice(itertools.cycle(kinds), 20 * n if tokens else 0):
        changed = KINDS[kind](text, tokens, rng)
        if changed is None or changed in seen:
            continue
        seen.add(changed)
        yield Mutant(changed, kind, _common_bytes(text, changed))
        if len(seen) > n:
            return


def mutants(
    texts: Iterable[tuple[str, str]], lexeme: re.Pattern[str], per_text: int, seed: int
) -> Iterator[tuple[str, Mutant]]:
    """Mutants of named texts, each with a name of its own; a text's mutants do not depend on the other texts."""
    for name, text in texts:
        rng = random.Random(f"{seed} {name}")
        for number, mutant in enumerate(mutate(text, lexeme, per_text, rng)):
            yield f"{name}#{number} {mutant.mutation}", mutant


def _common_bytes(one: str, other: str) -> int:
    first, second = one.encode(), other.encode()
    return next(
        (k for k, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


def _delete(text: str, tokens: list[Piece], rng: random.Random) -> str | None:
    token = rng.choice(tokens)
    return text[: token.begin] + text[token.end :]


def _duplicate(text: str, tokens: list[Piece], rng: random.Random) -> str | None:
    token = rng.choice(tokens)
    return f"{text[: token.end]} {text[token.begin :]}"


def _insert(text: str, tokens: list[Piece], rng: random.Random) -> str | None:
    token, source = rng.choice(tokens), rng.choice(tokens)
    return f"{text[: token.begin]}{text[source.begin : source.end]} {text[token.begin :]}"


def _replace(text: str, tokens: list[Piece], rng: random.Random) -> str | None:
    token, source = rng.choice(tokens), rng.choice(tokens)
    return text[: token.begin] + text[source.begin : source.end] + text[token.end :]


def _swap(text: str, tokens: list[Piece], rng: random.Random) -> str | None:
    if len(tokens) < 2:
        return None
    number = rng.randrange(len(tokens) - 1)
    one, other = tokens[number], tokens[number + 1]
    between = text[one.end : other.begin]
    return text[: one.begin] + text[other.begin : other.end] + between + text[one.begin : one.end] + text[other.end :]


def _bracket(text: str, tokens: list[Piece], rng: random.Random) -> str | None:
    brackets = [token for token in tokens if text[token.begin : token.end] in BRACKETS]
    if not brackets:
        return None
    token = rng.choice(brackets)
    what: str = rng.choice(["", "", text[token.begin] * 2, *BRACKETS])
    return text[: token.begin] + what + text[token.end :]


def _open_string(text: str, tokens: list[Piece], rng: random.Random) -> str | None:
    strings = [token for token in tokens if token.kind == "string"]
    if not strings:
        return None
    token = rng.choice(strings)
    return text[: token.end - 1] + text[token.end :]


def _mistype(text: str, tokens: list[Piece], rng: random.Random) -> str | None:
    words = [token for token in tokens if token.kind == "word" and token.end - token.begin > 1]
    if not words:
        return None
    token = rng.choice(words)
    word = text[token.begin : token.end]
    at = rng.randrange(len(word) - 1)
    changed = rng.choice(
        [word[:at] + word[at + 1 :], word[:at] + word[at] * 2 + word[at + 1 :], f"{word[:at]} {word[at:]}"]
    )
    return text[: token.begin] + changed + text[token.end :]


def _strange(text: str, tokens: list[Piece], rng: random.Random) -> str | None:
    token = rng.choice(tokens)
    return text[: token.begin] + rng.choice(STRANGE) + text[token.begin :]


def _end_early(text: str, tokens: list[Piece], rng: random.Random) -> str | None:
    token = rng.choice(tokens)
    return text[: rng.choice((token.begin, token.end))]


KINDS: dict[str, Callable[[str, list[Piece], random.Random], str | None]] = {
    "delete": _delete,
    "duplicate": _duplicate,
    "insert": _insert,
    "replace": _replace,
    "swap": _swap,
    "bracket": _bracket,
    "open_string": _open_string,
    "mistype": _mistype,
    "strange": _strange,
    "end_early": _end_early,
}
