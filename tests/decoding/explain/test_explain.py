"""Explanations: the plain re-reading gives the engine's verdicts, and says where, what and why."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from functools import cache
from io import StringIO
from typing import Any

import pytest
from engine_cases import (
    longest,
    random_layout_grammar,
    random_longest_grammar,
    random_vocabulary,
    real_store,
    settled,
    vocabulary_of,
)
from naive_engine import NaiveEngine
from rich.console import Console
from shares import every, share

from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError, StoreError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.explain import explain_id, explain_next, explain_text, explain_token
from maskwright.decoding.explain.explanation import Explanation
from maskwright.decoding.reference.interpreter import Interpreter
from maskwright.decoding.reference.machine import machine_of
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

KINDS = {"plain": random_longest_grammar, "layout": random_layout_grammar}
CASES = [(kind, seed, lexing) for kind in KINDS for seed in range(9) for lexing in ("longest", "contextual")]

LINES = r"""
start: (statement | _NEWLINE)+
statement: NAME "=" value _NEWLINE | "if" value ":" _NEWLINE _INDENT statement+ _DEDENT
value: NAME | "(" value ")"
NAME: /[ab]+/
_NEWLINE: /(\r?\n[ \t]*)+/
%ignore " "
%declare _INDENT _DEDENT
"""

SUMS = 'start: v\nv: v "+" v | "(" v ")" | NUMBER\nNUMBER: /[0-9]+(\\.[0-9]+)?/\n%ignore " "'

PYTHON = (
    "def f(a, b=1, *c, **d):\n    return (a if b else c)[1:2] or {a: b}\n",
    "if x:\n    y = 1\n    if z:\n\n        pass\n    # no\nelif (1,\n  2):\n\tw = '''a\nb'''\nelse: pass\n",
    "class A(B, metaclass=C):\n    @d\n    def f(self): return 0x1f + 1.e3 + 1j\n\n    x: int = 3\n",
    "try:\n    import a.b as c\nexcept (E, F) as e:\n    raise G from e\nfinally:\n    del x[0], y\n",
    "with a as b, c: x = lambda *y: [z for z in y if not z in w]\n",
)


@cache
def prepared(kind: str, seed: int, lexing: Any) -> Store:
    grammar = settled(replace(KINDS[kind](seed), lexing=lexing))
    return compile_store(grammar, random_vocabulary(grammar, seed, 24))


@cache
def single_bytes(name: str) -> Store:
    grammar = longest({"lines": LINES, "sums": SUMS}[name])
    return compile_store(grammar, vocabulary_of(b"if", b"a)", b"(1", b"\n ", singles=bytes(range(256))))


def walk(store: Store, seed: int, length: int) -> list[tuple[bytes, Any]]:
    """Places of a random legal text: the text, and a matcher that stands behind it."""
    rng = random.Random(seed)
    matcher, text, found = store.matcher(), b"", []
    for _ in range(length):
        found.append((text, matcher.fork()))
        tokens = store.vocabulary.tokens
        allowed = [i for i, token in enumerate(tokens) if token and matcher.is_allowed(i)]
        if not allowed:
            break
        token = rng.choice(allowed)
        matcher.advance(token)
        text += tokens[token]
    return found


@pytest.mark.parametrize(("kind", "seed", "lexing"), every(2, CASES))
def test_verdicts_are_the_engines(kind: str, seed: int, lexing: str) -> None:
    store = prepared(kind, seed, lexing)
    trace = Interpreter(machine_of(store.grammar))
    compared = 0
    for text, matcher in [place for number in range(2) for place in walk(store, number, 7)]:
        places, _ = trace.read([trace.start], text)
        for token, data in enumerate(store.vocabulary.tokens):
            if token in store.vocabulary.eos:
                assert matcher.is_allowed(token) == (not trace.end(places)), text
            elif data:
                after, refused = trace.read(places, data)
                assert matcher.is_allowed(token) == trace.is_legal(after), (text, data)
                assert after or refused
                compared += 1
    assert compared > 50


@pytest.mark.parametrize(("kind", "seed", "lexing"), CASES[::3])
def test_explanations_say_what_the_engine_does(kind: str, seed: int, lexing: str) -> None:
    """From the text and from the matcher alike; at the first byte that cannot come; with what the engine allows in its place."""
    store = prepared(kind, seed, lexing)
    rng = random.Random(seed)
    for text, matcher in walk(store, 5, 5)[1:]:
        for token in rng.sample(range(store.vocabulary.size), 10) + list(store.vocabulary.eos):
            data = store.vocabulary.tokens[token]
            known, unknown = explain_id(store, text, token), explain_next(matcher.text, token)
            assert known.is_allowed == unknown.is_allowed == matcher.is_allowed(token)
            assert len(known.attempts) == len(unknown.attempts) and set(known.expected) == set(unknown.expected)
            check_refusals(known)
            if not data:
                continue
            assert known.position is not None
            good = len(text) + len(data) if known.is_allowed else known.position.offset
            probe = matcher.fork()
            probe.advance_bytes((text + data)[len(text) : good])
            if not known.is_allowed:
                allowed = bytes(b for b in range(256) if probe.text.allows(bytes([b])))
                assert known.bytes_allowed == unknown.bytes_allowed == allowed
                assert (text + data)[good] not in allowed
                assert all(matcher.is_allowed(near.token) for near in known.nearest)


def check_refusals(found: Explanation) -> None:
    for attempt in found.attempts:
        assert bool(attempt.why) == (not found.is_allowed)
        for view in attempt.stacks:
            assert not set(view.refuses) & set(view.expected)
            assert view.items and all(" . " in f"{item} " for item in view.items)
    if not found.is_allowed and found.attempts:
        assert not found.nearest or found.nearest[0].shared == max(near.shared for near in found.nearest)


@pytest.mark.parametrize("seed", range(6))
def test_the_first_illegal_byte_is_the_naive_engines(seed: int) -> None:
    for grammar in (random_longest_grammar(seed), random_layout_grammar(seed)):
        try:
            naive = NaiveEngine(grammar)
            machine_of(grammar)
        except GrammarError:
            continue
        rng = random.Random(seed)
        for _ in range(12):
            text = b"".join(rng.choices([b"a", b"b", b"c", b" ", b"if ", b"(", b"\n", b"\n ", b":", b"0", b"."], k=6))
            found = explain_text(grammar, text)
            good = next((n for n in range(1, len(text) + 1) if not naive.is_legal_prefix(text[:n])), len(text) + 1) - 1
            assert found.position is not None
            assert (found.position.offset, found.is_allowed) == (good, good == len(text)), text
            if found.is_allowed:
                assert found.is_whole == naive.is_legal_text(text)
                assert found.is_whole == (not found.ending)


@pytest.mark.parametrize("number", share(range(len(PYTHON)), 2))
def test_python_texts_and_their_mutations(number: int) -> None:
    store, text = real_store("python"), PYTHON[number].encode()
    whole = explain_text(store.grammar, text)
    assert whole.is_allowed and whole.is_whole
    check_lexemes(store.grammar, text)
    rng = random.Random(number)
    refused = 0
    for _ in range(8):
        at = rng.randrange(len(text))
        mutated = text[:at] + rng.choice([b")", b" ", b"", b"\n", b"=", b"$", b"'", b"\n   "]) + text[at + 1 :]
        found = explain_text(store.grammar, mutated)
        matcher, good = store.matcher(), 0
        while good < len(mutated) and matcher.text.allows(mutated[good : good + 1]):
            matcher.advance_bytes(mutated[good : good + 1])
            good += 1
        assert found.position is not None
        assert (found.position.offset, found.is_allowed) == (good, good == len(mutated)), mutated
        if found.is_allowed:
            assert found.is_whole == matcher.is_accepting()
        else:
            refused += 1
            check_refusals(found)
    assert refused


def check_lexemes(grammar: Grammar, text: bytes) -> None:
    """The lexemes are the whole text, end to end."""
    machine = machine_of(grammar)
    trace = Interpreter(machine)
    places, _ = trace.read([trace.start], text)
    lexemes, begin = machine.lexemes(text, places[0])
    assert [end for _, _, end in lexemes] == [begin for _, begin, _ in lexemes[1:]] + [begin]
    for terminal, start, end in lexemes:
        pattern = grammar.terminals[terminal].pattern
        flags = sum(getattr(re, flag.upper()) for flag in grammar.terminals[terminal].flags)
        assert pattern is None or re.compile(pattern, flags).match(text.decode(), start).end() >= end  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "why", "expected"),
    [
        ("a = b\n  a = b\n", "indented to column 2, but no block can begin here (open: 0)", "NAME"),
        ("if a:\n    a = b\n  a = b\n", "begins at column 2, where no block is open (open: 0, 4)", "NAME"),
        ("if a:\n\ta = b\n    a = b\n", "begins at column 4, where no block is open (open: 0, 8)", "NAME"),
        ("if a:\n    a = b\n\t a = b\n", "indented to column 9, but no block can begin here (open: 0, 4); a tab counts 8", "NAME"),
        ("if a:\na = b\n", "NAME cannot come here: a block must begin, so the line must be indented", "_INDENT"),
        ("if a\n", "_NEWLINE cannot come here", "COLON"),
        ("a = (b\n\n", "", "RPAR"),
        ("a = $", "no terminal begins with '$'", "NAME"),
    ],
)  # fmt: skip
def test_layout_in_words(text: str, why: str, expected: str) -> None:
    found = explain_text(longest(LINES), text.encode())
    assert why in found.summary
    assert expected in found.expected
    assert found.is_allowed == (not why)


def test_tabs_and_blanks_that_do_not_agree() -> None:
    grammar = longest(LINES)
    assert grammar.layout is not None
    grammar = replace(grammar, layout=replace(grammar.layout, tabs="consistent"))
    found = explain_text(grammar, b"if a:\n\ta = b\n        a = b\n")
    assert "tabs and blanks that do not agree" in found.summary and found.columns == (0, 8)
    assert explain_text(grammar, b"if a:\n\ta = b\n\ta = b\n  ").is_whole


def test_a_whole_text_a_prefix_and_the_end() -> None:
    grammar = longest(SUMS)
    whole = explain_text(grammar, b"1+(2)")
    assert whole.is_allowed and whole.is_whole and not whole.ending and "a complete text" in str(whole)
    part = explain_text(grammar, b"1+(2")
    assert part.is_allowed and part.is_whole is False and part.ending[0].why == "the text cannot end here"
    assert "RPAR" in part.expected
    inside = explain_text(grammar, b"1.")
    assert "cannot end inside a lexeme that may become NUMBER" in inside.ending[0].why
    assert explain_text(grammar, b"").is_whole is False


def test_the_chain_from_bytes_to_items() -> None:
    found = explain_token(longest(SUMS), b"1 + (2", b"3)(")
    assert found.what == "'3)('" and not found.is_allowed
    assert [(lexeme.terminal, lexeme.text) for lexeme in found.lexemes if not lexeme.is_ignored] == [
        ("NUMBER", "'1'"), ("PLUS", "'+'"), ("LPAR", "'('"),
    ]  # fmt: skip
    assert found.unfinished == "'2', which may become NUMBER" and found.reads_as == ("NUMBER", "RPAR", "LPAR")
    (attempt,) = found.attempts
    assert attempt.read == ("NUMBER", "RPAR") and attempt.why == "LPAR cannot come here"
    (view,) = attempt.stacks
    assert (
        view.refuses == ("LPAR",) and view.symbols == ("v",) and "v : v . PLUS v" in view.items
    )  # 1 + (23) is read as a v
    assert found.position is not None and found.position.offset == 8 and found.position.column == 9
    assert set(found.expected) == {"PLUS", "the end of the text"} and found.bytes_allowed == b" +"


def test_what_an_allowed_token_begins() -> None:
    found = explain_token(longest(SUMS), b"1", b"0+(")
    assert found.is_allowed and found.attempts[0].read == ("NUMBER", "PLUS", "LPAR") and not found.attempts[0].under_way
    assert any(item.startswith("v : LPAR . v RPAR") for view in found.attempts[0].stacks for item in view.items)
    under_way = explain_token(longest(SUMS), b"1+", b"2").attempts[0]
    assert under_way.read == () and under_way.under_way == ("NUMBER",)


def test_several_stacks_each_refuse() -> None:
    grammar = longest('start: p "x" | q "y"\np: "a" b\nq: "a" c\nb: "d"\nc: "d"')
    found = explain_text(grammar, b"adz")
    assert found.summary.endswith("no terminal begins with 'z'; expected X, Y")
    found = explain_text(grammar, b"add")
    assert {item for view in found.attempts[0].stacks for item in view.items} >= {"b : D .", "c : D ."}
    ambiguous = longest('start: s\ns: "i" s | "i" s "e" s | "j" s "e" s | "x"')
    found = explain_text(ambiguous, b"iixexx")
    assert [stack.expected for stack in found.attempts[0].stacks] == [
        ("E", "the end of the text"),
        ("the end of the text",),
    ]


def test_backing_up_is_tried_in_both_ways() -> None:
    grammar = longest('start: ("a" | AXB | "x" "c")+\nAXB: "axxxb"')
    found = explain_text(grammar, b"axxd")
    assert found.position is not None and not found.is_allowed
    assert explain_text(grammar, b"axc").is_whole


def test_contextual_lexing_chooses_by_the_parser() -> None:
    text = 'start: ("a" OP)+\nOP: /[+]b?/ | "-" REST\nREST: /[a-c]+/\nWORD: /[a-c]+/\nother: WORD'
    grammar = replace(longest(text), lexing="contextual")
    store = compile_store(grammar, vocabulary_of(b"a+b", singles=b"abc+-"))
    matcher = store.matcher()
    assert explain_id(store, b"", 0).is_allowed == matcher.is_allowed(0)
    found = explain_text(grammar, b"a+a-ab+")
    assert found.is_allowed == store.matcher().text.allows(b"a+a-ab+")


def test_a_matcher_without_text() -> None:
    store = single_bytes("lines")
    matcher = store.matcher()
    matcher.advance_bytes(b"if (a):\n  a = ")
    found = matcher.explain(0)
    assert found.position is None and not found.note and found.columns == (0, 2)
    assert found.attempts[0].stacks[0].symbols[-3:] == ("_INDENT", "NAME", "EQUAL")
    assert not found.is_allowed and found.reads_as == ("IF",)
    assert matcher.explain(store.vocabulary.size).summary.startswith(f"token {store.vocabulary.size} is out of range")
    eos = store.vocabulary.eos[0]
    assert matcher.explain(eos).summary.endswith("ends the text, which is not complete here")
    matcher.advance_bytes(b"b\n")
    assert matcher.explain(eos).is_allowed
    matcher.advance(eos)
    assert "after the end of the text" in matcher.explain(0).summary


@pytest.mark.parametrize(("read", "several"), [(b"", False), (b"cd", False), (b"ad", True), (b"bd", True)])
def test_a_matcher_says_where_it_cannot_tell_what_was_read(read: bytes, several: bool) -> None:
    grammar = longest('start: "a" x "p" | "b" x "p" | "c" x "q"\nx: "d"')
    matcher = compile_store(grammar, vocabulary_of(b"z", singles=b"abcdpq")).matcher()
    matcher.advance_bytes(read)
    assert ("one of them is shown" in matcher.explain(0).note) == several


def test_nearest_tokens_begin_alike() -> None:
    store = single_bytes("sums")
    found = explain_token(store.grammar, b"1+", b"(1x", store)
    assert found.nearest[0].data == b"(1" and found.nearest[0].shared == 2
    assert found.nearest[0].token == store.vocabulary.tokens.index(b"(1")
    assert explain_token(store.grammar, b"1+", b"(1", store).what.startswith(f"token {found.nearest[0].token} ")


def test_an_illegal_text_is_told_before_its_token() -> None:
    store = single_bytes("sums")
    for found in (
        explain_token(store.grammar, b"1++", b"1"),
        explain_id(store, b"1++", 0),
        explain_id(store, b"1++", 10**6),
    ):
        assert found.what == "the text" and found.position is not None and found.position.offset == 2


def test_renderings() -> None:
    found = explain_text(longest(LINES), b"if a:\n\ta = b\n\xc3\xa9")
    plain = str(found)
    assert plain.splitlines()[0] == found.summary and "é" not in found.position.before  # type: ignore[union-attr]
    console = Console(file=StringIO(), width=300)
    console.print(found, soft_wrap=True, highlight=False)
    assert console.file.getvalue().expandtabs() == plain.expandtabs() + "\n"  # type: ignore[attr-defined]
    facts = json.loads(json.dumps(found.to_dict()))
    assert facts["verdict"] == "refused" and facts["position"]["line"] == 3
    caret = plain.splitlines()[2]
    assert caret.index("^") == len("3 | ") and "line 3, column 1" in caret


def test_a_byte_order_mark_is_named() -> None:
    assert "byte order mark" in explain_text(longest(SUMS), b"\xef\xbb\xbf1+2").summary


def test_long_lines_are_cut_round_the_caret() -> None:
    found = explain_text(longest(SUMS), b"1+" * 500 + b")" + b"+1" * 500)
    assert found.position is not None and found.position.offset == 1000 and len(found.position.before) < 80
    assert found.n_lexemes == 1000 and len(found.lexemes) == 12


def test_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GrammarError, match="lexing='longest'"):
        explain_text(replace(longest(SUMS), lexing="nfa"), b"1")
    store = single_bytes("sums")
    other = replace(store, grammar=single_bytes("lines").grammar)
    with pytest.raises(StoreError, match="build the store anew"):
        explain_next(other.matcher().text, 0)
    monkeypatch.setattr("maskwright.decoding.reference.interpreter.MAX_STACKS", 16)
    with pytest.raises(LimitError, match=r"more than 16 readings of the text.*conflicts='shift'"):
        explain_text(longest('start: s\ns: p s | p\np: "a" | "a" "a"', "lengths"), b"a" * 100)


def test_texts_are_bytes() -> None:
    grammar = parse_grammar('start: "a"+')
    for wrong in (lambda: explain_text(grammar, "a"), lambda: explain_token(grammar, "a", b"a")):  # type: ignore[arg-type]
        with pytest.raises(MaskwrightError, match="the text is 'a', a str; expected bytes; encode it"):
            wrong()
    with pytest.raises(MaskwrightError, match="what comes next is 'a', a str; expected bytes"):
        explain_token(grammar, b"a", "a")  # type: ignore[arg-type]


@pytest.mark.parametrize("grammar", ["json", None])
def test_what_is_no_grammar_or_store_is_named(grammar: Any) -> None:
    with pytest.raises(MaskwrightError, match=r"the grammar is .*; expected a Grammar: mw\.load_grammar"):
        explain_text(grammar, b"")
    with pytest.raises(MaskwrightError, match="the store is 3"):
        explain_token("json", b"", b"[", 3)  # type: ignore[arg-type]
    with pytest.raises(MaskwrightError, match="the store is None"):
        explain_id(None, b"", 3)  # type: ignore[arg-type]
