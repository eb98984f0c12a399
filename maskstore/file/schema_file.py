"""Stores of JSON schemas and of patterns as files: what they were built of, built again when read.

The files have the form that `fileformat` says, without a grammar. A file of kind "schema" holds the
schema's JSON text and how it is read; one of kind "pattern" the minimal automaton of all texts. No
table is kept: `tables_of` makes it in a millisecond, so that no file can have a wrong one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from maskwright.analysis.arguments import a_type, clip, printable
from maskwright.analysis.composition.structural_tags_schemas import narrowed
from maskwright.analysis.errors import MaskwrightError, SchemaError, StoreError
from maskwright.analysis.regex.dfa import MAX_STATES, Dfa
from maskwright.analysis.schema.load import JsonSchema, Narrowing, parse_schema, read_schema
from maskwright.analysis.schema.style import read_style
from maskwright.analysis.schema.text_patterns import Regex
from maskwright.maskstore.damaged import reason, refuse
from maskwright.maskstore.file.fileheader import PATTERN, SCHEMA, Content, Header
from maskwright.maskstore.schema.compiled import SchemaTables
from maskwright.maskstore.schema.write import tables_of

Array = npt.NDArray[Any]


def written(store: SchemaTables) -> tuple[dict[str, Any], dict[str, Array]]:
    """The constraint's own members of the JSON, and its tensors.

    Raises: StoreError if the constraint is not known; and as `described`.
    """
    if store.constraint is None:
        raise StoreError(f"the tables of {store.name} have no file: keep the schema itself, and build the store again")
    return described(store.constraint)


def described(constraint: JsonSchema | Regex) -> tuple[dict[str, Any], dict[str, Array]]:
    """The members of the JSON that say a constraint, and its tensors.

    Raises: StoreError if it has values that JSON does not have.
    """
    if isinstance(constraint, Regex):
        automaton = constraint.automaton
        return {"kind": PATTERN, "name": constraint.name}, {
            "automaton.is_accepting": automaton.is_accepting,
            "automaton.next_state": automaton.next_state,
        }
    options, how = constraint.options, constraint.narrowing
    try:
        facts = {
            "kind": SCHEMA,
            "name": constraint.name,
            "schema": json.dumps(constraint.schema, allow_nan=False),
            "documents": json.dumps(dict(options.documents), allow_nan=False),
            "whitespace": json.dumps(options.style.whitespace),
            "key_order": options.style.key_order,
            "escapes": options.style.escapes,
            "lenient": options.lenient,
            "narrowing": [{**how._asdict(), "sha256": constraint.texts.digest}] if how else [],
        }
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(
            f"{constraint.name} has values that JSON does not have ({reason(error)}), so its store has no file"
        ) from error
    return facts, {}


def read(file: Content) -> SchemaTables:
    """The tables of the constraint in a file.

    Raises: StoreError if it is not what maskwright writes; and as `tables_of`.
    """
    return tables_of(constraint_of(file.where, file.header.facts, file.arrays), file.vocabulary)


def constraint_of(where: str, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> JsonSchema | Regex:
    """What `described` has described. Raises: StoreError if it is not what maskwright writes."""
    if facts["kind"] == PATTERN:
        return Regex(printable(facts["name"]), _automaton(where, arrays))
    try:
        # no text: `load_schema` would read the file or folder of this machine that it names
        schema, documents = _value(facts, "schema", dict, bool), _value(facts, "documents", dict)
        found = read_schema(
            schema,
            style=read_style("natural", _value(facts, "whitespace", str, int), facts["key_order"], facts["escapes"]),
            documents=documents or None,
            lenient=facts["lenient"],
            name=printable(facts["name"]),
        )
        for how in facts["narrowing"]:
            kinds, excluded = tuple(how["kinds"]), tuple(how["excluded"])
            found = narrowed(found, Narrowing(how["node"], kinds, excluded, how["is_tight"]))
            # nodes are numbered as this version reads schemas
            if len(facts["narrowing"]) > 1 or found.texts.digest != how["sha256"]:
                raise SchemaError("its narrowing comes to other texts than those that were written")
        return found
    except (MaskwrightError, OSError, TypeError, ValueError) as error:
        raise refuse(where, f"its schema is not read: {reason(error)}") from error


def _value(facts: Mapping[str, Any], member: str, *kinds: type) -> Any:
    """The value of a member that is JSON text, of one of some types.

    Raises: SchemaError if it is of none of them, or no JSON.
    """
    value = parse_schema(facts[member], member)
    if type(value) not in kinds:
        raise SchemaError(f"{member} is {a_type(value)}; expected {' or '.join(kind.__name__ for kind in kinds)}")
    return value


def _automaton(where: str, arrays: Mapping[str, Array]) -> Dfa:
    next_state, is_accepting = arrays["automaton.next_state"], arrays["automaton.is_accepting"]
    n = len(is_accepting)
    if n > MAX_STATES:
        raise refuse(where, f"its automaton has {n:,} states, and a pattern has at most {MAX_STATES:,}")
    if not n or next_state.min() < -1 or next_state.max() >= n:
        raise refuse(where, f"tensor automaton.next_state has a state that is not among the {n}")
    found = Dfa.minimal(next_state, is_accepting)
    if found.is_empty or found != Dfa(next_state, is_accepting):
        raise refuse(where, f"its automaton of {clip(n)} states is not minimal, or accepts nothing")
    return found


def info(where: str, header: Header, table: Array | None) -> dict[str, Any]:
    """What a file says about its constraint, ready for JSON.

    Raises: StoreError if the white space is not what maskwright writes.
    """
    facts = header.facts
    if facts["kind"] == PATTERN:
        return {"pattern": {"name": printable(facts["name"]), "states": header.sizes["states"]}}
    named = ("key_order", "escapes", "lenient")
    try:
        whitespace = _value(facts, "whitespace", str, int)
    except SchemaError as error:
        raise refuse(where, reason(error)) from error
    return {
        "schema": {
            **{name: facts[name] for name in named},
            "name": printable(facts["name"]),
            "whitespace": whitespace,
            "bytes": len(facts["schema"]),
        }
    }
