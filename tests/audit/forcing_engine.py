"""An engine for finitely many texts that forces tokens: FORCING_CASE is a JSON object, text so far -> the one token of its mask.

Everywhere else its masks are exact.
"""

from __future__ import annotations

import json
import os
from typing import Any

GRAMMAR = 'start: "begin" ("x" | "y")\n'
TEXTS = (b"beginx", b"beginy")


class Session:
    def __init__(self, vocabulary: Any, forced: dict[str, str]) -> None:
        self.tokens, self.eos, self.forced = vocabulary.tokens, vocabulary.eos, forced

    def reset(self) -> None:
        self.text = b""

    def fill(self, words: Any) -> None:
        forced = self.forced.get(self.text.decode())
        for token, data in enumerate(self.tokens):
            allowed = (
                self.text in TEXTS if token in self.eos else any(one.startswith(self.text + data) for one in TEXTS)
            )
            if (data or token in self.eos) and allowed and forced in (None, data.decode("latin-1")):
                words[token >> 5] |= 1 << (token & 31)

    def advance(self, token: int) -> bool:
        self.text += self.tokens[token]
        return any(one.startswith(self.text) for one in TEXTS)


def make(grammar_text: str, vocabulary: Any) -> Any:
    case = json.loads(os.environ["FORCING_CASE"])
    return lambda: Session(vocabulary, case)
