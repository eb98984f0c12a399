r"""Look-behinds that may look at the text before a lexeme.

An automaton of the lexeme sees the beginning of a text there. Python's `re` sees the text before
the position where a match begins: ``^`` fails in the middle of a text, and ``b(?<!ab)`` fails
behind an ``a``.
"""

from __future__ import annotations

from maskwright.analysis.grammar.grammar import Terminal
from maskwright.analysis.regex.bounds import least
from maskwright.analysis.regex.parse import parse
from maskwright.analysis.regex.tree import Chars, Choice, Look, Node, Repeat, Sequence, children


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


def _walk(node: Node, consumed: int, found: dict[str, None]) -> None:
    """Notes in `found` the look-behinds that reach further back than the characters consumed.

    consumed : the least number of characters before the node.
    """
    if isinstance(node, Look) and not node.ahead:
        widest = _most(node.body)
        if node.source is not None and (widest is None or widest > consumed):
            found[node.source.text] = None
        return
    for child in children(node):
        _walk(child, consumed, found)
        if isinstance(node, Sequence):
            consumed += least(child).length


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
