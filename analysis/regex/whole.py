r"""From a regular expression to the automaton of the texts that it matches as a whole.

`re.fullmatch` tries all ways of matching until one takes the whole text. So lazy quantifiers are
greedy ones here, but not inside atomic groups and possessive quantifiers, where the first match is
final. Nothing follows the text: a look-ahead at its end sees nothing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from maskwright.analysis.errors import GrammarError, LimitError, NestingError, TerminalError
from maskwright.analysis.kept import Kept
from maskwright.analysis.nesting import on_own_stack
from maskwright.analysis.regex import ecma, parse, positions, rewrite
from maskwright.analysis.regex.bounds import check_least
from maskwright.analysis.regex.dfa import MAX_STATES, Dfa, difference, union
from maskwright.analysis.regex.spell import MOST_STATES_OF_LOOKS, spell
from maskwright.analysis.regex.tree import (
    Atomic,
    Chars,
    Choice,
    Look,
    Node,
    Repeat,
    Sequence,
    Source,
    rebuilt,
    sequence,
)

Dialect = Literal["python", "ecma"]


@on_own_stack
def regex_automaton(pattern: str, flags: str = "", dialect: Dialect = "python") -> Dfa:
    r"""The UTF-8 of the texts that a regular expression matches as a whole.

    pattern : as the dialect reads it: Python's `re` for texts, or ECMA 262 with the flag `u`.
    flags : letters of ``aimsux`` for Python; "" or "u" for ECMA 262.

    Raises: GrammarError for a syntax error, a bad flag, and for what no automaton reads, such as a
    back-reference; LimitError for an automaton of more than 60,000 states, or one that takes too
    many steps, and for groups that are nested too deeply.
    Cost: that of the subset construction, stopped at the limits. A pattern read lately is a
    look-up.

    Example:
        >>> regex_automaton("a+?|b").matches(b"aaa"), regex_automaton(r"\d+$").matches(b"12\n")
        (True, False)
    """
    return _automaton(pattern, flags, dialect)


@Kept
def _automaton(pattern: str, flags: str, dialect: Dialect) -> Dfa:
    """What `regex_automaton` returns."""
    shown = repr(pattern if len(pattern) <= 60 else pattern[:57] + "...")
    try:
        found = spell(_tree(pattern, flags, dialect), MAX_STATES)
        return _as_python(found, pattern, flags) if dialect == "python" else found
    except parse.Unsupported as error:
        what = f"{error.what}{_place(error.source)} cannot be compiled to an automaton: {error.remedy}"
    except ecma.PatternError as error:
        what = f"{error.what}, at offset {error.offset}"
    except re.error as error:
        what = f"Python's re refuses it: {error}"
    except TerminalError as error:
        what = str(error)
    except NestingError as error:
        raise NestingError(f"pattern {shown}: {error}; write it flatter") from None
    except LimitError as error:
        raise LimitError(f"pattern {shown}: {error}; shorten it or its repetitions") from error
    raise GrammarError(f"pattern {shown}: {what}")


def _place(source: Source | None) -> str:
    return "" if source is None or source.start < 0 else f" ({source.text} at offset {source.start})"


def _tree(pattern: str, flags: str, dialect: Dialect) -> Node:
    """The tree of a pattern, for `spell`."""
    if dialect == "ecma":
        if flags not in {"", "u"}:
            raise GrammarError(
                f"the flags {flags!r} of ECMA 262 are not known, only 'u'; write them out in the pattern"
            )
        return ecma.parse(pattern)
    if dialect != "python":
        raise GrammarError(f"the dialect {dialect!r} is not known; it is 'python' or 'ecma'")
    found = parse.parse(pattern, flags)
    check_least(found, MAX_STATES)
    tree = _without_edges(_greedy(found))
    return tree if positions.is_plain(tree) else rewrite.resolve(tree, MOST_STATES_OF_LOOKS)


def _as_python(found: Dfa, pattern: str, flags: str) -> Dfa:
    r"""The automaton with the answer of `re` for the empty text.

    Before Python 3.14, ``\B`` does not match there; all else agrees.
    """
    if r"\B" not in pattern:
        return found
    accepts = re.fullmatch(pattern, "", parse.flag_bits(flags)) is not None
    if accepts == found.matches(b""):
        return found
    return union(found, Dfa.literal(b"")) if accepts else difference(found, Dfa.literal(b""))


def _greedy(tree: Node) -> Node:
    """The tree with lazy quantifiers made greedy, but where the first match is final."""
    match tree:
        case Repeat(mode="possessive") | Atomic():
            return tree
        case Repeat(body, least, most):
            return Repeat(_greedy(body), least, most)
        case Look(body, ahead, negated):
            found = Look(_greedy(body), ahead, negated)
            return found if found in (positions.START, positions.END) else replace(found, source=tree.source)
        case _:
            return rebuilt(tree, _greedy)


def _without_edges(tree: Node) -> Node:
    """The tree without anchors at its edges that hold there whatever the text is."""
    parts = list(tree.parts if isinstance(tree, Sequence) else (tree,))
    while parts and isinstance(parts[0], Look) and _holds_at_edge(parts[0], ahead=False):
        del parts[0]
    while parts and isinstance(parts[-1], Look) and _holds_at_edge(parts[-1], ahead=True):
        del parts[-1]
    return sequence(*parts)


def _holds_at_edge(tree: Node, ahead: bool) -> bool | None:
    """Whether a tree matches the empty string at an edge of the text.

    ahead : whether the edge is the end, so that look-aheads see nothing; else it is the start.

    Returns None if it depends on the text.
    """
    match tree:
        case Chars():
            return False
        case Sequence(parts):
            found = [_holds_at_edge(part, ahead) for part in parts]
            return False if False in found else None if None in found else True
        case Choice(options):
            found = [_holds_at_edge(option, ahead) for option in options]
            return True if True in found else None if None in found else False
        case Look(body=body, negated=negated) if tree.ahead == ahead:
            inner = _holds_at_edge(body, ahead)
            return None if inner is None else inner != negated
        case _:
            return None


@Kept
def without(excluded: tuple[str, ...]) -> Dfa:
    """The texts that hold none of some strings."""
    everything = regex_automaton(r"[\s\S]*")
    if not excluded:
        return everything
    holding = regex_automaton(f"[\\s\\S]*(?:{'|'.join(map(re.escape, excluded))})[\\s\\S]*")
    return difference(everything, holding)
