"""Formats against the JSON Schema Test Suite, and against Python's own readers."""

from __future__ import annotations

import datetime
import ipaddress
import json
import random
import re
import shutil
import subprocess
import uuid
from collections.abc import Callable

import pytest
from automaton_texts import changed, texts_of
from naive_json_texts import is_text_of
from naive_patterns import is_pattern
from paths import ROOT

from maskwright.analysis.errors import SchemaError
from maskwright.analysis.schema.formats import FORMATS, LONGEST, NOT_REGULAR, WIDENED
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.strings import format_automaton, widest_format, without

CASES = json.loads((ROOT / "tests" / "data" / "cases" / "formats.json").read_text(encoding="utf-8"))["formats"]


def conforms(name: str, text: str) -> bool:
    dfa, most = format_automaton(name), LONGEST.get(name)
    assert dfa is not None
    return dfa.matches(text.encode()) and (most is None or len(text) <= most)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_test_suite_agrees(name: str) -> None:
    assert [text for text in CASES[name]["invalid"] if conforms(name, text)] == []
    refused = [text for text in CASES[name]["valid"] if not conforms(name, text)]
    if name == "hostname":  # labels of IDNA are left out
        assert refused and all("--" in text for text in refused)
        refused = [text for text in refused if not re.search(r"(^|\.)..--", text)]
    assert refused == []


def is_date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    year = int(text[:4])
    try:  # a leap year for year 0, which Python has not
        datetime.date(year or 2000, int(text[5:7]), int(text[8:]))
    except ValueError:
        return False
    return True


def is_time(text: str) -> bool:
    """A time, by reading it; a 60th second by what the time is in UTC."""
    found = re.fullmatch(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?([zZ]|([+-])([0-9]{2}):([0-9]{2}))", text)
    if not found:
        return False
    hour, minute, second = int(found[1]), int(found[2]), int(found[3])
    away = int(found[7] or 0), int(found[8] or 0)
    if max(hour, away[0]) > 23 or max(minute, away[1]) > 59 or second > 60:
        return False
    if second < 60:
        return True
    offset = (away[0] * 60 + away[1]) * (-1 if found[6] == "-" else 1)
    return (hour * 60 + minute - offset) % 1440 == 1439


def is_date_time(text: str) -> bool:
    date, separator, time = text[:10], text[10:11], text[11:]
    if not (is_date(date) and separator in "Tt" and separator and is_time(time)):
        return False
    if time[6:8] != "60":
        return True
    clock = re.sub(r"\.[0-9]+", "", time).replace(":60", ":59").upper().replace("Z", "+00:00")
    if date.startswith("0000"):
        date = "2000" + date[4:]
    elif date.startswith(("0001-01-01", "9999-12-31")):
        date = "2001" + date[4:]  # Python's years end there
    utc = datetime.datetime.fromisoformat(f"{date}T{clock}").astimezone(datetime.UTC)
    return (utc.month, utc.day) in {(6, 30), (12, 31)}


def is_made_by(make: Callable[[str], object]) -> Callable[[str], bool]:
    def answer(text: str) -> bool:
        try:
            make(text)
        except ValueError:
            return False
        return text.isascii()

    return answer


def is_ipv6(text: str) -> bool:
    return "%" not in text and is_made_by(ipaddress.IPv6Address)(text)


def is_uuid(text: str) -> bool:
    shape = [8, 4, 4, 4, 12]
    return [len(part) for part in text.split("-")] == shape and is_made_by(uuid.UUID)(text) and "_" not in text


def is_duration(text: str) -> bool:
    """RFC 3339, appendix A: units in order, none left out between two of them."""
    if re.fullmatch(r"P[0-9]+W", text):
        return True
    found = re.fullmatch(r"P((?:[0-9]+[YMD])*)(T((?:[0-9]+[HMS])+))?", text)
    if not found or not (found[1] or found[2]):
        return False
    return re.sub(r"[0-9]+", "", found[1]) in "YMD" and re.sub(r"[0-9]+", "", found[3] or "") in "HMS"


READERS: dict[str, tuple[Callable[[str], bool], str]] = {
    "date": (is_date, "0123459-"),
    "time": (is_time, "0123456:.zZ+-"),
    "date-time": (is_date_time, "0123456:.zZ+-tT"),
    "duration": (is_duration, "PTYMDHSW0129"),
    "ipv4": (is_made_by(ipaddress.IPv4Address), "0123456789."),
    "ipv6": (is_ipv6, "0123456789abcdefF:."),
    "uuid": (is_uuid, "0123456789abcdefF-"),
}

PATTERNS = [
    r"^\S+@[\w.-]+$",
    "^(abc|de{2,3}?)*$",
    r"[^\]a-z0-9_-]+(?!(x)$)",
    r"\p{Lu}\u{1F600}[\x00-\x1f]\/",
    "(?:((a)|b){1,}c)?",
]
NO_PATTERNS = [
    "^(abc]", "a**", "[z-a]", "x{3,2}", "(?i)a", r"\Z", r"[\w-a]", "(", "]", "{", r"\u{110000}", "(?=a)*", r"\-",
]  # fmt: skip


def test_patterns_are_told_from_other_strings() -> None:
    assert all(conforms("regex", text) and is_pattern(text) for text in PATTERNS)
    assert not any(conforms("regex", text) or is_pattern(text) for text in NO_PATTERNS)
    # what the automaton leaves out
    for text in ("((((a))))", r"(a)\1", "(?<n>a)", "a{10,20}", r"[\u0600-\u06ff]"):
        assert not conforms("regex", text)


@pytest.mark.slow
def test_a_pattern_that_is_taken_is_one() -> None:
    dfa = format_automaton("regex")
    assert dfa is not None
    rng = random.Random(5)
    good = texts_of(dfa, rng, 2000)
    assert [text for text in good if not is_pattern(text)] == []
    for text in [changed(rng.choice([*good, *PATTERNS]), rng, "()[]{}|^$\\*+?-,019azu") for _ in range(5000)]:
        assert is_pattern(text) or not dfa.matches(text.encode()), text


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_browser_takes_no_pattern_that_is_surely_none() -> None:
    narrow, wide = format_automaton("regex"), widest_format("regex")
    assert narrow is not None and wide is not None
    rng = random.Random(7)
    some = [*texts_of(narrow, rng, 300), *texts_of(wide, rng, 1500), *PATTERNS]
    texts = [changed(rng.choice(some), rng, "()[]{}|^$\\*+?-,019azukp<>:=!") for _ in range(20_000)]
    none = [text for text in texts if not wide.matches(text.encode())]
    assert len(none) > 2000
    program = (
        "const is = one => { try { new RegExp(one, 'u'); return true } catch { return false } };"
        "console.log(JSON.stringify(JSON.parse(require('fs').readFileSync(0)).filter(is)))"
    )
    found = subprocess.run(
        ["node", "-e", program], input=json.dumps(none), text=True, check=True, timeout=60, capture_output=True
    )
    assert json.loads(found.stdout) == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_browser_takes_these_patterns() -> None:
    dfa = format_automaton("regex")
    assert dfa is not None
    good = [*texts_of(dfa, random.Random(6), 2000), *PATTERNS]
    program = "for (const one of JSON.parse(require('fs').readFileSync(0))) new RegExp(one, 'u')"
    subprocess.run(["node", "-e", program], input=json.dumps(good), text=True, check=True, timeout=60)


@pytest.mark.parametrize("name", sorted(READERS))
def test_python_reads_the_same(name: str) -> None:
    reader, letters = READERS[name]
    dfa = format_automaton(name)
    assert dfa is not None
    rng = random.Random(name)
    good = texts_of(dfa, rng, 500)
    assert [text for text in good if not reader(text)] == []
    for text in [changed(rng.choice(good), rng, letters) for _ in range(2500)]:
        if reader(text) != dfa.matches(text.encode()):
            # what is left out, and nothing else
            assert name in WIDENED and reader(text) and ":60" in text, text


@pytest.mark.parametrize(
    ("date", "is_there"), [("0000-02-29", True), ("1900-02-29", False), ("2000-02-29", True), ("2024-02-29", True)]
)
def test_leap_years(date: str, is_there: bool) -> None:
    assert conforms("date", date) == is_there


def test_a_leap_second_is_at_the_end_of_june_or_december() -> None:
    for text in (
        "1998-12-31T23:59:60Z",
        "1990-12-31T15:59:60.123-08:00",
        "2015-07-01T05:29:60+05:30",
        "2017-01-01T00:59:60+01:00",
    ):
        assert conforms("date-time", text) and is_date_time(text)
    for text in ("1998-11-30T23:59:60Z", "1998-12-31T23:58:60Z", "2015-06-30T05:29:60+05:30", "2015-07-01T00:59:60Z"):
        assert not conforms("date-time", text) and not is_date_time(text)


def test_every_date_of_four_centuries() -> None:
    days = {datetime.date(2000, 1, 1) + datetime.timedelta(days=n) for n in range(146_097)}
    dfa = format_automaton("date")
    assert dfa is not None
    accepted = 0
    for year in range(2000, 2400):
        for month in range(1, 13):
            accepted += sum(dfa.matches(b"%04d-%02d-%02d" % (year, month, day)) for day in range(1, 32))
    assert accepted == len(days)


def test_a_hostname_may_be_long_but_not_too_long() -> None:
    label = "a" * 63
    assert conforms("hostname", ".".join([label, label, label, "b" * 61]))
    assert not conforms("hostname", ".".join([label, label, label, "b" * 62]))
    assert not conforms("hostname", "a" * 64)


@pytest.mark.parametrize("name", sorted(NOT_REGULAR))
def test_what_is_not_regular_is_refused(name: str) -> None:
    with pytest.raises(SchemaError, match=rf"^/properties/x/format: the format {name} cannot be asserted") as error:
        build_graph({"properties": {"x": {"format": name}}})
    assert error.value.pointer == "/properties/x/format"
    assert NOT_REGULAR[name] in str(error.value)


def test_an_unknown_format_says_nothing() -> None:
    assert format_automaton("color") is None


def test_what_is_narrowed_is_known() -> None:
    assert WIDENED.keys() == {"hostname", "time", "date-time", "regex"}


UNDECIDED = {
    "hostname": ["xn--nxasmq6b", "a.xn--x", "ab--c"],
    "time": ["23:44:60-00:15", "00:14:60.5+00:15", "12:00:60+00:01"],
    "date-time": ["1998-12-31T23:44:60-00:15", "1999-01-01T00:14:60+00:15"],
    "regex": ["((((a))))", "(?<n>a)\\k<n>", r"(a)\1", r"\0", "[b-a]", "a{2,1}", "(?=a)*", "(((((a)))", r"[\q]"],
}
NONE = {
    "hostname": ["a..b", "-a", "a_b", "xn--a-", "a" * 64],
    "time": ["12:00:60Z", "12:00:60+00:30", "24:00:00Z", "23:44:61-00:15", "x"],
    "date-time": ["1998-12-31T00:14:60+00:15", "1999-01-01T23:44:60-00:15", "1998-11-30T23:44:60-00:15", "1998-12-31"],
    "regex": ["(", "a)", "(a))", "[a", "*", "a**", "^*", "{", "a{,2}", r"\q", r"\x4", "(?a)", "(?<n", "\\", r"\-", "]"],
}


@pytest.mark.parametrize("name", sorted(WIDENED))
def test_what_a_format_leaves_out_its_negation_leaves_out(name: str) -> None:
    narrow, wide = format_automaton(name), widest_format(name)
    assert narrow is not None and wide is not None
    assert without(narrow, wide).is_empty
    graphs = [build_graph({"type": "string", **one}) for one in ({"format": name}, {"not": {"format": name}})]
    listed = build_graph({"enum": [*UNDECIDED[name], *NONE[name]], "not": {"format": name}})
    for text, judged in [(text, []) for text in UNDECIDED[name]] + [(text, [1]) for text in NONE[name]]:
        spelled = json.dumps(text)
        assert [i for i, graph in enumerate(graphs) if is_text_of(graph, spelled)] == judged, text
        assert is_text_of(listed, spelled) == bool(judged), text
    reader = READERS.get(name, (None, ""))[0]
    if reader is not None:
        texts = [
            changed(text, random.Random(text), "0123456:.zZ+-tT") for text in texts_of(wide, random.Random(3), 2000)
        ]
        assert [text for text in texts if reader(text) and not wide.matches(text.encode())] == []
        taken = [text for text in texts if reader(text) and text[-2:] not in ("00", "30") and ":60" in text]
        assert all(wide.matches(text.encode()) for text in [*taken, *UNDECIDED[name][:2]])


def test_a_long_name_is_no_hostname() -> None:
    text = json.dumps(".".join(["a" * 63] * 4))
    assert is_text_of(build_graph({"type": "string", "not": {"format": "hostname"}}), text)
    assert is_text_of(build_graph({"type": "string", "oneOf": [{"format": "hostname"}, {"minLength": 200}]}), text)


@pytest.mark.parametrize("name", ["iri", "iri-reference", "uri-template"])
def test_characters_of_all_planes_but_their_last_two(name: str) -> None:
    for plane in range(1, 15):
        first = 0xE1000 if plane == 14 else plane << 16
        for code in (first, (plane << 16) + 0xFFFD):
            assert conforms(name, f"http://x/{chr(code)}")
        for code in (0xE0FFF, 0xE0000, (plane << 16) + 0xFFFE, (plane << 16) + 0xFFFF):
            assert not conforms(name, f"http://x/{chr(code)}")


def test_relative_pointers_count_items_from_2020_on() -> None:
    for schema, moved in (({}, True), ({"$schema": "https://json-schema.org/draft/2019-09/schema"}, False)):
        graph = build_graph({**schema, "type": "string", "format": "relative-json-pointer"})
        for text, is_one in (
            ("0+1/foo", moved),
            ("1-10", moved),
            ("0#", True),
            ("2/a", True),
            ("0+01", False),
            ("0+", False),
        ):
            assert is_text_of(graph, json.dumps(text)) == is_one, text
    own = build_graph({"type": "string", "format": "relative-json-pointer 2020-12"})
    assert is_text_of(own, '"x"')


def test_a_second_request_is_a_look_up() -> None:
    assert format_automaton("uri") is format_automaton("uri")
