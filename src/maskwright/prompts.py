"""Prompts of a completion: what is wrong with one that starts no legal text, or that is none."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from maskwright.analysis.arguments import a_type, clip
from maskwright.analysis.errors import IllegalTokenError, MaskwrightError
from maskwright.analysis.loading.names import known_grammars
from maskwright.decoding.engine.arguments import plain_bytes
from maskwright.decoding.engine.state import listed_bytes
from maskwright.decoding.explain.explanation import position_of

if TYPE_CHECKING:
    from maskwright.decoding.matcher import Matcher


def check_order(store: Any, prompt: Any) -> None:
    """Raises: MaskwrightError where the prompt is no text, or stands where the store should."""
    order = "the store comes first, then the prompt, then the model: mw.complete(store, prompt, model)"
    order = "each text has a call of its own; mw.Batch masks many" if isinstance(prompt, list) else order
    if not isinstance(prompt, str | bytes | bytearray):
        raise MaskwrightError(f"the prompt is {a_type(prompt)}; expected a str or bytes; {order}")
    is_text = isinstance(store, str | bytes) and not os.path.exists(store)
    if is_text and isinstance(prompt, str) and (os.path.isfile(prompt) or prompt in known_grammars()):
        what = "a file" if os.path.isfile(prompt) else "a grammar"
        raise MaskwrightError(f"there is no store {clip(store)}, and the prompt {clip(prompt)} is {what}; {order}")


def as_text(prompt: str | bytes, name: str = "the prompt") -> tuple[bytes, str]:
    """A prompt in UTF-8, and as text.

    Raises: MaskwrightError if it is neither a str nor bytes in UTF-8.
    """
    data = prompt.encode("utf-8", "surrogatepass") if isinstance(prompt, str) else plain_bytes(name, prompt)
    try:
        return data, data.decode()
    except UnicodeDecodeError as error:
        raise MaskwrightError(f"{name} is not UTF-8: {error.reason} at byte {error.start}") from None


def read_prompt(matcher: Matcher, data: bytes, name: str = "the prompt") -> None:
    """Advance a matcher, which is at the start of a text, by a prompt.

    matcher : advanced in place.
    data : the prompt in UTF-8.
    name : what error messages call the prompt.

    Raises: IllegalTokenError if no legal text begins with the prompt. The message has the first
        wrong byte by offset and by line:column with a caret, and the bytes that could come there.
    """
    try:
        matcher.advance_bytes(data)
    except IllegalTokenError:
        raise IllegalTokenError(_refusal(matcher, data, name)) from None


def _refusal(matcher: Matcher, data: bytes, name: str) -> str:
    """The message that says why a prompt is refused. Advances the matcher as far as it is legal."""
    good = matcher.text.read_longest(data)
    at = position_of(data, good)
    refused = data[good:].decode(errors="replace")[:1]
    indent = "".join("\t" if c == "\t" else " " * len(c) for c in at.before)
    longest = f"The longest legal beginning is its first {good} of {len(data)} bytes" if good else "No text begins so"
    with suppress(MaskwrightError):
        ending = matcher.shortest_ending().data.decode(errors="replace")
        longest += (
            ("; it is complete" + (f" if {clip(ending)} follows" if ending else ""))
            if good
            else f"; a short one is {clip(ending)}. What the model is to read before the text goes into the option instruction"
        )
    return (
        f"{name} is not the beginning of a text of {matcher.store.name}: {refused!r} cannot stand at byte {good}, "
        f"line {at.line}:{at.column}\n    {at.before}{at.after}\n    {indent}^\n"
        f"Allowed there: {listed_bytes(matcher.text.next_bytes())}.\n{longest}."
    )
