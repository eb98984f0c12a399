"""The subschemas of a schema, by number, and what its references lead to.

A *location* is a subschema where it stands: with its JSON pointer, the draft that holds there and,
where identifiers or dynamic references matter, the scope in which references are looked up.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote, urljoin

from maskwright.analysis.arguments import clip, printable
from maskwright.analysis.errors import LimitError, NestingError, SchemaError
from maskwright.analysis.nesting import check_nesting
from maskwright.analysis.schema.known_keywords import WITH_NAMED

Result = TypeVar("Result")
DRAFTS = {
    "http://json-schema.org/draft-04/schema": 4,
    "http://json-schema.org/draft-06/schema": 6,
    "http://json-schema.org/draft-07/schema": 7,
    "http://json-schema.org/draft/2019-09/schema": 2019,
    "http://json-schema.org/draft/2020-12/schema": 2020,
    "http://json-schema.org/draft-05/schema": 4,
    "http://json-schema.org/schema": 2020,
    "http://spec.openapis.org/oas/3.1/dialect/base": 2020,
}
"""Identifier of a meta-schema, with http for https -> the draft's number or year."""
DEFAULT_DRAFT = 2020
MOST_LOCATIONS = 500_000
"""BOUND: the subschemas of a document that are looked at."""
_NAMES = frozenset(["$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$dynamicRef", "$recursiveRef"])
"""Keywords that make references more than pointers into one document."""
_NAMED = re.compile(
    rb"u(?:\x03\0\0\0\$id|\x02\0\0\0id|\x07\0\0\0\$anchor|\x0e\0\0\0\$dynamicAnchor|\x10\0\0\0\$recursiveAnchor"
    rb"|\x0b\0\0\0\$dynamicRef|\x0d\0\0\0\$recursiveRef)(?=[uTF])|u\x04\0\0\0\$refu(?!\x01\0\0\0#|....#/)",
    re.DOTALL,
)
"""A key of `_NAMES` with a string or a bool, or a reference to elsewhere, in what `marshal` writes:
a string is `u`, its length in four bytes, and its UTF-8."""
NO_SCHEMAS = frozenset({"enum", "const", "default", "examples", "required", "dependentRequired", "type", "$comment"})
"""Keywords whose value is no schema, whatever it looks like."""
OPAQUE = {"anyOf": ()}
"""A schema whose clauses are known otherwise."""


class NamesMatter(Exception):
    """The schema was read as if references were pointers into it, which they are not."""


def escaped(key: str | int) -> str:
    """A key as it stands in a JSON pointer."""
    return str(key).replace("~", "~0").replace("/", "~1")


def pointed(schema: Any, pointer: str) -> Any:
    """What a JSON pointer leads to in a schema. Raises: LookupError if that is nothing."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, dict) and key in schema:
            schema = schema[key]
        elif isinstance(schema, list | tuple) and key.isdecimal() and len(key) < 10 and int(key) < len(schema):
            schema = schema[int(key)]
        else:
            raise LookupError(pointer)
    return schema


def at(pointer: str) -> str:
    """Where something stands, in words: the pointer of a whole schema is empty."""
    return f"at {printable(pointer)}" if pointer else "at the root"


def draft_named(name: Any) -> int | None:
    """The draft that `$schema` names; None for another one."""
    return DRAFTS.get(str(name).rstrip("#").replace("https://", "http://", 1).replace("/hyper-schema", "/schema"))


def draft_of(schema: Any, otherwise: int) -> int:
    """The draft that a schema names; `otherwise` if it names none that is known."""
    return (draft_named(schema.get("$schema")) if isinstance(schema, dict) else None) or otherwise


def identifier(schema: Any) -> str:
    """The identifier of a whole schema, "" if it has none."""
    names = (schema.get("$id"), schema.get("id")) if isinstance(schema, dict) else ()
    return next((name.rstrip("#") for name in names if isinstance(name, str)), "")


def has_names(schema: Any) -> bool:
    """Whether an identifier, an anchor or a dynamic reference stands somewhere in the schema.

    The identifier of the whole document is none.
    """
    # PERF: most schemas have no such name but that of the whole, which a look at their bytes tells
    own = isinstance(schema, dict) and any(isinstance(schema.get(key), (str, bool)) for key in ("$id", "id"))
    try:
        if len(_NAMED.findall(marshal.dumps(schema, 2))) <= own:
            return False
    except ValueError:
        pass  # types of a user, or values too deep
    todo: list[tuple[Any, bool]] = [(schema, False)]  # with whether the keys are names
    while todo:
        value, is_by_name = todo.pop()
        inside: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        if isinstance(value, dict) and not is_by_name:
            for key in _NAMES.intersection(value):
                if isinstance(value[key], (str, bool)) and not (value is schema and key in {"$id", "id"}):
                    return True
            reference = value.get("$ref")
            if isinstance(reference, str) and reference[:2] != "#/" and reference != "#":
                return True
            inside = [(key, child) for key, child in inside if key not in NO_SCHEMAS]
        todo += [
            (child, not is_by_name and key in WITH_NAMED)
            for key, child in inside
            if isinstance(child, (dict, list, tuple))
        ]
    return False


class Document:
    """A schema with the documents that it may refer to.

    schema : a JSON schema as Python values: a dict or a bool.
    documents : URI -> schema, for references to other documents. Nothing is loaded from elsewhere;
        the meta-schemas of the drafts are known.
    default_draft : for schemas without `$schema`.
    with_names : whether identifiers are looked up; otherwise `follow` raises `NamesMatter` for
        schemas that have some.

    Raises: SchemaError if the schema is no schema, its draft is not known, a URI is no string, or
    an identifier that is looked up is none.

    schemas : the subschema at each location, an object or a boolean.
    unknown : location -> JSON pointer and reason, for schemas in documents that are not given.
    read_otherwise : JSON pointers and reasons, for drafts that are not known.
    INVARIANT: location 0 is the schema `true`; `root` is that of the whole schema. A *term* is
    2 * location, or 2 * location + 1 for its negation.
    """

    def __init__(
        self,
        schema: Any,
        documents: Mapping[str, Any] | None = None,
        default_draft: int = DEFAULT_DRAFT,
        with_names: bool = False,
    ) -> None:
        self.schema = schema
        for uri in documents or {}:
            if not isinstance(uri, str):
                raise SchemaError(f"documents has the key {clip(uri)}; expected URI -> schema")
        self.documents = {_local(uri): one for uri, one in (documents or {}).items()}
        self.schemas: list[Any] = [True]
        self.drafts: list[int] = [default_draft]
        self.unknown: dict[int, tuple[str, str]] = {}
        self._places: list[tuple[Any, ...]] = [("",)]  # (pointer,) or (location above, *keys)
        self._resolvers: list[Any] = [None]
        self._numbers: dict[Any, int] = {}
        self._scopes: dict[int, tuple[Any, tuple[str, ...]]] = {}  # by identity, which the resolver keeps
        self._constants: dict[str, int] = {}
        self._followed: dict[tuple[str, int], int] = {}
        self._doubled: set[str] = set()
        self.read_otherwise: dict[tuple[str, str], None] = {}
        self._is_checked = with_names
        self.draft = self._draft(schema, "", default_draft)
        resolver = self._resolver(self.draft) if with_names else None
        self.root = self._location(schema, ("",), self.draft, resolver)

    def _draft(self, schema: Any, pointer: str, otherwise: int) -> int:
        """The draft that a schema with `$schema` names; `otherwise` for somebody's own.

        Raises: SchemaError for another of JSON Schema, whose keywords mean something else.
        """
        name = schema.get("$schema") if isinstance(schema, dict) else None
        draft = otherwise if name is None else draft_named(name)
        if draft is not None:
            return draft
        if not isinstance(name, str) or re.match("https?://json-schema.org/draft", name):
            raise SchemaError(
                f"{pointer or at(pointer)}: $schema is {clip(name)}; expected the identifier of draft 4, 6, 7, 2019-09 or 2020-12",
                pointer,
            )
        why = f"no known draft is named {clip(name)}, so it is read as draft {otherwise}"
        self.read_otherwise[f"{pointer}/$schema", why] = None
        return otherwise

    def _resolver(self, draft: int) -> Any:
        """What looks up references by identifiers and anchors: a resolver of `referencing`."""
        try:
            import jsonschema_specifications  # type: ignore[import-untyped]
            import referencing
        except ImportError as error:
            from maskwright.analysis.errors import MissingExtraError

            raise MissingExtraError(
                "the schema has identifiers, anchors or references to other documents, which are looked up by the "
                "package jsonschema-specifications; install it"
            ) from error

        def made(schema: Any, place: str, draft: int) -> Any:
            if wrong := _wrong_identifier(schema, draft):
                pointer = f"{place}/{_id_keyword(draft)}"
                raise SchemaError(f"{pointer}: {wrong}", pointer)
            return resource(contents=schema, specification=_specification(draft))

        registry: Any = jsonschema_specifications.REGISTRY
        resource: Any = referencing.Resource
        pairs = [(uri, made(one, uri, draft_of(one, draft))) for uri, one in self.documents.items()]
        root = made(self.schema, "", draft)
        self._doubled = _doubled([("", root), *pairs])
        return registry.with_resources(pairs).resolver_with_root(root)

    def pointer(self, location: int) -> str:
        """The JSON pointer of a location in its document, behind the URI of another document."""
        parts: list[str] = []
        place = self._places[location]
        while len(place) > 1:
            parts.extend(escaped(key) for key in reversed(place[1:]))
            place = self._places[place[0]]
        return "".join([str(place[0]), *("/" + part for part in reversed(parts))])

    def _location(self, schema: Any, place: tuple[Any, ...], draft: int, resolver: Any) -> int:
        """The number of a subschema.

        Raises: SchemaError if it is neither an object nor a boolean, or its identifier is no URI.
        """
        if schema is True:
            return 0
        key: Any = id(schema)
        if resolver is not None:
            if isinstance(schema, dict) and _id_keyword(draft) in schema:
                wrong = _wrong_identifier(schema, draft)
                try:
                    if not wrong:
                        inner = resolver.in_subresource(_specification(draft).create_resource(schema))
                        # a relative identifier under which the document is given leads to itself
                        resolver = resolver if schema[_id_keyword(draft)] == resolver._base_uri else inner
                except ValueError as error:
                    wrong = f"is no URI ({error})"
                if wrong:
                    self._places.append(place)
                    raise self.error(len(self._places) - 1, _id_keyword(draft), wrong)
            key = (key, draft, self._scope(resolver))
        number = self._numbers.get(key)
        if number is not None:
            return number
        number = self._new(schema, place, draft, resolver)
        if schema is not False and not isinstance(schema, dict):
            raise self.error(number, "", f"a schema is an object or a boolean, not {type(schema).__name__}")
        if number >= MOST_LOCATIONS:
            raise LimitError(f"{self.pointer(number)}: the schema has more than {MOST_LOCATIONS:,} subschemas")
        self._numbers[key] = number
        return number

    def _scope(self, resolver: Any) -> tuple[str, ...]:
        """The URI of the resource around a subschema, and those through which it was reached.

        Of one that was passed several times only the first counts: a dynamic reference goes to the
        outermost.
        """
        found = self._scopes.get(id(resolver))
        if found is None:
            outermost = dict.fromkeys(reversed([uri for uri, _ in resolver.dynamic_scope()]))
            found = self._scopes[id(resolver)] = resolver, (str(resolver._base_uri), *outermost)
        return found[1]

    def error(self, location: int, keyword: str, what: str, kind: type[SchemaError] = SchemaError) -> SchemaError:
        """The error that something is wrong with a keyword of a location, or "" for all of it.

        kind : its class.
        """
        pointer = self.pointer(location) + ("/" + escaped(keyword) if keyword else "")
        return kind(f"{pointer or at(pointer)}: {what}", pointer)

    def child(self, parent: int, schema: Any, *keys: str | int, follows: bool = True) -> int:
        """The number of a subschema of a location, which stands under `keys` there.

        follows : whether it is, for a subschema that is nothing but a reference, the number of what
            that leads to.
        """
        if schema is True:
            return 0
        draft = self.drafts[parent]
        resolver = self._resolvers[parent]
        if schema.__class__ is dict and "$schema" in schema and ("$id" in schema or "id" in schema):
            self.check_names()
            draft = self._draft(schema, "/".join([self.pointer(parent), *map(escaped, keys)]), draft)
        number = self._location(schema, (parent, *keys), draft, resolver)
        if follows and schema.__class__ is dict and "$ref" in schema and (len(schema) == 1 or draft <= 7):
            return self.followed(number)
        return number

    def followed(self, number: int) -> int:
        """Where the references of a location that is nothing but a reference end.

        Raises: SchemaError for a loop of references, and as `follow`.
        """
        passed = {number}
        while True:
            schema = self.schemas[number]
            has_reference = isinstance(schema, dict) and "$ref" in schema
            if not has_reference or (len(schema) > 1 and self.drafts[number] > 7):
                return number
            after = self.follow(number, "$ref")
            if after in passed:
                raise self.error(number, "$ref", "the reference leads back to itself")
            passed.add(after)
            number = after

    def constant(self, value: Any, spelled: str) -> int:
        """The number of the schema `const: value`. spelled : the value as canonical JSON."""
        number = self._constants.get(spelled)
        if number is None:
            number = self._constants[spelled] = self.made({"const": value}, 0)
        return number

    def made(self, schema: dict[str, Any], like: int) -> int:
        """The number of a schema that stands nowhere, but means what it would mean somewhere.

        like : the location where it would stand; 0 for none.
        """
        draft = self.drafts[like] if like else DEFAULT_DRAFT
        return self._new(schema, self._places[like], draft, self._resolvers[like])

    def _new(self, schema: Any, place: tuple[Any, ...], draft: int, resolver: Any) -> int:
        self.schemas.append(schema)
        self.drafts.append(draft)
        self._places.append(place)
        self._resolvers.append(resolver)
        return len(self.schemas) - 1

    def check_names(self) -> None:
        """Raises `NamesMatter` if identifiers are to be looked up and are not."""
        if not self._is_checked:
            self._is_checked = True
            if has_names(self.schema) or self.documents:
                raise NamesMatter

    def follow(self, number: int, keyword: str) -> int:
        """The location that `$ref`, `$dynamicRef` or `$recursiveRef` of a location leads to.

        Raises: SchemaError if there is none.
        """
        reference = self.schemas[number][keyword]
        if not isinstance(reference, str):
            raise self.error(number, keyword, f"a reference is a string, not {type(reference).__name__}")
        resolver = self._resolvers[number]
        if resolver is None:
            self.check_names()
            found = self._followed.get((reference, self.drafts[number]))
            if found is None:
                found = self._followed[reference, self.drafts[number]] = self._pointed(reference, number, keyword)
            return found
        import referencing.exceptions
        import referencing.jsonschema as dialects

        name = _local(reference)
        try:
            doubled = self._doubled and self._doubled_by(name, keyword, resolver)
            if doubled:
                target = None
            elif keyword == "$recursiveRef":
                target = dialects.lookup_recursive_ref(resolver)
            else:
                target = resolver.lookup(name)
        except (referencing.exceptions.Unresolvable, ValueError, TypeError, LookupError, AttributeError) as error:
            if reference.startswith("#") or isinstance(error, referencing.exceptions.PointerToNowhere):
                raise self.error(number, keyword, f"the reference {reference!r} leads to nothing") from error
            return self._elsewhere(reference, number, keyword)
        if target is None:
            raise self.error(number, keyword, f"different subschemas have the name {doubled!r}; name each differently")
        place = reference[1:] if reference.startswith("#/") else reference
        if target.contents is self.schema:
            place = ""
        draft = self._draft(self.documents.get(target.resolver._base_uri), place, self.drafts[number])
        draft = self._draft(target.contents, place, draft)
        return self._location(target.contents, (place,), draft, target.resolver)

    def _doubled_by(self, reference: str, keyword: str, resolver: Any) -> str:
        """The name of different subschemas to which a reference goes; "" if it has but one."""
        uri, _, fragment = urljoin(resolver._base_uri, reference).partition("#")
        uris = [each for each, _ in resolver.dynamic_scope()] if keyword == "$dynamicRef" else []
        names = [uri, *(f"{each}#{unquote(fragment)}" for each in [uri, *uris])]
        return next((name for name in names if name in self._doubled), "")

    def _elsewhere(self, reference: str, number: int, keyword: str) -> int:
        """The location of a schema in a document that is not given."""
        found = self.made(OPAQUE, number)
        uri = urljoin(str(getattr(self._resolvers[number], "_base_uri", "")), reference).partition("#")[0]
        asked = f"{reference!r}" if uri in reference else f"{reference!r} ({uri})"
        what = f"the reference {asked} leads to nothing that is given; pass other documents as `documents`"
        self.unknown[found] = f"{self.pointer(number)}/{keyword}", what
        return found

    def _pointed(self, reference: str, number: int, keyword: str) -> int:
        """The location of a reference such as `#/$defs/name`."""
        if not reference.startswith("#"):
            return self._elsewhere(reference, number, keyword)
        path = unquote(reference[1:])
        if path and not path.startswith("/"):
            raise self.error(number, keyword, f"there is no anchor {path!r}")
        try:
            schema = pointed(self.schema, path)
        except LookupError:
            raise self.error(number, keyword, f"the reference {reference!r} leads to nothing") from None
        return self._location(schema, (path,), self.drafts[number], None)


def read_document(
    schema: Any, documents: Mapping[str, Any] | None, default_draft: int, read: Callable[[Document], Result]
) -> Result:
    """What is read of a document, once more with its identifiers looked up if they matter."""
    try:
        return read(Document(schema, documents, default_draft))
    except NamesMatter:
        return read(Document(schema, documents, default_draft, True))


def _doubled(resources: list[tuple[str, Any]]) -> set[str]:
    """Identifiers, and anchors behind `#`, of different subschemas. resources : with their URIs."""
    from referencing.exceptions import CannotDetermineSpecification

    owners = {uri: resource.contents for uri, resource in resources}
    doubled = set()
    while resources:
        base, resource = resources.pop()
        try:
            name = resource.id()
            uri = base if name is None else urljoin(base, name)
            names = [f"{uri}#{anchor.name}" for anchor in resource.anchors()] + [uri] * (name is not None)
            resources += [(uri, inside) for inside in resource.subresources()]
        except (ValueError, TypeError, LookupError, AttributeError, CannotDetermineSpecification):
            continue  # no schema, which a reference to a name says
        for name in names:
            owner = owners.setdefault(name, resource.contents)
            if owner is not resource.contents and repr(owner) != repr(resource.contents):
                doubled.add(name)
    return doubled


def _local(uri: str) -> str:
    """A relative URI without the folder itself in front."""
    return uri[2:] if re.match(r"\./[^:]+$", uri) else uri


def _id_keyword(draft: int) -> str:
    return "id" if draft == 4 else "$id"


def _wrong_identifier(schema: Any, draft: int) -> str:
    """What is wrong with the identifier of a schema that is no string; "" if nothing is."""
    name = schema.get(_id_keyword(draft)) if isinstance(schema, dict) else None
    return "" if name is None or isinstance(name, str) else f"an identifier is a string, not {type(name).__name__}"


def _specification(draft: int) -> Any:
    import referencing.jsonschema as dialects

    old = {4: dialects.DRAFT4, 6: dialects.DRAFT6, 7: dialects.DRAFT7, 2019: dialects.DRAFT201909}
    return old.get(draft, dialects.DRAFT202012)


def refuse_deep(*values: Any) -> None:
    """Raises: SchemaError for values that are nested too deeply to be those of a schema."""
    try:
        for value in values:
            check_nesting(value)
    except NestingError as error:
        raise SchemaError(f"/: {error}") from None
