"""Constraints to begin with, each with a beginning of a text."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from maskwright.analysis.loading.names import grammar_text, known_grammars


class Example(NamedTuple):
    """A constraint to choose.

    title : what the page calls it.
    group : the heading that it stands under.
    constraint : its text, or the name of a grammar that comes along.
    text : a beginning of a text.
    """

    title: str
    group: str
    constraint: str
    text: str


@lru_cache(maxsize=1)
def examples() -> tuple[Example, ...]:
    """The examples of `examples.toml`, then the library's grammars, in the order of the page."""
    found = tomllib.loads(files("maskwright.playground").joinpath("examples.toml").read_text(encoding="utf-8"))
    names = sorted(known_grammars(), key=lambda name: (name.startswith(("domino.", "lark:")), name))
    along = [Example(name, "Grammars that come along", name, found["texts"].get(name, "")) for name in names]
    return (*(Example(**each) for each in found["examples"]), *along)


def library_text(name: str) -> str | None:
    """The text of a grammar that comes along; None for another name.

    >>> library_text("json").count("start:"), library_text("../secret")
    (1, None)
    """
    return grammar_text(name) if name in known_grammars() else None
