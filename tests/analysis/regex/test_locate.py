"""Positions of constructs, and the doctests of the folders."""

from __future__ import annotations

import doctest
import importlib

import pytest

from maskwright.analysis.regex.parse import Kind, constructs


@pytest.mark.parametrize(
    ("pattern", "verbose", "kind", "found"),
    [
        (r"\*?a*?[*?]b+?", False, "lazy", [("*?", 4), ("+?", 11)]),
        (r"a{1,2}?b{,3}?c{x}?d{2}+", False, "lazy", [("{1,2}?", 1), ("{,3}?", 8)]),
        (r"a{1,2}+b?+", False, "possessive", [("{1,2}+", 1), ("?+", 8)]),
        (
            r"(?=a(?!b))(?<=c)(?<!\))",
            False,
            "look",
            [("(?=a(?!b))", 0), ("(?!b)", 4), ("(?<=c)", 10), ("(?<!\\))", 16)],
        ),
        (r"(?#(?=a)(b)\)(?>(c)d)", False, "atomic", [("(?>(c)d)", 13)]),
        (r"[](?>](?>(c)d)", False, "atomic", [("(?>(c)d)", 6)]),
        (r"(a)\\\1(?P=x)[\1]", False, "backreference", [("\\1", 5), ("(?P=x)", 7)]),
        ("# a*?\nb*?", True, "lazy", [("*?", 7)]),
        ("# a*?\nb*?", False, "lazy", [("*?", 3), ("*?", 7)]),
        (r"(a)?(?(1)b|c)", False, "conditional", [("(?(1)b|c)", 4)]),
    ],
)
def test_constructs(pattern: str, verbose: bool, kind: Kind, found: list[tuple[str, int]]) -> None:
    assert [(source.text, source.start) for source in constructs(pattern, verbose=verbose)[kind]] == found


@pytest.mark.parametrize("module", ["lexing.messages", "lexing.terminals", "regex.charset", "regex.dfa", "regex.parse"])
def test_doctests(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"maskwright.analysis.{module}"))
    assert result.failed == 0 and result.attempted > 0
