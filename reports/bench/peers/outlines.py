"""outlines-core: `Guide.write_mask_into` and `Guide.advance` on an `Index`. Regular languages only.

So JSON is a regular expression of bounded depth (at most `DEPTH` objects and arrays within each other): deeper documents are refused.
The index holds every (state, token) pair, which is what bounds the depth: each level takes several times the memory.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import outlines_core

from peers.engine import UnsupportedError, Work

DEPTH = 4


def json_expression(depth: int) -> str:
    """RFC 8259 with at most `depth` objects and arrays within each other."""
    space = r"[ \t\n\r]*"
    string = r'"([^"\\\x00-\x1F]|\\(["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
    value = scalar = rf"({string}|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)"
    for _ in range(depth):
        pair = rf"{string}{space}:{space}{value}{space}"
        items = rf"\[{space}({value}{space}(,{space}{value}{space})*)?\]"
        pairs = rf"\{{{space}({pair}(,{space}{pair})*)?\}}"
        value = rf"({scalar}|{pairs}|{items})"
    return space + value + space


class Matcher:
    def __init__(self, guide: outlines_core.Guide, n_words: int) -> None:
        bitmask = np.zeros((1, n_words), dtype=np.int32)
        self.words = bitmask.view(np.uint32)[0]
        self.fill = partial(guide.write_mask_into, bitmask.ctypes.data, bitmask.size, bitmask.itemsize)
        self.advance = partial(guide.advance, return_tokens=False)

    def failure(self) -> str:
        return ""


class Engine:
    package = "outlines-core"
    grammar = f"regular expression, depth {DEPTH}"

    def load_vocabulary(self, work: Work) -> None:
        self.n_words = work.n_words
        self.byte_ids = work.byte_ids
        ids: dict[bytes, list[int]] = {}
        for token, text in enumerate(work.tokens):
            if text and token not in work.eos:
                ids.setdefault(text, []).append(token)
        self.vocabulary = outlines_core.Vocabulary(work.eos[0], ids)

    def compile(self, work: Work) -> None:
        if work.name != "json":
            raise UnsupportedError("regular languages only")
        self.index = outlines_core.Index(json_expression(DEPTH), self.vocabulary)

    def compile_schema(self, schema: str, lenient: bool = False) -> None:
        if lenient:
            raise UnsupportedError("no such option")
        try:
            expression = outlines_core.json_schema.build_regex_from_schema(schema)
            self.index = outlines_core.Index(expression, self.vocabulary)
        except (TypeError, ValueError) as error:
            raise UnsupportedError(str(error)) from error

    def reads(self, data: bytes) -> bool:
        guide = outlines_core.Guide(self.index)
        try:
            for byte in data:
                guide.advance(self.byte_ids[byte], return_tokens=False)
        except ValueError:  # the token is not allowed
            return False
        return bool(guide.is_finished())

    def matcher(self) -> Matcher:
        return Matcher(outlines_core.Guide(self.index), self.n_words)

    def batch(self, n: int) -> None:
        raise UnsupportedError("no batch call")
