"""What stands for a grammar: the object, a name, a path, or the text itself."""

from __future__ import annotations

import os
import re
from typing import TypeAlias

from maskwright.analysis.grammar.grammar import Grammar

GrammarSource: TypeAlias = Grammar | str | os.PathLike[str]
"""A grammar, or what `load_grammar` takes."""

_RULE = re.compile(r"[?!_]*[A-Za-z]\w*(\.-?\d+)?[ \t]*:([ \t]|[\"(\[~]|/[^/\\]*/|$)")


def as_grammar(source: GrammarSource) -> Grammar:
    """The grammar itself, or the one that `load_grammar` makes of a name, a path or a text."""
    if isinstance(source, Grammar):
        return source
    from maskwright.analysis.grammar.lark_loader import load_grammar

    return load_grammar(source)


def is_text(source: object) -> bool:
    r"""Whether a source is a grammar's text, not its name: it has a second line, or is one rule.

    >>> [is_text(source) for source in ('start: "a"', "A: /x/", "%import common.INT\nstart: INT", "lark:python", r"C:\my.lark")]
    [True, True, True, False, False]
    """
    return isinstance(source, str) and ("\n" in source or _RULE.match(source.lstrip()) is not None)
