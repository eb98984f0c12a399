"""The keywords that contradict one another: no value satisfies them, and each is needed for that."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest
from random_schemas import Schemas
from shares import share
from written_cases import parameters

import maskwright as mw
from maskwright.analysis.schema import mistakes as module
from maskwright.analysis.schema.documents import escaped
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.mistakes import Stated, contradiction

NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next"]}
CASES = parameters("schemas", "contradictions")


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_the_message_names_what_contradicts(schema: Any, message: str) -> None:
    before = copy.deepcopy(schema)
    with pytest.raises(mw.EmptySchemaError) as found:
        mw.load_schema(schema)
    assert message in str(found.value) and schema == before
    if message.endswith("the schema"):
        assert str(found.value).endswith(message)


def test_documents_and_names() -> None:
    documents = {"urn:a": {"$anchor": "x", "type": "string"}}
    with pytest.raises(mw.EmptySchemaError, match=r'schema: \$ref "urn:a#x" and type "null" contradict'):
        mw.load_schema({"$ref": "urn:a#x", "type": "null", "title": "t"}, documents=documents)


def _only(schema: Any, pointer: str, core: dict[tuple[str, str], Any]) -> Any:
    """A schema with no more than the keywords of a contradiction."""
    if not isinstance(schema, dict):
        return schema if (pointer, "") in core else True
    found: dict[str, Any] = {}
    for key, value in schema.items():
        at = f"{pointer}/{escaped(key)}"
        if (pointer, key) in core:
            found[key] = core[pointer, key]
        elif key in ("properties", "patternProperties", "definitions", "$defs"):
            found[key] = {name: _only(one, f"{at}/{escaped(name)}", core) for name, one in value.items()}
        elif key in ("allOf", "anyOf", "prefixItems", "items") and isinstance(value, list):
            found[key] = [_only(one, f"{at}/{i}", core) for i, one in enumerate(value)]
        elif isinstance(value, dict) and any(place.startswith(f"{at}/") or place == at for place, _ in core):
            found[key] = (
                {name: _only(one, f"{at}/{escaped(name)}", core) for name, one in value.items()}
                if key == "dependentSchemas"
                else _only(value, at, core)
            )
        elif key == "$schema" or (key == "minContains" and value == 0):
            found[key] = value
    return found


def _is_empty(schema: Any, draft: int) -> bool:
    try:
        build_graph(schema, lenient=True, default_draft=draft)
    except mw.EmptySchemaError:
        return True
    except mw.MaskwrightError:
        pass
    return False


@pytest.mark.parametrize("seed", share(range(24), 6))
def test_what_is_named_has_no_value_and_no_less_does(seed: int) -> None:
    rng, n = Random(seed), 0
    while n < 12:
        draft = rng.choice([4, 6, 7, 2019, 2020])
        schema = Schemas(rng, draft).whole(2)
        if not isinstance(schema, dict) or not _is_empty(schema, draft):
            continue
        n += 1
        found = contradiction(schema, default_draft=draft)
        assert found, schema
        core = {(one.pointer, one.keyword): one.value for one in found}
        assert _is_empty(_only(schema, "", core), draft), (schema, found)
        if draft > 7 or "$ref" not in repr(schema):  # whose neighbours are not read there
            for one in core:
                rest = {key: value for key, value in core.items() if key != one}
                assert not _is_empty(_only(schema, "", rest), draft), (schema, found, one)


@pytest.mark.parametrize(("bound", "most"), [("MOST_TRIES", 3), ("MOST_SECONDS", -1)])
def test_a_search_ends(bound: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, bound, most)
    schema = {"type": "object", "required": [f"k{i}" for i in range(40)], "maxProperties": 39, "minLength": 3}
    found = contradiction(schema)
    assert Stated("", "maxProperties", 39) in found and len(found[1].value) == 40


def test_many_places_are_counted() -> None:
    schema = {"anyOf": [{"enum": []} for _ in range(9)]}
    with pytest.raises(mw.EmptySchemaError, match=r"/anyOf/5 and 3 more places contradict one another"):
        mw.load_schema(schema)
