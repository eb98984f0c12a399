"""What names a grammar: a name of the library or of Lark's wheel, a path, or the text itself."""

from __future__ import annotations

import functools
import os
import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from maskwright.analysis.arguments import a_type, clip
from maskwright.analysis.errors import GrammarError, MaskwrightError, UnknownNameError
from maskwright.analysis.grammar.grammar import Lexing
from maskwright.analysis.grammar.lark_files import OR_PATH, is_text, read_file, short_name, suggestion
from maskwright.analysis.nesting import read_json

LARK_WHEEL_STARTS = {"python": "file_input", "lark": "start"}
"""The grammars of Lark's wheel that have rules, with the start symbols that read whole files."""

LARK_WHEEL_LEXING: Lexing = "longest"
"""How they are lexed by default: keywords are reserved then, and compiling is faster."""

LARK_WHEEL_SOFT = {"python": ("_",)}
"""Keywords of them that are names elsewhere: Lark's own parsers know it from the parser's state."""

LIBRARY = Path(__file__).parent / "library"
"""The folder of our own grammars: `json.compact` is the file json/compact.lark."""

LIBRARY_PARTS = ("unicode",)
"""Files of the library without rules, for grammars to import."""

_OF_PATTERNS = re.compile(r"[\\^$*+?|(){}\[\]]")
"""Characters of a regular expression that no grammar's name has."""

_READERS = {
    ".json": ("load_schema", "a JSON schema"),
    ".lark": ("load_grammar", "a grammar in Lark"),
    ".gbnf": ("read_constraint", "a grammar in GBNF"),
    ".ebnf": ("read_constraint", "a grammar in EBNF"),
    ".safetensors": ("load_store", "a store"),
}
"""Suffix of a file -> who reads it, and what it is."""

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
    """The text of a grammar, without what it imports. source, Raises: as `find_source`."""
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
        raise GrammarError(
            f"a grammar is a name, a path or a text; this is {a_type(source)}{meant(source, 'load_grammar')}"
        )
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
        if not (hint := meant(source, "load_grammar")):
            raise
        raise UnknownNameError(f"{short_name(shown)} is neither a grammar's name nor a file{hint}") from error


def meant(source: Any, by: str) -> str:
    """The end of a message: which loader reads what another one cannot; "" where nobody can tell.

    by : the loader that was called; it is not named.

    >>> print("this is no schema" + meant('start: "a"+', "load_schema"))
    this is no schema: mw.parse_grammar(text) reads a grammar in Lark
    """
    return "".join(
        f"{', ' if number else ': '}mw.{said}"
        for number, said in enumerate(said for said in _readers(source) if not said.startswith(f"{by}("))
    )


def _readers(source: Any) -> Iterator[str]:
    """The loaders that read a source: each as a call, and what it reads."""
    if isinstance(source, str | os.PathLike):
        yield from _readers_of_text(os.fsdecode(source))
    elif isinstance(source, list | tuple):
        if source and all(isinstance(one, str | bytes) for one in source):
            yield f"load_choice({clip(source)}) reads a list of answers"
        elif source and all(isinstance(one, Mapping) for one in source):
            yield "read_tools(tools) reads a list of tools"
    elif get_origin(source) is Literal:
        yield f"load_choice({clip(list(get_args(source)))}) writes one of its texts as it is"
        yield f"load_schema({_shown(source)}) as JSON"
    elif isinstance(source, Mapping | type) or callable(source) or hasattr(source, "__origin__"):
        yield f"load_schema({_shown(source)}) reads a JSON schema or a type"


def _readers_of_text(source: str) -> Iterator[str]:
    text = source.strip()
    shown = clip(source) if len(source) <= 80 else "text"
    reader = _READERS.get(Path(text).suffix.lower()) if "\n" not in text else None
    if text.startswith("{"):
        yield f"load_schema({shown}) reads a JSON schema"
    elif text.startswith("[") and isinstance(values := _json(text), list):
        yield from _readers(values)
    elif source in known_grammars():
        yield f"load_grammar({shown}) reads this grammar of the library"
    elif reader is not None:
        yield f"{reader[0]}({clip(source)}) reads {reader[1]}"
    elif "::=" in source:
        yield "read_constraint(text) reads a grammar in GBNF or EBNF"
    elif is_text(next((line for line in text.split("\n") if line and not line.startswith(("//", "#", "%"))), "")):
        yield "parse_grammar(text) reads a grammar in Lark"
    elif "\n" not in text and _OF_PATTERNS.search(text):
        yield f"load_regex({shown}) reads a regular expression (--from regex in commands)"


def _json(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return None


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
