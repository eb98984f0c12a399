"""Is a text an instance of a schema? Judged by `jsonschema`, which shares no code with us.

In: a schema and a text. Out: a verdict, with what the two differ in by intent taken into account.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from maskwright.analysis.errors import NestingError
from maskwright.analysis.nesting import read_json
from maskwright.analysis.schema.documents import draft_of, escaped
from maskwright.analysis.schema.formats import FORMATS
from maskwright.analysis.schema.load import JsonSchema
from maskwright.validation.references import Judgement

NOT_INSTALLED = "the package jsonschema is not installed, so nobody else judged: pip install 'maskwright[schema]'"


@dataclass(frozen=True, slots=True)
class Violation:
    """A keyword that a value does not satisfy.

    keyword : as jsonschema names it.
    pointer : of the keyword in the schema, behind all references into it.
    message : what jsonschema says.
    """

    keyword: str
    pointer: str
    message: str


class RepeatedKey(ValueError):
    """An object of a text has a key twice."""


class UnreadNumber(ValueError):
    """A number of a text has an exponent that no Decimal has."""


class LongInteger(Decimal):
    """An integer of more digits than Python reads as an int."""


class InstanceJudge:
    """Judges texts of one schema.

    schema : as `load_schema` read it.

    `is_installed` says whether jsonschema is there; without it nothing is judged. Formats that it
    has no checker for are not judged either.
    """

    def __init__(self, schema: JsonSchema) -> None:
        self.is_installed = True
        # the copy has every schema once, and numbers as they are written
        exact = json.loads(json.dumps(schema.schema), parse_float=Decimal)
        try:
            self._validator, formats = _validator(exact, schema)
        except ImportError:
            self.is_installed = False
            return
        self._pointers = {id(one): pointer for pointer, one in _inside(exact, "")}
        named = {one.get("format") for _, one in _inside(exact, "") if isinstance(one.get("format"), str)}
        self._unknown = sorted((named & FORMATS.keys()) - formats.keys())

    def judge(self, text: str) -> Judgement:
        """The verdict on a whole text."""
        try:
            value = value_of(text)
        except RepeatedKey as error:
            return Judgement("refused", str(error), "json")
        except (UnreadNumber, NestingError) as error:
            return Judgement("not judged", str(error), "nobody")
        except ValueError as error:
            return Judgement("refused", f"no JSON: {error}", "json")
        if not self.is_installed:
            return Judgement("not judged", NOT_INSTALLED, "nobody")
        try:
            found = next(self._validator.iter_errors(value), None)
        except Exception as problem:  # of the library: a pattern that Python's `re` lacks, a recursion, ...
            return Judgement("not judged", f"jsonschema fails: {type(problem).__name__}: {problem}", "jsonschema")
        if found is not None:
            where = "".join(f"/{part}" for part in found.absolute_path)
            why = f"{where or 'the whole'}: {str(found.message)[:300]}"
            return Judgement("refused", why, "jsonschema", str(found.validator))
        if self._unknown:
            why = f"jsonschema has no checker for the formats {', '.join(self._unknown)}"
            return Judgement("not judged", why, "jsonschema")
        return Judgement("accepted", by="jsonschema")

    def violations(self, value: Any) -> list[Violation] | None:
        """All keywords that a value does not satisfy; [] for an instance.

        value : as `value_of` returns it.

        Returns None where jsonschema fails or is missing, and where a value satisfies all it checks
        but the schema has formats that it does not know.
        """
        if not self.is_installed:
            return None
        try:
            found = [
                Violation(str(error.validator), self._pointer(error), str(error.message)[:300])
                for error in self._validator.iter_errors(value)
            ]
        except Exception:  # of the library, as above
            return None
        return None if self._unknown and not found else found

    def _pointer(self, error: Any) -> str:
        """The pointer to the keyword of an error, behind all references."""
        if id(error.schema) in self._pointers:
            return f"{self._pointers[id(error.schema)]}/{escaped(error.validator)}"
        return "".join("/" + escaped(step) for step in error.absolute_schema_path)


def _inside(schema: Any, pointer: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """All objects in a schema with their pointers, itself first; some may be no schemas."""
    if isinstance(schema, dict):
        yield pointer, schema
    steps = schema.items() if isinstance(schema, dict) else enumerate(schema) if isinstance(schema, list) else ()
    for step, each in steps:
        yield from _inside(each, f"{pointer}/{escaped(step)}")


def value_of(text: str) -> Any:
    """The value of a JSON text.

    Numbers with a fraction or an exponent are Decimals, so that they are exact; integers of
    thousands of digits are `LongInteger`.

    Raises: ValueError for no JSON; of these RepeatedKey for an object with a key twice,
    UnreadNumber for a number with an exponent of some 19 digits, and NestingError as `read_json`;
    what these two refuse may be JSON.
    """

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise RepeatedKey("an object has a key twice")
        return found

    def no_constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    return read_json(
        text, object_pairs_hook=members, parse_constant=no_constant, parse_float=_decimal, parse_int=_integer
    )


def _decimal(spelled: str) -> Decimal:
    try:
        return Decimal(spelled)
    except InvalidOperation:
        raise UnreadNumber(f"the exponent of {spelled[:60]} is greater than a Decimal has") from None


def _integer(spelled: str) -> int | LongInteger:
    try:
        return int(spelled)
    except ValueError:  # the digits are too many
        return LongInteger(spelled)


def _validator(exact: Any, schema: JsonSchema) -> tuple[Any, Any]:
    """The validator of jsonschema, and its formats by name. Raises: ImportError."""
    import jsonschema
    import jsonschema.validators
    import referencing
    import referencing.jsonschema as dialects

    classes = {
        4: jsonschema.Draft4Validator,
        6: jsonschema.Draft6Validator,
        7: jsonschema.Draft7Validator,
        2019: jsonschema.Draft201909Validator,
        2020: jsonschema.Draft202012Validator,
    }
    draft = draft_of(exact, 2020)
    chosen = classes[draft]
    resources: list[tuple[str, Any]] = [
        (uri, referencing.Resource.from_contents(document, default_specification=dialects.DRAFT202012))
        for uri, document in schema.options.documents.items()
    ]
    registry: Any = referencing.Registry().with_resources(resources)
    integers = chosen.TYPE_CHECKER.redefine("integer", _is_integer if draft > 4 else _is_plain_integer)
    keywords = {"pattern": _pattern} if draft > 4 else {}
    chosen = jsonschema.validators.extend(chosen, keywords, type_checker=integers)
    checker = chosen.FORMAT_CHECKER
    return chosen(exact, format_checker=checker, registry=registry), checker.checkers


def _is_integer(checker: Any, value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite() and value == value.to_integral_value()
    return _is_plain_integer(checker, value)


def _is_plain_integer(checker: Any, value: Any) -> bool:
    return isinstance(value, int | LongInteger) and not isinstance(value, bool)


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    """The keyword `pattern`, with classes such as `\\d` of ASCII only, as in ECMA 262."""
    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and not re.search(pattern, value, re.ASCII):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


_PIECE = re.compile(r'"(?:\\.|[^"\\])*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[ \t\n\r]+')
MOST_DIGITS = 1_000
"""Numbers whose plain spelling has more digits are left as they are."""


def respelled(text: str) -> str:
    """A JSON text without white space, its numbers without exponents. Members keep their order.

    >>> respelled('{"a 1e5": 1.5e3, "b": [1E-2, 1.50]}')
    '{"a 1e5":1500,"b":[0.01,1.50]}'
    """

    def spelled(found: re.Match[str]) -> str:
        piece = found[0]
        if piece[0] in " \t\n\r":
            return ""
        if piece[0] == '"' or ("e" not in piece and "E" not in piece):
            return piece
        try:
            value = Decimal(piece)
        except InvalidOperation:  # an exponent that no Decimal has
            return piece
        return f"{value:f}" if abs(value.adjusted()) < MOST_DIGITS else piece

    return _PIECE.sub(spelled, text)
