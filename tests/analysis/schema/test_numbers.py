"""Automata of numbers against exact decimals, over random spellings."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterable
from decimal import Context, Decimal

import pytest
from naive_json_texts import is_text_of

from maskwright.analysis.errors import LimitError
from maskwright.analysis.regex import Dfa, intersect
from maskwright.analysis.schema import numbers
from maskwright.analysis.schema.constraints import Bound
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.scalars import any_number


def constrained(
    limits: frozenset[Bound] = frozenset(),
    multiples_of: frozenset[Decimal] = frozenset(),
    whole: bool | None = None,
    is_natural: bool = False,
) -> Dfa:
    return numbers.constrained(limits, multiples_of, whole, is_natural)


def integers(with_fraction: bool) -> Dfa:
    return constrained(whole=with_fraction)


def bounded(bound: Decimal, is_lower: bool, is_exclusive: bool) -> Dfa:
    return constrained(frozenset([Bound(bound, is_lower, is_exclusive)]))


def multiples(of: Decimal) -> Dfa:
    return constrained(multiples_of=frozenset([of]))


def equal_to(values: Iterable[Decimal]) -> Dfa:
    return numbers.equal_to(frozenset(values), False)


NATURAL = re.compile(r"(?!-0(\.0*)?$)-?(0|[1-9][0-9]*)(\.[0-9]+)?")
"""Without an exponent, and not -0."""
EXACT = Context(prec=10_000, Emax=999_999, Emin=-999_999)
PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
SPELLED = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")

BOUNDS = [
    "0", "-0", "1", "-1", "10", "100", "255", "-255", "65535", "0.5", "-0.5", "0.0001", "3.14159", "-99.99", "1E+2",
    "12E-1",
]  # fmt: skip
BOUNDS += [
    "123456789012345678901234567890",
    "-0.123456789012345678901234567890123",
    "1E+308",
    "-1.7976931348623157E+308",
    "5E-324",
]
DIVISORS = [
    "1", "2", "3", "7", "10", "12", "100", "1000", "2.5", "0.5", "0.25", "0.01", "0.0001", "1E-7", "0.3", "1.5",
    "1E+2", "997",
]  # fmt: skip
DIVISORS += ["1E+308", "120", "0.12", "1.00", "3E+40"]


def is_multiple(value: Decimal, of: Decimal) -> bool:
    return EXACT.remainder(value, of) == 0


def spellings(rng: random.Random, near: list[Decimal], n: int) -> list[str]:
    """Texts of numbers: random ones, and some that are equal or close to given values."""
    found = []
    for _ in range(n):
        kind = rng.random()
        if kind < 0.3:
            text = format(rng.choice(near).copy_abs(), "f")
        elif kind < 0.6:
            one = rng.choice(near).copy_abs()
            step = Decimal(1).scaleb(rng.randint(-9, 3), EXACT)
            text = format(EXACT.add(one, EXACT.multiply(step, Decimal(rng.randint(-20, 20)))).copy_abs(), "f")
        else:
            text = str(rng.randint(0, 10 ** rng.randint(0, 6)))
            if rng.random() < 0.5:
                text += "." + "".join(rng.choice("0012599") for _ in range(rng.randint(1, 5)))
        if rng.random() < 0.3:
            text += "." * ("." not in text) + "0" * rng.randint(1, 3)
        found.append("-" * (rng.random() < 0.4) + text)
    assert all(PLAIN.fullmatch(text) for text in found)
    return found


def multiples_of(of: Decimal) -> list[Decimal]:
    return [EXACT.multiply(of, Decimal(k)) for k in (0, 1, 2, 3, 10, 11, 99, 123456)]


@pytest.mark.parametrize("bound", BOUNDS)
def test_bounded_is_what_decimals_say(bound: str) -> None:
    rng, value = random.Random(bound), Decimal(bound)
    texts = spellings(rng, [value], 400)
    for is_lower in (False, True):
        for is_exclusive in (False, True):
            dfa = bounded(value, is_lower, is_exclusive)
            for text in texts:
                found = Decimal(text)
                wanted = found > value if is_lower else found < value
                assert dfa.matches(text.encode()) == (wanted or (found == value and not is_exclusive)), text


@pytest.mark.parametrize("of", DIVISORS)
def test_multiples_are_what_decimals_say(of: str) -> None:
    rng, value = random.Random(of), Decimal(of)
    dfa = multiples(value)
    texts = spellings(rng, multiples_of(value), 600)
    answers = [is_multiple(Decimal(text), value) for text in texts]
    assert sum(answers) > 0 and (not all(answers))
    for text, answer in zip(texts, answers, strict=True):
        assert dfa.matches(text.encode()) == answer, text


def test_equal_to_is_what_decimals_say() -> None:
    rng = random.Random(1)
    for _ in range(60):
        values = [Decimal(rng.choice(BOUNDS)) for _ in range(rng.randint(1, 3))]
        values += [Decimal(rng.randint(-300, 300)).scaleb(-rng.randint(0, 3)) for _ in range(rng.randint(0, 6))]
        dfa = equal_to(values)
        for text in spellings(rng, values, 60):
            assert dfa.matches(text.encode()) == any(Decimal(text) == value for value in values), (text, values)
    assert equal_to([]).is_empty


def test_integers_are_whole() -> None:
    for text in spellings(random.Random(2), [Decimal(3), Decimal("2.5")], 800):
        value = Decimal(text)
        assert integers(True).matches(text.encode()) == (value == value.to_integral_value())
        assert integers(False).matches(text.encode()) == ("." not in text)


def test_conditions_together_are_the_intersection() -> None:
    rng = random.Random(3)
    for _ in range(60):
        limits = frozenset(
            Bound(Decimal(rng.choice(BOUNDS[:16])), rng.random() < 0.5, rng.random() < 0.5)
            for _ in range(rng.randint(0, 3))
        )
        of = frozenset(Decimal(rng.choice(DIVISORS[:14])) for _ in range(rng.randint(0, 2)))
        whole = rng.choice([None, False, True])
        apart = [constrained(frozenset([limit])) for limit in limits] + [multiples(one) for one in sorted(of)]
        apart += [] if whole is None else [integers(whole)]
        wanted = constrained()
        for one in apart:
            wanted = intersect(wanted, one)
        assert constrained(limits, of, whole) == wanted
        near = [limit.value for limit in limits] + [Decimal(1)]
        for text in spellings(rng, near, 60):
            assert wanted.matches(text.encode()) == all(one.matches(text.encode()) for one in apart)


def test_all_numbers_are_those_of_json() -> None:
    rng = random.Random(4)
    for _ in range(4000):
        text = "".join(rng.choice("0019-.eE+") for _ in range(rng.randint(0, 7)))
        assert any_number().automaton.matches(text.encode()) == (SPELLED.fullmatch(text) is not None)
        assert constrained().matches(text.encode()) == (PLAIN.fullmatch(text) is not None)
        if any_number().automaton.matches(text.encode()):
            json.loads(text)


def test_a_number_without_a_value_is_left_out() -> None:
    nothing = frozenset([Bound(Decimal(1), True, True), Bound(Decimal(1), False, False)])
    assert constrained(nothing).is_empty
    between = frozenset([Bound(Decimal(1), True, True), Bound(Decimal(2), False, True)])
    assert constrained(between, whole=True).is_empty
    assert 1 < Decimal(constrained(between).shortest().decode()) < 2


@pytest.mark.parametrize("of", ["123456789", "0.123456789", "1234567E-3"])
def test_large_divisors_are_refused(of: str) -> None:
    with pytest.raises(LimitError, match=r"multiples of .* need an automaton"):
        multiples(Decimal(of))


@pytest.mark.parametrize("text", ["1E+1000000", "1E-1000000", "9" * 2001])
def test_long_numbers_are_refused(text: str) -> None:
    for make in (lambda value: bounded(value, True, False), multiples, lambda value: equal_to([value])):
        with pytest.raises(LimitError, match="more than 2,000 digits"):
            make(Decimal(text))


def test_too_many_states_are_refused() -> None:
    with pytest.raises(LimitError, match="more than 20,000 states"):
        constrained(multiples_of=frozenset([Decimal(997), Decimal(991)]))


def test_a_second_request_is_a_look_up() -> None:
    limits = frozenset([Bound(Decimal(-5), True, False), Bound(Decimal("1E+3"), False, False)])
    assert constrained(limits, whole=True) is constrained(limits, whole=True)
    assert equal_to([Decimal(2), Decimal(1)]) is equal_to(iter([Decimal(1), Decimal(2)]))


def test_a_bounded_integer_is_made_in_about_a_millisecond() -> None:
    """With much room for a slow machine: the median of many, each of its own bounds."""
    taken = []
    for low in range(101):
        limits = frozenset([Bound(Decimal(low), True, False), Bound(Decimal(60_000 + low), False, False)])
        before = time.perf_counter()
        constrained(limits, whole=True)
        taken.append(time.perf_counter() - before)
    assert sorted(taken)[50] < 0.02


def test_numbers_are_equal_whatever_their_exponent() -> None:
    graph = build_graph({"type": "array", "items": {"type": "number"}, "uniqueItems": True})
    large = "9" * 5_000
    for one, other, is_equal in (
        ("1e99999999999999999999", "10E+99999999999999999998", True),
        ("1e99999999999999999999", "1e99999999999999999998", False),
        ("-0.0", "0e99999999999999999999", True),
        (f"1e{large}", f"1e{large}", True),
        (f"1e{large}", f"1e-{large}", False),
        ("1.50e1", "15", True),
        ("-15", "15", False),
        (large, f"{large}.0", True),
    ):
        assert is_text_of(graph, f"[{one}, {other}]") != is_equal, (one[:30], other[:30])


def test_natural_numbers_are_not_minus_zero_and_whole_ones_have_no_point() -> None:
    rng = random.Random(50)
    texts = {
        f"{sign}{n}{'.' * bool(tail)}{tail}"
        for sign in ("", "-")
        for n in range(13)
        for tail in ("", "0", "5", "50", "00", "05")
    }
    texts |= {f"{n}e1" for n in range(3)} | {"01", "-", "1.", "-0.0"}
    for _ in range(200):
        bounds = [
            Bound(Decimal(rng.choice(BOUNDS)), rng.random() < 0.5, rng.random() < 0.5) for _ in range(rng.randrange(3))
        ]
        whole = rng.choice([None, True])
        natural = constrained(frozenset(bounds), whole=whole, is_natural=True)
        every = constrained(frozenset(bounds), whole=whole) if bounds or whole else None
        for text in texts:
            is_legal = bool(PLAIN.fullmatch(text)) if every is None else every.matches(text.encode())
            is_written = bool(NATURAL.fullmatch(text)) and not (whole and "." in text)
            assert natural.matches(text.encode()) == (is_legal and is_written), (bounds, whole, text)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (["1", "2.0", "-30"], {"1", "1.0", "2", "2.0", "-30", "-30.0"}),
        (["0.50", "1"], {"0.5", "1", "1.0"}),
        (["-0"], {"0", "0.0"}),
        (["1E+2"], {"100", "100.0"}),
    ],
)  # fmt: skip
def test_listed_numbers_have_the_spellings_that_people_write(values: list[str], texts: set[str]) -> None:
    dfa = numbers.equal_to(frozenset(map(Decimal, values)), True)
    some = {
        "0", "-0", "0.0", "0.5", "0.50", "1", "1.0", "1.00", "2", "2.0", "-30", "-30.0", "100", "1e2", "100.00",
        *texts,
    }  # fmt: skip
    assert {text for text in some if dfa.matches(text.encode())} == texts


@pytest.mark.parametrize(
    ("schema", "legal", "other"),
    [
        ({"type": "integer", "minimum": 0}, "0 7 20", "-0 20.0 20.000000 -1 2e1"),
        ({"type": ["integer", "null"]}, "0 -7 null", "-0 -7.0"),
        ({"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]}, "3 5.50 7.0", "3.0 3.5 -0"),
        ({"allOf": [{"type": "number"}, {"type": "integer"}]}, "3", "3.0"),
        ({"type": "number", "not": {"type": "integer"}}, "3.5 -0.5", "3.0 3 -0.0"),
        ({"not": {"not": {"type": "integer"}}}, "3", "3.0"),
        ({"enum": [1, 2.5]}, "1 1.0 2.5", "2.50 1.00"),
        ({"const": 1.0}, "1 1.0", "1.00 -1"),
        ({"type": "integer", "enum": [1, 2]}, "1 2", "1.0 2.0"),
        ({"anyOf": [{"const": 1}, {"const": 2.5}]}, "1 1.0 2.5", "2.50"),
        ({"anyOf": [{"const": 1, "type": "integer"}, {"const": 2.5}]}, "1 2.5", "1.0"),
        ({"enum": [1, 2.5, "x"], "type": ["integer", "string"]}, '1 "x"', "1.0 2.5"),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer", "enum": [3]}}}, "3", "3.0"),
        ({"type": "number"}, "1.50 -0.0 1e5 3.0", "01"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "enum": [1.0], "not": {"type": "integer"}}, "1.0", "1"),
        ({"type": "number", "multipleOf": 0.5}, "1.50 2.0 0", "-0.0 0.3"),
    ],
)  # fmt: skip
def test_an_integer_is_written_without_a_point_unless_any_spelling_is_asked_for(
    schema: object, legal: str, other: str
) -> None:
    natural = build_graph(schema, is_natural=True)
    assert [text for text in legal.split() if not is_text_of(natural, text)] == []
    assert [text for text in other.split() if is_text_of(natural, text)] == []
    assert [text for text in legal.split() if not is_text_of(build_graph(schema), text)] == []
