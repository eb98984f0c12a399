"""What differs between stores of grammars, of schemas and of compositions, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maskwright.validation import equality, judges, negative, pairs, replay, sampling
from maskwright.validation.work import CRASHED, NOT_SPELLED, OVER_LIMIT

UNREADABLE = "unreadable"
"""Class of texts that cannot be read."""
ALWAYS_FAILING = (UNREADABLE, CRASHED)
"""Classes that make every check fail."""

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


GRAMMAR = Kind(
    "a grammar",
    {
        "replay": (
            (judges.REPLAYED, judges.OUTSIDE_TEXT, judges.OUTSIDE_GRAMMAR, judges.OUTSIDE),
            (judges.FALSE_REFUSAL, NOT_SPELLED, OVER_LIMIT),
        ),
        "sample": (
            (judges.ACCEPTED,),
            (judges.REFUSED_GRAMMAR, judges.REFUSED_REFERENCE, sampling.NO_ENDING, judges.UNDECIDED, OVER_LIMIT),
        ),
        "streamlined": ((equality.SAME, replay.ENDED_EARLY), (equality.DIFFERENT, NOT_SPELLED, OVER_LIMIT)),
        "oracle": (
            (pairs.AGREED, replay.ENDED_EARLY),
            (pairs.FALSE_REFUSAL, pairs.FALSE_PERMISSION, NOT_SPELLED, OVER_LIMIT),
        ),
        "negative": (
            (negative.RIGHT, negative.EARLY_GRAMMAR),
            (negative.EARLY, negative.LATE, negative.LATE_GRAMMAR, NOT_SPELLED, OVER_LIMIT),
        ),
    },
    (),
)
SCHEMA = Kind(
    "a schema or a pattern",
    {
        "replay": (
            (
                judges.REPLAYED,
                judges.NO_INSTANCE,
                judges.SPELLED_OTHERWISE,
                judges.BY_A_FORMAT,
                judges.NOT_JUDGED,
                judges.LEFT_OUT,
                judges.FORMATS_DIFFER,
            ),
            (judges.FALSE_REFUSAL, judges.FALSE_PERMISSION, NOT_SPELLED, OVER_LIMIT),
        ),
        "sample": (
            (judges.ACCEPTED, judges.DRAWN, judges.LEFT_OUT, judges.FORMATS_DIFFER),
            (judges.FALSE_PERMISSION, sampling.NO_ENDING, OVER_LIMIT),
        ),
    },
    ("resume",),
)
COMPOSITION = Kind(
    "a composition",
    {"replay": ((judges.REPLAYED,), (judges.REFUSED, NOT_SPELLED, OVER_LIMIT))},
    ("reference", "scheduler", "resume", "jsonl"),
)

GOOD = frozenset((judges.REPLAYED, judges.ACCEPTED, judges.DRAWN, equality.SAME, pairs.AGREED, negative.RIGHT))
"""Classes of outcomes that are no findings."""
WHOLE: Mapping[str, str] = {"replay": judges.REPLAYED, "streamlined": equality.SAME, "oracle": pairs.AGREED}
"""Check -> the class of texts that the grammar accepts as a whole.

A run without such a text proves nothing, so it counts as failed.
"""


def kind_of(store: Any) -> Kind:
    """The kind of a store."""
    return {"schema": SCHEMA, "composition": COMPOSITION}.get(store.engine, GRAMMAR)


__all__ = ["COMPOSITION", "GRAMMAR", "SCHEMA", "Kind", "kind_of"]
