"""What callers pass where a grammar, a vocabulary or a path is wanted; else a MaskwrightError that says so."""

from __future__ import annotations

import os
from typing import NoReturn

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.sources import as_grammar
from maskwright.maskstore.tokenizer_values import clip
from maskwright.maskstore.vocabulary import Vocabulary, as_vocabulary


def refuse_argument(what: str, value: object, expected: str) -> NoReturn:
    raise MaskwrightError(f"{what} is {clip(value)}, a {type(value).__name__}; expected {expected}")


def a_grammar(value: object) -> Grammar:
    if not isinstance(value, Grammar | str | os.PathLike):
        refuse_argument("the grammar", value, "a Grammar, or what mw.load_grammar takes: a name, a path or a text")
    return as_grammar(value)


def a_vocabulary(value: object) -> Vocabulary:
    if value is None or isinstance(value, bool | int | float | Grammar):
        refuse_argument(
            "the vocabulary", value, "a Vocabulary, or what mw.load_vocabulary takes: a name, a path or a tokenizer"
        )
    return as_vocabulary(value)


def need_path(what: str, value: object) -> None:
    if not isinstance(value, str | bytes | os.PathLike):
        refuse_argument(f"the path of {what}", value, "a str or a Path")
