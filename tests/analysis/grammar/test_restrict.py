"""Restrictions: the restricted grammar has the texts that obey and no others, and says so where a restriction makes no sense."""

from __future__ import annotations

import itertools
import re
from functools import lru_cache
from pathlib import Path

import pytest
from shares import share
from typer.testing import CliRunner

import maskwright as mw
from maskwright.analysis.lr.conflicts import conflicts
from maskwright.analysis.restrict.restrict import restrict
from maskwright.cli import app
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.store import Store

BYTES = Vocabulary("bytes", (*(bytes([i]) for i in range(256)), b""), {256: "</s>"}, (256,))

TEXT = r"""
// maskwright: lexing = longest
// maskwright: restriction no_comments = COMMENT:
// maskwright: restriction bounded = BLANKS:BLANK :BLANKS
// maskwright: restriction noted = body:noted_body
// maskwright: restriction no_calls = call: brackets:
// maskwright: restriction no_bodies = body:
// maskwright: restriction words_only = value:word
// maskwright: convention target = target:foreign
// maskwright: allowed imports = module .:relative

start: (statement ";")+
statement: "import" module | "import" relative | "def" function "{" body "}" | assignment | foreign
assignment: target "=" value | target
target: name
function: name
foreign: call
call: value brackets
brackets: "(" ")"
value: word | call
word: name | "lambda"
body: [STRING] (statement ";")*
noted_body: STRING (statement ";")*
module: name ("." name)*
relative: "." [module]
name: NAME | "soft"
NAME: /[A-Za-z_éÉ][A-Za-z_éÉ0-9]*/
STRING: /"[^"]*"/
COMMENT: /#[^\n]*/
BLANKS: /[ \n]+/
BLANK: " "
%ignore BLANKS
%ignore COMMENT
"""


@lru_cache
def store(*restrictions: str, text: str = TEXT) -> Store:
    built = mw.build_store(mw.parse_grammar(text, restrict=restrictions), BYTES)
    assert isinstance(built, Store)
    return built


def refusal(text: bytes, *restrictions: str, grammar: str = TEXT) -> int | None:
    """The first byte that cannot come, the length if only the end is wrong, None if all is right."""
    matcher = store(*restrictions, text=grammar).matcher()
    for i, byte in enumerate(text):
        if not matcher.is_allowed(byte):
            return i
        matcher.advance(byte)
    return None if matcher.is_accepting() else len(text)


def check(restrictions: tuple[str, ...], cases: dict[str, int | None]) -> None:
    for text, at in cases.items():
        assert refusal(text.encode(), *restrictions) == at, (restrictions, text)
        assert refusal(text.encode()) is None or at is not None, "a restriction adds no text"


def test_without_restrictions_nothing_changes() -> None:
    lines = "\n".join(line for line in TEXT.splitlines() if "maskwright:" not in line)
    declared, plain = mw.parse_grammar(TEXT), mw.parse_grammar(lines)
    assert declared.rules == plain.rules and declared.nonterminals == plain.nonterminals
    assert [t.name for t in declared.terminals] == [t.name for t in plain.terminals]
    assert declared.digest == mw.parse_grammar(TEXT, restrict=[]).digest
    assert declared.unused_terminals == () and plain.unused_terminals == ("BLANK",)


def test_a_terminal_that_goes() -> None:
    check(("no_comments",), {"a;": None, "a; # b": 3, "#": 0})
    assert "COMMENT" not in mw.parse_grammar(TEXT, restrict=["no_comments"]).terminal_number


def test_a_bound_that_repetition_does_not_evade() -> None:
    check(("bounded",), {"a = b ;": None, "a  = b;": 2, "a\n= b;": 1, " \n": 1})
    check(("bounded", "no_comments"), {"a = b ;": None, "a  ": 2, "# ": 0})


def test_another_rule_in_the_place_of_one() -> None:
    check(
        ("noted",),
        {
            'def f{"n"};': None,
            "def f{};": 6,
            'def f{"n" def g{"m" a;};};': None,
            "def f{a;};": 6,
            'def f{"n" def g{}': 16,
        },
    )
    assert "body" not in mw.parse_grammar(TEXT, restrict=["noted"]).nonterminals


def test_keywords_stay_reserved_where_their_rules_are_gone() -> None:
    grammar = TEXT.replace('word: name | "lambda"', 'word: name | LAMBDA_RULE\n!lambda_word: "lambda"').replace(
        "LAMBDA_RULE", "lambda_word"
    )
    grammar = "// maskwright: restriction no_lambda = lambda_word:\n" + grammar
    assert refusal(b"a = lambda;", grammar=grammar) is None
    assert refusal(b"a = lambda;", "no_lambda", grammar=grammar) == 10
    assert refusal(b"a = lambdas;", "no_lambda", grammar=grammar) is None


def test_conventions() -> None:
    check(
        ("function=[a-z_]+",),
        {"def ab{};": None, "def aB{};": 5, "aB = c;": None, "def soft{};": None, "def lambda{};": 10},
    )
    check(
        ("target=[a-z]+",),
        {"ab = Cd;": None, "Ab = c;": 3, "Ab();": None, "ab();": None, "soft = a;": None, "aB();": None, "aB;": None},
    )
    check(
        ("function=[A-Z].*",),
        {"def Ab9{};": None, "def ab{};": 4, "def soft{};": 4, "Ab = ab;": None, "def Éb{};": 4, "def Aé{};": None},
    )
    check(("function=^[^_]*$",), {"def ab{};": None, "def a_b{};": 5, "def été{};": None, "a_b = c;": None})
    check(
        ("function=(?!soft)[a-z]*(?<!x)",),
        {"def ab{};": None, "def abx{};": 7, "def soft{};": 7, "def softer{};": 7, "def so{};": None},
    )
    check(("name=[a-z]{2}",), {"ab = cd;": None, "a = b;": 1, "import ab.cd;": None, "import ab.c;": 11, "abc = d;": 2})
    check(("NAME=[a-z]{2}",), {"ab = soft;": None, "abc;": 2, "def ab{};": None})


def test_conventions_together() -> None:
    both = ("function=[a-z]+", "target=[a-z]+", "name=\\w{1,3}")
    names = [
        terminal.name
        for terminal in mw.parse_grammar(TEXT, restrict=both).terminals
        if terminal.name.startswith("NAME")
    ]
    assert names == ["NAME__FUNCTION__TARGET__NAME", "NAME__FUNCTION__TARGET", "NAME__NAME", "NAME__OTHER"]
    check(
        both,
        {
            "def abc{};": None,
            "abc = ABC;": None,
            "ABC();": None,
            "abcd = e;": 3,
            "aBc = e;": 4,
            "def aB{}": 5,
            "soft;": 3,
        },
    )


@pytest.mark.parametrize(
    "pattern", ["[a-c]+", "a?(b|c)*?c", "[^b]+", ".*a", "(?i:A+)b?", "(?=ab|ba).+", r"\w{2,3}", "a*+b"]
)
def test_a_part_has_the_words_that_match_as_a_whole(pattern: str) -> None:
    """Against Python's own fullmatch, on all short words."""
    grammar = mw.parse_grammar(TEXT, restrict=[f"function={pattern}"])
    parts = [t for t in grammar.terminals if t.name.startswith("NAME")]
    words = ["".join(letters) for n in (1, 2, 3) for letters in itertools.product("abc_é", repeat=n)]
    for word in words:
        found = [t.name for t in parts if re.fullmatch(t.pattern or "", word)]
        assert found == ["NAME__FUNCTION" if re.fullmatch(pattern, word) else "NAME__OTHER"], word
        assert refusal(f"def {word}{{}};".encode(), f"function={pattern}") is None or found == ["NAME__OTHER"]


def test_lists() -> None:
    check(
        ("imports=os,a.b,x.*",),
        {
            "import os;": None,
            "import a.b;": None,
            "import x;": None,
            "import x.os.y;": None,
            "import a;": 8,
            "import a.os;": 9,
            "import osx;": 9,
            "import os.a;": 9,
            "import .os;": 7,
            "import o;": 8,
            "os = a;": None,
            "def x{};": None,
            "osx = xos;": None,
        },
    )
    check(("imports=os,.",), {"import .;": None, "import .a;": 8, "import .os;": None, "import os;": None})
    check(("imports=.",), {"import os;": 7, "import .;": None})
    check(("imports=soft",), {"import soft;": None, "soft = a;": None, "import so;": 9})
    check(
        ("imports=Os,x", "function=[a-z]+", "name=..?"),
        {"import Os;": None, "def Os{};": 4, "Os = x;": None, "def abc{};": 6},
    )


def test_entries_that_others_contain_make_no_conflict() -> None:
    grammar = mw.parse_grammar(TEXT, restrict=["imports=x.*,x.a,x.a.*,x"])
    assert not [c for c in conflicts(grammar) if "x" in str(c)]


BAD = [
    ("bogus", mw.UnknownNameError, "has no restriction 'bogus'.*no_comments, bounded, noted"),
    ("no_comment", mw.UnknownNameError, "did you mean 'no_comments'"),
    ("no_comments=yes", mw.GrammarError, "no_comments takes no value, but found 'yes'"),
    ("target", mw.GrammarError, "convention target needs a regular expression"),
    ("function=", mw.GrammarError, "convention function needs a regular expression"),
    ("=x", mw.GrammarError, "'=x' has no name"),
    ("function=(", mw.TerminalError, "convention function: Python's re refuses the pattern"),
    ("function=(a)\\1", mw.TerminalError, "convention function: a back-reference"),
    ("function=[0-9]+", mw.GrammarError, "no word that can be function fulfils convention function="),
    ("lambda=a", mw.UnknownNameError, "has no restriction 'lambda'"),
    ("statement=a", mw.GrammarError, "statement can be more than one, as in rule 'statement : IMPORT module'"),
    ("BLANKS=a", mw.GrammarError, "BLANKS, which is ignored"),
    ("imports=", mw.GrammarError, "the list imports names no module"),
    ("imports", mw.GrammarError, "the list imports names no module"),
    ("imports= , ", mw.GrammarError, "the list imports names no module"),
    ("imports=a,,b", mw.GrammarError, "has an empty entry; write a,b"),
    ("imports=lambda", mw.GrammarError, "'lambda' is a keyword"),
    ("imports=a.9", mw.GrammarError, "'9' is not one of its words"),
    ("imports=a..b", mw.GrammarError, "it lacks a word"),
    ("imports=*", mw.GrammarError, "which cannot be a module"),
]


@pytest.mark.parametrize(("restriction", "kind", "message"), BAD, ids=[bad[0] for bad in BAD])
def test_bad_restrictions(restriction: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        mw.parse_grammar(TEXT, restrict=[restriction])


def test_what_is_no_list_of_restrictions() -> None:
    with pytest.raises(mw.GrammarError, match="given twice"):
        mw.parse_grammar(TEXT, restrict=["noted", "noted"])
    with pytest.raises(mw.GrammarError, match="expected a list of restrictions, but found the text"):
        mw.parse_grammar(TEXT, restrict="noted")
    for lexing in ("contextual", "nfa"):
        for one in ("bounded", "target=a", "imports=a"):
            with pytest.raises(mw.GrammarError, match="by the longest match, but lexing is"):
                mw.parse_grammar(TEXT, lexing=lexing, restrict=[one])  # type: ignore[arg-type]


def test_the_rule_that_died_first() -> None:
    text = """
// maskwright: restriction no_numbers = NUMBER:
// maskwright: restriction no_start = start:
// maskwright: restriction endless = item:endless
start: list
list: "[" item "]" | "(" item ")"
item: NUMBER | "-" item
endless: "x" endless
NUMBER: /[0-9]+/
"""
    with pytest.raises(
        mw.GrammarError,
        match=r"no_numbers empties the language: rule item dies first \(start needs list, list needs item\)",
    ) as met:
        mw.parse_grammar(text, restrict=["no_numbers"])
    assert (
        "its alternative 'item : NUMBER' is lost with NUMBER, which no_numbers removes, and what is left leads back"
        in str(met.value)
    )
    with pytest.raises(mw.GrammarError, match="it removes the start symbol start"):
        mw.parse_grammar(text, restrict=["no_start"])
    with pytest.raises(mw.GrammarError, match="endless empties the language"):
        mw.parse_grammar(text, restrict=["endless"])
    # in the grammar above other statements are left
    assert refusal(b"a = b;", "no_bodies") is None and refusal(b"def f{};", "no_bodies") == 3
    assert refusal(b"a();", "no_calls") == 1 and refusal(b"a = b;", "no_calls") is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("restriction x", "expected an option"),
        ("restriction x = COMMENT", "'COMMENT'; expected A:B, A: or :B"),
        ("restriction x = :", "expected A:B, A: or :B"),
        ("restriction x-y = A:", "expected a name for the restriction"),
        ("convention x = :A", "expected A or A:B"),
        ("allowed x = .:relative", "begins with '.'"),
        ("convention noted = name", "noted is already declared as restriction noted"),
    ],
)
def test_bad_option_lines(line: str, message: str) -> None:
    with pytest.raises(mw.GrammarError, match=f"<text>:{TEXT.count(chr(10)) + 1}:.*{re.escape(message)}"):
        mw.parse_grammar(f"{TEXT}// maskwright: {line}\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("restriction x = COMMENTS:", "names COMMENTS, which the grammar does not define"),
        ("restriction x = COMMENT:BLINK", "names BLINK, which the grammar does not define"),
        ("restriction x = NAME:body", "one is a rule and the other a terminal"),
        ("restriction x = start:NAME", "one is a rule and the other a terminal"),
    ],
)
def test_option_lines_that_name_nothing(line: str, message: str) -> None:
    with pytest.raises(mw.GrammarError, match=message):
        mw.parse_grammar(f"{TEXT}// maskwright: {line}\n", restrict=["x"])


def _rules(grammar: mw.Grammar) -> set[str]:
    return {grammar.rule_text(rule) for rule in grammar}


def test_a_grammar_that_is_loaded_already() -> None:
    grammar = mw.parse_grammar(TEXT)
    for one in ("no_comments", "function=[a-z]+", "imports=os"):
        loaded = mw.parse_grammar(TEXT, restrict=[one])
        assert _rules(loaded) == _rules(restrict(grammar, [one]))
    with pytest.raises(mw.GrammarError, match=r"needs noted_body, .* load_grammar\(..., restrict=\['noted'\]\)"):
        restrict(grammar, ["noted"])


def test_another_start_symbol() -> None:
    """What a restriction is about need not be there."""
    grammar = mw.parse_grammar(TEXT, start="value", restrict=["noted", "imports=os", "target=a"])
    assert grammar.nonterminals[0] == "value" and "module" not in grammar.nonterminals


PYTHON = [
    "class_name=[A-Z]\\w*",
    "function_name=[a-z_]\\w*",
    "variable_name=[a-z_]+",
    "parameter_name=[a-z]+",
    "type_name=[A-Z]",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "restrictions",
    share(
        [
            pytest.param(["whitespace", "no_comments", "module_docstring", *PYTHON], id="all"),
            pytest.param(["whitespace"], id="whitespace"),
            pytest.param(["no_comments", "docstrings"], id="style"),
            pytest.param(["imports=os,numpy.*"], id="imports"),
        ],
        1,
    ),
)
def test_python_gets_no_new_conflicts(restrictions: list[str]) -> None:
    grammar = mw.load_grammar("python", restrict=restrictions)
    assert len(conflicts(grammar)) == len(conflicts(mw.load_grammar("python")))
    assert grammar.name == "python" and grammar.digest != mw.load_grammar("python").digest


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("small.lark").write_text(TEXT)
    Path("text").write_text("a = b; # c")
    runner = CliRunner()
    for restrictions, code, said in (
        ([], 1, "'# c'"),
        (["no_comments"], 1, "column 8"),
        (["no_comments", "target=[b-z]+"], 1, "column 3"),
        (["bogus"], 2, "has no restriction 'bogus'"),
    ):
        given = [part for one in restrictions for part in ("--restrict", one)]
        for command in (
            ["explain", "small.lark", "--text", "text"],
            ["analyze", "small.lark", "--no-forecast"],
            ["lint", "small.lark"],
        ):
            result = runner.invoke(app, [*command, *given])
            assert (result.exit_code == 2) == (code == 2), result.output
            if command[0] == "explain" or code == 2:
                assert said in result.output, (restrictions, result.output)
    result = runner.invoke(app, ["validate", "some.safetensors", "text", "--restrict", "no_comments"])
    assert result.exit_code == 2 and "restrict the grammar, and build a store from it" in result.output
