"""What people look for who look for mistakes: keywords that contradict one another, or say nothing.

In: a schema without a value. Out: a few of its keywords that no value satisfies together, each of
which is needed: without it some value would. They are found by leaving keywords out. In: any
schema. Out: its subschemas without a value, by itself or together with others; its subschemas with
their places, and the keywords that do nothing there.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from time import thread_time
from typing import Any, Literal, NamedTuple

from maskwright.analysis.arguments import printable
from maskwright.analysis.errors import EmptySchemaError, MaskwrightError
from maskwright.analysis.nesting import on_own_stack
from maskwright.analysis.schema import known_keywords as k
from maskwright.analysis.schema.builder import Builder
from maskwright.analysis.schema.documents import DEFAULT_DRAFT, at, draft_of, escaped, read_document
from maskwright.analysis.schema.drafts import living
from maskwright.analysis.schema.formats import FORMATS, NOT_REGULAR
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.shapes import NO_NODE

LEAST_TRIES, MOST_TRIES, MOST_READ, MOST_SECONDS = 20, 300, 1_000_000, 2
"""BOUND: how often a schema is read to find the keywords, at least and at most; the characters that
are read in all; and the CPU time, for schemas that take long by what they say."""
MOST_SHOWN = 6
"""Keywords that a message names."""
_WHOLE = frozenset({"dependencies", "oneOf", "not", "if"})
"""Keywords of whose schemas none can be left out: `true` instead of one need not allow more."""
_OTHERS_DEPEND = frozenset({"properties", "patternProperties", "prefixItems", "items", "$defs", "definitions"})
"""Keywords that stay, since others would mean something else without them: their subschemas become
`true` instead."""


_Path = tuple[str | int, ...]


class Stated(NamedTuple):
    """A keyword where it stands. pointer : of the subschema that has it."""

    pointer: str
    keyword: str
    value: Any

    def __str__(self) -> str:
        value = spelled(self.value)
        return f"{self.keyword} {value}" if self.keyword else value


def spelled_out(value: Any) -> str:
    """A value of a schema as JSON."""
    return json.dumps(value, ensure_ascii=False, default=repr)


def spelled(value: Any) -> str:
    """A value of a schema as JSON, shortened for a message."""
    shown = printable(spelled_out(value))
    return shown if len(shown) <= 60 else f"{shown[:40]} ... {shown[-15:]}"


@on_own_stack
def contradiction(
    schema: Any, *, documents: Mapping[str, Any] | None = None, default_draft: int = DEFAULT_DRAFT
) -> tuple[Stated, ...]:
    """Keywords that no value satisfies together, though it would if any of them were left out.

    schema : no value satisfies it. It does not change.

    Returns () where it cannot be told: the schema is `false`, or it asks for what other keywords
    leave over (`unevaluatedProperties`). Past the bounds it returns more keywords than are needed.
    Raises: NestingError.
    Cost: that of reading a schema for each keyword that is found, times the logarithm of all.
    """
    if not isinstance(schema, dict):
        return ()
    search = _Search(schema, documents, default_draft)
    if not search.is_empty({}):
        return ()
    search.leave_out([*search.parts(schema)])
    found = tuple(search.stated(_without(schema, search.gone)))
    return () if any(one.keyword.startswith("unevaluated") for one in found) else found


def in_words(found: tuple[Stated, ...], pointer: str = "") -> str:
    """The end of a message that nothing satisfies a schema; "" for ().

    pointer : where the schema stands.

    >>> in_words(contradiction({"type": "string", "minLength": 5, "maxLength": 3}))
    ': type "string", minLength 5 and maxLength 3 contradict one another'
    """
    if not found:
        return ""
    places = list(dict.fromkeys(one.pointer for one in found))
    groups = []
    for place in places:
        here = [str(one) for one in found if one.pointer == place]
        names = f"{', '.join(here[:-1])} and {here[-1]}" if len(here) > 1 else here[0]
        groups.append(f"{names} {at(pointer + place)}" if places != [""] else names)
    more = f" and {len(groups) - MOST_SHOWN} more places" if len(groups) > MOST_SHOWN else ""
    verb = "contradict one another" if len(found) > 1 else "allows nothing"
    return f": {'; '.join(groups[:MOST_SHOWN])}{more} {verb}"


class _Search:
    """Which parts of a schema without a value are not needed for that.

    A part is known by the keys and offsets that lead to it.

    gone : those that were left out, and whether `true` stands in their place.
    """

    def __init__(self, schema: dict[str, Any], documents: Mapping[str, Any] | None, draft: int) -> None:
        self.schema, self.documents = schema, documents
        self.draft = draft_of(schema, draft)
        self.gone: dict[_Path, bool] = {}
        self.left = max(LEAST_TRIES, min(MOST_TRIES, MOST_READ // len(spelled_out(schema))))
        self.last_of_least, self.end = self.left - LEAST_TRIES, thread_time() + MOST_SECONDS

    def is_empty(self, gone: Mapping[_Path, bool]) -> bool:
        """Whether no value satisfies the schema without some parts; False past the bounds."""
        self.left -= 1
        if self.left < 0 or (self.left < self.last_of_least and thread_time() > self.end):
            return False
        left = _without(self.schema, gone)
        try:
            build_graph(left, documents=self.documents, lenient=True, default_draft=self.draft)
        except EmptySchemaError:
            return True
        except MaskwrightError:
            pass  # malformed without them
        return False

    def leave_out(self, parts: list[tuple[_Path, bool]]) -> None:
        """Leave out those parts without which there is still no value, one by one in their order.

        PERF: many at once where none of them is needed.
        """
        parts = [part for part in parts if not any([part[0][:n] in self.gone for n in range(1, len(part[0]))])]
        if parts and self.is_empty(self.gone | dict(parts)):
            self.gone |= dict(parts)
        elif len(parts) > 1:
            self.leave_out(parts[: len(parts) // 2])
            self.leave_out(parts[len(parts) // 2 :])

    def keywords(self, schema: dict[str, Any]) -> dict[str, bool]:
        """The keywords that may contradict others, and whether each can be left out."""
        if "$ref" in schema and self.draft <= 7:  # its neighbours are not read
            return dict.fromkeys(["$ref", *(key for key in schema if key in k.WITH_NAMED - _WHOLE)], False)
        found = {key: key == "items" and "additionalItems" not in schema for key in _OTHERS_DEPEND}
        said = [key for key in schema if not str(key).startswith("$") or key in k.REFERENCES or key in found]
        return {key: found.get(key, True) for key in said if key != "minContains" or schema[key]}

    def parts(self, schema: dict[str, Any], path: _Path = ()) -> Iterator[tuple[_Path, bool]]:
        """What can be left out of a subschema, outer parts before those inside."""
        keywords = self.keywords(schema)
        yield from [((*path, key), False) for key, can_go in keywords.items() if can_go]
        for key in keywords:
            inside = _inside(key, schema[key]) or {}
            yield from [
                ((*path, key, *way), key != "required") for way, one in inside.items() if way and one is not True
            ]
            for way, one in inside.items():
                if isinstance(one, dict):
                    yield from self.parts(one, (*path, key, *way))

    def stated(self, schema: dict[str, Any], pointer: str = "") -> Iterator[Stated]:
        """What a subschema says, of which nothing can be left out."""
        for key in self.keywords(schema):
            inside = _inside(key, schema[key])
            if inside is None or key == "required":
                yield Stated(pointer, key, schema[key])
                continue
            for way, one in inside.items():
                where = pointer + "".join([f"/{escaped(step)}" for step in (key, *way)])
                if isinstance(one, dict):
                    yield from self.stated(one, where)
                elif one is not True:
                    yield Stated(where, "", one)


def _inside(key: str, value: Any) -> dict[_Path, Any] | None:
    """The subschemas of a keyword, or the names of `required`, by the way to each; else None."""
    if key == "required" and isinstance(value, list):
        return {(i,): one for i, one in enumerate(value)}
    return None if key in _WHOLE else k.schemas_of(key, value)


def _without(value: Any, gone: Mapping[_Path, bool], path: _Path = ()) -> Any:
    """A copy of a value without some parts. path : what leads to it."""
    if not isinstance(value, dict | list):
        return value
    found = {}
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        place = (*path, key)
        if place not in gone:
            found[key] = _without(one, gone, place)
        elif gone[place]:
            found[key] = True
    return found if isinstance(value, dict) else [*found.values()]


_CHOOSING = {"anyOf", "oneOf", "if", "not", "$dynamicRef", "$recursiveRef"} | k.DEPENDENT
"""Keywords under which a conjunction without a value is nothing unusual."""


class _Thorough(Builder):
    """Nodes by the terms that hold there; all subschemas are read where they stand."""

    def leaf(self, location: int) -> None:
        """Nothing is looked up."""


class Emptiness(NamedTuple):
    """What has no value.

    is_empty : whether no value satisfies the whole schema.
    subschemas : JSON pointers of subschemas that no value satisfies, each by itself.
    together : groups of JSON pointers of subschemas that must hold for one member or item, and that
        no value satisfies together. Only looked for in schemas without alternatives.
    """

    is_empty: bool
    subschemas: tuple[str, ...]
    together: tuple[tuple[str, ...], ...]


def empty_subschemas(
    schema: Any, *, documents: Mapping[str, Any] | None = None, default_draft: int = DEFAULT_DRAFT
) -> Emptiness:
    """The subschemas without a value, as far as they are reached from the whole schema.

    What cannot be said exactly counts as if it were left out.

    Raises: SchemaError for a malformed schema; LimitError past a limit.
    Cost: several times that of `build_graph`.
    """
    return read_document(schema, documents, default_draft, lambda document: _looked(_Thorough(document, False, False)))


def _looked(builder: Builder) -> Emptiness:
    document = builder.document
    root = builder.node([2 * document.followed(document.root)])
    if root == NO_NODE:
        return Emptiness(True, (), ())
    reached = set(builder.reached(root))
    alone: dict[int, int] = {}  # a location -> the node of its values
    location = 1
    while location < len(document.schemas):  # locations are found on the way
        # what was made up for a constant stands nowhere; what is not given is not looked at
        is_there = bool(document.pointer(location)) and location not in document.unknown
        if is_there and isinstance(document.schemas[location], dict):
            alone[location] = builder.node([2 * location])
            if alone[location] != NO_NODE:
                builder.reached(alone[location])
        location += 1
    drafts = {}
    for node in {root, *reached, *alone.values()} - {NO_NODE}:
        drafts.update(builder.reached(node))
    alive = living(drafts)
    empty = [place for place, node in alone.items() if node not in alive]
    pointers = dict.fromkeys(document.pointer(place) for place in empty)
    together: dict[tuple[str, ...], None] = {}
    if not any(isinstance(one, dict) and not _CHOOSING.isdisjoint(one) for one in document.schemas):
        for node in sorted(reached - alive):
            terms = builder.terms[node]
            places = tuple(document.pointer(term >> 1) for term in terms)
            if len(terms) > 1 and not any(term & 1 for term in terms) and pointers.keys().isdisjoint(places):
                together[places] = None
    return Emptiness(root not in alive, tuple(pointers), tuple(together))


# -- keywords that say nothing

Severity = Literal["warning", "info"]
_TYPE_OF = k.TYPE_OF | k.UNEVALUATED | dict.fromkeys(k.DEPENDENT, "object")
"""Keyword -> the type of which alone it says something."""
_KNOWN = k.SAYING | k.DESCRIBING
_PARTNERS = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}
"""Keyword -> the one without which it says nothing."""
_FORMATS = FORMATS.keys() | NOT_REGULAR
_OTHERS_FORMATS = {"url": "uri", "guid": "uuid", "ip-address": "ipv4"}
"""What other languages call formats of JSON Schema."""
Idle = tuple["Place", str, Severity, str, str]
"""The subschema, the keyword ("?" before an unknown one), severity, what is so, what to do."""


class Place(NamedTuple):
    """A subschema where it stands.

    path : the keys and offsets that lead to it.
    schema : its keywords.
    draft : the draft that holds there.
    is_negated : whether it stands under `not` or `if`, where it need not be satisfied.
    """

    path: tuple[str | int, ...]
    schema: dict[str, Any]
    draft: int
    is_negated: bool

    @property
    def pointer(self) -> str:
        """Its JSON pointer. PERF: few are asked for."""
        return "".join([f"/{escaped(key)}" for key in self.path])


def places_of(schema: Any, draft: int) -> Iterator[Place]:
    """The subschemas of a schema that are objects, the outer ones first.

    Raises: nothing; what is malformed is left out.
    """
    todo: list[tuple[tuple[str | int, ...], Any, bool]] = [((), schema, False)]
    while todo:
        path, one, is_negated = todo.pop()
        if not isinstance(one, dict):
            continue
        yield Place(path, one, draft, is_negated)
        inside: list[tuple[tuple[str | int, ...], Any, bool]] = []
        for key in [key for key in one if key in k.WITH_ANY]:  # PERF: most keywords have none
            under = is_negated or key in ("not", "if")
            inside += [((*path, key, *way), each, under) for way, each in (k.schemas_of(key, one[key]) or {}).items()]
        todo += reversed(inside)


def idle_keywords(places: Iterable[Place]) -> Iterator[Idle]:
    """The keywords that say nothing of any value."""
    for place in places:
        schema = place.schema
        if "$ref" in schema and place.draft <= 7:
            for keyword in schema:
                if keyword in k.SAYING - {"$ref"}:
                    why = f"{keyword} stands beside $ref, where drafts up to 7 do not read it"
                    yield place, keyword, "warning", why, "put both into an allOf, or name a newer draft with $schema"
            continue
        for keyword in schema:
            found = _idle(place, keyword)
            if found is not None:
                yield place, *found


def _idle(place: Place, keyword: str) -> tuple[str, Severity, str, str] | None:
    """Why a keyword does nothing, if so."""
    schema, draft = place.schema, place.draft
    if keyword not in _KNOWN:
        return (f"?{keyword}", *unknown) if (unknown := _unknown(keyword)) else None
    found: tuple[str, str] | None
    if keyword == "format" and (unknown := _unknown_format(schema["format"])):
        return keyword, *unknown
    if k.SINCE.get(keyword, 0) > draft:
        why = f"{keyword} came with draft {k.SINCE[keyword]}, and here draft {draft} holds"
        found = why, "name a newer draft with $schema"
    elif keyword == "$recursiveRef" and draft != 2019:
        found = "$recursiveRef is of draft 2019-09 only", "write $dynamicRef"
    elif keyword == "additionalItems" and (draft >= 2020 or not isinstance(schema.get("items"), list)):
        is_none = draft >= 2020
        why = "is no keyword of draft 2020-12" if is_none else "does nothing without an array of items"
        found = f"additionalItems {why}", "write items (beside prefixItems in draft 2020-12)"
    elif (partner := _PARTNERS.get(keyword, keyword)) not in schema:
        found = f"{keyword} does nothing without {partner}", f"add {partner}, or remove {keyword}"
    elif keyword == "if" and "then" not in schema and "else" not in schema:
        found = "if does nothing without then or else", "add one of them, or remove if"
    else:
        found = _of_another_type(schema, keyword)
    return None if found is None else (keyword, "warning", *found)


def misspelled(schema: Any) -> Iterator[str]:
    """What to say, as lint does, of each keyword or format that is nearly a known one."""
    for place in places_of(schema, 0):
        for keyword in place.schema:
            is_unknown = keyword not in _KNOWN and isinstance(keyword, str)
            found = _unknown(keyword) if is_unknown else None
            if keyword == "format":
                found = _unknown_format(place.schema["format"])
            if found is not None and found[0] == "warning":
                yield f"{place.pointer}/{escaped(keyword)}: {found[1]}, so it changes nothing: {found[2]}"


@lru_cache(maxsize=4096)  # PERF: one keyword stands in many places, and looking for near ones takes 50 us
def _unknown(keyword: str) -> tuple[Severity, str, str] | None:
    """What to say of a keyword that JSON Schema does not have, as `_unknown_format`."""
    if keyword.startswith("x-"):
        return None
    near = difflib.get_close_matches(keyword, sorted(k.SAYING), 1, 0.8)
    if near:
        return "warning", f"there is no keyword {keyword!r}", f"write {near[0]!r}, if that is meant"
    return "info", f"{keyword!r} is no keyword of JSON Schema", "remove it, unless another program reads it"


def _unknown_format(name: Any) -> tuple[Severity, str, str] | None:
    """What to say of a format that JSON Schema does not have: severity, what is so, what to do."""
    if not isinstance(name, str) or name in _FORMATS:
        return None
    # a name with a number, such as pydantic's uuid4, is another's own
    near = [] if name[-1:].isdigit() else difflib.get_close_matches(name.casefold(), sorted(_FORMATS), 1, 0.8)
    if name in _OTHERS_FORMATS or near:
        meant = _OTHERS_FORMATS.get(name) or near[0]
        return "warning", f"there is no format {name!r}", f"write {meant!r}, if that is meant"
    return "info", f"format {name!r} is none of JSON Schema's, so it says nothing", "use a pattern"


def _of_another_type(schema: Mapping[str, Any], keyword: str) -> tuple[str, str] | None:
    """What to say of a keyword that is about another type than the schema's, and what to do."""
    wanted = _TYPE_OF.get(keyword)
    given = schema.get("type")
    names = [given] if isinstance(given, str) else given
    if wanted is None or not isinstance(names, list) or wanted in names or (wanted == "number" and "integer" in names):
        return None
    is_of = "or ".join(f"{name} " for name in map(str, names)).strip()
    why = f"{keyword} is about values of type {wanted}, but type is {is_of}"
    return why, f"remove it, or allow the type {wanted}"
