r"""Which language is a constraint written in?

First the file's name decides: `.gbnf`, `.ebnf`, `.json`, `.jsonl` is none of them, and `.lark` is
Lark or llguidance's dialect of it. Without such a name the text decides, in this order:

1. A JSON object is a schema.
2. A line ``name ::= ...`` makes it GBNF or xgrammar's EBNF. The two share most of their syntax, and
   where both readers take a text it means the same but for ``\x`` with more than two digits. So it
   is EBNF if only that reader takes it, or if it has a macro or options of a rule; else GBNF.
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

from maskwright.analysis.arguments import need_type
from maskwright.analysis.errors import GrammarError, NestingError
from maskwright.analysis.fronts.ebnf import MACROS, EbnfReader
from maskwright.analysis.fronts.gbnf import RuleReader
from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.grammar.lark_files import COMMENT_OR_LITERAL
from maskwright.analysis.grammar.options import has_options
from maskwright.analysis.nesting import read_json

Syntax = Literal["lark", "gbnf", "ebnf", "llguidance", "schema", "regex"]
SYNTAXES: tuple[Syntax, ...] = get_args(Syntax)
"""All languages."""

_BY_SUFFIX: dict[str, Syntax] = {".gbnf": "gbnf", ".ebnf": "ebnf", ".json": "schema"}
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\\n])*+\"?|\[(?:\\.|[^\]\\\n])*+\]?|#[^\n]*")
"""Literals, classes and comments of GBNF and EBNF."""
_ARROW = re.compile(r"^[ \t]*[\w.-]+(?:\[[^\]\n]*\])?\s*::=", re.MULTILINE)
_OPTIONS = re.compile(r"^[ \t]*[\w.-]+\[[^\]\n]*\][ \t]*::=", re.MULTILINE)
_MACRO = re.compile(rf"\b(?:{'|'.join(MACROS)})[ \t]*\(")
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
