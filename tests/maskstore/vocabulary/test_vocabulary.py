"""Vocabulary, its arrays and digest, the built-in vocabularies on real text, and how sources are named."""

from __future__ import annotations

import copy
import dataclasses
import importlib.util
import json
import lzma
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from paths import SHARED
from shares import check_examples, share

from maskwright.analysis.errors import GrammarError, MissingExtraError, UnknownNameError, VocabularyError
from maskwright.analysis.loading import load_grammar
from maskwright.maskstore.vocabulary.tokenizer_files import locate
from maskwright.maskstore.vocabulary.vocabulary import BUILT_IN, LONGEST_TOKEN, Vocabulary, load_vocabulary, post_tokens

PYTHON_SOURCES = SHARED / "source" / "python.jsonl.xz"

SMALL = Vocabulary("small", (b"", b"a", b"\n", b" a", b"a", b"\n", b""), {0: "</s>"}, (0,), frozenset({2}))


@pytest.fixture(scope="module", params=sorted(BUILT_IN))
def built_in(request: pytest.FixtureRequest) -> Vocabulary:
    pytest.importorskip("mistral_common")
    return load_vocabulary(request.param)


def python_sources(limit: int) -> list[str]:
    if not PYTHON_SOURCES.is_file():
        pytest.skip(f"no evaluation data at {PYTHON_SOURCES}")
    with lzma.open(PYTHON_SOURCES, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line, _ in zip(lines, range(limit), strict=False)]


# The class


def test_fields_and_properties() -> None:
    assert SMALL.size == 7
    assert SMALL.text_ids().tolist() == [1, 2, 3, 4, 5]
    assert SMALL.text_ids().dtype == np.int32
    assert repr(SMALL) == "<Vocabulary small: 7 ids, 1 special, eos 0>"
    assert not SMALL.is_byte_complete
    assert not SMALL.checked


def test_special_is_read_only_and_sorted() -> None:
    vocabulary = Vocabulary("v", (b"", b"a", b""), {2: "b", 0: "a"}, (2, 0, 2))
    assert list(vocabulary.special) == [0, 2]
    assert vocabulary.eos == (0, 2)
    with pytest.raises(TypeError):
        vocabulary.special[1] = "c"  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        vocabulary.name = "w"  # type: ignore[misc]


def test_copies_and_pickles_are_equal() -> None:
    for twin in (copy.deepcopy(SMALL), pickle.loads(pickle.dumps(SMALL))):
        assert twin == SMALL
        assert hash(twin) == hash(SMALL)
        assert twin.name == "small"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"special": {3: "</s>"}}, r"v: special has id 3, expected 0 to 2"),
        ({"eos": (-1,)}, r"v: eos has id -1, expected 0 to 2"),
        ({"byte_pieces": frozenset({9})}, r"v: byte_pieces has id 9"),
        ({"special": {0: "</s>", 1: "x"}}, r"token 1 is special \('x'\) but has the bytes b'ab'.*give it b''"),
        ({"eos": (2,)}, r"eos token 2 stands for the text b'\\n'; a token that ends a text must be special"),
        ({"byte_pieces": frozenset({1})}, r"byte piece 1 has the bytes b'ab', expected one byte"),
        ({"name": "v\ud800"}, r"a vocabulary's name: 'v\\ud800' holds half a surrogate pair"),
        ({"special": {0: "\ud800"}}, r"v: the name of special token 0: '\\ud800' holds half a surrogate pair"),
    ],
)
def test_invariants(fields: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"name": "v", "tokens": (b"", b"ab", b"\n"), "special": {0: "</s>"}, "eos": (0,)}
    Vocabulary(**good)
    with pytest.raises(VocabularyError, match=message):
        Vocabulary(**(good | fields))


def test_lists_become_what_cannot_change() -> None:
    tokens = [b"", b"ab", b"\n"]
    made = Vocabulary("v", tokens, {0: "</s>"}, [0], {2})  # type: ignore[arg-type]
    assert made == Vocabulary("v", tuple(tokens), {0: "</s>"}, (0,), frozenset({2}))
    tokens[1] = b"other"
    assert made.tokens == (b"", b"ab", b"\n") and made.byte_pieces == frozenset({2})


def test_two_names_of_one_id_are_refused() -> None:
    with pytest.raises(VocabularyError, match=r"special gives id 1 to 'x' and to 'y'; one is enough"):
        Vocabulary.from_tokens([b"a", b"b"], special={"x": 1, "y": 1})


def test_a_path_that_is_no_text_names_a_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.json")
    path.write_bytes((locate("python-tiny")[0] / "tokenizer.json").read_bytes())
    assert load_vocabulary(path).name == "\ufffd.json"


# Digest and arrays


def test_digest_sees_everything_but_the_name() -> None:
    assert dataclasses.replace(SMALL, name="other", checked=True).digest == SMALL.digest
    others = [
        dataclasses.replace(SMALL, tokens=(*SMALL.tokens[:-1], b"b")),
        dataclasses.replace(SMALL, tokens=(*SMALL.tokens, b"")),
        dataclasses.replace(SMALL, tokens=(b"", b"", b"\n", b"a a", *SMALL.tokens[4:])),  # same bytes, cut elsewhere
        dataclasses.replace(SMALL, special={0: "<eos>"}),
        dataclasses.replace(SMALL, special={0: "</s>", 6: "<pad>"}),
        dataclasses.replace(SMALL, eos=()),
        dataclasses.replace(SMALL, byte_pieces=frozenset({5})),
    ]
    assert len({vocabulary.digest for vocabulary in [SMALL, *others]}) == len(others) + 1


def test_digest_is_the_same_on_every_machine() -> None:
    # A change here makes every store that was saved before belong to no tokenizer.
    pytest.importorskip("mistral_common")
    digest = load_vocabulary("mistral-7b-v0.1").digest
    assert digest == "bec64d9aceb2a0d4aabf76ad0ebfc4a5ac8c1f9873ec1783a216b49aad02211a"


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocabulary:
    tokens = draw(st.lists(st.binary(max_size=4), min_size=1, max_size=20))
    empty = [token for token, text in enumerate(tokens) if not text]
    single = [token for token, text in enumerate(tokens) if len(text) == 1]
    names = st.text(st.characters(codec="utf-8"), max_size=5)
    special = {token: draw(names) for token in empty if draw(st.booleans())}
    eos = tuple(token for token in special if draw(st.booleans()))
    return Vocabulary("v", tuple(tokens), special, eos, frozenset(token for token in single if draw(st.booleans())))


@pytest.mark.parametrize("n", share([20, 60], 1))
def test_arrays_round_trip(n: int) -> None:
    check_examples(check_round_trip, n, vocabularies())


def check_round_trip(vocabulary: Vocabulary) -> None:
    again = Vocabulary.from_arrays(vocabulary.to_arrays(), name="again")
    assert again == vocabulary
    assert again.digest == vocabulary.digest
    assert again.name == "again"


@pytest.mark.parametrize(
    ("key", "array", "message"),
    [
        ("eos", None, r"x: no array 'eos'; the file is damaged or not a vocabulary"),
        ("token_offsets", np.zeros(8, np.int32), r"'token_offsets' is int32 with 1 dimensions, expected int64 with 1"),
        ("eos", np.zeros((1, 1), np.int32), r"array 'eos' is int32 with 2 dimensions"),
        ("token_offsets", np.zeros(0, np.int64), r"token_offsets does not ascend from 0 to 6, the length of token_byt"),
        ("token_offsets", np.array([0, 9, 6]), r"token_offsets does not ascend"),
        ("token_offsets", np.array([1, 6]), r"token_offsets does not ascend"),
        ("token_offsets", np.array([0, 7]), r"token_offsets does not ascend"),
        ("special_ids", np.array([0, 1], np.int32), r"special_ids has 2 different ids for 1 names"),
        ("special_bytes", np.full(4, 0xFF, np.uint8), r"special_bytes is not UTF-8 .*the file is damaged"),
        ("special_ids", np.array([-1], np.int32), r"x: special has id -1"),
        ("eos", np.array([99], np.int32), r"x: eos has id 99"),
    ],
)
def test_hostile_arrays(key: str, array: Any, message: str) -> None:
    arrays = SMALL.to_arrays()
    if array is None:
        del arrays[key]
    else:
        arrays[key] = array
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_arrays(arrays, name="x")


# The built-in vocabularies


def test_mistral_v1_by_hand() -> None:
    pytest.importorskip("mistral_common")
    vocabulary = load_vocabulary("mistral-7b-v0.1")
    assert vocabulary.size == 32000
    assert dict(vocabulary.special) == {0: "<unk>", 1: "<s>", 2: "</s>"}
    assert vocabulary.eos == (2,)
    assert vocabulary.byte_pieces == frozenset(range(3, 259))
    assert vocabulary.tokens[801] == b" def"
    assert vocabulary.tokens[1270] == b"def"
    assert vocabulary.tokens[259] == b"  "
    assert vocabulary.tokens[13] == b"\n"
    assert vocabulary.tokens.count(b"\n") == 1  # the byte piece <0x0A> only
    assert vocabulary.tokens[68] == vocabulary.tokens[28741] == b"A"  # the byte piece <0x41> and the piece A
    assert vocabulary.tokens[-1] == "梦".encode()


def test_mistral_v3_by_hand() -> None:
    pytest.importorskip("mistral_common")
    vocabulary = load_vocabulary("mistral-7b-v0.3")
    assert vocabulary.size == 32768
    assert vocabulary.special[3] == "[INST]"
    assert vocabulary.eos == (2,)
    assert vocabulary.tokens[1569] == b" def"


def test_tekken_by_hand() -> None:
    pytest.importorskip("mistral_common")
    vocabulary = load_vocabulary("tekken")
    assert vocabulary.size == 131072
    assert len(vocabulary.special) == 1000
    assert (vocabulary.special[2], vocabulary.special[19], vocabulary.special[20]) == (
        "</s>",
        "[TOOL_CONTENT]",
        "<SPECIAL_20>",
    )
    assert vocabulary.eos == (2,)
    assert vocabulary.tokens[1000:1256] == tuple(bytes((byte,)) for byte in range(256))
    assert vocabulary.tokens[2121] == b" def"
    assert vocabulary.byte_pieces == frozenset()


def test_built_in_vocabularies_are_checked_and_complete(built_in: Vocabulary) -> None:
    assert built_in.checked
    assert built_in.is_byte_complete
    assert len(built_in.text_ids()) + len(built_in.special) == built_in.size


@pytest.mark.parametrize("n", share([12, 40], 1))
def test_real_source_comes_back(built_in: Vocabulary, n: int) -> None:
    encode = own_encoder(built_in.name)
    n_bytes = 0
    for text in python_sources(n):
        got = b"".join(built_in.tokens[token] for token in encode(text))
        assert got in (text.encode(), b" " + text.encode())
        n_bytes += len(got)
    assert n_bytes > 1_000 * n


def own_encoder(name: str) -> Any:
    spec = importlib.util.find_spec(BUILT_IN[name][0])
    assert spec is not None and spec.submodule_search_locations
    path = str(Path(spec.submodule_search_locations[0], BUILT_IN[name][1]))
    if name == "tekken":
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        tekken = Tekkenizer.from_file(path)
        return lambda text: tekken.encode(text, bos=False, eos=False)
    if name == "python-tiny":
        import tokenizers

        tiny = tokenizers.Tokenizer.from_file(f"{path}/tokenizer.json")
        return lambda text: tiny.encode(text, add_special_tokens=False).ids
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_file=path).encode


def test_post_tokens_of_mistral_v1() -> None:
    pytest.importorskip("mistral_common")
    vocabulary = load_vocabulary("mistral-7b-v0.1")
    tokens = post_tokens(vocabulary)
    assert len(tokens) == 31726
    assert (801, b"def") in tokens and (1270, b"def") in tokens
    assert not any(text.startswith(b" ") for _, text in tokens)
    dropped = {*range(32000)} - {token for token, _ in tokens}
    assert {vocabulary.tokens[token].strip() for token in dropped - vocabulary.byte_pieces} == {b""}


def test_post_tokens_keep_spaces_inside() -> None:
    assert post_tokens(SMALL) == [(1, b"a"), (3, b"a"), (4, b"a"), (5, b"\n")]
    assert post_tokens(Vocabulary("v", (b"  a b", b"   "), {}, ())) == [(0, b"a b")]


# Names, sizes, special tokens given by hand


def test_unknown_names() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean mistral-7b-v0\.[13] or mistral-7b-v0\.[13]\?"):
        load_vocabulary("mistral-7b")
    with pytest.raises(
        UnknownNameError, match=r"'qqqq': neither .* nor a file or folder \(built in: mistral-7b-v0.1, "
    ):
        load_vocabulary("qqqq")
    with pytest.raises(UnknownNameError, match=r"the vocabulary's name is empty; give a file, a folder, or a built-in"):
        load_vocabulary("")


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"mistral_common.*pip install 'maskwright\[tokenizers\]'"):
        load_vocabulary("tekken")


def test_package_without_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec("lark")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found)
    with pytest.raises(VocabularyError, match=r"has no data/tekken_240911.json.*install a version that has it"):
        load_vocabulary("tekken")


def test_size_and_name_and_special_and_eos() -> None:
    pytest.importorskip("mistral_common")
    plain = load_vocabulary("mistral-7b-v0.1")
    padded = load_vocabulary(
        "mistral-7b-v0.1", size=32064, name="chat", special={"<|im_end|>": 32000, "<|x|>": 5}, eos=["<|im_end|>", 2]
    )
    assert padded.name == "chat"
    assert padded.size == 32064
    assert padded.tokens[32000:] == (b"",) * 64
    assert padded.eos == (2, 32000)
    assert dict(padded.special) == {0: "<unk>", 1: "<s>", 2: "</s>", 5: "<|x|>", 32000: "<|im_end|>"}
    assert 5 not in padded.byte_pieces
    assert plain.tokens[6:] == padded.tokens[6:32000]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"size": 31999}, r"size=31999 does not fit its 32000 ids; size is the number of rows"),
        ({"size": 1 << 40}, r"size=1099511627776 does not fit its 32000 ids"),
        ({"special": {"<x>": -1}}, r"special token '<x>': id -1 is out of range"),
        ({"special": {"<x>": 1 << 30}}, r"special token '<x>': id 1073741824 is out of range; expected an integer"),
        ({"eos": ["<nothing>"]}, r"eos '<nothing>' is not a token of this vocabulary.*special ones: </s>, <s>, <unk>"),
        ({"eos": [32000]}, r"eos 32000 is not a token of this vocabulary; expected an id below 32000"),
    ],
)
def test_keywords_that_do_not_fit(keywords: dict[str, Any], message: str) -> None:
    pytest.importorskip("mistral_common")
    with pytest.raises(VocabularyError, match=message):
        load_vocabulary("mistral-7b-v0.1", **keywords)


@pytest.mark.parametrize("tokens", [[], [b""], [b"", b""]])
def test_tokens_without_text_come_from_no_file(tokens: list[bytes]) -> None:
    with pytest.raises(
        VocabularyError, match="<tokens>: has no token that stands for a text; give at least one token"
    ) as raised:
        Vocabulary.from_tokens(tokens)
    assert "file" not in str(raised.value)


def test_a_token_of_a_million_bytes_is_refused() -> None:
    vocabulary = Vocabulary.from_tokens([b"", b"a" * LONGEST_TOKEN], eos=[0])
    assert vocabulary.size == 2
    message = r"long: token 2 has 1,000,000 bytes \(b'aaaaaaaaaaaa'...\), and a token can have at most 16,384: .*; leave it out"
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_tokens([b"", b"b", b"a" * 1_000_000], eos=[0], name="long")


def test_an_array_without_dimensions_is_no_list() -> None:
    with pytest.raises(VocabularyError, match=r"^eos is array\(0\)"):
        Vocabulary.from_tokens([b"a", b""], eos=np.array(0))
    with pytest.raises(GrammarError, match=r"^soft is array\(0\)"):
        load_grammar("json", soft=np.array(0))  # type: ignore[arg-type]


def test_sorted_texts_and_ids_of_texts() -> None:
    vocabulary = Vocabulary("x", (b"b", b"", b"ab", b"b", b"a", b"\xff", b""), {1: "</s>"}, (1,))
    found = vocabulary.sorted_texts
    assert found.texts == [b"a", b"ab", b"b", b"b", b"\xff"] and found.ids.tolist() == [4, 2, 0, 3, 5]
    assert found.ids[found.by_id].tolist() == vocabulary.text_ids().tolist() == [0, 2, 3, 4, 5]
    assert found.data.tobytes() == b"aabbb\xff" and found.offsets.tolist() == [0, 1, 3, 4, 5, 6]
    assert vocabulary.id_of_text == {b"b": 0, b"ab": 2, b"a": 4, b"\xff": 5}
    assert not any(array.flags.writeable for array in (vocabulary.text_ids(), *vocabulary.flat))
