"""The report of a validation: counts by class, figures, and each finding with its place.

In: outcomes. Out: a report for terminals, JSON and programs. `Report` is what it has in common with
those of audits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from maskwright.report.parts import table

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.text import Text as Styled

SHOWN = 5
"""Most findings of each class that are shown in a terminal."""
_WIDEST = 600
"""Most characters of a message that are shown."""
_TAIL = 400
"""Characters that are shown of the end of a long text."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One text whose outcome is not the good one.

    name : the file, file:line for a record, or "sample" and the number of a sample.
    kind : the class of the outcome.
    is_failure : whether the class makes the check fail.
    line, column : the place, from 1; 0 if there is none. Columns count characters.
    byte : the place as a byte offset, from 0.
    before : the last characters of the text before the place.
    token : id and text of the refused token; None if there is none, as at the end of a text.
    why : the reason, in words.
    said : what other parsers say.
    more : the other members of the outcome.
    """

    name: str
    kind: str
    is_failure: bool
    line: int = 0
    column: int = 0
    byte: int = 0
    before: str = ""
    token: tuple[int, str] | None = None
    why: str = ""
    said: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """name:line:column, or the name alone if there is no place."""
        return f"{self.name}:{self.line}:{self.column}" if self.line else self.name

    def to_dict(self) -> dict[str, Any]:
        """The finding, JSON-ready; the members of `more` are on the top level."""
        token = None if self.token is None else {"id": self.token[0], "text": self.token[1]}
        return {
            "name": self.name, "class": self.kind, "failure": self.is_failure, "line": self.line, "column": self.column,
            "byte": self.byte, "before": self.before, "token": token, "why": self.why, "said": list(self.said), **self.more,
        }  # fmt: skip


def plain(value: Any) -> Any:
    """A value of a report, JSON-ready."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value


def members(one: Any) -> dict[str, Any]:
    """The members of a dataclass, JSON-ready."""
    return {each.name: plain(getattr(one, each.name)) for each in fields(one)}


def line(text: str, style: str = "") -> Styled:
    """A line of a report, taken as it is, without markup."""
    from rich.text import Text

    return Text(text, style=style)


def followed(text: str, token: tuple[int, str] | None) -> Styled:
    """A line with a text, and a token that comes behind it."""
    shown = line(f"    {text}")
    if token is not None:
        shown.append("  then  ").append(repr(token[1]), style="bold").append(f" (token {token[0]})")
    return shown


def tail(text: str, most: int) -> str:
    """The representation of a text, or of so many characters of its end."""
    return repr(text) if len(text) <= most else f"... {text[-most:]!r}"


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was found out.

    settings : the options of the run.
    seconds : wall time, in seconds.
    """

    settings: Mapping[str, Any]
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The report, JSON-ready."""
        return members(self) | {"seconds": round(self.seconds, 3)}

    def _rows(self) -> Iterable[tuple[str, str]]:
        """Facts with their names."""
        raise NotImplementedError

    def _findings(self) -> Iterable[RenderableType]:
        """What stands behind the facts."""
        raise NotImplementedError

    def _verdict(self) -> tuple[str, bool]:
        """What it comes to, in words, and whether that is good."""
        raise NotImplementedError

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield table("", "", rows=(*self._rows(), ("wall time", f"{self.seconds:.1f} s")))
        yield from self._findings()
        said, is_good = self._verdict()
        yield line(f"\n{said}", "bold green" if is_good else "bold red")


@dataclass(frozen=True, kw_only=True)
class ValidationReport(Report):
    """The result of `maskwright.validate`.

    `seconds` and `resumed` are the only members that can differ between equal runs.

    check : "replay", "sample", "streamlined", "oracle" or "negative".
    store : names and digests of the store's grammar and vocabulary, and its lexing.
    classes : class of outcome -> number of texts.
    failures : the classes that make the check fail.
    figures : name -> sum over the texts. Of samples drawn by a model: `interventions`, the steps at
        which the mask forbade its likeliest token, and `masked_away`, the sum of the probabilities
        that the mask took away there.
    causes : cause of refusal -> number of refused samples, the most frequent first; only for
        "sample".
    findings : the texts whose outcome is not the good one.
    resumed : number of outcomes that were taken from the log.
    whole : the class of texts that the grammar accepts as a whole; None for a check that proves
        something without such a text.
    """

    check: str
    store: Mapping[str, Any]
    classes: Mapping[str, int]
    failures: frozenset[str]
    figures: Mapping[str, float]
    causes: Mapping[str, int]
    findings: tuple[Finding, ...]
    resumed: int = 0
    whole: str | None = None

    @property
    def n_failures(self) -> int:
        """Number of texts in the classes that make the check fail."""
        return sum(count for kind, count in self.classes.items() if kind in self.failures)

    @property
    def is_vacuous(self) -> bool:
        """Whether there were texts, but none could be followed to its end.

        The grammar may be the wrong one, so this is no success.
        """
        return self.whole is not None and sum(self.classes.values()) > 0 and not self.classes.get(self.whole)

    @property
    def passed(self) -> bool:
        """Whether there are no failures, and the check is not vacuous."""
        return self.n_failures == 0 and not self.is_vacuous

    def to_dict(self) -> dict[str, Any]:
        """The report, JSON-ready."""
        found = {"check": self.check, "passed": self.passed, **super().to_dict()}
        del found["whole"]
        return found | {"texts": sum(self.classes.values()), "failures": self.n_failures}

    def _rows(self) -> Iterable[tuple[str, str]]:
        yield "store", f"{self.store['grammar']} x {self.store['vocabulary']}"
        for name in ("reference", "paths"):
            if value := self.settings.get(name):
                yield name, value if isinstance(value, str) else ", ".join(value)
        yield from ((kind, f"{count:,}") for kind, count in self.classes.items())
        yield from ((name.replace("_", " "), f"{figure:,}") for name, figure in self.figures.items())
        yield from ((f"  {cause}", f"{count:,}") for cause, count in list(self.causes.items())[:10])
        if self.resumed:
            yield "taken from the log", f"{self.resumed:,}"

    def _findings(self) -> Iterable[RenderableType]:
        for kind in self.classes:
            found = [finding for finding in self.findings if finding.kind == kind]
            if found:
                yield line(f"\n{kind}: {len(found):,}", "bold red" if kind in self.failures else "bold")
            for finding in found[:SHOWN]:
                yield from _lines(finding)
            if len(found) > SHOWN:
                yield line(f"  and {len(found) - SHOWN:,} more: --json has them all", "dim")

    def _verdict(self) -> tuple[str, bool]:
        n_outside = sum(count for kind, count in self.classes.items() if kind.startswith("outside"))
        texts = "text is" if n_outside == 1 else "texts are"
        said = f"passed; {n_outside:,} {texts} not of the grammar: see above" if n_outside else "passed"
        if self.n_failures:
            said = f"FAILED: {self.n_failures:,} of {sum(self.classes.values()):,}"
        elif self.is_vacuous:
            how = "replayed" if self.check == "replay" else "followed"
            said = f"FAILED: no text could be {how} to its end; is it the right grammar?"
        return f"{self.check}: {said}", self.passed


def _lines(finding: Finding) -> Iterable[RenderableType]:
    yield line(f"  {finding.place}", "cyan")
    if finding.before or finding.token is not None:
        yield followed(repr(finding.before), finding.token)
    for said in filter(None, (finding.why, *finding.said)):
        yield line("    " + (said if len(said) <= _WIDEST else said[:_WIDEST] + " ..."))
    if ending := finding.more.get("ending"):
        yield line(f"    closed with {ending!r}")
    if minimal := finding.more.get("minimal"):
        yield line(f"    shortest such text: {tail(minimal['text'], _TAIL)}: {minimal['why']}")
