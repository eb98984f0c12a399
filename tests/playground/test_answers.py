"""What the playground answers: masks as a matcher fills them, texts up to where they are legal, and no surprise for hostile questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mask_bits import row
from opened_files import opened, watched
from shares import share

import maskwright as mw
from maskwright.models import BUNDLED
from maskwright.playground.answers import Answers, read_text, utf16_units
from maskwright.playground.questions import constraint_of, examples, library_text

VOCABULARY = mw.load_vocabulary("python-tiny")
SUM = 'start: N ("+" N)*\nN: /[0-9]+/\n'


@pytest.fixture(scope="module")
def answers() -> Answers:
    return Answers(VOCABULARY, 30)


def ask(answers: Answers, name: str, constraint: str, **more: Any) -> dict[str, Any]:
    found = answers.answer({"ask": name, "constraint": constraint, **more})
    assert "error" not in found, found
    return found


def error(answers: Answers, name: str, constraint: Any, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = answers.answer({"ask": name, "constraint": constraint, **more})["error"]
    assert "report" not in found["message"], found
    return found


@pytest.mark.parametrize("number", range(9))
def test_the_mask_is_that_of_a_matcher(answers: Answers, number: int) -> None:
    example = examples()[number]
    for text in (example.text, ""):
        store = answers.store({"constraint": example.constraint})
        matcher = store.matcher()
        matcher.advance_bytes(text.encode())
        allowed = sorted(row(matcher))
        shown: dict[str, list[int]] = {}
        for show in ("allowed", "refused"):
            shown[show] = []
            while True:
                found = ask(
                    answers, "mask", example.constraint, before=text, show=show, first=len(shown[show]), size=500
                )
                shown[show] += [token["id"] for token in found["list"]["tokens"]]
                if len(shown[show]) >= found["list"]["total"]:
                    break
        assert sorted(shown["allowed"]) == allowed and found["n_allowed"] == len(allowed)
        texts = [token for token in range(VOCABULARY.size) if VOCABULARY.tokens[token]]
        assert sorted(shown["refused"]) == sorted(set(texts) - set(allowed))
        assert found["bytes"] == "".join("01"[matcher.text.allows(bytes([b]))] for b in range(256))
        assert found["is_legal"] and found["is_at_cursor"] and found["is_whole"] == matcher.is_accepting()


def test_places_in_a_text(answers: Answers) -> None:
    found = ask(answers, "mask", SUM, before="1+", after="2+x+3")
    assert (found["at"], found["legal"], found["is_at_cursor"], found["is_legal"]) == (2, 4, True, False)
    found = ask(answers, "mask", SUM, before="1+x", after="")
    assert (found["at"], found["legal"], found["is_at_cursor"], found["column"]) == (2, 2, False, 3)
    assert ask(answers, "mask", SUM, before="1", after="+2")["is_whole"]
    smile = ask(answers, "mask", "[a😀é]+", before="a😀é!", after="")
    assert smile["at"] == 4 and smile["column"] == 4


def test_texts_are_read_up_to_where_they_are_legal(answers: Answers) -> None:
    for constraint, text in ((SUM, b"1+22+a+3"), ('{"type": "array"}', b"[1, 2, x"), ("(ab)+", b"abac")):
        store = answers.store({"constraint": constraint})
        good = max(n for n in range(len(text) + 1) if store.matcher().try_bytes(text[:n]))
        assert read_text(store, text).good == good < len(text)
    assert utf16_units("é".encode()[:1]) == 0


def test_lists_are_sorted_and_searched(answers: Answers) -> None:
    def texts(**more: Any) -> list[str]:
        return [token["text"] for token in ask(answers, "mask", "[a-z]+", size=500, **more)["list"]["tokens"]]

    assert texts(sort="text") == sorted(texts(sort="text"))
    lengths = [len(text) for text in texts(sort="length")]
    assert lengths == sorted(lengths, reverse=True)
    assert texts(search="tion") and all("tion" in text for text in texts(search="tion"))
    number = VOCABULARY.tokens.index(b"in")
    assert texts(search=f"#{number}") == ["in"] and texts(search="#0") == texts(search="#999999") == []
    ids = [token["id"] for token in ask(answers, "mask", "[a-z]+", sort="id")["list"]["tokens"]]
    assert ids == sorted(ids)
    likely = ask(answers, "mask", r"[\x00-\x7f]+", size=500)["list"]["tokens"]
    assert likely[0]["text"].isprintable()


def test_explanations_and_endings(answers: Answers) -> None:
    for constraint, text in ((SUM, "1+"), ('{"enum": ["ab"]}', '"a'), ("(ab)+", "a")):
        token = VOCABULARY.tokens.index(b"!")
        found = ask(answers, "explain", constraint, before=text, token=token)
        assert found["verdict"] == "refused" and "'!'" in "".join(found["lines"])
        found = ask(answers, "explain", constraint, before=text, byte=ord("!"))
        assert found["verdict"] == "refused"
        ending = ask(answers, "ending", constraint, before=text)["text"]
        matcher = answers.store({"constraint": constraint}).matcher()
        matcher.advance_bytes((text + ending).encode())
        assert matcher.is_accepting()
    composed = examples()[5].constraint
    assert ask(answers, "explain", composed, before="Answer: a\n<call>", byte=ord("!"))["verdict"] == "refused"
    assert ask(answers, "explain", composed, before="Answer: a\n<call>", byte=ord("{"))["verdict"] == "allowed"
    assert "from line 1, column 2 on" in error(answers, "ending", SUM, before="1x")["message"]


def test_findings(answers: Answers) -> None:
    codes = [each["code"] for each in ask(answers, "lint", examples()[2].constraint)["findings"]]
    assert "ambiguity" in codes and "unreachable-rule" in codes
    schema = ask(answers, "lint", '{"type": "string", "minLenght": 3}')
    assert schema["findings"][0]["pointer"] == "/minLenght"
    assert ask(answers, "lint", "[a-z]+")["skipped"] == ["lint does not look at this: regular expression"]
    assert ask(answers, "lint", examples()[5].constraint)["skipped"]
    nothing = ask(answers, "lint", 'start: "a" start\n')
    assert nothing["findings"][0]["severity"] == "error"


@pytest.mark.parametrize(
    "name", share(["secret.lark", "secret", "secret.json", "secret.gbnf", "secret.safetensors"], 2)
)
def test_what_is_named_is_not_opened(
    answers: Answers, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that a question names is not opened, in whatever way it is named."""
    texts = {"json": '{"const": "a"}', "gbnf": 'root ::= "a"'}
    (tmp_path / name).write_text(texts.get(name.rpartition(".")[2], 'start: "a"\n'))
    monkeypatch.chdir(tmp_path)
    with watched(tmp_path, "/etc/passwd"):
        for way in (name, f"./{name}", str(tmp_path / name), "/etc/passwd"):
            dotted = name.partition(".")[0]
            for text in (
                way, f" {way}\n", f"lark:{way}", f"start: A\n%import .{dotted}.A\n", f"start: A\n%import {dotted}.A\n",
                f"start: A\n%grammar A {way}\n", f"start: A\n%schema A {way}\n", f'{{"$ref": "file://{way}"}}', f'{{"$ref": "{way}"}}',
            ):  # fmt: skip
                for kind in ("detect", "grammar", "json", "regex", "choice", "structural_tag"):
                    for ask_for in ("mask", "lint"):
                        answers.answer({"ask": ask_for, "constraint": text, "kind": kind})
                        assert not opened, (text, kind, ask_for, opened)
            library_text(way)
            assert not opened, way
        Path(name).read_text()
        assert opened  # the watch sees what is opened
    assert library_text("json") and library_text("pyproject.toml") is None and library_text("../json") is None


HOSTILE: list[Any] = [
    None, 7, [], {"a": 1}, "", "\0", "(" * 50_000, '{"a":' * 30_000, "a{1,999999999}", "root ::= " + "[" * 1_000,
    "start: " + "(" * 500 + '"a"' + ")" * 500, '{"$ref": "#"}', "start: start\n", "\ud800", "x" * 2_000_000,
]  # fmt: skip
"""See `test_server.py` for those that take long."""


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_constraints_are_errors(answers: Answers, number: int) -> None:
    for name in ("mask", "lint", "explain", "ending"):
        found = answers.answer({"ask": name, "constraint": HOSTILE[number], "token": 5})
        assert "please report it" not in str(found), found
        assert name not in ("mask",) or "error" in found or number == 4, found


def test_hostile_questions_are_errors(answers: Answers) -> None:
    for question in ({}, {"ask": "answer"}, {"ask": ["mask"]}, {"ask": "__init__"}):
        assert "there is no question" in answers.answer(question)["error"]["message"]
    for more, said in (
        ({"before": 3}, "before is"),
        ({"before": "\ud800"}, "surrogate"),
        ({"before": "1" * 100_001}, "at most"),
        ({"first": -1}, "first is"),
        ({"size": 10**9}, "size is"),
        ({"size": True}, "size is"),
        ({"sort": "random"}, "sort is"),
        ({"show": {}}, "show is"),
        ({"kind": "file"}, "no kind"),
        ({"whitespace": "x*"}, "whitespace is"),
    ):
        assert said in error(answers, "mask", SUM, **more)["message"]
    assert "token is" in error(answers, "explain", SUM, token=VOCABULARY.size)["message"]
    assert "byte is" in error(answers, "explain", SUM, byte=256)["message"]


def test_an_answer_has_its_time() -> None:
    late = Answers(VOCABULARY, 1e-3).answer({"ask": "mask", "constraint": 'start: "ab"+ "c"\n'})["error"]
    assert late["is_late"] and "took more than 0.001 s of CPU time" in late["message"]


def test_white_space_of_json(answers: Answers) -> None:
    schema = '{"type": "array", "items": {"const": 1}}'
    for whitespace, good in (("any", True), ("1", True), ("compact", False)):
        assert ask(answers, "mask", schema, before="[ 1", whitespace=whitespace)["is_legal"] == good
    assert not ask(answers, "mask", schema, before="[  1", whitespace="1")["is_legal"]


@pytest.mark.parametrize(
    ("spec", "kind", "syntax"),
    [
        ("json", "grammar", "grammar that comes along"),
        ('{"type": "string"}', "json", "JSON schema"),
        ('{"type": "structural_tag", "format": {}}', "structural_tag", "structural tag"),
        ("[0-9]+", "regex", "regular expression"),
        ('root ::= "a"', "grammar", "grammar in GBNF"),
        ('start: "a"', "grammar", "grammar in Lark"),
    ],
)
def test_what_a_constraint_looks_like(spec: str, kind: str, syntax: str) -> None:
    found = constraint_of({"constraint": spec})
    assert (found.kind, found.syntax) == (kind, syntax)


def test_kinds_are_also_named_as_commands_name_them(answers: Answers) -> None:
    for kind, spec, before in (
        ("lark", SUM, "1+2"),
        ("lark", "json", "1"),
        ("schema", '{"type": "integer"}', "12"),
        ("gbnf", 'root ::= "a"', "a"),
        ("ebnf", 'root ::= "a"', "a"),
        ("llguidance", 'start: "a"{2,3}', "aa"),
    ):
        assert ask(answers, "mask", spec, kind=kind, before=before)["is_whole"], kind
    assert (
        "read as grammar in GBNF, not as grammar in Lark"
        in error(answers, "mask", 'root ::= "a"', kind="lark")["message"]
    )
    assert "did you mean 'lark'" in error(answers, "mask", SUM, kind="larkk")["message"]
    assert "1,000,001 characters; at most 1,000,000" in error(answers, "mask", "x" * 1_000_001)["message"]
    assert ask(answers, "lint", 'root ::= "a"', kind="ebnf")["passed"]


def test_a_choice_is_a_text_a_line(answers: Answers) -> None:
    for spec in ("yes\nno\n", '["yes", "no"]'):
        assert ask(answers, "mask", spec, kind="choice", before="no")["is_whole"]


@pytest.mark.slow
def test_completions(answers: Answers) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    assert ask(answers, "about", "")["model"] == BUNDLED
    found = ask(answers, "complete", SUM, before="1+", max_tokens=8)
    matcher = answers.store({"constraint": SUM}).matcher()
    matcher.advance_bytes(b"1+" + found["masked"]["text"].encode())
    assert matcher.is_accepting() and found["masked"]["is_whole"]
    free = found["free"]
    assert free["is_legal"] == (free["legal"] == len(free["text"]))
    first = ask(answers, "mask", SUM, before="1+", sort="model", size=1)["list"]["tokens"]
    assert first[0]["text"][0] in "0123456789"


def test_no_model_for_other_tokens() -> None:
    tokens = [bytes([byte]) for byte in range(256)]
    other = Answers(mw.Vocabulary.from_tokens([*tokens, b""], eos=[256], name="bytes"), 30)
    assert other.about({})["model"] is None
    assert "other tokens than bytes" in error(other, "complete", SUM, before="1+")["message"]
    assert "other tokens" in error(other, "mask", SUM, sort="model")["message"]


def test_every_example_can_be_read(answers: Answers) -> None:
    names = [example.title for example in examples()]
    assert len(set(names)) == len(names) > 20
    for example in examples()[:9]:
        assert ask(answers, "mask", example.constraint, before=example.text)["is_legal"]
