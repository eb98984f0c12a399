"""Errors of compilation, completed with terminal, place, and the construct above a caret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from maskwright.analysis.errors import LimitError, NestingError, TerminalError
from maskwright.analysis.grammar.grammar import Grammar, Terminal
from maskwright.analysis.regex.bounds import looking_before
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.parse import Unsupported, parse
from maskwright.analysis.regex.tree import Source


def name_of(terminal: Terminal, where: str = "") -> str:
    """How messages name a terminal: ``terminal NAME at python.lark:12:1``, as far as known.

    where : the grammar file's name; "" if it is not known. Line and column are the terminal's own.
    """
    place = ":".join(str(part) for part in (where, terminal.line, terminal.column) if part)
    return f"terminal {terminal.name} at {place}" if place else f"terminal {terminal.name}"


@contextmanager
def naming(name: str, pattern: str) -> Iterator[None]:
    """A context in which errors of compilation become errors about `name`.

    name : as messages name the terminal or pattern. pattern : its source, to point into.

    Raises: TerminalError for a construct that cannot be compiled, for a syntax error of Python's
        re, and for a TerminalError from inside; NestingError and LimitError for those from inside.
    """
    try:
        yield
    except Unsupported as error:
        message = f"{name}: {error.what} cannot be compiled to an automaton: {error.remedy}"
        raise TerminalError(message + _pointer(pattern, error.source)) from error
    except re.error as error:
        source = None if error.pos is None else Source("", error.pos)
        message = f"{name}: Python's re refuses the pattern {excerpt(pattern)}: {error.msg}"
        raise TerminalError(message + _pointer(pattern, source)) from error
    except NestingError as error:
        raise NestingError(f"{name}: {error} (pattern {excerpt(pattern)}); write it flatter") from error
    except LimitError as error:
        remedy = "shorten it or its repetitions"
        raise LimitError(f"{name}: {error} (pattern {excerpt(pattern)}); {remedy}") from error
    except TerminalError as error:
        raise TerminalError(f"{name}: {error}") from error


def check_language(name: str, terminal: Terminal, dfa: Dfa) -> Dfa:
    """Returns `dfa` if a lexer can use it.

    name : as messages name the terminal.

    Raises: TerminalError if the automaton accepts nothing, or the empty string.
    """
    pattern = terminal.pattern or ""
    if dfa.is_empty:
        before = lookbehind_before_start(terminal)
        if before:
            raise TerminalError(
                f"{name}: the pattern {excerpt(pattern)} matches no text by itself: {', '.join(before)} looks at what comes before, and a "
                "terminal is matched as if the text began with it; take it out, and let the rules say what comes before"
            )
        raise TerminalError(
            f"{name}: the pattern {excerpt(pattern)} matches no text at all; correct it or remove the terminal"
        )
    if dfa.is_accepting[0]:
        raise TerminalError(
            f"{name}: the pattern {excerpt(pattern)} matches the empty string, so a lexer would not advance; "
            "require at least one character (+ instead of *) and make the terminal optional in the rules"
        )
    return dfa


def closed_newline(grammar: Grammar) -> str:
    """That the layout's newline can end too early."""
    return (
        f"grammar {grammar.name}: the layout's newline {grammar.display_name(grammar.newline)} can end where no further "
        r"line feed can continue it, so blank lines would be newlines of their own; write it as in (\r?\n[\t ]*)+"
    )


def lost_column(grammar: Grammar, terminal: int) -> str:
    """That past a terminal a newline's column may be lost."""
    return (
        f"grammar {grammar.name}: past {grammar.display_name(terminal)} the lexer may have to back up over a newline of the "
        f"layout ({grammar.display_name(grammar.newline)}), whose column would be unknown; make the terminals differ sooner"
    )


def unheld(grammar: Grammar, terminals: Sequence[int]) -> str:
    """That look-aheads of terminals are not held."""
    names = ", ".join(map(grammar.display_name, terminals[:6]))
    return (
        f"grammar {grammar.name}: look-aheads of {names} are not held where the lexer would have to back up behind a shorter lexeme, "
        "so some texts are refused, and some let in; load the grammar with lexing='longest'"
    )


def excerpt(pattern: str, width: int = 60) -> str:
    """The pattern, quoted, and cut to at most `width` characters."""
    text = repr(pattern)
    return text if len(text) <= width else text[: width - 3] + "..."


def _pointer(pattern: str, source: Source | None, width: int = 72) -> str:
    """The line of the pattern with the construct, and a caret under it; "" without a source."""
    if source is None:
        return ""
    if source.start < 0:
        return f" ({source.text})"
    line_start = pattern.rfind("\n", 0, source.start) + 1
    line = pattern[line_start:].split("\n", 1)[0]
    cut = max(0, source.start - line_start - width // 2)
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line[cut : cut + width])
    column = source.start - line_start - cut
    what = f"{source.text} at " if source.text else ""
    caret = "^" * max(1, min(len(source.text.split("\n", 1)[0]), len(shown) - column))
    return f"\n{what}character {source.start + 1} of the pattern:\n    {shown}\n    {' ' * column}{caret}"


def lookbehind_before_start(terminal: Terminal) -> tuple[str, ...]:
    r"""The look-behinds of a terminal's pattern that may look before the lexeme, in pattern order.

    The automaton of a lexeme sees the beginning of a text there, and Python's `re` the text before.
    Raises: as `parse`.

    >>> lookbehind_before_start(Terminal("A", r"^c|b(?<!ab)|ab(?<!b)|\bx|x\b"))
    ('^', '(?<!ab)', '\\b')
    """
    return tuple(looking_before(parse(terminal.pattern or "", terminal.flags)))
