"""Texts of which no terminal can be held to names: those of schemas, patterns and compositions."""

from __future__ import annotations

from typing import Any, NoReturn

from maskwright.analysis.errors import MaskwrightError


class NoNames:
    """A matcher or batch that says so when it is asked to hold a terminal."""

    _instead = ""
    """What to do instead."""

    def restrict(self, *_: Any, **__: Any) -> NoReturn:
        """Not there: names are for texts of one grammar (`Matcher.restrict`, `Batch.restrict`).

        Raises: MaskwrightError always.
        """
        raise MaskwrightError(
            f"only a terminal of a grammar's store can be held to names (`restrict`); {self._instead}"
        )


class NoNamesInSchemas(NoNames):
    """Texts of a schema or pattern."""

    _instead = "write the names into the schema (enum, propertyNames) or the pattern, which compiles in a moment"


class NoNamesInCompositions(NoNames):
    """Texts of several languages."""

    _instead = "in a composition, give the part that spells the names a schema with an enum, or a pattern"
