"""The result of an audit of a JSON schema: each keyword, each difference with a small value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskwright.analysis.schema.documents import at

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table


ACCEPTS = "accepts what is no instance"
REFUSES = "refuses an instance"

_SHOWN = 8
"""Keywords without a test that a terminal shows."""
_TAIL = 200
"""Characters of a text that a terminal shows."""


def _printable(text: str) -> str:
    """The beginning of a text for a terminal: what cannot be printed is escaped as in Python."""
    shown = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text[:_TAIL])
    return shown + " ..." * (len(text) > _TAIL)


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """One way in which the engine differs from the schema.

    kind : ACCEPTS or REFUSES.
    keyword : that the value breaks; "" for an instance that is refused.
    pointer : JSON pointer: of ACCEPTS to the keyword in the schema; of REFUSES to the place in the
        instance where the engine stops, with * for items.
    values : values with this difference, among those tried.
    text : a small one.
    why : what jsonschema says of it.
    """

    kind: str
    keyword: str
    pointer: str
    values: int
    text: str
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The difference, ready for JSON."""
        return {name: getattr(self, name) for name in ("kind", "keyword", "pointer", "values", "text", "why")}


@dataclass(frozen=True)
class SchemaAuditReport:
    """The result of an audit of a schema.

    engine : name, version, python, seconds of its start.
    schema : its name.
    settings : the audit's options.
    counts : values tried; instances, and others; differences of both kinds; values that jsonschema
        could not judge; values on which our masks side with the engine (disputed); failures.
    keywords : (keyword, pointer) -> values that break only this keyword, and how many of them the
        engine accepts.
    untested : (keyword, pointer) of which no value broke only this keyword.
    differences : those of each kind with the most values first.
    unlisted : kind -> differences that were only counted.
    failures : (what the engine said when it failed, how often).
    left_out : what our masks do not ask for, since no mask can.
    gave_up : why the audit ended early, or "".
    seconds : wall time of the audit.
    """

    engine: Mapping[str, Any]
    schema: str
    settings: Mapping[str, Any]
    counts: Mapping[str, int]
    keywords: Mapping[tuple[str, str], tuple[int, int]]
    untested: tuple[tuple[str, str], ...]
    differences: tuple[SchemaDifference, ...]
    unlisted: Mapping[str, int]
    failures: tuple[tuple[str, int], ...] = ()
    left_out: tuple[str, ...] = ()
    gave_up: str = ""
    seconds: float = 0.0

    @property
    def agrees(self) -> bool:
        """Whether no difference was found, and the engine never failed."""
        return not (self.differences or self.unlisted or self.failures or self.gave_up)

    def to_dict(self) -> dict[str, Any]:
        """The report, ready for JSON."""
        return {
            "agrees": self.agrees,
            "engine": dict(self.engine),
            "schema": self.schema,
            "settings": dict(self.settings),
            "counts": dict(self.counts),
            "keywords": [
                {"keyword": keyword, "pointer": pointer, "tried": tried, "accepted": accepted}
                for (keyword, pointer), (tried, accepted) in self.keywords.items()
            ],
            "untested": [list(one) for one in self.untested],
            "differences": [one.to_dict() for one in self.differences],
            "unlisted": dict(self.unlisted),
            "failures": [list(one) for one in self.failures],
            "left_out": list(self.left_out),
            "gave_up": self.gave_up,
            "seconds": round(self.seconds, 3),
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text as Styled

        yield self._table()
        if self.keywords:
            yield self._keywords()
        if self.untested:
            names = ", ".join(pointer for _, pointer in self.untested[:_SHOWN])
            others = f" and {len(self.untested) - _SHOWN:,} more" * (len(self.untested) > _SHOWN)
            yield Styled(f"\nnot put to the test: {names}{others}", style="dim")
        for kind in (ACCEPTS, REFUSES):
            found = [one for one in self.differences if one.kind == kind]
            more = self.unlisted.get(kind, 0)
            if found or more:
                yield Styled(f"\n{kind}: {len(found) + more:,} of the schema's places", style="bold red")
            for one in found:
                name = f"{one.keyword} {at(one.pointer)}" if kind == ACCEPTS else f"stops {at(one.pointer)}"
                yield Styled(f"  {name}  ({one.values:,} values)", style="cyan")
                yield Styled(f"    {_printable(one.text)}")
                if one.why:
                    yield Styled(f"    {_printable(one.why)}", style="dim")
            if more:
                yield Styled(f"  --examples lists {more:,} more", style="dim")
        for said, count in self.failures:
            yield Styled(f"\n{said}  ({count:,} times)", style="red")
        if self.gave_up:
            yield Styled(f"\nended early: {self.gave_up}", style="bold red")
        verdict = "agrees" if self.agrees else "DIFFERS"
        yield Styled(f"\n{self.engine['name']}: {verdict}", style="bold green" if self.agrees else "bold red")

    def _table(self) -> Table:
        from rich.table import Table
        from rich.text import Text as Styled

        table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
        version = f" {self.engine['version']}" * bool(self.engine["version"])
        table.add_row("engine", Styled(f"{self.engine['name']}{version}, ready in {self.engine['seconds']:.2f} s"))
        table.add_row("schema", Styled(self.schema))
        names = {
            "instances": "instances tried",
            "refuses": "of them refused",
            "not_instances": "other values tried",
            "accepts": "of them accepted",
            "disputed": "disputed: our masks side with the engine",
            "not_judged": "not judged by jsonschema",
            "failed": "engine failures",
        }
        for name, words in names.items():
            if self.counts[name] or name in ("instances", "refuses", "not_instances", "accepts"):
                table.add_row(words, f"{self.counts[name]:,}")
        for left_out in self.left_out:
            table.add_row("our masks leave out", Styled(left_out))
        table.add_row("wall time", f"{self.seconds:.1f} s")
        return table

    def _keywords(self) -> Table:
        """Keyword by keyword: values that break only this one, and those that are accepted."""
        from rich.table import Table
        from rich.text import Text as Styled

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("\nkeyword")
        table.add_column("\nat")
        table.add_column("values that\nbreak only it", justify="right")
        table.add_column("\naccepted", justify="right")
        for (keyword, pointer), (tried, accepted) in self.keywords.items():
            style = "bold red" if accepted else ""
            table.add_row(Styled(keyword), Styled(pointer), f"{tried:,}", Styled(f"{accepted:,}", style=style))
        return table


__all__ = ["ACCEPTS", "REFUSES", "SchemaAuditReport", "SchemaDifference"]
