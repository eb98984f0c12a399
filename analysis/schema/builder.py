"""From sets of terms to nodes, and to drafts of the shapes of each node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError, SchemaError
from maskwright.analysis.graphs import reachable
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema import constraints as c
from maskwright.analysis.schema.arrays import array_drafts, item_terms
from maskwright.analysis.schema.documents import Document
from maskwright.analysis.schema.drafts import Doubtful, Draft, has_value, nodes_of
from maskwright.analysis.schema.known_keywords import OF_SCALARS, SAYING
from maskwright.analysis.schema.normal import Normals
from maskwright.analysis.schema.objects import member_terms, object_drafts
from maskwright.analysis.schema.scalars import LEAVES, Leaf, leaf_content, merged, same_leaf, scalar_shape
from maskwright.analysis.schema.shapes import NO_NODE, SCALARS, Numbers, Shape, Spellings, StringLiterals, Strings
from maskwright.analysis.schema.strings import counted, either, literals

MOST_NODES = 300_000
"""BOUND: the nodes of a graph, with those that were made for a look."""
DEEPEST_LOOK = 3
"""How many conjunctions inside one another a look for a contradiction goes down."""
MOST_STATES, DEAREST = 30_000, 10_000
"""BOUND: the states of automata that conjunctions make for a whole schema.

The second number is what one past its own limit costs.
"""
MOST_COUNTED = 1_000
"""BOUND: the characters of a key that `propertyNames` counts."""


class Builder(Normals):
    """Nodes by the terms that hold there.

    document : whose terms they are.
    in_order : whether keys keep the order of the schema.
    is_natural : whether numbers are spelled as people write them, as for `build_graph`.

    has_unique : whether an array of unique items was met.
    """

    def __init__(self, document: Document, in_order: bool, is_natural: bool) -> None:
        super().__init__(document)
        self.in_order = in_order
        self.is_natural = is_natural
        self.terms: list[tuple[int, ...]] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._drafts: dict[int, Sequence[Draft]] = {}
        self._drafting: set[int] = set()
        self._empty: set[int] = set()
        self._full: set[tuple[int, int]] = set()
        self._depth = 0
        self._leaves: dict[int, int] = {}  # by the identity of shapes, which `_drafts` keeps
        self.has_unique = False
        self._states = MOST_STATES
        self._counted: set[tuple[str, c.Clause]] = set()  # clauses whose automata `_states` has paid for

    def pointer(self, term: int) -> str:
        """The JSON pointer of a term's subschema."""
        return self.document.pointer(term >> 1)

    def node(self, terms: Sequence[int]) -> int:
        """The node of the values that satisfy all terms; `NO_NODE` where that is plainly none."""
        key = tuple(terms) if len(terms) == 1 else tuple(sorted({*terms} - {c.TRUE})) or (c.TRUE,)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._some_node(key)
        return number

    def _some_node(self, key: tuple[int, ...]) -> int:
        """As `node`, of sorted terms."""
        if c.FALSE in key:
            return NO_NODE
        if len(key) > 1:
            if any([term & 1 and term ^ 1 in key for term in key]):
                return NO_NODE
            fewer = self._without_needless(key)
            if fewer is None:
                return NO_NODE
            if fewer is not key:
                return self.node(fewer)
        elif not key[0] & 1:
            shapes = self.leaf(key[0] >> 1)
            if shapes is not None:
                return self._leaf_node(shapes)
        return self._new_node(key)

    def leaf(self, location: int) -> Leaf | None:
        """The shapes of a subschema of scalars only; None for any other, and for an empty one."""
        schema, draft = self.document.schemas[location], self.document.drafts[location]
        try:
            content = leaf_content(schema, draft, self.is_natural) if schema.__class__ is dict else None
            found: Any = LEAVES.get(content, LEAVES) if content is not None else None
        except TypeError:  # a list in a list
            return None
        if found is LEAVES:
            found = LEAVES.put(content, self._made_leaf(schema, draft))
        return found  # type: ignore[no-any-return]

    def _made_leaf(self, schema: dict[str, Any], draft: int) -> Leaf | None:
        """As `leaf`, of a subschema by itself: what is wrong with one is said where it stands."""
        saying = {name: value for name, value in schema.items() if name in SAYING}
        try:
            alone = Builder(Document(saying, None, draft), False, self.is_natural)
            drafts = alone.drafts(alone._new_node((2 * alone.document.root,)))
        except SchemaError:
            return None
        shapes = [draft for draft in drafts if isinstance(draft, SCALARS)]
        return same_leaf(merged(shapes)) if shapes and len(shapes) == len(drafts) else None

    def _leaf_node(self, shapes: Leaf) -> int:
        number = self._leaves.get(id(shapes))
        if number is None:
            number = self._leaves[id(shapes)] = len(self.terms)
            self.terms.append(())
            self._drafts[number] = shapes
        return number

    def _new_node(self, key: tuple[int, ...]) -> int:
        number = len(self.terms)
        self.terms.append(key)
        if number >= MOST_NODES:
            raise self.document.error(
                key[0] >> 1, "", f"the schema has more than {MOST_NODES:,} different subschemas in all"
            )
        return number

    def _without_needless(self, terms: tuple[int, ...]) -> tuple[int, ...] | None:
        """Terms that say the same as these; None if no value satisfies all of these.

        PERF: where a schema tells its cases apart by a constant, terms are one constant, and that
        it is none of many others.
        """
        lists = [(term, listed) for term in terms if (listed := self.listed(term >> 1)) is not None]
        among = [listed for term, listed in lists if not term & 1]
        if len(lists) < 2 or not among:
            return terms
        values = frozenset.intersection(*among)
        left = values.difference(*[listed for term, listed in lists if term & 1])
        if not left:
            return None
        only = next((term for term, listed in lists if not term & 1 and listed == left), None)
        if left != values or only is None:
            return terms
        return tuple(sorted({only, *terms} - {term for term, _ in lists if term != only}))

    def another(self, node: int) -> int:
        """The number of a new node that stands where a node stands."""
        self.terms.append(self.terms[node])
        return len(self.terms) - 1

    def where(self, node: int) -> int:
        """A location of a node, for messages: that of the first subschema that holds there."""
        terms = self.terms[node]
        return next((term >> 1 for term in terms if not term & 1), terms[0] >> 1 if terms else 0)

    def drafts(self, node: int) -> Sequence[Draft]:
        """The drafts of a node's shapes. Raises: SchemaError."""
        found = self._drafts.get(node)
        if found is None:
            self._drafting.add(node)
            try:
                found = self._draft(node)
            except LimitError as error:
                raise self.document.error(self.where(node), "", str(error)) from error
            finally:
                self._drafting.discard(node)
            self._drafts[node] = found
        return found

    def _draft(self, node: int) -> Sequence[Draft]:
        look()
        terms = self.terms[node]
        normal = self.meet_terms(terms)
        found: list[Draft] = []
        for kind in c.TYPES:
            for clause in normal.get(kind, ()):
                if kind == c.OBJECT:
                    found.extend(object_drafts(clause, self, self.in_order))
                elif kind == c.ARRAY:
                    found.extend(array_drafts(clause, self))
                else:
                    draft = self._scalar(kind, clause, node)
                    if draft is not None:
                        found.append(draft)
        return found

    def _shape(self, kind: str, clause: c.Clause, node: int) -> Shape | None:
        """As `scalar_shape`, as long as the automata are not too many. node : whose shape it is.

        Raises: SchemaError past `MOST_STATES` states of all automata that several constraints make.
        """
        if self._states < 0:
            what = "the patterns, formats or bounds of its branches multiply too far; write some of them out"
            raise self.document.error(self.where(node), "", what)
        try:
            shape = scalar_shape(kind, clause, kind == c.NUMBER and self.is_natural)
        except LimitError:
            self._states -= DEAREST
            raise
        if len(clause) > 1 and (kind, clause) not in self._counted and isinstance(shape, (Strings, Numbers)):
            self._counted.add((kind, clause))
            self._states -= shape.automaton.n_states + 20 if shape.automaton is not None else 20
        return shape

    def _scalar(self, kind: str, clause: c.Clause, node: int) -> Draft | None:
        refused = tuple([(one.pointer, one.reason) for one in clause if isinstance(one, c.Refused)])
        if refused:
            clause = tuple(one for one in clause if not isinstance(one, c.Refused))
        try:
            shape = self._shape(kind, clause, node)
        except LimitError as error:
            kept = tuple(one for one in clause if not isinstance(one, (c.Pattern, c.Format)))
            if len(kept) == len(clause):
                raise
            shape = self._shape(kind, kept, node)
            refused = (*refused, (self.document.pointer(self.where(node)), str(error)))
        return Doubtful(shape, refused) if refused and shape is not None else shape

    def names(self, terms: tuple[int, ...], refused: list[tuple[str, str]]) -> Dfa | None:
        """The strings that satisfy all terms; None for all strings.

        refused : what cannot be said exactly is added there.
        """
        parts: list[Dfa] = []
        for clause in self.meet_terms(terms).get(c.STRING, ()):
            refused.extend((one.pointer, one.reason) for one in clause if isinstance(one, c.Refused))
            shape = scalar_shape(c.STRING, tuple(one for one in clause if not isinstance(one, c.Refused)), False)
            if isinstance(shape, Spellings):
                raise SchemaError("a part of another language stands where a key is meant: a key can be no part")
            if isinstance(shape, StringLiterals):
                parts.append(literals(shape.texts))
            elif isinstance(shape, Strings):
                dfa, least, most = shape
                if max(least, most or 0) > MOST_COUNTED:
                    what = f"keys of more than {MOST_COUNTED:,} characters are counted; lower the limit"
                    refused.append((self.pointer(terms[0]), what))
                elif least or most is not None:
                    dfa = counted(dfa, least, most)
                if dfa is None:
                    return None
                parts.append(dfa)
        return reduce(either, parts) if parts else literals(())

    # -- short looks for contradictions

    def is_plainly_empty(self, kind: str, clause: c.Clause, left: c.Clause, right: c.Clause) -> bool:
        """Whether a clause, which joins two, has no value, as far as a short look tells.

        The look is for what contradicts one another, not for what is empty by itself.
        """
        if kind == c.OBJECT:
            sides = [[one for one in side if isinstance(one, c.Members)] for side in (left, right)]
            fewer, more = sorted(sides, key=len)  # PERF: where terms meet one by one, one side grows
            required = [one.name for one in clause if one.__class__ is c.Required] if fewer else ()
            asked = [(terms, name) for name in required if any(terms := member_terms(fewer, name))]
            pairs = ((terms, member_terms(more, name)) for terms, name in asked)
            return any(any(others) and self.is_surely_empty((*terms, *others)) for terms, others in pairs)
        if kind == c.ARRAY:
            least = max((one.least for one in clause if isinstance(one, c.Size)), default=0)
            return any(self.is_surely_empty(item_terms(clause, i)) for i in range(min(least, 8)))
        if len(clause) == 1 and clause[0].__class__ is c.Among:
            return False  # the empty list is none
        if any(isinstance(one, c.Refused) for one in clause):
            return False
        try:
            return self._shape(kind, clause, 0) is None
        except (SchemaError, LimitError):
            return False

    def is_surely_empty(self, terms: Sequence[int]) -> bool:
        """Whether no value satisfies all terms, as far as a short look tells.

        PERF: lists need no automata of the numbers that are in none of them.
        """
        lists = [self.listed(term >> 1) for term in terms if term != c.TRUE]
        if None in lists:
            return self._is_surely_empty(self.node(terms))
        among = [
            some for some, term in zip(lists, filter(None, terms), strict=True) if some is not None and not term & 1
        ]
        without = [some for some, term in zip(lists, filter(None, terms), strict=True) if some is not None and term & 1]
        return bool(among) and not frozenset.intersection(*among).difference(*without)

    def _is_surely_empty(self, node: int) -> bool:
        if node == NO_NODE or node in self._empty:
            return True
        known = self._drafts.get(node)
        if known and known[0].__class__ in SCALARS:
            return False
        if node in self._drafting or (node, self._depth) in self._full:
            return False
        schemas = [self.document.schemas[term >> 1] for term in self.terms[node]] if self._depth >= DEEPEST_LOOK else ()
        if not all(isinstance(one, bool) or SAYING.intersection(one) <= OF_SCALARS for one in schemas):
            return False  # only scalars are looked at there
        self._depth += 1
        try:
            drafts = self.drafts(node)
            is_empty = not any(has_value(draft, lambda child: not self._is_surely_empty(child)) for draft in drafts)
        except SchemaError:
            return False  # it will be met again where it counts
        finally:
            self._depth -= 1
        if is_empty:
            self._empty.add(node)
        else:
            self._full.add((node, self._depth))
        return is_empty

    def reached(self, root: int) -> dict[int, Sequence[Draft]]:
        """The drafts of the root and of all nodes inside, breadth first."""

        def inside(node: int) -> list[int]:
            return [child for draft in self.drafts(node) for child in nodes_of(draft) if child != NO_NODE]

        return {node: self.drafts(node) for node in reachable([root], inside)}
