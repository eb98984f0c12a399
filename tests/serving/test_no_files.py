"""A request's text is never a path: no file that it names is opened, and the answer is the same whether the file is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened_files import opened, watched
from shares import share

import maskwright as mw
from maskwright.serving.requests import RequestCompiler

FILES = {
    "secret": 'start: "a"\n',
    "secret.lark": 'start: X\nX: "a"\n',
    "secret.json": '{"const": "a"}',
    "secret.gbnf": 'root ::= "a"',
    "secret.ebnf": 'root ::= "a"',
    "common.lark": 'INT: "a"\n',
    "query/secret.lark": 'start: X\nX: "a"\n',
}
DECLARED = 'start: "x" S\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder, with files that nobody may read. What is opened in it comes to `opened`."""
    made = tmp_path / "work"
    for name, text in FILES.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(made)
    with watched(made, "/etc/passwd"):
        yield made


def as_tag(form: dict[str, Any]) -> str:
    return json.dumps({"type": "structural_tag", "format": {"type": "tag", "begin": "<", "content": form, "end": ">"}})


def texts(path: str) -> list[tuple[str, str]]:
    """Ways to say the path of a file in a request: its kind and its text."""
    dotted = path.removeprefix("./").partition(".")[0].replace("/", ".").strip(".")
    grammars = [
        path,
        f" {path}\n",
        f"{path}\n\n",
        f"lark:{path}",
        f'start: "a"\n{path}',
        f"start: {path}",
        f"start: /{path}/",
    ]
    grammars += [f"start: X\n%import {before}{dotted}.X" for before in ("", ".", "..")]
    grammars += [f"start: X\n%import .{dotted} (X)", f"start: X\n%import {dotted}.X -> X", f"%import .{dotted}.start"]
    grammars += [f"{DECLARED}%{kind} S {path}" for kind in ("schema", "grammar", "regex", "token", "lark", "json")]
    grammars += [f"{DECLARED}%grammar S {path} in json string", f"%llguidance {{}}\n{DECLARED}%grammar S {path}"]
    grammars += [f'%llguidance {{}}\nstart: %json {{"$ref": "{path}"}}', f"%llguidance {{}}\nstart: @{path}"]
    grammars += [f"start: %json {json.dumps(each)}" for each in (path, [path], {"$ref": f"file://{path}"})]
    grammars += [f"start: %json {path}", f"start: %lark {path}", f"start: %lark {{{path}}}", f"start: @{path}"]
    lists: list[Any] = [{"lark_grammar": path}, {"json_schema": path}, {"json_schema": {"$ref": path}}]
    grammars += [json.dumps({"grammars": [each]}) for each in lists]
    grammars += [
        json.dumps({"grammars": [{"lark_grammar": "start: @x"}, {"name": "x", **each}, {"name": path, **each}]})
        for each in lists
    ]
    grammars += [f'{DECLARED}%schema S {{"$ref": "{path}"}}', f'{DECLARED}%schema S "{path}"']
    grammars += [f"root ::= {path}", f"root ::= Regex({path})", f"{DECLARED}%grammar S json/../../{path}"]
    schemas: list[Any] = [
        path,
        {"$ref": path},
        {"$ref": f"file://{path}"},
        {"$schema": path},
        {"items": {"$ref": f"{path}#"}},
    ]
    schemas += [{"$id": path, "$ref": "#"}, {"$dynamicRef": path}, {"$schema": f"file://{path}", "$ref": "x"}]
    forms: list[dict[str, Any]] = [
        {"type": "grammar", "grammar": path},
        {"type": "grammar", "grammar": f"%import .{dotted}.X"},
    ]
    forms += [{"type": "json_schema", "json_schema": each} for each in schemas] + [{"type": "regex", "pattern": path}]
    older = {"structures": [{"begin": "<", "schema": path, "end": ">"}], "triggers": ["<"]}
    custom = [{"type": "grammar", "syntax": syntax, "definition": path} for syntax in ("lark", "regex")]
    tools: list[Any] = [path, [path], *([{"type": "custom", "name": "x", "format": each}] for each in custom)]
    tools += [[{"type": "function", "name": "x", "parameters": each}] for each in (path, {"$ref": path})]
    grammars += [json.dumps({"tools": each, "begin": "<{name}>", "end": path}) for each in tools]
    found = [("grammar", text) for text in grammars]
    found += [("json", path), *(("json", json.dumps(each)) for each in schemas)]
    found += [("regex", path), ("choice", path), ("choice", json.dumps([path])), ("json_object", path)]
    found += [
        ("structural_tag", path),
        ("structural_tag", json.dumps(older)),
        *(("structural_tag", as_tag(each)) for each in forms),
    ]
    return found


def answers(compiler: RequestCompiler, kind: str, text: str) -> list[str]:
    """What a request hears: errors, or a text of its constraint."""
    found = []
    for method in (compiler.check, compiler.compile):
        try:
            store: Any = method(kind, text)
            found.append("passes" if store is None else str(store.matcher().shortest_ending().data))
        except mw.MaskwrightError as error:
            found.append(f"{type(error).__name__}: {error}")
    return found


@pytest.mark.parametrize("name", share(["/etc/passwd", *sorted(FILES, reverse=True)], 2))
def test_a_file_that_a_request_names_is_not_opened(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = RequestCompiler("python-tiny", workers=0)
    ways = [name] if name.startswith("/") else [name, f"./{name}", str(folder / name)]
    requests = [request for way in ways for request in texts(way)]
    with_files = []
    for kind, text in requests:
        with_files.append(answers(compiler, kind, text))
        assert not opened, (kind, text, opened)
    for each in FILES:
        (folder / each).unlink()
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(folder.parent / "cache 2"))
    compiler = RequestCompiler("python-tiny", workers=0)
    for (kind, text), before in zip(requests, with_files, strict=True):
        assert answers(compiler, kind, text) == before, (kind, text)


def tools_of(kind: str, text: str) -> list[list[dict[str, Any]]]:
    """Lists of tools that bring a request's text."""
    if kind == "json":
        try:
            return [[{"type": "function", "name": "x", "parameters": json.loads(text)}]]
        except ValueError:
            return [[{"type": "function", "name": "x", "parameters": text}]]
    texts = [("lark", text), ("lark", f"// maskwright: lexing = contextual\n{text}"), ("regex", text)]
    return [
        [{"type": "custom", "name": "x", "format": {"type": "grammar", "syntax": syntax, "definition": each}}]
        for syntax, each in texts
    ]


def heard_of_tools(tools: Any, custom: Any) -> str:
    try:
        return str(mw.read_tools(tools, begin="<{name}>", end="</{name}>", custom=custom))
    except mw.MaskwrightError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(("name", "step"), share([("common.lark", 4), ("common.lark", 1), ("/etc/passwd", 1)], 1))
def test_tools_open_no_file(folder: Path, name: str, step: int) -> None:
    """step : each step-th of the tools alone."""
    ways = [name] if name.startswith("/") else [name, str(folder / name)]
    lists: list[Any] = [tools for way in ways for kind, text in texts(way) for tools in tools_of(kind, text)]
    lists = [*lists[::step], *ways]
    before = []
    for tools in lists:
        before.append([heard_of_tools(tools, custom) for custom in ("json", "raw")])
        assert not opened, (tools, opened)
    for each in FILES:
        (folder / each).unlink()
    for tools, heard in zip(lists, before, strict=True):
        assert [heard_of_tools(tools, custom) for custom in ("json", "raw")] == heard, tools
    assert any(one[0].startswith("<Composition") for one in before)


def test_the_watch_sees_what_isopened(folder: Path) -> None:
    mw.load_grammar("secret.lark")
    assert [Path(path).name for path in opened] == ["secret.lark"]


@pytest.mark.parametrize(
    ("directive", "said"),
    [
        ("%schema S secret.json", "may not be read here"),
        ("%schema S /etc/passwd", "may not be read here"),
        ("%grammar S secret.lark", "may not be read here"),
        ("%grammar S ./secret.lark in json string", "may not be read here"),
        ("%grammar S lark:../secret", "may not be read here"),
        ("%import .secret.S", "relative"),
    ],
)
def test_parts_from_files_are_refused_by_name(folder: Path, directive: str, said: str) -> None:
    compiler = RequestCompiler("python-tiny", workers=0)
    for method in (compiler.check, compiler.compile):
        with pytest.raises(mw.GrammarError, match=said):
            method("grammar", f"{DECLARED}{directive}\n")


@pytest.mark.parametrize(
    ("directive", "good", "bad"),
    [
        ('%schema S {"type": "integer"}', "x12", "xa"),
        ("%grammar S json.compact", 'x{"a":1}', 'x{"a": 1}'),
        ("%grammar S json.compact in json string", 'x"{}"', "x{}"),
        ("%regex S /a+b/", "xaab", "xa"),
    ],
)
def test_parts_without_files_are_read(folder: Path, directive: str, good: str, bad: str) -> None:
    store = RequestCompiler("python-tiny", workers=0).compile("grammar", f"{DECLARED}{directive}\n")
    for text, is_whole in ((good, True), (bad, False)):
        matcher = store.matcher()
        try:
            matcher.advance_bytes(text.encode())
            found = matcher.is_accepting()
        except mw.IllegalTokenError:
            found = False
        assert found == is_whole, text
    assert not opened
