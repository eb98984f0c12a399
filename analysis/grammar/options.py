"""What a grammar file says about itself beyond Lark's language: comment lines such as ``// maskwright: lexing = longest``.

Lark takes them for comments, so the file stays a plain Lark grammar; whoever loads it by `load_grammar` gets what its author meant.

    // maskwright: start = file_input
    // maskwright: lexing = longest | contextual | nfa
    // maskwright: conflicts = all | shift
    // maskwright: soft = match case type
    // maskwright: verbatim = TEXT TEXT_END
    // maskwright: refused = UNTERMINATED

The first four mean what `load_grammar`'s arguments of these names mean, which go before them. `verbatim`: see `Grammar`. `refused` names
terminals that no rule takes but that are lexed all the same, so that texts with them are refused and not read some other way. The
last three may stand on several lines.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast, get_args

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar.grammar import Conflicts, Lexing

KEYS = ("start", "lexing", "conflicts", "soft", "verbatim", "refused")

_LISTS = ("soft", "verbatim", "refused")
_LINE = re.compile(r"^[ \t]*//[ \t]*maskwright:(.*)$", re.MULTILINE)
_CHOICES = {"lexing": get_args(Lexing), "conflicts": get_args(Conflicts)}


@dataclass(frozen=True, slots=True)
class Options:
    """None and () where the file does not say."""

    start: str | None = None
    lexing: Lexing | None = None
    conflicts: Conflicts | None = None
    soft: tuple[str, ...] = ()
    verbatim: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def read_options(text: str, at: Callable[[str, int], str]) -> Options:
    """The options of a grammar's text. at(message, offset) : an error message with its place.

    Raises GrammarError for a line that is no option, an option that is unknown or given twice, or a value that it cannot have.
    """
    found: dict[str, list[str]] = {}
    for line in _LINE.finditer(text):
        key, equals, value = (part.strip() for part in line[1].partition("="))
        words = value.split()

        def error(message: str, offset: int = line.start(1)) -> GrammarError:
            return GrammarError(at(message, offset))

        if not (key and equals and words):
            raise error("expected an option as in: // maskwright: lexing = contextual")
        if key not in KEYS:
            close = difflib.get_close_matches(key, KEYS, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise error(f"no option is named {key!r}{hint} (known: {', '.join(KEYS)})")
        if key not in _LISTS:
            if key in found:
                raise error(f"option {key} is given twice")
            if len(words) > 1:
                raise error(f"option {key} has one value, but found {value!r}")
            if words[0] not in _CHOICES.get(key, words):
                raise error(f"option {key} is {value!r}; expected {' or '.join(_CHOICES[key])}")
        found.setdefault(key, []).extend(words)

    def one(key: str) -> str | None:
        return found.get(key, [None])[0]

    return Options(
        one("start"),
        cast("Lexing | None", one("lexing")),
        cast("Conflicts | None", one("conflicts")),
        *(tuple(dict.fromkeys(found.get(key, ()))) for key in _LISTS),
    )
