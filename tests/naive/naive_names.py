"""A terminal held to names, from the definition: by reading whole texts, and by searching for a continuation.

A text is one of those that are left iff some lexing that makes it legal has, of the lexemes that begin at or behind the place and that the
parser sees, as the first one another terminal, or one of the names; or none at all.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from naive_engine import NaiveEngine, Parse

from maskwright.analysis.lexing.terminals import compile_terminals


class Read(NamedTuple):
    """A lexeme: its terminal, where it begins and ends, and whether the parser sees it."""

    terminal: int
    begin: int
    end: int
    is_seen: bool


def lexings(naive: NaiveEngine, text: bytes, whole: Parse | None = None, at: int = 0) -> Iterator[list[Read]]:
    """The lexemes of all ways to read a legal text; none if it is not legal. See `NaiveEngine._ends`."""
    whole, rest = whole if at else naive.root, text[at:]
    if not rest:
        if whole is not None and naive.accepts_end(whole):
            yield []
        return
    for parse, begin in naive.parts(whole):
        winner, end, state = naive.scan(rest, 0, begin)
        is_over = state < 0 or end == len(rest)
        if winner < 0 or not (is_over or naive.may_back_up(parse, rest, winner, end, begin)):
            continue
        is_newline = naive.layout is not None and winner == naive.layout.newline
        lexeme = b"\n" if is_newline and end == len(rest) else rest[:end]
        is_seen = winner not in naive.grammar.ignored and not (is_newline and parse.depth > 0)
        after = naive.step(parse, winner, lexeme)
        if after is not None:
            for more in lexings(naive, text, after, at + end):
                yield [Read(winner, at, at + end, is_seen), *more]


def is_left(naive: NaiveEngine, text: bytes, place: int, terminal: int, names: Collection[bytes]) -> bool:
    """Whether a text is legal with the terminal held to names from a place on."""
    for found in lexings(naive, text):
        first = next((one for one in found if one.begin >= place and one.is_seen), None)
        if first is None or first.terminal != terminal or text[first.begin : first.end] in names:
            return True
    return False


Place: TypeAlias = tuple[Parse, int, bool]
"""A parse, where the lexeme under way begins, and whether the first lexeme that counts is still to come."""


def read_on(
    naive: NaiveEngine, places: Iterable[Place], text: bytes, place: int, terminal: int, names: Collection[bytes]
) -> tuple[Place, ...]:
    """What is left of each lexing that is not ruled out, from what was left after some beginning of the text.

    As `NaiveEngine.places`, which reads the lexemes that no continuation changes.
    """
    found: dict[Place, None] = {}
    agenda = list(places)
    while agenda:
        whole, at, is_held = agenda.pop()
        if at == len(text):
            found[whole, at, is_held] = None
            continue
        for parse, begin in naive.parts(whole):
            winner, end, state = naive.scan(text, at, begin)
            if state >= 0 and (end < len(text) or naive.can_grow((state, b"\n" in text[at:]))):
                found[parse, at, is_held] = None
            elif winner >= 0:
                is_newline = naive.layout is not None and winner == naive.layout.newline
                is_seen = winner not in naive.grammar.ignored and not (is_newline and parse.depth > 0)
                is_first = is_held and is_seen and at >= place
                after = naive.step(parse, winner, text[at:end])
                if after is not None and not (is_first and winner == terminal and text[at:end] not in names):
                    agenda.append((after, end, is_held and not is_first))
    return tuple(found)


def standings(
    naive: NaiveEngine, places: Iterable[Place], text: bytes, place: int, longest: int
) -> frozenset[tuple[object, ...]]:
    """What decides which continuations a text has: of each lexing not ruled out, the parse and the bytes that may still matter.

    longest : the length of the longest name.
    """
    return frozenset(
        (
            parse,
            naive._place(parse, text, at),
            is_held,
            # nothing under way, or a lexeme of which only so many bytes can be those of a name
            (at >= place, place - at if at < place else text[at : at + longest + 1]) if is_held else (),
        )
        for parse, at, is_held in places
    )


def continuation(
    naive: NaiveEngine, text: bytes, place: int, terminal: int, names: Collection[bytes], tries: int
) -> bytes | bool | None:
    """Bytes behind a text that leave it among those; None if none do; False if `tries` searches did not tell."""
    longest = max(map(len, names), default=0)
    places = {b"": read_on(naive, [(naive.root, 0, True)], text, place, terminal, names)}
    agenda: list[tuple[int, int, bytes]] = [(0, 0, b"")]
    seen = set()
    singles = [bytes([byte]) for byte in naive.alphabet]
    words = [*naive.words, *(b" " + name for name in names), *names]
    words += [name[k:] for name in names for k in range(1, len(name))]
    moves = list(dict.fromkeys([*words, *singles]))
    for tried in range(tries):
        if not agenda:
            return None
        cost, _, more = heapq.heappop(agenda)
        if is_left(naive, text + more, place, terminal, names):
            return more
        for move in moves:
            longer = text + more + move
            after = read_on(naive, places[more], longer, place, terminal, names)
            key = standings(naive, after, longer, place, longest)
            if key and key not in seen and naive.is_legal_prefix(longer):
                seen.add(key)
                places[more + move] = after
                heapq.heappush(agenda, (cost + 1, tried, more + move))
    return False


def spelled(naive: NaiveEngine, terminal: int, rng: random.Random) -> list[bytes]:
    """Texts that the terminal may spell: random walks in its own automaton."""
    dfa = compile_terminals(naive.grammar)[terminal]
    assert dfa is not None
    found = []
    for _ in range(12):
        state, text = 0, b""
        for _ in range(rng.randint(1, 5)):
            choices = [byte for byte in naive.alphabet if dfa.next_state[state][byte] >= 0]
            if not choices:
                break
            byte = rng.choice(choices)
            state, text = int(dfa.next_state[state][byte]), text + bytes([byte])
            if dfa.is_accepting[state]:
                found.append(text)
    return found
