"""The options of `validate`. They are checked before anything is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, get_args

from maskwright.analysis.arguments import (
    as_boolean,
    as_integer,
    as_strings,
    clip,
    need_number,
    need_path,
    need_progress,
    need_type,
    refuse_argument,
)
from maskwright.analysis.errors import MaskwrightError, UnknownNameError
from maskwright.validation import sampling

CheckName = Literal["replay", "sample", "streamlined", "oracle", "negative"]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Options:
    """The options of `validate`, besides a store and paths; `validate` says what each means.

    Raises: UnknownNameError for an unknown check; MaskwrightError for a value of another type or
        out of range, for both `jobs` and `scheduler`, and for `next_token` together with `jobs`,
        `scheduler` or `resume`.
    """

    check: CheckName = "replay"
    tokenizer: Any = None
    reference: str | None = None
    reference_seconds: float = 10.0
    suffixes: Sequence[str] = ()
    field: str = "text"
    limit: int | None = None
    amount: int | None = None
    seed: int = 0
    budget: int = 100
    cuts: int = 4
    next_token: sampling.NextToken | None = None
    jobs: int = 1
    scheduler: str | None = None
    resume: str | os.PathLike[str] | None = None
    progress: Progress | None = None
    jsonl: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.check, str) or self.check not in get_args(CheckName):
            raise UnknownNameError(f"no check is named {clip(self.check)}: expected {', '.join(get_args(CheckName))}")
        for name, least in (("jobs", 1), ("limit", 1), ("amount", 1), ("budget", 1), ("cuts", 0), ("seed", None)):
            given = getattr(self, name)
            if given is None and name in ("limit", "amount"):
                continue
            value = as_integer(name, given)
            object.__setattr__(self, name, value)
            if least is not None and value < least:
                raise MaskwrightError(f"{name} is {clip(value)}; expected at least {least}")
        need_number("reference_seconds", self.reference_seconds)
        need_type("field", self.field, str, "a str")
        for name in ("reference", "scheduler"):
            need_type(name, getattr(self, name), (str, NoneType), "a str or None")
        object.__setattr__(self, "suffixes", as_strings("suffixes", self.suffixes, "a list of suffixes, as in ['.py']"))
        if self.resume is not None:
            need_path("a log of results", self.resume)
        if self.next_token is not None and not callable(self.next_token):
            refuse_argument("next_token", self.next_token, "a function of tokens and mask, or None")
        need_progress(self.progress)
        object.__setattr__(self, "jsonl", as_boolean("jsonl", self.jsonl))
        if self.jobs > 1 and self.scheduler is not None:
            raise MaskwrightError("jobs are processes of this machine, a scheduler is a cluster's: give one of the two")
        if self.next_token is not None and (self.jobs > 1 or self.scheduler is not None or self.resume is not None):
            raise MaskwrightError(
                "a model is asked in this process, and a log cannot tell its samples from another's: leave out jobs, scheduler and resume"
            )
