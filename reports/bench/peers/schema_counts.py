"""One engine on schemas and their instances, counted and not timed: python -m peers.schema_counts ENGINE FOLDER, for schema_orders.py.

FOLDER has what `process.load_work` reads, and schemas.json: of each schema its text, and its instances as (text, tokens) in both orders.
Each schema has a process of its own, since engines may end or hang. Prints JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from peers.engine import Engine, UnsupportedError, Work
from peers.process import is_allowed, limited, load_work
from peers.tokenizers import BYTES

LIMIT = 20
"""CPU seconds for a schema and its instances."""

FORCED = "a token is forced, and the text has another one there"
TOKEN = "the mask lacks the token, though its bytes are taken"
ORDER = "order of members"
UNKNOWN = "more than one keyword"

KEYWORDS = (
    *("format", "pattern", "propertyNames", "patternProperties", "dependencies", "dependentRequired", "uniqueItems"),
    *("minLength", "maxLength", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minItems", "maxItems", "minProperties", "maxProperties", "contains", "not", "if", "const", "enum"),
    *("oneOf", "anyOf", "allOf", "additionalProperties", "required", "items", "$ref", "type", "properties"),
)
"""Those without one of which a schema is tried to say why a text is refused, in this order."""
NAMED = ("properties", "patternProperties", "definitions", "$defs", "dependencies", "dependentSchemas")
"""Keywords whose keys are names."""
VALUES = ("enum", "const", "default", "examples")
"""Keywords that hold instances."""


def without(schema: Any, keyword: str, is_names: bool = False) -> Any:
    """The schema without a keyword, wherever it stands. is_names : whether the keys of `schema` itself are names."""
    if isinstance(schema, list):
        return [without(each, keyword) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: each if key in VALUES and not is_names else without(each, keyword, key in NAMED and not is_names)
        for key, each in schema.items()
        if is_names or key != keyword
    }


def refused_at(engine: Engine, tokens: list[int], eos: int) -> tuple[int, bool] | None:
    """The place of the first token that a mask lacks, its end as one more, and whether the mask has one token only; None for a text taken.

    An engine that gives up has no token any more.
    """
    matcher = engine.matcher()
    at = 0
    try:
        for at, token in enumerate([*tokens, eos]):
            if at == len(tokens) and not getattr(engine, "has_eos", True):
                return None if matcher.may_end() else (at, False)  # type: ignore[attr-defined]
            matcher.fill()
            if matcher.failure() or not is_allowed(matcher.words, token):
                return at, sum(int(word).bit_count() for word in matcher.words) == 1
            if at < len(tokens):
                matcher.advance(token)
    except Exception:  # an engine's own error of any kind
        return at, False
    return None


def keyword_of(engine: Engine, schema: Any, data: bytes) -> str:
    """The first keyword without which the engine takes a text. engine : over bytes."""
    for keyword in KEYWORDS:
        other = without(schema, keyword)
        if other != schema:
            try:
                engine.compile_schema(json.dumps(other))
            except UnsupportedError:
                continue
            if engine.reads(data):
                return keyword
    return UNKNOWN


def judge(engine: Engine, of_bytes: Engine, each: dict[str, Any], eos: int) -> dict[str, Any]:
    """What becomes of a schema's instances, in both orders: None, or why it is refused."""
    engine.compile_schema(each["schema"])
    of_bytes.compile_schema(each["schema"])
    found = []
    for instance in each["instances"]:
        reads = {order: of_bytes.reads(text.encode()) for order, (text, _) in instance.items()}
        verdicts: dict[str, str | None] = {}
        for order, (_, tokens) in instance.items():
            refused = refused_at(engine, tokens, eos)
            if refused is None:
                verdicts[order] = None
            elif reads[order]:
                verdicts[order] = FORCED if refused[1] else TOKEN
            else:
                verdicts[order] = ORDER if reads["schema"] else ""
        found.append(verdicts)
    schema = json.loads(each["schema"])
    for instance, verdicts in zip(each["instances"], found, strict=True):
        if "" in verdicts.values():
            keyword = keyword_of(of_bytes, schema, instance["schema"][0].encode())
            verdicts |= {order: keyword for order, why in verdicts.items() if why == ""}
    return {"instances": found}


def answers(engine: Engine, of_bytes: Engine, eos: int, work: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for each in work:

        def one(each: dict[str, Any] = each) -> dict[str, Any]:
            try:
                return judge(engine, of_bytes, each, eos)
            except UnsupportedError as error:
                refused = {"refused": str(error)[:300]}
            try:
                of_bytes.compile_schema(each["schema"], lenient=True)
            except UnsupportedError:
                return refused
            return {**refused, "lenient": True}

        yield limited(one, LIMIT)


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    work = load_work(folder)
    schemas = json.loads((folder / "schemas.json").read_text(encoding="utf-8"))
    engine, of_bytes = (importlib.import_module(f"peers.{name}").Engine() for _ in range(2))
    single = [bytes([byte]) for byte in range(256)]
    bytes_only = Work("schemas", BYTES, [*single, b""], {256: "</s>"}, [256], [], folder)
    for one, of in ((engine, work), (of_bytes, bytes_only)):
        one.load_vocabulary(of)
        one.compile_schema('{"type": "null"}')  # what is made of a vocabulary once
    found = list(answers(engine, of_bytes, work.eos[0], schemas))
    print(json.dumps({"version": version(engine.package), "schemas": found}))


if __name__ == "__main__":
    main()
