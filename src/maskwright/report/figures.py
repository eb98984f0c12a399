"""The numbers that both reports of an analysis, in the terminal and as HTML, derive from its facts.

In: the facts of an analysis. Out: rows, names and words.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from maskwright.report.svg import STEP_LABELS

Facts = dict[str, Any]
"""The facts of an analysis, or a part of them."""


def main_entry(facts: Facts) -> Facts:
    """The member of `entries` for the store that is built: sound reading, normalised rules."""
    return next(e for e in facts["entries"] if (e["reading"], e["rules"]) == ("sound", "normalised"))


ENGINE_LABELS = {
    "entries": "entries: what tokens ask of the parser in a lexer state",
    "rests": "different sequences and sets of terminals that are asked for",
    "never": "of them that no stack accepts",
    "distinct": "of them that differ on some stack",
    "suspended": "configuration sets: parses that wait for deeper cells",
    "nodes": "nodes of the stack automaton",
    "edges": "edges, each with the tokens decided by one cell of the stack",
    "masks": "different sets of tokens",
    "lexer_states": "states of the lexer",
    "parser_states": "states of the parser, equal ones merged",
    "table_bytes": "bytes of the table that an engine reads",
}
"""Name of a size among the facts `engine` -> what it counts."""


def engine_rows(facts: Facts) -> list[tuple[int, str]]:
    """The engine's sizes, each with what it counts, in the order in which they are computed."""
    return [(facts["engine"][name], words) for name, words in ENGINE_LABELS.items() if name in facts["engine"]]


def sentences(facts: Facts) -> list[str]:
    """What an analysis comes to, in three sentences; fewer where a part of it is missing."""
    pairs = facts["pairs"]
    said = [f"{pairs['never']:,} of {pairs['pairs']:,} pairs of terminals can never follow one another."]
    if "entries" in facts:
        entry, calls = main_entry(facts), facts["parser_calls"]
        now, before = calls["streamlined"], calls["original"]
        said.append(f"So {entry['original']:,} entries of a mask store become {entry['exact']:,}, with the same masks.")
        return [*said, f"A mask asks the parser {now:.1f} questions in the mean, where it asked {before:.1f}."]
    found = facts.get("forecast", {})
    for size, nbytes in list(found.get("bytes", {}).items())[:1]:
        said.append(f"A mask store for a tokenizer of {int(size) // 1024}k tokens has about {nbytes / 1e6:,.1f} MB.")
        reads = found["stack_reads"]
        said += [f"A mask reads {reads['mean']:,.1f} cells of the parser's stack in the mean."] if reads else []
    return said


def largest_step(entry: Facts) -> tuple[str, int]:
    """The step that removes most entries, and how many it removes.

    entry : a member of the facts' `entries`.
    """
    steps = list(STEP_LABELS)
    removed = {step: entry[before] - entry[step] for before, step in pairwise(steps)}
    step = max(removed, key=lambda name: removed[name])
    return step, removed[step]


def main_causes(facts: Facts) -> list[tuple[str, int]]:
    """Terminals, each with the number of entries left that begin with it, the largest number first.

    The sum over all lexer states, each of which contributes only its three most frequent terminals.
    """
    total: Counter[str] = Counter()
    for state in facts["states"]:
        total.update(dict(state["causes"]))
    return sorted(total.items(), key=lambda item: (-item[1], item[0]))


def largest_states(facts: Facts, step: str, limit: int) -> list[Facts]:
    """The lexer states with most entries after a step, at most `limit`.

    Among equals, those with more entries left after the last step come first.
    """
    return sorted(facts["states"], key=lambda s: (-s[step], -s["exact"], s["state"]))[:limit]


def counted(n: int, one: str, many: str = "") -> str:
    """A number with its noun in the singular or plural.

    n : the number.
    one : the singular.
    many : the plural; by default the singular with an s.

    >>> counted(1, "class", "classes"), counted(2, "class", "classes"), counted(1200, "rule")
    ('1 class', '2 classes', '1,200 rules')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def findings_line(facts: Facts) -> str:
    """The numbers of errors, warnings and info findings, in words."""
    counts = facts["lint"]["counts"]
    return f"{counted(counts['error'], 'error')}, {counted(counts['warning'], 'warning')}, {counts['info']:,} info"


def times_fewer(before: float, after: float) -> str:
    """How many times smaller a number has become, in words; "none left" if `after` is 0.

    >>> times_fewer(104517, 5166)
    '20.2 times fewer'
    """
    return f"{before / after:,.1f} times fewer" if after else "none left"


def state_text(text: str) -> str:
    """A text that leads to a lexer state, in quotes if it begins or ends with a space."""
    return text if text == text.strip(" ") else f'"{text}"'


def terminal_names(facts: Facts) -> dict[str, str]:
    """Name of a terminal -> its spelling in the report."""
    grammar = facts["grammar"]
    return dict(zip(grammar["terminal_names"], grammar["terminal_texts"], strict=True))


def forecast_rows(facts: Facts) -> list[tuple[str, list[str], str]]:
    """The rows of the forecast: name, numbers, remark.

    The numbers are strings, one for each tokenizer size, or a single one for all sizes.
    """
    found = facts["forecast"]
    sizes = list(found["bytes"])
    entries = [f"{found['entries'][size]['mean']:,.1f} ({found['entries'][size]['worst']:,})" for size in sizes]
    rows = [
        ("cost of a lexer state", entries, "entries: mean (worst)"),
        ("store bytes", [f"{found['bytes'][size]:,}" for size in sizes], ""),
        ("undecided parses", [f"{found['undecided']:,}"], "decided by the stack at run time"),
    ]
    if found["is_open"]:
        rows.append(("stack automaton", ["open"], "past its budget: the parser is asked"))
    else:
        reads = found["stack_reads"]
        rows.append(("stack cells a mask", [f"{reads['mean']:,.1f}"], f"read in the mean; {reads['p99']:,.0f} at 99 %"))
    return rows
