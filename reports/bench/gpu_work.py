"""What the GPU benchmark decodes: a store, real texts as tokens, and places in them. In: names. Out: `GpuWork`, which a folder can hold.

A folder made by `prepare` is all that a machine with a GPU needs: no tokenizer, no encoder, no evaluation data, no building of stores.
"""

from __future__ import annotations

import ast
import json
import random
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import has_records
from peers import work as peer_work
from peers.engine import GRAMMARS, Work
from peers.tokenizers import BYTES, inner_encoder

import maskwright as mw

Place = tuple[Sequence[int], int]
"""A document's tokens, and how many of them have been read."""


@dataclass(frozen=True)
class Document:
    """tokens : ids. taken : engine -> how many of the tokens it takes from the start; engines that were not asked are missing."""

    name: str
    tokens: list[int]
    taken: dict[str, int]


@dataclass(frozen=True)
class GpuWork:
    """name : "python" or "json". documents : all legal for `store`."""

    name: str
    tokenizer: str
    store: Any
    documents: list[Document]

    @property
    def title(self) -> str:
        return f"{self.name}, V = {self.store.vocabulary.size:,}"

    def for_peers(self, folder: Path) -> Work:
        """The same for the adapters of other engines."""
        vocabulary = self.store.vocabulary
        documents = [(document.name, document.tokens) for document in self.documents]
        return Work(
            self.name,
            self.tokenizer,
            list(vocabulary.tokens),
            dict(vocabulary.special),
            list(vocabulary.eos),
            documents,
            folder,
        )


def byte_vocabulary() -> mw.Vocabulary:
    return mw.Vocabulary(BYTES, (*(bytes([value]) for value in range(256)), b""), {256: "</s>"}, (256,))


def json_of_library() -> Iterator[tuple[str, str]]:
    """JSON where there is no evaluation data: syntax trees of the modules at the top of the running Python's library."""
    for number, path in enumerate(sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))):
        if path.stat().st_size < 8_000:
            text = json.dumps(_tree(ast.parse(path.read_bytes())), indent=(None, 1)[number % 2])
            yield f"ast/{path.name}", text


def _tree(node: Any) -> Any:
    if isinstance(node, ast.AST):
        return {"type": type(node).__name__} | {name: _tree(value) for name, value in ast.iter_fields(node)}
    if isinstance(node, list):
        return [_tree(item) for item in node]
    return node if isinstance(node, str | int | float | bool | None) else repr(node)


def texts(name: str, corpus: str) -> Iterator[tuple[str, str]]:
    """Documents by name. corpus : "both", or "stdlib" for what every Python has."""
    if name == "python":
        yield from peer_work.python_documents(corpus)
    elif corpus == "both" and has_records("source/json"):
        yield from peer_work.json_documents()
    else:
        yield from json_of_library()


def build(name: str, tokenizer: str, tokens: int, corpus: str, longest: int = peer_work.LONGEST) -> GpuWork:
    """Documents of at most `longest` tokens until there are `tokens` of them; those that the store refuses are left out."""
    vocabulary = byte_vocabulary() if tokenizer == BYTES else mw.load_vocabulary(tokenizer)
    encode = inner_encoder(tokenizer)
    source = {"python": "lark:python", "json": str(GRAMMARS / "json.lark")}[name]
    store: Any = mw.cached_store(mw.load_grammar(source, lexing="longest"), vocabulary)
    matcher = store.matcher()
    documents: list[Document] = []
    total = 0
    for document, text in texts(name, corpus):
        found = peer_work.exact_tokens(text, encode, vocabulary)
        if found is None or not 8 <= len(found) <= longest:
            continue
        matcher.reset()
        if matcher.replay(found) < len(found):
            continue
        documents.append(Document(document, found, {}))
        total += len(found)
        if total >= tokens:
            break
    return GpuWork(name, tokenizer, store, documents)


def save(work: GpuWork, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{work.name}-{work.tokenizer}"
    work.store.save(folder / f"{stem}.safetensors")
    facts = {
        "name": work.name,
        "tokenizer": work.tokenizer,
        "documents": [[document.name, document.tokens, document.taken] for document in work.documents],
    }
    (folder / f"{stem}.json").write_text(json.dumps(facts), encoding="utf-8")


def load(folder: Path, name: str, tokenizer: str) -> GpuWork:
    stem = f"{name}-{tokenizer}"
    facts = json.loads((folder / f"{stem}.json").read_text(encoding="utf-8"))
    documents = [Document(*document) for document in facts["documents"]]
    return GpuWork(name, tokenizer, mw.load_store(folder / f"{stem}.safetensors"), documents)


def places(work: GpuWork, n: int, steps: int, prefix: int, seed: int) -> tuple[list[Place], set[str]]:
    """n texts under way with steps + 1 tokens left, each begun at most `prefix` tokens in; and the engines that may refuse some.

    Documents are chosen by how many such places they have. All engines that were asked take them as far as they are read, if there are
    any such documents.
    """
    asked = sorted(set().union(*(document.taken for document in work.documents)))
    needed = list(asked)
    while not (good := _with_room(work, needed, steps)) and needed:
        needed.remove(min(needed, key=lambda engine: len(_with_room(work, [engine], steps))))
    if not good:
        raise SystemExit(f"{work.title}: no document has {steps + 1} tokens; give fewer --steps")
    chosen = random.Random(seed)
    rooms = [min(room, prefix + 1) for _, room in good]
    found = chosen.choices(range(len(good)), rooms, k=n)
    return [(good[i][0].tokens, chosen.randrange(rooms[i])) for i in found], set(asked) - set(needed)


def _with_room(work: GpuWork, engines: Sequence[str], steps: int) -> list[tuple[Document, int]]:
    """Documents of which all these engines take more than `steps` tokens, and in how many places so many are left."""
    taken = [(d, min([len(d.tokens), *(d.taken[engine] for engine in engines)])) for d in work.documents]
    return [(document, n - steps) for document, n in taken if n > steps]
