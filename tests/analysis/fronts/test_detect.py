"""Which language a text is in, and the one entry for all of them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from front_cases import GBNF, random_gbnf
from paths import ROOT, SHARED
from written_cases import parameters

import maskwright as mw
from maskwright.analysis.fronts import detect, parse_gbnf, parse_llguidance, read_grammar

PEERS = SHARED / "peer_grammars"


@pytest.mark.parametrize(("text", "language"), parameters("fronts", "languages"))
def test_languages_of_texts(text: str, language: str) -> None:
    assert detect(text) == language


def test_a_name_goes_first() -> None:
    names = {"a.gbnf": "gbnf", "a.EBNF": "ebnf", "b/c.json": "schema", "a.lark": "lark", "a.txt": "regex"}
    assert {name: detect("[a-z]", name) for name in names} == names
    assert detect('start: "a"{2}', "a.lark") == "llguidance"


def test_our_own_grammars_are_lark() -> None:
    found = sorted((ROOT / "analysis" / "loading" / "library").rglob("*.lark"))
    assert len(found) > 8
    assert {path.name: detect(path.read_text(encoding="utf-8")) for path in found} == {
        path.name: "lark" for path in found
    }
    assert {name: detect(text) for name, text in GBNF.items()} == dict.fromkeys(GBNF, "gbnf")
    assert {detect(random_gbnf(seed)) for seed in range(30)} == {"gbnf"}


@pytest.mark.skipif(not PEERS.is_dir(), reason="no peers' grammars here")
def test_grammars_of_the_peers() -> None:
    for path in sorted(PEERS.glob("*.*")):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ebnf":
            assert detect(text, path) == "ebnf" and detect(text) in ("gbnf", "ebnf"), path.name
        elif path.suffix == ".lark":
            assert detect(text, path) == detect(text) == "lark", path.name


MANY = 100_000


@pytest.mark.parametrize(
    "text",
    [
        *(
            "[" * MANY,
            "[a]" * MANY,
            '"' * MANY,
            "/a" * MANY,
            "a" * MANY,
            "a " * MANY,
            "a\n" * MANY,
            "a[" * MANY,
            "%" * MANY,
        ),
        *("a:" + part * MANY for part in ("\\/", "/a", "{1", "{ ", "<a", "\na[", "#", "%jso")),
        "root ::= " + "[" * MANY,
        "a:{" + " " * MANY + "1" * MANY,
    ],
)
def test_hostile_texts_end_soon(text: str) -> None:
    start = time.process_time()
    detect(text)
    assert time.process_time() - start < 10


def test_read_constraint(tmp_path: Path) -> None:
    assert read_grammar('root ::= "a"').rules == parse_gbnf('root ::= "a"').rules
    assert read_grammar('root ::= "a"', "ebnf").lexing == "longest"
    assert read_grammar('start: "a"{2}').rules == parse_llguidance('start: "a"{2}').rules
    assert read_grammar('start: "a"').lexing == read_grammar('start: "a"', "llguidance").lexing == "contextual"
    assert read_grammar("json").name == "json"
    commented = '# mine\nstart: "a" / b{1,2}/ "c"\n%ignore " "\n'
    assert read_grammar(commented) == mw.read_constraint(commented) == mw.parse_grammar(commented)
    stated = '# mine\n// maskwright: lexing = longest\nstart: "a" "b"\n'
    assert read_grammar(stated).lexing == mw.read_constraint(stated).lexing == "longest"
    path = tmp_path / "mine.gbnf"
    path.write_text('root ::= "a" root | "b"', encoding="utf-8")
    assert read_grammar(path).name == read_grammar(str(path)).name == "mine.gbnf"
    plain = tmp_path / "mine"
    plain.write_text('start: "a"', encoding="utf-8")
    assert read_grammar(str(plain)).name == "mine"


@pytest.mark.parametrize(
    ("source", "syntax", "message"),
    [
        ('{"type": "object"}', None, r"is a JSON Schema; .*: mw\.load_schema"),
        ("[a-z]+", None, r"is a regular expression; expected a grammar.*: mw\.load_regex"),
        (" \n", None, "is empty; expected a grammar"),
        ('root ::= "a" (= "c") "c"', None, r"1:14: a look-ahead assertion \(= ...\) is not supported"),
        ("missing.gbnf", None, "missing.gbnf' does not exist"),
        ('root ::= "a"', "gbfn", "no syntax is named 'gbfn'; did you mean 'gbnf'"),
        (3, None, "a constraint is of type int|a constraint"),
        ('start: "a', "lark", "1:8"),
    ],
)
def test_what_read_constraint_refuses(source: object, syntax: str | None, message: str) -> None:
    with pytest.raises(mw.MaskwrightError, match=message):
        read_grammar(source, syntax)  # type: ignore[arg-type]
