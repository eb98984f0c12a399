"""Encoders: the tokenizer's own ids where they spell the text, the longest ones where they do not, and nothing else."""

from __future__ import annotations

import base64
import json
import pickle
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from maskwright.analysis.errors import VocabularyError
from maskwright.maskstore.vocabulary import encoders
from maskwright.maskstore.vocabulary.encoders import MOST_CHARACTERS, Encoder, check_belongs, load_encoder
from maskwright.maskstore.vocabulary.vocabulary import BUILT_IN, Vocabulary, load_vocabulary

TEXTS = (
    "", "x", " x", "def f(x):\n\treturn x + 1\n", "\n\n    a = 'ü€😀'\r\n", "</s> <s> <|endoftext|> [INST]",
    "\x00\x7f " * 3, "ﬁ ½ Å é\u0301 \u00a0\u3000 ①", "a" * 3000 + " " * 3000 + "\n" * 100,
)  # fmt: skip


@cache
def built_in(name: str) -> Encoder:
    return load_encoder(name)


def bytes_of(vocabulary: Vocabulary, tokens: list[int]) -> bytes:
    return b"".join(vocabulary.tokens[token] for token in tokens)


def tokenizer_json(path: Path, normalizer: Any = None, special: str = "<eos>") -> str:
    """A byte-level tokenizer.json with a few merges, and a normaliser if one is given."""
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {special: 0} | {character: i for i, character in enumerate(alphabet, start=1)}
    merges = [("a", "b"), ("ab", "c"), ("Ġ", "x"), ("a", "a"), ("aa", "aa")]
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    built = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
    if normalizer is not None:
        built.normalizer = normalizer
    built.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    built.decoder = tokenizers.decoders.ByteLevel()
    built.add_special_tokens([special])
    built.save(str(path))
    return str(path)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_built_in_tokenizers_spell_every_text(name: str) -> None:
    pytest.importorskip("mistral_common")
    encoder = built_in(name)
    for text in TEXTS:
        spelling = encoder.exact_tokens(text)
        assert bytes_of(encoder.vocabulary, spelling.tokens) == text.encode()
        assert spelling.respelled <= len(text.encode())
    again = pickle.loads(pickle.dumps(encoder))
    assert [again.encode(text) for text in TEXTS] == [encoder.encode(text) for text in TEXTS]


@pytest.mark.slow
def test_ids_are_the_packages_own() -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    common = pytest.importorskip("mistral_common.tokens.tokenizers.mistral")
    from maskwright.maskstore.vocabulary.tokenizer_files import locate

    text = TEXTS[3] * 20
    processor = sentencepiece.SentencePieceProcessor(model_file=str(locate("mistral-7b-v0.1")[0]))
    assert built_in("mistral-7b-v0.1").encode(text) == processor.encode(text)
    tekken = common.MistralTokenizer.v3(is_tekken=True)
    inner = tekken.instruct_tokenizer.tokenizer
    wanted = inner.encode(text, bos=False, eos=False)
    assert built_in("tekken").encode(text) == wanted
    assert load_encoder(tekken).encode(text) == wanted  # the object


def test_the_blank_before_the_first_word_is_taken_off() -> None:
    pytest.importorskip("sentencepiece")
    encoder = built_in("mistral-7b-v0.1")
    own = encoder.encode("import os\n")
    spelling = encoder.exact_tokens("import os\n")
    assert encoder.vocabulary.tokens[own[0]] == b" import"
    assert encoder.vocabulary.tokens[spelling.tokens[0]] == b"import"
    assert spelling.tokens[1:] == own[1:] and spelling.respelled == len("import")


def test_tokenizer_json(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = tokenizer_json(tmp_path / "tokenizer.json")
    for source in (path, str(tmp_path), tokenizers.Tokenizer.from_file(path)):
        encoder = load_encoder(source)
        tokens = encoder.vocabulary.tokens
        assert [tokens[t] for t in encoder.encode("abc x aaaaaa")] == [b"abc", b" x", b" ", b"aaaa", b"aa"]
        assert encoder.exact_tokens("abc x").respelled == 0
    for text in TEXTS:
        assert bytes_of(encoder.vocabulary, encoder.exact_tokens(text).tokens) == text.encode()


def test_a_text_that_names_a_special_token_is_text(tmp_path: Path) -> None:
    """The package takes `<eos>` in a text for the token; its bytes are none, so what is written is spelled with others."""
    encoder = load_encoder(tokenizer_json(tmp_path / "tokenizer.json"))
    assert 0 in encoder.encode("abc<eos>abc abc abc abc")
    spelling = encoder.exact_tokens("abc<eos>abc abc abc abc")
    assert 0 not in spelling.tokens and spelling.respelled == len("<eos>")
    assert bytes_of(encoder.vocabulary, spelling.tokens) == b"abc<eos>abc abc abc abc"


def test_what_a_normaliser_changes_is_respelled_and_counted(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = tokenizer_json(tmp_path / "tokenizer.json", tokenizers.normalizers.NFKC())
    encoder = load_encoder(path)
    before, after = "abc abcabc abc\n", " abc abc abc abc\n"
    spelling = encoder.exact_tokens(before + "½" + after)
    assert bytes_of(encoder.vocabulary, spelling.tokens) == (before + "½" + after).encode()
    assert spelling.respelled == len("½".encode())
    n = len(encoder.encode(before))
    assert spelling.tokens[:n] == encoder.encode(before) and spelling.tokens[n + 2 :] == encoder.encode(after)
    lowercase = load_encoder(tokenizer_json(tmp_path / "tokenizer.json", tokenizers.normalizers.Lowercase()))
    text = "ABC" * 2000 + "abc"  # nothing alike within reach
    spelling = lowercase.exact_tokens(text)
    assert bytes_of(lowercase.vocabulary, spelling.tokens) == text.encode() and spelling.respelled == len(text)


@pytest.mark.parametrize("seed", range(60))
def test_any_ids_become_the_text(seed: int) -> None:
    """Whatever a tokenizer gives, what comes back spells the text; what it gave rightly at the beginning stays."""
    rng = random.Random(seed)
    pieces = [bytes([byte]) for byte in b"ab c"] + [b"ab", b"abc", b" a", b"ca", b"cab ", b"bca bca bca"]
    vocabulary = Vocabulary("small", (*pieces, b""), {len(pieces): "</s>"}, (len(pieces),))
    tokens = [rng.randrange(len(pieces)) for _ in range(rng.randint(1, 60))]
    text = bytes_of(vocabulary, tokens).decode()
    given = list(tokens)
    for _ in range(rng.randint(0, 3)):
        change: Callable[[int], object] = rng.choice(
            [given.__delitem__, lambda i: given.insert(i, rng.randrange(len(pieces) + 1))]
        )
        if given:
            change(rng.randrange(len(given)))
    encoder = Encoder(vocabulary, lambda _: list(given))
    spelling = encoder.exact_tokens(text)
    assert bytes_of(vocabulary, spelling.tokens) == text.encode()
    same = next(
        (i for i, (a, b) in enumerate(zip(tokens, given, strict=False)) if a != b), min(len(tokens), len(given))
    )
    assert spelling.tokens[: max(0, same - 1)] == tokens[: max(0, same - 1)]
    if bytes_of(vocabulary, given) == text.encode():
        assert spelling.tokens == given and spelling.respelled == 0


def test_longest_tokens_go_back_where_greed_leads_nowhere() -> None:
    vocabulary = Vocabulary("gaps", (b"a", b"aab", b"bc", b"ab", b""), {4: "</s>"}, (4,))
    encoder = Encoder(vocabulary, lambda text: [])
    assert [vocabulary.tokens[t] for t in encoder.longest_tokens(b"aabaab")] == [b"aab", b"aab"]
    assert [vocabulary.tokens[t] for t in encoder.longest_tokens(b"aabc")] == [b"a", b"a", b"bc"]
    with pytest.raises(
        VocabularyError, match=r"no tokens of vocabulary gaps spell b'aacz': none contains the bytes b'z'"
    ):
        encoder.exact_tokens("aacz")
    with pytest.raises(VocabularyError, match="none fits between the others"):
        encoder.exact_tokens("ac")


def test_half_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    encoder = Encoder(Vocabulary("v", (b"a", b""), {1: "</s>"}, (1,)), lambda text: [0])
    with pytest.raises(VocabularyError, match="half a surrogate pair at character 1"):
        encoder.exact_tokens("a\ud800")


def test_long_texts_are_cut_behind_a_line_feed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    vocabulary = Vocabulary("bytes", (*(bytes([b]) for b in range(256)), b""), {256: "</s>"}, (256,))

    def cut(text: str) -> list[int]:
        seen.append(text)
        return list(text.encode())

    encoder = Encoder(vocabulary, cut)
    monkeypatch.setattr(encoders, "MOST_CHARACTERS", 100)
    text = "x" * 70 + "\n" + "y" * 60 + "\n" + "z" * 250 + "\n" + "w"
    assert bytes_of(vocabulary, encoder.exact_tokens(text).tokens) == text.encode()
    assert "".join(seen) == text and all(len(part) <= 100 for part in seen)
    assert seen[0] == "x" * 70 + "\n" and seen[1] == "y" * 60 + "\n"


def test_tiktoken_takes_a_million_blanks() -> None:
    """Given at once they overflow the stack of its regular expressions."""
    pytest.importorskip("tiktoken")
    encoder = built_in("tekken")
    text = " " * (5 * MOST_CHARACTERS + 1) + "x"
    assert bytes_of(encoder.vocabulary, encoder.exact_tokens(text).tokens) == text.encode()


def test_a_tiktoken_rank_file(tmp_path: Path) -> None:
    pytest.importorskip("tiktoken")
    pieces = [bytes([byte]) for byte in range(256)] + [b"ab", b"abc", b" x"]
    path = tmp_path / "ranks.tiktoken"
    path.write_bytes(b"".join(base64.b64encode(piece) + b" %d\n" % i for i, piece in enumerate(pieces)))
    encoder = load_encoder(path)
    assert [encoder.vocabulary.tokens[t] for t in encoder.encode("abc x")] == [b"abc", b" x"]
    for text in TEXTS:
        assert bytes_of(encoder.vocabulary, encoder.exact_tokens(text).tokens) == text.encode()


def test_another_tokenizer_is_told(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    encoder = load_encoder(tokenizer_json(path))
    check_belongs(encoder, load_vocabulary(str(path), size=400))  # padding is no difference
    content = json.loads(path.read_text())
    content["model"]["vocab"]["abc"], content["model"]["vocab"]["ab"] = (
        content["model"]["vocab"]["ab"],
        content["model"]["vocab"]["abc"],
    )
    path.write_text(json.dumps(content))
    other = load_vocabulary(str(path))
    with pytest.raises(VocabularyError, match=r"id 257 stands for b'ab', but for b'abc' in the store.*--tokenizer"):
        check_belongs(encoder, other)
