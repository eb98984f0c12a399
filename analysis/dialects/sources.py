"""A constraint from a path, a name or a text, in any of the languages that are read."""

from __future__ import annotations

import os
from pathlib import PurePath

from maskwright.analysis.composition import Composition, read_composition
from maskwright.analysis.composition.compose import of_host
from maskwright.analysis.dialects.llguidance import is_list_of_grammars, read_llguidance
from maskwright.analysis.fronts.sources import Syntax, detect, path_of, read_host
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.lark_files import read_file
from maskwright.analysis.loading.names import has_directives, known_grammars
from maskwright.analysis.nesting import on_own_stack


@on_own_stack
def read_constraint(source: str | os.PathLike[str], syntax: Syntax | None = None) -> Grammar | Composition:
    r"""The grammar of a file, a name that `load_grammar` knows, or a text.

    A str is a path if it is one line that ends in .gbnf, .ebnf, .lark, .json or .txt, or if a file
    has this name. A text with other languages inside is a `Composition`: Lark that names parts,
    llguidance's dialect with ``%json``, ``%lark``, ``@name`` or special tokens (`read_llguidance`),
    or GBNF and EBNF with tokens.

    syntax : the language; None: as `detect` finds. Schemas and regular expressions are no grammars
    and are refused.

    Raises: UnknownNameError for a file that does not exist, and for an unknown `syntax`;
        GrammarError for a text that cannot be read, and as the parsers of the languages.

    >>> read_constraint('root ::= "a" root | "b"').symbol_name(1)
    'root'
    """
    is_plain = syntax not in (None, "llguidance", "lark") or not isinstance(source, str | os.PathLike)
    path = None if is_plain else path_of(source)
    if is_plain or source in known_grammars() or (path is not None and not os.path.isfile(path)):
        return of_host(read_host(source, syntax))  # which says where there is no such file
    text = read_file(path) if path is not None else str(source)
    found = syntax or ("llguidance" if is_list_of_grammars(text) else detect(text, path))
    # `detect` takes a line %regex for the dialect's
    if (found == "lark" or (found == "llguidance" and syntax is None)) and has_directives(source):
        return read_composition(source)
    if found == "llguidance":
        return read_llguidance(text, name=PurePath(path).name if path is not None else "<text>")
    return of_host(read_host(source, syntax))
