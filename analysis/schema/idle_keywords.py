"""Keywords of a JSON schema that say nothing where they stand.

In: a schema. Out: its subschemas with their places, and the keywords that do nothing there.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from maskwright.analysis.schema.documents import escaped
from maskwright.analysis.schema.formats import FORMATS, NOT_REGULAR
from maskwright.analysis.schema.known_keywords import (
    DEPENDENT,
    DESCRIBING,
    OF_ARRAYS,
    OF_NUMBERS,
    OF_OBJECTS,
    OF_STRINGS,
    SAYING,
    SINCE,
    WITH_LIST,
    WITH_NAMED,
    WITH_ONE,
)

Severity = Literal["warning", "info"]

_OF_TYPE = {
    "string": OF_STRINGS,
    "number": OF_NUMBERS,
    "array": OF_ARRAYS | {"unevaluatedItems"},
    "object": OF_OBJECTS | DEPENDENT | {"unevaluatedProperties"},
}
_TYPE_OF = {keyword: kind for kind, keywords in _OF_TYPE.items() for keyword in keywords}
"""Keyword -> the type of which alone it says something."""
_KNOWN = SAYING | DESCRIBING

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
        for key, value in one.items():
            under = is_negated or key in ("not", "if")
            if key in WITH_NAMED and isinstance(value, dict):
                inside += [((*path, key, name), each, under) for name, each in value.items()]
            elif key in WITH_LIST and isinstance(value, list):
                inside += [((*path, key, i), each, under) for i, each in enumerate(value)]
            elif key in WITH_ONE:
                inside.append(((*path, key), value, under))
        todo += reversed(inside)


def idle_keywords(places: Iterable[Place]) -> Iterator[Idle]:
    """The keywords that say nothing of any value."""
    for place in places:
        schema = place.schema
        if "$ref" in schema and place.draft <= 7:
            for keyword in schema:
                if keyword in SAYING - {"$ref"}:
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
        return _unknown(keyword)
    first = SINCE.get(keyword, 0)
    if first > draft:
        return (
            keyword,
            "warning",
            f"{keyword} came with draft {first}, and here draft {draft} holds",
            "name a newer draft with $schema",
        )
    if keyword == "$recursiveRef" and draft != 2019:
        return keyword, "warning", "$recursiveRef is of draft 2019-09 only", "write $dynamicRef"
    if keyword == "additionalItems" and (draft >= 2020 or not isinstance(schema.get("items"), list)):
        why = (
            "additionalItems is no keyword of draft 2020-12"
            if draft >= 2020
            else "additionalItems does nothing without an array of items"
        )
        return keyword, "warning", why, "write items (beside prefixItems in draft 2020-12)"
    for words, partner in ((("then", "else"), "if"), (("minContains", "maxContains"), "contains")):
        if keyword in words and partner not in schema:
            return (
                keyword,
                "warning",
                f"{keyword} does nothing without {partner}",
                f"add {partner}, or remove {keyword}",
            )
    if keyword == "if" and "then" not in schema and "else" not in schema:
        return keyword, "warning", "if does nothing without then or else", "add one of them, or remove if"
    if keyword == "format" and (found := _unknown_format(schema["format"])):
        return keyword, *found
    return _of_another_type(schema, keyword)


def misspelled(schema: Any) -> Iterator[str]:
    """What to say, as lint does, of each keyword or format that is nearly a known one."""
    for place in places_of(schema, 0):
        for keyword in place.schema:
            found: tuple[str, str, str] | None = None
            if keyword == "format":
                found = _unknown_format(place.schema["format"])
            elif keyword not in _KNOWN and isinstance(keyword, str) and (unknown := _unknown(keyword)):
                found = unknown[1:]
            if found is not None and found[0] == "warning":
                yield f"{place.pointer}/{escaped(keyword)}: {found[1]}, so it changes nothing: {found[2]}"


@lru_cache(maxsize=4096)  # PERF: one keyword stands in many places, and looking for near ones takes 50 us
def _unknown(keyword: str) -> tuple[str, Severity, str, str] | None:
    if keyword.startswith("x-"):
        return None
    near = difflib.get_close_matches(keyword, sorted(SAYING), 1, 0.8)
    if near:
        return f"?{keyword}", "warning", f"there is no keyword {keyword!r}", f"write {near[0]!r}, if that is meant"
    return (
        f"?{keyword}",
        "info",
        f"{keyword!r} is no keyword of JSON Schema",
        "remove it, unless another program reads it",
    )


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


def _of_another_type(schema: Mapping[str, Any], keyword: str) -> tuple[str, Severity, str, str] | None:
    wanted = _TYPE_OF.get(keyword)
    given = schema.get("type")
    names = [given] if isinstance(given, str) else given
    if wanted is None or not isinstance(names, list):
        return None
    if wanted in names or (wanted == "number" and "integer" in names):
        return None
    is_of = "or ".join(f"{name} " for name in map(str, names)).strip()
    why = f"{keyword} is about values of type {wanted}, but type is {is_of}"
    return keyword, "warning", why, f"remove it, or allow the type {wanted}"


__all__ = ["Place", "idle_keywords", "misspelled", "places_of"]
