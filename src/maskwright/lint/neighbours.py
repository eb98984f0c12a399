"""Terminals that can follow one another in the rules but in no text, and what is stuck for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from maskwright.analysis.graphs import reachable
from maskwright.analysis.lr.automaton import bits
from maskwright.lint.facts import Facts
from maskwright.lint.finding import Finding, listed, plural, shown
from maskwright.lint.remedies import contextual, ignored_blanks


@dataclass(frozen=True)
class Sides:
    """The neighbours that each terminal can have in a text.

    next_to : for each terminal, as bits, the terminals that can stand directly after it.
    apart : for each terminal, as bits, those that can stand after it with ignored text between.
    after_ignored : for each ignored terminal, as bits, those that can stand after it, directly or
        with more ignored text between.
    """

    next_to: list[int]
    apart: list[int]
    after_ignored: dict[int, int]


def sides_of(facts: Facts) -> Sides:
    """The neighbours of each terminal in texts, as far as the longest match decides."""
    grammar, lexer = facts.grammar, facts.lexer
    n = grammar.n_terminals
    ignored = sorted(grammar.ignored)
    inserted = 0
    separators = list(ignored)
    layout = grammar.layout
    if layout is not None:
        inserted = 1 << layout.indent | 1 << layout.dedent
        if layout.brackets:
            separators.append(layout.newline)  # between brackets it is dropped like ignored text
    everything = [t for t, dfa in enumerate(facts.automata) if dfa is not None]
    written = _union(1 << t for t in everything)
    wanted = [(x, facts.follows[x] & written) for x in everything]
    wanted += [(x, _union(1 << i for i in separators)) for x in everything]
    wanted += [(i, written) for i in separators]
    next_to = [found | inserted for found in lexer.side_by_side(wanted)]
    after_ignored = {}
    for i in separators:
        chain = reachable([i], lambda at: [j for j in separators if next_to[at] >> j & 1])
        after_ignored[i] = _union(next_to[j] for j in chain)
    apart = [_union(after_ignored[i] for i in separators if next_to[x] >> i & 1) for x in range(n)]
    return Sides(next_to, apart, after_ignored)


def adjacent(facts: Facts) -> Iterator[Finding]:
    """Findings on terminals that the longest match joins, and on ignored ones that cannot go on."""
    sides = sides_of(facts)
    yield from never_adjacent(facts, sides)
    yield from stuck_after_ignored(facts, sides)


def never_adjacent(facts: Facts, sides: Sides) -> Iterator[Finding]:
    """Terminals that follow one another in the rules but in no text.

    The longest match joins them, and nothing that is ignored can stand between them.
    """
    n = facts.grammar.n_terminals
    declared = {t for t, dfa in enumerate(facts.automata) if dfa is None}
    stuck = _stuck_states(facts, sides)
    for x in range(n):
        if x in declared or x not in facts.lexer.ends:
            continue
        possible = sides.next_to[x] | sides.apart[x]
        bad = [y for y in bits(facts.follows[x] & ~possible) if y in facts.lexer.ends]
        if not bad:
            continue
        names = [facts.name(y) for y in bad]
        lexemes = facts.writer.lexemes
        both = lexemes[x] + lexemes[bad[0]]
        winner, end = facts.lexer.after(x, lexemes[x], lexemes[bad[0]]) or (-1, 0)
        reads = f"{shown(both)} begins with {facts.name(winner)} {shown(both[:end])}" if winner >= 0 else ""
        is_idle = bad == [x] == [winner] and _is_idle(facts, x)
        follows = "follows" if len(bad) == 1 else "follow"
        what = f"{listed(names)} {follows} {facts.name(x)} in the rules, but no text has them side by side"
        remedy = facts.remedy(
            "make the terminals differ so that the first ends where the second begins",
            ignored_blanks(facts.grammar),
            contextual(facts.grammar),
        )
        if x in stuck:
            yield facts.finding(
                "stuck-after-terminal",
                "error",
                facts.at_terminal(x),
                f"{what}, and in some contexts nothing else can come: {reads or 'the longest match joins them'}",
                f"masks let {facts.name(x)} begin there; after it no token leads to a whole text",
                remedy,
                stuck[x],
            )
        else:
            yield facts.finding(
                "never-adjacent",
                "info" if is_idle else "warning",
                facts.at_terminal(x),
                f"{what}: {reads or 'the longest match joins them'}",
                "none: wherever the rules take two, one will do"
                if is_idle
                else "texts that need them side by side are never allowed",
                remedy,
                shown(both),
            )


def _is_idle(facts: Facts, x: int) -> bool:
    """Whether a second lexeme of a terminal allows nothing new after it.

    This is asked at the nearest parser state that takes the terminal.
    """
    reader = facts.reader
    for state, symbols in facts.writer.paths().items():
        if facts.acceptable[state, x] and (before := facts.writer.yield_of(symbols)) is not None:
            twice = reader.next_terminals((*before, x, x))
            once, both = (reader.stacks_after((*before, *one)) for one in ((x,), (x, x)))
            if both:
                may_end = reader.parser.accepts_end(once) or not reader.parser.accepts_end(both)
                return may_end and twice <= reader.next_terminals((*before, x))
    return False


def _stuck_states(facts: Facts, sides: Sides) -> dict[int, str]:
    """Terminal -> a shortest text that ends with it and cannot go on.

    After it the rules take only terminals that cannot stand there.
    """
    found: dict[int, str] = {}
    n = facts.grammar.n_terminals
    writer = facts.writer
    for state, symbols in writer.paths().items():
        if not symbols or symbols[-1] >= n or symbols[-1] in found or facts.acceptable[state, n]:
            continue
        x = symbols[-1]
        following = facts.acceptable[state, :n].nonzero()[0].tolist()
        possible = sides.next_to[x] | sides.apart[x]
        if facts.automata[x] is None or any(possible >> y & 1 for y in following):
            continue
        before = writer.yield_of(symbols)
        if before is None or x not in writer.lexemes:
            continue
        # A longer lexeme may come of it if that lexeme is allowed there.
        instead = facts.lexer.may_become(x, writer.lexemes[x])
        if instead & (facts.reader.next_terminals(before[:-1]) | facts.grammar.ignored):
            continue
        text = facts.text(before)
        found[x] = "" if text is None else shown(text)
    return found


def stuck_after_ignored(facts: Facts, sides: Sides) -> Iterator[Finding]:
    """Ignored terminals that can begin where nothing that can come after them is allowed.

    Example: a comment where the rules take only what a comment cannot be followed by.
    """
    grammar, lexer = facts.grammar, facts.lexer
    n = grammar.n_terminals
    layout = grammar.layout
    live = lexer.live()
    avoiding = frozenset(opening for opening, _ in layout.brackets) if layout is not None else frozenset[int]()
    paths = facts.writer.paths(avoiding)
    for i in sorted(grammar.ignored):
        if i not in lexer.ends:
            continue
        may_become = 0  # terminals that its lexeme may become if more bytes follow
        for state in lexer.ends[i]:
            for terminal in live[state]:
                may_become |= 1 << terminal
        may_become |= _union(sides.after_ignored[j] for j in bits(may_become) if j in sides.after_ignored and j != i)
        # Outside brackets a newline is not ignored.
        after = _after_outside(facts, sides, i)
        examples: list[str] = []
        n_states = 0
        for state, symbols in paths.items():
            last = symbols[-1] if symbols else -1
            if last >= n or facts.acceptable[state, n] or (last >= 0 and not sides.next_to[last] >> i & 1):
                continue
            following = facts.acceptable[state, :n].nonzero()[0].tolist()
            if not following or any((after | may_become) >> y & 1 for y in following):
                continue
            n_states += 1
            before = facts.writer.yield_of(symbols)
            text = None if before is None else facts.text((*before, i))
            if text is not None and not examples:
                examples.append(shown(text))
        if n_states:
            ends = [facts.name(y) for y in bits(after) if y in facts.used]
            yield facts.finding(
                "stuck-after-ignored",
                "warning",
                facts.at_terminal(i),
                f"ignored terminal {facts.name(i)} can begin in {plural(n_states, 'parser state')} where the rules take nothing that can "
                "stand after it" + (f" (only {listed(ends)} can)" if ends else ""),
                "masks let it begin anywhere; there no token ever leads out of it",
                "make it part of the terminal that ends it (as a comment in the newline terminal), or let it end by itself",
                *examples,
            )


def _after_outside(facts: Facts, sides: Sides, i: int) -> int:
    """As bits, what can stand after an ignored terminal outside brackets.

    More ignored text may stand between. Newlines are not dropped there.
    """
    chain = reachable([i], lambda at: [j for j in facts.grammar.ignored if sides.next_to[at] >> j & 1])
    return _union(sides.next_to[j] for j in chain)


def _union(sets: Iterable[int]) -> int:
    """The union of sets that are given as bits."""
    found = 0
    for one in sets:
        found |= one
    return found
