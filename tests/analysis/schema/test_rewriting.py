"""What OpenAPI 3.0, pydantic and users mean by a schema: formats, tags of unions, `nullable`."""

from __future__ import annotations

import datetime
import random
from typing import Annotated, Any, Literal

import pytest
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, NaiveDatetime, TypeAdapter

from maskwright.analysis.errors import SchemaError
from maskwright.analysis.schema.formats import WRITTEN
from maskwright.analysis.schema.load import load_schema
from maskwright.lint import lint_schema
from maskwright.stores.build import build_store

TYPES: dict[str, type] = {
    "date": datetime.date, "time": datetime.time, "date-time": datetime.datetime, "duration": datetime.timedelta,
}  # fmt: skip


def takes(schema: Any, text: str | bytes, **options: Any) -> bool:
    matcher = build_store(load_schema(schema, **options), "python-tiny").matcher()
    data = text if isinstance(text, bytes) else text.encode()
    return matcher.try_bytes(data) and matcher.is_accepting()


def drawn(kind: str, rng: random.Random) -> Any:
    zone = rng.choice([None, datetime.UTC, datetime.timezone(datetime.timedelta(minutes=rng.randint(-1439, 1439)))])
    clock = datetime.time(
        rng.randrange(24), rng.randrange(60), rng.randrange(60), rng.choice([0, 5, 500_000, 123_456]), zone
    )
    day = datetime.date.fromordinal(rng.randint(1, datetime.date.max.toordinal()))
    if kind == "duration":
        days = rng.choice([0, 1, 365, 400, 10**8])
        return rng.choice([1, -1]) * datetime.timedelta(days, rng.choice([0, 0.5, rng.uniform(0, 86400)]))
    return {"date": day, "time": clock, "date-time": datetime.datetime.combine(day, clock)}[kind]


@pytest.mark.parametrize("kind", TYPES)
def test_what_pydantic_writes_is_taken_and_what_is_taken_it_reads(kind: str) -> None:
    assert WRITTEN.keys() == TYPES.keys()
    rng = random.Random(kind)
    adapter = TypeAdapter(TYPES[kind])
    matcher = build_store(load_schema(TYPES[kind]), "python-tiny").matcher()
    for _ in range(200):
        matcher.reset()
        data = adapter.dump_json(drawn(kind, rng))
        assert matcher.try_bytes(data) and matcher.is_accepting(), data
        matcher.reset()
        text, longest = b"", rng.randint(1, 25)
        while not matcher.is_accepting() and len(text) < longest:
            byte = bytes([rng.choice(b'"0123456789PTYMWDHS.:+-tzZ')])
            text += byte if matcher.try_bytes(byte) else b""
        adapter.validate_json(text + matcher.shortest_ending().data)


def test_javascripts_dates_are_natural_and_leap_seconds_are_not() -> None:
    for text, is_natural in (
        ('"2024-02-29T10:00:00.123Z"', True),
        ('"2024-02-29T10:00:00"', True),
        ('"2023-02-29T10:00:00"', False),
        ('"0000-02-29T10:00:00"', False),
        ('"2016-12-31T23:59:60Z"', False),
    ):
        assert takes({"format": "date-time"}, text, formats="natural") == is_natural
    assert takes({"format": "date-time"}, '"2016-12-31T23:59:60Z"')


def test_formats_may_be_patterns_of_the_user_or_say_nothing() -> None:
    phone = {"type": "string", "format": "phone", "pattern": "^[+]"}
    assert takes(phone, '"+a"') and not takes(phone, '"+a"', formats={"phone": r"\+?\d+"})
    assert takes(phone, '"+12"', formats={"phone": r"\+?\d+"}) and not takes(
        phone, '"12"', formats={"phone": r"\+?\d+"}
    )
    assert takes({"format": "date"}, '"x"', formats={"date": None}) and takes(
        {"format": "uuid"}, "1", formats="annotate"
    )
    assert not takes({"format": "uuid"}, '"x"', formats={"date": None})
    assert takes({"properties": {"format": {"format": "date"}}}, '{"format":"x"}', formats="annotate")
    assert takes({"const": {"format": "date"}}, '{"format":"date"}', formats="annotate")
    assert load_schema({"format": "date"}, formats="annotate").schema == {"x-format": "date"}


@pytest.mark.parametrize("formats", [3, 0, "", "strict", ["date"], {"date": 3}])
def test_formats_are_checked(formats: Any) -> None:
    with pytest.raises(SchemaError, match=r"formats is .*; expected assert, natural, annotate"):
        load_schema({}, formats=formats)


def test_a_pattern_that_is_none_is_said_as_it_was_given() -> None:
    with pytest.raises(SchemaError, match=r"the pattern '\(' cannot be used"):
        load_schema({}, formats={"b": "("})


def test_patterns_of_the_user_match_the_whole_string_and_stand_by_themselves() -> None:
    text = f'"{"a" * 20}"'
    assert takes({"format": "b"}, text, formats={"b": "a[ab]{19}"})  # searched for, it has a million states
    with pytest.raises(SchemaError, match="cannot be used"):
        load_schema({}, formats={"b": "a)|(?:b"})


def test_no_formats_are_no_default_and_shared_parts_stay_apart() -> None:
    assert takes(datetime.datetime, '"2024-01-01T00:00:00"', formats={"phone": "x"})
    assert not takes(datetime.datetime, '"2024-01-01T00:00:00"', formats="assert")
    common = [{"minLength": 1}]
    dated = {"format": "date", "pattern": "^2", "allOf": common}
    schema = {"properties": {"a": dated, "b": {"allOf": common}}}
    assert takes(schema, '{"a":"2024-01-01","b":"x"}', formats="natural") and common == [{"minLength": 1}]
    assert not takes({**dated, "allOf": (True,)}, '"1970-01-01"', formats="natural")


class Zones(BaseModel):
    aware: AwareDatetime
    local: NaiveDatetime
    either: datetime.time


def test_times_with_and_without_an_offset() -> None:
    ending = build_store(load_schema(Zones), "python-tiny").matcher().shortest_ending().data
    assert ending == b'{"aware":"1970-01-01T00:00:00Z","local":"1970-01-01T00:00:00","either":"00:00:00"}'
    Zones.model_validate_json(ending)
    for aware, local, is_right in (
        ("2024-01-01T00:00:00+01:00", "2024-01-01T00:00:00", True),
        ("2024-01-01T00:00:00", "2024-01-01T00:00:00", False),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00-01:00", False),
    ):
        text = f'{{"aware":"{aware}","local":"{local}","either":"10:00:00-01:00"}}'
        assert takes(Zones, text) == is_right, text


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    born: datetime.datetime | None = None


class Dog(BaseModel):
    kind: Literal["dog"]


class Owner(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


@pytest.mark.parametrize("open_objects", [None, True])
def test_the_tag_of_a_union_is_required_though_its_class_has_a_default(open_objects: bool | None) -> None:
    options = {"additional_properties": open_objects}
    assert not takes(Owner, '{"pet":{}}', **options)
    assert takes(Owner, '{"pet":{"kind":"cat","born":"2024-01-01T00:00:00"}}', **options)
    assert lint_schema(Owner, **options).passed
    ending = build_store(load_schema(Owner, **options), "python-tiny").matcher().shortest_ending().data
    assert Owner.model_validate_json(ending).pet.kind == "cat"


API: dict[str, Any] = {
    "openapi": "3.0.3",
    "paths": {},
    "components": {
        "schemas": {
            "Pet": {
                "type": "object",
                "discriminator": {"propertyName": "kind"},
                "properties": {
                    "kind": {"type": "string"},
                    "age": {"type": "integer", "nullable": True, "minimum": 0, "exclusiveMinimum": True},
                    "born": {"nullable": True, "enum": ["no"]},
                },
            }
        }
    },
}
NAMED = {"$schema": "https://spec.openapis.org/oas/3.0/schema/2021-09-28", **API["components"]["schemas"]["Pet"]}


@pytest.mark.parametrize(
    ("schema", "documents"),
    [
        (NAMED, None),
        ({**API, "$ref": "#/components/schemas/Pet"}, None),
        ({"$ref": "api.json#/components/schemas/Pet"}, {"api.json": API}),
    ],
)
@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("{}", False),
        ('{"kind":"a"}', True),
        ('{"kind":"a","age":null}', True),
        ('{"kind":"a","age":0}', False),
        ('{"kind":"a","age":1}', True),
        ('{"kind":"a","born":null}', False),
    ],
)
def test_schemas_of_openapi_3_0(schema: Any, documents: Any, text: str, is_right: bool) -> None:
    assert takes(schema, text, documents=documents) == is_right


def test_parts_of_an_api_in_files_of_their_own_are_of_its_version() -> None:
    documents = {"api.json": {**API, "x": {"$ref": "pet.json"}}, "pet.json": {"type": "integer", "nullable": True}}
    schema = {"$ref": "api.json#/x", "const": None}
    assert takes(schema, "null", documents=documents) and not takes(schema, "1", documents=documents)
    other = {**documents["pet.json"], "$schema": "https://json-schema.org/draft/2020-12/schema"}
    assert not takes({"$ref": "pet.json"}, "null", documents={**documents, "pet.json": other})


def test_a_tag_with_a_default_tells_branches_apart() -> None:
    class Numbers(BaseModel):
        model_config = ConfigDict(extra="allow")
        __pydantic_extra__: dict[str, int]
        kind: Literal["a"] = "a"

    class Others(BaseModel):
        model_config = ConfigDict(extra="allow")
        kind: Literal["b"] = "b"

    union = Annotated[Numbers | Others, Field(discriminator="kind")]
    assert (
        takes(union, '{"kind":"a","x":1}') and not takes(union, '{"kind":"a","x":""}') and not takes(union, '{"x":1}')
    )
    assert takes(union, '{"x":"","kind":"b"}', key_order="any")


def test_a_document_is_read_by_its_own_draft() -> None:
    old = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "definitions": {"a": {"maximum": 9, "exclusiveMaximum": True}},
    }
    schema = {"$ref": "old.json#/definitions/a"}
    assert takes(schema, "8", documents={"old.json": old}) and not takes(schema, "9", documents={"old.json": old})


def test_a_bound_that_is_a_boolean_is_refused_and_read_as_meant_where_that_is_wanted() -> None:
    schema = {"type": "integer", "minimum": 0, "exclusiveMinimum": True}
    with pytest.raises(
        SchemaError, match=r"/exclusiveMinimum: exclusiveMinimum is True, as in draft 4 and OpenAPI 3\.0"
    ):
        load_schema(schema)
    assert [pointer for pointer, _ in load_schema(schema, lenient=True).left_out] == ["/exclusiveMinimum"]
    assert takes(schema, "1", lenient=True) and not takes(schema, "0", lenient=True)
    assert takes({**schema, "exclusiveMinimum": False}, "0", lenient=True)
