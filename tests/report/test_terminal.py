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
    assert len(lines) <= 79


def test_numbers(facts: Facts) -> None:
    lines = printed(facts).splitlines()
    main, calls = facts["entries"][-1], facts["parser_calls"]
    assert any(f"{main['original']} -> {main['exact']}" in line and "times fewer" in line for line in lines)
    assert any(f"{calls['original']:.1f} -> {calls['streamlined']:.1f}" in line for line in lines)
    for step in ("classes", "follow", "pairs", "never", "always", "joint", "exact"):
        assert any(line.startswith(STEP_LABELS[step]) and f" {main[step]} " in line for line in lines)
    for entry in facts["entries"]:
        line = next(line for line in lines if line.startswith(f"{entry['reading']}, {entry['rules']}"))
        assert f"{entry['original']} " in line and f"{entry['ratio_exact']:.1f}" in line
    assert any(line.split() == ["2", '"+"', '"-"'] for line in lines)
    blank = next(state for state in facts["states"] if state["terminal"] == "BLANK")
    assert ["BLANK", '"', '"', str(blank["ignored"]), str(blank["exact"])] in [line.split()[:5] for line in lines]
    assert any(line.startswith("memory") for line in lines)


def test_exact_engine(facts: Facts, engine_facts: Facts) -> None:
    assert "exact engine" not in printed(facts)
    lines = printed(engine_facts).splitlines()
    found = engine_facts["engine"]
    at = next(i for i, line in enumerate(lines) if line.startswith("exact engine: lexing longest"))
    shown = [
        int(line.split()[0].replace(",", ""))
        for line in lines[at + 1 : at + 1 + len(figures.engine_rows(engine_facts))]
    ]
    expected = [found[name] for name in figures.ENGINE_LABELS if name in found]
    assert shown == expected and found["nodes"] in shown and found["table_bytes"] in shown and len(shown) >= 9
    (own,) = (i for i, line in enumerate(lines) if line.split()[1:5] == ["your", "store", "lexing", "longest"])
    (post,) = (i for i, line in enumerate(lines) if line.split()[1:6] == ["the", "post's", "store", "lexing", "nfa"])
    entries = next(i for i, line in enumerate(lines) if line.split()[1:2] == ["entries"])
    assert own < post < entries


def test_bars_are_to_scale(facts: Facts) -> None:
    facts["entries"][-1].update(original=1000, ignored=1000, classes=500, follow=100)
    bars = {line[:8]: line.count("━") for line in printed(facts).splitlines() if "  ━" in line}
    assert bars["original"] == terminal.BAR_WIDTH and bars["intercha"] == 10 and bars["impossib"] == 2


def test_without_a_vocabulary(grammar_facts: Facts) -> None:
    text = printed(grammar_facts)
    assert "without a vocabulary" in text and "entries after" not in text
    assert ["terminals", "7", "1", "ignored,", "0", "from", "layout"] in [line.split() for line in text.splitlines()]


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
    assert "no interchangeable terminals" in text
    assert (
        "two terminals of context" not in text
        and "last terminal remembered" not in text
        and "post one" not in text
        and "post, lark" not in text
    )


def test_a_class_seen_after_rewriting_only(facts: Facts) -> None:
    facts["interchange"]["further"] = [["LPAR", "RPAR"]]
    text = printed(facts)
    assert "+2  LPAR RPAR" in text and "+ seen after rewriting the rules only" in text


def test_largest_step_and_times_fewer() -> None:
    entry = dict(zip(STEP_LABELS, (100, 90, 80, 10, 9, 8, 7, 6, 5), strict=True))
    assert figures.largest_step(entry) == ("follow", 70)
    assert figures.times_fewer(10, 4) == "2.5 times fewer" and figures.times_fewer(10, 0) == "none left"


def test_state_text_shows_outer_spaces() -> None:
    assert [figures.state_text(text) for text in (" ", "a b", "a ", "")] == ['" "', "a b", '"a "', ""]


def test_main_causes_are_summed_over_states(facts: Facts) -> None:
    facts["states"] = [{"causes": [["B", 2], ["A", 1]]}, {"causes": [["A", 1], ["C", 3]]}]
    assert figures.main_causes(facts) == [("C", 3), ("A", 2), ("B", 2)]


def test_largest_states_break_ties_by_what_is_left(facts: Facts) -> None:
    facts["states"] = [{"state": n, "ignored": 5, "exact": left} for n, left in enumerate((1, 3, 3, 2))]
    assert [s["state"] for s in figures.largest_states(facts, "ignored", 3)] == [1, 2, 3]
