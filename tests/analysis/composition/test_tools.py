"""Tools of chat APIs: which calls are legal, in which words bad tools are refused."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from mask_bits import row
from shares import share

import maskwright as mw
from maskwright.analysis.regex.whole import regex_automaton
from maskwright.serving.requests import RequestCompiler

PATCH = r"""
start: "*** Begin Patch" LF section+ "*** End Patch" LF?
section: added | deleted | updated
added: "*** Add File: " path LF ("+" text LF)+
deleted: "*** Delete File: " path LF
updated: "*** Update File: " path LF ("*** Move to: " path LF)? change?
change: (("@@" | "@@ " path) LF | ("+" | "-" | " ") text LF)+ ("*** End of File" LF)?
path: /(.+)/
text: /(.*)/
%import common.LF
"""
"""Codex's patches, from the description of its tool apply_patch."""
PATCH_PATTERN = (
    r"\*\*\* Begin Patch\n("
    r"\*\*\* Add File: .+\n(\+.*\n)+|\*\*\* Delete File: .+\n|"
    r"\*\*\* Update File: .+\n(\*\*\* Move to: .+\n)?(((@@|@@ .+)\n|[+\- ].*\n)+(\*\*\* End of File\n)?)?"
    r")+\*\*\* End Patch\n?"
)
"""The same texts as one pattern, which is the naive twin."""
GOOD = [
    "*** Begin Patch\n*** Add File: a.py\n+x = '1'\n+\n*** End Patch",
    "*** Begin Patch\n*** Update File: a b.py\n@@ def f():\n kept\n-old\n+new\n \n*** End Patch\n",
    "*** Begin Patch\n*** Update File: a\n*** Move to: é/b\n@@\n-\n*** End of File\n*** Delete File: c\n*** End Patch",
    '*** Begin Patch\n*** Update File: a\n+say("\\n")\n@@\n*** Delete File: c\n*** End Patch',
]
BAD = [
    "*** Begin Patch\n*** End Patch",
    "*** Begin Patch\n*** Add File: \n",
    "*** Begin Patch\n*** Add File: a\n*** End Patch",
    "*** Begin Patch\n*** Add File: a\n-x",
    "*** Begin Patch\n*** Update File: a\n@@\nx",
    "*** Begin Patch\n*** Update File: a\n@@x",
    "*** Begin Patch\n*** Delete File: a\n+x",
    "*** Begin Patch\n*** Rename",
    " *** Begin Patch",
]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
            "additionalProperties": False,
        },
        "strict": True,
    },
}
ARGUMENTS: Any = WEATHER["function"]["parameters"]  # type: ignore[index]
NOW = {"type": "function", "name": "now"}
APPLY = {
    "type": "custom",
    "custom": {
        "name": "apply_patch",
        "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": PATCH}},
    },
}
DATE = {
    "type": "custom",
    "name": "date",
    "format": {"type": "grammar", "syntax": "regex", "definition": r"\d{4}-\d\d|</raw>"},
}
NOTE = {"type": "custom", "name": "note", "format": {"type": "text"}}
TOOLS = [WEATHER, NOW, APPLY, DATE, NOTE]
HERMES: dict[str, Any] = {"begin": '<call>\n{"name": "{name}", "arguments": ', "end": "}\n</call>"}
RAW: dict[str, Any] = {**HERMES, "custom": "raw", "custom_begin": "<raw {name}>", "custom_end": "</raw>"}
VOCABULARY = mw.Vocabulary.from_tokens(
    [
        b"</s>",
        *(bytes((byte,)) for byte in range(256)),
        *(b"\n+", b"\n***", b" Patch", b"File: ", b"Patch</raw>", b"\n</call>", b"<ca", b'}}\n</call>\n<call>\n{"'),
        *(b'"}', b"\\n+", b'\\n"', b'": {"input": "*** ', b'{"city": "', b'call>\n{"name": "', b"\xc3\xa9\n", b"ab\\"),
    ],
    eos=[0],
    name="calls",
)


def call(name: str, arguments: str) -> str:
    return f'<call>\n{{"name": "{name}", "arguments": {arguments}}}\n</call>'


def verdict(store: Any, text: str) -> str:
    """w for a whole text, b for a beginning, - for neither."""
    matcher = store.matcher()
    return "-" if not matcher.try_bytes(text.encode()) else "w" if matcher.is_accepting() else "b"


def verdicts(texts: list[str], tools: Any = TOOLS, **format: Any) -> str:
    store = mw.build_store(mw.read_tools(tools, **{**HERMES, **format}), VOCABULARY)
    return "".join(verdict(store, text) for text in texts)


@pytest.fixture(scope="module")
def in_json() -> Any:
    return mw.build_store(mw.read_tools(TOOLS, **HERMES), VOCABULARY)


@pytest.fixture(scope="module")
def raw() -> Any:
    return mw.build_store(mw.read_tools(TOOLS, **RAW), VOCABULARY)


def test_functions(in_json: Any) -> None:
    good = ['{"city": "Ulm"}', '{ "city":"</call>","days":3 }']
    bad = ["{}", '{"days": 3}', '{"city": 3', '{"city": "a", "x"', "3", '{"days": 3, "city"']
    assert [verdict(in_json, "I look.\n" + call("weather", each)) for each in good] == ["w"] * 2
    assert {verdict(in_json, call("weather", each)) for each in bad} == {"-"}
    assert verdict(in_json, call("now", "{}")) == "w"
    assert verdict(in_json, '<call>\n{"name": "now", "arguments": {"') == "-"
    assert verdict(in_json, '<call>\n{"name": "late') == "-"
    assert verdict(in_json, f"a {call('now', '{}')} and {call('weather', good[0])}.") == "w"


@pytest.mark.parametrize("patch", GOOD)
def test_right_patches(patch: str, in_json: Any, raw: Any) -> None:
    assert verdict(raw, f"So: <raw apply_patch>{patch}</raw> done") == "w"
    for spelled in (json.dumps(patch), json.dumps(patch, ensure_ascii=False)):
        assert verdict(in_json, "So: " + call("apply_patch", f'{{"input": {spelled}}}')) == "w"
        for cut in range(len(spelled)):
            assert verdict(in_json, call("apply_patch", f'{{"input": {spelled}')[: cut - len(spelled) - 10]) != "-"


@pytest.mark.parametrize("patch", BAD)
def test_wrong_patches(patch: str, in_json: Any, raw: Any) -> None:
    assert verdict(raw, f"<raw apply_patch>{patch}</raw>") == "-"
    assert verdict(in_json, call("apply_patch", f'{{"input": {json.dumps(patch)}}}')) == "-"


def test_other_custom_tools(in_json: Any, raw: Any) -> None:
    assert verdict(in_json, call("date", '{"input": "2026-11"}')) == "w"
    assert verdict(in_json, call("date", '{"input": "2026"')) == "-"
    assert verdict(in_json, call("date", '{"other')) == "-"
    assert verdict(in_json, call("note", '{"input": "any\\n"}')) == "w"
    assert verdict(raw, "<raw date>2026-11</raw>") == "w"
    assert verdict(raw, "<raw date></raw>") == "-"  # the pattern says </raw>, which ends the input
    assert verdict(raw, "<raw note>a <call> </raw><raw note></raw>") == "w"


def test_choices() -> None:
    one, other = call("now", "{}"), call("weather", '{"city": ""}')
    texts = ["", "so", one, f"so {one}", f"{one} so", f"{one}\n{other}", f"{one}{one}", "<call>"]
    function = {"type": "function", "function": {"name": "now"}}
    assert verdicts(texts) == "wwwwwwwb"
    assert verdicts(texts, separator=None) == "wwww---b"
    assert verdicts(texts, choice="required") == "b-w--w-b"
    assert verdicts(texts, choice="required", separator="") == "b-w---wb"
    assert verdicts(texts, choice="required", separator=None) == "b-w----b"
    assert verdicts(texts, choice="none") == "ww-----" + "-"
    assert verdicts([*texts, other], choice="now") == "b-w----b-"
    assert verdicts([*texts, other], choice=function) == "b-w----b-"
    assert verdicts([*texts, other], choice={"type": "tool", "name": "now"}) == "b-w----b-"
    assert verdicts(["a <c> b", "a <call", 'a <call>\n{"'], triggers=['<call>\n{"']) == "wwb"
    named_auto = [{**NOW, "name": "auto"}, WEATHER]
    assert verdicts([call("auto", "{}"), other, ""], named_auto, choice={"type": "function", "name": "auto"}) == "w-b"
    assert verdicts(["{}"], [NOW], begin="", end="", choice="now") == "w"


def test_tools_in_json_text() -> None:
    assert verdicts([call("now", "{}")], json.dumps(TOOLS)) == "w"


@pytest.mark.parametrize("seed", range(4))
def test_masks_of_raw_patches_are_those_of_the_pattern(seed: int) -> None:
    tools = mw.read_tools([APPLY], **RAW, choice="apply_patch")
    store = mw.build_store(tools, VOCABULARY)
    twin = regex_automaton(rf"<raw apply_patch>{PATCH_PATTERN}</raw>")
    rng = random.Random(seed)
    matcher, text = store.matcher(), b""
    for byte in b"<raw apply_patch>*** Begin Patch\n":
        matcher.advance_bytes(bytes((byte,)))
        text += bytes((byte,))
    for _ in range(60):
        state = twin.run(text)
        wanted = {i for i, data in enumerate(VOCABULARY.tokens) if i and twin.run(data, state) >= 0}
        if twin.is_accepting[state]:
            wanted.add(0)
        found = row(matcher)
        assert found == wanted, (text, sorted(VOCABULARY.tokens[i] for i in found ^ wanted))
        going_on = sorted(wanted - {0})
        if not going_on:
            break
        likely = [i for i in going_on if len(VOCABULARY.tokens[i]) > 1 or VOCABULARY.tokens[i] in b"\n*+ -@"]
        token = rng.choice(likely or going_on)
        matcher.advance(token)
        text += VOCABULARY.tokens[token]


@pytest.mark.slow
@pytest.mark.parametrize("text", share([GOOD[1], GOOD[3]], 1))
def test_masks_are_what_is_allowed(text: str, in_json: Any, raw: Any) -> None:
    inside = f"x {call('apply_patch', json.dumps({'input': text}))}"
    for store, whole in ((in_json, inside), (raw, f"x <raw apply_patch>{text}</raw> y")):
        matcher = store.matcher()
        for byte in whole.encode():
            found = row(matcher)
            assert found == {i for i in range(VOCABULARY.size) if matcher.is_allowed(i)}
            alone = matcher.fork()
            assert all(
                alone.try_bytes(VOCABULARY.tokens[i]) == (i in found) and (i not in found or alone.rollback(1) is None)
                for i in range(257, VOCABULARY.size)
            )
            matcher.advance_bytes(bytes((byte,)))
        assert matcher.is_accepting()


LINES = [
    *("*** Add File: a", "*** Delete File: é", "*** Update File: b", "*** Move to: c", "*** End of File"),
    *("@@", "@@ def f():", '+say("\\n")', "+", "-old", " kept", " ", "@@x", "", "*** End Patch"),
]


def spelled(text: str, rng: random.Random) -> str:
    """A text as a JSON string, some characters as escapes."""
    inner = (f"\\u{ord(c):04X}" if rng.random() < 0.2 else json.dumps(c, ensure_ascii=False)[1:-1] for c in text)
    return f'"{"".join(inner)}"'


@pytest.mark.parametrize("seed", range(5))
def test_random_patches_as_the_pattern_says(seed: int, in_json: Any, raw: Any) -> None:
    rng = random.Random(seed)
    found = set()
    for _ in range(30):
        lines = [rng.choice(LINES[:3]), *rng.choices(LINES[3:-3], k=rng.randrange(4))]
        if rng.random() < 0.5:
            lines += [LINES[0], *rng.choices(LINES[7:9], k=2)]
        if rng.random() < 0.3:
            lines.insert(rng.randrange(len(lines)), rng.choice(LINES))
        text = "\n".join(["*** Begin Patch", *lines, "*** End Patch"]) + rng.choice(["", "\n"])
        wanted = re.fullmatch(PATCH_PATTERN, text) is not None
        assert (verdict(raw, f"<raw apply_patch>{text}</raw>") == "w") == wanted, text
        whole = call("apply_patch", f'{{"input": {spelled(text, rng)}}}')
        assert (verdict(in_json, whole) == "w") == wanted, whole
        found.add(wanted)
    assert found == {True, False}


def grammar(syntax: Any = "lark", definition: Any = 'start: "a"') -> dict[str, Any]:
    return {"type": "custom", "name": "x", "format": {"type": "grammar", "syntax": syntax, "definition": definition}}


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ("[", "the tools are no JSON"),
        ([], "at least one tool"),
        ({"type": "function"}, "expected a list"),
        (NOW, "expected a list of at least one tool: write [tool]"),
        ([7], "tools, /0 is 7; expected an object of the type"),
        ([{"description": "x"}], 'or {"name": ..., "inputSchema": ...} as MCP has'),
        ([{"name": "a", "parameters": {}, "input_schema": {}}], "/0 has both parameters and input_schema"),
        ([{"name": "a", "input_schema": []}], "tools, /0/input_schema is a list"),
        ([{"type": "web_search", "name": "a", "input_schema": {}}], "tools, /0 is "),
        ([NOW, {"type": "web_search"}], "tools, /1 is "),
        ([NOW, NOW], "tools, /1/name: a tool before has the name 'now' too"),
        ([{"type": "function"}], "tools, /0/name is None"),
        ([{"type": "function", "function": {"name": "a b"}}], "tools, /0/function/name is 'a b'"),
        ([{"type": "function", "function": 3}], "tools, /0/function is an int"),
        ([{"type": "function", "function": {"name": "a"}, "strict": True}], "tools, /0: 'strict' is not known there"),
        ([{**NOW, "paramaters": {}}], "tools, /0: 'paramaters' is not known there"),
        ([{**NOW, "description": 1}], "tools, /0/description is an int"),
        ([{**NOW, "strict": "yes"}], "tools, /0/strict is 'yes'"),
        ([{**NOW, "parameters": []}], "tools, /0/parameters is a list"),
        ([{**NOW, "parameters": {"type": "string"}}], "tools, /0/parameters/type is 'string'"),
        ([{**NOW, "parameters": {"properties": {"a": {"type": "no"}}}}], "tools, /0/parameters: "),
        ([{**NOTE, "format": "text"}], "tools, /0/format is 'text'"),
        ([{**NOTE, "format": {"type": "text", "x": 1}}], "tools, /0/format: 'x' is not known there"),
        ([{**NOTE, "formt": {}}], "tools, /0: 'formt' is not known there"),
        ([{**NOTE, "format": {"type": "grammar", "grammar": 1}}], "tools, /0/format/grammar is an int"),
        ([grammar(syntax="gbnf")], "tools, /0/format/syntax is 'gbnf'"),
        ([grammar(definition=None)], "tools, /0/format/definition"),
        ([grammar(definition="start: x")], "tools, /0/format/definition: "),
        ([grammar(definition="start: start")], "tools, /0/format/definition: "),
        ([grammar(definition='start: "\ud800"')], "half a surrogate pair"),
        ([grammar(definition='// maskwright: lexing = nfa\nstart: "a"')], "lexing 'nfa'"),
        ([grammar("regex", "(")], "tools, /0/format/definition: "),
    ],
)
def test_malformed_tools(tools: Any, message: str) -> None:
    with pytest.raises(mw.MaskwrightError) as error:
        mw.read_tools(tools, **HERMES)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "name": "weather", "parameters": ARGUMENTS},
        {"name": "weather", "parameters": ARGUMENTS},
        {"function": WEATHER["function"]},
        {"name": "weather", "description": "d", "input_schema": ARGUMENTS, "cache_control": {"type": "ephemeral"}},
        {"type": "custom", "name": "weather", "input_schema": ARGUMENTS},
        {"name": "weather", "title": "t", "inputSchema": ARGUMENTS, "outputSchema": {}, "annotations": {}},
    ],
)
def test_every_form_of_a_function_is_the_same_language(tool: dict[str, Any]) -> None:
    texts = [call("weather", text) for text in ('{"city": "Oslo"}', '{"town": 1}', '{"city": "Oslo", "days": 2}', "{}")]
    assert verdicts(texts, [tool]) == verdicts(texts, [WEATHER]) == "w-w-"


def test_a_custom_tool_without_its_type() -> None:
    bare = {key: value for key, value in DATE.items() if key != "type"}
    texts = [call("date", '{"input": "2026-11"}'), call("date", '{"input": "x"}')]
    assert verdicts(texts, [bare]) == verdicts(texts, [DATE])
    assert verdicts(texts, [{"custom": APPLY["custom"]}]) == "--"


def test_a_schema_error_has_the_pointer_into_the_tools() -> None:
    with pytest.raises(mw.SchemaError) as error:
        mw.read_tools([{"name": "now", "inputSchema": {"properties": {"a": {"type": "no"}}}}])
    assert error.value.pointer == "/0/inputSchema/properties/a/type"
    with pytest.raises(mw.SchemaError) as error:
        mw.read_tools([NOTE, {**NOW, "parameters": {"properties": {"a": {"type": "no"}}}}], **HERMES)
    assert error.value.pointer == "/1/parameters/properties/a/type"


@pytest.mark.parametrize(
    ("format", "message"),
    [
        ({"begin": 3}, "begin is 3"),
        ({"end": "\ud800"}, "half a surrogate pair"),
        ({"begin": "<call>"}, "put {name} into begin"),
        ({"begin": "{name}("}, "begin with the tool's name"),
        ({"triggers": ["<tool"]}, "begin with none of the triggers"),
        ({"triggers": "<"}, "expected a list of strings"),
        ({"triggers": [""]}, "a trigger is empty"),
        ({"custom": "xml"}, "custom is 'xml'"),
        ({"custom": "raw", "custom_end": ""}, "nothing ends a raw input"),
        ({"separator": 1}, "separator is 1"),
        ({"choice": "any"}, "choice is 'any', which names no choice"),
        ({"choice": 1}, "choice is 1, which names no choice"),
        ({"choice": {"type": "tool", "name": "no"}}, "names no choice (known: auto, required, none, weather"),
        ({"choice": {"type": "custom", "name": "now"}}, "names no choice (known: auto, required, none, weather"),
        ({"choice": {"type": "allowed_tools"}}, "choice is "),
    ],
)
def test_malformed_formats(format: dict[str, Any], message: str) -> None:
    with pytest.raises(mw.UnknownNameError if "names no choice" in message else mw.GrammarError) as error:
        mw.read_tools(TOOLS, **{**HERMES, **format})
    assert message in str(error.value)


def test_a_pattern_that_only_says_the_end_is_refused() -> None:
    with pytest.raises(mw.GrammarError, match="/0/format: all texts of the pattern hold"):
        mw.read_tools([grammar("regex", "a</raw>")], **RAW)


def test_definitions_are_in_the_dialect_unless_they_have_an_option() -> None:
    with_priority = 'start: A\nA.2: "a"+'
    with pytest.raises(mw.GrammarError, match=r"/0/format/definition: .*priority"):
        mw.read_tools([grammar(definition=with_priority)], **HERMES)
    tool = grammar(definition=f"// maskwright: lexing = contextual\n{with_priority}")
    assert verdicts([call("x", '{"input": "aa"}'), call("x", '{"input": "b"}')], [tool]) == "w-"


def test_arguments_with_the_escapes_that_json_wants() -> None:
    """Names of arguments are forced to their ends then."""
    texts = [
        call("weather", arguments) for arguments in (r'{"city": "\u0061"}', r'{"\u0063ity": "a"}', r'{"city": "\""}')
    ]
    assert verdicts(texts, [WEATHER], style="any") == "www"
    assert verdicts(texts, [WEATHER]) == verdicts(texts, [WEATHER], escapes="minimal") == "--w"
    for escapes, forced in (("any", b""), ("natural", b'city":"'), ("minimal", b'city":"')):
        read = mw.read_tools([WEATHER], **HERMES, choice="weather", whitespace="compact", escapes=escapes)
        matcher = mw.build_store(read, VOCABULARY).matcher()
        matcher.advance_bytes(call("weather", '{"').removesuffix("}\n</call>").encode())
        assert matcher.forced_bytes() == forced


def test_arguments_in_any_order() -> None:
    """With `key_order="any"` members come as the model likes; by default as the schema says."""
    parameters = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}},
        "required": ["a"],
    }
    tool = {"type": "function", "name": "set", "parameters": parameters}
    texts = [call("set", one) for one in ('{"a": 1, "b": true}', '{"b": true, "a": 1}', '{"b": true}')]
    assert verdicts(texts, [tool]) == verdicts(texts, [tool], key_order="schema") == "w--"
    assert verdicts(texts, [tool], key_order="any") == "ww-"
    spec = json.dumps({"tools": [tool], **HERMES, "key_order": "any"})
    store = RequestCompiler(VOCABULARY).compile("grammar", spec)
    assert [verdict(store, text) for text in texts] == ["w", "w", "-"]
    for wrong in ("x", []):
        with pytest.raises(mw.UnknownNameError, match=r"key_order is .*; expected 'any' or 'schema'"):
            mw.read_tools([WEATHER], **HERMES, key_order=wrong)  # type: ignore[arg-type]
        with pytest.raises(mw.UnknownNameError, match=r"key_order is .*; expected 'any' or 'schema'"):
            mw.load_schema(True, key_order=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("whitespace", ["any", "compact", 1, "[ ]+"])
def test_the_key_of_an_input_with_the_escapes_that_json_wants(whitespace: str | int) -> None:
    """The input itself may have all, and nothing else changes."""
    said = {"compact": '{"input":"%s"}', "[ ]+": ' { "input" : "%s" } '}.get(str(whitespace), '{"input": "%s"}')
    inputs = ["2024-01", r"\u0032024-01", "2024", "", r"\n\"\\", "é"]
    texts = [call(name, said % text) for name in ("date", "note") for text in inputs]
    texts += [call("date", each) for each in ("{}", '{"input" :"2024-01"}', '\n{"input":  "2024-01"}', '{"input": 1}')]
    for choice in ("required", "auto"):
        plain = verdicts(texts, choice=choice, style="any", whitespace=whitespace)
        assert verdicts(texts, choice=choice, whitespace=whitespace, escapes="minimal") == plain
        assert plain.startswith("ww----ww" if choice == "required" else "ww--")
    with_escape = [call(name, (said % "2024-01").replace("inp", r"in\u0070")) for name in ("date", "note")]
    assert verdicts(with_escape, style="any", whitespace=whitespace) == "ww"
    for escapes in ("natural", "minimal"):
        assert verdicts(with_escape, whitespace=whitespace, escapes=escapes) == "--"


@pytest.mark.parametrize("style", ["json", "deepseek_xml"])
def test_escapes_of_a_structural_tag(style: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}, "required": ["a"]}
    form = {"type": "json_schema", "json_schema": schema, "style": style}
    tag = {"type": "structural_tag", "format": {"type": "tag", "begin": "<", "content": form, "end": ">"}}
    with_escape = {
        "json": r'{"a":["\u0061"]}',
        "deepseek_xml": r'<｜DSML｜parameter name="a" string="false">["\u0061"]</｜DSML｜parameter>',
    }[style]
    free = mw.build_store(mw.read_structural_tag(tag, style="any"), VOCABULARY)
    assert verdict(free, f"<{with_escape}>") == "w"
    store = mw.build_store(mw.read_structural_tag(tag, escapes="minimal"), VOCABULARY)
    assert verdict(store, f"<{with_escape}>") == "-"
    assert verdict(store, f"<{with_escape}>".replace(r"\u0061", "a")) == "w"
