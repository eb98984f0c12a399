"""The tokens of a mask as lists: sorted, searched, by pages."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from maskwright.maskstore.vocabulary import Vocabulary

Sort = Literal["likely", "model", "text", "length", "id"]
SORTS: tuple[Sort, ...] = ("likely", "model", "text", "length", "id")
"""How lists are sorted. `likely`: what is printed as text before pieces of characters and control
characters, then by id, since tokenizers number frequent tokens first. `model`: what the bundled
model finds likely."""


class TokenLists:
    """The lists of a vocabulary's tokens.

    vocabulary : the tokens.
    is_text : (V,) bool; whether the id stands for text.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.texts = tuple(data.decode(errors="replace") for data in vocabulary.tokens)
        self.is_text = np.array([bool(data) for data in vocabulary.tokens], np.bool_)
        self._orders: dict[str, npt.NDArray[np.intp]] = {}

    def order(self, sort: str, logits: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[np.intp]:
        """(V,): all ids, sorted; equal ones by their number.

        sort : one of `SORTS`.
        logits : (N,) of the model, for the sort `model`.
        """
        tokens = self.vocabulary.tokens
        if sort == "model":
            return np.argsort(-logits()[: len(tokens)], kind="stable")
        if sort not in self._orders:
            keys: dict[str, Callable[[int], Any]] = {
                "likely": self._looks,
                "text": tokens.__getitem__,
                "length": lambda token: -len(tokens[token]),
                "id": int,
            }
            self._orders[sort] = np.array(sorted(range(len(tokens)), key=keys[sort]), np.intp)
        return self._orders[sort]

    def _looks(self, token: int) -> int:
        """What is printed as it is comes first, then pieces of characters, then the rest."""
        text = self.texts[token]
        if not text:
            return 3
        if "\ufffd" in text or any(unicodedata.category(c) in ("Cc", "Co", "Cn") for c in text.strip("\n\t ")):
            return 2
        return int(token in self.vocabulary.byte_pieces)

    def page(
        self, wanted: npt.NDArray[np.bool_], order: npt.NDArray[np.intp], search: str, first: int, size: int
    ) -> dict[str, Any]:
        """A page of a list, ready for JSON.

        wanted : (V,) bool; the tokens of the list.
        order : (V,) ids.
        search : a part of the tokens' texts, or ``#`` and an id; "" for all.
        first, size : of the page, in tokens.
        """
        found: Any = order[wanted[order]].tolist()
        if search.startswith("#") and search[1:].isdecimal():
            found = [token for token in found if str(token) == search[1:].lstrip("0") or str(token) == search[1:]]
        elif search:
            found = [token for token in found if search in self.texts[token]]
        return {
            "total": len(found),
            "first": first,
            "tokens": [self.facts(token) for token in found[first : first + size]],
        }

    def facts(self, token: int) -> dict[str, Any]:
        """A token, ready for JSON: its id, its text or None, its bytes, its special name."""
        data = self.vocabulary.tokens[token]
        text = self.texts[token]
        return {
            "id": token,
            "text": None if "\ufffd" in text else text,
            "hex": data.hex(" "),
            "special": self.vocabulary.special.get(token, "") if data == b"" else "",
        }
