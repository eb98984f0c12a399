"""Bounds on the lengths of lexemes: what is left is what was there, but for texts with a lexeme that is too short or too long."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from engine_cases import (
    longest,
    random_contextual_grammar,
    random_layout_grammar,
    random_longest_grammar,
    random_verbatim_grammar,
    random_vocabulary,
    samples,
)
from mask_bits import row
from naive_engine import NaiveEngine
from shares import share
from typer.testing import CliRunner

import maskwright as mw
from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError
from maskwright.analysis.fronts import to_gbnf
from maskwright.analysis.grammar.grammar import Grammar, Lengths
from maskwright.analysis.grammar.terminal import Terminal
from maskwright.analysis.lexing.terminals import compile_pattern, compile_terminal
from maskwright.analysis.restrict.restrict import bound_lengths, restrict
from maskwright.cli import app
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store
from maskwright.validation.oracle import Oracle

BYTES = Vocabulary("bytes", (*(bytes([i]) for i in range(256)), b""), {256: "</s>"}, (256,))
TEXT = r"""
start: (NAME | STRING)+
NAME: /[a-z]+/
STRING: /"[^"]*"/
WS: /[ \n]+/
%ignore WS
"""
KINDS = {
    "plain": random_longest_grammar,
    "layout": random_layout_grammar,
    "contextual": random_contextual_grammar,
    "verbatim": random_verbatim_grammar,
}


def judged(store: Store, text: str) -> str:
    matcher = store.matcher()
    if not matcher.try_bytes(text.encode()):
        return "refused"
    return "legal" if matcher.is_accepting() else "a beginning"


@pytest.mark.parametrize("lexing", ["longest", "contextual"])
def test_lexemes_of_other_lengths_are_refused_and_not_cut_in_two(lexing: str) -> None:
    grammar = mw.parse_grammar(TEXT, lexing=lexing, restrict=["length:WS=..2", "length:STRING=3..5", "length:NAME=2.."])  # type: ignore[arg-type]
    store = mw.build_store(grammar, BYTES)
    for text, expected in {
        "ab  cd": "legal",
        "ab   cd": "refused",
        "ab   ": "refused",
        "ab  ": "legal",
        "a": "a beginning",
        "a b": "refused",
        '""': "refused",
        '"a"': "legal",
        '"abc"': "legal",
        '"abc': "a beginning",
        '"abcd': "refused",
        '"äöü"': "legal",
        '"äö€ü': "refused",
    }.items():
        assert judged(store, text) == expected, text


def test_without_a_lexer_that_takes_the_longest_match_each_lexeme_is_bounded() -> None:
    grammar = mw.parse_grammar(TEXT, lexing="nfa", restrict=["length:WS=..2"])
    assert [t.lengths for t in grammar.terminals] == [None, None, Lengths(0, 2)]


@pytest.mark.parametrize(
    ("pattern", "bound", "by_hand"),
    [
        (" +", Lengths(0, 4), " {1,4}"),
        ('"[^"]*"', Lengths(3, 6), '"[^"]{1,4}"'),
        ("(ab)+", Lengths(3, 7), "(ab){2,3}"),
        ('"([^"\\\\]|\\\\.)*"', Lengths(4, 4), '"([^"\\\\]|\\\\[^\\n]){2}"|"\\\\[^\\n]"'),
        ("é+|x", Lengths(1, 2), "é{1,2}|x"),
        ("[a-z]+?;", Lengths(0, 3), "[a-z]{1,2};"),
    ],
)
def test_the_automaton_is_that_of_the_pattern_bounded_by_hand(pattern: str, bound: Lengths, by_hand: str) -> None:
    expected = compile_pattern(by_hand)
    if by_hand.count("|") == 2:  # two characters inside, of which an escape is two
        expected = compile_pattern('"[^"\\\\]{2}"|"\\\\[^\\n]"')
    assert compile_terminal(Terminal("T", pattern, lengths=bound)) == expected
    other = compile_terminal(Terminal("O", pattern, lengths=bound, beyond="T"))
    whole = compile_terminal(Terminal("T", pattern))
    for n in range(5):
        for letters in itertools.product('" abx;é\\', repeat=n):
            text = "".join(letters).encode()
            assert (expected.matches(text), other.matches(text)).count(True) == whole.matches(text), text


def random_bounds(grammar: Grammar, seed: int) -> dict[str, str]:
    """Bounds that leave out some lexemes, of one to three terminals."""
    rng = random.Random(f"lengths {seed}")
    layout = grammar.layout
    special = set() if layout is None else {layout.newline, layout.indent, layout.dedent}
    open_ones = [
        terminal.name
        for number, terminal in enumerate(grammar.terminals)
        if number not in special and terminal.literal is None and not terminal.is_declared
    ]
    found: dict[str, str] = {}
    for name in rng.sample(open_ones, min(len(open_ones), rng.choice([1, 1, 2, 3]))):
        least, most = sorted(rng.choice([1, 1, 2, 2, 3, 4]) for _ in range(2))
        found[name] = rng.choice([f"..{most}", f"..{most}", f"{least}..", f"{least}..{most}"])
    return found


def bounded(kind: str, seed: int) -> tuple[Grammar, Grammar]:
    """A random grammar, and the same with bounds. Skips where no lexeme is within them."""
    grammar = KINDS[kind](seed)
    try:
        return grammar, bound_lengths(grammar, random_bounds(grammar, seed))
    except mw.GrammarError as error:
        pytest.skip(str(error))


@cache
def case(kind: str, seed: int) -> tuple[Grammar, Store, NaiveEngine]:
    whole, grammar = bounded(kind, seed)
    try:
        return (
            whole,
            compile_store(grammar, random_vocabulary(whole, seed, 30)),
            NaiveEngine(grammar, grammar.conflicts),
        )
    except MaskwrightError as error:
        pytest.skip(str(error))


CASES = [
    *share([pytest.param("plain", seed, id=f"plain-{seed}") for seed in range(40)], 2),
    *share([pytest.param("contextual", seed, id=f"contextual-{seed}") for seed in range(40)], 2),
    *share([pytest.param("verbatim", seed, id=f"verbatim-{seed}") for seed in range(20)], 2),
    *share([pytest.param("layout", seed, id=f"layout-{seed}") for seed in range(20)], 2),
]


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_masks_equal_the_naive_twins(kind: str, seed: int) -> None:
    _, store, naive = case(kind, seed)
    rng = random.Random(seed)
    eos = set(store.vocabulary.eos)
    for _ in range(3):
        matcher, text = store.matcher(), b""
        for _ in range(8):
            try:
                found = row(matcher)
            except DeadEndError:
                found = set()
            except LimitError:
                pytest.skip("the grammar has too many readings")
            expected = naive.allowed(text, store.vocabulary.tokens) | (eos if naive.is_legal_text(text) else set())
            assert found == expected, text
            if not found - eos:
                break
            token = rng.choice(sorted(found - eos))
            matcher.advance(token)
            text += store.vocabulary.tokens[token]


@pytest.mark.parametrize("seed", share(range(60), 10))
def test_a_text_is_legal_if_it_was_and_all_its_lexemes_are_within_the_bounds(seed: int) -> None:
    whole, store, _ = case("plain", seed)
    naive = NaiveEngine(whole)
    lengths = {t.name: t.lengths for t in store.grammar.terminals if t.lengths is not None and not t.beyond}
    rng = random.Random(seed)
    compared = 0
    for text in samples(whole, rng, 60):
        if not naive.is_legal_text(text):
            continue
        begin, fits = 0, True
        while begin < len(text):
            terminal, end, _ = naive.scan(text, begin)
            n, bound = len(text[begin:end].decode()), lengths.get(whole.terminals[terminal].name)
            fits &= bound is None or (bound.least <= n and (bound.most is None or n <= bound.most))
            begin = end
        matcher = store.matcher()
        assert (matcher.try_bytes(text) and matcher.is_accepting()) == fits, text
        compared += 1
    assert compared or seed >= 20 or "start" in str(whole)


@pytest.mark.parametrize("lexing", ["longest", "contextual"])
def test_the_oracle_agrees(lexing: str) -> None:
    grammar = mw.parse_grammar(TEXT, lexing=lexing, restrict=["length:WS=..2", "length:STRING=3..5", "length:NAME=2.."])  # type: ignore[arg-type]
    oracle, store = Oracle(grammar, "all"), mw.build_store(grammar, BYTES)
    for n in range(6):
        for letters in itertools.product('a" ', repeat=n):
            text = "".join(letters).encode()
            matcher = store.matcher()
            is_prefix = not text or matcher.try_bytes(text)
            assert oracle.is_legal_prefix(text) == is_prefix, text
            assert oracle.is_legal_text(text) == (is_prefix and matcher.is_accepting()), text


def test_ties_go_as_before() -> None:
    """The patterns of A and AB have one length, so the name decides: for long lexemes as for short ones."""
    text = "start: (A | AB)+\nA: /[a-y]+/\nAB: /[b-z]+/\n"
    for name, allowed in (("A", ["bb", "zzz"]), ("AB", ["bbb", "bb", "aaa", "zz"])):
        store = mw.build_store(bound_lengths(longest(text), {name: "..2"}), BYTES)
        found = [one for one in ("bbb", "bb", "aaa", "zzz", "zz") if judged(store, one) == "legal"]
        assert set(found) == {*allowed, "zz"}, name


def test_keywords_stay_reserved() -> None:
    text = '// maskwright: reserved = words\nstart: "if" NAME "then" NAME\nNAME: /[a-z]+/\n%ignore " "\n'
    for bound in ("3..", "..1"):
        store = mw.build_store(mw.parse_grammar(text, restrict=[f"length:NAME={bound}"]), BYTES)
        name = "abc" if bound == "3.." else "a"
        assert judged(store, f"if {name} then {name}") == "legal"
        assert judged(store, f"if if then {name}") == "refused"
        assert judged(store, f"if{name} then {name}") == "refused"


def test_a_bound_that_leaves_out_nothing_changes_nothing() -> None:
    assert mw.parse_grammar(TEXT, restrict=["length:NAME=1..", "length:STRING=2.."]) == mw.parse_grammar(TEXT)


def test_grammars_with_bounds_are_written_and_read_back(tmp_path: Path) -> None:
    grammar = mw.parse_grammar(TEXT, restrict=["length:WS=..2"])
    assert Grammar.from_dict(grammar.to_dict()) == grammar
    assert grammar.digest != mw.parse_grammar(TEXT).digest
    mw.build_store(grammar, BYTES).save(tmp_path / "store.safetensors")
    assert judged(mw.load_store(tmp_path / "store.safetensors"), "ab   c") == "refused"
    data = grammar.to_dict()
    for fields, message in (([1], "1 fields"), ([*data["terminals"][-1][:7], -1, 2, "WS"], "length -1")):
        with pytest.raises(mw.GrammarError, match=message):
            Grammar.from_dict({**data, "terminals": [*data["terminals"][:-1], fields]})


@pytest.mark.parametrize(
    ("restriction", "kind", "message"),
    [
        ("length:SPACE=..8", mw.UnknownNameError, "no terminal 'SPACE'.*known: NAME, STRING, WS"),
        ("length:start=..8", mw.UnknownNameError, "no terminal 'start'"),
        ("length:WS", mw.GrammarError, r"length of WS is ''; expected numbers of characters, as in \.\.8"),
        ("length:WS=few", mw.GrammarError, "length of WS is 'few'"),
        ("length:WS=..", mw.GrammarError, r"length of WS is '\.\.'"),
        ("length:WS=5..2", mw.GrammarError, "no lexeme of WS has 5..2 characters: 5 > 2"),
        ("length:WS=..99999999999", mw.GrammarError, "is too large"),
        ("length:WS=0", mw.GrammarError, "no lexeme of WS has a length of 0; a shortest one, ' ', has 1"),
        ("length:STRING=..1", mw.GrammarError, r"no lexeme of STRING has a length of \.\.1"),
        ("length:STRING=..99999", mw.LimitError, r"length:STRING=\.\.99999.*more than"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(restriction: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        mw.parse_grammar(TEXT, restrict=[restriction])


def test_what_cannot_be_bounded_says_so() -> None:
    outline = "start: entry+\n"
    outline += "entry: NAME _NEWLINE [_INDENT entry+ _DEDENT]\nNAME: /[a-z]+/\n_NEWLINE: /(\\n *)+/\n%declare _INDENT _DEDENT\n"
    for name in ("_NEWLINE", "_INDENT"):
        with pytest.raises(mw.GrammarError, match=f"{name} is part of the layout"):
            mw.parse_grammar(outline, restrict=[f"length:{name}=..8"])
    grammar = mw.parse_grammar(TEXT, lexing="longest", restrict=["length:NAME=..8"])
    with pytest.raises(
        mw.GrammarError, match=r"the length of NAME is \.\.8 already, by a restriction or a line of its file"
    ):
        restrict(grammar, ["length:NAME=2.."])
    with pytest.raises(mw.UnknownNameError, match="known: NAME, STRING, WS"):
        restrict(grammar, ["length:NAME__OTHER_LENGTHS=2.."])
    with pytest.raises(mw.GrammarError, match=r"bound it in the convention, as in NAME=\[a-z\]"):
        restrict(grammar, ["NAME=[a-c]+"])
    with pytest.raises(
        mw.GrammarError, match=r"convention NAME splits terminal NAME, so length:NAME cannot bound it; .*NAME=\[a-z\]"
    ):
        mw.parse_grammar(TEXT, lexing="longest", restrict=["NAME=[a-c]+", "length:NAME=..3"])
    with pytest.raises(mw.GrammarError, match="the length of terminal NAME is bounded, which GBNF cannot say"):
        to_gbnf(grammar)


def test_the_commands_bound_lengths(tmp_path: Path) -> None:
    path, text = tmp_path / "words.lark", tmp_path / "text"
    path.write_text(TEXT)
    text.write_text("ab   cd")
    bound = ["--tokenizer", "python-tiny", "--restrict", "length:WS=..2"]
    output = CliRunner().invoke(app, ["explain", str(path), "--text", str(text), *bound]).output
    assert "WS of other lengths than ..2 cannot come here" in " ".join(output.split())
    free = CliRunner().invoke(app, ["lint", str(path)]).output
    assert "endless-whitespace" in free and "length:WS=..8" in " ".join(free.split())
    for lexing in ("longest", "contextual"):
        output = CliRunner().invoke(app, ["lint", str(path), "--lexing", lexing, *bound]).output
        assert "0 errors, 0 warnings, 0 infos" in output or "endless-whitespace" not in output
        assert "unused-terminal" not in output


STATED = "// maskwright: length WS = ..2\n// maskwright: length STRING = 3..5\n"


def stated(line: str, **more: object) -> Grammar:
    return mw.parse_grammar(f"// maskwright: {line}\n{TEXT}", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("lexing", ["longest", "contextual", "nfa"])
def test_a_line_of_the_file_says_what_a_restriction_does(lexing: str) -> None:
    restrict = ["length:WS=..2", "length:STRING=3..5"]
    by_lines = mw.parse_grammar(STATED + TEXT, lexing=lexing)  # type: ignore[arg-type]
    asked = mw.parse_grammar("//\n" * 2 + TEXT, lexing=lexing, restrict=restrict)  # type: ignore[arg-type]
    assert replace(by_lines, text=asked.text) == asked
    assert by_lines.digest != mw.parse_grammar("//\n" * 2 + TEXT, lexing=lexing).digest  # type: ignore[arg-type]


def test_a_restriction_overrides_the_line() -> None:
    for restriction, expected in (
        ("length:WS=..4", Lengths(0, 4)),
        ("length:WS=0..", None),
        ("length:NAME=..4", Lengths(0, 2)),
    ):
        grammar = stated("length WS = ..2", restrict=[restriction])
        assert grammar.terminals[grammar.terminal_number["WS"]].lengths == expected


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("length SPACE = ..8", mw.GrammarError, r":1:\d+: option length names SPACE, .*known: NAME, STRING, WS"),
        ("length start = ..8", mw.GrammarError, "option length names start, which is not a terminal"),
        ("length WS =", mw.GrammarError, "expected an option as in"),
        ("length = WS:..8", mw.GrammarError, "expected a terminal for the length, as in: // maskwright: length STRING"),
        ("length:WS = ..8", mw.GrammarError, "expected a terminal for the length"),
        ("length WS = few", mw.GrammarError, r":1:\d+: the length of WS is 'few'; expected numbers"),
        ("length WS = ..", mw.GrammarError, r"the length of WS is '\.\.'"),
        ("length WS = ..8 9", mw.GrammarError, r"the length of WS is '\.\.8 9'"),
        ("length WS = 5..2", mw.GrammarError, ":1:.*no lexeme of WS has 5..2 characters: 5 > 2"),
        ("length WS = ..99999999999", mw.GrammarError, "is too large"),
        ("length WS = 0", mw.GrammarError, r":1:\d+: no lexeme of WS has a length of 0"),
        ("length STRING = ..99999", mw.LimitError, r":1:\d+: length:STRING=\.\.99999.*more than"),
        ("length WS = 1\n// maskwright: length WS = 2", mw.GrammarError, r":2:\d+: option length WS is given twice"),
        ("lengths WS = 1", mw.GrammarError, "no option is named 'lengths WS'; did you mean length"),
    ],
)
def test_lines_that_make_no_sense_are_refused_where_they_stand(line: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        stated(line)


def test_lines_about_layouts_and_conventions_are_refused() -> None:
    outline = "// maskwright: length _NEWLINE = ..8\nstart: (NAME _NEWLINE [_INDENT NAME _DEDENT])+\n"
    outline += "NAME: /[a-z]+/\n_NEWLINE: /(\\n *)+/\n%declare _INDENT _DEDENT\n"
    with pytest.raises(mw.GrammarError, match=r":1:\d+: terminal _NEWLINE is part of the layout"):
        mw.parse_grammar(outline)
    with pytest.raises(mw.GrammarError, match="bounds NAME, whose words a convention tells apart; bound them in"):
        stated("length NAME = ..8", lexing="longest", restrict=["NAME=[a-c]+"])
    all_fit = stated("length NAME = ..8", lexing="longest", restrict=["NAME=[a-z]+"])
    assert all_fit.terminals[all_fit.terminal_number["NAME"]].lengths == Lengths(0, 8)
    with pytest.raises(mw.GrammarError, match=r"the length of NAME is \.\.8 already"):
        restrict(stated("length NAME = ..8"), ["length:NAME=2.."])


def test_lines_stay_right_under_other_restrictions_and_start_symbols() -> None:
    text = """
// maskwright: lexing = longest
// maskwright: restriction no_comments = COMMENT:
// maskwright: restriction short = BLANKS:BLANK :BLANKS
// maskwright: length COMMENT = ..4
// maskwright: length BLANK = 1
// maskwright: length OTHER = ..3
start: NAME ("#" NAME)*
other: OTHER
NAME: /[a-z]+/
OTHER: /[0-9]+/
COMMENT: /#[^\\n]*\\n/
BLANKS: / +/
BLANK.1: / /
%ignore COMMENT
%ignore BLANKS
"""
    bounds = {name: str(Lengths(0, most)) for name, most in (("COMMENT", 4), ("OTHER", 3))}
    for more, left in (
        ({}, ["COMMENT"]),
        ({"restrict": ["no_comments"]}, []),
        ({"restrict": ["short"]}, ["COMMENT"]),
        ({"start": "other"}, ["COMMENT", "OTHER"]),
    ):
        grammar = mw.parse_grammar(text, **more)  # type: ignore[arg-type]
        found = {t.name: str(t.lengths) for t in grammar.terminals if t.lengths is not None and not t.beyond}
        assert found == {name: bounds[name] for name in left}
        assert sum(bool(t.beyond) for t in grammar.terminals) == len(left)
    # one after the other is the same as both at once
    assert (
        restrict(mw.parse_grammar(text), ["no_comments"]).terminals
        == mw.parse_grammar(text, restrict=["no_comments"]).terminals
    )
    store = mw.build_store(mw.parse_grammar(text, restrict=["no_comments"]), BYTES)
    assert judged(store, "a#bcdef") == "legal"


@pytest.mark.slow
def test_the_api_and_the_commands_keep_to_the_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    path, store, text = tmp_path / "words.lark", tmp_path / "store.safetensors", tmp_path / "text.txt"
    text.write_text("ab   cd")
    for line, expected in (("", "legal"), (STATED, "refused")):
        path.write_text(line + TEXT)
        assert judged(mw.build_store(str(path), BYTES), "ab   cd") == expected
        assert judged(mw.cached_store(str(path), BYTES), "ab   cd") == expected
        assert judged(mw.cached_store(str(path), BYTES), "ab   cd") == expected  # from the cache
        exported = CliRunner().invoke(app, ["export", str(path), "-t", "python-tiny", "-o", str(store)])
        assert exported.exit_code == 0, exported.output
        assert judged(mw.load_store(store), "ab   cd") == expected  # type: ignore[arg-type]
        found = CliRunner().invoke(app, ["validate", str(path), str(text), "-t", "python-tiny"])
        assert found.exit_code == (0 if expected == "legal" else 1), found.output
        for constraint in (path, store):
            found = CliRunner().invoke(app, ["complete", str(constraint), "ab   cd", "--max-tokens", "4"])
            assert (found.exit_code == 0) == (expected == "legal"), found.output
