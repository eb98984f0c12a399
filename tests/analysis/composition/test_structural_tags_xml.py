"""Structural tags with arguments as XML elements: verdicts as xgrammar 0.2.8 gives them, and a naive twin."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from typing import Any

import numpy as np
import pytest
from shares import every, share
from structural_tag_cases import MODELS, cases, texts_of, verdicts_of_xgrammar

import maskwright as mw
from maskwright.analysis.composition.structural_tags_xml import STYLES

EVERY_BYTE = mw.Vocabulary("bytes", (b"", *(bytes((byte,)) for byte in range(256))), {0: "</s>"}, (0,))


def verdicts(tag: dict[str, Any], texts: list[str], **options: Any) -> str:
    """For each text: w for a whole one, b for a beginning, - for neither."""
    store = mw.build_store(mw.read_structural_tag(tag, **options), EVERY_BYTE)
    found = ""
    for text in texts:
        matcher = store.matcher()
        found += "-" if not matcher.try_bytes(text.encode()) else "w" if matcher.is_accepting() else "b"
    return found


def tagged(schema: Any, style: str, **options: Any) -> dict[str, Any]:
    content = {"type": "json_schema", "json_schema": schema, "style": style, **options}
    return {"type": "structural_tag", "format": {"type": "tag", "begin": "<f>", "content": content, "end": "</f>"}}


def members(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def argument(style: str, name: str, value: str, kind: str) -> str:
    """An argument as a style writes it. kind : of the value."""
    of = STYLES[style]
    told = f"{of.of_kind[0]}{of.kinds[kind]}{of.of_kind[1]}" if of.kinds else ""  # type: ignore[index]
    return f"{of.begin}{name}{of.behind_name}{of.value}{told}{value}{of.end.format(name)}"


# -- the models that xgrammar knows


@pytest.mark.parametrize("case", every(8, cases()), ids=lambda case: f"{case['model']}-{case['choice']}")
def test_models(case: dict[str, Any]) -> None:
    assert verdicts(case["tag"], texts_of(case["model"])) == case["verdicts"]


def test_every_model_is_there() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    known = pytest.importorskip("xgrammar.builtin_structural_tag")._structural_tag_registry
    assert set(known) == set(MODELS), f"xgrammar {xgrammar} knows other models"


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case['model']}-{case['choice']}")
def test_the_record_is_what_xgrammar_says(case: dict[str, Any]) -> None:
    pytest.importorskip("xgrammar")
    assert verdicts_of_xgrammar(case["tag"], texts_of(case["model"])) == case["verdicts"]


@pytest.mark.parametrize("style", sorted(STYLES))
def test_white_space_around_a_value_is_no_part_of_it(style: str) -> None:
    """As docs/composition.md says it, style by style."""
    tag = tagged({**members(a={"maxLength": 2, "type": "string"}), "required": ["a"]}, style)
    texts = [
        f"<f>{argument(style, 'a', value, 'string')}</f>"
        for value in ("ab", " \n\tab\r  ", "abc", "\u00a0ab", "\x0bab")
    ]
    is_spaced = style not in ("deepseek_xml", "deepseek_v4_1_xml", "minimax_m3_xml")
    assert verdicts(tag, texts, style="any") == ("ww---" if is_spaced else "w----")
    assert verdicts(tag, [texts[0], texts[1].replace(" \n\tab\r  ", "\n\tab ")]) == ("ww" if is_spaced else "w-")
    assert verdicts(tag, texts, whitespace="compact") == "w----"
    number = tagged({**members(a={"type": "integer"}), "required": ["a"]}, style)
    texts = [f"<f>{argument(style, 'a', value, 'number')}</f>" for value in ("12", " \n12 ")]
    assert verdicts(number, texts, style="any") == ("w-" if style == "minimax_m3_xml" else "ww")


# -- style by style; the verdicts are xgrammar's

SCALARS = members(
    e={"enum": ["a", 1]},
    y={"anyOf": [{"type": "string"}, {"type": "integer"}]},
    z={"type": ["integer", "null"]},
    b={"type": "boolean"},
)
VALUES = [
    ("e", "a", "string"), ("e", "1", "number"), ("e", "b", "string"), ("y", "hi", "string"), ("y", "12", "number"),
    ("z", "null", "null"), ("z", "12", "number"), ("z", "x", "string"), ("b", "true", "boolean"),
    ("b", "True", "boolean"), ("e", "\na\n", "string"),
]  # fmt: skip
STRINGS = {
    "type": "object",
    "properties": {
        "s": {"type": "string", "minLength": 2, "maxLength": 4},
        "p": {"type": "string", "pattern": "^a+$"},
        "d": {"type": "string", "format": "date"},
    },
    "additionalProperties": {"type": "integer"},
}
OF_STRINGS = [
    ("s", "ab", "string"), ("s", "a", "string"), ("s", "\nab\n", "string"), ("s", "abcde", "string"),
    ("p", "aaa", "string"), ("p", "b", "string"), ("p", "\naa\n", "string"), ("d", "2026-11-25", "string"),
    ("d", "x", "string"), ("q", "12", "number"), ("q", "x", "string"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("style", "of_scalars", "of_strings"),
    [
        ("qwen_xml", "ww-wwww-w-w", "w-w-w-ww-w-"),
        ("minimax_xml", "ww-wwww-w-w", "w-w-w-ww-w-"),
        ("glm_xml", "ww-wwww-w-w", "w-w-w-ww-w-"),
        ("kimi_k3_xml", "ww-wwww-w-w", "w-w-w-ww-w-"),
        ("cohere_xml", "ww-wwww-w-w", "w-w-w-ww-w-"),
        ("deepseek_xml", "ww-wwww-w--", "w-w-w--w-w-"),
        ("deepseek_v4_1_xml", "ww-wwww-w--", "w-w-w--w-w-"),
        ("minimax_m3_xml", "ww-wwww-w--", None),
    ],
)
def test_values(style: str, of_scalars: str, of_strings: str | None) -> None:
    for schema, values, wanted in ((SCALARS, VALUES, of_scalars), (STRINGS, OF_STRINGS, of_strings)):
        texts = [f"<f>{argument(style, *one)}</f>" for one in values]
        tag = tagged(schema, style)
        if wanted is not None:
            assert verdicts(tag, texts) == wanted
            _compare_to_xgrammar(tag, texts, wanted)


def _compare_to_xgrammar(tag: dict[str, Any], texts: list[str], wanted: str) -> None:
    try:
        import xgrammar  # noqa: F401
    except ImportError:
        return
    assert verdicts_of_xgrammar(tag, texts) == wanted


INTEGER = {"type": "integer"}
ORDERS = [
    # schema, options, lists of names, verdicts
    (members(a=INTEGER, b=INTEGER, c=INTEGER), {}, ["", "a", "ab", "ac", "ba", "abc", "aa"], "wwww-w-"),
    (members(a=INTEGER, b=INTEGER) | {"required": ["b"]}, {}, ["", "a", "b", "ab", "ba"], "--ww-"),
    (
        members(a=INTEGER, b=INTEGER, c=INTEGER) | {"minProperties": 1, "maxProperties": 2},
        {},
        ["", "a", "b", "ab", "ac", "abc", "ba"],
        "-wwww--",
    ),
    (
        members(a=INTEGER, b=INTEGER, c=INTEGER) | {"minProperties": 1, "maxProperties": 2},
        {"any_order": True},
        ["", "a", "ab", "ba", "abc"],
        "-www-",
    ),
    (
        {"anyOf": [members(a=INTEGER) | {"required": ["a"]}, members(a=INTEGER, b=INTEGER) | {"required": ["b"]}]},
        {},
        ["", "a", "b", "ab", "ba"],
        "-www-",
    ),
    ({"properties": {"a": INTEGER}, "additionalProperties": INTEGER}, {}, ["", "a", "ab", "abc", "ba", "bb"], "wwww-w"),
]


@pytest.mark.parametrize("style", ["qwen_xml", "deepseek_xml", "cohere_xml"])
@pytest.mark.parametrize(("schema", "options", "names", "wanted"), ORDERS)
def test_orders(style: str, schema: Any, options: dict[str, Any], names: list[str], wanted: str) -> None:
    texts = [f"<f>{''.join(argument(style, name, '1', 'number') for name in each)}</f>" for each in names]
    tag = tagged(schema, style, **options)
    assert verdicts(tag, texts) == wanted
    if schema.get("additionalProperties", False) is False or style == "cohere_xml":
        _compare_to_xgrammar(tag, texts, wanted)  # which takes a named member for another one as well


def test_any_order_is_exact() -> None:
    """Where xgrammar asks for no member and takes one twice."""
    tag = tagged(members(a=INTEGER, b=INTEGER) | {"required": ["b"]}, "qwen_xml", any_order=True)
    texts = [
        f"<f>{''.join(argument('qwen_xml', name, '1', '') for name in each)}</f>" for each in ("a", "b", "ba", "bb")
    ]
    assert verdicts(tag, texts) == "-ww-"


NESTED = {
    **members(
        t={"$ref": "#/$defs/t"},
        l={"type": "array", "prefixItems": [{"type": "string"}], "items": INTEGER, "maxItems": 3},
    ),
    "$defs": {"t": members(t={"$ref": "#/$defs/t"}, v={"type": "boolean"})},
}


@pytest.mark.parametrize("style", ["cohere_xml", "minimax_m3_xml"])
def test_elements_in_elements(style: str) -> None:
    def deep(inner: str, depth: int) -> str:
        return argument(style, "t", deep(inner, depth - 1) if depth > 1 else inner, "object")

    def items(*values: tuple[str, str]) -> str:
        if style == "cohere_xml":
            said = "".join(f'<cofl:value type="{kind}">{value}</cofl:value>' for value, kind in values)
        else:
            said = "".join(argument(style, "item", value, "string") for value, _ in values)
        return argument(style, "l", said, "array")

    texts = [
        deep("", 1),
        deep(argument(style, "v", "true", "boolean"), 3),
        deep(argument(style, "v", "1", "number"), 2),
        deep("{}", 1),
        items(),
        items(("s", "raw"), ("1", "json"), ("2", "json")),
        items(("s", "raw"), ("x", "json")),
        items(("s", "raw"), *[("1", "json")] * 3),
        argument(style, "l", '["s"]', "array"),
    ]
    wanted = "ww--ww---"
    tag = tagged(NESTED, style)
    assert verdicts(tag, [f"<f>{text}</f>" for text in texts]) == wanted


def test_excludes() -> None:
    schema = members(a={"type": "string"}, b={"type": "array", "items": {"type": "string"}}, o={"type": "object"})
    texts = [
        argument("qwen_xml", "a", "ok", ""),
        argument("qwen_xml", "a", "<|x|>", ""),
        argument("qwen_xml", "b", '["<|x"]', ""),
        argument("qwen_xml", "b", '["<|x|>"]', ""),
        argument("qwen_xml", "o", '{"<|x|>": 1}', ""),
        argument("qwen_xml", "o", '{"k": {"j": "\\u003c|x|>"}}', ""),
    ]
    tag = tagged(schema, "qwen_xml", excludes=["<|x|>"])
    assert verdicts(tag, [f"<f>{text}</f>" for text in texts]) == "w-w---"
    in_json = tagged(schema, "json", excludes=["xy"])
    assert verdicts(in_json, ['<f>{"a": "x"}</f>', '<f>{"a": "xy"}</f>', '<f>{"o": {"xy": 1}}</f>']) == "w--"


def test_additional_properties() -> None:
    inner = {"type": "object", "properties": {"x": INTEGER}}
    schema = {"type": "object", "properties": {"a": INTEGER, "o": inner}, "required": ["a"]}
    one, more = (argument("qwen_xml", name, value, "") for name, value in (("a", "1"), ("more", "text")))
    texts = [f"<f>{text}</f>" for text in (one, one + more, one + argument("qwen_xml", "o", '{"y": 1}', ""))]
    assert verdicts(tagged(schema, "qwen_xml"), texts) == "www"
    closed = {"additional_properties": False}
    assert verdicts(tagged(schema, "qwen_xml"), texts, **closed) == "w--"
    _compare_to_xgrammar(tagged(schema, "qwen_xml"), texts, "w--")
    in_json = ['<f>{"a":1}</f>', '<f>{"a":1,"b":2}</f>', '<f>{"a":1,"o":{"y":1}}</f>']
    assert verdicts(tagged(schema, "json"), in_json) == "www"
    assert verdicts(tagged(schema, "json"), in_json, **closed) == "w--"


def test_the_older_name() -> None:
    form = {"type": "qwen_xml_parameter", "json_schema": members(a=INTEGER)}
    tag = {"type": "structural_tag", "format": form}
    assert verdicts(tag, ["", argument("qwen_xml", "a", "1", ""), argument("qwen_xml", "a", "x", "")]) == "ww-"


@pytest.mark.parametrize(
    ("schema", "style", "options", "message"),
    [
        ({"type": "string"}, "qwen_xml", {}, "no object of the schema"),
        (members(**{"a>": INTEGER}), "qwen_xml", {}, "cannot write the name 'a>'"),
        (members(**{'a"': INTEGER}), "deepseek_xml", {}, "cannot write the name"),
        (members(**{f"m{i}": INTEGER for i in range(9)}), "qwen_xml", {"any_order": True}, "9 arguments in any order"),
        (members(a={"type": "string", "maxLength": 5_000}), "qwen_xml", {}, "5,000 characters"),
        (members(a=INTEGER), "yaml", {}, "/style: 'yaml' is no style"),
        (members(a=INTEGER), "gemma", {}, "/style: 'gemma' is no style"),
        (members(a=INTEGER), "cohere_xml", {"excludes": ["x"]}, "has no excludes"),
        (members(a={"const": "xy"}), "json", {"excludes": ["xy"]}, "holds one of the excludes"),
        (members(axy=INTEGER), "qwen_xml", {"excludes": ["xy"]}, "holds one of the excludes"),
        (members(a={"pattern": "xy", "type": "string"}), "json", {"excludes": ["xy"]}, "all strings of a subschema"),
        (members(a={"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True}), "cohere_xml", {}, "uniqueItems"),
        ({"not": {"additionalProperties": INTEGER}}, "qwen_xml", {}, "an argument is asked for without a name"),
        ({"not": {"additionalProperties": INTEGER}}, "json", {"excludes": ["x"]}, "asks for a member by what it is"),
    ],
)
def test_what_is_refused(schema: Any, style: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(mw.MaskwrightError, match=re.escape(message)) as error:
        mw.read_structural_tag(tagged(schema, style, **options))
    assert "structural tag, /format/content" in str(error.value)


# -- a naive twin


def naive_is_whole(schema: dict[str, Any], text: str) -> bool:
    """Whether a text is arguments of a schema in qwen_xml, by regular expressions and jsonschema."""
    jsonschema = pytest.importorskip("jsonschema")
    found = re.findall(r"\s*<parameter=([^>]*)>(.*?)</parameter>", text, re.DOTALL)
    if re.sub(r"\s*<parameter=[^>]*>.*?</parameter>", "", text, flags=re.DOTALL).strip():
        return False
    names = [name for name, _ in found]
    if len(set(names)) < len(names) or names != sorted(names):
        return False
    choices = []
    for _, said in found:
        values: list[Any] = [said, said.strip(" \n")]
        with contextlib.suppress(ValueError):
            values.append(json.loads(said))
        choices.append([value for i, value in enumerate(values) if i != 2 or not isinstance(value, str)])
    checker = jsonschema.Draft202012Validator(schema)
    return any(checker.is_valid(dict(zip(names, values, strict=True))) for values in itertools.product(*choices))


@pytest.mark.parametrize("seed", share(range(4), 2))
def test_a_naive_twin(seed: int) -> None:
    random = np.random.default_rng(seed)
    kinds: list[tuple[dict[str, Any], list[str]]] = [
        ({"type": "string"}, ["", "a", "x</par", "\n<b>\n"]),
        ({"type": "string", "minLength": 2}, ["ba", "\na\n", "1"]),
        ({"enum": ["a", 1, None]}, ["a", " 1", "null"]),
        (INTEGER, ["1", "-20\n"]),
        ({"type": ["boolean", "integer"]}, ["true", "7"]),
        ({"type": "array", "items": INTEGER}, ["[1, 2]", "[ ]"]),
        ({"anyOf": [{"type": "string", "pattern": "^b"}, {"type": "null"}]}, ["b<", "null", "\nba"]),
    ]
    wrong = ["", "a", "1", "null", "ba", " 1", "\na\n", "[1, 2]", "true", "x</par", "[", "b<"]
    n_whole = 0
    for _ in range(6):
        names = "abc"[: random.integers(1, 4)]
        chosen = {name: kinds[random.integers(len(kinds))] for name in names}
        schema = members(**{name: kind for name, (kind, _) in chosen.items()})
        schema["required"] = [name for name in names if random.random() < 0.5]
        form = {"type": "qwen_xml_parameter", "json_schema": schema}
        is_tagged = seed % 2 == 1  # the arguments have other rules where their end is known
        if is_tagged:
            form = {"type": "tag", "begin": "<f>", "content": form, "end": ["</f>", "<parameters>"]}
        tag = mw.read_structural_tag({"type": "structural_tag", "format": form})
        store = mw.build_store(tag, EVERY_BYTE)
        for _ in range(40):
            text = ""
            for name in names + random.choice(["", "", "", "a", "d"]):
                if random.random() < 0.8:
                    said = chosen[name][1] if name in chosen and random.random() < 0.8 else wrong
                    text += random.choice(["", "\n"]) + argument("qwen_xml", name, str(random.choice(said)), "")
            matcher = store.matcher()
            end = str(random.choice(["</f>", "\n</f>", "<parameters>"]))
            said = f"<f>{text}{end}" if is_tagged else text
            ours = matcher.try_bytes(said.encode()) and matcher.is_accepting()
            assert ours == naive_is_whole(schema, text), (schema, text)
            n_whole += ours
    assert n_whole > 20


@pytest.mark.parametrize("style", share(STYLES, 2))
def test_a_hundred_optional_arguments(style: str) -> None:
    """Their rules are few; they come in their order, and any may be left out."""
    names = [f"arg_{i:02}" for i in range(100)]
    tag = mw.read_structural_tag(tagged(members(**dict.fromkeys(names, INTEGER)), style))
    assert len(tag.host.nodes) < 800
    store = mw.build_store(tag, EVERY_BYTE)
    for chosen, wanted in ((names, "w"), (names[::7], "w"), ([], "w"), (names[5:2:-1], "-"), (["arg_07"] * 2, "-")):
        matcher = store.matcher()
        text = "".join(argument(style, name, "1", "number") for name in chosen)
        found = matcher.try_bytes(f"<f>{text}</f>".encode()) and matcher.is_accepting()
        assert found == (wanted == "w"), (style, chosen)


@pytest.mark.parametrize("first", share(range(4), 1))
def test_masks_of_a_real_vocabulary(first: int) -> None:
    """A token is in the mask exactly if its bytes may come."""
    vocabulary = mw.load_vocabulary("python-tiny")
    tag = tagged(members(a={"type": "string"}, b={"enum": ["one", "two"]}, c=INTEGER) | {"required": ["b"]}, "qwen_xml")
    store = mw.build_store(mw.read_structural_tag(tag), vocabulary)
    text = b"<f>\n<parameter=a>if x < 1</parameter>\n<parameter=b>\ntwo\n</parameter><parameter=c>12</parameter></f>"
    words = np.zeros(-(-vocabulary.size // 32), np.uint32)
    matcher = store.matcher()
    for at in range(0, len(text), 7):
        matcher.fill(words)
        there = matcher.fork()
        for token in range(3 * first, vocabulary.size, 12):
            data = vocabulary.tokens[token]
            if data:
                is_read = there.try_bytes(data)
                assert bool(words[token >> 5] >> (token & 31) & 1) == is_read, (text[:at], data)
                there = matcher.fork() if is_read else there
        assert matcher.try_bytes(text[at : at + 7])
    assert matcher.is_accepting()
