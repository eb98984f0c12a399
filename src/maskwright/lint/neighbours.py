"""Terminals that can follow one another in the rules but in no text, and what is stuck for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_

from maskwright.analysis.graphs import reachable
from maskwright.analysis.lr.automaton import bits
from maskwright.lint.facts import Facts
from maskwright.lint.finding import Finding, Severity, listed, plural, shown
from maskwright.lint.remedies import contextual, ignored_blanks


class Sides:
    """The neighbours of each terminal in texts, as far as the longest match decides.

    next_to : for each terminal, as bits, the terminals that can stand directly after it.
    apart : for each terminal, as bits, those that can stand after it with ignored text between.
    after_ignored : for each ignored terminal, as bits, those that can stand after it, directly or
        with more ignored text between.
    """

    def __init__(self, facts: Facts) -> None:
        grammar, layout = facts.grammar, facts.grammar.layout
        inserted = 0 if layout is None else 1 << layout.indent | 1 << layout.dedent
        separators = sorted(grammar.ignored)
        if layout is not None and layout.brackets:
            separators.append(layout.newline)  # between brackets it is dropped like ignored text
        everything = [t for t, dfa in enumerate(facts.automata) if dfa is not None]
        written, between = (_union(1 << t for t in terminals) for terminals in (everything, separators))
        wanted = [(x, facts.follows[x] & written | between) for x in everything] + [(i, written) for i in separators]
        self.next_to = [found | inserted for found in facts.lexer.side_by_side(wanted)]
        self.after_ignored = {i: self.after_some(separators, i) for i in separators}
        self.apart = [_union(self.after_ignored[i] for i in separators if found >> i & 1) for found in self.next_to]

    def after_some(self, separators: Iterable[int], i: int) -> int:
        """As bits, what can stand after a separator, with more of them between."""
        chain = reachable([i], lambda at: [j for j in separators if self.next_to[at] >> j & 1])
        return _union(self.next_to[j] for j in chain)


def adjacent(facts: Facts) -> Iterator[Finding]:
    """Findings on terminals that the longest match joins, and on ignored ones that cannot go on."""
    sides = Sides(facts)
    yield from never_adjacent(facts, sides)
    yield from stuck_after_ignored(facts, sides)


def never_adjacent(facts: Facts, sides: Sides) -> Iterator[Finding]:
    """Terminals that follow one another in the rules but in no text.

    The longest match joins them, and nothing that is ignored can stand between them.
    """
    lexer = facts.lexer
    stuck = _stuck_states(facts, sides)
    for x in sorted(lexer.ends):
        bad = [y for y in bits(facts.follows[x] & ~sides.next_to[x] & ~sides.apart[x]) if y in lexer.ends]
        if not bad:
            continue
        both = lexer.lexemes[x] + lexer.lexemes[bad[0]]
        winner, end = lexer.after(x, lexer.lexemes[x], lexer.lexemes[bad[0]]) or (-1, 0)
        reads = "the longest match joins them"
        if winner >= 0:
            reads = f"{shown(both)} begins with {facts.name(winner)} {shown(both[:end])}"
        names, follows = listed([facts.name(y) for y in bad]), "follows" if len(bad) == 1 else "follow"
        what = f"{names} {follows} {facts.name(x)} in the rules, but no text has them side by side"
        severity: Severity = "warning"
        code = "never-adjacent"
        decoding = "texts that need them side by side are never allowed"
        if x in stuck:
            code, severity = "stuck-after-terminal", "error"
            what += ", and in some contexts nothing else can come"
            decoding = f"masks let {facts.name(x)} begin there; after it no token leads to a whole text"
        elif bad == [x] == [winner] and _is_idle(facts, x):
            severity, decoding = "info", "none: wherever the rules take two, one will do"
        remedy = "make the terminals differ so that the first ends where the second begins"
        remedy = facts.remedy(remedy, ignored_blanks(facts.grammar), contextual(facts.grammar))
        yield facts.finding(code, severity, x, f"{what}: {reads}", decoding, remedy, stuck.get(x, both))


def _is_idle(facts: Facts, x: int) -> bool:
    """Whether a second lexeme of a terminal allows nothing new after it.

    This is asked at the nearest parser state that takes the terminal.
    """
    reader, accepts_end = facts.reader, facts.reader.parser.accepts_end
    for state, symbols in facts.writer.paths().items():
        before = facts.writer.yield_of(symbols) if facts.acceptable[state, x] else None
        if before is not None and (both := reader.stacks_after((*before, x, x))):
            may_end = accepts_end(reader.stacks_after((*before, x))) or not accepts_end(both)
            return may_end and reader.next_terminals((*before, x, x)) <= reader.next_terminals((*before, x))
    return False


def _stuck_states(facts: Facts, sides: Sides) -> dict[int, bytes | None]:
    """Terminal -> a shortest text that ends with it and cannot go on.

    After it the rules take only terminals that cannot stand there.
    """
    found: dict[int, bytes | None] = {}
    n, lexemes = facts.grammar.n_terminals, facts.lexer.lexemes
    for state, symbols in facts.writer.paths().items():
        x = symbols[-1] if symbols else n
        if x not in lexemes or x in found or facts.acceptable[state, n]:
            continue
        following = facts.acceptable[state, :n].nonzero()[0].tolist()
        possible = sides.next_to[x] | sides.apart[x]
        before = None if any(possible >> y & 1 for y in following) else facts.writer.yield_of(symbols)
        if before is None:
            continue
        # A longer lexeme may come of it if that lexeme is allowed there.
        instead = facts.lexer.may_become(x, lexemes[x])
        if instead & (facts.reader.next_terminals(before[:-1]) | facts.grammar.ignored):
            continue
        found[x] = facts.text(before)
    return found


def stuck_after_ignored(facts: Facts, sides: Sides) -> Iterator[Finding]:
    """Ignored terminals that can begin where nothing that can come after them is allowed.

    Example: a comment where the rules take only what a comment cannot be followed by.
    """
    grammar, lexer, layout = facts.grammar, facts.lexer, facts.grammar.layout
    n = grammar.n_terminals
    paths = facts.writer.paths(frozenset(opening for opening, _ in layout.brackets) if layout else frozenset())
    for i in sorted(grammar.ignored & set(lexer.ends)):
        # Outside brackets a newline is not ignored.
        after = sides.after_some(grammar.ignored, i)
        longer = {terminal for state in lexer.ends[i] for terminal in lexer.live[state]}
        possible = after | _union(1 << t | (sides.after_ignored.get(t, 0) if t != i else 0) for t in longer)
        example: bytes | None = None
        n_states = 0
        for state, symbols in paths.items():
            last = symbols[-1] if symbols else -1
            if last >= n or facts.acceptable[state, n] or (last >= 0 and not sides.next_to[last] >> i & 1):
                continue
            following = facts.acceptable[state, :n].nonzero()[0].tolist()
            if not following or any(possible >> y & 1 for y in following):
                continue
            n_states += 1
            before = facts.writer.yield_of(symbols)
            if before is not None and example is None:
                example = facts.text((*before, i))
        if n_states:
            ends = [facts.name(y) for y in bits(after) if y in facts.used]
            only = f" (only {listed(ends)} can)" if ends else ""
            where = f"{plural(n_states, 'parser state')} where the rules take nothing that can stand after it{only}"
            message = f"ignored terminal {facts.name(i)} can begin in {where}"
            decoding = "masks let it begin anywhere; there no token ever leads out of it"
            remedy = "make it part of the terminal that ends it (as a comment in the newline terminal), or let it end by itself"
            yield facts.finding("stuck-after-ignored", "warning", i, message, decoding, remedy, example)


def _union(sets: Iterable[int]) -> int:
    """The union of sets that are given as bits."""
    return reduce(or_, sets, 0)
