"""What of xgrammar's interface is not here, and says so, and its errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from maskwright.analysis.errors import MaskwrightError

_SERIALISED = "constraints and tokenizers cannot be written as JSON here: keep the texts that they are made of"
_MISSING: Mapping[str, Mapping[str, str]] = {
    "Grammar": {
        "concat": "write the texts as one grammar",
        "union": "write the texts as one grammar",
        "serialize_json": _SERIALISED,
        "deserialize_json": _SERIALISED,
    },
    "CompiledGrammar": {
        "grammar": "keep the Grammar that was compiled",
        "serialize_json": _SERIALISED,
        "deserialize_json": _SERIALISED,
    },
    "GrammarMatcher": {"get_captures": "captures are not kept: parse the whole text"},
    "BatchGrammarMatcher": {"batch_fill_temperature": "grammars do not choose temperatures here"},
    "TokenizerInfo": {
        "prepend_space_in_tokenization": "ask for add_prefix_space",
        "dump_metadata": _SERIALISED,
        "from_vocab_and_metadata": _SERIALISED,
        "serialize_json": _SERIALISED,
        "deserialize_json": _SERIALISED,
    },
}
"""Class -> public name of xgrammar 0.2.9 that is not here -> what to do instead."""


class RefusedError(MaskwrightError, RuntimeError):
    """What xgrammar would have raised as a RuntimeError; the message says what to do."""


class MissingError(RefusedError, AttributeError):
    """A name of xgrammar that is not here. `hasattr` is False for it."""


class _Partial(type):
    def __getattr__(cls, name: str) -> Any:
        _refuse(cls, name)


class Partial(metaclass=_Partial):
    """A class of xgrammar, without some of its names. Who asks for these gets a MissingError."""

    def __getattr__(self, name: str) -> Any:
        _refuse(type(self), name)


def _refuse(of: type, name: str) -> NoReturn:
    for each in of.__mro__:
        remedy = _MISSING.get(each.__name__, {}).get(name)
        if remedy is not None:
            raise MissingError(f"maskwright stands in for xgrammar here, and has no {each.__name__}.{name}: {remedy}")
    raise AttributeError(f"{of.__name__} has no attribute {name!r}")
