"""What a question of the page holds, checked."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from maskwright.analysis.arguments import a_type, clip
from maskwright.analysis.errors import MaskwrightError, UnknownNameError
from maskwright.analysis.fronts import detect
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.analysis.loading.names import grammar_text, known_grammars
from maskwright.analysis.nesting import read_json
from maskwright.serving.options import KINDS, RequestLimits, RequestOptions
from maskwright.serving.reading import ARROWS, Language, library


class Example(NamedTuple):
    """A constraint to choose.

    title : what the page calls it.
    group : the heading that it stands under.
    constraint : its text, or the name of a grammar that comes along.
    text : a beginning of a text.
    """

    title: str
    group: str
    constraint: str
    text: str


@lru_cache(maxsize=1)
def examples() -> tuple[Example, ...]:
    """The examples of `examples.toml`, then the library's grammars, in the order of the page."""
    found = tomllib.loads(files("maskwright.playground").joinpath("examples.toml").read_text(encoding="utf-8"))
    names = sorted(known_grammars(), key=lambda name: (name.startswith(("domino.", "lark:")), name))
    along = [Example(name, "Grammars that come along", name, found["texts"].get(name, "")) for name in names]
    return (*(Example(**each) for each in found["examples"]), *along)


def library_text(name: str) -> str | None:
    """The text of a grammar that comes along; None for another name.

    >>> library_text("json").count("start:"), library_text("../secret")
    (1, None)
    """
    return grammar_text(name) if name in known_grammars() else None


MOST_TEXT = 100_000
"""The most characters of a text whose mask is asked for."""


MOST_CONSTRAINT = RequestLimits().most_bytes
"""The most characters of a constraint; in UTF-8 it has no more bytes either."""


class Asked(NamedTuple):
    """A constraint, and what it is written in.

    kind : as for `RequestCompiler`.
    spec : its text.
    syntax : in words, for the page.
    options : what is said of JSON.
    language : "gbnf" or "ebnf" for a grammar that is read so, whatever it looks like.
    """

    kind: str
    spec: str
    syntax: str
    options: RequestOptions = RequestOptions()
    language: Language = ""


def constraint_of(question: Mapping[str, Any]) -> Asked:
    """The constraint of a question: `constraint`, `kind`, `whitespace`.

    kind : "detect", as for `RequestCompiler`, or as for the option `--from` of commands.

    Raises: MaskwrightError for values of another type; UnknownNameError for an unknown kind.

    >>> constraint_of({"constraint": "[a-z]+", "kind": "detect"})[:3]
    ('regex', '[a-z]+', 'regular expression')
    """
    found = _read_as(text_of(question, "constraint", MOST_CONSTRAINT), question.get("kind", "detect"))
    spaces = name_of(question, "whitespace", ("natural", "compact", "json.dumps", "indent2", "any", "1"))
    if found.kind in ("json", "json_object", "structural_tag"):
        return found._replace(options=RequestOptions(int(spaces) if spaces.isdecimal() else spaces))
    return found


_GRAMMARS = ("lark", "llguidance", *ARROWS)
_ALL_KINDS = ("detect", *KINDS, "schema", *_GRAMMARS)
_WORDS = {
    "schema": "JSON schema",
    "json": "JSON schema",
    "json_object": "any JSON object",
    "regex": "regular expression",
    "choice": "choice",
    "structural_tag": "structural tag",
    "lark": "grammar in Lark",
    "llguidance": "grammar in llguidance's Lark",
    "gbnf": "grammar in GBNF",
    "ebnf": "grammar in EBNF",
}


def _read_as(spec: str, kind: object) -> Asked:
    """A text as a constraint of a kind, which may be told by the text."""
    if kind not in _ALL_KINDS:
        raise UnknownNameError(f"no kind of constraint is named {clip(kind)}{suggestion(str(kind)[:60], _ALL_KINDS)}")
    is_told = kind not in ("detect", "grammar", *_GRAMMARS)
    comes_along = spec.strip() in library()
    found = "" if is_told else "lark" if comes_along else detect(spec)
    if kind in ARROWS and found in ARROWS:  # a text may be right in both
        return Asked("grammar", spec, _WORDS[kind], language=kind)
    if kind in _GRAMMARS and found != kind:
        raise MaskwrightError(
            f"the text is read as {_WORDS[found]}, not as {_WORDS[str(kind)]}; ask for the kind {found!r}, or for 'detect'"
        )
    if kind == "detect":
        of_json = "structural_tag" if found == "schema" and _is_tag(spec) else "json"
        kind = {"schema": of_json, "regex": "regex"}.get(found, "grammar")
        spec = spec.removesuffix("\n") if kind == "regex" else spec
    kind = "json" if kind == "schema" else "grammar" if kind in _GRAMMARS else str(kind)
    if kind == "grammar":
        return Asked(kind, spec, "grammar that comes along" if comes_along else _WORDS.get(found, "grammar"))
    if kind == "choice" and not spec.lstrip().startswith("["):
        spec = json.dumps([line for line in spec.splitlines() if line])
    return Asked(kind, spec, _WORDS[kind])


def _is_tag(spec: str) -> bool:
    try:
        values = read_json(spec)
    except ValueError:
        return False  # who reads the schema says it
    return isinstance(values, dict) and (
        values.get("type") == "structural_tag" or ("structures" in values and "triggers" in values)
    )


def text_of(question: Mapping[str, Any], name: str, most: int = MOST_TEXT) -> str:
    """A text of a question. Raises: MaskwrightError if it is none, or longer than `most`."""
    found = question.get(name, "")
    if not isinstance(found, str):
        raise MaskwrightError(f"{name} is {a_type(found)}; expected a text")
    if len(found) > most:
        raise MaskwrightError(f"{name} has {len(found):,} characters; at most {most:,} are read here")
    return found


def bytes_of(question: Mapping[str, Any], name: str) -> bytes:
    """A text of a question, as UTF-8.

    Raises: as `text_of`; MaskwrightError for half a character.
    """
    text = text_of(question, name)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise MaskwrightError(f"{name} holds half a surrogate pair at position {error.start}") from None


def number_of(question: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    """A whole number of a question.

    Raises: MaskwrightError if it is none from `least` to `most`.
    """
    found = question.get(name, default)
    if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
        raise MaskwrightError(f"{name} is {clip(found)}; expected a whole number from {least} to {most}")
    return found


def name_of(question: Mapping[str, Any], name: str, names: tuple[str, ...]) -> str:
    """One of some names; by default the first. Raises: UnknownNameError for another value."""
    found = question.get(name, names[0])
    if found not in names:
        raise UnknownNameError(f"{name} is {clip(found)}; expected one of {list(names)}")
    return str(found)
