"""Where a text of several languages goes wrong, and which language refuses it, in its own words."""

from __future__ import annotations

from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.composition.cursors import RunCursor
from maskwright.decoding.composition.text import ComposedText
from maskwright.decoding.engine.constants import OK
from maskwright.decoding.explain.explanation import Attempt, Explanation, position_of, shown_bytes
from maskwright.maskstore.composition.tables import ComposedTables


def explain_composed(store: ComposedTables, text: bytes, wanted: int | bytes | None = None) -> Explanation:
    """Where a text stops being the beginning of a legal one, or why a token may not come after it.

    store : of a composition.
    text : the text so far, read byte by byte.
    wanted : what comes next: the id of a token, or bytes; None to ask about the text alone.

    Returns an `Explanation`. Its `attempts` have for each language that the text may be in why it
        refuses, in its own words. Special tokens that are parts
        have no bytes, so a text with one cannot be asked about.
    Raises: LimitError as `Matcher.fill`.
    """
    state = ComposedText(store, 0)
    for at in range(len(text)):
        if not state.try_read(text[at : at + 1]):
            return _refused(state, text, at, text[at : at + 1], f"the text is not legal under {store.name}")
    where, position = state.where(), position_of(text, len(text))
    if wanted is None:
        said = f"the text is the beginning of a legal one under {store.name}; its end is in {where}"
        return Explanation(store.name, "the text", "allowed", said, position, is_whole=state.can_end())
    if isinstance(wanted, int):
        allowed, data = state.read_token(wanted, False) == OK, store.vocabulary.tokens[wanted]
        what = f"token {wanted} ({data!r})"
    else:
        allowed, data, what = state.copy().try_read(wanted), wanted, shown_bytes(wanted)
    if allowed:
        return Explanation(store.name, what, "allowed", f"{what} may come next, in {where}", position)
    if isinstance(wanted, int) and (not data or wanted in store.vocabulary.eos):
        return Explanation(store.name, what, "refused", state.why(wanted, wanted), position)
    good = 0
    while good + 1 < len(data) and state.try_read(data[good : good + 1]):
        good += 1
    return _refused(state, text + data, len(text) + good, data[good : good + 1], f"{what} may not come next")


def _refused(state: ComposedText, text: bytes, at: int, byte: bytes, said: str) -> Explanation:
    """The explanation of a byte that is refused. at : where it stands in the text."""
    allowed = state.next_bytes()
    summary = f"{said}: byte {at}, {byte!r}, cannot come here, in {state.where()}"
    attempts = [Attempt((), (), f"{name}: {why}", ()) for name, why in _words(state, byte)]
    return Explanation(
        state.store.name,
        "the text",
        "refused",
        summary,
        position_of(text, at),
        attempts=tuple(dict.fromkeys(attempts)),
        bytes_allowed=allowed,
    )


def _words(state: ComposedText, byte: bytes) -> list[tuple[str, str]]:
    """Of each language that the text may be in its name, and why it refuses a byte."""
    found = []
    for reading in state._close():
        name = state.store.name if reading.back is None else f"part {state.store.parts[reading.part].name}"
        if isinstance(reading.cursor, RunCursor):
            continue  # it has tokens, and no words of its own
        inner = reading.cursor.text
        vocabulary = inner.store.vocabulary
        try:
            if byte in vocabulary.tokens:
                token = vocabulary.tokens.index(byte)
                explained = inner.explain(token)
                found.append((name, inner.why(token, token) if explained is None else explained.summary))
            elif (explained := inner.explain_bytes(byte)) is not None:  # a host's vocabulary has no more than it takes
                found.append((name, explained.summary))
        except MaskwrightError as error:
            found.append((name, str(error)))
    return found


__all__ = ["explain_composed"]
