"""What a grammar file states beyond Lark's language, such as ``// maskwright: lexing = longest``.

These lines are comments to Lark, so the file stays a plain Lark grammar. Whoever loads it by
`load_grammar` gets what its author meant.

    // maskwright: start = file_input
    // maskwright: lexing = longest | contextual | nfa
    // maskwright: reserved = none | words | all
    // maskwright: conflicts = all | shift
    // maskwright: soft = match case type
    // maskwright: verbatim = TEXT TEXT_END
    // maskwright: refused = UNTERMINATED
    // maskwright: tabs = consistent
    // maskwright: length STRING = ..80
    // maskwright: restriction no_comments = COMMENT: _NEWLINE:_BARE_NEWLINE
    // maskwright: convention variable_name = variable_name:atom
    // maskwright: allowed imports = module .:relative_module

- The first five mean what the arguments of `load_grammar` with these names mean. An argument
  overrides the line.
- `verbatim`: see `Grammar`.
- `refused` names terminals that no rule takes. They are lexed all the same, so that a text with one
  of them is refused and not read in some other way.
- `tabs`: columns compare as in CPython, not by tabs of 8 as in Lark; see `Layout`.
- `length` bounds the characters of a terminal's lexemes: ``..8``, ``2..``, ``2..8`` or ``8``. A
  restriction ``length:STRING=..`` of the same terminal overrides the line.
- The last three declare restrictions. They hold only where a caller asks for them; see `restrict`.

`soft`, `verbatim` and `refused` may stand on several lines.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast, get_args

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar.grammar import Conflicts, Lengths, Lexing, Reserved

KEYS = ("start", "lexing", "reserved", "conflicts", "soft", "verbatim", "refused", "tabs")

_LISTS = ("soft", "verbatim", "refused")
_RESTRICTIONS = ("restriction", "convention", "allowed")
_KNOWN = (*KEYS, "length", *_RESTRICTIONS)
_LINE = re.compile(r"^[ \t]*//[ \t]*maskwright:(.*)$", re.MULTILINE)
_CHOICES = {
    "lexing": get_args(Lexing),
    "reserved": get_args(Reserved),
    "conflicts": get_args(Conflicts),
    "tabs": ("consistent",),
}


def has_options(text: str) -> bool:
    """Whether a text states an option, which only Lark as `parse_grammar` reads it does."""
    return _LINE.search(text) is not None


@dataclass(frozen=True, slots=True)
class Restriction:
    """A restriction that a grammar file declares and that `restrict` can be asked for by name.

    kind : "restriction", "convention" or "allowed".
    name : the name to ask for.
    pairs : pairs (A, B) of symbol names; "" stands for no symbol. What they mean depends on `kind`:

    - "restriction": each use of A becomes a use of B. (A, "") removes A. ("", B): B is lexed and
      refused.
    - "convention": it is about the words of A. A word that it takes from A may be a B, if B is
      given.
    - "allowed": the list is about A. (".", B): B is removed unless "." is in the list.
    """

    kind: str
    name: str
    pairs: tuple[tuple[str, str], ...]

    @property
    def replacements(self) -> tuple[str, ...]:
        """The symbols that must be compiled even if nothing else leads to them.

        These are the B of the pairs; () for a "convention" or "allowed".
        """
        return tuple(dict.fromkeys(new for _, new in self.pairs if new)) if self.kind == "restriction" else ()


@dataclass(frozen=True, slots=True)
class Options:
    """What the option lines of one file state; None or () where they say nothing.

    The members have the names of the options. `lengths` holds terminals' names with their lengths,
    `restrictions` what the last three kinds of lines declare, both in the file's order.
    """

    start: str | None = None
    lexing: Lexing | None = None
    reserved: Reserved | None = None
    conflicts: Conflicts | None = None
    soft: tuple[str, ...] = ()
    verbatim: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    tabs: str | None = None
    lengths: tuple[tuple[str, Lengths], ...] = ()
    restrictions: tuple[Restriction, ...] = ()


def read_options(text: str, at: Callable[[str, int], str]) -> Options:
    """The options of a grammar's text.

    text : the text of the grammar file.
    at : at(message, offset) is an error message with its place.

    Raises: GrammarError for a line that is not an option; for an option that is unknown or given
    twice; for a value that an option cannot have.
    """
    found: dict[str, list[str]] = {}
    declared: dict[str, Restriction] = {}
    lengths: dict[str, Lengths] = {}
    for line in _LINE.finditer(text):
        key, equals, value = (part.strip() for part in line[1].partition("="))
        words = value.split()

        def error(message: str, offset: int = line.start(1)) -> GrammarError:
            return GrammarError(at(message, offset))

        if not (key and equals and words):
            raise error("expected an option as in: // maskwright: lexing = contextual")
        kind, _, name = key.partition(" ")
        if kind in _RESTRICTIONS:
            _declare(declared, kind, name.strip(), words, error)
            continue
        if about := re.fullmatch(r"length\b(.*)", key):
            _state_length(lengths, about[1], value, error)
            continue
        if key not in KEYS:
            close = difflib.get_close_matches(key, _KNOWN, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise error(f"no option is named {key!r}{hint} (known: {', '.join(_KNOWN)})")
        if key not in _LISTS:
            if key in found:
                raise error(f"option {key} is given twice")
            if len(words) > 1:
                raise error(f"option {key} takes one value, but found {value!r}")
            if words[0] not in _CHOICES.get(key, words):
                raise error(f"option {key} is {value!r}; expected {' or '.join(_CHOICES[key])}")
        found.setdefault(key, []).extend(words)

    def one(key: str) -> str | None:
        return found.get(key, [None])[0]

    soft, verbatim, refused = (tuple(dict.fromkeys(found.get(key, ()))) for key in _LISTS)
    return Options(
        one("start"),
        cast("Lexing | None", one("lexing")),
        cast("Reserved | None", one("reserved")),
        cast("Conflicts | None", one("conflicts")),
        soft,
        verbatim,
        refused,
        one("tabs"),
        tuple(lengths.items()),
        tuple(declared.values()),
    )


def _state_length(lengths: dict[str, Lengths], name: str, value: str, error: Callable[[str], GrammarError]) -> None:
    """Add one line to the lengths.

    name : what stands between ``length`` and the equals sign.
    """
    if not re.fullmatch(r"[ \t]+\w+", name):
        raise error("expected a terminal for the length, as in: // maskwright: length STRING = ..80")
    name = name.strip()
    if name in lengths:
        raise error(f"option length {name} is given twice")
    try:
        lengths[name] = Lengths.read(name, value)
    except GrammarError as found:
        raise error(str(found)) from found


def _declare(
    declared: dict[str, Restriction], kind: str, name: str, words: list[str], error: Callable[[str], GrammarError]
) -> None:
    """Add one line to the restrictions. All lines of one name must be of one kind."""
    if not re.fullmatch(r"\w+", name):
        raise error(f"expected a name for the {kind}, as in: // maskwright: restriction no_comments = COMMENT:")
    pairs = []
    for word in words:
        old, colon, new = word.rpartition(":") if ":" in word else (word, "", "")
        if not (old or new) or (kind != "restriction" and not old) or (kind == "restriction" and not colon):
            expected = "A:B, A: or :B" if kind == "restriction" else "A or A:B"
            raise error(f"{kind} {name} has {word!r}; expected {expected}")
        pairs.append((old, new))
    before = declared.get(name)
    if before is not None and before.kind != kind:
        raise error(f"{kind} {name} is already declared as {before.kind} {name}; give it another name")
    if kind == "allowed" and before is None and pairs[0][0] == ".":
        raise error(
            f"allowed {name} begins with '.'; expected the rule that the list is about, as in: module .:relative_module"
        )
    declared[name] = Restriction(kind, name, (*(before.pairs if before else ()), *pairs))
