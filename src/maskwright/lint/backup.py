"""Lexers that have to back up: how far, and over what."""

from __future__ import annotations

from collections.abc import Iterator

from maskwright.analysis.errors import BackupError, GrammarError, LimitError
from maskwright.analysis.lexing.encoding import Transducer
from maskwright.analysis.lexing.lexemes import check_literals
from maskwright.analysis.lexing.transducer import STATE_LIMIT
from maskwright.lint.facts import Facts
from maskwright.lint.finding import NO_STORE, Finding, listed

MANY_LEXEMES = 2
"""Backing up over more lexemes than this is reported."""
MANY_BYTES = 8
"""Backing up over more bytes than this is reported."""


def backing_up(facts: Facts) -> Iterator[Finding]:
    """Findings on backing up: no bound on how far the lexer backs up, or a large one.

    The transducer is built for this. Literals are counted first. If a grammar has too many of them,
    lint refuses to make the parser's tables and would not come to the transducer.

    Raises: LimitError and GrammarError as `check_literals` and `Facts.modes`.
    """
    grammar = facts.grammar
    check_literals(grammar, STATE_LIMIT)
    _ = facts.modes  # compute these first: their errors are not the transducer's
    try:
        yield from _long(facts, facts.transducer)
    except LimitError as error:
        # Two terminals may differ too late. The finding is placed at the one that goes on.
        code, at = (
            ("endless-backup", [-1, *error.terminals[:2]][-1]) if isinstance(error, BackupError) else ("too-large", -1)
        )
        remedy = "make these terminals differ sooner, or let the rules build what only the longer one can spell"
        if grammar.lexing == "longest" and len(facts.modes) == 1:
            remedy += "; lexing='contextual' helps where no parser state accepts both"
        yield facts.finding(code, "error", at, facts.without_name(error), NO_STORE, remedy)
    except GrammarError as error:
        remedy = r"write the newline as in (\r?\n[\t ]*)+, and let no other terminal go on past it"
        yield facts.finding("layout-newline", "error", grammar.newline, facts.without_name(error), NO_STORE, remedy)


def _long(facts: Facts, transducer: Transducer) -> Iterator[Finding]:
    """For each terminal how much is read again when a longer lexeme fails, if it is much."""
    lexemes = [0] * transducer.n_states
    most: dict[int, tuple[int, int, int]] = {}  # terminal -> lexemes, bytes, state
    for state, fallback in enumerate(transducer.fallback):
        if fallback < 0:
            continue
        if (reread := transducer.reread[state]) is not None:
            # The state after reading again has a lower number, so its count is known.
            lexemes[state] = len(reread[0]) + 1 + lexemes[reread[1]]
        found = lexemes[state], len(transducer.pending[state]), state
        most[fallback] = max(most.get(fallback, (0, 0, 0)), found)
    for terminal, (n_lexemes, n_bytes, state) in sorted(most.items()):
        if n_lexemes <= MANY_LEXEMES and n_bytes <= MANY_BYTES:
            continue
        alive = listed([facts.name(t) for t in transducer.live[state]])
        how_far = f"{n_bytes} bytes" if n_bytes else f"{n_lexemes} lexemes"
        message = f"past {facts.name(terminal)} the lexer may read up to {how_far} of what could become {alive}, then have to back up"
        decoding = "masks are exact all the same; the lexer and the store have states for each such case"
        remedy = "make these terminals differ sooner"
        yield facts.finding("long-backup", "info", terminal, message, decoding, remedy)


def newline_without_line_feed(facts: Facts) -> Iterator[Finding]:
    """Whether the layout's newline matches texts without a line feed. These have no column."""
    layout = facts.grammar.layout
    example = facts.no_newline
    if layout is not None and example is not None:
        message = f"the layout's newline {facts.name(layout.newline)} also matches texts without a line feed, which have no column"
        decoding = "such a text is not a newline: another terminal must match it and end before a line feed makes it one, or it is refused"
        remedy = (
            r"let the newline end in a line feed and blanks, (comment? \r?\n blanks)+, and let a text end in a newline"
        )
        yield facts.finding("newline-without-line-feed", "info", layout.newline, message, decoding, remedy, example)
