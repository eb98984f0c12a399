"""White space by style: what programs write is taken, nothing else is, and every beginning comes to an end."""

from __future__ import annotations

import dataclasses
import json
import lzma
import random
from collections.abc import Iterator
from typing import Any

import pytest
from json_endings import JsonEndings
from mixed_schemas import schema as mixed_schema
from naive_json_texts import STYLES, is_legal, respaced, small_texts, spaced
from paths import SHARED
from schema_masks import VOCABULARY
from shares import parts, share

import maskwright as mw
from maskwright.analysis.regex.whole import regex_automaton
from maskwright.analysis.schema.spacing import ANY, everywhere, spacing_of
from maskwright.stores.schema_store import SchemaStore, build_schema_store

DATA = SHARED / "jsonschema" / "schemastore.jsonl.xz"


def one_key_a_line(value: Any) -> str:
    """As `json.dumps`, but each member of the outermost object on its own line, without indentation."""
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{" + ",\n".join(f"{json.dumps(key)}: {json.dumps(part)}" for key, part in value.items()) + "}"


def written(value: Any) -> Iterator[tuple[str, str]]:
    """Texts of a value as programs write them, each with the style that it has alone; "" for the natural one."""
    yield "json.dumps", json.dumps(value)
    yield "json.dumps", json.dumps(value, ensure_ascii=False)
    yield "compact", json.dumps(value, ensure_ascii=False, separators=(",", ":"))  # JSON.stringify
    for indent in (1, 2, 3, 4, 8, 10):
        if indent * depth(value) <= 128:
            yield f"indent{indent}", json.dumps(value, ensure_ascii=False, indent=indent)  # both of them
            yield "", json.dumps(value, indent=indent).replace("\n", "\r\n") + "\r\n"
            yield "", json.dumps(value, indent=indent) + "\n"
    yield "indent0", json.dumps(value, indent=0)
    yield "", json.dumps(value, indent="\t", ensure_ascii=False)
    yield "", one_key_a_line(value)
    yield "", "\n" + json.dumps(value)


def spaces(text: str) -> list[bytes]:
    return [space for _, space, _, _ in spaced(text.encode())]


def depth(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, parts), default=0) if isinstance(value, dict | list) else 0


def takes(store: SchemaStore, text: str | bytes) -> bool:
    """Whether a text is legal; its beginnings are if it is."""
    matcher = store.matcher()
    try:
        matcher.advance_bytes(text if isinstance(text, bytes) else text.encode())
    except mw.MaskwrightError:
        return False
    return matcher.is_accepting()


def random_value(rng: random.Random, deepest: int) -> Any:
    kind = rng.randrange(8 if deepest else 5)
    if kind >= 6:
        return [random_value(rng, deepest - 1) for _ in range(rng.randrange(4))]
    if kind >= 5:
        return {rng.choice("abcdé😀") + str(i): random_value(rng, deepest - 1) for i in range(rng.randrange(4))}
    return rng.choice((None, True, 0, -1.5, 1e20, "", 'a"b', "é\n\x7f/", "{[, : ]}"))


@pytest.fixture(scope="module")
def free() -> dict[str, SchemaStore]:
    """Stores of any value, by style."""
    names = ("natural", *STYLES[1:], "indent8", "indent10", "indent3")
    return {name: build_schema_store(mw.load_schema({}, whitespace=name), VOCABULARY) for name in names}


@pytest.mark.parametrize("seeds", share(parts(60, 4), 1))
def test_styles_take_what_programs_write(seeds: range, free: dict[str, SchemaStore]) -> None:
    for seed in seeds:
        rng = random.Random(seed)
        value = random_value(rng, rng.randrange(7))
        texts = list(written(value))
        for style, text in texts:
            assert takes(free["natural"], text), text
            for name, store in free.items():
                if name != "natural":
                    is_own = any(spaces(other) == spaces(text) for one, other in texts if one == name)
                    assert takes(store, text) == is_own, (name, style, text)


def test_named_styles_are_these() -> None:
    value = {"a": [1, {}], "é": "\x1f"}
    for style, text in (
        ("json.dumps", json.dumps(value)),
        ("json.dumps", json.dumps(value, ensure_ascii=False)),
        ("indent2", json.dumps(value, indent=2)),
    ):
        store = build_schema_store(mw.load_schema({}, style=style), VOCABULARY)  # type: ignore[arg-type]
        assert takes(store, text)
        assert not takes(store, text + "\n") and not takes(store, " " + text)
        assert not takes(store, text.replace("[]", "[ ]").replace("{}", "{ }"))


@pytest.mark.parametrize("whitespace", ["indent17", "indent", "indent-1", "json", "indent 2", "indents2", "indent123"])
def test_other_names_are_refused(whitespace: str) -> None:
    with pytest.raises(mw.UnknownNameError, match="expected"):
        mw.load_schema({}, whitespace=whitespace)


@pytest.mark.parametrize(
    ("style", "text", "refused"),
    [
        ("natural", b'{"tags"', b" \n\t,"),
        ("natural", b'{"tags":[1', b""),
        ("natural", b'{"tags":[1 ', b",1 \n"),
        ("natural", b'{"tags":[1\n  ', b","),
        ("natural", b'{"tags":', b"\n\t"),
        ("natural", b'{"a":1,"b":2', b""),
        ("indent2", b"{", b'" \t\r'),
        ("indent2", b"{\n", b'\n"}'),
        ("indent2", b"{\n  ", b" }"),
        ("indent2", b'{\n  "tags": [\n    1', b"] "),
        ("indent2", b'{\n  "tags": [\n    1\n', b"],"),
        ("indent2", b'{\n  "tags": [\n    1\n  ', b", "),
    ],
)
def test_what_is_refused(style: Any, text: bytes, refused: bytes) -> None:
    store = build_schema_store(mw.load_schema({}, style=style), VOCABULARY)
    matcher = store.matcher()
    matcher.advance_bytes(text)
    for byte in refused:
        assert not matcher.is_allowed(byte), bytes([byte])


def test_white_space_waits_for_what_must_come() -> None:
    """A line break that only a bracket may follow is refused where none may come, and one before a member likewise."""
    schema = {"properties": {"a": {"type": "integer"}}, "required": ["a", "b"], "maxProperties": 2}
    for style, space in (("natural", b" "), ("natural", b"\n"), ("indent2", b"\n")):
        matcher = build_schema_store(mw.load_schema(schema, style=style), VOCABULARY).matcher()  # type: ignore[arg-type]
        first, second = (b'{"a":1', b',"b":2') if style == "natural" else (b'{\n  "a": 1', b',\n  "b": 2')
        matcher.advance_bytes(first)
        assert not matcher.is_allowed(space[0])
        assert "unless the bracket may be closed" in matcher.explain(space[0]).summary
        matcher.advance_bytes(second)
        assert matcher.is_allowed(space[0]) and not matcher.is_allowed(ord(","))
    for schema, bracket in (({"type": "object", "maxProperties": 0}, b"{"), ({"type": "array", "maxItems": 0}, b"[")):
        matcher = build_schema_store(mw.load_schema(schema, style="indent2"), VOCABULARY).matcher()
        matcher.advance_bytes(bracket)
        assert not matcher.is_allowed(10)


def respelled(text: bytes, rng: random.Random) -> bytes:
    """A JSON text with other white space in a few places."""
    pieces = []
    for _, space, after, _ in spaced(text):
        if rng.random() < 0.08:
            space = rng.choice(
                (b"", b" ", b"\n", b"\n  ", b"\t", b"\r\n    ", space + b" ", space[:-1], b"\n" + b" " * 129)
            )
        pieces.append(space + after)
    return b"".join(pieces)


@pytest.mark.parametrize("seed", share(range(60), 10))
def test_texts_of_random_schemas_beside_the_judge(seed: int) -> None:
    rng = random.Random(f"styles {seed}")
    while True:
        style = rng.choice(STYLES)
        try:
            loaded = mw.load_schema(mixed_schema(rng, rng.choice((1, 2))), whitespace=style, escapes="any")
            break
        except (mw.SchemaError, mw.LimitError):
            continue
    store = build_schema_store(loaded, VOCABULARY)
    small = [respaced(loaded.texts, one) for one in rng.sample(SMALL, 300)]
    n_legal = 0
    for text in [one for one in small if is_legal(loaded.texts, one)][:40]:
        for _ in range(4):
            other = respelled(text, rng)
            expected = is_legal(loaded.texts, other)
            n_legal += expected
            assert takes(store, other) == expected, (style, other)


SMALL = small_texts(9, (b"a", b"b"), b"01", (b"null", b"true"))


@pytest.mark.parametrize("seed", share(range(40), 8))
def test_every_beginning_ends(seed: int) -> None:
    """All beginnings of small texts are legal, and each byte that may follow one leads to a legal text."""
    rng = random.Random(f"ends {seed}")
    while True:
        spacing = rng.choice((*map(spacing_of, STYLES), everywhere(regex_automaton(" |")), ANY))
        try:
            loaded = mw.load_schema(mixed_schema(rng, rng.choice((1, 2))))
            texts = loaded.texts._replace(spacing=spacing)
            small = [one for one in (respaced(texts, text) for text in SMALL) if is_legal(texts, one)]
        except (mw.SchemaError, mw.LimitError):
            continue
        if small:
            break
    matcher = build_schema_store(dataclasses.replace(loaded, texts=texts), VOCABULARY).matcher()
    endings = JsonEndings(texts)
    beginnings = sorted({text[:n] for text in rng.sample(small, min(12, len(small))) for n in range(len(text) + 1)})
    for said in rng.sample(beginnings, min(30, len(beginnings))):
        matcher.reset()
        matcher.advance_bytes(said)
        for byte in range(128):
            if matcher.is_allowed(byte):
                longer = said + bytes([byte])
                assert is_legal(texts, longer + endings.short(endings.readings(longer)).data), longer


@pytest.mark.skipif(not DATA.exists(), reason="the data are not here")
@pytest.mark.parametrize("part", share(range(6), 1))
def test_real_instances_as_programs_write_them(part: int) -> None:
    n = 0
    with lzma.open(DATA, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % 6 != part:
                continue
            record = json.loads(line)
            valid = [test["data"] for test in record["tests"] if test["valid"]][:4]
            try:
                judge = build_schema_store(mw.load_schema(record["schema"], whitespace="any"), VOCABULARY)
                stores = {
                    name: build_schema_store(mw.load_schema(record["schema"], whitespace=name), VOCABULARY)
                    for name in ("natural", "json.dumps", "indent2", "indent4")
                }
            except mw.MaskwrightError:
                continue
            for value in valid:
                for style, text in written(value):
                    if len(text) > 20_000 or not takes(judge, text):
                        continue  # other numbers, or keywords that are read otherwise
                    n += 1
                    assert takes(stores["natural"], text), (number, text[:200])
                    if style in stores:
                        assert takes(stores[style], text), (number, style, text[:200])
    assert n > 500
