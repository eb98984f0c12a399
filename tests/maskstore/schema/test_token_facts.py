"""What tokens are to JSON, by regular expressions and not byte by byte."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import maskwright as mw
from maskwright.analysis.schema.shapes import Escapes
from maskwright.maskstore.schema import _token_kernels as of
from maskwright.maskstore.schema.write import ESCAPES
from maskwright.maskstore.vocabulary.sorted_texts import flatten

_CHARACTER = (
    rb"(?:[\x20-\x21\x23-\x5b\x5d-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}"
    rb"|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})"
)
_UNIT = rb"[0-9a-cefA-CEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}"
_LOW = rb"[dD][c-fC-F][0-9a-fA-F]{2}"
_PAIR = rb"[dD][89abAB][0-9a-fA-F]{2}\\u" + _LOW
_ESCAPE = rb'(?:\\(?:["\\/bfnrt]|u(?:' + _UNIT + rb"|" + _PAIR + rb")))"
_PARTIAL_CHARACTER = (
    rb"(?:[\xc2-\xf4]|\xe0[\xa0-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]|\xed[\x80-\x9f]|\xf0[\x90-\xbf][\x80-\xbf]?"
    rb"|[\xf1-\xf3][\x80-\xbf]{1,2}|\xf4[\x80-\x8f][\x80-\xbf]?)"
)
_PARTIAL_ESCAPE = (
    rb"(?:\\(?:u(?:[0-9a-cefA-CEF][0-9a-fA-F]{0,2}|[dD](?:[0-7][0-9a-fA-F]?|[89abAB][0-9a-fA-F]?)?"
    rb"|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?)?)?)"
)
_MINIMAL_ESCAPE = rb'(?:\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f])))'
_PARTIAL_MINIMAL_ESCAPE = rb"(?:\\(?:u(?:0(?:0[01]?)?)?)?)"
_NATURAL_UNIT = (
    rb"00(?:0[0-7bBeEfF]|1[0-9a-fA-F]|7[fF]|[89a-fA-F][0-9a-fA-F])|0[1-9a-fA-F][0-9a-fA-F]{2}"
    rb"|[1-9a-cefA-CEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}"
)
_NATURAL_ESCAPE = rb'(?:\\(?:["\\bfnrt]|u(?:' + _NATURAL_UNIT + rb"|" + _PAIR + rb")))"
_PARTIAL_NATURAL_ESCAPE = (
    rb"(?:\\(?:u(?:0(?:0[0178-9a-fA-F]?|[1-9a-fA-F][0-9a-fA-F]?)?|[1-9a-cefA-CEF][0-9a-fA-F]{0,2}"
    rb"|[dD](?:[0-7][0-9a-fA-F]?|[89abAB][0-9a-fA-F]?)?|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?)?)?)"
)

PATTERNS: dict[Escapes, tuple[bytes, bytes]] = {
    "any": (_ESCAPE, _PARTIAL_ESCAPE),
    "natural": (_NATURAL_ESCAPE, _PARTIAL_NATURAL_ESCAPE),
    "minimal": (_MINIMAL_ESCAPE, _PARTIAL_MINIMAL_ESCAPE),
}
_PIECES = sorted({word[i:j] for word in (b"true", b"false", b"null", b"E") for i in range(5) for j in range(i + 1, 6)})
_STRUCTURE = re.compile(
    rb"(?:[ \t\n\r{}\[\]:,0-9+\-.]|(?<![a-zA-Z])(?:" + b"|".join(filter(None, _PIECES)) + rb")(?![a-zA-Z]))*(?:\"|\Z)"
)
_STRUCTURAL = b' \t\n\r,:[]{}"'


def stands_outside(token: bytes) -> bool:
    return _STRUCTURE.match(token) is not None


def stands_behind_string(tail: bytes) -> bool:
    return tail.lstrip(b" \t\n\r")[:1] in (b"", b",", b":", b"]", b"}") and stands_outside(tail)


def facts_of(token: bytes, escapes: Escapes) -> list[int]:
    """The naive twin of `find_facts`, but for the hash, which must not be -1 where there is one."""
    whole, partial = PATTERNS[escapes]
    n = token.count(b'"')
    outside, tail = stands_outside(token), token.partition(b'"')[2]
    opens = not token.endswith(b'"') and ((n == 1 and outside) or (n == 2 and (outside or stands_behind_string(tail))))
    units = re.compile(b"(?:" + _CHARACTER + b"|" + whole + b")*")
    found = units.match(token)
    assert found is not None
    end, rest = found.end(), token[found.end() :]
    kind = of.NO_CONTENT
    if not rest:
        kind = of.WHOLE
    elif rest[:1] == b'"':
        kind = of.ENDS if stands_behind_string(rest[1:]) else of.NO_CONTENT
    elif re.fullmatch(_PARTIAL_CHARACTER + b"|" + partial, rest):
        kind = of.PARTIAL
    n_units = len(re.findall(_CHARACTER + b"|" + whole, found[0]))
    is_hard = kind == of.ENDS and (b"\\" in found[0] or bool(rest[1:].strip(_STRUCTURAL)))
    has_hash = n < 1 or b"\\" not in token.split(b'"')[1]
    n_words = len(re.findall(b"true|false|null", token))
    return [n, b"\\" in token, n_words, outside, opens, has_hash, kind, end, n_units, is_hard]


def checked(tokens: list[bytes], escapes: Escapes) -> list[list[int]]:
    facts = np.zeros((of.N_FACTS, len(tokens)), np.int32)
    offsets, data = flatten(tokens)
    of.find_facts(data, offsets, np.frombuffer(b"true false null", np.uint8), ESCAPES[escapes], facts)
    facts[of.HASH] = facts[of.HASH] >= 0
    found: list[list[int]] = facts.T.tolist()
    for token, fast in zip(tokens, found, strict=True):
        assert fast == facts_of(token, escapes), token
    return found


PARTS = (
    *(bytes((byte,)) for byte in b'"\\/,:]}{[ \n\x00\x7f01ade+-.Ex'),
    *(
        b"\\u",
        b"\\n",
        b"d8",
        b"D83D",
        b"\\udc00",
        b"\\uD834\\uDD1E",
        b"00",
        b"1f",
        b"7F",
        b"true",
        b"false",
        b"null",
        b"als",
    ),
    *(b"\xc3", b"\xa9", b"\xe2\x80\xa8", b"\xf0\x9f\x98\x80", b"\xed", b"\xe0", b"\xf4", b"\x90", b"\x80"),
)


@pytest.mark.parametrize("escapes", PATTERNS)
def test_random_tokens(escapes: Escapes) -> None:
    rng = random.Random(escapes)
    found = checked([b"".join(rng.choices(PARTS, k=rng.randrange(7))) for _ in range(20_000)], escapes)
    assert all(len({fact[at] for fact in found}) > 1 for at in range(of.N_FACTS))
    assert {fact[of.KIND] for fact in found} == {of.NO_CONTENT, of.WHOLE, of.PARTIAL, of.ENDS}


def test_tokens_of_a_vocabulary() -> None:
    checked(list(mw.load_vocabulary("python-tiny").tokens), "natural")
