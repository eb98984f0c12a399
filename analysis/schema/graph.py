"""From a JSON Schema to the graph of its values.

A builder makes drafts. What has no value goes away, and what cannot be said exactly is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeGuard

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import EmptySchemaError, LimitError, SchemaError
from maskwright.analysis.marks import MARK
from maskwright.analysis.schema import shapes as s
from maskwright.analysis.schema.builder import Builder
from maskwright.analysis.schema.cardinality import are_fewer, endless, listed_texts, n_values
from maskwright.analysis.schema.documents import DEFAULT_DRAFT, Document, read_document
from maskwright.analysis.schema.drafts import Doubtful, Draft, Patterned, has_value, living, living_states, shape_of
from maskwright.analysis.schema.keys import with_classes
from maskwright.analysis.schema.lengths import goes_on_for_ever
from maskwright.analysis.schema.scalars import merged


def build_graph(
    schema: Any,
    *,
    documents: Mapping[str, Any] | None = None,
    key_order: Literal["any", "schema"] = "any",
    is_natural: bool = False,
    lenient: bool = False,
    default_draft: int = DEFAULT_DRAFT,
) -> s.SchemaGraph:
    """The values of a schema.

    A JSON text is an instance if and only if the graph has its value, except that numbers whose
    value matters are spelled without an exponent, and that `format` asserts what it says.

    schema : as Python values: a dict or a bool. Drafts 4, 6, 7, 2019-09 and 2020-12, by `$schema`.
    documents : URI -> schema, for references to other documents. Nothing is loaded from elsewhere.
    key_order : "schema" for texts whose members keep the order of the schema's `properties`.
    is_natural : whether numbers whose value matters are spelled as people write them: an integer is
        not `1.0`, nothing is `-0`, and what `enum` and `const` list has no zeros at its end.
    lenient : whether to leave out what cannot be said exactly, so that more values are allowed.
        What is left out is in the graph.
    default_draft : 4, 6, 7, 2019 or 2020, for a schema without `$schema`.

    Raises: SchemaError, with a JSON pointer, for a schema that is malformed, that has no instance,
    or that cannot be said exactly.

    Example:
        >>> build_graph({"enum": ["a", None]}).nodes
        ((Spellings(texts=(b'null',)), StringLiterals(texts=(b'a',))),)
    """

    def read(document: Document) -> s.SchemaGraph:
        builder = Builder(document, key_order == "schema", is_natural)
        root = builder.node([2 * document.followed(document.root)])
        drafts = {} if root == s.NO_NODE else builder.reached(root)
        found = _Finisher(builder, drafts, lenient).graph(root)
        return found._replace(left_out=(*document.read_otherwise, *found.left_out))

    return read_document(schema, documents, default_draft, read)


class _Finisher:
    """The graph of some drafts.

    builder : whose nodes they are.
    drafts : of the root and of all nodes inside.
    lenient : whether to leave out what is refused.
    """

    def __init__(self, builder: Builder, drafts: Mapping[int, Sequence[Draft]], lenient: bool) -> None:
        self.builder = builder
        self.drafts = {node: list(some) for node, some in drafts.items()}
        self.lenient = lenient
        self.alive: set[int] = set()
        self.left_out: dict[tuple[str, str], None] = {}
        self._listed: dict[int, int] = {}  # node of items of a unique array -> the node with its values listed

    def graph(self, root: int) -> s.SchemaGraph:
        """The graph.

        Raises: SchemaError if it is empty, or something is refused and not `lenient`.
        """
        while True:
            self.alive = living(self.drafts)
            if root not in self.alive:
                where = self.builder.where(root) if root >= 0 else self.builder.document.root
                raise self.builder.document.error(where, "", "no value satisfies the schema", EmptySchemaError)
            if not self.builder.has_unique or not self._unique_arrays():
                break
        return s.SchemaGraph(self._as_they_are() or self._numbered(root), 0, tuple(self.left_out))

    def _as_they_are(self) -> tuple[tuple[s.Shape, ...], ...] | None:
        """The nodes by the builder's numbers, where all were reached and are final; else None.

        PERF: most schemas are such, and take a tenth less. The builder's first node is the root.
        """
        if not len(self.alive) == len(self.drafts) == len(self.builder.terms):
            return None
        nodes: list[tuple[s.Shape, ...]] = []
        for node in range(len(self.drafts)):
            shapes = [draft for draft in self.drafts[node] if _is_final(draft)]
            if len(shapes) < len(self.drafts[node]):
                return None
            nodes.append(merged(shapes))
        return tuple(nodes)

    def _numbered(self, root: int) -> tuple[tuple[s.Shape, ...], ...]:
        """The nodes that are reached from the root, which comes first."""
        numbers = {root: 0}
        order = [root]
        nodes: list[tuple[s.Shape, ...]] = []
        leaves: dict[tuple[int, ...] | int, int] = {}  # those of the same shapes are one

        def number(node: int) -> int:
            if node not in self.alive:
                return s.NO_NODE
            if node not in numbers:
                drafts = self.drafts[node]
                is_leaf = all([draft.__class__ in s.SCALARS for draft in drafts])
                numbers[node] = leaves.setdefault(tuple(map(id, drafts)) if is_leaf else node, len(order))
                if numbers[node] == len(order):
                    order.append(node)
            return numbers[node]

        for node in order:  # grows while it is read
            look()
            shapes: list[s.Shape] = []
            for draft in self.drafts[node]:
                if draft.__class__ in s.SCALARS:
                    shapes.append(draft)
                    continue
                try:
                    shapes.extend(self._finished(draft, number))
                except LimitError as error:
                    raise self.builder.document.error(self.builder.where(node), "", str(error)) from error
            nodes.append(merged(shapes))
        return tuple(nodes)

    def _has_value(self, draft: Draft) -> bool:
        return has_value(draft, self.alive.__contains__)

    def _finished(self, draft: Draft, number: Callable[[int], int]) -> Iterator[s.Shape]:
        if not self._has_value(draft):
            return
        refused = draft.refused if isinstance(draft, Doubtful) else ()
        draft = shape_of(draft)
        if isinstance(draft, Patterned) and (why := draft.lacking(self.alive.__contains__)):
            draft, refused = draft._replace(asked=()), (*refused, *((pointer, why) for pointer in draft.asked))
        for pointer, reason in refused:
            if not self.lenient:
                raise SchemaError(f"{pointer or '/'}: {reason}; rewrite it, or leave it out by lenient=True", pointer)
            self.left_out[pointer, reason] = None
        if isinstance(draft, (s.Objects, Patterned)):
            yield self._object(draft, number)
        elif isinstance(draft, s.Arrays):
            yield self._array(draft, number)
        else:
            yield draft

    def _object(self, draft: s.Objects | Patterned, number: Callable[[int], int]) -> s.Objects:
        """The shape of objects, with an automaton of other keys; few keys become named ones."""
        objects = draft.objects if isinstance(draft, Patterned) else draft
        others = tuple([number(node) for node in objects.others if node in self.alive])
        found = objects._replace(values=tuple(map(number, objects.values)), others=others)
        if isinstance(draft, s.Objects):
            return found
        n = 1 + len(draft.asked)
        rows = {which: tuple(map(number, row[:n])) for which, row in draft.classes.items() if row[0] in self.alive}
        return with_classes(found, draft.automata, rows)

    def _array(self, draft: s.Arrays, number: Callable[[int], int]) -> s.Arrays:
        if draft.states:
            states = living_states(draft.states, self.alive.__contains__)
            moved = (s.ItemState(one.is_end, tuple([(number(node), to) for node, to in one.moves])) for one in states)
            return draft._replace(states=tuple(moved))
        contained = draft.contained
        most = draft.most
        prefix: list[int] = []
        inside: list[int] = []
        for i, node in enumerate(draft.prefix):
            is_possible = node in self.alive or (contained is not None and contained.prefix[i] in self.alive)
            if i == most or not is_possible:
                most = i
                break
            prefix.append(number(node))
            inside.append(number(contained.prefix[i]) if contained else s.NO_NODE)
        items = inner = s.NO_NODE
        if most is None or most > len(prefix):
            items = number(draft.items)
            inner = number(contained.items) if contained else s.NO_NODE
            if items == inner == s.NO_NODE:
                most = len(prefix)
        if contained is not None:
            is_possible = any(node != s.NO_NODE for node in (*inside, inner))
            contained = contained._replace(prefix=tuple(inside), items=inner) if is_possible else None
        return s.Arrays(tuple(prefix), items, draft.least, most, contained, draft.is_unique, draft.is_deep)

    # -- arrays without equal items

    def _unique_arrays(self) -> bool:
        """Looks at what unique arrays hold. Returns whether a shape went away."""
        is_changed = False
        for node, drafts in list(self.drafts.items()):
            for i, draft in enumerate(drafts):
                if draft.__class__ is s.Objects or draft.__class__ in s.SCALARS:
                    continue
                shape = shape_of(draft)
                if not isinstance(shape, s.Arrays) or not shape.is_unique or not self._has_value(draft):
                    continue
                refused = draft.refused if isinstance(draft, Doubtful) else ()
                changed, reason = self._unique(shape)
                if changed is None:
                    drafts[i] = s.Arrays((), s.NO_NODE, 1, 0)  # no value
                    is_changed = True
                    continue
                if reason:
                    where = self.builder.document.pointer(self.builder.where(node)) + "/uniqueItems"
                    refused = (*refused, (where, reason))
                drafts[i] = Doubtful(changed, refused) if refused else changed
        return is_changed

    def _unique(self, arrays: s.Arrays) -> tuple[s.Arrays | None, str]:
        """What a unique array becomes: None if it has no value; and why it cannot be unique."""
        final = self._array(arrays, lambda node: node if node in self.alive else s.NO_NODE)
        if final.most is not None and final.most < 2:
            return final._replace(is_unique=False), ""
        inside = [node for node in final.item_nodes if node != s.NO_NODE]
        counts: dict[int, int | None] = {}
        is_deep = False
        for node in dict.fromkeys(inside):
            shapes = self._alive_shapes(node)
            if any(isinstance(one, s.Spellings) and max(one.texts)[0] == MARK for one in shapes):
                return arrays._replace(is_unique=False), "items of another language are compared"
            has_containers = any(isinstance(one, (s.Arrays, s.Objects)) for one in shapes)
            is_deep = is_deep or has_containers
            counts[node] = None if has_containers else self._list(node)
        listed = self._array(final, lambda node: self._listed.get(node, node))
        if final.states:
            return self._unique_states(final, listed, counts)
        first = [*final.prefix, final.items][: final.least]
        needed = Counter(final.prefix[: final.least])
        needed[final.items] += max(0, final.least - len(final.prefix))
        if any(n > 1 and are_fewer(self._alive_shapes(node), n) for node, n in needed.items()):
            return None, ""
        limits = [count for count in counts.values() if count is not None]
        if not limits and not is_deep:
            if all(_can_be_compared(self._alive_shapes(self._listed.get(node, node))) for node in counts):
                return listed, ""
        elif len(counts) == 1 and not is_deep and (final.items != s.NO_NODE or len(final.prefix) <= limits[0]):
            most = limits[0] if listed.most is None else min(listed.most, limits[0])
            if listed.least > most:
                return None, ""
            return listed._replace(most=most), ""
        if final.least > 1 and not all(map(self._is_endless, {*first})):
            return arrays._replace(is_unique=False), "items of different finite sets are compared"
        return final._replace(is_deep=True), ""

    def _unique_states(self, final: s.Arrays, listed: s.Arrays, counts: dict[int, int | None]) -> tuple[s.Arrays, str]:
        """As `_unique`, where items have states. counts : the number of values of each node."""
        if None not in counts.values():
            return listed, ""
        is_known = all(
            n_values(self.drafts[node]) is not None or (count is None and self._is_endless(node))
            for node, count in counts.items()
        )
        if not is_known:
            return final._replace(is_unique=False), "`contains` with `uniqueItems`, of items of a finite set"
        shapes = [self._alive_shapes(self._listed.get(node, node)) for node in counts]
        has_containers = any(isinstance(one, (s.Arrays, s.Objects)) for some in shapes for one in some)
        if not has_containers and not any(counts.values()) and all(map(_can_be_compared, shapes)):
            return listed, ""
        return final._replace(is_deep=True), ""

    def _is_endless(self, node: int) -> bool:
        """Whether a node of items has infinitely many values, or as many as do not matter."""
        return node in endless(node, self._alive_shapes)

    def _alive_shapes(self, node: int) -> list[s.Shape]:
        found = [shape_of(draft) for draft in self.drafts[node] if self._has_value(draft)]
        return [shape.objects if isinstance(shape, Patterned) else shape for shape in found]

    def _list(self, node: int) -> int | None:
        """The number of values of a node of scalars, None for infinitely many.

        Of sets with few values a node is made in which they are listed.
        """
        shapes = self._alive_shapes(node)
        found: list[s.Shape] = []
        is_infinite = False
        for shape in merged(shapes):
            texts = listed_texts(shape)
            is_infinite = is_infinite or texts is None
            if texts and isinstance(shape, s.Numbers):
                shape = s.Spellings(texts)
            elif texts and isinstance(shape, s.Strings):
                shape = s.StringLiterals(texts)
            found.append(shape)
        if found != shapes and node not in self._listed:
            self._listed[node] = self.builder.another(node)
            refused = [one.refused for one in self.drafts[node] if isinstance(one, Doubtful) and self._has_value(one)]
            doubts = tuple(dict.fromkeys(pair for pairs in refused for pair in pairs))
            final: list[Draft] = [Doubtful(one, doubts) if doubts else one for one in merged(found)]
            self.drafts[self._listed[node]] = final
            self.alive.add(self._listed[node])
        if is_infinite:
            return None
        return sum(len(one.texts) for one in merged(found) if isinstance(one, (s.Spellings, s.StringLiterals)))


def _is_final(draft: Draft) -> TypeGuard[s.Shape]:
    """Whether a draft is a shape with values, if all nodes have some: limits need a closer look."""
    if isinstance(draft, s.Objects):
        return not draft.least and draft.most is None
    if isinstance(draft, s.Arrays):
        is_plain = not draft.prefix and draft.contained is None and not draft.states
        return is_plain and draft.items != s.NO_NODE and (draft.most is None or (not draft.least and draft.most > 0))
    return isinstance(draft, s.SCALARS)


def _can_be_compared(shapes: list[s.Shape]) -> bool:
    """Whether the engine can compare items of some shapes, with infinitely many values.

    It can if, wherever an item has begun, infinitely many items begin so, or all but its last
    character is there; or if it is one of the words that the engine knows by their first byte.
    """
    firsts = [text[0] for one in shapes if isinstance(one, s.Spellings) for text in one.texts]
    if any(isinstance(one, s.Numbers) for one in shapes) or len(set(firsts)) < len(firsts):
        return False
    strings = [one for one in shapes if isinstance(one, s.Strings)]
    if any(one.automaton is None and one.most is None for one in strings):
        return True
    is_alone = len(strings) == 1 and not any(isinstance(one, s.StringLiterals) for one in shapes)
    return is_alone and (
        strings[0].automaton is None or (strings[0].most is None and goes_on_for_ever(strings[0].automaton))
    )
