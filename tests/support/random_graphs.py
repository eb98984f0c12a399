"""Graphs of JSON shapes at random, over small alphabets; and texts of theirs at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache

from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.parse import parse
from maskwright.analysis.regex.spell import spell
from maskwright.analysis.schema.keys import key_automaton
from maskwright.analysis.schema.shapes import (
    NO_NODE,
    Arrays,
    Contained,
    ItemState,
    KeyAutomaton,
    Numbers,
    Objects,
    SchemaGraph,
    Shape,
    Spellings,
    StringLiterals,
    Strings,
)

WORDS = (b"false", b"null", b"true")
TEXTS = ("", "a", "b", "ab", "aab", "é", "a😀", '"', "\\", "\n")
NUMBERS = (
    "0|1", "-?[01]", "[1-9][01]*", "10*", r"-?1\.[01]{1,2}", "1[eE]-?(0+1?|1)", r"0(\.0*1)?", r"1(\.0+)?(e[01])?",
)  # fmt: skip
INFINITE_NUMBERS = ("[1-9][01]*", "10*", r"0|-?1[0-9]*(\.[0-9]+)?", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
STRINGS = (
    "a*", "(ab)*", "a|b+", "[ab]{1,2}", "é?a+", "[^a]b?", "[ab]*b", "(😀|a){0,3}", '["\\\\\n]b', "(aa)+|b", "[à-ü]+",
)  # fmt: skip
INFINITE_STRINGS = ("a*", "(ab)*", "[ab]*b", "[^a]*", "(aa)+|b")
KEYS = ("a+", "b[ab]*", "[^a].*", "(ab)+", "é.*", ".*")


@lru_cache(None)
def automaton(pattern: str) -> Dfa:
    """The automaton of a pattern."""
    return spell(parse(pattern))


def random_graph(rng: random.Random, n_nodes: int = 5, is_deep: bool = False) -> SchemaGraph:
    """A graph of `n_nodes` nodes, in which all INVARIANTs of `shapes.py` hold.

    is_deep : whether arrays of distinct items may have any items.

    Nodes of objects and arrays lie inside one another, and inside themselves where they need not be.
    """
    nodes: list[tuple[Shape, ...]] = []
    for number in range(n_nodes):
        shapes: list[Shape] = []
        kind = rng.random() if number else 0.0
        if kind < 0.45 or rng.random() < 0.3:
            shapes += _scalars(rng)
        if kind >= 0.45 or not shapes:
            for _ in range(rng.choice((1, 1, 1, 2))):
                shapes.append((_objects if rng.random() < 0.5 else _arrays)(rng, number, n_nodes))
        rng.shuffle(shapes)
        nodes.append(tuple(shapes))
    for number, node in enumerate(nodes):
        nodes[number] = tuple(
            _unique(rng, shape, nodes, is_deep) if isinstance(shape, Arrays) else shape for shape in node
        )
    return _shuffled(rng, nodes, rng.choice((n_nodes - 1, n_nodes - 1, rng.randrange(n_nodes))))


def _shuffled(rng: random.Random, nodes: list[tuple[Shape, ...]], root: int) -> SchemaGraph:
    """The graph with other numbers."""
    order = list(range(len(nodes)))
    rng.shuffle(order)
    place = {node: i for i, node in enumerate(order)} | {NO_NODE: NO_NODE}
    found = tuple(tuple(_moved(shape, place.__getitem__) for shape in nodes[node]) for node in order)
    return SchemaGraph(found, place[root])


def _moved(shape: Shape, to: Callable[[int], int]) -> Shape:
    if isinstance(shape, Objects):
        return shape._replace(values=tuple(map(to, shape.values)), others=tuple(map(to, shape.others)))
    if isinstance(shape, Arrays):
        inside = shape.contained
        if inside is not None:
            inside = inside._replace(prefix=tuple(map(to, inside.prefix)), items=to(inside.items))
        states = tuple(
            ItemState(one.is_end, tuple((to(node), after) for node, after in one.moves)) for one in shape.states
        )
        return shape._replace(
            prefix=tuple(map(to, shape.prefix)), items=to(shape.items), contained=inside, states=states
        )
    return shape


def _some(rng: random.Random, all_of: Sequence[bytes], most: int) -> tuple[bytes, ...]:
    return tuple(sorted(rng.sample(all_of, rng.randint(1, most))))


def _scalars(rng: random.Random) -> list[Shape]:
    """Up to two shapes of scalars."""
    kinds: list[Callable[[], Shape]] = [
        lambda: Spellings(_some(rng, WORDS, 3)),
        lambda: Numbers(automaton(rng.choice(NUMBERS))),
        lambda: StringLiterals(_some(rng, [text.encode() for text in TEXTS], 4)),
        lambda: _strings(rng, rng.choice((None, *STRINGS))),
    ]
    return [rng.choice(kinds)() for _ in range(rng.choice((1, 1, 2)))]


def _strings(rng: random.Random, pattern: str | None) -> Strings:
    """Strings of a pattern, with a range of lengths that one of them has."""
    found = None if pattern is None else automaton(pattern)
    length = rng.randint(0, 3) if found is None else len(_walk(rng, found).decode())
    least = rng.choice((0, length, rng.randint(0, length)))
    return Strings(found, least, rng.choice((None, length, length + 1)))


def _node(rng: random.Random, limit: int, share: float = 0.0) -> int:
    return NO_NODE if rng.random() < share else rng.randrange(limit)


def _objects(rng: random.Random, number: int, n_nodes: int) -> Objects:
    """An object; nodes below `number` have values already."""
    keys = _some(rng, [text.encode() for text in TEXTS[:6]], 3) if rng.random() < 0.8 else ()
    required = tuple(rng.random() < 0.4 for _ in keys)
    values = tuple(_node(rng, number) if is_required else _node(rng, n_nodes, 0.2) for is_required in required)
    others: tuple[int, ...] = ()
    automaton_of_keys: KeyAutomaton | None = None
    if rng.random() < 0.5:
        others = (_node(rng, n_nodes),)
        if rng.random() < 0.6:
            one, other = rng.sample(KEYS, 2)
            others = (_node(rng, n_nodes), _node(rng, n_nodes))
            class_of = rng.choice(({1: 0, 3: 0}, {1: 0, 2: 1, 3: 1}, {1: 0, 2: 0, 3: 1}, {0: 0, 1: 1}))
            automaton_of_keys = key_automaton([automaton(one), automaton(other)], class_of, keys)
            if automaton_of_keys is None or not _is_infinite(automaton_of_keys):
                others, automaton_of_keys = (), None
            else:
                others = others[: int(automaton_of_keys.ends.max()) + 1]
    is_useful = [i for i, node in enumerate(values) if 0 <= node < number or required[i]]
    possible = len(is_useful) + (2 if others and others[0] < number and automaton_of_keys is None else 0)
    least = rng.choice((0, 0, rng.randint(0, possible)))
    lowest = max(least, sum(required))
    most = rng.choice((None, None, lowest, lowest + 1))
    ranks = tuple(rng.sample(range(len(keys)), len(keys))) if rng.random() < 0.3 else None
    return Objects(keys, values, required, others, automaton_of_keys, least, most, ranks)


def _is_infinite(keys: KeyAutomaton) -> bool:
    """Whether some keys are longer than there are states."""
    states = {0}
    for _ in range(4 * len(keys.ends) + 4):
        states = {int(after) for state in states for after in keys.next_state[state] if after >= 0}
    return bool(states)


def _states(rng: random.Random, number: int, n_nodes: int) -> tuple[ItemState, ...]:
    """States in a row, with nodes below `number` from each to the next, and others between them."""
    n = rng.randint(1, 4)
    found = []
    for state in range(n):
        moves = {(_node(rng, n_nodes), rng.randrange(n)) for _ in range(rng.choice((0, 1, 1, 2)))}
        moves |= {(_node(rng, number), state + 1)} if state + 1 < n else set()
        found.append(ItemState(state + 1 == n or rng.random() < 0.3, tuple(sorted(moves))))
    return tuple(found)


def _arrays(rng: random.Random, number: int, n_nodes: int) -> Arrays:
    """An array of which an example is made first; its items are of nodes below `number`."""
    if rng.random() < 0.2:
        return Arrays((), NO_NODE, 0, None, states=_states(rng, number, n_nodes))
    roles = [rng.random() < 0.4 for _ in range(rng.randint(0, 3))]
    n_prefix = rng.choice((0, 0, 1, 2))
    outside = [_node(rng, number if i < len(roles) else n_nodes, 0.2) for i in range(n_prefix)]
    inside = [_node(rng, number if i < len(roles) else n_nodes, 0.2) for i in range(n_prefix)]
    items, contained_items = (_node(rng, number if len(roles) > n_prefix else n_nodes, 0.2) for _ in range(2))
    is_counted = rng.random() < 0.3
    count = 0
    for i, is_in in enumerate(roles):
        one, other = (outside[i], inside[i]) if i < n_prefix else (items, contained_items)
        if not is_counted:
            is_in = False
        if (other if is_in else one) == NO_NODE:
            is_in = not is_in and is_counted
        if (other if is_in else one) == NO_NODE:
            roles = roles[:i]
            break
        count += is_in
    n = len(roles)
    contained = None
    if is_counted:
        least_in = rng.randint(0, count)
        contained = Contained(least_in, rng.choice((None, count, count + 1)), tuple(inside), contained_items)
    return Arrays(tuple(outside), items, rng.choice((0, n, rng.randint(0, n))), rng.choice((None, n, n + 1)), contained)


def _unique(rng: random.Random, arrays: Arrays, nodes: list[tuple[Shape, ...]], is_deep: bool) -> Arrays:
    """The array, or now and then one of distinct items in its place, whose node is added."""
    if is_deep and arrays.contained is None and not arrays.states and rng.random() < 0.7:
        return arrays._replace(least=min(arrays.least, 1), is_unique=True, is_deep=True)
    if rng.random() < 0.7 or arrays.states:
        return arrays
    shapes: list[Shape] = []
    if rng.random() < 0.4:
        shapes.append(Numbers(automaton(rng.choice(INFINITE_NUMBERS))))
    if rng.random() < 0.3:
        shapes.append(Strings(automaton(rng.choice(INFINITE_STRINGS)), rng.randint(0, 2), None))
    n_finite = 0
    if not shapes or rng.random() < 0.5:
        texts = _some(rng, [text.encode() for text in TEXTS], 3)
        shapes.append(StringLiterals(texts))
        n_finite += len(texts)
    if rng.random() < 0.3:
        words = _some(rng, WORDS, 2)
        shapes.append(Spellings(words))
        n_finite += len(words)
    is_finite = all(isinstance(shape, (StringLiterals, Spellings)) for shape in shapes)
    least = rng.randint(0, min(n_finite, 3) if is_finite else 3)
    nodes.append(tuple(shapes))
    node = len(nodes) - 1
    prefix = (node,) if rng.random() < 0.3 else ()
    return Arrays(prefix, node, least, rng.choice((None, None, max(least, 2))), None, True)


# ------------------------------------------------------------------------------------- their texts


def _walk(rng: random.Random, dfa: Dfa) -> bytes:
    """A string of an automaton; rarely a long one."""
    text, state = bytearray(), 0
    distance = _distances(dfa)
    while True:
        if dfa.is_accepting[state] and (rng.random() < 0.4 or not (dfa.next_state[state] >= 0).any()):
            return bytes(text)
        bytes_on = [byte for byte in range(256) if dfa.next_state[state, byte] >= 0]
        if len(text) > 12:
            bytes_on = [b for b in bytes_on if distance[int(dfa.next_state[state, b])] < distance[state]] or bytes_on
        plain = [byte for byte in bytes_on if byte in b'ab01"\\']
        text.append(rng.choice(plain if plain and rng.random() < 0.8 else bytes_on))
        state = int(dfa.next_state[state, text[-1]])


@lru_cache(None)
def _distances(dfa: Dfa) -> dict[int, int]:
    """For each state the bytes to one that accepts."""
    found = {state: 0 for state in range(dfa.n_states) if dfa.is_accepting[state]}
    for step in range(1, dfa.n_states + 1):
        for state in range(dfa.n_states):
            if state not in found and any(found.get(int(t), step) < step for t in dfa.next_state[state] if t >= 0):
                found[state] = step
    return found
