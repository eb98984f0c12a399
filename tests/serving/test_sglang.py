"""The backend in SGLang's own classes: its registry, its cache, its reasoning wrapper, its walk over draft trees."""

from __future__ import annotations

import json
import re
import sys
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from maskwright.analysis.errors import (
    DeadEndError,
    IllegalTokenError,
    MaskwrightError,
    MissingExtraError,
    VocabularyError,
)
from maskwright.analysis.schema.text_patterns import load_regex
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.serving import sglang as ours
from maskwright.serving.options import RequestOptions
from maskwright.serving.settings import ServerSettings
from maskwright.stores.build import build_store

torch = pytest.importorskip("torch")
base = pytest.importorskip(
    "sglang.srt.constrained.base_grammar_backend",
    reason="SGLang is not installed: pip install --no-deps sglang",
    exc_type=ImportError,
)

EOS = 256
SIZE = 300
"""The model's logits: more than the tokenizer has ids."""


def tokens() -> Vocabulary:
    pieces = [bytes([byte]) for byte in range(256)] + [b"", b'{"', b'":', b"true", b"aa", b"<think>"]
    return Vocabulary("bytes", tuple([*pieces[:-1], b""]), {EOS: "</s>", 261: "<think>"}, (EOS,))


@pytest.fixture
def backend() -> Any:
    return ours._classes().backend(tokens(), SIZE, {EOS})


def allowed(row: Any) -> list[int]:
    bits = np.unpackbits(np.ascontiguousarray(row.numpy()).view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).tolist()


def compiled(backend: Any, kind: str, text: str) -> Any:
    value, is_cached = backend.get_cached_or_future_value((kind, text), False)
    assert not is_cached and isinstance(value, Future)
    found = value.result()
    backend.set_cache((kind, text), found.copy())
    return found


def test_registering_makes_the_backend_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES

    ours.register()
    ours.register()
    assert GRAMMAR_BACKEND_CHOICES.count("maskwright") == 1
    serving = SimpleNamespace(
        reasoning_parser=None, enable_strict_thinking=False, constrained_json_whitespace_pattern=None,
        constrained_json_disable_any_whitespace=True, constrained_json_max_whitespace_cnt=None,
    )  # fmt: skip
    monkeypatch.setattr("sglang.srt.runtime_context.get_serving", lambda: serving)
    monkeypatch.setattr(base, "get_exec", lambda: SimpleNamespace(kernel=SimpleNamespace(grammar_backend="maskwright")))
    made = base.create_grammar_backend(None, tokens(), SIZE, {EOS})
    assert isinstance(made, base.BaseGrammarBackend)
    grammar = made.dispatch_json('{"type": "object", "required": ["a"]}')
    grammar.accept_token(ord("{"))
    mask = grammar.allocate_vocab_mask(SIZE, 1, "cpu")
    grammar.fill_vocab_mask(mask, 0)
    assert ord(" ") not in allowed(mask[0]) and ord('"') in allowed(mask[0])
    assert isinstance(made.dispatch_regex("a+"), ours.GrammarMasks)


def test_without_sglang_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sglang.srt.arg_groups.choices", None)
    with pytest.raises(MissingExtraError, match="pip install sglang"):
        ours.register()


@pytest.mark.parametrize(
    ("kind", "text", "begin", "wanted"),
    [
        ("json", '{"const": true}', b"", [ord("t"), 259]),
        ("json", "$$ANY$$", b"tru", [ord("e")]),
        ("regex", "aab", b"", [ord("a"), 260]),
        ("ebnf", 'root ::= "a" ("b" | "c")', b"a", [ord("b"), ord("c")]),
        ("full_assistant_ebnf", 'start: "xy"', b"x", [ord("y")]),
        ("ebnf", 'start: "a" %json {"const": true}', b"a", [ord("t"), 259]),
        ("ebnf", 'start: "a" <think> "b"', b"a", [261]),
        ("ebnf", 'start: "a" B\n%regex B /b[cd]/\n', b"ab", [ord("c"), ord("d")]),
    ],
)  # fmt: skip
def test_each_kind_of_constraint_is_masked(backend: Any, kind: str, text: str, begin: bytes, wanted: list[int]) -> None:
    grammar = compiled(backend, kind, text)
    for token in begin:
        grammar.accept_token(token)
    mask = grammar.allocate_vocab_mask(SIZE, 2, "cpu")
    grammar.fill_vocab_mask(mask, 1)
    space = [ord(each) for each in " \t\n\r"]
    assert [token for token in allowed(mask[1]) if token not in space] == wanted
    assert mask[0].eq(-1).all()


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("json", '{"type": "objct"}', "objct"),
        ("json", "{", "JSON"),
        ("json", '{"multipleOf": 0}', "multipleOf"),
        ("regex", "(", "pattern|expression|parenthes"),
        ("ebnf", "root ::= nothing", "nothing"),
        ("structural_tag", '{"type": "structural_tag", "format": {"type": "no_such_format"}}', "structural tag|no_such_format"),
        ("json", "{\"const\": \"\\u0000\"}", "NUL"),
        ("ebnf", 'start: "a" <|call|>', "no special token '<|call|>'"),
        ("ebnf", 'start: %json "x.json"', "expected a schema"),
        ("ebnf", 'start: B\n%grammar B x.lark\n', "may not be read here"),
    ],
)  # fmt: skip
def test_refused_constraints_say_why_and_raise_nothing(backend: Any, kind: str, text: str, message: str) -> None:
    found = compiled(backend, kind, text)
    assert isinstance(found, base.InvalidGrammarObject)
    assert re.search(message, found.error_message), found.error_message
    again, is_cached = backend.get_cached_or_future_value((kind, text), False)
    assert is_cached and isinstance(again, base.InvalidGrammarObject)


def test_a_cached_constraint_begins_anew(backend: Any) -> None:
    first = compiled(backend, "regex", "ab")
    first.accept_token(ord("a"))
    second, is_cached = backend.get_cached_or_future_value(("regex", "ab"), False)
    assert is_cached and second.grammar_stats.is_cache_hit and not first.grammar_stats.is_cache_hit
    second.accept_token(ord("a"))
    with pytest.raises(ValueError, match="not legal here"):
        second.accept_token(ord("a"))
    second.accept_token(ord("b"))
    assert not second.is_terminated()
    second.accept_token(EOS)
    assert second.is_terminated() and second.current_token == EOS
    second.accept_token(ord("a"))  # ignored, as by SGLang's own
    second.rollback(2)
    assert not second.is_terminated()
    second.accept_token(ord("b"))


def test_the_cache_is_bounded(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "MOST_KEPT", 3)
    for n in range(5):
        backend.set_cache(("regex", str(n)), n)
    assert [key[1] for key in backend.cache] == ["2", "3", "4"]


def test_batched_filling_is_row_by_row(backend: Any) -> None:
    """Also with SGLang's wrapper of requests that reason among the rows."""
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarObject

    patterns = ["aab", "b+", "c{3}"]
    plain = [backend.dispatch_regex(pattern) for pattern in patterns]
    thinking, answering = (ReasonerGrammarObject(backend.dispatch_regex("z"), [7]) for _ in range(2))
    thinking.maybe_init_reasoning(True)
    answering.maybe_init_reasoning(False)
    rows = [base.GrammarRow(n, each) for n, each in zip((0, 2, 5, 3, 4), [*plain, thinking, answering], strict=True)]
    mask = plain[0].allocate_vocab_mask(SIZE, 6, "cpu")
    plain[0].fill_vocab_mask_batched(rows, mask)
    expected = torch.full_like(mask, -1)
    base.BaseGrammarObject.fill_vocab_mask_batched(rows, expected)
    assert torch.equal(mask, expected)
    assert mask[1].eq(-1).all() and mask[3].eq(-1).all()
    assert allowed(mask[4]) == [ord("z")]
    plain[0].reset_vocab_mask(mask)
    assert mask.eq(-1).all()


@pytest.mark.parametrize("rows", [1, 3])
def test_logits_are_masked_padding_included(backend: Any, rows: int) -> None:
    grammar = backend.dispatch_regex("ab")
    mask = grammar.allocate_vocab_mask(SIZE, rows, "cpu")
    grammar.fill_vocab_mask(mask, 0)
    logits = torch.zeros((rows, SIZE))
    moved = grammar.move_vocab_mask(mask, "cpu")
    base.GrammarMask(grammar, moved).apply(logits)
    assert logits[0].eq(0).nonzero().flatten().tolist() == [ord("a")]
    assert logits[1:].eq(0).all(), "rows without a constraint are left alone, also where the last word is not full"


def test_a_mask_that_cannot_be_made_aborts_its_request_alone(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = backend.dispatch_regex("ab"), backend.dispatch_regex("ab")

    def fill(words: Any) -> None:
        raise DeadEndError("nothing can come next")

    monkeypatch.setattr(bad.matcher, "fill", fill)
    mask = bad.allocate_vocab_mask(SIZE, 2, "cpu")
    bad.fill_vocab_mask_batched([base.GrammarRow(0, bad), base.GrammarRow(1, good)], mask)
    assert allowed(mask[0]) == [EOS] and allowed(mask[1]) == [ord("a")]
    with pytest.raises(ValueError, match="nothing can come next"):
        bad.accept_token(EOS)
    assert not bad.is_terminated()
    bad.rollback(0)
    assert bad._failed is None


def test_wrong_tokens_are_errors_of_their_request(backend: Any) -> None:
    grammar = backend.dispatch_regex("ab")
    for token in (SIZE - 1, SIZE + 10**9, 261, EOS):
        with pytest.raises(IllegalTokenError):
            grammar.accept_token(token)
    grammar.accept_token(ord("a"))


def test_draft_trees_get_the_masks_of_fresh_matchers(backend: Any) -> None:
    """SGLang's own walk over a tree of drafts, legal and illegal ones, and the text is where it was."""
    traverse_tree = _traverse_tree()
    grammar = backend.dispatch_regex("a(ab|c)*")
    grammar.accept_token(ord("a"))
    #        0 -> 1 'a' -> 3 'b' -> 5 'c'
    #          \_ 2 'c' -> 4 'x' (illegal)
    #                   \_ 6 EOS
    child = torch.tensor([1, 3, 4, 5, -1, -1, -1])
    sibling = torch.tensor([-1, 2, -1, -1, 6, -1, -1])
    drafts = torch.tensor([ord("a"), ord("a"), ord("c"), ord("b"), ord("x"), ord("c"), EOS])
    mask = grammar.allocate_vocab_mask(SIZE, 7, "cpu")
    traverse_tree(child, sibling, drafts, grammar, mask, vocab_size=SIZE)
    for node, text in {0: b"a", 1: b"aa", 2: b"ac", 3: b"aab", 5: b"aabc"}.items():
        fresh = backend.dispatch_regex("a(ab|c)*")
        for token in text:
            fresh.accept_token(token)
        expected = fresh.allocate_vocab_mask(SIZE, 1, "cpu")
        fresh.fill_vocab_mask(expected, 0)
        assert torch.equal(mask[node], expected[0]), node
    assert mask[4].eq(-1).all() and mask[6].eq(-1).all()
    grammar.accept_token(ord("c"))
    grammar.accept_token(EOS)
    assert grammar.is_terminated()


def _traverse_tree() -> Any:
    """SGLang's function; its module wants a GPU's packages, so without them the function alone is read."""
    try:
        from sglang.srt.speculative.spec_utils import traverse_tree
    except ImportError:
        import ast
        from importlib.util import find_spec
        from pathlib import Path
        from typing import Optional

        spec = find_spec("sglang")
        assert spec is not None and spec.submodule_search_locations
        path = Path(spec.submodule_search_locations[0]) / "srt" / "speculative" / "spec_utils.py"
        module = ast.parse(path.read_text())
        found = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "traverse_tree"]
        names: dict[str, Any] = {"torch": torch, "BaseGrammarObject": Any, "Optional": Optional}
        exec(compile(ast.Module(found, []), str(path), "exec"), names)
        return names["traverse_tree"]
    return traverse_tree


def test_reasoning_is_free_and_the_answer_is_masked(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrapper is SGLang's own; it needs `allocate_vocab_mask` and others of the backend."""
    serving = SimpleNamespace(
        reasoning_parser="qwen3", enable_strict_thinking=True, constrained_json_whitespace_pattern=None,
        constrained_json_disable_any_whitespace=False, constrained_json_max_whitespace_cnt=None,
    )  # fmt: skip
    monkeypatch.setattr("sglang.srt.runtime_context.get_serving", lambda: serving)
    monkeypatch.setattr(ours, "server_vocabulary", lambda *_, **options: tokens())

    class Tokenizer:
        def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
            return [261] if text.startswith(("<think>", "</think>", "<tool")) else list(text.encode())

        def decode(self, ids: list[int], **options: Any) -> str:
            return "".join(map(str, ids))

        def get_vocab(self) -> dict[str, int]:
            return {}

    made = ours.make_backend(None, Tokenizer(), SIZE, {EOS})
    assert type(made).__name__ == "ReasonerGrammarBackend"
    found, _ = made.get_cached_or_future_value(("regex", "ab"), True)
    grammar = found.result()
    mask = grammar.allocate_vocab_mask(SIZE, 1, "cpu")
    grammar.fill_vocab_mask(mask, 0)
    assert len(allowed(mask[0])) > 290
    for token in [*b"so", 261]:
        grammar.accept_token(token)
    grammar.fill_vocab_mask(mask, 0)
    assert allowed(mask[0]) == [ord("a")]
    grammar.accept_token(ord("a"))
    grammar.rollback(1)
    grammar.fill_vocab_mask(mask, 0)
    assert allowed(mask[0]) == [ord("a")]
    logits = torch.zeros((1, SIZE))
    grammar.apply_vocab_mask(logits=logits, vocab_mask=mask)
    assert int(logits.eq(0).sum()) == 1


@pytest.mark.parametrize("size", [200, 257, 262, 263, 400])
def test_rows_are_as_wide_as_the_logits(size: int) -> None:
    """The tokenizer may have more ids than the model gives logits, or fewer."""
    ends = {EOS} if size > EOS else {5}
    backend = ours._classes().backend(tokens(), size, {*ends, 500})
    grammar = backend.dispatch_regex("(aa)+")
    mask = backend.allocate_vocab_mask(size, 3, "cpu")
    assert mask.shape == (3, -(-size // 32)) == grammar.allocate_vocab_mask(size, 3, "cpu").shape
    grammar.fill_vocab_mask(mask, 1)
    assert allowed(mask[1]) == [token for token in (ord("a"), 260) if token < size]
    for _ in range(2):
        grammar.accept_token(ord("a"))
    grammar.fill_vocab_mask(mask, 1)
    assert set(ends) <= set(allowed(mask[1])) and max(allowed(mask[1])) < size


@pytest.mark.parametrize("is_allowed", [True, False])
@pytest.mark.parametrize("reset", [True, False])
def test_token_filters_are_sglangs(backend: Any, is_allowed: bool, reset: bool) -> None:
    """Against SGLang's own operation on tensors."""
    theirs = pytest.importorskip("sglang.srt.constrained.torch_ops.token_filter_torch_ops")
    mask = torch.from_numpy(np.random.default_rng(1).integers(-(2**31), 2**31, (3, 10)).astype(np.int32))
    expected = mask.clone()
    chosen = [0, 31, 32, 63, 299, 31]
    backend.set_token_filter(mask, chosen, 1, is_allowed, reset)
    theirs.set_token_filter_torch(expected, chosen, 1, is_allowed, reset)
    assert torch.equal(mask, expected)


def test_settings_about_white_space_are_followed() -> None:
    def found(**settings: Any) -> RequestOptions:
        names = ("whitespace_pattern", "disable_any_whitespace", "max_whitespace_cnt")
        return ours._options(SimpleNamespace(**{f"constrained_json_{name}": settings.get(name) for name in names}))

    assert found() == RequestOptions()
    assert found(disable_any_whitespace=True).whitespace == "compact"
    assert found(whitespace_pattern=" ?").whitespace == " ?"
    assert found(max_whitespace_cnt=2).whitespace == 2
    backend = ours._classes().backend(tokens(), SIZE, {EOS}, found(max_whitespace_cnt=1))
    grammar = backend.dispatch_json(json.dumps({"type": "array"}))
    grammar.accept_token(ord("["))
    grammar.accept_token(ord(" "))
    with pytest.raises(IllegalTokenError):
        grammar.accept_token(ord(" "))


def test_settings_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Stores by name, limits, white space where SGLang says nothing; what SGLang cannot have is refused."""
    build_store(load_regex("stored"), tokens()).save(tmp_path / "s.safetensors")
    serving = SimpleNamespace(
        reasoning_parser=None, enable_strict_thinking=False, constrained_json_whitespace_pattern=None,
        constrained_json_disable_any_whitespace=False, constrained_json_max_whitespace_cnt=None,
    )  # fmt: skip
    monkeypatch.setattr("sglang.srt.runtime_context.get_serving", lambda: serving)
    for name, value in {
        "STORES": f"mine={tmp_path}/s.safetensors",
        "WHITESPACE": "compact",
        "MOST_BYTES": "50",
    }.items():
        monkeypatch.setenv(f"MASKWRIGHT_SGLANG_{name}", value)
    made = ours.make_backend(None, tokens(), SIZE, {EOS})
    grammar = made.dispatch_ebnf("mine")
    for token in b"stored":
        grammar.accept_token(token)
    with pytest.raises(IllegalTokenError):
        made.dispatch_json("true").accept_token(ord(" "))
    assert "at most 50 bytes" in made.dispatch_regex("a" * 60).error_message
    monkeypatch.setenv("MASKWRIGHT_SGLANG_HYBRID", "1")
    with pytest.raises(MaskwrightError, match="MASKWRIGHT_SGLANG_HYBRID is set"):
        ours.make_backend(None, tokens(), SIZE, {EOS})


def test_texts_end_where_the_server_ends_them_whatever_a_store_says(tmp_path: Any) -> None:
    """A configured store that was built with another end of text; its copy for the next request too."""
    pieces = [*[bytes([byte]) for byte in range(256)], b"", b""]
    for end in (256, 257):
        vocabulary = Vocabulary.from_tokens(pieces, eos=[end])
        build_store(load_regex("ab?"), vocabulary).save(tmp_path / f"{end}.safetensors")
    settings = ServerSettings(stores=(("mine", str(tmp_path / "256.safetensors")),))
    made = ours._classes().backend(Vocabulary.from_tokens(pieces, eos=[257]), SIZE, {257}, settings=settings)
    grammar = made.dispatch_ebnf("mine")
    for each in (grammar, grammar.copy()):
        each.accept_token(ord("a"))
        mask = each.allocate_vocab_mask(SIZE, 1, "cpu")
        each.fill_vocab_mask(mask, 0)
        assert allowed(mask[0]) == [ord("b"), 257]
        with pytest.raises(IllegalTokenError):
            each.accept_token(256)
        each.accept_token(257)
        assert each.is_terminated()


def test_a_store_for_more_tokens_than_the_model_has_ends_the_start(tmp_path: Any) -> None:
    long = Vocabulary.from_tokens([*[bytes([byte]) for byte in range(256)], b"", *[b""] * 100], eos=[256])
    build_store(load_regex("ab?"), long).save(tmp_path / "s.safetensors")
    short = Vocabulary.from_tokens(long.tokens[:257], eos=[256])
    settings = ServerSettings(stores=(("mine", str(tmp_path / "s.safetensors")),))
    with pytest.raises(VocabularyError, match="'mine' has 357 tokens and the model 300"):
        ours._classes().backend(short, SIZE, {EOS}, settings=settings)
