"""What callers pass where a grammar, a vocabulary or a path is wanted; else a MaskwrightError that says so."""

from __future__ import annotations

import os
from typing import NoReturn

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.tokenizer_values import clip
from maskwright.maskstore.vocabulary import Vocabulary


def refuse_argument(what: str, value: object, expected: str) -> NoReturn:
    raise MaskwrightError(f"{what} is {clip(value)}, a {type(value).__name__}; expected {expected}")


def need_grammar(value: object) -> None:
    if not isinstance(value, Grammar):
        refuse_argument("the grammar", value, "a Grammar: mw.load_grammar(name or path), or mw.parse_grammar(text)")


def need_vocabulary(value: object) -> None:
    if not isinstance(value, Vocabulary):
        refuse_argument("the vocabulary", value, "a Vocabulary: mw.load_vocabulary(name or path)")


def need_path(what: str, value: object) -> None:
    if not isinstance(value, str | bytes | os.PathLike):
        refuse_argument(f"the path of {what}", value, "a str or a Path")
