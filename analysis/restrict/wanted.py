"""Which restrictions a caller asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from maskwright.analysis.arguments import as_strings
from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar.options import Restriction


def as_tuple(restrictions: Iterable[str]) -> tuple[str, ...]:
    """The restrictions as a tuple of texts.

    Raises: GrammarError if they are one text, or not all texts.
    """
    if isinstance(restrictions, str):
        raise GrammarError(
            f"expected a list of restrictions, but found the text {restrictions[:40]!r}; write [{restrictions[:40]!r}]"
        )
    return as_strings("restrict", restrictions, "a list of restrictions, NAME or NAME=VALUE", GrammarError)


def read_wanted(restrictions: Iterable[str]) -> Mapping[str, str | None]:
    """The map from the name of each restriction to its value, in the order given.

    The value is None if there is no ``=``.

    Raises: GrammarError for a restriction that has no name or is given twice, and as `as_tuple`.
    """
    wanted: dict[str, str | None] = {}
    for text in as_tuple(restrictions):
        name, equals, value = text.partition("=")
        name = name.strip()
        if not name:
            raise GrammarError(f"restriction {text[:40]!r} has no name; expected NAME or NAME=VALUE")
        if name in wanted:
            raise GrammarError(f"restriction {name} is given twice; give it once, with everything that must hold")
        wanted[name] = value if equals else None
    return wanted


def replacements(declared: Sequence[Restriction], restrictions: Iterable[str]) -> tuple[str, ...]:
    """The symbols that the restrictions put instead of others, and that must be compiled for them.

    declared : the restrictions that the grammar file declares.
    restrictions : the ones asked for.

    Raises: as `read_wanted`.
    """
    wanted = read_wanted(restrictions)
    return tuple(dict.fromkeys(new for found in declared if found.name in wanted for new in found.replacements))
