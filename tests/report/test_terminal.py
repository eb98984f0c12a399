"""The report in a terminal: fits, degrades, and shows the numbers of the facts."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from maskwright.report import figures, terminal
from maskwright.report.svg import STEP_LABELS, printable
from maskwright.report.terminal import render_terminal

Facts = dict[str, Any]


def printed(facts: Facts, width: int = 80, **options: Any) -> str:
    file = io.StringIO()
    Console(file=file, width=width, **options).print(render_terminal(facts))
    return file.getvalue()


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("which", ["facts", "grammar_facts", "hostile_facts", "engine_facts"])
def test_no_line_is_wider_than_the_terminal(which: str, width: int, request: pytest.FixtureRequest) -> None:
    lines = printed(request.getfixturevalue(which), width).splitlines()
    assert max(map(cell_len, lines)) <= min(width, terminal.MAX_WIDTH)
    assert len(lines) <= 115


def test_numbers(facts: Facts) -> None:
    lines = printed(facts).splitlines()
    main, calls = facts["entries"][-1], facts["parser_calls"]
    assert any(f"{main['original']} -> {main['exact']}" in line and "times fewer" in line for line in lines)
    assert any(f"{calls['original']:.1f} -> {calls['streamlined']:.1f}" in line for line in lines)
    for step in ("classes", "follow", "pairs", "never", "always", "joint", "exact"):
        assert any(line.startswith(STEP_LABELS[step]) and f" {main[step]} " in line for line in lines)
    at = next(i for i, line in enumerate(lines) if line.startswith("step "))
    for step, line in zip(STEP_LABELS, lines[at + 1 :], strict=False):
        assert line.split()[-4:] == [str(entry[step]) for entry in facts["entries"]] and STEP_LABELS[step] in line
    (fewer,) = (line.split()[-4:] for line in lines if line.startswith("times fewer, in all"))
    assert fewer == [f"{entry['ratio_exact']:.1f}" for entry in facts["entries"]]
    assert any(line.split()[-3:] == ["2", '"+"', '"-"'] for line in lines)
    blank = next(state for state in facts["states"] if state["terminal"] == "BLANK")
    assert ["BLANK", '"', '"', str(blank["ignored"]), str(blank["exact"])] in [line.split()[:5] for line in lines]
    assert "MB of memory" in " ".join(" ".join(lines).split())


def test_exact_engine(facts: Facts, engine_facts: Facts) -> None:
    assert "Exact engine" not in printed(facts)
    lines = printed(engine_facts).splitlines()
    found = engine_facts["engine"]
    at = next(i for i, line in enumerate(lines) if line.startswith("Lexing longest, built in"))
    expected = [found[name] for name in figures.ENGINE_LABELS if name in found]
    shown = [int(line.split()[0].replace(",", "")) for line in lines[at + 2 : at + 2 + len(expected)]]
    assert shown == expected and found["nodes"] in shown and found["table_bytes"] in shown and len(shown) >= 9
    (own,) = (i for i, line in enumerate(lines) if "your store, lexing longest" in line)
    (post,) = (i for i, line in enumerate(lines) if "entries of the post's store, lexing nfa" in line)
    assert own < post


def test_bars_are_to_scale(facts: Facts) -> None:
    facts["entries"][-1].update(original=1000, ignored=1000, classes=500, follow=100)
    bars = {line[:8]: line.count("━") for line in printed(facts).splitlines() if "  ━" in line}
    assert bars["original"] == terminal.BAR_WIDTH and bars["intercha"] == 10 and bars["impossib"] == 2


def test_without_a_vocabulary(grammar_facts: Facts) -> None:
    text = printed(grammar_facts)
    assert "without a vocabulary" in text and "step by step" not in text
    assert ["Terminals", "7", "1", "ignored", "BLANK", "0", "inserted", "by", "layout"] in [
        line.split() for line in text.splitlines()
    ]


def test_piped_or_without_colour_there_are_no_escape_codes(facts: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in printed(facts)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = printed(facts, force_terminal=True)
    assert "\x1b[3" not in plain and "\x1b[9" not in plain  # bold and dim may stay, colours not


def test_with_colour_the_words_are_the_same(facts: Facts) -> None:
    coloured = printed(facts, force_terminal=True, color_system="truecolor")
    assert "\x1b[" in coloured and STEP_LABELS["follow"] in coloured


def test_ascii_terminal(facts: Facts) -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii", errors="strict")
    Console(file=file, width=80).print(render_terminal(facts))
    file.flush()
    assert b"impossible neighbours deleted" in raw.getvalue()


def test_texts_of_a_user_are_no_markup_and_no_escape_codes(hostile_facts: Facts) -> None:
    for state in hostile_facts["states"]:
        state["text"] = "[red]\x1b[31m"
    text = printed(hostile_facts, force_terminal=True, color_system="truecolor", width=200)
    assert "\x1b[31m" not in text and "[red]\\x1b[31m" in text
    assert printable(hostile_facts["grammar"]["name"])[:30] in text


def test_parts_that_an_analysis_may_lack(facts: Facts) -> None:
    del facts["pair_contexts"], facts["lexer"]["post"], facts["token_nfa"]["post"]
    facts["entries"] = facts["entries"][2:]
    facts["remembered"]["states"] = 0
    facts["interchange"] = {"classes": [], "terminals": 0, "further": [], "classes_normalised": []}
    text = printed(facts)
    assert "No two terminals are interchangeable" in text
    assert "More context" not in text and "post" not in text.partition("step by step")[2]


def test_a_class_seen_after_rewriting_only(facts: Facts) -> None:
    facts["interchange"]["further"] = [["LPAR", "RPAR"]]
    text = printed(facts)
    assert ["after", "rewriting", "2", "LPAR", "RPAR"] in [line.split() for line in text.splitlines()]


def test_largest_step() -> None:
    entry = dict(zip(STEP_LABELS, (100, 90, 80, 10, 9, 8, 7, 6, 5), strict=True))
    assert figures.largest_step(entry) == ("follow", 70)


def test_state_text_shows_outer_spaces() -> None:
    assert [figures._text(text) for text in (" ", "a b", "a ")] == [[figures.Code(t)] for t in ('" "', "a b", '"a "')]


def section(facts: Facts, title: str) -> figures.Section:
    return next(one for one in figures.sections(facts) if one.title == title)


def test_main_causes_are_summed_over_states(facts: Facts) -> None:
    for state, causes in zip(facts["states"], ([["B", 2], ["A", 1]], [["A", 1], ["C", 3]]), strict=False):
        state["causes"] = causes
    for state in facts["states"][2:]:
        state["causes"] = []
    rows = section(facts, "The largest lexer states").blocks["bars"].rows
    assert [(label, words) for label, _, words in rows] == [("C", "3"), ("A", "2"), ("B", "2")]  # type: ignore[misc]


def test_largest_states_break_ties_by_what_is_left(facts: Facts) -> None:
    some = facts["states"][0]
    facts["states"] = [{**some, "state": n, "ignored": 5, "exact": left} for n, left in enumerate((1, 3, 3, 2))]
    facts["states"][2]["text"] = "second"
    table = section(facts, "The largest lexer states").blocks["ignored"]
    assert [row[3] for row in table.rows] == [3, 3, 2, 1] and table.rows[1][1] == [figures.Code("second")]
