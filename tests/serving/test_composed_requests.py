"""Grammars of requests with other languages inside: Lark that names parts, llguidance's dialect, special tokens."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from request_cases import takes
from shares import share

import maskwright as mw
from maskwright.serving import server_matcher
from maskwright.serving.requests import RequestChecker, RequestCompiler
from maskwright.serving.server_matcher import ServerMatcher

pytestmark = pytest.mark.usefixtures("own_cache")


COMPOSED = 'start: "call " DATE " " ARGS\n%regex DATE /[0-9]{4}/\n%schema ARGS {"type": "object"}\n'


def test_a_grammar_may_have_parts_in_other_languages(compiler: RequestCompiler) -> None:
    compiler.check("grammar", COMPOSED)
    store = compiler.compile("grammar", COMPOSED)
    assert takes(store, 'call 2026 {"a": 1}') and not takes(store, "call 2026 [1]")
    for part in ("%schema ARGS schema.json", "%grammar ARGS /etc/passwd", "%grammar ARGS ./x.lark"):
        with pytest.raises(mw.GrammarError, match="may not be read here"):
            compiler.check("grammar", f'start: "call " ARGS\n{part}\n')


NAMED = {
    "grammars": [
        {"lark_grammar": 'start: "call " @name "(" @arguments ")"'},
        {"name": "name", "lark_grammar": 'start: /[a-z]/{2,3} | "_" @more\n%ignore "-"'},
        {"name": "arguments", "json_schema": {"type": "array", "items": {"type": "integer"}}},
        {"name": "more", "lark_grammar": 'start: "more"'},
    ]
}


@pytest.mark.parametrize(
    ("spec", "good", "bad"),
    [
        ('start: "x=" %json {"type": "integer"} ";"', "x=12;", "x=a;"),
        ('start: "<" %lark {\nstart: "a"+ "b"\n%ignore " "\n} ">"', "<a ab>", "<aa>"),
        (json.dumps(NAMED), "call ab([1, 2])", "call abcd([1])"),
        (json.dumps(NAMED), "call _more([])", "call _more([true])"),
        ('start: "a" S{2}\nS: "s"\n', "ass", "as"),
    ],
)
def test_a_grammar_in_the_dialect_may_have_other_languages_inside(
    compiler: RequestCompiler, spec: str, good: str, bad: str
) -> None:
    compiler.check("grammar", spec)
    store = compiler.compile("grammar", spec)
    assert takes(store, good) and not takes(store, bad)
    assert compiler.compile("grammar", f" {spec}\n") is not store and compiler.compile("grammar", spec) is store


SUM = 'start: N ("+" N)*\nN: /[0-9]{1,3}/\n'
TOOLS = [
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}},
    {"type": "custom", "name": "add", "format": {"type": "grammar", "syntax": "lark", "definition": SUM}},
    {"type": "custom", "name": "day", "format": {"type": "grammar", "syntax": "regex", "definition": "[a-z]{3}"}},
]  # fmt: skip
BEGIN, END = '<tool_call>\n{"name": "{name}", "arguments": ', "}\n</tool_call>"


def call(name: str, arguments: str) -> str:
    return f"{BEGIN.replace('{name}', name)}{arguments}{END}"


@pytest.mark.parametrize(
    ("options", "good", "bad"),
    share(
        [
            ({}, "Well. " + call("add", '{"input": "1+22"}'), "<tool_call>"),
            ({}, "Just <b>text</b>", call("sub", "{}")),
            ({}, call("now", "{}"), call("now", '{"a": 1}')),
            ({"choice": "required"}, call("day", '{"input": "mon"}'), "Well."),
            (
                {"choice": "day", "custom": "raw", "custom_begin": "<{name}>", "custom_end": "</{name}>"},
                "<day>tue</day>",
                "<day>tu</day>",
            ),
            (
                {"choice": {"type": "custom", "name": "add"}},
                call("add", '{"input": "1"}'),
                call("day", '{"input": "mon"}'),
            ),
        ],
        3,
    ),
)
def test_tools_come_as_a_grammar(compiler: RequestCompiler, options: dict[str, Any], good: str, bad: str) -> None:
    spec = json.dumps({"tools": TOOLS, "begin": BEGIN, "end": END, **options})
    compiler.check("grammar", spec)
    store = compiler.compile("grammar", spec)
    assert takes(store, good) and not takes(store, bad)
    ours = mw.build_store(mw.read_tools(TOOLS, begin=BEGIN, end=END, **options), "python-tiny")
    assert takes(ours, good) and not takes(ours, bad)


def test_masks_inside_are_those_of_the_front_door(compiler: RequestCompiler) -> None:
    spec = 'start: "x=" %json {"type": "object"} ";" | "x" /[a-z]+/'
    ours, theirs = compiler.compile("grammar", spec), mw.build_store(mw.read_constraint(spec), "python-tiny")
    for text in (b"", b"x", b"x=", b'x={"a', b'x={"a": [1', b"x={}", b"xy"):
        masks = []
        for store in (ours, theirs):
            words = np.zeros(store.n_words, np.uint32)
            matcher = store.matcher()
            matcher.advance_bytes(text)
            matcher.fill(words)
            masks.append(words)
        assert np.array_equal(*masks) and masks[0].any(), text


TOKENS = mw.Vocabulary.from_tokens(
    [b"a", b"b", b"", b"", b""], eos=[2], special={"</s>": 2, "<|call|>": 3, "<|end|>": 4}, name="five tokens"
)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ('start: <|call|> "a" <|end|>', None),
        ('start: <[3-4]> "a"', None),
        ('start: C "a"\n%token C <|call|>\n', None),
        ('start: <|cal|> "a"', r"part <\|cal\|> \(1:8\): .*no special token '<\|cal\|>' \(known: .*<\|call\|>"),
        ('start: <[7]> "a"', "token 7 is out of range: the vocabulary has the ids 0 to 4"),
        ('start: "a" <[2]>', "token 2 ends the text"),
        ('start: C "a"\n%token C <|cal|>\n', "no special token"),
        ('start: "b" %lark {\nstart: <|cal|> "a"\n}', "no special token"),
        ('root ::= <|call|> "a" !<|end|>', None),
        (
            'root ::= "b" <|cal|>',
            r"part <\|cal\|> \(1:14\): .*no token '<\|cal\|>', neither special nor with this text",
        ),
    ],
)
def test_special_tokens_are_those_of_the_vocabulary(spec: str, said: str | None) -> None:
    """Where a server knows its vocabulary, the check says what else the compilation would."""
    compiler = RequestCompiler(TOKENS)
    checker = RequestChecker(compiler.reader)
    request = compiler.reader.request("grammar", spec)
    RequestChecker(compiler.reader).check(request)  # without a vocabulary only the form counts
    if said is None:
        checker.check(request, lambda: TOKENS)
        matcher = compiler.compile("grammar", spec).matcher()
        assert matcher.is_allowed(3) and not matcher.is_allowed(0)
        matcher.advance(3)
        assert matcher.is_allowed(0) and not matcher.is_allowed(3)
        return
    for method in (lambda: checker.check(request, lambda: TOKENS), lambda: compiler.compile("grammar", spec)):
        with pytest.raises(mw.VocabularyError, match=said):
            method()


@pytest.mark.parametrize(
    ("spec", "allowed"), [('start: <[0]> "a"', {0}), ("start: <[^0]>", {1, 3, 4}), ("start: <[0,3-4]>", {0, 3, 4})]
)
def test_a_set_names_tokens_by_id_those_with_a_text_among_them(spec: str, allowed: set[int]) -> None:
    compiler = RequestCompiler(TOKENS)
    RequestChecker(compiler.reader).check(compiler.reader.request("grammar", spec), lambda: TOKENS)
    matcher = compiler.compile("grammar", spec).matcher()
    assert {token for token in range(5) if matcher.is_allowed(token)} == allowed


MANY_WAYS = "start: p start q | p\np: %lark {\nstart: /[a-z]+/\n}\nq: %lark {\nstart: /[a-z]*y/\n}\n"  # each letter may end a part


@pytest.mark.parametrize(
    ("kind", "spec", "data", "remedy"),
    [
        ("grammar", MANY_WAYS, b"aaa", "give the parts of the grammar an end that shows"),
        ("json", '{"type": "array", "uniqueItems": true}', b"[[[", "ask for uniqueItems of strings alone"),
    ],
)
def test_a_text_whose_masks_are_slow_ends(
    compiler: RequestCompiler, monkeypatch: pytest.MonkeyPatch, kind: str, spec: str, data: bytes, remedy: str
) -> None:
    """All requests of a server wait for a mask, so one request may not take the others' time for ever."""
    n_words = compiler.compile(kind, spec).n_words
    row = np.zeros(n_words, np.uint32)
    for slow, most, n_filled in ((60.0, 0.0, 3), (0.0, 60.0, 3), (0.0, 1e-9, 1)):
        monkeypatch.setattr(server_matcher, "SLOW", slow)
        matcher = ServerMatcher(compiler.compile(kind, spec), None, compiler.vocabulary.size, most_slow=most)
        said = []
        for byte in data:
            said.append(matcher.fill_row(row))
            assert row.any()
            assert matcher.try_advance(compiler.vocabulary.tokens.index(bytes([byte])))
        assert sum(one is None for one in said) == n_filled
        assert all(remedy in one for one in said if one is not None)


def test_check_compiles_the_languages_inside(compiler: RequestCompiler) -> None:
    for spec in ('start: "x" S\n%grammar S python\n', 'start: "x" %json {"type": "object"}'):
        compiler.check("grammar", spec)
    grammar = 'start: "a" %lark {\nstart: A B\nA: /[ab]*a[ab]{30}/\nB: /[ab]/\n}'
    with pytest.raises(mw.MaskwrightError, match="states"):
        compiler.check("grammar", grammar)


@pytest.mark.parametrize(
    ("spec", "language"),
    [
        ("root ::= <|pad|> !<|pad|>* <|pad|> [0-9]", ""),
        ("root ::= Token({0}) ExcludeToken({0})* Token({0}) [0-9]", "ebnf"),
    ],
)
def test_a_grammar_in_gbnf_or_ebnf_may_have_tokens(compiler: RequestCompiler, spec: str, language: Any) -> None:
    (pad,) = (number for number, name in compiler.vocabulary.special.items() if name == "<|pad|>")
    spec = spec.format(pad)
    compiler.check("grammar", spec)
    store = compiler.compile("grammar", spec, language=language)
    digit, letter = (compiler.vocabulary.tokens.index(text) for text in (b"1", b"a"))
    assert store.matcher().replay([pad, letter, pad, digit]) == 4 and store.matcher().replay([letter]) == 0
    for wrong in ("root ::= <nothing>", "root ::= <[999999]>"):
        with pytest.raises(mw.VocabularyError, match=r"part <.*> \(1:10\)"):
            compiler.compile("grammar", wrong)
