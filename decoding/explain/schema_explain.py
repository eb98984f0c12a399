"""Explain why a token may not come next in a text of a schema's or a pattern's store."""

from __future__ import annotations

from maskwright.analysis.arguments import as_integer, need_type
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.shapes import Texts
from maskwright.decoding.engine.arguments import plain_bytes
from maskwright.decoding.engine.state import listed_bytes
from maskwright.decoding.explain.explanation import Explanation, position_of, shown_bytes
from maskwright.decoding.explain.json_explain import JsonExplainer
from maskwright.maskstore.schema.compiled import SchemaTables


class PatternExplainer:
    """Explanations of the texts of an automaton.

    automaton : of all texts.
    name : the pattern's, as messages name it.
    """

    def __init__(self, automaton: Dfa, name: str) -> None:
        self.automaton, self.name = automaton, name

    def text(self, text: bytes) -> Explanation:
        """Where a text goes wrong, or whether it is complete."""
        state, good = self._run(0, text)
        at, allowed = position_of(text, good), self._allowed(state)
        if good < len(text):
            byte = shown_bytes(text[good : good + 1])
            why = f"{byte} cannot come here; allowed: {self._shown(state)}"
            summary = f"not legal under {self.name} at line {at.line}, column {at.column}: {why}"
            return Explanation(self.name, "the text", "refused", summary, position=at, bytes_allowed=allowed)
        is_whole = bool(self.automaton.is_accepting[state])
        whole = "a complete text" if is_whole else "the beginning of a text"
        summary = f"legal under {self.name}: {whole}, {len(text):,} bytes"
        return Explanation(
            self.name, "the text", "allowed", summary, position=at, is_whole=is_whole, bytes_allowed=allowed
        )

    def token(self, text: bytes, data: bytes, what: str) -> Explanation:
        """Why some bytes may or may not come after a text. what : `data` in words."""
        state, good = self._run(0, text)
        if good < len(text):
            return self.text(text)
        after, good = self._run(state, data)
        at = position_of(text + data, len(text) + (0 if good == len(data) else good))
        if good == len(data):
            return Explanation(self.name, what, "allowed", f"{what} may come next", position=at)
        summary = (
            f"{what} is not legal here under {self.name}: byte {good} of it, {shown_bytes(data[good : good + 1])}, cannot come here; "
            f"allowed: {self._shown(after)}"
        )
        return Explanation(self.name, what, "refused", summary, position=at, bytes_allowed=self._allowed(after))

    def end(self, text: bytes, what: str) -> Explanation:
        """Why the text may or may not end here. what : the end in words."""
        state, good = self._run(0, text)
        if good < len(text):
            return self.text(text)
        at = position_of(text, len(text))
        if self.automaton.is_accepting[state]:
            return Explanation(self.name, what, "allowed", f"{what} may end the text here", position=at, is_whole=True)
        summary = (
            f"{what} may not end the text here under {self.name}: it is not complete; allowed: {self._shown(state)}"
        )
        return Explanation(
            self.name, what, "refused", summary, position=at, is_whole=False, bytes_allowed=self._allowed(state)
        )

    def _run(self, state: int, data: bytes) -> tuple[int, int]:
        """The last state that is legal, and the number of bytes that lead to it."""
        for good, byte in enumerate(data):
            after = int(self.automaton.next_state[state, byte])
            if after < 0:
                return state, good
            state = after
        return state, len(data)

    def _allowed(self, state: int) -> bytes:
        return bytes(byte for byte, after in enumerate(self.automaton.next_state[state].tolist()) if after >= 0)

    def _shown(self, state: int) -> str:
        return listed_bytes(self._allowed(state))


def explain_schema_text(texts: Texts | Dfa, name: str, text: bytes) -> Explanation:
    """Where a text stops being the beginning of a legal text, or whether it is complete.

    texts : the JSON texts of a schema, or an automaton of all texts.
    name : what messages call the schema or pattern.

    Raises: MaskwrightError if the text is not bytes.
    """
    return _explainer(texts, name).text(plain_bytes("the text", text))


def explain_schema_token(texts: Texts | Dfa, name: str, text: bytes, data: bytes) -> Explanation:
    """Why some bytes may or may not come after a text.

    texts, name, text : as for `explain_schema_text`.
    data : what comes next.

    Raises: MaskwrightError if text or data are not bytes.
    """
    text, data = plain_bytes("the text", text), plain_bytes("what comes next", data)
    return _explainer(texts, name).token(text, data, shown_bytes(data))


def explain_schema_id(store: SchemaTables, text: bytes, token: int) -> Explanation:
    """Why a token of a store's vocabulary may or may not come after a text.

    store : of a schema or a pattern.
    token : its id; those of end-of-text tokens too. An id outside the vocabulary is refused.

    Raises: MaskwrightError if the text is not bytes or the token no integer.
    """
    need_type("the store", store, SchemaTables, "a store of a JSON schema or a pattern")
    text, token = plain_bytes("the text", text), as_integer("a token", token)
    vocabulary, explainer = store.vocabulary, _explainer(store.texts, store.name)
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


def _explainer(texts: Texts | Dfa, name: str) -> JsonExplainer | PatternExplainer:
    return JsonExplainer(texts, name) if isinstance(texts, Texts) else PatternExplainer(texts, name)


__all__ = ["PatternExplainer", "explain_schema_id", "explain_schema_text", "explain_schema_token"]
