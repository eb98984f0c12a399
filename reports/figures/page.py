"""What holds the figures of one page: each from a record, from the code, or given with a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from .facts import newest
from .prose import NUMBER, VERSION, figures, numbers, visible
from .sums import Span, misfits

ROOT = Path(__file__).resolve().parents[2]
VOCABULARIES = ("32,000", "131,072")
"""Mistral's and tekken's numbers of ids: they name a vocabulary wherever they stand."""


@dataclass(frozen=True)
class Saying:
    """A piece of a page, `#` for each of its values: numbers, and versions as texts.

    why : "record", "code", or the reason for which it is given. within : what the table or paragraph that it stands in begins with.
    adds_up : whether the values after the first are its parts; None where nothing is said of that.
    """

    text: str
    values: tuple[float | About | str, ...]
    why: str
    is_true: bool = True
    within: str = ""
    adds_up: bool | None = None

    def places(self, text: str) -> Iterator[re.Match[str]]:
        """Where the page says it; blanks may be line ends."""
        pattern = re.sub(r"(?:\\ )+", r"\\s+", re.escape(self.text))
        for value in self.values:
            pattern = pattern.replace(r"\#", f"({VERSION if isinstance(value, str) else NUMBER})", 1)
        begin = text.find(self.within)
        end = text.find("\n\n", begin) if self.within else -1
        if begin >= 0:
            bounded = re.compile(rf"(?<!\d)(?<!\d[.,]){pattern}(?!\d|[.,]\d)")
            yield from bounded.finditer(text, begin, end if end >= 0 else len(text))


@dataclass(frozen=True)
class About:
    """A value of which the page shows so many digits as its last one that is not 0."""

    value: float


def rounded(value: float | About | str, shown: str) -> str:
    """The value with the decimals of the number that is shown, and its thousands apart; a version as it is."""
    if isinstance(value, str):
        return value
    exact = Decimal(repr(float(value.value if isinstance(value, About) else value)))
    step = Decimal(1).scaleb(-len(shown.partition(".")[2]))
    if isinstance(value, About) and "." not in shown:
        digits = shown.replace(",", "")
        step = Decimal(10) ** (len(digits) - len(digits.rstrip("0")))
    if abs(Decimal(shown.replace(",", "")) - exact) * 2 <= step:
        return shown  # a half may have gone either way
    return f"{(exact / step).quantize(Decimal(1), ROUND_HALF_UP) * step:,f}"


def older_records(text: str) -> list[tuple[str, str]]:
    """Names of records that are not the last of their kind, each with that of the last one."""
    last = {kind: path.name for kind, path in newest().items()}
    named = {found[0]: last.get(found[1]) for found in re.finditer(r"\b\d{4}-\d\d-\d\d-([\w.-]+?)\.json\b", text)}
    return sorted((name, of_kind) for name, of_kind in named.items() if of_kind and of_kind != name)


@dataclass
class Page:
    """The figures of a page, in any order."""

    name: str
    sayings: list[Saying] = field(default_factory=list)

    def figure(self, text: str, *values: float | About | str, within: str = "") -> None:
        """The page says this with these values of records, rounded as it shows them."""
        self._add(text, values, "record", within)

    def parts(self, text: str, whole: float, *parts: float, rest: int = 0) -> None:
        """The page says this with these values of records, a number and its parts. rest : those that it counts in words."""
        self._add(text, (whole, *parts), "record")
        self.sayings[-1] = replace(self.sayings[-1], adds_up=whole == sum(parts) + rest)

    def limit(self, text: str, *values: float) -> None:
        """The page says this with these values of the code."""
        self._add(text, values, "code")

    def holds(self, text: str, is_true: bool) -> None:
        """The page says this in words, or with numbers that the condition compares."""
        self.sayings.append(Saying(text, (), "record", is_true))

    def given(self, text: str, why: str) -> None:
        """The page says this, which no record holds."""
        self._add(text, (), why)

    def _add(self, text: str, values: tuple[float | About | str, ...], why: str, within: str = "") -> None:
        assert text.count("#") == len(values), f"{self.name}: {text} has {len(values)} values"
        self.sayings.append(Saying(text, values, why, within=within))

    @property
    def path(self) -> Path:
        return ROOT / self.name

    def updated(self, text: str) -> str:
        """The page with each number as it should be, and the last record of each kind."""
        for older, last in older_records(text):
            text = text.replace(older, last)
        for saying in self.sayings:
            for place in reversed(list(saying.places(text))):
                for i in range(len(saying.values), 0, -1):
                    begin, end = place.span(i)
                    text = text[:begin] + rounded(saying.values[i - 1], place[i]) + text[end:]
        return text

    def wrong(self, text: str) -> list[str]:
        """What is wrong with the page: other numbers than the records', sayings that it has not, older records."""
        found = [f"{self.name} names {older}, but the last one is {last}" for older, last in older_records(text)]
        for saying in self.sayings:
            places = list(saying.places(text))
            if not places:
                found.append(f"{self.name} does not say: {saying.text}")
            if saying.adds_up is False:
                found.append(f"{self.name}: the parts are not all of it: {saying.text}")
            if not saying.is_true:
                found.append(f"{self.name}: the record says otherwise: {saying.text}")
            for place in places:
                wanted = tuple(
                    rounded(value, shown) for value, shown in zip(saying.values, place.groups(), strict=True)
                )
                if wanted != place.groups():
                    found.append(
                        f"{self.name} says {' '.join(place[0].split())}, but {saying.text} is {', '.join(wanted)}"
                    )
        counts = [
            span
            for span, why in self._whys(text).items()
            if why == "record" and text[slice(*span)].replace(",", "").isdigit()
        ]
        parted = [
            place.span() for saying in self.sayings if saying.adds_up is not None for place in saying.places(text)
        ]
        return [*found, *(f"{self.name} {misfit}" for misfit in misfits(text, counts, parted))]

    def _whys(self, text: str) -> dict[Span, str]:
        """Why each number that something is said of stands there."""
        whys: dict[Span, str] = {}
        for saying in self.sayings:
            for place in saying.places(text):
                if saying.values:
                    whys.update({place.span(i): saying.why for i in range(1, len(saying.values) + 1)})
                else:
                    inside = (span for span in numbers(text) if place.start() <= span[0] and span[1] <= place.end())
                    whys.update(dict.fromkeys(inside, saying.why))
        return whys

    def counted(self, text: str) -> dict[str, str]:
        """Why each figure of the page stands there, by line and number; "" for one of which nothing is known."""
        whys = self._whys(text)
        found = {}
        for begin, end in figures(text):
            number = text[begin:end]
            why = whys.get((begin, end)) or ("a vocabulary" if number in VOCABULARIES else "")
            around = " ".join(visible(text)[max(0, begin - 30) : end + 20].split())
            found[f"{self.name}:{text.count(chr(10), 0, begin) + 1}: {number} in: {around} ({begin})"] = why
        return found
