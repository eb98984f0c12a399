"""Where a text of any engine goes wrong, and which of several languages refuses it."""

from __future__ import annotations

from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.engine.constants import OK
from maskwright.decoding.engine.state import TextState
from maskwright.decoding.explain.explanation import Attempt, Explanation, position_of, shown_bytes


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
