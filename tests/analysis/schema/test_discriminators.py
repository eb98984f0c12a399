"""Cases of objects against their values, one by one."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest
from naive_json_texts import is_instance, is_text_of
from schema_cases import same_graphs

from maskwright.analysis.errors import SchemaError
from maskwright.analysis.schema import clauses as of_clauses
from maskwright.analysis.schema import constraints as c
from maskwright.analysis.schema import normal
from maskwright.analysis.schema.clauses import Cases, exclude, implies
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.load import load_schema

LISTS = {1: "a", 2: "b", 3: "ab", 4: "bc", 5: "abc"}
"""Location -> the letters that it lists; location 6 lists none."""
OBJECTS = [
    {name: value for name, value in zip("xy", values, strict=True) if value}
    for values in itertools.product(["", *"abcd"], repeat=2)
]


def listed(location: int) -> frozenset[Any] | None:
    return frozenset(LISTS[location]) if location in LISTS else None


def random_members(rng: Random) -> c.Members:
    terms = [c.TRUE, c.FALSE, 2 * rng.randint(1, 5), 2 * rng.randint(1, 5) + 1]
    return c.Members({name: rng.choice(terms) for name in "xy"}, (), rng.choice([c.TRUE, c.TRUE, c.FALSE]))


def random_clause(rng: Random, common: list[c.Constraint]) -> c.Clause:
    """A clause. common : constraints that others may have, too."""
    found: list[c.Constraint] = [c.Required(name) for name in "xy" if rng.random() < 0.5]
    found.extend(random_members(rng) for _ in range(rng.randrange(3)))
    return (*found, *(one for one in common if rng.random() < 0.5))


def has(clause: c.Clause, value: dict[str, str]) -> bool:
    """Whether an object meets a clause, from the definition. No object has other members than x and y."""
    for one in clause:
        if isinstance(one, c.Required) and one.name not in value:
            return False
        if isinstance(one, c.Members):
            for name, member in value.items():
                term = one.names[name]
                if term == c.FALSE or (term > 1 and (member in LISTS[term >> 1]) == bool(term & 1)):
                    return False
        if isinstance(one, c.Size) and len(value) < one.least:
            return False
    return True


@pytest.mark.parametrize("seed", range(40))
def test_cases_exclude_and_imply_only_what_values_do(seed: int) -> None:
    rng = Random(seed)
    n_found = 0
    for _ in range(100):
        common = [random_members(rng), c.Size(rng.randrange(1, 3), None)]
        one, other = random_clause(rng, common), random_clause(rng, common)
        cases = Cases(listed)
        left, right = cases.of(one), cases.of(other)
        if exclude(left, right):
            n_found += 1
            assert not any(has(one, value) and has(other, value) for value in OBJECTS), (one, other)
        if implies(left, right):
            n_found += 1
            assert all(has(other, value) for value in OBJECTS if has(one, value)), (one, other)
    assert n_found > 5


@pytest.mark.parametrize("seed", range(20))
def test_the_widest_clauses_have_the_objects_of_all(seed: int) -> None:
    rng = Random(seed)
    n_fewer = 0
    for _ in range(50):
        common = [random_members(rng), c.Size(rng.randrange(1, 3), None)]
        clauses = list(dict.fromkeys(random_clause(rng, common) for _ in range(6)))
        cases = Cases(listed)
        kept = cases.widest(clauses)
        n_fewer += len(kept) < len(clauses)
        assert kept == tuple(one for one in clauses if one in kept)
        for value in OBJECTS:
            assert any(has(one, value) for one in clauses) == any(has(one, value) for one in kept), clauses
        for one, other in itertools.permutations(kept, 2):
            assert not implies(cases.of(one), cases.of(other)), (one, other)
    assert n_fewer > 10


def test_one_of_many_required_keys_with_values_of_their_own() -> None:
    names = [f"k{i}" for i in range(30)]
    schema = {"oneOf": [{"properties": {name: {"type": "integer"}}, "required": [name]} for name in names]}
    graph = build_graph({"type": "object", **schema})
    assert len(graph.nodes[graph.root]) == 30
    assert is_instance(graph, {"k3": 1}) and is_instance(graph, {"k3": 1, "k4": "not an integer"})
    assert (
        not is_instance(graph, {"k3": 1, "k4": 2})
        and not is_instance(graph, {"k3": "x"})
        and not is_instance(graph, {})
    )


def test_one_of_many_closed_objects_names_the_member_that_must_be_there() -> None:
    branches = [{"properties": {f"k{i}": {"type": "string"}}, "additionalProperties": False} for i in range(20)]
    graph = build_graph({"type": "object", "oneOf": branches})
    assert is_instance(graph, {"k7": "x"})
    assert (
        not is_instance(graph, {})
        and not is_instance(graph, {"k7": 1})
        and not is_instance(graph, {"k7": "", "k8": ""})
    )


def test_constants_of_numbers_tell_cases_apart() -> None:
    branches = [
        {"properties": {"n": {"const": i}, f"p{i}": {"type": "null"}}, "required": ["n", f"p{i}"]} for i in range(40)
    ]
    graph = build_graph({"type": "object", "oneOf": branches})
    assert len(graph.nodes[graph.root]) == 40
    assert is_instance(graph, {"n": 3, "p3": None}) and is_instance(graph, {"n": 3.0, "p3": None})
    assert not is_instance(graph, {"n": True, "p1": None}) and not is_instance(graph, {"n": 4, "p3": None})


def test_a_choice_of_tagged_objects_may_be_negated() -> None:
    """As where a `oneOf` has such a choice beside another object: each is negated for the other."""
    text = {"type": "string"}

    def tagged(tag: str) -> dict[str, Any]:
        members = {"type": {"enum": [tag]}, "id": text, "input": text, "output": text}
        return {"type": "object", "properties": members, "required": ["type", "input", "output"]}

    tags = [f"t{i}" for i in range(30)]
    other = {"type": "object", "properties": {"id": text}, "required": ["id"]}
    graph = build_graph({"oneOf": [{"oneOf": [tagged(tag) for tag in tags]}, other]})
    assert len(graph.nodes[graph.root]) < 10 * len(tags)
    whole = {"type": "t7", "input": "", "output": ""}
    for value, is_one in (
        (whole, True),
        ({**whole, "id": ""}, False),
        ({**whole, "id": 1}, False),
        ({**whole, "id": "", "input": 1}, True),
        ({"id": "", "type": "t31", "input": ""}, True),
        ({"id": ""}, True),
        ({**whole, "type": "t31"}, False),
        ({"type": "t7", "input": ""}, False),
    ):
        assert is_instance(graph, value) == is_one, value


def test_dependencies_on_the_values_of_one_member_do_not_multiply() -> None:
    allowed = {f"p{i}": [f"t{i // 3}", "any"] for i in range(18)}
    schema = {
        "properties": {"type": {"enum": [*(f"t{i}" for i in range(6)), "any"]}},
        "dependencies": {name: {"properties": {"type": {"enum": types}}} for name, types in allowed.items()},
    }
    graph = build_graph({"type": "object", **schema}, default_draft=7)
    assert is_instance(graph, {"type": "t1", "p3": 1, "p5": 1}) and is_instance(graph, {"p0": 1, "p17": 1})
    assert is_instance(graph, {"type": "any", **dict.fromkeys(allowed, 0)}) and is_instance(graph, {"type": "t0"})
    assert len(graph.nodes[graph.root]) == 8  # each value, none of them, and all values at once
    assert not is_instance(graph, {"type": "t1", "p3": 1, "p6": 1}) and not is_instance(graph, {"type": "t0", "p17": 1})


def test_values_that_are_json_only_once_written_are_read_as_json_reads_them() -> None:
    class Text(str):
        __slots__ = ()

    plain = load_schema({"properties": {"1": {"type": ["string", "null"]}}, "required": ["1"]}).texts.graph
    for schema in (
        {"properties": {1: {"type": ("string", "null")}}, "required": ["1"]},
        {"properties": {Text("1"): {"type": ["string", Text("null")]}}, "required": ("1",)},
    ):
        assert same_graphs(load_schema(schema).texts.graph, plain)
    with pytest.raises(SchemaError, match="written as JSON"):
        load_schema({"enum": [{1, 2}]})


def test_members_in_order_keep_their_places_where_a_tagged_object_is_negated() -> None:
    other = {"properties": {"b": {"const": 2}, "k": {"const": 1}}, "required": ["k"]}
    graph = build_graph({"type": "object", "allOf": [{"not": other}]}, key_order="schema")
    assert is_text_of(graph, b'{"b":3,"k":1}') and not is_text_of(graph, b'{"k":1,"b":3}')


def test_members_that_cannot_be_the_one_that_is_asked_for_do_not_count_as_it() -> None:
    whole = {"additionalProperties": {"type": "integer"}}
    graph = build_graph({"type": "object", "not": whole, **whole, "properties": {"t": {"const": False}}})
    assert is_instance(graph, {"t": False}) and is_instance(graph, {"z": 3, "t": False})
    assert not is_instance(graph, {"z": 3}) and not is_instance(graph, {})


@pytest.mark.parametrize("seed", range(20))
def test_clauses_that_are_no_partners_have_no_object_in_common(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_clauses, "FEW_TAGGED", seed % 2)
    rng = Random(seed)
    n_apart = 0
    for _ in range(60):
        common = [random_members(rng), c.Size(rng.randrange(1, 3), None)]
        left, right = ([random_clause(rng, common) for _ in range(rng.randint(1, 6))] for _ in range(2))
        for one, numbers in zip(left, Cases(listed).partners(c.OBJECT, left, right), strict=True):
            assert list(numbers) == sorted(set(numbers))
            for number in set(range(len(right))).difference(numbers):
                n_apart += 1
                assert not any(has(one, value) and has(right[number], value) for value in OBJECTS), (one, right[number])
    assert n_apart > 20


def random_branch(rng: Random) -> dict[str, Any]:
    """A schema that constants, names or types may tell from others."""
    names = rng.sample("xyz", rng.randint(1, 2))
    lists = [{"const": "a"}, {"const": "b"}, {"enum": ["b", "c"]}, {"not": {"const": "a"}}, {"type": "string"}]
    found: dict[str, Any] = {"properties": {name: rng.choice(lists) for name in names}}
    found["required"] = [name for name in "xyz" if rng.random() < 0.4]
    if rng.random() < 0.4 and set(found["required"]) <= set(names):
        found["additionalProperties"] = False
    return {**found, "type": "object"} if rng.random() < 0.8 else found


def random_condition(rng: Random) -> dict[str, Any]:
    test: dict[str, Any] = {
        "properties": {rng.choice("xxy"): rng.choice([{"const": "a"}, {"enum": ["b", "c"]}, {"const": "c"}])}
    }
    if rng.random() < 0.3:
        test["required"] = [*test["properties"]]
    return {
        "if": test,
        rng.choice(["then", "else"]): rng.choice([{"required": [rng.choice("yz")]}, random_branch(rng)]),
    }


@pytest.mark.parametrize("seed", range(30))
def test_an_index_of_what_tells_branches_apart_changes_no_value(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with all pairs looked at: `oneOf`, negated or not, and conditions."""
    rng = Random(seed)
    values = [
        *({k: v for k, v in zip("xyz", each, strict=True) if v} for each in itertools.product(["", *"abc"], repeat=3)),
        1,
        [],
    ]
    n = 0
    for _ in range(6):
        branches = [random_branch(rng) for _ in range(4)]
        schema: dict[str, Any] = rng.choice(
            [{"oneOf": branches}, {"not": {"oneOf": branches}}, {"allOf": [random_condition(rng) for _ in range(5)]}]
        )
        said = []
        for few in (0, 1 << 20):
            monkeypatch.setattr(of_clauses, "FEW_TAGGED", few)
            monkeypatch.setattr(normal, "FEW_TAGGED", few)
            try:
                graph = build_graph(schema)
            except SchemaError:
                said.append(None)
                continue
            said.append([is_instance(graph, value) for value in values])
        assert said[0] == said[1], schema
        n += said[0] is not None
    assert n > 2
