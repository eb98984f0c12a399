"""Structural tags: verdicts as xgrammar 0.2.8 gives them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw

EVERY_BYTE = mw.Vocabulary(
    "bytes", (b"", b"", *(bytes((byte,)) for byte in range(256))), {0: "</s>", 1: "<call>"}, (0,)
)
TAG = {"type": "tag", "begin": "<f>", "content": {"type": "const_string", "value": "x"}, "end": "</f>"}
NUMBER = {
    "type": "tag",
    "begin": "<fn>",
    "content": {"type": "json_schema", "json_schema": {"type": "integer"}},
    "end": ["</fn>", "!"],
}


def triggered(**options: Any) -> dict[str, Any]:
    return {"type": "triggered_tags", "triggers": ["<f"], "tags": [TAG, NUMBER], **options}


def separated(**options: Any) -> dict[str, Any]:
    return {"type": "tags_with_separator", "separator": ",", "tags": [TAG], **options}


def verdicts(form: dict[str, Any], texts: list[str]) -> str:
    """For each text: w for a whole one, b for a beginning, - for neither."""
    store = mw.build_store(mw.read_structural_tag({"type": "structural_tag", "format": form}), EVERY_BYTE)
    found = ""
    for text in texts:
        matcher = store.matcher()
        found += "-" if not matcher.try_bytes(text.encode()) else "w" if matcher.is_accepting() else "b"
    return found


CALLS = [
    "", "ab", "<f>x</f>", "a<f>x</f>", "<f>x</f>b", "<f>x</f>b<f>x</f>", "<f>y", "a<fz", "a<", "<fn>12!", "<fn>1</fn>",
]  # fmt: skip
LISTS = ["", "<f>x</f>", "<f>x</f>,", "<f>x</f>,<f>x</f>"]


@pytest.mark.parametrize(
    ("form", "texts", "wanted"),
    [
        (triggered(), CALLS, "wwwwww--www"),
        (triggered(stop_after_first=True), CALLS, "wwww----www"),
        (triggered(at_least_one=True), CALLS, "b-w-ww---ww"),
        (triggered(at_least_one=True, stop_after_first=True), CALLS, "b-w------ww"),
        (separated(), LISTS, "wwbw"),
        (separated(stop_after_first=True), LISTS, "ww--"),
        (separated(at_least_one=True), LISTS, "bwbw"),
        (separated(at_least_one=True, stop_after_first=True), LISTS, "bw--"),
        (
            {"type": "tag", "begin": "<a>", "content": {"type": "any_text"}, "end": "</a>"},
            ["<a>hi</a>", "<a>hi</a>b</a>", "<a>", "<a></</a>"],
            "w-bw",
        ),
        (
            {"type": "sequence", "elements": [{"type": "any_text"}, {"type": "const_string", "value": "END"}]},
            ["aEND", "END", "aENDb"],
            "wwb",
        ),
        ({"type": "any_text", "excludes": ["xy"]}, ["abc", "axy", "ax", ""], "w-ww"),
        ({"type": "any_text", "max_chars": 2}, ["", "é", "éa", "éab"], "www-"),
        (
            {"type": "tag", "begin": "<a>", "content": triggered(), "end": "</a>"},
            ["<a>hi<f>x</f>t</a>", "<a>hi</a>t</a>", "<a></a>"],
            "w-w",
        ),
        ({"type": "or", "elements": [{"type": "regex", "pattern": "a+"}, TAG]}, ["aa", "<f>x</f>", "a<", ""], "ww-b"),
        (
            {"type": "repeat", "min": 1, "max": 2, "content": TAG},
            ["", "<f>x</f>", "<f>x</f><f>x</f>", "<f>x</f><f>x</f><"],
            "bww-",
        ),
        (
            {"type": "repeat", "min": 2, "max": -1, "content": TAG},
            ["<f>x</f>", "<f>x</f><f>x</f>", "<f>x</f><f>x</f><"],
            "bwb",
        ),
        ({"type": "optional", "content": TAG}, ["", "<f>x</f>", "<f>x</f><"], "ww-"),
        ({"type": "plus", "content": TAG}, ["", "<f>x</f>", "<f>x</f><"], "bwb"),
        ({"type": "star", "content": TAG}, ["", "<f>x</f>", "<f>x</f><"], "wwb"),
        ({"type": "grammar", "grammar": 'root ::= "(" root ")" | ""'}, ["", "(())", "(()", ")"], "wwb-"),
        (
            {"type": "dispatch", "rules": [["<f", TAG["content"]]], "excludes": ["no"]},
            ["", "a<fx", "a<fxb<fx", "a<fy", "none", "n"],
            "www--w",
        ),
        ({"type": "dispatch", "rules": [["<f", TAG["content"]]], "loop": False}, ["", "a<fx", "a<fxb"], "ww-"),
        (
            {
                "type": "json_schema",
                "json_schema": {"properties": {"a": True, "b": True}, "additionalProperties": False, "required": ["b"]},
                "max_whitespace_cnt": 1,
            },
            ['{"a":1, "b":2}', '{"b":2, "a":1}', '{"a":1}', '{  "a"'],
            "w---",
        ),
    ],
)
def test_verdicts(form: dict[str, Any], texts: list[str], wanted: str) -> None:
    assert verdicts(form, texts) == wanted


def test_the_older_form() -> None:
    older = {"structures": [{"begin": "<f>", "schema": '{"type": "integer"}', "end": "</f>"}], "triggers": ["<f"]}
    store = mw.build_store(mw.read_structural_tag(json.dumps(older)), EVERY_BYTE)
    matcher = store.matcher()
    matcher.advance_bytes(b"so <f>1</f> and")
    assert matcher.is_accepting()
    assert not store.matcher().try_bytes(b"so <f>a")


def test_special_tokens() -> None:
    form = {
        "type": "tag",
        "begin": {"type": "token", "token": "<call>"},
        "content": {"type": "regex", "pattern": "a+"},
        "end": ".",
    }
    store = mw.build_store(mw.read_structural_tag({"type": "structural_tag", "format": form}), EVERY_BYTE)
    matcher = store.matcher()
    assert not matcher.try_bytes(b"a")
    matcher.advance(1)
    matcher.advance_bytes(b"aa.")
    assert matcher.is_accepting()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"type": "json_schema", "json_schema": {"type": "nothing"}}, "nothing"),
        ({"type": "any_text", "max_tokens": -1}, "/max_tokens is -1; expected 0 to 2,147,483,647"),
        ({"type": "any_tokens", "exclude_tokens": [True]}, "/format/exclude_tokens: a token is True"),
        ({"type": "any_tokens", "exclude_tokens": "a"}, "expected a list of tokens"),
        ({"type": "token"}, "/format/token: a token is None"),
        ({"type": "token_triggered_tags", "trigger_tokens": [1], "tags": [TAG]}, "expected a token format with one of"),
        ({"type": "token_dispatch", "rules": [1]}, "expected pairs of a token and a format"),
        ({"type": "nothing"}, "no format has the type"),
        ({"type": "sequence", "elements": [{"type": "const_string"}]}, "/format/elements/0/value"),
        ({**triggered(), "triggers": ["<g"]}, "begins with exactly one trigger"),
        ({"type": "regex", "pattern": "("}, "structural tag, /format: "),
        ({"type": "repeat", "min": 3, "max": 2, "content": TAG}, "max 2 is less than min 3"),
        ({"type": "or", "elements": []}, "is empty"),
        ({"type": "repeat", "min": 0, "max": 10**6, "content": TAG}, "repeats 1,000,000 times; the limit is 20,000"),
        ({"type": "repeat", "min": 10**6, "max": -1, "content": TAG}, "the limit is 20,000"),
        ({"type": "any_text", "max_token": 2}, "any_text has no member 'max_token'; known: excludes, max_tokens"),
        ({"type": "const_string", "value": "a", "excludes": ["b"]}, "const_string has no member 'excludes'"),
        ({"type": "any_text", "excludes": ["a", ""]}, "/format/excludes/1 is empty, and every text holds it"),
        ({**TAG, "begin": {"type": "token", "token": 1, "id": 2}}, "/format/begin: token has no member 'id'"),
        ({**triggered(), "at_least_one": "false"}, "/format/at_least_one is 'false'; expected true or false"),
        ({**triggered(), "stop_after_first": 0}, "/format/stop_after_first is 0"),
        (
            {"type": "tags_with_separator", "tags": [TAG], "separator": ",", "at_least_one": None},
            "at_least_one is None",
        ),
        ({"type": "json_schema", "json_schema": {}, "any_order": "no"}, "/format/any_order is 'no'"),
        ({"type": "token_dispatch", "rules": [[1, TAG]], "loop": "no"}, "/format/loop is 'no'"),
        (7, "is no format"),
    ],
)
def test_what_is_refused(form: Any, message: str) -> None:
    with pytest.raises(mw.MaskwrightError) as error:
        mw.read_structural_tag({"type": "structural_tag", "format": form})
    assert message in str(error.value)


def test_messages_name_the_places_of_formats_and_no_terminals() -> None:
    integer = {"type": "json_schema", "json_schema": {"type": "integer"}}
    tag = {"type": "sequence", "elements": [integer, {"type": "regex", "pattern": "[0-9]x"}]}
    matcher = mw.build_store(mw.read_structural_tag({"type": "structural_tag", "format": tag}), "python-tiny").matcher()
    matcher.advance_bytes(b"12")
    with pytest.raises(
        mw.IllegalTokenError, match="in schema at /format/elements/0 or pattern at /format/elements/1; the state"
    ):
        matcher.advance_bytes(b"z")
    token = mw.read_structural_tag({"type": "structural_tag", "format": {"type": "token", "token": "<nope>"}})
    with pytest.raises(mw.VocabularyError, match=r"^part token at /format: vocabulary"):
        mw.build_store(token, "python-tiny")


def test_deep_formats_and_no_json() -> None:
    form: Any = TAG
    for _ in range(500):
        form = {"type": "optional", "content": form}
    with pytest.raises(mw.GrammarError, match="stand inside one another"):
        mw.read_structural_tag({"type": "structural_tag", "format": form})
    for text in ("{", "[]", "{}", "1"):
        with pytest.raises(mw.GrammarError, match="structural tag"):
            mw.read_structural_tag(text)


def test_grammars_that_name_themselves(tmp_path: Any) -> None:
    (tmp_path / "a.lark").write_text("start: B\n%grammar B b.lark\n")
    (tmp_path / "b.lark").write_text("start: A\n%grammar A a.lark\n")
    with pytest.raises(mw.GrammarError, match="a part of itself"):
        mw.read_composition(tmp_path / "a.lark")


def test_a_wrong_option_is_refused_where_there_is_no_json_too() -> None:
    with pytest.raises(mw.UnknownNameError, match="escapes is 'none'; expected 'any', 'natural' or 'minimal'"):
        mw.read_structural_tag({"type": "structural_tag", "format": TAG}, escapes="none")  # type: ignore[arg-type]


def test_a_file_is_not_taken_for_its_text(tmp_path: Path) -> None:
    path = tmp_path / "tag.json"
    path.write_text("{}")
    with pytest.raises(mw.GrammarError, match=r"is not JSON: .*; expected JSON text, not a file's name"):
        mw.read_structural_tag(str(path))


def test_a_grammar_may_be_lark() -> None:
    form = {"type": "grammar", "grammar": 'start: "a" NUMBER\nNUMBER: /[0-9]+/', "syntax": "lark"}
    tag = {"type": "tag", "begin": "<", "content": form, "end": ">"}
    store = mw.build_store(mw.read_structural_tag({"type": "structural_tag", "format": tag}), EVERY_BYTE)
    for text, is_legal in ((b"<a12>", True), (b"<a>", False), (b"<b1>", False)):
        matcher = store.matcher()
        assert (matcher.try_bytes(text) and matcher.is_accepting()) == is_legal
    for more, said in (
        ({"syntax": "gbnf"}, "/syntax is 'gbnf'; expected 'ebnf' or 'lark'"),
        ({"grammar": "start: %json {}"}, "makes this a composition"),
    ):
        with pytest.raises(mw.GrammarError, match=said):
            mw.read_structural_tag({"type": "structural_tag", "format": {**form, **more}})


def test_what_may_be_nothing_is_repeated_at_most_so_often() -> None:
    optional = {"type": "optional", "content": {"type": "const_string", "value": "ab"}}
    form = {"type": "repeat", "min": 2, "max": 3, "content": optional}
    store = mw.build_store(mw.read_structural_tag({"type": "structural_tag", "format": form}), EVERY_BYTE)
    for n, is_legal in ((0, True), (1, True), (3, True), (4, False)):
        matcher = store.matcher()
        assert (matcher.try_bytes(b"ab" * n) and matcher.is_accepting()) == is_legal
    many = {"type": "repeat", "min": 10_000, "max": 20_000, "content": {"type": "any_text"}}
    matcher = mw.build_store(mw.read_structural_tag({"type": "structural_tag", "format": many}), EVERY_BYTE).matcher()
    assert matcher.is_accepting() and matcher.try_bytes(b"text") and matcher.is_accepting()
