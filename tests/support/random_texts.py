"""Legal JSON texts at random, of any graph of shapes. `naive_json_texts.is_legal` can check them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from functools import lru_cache

from naive_json_texts import compared, parsed

from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.shapes import (
    NO_NODE,
    Arrays,
    Escapes,
    ItemState,
    Numbers,
    Objects,
    Shape,
    Spellings,
    StringLiterals,
    Strings,
    Texts,
)
from maskwright.analysis.schema.spacing import ANY, CLOSES, GOES_ON, Spacing
from maskwright.decoding.reference.json_characters import ALL, SHORT_ESCAPES, Characters

NEVER = 1 << 20
PLAIN = b"ab01cdefghij 23456789"
ESCAPES: tuple[Escapes, ...] = ("any", "natural", "minimal")
"""All ways of escaping."""
SHORT = {character: bytes([92, byte]) for byte, character in SHORT_ESCAPES.items()}


def random_text(texts: Texts, rng: random.Random, budget: int = 6) -> bytes:
    """A legal text at random.

    budget : the depth from which on objects and arrays are as flat as they can be.
    """
    return _Writer(texts, rng).text(budget)


class _Writer:
    """Writes values. `depths` has for each node how deep its flattest value is."""

    def __init__(self, texts: Texts, rng: random.Random) -> None:
        self.graph, self.spacing, self.rng, self.level = texts.graph, texts.spacing, rng, 0
        self.escapes = texts.escapes
        self.depths = [NEVER] * len(self.graph.nodes)
        changed = True
        while changed:
            changed = False
            for node, shapes in enumerate(self.graph.nodes):
                depth = min(self._depth(shape) for shape in shapes)
                if depth < self.depths[node]:
                    self.depths[node], changed = depth, True

    def _of(self, node: int) -> int:
        return NEVER if node == NO_NODE else self.depths[node]

    def _depth(self, shape: Shape) -> int:
        if isinstance(shape, Objects):
            needed = [self._of(node) for node, needs in zip(shape.values, shape.required, strict=True) if needs]
            free = [self._of(node) for node, needs in zip(shape.values, shape.required, strict=True) if not needs]
            free += [min(map(self._of, shape.others), default=NEVER)] * shape.least
            return 1 + max(needed + sorted(free)[: max(0, shape.least - len(needed))], default=0)
        if isinstance(shape, Arrays) and shape.states:
            return 1 + self._depth_of_states(shape)
        if isinstance(shape, Arrays):
            return 1 + min((self._depth_of_items(shape, n) for n in self._lengths(shape, 0)), default=NEVER)
        return 0

    def _depth_of_states(self, shape: Arrays) -> int:
        """The depth of the items on a flattest way to an end."""
        found = [0 if state.is_end else NEVER for state in shape.states]
        for _ in shape.states:
            for number, state in enumerate(shape.states):
                ways = [max(self._of(node), found[after]) for node, after in state.moves]
                found[number] = min([found[number], *ways])
        return found[0]

    def _lengths(self, shape: Arrays, more: int) -> list[int]:
        """Numbers of items that are tried, the least first."""
        inside = shape.contained
        needed = 0 if inside is None else inside.least + max(len(inside.prefix), len(shape.prefix))
        last = shape.least + needed + more
        return list(range(shape.least, last + 1 if shape.most is None else min(last, shape.most) + 1))

    def _depth_of_items(self, shape: Arrays, n: int) -> int:
        """The depth of an array of `n` items: each of them as flat as the counts allow."""
        best = NEVER
        least, most = (0, 0) if shape.contained is None else (shape.contained.least, shape.contained.most)
        for depth in range(len(self.graph.nodes) + 1):
            possible = [[role for role in (0, 1) if self._of(_item(shape, i, role)) <= depth] for i in range(n)]
            if all(possible) and _can_count(possible, least, most):
                best = depth
                break
        return best

    # ---------------------------------------------------------------------------------------- texts

    def text(self, budget: int) -> bytes:
        around = self.spacing.outer
        return self.gap(around, GOES_ON) + self.value(self.graph.root, budget) + self.gap(around, GOES_ON)

    def gap(self, state: int, ends: int) -> bytes:
        """White space from a state on, before what `ends` says."""
        rng = self.rng
        if self.spacing == ANY:
            return bytes(rng.choices(b" \t\n\r", k=rng.choice((0, 0, 0, 1, 2))))
        return random_string(rng, language(self.spacing, state, ends, self.level))

    def bracketed(self, brackets: bytes, parts: Sequence[bytes]) -> bytes:
        """Members or items, with all white space inside the brackets. The level is that inside."""
        opened = self.spacing.opened
        if not parts:
            return brackets[:1] + self.gap(opened, CLOSES) + brackets[1:]
        found = brackets[:1] + self.gap(opened, GOES_ON)
        for number, part in enumerate(parts):
            comma = self.gap(0, GOES_ON) + b"," + self.gap(self.spacing.behind_comma, GOES_ON) if number else b""
            found += comma + part
        return found + self.gap(0, CLOSES) + brackets[1:]

    def value(self, node: int, budget: int) -> bytes:
        shapes = self.graph.nodes[node]
        flat = [shape for shape in shapes if self._depth(shape) <= max(budget, self.depths[node])]
        shape = self.rng.choice(flat)
        if isinstance(shape, Objects):
            self.level += 1
            found = self.object(shape, budget - 1)
            self.level -= 1
            return found
        if isinstance(shape, Arrays):
            self.level += 1
            found = self.array(shape, budget - 1)
            self.level -= 1
            return found
        return self.scalar(shape)

    def scalar(self, shape: Shape) -> bytes:
        rng = self.rng
        if isinstance(shape, Spellings):
            return rng.choice(shape.texts)
        if isinstance(shape, Numbers):
            return random_string(rng, shape.automaton)
        if isinstance(shape, StringLiterals):
            return self.string(rng.choice(shape.texts))
        assert isinstance(shape, Strings)
        return self.string(random_characters(rng, Characters(shape.automaton), shape.least, shape.most))

    def string(self, content: bytes) -> bytes:
        """A spelling of a string."""
        if self.escapes == "minimal":
            return json.dumps(content.decode(), ensure_ascii=False).encode()
        rng = self.rng
        found = bytearray(b'"')
        for character in content.decode():
            spellings = [SHORT[character]] if character in SHORT else []
            if character not in '"\\' and character >= " ":
                spellings += [character.encode()] * 4
            units = character.encode("utf-16-be")
            escape = b"".join(b"\\u" + units[i : i + 2].hex().encode() for i in range(0, len(units), 2))
            if self.escapes == "any" or (character >= "\x7f" or not spellings):
                spellings.append(rng.choice((escape, escape.upper().replace(b"U", b"u"))))
            found += rng.choice(spellings)
        return bytes(found + b'"')

    def object(self, shape: Objects, budget: int) -> bytes:
        rng = self.rng
        depth = max(budget, 0)
        keys = [i for i in range(len(shape.keys)) if shape.required[i]]
        free = [i for i in range(len(shape.keys)) if not shape.required[i] and shape.values[i] != NO_NODE]
        rng.shuffle(free)
        free.sort(key=lambda i: self._of(shape.values[i]) > depth)
        n = max(shape.least, len(keys)) + (rng.choice((0, 1, 2)) if budget > 0 else 0)
        n = n if shape.most is None else min(n, shape.most)
        others: dict[bytes, int] = {}
        while len(keys) + len(others) < n:
            is_flat = bool(free) and self._of(shape.values[free[0]]) <= depth
            other = self._other(shape, others) if shape.others and (not is_flat or rng.random() < 0.4) else None
            needs = len(keys) + len(others) < shape.least
            if other is not None and (self._of(other[1]) <= depth or (needs and not free)):
                others[other[0]] = other[1]
            elif free and (is_flat or needs):
                keys.append(free.pop(0))
            elif not needs:
                break
        rng.shuffle(keys)
        members = [(shape.keys[i], shape.values[i]) for i in keys] + list(others.items())
        if shape.ranks is not None:
            members = [(shape.keys[i], shape.values[i]) for i in sorted(keys, key=shape.ranks.__getitem__)]
            members += list(others.items())
        else:
            rng.shuffle(members)
        before, behind = self.spacing.before_colon, self.spacing.behind_colon
        parts = [
            self.string(key) + self.gap(before, GOES_ON) + b":" + self.gap(behind, GOES_ON) + self.value(node, budget)
            for key, node in members
        ]
        return self.bracketed(b"{}", parts)

    def _other(self, shape: Objects, others: dict[bytes, int]) -> tuple[bytes, int] | None:
        """Another key with its node; None if none was found soon."""
        keys = shape.key_automaton
        characters = Characters(None) if keys is None else Characters.of_keys(keys)
        for _ in range(100):
            key = random_characters(self.rng, characters, 0, None)
            if key in others or (keys is None and key in shape.keys):
                continue
            return key, shape.others[0 if keys is None else int(keys.ends[characters.after(0, key)])]
        return None

    def _items_by_states(self, shape: Arrays, budget: int) -> list[bytes]:
        depth = max(budget, self._depth_of_states(shape))
        far = items_to_end(shape.states, lambda node: self._of(node) <= depth)
        items: list[bytes] = []
        number = 0
        while not shape.states[number].is_end or (budget > 0 and self.rng.random() < 0.6):
            moves = [(node, to) for node, to in shape.states[number].moves if self._of(node) <= depth and to in far]
            if len(items) > 3 or budget <= 0:
                moves = [(node, to) for node, to in moves if far[to] < far[number]]
            if not moves:
                break
            node, number = self.rng.choice(moves)
            items.append(self.value(node, budget))
        return items

    def array(self, shape: Arrays, budget: int) -> bytes:
        rng = self.rng
        if shape.states:
            items = self._items_by_states(shape, budget)
            return self.bracketed(b"[]", items)
        lengths = self._lengths(shape, 3 if budget > 0 else 0)
        flat = [n for n in lengths if self._depth_of_items(shape, n) <= max(budget, 0)]
        if not flat:
            flat = [min(lengths, key=lambda n: self._depth_of_items(shape, n))]
        n = rng.choice(flat[:1] if budget <= 0 else flat)
        depth = max(budget, self._depth_of_items(shape, n))
        least, most = (0, 0) if shape.contained is None else (shape.contained.least, shape.contained.most)
        possible = [[role for role in (0, 1) if self._of(_item(shape, i, role)) <= depth] for i in range(n)]
        for i in range(n):
            rng.shuffle(possible[i])
            one = [possible[i][0]]
            if not _can_count([*possible[:i], one, *possible[i + 1 :]], least, most):
                one = [possible[i][1]]
            possible[i] = one
        items = []
        known = set()
        for i, (role,) in enumerate(possible):
            for _ in range(200):
                item = self.value(_item(shape, i, role), budget)
                if not shape.is_unique or compared(parsed(item)) not in known:
                    break
            else:
                assert i >= shape.least, "no new item was found"
                break
            known.add(compared(parsed(item)) if shape.is_unique else item)
            items.append(item)
        return self.bracketed(b"[]", items)


@lru_cache(maxsize=512)
def language(spacing: Spacing, state: int, ends: int, level: int) -> Dfa:
    return spacing.language(state, ends, level)


def _item(shape: Arrays, i: int, role: int) -> int:
    part = shape.contained if role else shape
    return NO_NODE if part is None else part.prefix[i] if i < len(part.prefix) else part.items


def _can_count(possible: Sequence[Sequence[int]], least: int, most: int | None) -> bool:
    """Whether roles can be chosen such that `least` to `most` items are contained."""
    fewest = sum(list(roles) == [1] for roles in possible)
    return sum(1 in roles for roles in possible) >= least and (most is None or fewest <= most)


def random_string(rng: random.Random, dfa: Dfa) -> bytes:
    """A string of an automaton; rarely a long one."""
    text, state = bytearray(), 0
    while True:
        on = [byte for byte in range(256) if dfa.next_state[state, byte] >= 0]
        if dfa.is_accepting[state] and (not on or rng.random() < 0.4):
            return bytes(text)
        plain = [byte for byte in on if byte in PLAIN]
        text.append(rng.choice(plain if plain and rng.random() < 0.8 else on))
        state = int(dfa.next_state[state, text[-1]])


def items_to_end(states: Sequence[ItemState], has_values: Callable[[int], bool]) -> dict[int, int]:
    """A number for each state that reaches an end by nodes that have values.

    0 at an end; from each other state an item leads to one with a lower number.
    """
    far = {number: 0 for number, state in enumerate(states) if state.is_end}
    n_known = -1
    while n_known < len(far):
        n_known = len(far)
        for number, state in enumerate(states):
            ways = [far[after] for node, after in state.moves if after in far and has_values(node)]
            if number not in far and ways:
                far[number] = 1 + min(ways)
    return far


def random_characters(rng: random.Random, characters: Characters, least: int, most: int | None) -> bytes:
    """A string of an automaton and a range of lengths, as UTF-8."""
    text, state, length = b"", 0, 0
    while True:
        left = None if most is None else most - length
        is_end = length >= least and characters.accepting[state]
        can_go_on = left != 0 and characters.goes_on(state, least - length, left, ALL)
        if is_end and (not can_go_on or rng.random() < 0.4):
            return text
        while True:
            kind = rng.random()
            point = rng.choice(PLAIN) if kind < 0.7 else rng.randrange(0x100) if kind < 0.9 else rng.randrange(0x110000)
            if kind > 0.95:
                point = ord(rng.choice('é😀"\\\n'))
            if 0xD800 <= point < 0xE000:
                continue
            after = characters.after(state, chr(point).encode())
            if after >= 0 and characters.goes_on(after, least - length - 1, None if left is None else left - 1):
                break
        text, state, length = text + chr(point).encode(), after, length + 1
