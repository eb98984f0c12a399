"""Questions about a grammar: all engines answer alike, and as its texts say; names of terminals, drawings, the command."""

from __future__ import annotations

import itertools
import json
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from grammars import make_grammar, random_grammar
from naive import is_prefix, legal_context, never_legal, refutes_always
from shares import share
from typer.testing import CliRunner

from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError, MissingExtraError, UnknownNameError
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.legality import exact
from maskwright.analysis.legality.deciders import Deciders
from maskwright.analysis.legality.explain import Explainer
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.cli import app
from maskwright.report import question
from maskwright.report.question import ENGINES, Answer, Answers, Question, ask, terminals_of

ANBN = make_grammar("S : a S b | a b")


@pytest.mark.slow
@pytest.mark.parametrize("n", share([10, 60], 1))
def test_all_engines_answer_random_questions_alike(n: int) -> None:
    rng, verdicts = random.Random(4), Counter[str]()
    for seed in range(n):
        grammar = random_grammar(seed)
        for _ in range(4):
            context = (START,) if rng.random() < 0.2 else (rng.randrange(grammar.n_terminals),)
            sequence = tuple(rng.randrange(grammar.n_terminals) for _ in range(rng.randint(1, 2)))
            try:
                answers = ask(grammar, context, sequence, ENGINES)
            except GrammarError as error:
                assert "is in no rule that a text can use" in str(error)
                continue
            assert answers.contradictions == (), (seed, context, sequence)
            by = {answer.engine: answer for answer in answers.answers}
            texts = () if context == (START,) else context
            assert (
                by["paths"].never
                is by["exact"].never
                is by["pyformlang"].never
                is never_legal(grammar, texts, sequence)
            )
            if answers.verdict == "always":
                assert refutes_always(grammar, texts, sequence, 4) is None
            elif (
                answers.verdict == "sometimes"
                and by["exact"].always is False
                and legal_context(grammar, texts, sequence, 4)
            ):
                verdicts["shown"] += refutes_always(grammar, texts, sequence, 5) is not None
            verdicts[answers.verdict] += 1
    assert min(verdicts[each] for each in ("never", "always", "sometimes", "shown")) > n // 12, verdicts


def test_longer_contexts_and_the_start() -> None:
    contexts, sequences = ("START", "START a", "a", "a a", "a b", "b"), ("a", "b", "a b b", "b b")
    said = {pair: ask(ANBN, *pair, ENGINES).verdict for pair in itertools.product(contexts, sequences)}
    a, b = ANBN.terminal_number["a"], ANBN.terminal_number["b"]
    for (context, then), verdict in said.items():
        is_start = context.startswith("START")
        word = tuple({"a": a, "b": b}[name] for name in f"{context} {then}".replace("START", "").split())
        ever = is_prefix(ANBN, word) if is_start else not never_legal(ANBN, word[:1], word[1:])
        assert (verdict == "never") == (not ever), (context, then)
    assert {pair for pair, verdict in said.items() if verdict == "always"} == {
        ("START", "a"), ("START", "a b b"), ("START a", "a"), ("START a", "b"), ("START a", "a b b"),
        ("a", "a"), ("a", "b"), ("a", "a b b"), ("a a", "a"), ("a a", "b"), ("a a", "b b"), ("a a", "a b b"),
    } - {("START", "a b b")}  # fmt: skip


def test_texts_show_the_verdict() -> None:
    grammar = load_grammar("lark:python")
    paths, exact = ask(grammar, "NAME", '"="').answers
    assert (paths.never, paths.always, exact.never, exact.always) == (False,) * 4
    assert exact.legal_after == "<NAME>" and exact.refused_after == "(<NAME>"
    assert paths.legal_after is not None and paths.legal_after.endswith("<NAME>")
    never = ask(grammar, "IF", ":", ENGINES)
    assert never.verdict == "never" and [answer.never for answer in never.answers] == [True, True, None, True]


def test_names_of_terminals() -> None:
    text = 'start: (A | "b c" | "\\"" | ";" | /[0-9]+/ | "if"i)*\nA: "x"\nB: "unused"\n%ignore " "'
    grammar = parse_grammar(text)
    for number, terminal in enumerate(grammar.terminals):
        names = [terminal.name, grammar.display_name(number)]
        names += [] if terminal.literal is None or " " in terminal.literal else [terminal.literal]
        for name in names:
            assert terminals_of(grammar, name) == (number,), name
    for literal in ('"\\n"', '"\\\\"', '"\\""'):  # as a grammar has it
        of_one = parse_grammar(f"start: {literal} A\nA: /a/")
        assert terminals_of(of_one, f"{literal} A") == (1 - of_one.terminal_number["A"], of_one.terminal_number["A"])
    assert terminals_of(grammar, 'START ";" A "b c"')[0] == START
    assert len(terminals_of(grammar, '  A   "b c" ; /[0-9]+/ ')) == 4
    for wrong, error, message in [
        ("SEMICOLN", UnknownNameError, r"has no terminal SEMICOLN; did you mean 'SEMICOLON'\?"),
        ("A START", GrammarError, "START is the start of the text, so nothing stands before it"),
    ]:
        with pytest.raises(error, match=message):
            terminals_of(grammar, wrong)


def test_a_terminal_called_start_is_that_terminal() -> None:
    grammar = parse_grammar('start: START "a"\nSTART: "b"')
    assert terminals_of(grammar, "START") == (grammar.terminal_number["START"],)


@pytest.mark.parametrize(
    ("context", "sequence", "message"),
    [
        ("", "STRING", "needs a context"),
        ("STRING", " ", "needs a context .* and a sequence"),
        ("STRING", "lost", "LOST is in no rule that a text can use"),
        ("BLANK", "STRING", "BLANK is ignored, so it may stand anywhere"),
    ],
)
def test_what_is_no_question(context: str, sequence: str, message: str) -> None:
    grammar = parse_grammar('start: STRING+ | dead\ndead: "lost" dead\nSTRING: /[a-z]/\nBLANK: " "\n%ignore BLANK')
    with pytest.raises(GrammarError, match=message):
        ask(grammar, context, sequence)


@pytest.mark.parametrize(
    ("context", "sequence", "message"),
    [
        (["A"], [0], "context is .*; expected numbers of terminals"),
        ((0,), (1.5,), "a member of sequence is 1.5"),
        ((0,), (START,), "it can be the first of the context alone"),
        ((0,), (99,), "has no terminal number 99; expected 0 to 1"),
        ("a", "START", "it can be the first of the context alone"),
    ],
)
def test_numbers_of_terminals(context: Any, sequence: Any, message: str) -> None:
    with pytest.raises(MaskwrightError, match=message):
        ask(ANBN, context, sequence)


def test_engines_are_named() -> None:
    with pytest.raises(UnknownNameError, match="no engine is named 'pyfromlang'; did you mean 'pyformlang'"):
        ask(ANBN, "a", "b", ["pyfromlang"])
    with pytest.raises(MaskwrightError, match="no engine is asked"):
        ask(ANBN, "a", "b", [])


def test_without_pyformlang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyformlang", None)
    with pytest.raises(MissingExtraError):
        ask(ANBN, "a", "b", ["pyformlang"])
    answers = ask(ANBN, "a", "b", ["paths", "pyformlang"])
    assert list(answers.skipped) == ["pyformlang"] and len(answers.answers) == 1


def test_a_contradiction_is_said() -> None:
    answers = Answers(Question(ANBN, (0,), (1,)), (Answer("paths", True, False), Answer("exact", False, None)))
    assert answers.contradictions == ("exact and paths disagree on never",)


def without_column(monkeypatch: pytest.MonkeyPatch, terminal: str) -> None:
    """Let the builder forget all actions before a terminal."""
    real = build_lr_tables

    def forgetful(grammar: Grammar, conflicts: Any = "all") -> LrTables:
        tables = real(grammar, conflicts)
        action = tables.action.copy()
        action[:, grammar.terminal_number[terminal]] = 0
        return replace(tables, action=action)

    monkeypatch.setattr(exact, "build_lr_tables", forgetful)


def test_wrong_tables_do_not_certify_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decider and its checker share the tables, so that both are wrong together where these are."""
    right = ask("json", "LSQB", "RSQB", ["exact"])
    assert right.verdict == "always" and right.answers[0].tables == "validated" and right.faults == ()
    assert all("checked, on LR tables that are validated" in each for each in right.answers[0].grounds)
    without_column(monkeypatch, "RSQB")
    wrong = ask("json", "LSQB", "RSQB", ["exact"])
    assert wrong.verdict == "unknown" and wrong.answers[0].certificates == ()
    assert "LR tables are WRONG: state 7 does not shift RSQB" in wrong.faults[0]
    both = ask("json", "LSQB", "RSQB")
    assert both.verdict == "always" and both.faults and both.to_dict()["faults"] == list(both.faults)
    monkeypatch.setenv("COLUMNS", "200")
    run = CliRunner().invoke(
        app, ["analyze", "json", "--after", "LSQB", "--then", "RSQB", "--engine", "exact", "--certificates", "-"]
    )
    assert run.exit_code == 1 and "nothing is known" in run.output and "FAULT: exact has no verdict" in run.output


def test_tables_that_are_not_validated_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With conflicts a missing action may be meant, so it is no fault."""
    grammar = make_grammar("S : a S a | b S b | a | b")
    assert ask(grammar, "b", "a", ["exact"]).answers[0].tables == "validated"
    without_column(monkeypatch, "a")
    answer = ask(grammar, "b", "a", ["exact"]).answers[0]
    assert answer.never is True and answer.tables == "sound, but not shown to be complete"
    assert "does not shift a" in answer.grounds[-1]
    assert "checked, on LR tables that are sound, but not shown to be complete" in answer.grounds[0]


def test_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, title = ask(ANBN, "b", "b").question.picture()
    assert title == "Exploration: b after b" and any("borrow" in edge.label for edge in graph.edges)
    with pytest.raises(GrammarError, match="START and more"):
        ask(ANBN, "START a", "b").question.picture()
    monkeypatch.setattr(question, "MOST_DRAWN", 0)
    with pytest.raises(LimitError, match="more than 0 situations, too many to draw"):
        ask(ANBN, "a", "b").question.picture()


def test_two_sequences_are_compared() -> None:
    """Jointly legal: after the same texts, by definition on all short prefixes, and by both engines alike."""
    words = [word for n in (1, 2) for word in itertools.product((0, 1), repeat=n)]
    prefixes = [word for n in range(1, 7) for word in itertools.product((0, 1), repeat=n) if is_prefix(ANBN, word)]
    said = Counter[str]()
    for context, first, second in itertools.product((0, 1), words, words):
        answers = ask(ANBN, (context,), first, ("paths", "exact"), second)
        after = [prefix for prefix in prefixes if prefix[-1] == context]
        alike = all(is_prefix(ANBN, prefix + first) == is_prefix(ANBN, prefix + second) for prefix in after)
        assert answers.verdict == ("jointly" if alike else "apart") and not answers.contradictions, (first, second)
        assert answers.to_dict()["other"] == [ANBN.display_name(each) for each in second]
        said[answers.verdict] += 1
    assert min(said.values()) > 10
    unheard = ask(ANBN, "a", "a", ["exploration", "pyformlang"], "b")
    assert unheard.verdict == "unknown" and all("does not compare" in each.grounds[0] for each in unheard.answers)
    with pytest.raises(GrammarError, match="the sequence to compare with is empty"):
        ask(ANBN, "a", "a", jointly="")
    with pytest.raises(GrammarError, match="START is the start of the text"):
        ask(ANBN, "a", "a", jointly="START")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    runner = CliRunner()
    asked = ["analyze", "json", "--after", '"["', "--then", '"]"']
    result = runner.invoke(app, [*asked, "--drawing", "d.svg"])
    assert result.exit_code == 0 and "json: RSQB after LSQB: can always follow" in result.output
    assert "legal after: [" in result.output and Path("d.svg").read_text().startswith("<svg")
    facts = json.loads(runner.invoke(app, [*asked, "--json", "-", *(f"--engine={each}" for each in ENGINES)]).stdout)
    assert [answer["engine"] for answer in facts["answers"]] == list(ENGINES) and facts["verdict"] == "always"
    start = runner.invoke(app, ["analyze", "json", "--then", '","'])
    assert "COMMA at START: can never follow" in start.output
    both = runner.invoke(app, ["analyze", "json", "--after", '"["', "--then", "TRUE", "--jointly", "FALSE"])
    assert both.exit_code == 0 and "TRUE | FALSE after LSQB: can follow exactly where the other can" in both.output
    for wrong, message in [
        (["--then", "STRING", "--then", '":"'], "name all terminals of one question in one: --then 'STRING \":\"'"),
        (["--jointly", "STRING"], "add --then TERMINALS"),
        (["--after", "STRING"], "add --then TERMINALS"),
        (["--then", "STRING", "--html", "r.html"], "leave these out"),
        (["--then", "STRNG"], "did you mean 'STRING'"),
    ]:
        result = runner.invoke(app, ["analyze", "json", *wrong])
        assert result.exit_code == 2 and message in result.stderr
    monkeypatch.setattr(question.Question, "_by_pyformlang", lambda self: Answer("pyformlang", True, None))
    result = runner.invoke(app, [*asked, "--engine", "paths", "--engine", "pyformlang"])
    assert result.exit_code == 1 and "contradiction: pyformlang and paths disagree on never" in result.output


def test_a_verdict_is_short_to_read() -> None:
    """Its proof is not: a closed set has a line for each symbol."""
    verdict = Explainer(Deciders(ANBN)).always_legal((0,), (1,))
    proved = replace(verdict, closed_set=(("S", (("a", "b") * 50,) * 50),))
    assert proved.closed_set and len(repr(proved)) < 200 and proved != verdict
