"""What a schema says to llguidance of its texts: the object under ``x-guidance`` at its root.

Source: docs/json_schema.md and parser/src/json/compiler.rs of llguidance 1.9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from maskwright.analysis.arguments import a_type
from maskwright.analysis.errors import GrammarError, SchemaError, UnknownNameError
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.analysis.regex.whole import regex_automaton
from maskwright.analysis.schema.load import JsonSchema, read_schema
from maskwright.analysis.schema.rewriting import Change
from maskwright.analysis.schema.spacing import spacing_of
from maskwright.analysis.schema.style import Style, read_style

KEY = "x-guidance"
_DEFAULTS: Mapping[str, Any] = {
    **{"item_separator": ",", "key_separator": ":", "whitespace_flexible": True, "whitespace_pattern": ""},
    **{"coerce_one_of": False, "lenient": False, "json_allow_general_unicode_escapes": False},
    "json_allowed_escapes": 'nrbtf\\"u',
}
_SPACES = {(True, ",", ":"): None, (False, ",", ":"): "compact", (False, ", ", ": "): "json.dumps"}
"""Whether white space is free, and the separators: the white space of `load_schema`."""


def read_guided(schema: Any, style: Style, name: str | None = None, changes: Sequence[Change] = ()) -> JsonSchema:
    """`read_schema`, as the schema's own ``x-guidance`` wants it.

    style : for what that does not say. `coerce_one_of` changes nothing: `oneOf` is held exactly.
        `json_allow_general_unicode_escapes` is escapes="any", with ``\\/`` and ``1.0``, too.

    Raises: as `read_schema`; SchemaError, with the pointer, for what llguidance does not have, for
        separators and escapes of which there is no style, and for a pattern of no white space.
    """
    said = schema.get(KEY) if isinstance(schema, dict) else None
    if not isinstance(said, dict | None):
        raise SchemaError(f"/{KEY} is {a_type(said)}; expected an object with options", f"/{KEY}")
    said = {option: value for option, value in (said or {}).items() if value is not None}
    options = {**_DEFAULTS, **said}
    for option, value in options.items():
        if option not in _DEFAULTS:
            raise _refused(option, f"there is no such option{suggestion(option, list(_DEFAULTS))}")
        if not isinstance(value, type(_DEFAULTS[option])):
            raise _refused(option, f"this is {a_type(value)}; expected {a_type(_DEFAULTS[option])}")
    if set(options["json_allowed_escapes"]) != set(_DEFAULTS["json_allowed_escapes"]):
        raise _refused("json_allowed_escapes", f"only {_DEFAULTS['json_allowed_escapes']} can be had")
    pattern = said.get("whitespace_pattern")
    free = (options["whitespace_flexible"] or pattern is not None, options["item_separator"], options["key_separator"])
    if free not in _SPACES:
        raise _refused("item_separator", "',' and ':' can be had, and ', ' and ': ' with whitespace_flexible false")
    spaces = f"(?:{pattern})?" if pattern else pattern if pattern == "" else _SPACES[free]
    if pattern:
        try:
            regex_automaton(pattern)  # by itself: brackets of ours would close those of `)|(`
            spacing_of(f"(?:{pattern})")
        except (GrammarError, UnknownNameError) as error:
            raise _refused("whitespace_pattern", str(error)) from error
    style = read_style(style, spaces, escapes="any" if options["json_allow_general_unicode_escapes"] else None)
    return read_schema(schema, style=style, lenient=options["lenient"], name=name, changes=changes)


def _refused(option: str, why: str) -> SchemaError:
    return SchemaError(f"/{KEY}/{option}: {why}", f"/{KEY}/{option}")
