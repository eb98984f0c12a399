"""What Lark would expand without end, measured before it is compiled."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from lark import Tree
from lark.load_grammar import REPEAT_BREAK_THRESHOLD, SMALL_FACTOR_THRESHOLD
from lark.load_grammar import Grammar as LarkGrammar

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import INT32
from maskwright.analysis.grammar.lark_files import (
    MAX_PATTERN_SIZE,
    MAX_RULE_SIZE,
    MAX_TEMPLATE_CALLS,
    TERMINAL_GROWS,
    GrammarFiles,
)


def check_sizes(builder: LarkGrammar, files: GrammarFiles) -> None:
    """Raises LimitError for what Lark would expand past a limit, GrammarError for a rule without a body."""
    memo: dict[int, int] = {}
    for name, (tree, priority) in builder.term_defs:
        if priority not in INT32:
            raise files.error(f"the priority {priority} of terminal {name} is not a 32-bit number", name)
        if tree is not None and _pattern_size(tree, memo) > MAX_PATTERN_SIZE:
            raise files.error(TERMINAL_GROWS.format(name), name, kind=LimitError)
    for name, _, tree, _ in builder.rule_defs:
        if tree is None:
            raise files.error(f"%declare names the rule {str(name)!r}; only terminals can be declared", name)
        if max(_bnf_size(tree)) > MAX_RULE_SIZE:
            what = f"rule {str(name)!r} grows past {MAX_RULE_SIZE:,} symbols once its groups, [], ? and ~ are multiplied out"
            raise files.error(f"{what}; give these parts rules of their own", name, kind=LimitError)
    endless = _endless_template(builder)
    if endless is not None:
        what = f"the calls of template {endless!r} do not come to an end within {MAX_TEMPLATE_CALLS:,} calls"
        raise files.error(f"{what}; does it call itself with a template as argument?", endless, kind=LimitError)


def _pattern_size(tree: Any, memo: dict[int, int]) -> int:
    """Characters of a terminal's pattern, at least; trees are shared, so each is measured once."""
    if not isinstance(tree, Tree):
        return len(tree) if isinstance(tree, str) else 1
    if id(tree) not in memo:
        size = 1 + sum(_pattern_size(child, memo) for child in tree.children)
        if tree.data == "expr" and tree.children[1] == "~":
            size *= max(1, int(str(tree.children[-1])))
        memo[id(tree)] = size
    return memo[id(tree)]


def _bnf_size(tree: Any) -> tuple[int, int]:
    """(alternatives, symbols in all of them) of what Lark makes of a rule's tree; past the limit just too large numbers.

    Lark multiplies groups out, copies what ``~`` repeats, and gives what ``+`` and ``*`` repeat a helper rule.
    """
    if not isinstance(tree, Tree) or tree.data == "value":
        return 1, 1
    inner = [_bnf_size(child) for child in tree.children if isinstance(child, Tree)]
    largest = max((size for part in inner for size in part), default=0)
    if largest > MAX_RULE_SIZE:
        return 1, largest
    if tree.data == "expansion":
        return functools.reduce(_concatenated, inner, (1, 0))
    if tree.data == "maybe":
        return inner[0][0] + 1, inner[0][1]
    if tree.data != "expr":
        return sum(part[0] for part in inner), sum(part[1] for part in inner)
    operator, body = str(tree.children[1]), inner[0]
    if operator in "+*":  # a helper rule: `inner`, and the helper before `inner`
        return (1, 1) if 2 * (body[0] + body[1]) <= MAX_RULE_SIZE else (1, 2 * (body[0] + body[1]))
    if operator == "?":
        return body[0] + 1, body[1]
    low, high = max(0, int(str(tree.children[2]))), int(str(tree.children[-1]))
    if high >= REPEAT_BREAK_THRESHOLD:  # helper rules of at most SMALL_FACTOR_THRESHOLD copies each
        return functools.reduce(_concatenated, [body] * SMALL_FACTOR_THRESHOLD, (1, 0))
    copies = [functools.reduce(_concatenated, [body] * n, (1, 0)) for n in range(low, high + 1)]
    return sum(part[0] for part in copies), sum(part[1] for part in copies)


def _concatenated(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    cap = MAX_RULE_SIZE + 1
    return min(cap, left[0] * right[0]), min(cap, left[1] * right[0] + left[0] * right[1])


def _endless_template(builder: LarkGrammar) -> str | None:
    """A template whose calls do not come to an end, found by carrying out all calls by name."""
    templates = {name: (params, tree) for name, params, tree, _ in builder.rule_defs if params}
    seen: set[str] = set()
    agenda: list[tuple[Any, dict[str, str]]] = [(tree, {}) for _, params, tree, _ in builder.rule_defs if not params]

    def called(node: Any, bound: Mapping[str, str]) -> str:
        """The full name of an argument or call; a new call goes on the agenda."""
        while isinstance(node, Tree) and node.data == "value":
            node = node.children[0]
        if not isinstance(node, Tree):
            return bound.get(node.name, node.name)
        if node.data != "template_usage":
            return str(node.children)
        template, *arguments = (called(child, bound) for child in node.children)
        full = f"{template}{{{','.join(arguments)}}}"
        if full not in seen:
            seen.add(full)
            params, tree = templates.get(template, ((), None))
            if tree is not None:
                agenda.append((tree, dict(zip(params, arguments, strict=False))))
        return full

    while agenda:
        tree, bound = agenda.pop()
        for usage in tree.find_data("template_usage"):
            full = called(usage, bound)
            if len(seen) > MAX_TEMPLATE_CALLS or len(full) > MAX_TEMPLATE_CALLS:
                return full.partition("{")[0]
    return None
