"""Canonical sequences with special tokens, which cut a text, against encoders that know them."""

from __future__ import annotations

import io
import random
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwright.analysis.errors import VocabularyError
from maskwright.maskstore.canonical import CanonicalTokens, load_canonical
from maskwright.maskstore.vocabulary import load_vocabulary

WORDS = ("def", "a", "b", "ab", " ", "  ", "\n", "x", "é", "日", "7", "don't", " def", "self.", "aa", "_")


def texts(marks: Iterable[str], seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    parts = [*WORDS, *marks, *marks]
    return ["".join(rng.choices(parts, k=rng.randint(1, 12))) for _ in range(200)]


def check(tokens: CanonicalTokens, ids: list[int], text: str) -> None:
    state = tokens.start()
    for token in ids:
        assert state.is_canonical(token), (text, ids, token)
        state.advance(token)
    assert state.can_end()


def small(kind: str) -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    import small_tokenizers

    if kind.startswith("byte level"):
        tokenizer = small_tokenizers.byte_level()
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=kind.endswith("blank"))
        return tokenizer
    tokenizer = small_tokenizers.byte_fallback()
    if kind.startswith("metaspace"):
        tokenizer.normalizer = None
        cut = tokenizers.pre_tokenizers.Metaspace(prepend_scheme=kind.split()[1], split=kind.endswith("split"))
        tokenizer.pre_tokenizer = cut
    return tokenizer


@pytest.mark.parametrize(
    "kind",
    [
        "byte level",
        "byte level, first a blank",
        "byte fallback",
        "metaspace always",
        "metaspace first",
        "metaspace never",
        "metaspace first split",
        "metaspace always split",
    ],
)
def test_what_tokenizers_write_around_special_tokens_stays_allowed(kind: str) -> None:
    tokenizer = small(kind)
    tokens = load_canonical(tokenizer)
    marks = ("<|endoftext|>", "<|im_end|>", "<tool>") if kind.startswith("byte level") else ("<s>", "</s>")
    seen = set()
    for text in texts(marks):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        seen.update(ids)
        check(tokens, ids, text)
    assert {tokenizer.token_to_id(mark) for mark in marks} <= seen


def test_what_tiktoken_writes_around_special_tokens_stays_allowed() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"  ": 257, b"de": 258, b"def": 259}
    special = {"<|endoftext|>": 260, "<|tool|>": 261}
    encoding = tiktoken.Encoding("t", pat_str=r"\s+(?!\S)|\s?\w+|\s+|\W", mergeable_ranks=ranks, special_tokens=special)
    tokens = load_canonical(encoding)
    for text in texts(special):
        check(tokens, encoding.encode(text, allowed_special="all"), text)


@pytest.fixture(scope="module")
def processor() -> Any:
    sentencepiece = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(Path(__file__).read_text("utf-8").splitlines()),
        model_writer=model,
        vocab_size=500,
        model_type="bpe",
        byte_fallback=True,
        user_defined_symbols=["<tool>", "▁▁", "self.", "aa"],
        control_symbols=["<call>"],
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def test_what_sentencepiece_writes_around_special_tokens_stays_allowed(processor: Any) -> None:
    tokens = load_canonical(processor)
    call = processor.piece_to_id("<call>")
    for text in texts(("<tool>", "<call>")):
        ids = []
        for number, part in enumerate(text.split("<call>")):  # no text has a control symbol
            # behind a line feed no blank is put before a text
            ids += [*[call] * bool(number), *processor.encode("\n" + part)[2:]]
        check(tokens, ids, text)


def test_special_tokens_come_where_a_text_may_end() -> None:
    tokens = load_canonical(small("byte level"))
    ids = tokens.vocabulary.id_of_text
    mark = next(token for token, name in tokens.vocabulary.special.items() if name == "<|im_end|>")
    state = tokens.start()
    for token in (ids[b" "], ids["é".encode()[:1]]):
        assert state.is_canonical(mark)
        state.advance(token)
    assert not state.is_canonical(mark)  # within a character
    state.advance(ids["é".encode()[1:]])
    state.advance(mark)
    assert state.spot == tokens.start().spot
    assert b"" not in tokens.id_of_text


@pytest.mark.parametrize("kind", ["json", "sentencepiece"])
def test_tokens_that_are_added_beside_the_tokenizers_file(kind: str, processor: Any, tmp_path: Path) -> None:
    if kind == "json":
        small("byte level").save(str(tmp_path / "tokenizer.json"))
    else:
        (tmp_path / "tokenizer.model").write_bytes(processor.serialized_model_proto())
    size = load_vocabulary(tmp_path).size
    (tmp_path / "added_tokens.json").write_text(f'{{"<more>": {size}}}')
    tokens = load_canonical(tmp_path)
    assert tokens.vocabulary.tokens[size] == b"<more>"
    state = tokens.start()
    for data in (b"<", b"<more>", b"<", b"<more>"):
        token = tokens.id_of_text[data][-1]  # byte pieces are first
        assert state.is_canonical(token)
        state.advance(token)


def test_a_text_of_its_own_begins_behind_end_of_text() -> None:
    tokens = load_canonical("python-tiny")
    ids = tokens.vocabulary.id_of_text
    state = tokens.start()
    state.advance(ids[b"d"])
    assert not state.is_canonical(ids[b"e"])
    state.advance(tokens.vocabulary.eos[0])
    assert state.is_canonical(ids[b"e"])


def test_an_encoder_that_does_not_know_all_characters_is_refused() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    vocab = {piece: token for token, piece in enumerate(["<unk>", "▁", *map(chr, range(33, 127))])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=[], unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.decoder = tokenizers.decoders.Metaspace()
    tokenizer.add_special_tokens(["<unk>"])
    with pytest.raises(VocabularyError, match="own token 0"):
        load_canonical(tokenizer)


def test_masks_of_more_ids_are_narrowed_to_those_that_the_tokenizer_has() -> None:
    tokens = load_canonical("python-tiny")
    state = tokens.start()
    size = (tokens.vocabulary.size + 31) // 32
    row = tokens.row(state.spot)
    for more in (-1, 0, 2):
        words = np.full(size + more, -1, np.int32)
        state.narrow(words)
        assert np.array_equal(words[:size].view(np.uint32), row[: len(words)])
        assert not words[size:].any()
    padded = load_vocabulary([*tokens.vocabulary.tokens, *[b""] * 64], eos=list(tokens.vocabulary.eos))
    tokens.check_belongs(padded)


class Slow(dict[Any, int]):
    """A dictionary that lets other threads go on while it is read."""

    def get(self, *key: Any) -> Any:
        time.sleep(0.002)
        return super().get(*key)

    def setdefault(self, *key: Any) -> Any:
        time.sleep(0.002)
        return super().setdefault(*key)


def test_threads_share_canonical_tokens() -> None:
    from maskwright.maskstore.vocabulary.encoders import load_encoder

    tokens, tokenize = load_canonical("python-tiny"), load_encoder("python-tiny").tokenize
    known = len(tokens._cuts._by_number)
    tokens._numbers, tokens._guesses = Slow(), []  # as if nothing had been asked before
    for cache in (tokens._rows, tokens._after, tokens._guess_rows):
        cache.clear()
    vars(tokens).pop("_start")
    refused = []

    def follow(text: str) -> None:
        state = tokens.start()
        for token in tokenize(text):
            if not state.is_canonical(token):
                refused.append((text, token))
                return
            state.advance(token)

    for _ in range(2):  # what was numbered wrongly stays
        threads = [
            threading.Thread(target=follow, args=(text,))
            for text in ("def f(x):", "   x = 1 ", "'a' 12", "\n\n  a", "don't", "a ½ é", "\t\tb", "!!  ")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not refused
    assert [tokens._numbers[guesses] for guesses in tokens._guesses] == list(range(len(tokens._guesses)))
    assert len(tokens._cuts._by_number) == known  # all fronts have numbers before a thread asks
