"""The result of an audit: counts, rates, times, and each difference with a shortest text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Table

TRUE_REFUSED = "refuses the true next token"
OVER = "refuses a legal token"
UNDER = "allows an illegal token"
INCONSISTENT = "its mask allows a token that it then refuses"
UNCONSTRAINED = "mask without constraint"
EMPTY = "empty mask"
FORCED = "forces one spelling of what must come"

ORDER = (
    TRUE_REFUSED,
    UNCONSTRAINED,
    EMPTY,
    INCONSISTENT,
    "exception",
    "crash",
    "no answer in time",
    OVER,
    UNDER,
    FORCED,
)
"""Kinds of difference, the worst first.

`FORCED` is none of the language: the mask has one token, with whose bytes every legal text goes on.
It leaves out other tokens for the same text, and no text.
"""

SHOWN = 5
"""Differences of each kind that a terminal shows."""
_TAIL = 160
"""Characters that are shown of the end of a long text."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which the engine differs: a kind, a terminal before, and the terminals spelled.

    kind : one of `ORDER`.
    before : the terminal before, in words.
    sequence : the terminals that the tokens spell, from the lexeme under way on. The last one may
        be unfinished.
    positions : masks with it.
    tokens : tokens with it, over all these masks.
    true_refusals : texts that it ended.
    prefix : a text after which it shows.
    token : id and bytes of a token with it; None for the end of the text, and where the mask as a
        whole is wrong.
    is_shortest : whether `prefix` was made as short as possible.
    place : of an example in the corpus, as name:line:column.
    message : what the engine said.
    why : what our engine says of the token.
    """

    kind: str
    before: str
    sequence: str
    positions: int
    tokens: int
    true_refusals: int
    prefix: bytes
    token: tuple[int, bytes] | None
    is_shortest: bool
    place: str
    message: str = ""
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The difference, ready for JSON. Bytes are given as text and in hexadecimal."""
        token = None
        if self.token is not None:
            token = {"id": self.token[0], "text": shown(self.token[1]), "bytes": self.token[1].hex()}
        return {
            "kind": self.kind,
            "before": self.before,
            "sequence": self.sequence,
            "positions": self.positions,
            "tokens": self.tokens,
            "true_refusals": self.true_refusals,
            "prefix": shown(self.prefix),
            "prefix_bytes": self.prefix.hex(),
            "token": token,
            "is_shortest": self.is_shortest,
            "place": self.place,
            "message": self.message,
            "why": self.why,
        }


def shown(data: bytes) -> str:
    """Bytes as text; bytes that are not UTF-8 as escapes."""
    return data.decode("utf-8", "backslashreplace")


def spread(nanoseconds: np.typing.NDArray[np.int64]) -> dict[str, float]:
    """Percentiles, maximum and mean of times, in us; {} if there are none.

    nanoseconds : (n,) int64.
    """
    if not len(nanoseconds):
        return {}
    percentiles = np.percentile(nanoseconds, (50, 90, 99)) / 1e3
    values = dict(zip(("p50", "p90", "p99"), percentiles.tolist(), strict=True))
    values |= {"max": float(nanoseconds.max()) / 1e3, "mean": float(nanoseconds.mean()) / 1e3}
    return {name: round(value, 3) for name, value in values.items()}


@dataclass(frozen=True)
class AuditReport:
    """The result of an audit.

    engine : name, version, python, seconds of its start, grammar.
    store : grammar, vocabulary, lexing.
    settings : the audit's options.
    texts : outcome -> how many texts.
    unreadable : (name, reason) of texts that could not be compared.
    counts : masks compared, and those with each kind of difference; tokens likewise.
    microseconds : spread of the times of one mask, "theirs" and "ours".
    differences : the worst kind first, then the most frequent. Differences with the same terminals
        as an earlier one come later.
    unlisted : kind -> differences that were only counted.
    gave_up : why the audit ended early, or "".
    seconds : wall time of the audit.
    """

    engine: Mapping[str, Any]
    store: Mapping[str, str]
    settings: Mapping[str, Any]
    texts: Mapping[str, int]
    unreadable: tuple[tuple[str, str], ...]
    counts: Mapping[str, int]
    microseconds: Mapping[str, Mapping[str, float]]
    differences: tuple[Difference, ...]
    unlisted: Mapping[str, int]
    gave_up: str = ""
    seconds: float = 0.0

    @property
    def agrees(self) -> bool:
        """Whether all texts could be compared and none but forced tokens was found to differ."""
        could_not = self.unreadable or self.gave_up or self.counts["over_limit"] or self.counts["respelled"]
        kinds = {difference.kind for difference in self.differences} | set(self.unlisted)
        return not (kinds - {FORCED} or could_not)

    @property
    def rates(self) -> dict[str, float]:
        """For each kind of difference the share of the compared masks that have it."""
        masks = max(1, self.counts["masks"])
        names = ("masks_over", "masks_under", "true_refused", "unconstrained", "empty", "failed", "forced")
        return {name: round(self.counts[name] / masks, 6) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """The report, ready for JSON."""
        return {
            "agrees": self.agrees,
            "engine": dict(self.engine),
            "store": dict(self.store),
            "settings": dict(self.settings),
            "texts": dict(self.texts),
            "unreadable": [list(one) for one in self.unreadable],
            "counts": dict(self.counts),
            "rates": self.rates,
            "microseconds": {name: dict(values) for name, values in self.microseconds.items()},
            "differences": [difference.to_dict() for difference in self.differences],
            "unlisted": dict(self.unlisted),
            "gave_up": self.gave_up,
            "seconds": round(self.seconds, 3),
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text as Styled

        yield self._table()
        if self.microseconds["theirs"]:
            yield self._times()
        for kind in ORDER:
            found = [difference for difference in self.differences if difference.kind == kind]
            if not found:
                continue
            more = self.unlisted.get(kind, 0)
            places = "place" if len(found) + more == 1 else "places"
            style = "bold" if kind == FORCED else "bold red"
            yield Styled(f"\n{kind}: {len(found) + more:,} {places} of the grammar", style=style)
            yield from map(_render, found[:SHOWN])
            if len(found) + more > SHOWN:
                n_more = len(found) - SHOWN
                words = [f"--json has {n_more:,} more"] * (n_more > 0) + [
                    f"--examples finds texts for {more:,} more"
                ] * (more > 0)
                yield Styled("  " + "; ".join(words), style="dim")
        for name, why in self.unreadable[:SHOWN]:
            yield Styled(f"\n{name}: {why}", style="red")
        if self.gave_up:
            yield Styled(f"\nended early: {self.gave_up}", style="bold red")
        verdict = "agrees" if self.agrees else "DIFFERS"
        yield Styled(f"\n{self.engine['name']}: {verdict}", style="bold green" if self.agrees else "bold red")

    def _table(self) -> Table:
        """Engine, store, outcomes and counts."""
        from rich.table import Table
        from rich.text import Text as Styled

        table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(max_width=60)
        table.add_column()
        engine = self.engine
        version = f" {engine['version']}" * bool(engine["version"])
        table.add_row(
            "engine",
            Styled(f"{engine['name']}{version}, grammar {engine['grammar']}, ready in {engine['seconds']:.2f} s"),
        )
        table.add_row("against", f"{self.store['grammar']} x {self.store['vocabulary']}, lexing {self.store['lexing']}")
        for outcome, count in self.texts.items():
            table.add_row(Styled(outcome), f"{count:,}")
        names = {
            "masks": "masks compared",
            "true_refused": "refuse the true next token",
            "masks_over": "refuse a legal token",
            "masks_under": "allow an illegal token",
            "unconstrained": "without constraint",
            "empty": "empty",
            "failed": "engine failures",
            "forced": "force one spelling of what must come",
        }
        for name, words in names.items():
            share = self.rates.get(name)
            rate = "" if share is None or not self.counts[name] else f"  ({share:.2%})"
            table.add_row(words, f"{self.counts[name]:,}{rate}")
        table.add_row(
            "tokens refused, allowed wrongly", f"{self.counts['tokens_over']:,}, {self.counts['tokens_under']:,}"
        )
        table.add_row("tokens left out for a forced one", f"{self.counts['tokens_forced']:,}")
        table.add_row("wall time", f"{self.seconds:.1f} s")
        return table

    def _times(self) -> Table:
        """Times a mask."""
        from rich.table import Table
        from rich.text import Text as Styled

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("us a mask")
        for name in ("p50", "p90", "p99", "max", "mean"):
            table.add_column(name, justify="right")
        for whose, title in (("theirs", self.engine["name"]), ("ours", "maskwright")):
            table.add_row(Styled(title), *(f"{value:,.1f}" for value in self.microseconds[whose].values()))
        return table


def _render(difference: Difference) -> RenderableType:
    """A difference in lines for a terminal."""
    from rich.console import Group
    from rich.text import Text as Styled

    one = difference
    lines = []
    head = f"  after {one.before}: {one.sequence}" if one.sequence else f"  {one.message or one.kind}"
    counted = f"{one.positions:,} masks, {one.tokens:,} tokens" if one.tokens else f"{one.positions:,} times"
    lines.append(Styled(f"{head}  ({counted})", style="cyan"))
    text = shown(one.prefix)
    prefix = repr(text) if len(text) <= _TAIL else f"... {text[-_TAIL:]!r}"
    example = Styled(f"    {prefix}")
    if one.sequence:
        token = "end of text" if one.token is None else f"{shown(one.token[1])!r}"
        example.append("  then  ").append(token, style="bold")
        if one.token is not None:
            example.append(f" (token {one.token[0]})")
    if not one.is_shortest:
        example.append(f"  (not shortened; {one.place})", style="dim")
    lines.append(example)
    if one.why:
        lines.append(Styled(f"    {one.why}", style="dim"))
    return Group(*lines)
