"""What a user may have meant: another loader, another keyword, another name for a model's tools."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import pickle
import pkgutil
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import maskwright as mw
from maskwright.completion import start_completion
from maskwright.serving.requests import RequestCompiler

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": ["Oslo"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


@pytest.mark.parametrize(
    ("source", "call"),
    [
        (r"\d{3}", r"mw\.load_regex\('\\\\d\{3\}'\)"),
        ("[a-z]+", r"mw\.load_regex\('\[a-z\]\+'\)"),
        ("yes|no", r"mw\.load_regex\('yes\|no'\)"),
        ('["yes", "no"]', r"mw\.load_choice\(\['yes', 'no'\]\) reads a list of answers"),
        ([TOOL], r"mw\.read_tools\(tools\) reads a list of tools"),
        (Literal["a", "b"], r"mw\.load_choice\(\['a', 'b'\]\) .* mw\.load_schema\(Literal\['a', 'b'\]\) as JSON"),
    ],
)
def test_another_loader_is_named(source: Any, call: str) -> None:
    for load in (mw.load_grammar, lambda source: mw.build_store(source, "python-tiny")):
        with pytest.raises(mw.MaskwrightError, match=call):
            load(source)


LOADERS = (
    mw.load_schema, mw.load_grammar, mw.parse_grammar, mw.load_regex, mw.load_choice, mw.read_tools,
    mw.read_structural_tag, mw.read_constraint, mw.load_store,
)  # fmt: skip


@pytest.mark.parametrize(
    ("source", "call", "readers"),
    [
        (
            'start: "a"+',
            r"mw\.parse_grammar\(text\) reads a grammar in Lark",
            "load_grammar parse_grammar read_constraint",
        ),
        ('// mine\n\nstart: "a"+', r"mw\.parse_grammar\(text\)", "load_grammar parse_grammar read_constraint"),
        ('root ::= "a"', r"mw\.read_constraint\(text\) reads a grammar in GBNF", "read_constraint"),
        (r"\d+", r"mw\.load_regex\('\\\\d\+'\) reads a regular expression", ""),
        ("json", r"mw\.load_grammar\('json'\) reads this grammar of the library", "load_grammar read_constraint"),
        ('{"type": "string"}', r"mw\.load_schema\(.*\) reads a JSON schema", "load_schema"),
        ('["yes"]', r"mw\.load_choice\(\['yes'\]\) reads a list of answers", "load_choice"),
        (["yes"], r"mw\.load_choice\(\['yes'\]\) reads a list of answers", "load_choice"),
        ([TOOL], r"mw\.read_tools\(tools\) reads a list of tools", "read_tools"),
        (json.dumps([TOOL]), r"mw\.read_tools\(tools\) reads a list of tools", "read_tools"),
        (int, r"mw\.load_schema\(int\) reads a JSON schema or a type", "load_schema"),
        ("x.gbnf", r"mw\.read_constraint\('x\.gbnf'\) reads a grammar in GBNF", "read_constraint"),
        ("x.safetensors", r"mw\.load_store\('x\.safetensors'\) reads a store", "read_constraint load_store"),
    ],
)
def test_every_loader_names_the_one_that_is_meant(source: Any, call: str, readers: str) -> None:
    for load in LOADERS:
        is_text = isinstance(source, str)
        if load.__name__ in readers or load is (mw.load_regex if is_text else mw.load_store):
            continue  # which takes it, or is the one to take it: nearly every text is a pattern
        with pytest.raises(mw.MaskwrightError, match=call):
            load(source)


def test_arguments_in_another_order() -> None:
    store, grammar = mw.build_store("json", "python-tiny"), mw.load_grammar("json")
    order = r"; the store comes first, then the prompt, then the model: mw\.complete\(store, prompt, model\)"
    for wrong, shown in ((store, "a Store"), (grammar, "a Grammar"), (lambda tokens: [], "a function")):
        with pytest.raises(mw.MaskwrightError, match=f"the prompt is {shown}; expected a str or bytes{order}"):
            mw.complete("[1", wrong)  # type: ignore[arg-type]
    with pytest.raises(mw.MaskwrightError, match=r"the prompt is a list; .*each text has a call of its own"):
        mw.complete(store, ["[", "["])  # type: ignore[arg-type]
    with pytest.raises(mw.MaskwrightError, match=r"the model is a Store; .*mw\.MaskwrightLogitsProcessor"):
        mw.complete(store, "[", store)  # type: ignore[arg-type]
    with pytest.raises(
        mw.MaskwrightError, match=rf"there is no store '\[1', and the prompt 'json' is a grammar{order}"
    ):
        mw.complete("[1", "json")
    with pytest.raises(mw.MaskwrightError, match=rf"no store '\[1', and the prompt '.*' is a file{order}"):
        mw.complete("[1", __file__)
    with pytest.raises(mw.StoreError, match=r"there is no store json; .*mw\.load_grammar\('json'\) reads"):
        mw.complete("json", "[1")
    for source in ("python-tiny", store.vocabulary):
        for build in (mw.build_store, mw.cached_store):
            with pytest.raises(mw.GrammarError, match="is a vocabulary, not a grammar; the grammar comes first"):
                build(source, grammar)  # type: ignore[operator]


def test_what_is_completed_without_a_store() -> None:
    found = mw.complete(mw.load_choice(["é"]), "", mw.load_model())
    assert found.text == "é" and repr(found).startswith("Completion(data=b'\\xc3\\xa9', closing=")
    assert "tokens=" not in repr(found) and "interventions=" not in repr(found)
    assert mw.complete({"const": [1]}, "[").text.strip() == "1]"
    for wrong in (5, None):
        with pytest.raises(mw.GrammarError, match="a grammar is a name, a path or a text; this is a"):
            mw.complete(wrong, "")  # type: ignore[arg-type]


def test_options_that_are_handed_on_are_checked_where_they_are_given() -> None:
    store = mw.build_store("json", "python-tiny")
    with pytest.raises(mw.UnknownNameError, match=r"^complete has no option 'max_token'; did you mean 'max_tokens'\?"):
        mw.complete(store, "[", max_token=3)
    with pytest.raises(mw.UnknownNameError, match=r"^complete has no option 'vocabulary'"):
        mw.complete(store, "[", vocabulary=store.vocabulary)
    with pytest.raises(mw.UnknownNameError, match=r"^start_completion has no option 'tempreature'; did you mean 'temp"):
        start_completion(store, "[", None, tempreature=1)  # type: ignore[arg-type]
    with pytest.raises(mw.UnknownNameError, match=r"^validate has no option 'sead'; did you mean 'seed'"):
        mw.validate(store, sead=3)


def test_a_file_for_another_loader(tmp_path: Path) -> None:
    path = tmp_path / "mine.lark"
    path.write_text('start: "a"')
    with pytest.raises(mw.SchemaError, match=r"1:1: this is not JSON: .*: mw\.load_grammar\('.*mine\.lark'\) reads"):
        mw.load_schema(path)


def test_no_loader_names_itself_or_guesses() -> None:
    for load, source in (
        (mw.load_schema, "nothing.json"),
        (mw.parse_grammar, 'start: "a" b'),
        (mw.load_grammar, "nothing.lark"),
        (mw.load_choice, '["yes"]'),
        (mw.load_regex, b"x"),
        (mw.read_tools, "nothing"),
    ):
        with pytest.raises(mw.MaskwrightError) as found:
            load(source)  # type: ignore[operator]
        assert "mw." not in str(found.value), load
    with pytest.raises(mw.GrammarError, match=r"regular expression; .* did you mean 'python'"):
        mw.read_constraint("pyhton")


def test_a_grammar_of_another_dialect_is_no_pattern() -> None:
    with pytest.raises(mw.MaskwrightError, match=r"mw\.read_constraint\(text\) reads a grammar in GBNF"):
        mw.load_grammar('root ::= "a" [0-9]+')


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ('{"type": "object"}', "load_schema"),
        ({"type": "object"}, "load_schema"),
        ("answer.json", "load_schema"),
        (int, r"load_schema\(int\)"),
        (["yes"], r"load_choice\(\['yes'\]\)"),
    ],
)
def test_load_grammar_names_what_build_store_takes(source: Any, call: str) -> None:
    with pytest.raises(mw.MaskwrightError, match=call):
        mw.load_grammar(source)


def test_where_only_one_loader_can_be_meant_it_is_called() -> None:
    for source, text in (('{"type":\n"integer"}', b"12"), (["yes", "no"], b"yes"), ([b"a"], b"a")):
        store: Any = mw.build_store(source, "python-tiny")
        matcher = store.matcher()
        matcher.advance_bytes(text)
        assert matcher.is_accepting()
    several = json.dumps({"grammars": [{"lark_grammar": 'start: "x"'}]})
    assert not isinstance(mw.build_store(several, "python-tiny"), mw.SchemaStore)


def test_names_are_suggested_as_before() -> None:
    with pytest.raises(mw.UnknownNameError, match="did you mean 'python'"):
        mw.load_grammar("pyhton")


def test_what_is_empty_or_in_single_quotes(tmp_path: Path) -> None:
    for name in ("e.json", "e.lark"):
        (tmp_path / name).write_text("\n")
    with pytest.raises(mw.SchemaError, match=r"e\.json is empty; expected a JSON schema"):
        mw.load_schema(tmp_path / "e.json")
    with pytest.raises(mw.GrammarError, match=r"e\.lark is empty; expected rules"):
        mw.load_grammar(tmp_path / "e.lark")
    with pytest.raises(mw.SchemaError, match="JSON wants double quotes, and a dict of Python is taken as it is"):
        mw.load_schema("{'type': 'object'}")
    with pytest.raises(mw.GrammarError, match="literals have double quotes"):
        mw.parse_grammar("start: 'a'")


def test_a_pattern_without_a_text_is_refused_at_once() -> None:
    for pattern in ("(?=a)b", r"a\bb", "a^b"):
        with pytest.raises(mw.EmptyLanguageError, match=r"no text matches .* as a whole"):
            mw.load_regex(pattern)


def _all(kind: type[BaseException]) -> Iterator[type[BaseException]]:
    for one in kind.__subclasses__():
        yield one
        yield from _all(one)


def test_every_error_is_at_the_front_door() -> None:
    """But for those that do not leave the module that asks, and those of the stand-in for xgrammar, which it has."""
    for module in pkgutil.walk_packages(mw.__path__, "maskwright."):
        if ".cli." not in module.name and not module.name.endswith(("__main__", "_cuda", "vllm", "sglang")):
            try:
                importlib.import_module(module.name)
            except ImportError:
                continue  # of an engine or package that is not here
    inside = {"MissingError", "RefusedError", "TooManyItems", "TooManyChoices", "DecodingError", "UnreadableError"}
    found = {one for one in _all(mw.MaskwrightError) if one.__module__.startswith("maskwright.")}
    assert len(found) > 20
    assert {one.__name__ for one in found if getattr(mw, one.__name__, None) is not one} == inside


def test_a_misspelled_keyword_warns() -> None:
    schema = {"type": "object", "properties": {"a": {"minLenght": 3}, "minLenght": {}}, "requird": ["a"]}
    with pytest.warns(mw.MaskwrightWarning) as found:
        mw.load_schema(schema, name="s")
    assert sorted(str(one.message) for one in found) == [
        "s: /properties/a/minLenght: there is no keyword 'minLenght', so it changes nothing: write 'minLength', if that is meant",
        "s: /requird: there is no keyword 'requird', so it changes nothing: write 'required', if that is meant",
    ]
    assert {Path(one.filename).name for one in found} == {"test_meant.py"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [("datetime", "date-time"), ("e-mail", "email"), ("UUID", "uuid"), ("url", "uri"), ("date_time", "date-time")],
)
def test_a_misspelled_format_warns(name: str, meant: str) -> None:
    schema = {"properties": {"a": {"type": "string", "format": name}}}
    said = f"there is no format {name!r}"
    with pytest.warns(mw.MaskwrightWarning) as found:
        mw.load_schema(schema, name="s")
    assert [str(one.message) for one in found] == [
        f"s: /properties/a/format: {said}, so it changes nothing: write {meant!r}, if that is meant"
    ]
    (finding,) = mw.lint_schema(schema).findings
    assert (finding.severity, finding.pointer, finding.message) == ("warning", "/properties/a/format", said)
    assert finding.remedy == f"write {meant!r}, if that is meant"


def test_nothing_else_of_a_schema_warns() -> None:
    quiet = {
        "properties": {
            name: {"format": name} for name in ("int32", "uuid4", "password", "date", "byte", "decimal", "color")
        },
        "x-minLenght": 3,
        "optional": True,
        "readOnly": True,
        "const": {"minLenght": 1},
        "default": {"minLenght": 1},
        "$defs": {"requird": {"title": "t"}},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mw.load_schema(quiet)
        RequestCompiler("python-tiny").compile("json", '{"minLenght": 3}')
        mw.lint_schema({"minLenght": 3})


@pytest.mark.parametrize(
    ("family", "begin", "end"),
    [
        ("hermes", '<tool_call>\n{"name": "weather", "arguments": ', "}\n</tool_call>"),
        ("qwen", '<tool_call>\n{"name": "weather", "arguments": ', "}\n</tool_call>"),
        ("llama", '{"name": "weather", "parameters": ', "}"),
        ("llama-tag", "<function=weather>", "</function>"),
    ],
)
def test_families_of_models_write_calls(family: Any, begin: str, end: str) -> None:
    options = {} if family == "hermes" else {"family": family}
    matcher = mw.build_store(mw.read_tools([TOOL], **options), "python-tiny").matcher()
    matcher.advance_bytes(f'I look.\n{begin}{{"city": "'.encode())
    assert matcher.short_ending().data.decode() == f'Oslo"}}{end}'
    with pytest.raises(mw.IllegalTokenError, match="under tools, in weather"):
        matcher.advance_bytes(b"Rome")


def test_families_that_are_none() -> None:
    with pytest.raises(mw.UnknownNameError, match=r"no family is named 'hermse'; did you mean 'hermes'"):
        mw.read_tools([TOOL], family="hermse")  # type: ignore[arg-type]
    with pytest.raises(mw.GrammarError, match="end is missing: give both begin and end"):
        mw.read_tools([TOOL], begin="<x>")
    spec = json.dumps({"tools": [TOOL], "family": "llama"})
    assert RequestCompiler("python-tiny").compile("grammar", spec) is not None


def test_a_batch_of_several_stores() -> None:
    json_store, schema = (mw.build_store(of, "python-tiny") for of in ("json", {"enum": ["ab", "cd"]}))
    tools = mw.build_store(mw.read_tools([TOOL]), "python-tiny")
    batch: Any = mw.Batch([json_store, schema, tools])
    matchers: list[Any] = [store.matcher() for store in (json_store, schema, tools)]
    ids = [next(i for i in matcher.allowed_tokens() if i) for matcher in matchers]
    for slot, matcher in enumerate(matchers):
        assert batch.allowed_tokens(slot) == matcher.allowed_tokens()
        assert batch.allowed_tokens(slot, as_bytes=True) == matcher.allowed_tokens(as_bytes=True)
    for step in range(2):
        rows = np.zeros((3, json_store.n_words), np.int32)
        batch.fill(rows)
        for row, matcher in zip(rows, matchers, strict=True):
            wanted = np.zeros(json_store.n_words, np.int32)
            matcher.fill(wanted)
            assert (row == wanted).all()
        if step == 0:
            batch.advance(np.array(ids))
            for matcher, token in zip(matchers, ids, strict=True):
                matcher.advance(token)
    assert [batch.shortest_ending(i) == matchers[i].short_ending() for i in range(3)] == [True] * 3
    assert "may come next" in batch.explain(1, next(iter(matchers[1].allowed_tokens())))
    again = pickle.loads(pickle.dumps(batch))
    batch.copy(1, 0)
    batch.rollback(0)
    assert batch.min_bytes_left(0) == schema.matcher().min_bytes_left()
    assert again.min_bytes_left(1) == matchers[1].min_bytes_left()


@pytest.mark.parametrize("source", ["json", {"enum": ["ab", "cd"]}, [TOOL]])
def test_a_batch_of_one_store_of_any_kind(source: Any) -> None:
    store: Any = mw.build_store(mw.read_tools(source) if isinstance(source, list) else source, "python-tiny")
    batch, made, matcher = mw.Batch(store, 2), store.batch(2), store.matcher()
    assert type(batch) is type(made)
    first = matcher.allowed_tokens()
    batch.advance(np.array([-1, next(token for token in first if token)]))
    matcher.advance(next(token for token in first if token))
    assert batch.allowed_tokens(0) == first and batch.allowed_tokens(1) == matcher.allowed_tokens()
    assert batch.allowed_tokens(1, as_bytes=True) == matcher.allowed_tokens(as_bytes=True)
    with pytest.raises(mw.MaskwrightError, match="2"):
        batch.allowed_tokens(2)
    with pytest.raises(mw.MaskwrightError, match=r"size is missing; .* mw\.Batch\(store, 8\), or a list"):
        mw.Batch(store)  # type: ignore[call-overload]


def test_batches_that_are_none() -> None:
    store = mw.build_store("json", "python-tiny")
    with pytest.raises(mw.MaskwrightError, match="leave size out"):
        mw.Batch([store], 1)
    with pytest.raises(mw.MaskwrightError, match="no store is given"):
        mw.Batch([])
    with pytest.raises(mw.VocabularyError, match="different vocabularies"):
        mw.Batch([store, mw.build_store("json", [b"{", b"}", b'"', b"a", b"1"])])
    batch = mw.Batch([store, mw.build_store({"enum": ["ab"]}, "python-tiny")])
    with pytest.raises(mw.MaskwrightError, match=r"^slot 1: .* can be held to names"):
        batch.restrict(1, "STRING", ["a"])
    batch.advance_bytes(0, b"[")
    batch.restrict(0, "STRING", ['"a"'])
    with pytest.raises(mw.IllegalTokenError, match=r"^slot 0: .*terminal STRING is held to 1 names"):
        batch.advance_bytes(0, b'"b')
    assert batch.holds_names and not batch.is_accepting(0)


def test_a_name_of_no_store_that_is_nearly_a_grammars() -> None:
    with pytest.raises(mw.StoreError, match=r"there is no store pyton; .*; did you mean the grammar 'python'\?$"):
        mw.load_store("pyton")
    with pytest.raises(mw.StoreError, match=r"make one with `maskwright export`$"):
        mw.load_store("nothing-like-it")


def test_conflicts_that_are_decided_are_said() -> None:
    text = 'start: x "a" WORD | y "a" HEX\nx: "k"\ny: "k"\nWORD: /[a-z]+/\nHEX: /[0-9a-f]+/'
    with pytest.warns(mw.MaskwrightWarning, match="some texts of the rules are refused; `maskwright lint` shows where"):
        assert mw.parse_grammar(text).conflicts == "shift"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mw.parse_grammar(text, conflicts="shift").conflicts == "shift"
        mw.parse_grammar('start: "a" | start "b"')


def test_the_help_lists_every_option() -> None:
    options = {
        one.name
        for call in (start_completion, mw.generate)
        for one in inspect.signature(call).parameters.values()
        if one.kind is one.KEYWORD_ONLY
    } - {"vocabulary"}
    said = re.findall(r"\w+", mw.complete.__doc__ or "")
    assert len(options) > 12 and options <= set(said)


def test_an_instruction_is_read_by_the_model_and_not_by_the_grammar() -> None:
    model, told, seen = mw.load_model(), "Numbers, please: ", []
    store = mw.build_store("json", model)

    def recorded(tokens: Sequence[int]) -> Any:
        seen.append(b"".join(model.vocabulary.tokens[token] or b"" for token in tokens))
        return np.zeros(model.vocabulary.size)

    found = mw.complete(store, "[1", dataclasses.replace(model, model=recorded), instruction=told, max_tokens=20)
    assert json.loads(b"[1" + found.data) and seen[0].startswith(told.encode())
    whole = mw.generate(model, store.matcher(), model.tokens_of(told), max_tokens=20).run()
    assert whole.data == mw.complete(store, "", model, instruction=told, max_tokens=20).data
    with pytest.raises(mw.MaskwrightError, match="the instruction is 3, an int; expected bytes"):
        mw.complete(store, "[1", model, instruction=3)
