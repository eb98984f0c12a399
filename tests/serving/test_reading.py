"""What a server refuses in a grammar's text before it is read."""

from __future__ import annotations

import contextlib
import time

import pytest

import maskwright as mw
from maskwright.serving.reading import RequestReader, check_size_of_lark
from maskwright.serving.requests import RequestChecker


def check(spec: str, kind: str = "grammar") -> None:
    reader = RequestReader()
    RequestChecker(reader).check(reader.request(kind, spec))


@pytest.mark.parametrize(
    "spec, said",
    [
        ("start: " + "(" * 100_000 + '"a"' + ")" * 100_000, "brackets stand more than 100 deep"),
        ("start: " + "[" * 2_000 + '"a"' + "]" * 2_000, "brackets stand more than 100 deep"),
        ("start: " + " | ".join(f'"a{i}"' for i in range(70_000)), "70,000 different string literals"),
        ("start: x\n# " + ")" * 300_000 + "\nx: " + "(" * 300_000 + '"a"' + ")" * 300_000, "more than 100 deep"),
        ("start: /a" + "\n)" * 2_000 + "/ " + "(" * 2_000 + '"a"' + ")" * 2_000, "more than 100 deep"),
        ("// %json {\nstart: " + " | ".join(f'"a{i}"' for i in range(70_000)), "70,000 different string literals"),
        ('start: %json {"a": {}} ' + "".join(f'| "a{i}"' for i in range(70_000)), "70,000 different string literals"),
    ],
    ids=[
        "deep",
        "deep options",
        "literals",
        "closed in a comment",
        "closed in a pattern",
        "schema in a comment",
        "behind a schema",
    ],
)
def test_what_larks_loader_would_read_for_seconds_is_refused_at_once(spec: str, said: str) -> None:
    begin = time.process_time()
    with pytest.raises(mw.MaskwrightError, match=said):
        check(spec)
    assert time.process_time() - begin < 0.6


@pytest.mark.parametrize(
    "spec",
    [
        'start: "' + "(" * 3_000 + '"',
        "start: /" + "[(]" * 600 + "/",
        "start: A // " + "(" * 3_000 + '\nA: "a"',
        "start: A # " + "(" * 3_000 + '\nA: "a"',
        "start: " + '("a") ' * 1_500,
        "start: " + '"a" ' * 21_000,
    ],
    ids=["string", "pattern", "comment", "other comment", "beside each other", "one literal"],
)
def test_brackets_and_literals_that_are_none_do_not_count(spec: str) -> None:
    reader = RequestReader()
    reader.check_size(reader.request("grammar", spec))


def test_strings_of_json_are_no_literals() -> None:
    texts = ", ".join(f'"a{i}"' for i in range(20_500))
    check(f'start: part\npart: %json {{"enum": [{texts}]}}')


@pytest.mark.parametrize("piece", ['"', "/", "\\", '"\\', "/\\", '("', "(/"])
def test_pieces_without_an_end_cost_nothing_unusual(piece: str) -> None:
    spec = "start: " + piece * (900_000 // len(piece))
    begin = time.process_time()
    with contextlib.suppress(mw.MaskwrightError):
        check_size_of_lark(spec)
    assert time.process_time() - begin < 1
