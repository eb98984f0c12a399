"""The engine against an independent oracle (tests/naive/oracle.py: Python's `re`, Lark's LALR tables), on sampled (prefix, token) pairs.

The prefixes end at random token boundaries of real Python files. At each, half of the tokens are allowed by the mask and half refused;
half of the refused ones begin with a byte that may come, so that it takes more than a look at the first byte to refuse them.

python reports/bench/oracle_agreement.py [--pairs 50000] [--tokenizer mistral-7b-v0.1 tekken]
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import add_data, python_files, write_record
from peers.tokenizers import encoder

import maskwright as mw
from maskwright.analysis.errors import IllegalTokenError
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "naive"))

from oracle import Oracle

LONGEST_FILE = 40_000
POSITIONS_A_FILE = 40
TOKENS_A_POSITION = 16


class Pair(NamedTuple):
    """A token after a prefix. kind : how it was drawn."""

    path: str
    prefix: bytes
    token: bytes
    is_allowed: bool
    kind: str


def python_store(tokenizer: str) -> Store:
    """python.lark as it is loaded: lexing longest, all actions of a conflict followed. The oracle does what the grammar says."""
    return compile_store(mw.load_grammar("lark:python"), mw.load_vocabulary(tokenizer))


def prefixes(store: Store, text: str, encode: Any) -> list[tuple[int, int]]:
    """(length of the prefix, the token after it) at every token boundary of a text."""
    tokens = encode(text)
    vocabulary, at, found = store.vocabulary.tokens, 0, []
    data = text.encode()
    for token in tokens:
        piece = vocabulary[token]
        if not data.startswith(piece, at):
            piece = piece.removeprefix(b" ")  # SentencePiece's space before the first word
        found.append((at, token))
        at += len(piece)
    return found if at == len(data) else []


def draw(rng: random.Random, ids: np.ndarray, n: int) -> list[int]:
    return [] if not len(ids) else rng.sample(ids.tolist(), min(n, len(ids)))


def pairs_of(store: Store, path: str, text: str, encode: Any, rng: random.Random) -> Iterator[Pair]:
    tokens, data = store.vocabulary.tokens, text.encode()
    is_text = np.zeros(store.n_words * 32, np.bool_)
    is_text[store.vocabulary.text_ids()] = True
    first_byte = np.array([token[0] if token else 0 for token in tokens] + [0] * (len(is_text) - len(tokens)))
    length = np.array([len(token) for token in tokens] + [0] * (len(is_text) - len(tokens)))
    words = np.zeros(store.n_words, np.uint32)
    matcher = store.matcher()
    fed = 0
    places = prefixes(store, text, encode)
    for at, _ in sorted(rng.sample(places, min(POSITIONS_A_FILE, len(places)))):
        try:
            matcher.advance_bytes(data[fed:at])
        except IllegalTokenError:
            return  # python.lark refuses the file; the positions before are good
        fed = at
        matcher.fill(words)
        allowed = np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.bool_) & is_text
        may_begin = np.zeros(256, np.bool_)
        may_begin[first_byte[allowed]] = True
        refused = is_text & ~allowed
        quarter = TOKENS_A_POSITION // 4
        for kind, group, n in (
            ("allowed", allowed, quarter),
            ("allowed, long", allowed & (length >= 4), quarter),
            ("refused", refused, quarter),
            ("refused, begins well", refused & may_begin[first_byte], quarter),
        ):
            for token in draw(rng, np.flatnonzero(group), n):
                yield Pair(path, data[:at], tokens[token], bool(allowed[token]), kind)


def compare(store: Store, tokenizer: str, n_pairs: int, seed: int = 0) -> tuple[dict[str, Any], list[Pair]]:
    """Facts, and the pairs on which engine and oracle disagree."""
    encode, rng = encoder(tokenizer), random.Random(seed)
    oracle = Oracle(store.grammar)
    records = [record for record in python_files() if len(record["text"].encode()) <= LONGEST_FILE]
    rng.shuffle(records)
    kinds: dict[str, int] = {}
    disagreements: list[Pair] = []
    files, begin = 0, time.process_time()
    for record in records:
        files += 1
        for pair in pairs_of(store, record["path"], record["text"], encode, rng):
            kinds[pair.kind] = kinds.get(pair.kind, 0) + 1
            if oracle.is_allowed(pair.prefix, pair.token) != pair.is_allowed:
                disagreements.append(pair)
                print(
                    f"{pair.path}: after ...{pair.prefix[-60:]!r} the engine says {pair.is_allowed} of {pair.token!r}"
                )
        if sum(kinds.values()) >= n_pairs:
            break
    facts = {
        "tokenizer": tokenizer,
        "conflicts": store.grammar.conflicts,
        "files": files,
        "pairs": sum(kinds.values()),
        "by_kind": kinds,
        "disagreements": len(disagreements),
        "cpu_seconds": round(time.process_time() - begin, 1),
    }
    return facts, disagreements


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=50_000, help="pairs in all, over the tokenizers")
    parser.add_argument("--tokenizer", nargs="+", default=["mistral-7b-v0.1", "tekken"])
    add_data(parser)
    arguments = parser.parse_args()
    found = []
    failed = False
    for tokenizer in arguments.tokenizer:
        facts, disagreements = compare(python_store(tokenizer), tokenizer, arguments.pairs // len(arguments.tokenizer))
        print(facts)
        shown = [
            [pair.path, pair.prefix[-60:].decode(errors="replace"), repr(pair.token), pair.kind]
            for pair in disagreements
        ]
        found.append(facts | {"disagreeing": shown})
        failed |= bool(disagreements)
    command = f"python reports/bench/oracle_agreement.py --pairs {arguments.pairs} --tokenizer {' '.join(arguments.tokenizer)}"
    write_record("oracle_agreement", command, {"comparisons": found})
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
