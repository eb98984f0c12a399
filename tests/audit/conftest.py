"""Lists of words: grammar, vocabulary, texts, store, and an engine of them that can be made wrong (`lists_engine`)."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from maskwright.analysis.loading import parse_grammar
from maskwright.audit import AuditReport, audit
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.encoders import Encoder
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

HERE = Path(__file__).parent


class Longest:
    """An encoder's function: the longest tokens from the left."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.encoder = Encoder(vocabulary, lambda text: [])

    def __call__(self, text: str) -> list[int]:
        return self.encoder.longest_tokens(text.encode())


def make_encoder(*longer: str) -> Encoder:
    """All bytes, some longer tokens, an end of text, and an id that stands for nothing."""
    tokens = (b"", *(bytes([i]) for i in range(256)), *(text.encode() for text in longer), b"")
    vocabulary = Vocabulary("bytes", tokens, {0: "</s>"}, (0,))
    return Encoder(vocabulary, Longest(vocabulary))


@pytest.fixture(scope="session")
def encoder_with() -> Callable[..., Encoder]:
    return make_encoder


@pytest.fixture(scope="session")
def lists_engine() -> ModuleType:
    return load_engine("lists_engine")


@pytest.fixture(scope="session")
def forcing_engine() -> ModuleType:
    return load_engine("forcing_engine")


def load_engine(name: str) -> ModuleType:
    """An engine's module beside this file, which its own process finds by PYTHONPATH."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    return make_encoder("]]", "],", "ab", "[[", ", ", "a]", ",,", "bc")


@pytest.fixture(scope="session")
def store(lists_engine: ModuleType, encoder: Encoder) -> Store:
    return compile_store(parse_grammar(lists_engine.GRAMMAR, name="lists"), encoder.vocabulary)


@pytest.fixture
def corpus(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A file with the texts of the module that asks."""
    path = tmp_path / "lists.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in request.module.TEXTS))
    return str(path)


@pytest.fixture
def run_case(
    lists_engine: ModuleType, encoder: Encoder, store: Store, corpus: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., AuditReport]:
    """The audit of the engine as a case makes it wrong."""
    monkeypatch.setenv("PYTHONPATH", str(HERE))

    def run(engine: str = "lists_engine:make", case: dict[str, Any] | None = None, **options: Any) -> AuditReport:
        monkeypatch.setenv("LISTS_CASE", json.dumps(case or {}))
        options = {"tokenizer": encoder, "grammar_text": lists_engine.GRAMMAR, "paths": corpus, **options}
        return audit(store, options.pop("paths"), engine, **options)

    return run
