"""The figures of the streamlining post, by commands: what they show, in which formats, and what goes with what."""

from __future__ import annotations

import itertools
from pathlib import Path
from xml.etree import ElementTree

import pytest
from grammars import make_grammar, random_grammar
from naive import is_word
from typer.testing import CliRunner

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.legality.pushdown import Configuration, Pushdown
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.loading import load_grammar
from maskwright.cli import app
from maskwright.report import pictures
from maskwright.report.question import Question

ANBN = make_grammar("S : a S b | a b")
ANBN_TEXT = 'start: "a" start "b" | "a" "b"'


def check_run(grammar: Grammar, word: tuple[int, ...]) -> None:
    """A run goes from the first configuration to the last one, each move by the automaton's rules; there is one for words only."""
    automaton = Pushdown(grammar)
    run = automaton.run(word)
    assert (run is not None) == is_word(grammar, word), word
    if run is None:
        return
    position, consumed, stack = Configuration(automaton.first, 0, ())
    for here, move in run:
        assert here == (position, consumed, stack) and move in automaton.transitions and move.source == position
        if move.read is not None:
            assert word[consumed] == move.read
            consumed += 1
        elif move.popped is not None:
            assert stack[0] == move.popped == move.target
            stack = stack[1:]
        else:
            assert move.pushed is not None
            stack = (move.pushed, *stack)
        position = move.target
    assert (position, consumed, stack) == (automaton.last, len(word), ())


def test_runs_are_there_for_words_only() -> None:
    found = 0
    for seed in range(30):
        grammar = random_grammar(seed)
        for n in range(4):
            for word in itertools.product(range(grammar.n_terminals), repeat=n):
                check_run(grammar, word)
                found += 1
    assert found > 500
    check_run(make_grammar("S : S a | a"), (0,) * 12)  # left recursion: as many addresses as letters
    check_run(make_grammar("S : S | a"), (0,))


def test_the_run_of_the_post() -> None:
    automaton, word = Pushdown(ANBN), (0, 0, 1, 1)
    run = automaton.run(word)
    assert run is not None
    rows = automaton.run_rows(run, word)
    assert rows[0] == ("text : · S", "", "a a b b", "push text : S ·")
    assert rows[4] == ("S : a · b", "[S : a S · b] [text : S ·]", "b b", "b")
    assert rows[-1] == ("text : S ·", "", "", "accept") and len(rows) == len(run) + 1 == 9
    labels = [edge.label for edge in automaton.run_graph(run).edges]
    assert labels[0] == "1: push\ntext : S ·" and "2: a" in labels and "8: pop\ntext : S ·" in labels


def test_what_has_no_run() -> None:
    with pytest.raises(GrammarError, match="a is no whole word"):
        pictures.render_question(Question(ANBN, (START,), (0,)), "run", Path("r.svg"))
    with pytest.raises(GrammarError, match="a run begins at the start"):
        pictures.render_question(Question(ANBN, (0,), (1,)), "run", Path("r.svg"))


def test_large_graphs_are_for_other_programs() -> None:
    grammar = load_grammar("lark:python")
    with pytest.raises(LimitError, match="277 nodes and 11,570 edges are too many for a picture; write them"):
        pictures.render_grammar(grammar, "follow", Path("f.svg"))
    assert pictures.render_grammar(grammar, "follow", Path("f.dot")).count(" -> ") == 11_570 + 1


@pytest.mark.parametrize(
    ("options", "shows"),
    [
        (["--draw", "follow"], ["<start>", "<end>"]),
        (["--draw", "pushdown"], ["start : A · start B"]),
        (["--draw", "run", "--then", "A A B B"], ["3: push"]),
        (["--draw", "exploration", "--after", "B", "--then", "B"], ["borrow", "start : A start · B"]),
        (["--draw", "nfa", "--after", "B", "--then", "B"], ["ε"]),
    ],
)
def test_each_figure_is_one_command(options: list[str], shows: list[str], tmp_path: Path) -> None:
    (tmp_path / "anbn.lark").write_text(ANBN_TEXT)
    for suffix in (".svg", *pictures.GRAPHS):
        target = tmp_path / f"d{suffix}"
        result = CliRunner().invoke(app, ["analyze", str(tmp_path / "anbn.lark"), *options, "--drawing", str(target)])
        assert result.exit_code == 0, result.output
        text = target.read_text(encoding="utf-8")
        assert {".svg": "<svg", ".dot": "digraph", ".graphml": "<graphml"}[suffix] == text.split()[0]
        read = text if suffix == ".dot" else "\n".join(ElementTree.fromstring(text).itertext())
        for line in shows:
            assert line in read, (suffix, line)
    assert ("to read" in result.output) == ("run" in options)


def test_entries_after_each_step(tmp_path: Path) -> None:
    (tmp_path / "anbn.lark").write_text(ANBN_TEXT)
    target = tmp_path / "e.svg"
    options = ["-t", "python-tiny", "--no-lint", "--no-forecast", "--draw", "entries", "--drawing", str(target)]
    result = CliRunner().invoke(app, ["analyze", str(tmp_path / "anbn.lark"), *options])
    assert result.exit_code == 0, result.output
    root = ElementTree.fromstring(target.read_text(encoding="utf-8"))
    titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "never-legal sequences deleted" in titles and "jointly legal sequences merged" in titles


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--draw", "follow"], "add --drawing FILE"),
        (["--drawing", "d.svg"], "--drawing needs to know what"),
        (["--draw", "folow", "--drawing", "d.svg"], "did you mean 'follow'"),
        (["--draw", "run", "--drawing", "d.svg"], "--draw run is about a question: add --then"),
        (["--draw", "follow", "--then", "STRING", "--drawing", "d.svg"], "is not about a question: leave out --then"),
        (["--draw", "entries", "--drawing", "d.svg"], "add --tokenizer T"),
        (["--draw", "entries", "-t", "python-tiny", "--drawing", "d.dot"], "a file that ends in .svg"),
        (["--draw", "follow", "--drawing", "d.svg", "--json", "-"], "--draw follow only draws: leave out"),
        (["--draw", "follow", "--drawing", "d.svg", "-t", "python-tiny"], "--draw follow only draws: leave out"),
        (
            ["--check-certificates", "c", "--draw", "entries", "-t", "python-tiny", "--drawing", "d.svg"],
            "leave these out",
        ),
    ],
)
def test_options_that_do_not_go_together(options: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = CliRunner().invoke(app, ["analyze", "json", *options])
    assert result.exit_code == 2 and message in result.stderr
