"""A small store for tests, store files taken apart and put together again, and the committed files under data/stores.

Run as a script to write the committed files, which is due only when the format's version is raised: files of the old
version are then kept beside the new ones, to be refused.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mask_bits import ids
from paths import TESTS
from safetensors import safe_open
from safetensors.numpy import load_file, save

import maskwright as mw
from maskwright.analysis.errors import StoreError
from maskwright.analysis.grammar import Grammar, Lexing
from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.file.fileformat import FORMAT_VERSION, save_store
from maskwright.maskstore.table.check import check_table
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_entry_store, compile_store
from maskwright.stores.entry_store import EntryStore
from maskwright.stores.store import Store, load_store

COMMITTED = TESTS / "data" / "stores"

LAYOUT_TEXT = r"""
start: (statement | _NEWLINE)+
statement: NAME "=" value _NEWLINE
         | "if" value ":" _NEWLINE _INDENT statement+ _DEDENT
value: NAME | "(" value ")"
NAME: /[ab]+/
COMMENT: /#[ab]*/
_NEWLINE: /(\r?\n[ ]*)+/
%ignore " "
%ignore COMMENT
%declare _INDENT _DEDENT
"""

AMBIGUOUS_TEXT = 'start: start "=" start | "(" start ")" | /[ab]+/ | "if" start | "if" start "(" start\n%ignore " "'

CONTEXTUAL_TEXT = """
start: (p | q)+
p: "(" /[ab]/ ")"
q: "=" ("abb" | "a" | "bf") (/b/ | "bi")* ":"
"""

PLAIN_TEXT = 'start: "a" start "b" | "a" "b"'

Facts = dict[str, Any]
Tensors = dict[str, np.ndarray]


@functools.cache
def layout_grammar() -> Grammar:
    return parse_grammar(LAYOUT_TEXT, name="lines", lexing="nfa")


@functools.cache
def small_vocabulary() -> Vocabulary:
    """110 ids: what the grammars' texts are made of, longer tokens, a special one among them, and padding at the end."""
    texts = [
        "a", "b", "=", "(", ")", ":", " ", "\n", "\r", "#", "i", "f", "if", "if a", "a=b", "\n  ", "\n\n", ":\n ",
        "ab", "é",
    ]  # fmt: skip
    tokens = [text.encode() for text in texts]
    tokens += [b"ab"[i % 2 : i % 2 + 1] * (2 + i // 2) for i in range(30)]
    return Vocabulary("small", (*tokens[:18], b"", *tokens[18:], *[b""] * 59), {18: "</s>"}, (18,))


COMMITTED_TOKENS = (b"if a", b":\n ", b"a=b", b"\n")
"""What the tests of the committed stores read."""
COMMITTED_ALLOWED = [
    sorted(["\n", "\n\n", "\n  ", "\r", " ", "#", "a", "a=b", "ab", "b", "i", "if", "if a"]),
    sorted([" ", "#", ":", ":\n ", "a", "ab", "b"]),
    sorted(["\n", "\n\n", "\n  ", "\r", " ", "#", "a", "a=b", "ab", "b", "i", "if", "if a"]),
    sorted(["\n", "\n\n", "\n  ", "\r", " ", "#", "a", "ab", "b"]),
    sorted(["\n", "\n\n", "\n  ", "\r", " ", "#", "</s>", "a", "a=b", "ab", "b", "i", "if", "if a"]),
]
"""`short_allowed` before the first of `COMMITTED_TOKENS`, and after each."""


def short_allowed(words: np.ndarray) -> list[str]:
    """The allowed tokens but the long rows of a and b, which NAME takes as it takes a and b.

    words : (n_words,) uint32; a mask of `small_vocabulary`.
    """
    vocabulary = small_vocabulary()
    allowed = sorted(ids(words))
    texts = [vocabulary.special.get(token) or vocabulary.tokens[token].decode() for token in allowed]
    return sorted(text for text in texts if not re.fullmatch("aa+|bb+", text))


def flipped(store: Store, at: int, value: int) -> Store:
    """A store with one integer of its table changed."""
    table = store.table.copy()
    assert table[at] != value
    table[at] = value
    check_table("x", store.grammar, store.vocabulary, table)
    return Store(store.grammar, store.vocabulary, table, store.counts)


@functools.cache
def small_store(streamlined: bool = True, has_layout: bool = True) -> EntryStore:
    grammar = layout_grammar() if has_layout else parse_grammar(PLAIN_TEXT, name="pairs", lexing="nfa")
    return compile_entry_store(grammar, small_vocabulary(), streamlined=streamlined)


@functools.cache
def small_automaton(name: str = "lines") -> Store:
    """With layout ("lines"), with LALR conflicts ("sums"), and with contextual lexing that backs up ("modes")."""
    text = {"lines": LAYOUT_TEXT, "sums": AMBIGUOUS_TEXT, "modes": CONTEXTUAL_TEXT}[name]
    lexing: Lexing = "contextual" if name == "modes" else "longest"
    return compile_store(parse_grammar(text, name=name, lexing=lexing), small_vocabulary())


def read_parts(path: Path) -> tuple[Facts, Tensors]:
    """The JSON and the tensors of a store file, without any of its checks."""
    with safe_open(path, framework="numpy") as file:
        facts = json.loads(file.metadata()["maskwright"])
    return facts, load_file(path)


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def content_digest(facts: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> str:
    """The member `sha256` as the format's text says, not as the package does it."""
    parts = [canonical({key: facts[key] for key in facts if key != "sha256"}).encode()]
    for name in sorted(tensors.keys() - {"table"}):
        array = tensors[name]
        parts += [f"\n{name} {array.dtype.str} {','.join(str(n) for n in array.shape)}\n".encode(), array.tobytes()]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def write_parts(path: Path, facts: Facts, tensors: Tensors) -> None:
    """A store file of such parts, with hashes that agree with them, so that only other checks can refuse it."""
    if "grammar" in facts:
        facts["grammar_sha256"] = hashlib.sha256(canonical(facts["grammar"]).encode()).hexdigest()
    facts["sha256"] = content_digest(facts, tensors)
    arrays = {name: np.asarray(array).copy(order="C") for name, array in tensors.items()}
    path.write_bytes(save(arrays, {"maskwright": canonical(facts)}))


def framed(header: str, body: bytes = b"") -> bytes:
    """A safetensors file of a header and the bytes after it."""
    return struct.pack("<Q", len(header.encode())) + header.encode() + body


def bytes_vocabulary() -> Vocabulary:
    return Vocabulary.from_tokens([b"", *(bytes([byte]) for byte in range(256)), b'{"', b'":'], eos=[0])


def composed() -> Any:
    """A composition of all that a part may be written in."""
    host = 'start: "x=" VALUE "." TEXT\n%declare VALUE TEXT'
    parts = {"VALUE": {"type": "integer"}, "TEXT": mw.in_json_string('start: "select " /[a-z]+/')}
    return mw.build_store(mw.compose(host, parts), bytes_vocabulary())


EVERY_KIND: dict[str, Callable[[], Any]] = {
    "entries": small_store,
    "lines": small_automaton,
    "sums": lambda: small_automaton("sums"),
    "modes": lambda: small_automaton("modes"),
    "schema": lambda: mw.build_store(mw.load_schema({"properties": {"a": {"maxLength": 3}}}), bytes_vocabulary()),
    "pattern": lambda: mw.build_store(mw.load_regex("(ab|ba){2}c?"), bytes_vocabulary()),
    "composition": composed,
    "tag": lambda: mw.build_store(
        mw.read_structural_tag({"type": "structural_tag", "format": {"type": "any_text", "excludes": ["ab"]}}),
        bytes_vocabulary(),
    ),
}
"""A store of each kind that has files of its own."""


def refusal(path: Path, read: Callable[[Path], object] = load_store) -> str:
    """What StoreError says of a file; the test fails if it is read, or not named."""
    with pytest.raises(StoreError) as caught:
        read(path)
    message = str(caught.value)
    assert path.name in message and len(message) < 1000
    return message


def write_committed_stores() -> None:
    """Write data/stores: a store of each kind of this version, and a copy that says that it is of version 7."""
    path = COMMITTED / f"version-{FORMAT_VERSION}.safetensors"
    save_store(small_store(), path)
    save_store(small_automaton(), COMMITTED / f"version-{FORMAT_VERSION}-automaton.safetensors")
    facts, tensors = read_parts(path)
    write_parts(COMMITTED / "version-7.safetensors", facts | {"version": 7}, tensors)


if __name__ == "__main__":
    write_committed_stores()
