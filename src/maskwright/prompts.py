"""Prompts of a completion: what is wrong with one that starts no legal text, or that is none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from maskwright.analysis.arguments import a_type, clip
from maskwright.analysis.errors import IllegalTokenError, MaskwrightError
from maskwright.analysis.loading.names import known_grammars
from maskwright.decoding.engine.arguments import plain_bytes

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
    before, behind = data[:good], data[good:]
    line = before.count(b"\n") + 1
    begin = before.rfind(b"\n") + 1
    end = data.find(b"\n", good)
    column = len(before[begin:].decode(errors="replace")) + 1
    shown = data[begin : end if end >= 0 else len(data)].decode(errors="replace")
    lead, cut = max(0, column - 61), column + 40
    context = ("..." if lead else "") + shown[lead:cut].replace("\t", " ")
    caret = " " * (column - 1 - lead + (3 if lead else 0)) + "^"
    character = behind.decode(errors="replace")[:1]
    allowed = list(matcher.text.next_bytes())
    grammar = matcher.store.name
    lines = [
        f"{name} is not the beginning of a text of {grammar}: {character!r} cannot stand at byte {good}, line {line}:{column}",
        f"    {context}",
        f"    {caret}",
        f"Allowed there: {_listed(allowed)}.",
    ]
    longest = f"The longest legal beginning is its first {good} of {len(data)} bytes" if good else "No text begins so"
    with suppress(MaskwrightError):
        ending = matcher.shortest_ending().data.decode(errors="replace")
        longest += (
            ("; it is complete" + (f" if {clip(ending)} follows" if ending else ""))
            if good
            else f"; a short one is {clip(ending)}. What the model is to read before the text goes into the option instruction"
        )
    return "\n".join([*lines, f"{longest}."])


def _listed(allowed: Sequence[int]) -> str:
    """Bytes in words: letters, digits and non-ASCII bytes as one kind each, others singly."""
    found = {byte for byte in allowed if byte < 0x80}
    parts = []
    for what, members in (("letters", {*range(65, 91), *range(97, 123)}), ("digits", set(range(48, 58)))):
        if members <= found:
            parts.append(what)
            found -= members
    parts += [repr(chr(byte)) for byte in sorted(found)]
    if len(parts) > 40:
        parts[40:] = [f"{len(parts) - 40} more ASCII characters"]
    if len(found) < len(allowed) and any(byte >= 0x80 for byte in allowed):
        parts.append("characters outside ASCII")
    return ", ".join(parts) or "nothing"
