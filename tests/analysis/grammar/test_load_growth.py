"""Loading takes time in proportion to a text's length, whatever the text is made of."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pytest
from growth import growth
from shares import every

from maskwright.analysis.errors import GrammarError, MaskwrightError
from maskwright.analysis.grammar.lark_files import GrammarFiles, line_and_column, offsets_of
from maskwright.analysis.loading import parse_grammar

TEXTS: dict[str, Callable[[int], str]] = {
    "blanks before a colon": lambda n: "start" + " " * n + ': "x"\n',
    "blanks behind a name": lambda n: "start: a" + " " * n + '\na: "x"\n',
    "blanks behind a call's braces": lambda n: 'start: t{"x"}' + " " * n + "\nt{y}: y\n",
    "empty lines": lambda n: "start: a" + "\n" * n + '| b\na: "x"\nb: "y"\n',
    "lines of blanks": lambda n: "start: a\n" + " \n" * n + 'a: "x"\n',
    "comments": lambda n: "start: a\n" + "// comment\n" * n + 'a: "x"\n',
    "a long comment": lambda n: "// " + "?" * n + '\nstart: "x"\n',
    "a long literal": lambda n: f'start: "{"x" * n}"\n',
    "a long expression": lambda n: f"start: /{'x' * n}/\n",
    "a long name": lambda n: f'start: {"a" * n}\n{"a" * n}: "x"\n',
    "literals": lambda n: "start: " + " | ".join(f'"w{i}"' for i in range(n)) + "\n",
    "names": lambda n: "start: " + " ".join(["a"] * n) + '\na: "x"\n',
    "rules": lambda n: "start: " + " | ".join(f"r{i}" for i in range(n)) + "\n" + "".join(f'r{i}: "w{i}"\n' for i in range(n)),
    "a chain of rules": lambda n: "start: r0\n" + "".join(f"r{i}: r{i + 1}\n" for i in range(n)) + f'r{n}: "x"\n',
    "a chain of unused rules": lambda n: 'start: "x"\n' + "".join(f"r{i}: r{i + 1}\n" for i in range(n)) + f'r{n}: "x"\n',
    "terminals": lambda n: "start: " + " | ".join(f"T{i}" for i in range(n)) + "\n" + "".join(f"T{i}: /t{i}[xy]/\n" for i in range(n)),
    "ignored terminals": lambda n: 'start: "x"\n' + "".join(f'%ignore "i{i}"\n' for i in range(n)),
    "declarations on one line": lambda n: 'start: "x"\n%declare ' + " ".join(f"D{i}" for i in range(n)) + "\n",
    "repetitions": lambda n: "start: " + " ".join(f'"w{i}"+' for i in range(n)) + "\n",
}  # fmt: skip
SIZES = dict.fromkeys(TEXTS, 1_000) | {name: 200_000 for name in TEXTS if name.startswith(("blanks", "a long"))}
SIZES |= {"empty lines": 50_000, "lines of blanks": 50_000, "comments": 50_000, "names": 4_000}
MOST = {"a chain of rules": 3.2}
"""Times as long for a text twice as long, if not 2.6: what Lark makes of a chain leaves the processor's caches at these sizes."""


_numbers = itertools.count()


def cpu_seconds(text: str) -> float:
    """What reading a text takes that was not read before: what is kept of the last ones makes it twice as fast."""
    text += f"\n// {next(_numbers)}\n"
    start = time.process_time()
    parse_grammar(text)
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_loading_is_linear(name: str) -> None:
    write, n = TEXTS[name], SIZES[name]
    cpu_seconds(write(10))
    while cpu_seconds(write(n)) < 0.25 and n < 500_000:
        n *= 2
    ratio = growth(lambda n: cpu_seconds(write(n)), n)
    assert ratio < MOST.get(name, 2.6), f"{n}: {ratio:.2f}"


@pytest.mark.parametrize("name", every(2, TEXTS))
def test_a_long_text_loads_soon(name: str) -> None:
    """What took time in proportion to the square or the cube is far from this limit."""
    n = min(SIZES[name], 50_000) if SIZES[name] > 1_000 else 1_000
    assert cpu_seconds(TEXTS[name](n)) < 10


def test_underscores_that_begin_no_name_are_passed_at_once() -> None:
    start = time.process_time()
    offsets = offsets_of("_" * 200_000 + "1 __a __1b")
    assert time.process_time() - start < 1
    assert list(offsets.uses) == ["__a", "b"]


def test_the_place_of_a_definition_with_blanks_and_parameters_is_found() -> None:
    offsets = offsets_of('a  {x, y} . 2 : "x"\nb\t.-3: a{b, c} d : e\nf {g} h')
    assert list(offsets.definitions) == ["a", "b", "d"]


def test_a_soft_keyword_is_not_held_against_a_pattern_by_backtracking() -> None:
    keyword = "a" * 60 + "!"
    with pytest.raises(GrammarError, match="no pattern matches soft keyword"):
        parse_grammar(f'// maskwright: soft = {keyword}\nstart: "{keyword}" | A\nA: /(a+)+/\n')
    grammar = parse_grammar(f'// maskwright: soft = {keyword[:-1]}\nstart: "{keyword[:-1]}" | A | "b" A\nA: /(a+)+/\n')
    assert len(grammar.rules) > 3


def test_a_pattern_without_an_automaton_takes_no_soft_keyword() -> None:
    text = '// maskwright: soft = a\nstart: "a" | A | B\nA: /(.)\\1/\nB: /[ab]/\n'
    assert len(parse_grammar(text).terminals) == 3


@pytest.mark.parametrize("n", [2, 2_000])
def test_empty_lines_in_any_number_keep_places_and_meaning(n: int) -> None:
    text = "start: a" + "\n" * n + '| "b" /x\n' + "\n" * n + 'y/x\na: "x"' + "\n" * n + "c: d"
    with pytest.raises(MaskwrightError, match=f"<text>:{3 * n + 3}:4: Rule 'd' used but not defined"):
        parse_grammar(text)
    grammar = parse_grammar(text.replace("c: d", ""))
    assert [len(rule.rhs) for rule in grammar] == [1, 2, 1]
    assert any(terminal.pattern == "x\n" + "\n" * n + "y" for terminal in grammar.terminals)


def test_a_failing_import_is_found_behind_many_blanks() -> None:
    start = time.process_time()
    with pytest.raises(GrammarError, match="<text>:2:1: cannot import 'nothing'"):
        parse_grammar(
            "// c\n%import" + " " * 100_000 + "nothing.A\nstart: A\n" + "%import" + " " * 100_000 + "other.A\n"
        )
    assert time.process_time() - start < 5


def test_a_long_run_of_marks_does_not_delay_a_message() -> None:
    start = time.process_time()
    with pytest.raises(GrammarError, match="Inlined rules"):
        parse_grammar("// " + "?" * 100_000 + '\nstart: _a\n?_a: "x"\n')
    assert time.process_time() - start < 5


def test_lines_and_columns() -> None:
    text = "ab\n\ncd\n"
    assert [line_and_column(text, i) for i in range(len(text) + 1)] == [
        (1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (3, 2), (3, 3), (4, 1),
    ]  # fmt: skip
    files = GrammarFiles("main")
    assert files.add("main", text) == text


MULTIPLIED: dict[str, Callable[[int], str]] = {
    "a group": lambda n: f'start: ("a" | "b")~{n}',
    "a group with a star": lambda n: f'start: ("a" | ("b")*)~{n}',
    "a group with a star of a rule": lambda n: f'start: (start | r0*)~{n}\nr0: "b"',
    "an optional group": lambda n: f'start: ("a" | "b" | )~{n}',
    "a group or less": lambda n: f'start: "x" ("a" | "b"+)~0..{n}',
    "groups in groups": lambda n: f'start: (("a" | "b"?)~{n} | "c")~2',
    "stars": lambda n: "start: " + " ".join(f'"{i}"*' for i in range(n)),
    "equal stars": lambda n: "start: " + '"a"* ' * n,
    "optionals": lambda n: "start: " + " ".join(f'["{i}"]' for i in range(n)),
    "two large groups": lambda n: "start: " + " ".join("(" + "|".join(f'"{c}{i}"' for i in range(20 * n)) + ")" for c in "ab"),
    "helpers": lambda n: "start: " + " ".join(f'(("a" | "b"*)~6 "{i}")+' for i in range(n)),
    "rules": lambda n: "start: " + " ".join(f"r{i}" for i in range(n)) + "".join(f'\nr{i}: ("a" | "b"*)~7' for i in range(n)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", MULTIPLIED)
def test_what_multiplies_loads_soon(name: str) -> None:
    """Multiplied out as long as that is little; then parts have rules of their own."""
    for n in (*range(1, 12), *range(12, 50, 4)):  # from 50 on Lark makes helper rules
        start = time.process_time()
        parse_grammar(MULTIPLIED[name](n), conflicts="all")
        took = time.process_time() - start
        assert took < 10, f"{n}: {took:.1f} s"
