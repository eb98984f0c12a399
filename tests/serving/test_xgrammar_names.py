"""xgrammar's interface: the older form of structural tags, names that are not there, and the kinds of errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maskwright.analysis.errors import MaskwrightError
from maskwright.serving import xgrammar as xgr

torch = pytest.importorskip("torch")

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
TOKENS = [*(bytes([byte]) for byte in range(32, 127)), b"</s>"]


class Model:
    """As a pydantic model."""

    @staticmethod
    def model_json_schema() -> Any:
        return SCHEMA


@pytest.fixture(scope="module")
def compiler() -> Any:
    return xgr.GrammarCompiler(xgr.TokenizerInfo(TOKENS))


def item(schema: Any, name: str = "f") -> xgr.StructuralTagItem:
    return xgr.StructuralTagItem(begin=f"<{name}>", schema=schema, end=f"</{name}>")


TAGS = [item(json.dumps(SCHEMA)), item(SCHEMA, "g"), item(Model, "h")]
TRIGGERS = ["<"]
VERDICTS = {
    'free <f>{"a": 1}</f> and <h>{"a":2}</h>': True,
    '<g>{"a": 1}</g>': True,
    '<g>{"a": "x"}</g>': False,
    "<x>": False,
    '<f>{"a": 1}</g>': False,
    "": True,
}


def is_legal(compiled: Any, text: str) -> bool:
    matcher = xgr.GrammarMatcher(compiled)
    return matcher.accept_string(text) and matcher.is_completed()


def test_the_older_form_of_structural_tags(compiler: Any) -> None:
    for compiled in (
        compiler.compile_structural_tag(TAGS, TRIGGERS),
        compiler.compile_structural_tag(tags=TAGS, triggers=TRIGGERS),
        compiler.compile_grammar(xgr.Grammar.from_structural_tag(TAGS, TRIGGERS)),
        compiler.compile_grammar(xgr.Grammar.from_structural_tag(tags=TAGS, triggers=TRIGGERS)),
    ):
        assert {text: is_legal(compiled, text) for text in VERDICTS} == VERDICTS


def test_the_older_form_is_that_of_xgrammar(compiler: Any) -> None:
    theirs = pytest.importorskip("xgrammar")
    items = [theirs.StructuralTagItem(begin=each.begin, schema=SCHEMA, end=each.end) for each in TAGS]
    compiled = theirs.GrammarCompiler(theirs.TokenizerInfo(TOKENS)).compile_structural_tag(items, TRIGGERS)
    for text in VERDICTS:
        matcher = theirs.GrammarMatcher(compiled)
        assert (matcher.accept_string(text) and matcher.is_completed()) == VERDICTS[text], text
    assert is_legal(compiler.compile_structural_tag(items, TRIGGERS), '<f>{"a": 1}</f>')


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "expected a structural tag"),
        ((TAGS,), "triggers of a structural tag are a NoneType"),
        ((TAGS, "<"), "triggers of a structural tag are a str"),
        ((["<f>"], TRIGGERS), "a tag is a str; expected StructuralTagItem"),
        (([item("{")], TRIGGERS), "the schema of a tag is not JSON"),
        (([item({1})], TRIGGERS), "cannot be written as JSON"),
        ((TAGS, ["x"]), "begins with exactly one trigger"),
    ],
)
def test_tags_that_cannot_be_read(compiler: Any, given: Any, said: str) -> None:
    with pytest.raises(xgr.RefusedError, match=said):
        compiler.compile_structural_tag(*given)


def test_an_item_has_texts_around() -> None:
    with pytest.raises(xgr.RefusedError, match="the end of a tag is an int; expected a str"):
        xgr.StructuralTagItem(begin="a", schema={}, end=3)  # type: ignore[arg-type]
    assert "begin='<f>'" in repr(item({}))


def test_names_that_are_not_there_say_so(compiler: Any) -> None:
    compiled = compiler.compile_regex("a")
    matcher = xgr.GrammarMatcher(compiled)
    for of, name in (
        (xgr, "StructuralTag"), (xgr, "get_model_structural_tag"), (xgr, "testing"), (xgr, "contrib"),
        (xgr.Grammar, "concat"), (xgr.Grammar, "union"), (xgr.Grammar, "deserialize_json"),
        (xgr.Grammar.from_regex("a"), "serialize_json"), (compiled, "grammar"), (compiled, "serialize_json"),
        (matcher, "get_captures"), (xgr.BatchGrammarMatcher(), "batch_fill_temperature"),
        (xgr.TokenizerInfo, "from_vocab_and_metadata"), (compiled.tokenizer_info, "dump_metadata"),
    ):  # fmt: skip
        with pytest.raises(
            AttributeError, match=f"maskwright stands in for xgrammar here, and has no .*{name}"
        ) as error:
            getattr(of, name)
        assert isinstance(error.value, RuntimeError) and isinstance(error.value, MaskwrightError)
        assert not hasattr(of, name)
    for of in (xgr.Grammar, matcher):
        with pytest.raises(AttributeError, match="has no attribute 'concatenate'"):
            of.concatenate  # noqa: B018


def test_all_names_of_xgrammar_are_there_or_say_so() -> None:
    theirs = pytest.importorskip("xgrammar")
    for of in (
        "Grammar",
        "CompiledGrammar",
        "GrammarCompiler",
        "GrammarMatcher",
        "BatchGrammarMatcher",
        "TokenizerInfo",
    ):
        own = set(vars(getattr(theirs, of)))
        for name in sorted(one for one in own if not one.startswith("_")):
            try:
                getattr(getattr(xgr, of), name)
            except xgr.MissingError:
                continue
            except AttributeError:
                # what instances have
                assert name in {
                    "tokenizer_info",
                    "vocab_size",
                    "vocab_type",
                    "add_prefix_space",
                    "decoded_vocab",
                    "stop_token_ids",
                }


def test_the_size_of_what_is_kept() -> None:
    made = xgr.GrammarCompiler(xgr.TokenizerInfo(TOKENS))
    assert made.get_cache_size_bytes() == 0
    first = made.compile_regex("a+")
    assert made.get_cache_size_bytes() == first.memory_size_bytes > 0
    second = made.compile_grammar('root ::= "a"')
    assert made.get_cache_size_bytes() == first.memory_size_bytes + second.memory_size_bytes
    made.clear_cache()
    assert made.get_cache_size_bytes() == 0
    none = xgr.GrammarCompiler(xgr.TokenizerInfo(TOKENS), cache_enabled=False)
    none.compile_regex("a+")
    assert none.get_cache_size_bytes() == 0


def test_logits_of_another_kind_are_a_runtime_error() -> None:
    mask = xgr.allocate_token_bitmask(1, 64)
    with pytest.raises(RuntimeError, match="logits") as error:
        xgr.apply_token_bitmask_inplace(torch.zeros(1, 64, dtype=torch.int32), mask)
    assert isinstance(error.value, MaskwrightError)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: xgr.TokenizerInfo(["a", "\ud800"]), "is no UTF-8.* pass VocabType.RAW, and tokens as bytes"),
        (lambda: xgr.TokenizerInfo._detect_metadata_from_hf("[]"), "expected an object, as in tokenizer.json"),
        (lambda: xgr.TokenizerInfo._detect_metadata_from_hf("{"), "the tokenizer is not JSON"),
    ],
)
def test_tokenizers_that_cannot_be_read(call: Any, said: str) -> None:
    with pytest.raises(xgr.RefusedError, match=said):
        call()
    assert xgr.TokenizerInfo(["a", "b"]).stop_token_ids == []
