"""Terminals alone and against each other: which are never lexed, which take others' texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice

from maskwright.analysis.lexing.lexemes import terminal_rank
from maskwright.analysis.lexing.messages import lookbehind_before_start
from maskwright.analysis.lexing.terminals import lookahead_beyond_end, refused_before
from maskwright.analysis.loading.overlaps import equal_groups
from maskwright.analysis.marks import PART_FLAGS
from maskwright.analysis.regex.dfa import Dfa
from maskwright.lint.facts import Facts
from maskwright.lint.finding import NO_STORE, Finding, Severity, listed, shown
from maskwright.lint.remedies import contextual, higher_priority

MAX_TRIED = 200
"""Texts that are tried to show one reserved word."""

_REMEDIES = {
    "matches-nothing": "correct the pattern, or remove the terminal",
    "matches-empty": "require at least one character (+ in place of *), and make the terminal optional in the rules",
    "unsupported-pattern": "write the pattern without the construct that the message names",
    "too-large": "shorten the pattern's repetitions",
}
"""Code of a fault -> remedy."""


def faulty(facts: Facts) -> Iterator[Finding]:
    """Terminals without an automaton that a lexer can use."""
    for number, (code, why) in facts.faulty.items():
        pattern = shown(facts.grammar.terminals[number].pattern or "")
        message = {
            "matches-nothing": f"the pattern {pattern} matches no text at all",
            "matches-empty": f"the pattern {pattern} matches the empty string, so a lexer would not advance",
        }.get(code, why.partition(": ")[2] or why)
        message = f"terminal {facts.name(number)}: {message}"
        yield facts.finding(code, "error", number, message, NO_STORE, _REMEDIES[code])


def equal(facts: Facts) -> Iterator[Finding]:
    """Terminals that match the same texts.

    Those that loading has made one (`join_equal`) are told for information. Of the others only
    those that the lexer has; those that always lose for this reason are reported here, not by
    `never_lexed`.
    """
    plain = facts.grammar.plain or facts.grammar
    for group in equal_groups(plain):
        kept = [t for t in group if plain.terminals[t].name in facts.grammar.terminal_number]
        for number in sorted(set(group) - set(kept)):
            names = plain.display_name(number), " or ".join(map(plain.display_name, kept))
            message = f"terminals {names[0]} and {names[1]} match the same texts and compete, so they are one"
            decoding = f"{names[0]} is read as {names[1]}, and whichever the parser can take counts"
            remedy = "give them one name"
            place = (plain.terminals[number].line, plain.terminals[number].column)
            yield facts.finding("equal-terminals", "info", place, message, decoding, remedy)
    for number, other in equal_terminals(facts).items():
        severity: Severity = "warning"
        message = f"terminals {facts.name(number)} and {facts.name(other)} match the same texts"
        decoding = "both are followed, so each of their texts is read twice"
        if facts.grammar.lexing != "nfa":
            message += f"; {why_wins(facts, other, number)}"
            decoding = f"{facts.name(number)} is lexed only where the parser cannot take {facts.name(other)}"
            if facts.grammar.lexing == "longest" and number not in facts.lexer.ends:
                severity = "error"
                decoding = f"each text is lexed as {facts.name(other)}; what needs {facts.name(number)} is refused"
        remedy = "make them one terminal, and let the rules say which of its uses is meant"
        yield facts.finding("equal-terminals", severity, number, message, decoding, remedy)


def equal_terminals(facts: Facts) -> dict[int, int]:
    """Each terminal that an equal one is preferred to where both compete -> that other one."""
    rank = terminal_rank(facts.grammar.terminals)
    earlier: dict[Dfa | None, list[int]] = {None: []}
    found: dict[int, int] = {}
    for number in sorted(range(facts.grammar.n_terminals), key=rank.__getitem__):
        # what look-aheads refuse is left to the other
        is_equal = facts.automata[number] is None or not refused_before(facts.grammar.terminals[number])
        rivals = earlier.setdefault(facts.automata[number], []) if is_equal else []
        other = next((other for other in rivals if _compete(facts, number, other)), -1)
        found |= {number: other} if other >= 0 else {}
        if facts.automata[number] is not None:
            rivals.append(number)
    return dict(sorted(found.items()))


def _compete(facts: Facts, one: int, other: int) -> bool:
    """Whether two terminals compete in some mode; a verbatim one only where it can be taken."""
    return facts.grammar.lexing == "nfa" or any(one in mode and other in mode for mode in facts.modes.competing)


def never_lexed(facts: Facts) -> Iterator[Finding]:
    """Terminals that win nowhere under the grammar's lexing."""
    lexer, grammar = facts.lexer, facts.grammar
    lost = frozenset[int]().union(*lexer.known.modes) - set(lexer.ends) - set(equal_terminals(facts))
    lost -= {terminal for choices in lexer.known.choices.values() for terminal, _ in choices}
    for number in sorted(lost):
        # the terminals that win on its texts
        states = [state for state, accepting in enumerate(lexer.union.accepting) if number in accepting]
        winners = list(dict.fromkeys(lexer.winner[state] for state in states))
        dfa = facts.automata[number]
        if dfa is None or not winners:
            # This is a layout's newline that never has a line feed.
            # `backup.newline_without_line_feed` reports it.
            continue
        names = [facts.name(winner) for winner in winners]
        what = "each text of it is also a text of" if len(names) == 1 else "each text of it is also one of"
        reason = f"; {why_wins(facts, winners[0], number)}" if len(winners) == 1 else ""
        severity: Severity = "warning"
        message = f"terminal {facts.name(number)} is never lexed: {what} {listed(names)}, which wins{reason}"
        decoding = f"its texts are never ignored; they are read as {listed(names)}"
        remedy = "remove it, or give it a higher priority"
        if number in facts.used:
            severity, decoding = "error", f"what needs {facts.name(number)} is refused"
            remedy = "make the patterns differ, so that some text is this terminal's alone"
            remedy = facts.remedy(remedy, higher_priority(grammar, number, winners), contextual(grammar))
        yield facts.finding("never-lexed", severity, number, message, decoding, remedy, dfa.shortest())


def why_wins(facts: Facts, winner: int, loser: int) -> str:
    """Why the first of two terminals that match the same text wins, in words."""
    first, second = facts.grammar.terminals[winner], facts.grammar.terminals[loser]
    name = facts.name(winner)
    if first.priority != second.priority:
        return f"{name} has the higher priority"
    if (first.literal is None) != (second.literal is None):
        return f"{name} is a string literal"
    return f"{name} comes first in Lark's order of patterns (greatest width, then length of the pattern, then name)"


def reserved_words(facts: Facts) -> Iterator[Finding]:
    """Patterns that match string literals. These literals are reserved, unless a rule offers both.

    Verbatim terminals reserve nothing.
    """
    grammar, rank = facts.grammar, facts.lexer.rank
    alone: dict[int, set[int]] = {}
    for rule in facts.reduced.rules:
        if len(rule.rhs) == 1:
            alone.setdefault(rule.lhs, set()).add(rule.rhs[0])
    soft = {(x, y) for symbols in alone.values() for x in symbols for y in symbols if x < grammar.n_terminals}
    used = facts.used - grammar.verbatim
    texts = {t: literal for t in sorted(used) if (literal := grammar.terminals[t].literal)}
    for pattern in sorted(used - set(texts)):
        dfa = facts.automata[pattern]
        literals = [
            literal
            for literal, text in texts.items()
            if dfa is not None
            and dfa.matches(text.encode("utf-8", "surrogatepass"))
            and rank[literal] < rank[pattern]
            and (literal, pattern) not in soft
            and _compete(facts, literal, pattern)
        ]
        if not literals:
            continue
        names = [facts.name(literal) for literal in literals]
        is_local = grammar.lexing == "contextual" and grammar.reserved == "none"
        where = " where the parser can take both" if is_local else ""
        number = "a string literal" if len(literals) == 1 else f"{len(literals)} string literals"
        example = _refused_name(facts, pattern, literals)
        message = f"{facts.name(pattern)} also matches {number} of the rules, which win: {listed(names)}"
        decoding = (
            f"these words are never {facts.name(pattern)}{where}{': the text below is refused' if example else ''}"
        )
        remedy = "none if they are meant to be reserved; if a word may be both, make it soft (--soft WORD), or let the rules offer both"
        yield facts.finding("reserved-words", "info", pattern, message, decoding, remedy, example)


def _refused_name(facts: Facts, pattern: int, literals: list[int]) -> bytes | None:
    """A short text with a literal where the rules take only the pattern; None if none is found."""
    writer, acceptable = facts.writer, facts.acceptable
    tried = ((*way, one) for way in writer.paths().items() if acceptable[way[0], pattern] for one in literals)
    alone = ((symbols, literal) for state, symbols, literal in tried if not acceptable[state, literal])
    for symbols, literal in islice(alone, MAX_TRIED):
        before = writer.yield_of(symbols)
        text = None if before is None else writer.text((*before, literal))
        if text is not None and len(facts.reader.read(text).terminals) == len(before or ()):
            return text
    return None


def idle_priorities(facts: Facts) -> Iterator[Finding]:
    """Priorities that change no lexeme."""
    lexer, grammar = facts.lexer, facts.grammar
    tied = [accepting for accepting in lexer.union.accepting if len(accepting) > 1]
    for number, terminal in enumerate(grammar.terminals):
        if not terminal.priority:
            continue
        without = list(grammar.terminals)
        without[number] = replace(terminal, priority=0)
        rank = terminal_rank(without)
        if all(min(found, key=rank.__getitem__) == min(found, key=lexer.rank.__getitem__) for found in tied):
            message = f"terminal {facts.name(number)} has priority {terminal.priority}, but the same terminals would win without it"
            decoding = "none: the longest match wins before any priority; only ties are decided by it (Lark's own lexers try it first)"
            remedy = "remove the priority, unless the grammar is for Lark too"
            yield facts.finding("idle-priority", "info", number, message, decoding, remedy)


def open_lookaheads(facts: Facts) -> Iterator[Finding]:
    """Look-aheads that the next byte behind the lexeme does not decide."""
    grammar = facts.grammar
    for number, terminal in enumerate(grammar.terminals):
        if terminal.is_declared or number in facts.faulty:
            continue
        beyond = lookahead_beyond_end(terminal, where=grammar.name)
        if beyond and (example := _unseen(facts, number)) is not None:
            message = f"terminal {facts.name(number)} looks past its own end ({listed(list(dict.fromkeys(beyond)))}), which is not enforced"
            decoding = f"masks allow the text below, in which Python's re does not match {facts.name(number)}"
            remedy = "ask for one ASCII character only, or let another terminal, a longer one, take the text that may not come next"
            yield facts.finding("open-lookahead", "warning", number, message, decoding, remedy, example)


def open_lookbehinds(facts: Facts) -> Iterator[Finding]:
    """Look-behinds that may look before the lexeme.

    There the automaton of the lexeme sees the beginning of a text.
    """
    for number, terminal in enumerate(facts.grammar.terminals):
        if terminal.is_declared or number in facts.faulty or terminal.flags == PART_FLAGS:
            continue
        before = lookbehind_before_start(terminal)
        if before:
            name = facts.name(number)
            message = f"terminal {name} looks before its own beginning ({listed(list(before))}), which is not enforced"
            decoding = f"masks allow {name} as if the text began there, also where Python's re, and so Lark, would not match it"
            remedy = "leave the condition out, and let the rules say what comes before the terminal"
            yield facts.finding("open-lookbehind", "warning", number, message, decoding, remedy)


def _unseen(facts: Facts, number: int) -> bytes | None:
    """A text in which the lexer ends a lexeme where Python's `re` does not.

    The parser accepts the text so far. Returns None if none is found.
    """
    lexer, writer = facts.lexer, facts.writer
    terminal = facts.grammar.terminals[number]
    lexeme = writer.lexemes.get(number)
    symbols = next((symbols for state, symbols in writer.paths().items() if facts.acceptable[state, number]), None)
    # The nearest parser state is as good as any.
    before = None if symbols is None or lexeme is None or number not in facts.used else writer.yield_of(symbols)
    if before is None:
        return None
    compiled = re.compile(f"(?{terminal.flags}:{terminal.pattern})" if terminal.flags else terminal.pattern or "")
    following = [t for t in writer.lexemes if facts.follows[number] >> t & 1 or t in facts.grammar.ignored]
    for own in _some_lexemes(facts, number):
        head = writer.text((*before, number), {len(before): own})
        if head is None or not head.endswith(own):
            continue
        for more in chain.from_iterable(_some_lexemes(facts, after) for after in following):
            if lexer.after(number, own, more) != (number, len(own)):
                continue
            try:
                match = compiled.match((own + more).decode())
                text = (head + more).decode().encode()
            except UnicodeDecodeError:
                continue
            is_seen = match is not None and match.end() == len(own.decode())
            if not is_seen and facts.reader.read(text).reached == len(text):
                return text
    return None


def _some_lexemes(facts: Facts, number: int) -> list[bytes]:
    """The shortest lexeme of a terminal, and at most 12 more.

    There is one for each state in which it wins. Single bytes that are lexemes follow.
    """
    lexer, dfa = facts.lexer, facts.automata[number]
    found = [path for state, path in lexer.shortest_paths.items() if lexer.winner[state] == number and path]
    for byte, after in lexer.edges[lexer.union.starts[0]]:
        if dfa is not None and dfa.next_state[0, byte] >= 0 and lexer.winner[after] == number:
            found.append(bytes([byte]))
    return [lexer.lexemes[number], *list(dict.fromkeys(found))[:12]]


def verbatim_brackets(facts: Facts) -> Iterator[Finding]:
    """Verbatim terminals that look like brackets of the layout but are none."""
    grammar = facts.grammar
    if grammar.layout is None or grammar.lexing == "nfa":
        return
    brackets = {terminal: pair for pair in grammar.layout.brackets for terminal in pair}
    for number in sorted(grammar.verbatim - set(brackets)):
        lookalikes = [terminal for terminal in sorted(brackets) if facts.automata[terminal] == facts.automata[number]]
        if not lookalikes:
            continue
        opening, closing = brackets[lookalikes[0]]
        closes = lookalikes[0] == closing
        name, bracket, partner = (
            facts.name(number),
            facts.name(lookalikes[0]),
            facts.name(opening if closes else closing),
        )
        message = f"verbatim terminal {name} looks like {bracket}, but the layout does not count it as a bracket"
        decoding = "brackets are counted wrong: "
        decoding += (
            f"after {partner} and it, newlines are still dropped" if closes else "newlines after it are not dropped"
        )
        remedy = f"use {bracket} itself, make it verbatim, or give {partner} a verbatim form too"
        yield facts.finding("verbatim-bracket", "warning", number, message, decoding, remedy)
