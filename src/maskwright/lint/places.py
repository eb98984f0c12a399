"""Where a grammar's symbols stand in its text, and which findings its comments allow."""

from __future__ import annotations

import re
from collections.abc import Iterable

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.lark_files import line_and_column, offsets_of, position_of, rule_name

Place = tuple[int, int]
"""Line and column, counted from 1; (0, 0) where the text does not hold it."""

_ALLOW = re.compile(
    r"(?://|\#)[ \t]*lint:[ \t]*(?P<what>allow|allow-file)[ \t]+(?P<codes>[a-z-]+(?:[ \t]*,[ \t]*[a-z-]+)*)"
)


def place_of_rule(grammar: Grammar, symbol: int) -> Place:
    """Line and column at which the text defines, imports or first uses a rule; else (0, 0)."""
    name = rule_name(grammar.symbol_name(symbol))
    found = position_of(grammar.text, name)
    # An imported rule is called module__name.
    return found if found != (0, 0) or "__" not in name else position_of(grammar.text, name.rpartition("__")[2])


def place_of_terminal(grammar: Grammar, number: int) -> Place:
    """Line and column at which the text defines, imports or first uses a terminal; else (0, 0)."""
    terminal = grammar.terminals[number]
    return terminal.line, terminal.column


def place_of_name(grammar: Grammar, name: str) -> Place:
    """Line and column at which the text defines, imports or first uses a name; else (0, 0)."""
    return position_of(grammar.text, name)


def rules_in_text(grammar: Grammar) -> dict[str, tuple[Place, tuple[str, ...]]]:
    """The rules that the text defines, in its order.

    Returns name -> (place, names that stand in its definition).
    """
    named = offsets_of(grammar.text)
    definitions = sorted((at, name) for name, offsets in named.definitions.items() for at in offsets)
    uses = sorted((at, name) for name, offsets in named.uses.items() for at in offsets)
    found: dict[str, tuple[Place, tuple[str, ...]]] = {}
    position = 0
    for index, (at, name) in enumerate(definitions):
        end = definitions[index + 1][0] if index + 1 < len(definitions) else len(grammar.text)
        while position < len(uses) and uses[position][0] < at:
            position += 1
        inside = []
        while position < len(uses) and uses[position][0] < end:
            inside.append(uses[position][1])
            position += 1
        if name.strip("_")[:1].islower():
            place, before = found.get(name, (line_and_column(grammar.text, at), ()))
            found[name] = place, tuple(dict.fromkeys((*before, *inside)))
    return found


def allowed_by_comments(text: str) -> tuple[frozenset[str], frozenset[tuple[int, str]]]:
    """The codes of findings that a grammar's comments allow.

    Returns the codes allowed in the whole file, and (line, code) pairs: a comment allows its codes
        on its own line and the next.

    >>> allowed_by_comments("// lint: allow ambiguity, conflict\\nstart: x")[1] == {
    ...     (line, code) for line in (1, 2) for code in ("ambiguity", "conflict")}
    True
    """
    everywhere: set[str] = set()
    at_line: set[tuple[int, str]] = set()
    for number, line in enumerate(text.split("\n"), start=1):
        for match in _ALLOW.finditer(line):
            codes: Iterable[str] = re.split(r"[ \t]*,[ \t]*", match["codes"])
            if match["what"] == "allow-file":
                everywhere.update(codes)
            else:
                at_line.update((at, code) for code in codes for at in (number, number + 1))
    return frozenset(everywhere), frozenset(at_line)
