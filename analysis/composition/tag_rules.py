"""Rules over literals: the host of a structural tag, which is read top down.

An *expression* is a body of rules: items one behind the other, () for the empty text. An item is
the bytes of a literal, the number of a part, or the name of a rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import EmptyLanguageError, GrammarError
from maskwright.analysis.graphs import cheapest_rules, components
from maskwright.analysis.marks import mark

Body: TypeAlias = tuple[bytes | int | str, ...]
Written: TypeAlias = Sequence[bytes | int]  # a body as it is in `TagRules` and files: literals, and numbers of rules
Rules: TypeAlias = Mapping[str, Sequence[Body]]  # the name of a rule -> the expressions that it stands for

START = "start"  # the rule of whole texts
NOTHING = -1  # instead of a node: the end of a body


@dataclass(frozen=True, repr=False, eq=False)
class TagRules:
    """What stands around the parts of a structural tag: a grammar whose terminals are literals.

    name : what errors call it.
    nodes : what bodies are made of, each with the node behind it, or NOTHING: a literal, which is
        not empty, and in which part k is ``mark(k)``; or the number of a rule.
    rules : the first nodes of the bodies of each rule; NOTHING for an empty body. Rule 0 is that of
        whole texts.
    least : the length of a shortest text of each rule, in bytes.

    INVARIANT: each rule has a text. Where one leads back to itself before it has read something, it
    does so at the end of a body. What two bodies end with are the same nodes.
    """

    kind: ClassVar[Literal["tag"]] = "tag"

    name: str
    nodes: tuple[tuple[bytes | int, int], ...]
    rules: tuple[tuple[int, ...], ...]
    least: tuple[int, ...]


def bodies_of(rules: TagRules) -> list[list[list[bytes | int]]]:
    """The bodies of each rule, in which a number is that of a rule."""

    def body(node: int) -> list[bytes | int]:
        found = []
        while node != NOTHING:
            value, node = rules.nodes[node]
            found.append(value)
        return found

    return [[body(first) for first in some] for some in rules.rules]


def checked_tag_rules(name: str, bodies: Sequence[Sequence[Written]]) -> TagRules:
    """The rules of which `bodies_of` tells, from whoever. Rule 0 is that of whole texts.

    Raises: GrammarError for a rule that there is not, or that leads back to itself before it has
    read something, and goes on behind that; EmptyLanguageError as `tag_rules`.
    """
    every = [item for some in bodies for one in some for item in one if isinstance(item, int)]
    if not 0 <= min(every, default=0) <= max(every, default=0) < len(bodies):
        raise GrammarError(f"{name}: a body has a rule that is not among the {len(bodies):,}")
    rules: dict[str, list[Body]] = {
        _name(rule): [tuple(_name(item) if isinstance(item, int) else item for item in one) for one in some]
        for rule, some in enumerate(bodies)
    }
    least = _least(rules)
    begins = [[found for one in some for found in _begins(one, least)] for some in bodies]
    for component in map(set, components([[item for item, _ in each] for each in begins])):
        if any(goes_on and item in component for rule in component for item, goes_on in begins[rule]):
            raise GrammarError(f"{name}: {_name(min(component))} leads back to itself before it has read something")
    return tag_rules(name, rules)[0]


def _begins(body: Written, least: Mapping[str, int]) -> Iterator[tuple[int, bool]]:
    """The rules that a body may begin with, and whether something comes behind each."""
    for at, item in enumerate(body, 1):
        if isinstance(item, bytes):
            break
        yield item, at < len(body)
        if least.get(_name(item), 1):
            break


def _name(rule: int) -> str:
    return f"rule {rule}" if rule else START


def tag_rules(name: str, rules: Rules) -> tuple[TagRules, list[int]]:
    """The rules that some text needs, as nodes; and the parts in them, ascending.

    rules : the parts in it are numbered anew, without gaps.

    Raises: EmptyLanguageError if there is no finite text.
    Cost: O(n log n) for rules of n items.
    """
    least = _least(rules)
    if START not in least:
        raise EmptyLanguageError(f"{name}: no text is legal, as its rules lead back to themselves")
    number = {START: 0}
    reached = [START]
    bodies: list[list[Body]] = []
    parts: set[int] = set()
    for rule in reached:  # grows while it is read
        look()
        bodies.append([one for one in dict.fromkeys(rules[rule]) if all(i in least for i in one if isinstance(i, str))])
        for item in (item for body in bodies[-1] for item in body):
            if isinstance(item, int):
                parts.add(item)
            elif isinstance(item, str) and number.setdefault(item, len(reached)) == len(reached):
                reached.append(item)
    marks = {part: mark(at) for at, part in enumerate(sorted(parts))}
    nodes: dict[tuple[bytes | int, int], int] = {}
    firsts = [tuple(dict.fromkeys(_first_node(body, nodes, number, marks) for body in some)) for some in bodies]
    return TagRules(name, tuple(nodes), tuple(firsts), tuple(least[rule] for rule in reached)), sorted(parts)


def _first_node(
    body: Body, nodes: dict[tuple[bytes | int, int], int], number: Mapping[str, int], marks: Mapping[int, bytes]
) -> int:
    """The first node of a body, whose nodes are added, from the last one to the first."""
    behind, literal = NOTHING, b""
    for item in (*reversed(body), None):
        if item is not None and not isinstance(item, str):
            literal = (marks[item] if isinstance(item, int) else item) + literal
            continue
        if literal:
            behind, literal = nodes.setdefault((literal, behind), len(nodes)), b""
        if item is not None:
            behind = nodes.setdefault((number[item], behind), len(nodes))
    return behind


def _least(rules: Rules) -> dict[str, int]:
    """The length of a shortest text of each rule that has one; a part counts as its mark."""
    found = cheapest_rules(
        (
            rule,
            sum(len(mark(0)) if isinstance(item, int) else len(item) for item in body if not isinstance(item, str)),
            (item for item in body if isinstance(item, str)),
        )
        for rule, bodies in rules.items()
        for body in bodies
    )
    return {rule: length for rule, (length, _) in found.items()}
