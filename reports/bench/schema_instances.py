"""Values for a JSON schema, made without maskwright: instances as far as a simple reading goes, and mutants of them.

`Maker` follows the keywords of a schema and draws a value. It reads keywords one by one, not together, so what it makes
need not be an instance: whoever asks for instances lets another validator judge. Strings are ASCII and numbers short,
so that what Python's `re` and floats take otherwise than JSON Schema plays no part.
"""

from __future__ import annotations

import copy
import random
import re
import string
import sys
from collections.abc import Mapping
from typing import Any

import referencing
import referencing.jsonschema as dialects

sys.setrecursionlimit(10_000)
DEEP = 5
"""Below so many objects and arrays only what is required is made."""
DEEPEST = 40
FORMATS: dict[str, tuple[str, ...]] = {
    "date": ("2024-02-29", "1999-12-31"),
    "time": ("12:30:00Z", "23:59:59+01:00"),
    "date-time": ("2024-05-01T12:30:00Z", "2020-02-29T00:00:00.25+02:00"),
    "duration": ("P3D", "PT1H30M"),
    "email": ("ann@example.com", "a.b+c@example.org"),
    "idn-email": ("ann@example.com",),
    "hostname": ("example.com", "a-b.example.org"),
    "ipv4": ("192.0.2.1", "10.0.0.255"),
    "ipv6": ("2001:db8::1", "::"),
    "uri": ("https://example.com/a?b=c#d", "urn:isbn:0451450523"),
    "uri-reference": ("https://example.com/", "../a/b", "#c"),
    "iri": ("https://example.com/a",),
    "iri-reference": ("a/b", "https://example.com/"),
    "uri-template": ("https://example.com/{a}",),
    "uuid": ("123e4567-e89b-42d3-a456-426614174000",),
    "json-pointer": ("", "/a/0"),
    "relative-json-pointer": ("0#", "1/a"),
    "regex": ("^[a-z]+$", "a|b"),
}
OF_TYPE = {
    "object": "properties required additionalProperties patternProperties propertyNames minProperties maxProperties",
    "array": "items prefixItems minItems maxItems uniqueItems contains",
    "string": "minLength maxLength pattern format",
    "number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
}
"""The keywords that tell the type of a schema that does not name one."""
ASIDE = {"$schema", "$id", "id", "title", "description", "default", "examples", "definitions", "$defs", "$comment"}


class HopelessError(Exception):
    """No value can be made here."""


class Maker:
    """Draws values for a schema.

    documents : URI -> schema, for references.
    """

    def __init__(self, schema: Any, documents: Mapping[str, Any], seed: int = 0) -> None:
        self.schema, self.random = schema, random.Random(seed)
        named = schema.get("$schema") if isinstance(schema, dict) else None
        try:
            self.dialect = dialects.specification_with(named or "https://json-schema.org/draft/2020-12/schema")
        except Exception:  # of referencing: an unknown dialect
            self.dialect = dialects.DRAFT202012
        made = [
            (uri, referencing.Resource.from_contents(one, default_specification=self.dialect))
            for uri, one in documents.items()
        ]
        registry: Any = referencing.Registry().with_resources(made)
        self.resolver = registry.resolver_with_root(self.dialect.create_resource(schema))

    def make(self) -> Any:
        """A value. Raises: HopelessError, or an error of the package referencing."""
        return self._value(self.schema, self.resolver, 0)

    def _value(self, schema: Any, resolver: Any, depth: int) -> Any:
        if depth > DEEPEST or schema is False:
            raise HopelessError
        if not isinstance(schema, dict) or not set(schema) - ASIDE:
            return self.random.choice([True, 3, "a", None, [], {}])
        if isinstance(schema.get("$id"), str) and schema is not self.schema:
            resolver = resolver.in_subresource(self.dialect.create_resource(schema))
        if "$ref" in schema:
            found = resolver.lookup(schema["$ref"])
            beside = {key: value for key, value in schema.items() if key != "$ref" and key not in ASIDE}
            if not beside or self.dialect in (dialects.DRAFT4, dialects.DRAFT6, dialects.DRAFT7):
                return self._value(found.contents, found.resolver, depth + 1)
            if isinstance(found.contents, dict) and "$ref" not in found.contents:
                return self._value(_merged(found.contents, beside), found.resolver, depth + 1)
            return self._value(found.contents, found.resolver, depth + 1)
        for keyword in ("allOf", "anyOf", "oneOf"):
            if branches := schema.get(keyword):
                rest = {key: value for key, value in schema.items() if key != keyword}
                chosen = branches if keyword == "allOf" else [self.random.choice(branches)]
                for branch in chosen:
                    rest, resolver = self._joined(rest, branch, resolver, 0)
                return self._value(rest, resolver, depth + 1)
        if "const" in schema:
            return copy.deepcopy(schema["const"])
        if schema.get("enum"):
            return copy.deepcopy(self.random.choice(schema["enum"]))
        given = [schema["default"]] if "default" in schema else []
        given += schema["examples"] if isinstance(schema.get("examples"), list) else []
        if given and self.random.random() < 0.3:
            return copy.deepcopy(self.random.choice(given))
        return self._of_type(schema, resolver, depth)

    def _joined(self, schema: dict[str, Any], branch: Any, resolver: Any, steps: int) -> tuple[dict[str, Any], Any]:
        """A schema with the keywords of a branch, whose references are followed."""
        if branch is False or steps > DEEPEST:
            raise HopelessError
        if not isinstance(branch, dict):
            return schema, resolver
        if "$ref" in branch:
            found = resolver.lookup(branch["$ref"])
            schema, resolver = self._joined(schema, found.contents, found.resolver, steps + 1)
            branch = {key: value for key, value in branch.items() if key != "$ref"}
        return _merged(schema, branch), resolver

    def _of_type(self, schema: dict[str, Any], resolver: Any, depth: int) -> Any:
        named = schema.get("type")
        if isinstance(named, list):
            named = self.random.choice(named)
        if named is None:
            named = next((name for name, words in OF_TYPE.items() if set(words.split()) & set(schema)), "string")
        match named:
            case "object":
                return self._object(schema, resolver, depth)
            case "array":
                return self._array(schema, resolver, depth)
            case "string":
                return self._string(schema)
            case "boolean":
                return self.random.random() < 0.5
            case "null":
                return None
            case _:
                return self._number(schema, named == "integer")

    def _object(self, schema: dict[str, Any], resolver: Any, depth: int) -> dict[str, Any]:
        named = schema.get("properties") or {}
        needed = [key for key in schema.get("required") or () if isinstance(key, str)]
        more = [key for key in named if key not in needed and named[key] is not False]
        self.random.shuffle(more)
        n = 0 if depth > DEEP else self.random.randint(0, min(len(more), 4))
        n = max(n, schema.get("minProperties", 0) - len(needed))
        others = schema.get("additionalProperties", True)
        patterns = schema.get("patternProperties") or {}
        found = {}
        for key in [*needed, *more[:n]]:
            within = named.get(key, next((patterns[p] for p in patterns if _finds(p, key)), others))
            try:
                found[key] = self._value(within, resolver, depth + 1)
            except HopelessError:
                if key in needed:
                    raise
        wanted = schema.get("minProperties", 0) - len(found)
        if wanted <= 0 and depth <= DEEP and self.random.random() < 0.3:
            wanted = 1
        for _ in range(min(max(wanted, 0), 20)):
            names = schema.get("propertyNames")
            if patterns:
                pattern = self.random.choice(list(patterns))
                found[self._matching(pattern)] = self._value(patterns[pattern], resolver, depth + 1)
            elif isinstance(names, dict):
                found[str(self._value({"type": "string", **names}, resolver, depth + 1))] = self._value(
                    others, resolver, depth + 1
                )
            elif others is not False:
                key = "x" + "".join(self.random.choices(string.ascii_lowercase, k=3))
                found[key] = self._value(others, resolver, depth + 1)
        return found

    def _array(self, schema: dict[str, Any], resolver: Any, depth: int) -> list[Any]:
        items = schema.get("items", True)
        first = schema.get("prefixItems") or (items if isinstance(items, list) else [])
        others = schema.get("additionalItems", True) if isinstance(items, list) else items
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", least + 3), least + 3)
        n = least if depth > DEEP else self.random.randint(least, max(least, most))
        found: list[Any] = []
        if "contains" in schema and n:
            found.append(self._value(schema["contains"], resolver, depth + 1))
        tries = 0
        while len(found) < n and tries < 10 * n:
            tries += 1
            within = first[len(found)] if len(found) < len(first) else others
            try:
                item = self._value(within, resolver, depth + 1)
            except HopelessError:
                if len(found) < least:
                    raise
                break
            if not schema.get("uniqueItems") or item not in found:
                found.append(item)
        return found

    def _string(self, schema: dict[str, Any]) -> str:
        samples = FORMATS.get(str(schema.get("format")))
        if samples:
            return self.random.choice(samples)
        if isinstance(schema.get("pattern"), str):
            return self._matching(schema["pattern"])
        least = schema.get("minLength", 0)
        n = self.random.randint(least, min(schema.get("maxLength", least + 8), least + 8))
        return "".join(self.random.choices(string.ascii_letters + string.digits + " -_", k=n))

    def _number(self, schema: dict[str, Any], is_integer: bool) -> float:
        low, high = schema.get("minimum", -100), schema.get("maximum")
        for name, step in (("exclusiveMinimum", 1), ("exclusiveMaximum", -1)):
            bound = schema.get(name)
            if isinstance(bound, int | float) and not isinstance(bound, bool):
                low, high = (bound + step, high) if step > 0 else (low, bound + step)
        high = max(low, low + 200) if high is None else high
        low = min(low, high) if "minimum" in schema else max(low, high - 200)
        found: float = round(self.random.uniform(low, high), 2)
        if is_integer or self.random.random() < 0.6:
            found = int(found)
        step = schema.get("multipleOf")
        return round(found / step) * step if isinstance(step, int) and step else found

    def _matching(self, pattern: str) -> str:
        """A string that a pattern finds."""
        try:
            return "".join(self._pieces(re._parser.parse(pattern)))  # type: ignore[attr-defined]
        except (re.error, OverflowError, RecursionError):
            raise HopelessError from None

    def _pieces(self, parsed: Any) -> list[str]:
        found: list[str] = []
        for code, what in parsed:
            name = str(code)
            if name == "LITERAL":
                found.append(chr(what))
            elif name == "NOT_LITERAL":
                found.append("b" if what == ord("a") else "a")
            elif name == "ANY":
                found.append(self.random.choice("abc1"))
            elif name == "IN":
                found.append(self._one_of(what))
            elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
                least, most, inner = what
                for _ in range(self.random.randint(least, min(int(most), least + 3))):
                    found += self._pieces(inner)
            elif name in ("SUBPATTERN", "ATOMIC_GROUP"):
                found += self._pieces(what[-1] if name == "SUBPATTERN" else what)
            elif name == "BRANCH":
                found += self._pieces(self.random.choice(what[1]))
        return found

    def _one_of(self, items: Any) -> str:
        """A character of a class: the first ten tries of ASCII, then what the class names first."""
        kinds = {"CATEGORY_DIGIT": string.digits, "CATEGORY_SPACE": " ", "CATEGORY_WORD": string.ascii_letters + "_7"}
        is_negated = str(items[0][0]) == "NEGATE"
        taken: list[str] = []
        for code, what in items:
            if str(code) == "LITERAL":
                taken.append(chr(what))
            elif str(code) == "RANGE":
                taken += map(chr, range(what[0], min(what[1], what[0] + 100) + 1))
            elif str(code) == "CATEGORY":
                taken += kinds.get(str(what), "a" if str(what) != "CATEGORY_NOT_WORD" else "-")
        if is_negated:
            taken = [each for each in string.ascii_letters + string.digits + "-_ ./" if each not in taken]
        if not taken:
            raise HopelessError
        return self.random.choice(taken)


def mutant(value: Any, generator: random.Random) -> Any:
    """A value that differs from another one at one place: a member or an item less, more, or another value."""
    places: list[tuple[Any, Any]] = []
    whole = [copy.deepcopy(value)]
    todo: list[tuple[Any, Any]] = [(whole, 0)]
    while todo:
        holder, key = todo.pop()
        places.append((holder, key))
        inner = holder[key]
        todo += [(inner, each) for each in (inner if isinstance(inner, dict) else ())]
        todo += [(inner, each) for each in (range(len(inner)) if isinstance(inner, list) else ())]
    holder, key = generator.choice(places)
    inner = holder[key]
    way = generator.randrange(4)
    if way == 0 and holder is not whole:
        del holder[key]
    elif way == 1 and isinstance(inner, dict | list):
        if isinstance(inner, dict):
            inner["zz"] = generator.choice([0, "zz", None, {}])
        else:
            inner.append(copy.deepcopy(generator.choice(inner)) if inner else 0)
    elif way == 2 and isinstance(inner, str | int | float) and not isinstance(inner, bool):
        if isinstance(inner, str):
            holder[key] = generator.choice([inner + "!", inner[:-1], "", inner.swapcase(), "z" * 70])
        else:
            holder[key] = generator.choice([-inner, inner + 1, inner + 0.5, 0, 10**7, -(10**7)])
    else:
        holder[key] = generator.choice([None, True, 0, -1, 1.5, "", "q", [], {}, ["q"], {"q": 1}])
    return whole[0]


def plain(value: Any) -> Any:
    """A value whose whole numbers are ints, as JSON Schema counts them; other numbers as they are."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value


def _merged(schema: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """The keywords of two schemas; of properties, requirements and branches those of both."""
    found = dict(schema)
    for key, value in more.items():
        old = found.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            found[key] = _merged(old, value) if key not in ("additionalProperties", "items") else value
        elif key in ("required", "allOf") and isinstance(old, list) and isinstance(value, list):
            found[key] = [*old, *value]
        elif key == "enum" and isinstance(old, list):
            found[key] = [each for each in old if each in value] or value
        elif not (key == "additionalProperties" and old is not None):
            found[key] = value
    return found


def _finds(pattern: str, key: str) -> bool:
    try:
        return re.search(pattern, key) is not None
    except re.error:
        return False
