"""What `compose` and directives take, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

import maskwright as mw
from maskwright.analysis.composition import InJsonString, SpecialToken
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.schema.load import JsonSchema
from maskwright.analysis.schema.text_patterns import Regex

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}}


def test_parts_by_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "n.json").write_text('{"type": "number"}')
    host = "start: A B C D E F G\n%declare A B C D E F G"
    made = mw.compose(
        host,
        {
            "A": {"type": "null"},
            "B": "json",
            "C": mw.load_regex("[ab]"),
            "D": tmp_path / "n.json",
            "E": 'root ::= "x"',
            "F": mw.special_token("<call>"),
            "G": mw.in_json_string('start: "a"'),
        },
    )
    kinds = [type(part.inner) for part in made.parts]
    assert kinds == [JsonSchema, Grammar, Regex, JsonSchema, Grammar, SpecialToken, InJsonString]
    assert [part.name for part in made.parts] == list("ABCDEFG")


def test_directives(tmp_path: Path) -> None:
    (tmp_path / "sub.lark").write_text('start: "s"')
    (tmp_path / "t.json").write_text('{"type": "boolean"}')
    text = """
// maskwright: lexing = longest
start: "<" A B C D E F ">"
%schema A {"type": "object",
           "required": ["a"]}  // a comment
%schema B t.json
%grammar C sub.lark in json string
%regex D /a\\/b/i
%token E 5
%token F <call>
"""
    path = tmp_path / "host.lark"
    path.write_text(text)
    made = mw.read_composition(path)
    kinds = [type(part.inner) for part in made.parts]
    assert kinds == [JsonSchema, JsonSchema, InJsonString, Regex, SpecialToken, SpecialToken]
    assert made.parts[0].inner.schema == {"type": "object", "required": ["a"]}
    assert made.host.lexing == "longest"
    assert made.parts[4].inner.token == 5
    store = mw.build_store(mw.compose('start: "<" D\n%declare D', {"D": made.parts[3].inner}), "python-tiny")
    matcher = store.matcher()
    matcher.advance_bytes(b"<A/b")
    assert matcher.is_accepting()


def test_what_a_tag_takes_of_a_schema_is_no_host() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    form = {"type": "json_schema", "json_schema": schema, "excludes": ["bad"]}
    part = mw.read_structural_tag({"type": "structural_tag", "format": form}).parts[0].inner
    with pytest.raises(mw.SchemaError, match="is what a structural tag takes of a schema"):
        mw.compose(part, {"/properties/q": "sql"})


def test_errors_of_a_part_name_it() -> None:
    with pytest.raises(mw.SchemaError, match=r"^part 'A': /type: type is 'objec'") as caught:
        mw.compose("start: A\n%declare A", {"A": {"type": "objec"}})
    assert caught.value.pointer == "/type"
    with pytest.raises(mw.UnknownNameError, match=r"^part '/properties/a': no grammar is named 'sqk'"):
        mw.compose({"properties": {"a": {"type": "string"}}}, {"/properties/a": "sqk"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("start: A\n%schema A {", ":2: %schema A: this is not JSON"),
        ("start: A\n%schema A {} x", "'x' stands behind the schema"),
        ("start: A\n%regex A a", "is no pattern"),
        ("start: A\n%token A", "nothing says what it is"),
        ("start: A\n%schema A {}\n%schema A {}", ":3: %schema A: the part is named twice"),
        (
            'start: "b"\n%schema A {}',
            "<text>:2:10: no rule uses A, which stands for a part: use it in a rule\n    %declare A\n",
        ),
        ('start: A\nA: "a"\n%schema A {}', "A"),
        ("start: A\n%schema A nope.json", ":2: %schema A: the schema 'nope.json' cannot be read"),
        ("start: A\n%schema A truex.json", "'truex.json' cannot be read"),
        ("start: A\n%token A <x> in json string", "%token A"),
        ("start: A\n%regex A /(/", ":2: %regex A: pattern"),
        ("start: A\n%grammar A no-such-grammar", "no-such-grammar"),
        ('start: A\n%schema A {"type": "nothing"}', "nothing"),
    ],
)
def test_wrong_directives(text: str, message: str) -> None:
    with pytest.raises(mw.MaskwrightError, match=None) as error:
        mw.read_composition(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "said", ["%schema A t.json", "%grammar A sub.lark", "%grammar A ../x", "%schema A /etc/passwd"]
)
def test_texts_of_anyone_name_no_files(tmp_path: Path, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub.lark").write_text('start: "s"')
    (tmp_path / "t.json").write_text('{"type": "boolean"}')
    with pytest.raises(mw.GrammarError, match="which may not be read here"):
        mw.read_composition(f"start: A\n{said}", paths=False)
    assert mw.read_composition("start: A\n%grammar A json", paths=False).parts[0].name == "A"


@pytest.mark.parametrize(
    ("pointer", "message"),
    [
        ("properties/q", "is not a JSON pointer"),
        ("/properties/x", "nothing at /properties/x"),
        ("/properties/n", "a part of a schema is a string"),
        ("", "a part of a schema is a string"),
        ("/title/0", "none at /title"),
        ("/properties", "holds several"),
    ],
)
def test_wrong_pointers(pointer: str, message: str) -> None:
    with pytest.raises(mw.SchemaError, match=message):
        mw.compose(SCHEMA, {pointer: mw.load_regex("a")})


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"p": {"type": "string"}}, "not": {"$ref": "#/$defs/p"}},
        {"$defs": {"p": {"type": "string"}}, "if": {"$ref": "#/$defs/p"}, "then": {"type": "integer"}},
        {"$defs": {"p": {"type": "string"}}, "propertyNames": {"$ref": "#/$defs/p"}},
        {"$defs": {"p": {"type": "string"}}, "allOf": [{"$ref": "#/$defs/p"}, {"minLength": 2}]},
        {"$defs": {"p": {"type": "string"}}, "allOf": [{"$ref": "#/$defs/p"}, {"enum": ["a", "b"]}]},
        {"$defs": {"p": {"type": "string"}}, "type": "array", "uniqueItems": True, "items": {"$ref": "#/$defs/p"}},
        {"$defs": {"p": {"type": "string"}}, "type": "array", "contains": {"$ref": "#/$defs/p"}},
        {"$defs": {"p": {"type": "string"}}, "oneOf": [{"$ref": "#/$defs/p"}, {"type": "string", "pattern": "^x"}]},
        {"$defs": {"p": {"type": "string"}}, "oneOf": [{"$ref": "#/$defs/p"}, {"enum": ["a", "b"]}]},
    ],
)
def test_parts_where_they_cannot_be_exact(schema: dict[str, object]) -> None:
    with pytest.raises(mw.SchemaError):
        mw.compose(schema, {"/$defs/p": mw.load_regex("x?a")})


def test_parts_more_than_a_string() -> None:
    with pytest.raises(mw.SchemaError, match="minLength cannot be asked as well"):
        mw.compose({"type": "string", "minLength": 2}, {"": mw.load_regex("a")})


@pytest.mark.parametrize(
    "declared",
    [
        "%declare A\r\n",
        "%declare A # one",
        "%declare B A C // one",
        "%declare B \\\n A",
        "  %declare\tA\r",
        "%declare A\n%declare A",
    ],
)
def test_lines_that_declare_a_part(declared: str) -> None:
    line_feed = "\r" if declared.endswith("\r") else "\n"
    made = mw.compose(f'start: "<" A{line_feed}{declared}', {"A": mw.load_regex("x")})
    assert [terminal.name for terminal in made.host.terminals] == ["A", "LESSTHAN"]  # type: ignore[union-attr]


def test_what_only_looks_like_a_declaration_stays() -> None:
    made = mw.compose("start: A B\nB: /b\n%declare A\n/x // %declare A\n%declare A", {"A": mw.load_regex("x")})
    assert made.host.terminals[0].pattern == "b\n%declare A\n"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("host", "part", "message"),
    [
        ('start: "<" A\nA: "q"', "A", r"<text>:2:1: A stands for a part, and the grammar defines it as well"),
        ("start: A\n%import common.INT -> A", "A", r"<text>:2:23: A stands for a part, and the grammar defines it"),
        ("start: a\n%declare a", "a", r"<text>:2:10: 'a' is to stand for a part, but is no name of a terminal"),
        ("start: A\n%declare A", "", "'' is to stand for a part, but is no name of a terminal"),
        (
            "start: A\n%declare A",
            'A\nB: "x"\n',
            "is no name of a terminal; write it in upper case, as in %declare ANSWER",
        ),
    ],
)
def test_names_that_no_part_can_have(host: str, part: str, message: str) -> None:
    with pytest.raises(mw.GrammarError, match=message):
        mw.compose(host, {part: mw.load_regex("x")})


def test_hosts_that_are_loaded() -> None:
    with pytest.raises(mw.GrammarError, match="was loaded already"):
        mw.compose(mw.parse_grammar('start: "a"'), {"A": "json"})
    with pytest.raises(mw.GrammarError, match="the parts are"):
        mw.compose("start: A\n%declare A", [("A", "json")])
    with pytest.raises(mw.GrammarError, match="lexing 'nfa'"):
        mw.compose("// maskwright: lexing = nfa\nstart: A\n%declare A", {"A": "json"})


def test_parts_may_use_all_escapes() -> None:
    host = mw.load_schema({"properties": {"a": {"type": "string"}}}, name="host", escapes="minimal")
    with pytest.raises(mw.SchemaError, match=r"host: a part in a JSON string may use all escapes.*escapes='minimal'"):
        mw.compose(host, {"/properties/a": mw.load_regex("x")})
    assert mw.compose(host, {}).host.options.style.escapes == "minimal"  # type: ignore[union-attr]


def test_a_mark_in_a_users_schema_means_nothing() -> None:
    schema = mw.load_schema({"type": "string", "format": "\0part 0"})
    store = mw.build_store(schema, mw.Vocabulary.from_tokens([b"</s>", b"\xf8@@", b'"', b"a"], eos=[0]))
    assert not store.matcher().is_allowed(1)


@pytest.mark.parametrize(
    ("schema", "pointer"), [({"const": {"type": "string"}}, "/const"), ({"default": {"type": "string"}}, "/default")]
)
def test_data_is_no_subschema(schema: dict[str, object], pointer: str) -> None:
    with pytest.raises(mw.SchemaError, match="in place of a subschema"):
        mw.compose(schema, {pointer: mw.load_regex("a")})


def test_names_that_are_keywords_elsewhere() -> None:
    made = mw.compose({"properties": {"not": {"type": "string"}}}, {"/properties/not": mw.load_regex("a")})
    assert made.parts[0].name == "/properties/not"
    for text in ('start: "sql" SQL\n%regex SQL /x/', 'start: "sql" SQL "sql"\n%regex SQL /x/\n'):
        matcher = mw.build_store(mw.read_composition(text), "python-tiny").matcher()
        matcher.advance_bytes(b"sqlx")


def test_compositions_are_not_too_deep() -> None:
    made: object = mw.load_regex("x")
    with pytest.raises(mw.LimitError, match="inside one another"):
        for _ in range(6):
            made = mw.compose('start: "(" P ")"\n%declare P', {"P": made})


@pytest.mark.parametrize(
    "text",
    [
        '\n    start: "x=" A\n    %declare A\n',
        'start: "x=" A\n%declare A // a part\n',
        'start: "x=" A\n\t%declare A  \n',
    ],
)
def test_declared_parts_may_be_indented_and_have_a_comment(text: str) -> None:
    matcher = mw.build_store(mw.compose(text, {"A": {"type": "integer"}}), "python-tiny").matcher()
    assert matcher.try_bytes(b"x=12") and matcher.is_accepting()


def test_directives_may_be_indented() -> None:
    matcher = mw.build_store('\n    start: "<" DATE ">"\n    %regex DATE /[0-9]{2}/\n', "python-tiny").matcher()
    assert matcher.try_bytes(b"<12>") and matcher.is_accepting()
