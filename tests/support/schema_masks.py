"""The schema engine's masks beside those of the plain interpreter, along a random text."""

from __future__ import annotations

import random

from mask_bits import mask_of

import maskwright as mw
from maskwright.analysis.regex.whole import regex_automaton
from maskwright.analysis.schema.shapes import Texts
from maskwright.analysis.schema.spacing import ANY, everywhere, spacing_of
from maskwright.decoding.matcher import Matcher
from maskwright.decoding.reference.json_places import Readings
from maskwright.decoding.reference.json_texts import JsonInterpreter
from maskwright.maskstore.schema.compiled import SchemaTables
from maskwright.maskstore.schema.write import write_schema

TOKENS = (
    *(bytes([byte]) for byte in range(256)),
    *(b'":', b'","', b'"}', b"ab", b'{"a":', b"\\u", b"\\n", b'"a":"b","c":', b'""', b"[[", b"]]", b',"', b'"],"', b"aa"),
    *(b"\\u0061", b'a"', b'b":', b'":1}', b'":"', b"0,", b"1]", b"10", b"null", b"true,", b"[]", b"{}", b'"a"', b'"b",'),
    *(b'":{"', b"  ", b' "', b"\\ud83d\\ude00", "é".encode(), "😀".encode(), b"abab", b'\\"', b'": ', b', "', b'"a","a"'),
    *(b'{"":', b"true,true", b'"a":1,"a":1', b"\xf0\x9f", b"\\", b"\\ud8", b"\\u00", b"\\u001", b"\\u000b"),
    *(b"\\u001F", b"a\\u001f", b"\\/", b'\\\\"', b'\\u000a":'),
    *(b"\n  ", b"    ", b",\n", b"{\n", b"[\n", b"\n}", b"\n  }", b"\n  ]", b"\n]\n", b"\n    ", b',\n  "', b" }", b"[ ", b"1\n"),
    *(b"\r\n", b"\n\t", b": [", b"[\n  ", b"[\n    1", b" ,", b"  }\n}", b"{}\n", b"},", b"\n  },\n", b'  "a": ', b"0 ", b"]\n  }"),
)  # fmt: skip
END = len(TOKENS)
VOCABULARY = mw.Vocabulary("small", (*TOKENS, b""), {END: "</s>"}, (END,))
SPACINGS = (
    ANY,
    *(everywhere(regex_automaton(one)) for one in ("", " ?", " {0,2}|\n", " |")),
    *map(spacing_of, ("natural", "natural", "json.dumps", "indent2", "indent2", "indent0")),
)


def expected(interpreter: JsonInterpreter, readings: Readings) -> set[int]:
    known: dict[bytes, Readings] = {b"": readings}

    def read(data: bytes) -> Readings:
        if data not in known:
            before = read(data[:-1])
            known[data] = interpreter.read(before, data[-1]) if before else ()
        return known[data]

    found = {number for number, token in enumerate(TOKENS) if read(token)}
    return found | {END} if interpreter.is_complete(readings) else found


def follow(texts: Texts, rng: random.Random, steps: int) -> int:
    """Compare masks along a random text. Returns how many."""
    interpreter = JsonInterpreter(texts)
    matcher = Matcher(SchemaTables("random", texts, VOCABULARY, *write_schema(texts)), rng.choice((0, 3, 256)))
    readings, n_masks = interpreter.start(), 0
    for _ in range(steps):
        try:
            found, wanted = mask_of(matcher), expected(interpreter, readings)
        except mw.LimitError as error:
            # a few bytes more may make them too many, or it takes long to tell items apart
            assert len(readings) > 30 or "items are compared" in str(error)
            break
        n_masks += 1
        assert found == wanted, (matcher.said(), [TOKENS[i] if i < END else "end" for i in found ^ wanted][:8])
        assert matcher.is_accepting() == (END in wanted)
        tokens = sorted(wanted - {END})
        if not tokens:
            break
        structure = [token for token in tokens if TOKENS[token][:1] in b'"{}[],:']
        content = [token for token in tokens if TOKENS[token][:1] not in b" \t\n\r"]
        kind = rng.random()
        token = rng.choice((structure if kind < 0.5 else content if kind < 0.8 else tokens) or tokens)
        luck = rng.random()
        if luck < 0.05:
            matcher = matcher.fork()
        elif luck < 0.1:
            matcher.text._give_room(0)
        try:
            matcher.advance(token)
        except mw.LimitError:
            assert len(readings) > 30
            break
        readings = interpreter.read_bytes(readings, TOKENS[token])
        if luck > 0.9 and matcher.max_rollback:
            matcher.rollback()
            readings = interpreter.read_bytes(interpreter.start(), matcher.said())
    return n_masks
