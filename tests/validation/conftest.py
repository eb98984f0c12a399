"""A small language with layout, a tokenizer for it, its store, right and deliberately wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.vocabulary.encoders import Encoder, load_encoder
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

LINES = r"""
start: (statement | _NEWLINE)*
statement: NAME "=" value _NEWLINE
         | "if" value ":" _NEWLINE _INDENT statement+ _DEDENT
value: NAME | "(" value ")" | STRING
NAME: /[a-zé]+/
STRING: /"[^"\n]*"/
COMMENT: /#[^\n]*/
_NEWLINE: ( /\r?\n[ ]*/ | COMMENT )+
%ignore " "
%ignore COMMENT
%declare _INDENT _DEDENT
"""

TEXTS = {
    "plain": 'abc = (x)\nif abc:\n  y = "é ü"\n  z = ((y))\n\nx = y\n',
    "comment": "# one\n\nx = y # two\n",
    "empty": "",
    "deep": "if a:\n if b:\n  if c:\n   x = y\nz = x\n",
}
OUTSIDE = {"operator": "x = y\nz = x + y\n", "unfinished": "x = (y\n", "no end": "x = y"}


@pytest.fixture(scope="session")
def grammar() -> Grammar:
    return parse_grammar(LINES, name="lines", lexing="longest")


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A byte-level tokenizer.json with a few merges."""
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<eos>": 0} | {character: i for i, character in enumerate(alphabet, start=1)}
    merges = [
        ("i", "f"), ("Ġ", "="), ("Ġ=", "Ġ"), ("a", "b"), ("ab", "c"), (":", "Ċ"), ("Ġ", "Ġ"), (")", "Ċ"), ("x", "Ċ"),
        ("abc", "abc"),
    ]  # fmt: skip
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    built = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
    built.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    built.decoder = tokenizers.decoders.ByteLevel()
    built.add_special_tokens(["<eos>"])
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    built.save(str(path))
    return str(path)


@pytest.fixture(scope="session")
def encoder(tokenizer: str) -> Encoder:
    return load_encoder(tokenizer)


@pytest.fixture(scope="session")
def store(grammar: Grammar, encoder: Encoder) -> Store:
    return compile_store(grammar, encoder.vocabulary)


@pytest.fixture(scope="session")
def wrong_store(store: Store) -> Store:
    """A store whose tables were made for another vocabulary: it takes the token of `abc` for that of `)` and a line feed."""
    tokens = list(store.vocabulary.tokens)
    first, second = tokens.index(b"abc"), tokens.index(b")\n")
    tokens[first], tokens[second] = tokens[second], tokens[first]
    swapped = dataclasses.replace(store.vocabulary, tokens=tuple(tokens))
    return dataclasses.replace(compile_store(store.grammar, swapped), vocabulary=store.vocabulary)


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Path]:
    """A folder with all the texts."""
    folder = tmp_path / "corpus"
    (folder / "more").mkdir(parents=True)
    for name, text in (TEXTS | OUTSIDE).items():
        (folder / "more" / f"{name}.txt").write_bytes(text.encode())
    yield folder
