"""Texts for the library's grammars with their verdicts (data/cases/NAME.toml), a parser over bytes for each grammar, and texts of the data.

A case file has tables `[[accept]]` with name and text, and `[[refuse]]` with name, text and `at`, the first byte that cannot come.
"""

from __future__ import annotations

import functools
import json
import lzma
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from byte_parser import ByteParser
from paths import SHARED
from written_cases import written

from maskwright.analysis.grammar import Grammar
from maskwright.analysis.loading import load_grammar


@functools.cache
def library_grammar(name: str) -> Grammar:
    return load_grammar(name)


@functools.cache
def byte_parser(name: str) -> ByteParser:
    return ByteParser(library_grammar(name))


def texts_of(name: str, part: str) -> list[bytes]:
    """The texts of a grammar's cases. part : accept or refuse."""
    return [case["text"].encode() for case in written(name)[part]]


def records(name: str, n: int) -> list[dict[str, Any]]:
    """The first n records of a file of the evaluation data, such as "source/json"; skips the test if it is not there."""
    path = SHARED / f"{name}.jsonl.xz"
    if not path.exists():
        pytest.skip(f"no shared data: {path.name} is absent")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line, _ in zip(lines, range(n), strict=False)]


def sampled(name: str, n: int, seed: int = 1) -> Iterator[str]:
    """Texts drawn byte by byte under the masks, then closed by a shortest ending; punctuation, which makes structure, more often than not.

    That each is closed says that no prefix of them is a dead end.
    """
    chosen = random.Random(seed)
    store = byte_parser(name).store
    matcher = store.matcher(0)
    words = np.zeros(store.n_words, np.uint32)
    for _ in range(n):
        matcher.reset()
        data = bytearray()
        for _ in range(chosen.randrange(80)):
            matcher.fill(words)
            allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")[:256]).tolist()
            if not allowed:
                break
            common = [byte for byte in allowed if byte < 127 and (not chr(byte).isalnum() or chosen.random() < 0.2)]
            data.append(chosen.choice(common if common and chosen.random() < 0.95 else allowed))
            matcher.advance(data[-1])
        data += matcher.shortest_ending().data
        assert byte_parser(name).refusal(bytes(data)) is None
        yield data.decode()


def mutants(name: str, pieces: Sequence[str], n: int, seed: int) -> Iterator[str]:
    """Cases of a grammar, one in five of a refused one, with one or two pieces put in, some of them for a character or two."""
    chosen = random.Random(seed)
    good, bad = ([text.decode() for text in texts_of(name, part)] for part in ("accept", "refuse"))
    for _ in range(n):
        text = chosen.choice(bad if chosen.random() < 0.2 else good)
        for _ in range(chosen.randint(1, 2)):
            at = chosen.randrange(len(text) + 1)
            text = text[:at] + chosen.choice((*pieces, "")) + text[at + chosen.choice((0, 0, 1, 2)) :]
        yield text
