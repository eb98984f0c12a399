"""What stands for a grammar: the object, a name, a path, or the text itself."""

from __future__ import annotations

import os
from typing import TypeAlias

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.normalise import normalise as normalise_rules
from maskwright.analysis.loading.lark_loader import load_grammar

GrammarSource: TypeAlias = Grammar | str | os.PathLike[str]
"""A grammar, or what `load_grammar` takes."""


def as_grammar(source: GrammarSource) -> Grammar:
    """The grammar itself, or the one that `load_grammar` makes of a name, a path or a text.

    Raises: as `load_grammar`.
    """
    return source if isinstance(source, Grammar) else load_grammar(source)


def normalise(grammar: GrammarSource) -> Grammar:
    """A grammar of the same terminal language with less choice between rules.

    See `analysis.grammar.normalise`.

    Raises: GrammarError if the start symbol is unproductive; as `load_grammar` for a name, path or
    text.
    """
    return normalise_rules(as_grammar(grammar))
