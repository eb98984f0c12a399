r"""What tokens say inside a JSON string: the token ``a\n`` says an a and a line feed.

Source: RFC 8259, section 7. Half a surrogate pair is no character.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.kept import kept_with
from maskwright.maskstore.composition.strings import ENDS, GOES_ON, IS_TOKEN, Asked
from maskwright.maskstore.vocabulary import Vocabulary

QUOTE, BACKSLASH = 0x22, 0x5C
_SHORT = {0x22: b'"', 0x5C: b"\\", 0x2F: b"/", 0x62: b"\b", 0x66: b"\f", 0x6E: b"\n", 0x72: b"\r", 0x74: b"\t"}
_HEX = frozenset(b"0123456789abcdefABCDEF")
_SCALARS = ((0, 0xD7FF), (0xE000, 0x10FFFF))

Ranges = tuple[tuple[int, int], ...]


class Said(NamedTuple):
    """What bytes inside a JSON string say.

    text : UTF-8 of the characters that are whole.
    pending : an escape under way: its bytes so far.
    is_closed : whether the last byte is the quote that closes the string.
    """

    text: bytes
    pending: bytes
    is_closed: bool


def said_inside(data: bytes, pending: bytes = b"") -> Said | None:
    r"""What bytes say that stand inside a JSON string, behind its opening quote.

    pending : an escape that is under way before them.

    Returns None if no JSON string goes on so, or something stands behind the closing quote. Whether
    raw bytes are UTF-8 is not looked at.

    Example:
        >>> said_inside(rb'a\n\u00').text, said_inside(b'b"').is_closed
        (b'a\n', True)
    """
    data = pending + data
    said = bytearray()
    at, n = 0, len(data)
    while at < n:
        byte = data[at]
        if byte == QUOTE:
            return Said(bytes(said), b"", True) if at == n - 1 else None
        if byte < 0x20:
            return None
        if byte != BACKSLASH:
            said.append(byte)
            at += 1
            continue
        found = _escape(data, at)
        if found is None:
            return None
        character, length = found
        if not length:
            return Said(bytes(said), data[at:], False)
        said += character
        at += length
    return Said(bytes(said), b"", False)


def _escape(data: bytes, at: int) -> tuple[bytes, int] | None:
    """The character of an escape and its length, 0 while it is under way; None if it is wrong."""
    kind = data[at + 1 : at + 2]
    if kind and kind != b"u":
        return (_SHORT[kind[0]], 2) if kind[0] in _SHORT else None
    for length in (6, 12):
        escape = data[at : at + length]
        found = characters_of(escape)
        if len(escape) < length or not found:
            return (b"", 0) if found else None
        if found[0][0] == found[0][1]:
            return chr(found[0][0]).encode(), length
    return None


def _units(digits: bytes) -> tuple[int, int]:
    """The least and the greatest unit whose digits begin so."""
    left = 4 * (4 - len(digits))
    low = int(digits, 16) << left if digits else 0
    return low, low + (1 << left) - 1


def _of_unit(digits: bytes) -> Ranges:
    """The characters whose escape begins with some digits of its first unit."""
    low, high = _units(digits)
    found = [(max(low, a), min(high, b)) for a, b in ((0, 0xD7FF), (0xE000, 0xFFFF)) if max(low, a) <= min(high, b)]
    first, last = max(low, 0xD800), min(high, 0xDBFF)
    if first <= last:
        found.append((0x10000 + ((first - 0xD800) << 10), 0x10000 + ((last - 0xD800) << 10) + 0x3FF))
    return tuple(found)


LIKELY = b" \nea0_,;)"
"""PERF: where any character will do, these are tried first, since most texts go on with them."""

ANY_CHARACTER = np.array([*LIKELY, *sorted({*range(0x80), *range(0xC2, 0xF5)} - {*LIKELY})], np.int32)
"""The first bytes of all characters, the likely ones first."""
ANY_CHARACTER.setflags(write=False)


def characters_of(escape: bytes) -> Ranges:
    r"""The characters that an escape, whole or under way, may come to; () if it is wrong.

    escape : a backslash, and perhaps `u` and more.

    Example:
        >>> characters_of(rb"\u004")
        ((64, 79),)
    """
    if len(escape) < 3:
        return _SCALARS
    if not _HEX.issuperset(escape[2:6]):
        return ()
    if len(escape) <= 6:
        return _of_unit(escape[2:])
    high, second = int(escape[2:6], 16), escape[6:]
    if not 0xD800 <= high < 0xDC00 or not second.startswith(b"\\u"[: len(second)]) or not _HEX.issuperset(second[2:]):
        return ()
    base = 0x10000 + ((high - 0xD800) << 10) - 0xDC00
    low, last = _units(second[2:])
    low, last = max(low, 0xDC00), min(last, 0xDFFF)
    return ((base + low, base + last),) if low <= last else ()


def utf8_beginnings(ranges: Ranges) -> Iterator[bytes]:
    """Beginnings of UTF-8: one of them comes next iff the next character is in a range.

    ranges : without surrogates.
    """
    for low, high in ranges:
        at = low
        while at <= high:
            whole = chr(at).encode()
            n = 1
            # the shortest beginning that belongs to characters of the range alone
            while n < len(whole) and (at != _first_of(whole[:n]) or _last_of(whole[:n]) > high):
                n += 1
            yield whole[:n]
            at = _last_of(whole[:n]) + 1


def _first_of(before: bytes) -> int:
    """The least character whose UTF-8 begins so."""
    return _end_of(before, 0x80, {0xE0: 0xA0, 0xF0: 0x90})


def _last_of(before: bytes) -> int:
    """The greatest character whose UTF-8 begins so."""
    return _end_of(before, 0xBF, {0xED: 0x9F, 0xF4: 0x8F})


def _end_of(before: bytes, filler: int, second: dict[int, int]) -> int:
    length = 2 if before[0] < 0xE0 else 3 if before[0] < 0xF0 else 4
    if before[0] < 0x80:
        return before[0]
    whole = bytearray(before)
    while len(whole) < length:
        whole.append(second.get(whole[0], filler) if len(whole) == 1 else filler)
    return ord(whole.decode())


def going_on(pending: bytes) -> bytes:
    """The bytes with which an escape under way may go on."""
    return {1: bytes((*_SHORT, *b"u")), 6: b"\\", 7: b"u"}.get(len(pending), bytes(_HEX))


def units_of(character: str) -> bytes:
    r"""A character as ``\uXXXX``, or two of them."""
    units = character.encode("utf-16-be")
    return b"".join(b"\\u%04x" % int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))


def escaped(data: bytes) -> bytes:
    """Text as it is spelled inside a JSON string: with an escape where one must stand."""
    short = {value[0]: b"\\" + bytes((key,)) for key, value in _SHORT.items() if value != b"/"}
    return b"".join(short.get(byte) or (b"\\u%04x" % byte if byte < 0x20 else bytes((byte,))) for byte in data)


@dataclass(frozen=True, eq=False)
class JsonStringTokens:
    """The tokens of a vocabulary as what they say inside a JSON string.

    own : the tokens themselves, by id.
    number : a text -> its id in `vocabulary`.
    vocabulary : a token that has no escape, quote or control character is as it was, another one is
        b"". Behind them come the texts that tokens with escapes say, and single bytes, as far as
        they are no tokens.
    ids : (n,) int32; the tokens with escapes that stay inside the string.
    says : (n,) int32; the id in `vocabulary` of what each says; -1 for nothing that is whole.
    pending : the escape under way at the end of each, or b"".
    ends : (a token that ends with the closing quote; what it says).
    asked : of tokens with escapes and tokens that end the string: what a text must allow for them
        to come. Those in `others` are not there.
    others : the indices in `ids` of tokens whose escape under way has a digit, or half a pair.
    """

    own: tuple[bytes, ...]
    number: Mapping[bytes, int]
    vocabulary: Vocabulary
    ids: npt.NDArray[np.int32]
    says: npt.NDArray[np.int32]
    pending: tuple[bytes, ...]
    ends: tuple[tuple[int, bytes], ...]
    asked: tuple[Asked, ...]
    others: tuple[int, ...]


@kept_with
def json_string_tokens(vocabulary: Vocabulary) -> JsonStringTokens:
    """The tokens of a vocabulary inside JSON strings; kept. Cost: O(total bytes), once."""
    special = frozenset([QUOTE, BACKSLASH, *range(0x20)])
    tokens = list(vocabulary.tokens)
    number: dict[bytes, int] = {}
    escaped: list[tuple[int, Said]] = []
    ends: list[tuple[int, bytes]] = []
    for token, data in enumerate(vocabulary.tokens):
        if special.isdisjoint(data):
            if data:
                number.setdefault(data, token)
            continue
        tokens[token] = b""
        said = said_inside(data)
        if said is None:
            continue
        if said.is_closed:
            ends.append((token, said.text))
        else:
            escaped.append((token, said))
    # escapes spell every text, byte by byte if need be
    bytewise = {bytes((byte,)) for byte in range(256)}
    for text in sorted(({said.text for _, said in escaped} | {text for _, text in ends} | bytewise) - {b"", *number}):
        number[text] = len(tokens)
        tokens.append(text)
    name = f"{vocabulary.name} in JSON strings"
    inside = Vocabulary(name, tuple(tokens), dict(vocabulary.special), vocabulary.eos)
    return JsonStringTokens(
        vocabulary.tokens,
        number,
        inside,
        np.array([token for token, _ in escaped], np.int32),
        np.array([number[said.text] if said.text else -1 for _, said in escaped], np.int32),
        tuple(said.pending for _, said in escaped),
        tuple(ends),
        _asked(number, escaped, ends),
        tuple(at for at, (_, said) in enumerate(escaped) if len(said.pending) > 2),
    )


def _asked(
    number: Mapping[bytes, int], escaped: list[tuple[int, Said]], ends: list[tuple[int, bytes]]
) -> tuple[Asked, ...]:
    """What a text must allow for tokens with escapes, and those that end the string, to come."""
    found: dict[tuple[bytes, int], list[int]] = {}
    for token, text in ends:
        found.setdefault((text, ENDS), []).append(token)
    for token, said in escaped:
        if len(said.pending) < 3:
            found.setdefault((said.text, GOES_ON if said.pending else IS_TOKEN), []).append(token)
    return tuple(
        Asked(text, kind, number[text] if text else -1, tuple(tokens)) for (text, kind), tokens in sorted(found.items())
    )
