"""What a schema becomes: a graph of nodes, each the union of some shapes of JSON values.

A *node* is a set of JSON values that is not empty. A *shape* is a part of it, of one JSON type. The
values of a node are those of its shapes; a value may have several. Nodes are known by their number,
so that they may contain themselves. `NO_NODE` stands for the empty set.

In: nothing. Knows nothing of keywords, bytes of texts or tokens: a front (`graph.py`) makes graphs
of schemas, and the mask store's tables are made of graphs.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.spacing import ANY, Spacing

Escapes: TypeAlias = Literal["any", "natural", "minimal"]
"""How strings are spelled: see `Texts`."""
NO_NODE = -1
"""The node without a value."""
_OF_SHAPE, _EACH = 200, 60
"""About how many bytes a shape takes, and each text, member or item of it."""


class Spellings(NamedTuple):
    """Values of one spelling each, as `null` and `true`.

    texts : JSON texts without white space; sorted, at least one.
    """

    texts: tuple[bytes, ...]


class Numbers(NamedTuple):
    """Numbers, by their spellings.

    automaton : over the bytes of a number; not empty.
    """

    automaton: Dfa


class StringLiterals(NamedTuple):
    """Some strings.

    texts : UTF-8 of what the strings say (escapes read); sorted, distinct, at least one.
    """

    texts: tuple[bytes, ...]


class Strings(NamedTuple):
    """Strings of an automaton and a range of lengths; at least one string has both.

    automaton : over the UTF-8 of what a string says (escapes read), and of valid UTF-8 only; None
        for all strings.
    least, most : the number of characters (Unicode scalar values); most : None for no limit.
    """

    automaton: Dfa | None
    least: int
    most: int | None


class KeyAutomaton(NamedTuple):
    """Which class each key has that no literal names.

    next_state : (n, 256) int32; -1 for no transition. State 0 is initial. Every state can reach one
        that ends a key. Of valid UTF-8 only.
    ends : (n,) int32; the class of a key that ends there, or -1.

    INVARIANT: it ends none of the keys that the object names.
    """

    next_state: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]


class Objects(NamedTuple):
    """Objects, by the nodes of their members.

    keys : UTF-8 of the named keys; sorted, distinct.
    values : the node of each named key's value; NO_NODE for a key that may not be there.
    required : whether each named key must be there. A required key has a node.
    others : the node of each class of other keys, without NO_NODE. () if no others may be there.
    key_automaton : the classes of other keys. None if there are no others, or all are of class 0.
    least, most : the number of members; most : None for no limit.
        INVARIANT: `least` members are possible; `most` is at least the number of required keys.
    ranks : the place of each named key in an order that texts must keep, others behind all of them;
        None if any order will do.
    wanted : members beside the named ones that must be there, no two of them the same: of each, the
        node of its value by the class of its key; NO_NODE for a class that has none such.
        INVARIANT: a million keys have one, or more. With `most`, all classes have one, and `most`
        is at least the number of required keys and these.
    """

    keys: tuple[bytes, ...]
    values: tuple[int, ...]
    required: tuple[bool, ...]
    others: tuple[int, ...]
    key_automaton: KeyAutomaton | None
    least: int
    most: int | None
    ranks: tuple[int, ...] | None = None
    wanted: tuple[tuple[int, ...], ...] = ()

    @property
    def is_simple(self) -> bool:
        """Whether members alone decide what may come, in any order and number."""
        return self.ranks is None and self.key_automaton is None and self.most is None and not self.wanted

    @property
    def member_nodes(self) -> tuple[int, ...]:
        """The nodes of members, `NO_NODE` perhaps among them; some may be there twice."""
        return (*self.values, *self.others, *(node for row in self.wanted for node in row))


class Contained(NamedTuple):
    """That `least` to `most` items of an array are in a set. most : None for no limit.

    prefix, items : nodes as those of `Arrays`, of the values that are in the set as well. The
        array's own nodes have then the values that are not in it.
    """

    least: int
    most: int | None
    prefix: tuple[int, ...]
    items: int


class ItemState(NamedTuple):
    """What may come behind some items of an array.

    is_end : whether the array may end there.
    moves : for each way to read one more item, its node and the number of the state behind it.
    """

    is_end: bool
    moves: tuple[tuple[int, int], ...]


class Arrays(NamedTuple):
    """Arrays, by the nodes of their items.

    prefix : the node of each of the first items. NO_NODE at offset i: there are at most i items (or
        only such as are `contained`).
    items : the node of the items behind the prefix; NO_NODE if there are none.
    least, most : the number of items; most : None for no limit. There is such an array.
    contained : what is asked of some of the items; None for nothing. Not together with `is_unique`.
    is_unique : whether no two items are equal. Unless `is_deep`, all nodes are then unions of
        `Spellings` and `StringLiterals` with at least `least` values, or of these and `Strings`
        such that, wherever an item has begun, infinitely many items begin so: strings without
        limits are among them, or there is one shape of strings of an automaton that go on for ever,
        and no literal; or this one shape is of any content up to a length, so that an item can be
        used up only within its last character. (The plain interpreter and the judge take `Numbers`
        too.)
    is_deep : whether unique items are compared whatever they are: objects in any order of keys,
        numbers in any spelling. The plain interpreter does that, beside the engine.
        INVARIANT: if `least` is 2 or more, the nodes of the first `least` items have infinitely
        many values, or more than `least`.
    states : if there are some, they alone say which items may come, the first one before all items;
        `prefix` is then (), `items` NO_NODE, `least` 0, and `most` and `contained` None. Each state
        is reached, and can reach an end by nodes that have values. Of items that must differ no way
        to an end reads more of a node than it has values.
    """

    prefix: tuple[int, ...]
    items: int
    least: int
    most: int | None
    contained: Contained | None = None
    is_unique: bool = False
    is_deep: bool = False
    states: tuple[ItemState, ...] = ()

    @property
    def item_nodes(self) -> tuple[int, ...]:
        """The nodes of items, `NO_NODE` perhaps among them; some may be there twice."""
        found = (*self.prefix, self.items)
        if self.contained is not None:
            found = (*found, *self.contained.prefix, self.contained.items)
        if self.states:
            found = (*found, *(node for state in self.states for node, _ in state.moves))
        return found


Shape = Spellings | Numbers | StringLiterals | Strings | Objects | Arrays
SCALARS = (Spellings, Numbers, StringLiterals, Strings)
"""The shapes without nodes inside."""


class SchemaGraph(NamedTuple):
    """The values of a schema.

    nodes : the shapes of each node; none is empty.
    root : the number of the node of the whole schema.
    left_out : what a lenient reading left out, as (JSON pointer, reason).
    """

    nodes: tuple[tuple[Shape, ...], ...]
    root: int
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def automata(self) -> list[Any]:
        """Its automata, some of them several times."""
        shapes: list[Any] = [shape for node in self.nodes for shape in node]
        found: list[Any] = [shape.automaton for shape in shapes if isinstance(shape, Numbers | Strings)]
        found += [shape.key_automaton for shape in shapes if shape.__class__ is Objects]
        return [automaton for automaton in found if automaton is not None]

    @property
    def nbytes(self) -> int:
        """About how many bytes it holds without its automata: its texts, and some."""
        total = 0
        # PERF: a schema of 1 kB has some twenty shapes, and is read in 0.3 ms
        for node in self.nodes:
            total += _OF_SHAPE * len(node)
            for shape in node:
                if isinstance(shape, Objects):
                    total += len(b"".join(shape.keys)) + _EACH * len(shape.member_nodes)
                elif isinstance(shape, Arrays):
                    total += _EACH * len(shape.item_nodes)
                elif isinstance(shape, StringLiterals | Spellings):
                    total += len(b"".join(shape.texts)) + _EACH * len(shape.texts)
        return total

    @property
    def compares_items(self) -> bool:
        """Whether items of any kind must differ in some array (`Arrays.is_deep`)."""
        return any([one.__class__ is Arrays and one.is_deep for node in self.nodes for one in node])


class Texts(NamedTuple):
    """The JSON texts of a schema's values: what masks are made for.

    graph : the values.
    spacing : the white space before, between and behind the tokens of JSON.
    escapes : "any" for strings and keys with any of JSON's escapes; "minimal" for an escape only of
        what JSON wants escaped, and only one: a backslash and then the quotation mark or backslash
        itself; b, t, n, f and r for the characters 8, 9, 10, 12 and 13; u and four digits, letters
        small, for the others below 32. So no string has two spellings.
        Source: RFC 8785, section 3.2.2.2. "natural" for these, with digits of either case, and u
        and four digits, or a surrogate pair, for any character from 127 on, which may stand as it
        is too: what Python's `json.dumps` and JavaScript's `JSON.stringify` write.

    A text has no object in which two members have the same key. Half a surrogate pair is no
    character. Numbers are spelled as their automata say. A text is legal if it is one of these; a
    beginning of one is a legal prefix.
    """

    graph: SchemaGraph
    spacing: Spacing = ANY
    escapes: Escapes = "any"

    @property
    def digest(self) -> str:
        """SHA-256, as hexadecimal digits: the same wherever a schema is read in the same way."""

        def said(value: Any) -> Any:
            if isinstance(value, tuple):
                parts = value if getattr(value, "wanted", True) else value[:-1]  # as when nothing could be wanted
                return type(value).__name__, *map(said, parts)
            if isinstance(value, Dfa):
                return said(value.next_state), said(value.is_accepting)
            return sha256(value.tobytes()).digest() if isinstance(value, np.ndarray) else value

        return sha256(repr(said(self)).encode()).hexdigest()
