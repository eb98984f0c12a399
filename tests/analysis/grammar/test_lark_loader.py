"""What a `.lark` text means: the rules, terminals, places and layout that the loader makes of it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from naive import words
from paths import SHARED, TESTS

import maskwright as mw
from maskwright.analysis.errors import GrammarError, TerminalError, UnknownNameError
from maskwright.analysis.grammar import Grammar, Layout
from maskwright.analysis.grammar.lark_files import position_of
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.lexing.terminals import compile_terminals
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.analysis.loading.indenter import Indenter
from maskwright.analysis.lr.tables import build_merged_tables
from maskwright.maskstore.table.build import byte_vocabulary

DATA = TESTS / "data" / "grammars"
PEERS = SHARED / "peer_grammars"


def language(text: str, length: int) -> set[str]:
    """The words of the grammar, up to a length, each terminal shown by its literal or name, without blanks."""
    grammar = parse_grammar(text)
    shown = [terminal.literal or terminal.name for terminal in grammar.terminals]
    return {"".join(shown[t] for t in word) for word in words(grammar, length)}


@pytest.fixture(scope="module")
def features() -> Grammar:
    return load_grammar(DATA / "features.lark")


@pytest.fixture(scope="module")
def python() -> Grammar:
    return load_grammar("lark:python", soft=())


CONSTRUCTS = [
    ("optional", 'start: "a" ["b"] "c"?', {"a", "ab", "ac", "abc"}),
    ("placeholders", '!start: ["a" "b"] [["c"]]', {"", "ab", "c", "abc"}),
    ("star", 'start: "a"*', {"", "a", "aa", "aaa", "aaaa"}),
    ("plus", 'start: ("a" | "b" "b")+', {"a", "aa", "aaa", "aaaa", "bb", "abb", "bba", "aabb", "abba", "bbaa", "bbbb"}),
    ("exact repeat", 'start: "a"~3', {"aaa"}),
    ("repeat range", 'start: "a"~0..2 "b"', {"b", "ab", "aab"}),
    ("group", 'start: ("a" | "b") ("c" | "d")', {"ac", "ad", "bc", "bd"}),
    ("alias", 'start: "a" -> one\n     | "b" -> two', {"a", "b"}),
    ("inlined", 'start: _x "b" _x\n_x: "a" |', {"b", "ab", "ba", "aba"}),
    ("expand1", '?start: x\n?x: "a" | "(" x ")"', {"a", "(a)"}),
    ("priority", 'start: x\nx.5: "a"\n', {"a"}),
    ("template", 'start: sep{"a", ","}\nsep{x, s}: x (s x)*', {"a", "a,a"}),
    ("template in template", 'start: w{w{"a"}}\nw{x}: "(" x', {"((a"}),
    ("recursive template", 'start: w{"a"}\nw{x}: x | "(" w{x} ")"', {"a", "(a)"}),
    ("named terminal", 'start: PLUS | A\nPLUS: "+"\nA: "a" "b"', {"+", "A"}),
    ("override", '%import common.INT\n%override INT: "7"\nstart: INT', {"7"}),
    ("extend", 'start: x\nx: "a"\n%extend x: "b"', {"a", "b"}),
    ("import", "%import common (INT, WORD)\nstart: INT | WORD", {"INT", "WORD"}),
    ("import as", "%import common.INT -> NUMBER\nstart: NUMBER", {"NUMBER"}),
    ("empty", "start:", {""}),
]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CONSTRUCTS], ids=[case[0] for case in CONSTRUCTS])
def test_constructs_mean_what_they_mean_to_lark(text: str, expected: set[str]) -> None:
    assert language(text, 4) == expected


def test_large_repeats_are_split_into_helper_rules() -> None:
    grammar = parse_grammar('start: "a"~60..70')
    assert {len(word) for word in words(grammar, 75)} == set(range(60, 71))


def test_every_construct_in_one_file(features: Grammar) -> None:
    terminals = {terminal.name: terminal for terminal in features.terminals}
    assert terminals["NUMBER"].pattern == "(?:[0-9])+"
    assert (terminals["HELLO"].literal, terminals["HELLO"].flags) == ("hello", "i")
    assert terminals["SEPARATOR"].literal == ";"
    assert (terminals["ITEM"].priority, terminals["ITEM"].pattern) == (3, "item[0-9]")
    assert terminals["parts__LETTERS"].pattern == "[a-z]+"
    assert terminals["UNICODE"].pattern is not None and "é" in terminals["UNICODE"].pattern
    ranges = [terminal.pattern for terminal in features.terminals if terminal.pattern == "[a-c]"]
    assert ranges == ["[a-c]"]
    regex = next(terminal for terminal in features.terminals if terminal.pattern == "[a-f]+x")
    assert regex.flags == "ix"
    ignored = {features.terminals[t].name for t in features.ignored}
    assert ignored == {"COMMENT", "__IGNORE_1", "__IGNORE_2"}
    assert features.unused_terminals == ("UNUSED", "DECLARED_UNUSED")
    assert features.layout is None


def test_places_are_those_of_the_definitions(features: Grammar) -> None:
    lines = features.text.split("\n")

    def at(name: str) -> str:
        terminal = features.terminals[features.terminal_number[name]]
        return lines[terminal.line - 1][terminal.column - 1 :] if terminal.line else ""

    assert at("ITEM").startswith("ITEM.3:")
    assert at("UNICODE").startswith("UNICODE:")
    number = features.terminals[features.terminal_number["NUMBER"]]
    assert at("NUMBER") == "NUMBER" and lines[number.line - 1] == "%import common.INT -> NUMBER"
    assert at("SEPARATOR").startswith('SEPARATOR: ";"')
    assert at("HELLO").startswith('"hello"i')
    assert at("COMMENT").startswith('COMMENT: "#"')
    assert at("__IGNORE_1").startswith("%ignore /[ \\t]+/")
    assert at("__IGNORE_2").startswith('%ignore " #no comment"')
    assert at("parts__LETTERS") == ""


@pytest.mark.parametrize(
    ("text", "name", "place"),
    [
        ("// a: x\n?a: b", "a", (2, 2)),
        ("# a: x\n!a.-2 : b", "a", (2, 2)),
        ('b: "a:" /a:/\n_a: b', "_a", (2, 1)),
        ("b: a\nf{a, c}: a\n?!a: b", "a", (3, 3)),
        ("start: f{b}\nf{x} : x", "f", (2, 1)),
        ("start: f{b}\nf {x}.3 : x", "f", (2, 1)),
        ("start: A\nA.10: B", "A", (2, 1)),
        ("%import common.A\nstart: A", "A", (1, 16)),
        ("%import common (A, B)\nstart: A B", "B", (1, 20)),
        ("%import common.A -> B\nstart: B", "B", (1, 21)),
        ("%declare A B\nstart: B", "B", (1, 12)),
        ("start: A\n%override A: B", "A", (2, 11)),
        ('start: "/*" a "*/" // a: \n     | a\n', "a", (1, 13)),
        ('start: "a" "b" ..  "a"', "[b-a]", (1, 12)),
        ("start: /a\\/b a:/ b\nb: c", "b", (2, 1)),
        ("start: b", "nowhere", (0, 0)),
    ],
)
def test_position_of(text: str, name: str, place: tuple[int, int]) -> None:
    assert position_of(text, name) == place


def test_a_literal_is_placed_in_a_rule_rather_than_in_a_terminal() -> None:
    grammar = parse_grammar('A: "b" "c"\nstart: A "b"\n')
    terminal = grammar.terminals[grammar.terminal_number["B"]]
    assert (terminal.line, terminal.column) == (2, 10)


def test_a_range_is_placed() -> None:
    grammar = parse_grammar('start: "b" // "b".."a"\n  | "b".."a"')
    assert (grammar.terminals[-1].line, grammar.terminals[-1].column) == (2, 5)
    with pytest.raises(TerminalError, match=r"at <text>:2:5: .*bad character range b-a"):
        compile_terminals(grammar)


def test_display_names() -> None:
    grammar = parse_grammar(
        'start: "+=" "a\\"\\\\b=" /x\\/y/i NAME "if" "é<"i\nNAME: /[a-z]+/\n%ignore /[ \\t]+/\n%ignore NAME'
    )
    assert {grammar.display_name(s) for s in range(grammar.n_terminals + grammar.n_nonterminals)} == {
        '"+="',
        '"a\\"\\\\b="',
        "/x\\/y/i",
        "NAME",
        "IF",
        '"é<"i',
        "/[ \\t]+/",
        "start",
    }


def test_unused_terminals_are_named_and_parts_of_others_are_not() -> None:
    grammar = parse_grammar('start: A\nA: B "x"\nB: "b"\nC: D\nD: "d"\nE: "e"\n%ignore E\n%declare F')
    assert [terminal.name for terminal in grammar.terminals] == ["A", "E"]
    assert grammar.unused_terminals == ("C", "F")


def test_crlf_and_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    text = 'start: "a" // comment\n  | B\nB: /b/\n'
    files = {"lf": text.encode(), "crlf": text.replace("\n", "\r\n").encode(), "bom": b"\xef\xbb\xbf" + text.encode()}
    digests = set()
    for name, data in files.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "g.lark").write_bytes(data)
        digests.add(load_grammar(folder / "g.lark").digest)
    assert len(digests) == 1


def test_relative_imports_reach_through_folders(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "main.lark").write_text("%import .sub.middle.pair\nstart: pair")
    (tmp_path / "sub" / "middle.lark").write_text('%import .leaf.LEAF\npair: LEAF ","')
    (tmp_path / "sub" / "leaf.lark").write_text('LEAF: "leaf"')
    grammar = load_grammar(tmp_path / "main.lark")
    assert {terminal.literal for terminal in grammar.terminals} == {"leaf", ","}
    assert parse_grammar((tmp_path / "main.lark").read_text(), folder=tmp_path).rules == grammar.rules


def test_python_figures(python: Grammar) -> None:
    assert (python.n_terminals, python.n_nonterminals, len(python.rules)) == (101, 176, 537)
    assert sum(not terminal.is_declared for terminal in python.terminals) == 99
    assert [t.name for t in python.terminals if t.is_declared] == ["_INDENT", "_DEDENT"]
    assert all(terminal.line for terminal in python.terminals)
    assert python.unused_terminals == ()


def shown_layout(grammar: Grammar) -> tuple[str, ...]:
    layout = grammar.layout
    assert layout is not None
    return tuple(
        grammar.symbol_name(t) for t in (layout.newline, layout.indent, layout.dedent, *sum(layout.brackets, ()))
    )


@pytest.mark.parametrize("start", ["file_input", "single_input", "eval_input"])
def test_python_layout(start: str) -> None:
    grammar = load_grammar("lark:python", start=start)
    brackets = ("LPAR", "RPAR", "LSQB", "RSQB", "LBRACE", "RBRACE")
    assert shown_layout(grammar) == ("_NEWLINE", "_INDENT", "_DEDENT", *brackets)
    assert grammar.layout is not None and grammar.layout.tab_length == 8


INDENTED = 'start: (line | START start STOP)+\nline: "(" W ")" NL\nW: /w/\nNL: /\\n */\n%declare START STOP\n'


def test_layout_by_names_literals_and_numbers() -> None:
    named = Indenter("NL", "START", "STOP", (("LPAR", ")"),), tab_length=4)
    grammar = parse_grammar(INDENTED, layout=named)
    assert shown_layout(grammar) == ("NL", "START", "STOP", "LPAR", "RPAR")
    assert grammar.layout is not None and grammar.layout.tab_length == 4
    assert parse_grammar(INDENTED, layout=grammar.layout).layout == grammar.layout


def test_tabs_are_a_member_of_their_own() -> None:
    """A tab length of 1,000 is one; the option of the file and the argument say the same; and a grammar written and read back keeps it."""
    long = parse_grammar(INDENTED, layout=Indenter("NL", "START", "STOP", tab_length=1000))
    assert long.layout is not None and (long.layout.tabs, long.layout.tab_length) == ("lark", 1000)
    assert "tabs" not in long.to_dict()["layout"]
    named = parse_grammar(INDENTED, layout=Indenter("NL", "START", "STOP", tabs="consistent"))
    asked = parse_grammar("// maskwright: tabs = consistent\n" + INDENTED, layout=Indenter("NL", "START", "STOP"))
    assert named.layout is not None and named.layout == asked.layout and named.layout.tabs == "consistent"
    assert Grammar.from_dict(json.loads(json.dumps(named.to_dict()))) == named
    assert len({long.digest, named.digest, parse_grammar(INDENTED, layout=Indenter("NL", "START", "STOP")).digest}) == 3


def test_layout_is_recognised_by_lark_s_names_only() -> None:
    text = INDENTED.replace("NL", "_NL").replace("START", "_INDENT").replace("STOP", "_DEDENT")
    assert shown_layout(parse_grammar(text)) == ("_NL", "_INDENT", "_DEDENT", "LPAR", "RPAR")
    assert parse_grammar('start: _NEWLINE _INDENT\n_NEWLINE: "n"\n_INDENT: "i"\n_DEDENT: "d"').layout is None


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (Indenter("NL", "START", "STOPP"), r"names 'STOPP', which is not a terminal.*did you mean 'STOP'"),
        (Indenter("NL", "START", "STOP", (("{", "}"),)), r"names '\{', which is not a terminal"),
        (Indenter("NL", "START", "STOP", tab_length=0), r"tab length is 0; expected 1 to"),
        (
            Indenter("NL", "START", "STOP", tab_length=4, tabs="consistent"),
            r"tab length is 4, but consistent tabs advance to multiples of 8 columns.*leave the tab length out",
        ),
        (Indenter("NL", "START", "STOP", tabs="python"), r"tabs are 'python'; expected lark or consistent"),  # type: ignore[arg-type]
        (Indenter("NL", "START", "START"), r"gives one terminal two roles"),
        (Indenter("START", "NL", "STOP"), r"the layout's newline terminal START must have a pattern"),
        (Indenter("NL", "START", "STOP", (("(", "("),)), r"gives one terminal two roles"),
        (Layout(99, 0, 1, ()), r"the layout names a symbol that is not a terminal"),
        ("python", r"layout is 'python'; expected 'auto', None, an Indenter or a Layout"),
    ],
)
@pytest.mark.filterwarnings("ignore:grammar <text>. alternatives are left out")
def test_wrong_layouts(layout: Layout | Indenter | None, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        parse_grammar(INDENTED, layout=layout)


@pytest.mark.parametrize("lexing", ["contextual", "longest"])
@pytest.mark.parametrize(
    ("text", "without"),
    [
        ('start: "a" | "b" M | x\nx: NAME | x M y\ny: "d"\n', 'start: "a" | x\nx: NAME\n'),
        ('start: x y? | "k" z\nx: NAME\ny: M | M y\nz: y "b" | NAME ";"\n', 'start: x | "k" z\nx: NAME\nz: NAME ";"\n'),
        ('start: (NAME ",")* M?\n', 'start: (NAME ",")*\n'),
    ],
)
def test_alternatives_with_a_terminal_that_nothing_spells_are_left_out(text: str, without: str, lexing: Any) -> None:
    """Also what only they use: it competes with nothing."""
    with pytest.warns(
        mw.MaskwrightWarning, match=r"alternatives are left out: terminal M is declared but has no pattern"
    ):
        found = parse_grammar(text + "NAME: /[a-z]+/\n%declare M\n", lexing=lexing)
    wanted = parse_grammar(without + "NAME: /[a-z]+/\n", lexing=lexing)
    assert {t.name for t in found.terminals} == {t.name for t in wanted.terminals}
    tables = [build_merged_tables(reduce(grammar), "all").tables for grammar in (found, wanted)]
    assert tables[0].n_states == tables[1].n_states and tables[0].n_conflicts == tables[1].n_conflicts
    for seed in range(3):
        assert walk(found, seed) == walk(wanted, seed)


def walk(grammar: Grammar, seed: int) -> list[bytes]:
    """The masks along a text that is drawn from them."""
    rng, matcher, masks = random.Random(seed), mw.build_store(grammar, byte_vocabulary()).matcher(), []
    for _ in range(12):
        allowed = matcher.allowed_tokens()
        masks.append(bytes(sorted(token % 256 for token in allowed)))
        matcher.advance(rng.choice(allowed))
        if matcher.is_finished():
            break
    return masks


def test_a_text_without_the_terminal_that_nothing_spells_must_be_left() -> None:
    for text in ("start: M x\n", "start: x\nx: M | y\ny: x M\n"):
        with pytest.raises(GrammarError, match=r"terminal M is declared but has no pattern.*pass layout=Indenter"):
            parse_grammar(text + 'x: "a"\n%declare M\n' if "x:" not in text else text + "%declare M\n")
    with pytest.raises(GrammarError, match=r"terminal N is declared but has no pattern"):
        mw.compose('start: A | "b" N\n%declare A N\n', {"A": mw.load_regex("[0-9]")})


def test_a_layout_stays_where_another_terminal_is_left_out() -> None:
    """The terminals that are left are numbered anew, and so is the layout."""
    text = INDENTED.replace("line: ", 'line: "x" M | ').replace("%declare START", "%declare M START")
    layout = Indenter("NL", "START", "STOP", (("LPAR", ")"),))
    with pytest.warns(mw.MaskwrightWarning, match="terminal M is declared"):
        found = parse_grammar(text, layout=layout)
    assert shown_layout(found) == ("NL", "START", "STOP", "LPAR", "RPAR") and "X" not in found.terminal_number


def test_layout_roles_need_patterns_or_none() -> None:
    text = INDENTED + "%ignore NL\n"
    with pytest.raises(GrammarError, match=r"<text>:4:1: the layout's newline terminal NL is ignored"):
        parse_grammar(text, layout=Indenter("NL", "START", "STOP"))
    text = 'start: NL A B\nNL: "n"\nA: "a"\nB: "b"\n'
    with pytest.raises(GrammarError, match=r"<text>:3:1: the layout's indent terminal A must be declared"):
        parse_grammar(text, layout=Indenter("NL", "A", "B"))
    text = "start: N A B\n%declare N A B\n"
    with pytest.raises(GrammarError, match=r"terminal N is declared but has no pattern"):
        parse_grammar(text, layout=Indenter("N", "A", "B"))


def test_lark_s_own_grammar_loads() -> None:
    grammar = load_grammar("lark:lark")
    assert grammar.n_nonterminals > 20 and grammar.layout is None


@pytest.mark.parametrize("name", ["c11", "c_toy", "json", "python_flat"])
def test_peer_grammars_load(name: str) -> None:
    path = PEERS / f"{name}.lark"
    if not path.exists():
        pytest.skip(f"no shared data: {path} is absent")
    grammar = load_grammar(path)
    assert grammar.name == f"{name}.lark" and len(grammar.rules) > 10


def test_start_symbol_is_chosen() -> None:
    text = 'a: "x" b\nb: "y"'
    assert parse_grammar(text, start="b").nonterminals == ("b",)
    with pytest.raises(GrammarError, match=r"no rule 'start'; name the start symbol .* meant: a, b"):
        parse_grammar(text)
    with pytest.raises(GrammarError, match=r"no rule 'bb'; rules that could be meant: b"):
        parse_grammar(text, start="bb")


def test_conflicts_are_followed_or_shifted(tmp_path: Path) -> None:
    assert parse_grammar('start: "a"').conflicts == "all"
    (tmp_path / "g.lark").write_text('start: "a"')
    for source in ("lark:python", tmp_path / "g.lark"):
        assert load_grammar(source, conflicts="shift").conflicts == "shift"
    with pytest.raises(UnknownNameError, match=r"no way to treat conflicts is named 'shft'; did you mean 'shift'"):
        parse_grammar('start: "a"', conflicts="shft")  # type: ignore[arg-type]


def test_lexing_is_one_of_three() -> None:
    assert load_grammar("lark:lark").lexing == load_grammar("json").lexing == "longest"
    assert parse_grammar('start: "a"').lexing == "contextual"
    assert parse_grammar('start: "a"', lexing="longest").lexing == "longest"
    with pytest.raises(UnknownNameError, match=r"no lexing is named 'longst'; did you mean 'longest'"):
        parse_grammar('start: "a"', lexing="longst")  # type: ignore[arg-type]


def test_reserved_literals() -> None:
    assert parse_grammar('start: "a"').reserved == "none"
    assert parse_grammar('start: "a"', reserved="words").reserved == "words"
    assert parse_grammar('start: "a"\n// maskwright: reserved = all\n').reserved == "all"
    assert parse_grammar('start: "a"\n// maskwright: reserved = all\n', reserved="none").reserved == "none"
    # it says nothing under the other lexings, but is kept
    longest = parse_grammar('start: "a"', lexing="longest", reserved="words")
    assert longest.reserved == "words" and Grammar.from_dict(longest.to_dict()) == longest
    assert "reserved" not in parse_grammar('start: "a"', lexing="longest").to_dict()
    with pytest.raises(UnknownNameError, match=r"no choice of reserved literals is named 'word'; did you mean 'words'"):
        parse_grammar('start: "a"', reserved="word")  # type: ignore[arg-type]
    with pytest.raises(GrammarError, match=r"option reserved is 'some'; expected none or words or all"):
        parse_grammar('start: "a"\n// maskwright: reserved = some\n')
