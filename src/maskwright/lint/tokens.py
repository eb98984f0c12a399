"""A grammar against a vocabulary: missing bytes, and allowed texts that no tokens complete.

Bytes count as writable if some token holds them. A terminal is writable if one of its lexemes has
only such bytes. A symbol is writable if it derives writable terminals only.

A dead end is a text of writable bytes with which the grammar can go on, but no writable text can.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar.grammar import Grammar, Rule
from maskwright.analysis.grammar.normalise import productive_symbols, reduce
from maskwright.analysis.graphs import shortest_texts
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.lint.facts import Facts
from maskwright.lint.finding import Finding, listed, plural, shown
from maskwright.lint.reading import Reader
from maskwright.lint.texts import Writer
from maskwright.maskstore.vocabulary import Vocabulary

MAX_CANDIDATES = 200
"""Prefixes that are compared with the grammar of writable terminals."""

Usable = npt.NDArray[np.bool_]
"""(256,) bool: the bytes that some token holds."""


def vocabulary_findings(facts: Facts, vocabulary: Vocabulary) -> Iterator[Finding]:
    """Findings on missing bytes, dead ends, special tokens and the end of text."""
    usable = np.zeros(256, np.bool_)
    usable[np.frombuffer(b"".join(vocabulary.tokens), np.uint8)] = True
    yield from _special(facts, vocabulary)
    needed = np.zeros(256, np.bool_)
    for number, dfa in enumerate(facts.automata):
        if dfa is not None and (number in facts.used or number in facts.grammar.ignored):
            needed |= (dfa.next_state >= 0).any(axis=0)
    missing = np.flatnonzero(needed & ~usable).tolist()
    if not missing:
        return
    lexemes = facts.lexer.lexemes(usable)
    unwritable = [t for t in facts.writer.lexemes if t not in lexemes and t in facts.used]
    what = f"no token of {vocabulary.name} holds {plural(len(missing), 'byte')} of the grammar: {_bytes(missing)}"
    if unwritable:
        what += f"; so {listed([facts.name(t) for t in unwritable])} cannot be written at all"
    yield facts.finding(
        "missing-bytes",
        "warning" if unwritable else "info",
        facts.at_terminal(unwritable[0]) if unwritable else (0, 0),
        what,
        "texts with these bytes are never produced" + ("" if unwritable else "; each terminal has others"),
        "use a tokenizer with byte fallback, or take these bytes out of the grammar",
    )
    yield from _dead_ends(facts, vocabulary, usable, lexemes)


def _bytes(found: list[int]) -> str:
    """Bytes as ranges.

    >>> _bytes([10, 65, 66, 67])
    '0x0A, 0x41-0x43'
    """
    ranges: list[list[int]] = []
    for byte in found:
        if ranges and ranges[-1][1] == byte - 1:
            ranges[-1][1] = byte
        else:
            ranges.append([byte, byte])
    return listed(
        [f"{a:#04X}".replace("0X", "0x") + (f"-{b:#04X}".replace("0X", "0x") if b > a else "") for a, b in ranges]
    )


def _special(facts: Facts, vocabulary: Vocabulary) -> Iterator[Finding]:
    """A missing end-of-text token, and literals that spell a special token."""
    if not vocabulary.eos:
        yield facts.finding(
            "no-eos",
            "warning",
            (0, 0),
            f"vocabulary {vocabulary.name} has no token that ends a text",
            "no mask ever allows a text to end: generation stops at the token limit only",
            "load it with the ids or names that end a text: load_vocabulary(..., eos=[...])",
        )
    names = {name: token for token, name in vocabulary.special.items() if len(name) > 1}
    for number, terminal in enumerate(facts.grammar.terminals):
        held = [name for name in names if terminal.literal is not None and name in terminal.literal]
        if held and number in facts.used:
            yield facts.finding(
                "special-token-text",
                "warning",
                facts.at_terminal(number),
                f"terminal {facts.name(number)} spells {listed(held)}, which {vocabulary.name} has as a special token",
                "a special token stands for no text and is never allowed here: the model would have to spell it with other tokens",
                "take it out of the grammar, and let the caller add it; or load the vocabulary with this token as text",
            )


def _dead_ends(facts: Facts, vocabulary: Vocabulary, usable: Usable, lexemes: dict[int, bytes]) -> Iterator[Finding]:
    """Dead ends of the vocabulary. lexemes : terminal -> a lexeme of usable bytes."""
    grammar = facts.grammar
    inserted = set() if grammar.layout is None else {grammar.layout.indent, grammar.layout.dedent}
    writable = frozenset(lexemes) | inserted
    rules = facts.parsed
    kept = tuple(r for r in rules.rules if all(s in writable or rules.is_nonterminal(s) for s in r.rhs))
    restricted = rules.with_rules(rules.nonterminals, kept, rules.start)
    remedy = "use a tokenizer with byte fallback, or give the rules an alternative that it can write"
    if rules.start not in productive_symbols(restricted):
        yield facts.finding(
            "vocabulary-dead-end",
            "error",
            (0, 0),
            f"no text of the grammar can be written with the tokens of {vocabulary.name}",
            "masks allow the beginnings of texts, and then no token",
            remedy,
            shown(b""),
        )
        return
    writer = Writer(grammar, facts.automaton, facts.lexer, lexemes)
    found = [
        text
        for text in (_stuck_lexeme(facts, usable, writer), _stuck_rule(facts, restricted, writer, usable))
        if text is not None
    ]
    if found:
        yield facts.finding(
            "vocabulary-dead-end",
            "error",
            (0, 0),
            f"masks lead to the text below, which no tokens of {vocabulary.name} complete",
            "after it a mask has no token, or only tokens that never lead to the end of a text (DeadEndError)",
            remedy,
            shown(min(found, key=lambda text: (len(text), text))),
        )


def _stuck_lexeme(facts: Facts, usable: Usable, writer: Writer) -> bytes | None:
    """A shortest text that ends inside a lexeme which only unusable bytes can complete."""
    lexer = facts.lexer
    live, live_usable = lexer.live(), lexer.live(usable)
    paths = writer.paths()
    best: bytes | None = None
    for state, path in _unfinished_paths(facts, usable).items():
        if live_usable[state] or not live[state]:
            continue
        wanted = list(live[state])
        for at, symbols in paths.items():
            if not facts.acceptable[at, wanted].any() and not facts.grammar.ignored.intersection(wanted):
                continue
            before = writer.yield_of(symbols)
            text = None if before is None else writer.text(before)
            if text is not None and _begins(facts, text, path) and (best is None or len(text + path) < len(best)):
                best = text + path
            break
    return best


def _unfinished_paths(facts: Facts, usable: Usable) -> dict[int, bytes]:
    """State of the lexer -> a shortest string of usable bytes that leads there from a start.

    On the way there is no offset at which a lexeme could end.
    """
    lexer = facts.lexer
    edges = lexer.usable_edges(usable)
    return shortest_texts(lexer.union.starts, lambda state: [way for way in edges[state] if lexer.winner[way[1]] < 0])


def _begins(facts: Facts, text: bytes, path: bytes) -> bool:
    """Whether the bytes after the text are lexed as a lexeme that begins there."""
    reading = facts.reader.read(text + path)
    return reading.reached == len(text)


def _stuck_rule(facts: Facts, restricted: Grammar, writer: Writer, usable: Usable) -> bytes | None:
    """A shortest text after which the rules want what cannot be written, or can only be begun."""
    try:
        tables = build_lr_tables(reduce(restricted), facts.grammar.conflicts)
    except (GrammarError, LimitError):
        return None
    reader = Reader(facts.grammar, facts.lexer, facts.modes, tables)
    edges = facts.lexer.usable_edges(usable)
    live, live_usable = (list(map(set, facts.lexer.live(bytes_))) for bytes_ in (None, usable))
    found: list[bytes] = []
    for symbols in _prefixes(facts, restricted, writer):
        before = writer.yield_of(symbols)
        if before is None:
            continue
        n = next((n for n in range(1, len(before) + 1) if not reader.stacks_after(before[:n])), None)
        if n is not None:
            text = writer.text(before[:n])  # the shortest prefix that is stuck
            last = before[n - 1]
            instead = facts.lexer.may_become(last, writer.lexemes.get(last, b""), usable)
            if instead & (reader.next_terminals(before[: n - 1]) | facts.grammar.ignored):
                # A longer lexeme may come of it, so we end it.
                text = _ended(facts, text, writer)
            if text is not None and facts.reader.read(text).reached == len(text):
                found.append(text)
            continue
        possible = reader.next_terminals(before) | facts.grammar.ignored
        wanted = facts.reader.next_terminals(before) - possible
        text = writer.text(before)
        path = _begun(facts, wanted, possible, edges, live, live_usable) if wanted else None
        if text is not None and path is not None and _begins(facts, text, path):
            found.append(text + path)
    return min(found, key=lambda text: (len(text), text), default=None)


def _ended(facts: Facts, text: bytes | None, writer: Writer) -> bytes | None:
    """The text and a shortest ignored lexeme."""
    ignored = sorted(
        (writer.lexemes[i] for i in facts.grammar.ignored if i in writer.lexemes), key=lambda b: (len(b), b)
    )
    return None if text is None or not ignored else text + ignored[0]


def _begun(
    facts: Facts,
    wanted: set[int],
    possible: set[int],
    edges: list[list[tuple[int, int]]],
    live: list[set[int]],
    live_usable: list[set[int]],
) -> bytes | None:
    """A shortest string of usable bytes that begins a wanted terminal and is then stuck.

    It can become no terminal that is possible.
    """
    lexer = facts.lexer
    starts = lexer.union.starts

    def onwards(state: int) -> list[tuple[int, int]]:
        is_over = state not in starts and lexer.winner[state] in possible
        return [] if is_over else [edge for edge in edges[state] if live[edge[1]] & wanted]

    texts = shortest_texts(starts, onwards)
    return next((text for state, text in texts.items() if text and not live_usable[state] & possible), None)


def _prefixes(facts: Facts, restricted: Grammar, writer: Writer) -> Iterator[tuple[int, ...]]:
    """Viable prefixes of writable symbols, each directly before a symbol that cannot be written.

    The cheapest come first; there are at most MAX_CANDIDATES.
    """
    rules: Grammar = facts.parsed
    cost = writer.cost
    uses: dict[int, list[tuple[Rule, int]]] = {}
    for rule in rules.rules:
        for position, symbol in enumerate(rule.rhs):
            if rules.is_nonterminal(symbol):
                uses.setdefault(rule.lhs, []).append((rule, position))
    best: dict[int, tuple[int, tuple[int, ...]]] = {}
    agenda: list[tuple[int, int, tuple[int, ...]]] = [(0, rules.start, ())]
    while agenda:
        price, lhs, before = heapq.heappop(agenda)
        if lhs in best:
            continue
        best[lhs] = price, before
        for rule, position in uses.get(lhs, ()):
            left = rule.rhs[:position]
            if rule.rhs[position] not in best and all(cost[s] >= 0 for s in left):
                heapq.heappush(agenda, (price + sum(cost[s] for s in left), rule.rhs[position], before + left))
    found: list[tuple[int, tuple[int, ...]]] = []
    for rule in rules.rules:
        if rule.lhs not in best:
            continue
        n = next((i for i, symbol in enumerate(rule.rhs) if cost[symbol] < 0), None)
        if n is not None:
            price, before = best[rule.lhs]
            found.append((price + sum(cost[s] for s in rule.rhs[:n]), before + rule.rhs[:n]))
    for _, symbols in sorted(dict.fromkeys(found))[:MAX_CANDIDATES]:
        yield symbols
