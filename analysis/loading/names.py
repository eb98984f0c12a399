"""What names a grammar: a name of the library or of Lark's wheel, a path, or the text itself."""

from __future__ import annotations

import functools
import os
import pkgutil
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from maskwright.analysis.arguments import a_type, clip
from maskwright.analysis.errors import GrammarError, MaskwrightError, UnknownNameError
from maskwright.analysis.grammar.grammar import Lexing
from maskwright.analysis.grammar.lark_files import OR_PATH, is_text, read_file, short_name, suggestion

LARK_WHEEL_STARTS = {"python": "file_input", "lark": "start"}
"""The grammars of Lark's wheel that have rules.

Each has the start symbol that reads a whole file.
"""

LARK_WHEEL_LEXING: Lexing = "longest"
"""How the grammars of Lark's wheel are lexed by default.

Keywords are reserved then, and compiling is faster than with contextual lexing.
"""

LARK_WHEEL_SOFT = {"python": ("_",)}
"""Keywords of those grammars that are names elsewhere.

Lark's own parsers know from the parser's state alone which of the two is meant.
"""

LIBRARY = Path(__file__).parent / "library"
"""The folder of our own grammars: `json.compact` is the file json/compact.lark."""

LIBRARY_PARTS = ("unicode",)
"""Files of the library without rules, for grammars to import."""


_OF_PATTERNS = re.compile(r"[\\^$*+?|(){}\[\]]")
"""Characters of a regular expression that no grammar's name has."""

DIRECTIVE = re.compile(
    r"^[ \t]*%(schema|grammar|regex|token)[ \t]+([A-Z_][A-Z0-9_]*)(?=[ \t]*(?:\S|$))[ \t]*", re.MULTILINE
)
"""The beginning of a line by which a grammar names a part of another language."""


def has_directives(source: str | os.PathLike[str]) -> bool:
    """Whether a grammar's text, or the file of a path or name, names parts of other languages."""
    try:
        return bool(DIRECTIVE.search(find_source(source).text))
    except MaskwrightError:
        return False


def grammar_text(source: str | os.PathLike[str]) -> str:
    """The text of a grammar, without what it imports.

    source : as for `load_grammar`.

    Raises: as `find_source`.
    """
    return find_source(source).text


@dataclass(frozen=True, slots=True)
class Source:
    """A grammar's text, and what is known of it.

    text : the text.
    name : the grammar's name.
    display : what error messages call the text.
    folder : where `%import .relative` looks; None if the text comes from no folder.
    start, lexing, soft : arguments of `load_grammar`; None where the text itself says.
    """

    text: str
    name: str
    display: str
    folder: Path | None = None
    start: str | None = None
    lexing: Lexing | None = None
    soft: Sequence[str] | None = None


def find_source(source: str | os.PathLike[str]) -> Source:
    """The text that a source of `load_grammar` stands for.

    Raises: UnknownNameError for a name that is neither a file nor a known grammar; GrammarError for
    a file that cannot be read (see `read_file`), for bytes that hold a grammar's text, and for an
    object that is neither a name nor a path.
    """
    if not isinstance(source, str | bytes | os.PathLike):
        raise GrammarError(f"a grammar is a name, a path or a text; this is {a_type(source)}{_meant(source)}")
    shown = os.fsdecode(source)
    if isinstance(source, bytes) and is_text(shown):
        raise GrammarError("the text of a grammar is of type bytes; expected a str; decode it: data.decode()")
    if is_text(source):
        return Source(shown, "<text>", "<text>")
    if shown.startswith("lark:"):
        name = shown.removeprefix("lark:")
        if name not in LARK_WHEEL_STARTS:
            raise UnknownNameError(
                f"Lark's wheel has no grammar {short_name(shown)}" + suggestion(shown, known_grammars(), OR_PATH)
            )
        text = (pkgutil.get_data("lark", f"grammars/{name}.lark") or b"").decode("utf-8")
        file = f"{name}.lark"
        soft = LARK_WHEEL_SOFT.get(name, ())
        return Source(text, file, file, start=LARK_WHEEL_STARTS[name], lexing=LARK_WHEEL_LEXING, soft=soft)
    if isinstance(source, str | bytes) and shown in library_names():
        path = LIBRARY.joinpath(*shown.split(".")).with_suffix(".lark")
        return Source(read_file(str(path)), shown, path.name, path.parent)
    path = Path(shown)
    try:
        return Source(read_file(shown, known_grammars()), path.name, shown, path.parent)
    except UnknownNameError as error:
        if not (isinstance(source, str) and (meant := _meant(shown))):
            raise
        raise UnknownNameError(f"{short_name(shown)} is neither a grammar's name nor a file{meant}") from error


def _meant(source: Any) -> str:
    """The end of a message: which call reads what is no grammar; "" where nobody can tell."""
    if isinstance(source, str):
        begin = source.lstrip()[:1]
        if begin == "{" or source.endswith(".json"):
            return f": mw.load_schema({clip(source)}) reads a JSON schema"
        if begin == "[" and source.rstrip()[-1:] == "]" and '"' in source:
            return (
                ": mw.load_choice([...]) reads a list of answers, and mw.read_tools(...) one of tools, as JSON text too"
            )
        if "::=" in source or re.match(r"\s*\w+\s*:\s", source):
            return ": mw.read_constraint(text) reads a grammar in GBNF or EBNF, mw.parse_grammar(text) one in Lark"
        if _OF_PATTERNS.search(source):
            return f": mw.load_regex({clip(source)}) reads a regular expression (--from regex in commands)"
        return ""
    if isinstance(source, list | tuple):
        of_texts = bool(source) and all(isinstance(one, str | bytes) for one in source)
        of_tools = bool(source) and all(isinstance(one, Mapping) for one in source)
        call = f"mw.load_choice({clip(source)})" if of_texts else "mw.read_tools(tools)" if of_tools else ""
        return call and f": {call} reads a list of {'answers' if of_texts else 'tools'}"
    if get_origin(source) is Literal:
        answers = clip(list(get_args(source)))
        return f": mw.load_choice({answers}) writes one of its texts as it is, mw.load_schema({_shown(source)}) as JSON"
    if isinstance(source, Mapping | type) or callable(source) or hasattr(source, "__origin__"):
        return f": mw.load_schema({_shown(source)}) reads a JSON schema or a type"
    return ""


def _shown(source: Any) -> str:
    return getattr(source, "__name__", "") if isinstance(source, type) else clip(source).replace("typing.", "")


@functools.cache
def library_names() -> tuple[str, ...]:
    """The names of our own grammars, sorted.

    >>> "python" in library_names()
    True
    """
    found = sorted(".".join(path.relative_to(LIBRARY).with_suffix("").parts) for path in LIBRARY.rglob("*.lark"))
    return tuple(name for name in found if name not in LIBRARY_PARTS)


def known_grammars() -> list[str]:
    """All names that `load_grammar` knows."""
    return [*library_names(), *(f"lark:{name}" for name in sorted(LARK_WHEEL_STARTS))]
