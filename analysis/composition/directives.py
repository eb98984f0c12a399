"""Lines of a Lark grammar that name parts in other languages: ``%schema``, ``%regex``, ..."""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple, cast

from maskwright.analysis.errors import GrammarError, SchemaError
from maskwright.analysis.loading.names import DIRECTIVE
from maskwright.analysis.nesting import read_json_at

_PATTERN = re.compile(r"/((?:\\.|[^/\\\n])+)/([aimsux]*)")
_VALUES = re.compile(r"\{|(?:true|false)(?![\w./-])")
_IN_STRING = re.compile(r"[ \t]+in[ \t]+json[ \t]+string[ \t]*$")


class Directive(NamedTuple):
    """A line that names a part.

    kind, name : its first two words, as in ``%schema ANSWER answer.json``.
    where : the place, for messages.
    said : what follows: a name or a path, or for ``%regex`` the pattern.
    flags : of a pattern.
    values : of a schema that stands in the line itself; None for another.
    is_inside : whether ``in json string`` ends the line.
    """

    kind: Literal["schema", "grammar", "regex", "token"]
    name: str
    where: str
    said: str
    flags: str
    values: Any
    is_inside: bool


def read_directives(text: str, shown: str) -> tuple[str, list[Directive]]:
    """A grammar's text with ``%declare`` in place of each directive, and the directives.

    text : the grammar's text. Lines stay where they are.
    shown : what messages call it.

    Raises: GrammarError and SchemaError with the line of a directive that is malformed.
    """
    found: list[Directive] = []
    kept: list[str] = []
    at = 0
    while (begin := DIRECTIVE.search(text, at)) is not None:
        kind, name = begin.groups()
        where = f"{shown}:{text.count(chr(10), 0, begin.start()) + 1}: %{kind} {name}"
        if any(one.name == name for one in found):
            raise GrammarError(f"{where}: the part is named twice")
        kept.append(text[at : begin.start()])
        directive, at = read_directive(kind, name, where, text, begin.end())
        found.append(directive)
        kept.append(f"%declare {name}" + "\n" * text.count("\n", begin.start(), at))
    return "".join([*kept, text[at:]]) + "\n", found


def read_directive(kind: str, name: str, where: str, text: str, at: int) -> tuple[Directive, int]:
    """A directive and where its line ends. at : where stands what the part is."""
    kind = cast(Literal["schema", "grammar", "regex", "token"], kind)
    values: Any = None
    said = ""
    if kind == "schema" and _VALUES.match(text, at) is not None:
        try:
            values, at = read_json_at(text, at)
        except ValueError as error:
            raise SchemaError(f"{where}: this is not JSON: {error}") from error
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    more = text[at:end].rstrip()
    if kind != "regex":
        more = re.sub(r"(?:^|[ \t]+)//.*$", "", more)
    is_inside = bool(_IN_STRING.search(more))
    more = _IN_STRING.sub("", more).rstrip()
    flags = ""
    if values is not None:
        if more.strip():
            raise GrammarError(f"{where}: {more.strip()!r} stands behind the schema; expected the end of the line")
    elif not more:
        raise GrammarError(f"{where}: nothing says what it is; expected a name, a path, a pattern or a schema")
    elif kind == "regex":
        pattern = _PATTERN.fullmatch(more)
        if pattern is None:
            raise GrammarError(f"{where}: {more!r} is no pattern; expected /.../ and flags")
        said, flags = pattern[1].replace("\\/", "/"), pattern[2]
    else:
        said = more
    return Directive(kind, name, where, said, flags, values, is_inside), end
