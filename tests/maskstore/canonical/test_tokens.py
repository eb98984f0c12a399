"""Canonical sequences of real tokenizers, against their own encoders."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shares import share

from maskwright.analysis.errors import MaskwrightError, VocabularyError
from maskwright.maskstore.canonical import CanonicalTokens, load_canonical
from maskwright.maskstore.vocabulary import load_vocabulary
from maskwright.maskstore.vocabulary.encoders import load_encoder

NAMES = (
    "python-tiny",
    pytest.param("mistral-7b-v0.1", marks=pytest.mark.slow),
    pytest.param("tekken", marks=pytest.mark.slow),
)
PACKAGE = {"python-tiny": "tokenizers", "mistral-7b-v0.1": "sentencepiece", "tekken": "tiktoken"}
TEXTS = (
    "def f(x):\n    return x + 1  # no  more\n\n\n",
    '{"name": "Zoë", "n": [1.5e-3, 20000],\t"ok": true}',
    "It's we'll THEY'RE naïve façade 漢字かな交じり文 🙂🙂 \u0301\u0301 ﬁ ½ ²³",
    "   leading,  trailing   ",
    "\r\n\r\n\t\tx\n \n  \n",
    "aaaaaaaaaaaaaaaaaaaaaaaaa !!!!!!!!!!!!!!! ========== ----------",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U0001f468\u200d\U0001f469\u200d\U0001f467 \ue000\uffff",
)


@functools.cache
def canonical(name: str) -> CanonicalTokens:
    pytest.importorskip(PACKAGE[name])
    return load_canonical(name)


def encode(name: str) -> Callable[[str], list[int]]:
    """The tokenizer in the middle of a text. SentencePiece puts a blank before a text, so a line feed comes first."""
    tokenize = load_encoder(name).tokenize
    return (lambda text: tokenize("\n" + text)[2:]) if name == "mistral-7b-v0.1" else tokenize


def bits(tokens: CanonicalTokens, state: Any) -> list[int]:
    row = np.unpackbits(tokens.row(state.spot).view(np.uint8), bitorder="little")
    return [token for token in np.flatnonzero(row).tolist() if tokens.vocabulary.tokens[token]]


@pytest.mark.parametrize("name", NAMES)
def test_the_tokenizers_own_tokens_stay_allowed(name: str) -> None:
    tokens, tokenize = canonical(name), encode(name)
    rng = random.Random(1)
    words = " ".join(TEXTS).split(" ")
    texts = [*TEXTS, *(" ".join(rng.choices(words, k=12)) for _ in range(20)), Path(__file__).read_text("utf-8")]
    for text in texts:
        state = tokens.start()
        for token in tokenize(text):
            assert state.is_canonical(token), (text, tokens.vocabulary.tokens[token])
            state.advance(token)
        assert state.can_end()


@pytest.mark.parametrize("seed", share(range(60), 3))
@pytest.mark.parametrize("name", NAMES)
def test_what_the_rows_allow_is_what_the_tokenizer_makes(name: str, seed: int) -> None:
    tokens, tokenize = canonical(name), encode(name)
    rng = random.Random(seed)
    compared = 0
    while compared < 4:
        state = tokens.start()
        found: list[int] = []
        for _ in range(rng.randint(1, 10)):
            row = bits(tokens, state)
            some = rng.sample(row, min(8, len(row)))
            found.append(
                min(some, key=lambda token: len(tokens.vocabulary.tokens[token])) if rng.random() < 0.5 else some[0]
            )
            state.advance(found[-1])
        try:
            text = b"".join(tokens.vocabulary.tokens[token] for token in found).decode()
        except UnicodeDecodeError:
            continue  # the last character is not whole
        if state.can_end():
            assert tokenize(text) == found
            compared += 1


@pytest.mark.parametrize("name", NAMES)
def test_other_spellings_are_refused(name: str) -> None:
    tokens, tokenize = canonical(name), encode(name)
    by_text = {
        data: token
        for token, data in enumerate(tokens.vocabulary.tokens)
        if data and token not in tokens.vocabulary.byte_pieces
    }
    rng = random.Random(3)
    refused = 0
    for text in TEXTS:
        own = tokenize(text)
        for _ in range(20):
            index = rng.randrange(len(own))
            data = tokens.vocabulary.tokens[own[index]]
            cut = rng.randrange(len(data)) if data else 0
            left, right = by_text.get(data[:cut]), by_text.get(data[cut:])
            if left is None or right is None:
                continue
            state = tokens.start()
            for token in [*own[:index], left, right, *own[index + 1 :]]:
                if not state.is_canonical(token):
                    refused += 1
                    break
                state.advance(token)
            else:
                assert not state.can_end(), (text, data, cut)
    assert refused > 20


def test_states_go_back_and_fork() -> None:
    state = canonical("python-tiny").start()
    ids = state.tokens.vocabulary.id_of_text
    state.advance(ids[b"d"])
    assert not state.is_canonical(ids[b"e"])
    with pytest.raises(MaskwrightError, match="not canonical here"):
        state.advance(ids[b"e"])
    copy = state.fork()
    state.rollback(1)
    assert state.is_canonical(ids[b"e"])
    assert not copy.is_canonical(ids[b"e"])
    with pytest.raises(MaskwrightError, match="cannot take back 1 tokens of 0"):
        state.rollback(1)
    with pytest.raises(MaskwrightError, match="expected"):
        state.narrow(np.zeros(3, np.int64))
    for mask, why in (([1, 2], "a list; expected an array"), (np.frombuffer(bytes(512), np.int32), "is read-only")):
        with pytest.raises(MaskwrightError, match=why):
            state.narrow(mask)  # type: ignore[arg-type]
    for odd in (-1, 10**9):
        assert not state.is_canonical(odd)


def test_a_mask_is_narrowed_in_place() -> None:
    state = canonical("python-tiny").start()
    ids = state.tokens.vocabulary.id_of_text
    state.advance(ids[b"d"])
    words = np.full((state.tokens.vocabulary.size + 31) // 32, -1, np.int32)
    state.narrow(words)
    assert [bool(words[token >> 5] >> (token & 31) & 1) for token in (ids[b"e"], ids[b"z"])] == [False, True]


def tokenizer_json(**changes: Any) -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    import json

    content: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {},
            "merges": [],
        },
    }
    from maskwright.maskstore.vocabulary.tokenizer_json import byte_level_alphabet

    vocab = {character: byte for character, byte in byte_level_alphabet().items()}
    merges = changes.pop("merges", ["a b", "ab c", "Ġ a"])
    for merge in merges:
        vocab.setdefault(merge.replace(" ", ""), len(vocab))
    for piece in changes.pop("pieces", ()):
        vocab.setdefault(piece, len(vocab))
    content["model"] |= {"vocab": vocab, "merges": merges} | changes.pop("model", {})
    return tokenizers.Tokenizer.from_str(json.dumps(content | changes))


def test_a_tokenizer_json_with_merges_in_pairs() -> None:
    tokens = load_canonical(tokenizer_json())
    ids = tokens.vocabulary.id_of_text
    state = tokens.start()
    state.advance(ids[b"a"])
    assert [state.is_canonical(ids[data]) for data in (b"a", b"b", b"ab", b"abc", b" a")] == [
        True,
        False,
        True,
        True,
        True,
    ]


def test_a_piece_that_is_a_token_is_that_token() -> None:
    tokens = load_canonical(tokenizer_json(pieces=["xyz"], model={"ignore_merges": True}))
    ids = tokens.vocabulary.id_of_text
    state = tokens.start()
    state.advance(ids[b"xyz"])
    assert not state.is_canonical(ids[b"a"])
    assert state.is_canonical(ids[b" "])
    state.rollback(1)
    state.advance(ids[b"a"])
    assert not state.is_canonical(ids[b"xyz"])
    assert not load_canonical(tokenizer_json(pieces=["xyz"])).start().is_canonical(ids[b"xyz"])


def test_a_word_of_tiktoken_that_no_merges_make() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"xyz": 256, b"ab": 257}
    encoding = tiktoken.Encoding("t", pat_str=r"\w+|\W", mergeable_ranks=ranks, special_tokens={})
    tokens = load_canonical(encoding)
    for text, expected in (("xyz xyz", [256, 32, 256]), ("ab xyz!", [257, 32, 256, 33]), ("abxyz", [257, *b"xyz"])):
        assert encoding.encode_ordinary(text) == expected
        state = tokens.start()
        for token in expected:
            assert state.is_canonical(token)
            state.advance(token)
        assert state.can_end()
    state = tokens.start()
    state.advance(256)
    assert not state.is_canonical(ord("a"))


def test_an_added_token_cuts_the_text() -> None:
    added = {
        "id": 259,
        "content": "<sep>",
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": False,
    }
    tokens = load_canonical(tokenizer_json(added_tokens=[added]))
    ids = tokens.vocabulary.id_of_text
    state = tokens.start()
    state.advance(ids[b"a"])
    state.advance(ids[b"<sep>"])
    assert state.is_canonical(ids[b"b"])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"normalizer": {"type": "Lowercase"}}, "a step Lowercase"),
        ({"model": {"dropout": 0.1}}, "dropout is 0.1"),
        (
            {
                "pre_tokenizer": {
                    "type": "Sequence",
                    "pretokenizers": [
                        {"type": "Digits", "individual_digits": True},
                        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
                    ],
                }
            },
            "a step .*Digits",
        ),
    ],
)
def test_other_kinds_of_tokenizers_are_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(VocabularyError, match=why):
        load_canonical(tokenizer_json(**changes))


def test_what_has_no_merges_is_refused() -> None:
    with pytest.raises(VocabularyError, match="the merges of a Vocabulary object cannot be read"):
        load_canonical(load_vocabulary([b"a", b"b"]))
