"""xgrammar's interface: masks are those of matchers, whatever is accepted, taken back, forked or drafted."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from mask_bits import ids

from maskwright.serving import xgrammar as xgr
from maskwright.serving.options import RequestLimits

torch = pytest.importorskip("torch")

TOKENS = [*(bytes([byte]) for byte in range(32, 127)), b"aa", b"ab", b'{"', "é".encode(), b"</s>", b""]
STOP = len(TOKENS) - 2
SIZE = 130


def number(text: str) -> int:
    return TOKENS.index(text.encode())


@pytest.fixture(scope="module")
def compiler() -> Any:
    return xgr.GrammarCompiler(xgr.TokenizerInfo(TOKENS, vocab_size=SIZE))


def allowed(matcher: Any) -> list[int]:
    mask = xgr.allocate_token_bitmask(2, SIZE)
    assert matcher.fill_next_token_bitmask(mask, 1)
    assert mask[0].eq(-1).all()
    return np.flatnonzero(np.unpackbits(mask[1].numpy().view(np.uint8), bitorder="little")).tolist()


def test_tokens_are_read_as_they_are_written() -> None:
    raw = xgr.TokenizerInfo(["a", "</s>", ""])
    assert (raw.stop_token_ids, raw.special_token_ids, raw.decoded_vocab) == ([1], [2], [b"a", b"</s>", b""])
    pieces = xgr.TokenizerInfo(["<0x0A>", "\u2581b", "</s>"], xgr.VocabType.BYTE_FALLBACK, vocab_size=5)
    assert pieces.decoded_vocab[:2] == [b"\n", b" b"] and pieces.vocab_size == 5
    levels = xgr.TokenizerInfo(["Ġa", "Ċ", "</s>"], xgr.VocabType.BYTE_LEVEL, stop_token_ids=2)
    assert levels.decoded_vocab[:2] == [b" a", b"\n"]
    with pytest.raises(xgr.RefusedError, match="out of range"):
        xgr.TokenizerInfo(["a"], stop_token_ids=[4])


def test_a_text_is_accepted_masked_taken_back_and_ended(compiler: Any) -> None:
    matcher = xgr.GrammarMatcher(compiler.compile_grammar('root ::= "a" ("a" | "b")'))
    assert allowed(matcher) == [number("a"), number("aa"), number("ab")]
    assert (
        not matcher.accept_token(number("b")) and not matcher.accept_token(SIZE + 5) and not matcher.accept_token(STOP)
    )
    assert matcher.accept_token(number("a")) and matcher.accept_string("b")
    assert matcher.is_completed() and not matcher.is_terminated() and allowed(matcher) == [STOP]
    other = matcher.fork()
    assert matcher.accept_token(STOP) and matcher.is_terminated() and not other.is_terminated()
    assert not matcher.accept_token(STOP)
    with pytest.raises(RuntimeError, match="ended with a stop token"):
        allowed(matcher)
    matcher.rollback(2)
    assert allowed(matcher) == [number("a"), number("b")]
    with pytest.raises(RuntimeError, match="cannot take back 2"):
        matcher.rollback(2)
    matcher.reset()
    assert allowed(matcher) == [number("a"), number("aa"), number("ab")]


def test_any_number_of_steps_can_be_taken_back(compiler: Any) -> None:
    matcher = xgr.GrammarMatcher(compiler.compile_regex("(ab){400}"))
    first = allowed(matcher)
    for n in range(700):
        assert matcher.accept_token(number("ab"[n % 2]))
    matcher.rollback(699)
    assert allowed(matcher) == [number("b")]
    matcher.rollback(1)
    assert allowed(matcher) == first


def test_stop_tokens_can_be_others_or_none(compiler: Any) -> None:
    compiled = compiler.compile_regex("a+")
    other = xgr.GrammarMatcher(compiled, override_stop_tokens=number("z"))
    assert other.accept_string("a") and allowed(other) == [number("a"), number("z"), number("aa")]
    assert not other.accept_token(STOP) and other.accept_token(number("z")) and other.is_terminated()
    none = xgr.GrammarMatcher(compiled, terminate_without_stop_token=True)
    assert none.accept_string("a") and none.is_terminated()
    assert allowed(none) == [number("a"), number("aa")]
    assert none.accept_string("a") and not none.accept_token(STOP), "a whole text may go on"


def test_stop_tokens_never_come_in_a_text_that_ends_without_one(compiler: Any) -> None:
    grammar = compiler.compile_grammar('root ::= "a"* "b"')
    matcher = xgr.GrammarMatcher(grammar, override_stop_tokens=number("a"), terminate_without_stop_token=True)
    assert number("b") in allowed(matcher) and number("a") not in allowed(matcher)
    assert not matcher.accept_token(number("a")) and not matcher.accept_token([number("b")])  # type: ignore[arg-type]
    assert matcher.accept_token(np.array(number("b"))) and matcher.is_terminated()  # type: ignore[arg-type]


def test_the_text_that_must_come_is_found(compiler: Any) -> None:
    matcher = xgr.GrammarMatcher(compiler.compile_grammar('root ::= "abé" ("x" | "y") "zz"'))
    assert matcher.find_jump_forward_string() == "abé"
    assert matcher.accept_string("abéx") and matcher.find_jump_forward_string() == "zz"
    assert matcher.accept_string("zz") and matcher.find_jump_forward_string() == ""


def test_the_tokens_that_must_come_are_found() -> None:
    words = ["", "a", "ab", "abc", "b", "c", "d", "de", "x", "y", "z", "zz", "zzz"]
    compiler = xgr.GrammarCompiler(xgr.TokenizerInfo(words, stop_token_ids=[0]))
    for text, rest, found in (
        ('"abcd" ("x" | "y")', "abcd", ["abc"]),  # d may yet be de
        ('"abcab" ("x" | "y")', "abcab", ["abc"]),
        ('"abcde" ("x" | "y")', "abcde", ["abc", "de"]),
        ('"zzzz" ("x" | "y")', "zzzz", ["zzz"]),
        ('"x" | "y"', "", []),
        ('"x"?', "", []),
    ):
        matcher = xgr.GrammarMatcher(compiler.compile_grammar(f"root ::= {text}"))
        assert matcher.find_jump_forward_string() == rest
        tokens = matcher.find_jump_forward_tokens()
        assert [words[token] for token in tokens] == found
        assert all(map(matcher.accept_token, tokens))
    stopped = xgr.GrammarMatcher(compiler.compile_grammar('root ::= "abcx"'), override_stop_tokens=[3])
    assert [words[token] for token in stopped.find_jump_forward_tokens()] == ["ab", "c", "x"]


def test_a_tokenizer_without_tokens_reads_strings() -> None:
    tag = {"type": "json_schema", "json_schema": {"type": "object"}}
    compiler = xgr.GrammarCompiler(xgr.TokenizerInfo([]))
    for compiled, right, wrong in (
        (compiler.compile_structural_tag({"type": "structural_tag", "format": tag}), "{}", "[]"),
        (compiler.compile_lark('start: "a" %json {"type": "integer"}'), "a12", "a1.5"),
        (compiler.compile_grammar('root ::= "é"'), "é", "e"),
        (compiler.compile_json_schema(True), "null", "nil"),
        (compiler.compile_regex("a"), "a", "b"),
    ):
        matcher = xgr.GrammarMatcher(compiled, terminate_without_stop_token=True)
        assert not matcher.accept_string(wrong) and not any(map(matcher.accept_token, (0, 97, 255)))
        assert matcher.accept_string(right) and matcher.is_terminated()
        matcher.reset()
        bitmask = np.full((1, 8), -1, np.int32)
        with pytest.raises(xgr.RefusedError, match="the tokenizer has no tokens"):
            matcher.fill_next_token_bitmask(bitmask)


def test_arguments_of_grammars_that_are_not_used() -> None:
    info = xgr.TokenizerInfo(["a", "b"])
    compiler = xgr.GrammarCompiler(info)
    for grammar in (
        xgr.Grammar.from_lark('start: "a"', tokenizer_info=info),
        xgr.Grammar.from_regex("a", print_converted_ebnf=False),
        xgr.Grammar.from_json_schema({"const": 1}, print_converted_ebnf=False),
    ):
        assert isinstance(compiler.compile_grammar(grammar), xgr.CompiledGrammar)
    with pytest.raises(xgr.RefusedError, match="named grammars"):
        compiler.compile_grammar(xgr.Grammar.from_lark('start: "a"', named_grammars={"b": "start: /b/"}))


def test_draft_trees(compiler: Any) -> None:
    compiled = compiler.compile_regex("a(ab|c)*")
    matcher = xgr.GrammarMatcher(compiled)
    matcher.accept_string("a")
    child, sibling = torch.tensor([1, 3, 4, 5, -1, -1, -1]), torch.tensor([-1, 2, -1, -1, 6, -1, -1])
    drafts = torch.tensor([0, *(number(c) for c in "acbxc"), STOP])
    mask = xgr.allocate_token_bitmask(7, SIZE)
    assert matcher.traverse_draft_tree(child, sibling, drafts, mask)
    for node, text in {0: "a", 1: "aa", 2: "ac", 3: "aab", 5: "aabc"}.items():
        fresh = xgr.GrammarMatcher(compiled)
        assert fresh.accept_string(text)
        expected = xgr.allocate_token_bitmask(1, SIZE)
        fresh.fill_next_token_bitmask(expected)
        assert torch.equal(mask[node], expected[0]), node
    assert mask[4].eq(0).all() and mask[6].eq(0).all()
    matcher.rollback(1)
    with pytest.raises(RuntimeError, match="reached twice"):
        matcher.traverse_draft_tree(torch.tensor([1, 0]), torch.tensor([-1, -1]), torch.tensor([0, number("a")]), mask)
    assert allowed(matcher) == allowed(xgr.GrammarMatcher(compiled))


def test_batches(compiler: Any) -> None:
    matchers = [xgr.GrammarMatcher(compiler.compile_regex(pattern)) for pattern in ("ab", "ba")]
    batch = xgr.BatchGrammarMatcher()
    assert batch.batch_accept_token(matchers, [number("a"), number("a")]) == [True, False]
    assert batch.batch_accept_string(matchers, ["x", "b"]) == [False, True]
    mask = xgr.allocate_token_bitmask(3, SIZE)
    batch.batch_fill_next_token_bitmask(matchers, mask, [2, 0])
    assert mask[1].eq(-1).all() and not mask[0].eq(-1).all()
    batch.batch_rollback(matchers, [1, 1])
    with pytest.raises(RuntimeError, match="one for each"):
        batch.batch_rollback(matchers, [1])
    with pytest.raises(RuntimeError, match="dtype float32"):
        batch.batch_fill_next_token_bitmask(matchers, torch.zeros((2, 5)))


def test_masks_on_logits() -> None:
    mask = torch.tensor([[0b101, 0], [-1, -1]], dtype=torch.int32)
    logits = torch.zeros((2, 70))
    xgr.apply_token_bitmask_inplace(logits, mask)
    assert logits[0].eq(0).nonzero().flatten().tolist() == [0, 2]
    assert logits[1, :64].eq(0).all() and logits[1, 64:].eq(-torch.inf).all(), "columns past the mask are refused"
    part = torch.zeros((2, 70))
    xgr.apply_token_bitmask_inplace(part, mask, vocab_size=40, indices=[0])
    assert (
        part[0, :40].eq(0).nonzero().flatten().tolist() == [0, 2] and part[0, 40:].eq(0).all() and part[1].eq(0).all()
    )
    with pytest.raises(RuntimeError, match="rows"):
        xgr.apply_token_bitmask_inplace(part, mask, indices=[2])


def test_json_schemas(compiler: Any) -> None:
    def accepts(text: str, **options: Any) -> bool:
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
        matcher = xgr.GrammarMatcher(compiler.compile_json_schema(schema, **options))
        return matcher.accept_string(text) and matcher.is_completed()

    assert accepts('{"a": 1}') and not accepts('{"b": 1}') and accepts('{"b": 1}', strict_mode=False)
    assert not accepts('{"a":  1}', max_whitespace_cnt=1)
    schema = {
        "type": "object",
        "properties": {"why": {"type": "string"}, "so": {"type": "integer"}},
        "required": ["so"],
    }
    for any_order in (False, True):
        matcher = xgr.GrammarMatcher(compiler.compile_json_schema(schema, any_order=any_order))
        assert matcher.accept_string('{"so": 1, "why": ""}') == any_order
    anything = xgr.GrammarMatcher(compiler.compile_builtin_json_grammar())
    assert anything.accept_string("[1]") and anything.is_completed()


WRITTEN = {
    "dumps": json.dumps({"a": 1, "b": [1, 2]}),
    "compact": json.dumps({"a": 1, "b": [1, 2]}, separators=(",", ":")),
    "indent 2": json.dumps({"a": 1, "b": [1, 2]}, indent=2),
    "indent 4": json.dumps({"a": 1, "b": [1, 2]}, indent=4),
    "indent 0": json.dumps({"a": 1, "b": [1, 2]}, indent=0),
    "mixed": '{ "a" :1 ,\n"b":[1,  2]}',
    "empty": '{"a": 1, "b": []}',
    "empty in lines": '{\n  "a": 1,\n  "b": []\n}',
}


@pytest.mark.parametrize(
    ("options", "accepted"),
    [
        ({}, set(WRITTEN)),
        ({"indent": 2}, set(WRITTEN)),
        ({"separators": (",", ":")}, set(WRITTEN)),
        ({"any_whitespace": False}, {"dumps", "empty"}),
        ({"any_whitespace": False, "separators": (", ", ": ")}, {"dumps", "empty"}),
        ({"any_whitespace": False, "separators": [",", ":"]}, {"compact"}),
        ({"any_whitespace": False, "max_whitespace_cnt": 2}, {"dumps", "empty"}),
        ({"any_whitespace": False, "indent": 2}, {"indent 2", "empty in lines"}),
        ({"any_whitespace": False, "indent": 2, "separators": (",", ": ")}, {"indent 2", "empty in lines"}),
        ({"any_whitespace": False, "indent": 4}, {"indent 4"}),
        ({"any_whitespace": False, "indent": 0}, {"indent 0"}),
    ],
)
def test_white_space_is_as_in_xgrammar(compiler: Any, options: dict[str, Any], accepted: set[str]) -> None:
    """What xgrammar 0.2.9 accepts of these texts."""
    number = {"type": "integer"}
    schema = {"properties": {"a": number, "b": {"type": "array", "items": number}}, "required": ["a", "b"]}
    schema = {"type": "object", **schema}
    for compiled in (
        compiler.compile_json_schema(schema, **options),
        compiler.compile_grammar(xgr.Grammar.from_json_schema(schema, **options)),
    ):
        found = set()
        for name, text in WRITTEN.items():
            matcher = xgr.GrammarMatcher(compiled)
            if matcher.accept_string(text) and matcher.is_completed():
                found.add(name)
        assert found == accepted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separators": (", ", ": ")}, r'expected none, \(",", ":"\), or any_whitespace=False'),
        ({"any_whitespace": False, "separators": (" ,", ":")}, r'expected none, \(", ", ": "\) or \(",", ":"\)'),
        (
            {"any_whitespace": False, "indent": 2, "separators": (",", ":")},
            r'expected none, \(",", ": "\) beside an indent',
        ),
        ({"any_whitespace": False, "indent": 17}, "indent is 17; expected 0 to 16 blanks"),
        ({"any_whitespace": False, "indent": -1}, "indent is -1; expected 0 to 16 blanks"),
    ],
)
def test_white_space_that_no_style_has(compiler: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        compiler.compile_json_schema({}, **options)
    with pytest.raises(TypeError, match="from_json_schema"):
        xgr.Grammar.from_json_schema({}, indents=2)


def test_what_is_refused_is_a_runtime_error(compiler: Any) -> None:
    for compile_it in (
        lambda: compiler.compile_grammar("root ::= nothing"),
        lambda: compiler.compile_regex("("),
        lambda: compiler.compile_json_schema("{"),
        lambda: compiler.compile_lark('start: "a"', named_grammars={"x": "y"}),
        lambda: xgr.GrammarMatcher("root"),
    ):
        with pytest.raises(RuntimeError):
            compile_it()
    lark = xgr.GrammarMatcher(compiler.compile_lark('start: "a" "b"'))
    assert lark.accept_string("ab") and lark.is_completed()
    inside = xgr.GrammarMatcher(compiler.compile_lark('start: "a" %json {"const": 1}'))
    assert inside.accept_string("a1") and inside.is_completed()
    made = xgr.GrammarMatcher(compiler.compile_grammar(xgr.Grammar.from_ebnf('main ::= "x"', root_rule_name="main")))
    assert made.accept_string("x")


@pytest.mark.slow
def test_a_program_gets_it_for_xgrammar() -> None:
    code = (
        "from maskwright.serving.xgrammar import install\n"
        "install()\nimport xgrammar, pytest\nfrom xgrammar import GrammarCompiler\n"
        "assert GrammarCompiler.__module__.startswith('maskwright'), GrammarCompiler\n"
        "assert xgrammar.bitmask_dtype.itemsize == 4\n"
        "import xgrammar.matcher\nfrom xgrammar import tokenizer_info\n"
        "assert xgrammar.matcher.GrammarMatcher is xgrammar.GrammarMatcher is tokenizer_info.GrammarMatcher\n"
        "from xgrammar.matcher import GrammarMatcher\nassert GrammarMatcher is xgrammar.GrammarMatcher\n"
        "with pytest.raises(AttributeError, match='stands in'):\n    xgrammar.get_model_structural_tag\n"
        "import sys, types\nsys.modules['xgrammar'] = types.ModuleType('xgrammar')\n"
        "with pytest.raises(RuntimeError, match='imported before'):\n    install()\n"
        "install(replace=True)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_grammars_are_compiled_in_time_too() -> None:
    slow = xgr.GrammarCompiler(xgr.TokenizerInfo(TOKENS, vocab_size=SIZE))
    slow._compiler.reader.limits = RequestLimits(compile_seconds=1e-9)
    for compiled in (lambda: slow.compile_grammar('root ::= "ab"+'), lambda: slow.compile_lark('start: "ab"+')):
        with pytest.raises(xgr.RefusedError, match="took more than 1e-09 s of CPU time"):
            compiled()


def of_bytes() -> Any:
    """A compiler for the single bytes."""
    return xgr.GrammarCompiler(xgr.TokenizerInfo([*(bytes([byte]) for byte in range(256)), b"</s>"]))


def test_a_jump_begins_and_ends_with_whole_characters() -> None:
    """Within a character nothing can be said: what comes next is no text of its own."""
    matcher = xgr.GrammarMatcher(of_bytes().compile_grammar('root ::= "\u00e9abc"'))
    assert matcher.find_jump_forward_string() == "\u00e9abc"
    assert matcher.accept_token(0xC3) and matcher.find_jump_forward_string() == ""
    assert matcher.accept_token(0xA9) and matcher.find_jump_forward_string() == "abc"
    assert matcher.accept_string("abc") and matcher.find_jump_forward_string() == ""
    half = xgr.GrammarMatcher(of_bytes().compile_regex("a[\u00e9\u00e8]"))
    assert half.find_jump_forward_string() == "a"


def test_a_mask_is_never_empty_without_an_error() -> None:
    made = of_bytes()
    size = made._info.vocab_size
    matcher = xgr.GrammarMatcher(made.compile_regex("ab"), override_stop_tokens=[ord("a")])
    words = np.zeros((1, -(-size // 32)), np.int32)
    with pytest.raises(xgr.RefusedError, match="nothing but stop tokens"):
        matcher.fill_next_token_bitmask(words)
    bare = xgr.TokenizerInfo([b"a", b"b"])
    matcher = xgr.GrammarMatcher(xgr.GrammarCompiler(bare).compile_grammar('root ::= "a"'))
    assert matcher.accept_string("a") and matcher.is_completed()
    with pytest.raises(xgr.RefusedError, match="there is no stop token"):
        matcher.fill_next_token_bitmask(words)
    ended = xgr.GrammarMatcher(made.compile_regex("ab"), terminate_without_stop_token=True)
    assert ended.accept_string("ab") and ended.is_terminated()
    assert ended.fill_next_token_bitmask(words) and not words.any()


def test_arguments_that_cannot_be_read() -> None:
    for kind in (xgr.VocabType.BYTE_FALLBACK, xgr.VocabType.BYTE_LEVEL):
        with pytest.raises(xgr.RefusedError, match=r"b'\\xff' is no UTF-8"):
            xgr.TokenizerInfo([b"\xff", b"</s>"], kind)
    made = of_bytes()
    with pytest.raises(xgr.RefusedError, match="cannot be written as JSON"):
        made.compile_json_schema({"a": {1}})
    with pytest.raises(xgr.RefusedError, match="cannot be written as JSON"):
        made.compile_structural_tag({"a": {1}})
    grammar = made.compile_regex("a")
    assert not xgr.GrammarMatcher(grammar).accept_string("\ud800")
    assert xgr.GrammarMatcher(grammar, override_stop_tokens=np.int64(3)).stop_token_ids == [3]
    assert xgr.GrammarMatcher(grammar, override_stop_tokens=np.array([3, 4])).stop_token_ids == [3, 4]
    with pytest.raises(xgr.RefusedError, match="override_stop_tokens is 'x'"):
        xgr.GrammarMatcher(grammar, override_stop_tokens="x")  # type: ignore[arg-type]


def test_a_compiler_keeps_so_many_bytes_of_grammars() -> None:
    made = xgr.GrammarCompiler(of_bytes()._info, cache_limit_bytes=1)
    for k in range(3):
        last = made.compile_grammar(f'root ::= "a{k}"')
    (store,) = made._compiler._kept.values()
    assert store is last.store and made.get_cache_size_bytes() == last.memory_size_bytes > 1


def test_nodes_below_one_that_is_not_legal_get_zeros() -> None:
    made = of_bytes()
    matcher = xgr.GrammarMatcher(made.compile_regex("abc"))
    words = np.full((5, -(-made._info.vocab_size // 32)), -1, np.int32)
    # 0 -> 1 (z, illegal) -> {2 -> 4, 3}
    children, siblings = np.array([1, 2, 4, -1, -1]), np.array([-1, -1, 3, -1, -1])
    assert matcher.traverse_draft_tree(children, siblings, np.array([0, *b"zbcd"]), words)
    assert words[0].any() and not words[1:].any()


@pytest.mark.parametrize("drafts", ["ac", "ca"])
def test_a_draft_without_a_mask_does_not_end_the_request(drafts: str) -> None:
    made = of_bytes()
    matcher = xgr.GrammarMatcher(made.compile_regex("(ab|c)d"), override_stop_tokens=[ord("b")])
    words = np.full((5, -(-made._info.vocab_size // 32)), -1, np.int32)
    # 0 -> {1 -> 3, 2 -> 4}; behind `a` comes `b` alone, which is a stop token
    children, siblings = np.array([1, 3, 4, -1, -1]), np.array([-1, 2, -1, -1, -1])
    assert matcher.traverse_draft_tree(children, siblings, np.array([0, *drafts.encode(), *b"dd"]), words)
    legal = [each == "c" for each in drafts]
    assert words[:3].any(axis=1).tolist() == [True, *legal]
    assert not words[3 + drafts.index("a")].any()
    assert sorted(ids(words[3 + drafts.index("c")])) == [ord("b")]
