"""How do other engines' grammar languages read here?

In: a text in llama.cpp's GBNF, xgrammar's EBNF, or llguidance's Lark dialect. Out: a `Grammar` of
the same texts, or an error that names what cannot be said. And back: a `Grammar` as GBNF or as
llguidance's dialect, where these can say the same.

`read_grammar` takes all of them, and Lark, by their content.
"""

from __future__ import annotations

from maskwright.analysis.fronts.export import to_gbnf, to_llguidance
from maskwright.analysis.fronts.gbnf import parse_ebnf, parse_gbnf
from maskwright.analysis.fronts.llguidance import parse_llguidance
from maskwright.analysis.fronts.sources import SYNTAXES, Syntax, detect, read_grammar

__all__ = [
    "SYNTAXES",
    "Syntax",
    "detect",
    "parse_ebnf",
    "parse_gbnf",
    "parse_llguidance",
    "read_grammar",
    "to_gbnf",
    "to_llguidance",
]
