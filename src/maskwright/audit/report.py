"""The results of audits: counts, rates, times, and each difference with a small example."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright.analysis.arguments import printable
from maskwright.analysis.schema.documents import at
from maskwright.report.parts import table
from maskwright.validation.report import Report, followed, line, members, tail

if TYPE_CHECKING:
    from rich.console import RenderableType

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
        found = members(self) | {"prefix": shown(self.prefix), "prefix_bytes": self.prefix.hex()}
        if self.token is not None:
            token, data = self.token
            found["token"] = {"id": token, "text": shown(data), "bytes": data.hex()}
        return found


def shown(data: bytes) -> str:
    """Bytes as text; bytes that are not UTF-8 as escapes."""
    return data.decode("utf-8", "backslashreplace")


def spread(nanoseconds: Sequence[int]) -> dict[str, float]:
    """Percentiles, maximum and mean of times, in us; {} if there are none."""
    if not nanoseconds:
        return {}
    times = np.array(nanoseconds) / 1e3
    found = [*np.percentile(times, (50, 90, 99)), times.max(), times.mean()]
    return {name: round(float(value), 3) for name, value in zip(_SPREAD, found, strict=True)}


_SPREAD = ("p50", "p90", "p99", "max", "mean")


@dataclass(frozen=True, kw_only=True)
class EngineReport(Report):
    """What audits of both kinds have found out.

    engine : name, version, python, seconds of its start; with a grammar, the grammar.
    counts : of what was tried, and of each kind of difference.
    unlisted : kind -> differences that were only counted.
    gave_up : why the audit ended early, or "".
    """

    engine: Mapping[str, Any]
    counts: Mapping[str, int]
    unlisted: Mapping[str, int]
    gave_up: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the engine is right, as far as was seen."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The report, ready for JSON."""
        return {"agrees": self.agrees, **super().to_dict()}

    def _name(self) -> str:
        """The engine in words."""
        return f"{self.engine['name']} {self.engine['version']}".rstrip()

    def _verdict(self) -> tuple[str, bool]:
        early = f"ended early: {self.gave_up}\n" if self.gave_up else ""
        return f"{early}{self.engine['name']}: {'agrees' if self.agrees else 'DIFFERS'}", self.agrees


@dataclass(frozen=True, kw_only=True)
class AuditReport(EngineReport):
    """The result of an audit with a grammar.

    store : grammar, vocabulary, lexing.
    texts : outcome -> how many texts.
    unreadable : (name, reason) of texts that could not be compared.
    microseconds : spread of the times of one mask, "theirs" and "ours".
    differences : the worst kind first, then the most frequent. Differences with the same terminals
        as an earlier one come later.
    """

    store: Mapping[str, str]
    texts: Mapping[str, int]
    unreadable: tuple[tuple[str, str], ...]
    microseconds: Mapping[str, Mapping[str, float]]
    differences: tuple[Difference, ...]

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
        return {name: round(self.counts[name] / masks, 6) for name in _RATED}

    def to_dict(self) -> dict[str, Any]:
        """The report, ready for JSON."""
        return super().to_dict() | {"rates": self.rates}

    def _rows(self) -> Iterable[tuple[str, str]]:
        engine, store, counts = self.engine, self.store, self.counts
        yield "engine", f"{self._name()}, grammar {engine['grammar']}, ready in {engine['seconds']:.2f} s"
        yield "against", f"{store['grammar']} x {store['vocabulary']}, lexing {store['lexing']}"
        yield from ((outcome, f"{count:,}") for outcome, count in self.texts.items())
        yield "masks compared", f"{counts['masks']:,}"
        for name, rate in self.rates.items():
            yield _RATED[name], f"{counts[name]:,}" + (f"  ({rate:.2%})" if counts[name] else "")
        yield "tokens refused, allowed wrongly", f"{counts['tokens_over']:,}, {counts['tokens_under']:,}"
        yield "tokens left out for a forced one", f"{counts['tokens_forced']:,}"

    def _findings(self) -> Iterable[RenderableType]:
        if self.microseconds["theirs"]:
            whose = (("theirs", self.engine["name"]), ("ours", "maskwright"))
            rows = ((title, *(f"{us:,.1f}" for us in self.microseconds[one].values())) for one, title in whose)
            yield table("us a mask", *(f">{name}" for name in _SPREAD), rows=rows)
        for kind in ORDER:
            found = [difference for difference in self.differences if difference.kind == kind]
            if not found:
                continue
            more = self.unlisted.get(kind, 0)
            n = len(found) + more
            places = "place" if n == 1 else "places"
            yield line(f"\n{kind}: {n:,} {places} of the grammar", "bold" if kind == FORCED else "bold red")
            for difference in found[:SHOWN]:
                yield from _lines(difference)
            words = [f"--json has {len(found) - SHOWN:,} more"] * (len(found) > SHOWN)
            words += [f"--examples finds texts for {more:,} more"] * (more > 0)
            if n > SHOWN:
                yield line("  " + "; ".join(words), "dim")
        for name, why in self.unreadable[:SHOWN]:
            yield line(f"\n{name}: {why}", "red")


_RATED = {
    "true_refused": "refuse the true next token",
    "masks_over": "refuse a legal token",
    "masks_under": "allow an illegal token",
    "unconstrained": "without constraint",
    "empty": "empty",
    "failed": "engine failures",
    "forced": "force one spelling of what must come",
}
"""Counts of masks with a kind of difference, in words."""


def _lines(one: Difference) -> Iterable[RenderableType]:
    """A difference for a terminal."""
    head = f"  after {one.before}: {one.sequence}" if one.sequence else f"  {one.message or one.kind}"
    counted = f"{one.positions:,} masks, {one.tokens:,} tokens" if one.tokens else f"{one.positions:,} times"
    yield line(f"{head}  ({counted})", "cyan")
    token = (one.token[0], shown(one.token[1])) if one.sequence and one.token is not None else None
    example = followed(tail(shown(one.prefix), _TAIL), token)
    if one.sequence and token is None:
        example.append("  then  ").append("end of text", style="bold")
    if not one.is_shortest:
        example.append(f"  (not shortened; {one.place})", style="dim")
    yield example
    if one.why:
        yield line(f"    {one.why}", "dim")


# --- of schemas ---

ACCEPTS = "accepts what is no instance"
REFUSES = "refuses an instance"

_SHOWN = 8
"""Keywords without a test that a terminal shows."""
_BEGIN = 200
"""Characters of a text that a terminal shows."""


def _beginning(text: str) -> str:
    """The beginning of a text for a terminal."""
    return printable(text[:_BEGIN]) + " ..." * (len(text) > _BEGIN)


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
        return members(self)


@dataclass(frozen=True, kw_only=True)
class SchemaAuditReport(EngineReport):
    """The result of an audit of a schema.

    counts : values tried; instances, and others; differences of both kinds; values that jsonschema
        could not judge; values on which our masks side with the engine (disputed); failures.
    schema : its name.
    keywords : (keyword, pointer) -> values that break only this keyword, and how many of them the
        engine accepts.
    untested : (keyword, pointer) of which no value broke only this keyword.
    differences : those of each kind with the most values first.
    failures : (what the engine said when it failed, how often).
    left_out : what our masks do not ask for, since no mask can.
    """

    schema: str
    keywords: Mapping[tuple[str, str], tuple[int, int]]
    untested: tuple[tuple[str, str], ...]
    differences: tuple[SchemaDifference, ...]
    failures: tuple[tuple[str, int], ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether no difference was found, and the engine never failed."""
        return not (self.differences or self.unlisted or self.failures or self.gave_up)

    def to_dict(self) -> dict[str, Any]:
        """The report, ready for JSON."""
        names = ("keyword", "pointer", "tried", "accepted")
        keywords = [dict(zip(names, (*of, *counts), strict=True)) for of, counts in self.keywords.items()]
        return super().to_dict() | {"keywords": keywords}

    def _rows(self) -> Iterable[tuple[str, str]]:
        yield "engine", f"{self._name()}, ready in {self.engine['seconds']:.2f} s"
        yield "schema", self.schema
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
                yield words, f"{self.counts[name]:,}"
        yield from (("our masks leave out", left_out) for left_out in self.left_out)

    def _findings(self) -> Iterable[RenderableType]:
        if self.keywords:
            rows = (
                (*of, f"{tried:,}", line(f"{accepted:,}", "bold red" if accepted else ""))
                for of, (tried, accepted) in self.keywords.items()
            )
            yield table("\nkeyword", "\nat", ">values that\nbreak only it", ">\naccepted", rows=rows)
        if self.untested:
            names = ", ".join(pointer for _, pointer in self.untested[:_SHOWN])
            others = f" and {len(self.untested) - _SHOWN:,} more" * (len(self.untested) > _SHOWN)
            yield line(f"\nnot put to the test: {names}{others}", "dim")
        for kind in (ACCEPTS, REFUSES):
            found = [one for one in self.differences if one.kind == kind]
            more = self.unlisted.get(kind, 0)
            if found or more:
                yield line(f"\n{kind}: {len(found) + more:,} of the schema's places", "bold red")
            for one in found:
                name = f"{one.keyword} {at(one.pointer)}" if kind == ACCEPTS else f"stops {at(one.pointer)}"
                yield line(f"  {name}  ({one.values:,} values)", "cyan")
                yield line(f"    {_beginning(one.text)}")
                if one.why:
                    yield line(f"    {_beginning(one.why)}", "dim")
            if more:
                yield line(f"  --examples lists {more:,} more", "dim")
        for said, count in self.failures:
            yield line(f"\n{said}  ({count:,} times)", "red")
