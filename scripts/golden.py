"""Digests of what every kind of constraint allows and how it ends, for those who rebuild the engine: nothing of it may change.

    python scripts/golden.py            # compare with tests/data/golden.json; exit code 1 where something differs
    python scripts/golden.py --write    # after a change that is meant: write the digests anew
    python scripts/golden.py json lark  # only those whose name contains one of the words

All bundled grammars, the first 200 schemas of SchemaStore in ../shared/data, and compositions and structural tags of all styles, each
with two vocabularies. A text is a walk of STEPS tokens drawn from the masks. There is a digest of every mask on the way, and one of some
endings.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import random
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

import maskwright as mw
from maskwright.analysis.loading.names import known_grammars
from maskwright.maskstore.vocabulary.masks import n_words, tokens_of
from maskwright.models import model_folder

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tests" / "data" / "golden.json"
SCHEMAS = ROOT.parent / "shared" / "data" / "jsonschema" / "schemastore.jsonl.xz"
N_SCHEMAS, WALKS, STEPS, ENDINGS = 200, 2, 24, 8
"""A walk's ending is asked for each ENDINGS steps."""

TAGS = ROOT / "tests" / "data" / "cases" / "structural_tags.json"
HOSTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "fence": (
        'start: PROSE "```json\\n" ANSWER "\\n```\\n"\nPROSE: /[^`]+/\n%declare ANSWER',
        {"ANSWER": {"type": "object"}},
    ),
    "code": ('start: "<code>" CODE "</code>"\n%declare CODE', {"CODE": "python"}),
    "sql": (
        {"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]},
        {"/properties/sql": "sql"},
    ),
}


def constraints() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The name of each constraint, and what loads it."""
    for name in known_grammars():
        yield f"grammar {name}", partial(mw.load_grammar, name)
    for name, (host, parts) in HOSTS.items():
        yield f"composition {name}", partial(mw.compose, host, parts)
    for case in json.loads(TAGS.read_text(encoding="utf-8")):
        yield f"tag {case['model']} {case['choice']}", partial(mw.read_structural_tag, case["tag"])
    if not SCHEMAS.exists():
        print(f"no schemas are compared: there is no {SCHEMAS}", file=sys.stderr)
        return
    with lzma.open(SCHEMAS, "rt", encoding="utf-8") as lines:
        for number, line in zip(range(N_SCHEMAS), lines, strict=False):
            yield f"schema {number}", partial(mw.load_schema, json.loads(line)["schema"])


def digest(store: Any, name: str) -> str:
    """16 hexadecimal digits of the masks of some walks, and 16 of their endings."""
    masks, endings = hashlib.blake2b(digest_size=8), hashlib.blake2b(digest_size=8)
    words = np.zeros(n_words(store.vocabulary.size), np.uint32)
    for walk in range(WALKS):
        rng = random.Random(zlib.crc32(f"{name} {walk}".encode()))
        matcher = store.matcher()
        for step in range(STEPS):
            matcher.fill(words)
            masks.update(words.tobytes())
            if step % ENDINGS == 0:
                endings.update(_ending(matcher.short_ending) + _ending(matcher.forced_bytes))
            matcher.advance(int(rng.choice(tokens_of(words))))
            if matcher.is_finished():
                break
        masks.update(bytes([matcher.is_accepting()]))
    return f"{masks.hexdigest()} {endings.hexdigest()}"


def _ending(ask: Callable[[], Any]) -> bytes:
    try:
        answer = ask()
    except mw.MaskwrightError as error:
        return type(error).__name__.encode()
    return answer if isinstance(answer, bytes) else answer.data


def main() -> int:
    """Compare or write all digests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("words", nargs="*", help="only constraints whose names contain one of these")
    options = parser.parse_args()
    console = Console(stderr=True)
    found: dict[str, str] = {}
    vocabularies = [mw.load_vocabulary(model_folder()), mw.load_vocabulary("mistral-7b-v0.1")]
    chosen = [
        (name, load) for name, load in constraints() if not options.words or any(word in name for word in options.words)
    ]
    for name, load in track(chosen, "digests", console=console, disable=not console.is_terminal):
        try:
            constraint = load()
        except mw.MaskwrightError as error:
            found[name] = type(error).__name__
            continue
        for vocabulary in vocabularies:
            key = f"{name} x {vocabulary.name}"
            try:
                found[key] = digest(mw.build_store(constraint, vocabulary), name)
            except mw.MaskwrightError as error:
                found[key] = type(error).__name__
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    if options.write:
        RECORD.write_text(json.dumps(known | found if options.words else found, indent=0) + "\n", encoding="utf-8")
        return 0
    differ = [key for key in found if known.get(key) != found[key]]
    for key in differ:
        print(f"differs: {key}: {known.get(key)} before, {found[key]} now")
    print(f"{len(found) - len(differ)} of {len(found)} digests are as before")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
