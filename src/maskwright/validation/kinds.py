"""The checks, and what differs between stores of grammars, schemas and compositions, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from maskwright.validation import checks, judges, replay, sampling
from maskwright.validation.work import CRASHED, NOT_SPELLED, OVER_LIMIT, Start

UNREADABLE = "unreadable"
"""Class of texts that cannot be read."""
ALWAYS_FAILING = (NOT_SPELLED, OVER_LIMIT, UNREADABLE, CRASHED)
"""Classes that make every check fail."""


class Check(NamedTuple):
    """A check of a store.

    start : see `Start`. options : those of `validate` that it takes.
    counted, amount : what the option `amount` counts, and its default; 0 if every text is taken.
    whole : the class of texts that the grammar accepts as a whole. A run without such a text proves
        nothing, so it counts as failed. None for a check that proves something without one.
    """

    start: Start
    options: tuple[str, ...] = ()
    counted: str = "bytes"
    amount: int = 0
    whole: str | None = None


_JUDGED = ("reference", "reference_seconds")
CHECKS: Mapping[str, Check] = {
    "replay": Check(judges.replay, _JUDGED, whole=judges.REPLAYED),
    "sample": Check(sampling.Sampler, (*_JUDGED, "seed", "budget", "cuts", "next_token"), "samples", 1000),
    "streamlined": Check(checks.streamlined, (), "positions", 300_000, checks.SAME),
    "oracle": Check(checks.oracle_pairs, ("seed",), "pairs", 10_000, checks.AGREED),
    "negative": Check(checks.refused_in_place),
}

Classes = tuple[tuple[str, ...], tuple[str, ...]]
"""Classes of outcomes that are fine, and classes that make the check fail; the plainest first."""


@dataclass(frozen=True)
class Kind:
    """A kind of store.

    name : in words. checks : those that there are, each with its classes.
    unfit : options that such stores do not have.
    """

    name: str
    checks: Mapping[str, Classes]
    unfit: tuple[str, ...]


_OUTSIDE = (judges.OUTSIDE_TEXT, judges.OUTSIDE_GRAMMAR, judges.OUTSIDE)
_REFUSED = (judges.REFUSED_GRAMMAR, judges.REFUSED_REFERENCE, sampling.NO_ENDING, judges.UNDECIDED)
GRAMMAR = Kind(
    "a grammar",
    {
        "replay": ((judges.REPLAYED, *_OUTSIDE), (judges.FALSE_REFUSAL,)),
        "sample": ((judges.ACCEPTED,), _REFUSED),
        "streamlined": ((checks.SAME, replay.ENDED_EARLY), (checks.DIFFERENT,)),
        "oracle": ((checks.AGREED, replay.ENDED_EARLY), (checks.FALSE_REFUSAL, checks.FALSE_PERMISSION)),
        "negative": (
            (checks.RIGHT, checks.EARLY_GRAMMAR),
            (checks.EARLY, checks.LATE, checks.LATE_GRAMMAR),
        ),
    },
    (),
)
_LENIENT = (judges.LEFT_OUT, judges.FORMATS_DIFFER)
_NO_INSTANCES = (judges.NO_INSTANCE, judges.SPELLED_OTHERWISE, judges.BY_A_FORMAT, judges.NOT_JUDGED)
SCHEMA = Kind(
    "a schema or a pattern",
    {
        "replay": ((judges.REPLAYED, *_NO_INSTANCES, *_LENIENT), (judges.FALSE_REFUSAL, judges.FALSE_PERMISSION)),
        "sample": ((judges.ACCEPTED, judges.DRAWN, *_LENIENT), (judges.FALSE_PERMISSION, sampling.NO_ENDING)),
    },
    ("resume",),
)
COMPOSITION = Kind(
    "a composition",
    {"replay": ((judges.REPLAYED,), (judges.REFUSED,))},
    ("reference", "scheduler", "resume", "jsonl"),
)

GOOD = frozenset((judges.REPLAYED, judges.ACCEPTED, judges.DRAWN, checks.SAME, checks.AGREED, checks.RIGHT))
"""Classes of outcomes that are no findings."""


def kind_of(store: Any) -> Kind:
    """The kind of a store."""
    return {"schema": SCHEMA, "composition": COMPOSITION}.get(store.engine, GRAMMAR)
