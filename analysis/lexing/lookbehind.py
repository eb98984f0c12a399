r"""Look-behinds that may look at the text before a lexeme.

An automaton of the lexeme sees the beginning of a text there. Python's `re` sees the text before
the position where a match begins: ``^`` fails in the middle of a text, and ``b(?<!ab)`` fails
behind an ``a``.
"""

from __future__ import annotations

from maskwright.analysis.grammar.grammar import Terminal
from maskwright.analysis.regex.parse import parse
from maskwright.analysis.regex.tree import Atomic, Chars, Choice, Look, Node, Repeat, Sequence, children


def lookbehind_before_start(terminal: Terminal) -> tuple[str, ...]:
    r"""The look-behinds of a terminal's pattern that may look before the lexeme, in pattern order.

    An empty tuple is a proof that none does.

    Raises: as `parse`.

    >>> lookbehind_before_start(Terminal("A", r"^c|b(?<!ab)|ab(?<!b)|\bx|x\b"))
    ('^', '(?<!ab)', '\\b')
    """
    found: dict[str, None] = {}
    _walk(parse(terminal.pattern or "", terminal.flags), 0, found)
    return tuple(found)


def _walk(node: Node, consumed: int, found: dict[str, None]) -> int:
    """Notes in `found` the look-behinds that reach further back than the characters consumed.

    consumed : the least number of characters before the node. Returns that number after the node.
    """
    match node:
        case Chars():
            return consumed + 1
        case Sequence(parts):
            for part in parts:
                consumed = _walk(part, consumed, found)
            return consumed
        case Choice(options):
            return min((_walk(option, consumed, found) for option in options), default=consumed)
        case Repeat(body=body, least=least):
            after = _walk(body, consumed, found)
            return consumed + least * (after - consumed)
        case Atomic(body=body):
            return _walk(body, consumed, found)
        case Look(body=body, ahead=ahead, source=source):
            if ahead:
                _walk(body, consumed, found)
                return consumed
            widest = _most(body)
            if source is not None and (widest is None or widest > consumed):
                found[source.text] = None
            return consumed


def _most(node: Node) -> int | None:
    """The most characters that a node consumes; None for any number."""
    if isinstance(node, Chars):
        return 1
    if isinstance(node, Look):
        return 0
    each = [_most(child) for child in children(node)]
    if isinstance(node, Repeat) and each[0] != 0:
        return None if node.most is None or each[0] is None else node.most * each[0]
    if any(width is None for width in each):
        return None
    widths = [width or 0 for width in each]
    return max(widths, default=0) if isinstance(node, Choice) else sum(widths)
