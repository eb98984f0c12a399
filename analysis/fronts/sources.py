"""A grammar from a path, a name or a text, in any of the languages that are read."""

from __future__ import annotations

import os
import re
from pathlib import PurePath

from maskwright.analysis.arguments import clip, refuse_argument
from maskwright.analysis.errors import GrammarError, UnknownNameError
from maskwright.analysis.fronts.detect import SYNTAXES, Syntax, detect
from maskwright.analysis.fronts.ebnf import parse_ebnf
from maskwright.analysis.fronts.gbnf import parse_gbnf
from maskwright.analysis.fronts.llguidance import parse_llguidance
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.lark_files import read_file, suggestion
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.analysis.loading.names import known_grammars, meant
from maskwright.analysis.nesting import on_own_stack

_SUFFIXES = (".gbnf", ".ebnf", ".lark", ".json", ".txt")


@on_own_stack
def read_grammar(source: str | os.PathLike[str], syntax: Syntax | None = None) -> Grammar:
    r"""The grammar of a file, a name that `load_grammar` knows, or a text, of one language alone.

    `maskwright.read_constraint` reads grammars with other languages inside as well.

    A str is a path if it is one line that ends in .gbnf, .ebnf, .lark, .json or .txt, or if a file
    has this name.

    syntax : the language; None: as `detect` finds. Schemas and regular expressions are no grammars
    and are refused.

    Raises: UnknownNameError for a file that does not exist, and for an unknown `syntax`;
        GrammarError for a text that cannot be read, and as the parsers of the languages.

    >>> read_grammar('root ::= "a" root | "b"').symbol_name(1)
    'root'
    """
    if not isinstance(source, str | os.PathLike):
        expected = f"a path, a name or a text{meant(source, 'read_constraint')}"
        refuse_argument("a constraint", source, expected, GrammarError)
    if syntax is not None and syntax not in SYNTAXES:
        raise UnknownNameError(f"no syntax is named {clip(syntax)}{suggestion(str(syntax)[:60], SYNTAXES)}")
    if isinstance(source, str) and source in known_grammars() and syntax in (None, "lark"):
        return load_grammar(source)
    path = path_of(source)
    text = read_file(path) if path is not None else str(source)
    name = PurePath(path).name if path is not None else "<text>"
    found = syntax or detect(text, path)
    if found == "gbnf":
        return parse_gbnf(text, name)
    if found == "ebnf":
        return parse_ebnf(text, name)
    if found == "llguidance":
        return parse_llguidance(text, name)
    if found == "lark":
        return parse_grammar(text) if path is None else load_grammar(path)
    what = "a JSON Schema" if found == "schema" else "a regular expression"
    near = suggestion(text[:60], known_grammars()) if text.isidentifier() else ""
    is_rule = re.match(r"\s*[\w-]+\s*=[^>]", text)
    hint = "; a rule is `name: ...` in Lark, `name ::= ...` in GBNF" if is_rule else meant(source, "read_constraint")
    raise GrammarError(f"{name} is {what}; expected a grammar in Lark, GBNF, EBNF or llguidance's dialect{near}{hint}")


def path_of(source: str | os.PathLike[str]) -> str | None:
    """The path that a source is, or None for a text."""
    if not isinstance(source, str):
        return os.fsdecode(source)
    if "\n" in source or len(source) > 4_000 or "\0" in source or "::=" in source:
        return None
    if PurePath(source).suffix.lower() in _SUFFIXES and '"' not in source:
        return source
    try:
        return source if os.path.isfile(source) else None
    except (OSError, ValueError):
        return None
