"""A grammar against a vocabulary: missing bytes, and allowed texts that no tokens complete.

Bytes count as writable if some token holds them. A terminal is writable if one of its lexemes has
only such bytes. A symbol is writable if it derives writable terminals only.

A dead end is a text of writable bytes with which the grammar can go on, but no writable text can.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.graphs import shortest_texts
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.lint.facts import Facts
from maskwright.lint.finding import Finding, listed, plural
from maskwright.lint.lexer import BYTE_ORDER, Lexer
from maskwright.lint.texts import Reader, Writer, cheapest_ways
from maskwright.maskstore.vocabulary import Vocabulary

MAX_CANDIDATES = 200
"""Prefixes that are compared with the grammar of writable terminals."""


def vocabulary_findings(facts: Facts, vocabulary: Vocabulary) -> Iterator[Finding]:
    """Findings on missing bytes, dead ends, special tokens and the end of text."""
    yield from _special(facts, vocabulary)
    held = set(b"".join(vocabulary.tokens))
    needed: set[int] = set()
    for number, dfa in enumerate(facts.automata):
        if dfa is not None and (number in facts.used or number in facts.grammar.ignored):
            needed.update(np.flatnonzero((dfa.next_state >= 0).any(axis=0)).tolist())
    missing = sorted(needed - held)
    if not missing:
        return
    usable = Lexer(facts.lexemes, facts.lexer.known, bytes(byte for byte in BYTE_ORDER if byte in held))
    unwritable = [t for t in facts.writer.lexemes if t not in usable.lexemes and t in facts.used]
    what = f"no token of {vocabulary.name} holds {plural(len(missing), 'byte')} of the grammar: {_bytes(missing)}"
    if unwritable:
        what += f"; so {listed([facts.name(t) for t in unwritable])} cannot be written at all"
    decoding = "texts with these bytes are never produced" + ("" if unwritable else "; each terminal has others")
    remedy = "use a tokenizer with byte fallback, or take these bytes out of the grammar"
    place = facts.at_terminal(unwritable[0]) if unwritable else (0, 0)
    yield facts.finding("missing-bytes", "warning" if unwritable else "info", place, what, decoding, remedy)
    yield from _dead_ends(facts, vocabulary, usable)


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
    return listed([f"0x{a:02X}" + (f"-0x{b:02X}" if b > a else "") for a, b in ranges])


def _special(facts: Facts, vocabulary: Vocabulary) -> Iterator[Finding]:
    """A missing end-of-text token, and literals that spell a special token."""
    if not vocabulary.eos:
        message = f"vocabulary {vocabulary.name} has no token that ends a text"
        decoding = "no mask ever allows a text to end: generation stops at the token limit only"
        remedy = "load it with the ids or names that end a text: load_vocabulary(..., eos=[...])"
        yield facts.finding("no-eos", "warning", (0, 0), message, decoding, remedy)
    names = {name: token for token, name in vocabulary.special.items() if len(name) > 1}
    for number, terminal in enumerate(facts.grammar.terminals):
        held = [name for name in names if terminal.literal is not None and name in terminal.literal]
        if held and number in facts.used:
            spelled, name = listed(held), vocabulary.name
            message = f"terminal {facts.name(number)} spells {spelled}, which {name} has as a special token"
            decoding = "a special token stands for no text and is never allowed here: the model would have to spell it with other tokens"
            remedy = "take it out of the grammar, and let the caller add it; or load the vocabulary with it as text"
            yield facts.finding("special-token-text", "warning", number, message, decoding, remedy)


def _dead_ends(facts: Facts, vocabulary: Vocabulary, usable: Lexer) -> Iterator[Finding]:
    """Dead ends of the vocabulary. usable : the lexer over the bytes that some token holds."""
    writer = Writer(facts.automaton, usable)
    what, text = f"no text of the grammar can be written with the tokens of {vocabulary.name}", b""
    decoding = "masks allow the beginnings of texts, and then no token"
    if writer.cost[facts.parsed.start] >= 0:
        found = [*_stuck_lexemes(facts, usable, writer), *_stuck_rules(facts, usable, writer)]
        if not found:
            return
        text = min(found, key=lambda text: (len(text), text))
        what = f"masks lead to the text below, which no tokens of {vocabulary.name} complete"
        decoding = "after it a mask has no token, or only tokens that never lead to the end of a text (DeadEndError)"
    remedy = "use a tokenizer with byte fallback, or give the rules an alternative that it can write"
    yield facts.finding("vocabulary-dead-end", "error", (0, 0), what, decoding, remedy, text)


def _stuck_lexemes(facts: Facts, usable: Lexer, writer: Writer) -> Iterator[bytes]:
    """Short texts that end inside a lexeme which only unusable bytes can complete."""
    lexer, ignored = facts.lexer, facts.grammar.ignored
    # No lexeme could end on the way.
    paths = shortest_texts(
        lexer.union.starts, lambda state: [way for way in usable.edges[state] if lexer.winner[way[1]] < 0]
    )
    for state, path in paths.items():
        wanted = list(lexer.live[state])
        if usable.live[state] or not wanted:
            continue
        for at, symbols in writer.paths().items():
            if facts.acceptable[at, wanted].any() or ignored.intersection(wanted):
                before = writer.yield_of(symbols)
                text = None if before is None else writer.text(before)
                if text is not None and facts.reader.read(text + path).reached == len(text):
                    yield text + path
                break


def _stuck_rules(facts: Facts, usable: Lexer, writer: Writer) -> Iterator[bytes]:
    """Short texts after which the rules want what cannot be written, or can only be begun."""
    rules = facts.parsed
    kept = tuple(rule for rule in rules.rules if all(writer.cost[symbol] >= 0 for symbol in rule.rhs))
    left = rules.with_rules(rules.nonterminals, kept, rules.start)
    try:
        tables = build_lr_tables(reduce(left), facts.grammar.conflicts)
    except (GrammarError, LimitError):
        return
    reader, ignored = Reader(facts.lexer, facts.modes, tables), facts.grammar.ignored
    for symbols in _prefixes(facts, writer):
        before = writer.yield_of(symbols)
        if before is None:
            continue
        n = next((n for n in range(1, len(before) + 1) if not reader.stacks_after(before[:n])), None)
        text = writer.text(before[:n])
        if text is None:
            continue
        if n is not None:  # the shortest prefix that is stuck
            instead = usable.may_become(before[n - 1], writer.lexemes.get(before[n - 1], b""))
            if instead & (reader.next_terminals(before[: n - 1]) | ignored):
                # A longer lexeme may come of it, so we end it, by a shortest ignored lexeme.
                endings = [writer.lexemes[i] for i in ignored if i in writer.lexemes]
                if not endings:
                    continue
                text += min(endings, key=lambda lexeme: (len(lexeme), lexeme))
            if facts.reader.read(text).reached == len(text):
                yield text
            continue
        possible = reader.next_terminals(before) | ignored
        wanted = facts.reader.next_terminals(before) - possible
        path = _begun(facts.lexer, usable, wanted, possible) if wanted else None
        if path is not None and facts.reader.read(text + path).reached == len(text):
            yield text + path


def _begun(lexer: Lexer, usable: Lexer, wanted: set[int], possible: set[int]) -> bytes | None:
    """A shortest string of usable bytes that begins a wanted terminal and is then stuck.

    It can become no terminal that is possible.
    """
    starts = lexer.union.starts

    def onwards(state: int) -> list[tuple[int, int]]:
        is_over = state not in starts and lexer.winner[state] in possible
        return [] if is_over else [edge for edge in usable.edges[state] if not wanted.isdisjoint(lexer.live[edge[1]])]

    texts = shortest_texts(starts, onwards)
    return next((text for state, text in texts.items() if text and possible.isdisjoint(usable.live[state])), None)


def _prefixes(facts: Facts, writer: Writer) -> list[tuple[int, ...]]:
    """Viable prefixes of writable symbols, each directly before a symbol that cannot be written.

    The cheapest come first; there are at most MAX_CANDIDATES.
    """
    rules, cost = facts.parsed, writer.cost

    def inward(lhs: int) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        for rule in rules.rules_of[lhs]:
            for position, symbol in enumerate(rule.rhs):
                if rules.is_nonterminal(symbol):
                    yield sum(cost[s] for s in rule.rhs[:position]), symbol, rule.rhs[:position]
                if cost[symbol] < 0:
                    break

    found: set[tuple[int, tuple[int, ...]]] = set()
    for lhs, way in cheapest_ways(rules.start, inward).items():
        for rule in rules.rules_of[lhs]:
            n = next((i for i, symbol in enumerate(rule.rhs) if cost[symbol] < 0), None)
            if n is not None:
                symbols = (*chain.from_iterable(way), *rule.rhs[:n])
                found.add((sum(cost[s] for s in symbols), symbols))
    return [symbols for _, symbols in sorted(found)[:MAX_CANDIDATES]]
