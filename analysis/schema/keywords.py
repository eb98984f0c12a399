"""What the keywords of one subschema say, without its combinators: a clause for each JSON type.

Keywords are those of the subschema's draft; others are annotations. Each value is checked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import SchemaError
from maskwright.analysis.marks import part_of_format
from maskwright.analysis.schema import constraints as c
from maskwright.analysis.schema.documents import Document
from maskwright.analysis.schema.known_keywords import SAYING, TYPE_OF
from maskwright.analysis.schema.strings import format_automaton, format_in_draft, pattern_automaton, repeated_class

_EXACT = Context(prec=1_000_000, Emax=MAX_EMAX, Emin=MIN_EMIN)
TYPE_NAMES = frozenset({*c.TYPES, "integer"})
_NAMES = frozenset({"$schema", "$id", "id"})
"""Keywords that are checked, though they say nothing of values."""


class Keywords:
    """The keywords of one location.

    document, location : where.
    seen : whether to add what counts as evaluated.
    """

    def __init__(self, document: Document, location: int, seen: bool) -> None:
        self.document = document
        self.location = location
        self.seen = seen
        self.schema: dict[str, Any] = document.schemas[location]
        self.draft = document.drafts[location]

    def error(self, keyword: str, what: str) -> SchemaError:
        """The error that a keyword's value is not what it should be."""
        return self.document.error(self.location, keyword, f"{keyword} {what}")

    def pointer(self, keyword: str) -> str:
        """The JSON pointer of a keyword."""
        return f"{self.document.pointer(self.location)}/{keyword}"

    def term(self, schema: Any, *keys: str | int) -> int:
        """The term of a subschema under some keys."""
        if schema is False:
            return c.FALSE
        if schema.__class__ is dict and SAYING.isdisjoint(schema) and _NAMES.isdisjoint(schema):
            return c.TRUE
        return 2 * self.document.child(self.location, schema, *keys)

    def count(self, keyword: str) -> int | None:
        """A keyword's number that is no less than 0; None if the keyword is not there."""
        value = self.schema.get(keyword)
        if value is None and keyword not in self.schema:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.error(keyword, f"is {clip(value)}; expected an integer that is no less than 0")
        return value

    def number(self, keyword: str) -> Decimal | None:
        """A keyword's number; None if the keyword is not there."""
        if keyword not in self.schema:
            return None
        value = self.schema[keyword]
        found = decimal(value)
        if found is None:
            raise self.error(keyword, f"is {clip(value)}; expected a number")
        return found

    def mapping(self, keyword: str) -> dict[str, Any]:
        """A keyword's object; {} if the keyword is not there."""
        if keyword not in self.schema:
            return {}
        value = self.schema[keyword]
        # PERF: the types of the keys are a set of one
        if not isinstance(value, dict) or not all([issubclass(kind, str) for kind in {*map(type, value)}]):
            raise self.error(keyword, f"is {clip(value)}; expected an object")
        found: dict[str, Any] = value
        return found

    def sequence(self, keyword: str) -> list[Any]:
        """A keyword's array, which is there."""
        value = self.schema[keyword]
        if not isinstance(value, (list, tuple)):
            raise self.error(keyword, f"is {clip(value)}; expected an array")
        return list(value)

    def names(self, keyword: str, value: Any) -> list[str]:
        """An array of strings."""
        if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
            raise self.error(keyword, f"is {clip(value)}; expected an array of strings")
        return list(value)

    def types(self) -> frozenset[str]:
        """The names of the allowed types."""
        if "type" not in self.schema:
            return frozenset(c.TYPES)
        value = self.schema["type"]
        if value.__class__ is str and value in TYPE_NAMES:
            return frozenset((value,))
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(name, str) and name in TYPE_NAMES for name in names):
            other = " (a structural tag is for mw.read_structural_tag)" if value == "structural_tag" else ""
            raise self.error(
                "type", f"is {clip(value)}{other}; expected one of {', '.join(sorted(TYPE_NAMES))}, or an array of them"
            )
        return frozenset(names)

    def clauses(self) -> c.Normal:
        """The clause of each type, without `enum` and `const`."""
        types = self.types()
        said = {TYPE_OF[keyword] for keyword in self.schema if keyword in TYPE_OF}
        if self.seen:
            said.add(c.OBJECT)
        found: c.Normal = {}
        for kind in c.TYPES:
            # what is not allowed is checked as well
            constraints: list[c.Constraint] = getattr(self, f"_{kind}")() if kind in said else []
            if kind in types:
                found[kind] = (tuple(constraints),)
            elif kind == c.NUMBER and "integer" in types:
                found[kind] = ((c.Whole(True, self.draft > 4), *constraints),)
        return found

    def _number(self) -> list[c.Constraint]:
        found: list[c.Constraint] = []
        for keyword, exclusive, is_lower in (
            ("minimum", "exclusiveMinimum", True),
            ("maximum", "exclusiveMaximum", False),
        ):
            value = self.number(keyword)
            if self.draft == 4:
                is_exclusive = self.schema.get(exclusive, False)
                if not isinstance(is_exclusive, bool):
                    raise self.error(exclusive, f"is {clip(is_exclusive)}; expected a boolean in draft 4")
                if value is not None:
                    found.append(c.Bound(value, is_lower, is_exclusive))
                continue
            if value is not None:
                found.append(c.Bound(value, is_lower, False))
            if isinstance(is_exclusive := self.schema.get(exclusive), bool):
                found += [c.Bound(value, is_lower, True)] if is_exclusive and value is not None else []
                what = f"{exclusive} is {clip(is_exclusive)}, as in draft 4 and OpenAPI 3.0; expected a number"
                found.append(c.Refused(self.pointer(exclusive), what))
            elif (value := self.number(exclusive)) is not None:
                found.append(c.Bound(value, is_lower, True))
        value = self.number("multipleOf")
        if value is not None:
            if value <= 0:
                raise self.error("multipleOf", f"is {value}; expected a number above 0")
            found.append(c.Multiple(_EXACT.normalize(value), True))
        return found

    def _range(self, kind: type[c.Length] | type[c.Size], least: str, most: str) -> list[c.Constraint]:
        low, high = self.count(least), self.count(most)
        return [kind(low or 0, high)] if low or high is not None else []

    def _string(self) -> list[c.Constraint]:
        found = self._range(c.Length, "minLength", "maxLength")
        if "pattern" in self.schema:
            found.append(self.pattern(self.schema["pattern"], "pattern"))
        name = self.schema.get("format")
        if name is not None:
            if not isinstance(name, str):
                raise self.error("format", f"is {clip(name)}; expected a string")
            try:
                if part_of_format(name) is not None:
                    found.append(c.Format(name, True))
                elif (known := format_in_draft(name, self.draft)) and format_automaton(known) is not None:
                    found.append(c.Format(known, True))
            except SchemaError as error:
                found.append(c.Refused(self.pointer("format"), str(error)))
        return found

    def pattern(self, text: Any, keyword: str) -> c.Pattern | c.Refused:
        """The constraint that a pattern is found, or that it cannot be looked for."""
        if not isinstance(text, str):
            raise self.error(keyword, f"is {clip(text)}; expected a string")
        if keyword != "pattern" or repeated_class(text) is None:
            try:
                pattern_automaton(text)
            except SchemaError as error:
                return c.Refused(self.pointer(keyword), str(error))
        return c.Pattern(text, True)

    def _array(self) -> list[c.Constraint]:
        found = self._range(c.Size, "minItems", "maxItems")
        unique = self.schema.get("uniqueItems", False)
        if not isinstance(unique, bool):
            raise self.error("uniqueItems", f"is {clip(unique)}; expected a boolean")
        if unique:
            found.append(c.Unique(self.pointer("uniqueItems"), True))
        found.extend(self._items())
        if "contains" in self.schema and self.draft > 4:
            least, most = (self.count("minContains"), self.count("maxContains")) if self.draft >= 2019 else (1, None)
            least = 1 if least is None else least
            term = self.term(self.schema["contains"], "contains")
            if least or most is not None:
                found.append(c.contains(0, term, least, most))
            if self.seen and self.draft >= 2020:
                found.append(c.SeenContained(term))
        return found

    def _items(self) -> list[c.Constraint]:
        listing, rest = "prefixItems", "items"
        if self.draft < 2020 and isinstance(self.schema.get("items"), list):
            listing, rest = "items", "additionalItems"
        has_list = listing in self.schema and (self.draft >= 2020 or rest == "additionalItems")
        listed = self.sequence(listing) if has_list else []
        first = [self.term(item, listing, i) for i, item in enumerate(listed)]
        others = self.term(self.schema.get(rest, True), rest)
        is_all = rest in self.schema
        found: list[c.Constraint] = []
        if others != c.TRUE or any(term != c.TRUE for term in first):
            found.append(c.Items(tuple(first), others))
        if self.seen and (first or is_all):
            found.append(c.SeenItems(None if is_all else len(first)))
        return found

    def _object(self) -> list[c.Constraint]:
        found = self._range(c.Size, "minProperties", "maxProperties")
        if "required" in self.schema:
            found.extend(c.Required(name) for name in self.names("required", self.schema["required"]))
        names = {key: self.term(value, "properties", key) for key, value in self.mapping("properties").items()}
        patterns: list[tuple[str, int]] = []
        for text, value in self.mapping("patternProperties").items():
            term = self.term(value, "patternProperties", text)
            checked = self.pattern(text, "patternProperties")
            if isinstance(checked, c.Refused):
                found.append(checked)
            else:
                patterns.append((text, term))
        others = self.term(self.schema.get("additionalProperties", True), "additionalProperties")
        is_refused = any(isinstance(one, c.Refused) for one in found)
        if is_refused:
            others = c.TRUE  # which keys are others is not known
        if names or others != c.TRUE or any(term for _, term in patterns):
            found.append(c.Members(names, tuple(patterns), others))
        if "propertyNames" in self.schema and self.draft > 4:
            term = self.term(self.schema["propertyNames"], "propertyNames")
            if term != c.TRUE:
                found.append(c.Names(term))
        if self.seen:
            texts = tuple(text for text, _ in patterns)
            is_all = is_refused or "additionalProperties" in self.schema
            found.append(c.SeenMembers(frozenset(names), texts, is_all))
        return found

    def listed(self, keyword: str, values: list[Any]) -> c.Normal:
        """What `enum` or `const` says, by its values: scalars of one type are in one clause."""
        among: dict[str, set[Any]] = {}
        found: dict[str, list[c.Clause]] = {}

        def terms(some: Iterable[Any]) -> list[int]:
            return [2 * self.document.constant(one, self._canonical(keyword, one)) for one in some]

        for value in values:
            if value is None or isinstance(value, (bool, str)):
                kind = c.NULL if value is None else c.BOOLEAN if isinstance(value, bool) else c.STRING
                among.setdefault(kind, set()).add(value)
            elif (number := decimal(value)) is not None:
                among.setdefault(c.NUMBER, set()).add(number)
            elif isinstance(value, (list, tuple)):
                n = len(value)
                found.setdefault(c.ARRAY, []).append((c.Size(n, n), c.Items(tuple(terms(value)), c.FALSE)))
            elif isinstance(value, dict) and all(isinstance(name, str) for name in value):
                members = c.Members(dict(zip(value, terms(value.values()), strict=True)), (), c.FALSE)
                found.setdefault(c.OBJECT, []).append((*map(c.Required, value), members))
            else:
                raise self.error(keyword, f"has {clip(value)}, which is not a JSON value")
        scalars: c.Normal = {kind: ((c.Among(frozenset(some), True),),) for kind, some in among.items()}
        return scalars | {kind: tuple(clauses) for kind, clauses in found.items()}

    def _canonical(self, keyword: str, value: Any) -> str:
        """A text that is the same for the same JSON value."""
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            members = [f"{json.dumps(key)}:{self._canonical(keyword, value[key])}" for key in sorted(value)]
            return "{" + ",".join(members) + "}"
        if isinstance(value, (list, tuple)):
            return "[" + ",".join(self._canonical(keyword, item) for item in value) + "]"
        if value is None or isinstance(value, (bool, str)):
            return json.dumps(value)
        number = decimal(value)
        if number is None:
            raise self.error(keyword, f"has {clip(value)}, which is not a JSON value")
        return str(_EXACT.normalize(number) if number else 0)


def decimal(value: Any) -> Decimal | None:
    """The exact number that a JSON number says; None for what is none.

    A float stands for its shortest spelling, which is what JSON texts have.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    return value if isinstance(value, Decimal) and value.is_finite() else None
