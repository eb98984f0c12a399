"""Grammars of requests with other languages inside: Lark that names parts, llguidance's dialect, special tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.serving.options import RequestLimits
from maskwright.serving.requests import RequestChecker, RequestCompiler


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    yield


@pytest.fixture
def compiler() -> RequestCompiler:
    # on a busy machine the check would leave to the compilation what it finds in a second elsewhere
    return RequestCompiler("python-tiny", limits=RequestLimits(check_seconds=60))


def takes(store: Any, text: str) -> bool:
    """Whether a text is a whole text of a store."""
    matcher = store.matcher()
    try:
        matcher.advance_bytes(text.encode())
    except mw.IllegalTokenError:
        return False
    return matcher.is_accepting()


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
        ('start: <[0]> "a"', "token 0 stands for the text b'a'"),
        ('start: <[7]> "a"', "token 7 is out of range: the vocabulary has the ids 0 to 4"),
        ('start: "a" <[2]>', "token 2 ends the text"),
        ('start: C "a"\n%token C <|cal|>\n', "no special token"),
        ('start: "b" %lark {\nstart: <|cal|> "a"\n}', "no special token"),
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


def test_check_compiles_the_languages_inside(compiler: RequestCompiler) -> None:
    for spec in ('start: "x" S\n%grammar S python\n', 'start: "x" %json {"type": "object"}'):
        compiler.check("grammar", spec)
    grammar = 'start: "a" %lark {\nstart: A B\nA: /[ab]*a[ab]{30}/\nB: /[ab]/\n}'
    with pytest.raises(mw.MaskwrightError, match="states"):
        compiler.check("grammar", grammar)
