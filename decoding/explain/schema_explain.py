"""Explain why a token may not come next in a text of a schema or a pattern, and what could.

The text is read again by plain code. For a schema that is the reference interpreter, which says why
each reading of the text ends. An automaton only says which bytes may come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maskwright.analysis.arguments import as_integer
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.shapes import Texts
from maskwright.decoding.engine.arguments import plain_bytes
from maskwright.decoding.engine.state import listed_bytes
from maskwright.decoding.explain.explanation import (
    Attempt,
    Explanation,
    Verdict,
    mark_hint,
    out_of_range,
    position_of,
    shown_bytes,
)
from maskwright.decoding.reference.json_texts import JsonInterpreter, bytes_allowed
from maskwright.maskstore.vocabulary import Vocabulary

MOST_REASONS = 4
"""Readings of an ambiguous text whose reasons are told."""


class _AutomatonReader:
    """An automaton of all texts, read as `JsonInterpreter` reads; its readings are one state."""

    def __init__(self, automaton: Dfa) -> None:
        self._automaton = automaton

    def start(self) -> tuple[int, ...]:
        return (0,)

    def read(self, readings: tuple[int, ...], byte: int) -> tuple[int, ...]:
        after = int(self._automaton.next_state[readings[0], byte])
        return (after,) if after >= 0 else ()

    def is_complete(self, readings: tuple[int, ...]) -> bool:
        return bool(self._automaton.is_accepting[readings[0]])

    def refusals(self, *_: Any) -> tuple[str, ...]:
        return ()

    refusals_of_end = refusals


class SchemaExplainer:
    """Explanations of the texts of one schema or pattern.

    texts : the JSON texts of a schema, or an automaton of all texts.
    name : the schema's or the pattern's, as messages name it.
    """

    def __init__(self, texts: Texts | Dfa, name: str = "the schema") -> None:
        self.name = name
        self.reader: Any = JsonInterpreter(texts) if isinstance(texts, Texts) else _AutomatonReader(texts)

    def text(self, text: bytes) -> Explanation:
        """Where a text goes wrong, or whether it is complete."""
        readings, good = self._run(self.reader.start(), text)
        if good == len(text):
            is_whole = self.reader.is_complete(readings)
            whole = "a complete text" if is_whole else "the beginning of a text"
            summary = f"legal under {self.name}: {whole}, {len(text):,} bytes"
            return self._explanation("the text", summary, text, good, readings, "allowed", is_whole=is_whole)
        at, refusals = position_of(text, good), self.reader.refusals(readings, text[good])
        why = f"{shown_bytes(text[good : good + 1])} cannot come here; allowed: {self._shown(readings)}"
        if refusals or not readings:
            why = refusals[0] if refusals else "no text is legal"
        why += mark_hint(text, good)
        summary = f"not legal under {self.name} at line {at.line}, column {at.column}: {why}"
        return self._explanation("the text", summary, text, good, readings, attempts=_attempts(refusals))

    def token(self, text: bytes, data: bytes, what: str) -> Explanation:
        """Why some bytes may or may not come after a text.

        text : the text so far. If it is not legal itself, that is explained.
        data : what comes next; at least one byte.
        what : `data` in words, as "token 12 (b'ab')".
        """
        readings, good = self._run(self.reader.start(), text)
        if good < len(text):
            return self.text(text)
        after, good = self._run(readings, data)
        if good == len(data):
            at = position_of(text + data, len(text))
            return Explanation(self.name, what, "allowed", f"{what} may come next", position=at)
        refusals = self.reader.refusals(after, data[good])
        byte = f"byte {good} of it, {shown_bytes(data[good : good + 1])}, cannot come here"
        why = "; ".join([*[byte] * bool(good or not refusals), *refusals[:1]])
        summary = f"{what} is not legal here under {self.name}: {why}; allowed: {self._shown(after)}"
        return self._explanation(what, summary, text + data, len(text) + good, after, attempts=_attempts(refusals))

    def end(self, text: bytes, what: str) -> Explanation:
        """Why the text may or may not end here. what : the end in words, as "token 2 (</s>)"."""
        readings, good = self._run(self.reader.start(), text)
        if good < len(text):
            return self.text(text)
        if self.reader.is_complete(readings):
            at = position_of(text, good)
            return Explanation(self.name, what, "allowed", f"{what} may end the text here", position=at, is_whole=True)
        refusals = self.reader.refusals_of_end(readings)
        why = refusals[0] if refusals else f"it is not complete; allowed: {self._shown(readings)}"
        summary = f"{what} may not end the text here under {self.name}: {why}"
        return self._explanation(what, summary, text, good, readings, is_whole=False)

    def _explanation(
        self, what: str, summary: str, text: bytes, good: int, readings: Any, verdict: Verdict = "refused", **more: Any
    ) -> Explanation:
        """An explanation with what may stand behind the first `good` bytes of a text."""
        return Explanation(
            self.name,
            what,
            verdict,
            summary,
            position=position_of(text, good),
            ending=_attempts(self.reader.refusals_of_end(readings)) if "is_whole" in more else (),
            bytes_allowed=bytes_allowed(self.reader, readings),
            **more,
        )

    def _run(self, readings: Any, data: bytes) -> tuple[Any, int]:
        """The last readings that are legal, and the number of bytes that they read."""
        for good, byte in enumerate(data):
            after = self.reader.read(readings, byte)
            if not after:
                return readings, good
            readings = after
        return readings, len(data)

    def _shown(self, readings: Any) -> str:
        """The bytes that may come next, in words."""
        return listed_bytes(bytes_allowed(self.reader, readings))


def _attempts(refusals: Sequence[str]) -> tuple[Attempt, ...]:
    return tuple(Attempt((), (), refusal, ()) for refusal in refusals[:MOST_REASONS])


def explain_schema(
    texts: Texts | Dfa,
    name: str,
    text: bytes,
    wanted: int | bytes | None = None,
    vocabulary: Vocabulary | None = None,
) -> Explanation:
    """Where a text stops being the beginning of a legal text, or why something may not follow it.

    texts : the JSON texts of a schema, or an automaton of all texts.
    name : what messages call the schema or pattern.
    wanted : what comes next: bytes, or the id of a token; None to ask about the text alone.
    vocabulary : whose token it is. An id outside it is refused.

    Raises: MaskwrightError if text or bytes are none, or the token is no integer.
    """
    text, explainer = plain_bytes("the text", text), SchemaExplainer(texts, name)
    if wanted is None:
        return explainer.text(text)
    if vocabulary is None or isinstance(wanted, bytes):
        data = plain_bytes("what comes next", wanted)
        return explainer.token(text, data, shown_bytes(data))
    token = as_integer("a token", wanted)
    if not 0 <= token < vocabulary.size:
        return out_of_range(name, token, vocabulary)
    data = vocabulary.tokens[token]
    what = f"token {token} ({data!r})"
    if token in vocabulary.eos:
        return explainer.end(text, what)
    if data:
        return explainer.token(text, data, what)
    found = explainer.text(text)
    if not found.is_allowed:
        return found
    return Explanation(name, what, "refused", f"{what} stands for no text, so it is never allowed")


__all__ = ["SchemaExplainer", "explain_schema"]
