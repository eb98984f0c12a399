"""How JSON is written: white space between its tokens, the order of keys, escapes.

In: the name of a style, or what a user says of its parts. Out: these parts. Knows nothing of
schemas.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import UnknownNameError
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.analysis.schema.shapes import Escapes
from maskwright.analysis.schema.spacing import NAMES

KeyOrder: TypeAlias = Literal["any", "schema"]
StyleName: TypeAlias = Literal["natural", "compact", "json.dumps", "indent2", "any"]


class Style(NamedTuple):
    """How JSON is written; see `load_schema`."""

    whitespace: str | int = "natural"
    key_order: KeyOrder = "any"
    escapes: Escapes = "natural"


_WITH_SPACES = {name: Style(name) for name in ("natural", "compact", "json.dumps", "indent2")}
STYLES = MappingProxyType({**_WITH_SPACES, "any": Style("any", escapes="any")})
"""What each `StyleName` stands for."""


def read_style(name: str | Style, whitespace: object = None, key_order: object = None, escapes: object = None) -> Style:
    """A style, with other parts where they are given.

    name : a `StyleName`, or a style. whitespace, key_order, escapes : None: as the style has them.

    Raises: UnknownNameError for what none of them can be.

    >>> read_style("natural", key_order="schema")
    Style(whitespace='natural', key_order='schema', escapes='natural')
    """
    if not isinstance(name, str | Style) or (isinstance(name, str) and name not in STYLES):
        other = f"; for other indentation say whitespace={clip(name)}" if str(name).startswith("indent") else ""
        raise UnknownNameError(f"style is {clip(name)}{suggestion(str(name), list(STYLES))}{other}")
    found = STYLES[name] if isinstance(name, str) else name
    given: dict[str, Any] = {"whitespace": whitespace, "key_order": key_order, "escapes": escapes}
    found = found._replace(**{part: value for part, value in given.items() if value is not None})
    check_texts(*found)
    return found


def check_texts(whitespace: object, key_order: object = "any", escapes: object = "any") -> None:
    """Check what `load_schema` is told of texts, before it is compared or hashed.

    Some values refuse that, and True is 1 there.

    Raises: UnknownNameError for an option that it does not have.
    """
    if isinstance(whitespace, bool) or not isinstance(whitespace, str | int):
        raise UnknownNameError(f"whitespace is {clip(whitespace)}; expected {NAMES}")
    for name, value, known in (("key_order", key_order, get_args(KeyOrder)), ("escapes", escapes, get_args(Escapes))):
        if not isinstance(value, str) or value not in known:
            expected = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
            raise UnknownNameError(f"{name} is {clip(value)}; expected {expected}")
