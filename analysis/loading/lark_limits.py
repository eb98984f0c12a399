"""What Lark would expand without end, measured before Lark compiles it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lark import Tree
from lark.grammar import NonTerminal
from lark.load_grammar import REPEAT_BREAK_THRESHOLD, SMALL_FACTOR_THRESHOLD
from lark.load_grammar import Grammar as LarkGrammar

from maskwright.analysis.errors import LimitError, NestingError
from maskwright.analysis.grammar.grammar import INT32
from maskwright.analysis.grammar.lark_files import (
    MAX_GROWN_SIZE,
    MAX_PATTERN_SIZE,
    MAX_RULE_SIZE,
    MAX_TEMPLATE_CALLS,
    TERMINAL_GROWS,
    GrammarFiles,
)
from maskwright.analysis.nesting import MOST_NESTED

_GROWS = 10
"""A rule that grows by this factor or less is in proportion to the text.

The factor compares what Lark makes of a rule with the symbols that are written.
"""


_MOST = 1 << 40
"""Sizes are not counted further."""
_SMALL = 1_000
"""Where all rules together grow too much, those that grow to more symbols are split."""


def check_sizes(builder: LarkGrammar, files: GrammarFiles) -> None:
    """Raises an error if Lark would expand a text past a limit.

    builder : Lark's grammar, before it is compiled.
    files : its texts, for places in messages.

    Raises: LimitError if a terminal, a rule, all rules together or the calls of templates grow past
    a limit of `lark_files`; NestingError for groups too deep inside one another; GrammarError for a
    declared rule, and for a terminal's priority that is not a 32-bit number.
    """
    memo: dict[int, int] = {}
    nested: dict[int, int] = {}
    for name, (tree, priority) in builder.term_defs:
        if priority not in INT32:
            raise files.error(f"the priority {priority} of terminal {name} is not a 32-bit number", name)
        if tree is not None and _nesting(tree, nested) > MOST_NESTED:
            what = f"terminal {name}, with those in it, has groups nested more than {MOST_NESTED} deep"
            raise files.error(f"{what}; write it flatter", name, kind=NestingError)
        if tree is not None and _pattern_size(tree, memo) > MAX_PATTERN_SIZE:
            raise files.error(TERMINAL_GROWS.format(name), name, kind=LimitError)
    grown = 0
    for name, params, tree, _ in builder.rule_defs:
        if tree is None:
            raise files.error(f"%declare names the rule {str(name)!r}; only terminals can be declared", name)
        if params and _nesting(tree, nested) > MOST_NESTED // 2:  # Lark copies it, by recursion
            what = f"template {str(name)!r} has groups nested more than {MOST_NESTED // 2} deep"
            raise files.error(f"{what}; give the inner ones rules of their own", name, kind=NestingError)
        sizes = _bnf_sizes(tree)
        if max(size.largest for size in sizes) > MAX_RULE_SIZE:  # of a template, or as it is written
            what = f"rule {str(name)!r} grows past {MAX_RULE_SIZE:,} symbols once its groups, [], ? and ~ are multiplied out"
            raise files.error(f"{what}; give these parts rules of their own", name, kind=LimitError)
        grown += _grown(sizes)
        if grown > MAX_GROWN_SIZE:
            what = f"the rules up to {str(name)!r} grow past {MAX_GROWN_SIZE:,} symbols in all once groups, [], ? and ~ are multiplied out"
            raise files.error(f"{what}; give these parts rules of their own", name, kind=LimitError)
    endless = _endless_template(builder)
    if endless is not None:
        what = f"the calls of template {endless!r} do not end within {MAX_TEMPLATE_CALLS:,} calls"
        raise files.error(f"{what}; does it call itself with a template as an argument?", endless, kind=LimitError)


def split_large(builder: LarkGrammar) -> None:
    """Give parts of rules that would grow past a limit rules of their own: so nothing multiplies.

    builder : Lark's grammar, before it is compiled; changed. Templates stay as they are.
    """
    sizes = [0 if tree is None else _grown(_bnf_sizes(tree)) for _, _, tree, _ in builder.rule_defs]
    most = MAX_RULE_SIZE if sum(sizes) <= MAX_GROWN_SIZE else _SMALL
    for size_of_rule, (name, params, tree, options) in zip(sizes, builder.rule_defs.copy(), strict=True):
        if params or size_of_rule <= most:
            continue
        parts: list[Tree[Any]] = []
        known: dict[int, _Size] = {}
        for one in _bottom_up(tree, known):
            data = str(one.data)
            multiplies = len(one.children) > 1 if data == "expansion" else data == "expr" and one.children[1] == "~"
            for k, child in enumerate(one.children if multiplies else ()):
                size = known[id(child)] if isinstance(child, Tree) else _ONE
                if size.alternatives > 1 or (data == "expr" and size != _ONE):
                    parts.append(Tree("expansions", [Tree("expansion", [child])]))
                    one.children[k] = Tree("value", [NonTerminal(f"__{name}_part_{len(parts) - 1}")])
                    known[id(one.children[k])] = _ONE
            inner = [] if data == "value" else [known[id(child)] for child in one.children if isinstance(child, Tree)]
            known[id(one)] = _bnf_size(one, data, inner, [])
        builder.rule_defs += [(f"__{name}_part_{n}", (), part, options) for n, part in enumerate(parts)]


def _grown(sizes: Iterable[_Size]) -> int:
    """The symbols of those rules that grow out of proportion. sizes : as of `_bnf_sizes`."""
    return sum(size.largest for size in sizes if size.largest > _GROWS * size.written)


def literals_used(builder: LarkGrammar, start: str) -> set[str]:
    """String literals that the rules certainly use: those without escapes and flags.

    builder : Lark's grammar, before it is compiled.

    None are known of a grammar with templates, which need not use their arguments.
    """
    if any(params for _, params, _, _ in builder.rule_defs):
        return set()
    trees = {str(name): tree for name, _, tree, _ in builder.rule_defs}
    found: set[str] = set()
    seen = {start}
    agenda: list[Any] = [trees[start]]
    while agenda:
        node = agenda.pop()
        if isinstance(node, NonTerminal) and node.name not in seen:
            seen.add(node.name)
            agenda.append(trees.get(node.name))
        elif isinstance(node, Tree) and node.data == "literal":
            text = str(node.children[0])
            if text.startswith('"') and text.endswith('"') and "\\" not in text:
                found.add(text[1:-1])
        elif isinstance(node, Tree):
            is_dropped = node.data == "expr" and node.children[1] == "~" and int(str(node.children[-1])) == 0
            agenda += [] if is_dropped else node.children
    return found


def _pattern_size(tree: Tree[Any], memo: dict[int, int]) -> int:
    """A lower bound on the characters of a terminal's pattern.

    Trees are shared, so each is measured once.

    memo : sizes by id of the tree; changed.
    """
    for one in _bottom_up(tree, memo):
        size = 1
        for child in one.children:
            size += memo[id(child)] if isinstance(child, Tree) else len(child) if isinstance(child, str) else 1
        if one.data == "expr" and one.children[1] == "~":
            size *= max(1, int(str(one.children[-1])))
        memo[id(one)] = size
    return memo[id(tree)]


def _nesting(tree: Tree[Any], memo: dict[int, int]) -> int:
    """How many groups, templates' arguments or terminals stand inside one another in a tree.

    memo : as for `_pattern_size`.
    """
    for one in _bottom_up(tree, memo):
        inside = max((memo[id(child)] for child in one.children if isinstance(child, Tree)), default=0)
        memo[id(one)] = inside + (one.data in ("expansions", "template_usage"))
    return memo[id(tree)] - 1


def _bottom_up(tree: Tree[Any], known: Mapping[int, object]) -> Iterator[Tree[Any]]:
    """The subtrees whose ids are not known, each behind those in it. The caller notes them."""
    todo = [tree]
    while todo:
        inside = [child for child in todo[-1].children if isinstance(child, Tree) and id(child) not in known]
        if inside:
            todo += inside
            continue
        one = todo.pop()
        if id(one) not in known:
            yield one


class _Size(NamedTuple):
    """The size of what Lark makes of a part of a rule; from _MOST on only known to be as large.

    alternatives : alternatives of the part.
    symbols : symbols of all alternatives together.
    written : symbols that stand in the part itself.
    """

    alternatives: int
    symbols: int
    written: int

    @property
    def largest(self) -> int:
        return max(self.alternatives, self.symbols)


def _bnf_sizes(tree: Tree[Any]) -> list[_Size]:
    """The sizes of the rules that Lark makes of a rule's tree: of helper rules, and of itself.

    Lark multiplies groups out, copies what ``~`` repeats, and gives what ``+`` and ``*`` repeat a
    helper rule.
    """
    found: list[_Size] = []
    known: dict[int, _Size] = {}
    for one in _bottom_up(tree, known):
        # PERF: Lark compares its tokens in Python
        data = str(one.data)
        inner = [] if data == "value" else [known[id(child)] for child in one.children if isinstance(child, Tree)]
        known[id(one)] = _bnf_size(one, data, inner, found)
    return [*found, known[id(tree)]]


def _bnf_size(tree: Tree[Any], data: str, inner: list[_Size], helpers: list[_Size]) -> _Size:
    """The size of what stands for a part of a rule.

    data : the tree's kind. inner : the sizes of its children.
    helpers : the sizes of helper rules; appended to.
    """
    if data == "value":
        return _ONE
    n = len(inner)
    if data == "expansion" and inner.count(_ONE) == n:  # PERF: as most are
        return _Size(1, n, n)
    written = sum(part.written for part in inner)
    largest = max((part.largest for part in inner), default=0)
    if largest >= _MOST:
        return _Size(1, largest, written)
    if data == "expansion":
        return functools.reduce(_concatenated, inner, _NOTHING)._replace(written=written)
    if data == "maybe":
        return inner[0]._replace(alternatives=inner[0].alternatives + 1)
    if data != "expr":
        return _either(inner)._replace(written=written)
    operator, body = str(tree.children[1]), inner[0]
    if operator == "?":
        return body._replace(alternatives=body.alternatives + 1)
    if operator in "+*":  # a helper rule, h : inner | h inner; `*` uses h or nothing
        helper = _Size(0, 2 * (body.alternatives + body.symbols), written)
        used = _Size(1 + (operator == "*"), 1, written)
    else:
        low, high = max(0, int(str(tree.children[2]))), int(str(tree.children[-1]))
        if high < REPEAT_BREAK_THRESHOLD:
            return _either([_copies(body, n) for n in range(low, high + 1)])._replace(written=written)
        # helper rules of at most SMALL_FACTOR_THRESHOLD copies each, two of which stand here
        helper, used = _copies(body, SMALL_FACTOR_THRESHOLD)._replace(written=written), _Size(1, 2, written)
    helpers.append(helper)
    return used


_NOTHING = _Size(1, 0, 0)
_ONE = _Size(1, 1, 1)


def _copies(body: _Size, n: int) -> _Size:
    """The size of n copies of a part, one after the other."""
    return functools.reduce(_concatenated, [body] * n, _NOTHING)


def _concatenated(left: _Size, right: _Size) -> _Size:
    """The size of two parts, one after the other."""
    symbols = left.symbols * right.alternatives + left.alternatives * right.symbols
    alternatives = min(_MOST, left.alternatives * right.alternatives)
    return _Size(alternatives, min(_MOST, symbols), left.written + right.written)


def _either(parts: Sequence[_Size]) -> _Size:
    """The size of a choice between parts."""
    return _Size(sum(part.alternatives for part in parts), sum(part.symbols for part in parts), 0)


def _endless_template(builder: LarkGrammar) -> str | None:
    """A template whose calls do not end, found by carrying them out by name; or None."""
    templates = {name: (params, tree) for name, params, tree, _ in builder.rule_defs if params}
    if not templates:
        return None
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
