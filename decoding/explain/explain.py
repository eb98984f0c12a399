"""Explain why a token may not come next, where a text goes wrong, and what could stand there.

An explanation goes from the bytes to the lexemes read so far, then to the terminals that the token
would make, then to the parser stacks that refuse them, with the rules under way.

The text is read again by plain Python code (`decoding.reference`), which records why each reading
stops. The engine's masks are used only to name the nearest allowed tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maskwright.analysis.arguments import as_integer, need_type, refuse_argument
from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.shapes import Texts
from maskwright.decoding.engine.arguments import plain_bytes
from maskwright.decoding.engine.constants import OK
from maskwright.decoding.engine.slot import SlotText
from maskwright.decoding.engine.state import TextState, listed_bytes
from maskwright.decoding.explain.explainer import Explainer
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
from maskwright.decoding.reference.machine import Machine, machine_of
from maskwright.maskstore.table.compiled import EngineTable
from maskwright.maskstore.vocabulary import Vocabulary


def explain_text(grammar: Grammar, text: bytes) -> Explanation:
    """Return where a text stops being a prefix of a legal text, or whether it is complete.

    grammar : its lexing is "longest" or "contextual".
    text : bytes.

    Returns an `Explanation`. Its verdict is "allowed" if the text is a prefix of a legal text;
        `is_whole` then says whether it is legal as it stands.
    Raises: the errors of `build_store`; GrammarError if lexing is "nfa"; LimitError if the text has
        too many readings; MaskwrightError if the text is not bytes.
    Cost: 1.5 s for the first text of python.lark, then 25 us a byte.
    """
    return Explainer(_machine_of(grammar)).text(plain_bytes("the text", text))


def explain_token(grammar: Grammar, text: bytes, data: bytes, store: EngineTable | None = None) -> Explanation:
    """Return why some bytes may or may not come after a text.

    If the text itself is not legal, the explanation says where and why.

    grammar : as in `explain_text`.
    text : bytes; the text so far.
    data : bytes; what comes next.
    store : table of the grammar; names the nearest allowed tokens, and the id of `data` if it is a
        token. None: neither is named.

    Raises: as `explain_text`.
    """
    text, data = plain_bytes("the text", text), plain_bytes("what comes next", data)
    what = shown_bytes(data)
    if store is not None:
        _need_store(store)
        if data in store.vocabulary.tokens:
            what = f"token {store.vocabulary.tokens.index(data)} ({data!r})"
    explainer = Explainer(_machine_of(grammar), store)
    places, good = explainer.run([explainer.trace.start], text)
    return explainer.text(text) if good < len(text) else explainer.token(places, data, what, text)


def _need_store(store: EngineTable) -> None:
    if not hasattr(store, "grammar"):
        refuse_argument("the store", store, "a Store: mw.build_store(grammar, vocabulary)")


def _machine_of(grammar: Grammar) -> Machine:
    need_type("the grammar", grammar, Grammar, "a Grammar: mw.load_grammar(name)")
    return machine_of(grammar)


def explain_id(store: EngineTable, text: bytes, token: int) -> Explanation:
    """Return why a token of a store's vocabulary may or may not come after a text.

    Like `explain_token`, but by id, so it also explains end-of-text and other special tokens. An id
    outside the vocabulary is always refused.

    text : bytes; the text so far.
    token : token id.

    Raises: as `explain_text`; MaskwrightError if the token is not an integer.
    """
    _need_store(store)
    text, token = plain_bytes("the text", text), as_integer("a token", token)
    explainer = Explainer(machine_of(store.grammar), store)
    configurations, good = explainer.run([explainer.trace.start], text)
    return explainer.text(text) if good < len(text) else explainer.token_by_id(configurations, token, text)


def explain_next(text: SlotText, wanted: int | bytes) -> Explanation:
    """Return why a token, or bytes, may or may not come next in the state of a text.

    The state keeps neither its text nor the names of terminals that its parser cannot tell apart.
    Of such terminals the first is shown.

    text : not ended.
    wanted : token id, 0 or more; or bytes, which need be no token.

    Raises: as `explain_text`; StoreError if the store's lexer or parser is not the one that this
        version, under this Python's Unicode, builds for its grammar.
    """
    explainer = Explainer(machine_of(text.store.grammar), text.store, text)
    places = explainer.configurations_of(text)
    if isinstance(wanted, bytes):
        return explainer.token(places, wanted, shown_bytes(wanted), None)
    return explainer.token_by_id(places, wanted, None)


def explain_by_state(state: TextState, text: bytes, wanted: int | bytes | None = None) -> Explanation:
    """Where a text stops being the beginning of a legal one, or why something may not follow it.

    state : at its start; it is changed.
    text : the text so far, read byte by byte.
    wanted : what comes next: the id of a token, or bytes; None to ask about the text alone.

    Returns an `Explanation`. Its `attempts` have for each language that the text may be in why it
        refuses, in its own words. Special tokens that are parts of a composition have no bytes, so
        a text with one cannot be asked about.
    Raises: LimitError as `Matcher.fill`.
    """
    store, name = state.store, state.store.name
    for at in range(len(text)):
        if not state.try_read(text[at : at + 1]):
            return _refused(state, text, at, f"the text is not legal under {state.under}")
    where, position = _where(state), position_of(text, len(text))
    if wanted is None:
        said = f"the text is the beginning of a legal one under {state.under}" + where.replace(",", "; its end is", 1)
        return Explanation(name, "the text", "allowed", said, position, is_whole=state.can_end())
    if isinstance(wanted, int):
        allowed, data = state.read_token(wanted, False) == OK, store.vocabulary.tokens[wanted]
        what = f"token {wanted} ({data!r})"
    else:
        allowed = not wanted or state.is_ok(state.read(wanted, False))
        data, what = wanted, shown_bytes(wanted)
    if allowed:
        return Explanation(name, what, "allowed", f"{what} may come next{where}", position)
    if isinstance(wanted, int) and (not data or wanted in store.vocabulary.eos):
        return Explanation(name, what, "refused", state.why(wanted, wanted), position)
    good = 0
    while good + 1 < len(data) and state.try_read(data[good : good + 1]):
        good += 1
    return _refused(state, text + data, len(text) + good, f"{what} may not come next")


def _where(state: TextState) -> str:
    return f", in {where}" if (where := state.where()) else ""


def _refused(state: TextState, text: bytes, at: int, said: str) -> Explanation:
    """The explanation of a byte that is refused. at : where it stands in the text."""
    byte = text[at : at + 1]
    reasons: dict[str, None] = {}
    for name, inner in state.languages():
        try:
            if (explained := inner.explain_bytes(byte)) is not None:
                reasons[f"{name}: {explained.summary}"] = None
        except MaskwrightError as error:
            reasons[f"{name}: {error}"] = None
    return Explanation(
        state.store.name,
        "the text",
        "refused",
        f"{said}: byte {at}, {byte!r}, cannot come here{_where(state)}",
        position_of(text, at),
        attempts=tuple(Attempt((), (), why, ()) for why in reasons),
        bytes_allowed=state.next_bytes(),
    )


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
