"""What callers pass where something else is wanted: a MaskwrightError that says so."""

from __future__ import annotations

import os
from typing import NoReturn

from maskwright.analysis.errors import MaskwrightError
from maskwright.maskstore.vocabulary.tokenizer_values import clip


def refuse_argument(what: str, value: object, expected: str) -> NoReturn:
    raise MaskwrightError(f"{what} is {clip(value)}, a {type(value).__name__}; expected {expected}")


def need_path(what: str, value: object) -> None:
    if not isinstance(value, str | bytes | os.PathLike):
        refuse_argument(f"the path of {what}", value, "a str or a Path")
