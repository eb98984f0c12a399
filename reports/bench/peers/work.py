"""The work that all engines get: real documents as tokens, written to a folder that the engines' processes read."""

from __future__ import annotations

import json
import random
import shutil
import sysconfig
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from common import has_records, python_files, shared_records
from lark import Lark
from lark.exceptions import LarkError
from lark.indenter import PythonIndenter

import maskwright as mw
from peers.tokenizers import model_file

SEED = 2026
LONGEST = 4_000
"""Tokens: longer documents are left out, so that a few of them are not the whole measurement."""
LEAST = 160
"""Documents, so that a batch of 128 has different ones."""

NAMES = ("python", "json")


@cache
def _python_parser() -> Lark:
    return Lark.open_from_package(
        "lark", "python.lark", ["grammars"], parser="lalr", postlex=PythonIndenter(), start="file_input"
    )


def takes_python(record: dict[str, Any]) -> bool:
    """Whether Lark's own parser takes a Python file with python.lark; the evaluation data says so itself."""
    if "lark_python_lark_1_3_1" in record:
        return bool(record["lark_python_lark_1_3_1"])
    try:
        _python_parser().parse(record["text"])
    except LarkError:
        return False
    return True


def python_documents(corpus: str) -> Iterator[tuple[str, str]]:
    """Files that Lark's own parser takes with python.lark: by turns from the evaluation data and from the running CPython's library."""
    chosen = random.Random(SEED)
    files: list[list[tuple[str, dict[str, Any] | Path]]] = []
    if corpus == "shared" or (corpus == "both" and has_records("source/python")):
        files.append(
            [(record["id"], record) for record in python_files() if record.get("lark_python_lark_1_3_1", True)]
        )
    if corpus in ("both", "stdlib"):
        library = Path(sysconfig.get_path("stdlib"))
        paths = sorted(p for p in library.glob("*.py")) + sorted(p for p in library.glob("[a-su-z]*/*.py"))
        paths = [p for p in paths if "site-packages" not in p.parts and p.stat().st_size < 4 * LONGEST]
        files.append([(f"stdlib/{p.relative_to(library)}", p) for p in paths])
    for group in files:
        chosen.shuffle(group)
    for number in range(max(map(len, files), default=0)):
        for group in files:
            if number < len(group):
                name, source = group[number]
                try:
                    record = source if isinstance(source, dict) else {"text": source.read_bytes().decode("utf-8")}
                except UnicodeDecodeError:
                    continue
                if takes_python(record):
                    yield name, record["text"]


def json_documents() -> Iterator[tuple[str, str]]:
    """Documents without white space after the value: most engines take nothing but EOS there."""
    records = list(shared_records("source/json"))
    random.Random(SEED).shuffle(records)
    for record in records:
        yield record["id"], record["text"].rstrip()


def exact_tokens(text: str, encode: Callable[[str], list[int]], vocabulary: mw.Vocabulary) -> list[int] | None:
    """The tokenizer's own tokens, if their bytes are exactly the text's: a few texts have characters that it writes otherwise.

    encode : `tokenizers.inner_encoder`, which puts no space before the first word.
    """
    tokens = [int(token) for token in encode(text)]
    return tokens if b"".join(vocabulary.tokens[token] for token in tokens) == text.encode() else None


def write_work(
    folder: Path, name: str, tokenizer: str, encode: Callable[[str], list[int]], corpus: str
) -> dict[str, Any]:
    """Writes work.json with `LEAST` documents; returns counts."""
    vocabulary = mw.load_vocabulary(tokenizer)
    documents: list[tuple[str, list[int]]] = []
    total = inexact = 0
    for document, text in python_documents(corpus) if name == "python" else json_documents():
        tokens = exact_tokens(text, encode, vocabulary)
        if tokens is None:
            inexact += 1
        elif 8 <= len(tokens) <= LONGEST:
            documents.append((document, tokens))
            total += len(tokens)
        if len(documents) >= LEAST:
            break
    write_documents(folder, name, tokenizer, documents)
    return {"documents": len(documents), "tokens": total, "not_reproduced_by_tokenizer": inexact}


def write_documents(folder: Path, name: str, tokenizer: str, documents: list[tuple[str, list[int]]]) -> None:
    """Writes work.json. documents : (name, token ids)."""
    vocabulary = mw.load_vocabulary(tokenizer)
    facts = {
        "name": name,
        "tokenizer": tokenizer,
        "tokens": [token.hex() for token in vocabulary.tokens],
        "special": {str(token): text for token, text in vocabulary.special.items()},
        "eos": list(vocabulary.eos),
        "documents": documents,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "work.json").write_text(json.dumps(facts), encoding="utf-8")
    if tokenizer == "mistral-7b-v0.1":
        shutil.copy(model_file(), folder / "tokenizer.model")
