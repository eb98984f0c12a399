r"""A grammar from a path, a name or a text, and which language a constraint is written in.

First the file's name decides: `.gbnf`, `.ebnf`, `.json`, `.jsonl` is none of them, and `.lark` is
Lark or llguidance's dialect of it. Without such a name the text decides, in this order:

1. A JSON object is a schema.
2. A line ``name ::= ...`` makes it GBNF or xgrammar's EBNF. The two share most of their syntax, and
   where both readers take a text it means the same but for ``\x`` with more than two digits. So it
   is EBNF if only that reader takes it, or if it has a macro, options of a rule or a look-ahead;
   else GBNF.
3. A line ``name: ...`` or a directive such as ``%import`` makes it Lark, or llguidance's dialect if
   it has what only that has: ``%llguidance``, ``%json``, ``%regex``, ``%lark``, ``%if``, ``::``,
   ``@name``, special tokens ``<...>``, attributes ``rule[...]:``, ``&``, or repetitions ``{m,n}``.
   A text with an option, ``// maskwright: ...``, is Lark. What literals, patterns and comments hold
   does not count; both languages have comments with ``//`` and with ``#``.
4. All else is a regular expression.
"""

from __future__ import annotations

import os
import re
from pathlib import PurePath
from typing import Literal, get_args

from maskwright.analysis.arguments import clip, need_type, refuse_argument
from maskwright.analysis.errors import GrammarError, NestingError, UnknownNameError
from maskwright.analysis.fronts.assembly import HostGrammar
from maskwright.analysis.fronts.gbnf import MACROS, EbnfReader, RuleReader, read_rules
from maskwright.analysis.fronts.llguidance import parse_llguidance
from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.lark_files import COMMENT_OR_LITERAL, read_file, suggestion
from maskwright.analysis.grammar.options import has_options
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.analysis.loading.names import known_grammars, meant
from maskwright.analysis.nesting import on_own_stack, read_json

Syntax = Literal["lark", "gbnf", "ebnf", "llguidance", "schema", "regex"]
SYNTAXES: tuple[Syntax, ...] = get_args(Syntax)
"""All languages."""

_BY_SUFFIX: dict[str, Syntax] = {".gbnf": "gbnf", ".ebnf": "ebnf", ".json": "schema"}
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\\n])*+\"?|\[(?:\\.|[^\]\\\n])*+\]?|#[^\n]*")
"""Literals, classes and comments of GBNF and EBNF."""
_ARROW = re.compile(r"^[ \t]*[\w.-]+(?:\[[^\]\n]*\])?\s*::=", re.MULTILINE)
_OPTIONS = re.compile(r"^[ \t]*[\w.-]+\[[^\]\n]*\][ \t]*::=", re.MULTILINE)
_MACRO = re.compile(rf"\b(?:{'|'.join(MACROS)})[ \t]*\(|\([ \t]*=")
_COLON = re.compile(r"^[ \t]*[?!]*_?[A-Za-z][\w-]*(?:\.-?\d+|\{[\w, ]*\}|\[[^\]\n]*\]|::_)?[ \t]*:(?!:=)", re.MULTILINE)
_WORD = re.compile(r"^[ \t]*%(?:import|ignore|declare|override|extend|llguidance)\b", re.MULTILINE)
_TOKEN = re.compile(
    COMMENT_OR_LITERAL
    + r"""
      | (?P<dialect>
            %(?:llguidance|json|regex|lark|if)\b | :: | @[\w-] | <[^<>\s]++> | & | \{[ \t]*+[\d,][\d, \t]*+\}
          | ^[ \t]*+[?!]*+_?[a-z][\w-]*+\[[^\]\n]*+\][ \t]*+: )""",
    re.VERBOSE | re.MULTILINE,
)
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
    return read_host(source, syntax).alone()


def read_host(source: str | os.PathLike[str], syntax: Syntax | None = None) -> HostGrammar:
    """As `read_grammar`, but that a grammar in GBNF or EBNF may have parts, which are tokens."""
    if not isinstance(source, str | os.PathLike):
        expected = f"a path, a name or a text{meant(source, 'read_constraint')}"
        refuse_argument("a constraint", source, expected, GrammarError)
    if syntax is not None and syntax not in SYNTAXES:
        raise UnknownNameError(f"no syntax is named {clip(syntax)}{suggestion(str(syntax)[:60], SYNTAXES)}")
    if isinstance(source, str) and source in known_grammars() and syntax in (None, "lark"):
        return HostGrammar(load_grammar(source))
    path = path_of(source)
    text = read_file(path) if path is not None else str(source)
    name = PurePath(path).name if path is not None else "<text>"
    found = syntax or detect(text, path)
    if found == "gbnf" or found == "ebnf":
        return read_rules(text, name, found)
    if found == "llguidance":
        return HostGrammar(parse_llguidance(text, name))
    if found == "lark":
        return HostGrammar(parse_grammar(text) if path is None else load_grammar(path))
    what = "a JSON Schema" if found == "schema" else "a regular expression" if text.strip() else "empty"
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


def detect(text: str, path: str | os.PathLike[str] | None = None) -> Syntax:
    r"""The language of a constraint, see the module.

    path : the file that the text is from, if any; only its name counts.

    Raises: GrammarError if `text` is no str.

    >>> [detect(text) for text in ('root ::= "a"', 'start: "a"', '{"type": "object"}', "[a-z]+")]
    ['gbnf', 'lark', 'schema', 'regex']
    >>> detect('start: "a"{2,3}'), detect('root ::= Regex("a")'), detect("[a-z]+", "x.gbnf")
    ('llguidance', 'ebnf', 'gbnf')
    """
    need_type("the text of a constraint", text, str, "a str", GrammarError)
    suffix = PurePath(os.fsdecode(path)).suffix.lower() if path is not None else ""
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if suffix == ".lark":
        return "llguidance" if _is_dialect(text) else "lark"
    if _is_schema(text):
        return "schema"
    if _ARROW.search(text):
        return _arrow_language(text)
    if _COLON.search(text) or _WORD.search(text):
        return "llguidance" if _is_dialect(text) else "lark"
    return "regex"


def _is_schema(text: str) -> bool:
    body = text.lstrip("\ufeff \t\r\n")
    if not body.startswith("{"):
        return False
    try:
        return isinstance(read_json(body), dict)
    except NestingError:
        return True
    except ValueError:
        return bool(re.match(r'\{\s*"', body))


def _is_dialect(text: str) -> bool:
    if has_options(text):
        return False
    found = (token.lastgroup for token in _TOKEN.finditer(text))
    return next((group for group in found if group in ("dialect", "open")), None) == "dialect"


def _arrow_language(text: str) -> Syntax:
    plain = _QUOTED.sub('""', text)
    if _OPTIONS.search(text) or _MACRO.search(plain):
        return "ebnf"
    try:
        RuleReader(Reader(text, "<text>")).read("root")
    except GrammarError:
        try:
            EbnfReader(Reader(text, "<text>")).read("root")
        except GrammarError:
            return "gbnf"
        return "ebnf"
    return "gbnf"
