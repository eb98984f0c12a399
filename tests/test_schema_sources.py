"""Schemas and patterns wherever a grammar may stand: `build_store`, `cached_store`, and what they make."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import TypedDict

import maskwright as mw
from maskwright.stores.schema_store import SchemaStore

TOKENS = [b"", *(bytes([i]) for i in range(256))]


class Named(TypedDict):
    name: str


@dataclasses.dataclass
class Sized:
    size: int


def vocabulary() -> mw.Vocabulary:
    return mw.Vocabulary.from_tokens(TOKENS, eos=[0])


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"type": "integer"}, b"12"),
        (mw.load_schema(True), b"[null]"),
        (mw.load_regex("a+"), b"aa"),
        (mw.load_choice(["x", "yz"]), b"yz"),
        (Named, b'{"name":"n"}'),
        (Sized, b'{"size":1}'),
        (list[int], b"[1, 2]"),
    ],
)
def test_what_is_a_schema(source: Any, text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not isinstance(source, dict | mw.JsonSchema | mw.Regex):
        pytest.importorskip("pydantic")
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path))
    told: list[str] = []
    for build in (mw.build_store, mw.cached_store):
        store: Any = build(source, vocabulary(), lazy=True, progress=lambda what, *_: told.append(what))
        assert isinstance(store, SchemaStore) and not store.is_closing
        store.close()
        matcher = store.matcher()
        matcher.advance_bytes(text)
        assert matcher.is_accepting() and matcher.shortest_ending() == matcher.short_ending()
    assert list(tmp_path.iterdir()) == [], "nothing is cached"


def test_grammars_of_other_languages(tmp_path: Path) -> None:
    (tmp_path / "g.gbnf").write_text('root ::= "a" root | "b"\n')
    for source in (tmp_path / "g.gbnf", str(tmp_path / "g.gbnf"), 'root ::= "a" root | "b"'):
        store = mw.build_store(source, vocabulary())
        assert isinstance(store, mw.Store)
        matcher = store.matcher()
        matcher.advance_bytes(b"aab")
        assert matcher.is_accepting()


def test_what_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("{}")
    with pytest.raises(mw.GrammarError, match=r"s.json is no grammar: read a JSON schema with mw.load_schema"):
        mw.build_store(tmp_path / "s.json", vocabulary())
    with pytest.raises(mw.SchemaError, match="type is 'x'"):
        mw.build_store({"type": "x"}, vocabulary())
    for wrong in (5, None, True, [1]):
        with pytest.raises(mw.GrammarError, match="a grammar is a name, a path or a text"):
            mw.build_store(wrong, vocabulary())  # type: ignore[call-overload]
    with pytest.raises(mw.MaskwrightError, match=r"the constraint is .*; expected what load_schema"):
        from maskwright.stores.schema_store import build_schema_store

        build_schema_store({}, vocabulary())  # type: ignore[arg-type]


def test_a_class_that_pydantic_cannot_take() -> None:
    pytest.importorskip("pydantic")
    with pytest.raises(mw.SchemaError, match=r"^pydantic tells no schema of <class .* to fully support it\.$"):
        mw.load_schema(type("Plain", (), {}))


def test_a_store_is_no_schema(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    mw.build_store(mw.load_schema({"type": "integer"}), "python-tiny").save(path)
    with pytest.raises(mw.SchemaError, match="is a safetensors file, as stores are, not a JSON schema"):
        mw.load_schema(str(path))


def test_the_text_of_a_type_has_its_members_in_their_order_and_no_others() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        b: int
        a: int

    class Outer(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        inner: Inner
        more: dict[str, int] = {}  # noqa: RUF012

    def takes(text: str, source: object = Outer, **options: Any) -> bool:
        matcher = mw.build_store(mw.load_schema(source, **options), vocabulary()).matcher()
        return matcher.try_bytes(text.encode()) and matcher.is_accepting()

    fine, mixed = '{"inner":{"b":1,"a":2},"more":{"x":3}}', '{"inner":{"a":2,"b":1}}'
    other = '{"inner":{"b":1,"a":2},"x":3}'
    assert takes(fine) and not takes(mixed) and not takes(other)
    schema = Outer.model_json_schema()
    assert takes(fine, schema) and takes(mixed, schema) and takes(other, schema)
    assert takes(mixed, key_order="any") and takes(other, additional_properties=True)
    assert takes(fine, style="compact") and not takes(mixed, style="compact")


def test_what_a_class_adds_to_its_schema_stays_as_it_is() -> None:
    pydantic = pytest.importorskip("pydantic")

    def loaded(**extra: Any) -> mw.JsonSchema:
        class Model(pydantic.BaseModel):  # type: ignore[misc, name-defined]
            model_config = pydantic.ConfigDict(json_schema_extra=extra)
            kind: str
            n: int = 0

        assert mw.lint_schema(Model).passed
        return mw.load_schema(Model)

    def takes(schema: mw.JsonSchema, text: str) -> bool:
        matcher = mw.build_store(schema, vocabulary()).matcher()
        return matcher.try_bytes(text.encode()) and matcher.is_accepting()

    is_x = {"properties": {"kind": {"const": "x"}}}
    forbidden = loaded(**{"not": {"properties": {"kind": {"const": "x"}, "n": {"const": 1}}, "required": ["n"]}})
    assert not takes(forbidden, '{"kind":"x","n":1}') and takes(forbidden, '{"kind":"x","n":2}')
    needed = loaded(**{"if": is_x, "then": {"required": ["n"]}})
    assert not takes(needed, '{"kind":"x"}') and takes(needed, '{"kind":"y"}') and takes(needed, '{"kind":"x","n":1}')
    both = loaded(allOf=[{"properties": {"n": {"minimum": 5}}}])
    assert (
        takes(both, '{"kind":"x","n":5}')
        and not takes(both, '{"kind":"x","n":4}')
        and not takes(both, '{"kind":"x","m":4}')
    )
