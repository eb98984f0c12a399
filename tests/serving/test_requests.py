"""What requests bring: read or refused, compiled once, kept; hostile texts, threads, limits."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from request_cases import takes
from written_cases import parameters

import maskwright as mw
from maskwright.serving import work as work_module
from maskwright.serving.options import KINDS, RequestOptions
from maskwright.serving.reading import RequestReader
from maskwright.serving.requests import RequestCompiler

LARK = 'start: "a" start "b" | "a" "b"\n'
GBNF = 'root ::= "a" root "b" | "ab"'
EBNF = 'root ::= "a" root "b" | ("ab"){1,1}'
DIALECT = '%llguidance {}\nstart: "a" start "b" | "a" "b"'

pytestmark = pytest.mark.usefixtures("own_cache")


TAG = {
    "type": "tag",
    "begin": "<n>",
    "content": {"type": "json_schema", "json_schema": {"type": "integer"}},
    "end": "</n>",
}


@pytest.mark.parametrize(
    "kind, spec, good, bad",
    [
        ("json", '{"type": "integer", "minimum": 3}', "7", "2"),
        ("json", "true", "[1]", "[1"),
        ("json_object", "", '{"a": [1]}', "[1]"),
        ("json_object", "ignored", "{}", "3"),
        ("regex", "a+b", "aab", "ab "),
        ("regex", "", "", "a"),
        ("choice", '["yes", "no"]', "no", "nope"),
        ("grammar", LARK, "aabb", "aab"),
        ("grammar", GBNF, "aabb", "aab"),
        ("grammar", EBNF, "aabb", "aab"),
        ("grammar", DIALECT, "aabb", "aab"),
        ("grammar", "json.compact", '{"a":1}', '{"a": 1}'),
        ("structural_tag", json.dumps({"type": "structural_tag", "format": TAG}), "<n>12</n>", "<n>a</n>"),
    ],
)
def test_each_kind_has_its_texts(compiler: RequestCompiler, kind: str, spec: str, good: str, bad: str) -> None:
    compiler.check(kind, spec)
    store = compiler.compile(kind, spec)
    assert takes(store, good) and not takes(store, bad)
    assert compiler.compile(kind, spec) is store


def test_masks_are_those_of_the_front_door(compiler: RequestCompiler) -> None:
    ours, theirs = compiler.compile("grammar", LARK), mw.build_store(mw.parse_grammar(LARK), "python-tiny")
    masks = []
    for store in (ours, theirs):
        words = np.zeros(store.n_words, np.uint32)
        matcher = store.matcher()
        matcher.advance_bytes(b"aa")
        matcher.fill(words)
        masks.append(words)
    assert np.array_equal(*masks) and masks[0].any()


ONE_TOOL = '"tools": [{"type": "function", "name": "x"}], "end": ">"'
HOSTILE = [
    *parameters("requests", "refused"),
    ("json", "[" * 100_000, "more than 250 deep inside one another"),
    ("json", '{"items":' * 5000 + "{}" + "}" * 5000, "more than 250 deep inside one another"),
    ("json", " " * 5_000_000, "5,000,000 characters; at most 1,000,000 bytes"),
    ("json_object", "x" * 5_000_000, "at most 1,000,000 bytes"),
    ("regex", "\ud800", "half a surrogate pair at position 0"),
    ("regex", "(" * 100_000, "nested more than 100 deep"),
    ("regex", "é" * 600_000, "1,200,000 bytes; at most"),
    ("choice", "[" * 100_000, "more than 250 deep"),
    ("grammar", "root ::= " + "(" * 5000 + '"a"' + ")" * 5000, "100 deep"),
    ("grammar", 'start: "a"{' + " " * 100_000 + "x\n", "too many blanks and digits"),
    ("grammar", 'start: "a"{' + "1" * 100_000 + "x\n", "too many blanks and digits"),
    ("grammar", 'start: "a" %json ' + '{"items":' * 50_000, "no valid JSON"),
    ("grammar", "start: " + "%lark { start: " * 5_000, "100 deep"),
    ("grammar", f'{{{ONE_TOOL}, "begin": "<", "whitespace": "' + " " * 2000 + '"}', "white space"),
    ("grammar", json.dumps({"grammars": [{"lark_grammar": 'start: "a"'}] * 2000}), "1 to 1,000 grammars"),
    ("grammar", "start: " + " ".join(f"<[{i}]>" for i in range(5_000)), "5,000 parts, more than"),
]


@pytest.mark.parametrize("kind, spec, said", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_hostile_is_an_error(compiler: RequestCompiler, kind: str, spec: str, said: str) -> None:
    for method in (compiler.check, compiler.compile):
        start = time.monotonic()
        with pytest.raises(mw.MaskwrightError, match=said):
            method(kind, spec)
        assert time.monotonic() - start < 30
    assert len(compiler) == 0


def test_a_refused_keyword_is_named_by_its_pointer(compiler: RequestCompiler) -> None:
    schema = {
        "properties": {"a": {"prefixItems": [{"type": "null"}], "contains": {"type": "object"}, "uniqueItems": True}}
    }
    with pytest.raises(mw.SchemaError, match="uniqueItems") as caught:
        compiler.check("json", json.dumps(schema))
    assert caught.value.pointer == "/properties/a/uniqueItems"


def test_what_no_text_satisfies_is_refused_by_both(compiler: RequestCompiler) -> None:
    for method in (compiler.check, compiler.compile):
        with pytest.raises(mw.SchemaError):
            method("json", '{"type": "integer", "minimum": 3, "maximum": 2}')
        with pytest.raises(mw.MaskwrightError):
            method("regex", "(?!)")


def test_check_finds_what_no_vocabulary_can_compile(compiler: RequestCompiler) -> None:
    with pytest.raises(mw.TerminalError):
        compiler.check("grammar", "start: A\nA: /(a)\\1/")


def test_what_is_no_string_is_refused(compiler: RequestCompiler) -> None:
    for spec in ({"type": "object"}, b"a", None):
        with pytest.raises(mw.MaskwrightError, match="expected a str"):
            compiler.check("json", spec)  # type: ignore[arg-type]
    with pytest.raises(mw.MaskwrightError, match="expected RequestOptions"):
        compiler.check("json", "{}", {"whitespace": "any"})  # type: ignore[arg-type]


def test_options_of_the_compiler_are_those_of_requests_that_say_nothing() -> None:
    compiler = RequestCompiler("python-tiny", options=RequestOptions(whitespace="compact"))
    assert not takes(compiler.compile("json_object", ""), "{ }")
    assert takes(compiler.compile("json_object", "", RequestOptions()), "{ }")


def test_options_of_the_compiler_say_nothing_of_what_is_no_json() -> None:
    compiler = RequestCompiler("python-tiny", options=RequestOptions("compact", False), on_disk=False)
    for kind, spec in (("regex", "a+"), ("choice", '["a"]'), ("grammar", 'start: "a"')):
        compiler.check(kind, spec)
        assert takes(compiler.compile(kind, spec), "a")
        with pytest.raises(mw.MaskwrightError, match=r"something about JSON \(whitespace\)"):
            compiler.compile(kind, spec, RequestOptions("compact"))


def test_a_structural_tag_without_additional_properties(compiler: RequestCompiler) -> None:
    members = {"type": "object", "properties": {"a": {"type": "integer"}}}
    for schema in (members, {"components": {"schemas": {"a": members}}, "$ref": "#/components/schemas/a"}):
        tag = json.dumps({"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema}})
        for is_open in (True, False):
            for kind, spec in (("structural_tag", tag), ("json", json.dumps(schema))):
                store = compiler.compile(kind, spec, RequestOptions(additional_properties=is_open))
                assert takes(store, json.dumps({"a": 1, "b": 2})) == is_open


def test_without_additional_properties(compiler: RequestCompiler) -> None:
    schema = {
        "properties": {
            "properties": {"properties": {"a": {"type": "integer"}}},
            "x": {"additionalProperties": True, "properties": {}},
        },
        "enum": [{"properties": {"a": 1}}, {"properties": {"a": 1, "b": 2}}, {"x": {"y": 1}}, {"b": 1}],
    }
    options = RequestOptions(additional_properties=False)
    store, free = (compiler.compile("json", json.dumps(schema), each) for each in (options, None))
    for value, is_closed in (
        ({"properties": {"a": 1}}, True),
        ({"properties": {"a": 1, "b": 2}}, False),
        ({"x": {"y": 1}}, True),
        ({"b": 1}, False),
    ):
        assert takes(free, json.dumps(value))
        assert takes(store, json.dumps(value)) == is_closed


def test_strict_keywords() -> None:
    schema = '{"properties": {"a": {"minlength": 2}}, "title": "x", "x-order": 1}'
    RequestReader().read(RequestReader().request("json", schema))
    strict = RequestReader(strict_keywords=True)
    with pytest.raises(
        mw.SchemaError, match=r"^/properties/a/minlength: there is no keyword 'minlength'.*minLength"
    ) as caught:
        strict.read(strict.request("json", schema))
    assert caught.value.pointer == "/properties/a/minlength"
    strict.read(strict.request("json", schema.replace("minlength", "minLength")))


def test_configured_stores(tmp_path: Path) -> None:
    mw.build_store(mw.parse_grammar(LARK), "python-tiny").save(tmp_path / "ab.safetensors")
    mw.build_store(mw.load_schema({"type": "integer"}), "python-tiny").save(tmp_path / "n.safetensors")
    compiler = RequestCompiler(
        "python-tiny", {"ab": tmp_path / "ab.safetensors", "json": str(tmp_path / "n.safetensors")}
    )
    compiler.check("grammar", " ab\n")
    assert takes(compiler.compile("grammar", "ab"), "ab")
    assert takes(compiler.compile("grammar", "json"), "3")  # a configured name comes before the library's
    assert len(compiler) == 0
    with pytest.raises(mw.MaskwrightError, match="did you mean 'ab'"):
        compiler.check("grammar", "abb")


def test_stores_that_do_not_fit(tmp_path: Path) -> None:
    other = mw.Vocabulary.from_tokens([b"a", b"b", b""], eos=[2])
    mw.build_store(mw.parse_grammar(LARK), other).save(tmp_path / "ab.safetensors")
    with pytest.raises(mw.VocabularyError, match="'ab': the store is for another tokenizer: token 0"):
        RequestCompiler("python-tiny", {"ab": tmp_path / "ab.safetensors"})
    with pytest.raises(mw.StoreError):
        RequestCompiler("python-tiny", {"ab": tmp_path / "nothing.safetensors"})
    longer = mw.Vocabulary.from_tokens([b"a", b"b", b"", *[b""] * 60], eos=[2])
    mw.build_store(mw.parse_grammar(LARK), longer).save(tmp_path / "long.safetensors")
    for n_tokens in (None, 50):
        RequestCompiler(other, {"x": tmp_path / "long.safetensors"}, n_tokens=n_tokens)
    with pytest.raises(mw.VocabularyError, match="'x' has 63 tokens and the model 32"):
        RequestCompiler(other, {"x": tmp_path / "long.safetensors"}, n_tokens=32)
    mw.build_store(mw.parse_grammar(LARK, lexing="nfa"), "python-tiny").save(tmp_path / "nfa.safetensors")
    with pytest.raises(mw.MaskwrightError, match="'nfa' and no matchers"):
        RequestCompiler("python-tiny", {"x": tmp_path / "nfa.safetensors"})


def test_the_least_recently_used_are_dropped() -> None:
    compiler = RequestCompiler("python-tiny", cache_entries=2)
    first = compiler.compile("regex", "a")
    compiler.compile("regex", "b")
    assert compiler.compile("regex", "a") is first
    compiler.compile("regex", "c")
    assert len(compiler) == 2
    assert compiler.compile("regex", "a") is first
    small = RequestCompiler("python-tiny", cache_bytes=1)
    kept = small.compile("regex", "a")
    assert small.compile("regex", "a") is kept and len(small) == 1
    small.compile("regex", "b")
    assert len(small) == 1
    small.clear()
    assert len(small) == 0


@pytest.mark.parametrize("kind", ["json", "structural_tag", "grammar"])
def test_all_that_a_store_holds_is_counted(kind: str) -> None:
    """The tables, the automata of the schema, and the stores of a composition's parts."""
    compiler = RequestCompiler("python-tiny", cache_bytes=1 << 20, on_disk=False)
    for k in range(4):
        schema = {"type": "string", "pattern": f"^{k}[^b]{{300}}$"}
        tag = {"type": "structural_tag", "format": TAG | {"content": {"type": "json_schema", "json_schema": schema}}}
        lark = f'start: "x" A\n%schema A {json.dumps(schema)}\n'
        compiler.compile(kind, {"json": json.dumps(schema), "grammar": lark}.get(kind) or json.dumps(tag))
        assert len(compiler) < 3


def test_equal_requests_at_once_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = RequestCompiler("python-tiny")
    n_built, barrier = [], threading.Barrier(8)
    original = work_module.cached_grammar

    def slow(*args: Any, **options: Any) -> Any:
        n_built.append(1)
        time.sleep(0.3)
        return original(*args, **options)

    monkeypatch.setattr(work_module, "cached_grammar", slow)
    found: list[Any] = [None] * 8

    def work(i: int) -> None:
        barrier.wait()
        found[i] = compiler.compile("grammar", LARK)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(n_built) == 1 and all(store is found[0] for store in found) and found[0] is not None


def test_an_error_reaches_all_that_wait_and_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = RequestCompiler("python-tiny")
    original, errors = work_module.cached_grammar, []

    def fails(*args: Any, **options: Any) -> Any:
        time.sleep(0.3)
        raise ZeroDivisionError("as it happens")

    monkeypatch.setattr(work_module, "cached_grammar", fails)

    def work() -> None:
        try:
            compiler.compile("grammar", LARK)
        except mw.MaskwrightError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 4 and all(
        "ZeroDivisionError: 'as it happens'; this is an error of maskwright" in e for e in errors
    )
    monkeypatch.setattr(work_module, "cached_grammar", original)
    assert takes(compiler.compile("grammar", LARK), "ab")


def test_many_threads_and_constraints() -> None:
    compiler = RequestCompiler("python-tiny", cache_entries=4)
    wrong: list[str] = []

    def work(seed: int) -> None:
        for step in range(20):
            n = (seed * 7 + step) % 9 + 1
            if not takes(compiler.compile("regex", f"a{{{n}}}"), "a" * n):
                wrong.append(f"{seed} {n}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(compiler) == 4


def test_the_kinds_are_those_of_vllm() -> None:
    assert KINDS == ("json", "json_object", "regex", "grammar", "choice", "structural_tag")


def test_grammars_of_requests_need_not_come_to_the_disk(tmp_path: Path) -> None:
    """Without `on_disk` only grammars that come along are kept in the cache."""

    def files() -> int:
        return len(list((tmp_path / "cache").glob("*.safetensors")))

    for on_disk, expected in ((False, 0), (True, 1)):
        store: Any = RequestCompiler("python-tiny", on_disk=on_disk).compile("grammar", LARK)
        store.close()
        assert takes(store, "aabb") and files() == expected
    store = RequestCompiler("python-tiny", on_disk=False).compile("grammar", "json.compact")
    store.close()
    assert files() == 2
