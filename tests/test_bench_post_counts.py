"""The counts of the streamlining post: docs/sources.md shows what the script and the command count."""

from __future__ import annotations

import re
import unicodedata

from bench_scripts import bench_script
from paths import ROOT

import maskwright as mw
from maskwright.analysis.legality.pushdown import Pushdown
from maskwright.report.analysis import analyze

PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")


def here(head: str) -> list[int]:
    """The numbers in the column "here" of the row that begins with a head."""
    row = re.search(rf"^\| {re.escape(head)} \| [^|]+ \| ([^|]+) \|", PAGE, re.MULTILINE)
    assert row is not None, head
    return [int(each.replace(",", "")) for each in re.findall(r"[\d,]+", row[1].replace(".", ","))]


def test_the_page_shows_what_analyze_counts() -> None:
    grammar = mw.load_grammar("lark:python", lexing="nfa")
    facts = analyze(grammar, "mistral-7b-v0.1", pairs=False, forecast=False).to_dict()
    entry = next(each for each in facts["entries"] if (each["reading"], each["rules"]) == ("post", "lark"))
    behind = [s["original"] for s in facts["post_states"] if (s["terminal"], s["text"]) == ("DEF", "def")]
    assert here("terminals") == [facts["grammar"]["terminals"]]
    assert here("nonterminals") == [facts["grammar"]["nonterminals"]]
    assert here("rules") == [facts["grammar"]["rules"]]
    assert here("states of the lexer NFA") == [facts["lexer"]["post"]["states"]]
    assert here("its transitions") == [facts["lexer"]["post"]["transitions"]]
    assert here("interchange classes") == [len(facts["interchange"]["classes"]), facts["interchange"]["terminals"]]
    assert here("sequences behind `def`") == behind
    assert here("entries") == [entry["original"]] == [sum(s["original"] for s in facts["post_states"])]
    assert here("rows of the token NFA") == [facts["token_nfa"]["post"]["rows"]]
    assert here("fewer entries") == [round(10 * entry["ratio"])]  # with its decimal
    for step in ("follow", "never", "always", "joint"):
        assert sum(state[step] for state in facts["post_states"]) == entry[step]
    sound, resting = facts["lexer"]["sound"]["states"], len(facts["states"])
    if unicodedata.unidata_version == "14.0.0":  # other Pythons know other letters
        assert f"{sound - 2} states of the terminals' automata; {sound} with" in PAGE
        assert f"; {resting} in which a token can end" in PAGE
    post = facts["lexer"]["post"]["states"]
    assert f"they are {post - 2}, {post} and {len(facts['post_states'])}" in PAGE.replace("\n", " ")


def test_the_page_shows_what_the_recipes_count() -> None:
    grammar, vocabulary = mw.load_grammar("lark:python", lexing="nfa"), mw.load_vocabulary("mistral-7b-v0.1")
    with bench_script("post_counts") as script:
        rows = list(script.count(grammar, vocabulary))
    assert len(rows) >= 7
    for recipe, behind, entries, n_rows in rows:
        assert f"| {recipe.name} | {behind:,} | {entries:,} | {n_rows:,} |" in PAGE


def test_the_page_shows_the_run_of_the_post() -> None:
    grammar = mw.parse_grammar('start: "a" start "b" | "a" "b"')
    automaton, word = Pushdown(grammar), (0, 0, 1, 1)
    run = automaton.run(word)
    assert run is not None
    shown = re.search(r"```\nstep .*?```", PAGE, re.DOTALL)
    assert shown is not None
    lines = [re.split(r" {2,}", line.strip()) for line in shown[0].splitlines()[2:-1]]
    rows = automaton.run_rows(run, word)
    assert lines == [[str(number), *filter(None, row)] for number, row in enumerate(rows, start=1)]
