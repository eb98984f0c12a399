"""Explain why a token may not come next in a text of a schema or a pattern, and what could.

The text is read again by plain code. For a schema that is the reference interpreter, which says why
each reading of the text ends. An automaton only says which bytes may come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maskwright.analysis.arguments import as_integer, need_type
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.shapes import Texts
from maskwright.decoding.engine.arguments import plain_bytes
from maskwright.decoding.engine.state import listed_bytes
from maskwright.decoding.explain.explanation import Attempt, Explanation, Verdict, mark_hint, position_of, shown_bytes
from maskwright.decoding.reference.json_texts import JsonInterpreter, bytes_allowed
from maskwright.maskstore.schema.compiled import SchemaTables

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

    def refusals(self, _: tuple[int, ...], __: int) -> tuple[str, ...]:
        return ()

    def refusals_of_end(self, _: tuple[int, ...]) -> tuple[str, ...]:
        return ()


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
            return self._explanation("the text", "allowed", summary, text, good, readings, is_whole)
        at, refusals = position_of(text, good), self.reader.refusals(readings, text[good])
        why = f"{shown_bytes(text[good : good + 1])} cannot come here; allowed: {self._shown(readings)}"
        if refusals or not readings:
            why = refusals[0] if refusals else "no text is legal"
        why += mark_hint(text, good)
        summary = f"not legal under {self.name} at line {at.line}, column {at.column}: {why}"
        return self._explanation("the text", "refused", summary, text, good, readings, refusals=refusals)

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
        return self._explanation(what, "refused", summary, text + data, len(text) + good, after, refusals=refusals)

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
        return self._explanation(what, "refused", summary, text, good, readings, False)

    def _explanation(
        self,
        what: str,
        verdict: Verdict,
        summary: str,
        text: bytes,
        good: int,
        readings: Any,
        is_whole: bool | None = None,
        *,
        refusals: Sequence[str] = (),
    ) -> Explanation:
        """An explanation with what may stand behind the first `good` bytes of a text."""
        return Explanation(
            self.name,
            what,
            verdict,
            summary,
            position=position_of(text, good),
            is_whole=is_whole,
            attempts=_attempts(refusals),
            ending=() if is_whole is None else _attempts(self.reader.refusals_of_end(readings)),
            bytes_allowed=bytes_allowed(self.reader, readings),
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


def explain_schema_text(texts: Texts | Dfa, name: str, text: bytes) -> Explanation:
    """Where a text stops being the beginning of a legal text, or whether it is complete.

    texts : the JSON texts of a schema, or an automaton of all texts.
    name : what messages call the schema or pattern.

    Raises: MaskwrightError if the text is not bytes.
    """
    return SchemaExplainer(texts, name).text(plain_bytes("the text", text))


def explain_schema_token(texts: Texts | Dfa, name: str, text: bytes, data: bytes) -> Explanation:
    """Why some bytes may or may not come after a text.

    texts, name, text : as for `explain_schema_text`.
    data : what comes next.

    Raises: MaskwrightError if text or data are not bytes.
    """
    text, data = plain_bytes("the text", text), plain_bytes("what comes next", data)
    return SchemaExplainer(texts, name).token(text, data, shown_bytes(data))


def explain_schema_id(store: SchemaTables, text: bytes, token: int) -> Explanation:
    """Why a token of a store's vocabulary may or may not come after a text.

    store : of a schema or a pattern.
    token : its id; those of end-of-text tokens too. An id outside the vocabulary is refused.

    Raises: MaskwrightError if the text is not bytes or the token no integer.
    """
    need_type("the store", store, SchemaTables, "a store of a JSON schema or a pattern")
    text, token = plain_bytes("the text", text), as_integer("a token", token)
    vocabulary, explainer = store.vocabulary, SchemaExplainer(store.texts, store.name)
    if not 0 <= token < vocabulary.size:
        what = f"token {token} is out of range: the vocabulary has the ids 0 to {vocabulary.size - 1}"
        return Explanation(store.name, f"token {token}", "refused", what)
    data = vocabulary.tokens[token]
    what = f"token {token} ({data!r})"
    if token in vocabulary.eos:
        return explainer.end(text, what)
    if not data:
        found = explainer.text(text)
        if not found.is_allowed:
            return found
        return Explanation(store.name, what, "refused", f"{what} stands for no text, so it is never allowed")
    return explainer.token(text, data, what)


__all__ = ["SchemaExplainer", "explain_schema_id", "explain_schema_text", "explain_schema_token"]
