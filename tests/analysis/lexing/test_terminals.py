"""Terminals of real grammars, and every way in which one can be refused."""

from __future__ import annotations

import random
import re
import string
import time
from types import SimpleNamespace

import lark
import numpy as np
import pytest
from shares import share

from maskwright.analysis.errors import LimitError, MaskwrightError, TerminalError
from maskwright.analysis.grammar.grammar import Grammar, Rule, Terminal
from maskwright.analysis.lexing.messages import lookbehind_before_start
from maskwright.analysis.lexing.terminals import (
    compile_pattern,
    compile_terminal,
    compile_terminals,
    lookahead_beyond_end,
)
from maskwright.analysis.regex.machine import determinise
from maskwright.analysis.regex.tree import EMPTY, Atomic
from maskwright.maskstore.entries.build import post_terminals


def lark_terminal(terminal: lark.lexer.TerminalDef) -> Terminal:
    flags = "".join(sorted(terminal.pattern.flags))
    if isinstance(terminal.pattern, lark.lexer.PatternStr):
        return Terminal(terminal.name, re.escape(terminal.pattern.value), flags, terminal.pattern.value)
    return Terminal(terminal.name, terminal.pattern.value, flags, priority=terminal.priority)


def grammar_of(*terminals: Terminal, name: str = "some.lark") -> Grammar:
    start = len(terminals)
    return Grammar(name, terminals, ("start",), (Rule(start, (0,)),), start)


@pytest.fixture(scope="module")
def python_grammar() -> Grammar:
    parser = lark.Lark.open_from_package("lark", "python.lark", ["grammars"], parser="lalr", start="file_input")
    return grammar_of(*map(lark_terminal, parser.terminals), name="python.lark")


@pytest.fixture(scope="module")
def python_terminals(python_grammar: Grammar) -> dict[str, Terminal]:
    return {terminal.name: terminal for terminal in python_grammar.terminals}


# Letters that a terminal's own texts are made of, so that random texts are often in it or nearly so.
MATERIAL = {
    "STRING": ['"', '"', "'", "\\", "\\\\", "a", "b", "r", "u", "F", "\n", " ", "é"],
    "LONG_STRING": ['"""', '"""', "'''", '"', "'", "\\", "a", "R", "\n", "é"],
    "DEC_NUMBER": ["0", "0", "1", "9", "_"],
    "FLOAT_NUMBER": ["0", "1", "_", ".", "e", "E", "+", "-"],
    "IMAG_NUMBER": ["0", "1", "_", ".", "e", "j", "J", "+"],
    "HEX_NUMBER": ["0", "x", "X", "a", "F", "_"],
    "_NEWLINE": ["\r", "\n", "#", " ", "\t", "a"],
    "NAME": ["a", "_", "1", "é", "名", "٣", "-", "\u212a"],
    "COMMENT": ["#", "a", "\n", "€"],
    "__IGNORE_1": ["\\", "\n", "\r", " ", "\t"],
}


@pytest.mark.parametrize("name", MATERIAL)
def test_python_terminals_are_what_re_returns(python_terminals: dict[str, Terminal], name: str) -> None:
    terminal = python_terminals[name]
    dfa = compile_terminal(terminal)
    matcher = re.compile(terminal.pattern or "", sum(getattr(re, flag.upper()) for flag in terminal.flags))
    chance = random.Random(7)
    n_accepted = 0
    for _ in range(8000):
        text = "".join(chance.choices(MATERIAL[name], k=chance.randint(1, 9)))
        if name in ("STRING", "LONG_STRING"):
            quote = chance.choice("\"'") * (1 if name == "STRING" else 3)
            text = chance.choice(["", "", "r", "bR", "Uf"]) + quote + text + chance.choice([quote, ""])
        match = matcher.match(text)
        returned = match is not None and match.end() == len(text)
        assert dfa.matches(text.encode()) == returned, text
        n_accepted += returned
    assert n_accepted > 20


def test_all_terminals_of_python(python_grammar: Grammar) -> None:
    compiled = compile_terminals(python_grammar)
    assert len(compiled) == 99
    for terminal, dfa in zip(python_grammar.terminals, compiled, strict=True):
        assert dfa is not None
        if terminal.literal is not None:
            assert dfa == compile_pattern(terminal.pattern or "")
        text = dfa.shortest().decode()
        assert re.fullmatch(terminal.pattern or "", text, sum(getattr(re, f.upper()) for f in terminal.flags))


def test_lookaheads_beyond_the_end_of_python_terminals(python_grammar: Grammar) -> None:
    beyond = {t.name: found for t in python_grammar.terminals if (found := lookahead_beyond_end(t))}
    assert beyond == {"STRING": ('(?!"")', "(?!'')"), "DEC_NUMBER": ("(?![1-9])",)}


def test_post_reading_of_python_has_408_states(python_grammar: Grammar) -> None:
    """With a start and a final state, the 410 of the streamlining post's NFA."""
    post = post_terminals(python_grammar)
    assert sum(dfa.n_states for dfa in post if dfa is not None) == 408
    states = {t.name: dfa.n_states for t, dfa in zip(python_grammar.terminals, post, strict=True) if dfa is not None}
    assert (states["STRING"], states["LONG_STRING"], states["DEC_NUMBER"], states["NAME"]) == (9, 17, 5, 2)
    other = [byte for byte in range(256) if byte not in string.printable.encode()]
    assert all((dfa.next_state[:, other] == -1).all() for dfa in post if dfa is not None)


def test_post_patterns_denote_the_same_languages(python_terminals: dict[str, Terminal]) -> None:
    simple = {
        "STRING": r"""([ubf]?r?|r[ubf])("([^"\\\n]|\\.)*"|'([^'\\\n]|\\.)*')""",
        "LONG_STRING": r"""([ubf]?r?|r[ubf])(\"{3}([^"\\]|\\.|"(?!""))*\"{3}|'{3}([^'\\]|\\.|'(?!''))*'{3})""",
        "DEC_NUMBER": "0(_?0)*|[1-9](_?[0-9])*",
    }
    for name, pattern in simple.items():
        assert compile_terminal(python_terminals[name]) == compile_pattern(pattern, python_terminals[name].flags)


def test_declared_terminals_have_no_automaton() -> None:
    grammar = grammar_of(Terminal("A", "a"), Terminal("_INDENT", None))
    assert compile_terminals(grammar)[1] is None and post_terminals(grammar)[1] is None
    with pytest.raises(TerminalError, match="terminal _INDENT is declared without a pattern"):
        compile_terminal(grammar.terminals[1])


@pytest.mark.parametrize("text", ["def", "é", "+", "\t", "\x00"])
def test_literals_are_as_their_patterns(text: str) -> None:
    pattern = re.escape(text)
    assert compile_terminal(Terminal("T", pattern, literal=text)) == compile_pattern(pattern)
    assert compile_terminal(Terminal("T", pattern, "i", literal=text)) == compile_pattern(pattern, "i")


REFUSED = [
    (r"(a)\1", r"a back-reference cannot be compiled .*list the alternatives", "\\1 at character 4", "   ^^"),
    (r"(?P<q>'|\")x(?P=q)", r"a back-reference", "(?P=q) at character 13", None),
    (r"(a)?(?(1)b|c)", r"a conditional group .*one alternative for each case", "(?(1)b|c) at character 5", None),
    (r"(ab?)*?(b|bc)", r"a lazy quantifier whose body can match several lengths", "*? at character 6", None),
    (r"(?:b*?)+(?:a|ab)", r"a lazy quantifier whose body can match several lengths", "", None),
    (r"(?:a|ab)*+c", r"a possessive quantifier whose body", "*+ at character 9", None),
    (r"x(?>a|b?)c", r"an atomic group that can match several lengths", "(?>a|b?) at character 2", " ^^^^^^^^"),
    (r"b(?<=a(?=b))b", r"a look-ahead \(or \$, .b\) inside a look-behind", "(?<=a(?=b)) at character 2", None),
    (r"b(?<=a$)", r"a look-ahead \(or \$, .b\) inside a look-behind", "(?<=a$) at character 2", None),
    (r"ab[c", r"Python's re refuses the pattern 'ab\[c': unterminated character set", "character 3", "  ^"),
    (r"(?a)(?u)x", r"Python's re refuses .*ASCII and UNICODE flags are incompatible", "", None),
    (r"(?<=a*)b", r"Python's re refuses .*look-behind requires fixed-width pattern", "", None),
    (r"(?!)", r"matches no text at all; correct it or remove", "", None),
    (r"a(?=b)c", r"matches no text at all", "", None),
    ("\ud800", r"matches no text at all", "", None),
    (r"a(?<!a)", r"matches no text at all", "", None),
    (r"(?<=b)a", r"matches no text by itself: \(\?<=b\) looks at what comes before", "", None),
    (r"\Ba|\Bb", r"matches no text by itself: \\B looks at what comes before", "", None),
    (r"a*", r"matches the empty string, so a lexer would not advance; require at least one", "", None),
    (r"(?=a)", r"matches the empty string", "", None),
]


@pytest.mark.parametrize(("pattern", "message", "construct", "caret"), REFUSED)
def test_refused_terminals(pattern: str, message: str, construct: str, caret: str | None) -> None:
    with pytest.raises(TerminalError, match=message) as caught:
        compile_terminal(Terminal("X", pattern, line=12, column=3), where="some.lark")
    text = str(caught.value)
    assert text.startswith("terminal X at some.lark:12:3: ")
    assert construct in text
    if caret is not None:
        assert text.splitlines()[-1] == "    " + caret


def test_pointer_in_a_long_verbose_pattern() -> None:
    pattern = "a # \\1 is a comment\n" + "b" * 200 + " (c)\\1 d"
    with pytest.raises(TerminalError) as caught:
        compile_pattern(pattern, "x")
    shown, caret = str(caught.value).splitlines()[-2:]
    assert shown[caret.index("^") : caret.rindex("^") + 1] == "\\1" and len(shown) < 90


def test_compile_terminals_names_the_grammar() -> None:
    with pytest.raises(
        TerminalError, match=r"^terminal B at some\.lark:7:1: the pattern 'b\*' matches the empty string"
    ):
        compile_terminals(grammar_of(Terminal("A", "a"), Terminal("B", "b*", line=7, column=1)))


def test_post_reading_needs_printable_text() -> None:
    with pytest.raises(
        TerminalError, match=r"terminal E at some\.lark, read over string\.printable: .* matches no text"
    ):
        post_terminals(grammar_of(Terminal("E", "é")))


def test_unknown_flag() -> None:
    with pytest.raises(TerminalError, match=r"terminal A: flag 'l' is not one of a, i, m, s, u, x \(flags 'il'\)"):
        compile_terminal(Terminal("A", "a", "il"))


EXPLOSIONS = [
    ("a{1,100000}", "its automaton needs more than 60,000 states"),
    ("(a{1,1000}){1,1000}", "more than 240,000 positions"),
    (".*a.{20}", "its automaton needs more than 60,000 states"),
    (r"\w{1,300}", "needs more than 60,000 states over UTF-8 bytes"),
    ("a{99999999999}", "repetition is too large for Python's re"),
    ("a{" + "9" * 5_000 + "}", "it has a number of too many digits"),
    ("(" * 2000 + "a" + ")" * 2000, "groups are nested more than 100 deep"),
    ("(a|b)*a(a|b){16}", "needs more than 60,000 states"),
    ("(a{0,100}b?){0,400}", "its automaton takes more than 600,000 steps"),
    ("(?:a.*?b){100}c", "a lazy quantifier inside a repetition of more than 64 copies"),
    ("(?!.*a.{18}b)[abc]*c", "needs more than 60,000 states"),
    ("".join(f"(?=.*{c})" for c in "abcdefghijklm") + "[a-z]*x", "its automaton takes more than 3,000,000 steps"),
]


@pytest.mark.parametrize(("pattern", "message"), share(EXPLOSIONS, 6))
def test_explosions_are_stopped_quickly(pattern: str, message: str) -> None:
    started = time.process_time()
    with pytest.raises(LimitError, match=rf"terminal BIG at big\.lark: .*{message}.* \(pattern .*\)"):
        compile_terminal(Terminal("BIG", pattern), where="big.lark")
    assert time.process_time() - started < 10  # measured: below 1 s on an idle machine


OPCODES = [
    (
        [("NEW_OPCODE", None)],
        "the opcode NEW_OPCODE of Python .*'s re cannot be compiled .*rewrite the pattern without it",
    ),
    ([("AT", "AT_NEW")], "the anchor AT_NEW of this Python's re"),
    ([("IN", [("NEW_ITEM", None)])], "the class item NEW_ITEM of this Python's re"),
]


@pytest.mark.parametrize(("items", "message"), OPCODES)
def test_what_a_later_python_may_bring_is_refused(
    monkeypatch: pytest.MonkeyPatch, items: list[tuple[str, object]], message: str
) -> None:
    class Parsed(list[tuple[str, object]]):
        state = SimpleNamespace(flags=0)

    parser = SimpleNamespace(parse=lambda pattern, flags: Parsed(items))
    monkeypatch.setattr("maskwright.analysis.regex.parse._sre", parser)
    with pytest.raises(TerminalError, match=message):
        compile_pattern("some pattern")


def test_only_resolved_trees_are_determinised() -> None:
    with pytest.raises(TypeError, match=r"Atomic must be resolved \(rewrite\.resolve\)"):
        determinise(Atomic(EMPTY), 10)


def test_limit_can_be_chosen() -> None:
    with pytest.raises(LimitError, match="more than 5 states"):
        compile_pattern("abcdefgh", max_states=5)
    assert compile_pattern("abcdefgh", max_states=9).n_states == 9


def test_errors_are_errors_of_maskwright() -> None:
    with pytest.raises(MaskwrightError):
        compile_pattern("(")


def test_large_but_regular() -> None:
    dfa = compile_pattern("[a-z]{1,3000}")
    assert dfa.n_states == 3001 and np.count_nonzero(dfa.is_accepting) == 3000


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("^c", ("^",)),
        (r"\Ab", ("^",)),
        (r"\bc", (r"\b",)),
        (r"c\b", ()),
        ("b(?<!ab)", ("(?<!ab)",)),
        ("(a|bc)(?<=c)", ()),
        ("a?(?<=c)b", ("(?<=c)",)),
        ("x*(?<!y)z", ("(?<!y)",)),
        ("(x{2}){2}(?<=xxxx)", ()),
        ("(?=(?<=a)b)b", ("(?<=a)",)),
        (r'"(?!"").*?(?<!\\)(\\\\)*?"', ()),
    ],
)
def test_look_behinds_that_see_what_comes_before(pattern: str, found: tuple[str, ...]) -> None:
    assert lookbehind_before_start(Terminal("T", pattern)) == found
