r"""Expressions: what stands on the right of a rule in the grammar languages of other engines.

An `Expr` is a character class, a sequence, a choice, a repetition, or a reference to a rule. An
expression without references is *regular*: it knows a pattern for Python's `re` of the same texts.
The functions that make expressions simplify what can match nothing, so that NEVER is never a part
of another expression. Intersections and differences of regular ones are expressions again: their
automata read characters, whose states are eliminated one by one.

Source: Hopcroft, Motwani, Ullman, Introduction to Automata Theory, section 3.2.2.

>>> digit = characters(((48, 57),))
>>> repetition(choice([digit, literal("x.")]), 1, None).pattern
'(?:[0-9]|x\\.)+'
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError
from maskwright.analysis.graphs import reachable
from maskwright.analysis.lexing.messages import excerpt, naming
from maskwright.analysis.lexing.terminals import compile_pattern
from maskwright.analysis.regex.charset import EVERYTHING, LAST, Ranges, normalise
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.machine import determinise
from maskwright.analysis.regex.parse import parse
from maskwright.analysis.regex.positions import ClassRows
from maskwright.analysis.regex.rewrite import resolve
from maskwright.analysis.regex.tree import Chars, Choice, Node, Repeat, Sequence, children

Kind = Literal["class", "sequence", "choice", "repeat", "reference"]

_PLAIN = re.compile(r"[A-Za-z0-9_]")


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """One expression; equality is identity.

    kind : what it is. "sequence" with no parts matches the empty text, "choice" with none nothing.
    ranges : of a class, its characters. parts : of a sequence or choice; of a repetition its body.
    least, most : of a repetition; most None for any number.
    name, offset : of a reference, the rule and the place of its name in the text.
    pattern : source text for `re` without flags; None if the expression is not regular.
    is_nullable : whether a regular expression matches the empty text; False for others.
    size : positions of an automaton, with copies of repetitions.
    depth : how deeply expressions are nested.
    """

    kind: Kind
    ranges: Ranges = ()
    parts: tuple[Expr, ...] = ()
    least: int = 1
    most: int | None = 1
    name: str = ""
    offset: int = 0
    pattern: str | None = None
    is_nullable: bool = False
    size: int = 1
    depth: int = 1

    @property
    def is_regular(self) -> bool:
        """Whether no reference to a rule occurs in it."""
        return self.pattern is not None

    @property
    def is_never(self) -> bool:
        """Whether it was made as an expression that matches nothing."""
        return self.kind == "choice" and not self.parts

    @property
    def text(self) -> str | None:
        """The one text that a class or a sequence of classes matches; None if it is not one."""
        parts = self.parts if self.kind == "sequence" else (self,)
        found = []
        for part in parts:
            if part.kind != "class" or len(part.ranges) != 1 or part.ranges[0][0] != part.ranges[0][1]:
                return None
            found.append(chr(part.ranges[0][0]))
        return "".join(found)


EMPTY = Expr("sequence", pattern="", is_nullable=True, size=0)
NEVER = Expr("choice", pattern=r"[^\s\S]")


def characters(ranges: Iterable[tuple[int, int]]) -> Expr:
    """One character of a set. Surrogates are dropped, because no text in UTF-8 has them.

    ranges : inclusive ranges of code points in any order.
    """
    found = normalise(ranges)
    return Expr("class", ranges=found, pattern=class_pattern(found)) if found else NEVER


@lru_cache(maxsize=4096)
def _character(letter: str) -> Expr:
    """One character, which is the same object each time: texts are long and letters few."""
    return characters(((ord(letter), ord(letter)),))


def literal(text: str) -> Expr:
    """A text, character by character; a unit in a sequence."""
    if not text:
        return EMPTY
    parts = tuple(map(_character, text))
    return parts[0] if len(parts) == 1 else Expr("sequence", parts=parts, pattern=re.escape(text), size=len(parts))


def reference(name: str, offset: int) -> Expr:
    """What a rule matches. offset : where the name stands in the text."""
    return Expr("reference", name=name, offset=offset)


def sequence(parts: Iterable[Expr]) -> Expr:
    """The parts one after the other; sequences in it stay units."""
    kept = tuple(part for part in parts if part is not EMPTY)
    if any(part.is_never for part in kept):
        return NEVER
    if len(kept) < 2:
        return kept[0] if kept else EMPTY
    pattern = "".join(_in_sequence(part) for part in kept) if all(part.is_regular for part in kept) else None
    return _made("sequence", kept, pattern, all(part.is_nullable for part in kept), sum(part.size for part in kept))


def _made(kind: Kind, parts: tuple[Expr, ...], pattern: str | None, is_nullable: bool, size: int) -> Expr:
    """An expression of parts. is_nullable : counts if it is regular, which its pattern says."""
    depth = 1 + max(part.depth for part in parts)
    return Expr(
        kind, (), parts, pattern=pattern, is_nullable=pattern is not None and is_nullable, size=size, depth=depth
    )


def choice(options: Iterable[Expr]) -> Expr:
    """One of the options. Classes among them become one class; choices among them are joined."""
    flat: list[Expr] = []
    for option in options:
        flat += option.parts if option.kind == "choice" else (option,)
    classes = [option for option in flat if option.kind == "class"]
    if len(classes) > 1:
        merged = characters([pair for option in classes for pair in option.ranges])
        at = flat.index(classes[0])
        flat = [merged if i == at else option for i, option in enumerate(flat) if i == at or option.kind != "class"]
    kept: dict[object, Expr] = {}
    for option in flat:
        kept.setdefault(option if option.pattern is None else option.pattern, option)
    parts = tuple(kept.values())
    if len(parts) < 2:
        return parts[0] if parts else NEVER
    pattern = "|".join(str(part.pattern) for part in parts) if all(part.is_regular for part in parts) else None
    return _made(
        "choice", parts, pattern, any(part.is_nullable for part in parts), 1 + sum(part.size for part in parts)
    )


def repetition(body: Expr, least: int, most: int | None) -> Expr:
    """`least` to `most` times the body; most None: any number."""
    if body is EMPTY or most == 0:
        return EMPTY
    if body.is_never:
        return EMPTY if least == 0 else NEVER
    if least == most == 1:
        return body
    if body.kind == "repeat":
        one, a, b = body.parts[0], body.least, body.most
        fewest = max(least, 1)
        has_no_gap = most == fewest or b is None or (fewest + 1) * a <= fewest * b + 1  # to one copy more
        if has_no_gap and (least > 0 or a <= 1):  # else each copy counts, or reads in many ways
            return repetition(one, least * a, None if most is None or b is None else most * b)
    pattern = None
    if body.is_regular:
        count = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
        if count is None:
            count = f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
        pattern = _as_unit(body) + count
    size = 1 + (body.size + 1) * max(least if most is None else most, 1)
    made = _made("repeat", (body,), pattern, least == 0 or body.is_nullable, size)
    return replace(made, least=least, most=most)


def non_empty(expr: Expr) -> Expr:
    """The texts of a regular expression but the empty one.

    Returns NEVER if there is no other text. Cost: quadratic in sequences whose parts may all be
    empty.
    """
    if not expr.is_nullable:
        return expr
    if expr.kind == "sequence":
        return choice(sequence((non_empty(part), *expr.parts[i + 1 :])) for i, part in enumerate(expr.parts))
    if expr.kind == "choice":
        return choice(non_empty(part) for part in expr.parts)
    body = expr.parts[0]
    return repetition(non_empty(body), 1 if body.is_nullable else max(expr.least, 1), expr.most)


def from_tree(tree: Node) -> Expr | None:
    """The expression of a pattern's tree; None if something in it looks around."""
    if isinstance(tree, Chars):
        return characters(tree.ranges)
    if not isinstance(tree, Sequence | Choice | Repeat):
        return None
    parts = [from_tree(part) for part in children(tree)]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts) or (isinstance(tree, Repeat) and tree.mode != "greedy"):
        return None
    if isinstance(tree, Repeat):
        return repetition(found[0], tree.least, tree.most)
    return sequence(found) if isinstance(tree, Sequence) else choice(found)


def patterns_in(expr: Expr) -> set[str]:
    """The patterns of a regular expression's parts that are no classes, its own included."""
    inside = reachable([expr], lambda one: [part for part in one.parts if part.kind != "class"])
    return {str(one.pattern) for one in inside if one.kind != "class"}


def class_pattern(ranges: Ranges) -> str:
    r"""A set as a pattern of `re`: one character, or a class.

    >>> class_pattern(((10, 10), (97, 122))), class_pattern(((46, 46),))
    ('[\\x0aa-z]', '\\.')
    """
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return re.escape(chr(ranges[0][0]))
    if ranges == EVERYTHING:
        return r"[\s\S]"
    return "[" + "".join(_in_class(low) + ("" if low == high else "-" + _in_class(high)) for low, high in ranges) + "]"


def _in_class(code: int) -> str:
    character = chr(code)
    if _PLAIN.fullmatch(character):
        return character
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _in_sequence(part: Expr) -> str:
    return f"(?:{part.pattern})" if part.kind == "choice" and not part.is_never else str(part.pattern)


def _as_unit(body: Expr) -> str:
    return str(body.pattern) if body.kind == "class" else f"(?:{body.pattern})"


# -- intersections and differences

MAX_STATES = 2_000
"""The most states of an automaton."""
MAX_SIZE = 20_000
"""The most positions of an expression that is made."""


def automaton_of(expr: Expr, max_states: int) -> Dfa:
    """The byte automaton of a regular expression.

    Raises: LimitError as `compile_pattern`.
    """
    if expr.text is not None:
        return Dfa.literal(expr.text.encode())
    return compile_pattern(str(expr.pattern), max_states=max_states)


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
