"""Intersections and differences of regular expressions, as expressions again.

In: the patterns of two expressions. Out: an `Expr` of the texts of both, or of the first but not
the second. The automata read characters; states are eliminated one by one.

Source: Hopcroft, Motwani, Ullman, Introduction to Automata Theory, section 3.2.2.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError
from maskwright.analysis.fronts.expressions import (
    EMPTY,
    NEVER,
    Expr,
    characters,
    choice,
    from_tree,
    repetition,
    sequence,
)
from maskwright.analysis.kept import Kept
from maskwright.analysis.lexing.messages import excerpt, naming
from maskwright.analysis.lexing.terminals import compile_pattern
from maskwright.analysis.regex.charset import EVERYTHING, LAST
from maskwright.analysis.regex.determinise import determinise
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.parse import parse
from maskwright.analysis.regex.positions import ClassRows, is_plain
from maskwright.analysis.regex.rewrite import resolve
from maskwright.analysis.regex.spell import spell

MAX_STATES = 2_000
"""The most states of an automaton."""
MAX_SIZE = 20_000
"""The most positions of an expression that is made."""


def automaton_of(expr: Expr, max_states: int) -> Dfa:
    """The byte automaton of a regular expression.

    Raises: LimitError as `compile_pattern`.
    """
    return Dfa.literal(expr.text.encode()) if expr.text is not None else _of_pattern(str(expr.pattern), max_states)


@Kept
def _of_pattern(pattern: str, max_states: int) -> Dfa:
    """What `compile_pattern` returns.

    PERF: `spell` takes a tenth of its time; it reads patterns that look around at nothing.
    """
    with naming(f"pattern {excerpt(pattern)}", pattern):
        tree = parse(pattern)
        if is_plain(tree):
            return spell(tree, max_states)
    return compile_pattern(pattern, max_states=max_states)


def in_both(left: Expr, right: Expr) -> Expr:
    """The texts that two regular expressions have in common.

    Raises: LimitError if an automaton has more than MAX_STATES states, or the result is too large.
    """
    return _product(_determinised(left), _determinised(right))


def without(left: Expr, right: Expr) -> Expr:
    """The texts of one regular expression that another has not.

    Raises: as `in_both`.
    """
    return _product(_determinised(left), _determinised(right), is_difference=True)


def from_pattern(pattern: str, flags: str = "") -> Expr:
    """The expression of a pattern of Python's `re`, by its automaton where it looks around.

    Its texts are those of `lexing.terminals.compile_pattern`.

    Raises: TerminalError, LimitError and `re.error` as the parts of that.
    """
    with naming(f"pattern {excerpt(pattern)}", pattern):
        tree = resolve(parse(pattern, flags), MAX_STATES)
        plain = from_tree(tree)
        if plain is not None:
            return plain
        return _product(determinise(tree, MAX_STATES)[0], _determinised(repetition(characters(EVERYTHING), 0, None)))


def _determinised(expr: Expr) -> ClassRows:
    return determinise(resolve(parse(str(expr.pattern)), MAX_STATES), MAX_STATES)[0]


def _product(first: ClassRows, second: ClassRows, is_difference: bool = False) -> Expr:
    """The texts that both automata accept, or the first but not the second."""
    bounds = sorted({*first.bounds, *second.bounds})
    spans: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for low, after in pairwise([*bounds, LAST + 1]):
        column = _column(first, low), _column(second, low)
        if min(column) >= 0:  # not the surrogates
            spans.setdefault(column, []).append((low, after - 1))
    edges: list[dict[int, list[tuple[int, int]]]] = []
    accepting: list[bool] = []
    start = (0, 0)
    agenda = [start]
    number = {start: 0}
    for one, other in agenda:  # grows while it is read
        look()
        row: dict[int, list[tuple[int, int]]] = {}
        for (c, d), pairs in spans.items():
            target = first.rows[one][c], second.rows[other][d] if other >= 0 else -1
            if target[0] < 0 or (target[1] < 0 and not is_difference):
                continue
            if target not in number:
                number[target] = len(number)
                agenda.append(target)
            row.setdefault(number[target], []).extend(pairs)
        edges.append(row)
        accepts = other >= 0 and second.is_accepting[other]
        accepting.append(first.is_accepting[one] and accepts != is_difference)
        if len(number) > MAX_STATES:
            raise LimitError(f"the automaton of & and ~ has more than {MAX_STATES} states; make its patterns smaller")
    return eliminated([{to: characters(pairs) for to, pairs in row.items()} for row in edges], accepting)


def _column(dfa: ClassRows, code: int) -> int:
    return dfa.class_of[bisect_right(dfa.bounds, code) - 1]


def eliminated(edges: list[dict[int, Expr]], accepting: list[bool]) -> Expr:
    """The expression of an automaton whose edges have expressions; state 0 is initial.

    The states with the fewest ways through them are eliminated first.

    Raises: LimitError if the result is larger than MAX_SIZE.
    """
    n = len(edges)
    initial, final = n, n + 1
    after: list[dict[int, Expr]] = [*(dict(row) for row in edges), {0: EMPTY}, {}]
    for state in range(n):
        if accepting[state]:
            after[state][final] = EMPTY
    before: list[set[int]] = [set() for _ in after]
    for state, row in enumerate(after):
        for target in row:
            before[target].add(state)
    left = set(range(n))
    while left:
        look()
        state = min(left, key=lambda s: (len(before[s]) * len(after[s]), s))
        left.discard(state)
        loop = repetition(after[state].pop(state, NEVER), 0, None)
        sources = sorted(before[state] - {state})
        for source in sources:
            into = after[source].pop(state)
            for target, out in sorted(after[state].items()):
                way = sequence((into, loop, out))
                known = after[source].get(target)
                after[source][target] = way if known is None else choice((known, way))
                before[target].add(source)
                if after[source][target].size > MAX_SIZE:
                    raise LimitError(
                        f"the pattern that & and ~ make has more than {MAX_SIZE} positions; make them smaller"
                    )
        for target in after[state]:
            before[target].discard(state)
    return after[initial].get(final, NEVER)
