"""Explain why a token may not come next in a JSON text of a schema, and what could stand there.

The text is read again by the reference interpreter, which says why each reading of it ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from maskwright.analysis.schema.shapes import Texts
from maskwright.decoding.engine.state import listed_bytes
from maskwright.decoding.explain.explanation import (
    Attempt,
    Explanation,
    position_of,
    shown_bytes,
)
from maskwright.decoding.reference.json_places import Readings
from maskwright.decoding.reference.json_texts import JsonInterpreter, bytes_allowed
from maskwright.decoding.reference.json_words import Refusal

MOST_REASONS = 4
"""Readings of an ambiguous text whose reasons are told."""

_MARK = b"\xef\xbb\xbf"


class JsonExplainer:
    """Explanations of the texts of one schema.

    texts : the legal texts.
    name : the schema's, as messages name it.
    """

    def __init__(self, texts: Texts, name: str = "the schema") -> None:
        self.name = name
        self.interpreter = JsonInterpreter(texts)

    def text(self, text: bytes) -> Explanation:
        """Where a text goes wrong, or whether it is complete."""
        readings, good = self._run(self.interpreter.start(), text)
        at = position_of(text, good)
        if good == len(text):
            refusals = self.interpreter.refusals_of_end(readings)
            whole = "the beginning of a text" if refusals else "a complete text"
            return Explanation(
                self.name,
                "the text",
                "allowed",
                f"legal under {self.name}: {whole}, {len(text):,} bytes",
                position=at,
                is_whole=not refusals,
                ending=_attempts(refusals),
                bytes_allowed=bytes_allowed(self.interpreter, readings),
            )
        refusals = self.interpreter.refusals(readings, text[good])
        why = str(refusals[0]) if refusals else "no text is legal"
        if good == 0 and text.startswith(_MARK):
            why += "; the text begins with a byte order mark, which is not part of it: remove it"
        return Explanation(
            self.name,
            "the text",
            "refused",
            f"not legal under {self.name} at line {at.line}, column {at.column}: {why}",
            position=at,
            attempts=_attempts(refusals),
            bytes_allowed=bytes_allowed(self.interpreter, readings),
        )

    def token(self, text: bytes, data: bytes, what: str) -> Explanation:
        """Why some bytes may or may not come after a text.

        text : the text so far. If it is not legal itself, that is explained.
        data : what comes next; at least one byte.
        what : `data` in words, as "token 12 (b'ab')".
        """
        readings, good = self._run(self.interpreter.start(), text)
        if good < len(text):
            return self.text(text)
        after, good = self._run(readings, data)
        at = position_of(text + data, len(text) + (0 if good == len(data) else good))
        if good == len(data):
            return Explanation(self.name, what, "allowed", f"{what} may come next", position=at)
        refusals = self.interpreter.refusals(after, data[good])
        allowed = bytes_allowed(self.interpreter, after)
        byte = f"byte {good} of it, {shown_bytes(data[good : good + 1])}, cannot come here" if good else ""
        why = "; ".join([*[byte] * bool(byte), *map(str, refusals[:1])])
        shown = listed_bytes(allowed)
        return Explanation(
            self.name,
            what,
            "refused",
            f"{what} is not legal here under {self.name}: {why}; allowed: {shown}",
            position=at,
            attempts=_attempts(refusals),
            bytes_allowed=allowed,
        )

    def end(self, text: bytes, what: str) -> Explanation:
        """Why the text may or may not end here. what : the end in words, as "token 2 (</s>)"."""
        readings, good = self._run(self.interpreter.start(), text)
        if good < len(text):
            return self.text(text)
        at = position_of(text, len(text))
        refusals = self.interpreter.refusals_of_end(readings)
        if not refusals:
            return Explanation(self.name, what, "allowed", f"{what} may end the text here", position=at, is_whole=True)
        return Explanation(
            self.name,
            what,
            "refused",
            f"{what} may not end the text here under {self.name}: {refusals[0]}",
            position=at,
            is_whole=False,
            ending=_attempts(refusals),
            bytes_allowed=bytes_allowed(self.interpreter, readings),
        )

    def _run(self, readings: Readings, data: bytes) -> tuple[Readings, int]:
        """The last readings that are legal, and the number of bytes that they read."""
        for good, byte in enumerate(data):
            after = self.interpreter.read(readings, byte)
            if not after:
                return readings, good
            readings = after
        return readings, len(data)


def _attempts(refusals: Sequence[Refusal]) -> tuple[Attempt, ...]:
    return tuple(Attempt((), (), str(refusal), ()) for refusal in refusals[:MOST_REASONS])
