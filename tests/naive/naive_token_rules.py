"""Rules over bytes and tokens from their definition: sets of stacks, as llama.cpp follows them.

A token is taken whole by an element that is a token, or its bytes are taken by elements that are bytes.
What is still to come is a tuple of expressions, the next one first. Rules are productive and not left recursive, so
a token is legal if a stack is left behind it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Stack: TypeAlias = tuple["Node", ...]

TOKENS = (b"a", b"b", b"c", b"ab", b"ba", b"<t>", b"\xc3\xa9", b"\xc3", b"\xa9", b"b\xc3", b"\xa9a", b"", b"", b"")
"""The texts of a vocabulary, by id; those without are special, the last ends a text."""
SPECIAL = {"<|x|>": 11, "<|y|>": 12, "<|e|>": 13}
EOS = 13
NAMES = {"<t>": 5, **SPECIAL}


@dataclass(frozen=True)
class Node:
    """An expression. kind : "byte", "token", "sequence", "choice", "repeat" or "rule".

    taken : of a byte, it; of a token, the ids. least, most : of a repetition.
    written : in GBNF, and in xgrammar's EBNF.
    """

    kind: str
    written: tuple[str, str]
    taken: frozenset[int] = frozenset()
    parts: Stack = ()
    least: int = 0
    most: int | None = None
    name: str = ""


Rules: TypeAlias = Mapping[str, Node]


def closed(rules: Rules, stacks: set[Stack]) -> set[Stack]:
    """The stacks whose next expression takes something, and the empty one, to which these lead."""
    seen, agenda, found = set(stacks), list(stacks), set()
    while agenda:
        stack = agenda.pop()
        node, rest = (stack[0], stack[1:]) if stack else (None, ())
        if node is None or node.kind in ("byte", "token"):
            found.add(stack)
            continue
        new: list[Stack] = []
        if node.kind == "sequence":
            new = [(*node.parts, *rest)]
        elif node.kind == "choice":
            new = [(part, *rest) for part in node.parts]
        elif node.kind == "rule":
            new = [(rules[node.name], *rest)]
        else:
            most = None if node.most is None else node.most - 1
            again = Node("repeat", ("", ""), parts=node.parts, least=max(node.least - 1, 0), most=most)
            new = [rest] if node.least == 0 else []
            new += [(node.parts[0], again, *rest)] if node.most != 0 else []
        for one in new:
            if one not in seen:
                seen.add(one)
                agenda.append(one)
    return found


def behind(rules: Rules, stacks: set[Stack], token: int) -> set[Stack]:
    """The stacks behind a token. stacks : closed."""
    found = {stack[1:] for stack in stacks if stack and stack[0].kind == "token" and token in stack[0].taken}
    spelled = stacks if TOKENS[token] else set()
    for byte in TOKENS[token]:
        spelled = closed(
            rules, {stack[1:] for stack in spelled if stack and stack[0].kind == "byte" and byte in stack[0].taken}
        )
    return closed(rules, found) | spelled


def begin(rules: Rules) -> set[Stack]:
    """The stacks of the empty text."""
    return closed(rules, {(rules["root"],)})


def mask(rules: Rules, stacks: set[Stack]) -> set[int]:
    """The legal tokens."""
    return {token for token in range(len(TOKENS)) if token != EOS and behind(rules, stacks, token)} | (
        {EOS} if () in stacks else set()
    )


def ends(rules: Rules, stacks: set[Stack], most: int) -> bool:
    """Whether a text ends within so many tokens more, each of which is tried at each place."""
    level, seen = {frozenset(stacks)}, {frozenset[Stack]()}
    for _ in range(most + 1):
        if any(() in one for one in level):
            return True
        seen |= level
        level = {
            frozenset(behind(rules, set(one), token)) for one in level for token in range(len(TOKENS)) if token != EOS
        } - seen
    return False


# -- random rules


def _character(rng: random.Random) -> Node:
    written = rng.choice(['"a"', '"b"', "[bc]", "[^a]", "[^]", '"é"', "[ab]"])
    taken = {"[bc]": "bc", "[^a]": "bc<t>é", "[^]": "abc<t>é", "[ab]": "ab"}.get(written, written[1])
    parts = tuple(
        Node("sequence", ("", ""), parts=tuple(Node("byte", ("", ""), frozenset({byte})) for byte in one.encode()))
        for one in taken
    )
    return Node("choice", ("." if written == "[^]" else written, written), parts=parts)


def _token(rng: random.Random) -> Node:
    is_excluding = rng.random() < 0.4
    name = rng.choice([*(one for one in NAMES if is_excluding or one != "<|e|>"), *map(str, range(13))])
    number = NAMES.get(name, -1) if name in NAMES else int(name)
    taken = frozenset(range(len(TOKENS))) - {number, EOS} if is_excluding else frozenset({number})
    gbnf = "!" * is_excluding + (name if name in NAMES else f"<[{name}]>")
    return Node("token", (gbnf, f"{'ExcludeToken' if is_excluding else 'Token'}({number})"), taken)


def _both(parts: Sequence[Node], between: str) -> tuple[str, str]:
    return tuple(f"({between.join(part.written[k] for part in parts)})" for k in (0, 1))  # type: ignore[return-value]


def random_node(rng: random.Random, depth: int) -> Node:
    """An expression, which has rules only behind what takes something."""
    kind = rng.choice(["sequence", "choice", "repeat", "rule"]) if depth else "leaf"
    if kind == "leaf" or rng.random() < 0.1:
        return _token(rng) if rng.random() < 0.45 else _character(rng)
    parts = tuple(random_node(rng, depth - 1) for _ in range(rng.choice([2, 2, 3])))
    if kind == "sequence":
        return Node(kind, _both(parts, " "), parts=parts)
    if kind == "choice":
        return Node(kind, _both(parts, " | "), parts=parts)
    if kind == "rule":
        name = rng.choice(["root", "x", "y"])
        first = _token(rng) if rng.random() < 0.5 else _character(rng)
        rule = Node("rule", (name, name), name=name)
        also = Node("choice", _both((rule, parts[0]), " | "), parts=(rule, parts[0]))
        return Node("sequence", _both((first, also, parts[1]), " "), parts=(first, also, parts[1]))
    least, most, sign = rng.choice([(0, None, "*"), (1, None, "+"), (0, 1, "?"), (1, 2, "{1,2}"), (2, None, "{2,}")])
    one = parts[0]
    return Node(kind, tuple(f"({text}){sign}" for text in one.written), parts=(one,), least=least, most=most)  # type: ignore[arg-type]


def random_rules(rng: random.Random, deepest: int = 3) -> tuple[Rules, str, str]:
    """Rules, each with an alternative that ends, and what they are in GBNF and in EBNF."""
    found: dict[str, Node] = {}
    for name in ("root", "x", "y"):
        last = _token(rng) if rng.random() < 0.5 else _character(rng)
        parts = (random_node(rng, rng.randint(1, deepest)), last)
        found[name] = Node("choice", _both(parts, " | "), parts=parts)
    texts = ("\n".join(f"{name} ::= {node.written[k]}" for name, node in found.items()) for k in (0, 1))
    return (found, *texts)
