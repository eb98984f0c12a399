"""The reference decoder: states, errors, and real Python under python.lark with Mistral 7B's vocabulary."""

from __future__ import annotations

import importlib
import json
import lzma
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive_store import mask_ids, python_store
from paths import SHARED
from shares import every, share

from maskwright.analysis.errors import IllegalTokenError, LimitError, MaskwrightError, StoreError
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.reference import ReferenceDecoder, check_same_masks
from maskwright.maskstore.vocabulary.vocabulary import BUILT_IN, Vocabulary, load_vocabulary
from maskwright.stores.build import build_store, compile_entry_store
from maskwright.stores.entry_store import EntryStore

SOURCES = SHARED / "source" / "python.jsonl.xz"

LEGAL = {
    "tabs": "def f():\n\tif x:\n\t\treturn\n\tpass\n",
    "tabs and spaces": "if x:\n        a\n\tb\n",  # a tab counts 8 columns
    "blank lines": "\n\nx = 1\n\n\n  \n\ny = 2\n\t\n",
    "blank lines in a block": "if x:\n    a\n\n  \n\n    b\n",
    "comments": "# one\nx = 1  # two\n    # three\nif x:  # four\n    # five\n    y\n  # six\nz\n",
    "brackets over lines": "f(a,\n  b\n    ,c)\nx = [1,\n\n# comment\n2\n]\n{\n1: 2\n}\n",
    "brackets in a block": "if x:\n    f(\na)\n    b\n",
    "trailing comma of a class pattern": "match x:\n    case C(x=1,):\n        pass\n",
    "soft keywords": "match = 1\ncase = match\n_ = case\n",
    "dedents": "if a:\n  if b:\n     c\n  d\ne\n",
    "several dedents at once": "class A:\n  def f(self):\n    if x:\n      pass\nx\n",
    "carriage returns": "if x:\r\n  y\r\nz\r\n",
    "strings": "x = 'a' \"b\" '''c\nd''' r\"\\n\" b'\\'' f'{x}'\n",
    "numbers": "x = 1 + 1.5e3 + .5 + 5. + 0x1F + 0b1 + 0o7 + 1j\n",
    "a line over two": "x = 1 + \\\n  2\n",
    "empty": "",
    "lambda and walrus": "f = lambda *a, **k: (y := a)\n",
}
ILLEGAL = {
    "no newline at the end": "x = 1",
    "no block": "if x:\n",
    "open bracket": "f(a,\n",
    "open string": "x = '''a\n",
    "open line": "x = 1 +",
}
DEAD = {
    "indent without a block": ("x\n", " y"),
    "no indent": ("if x:\n", "y"),
    "a dedent to no block": ("if x:\n    y\n", "  z"),
    "a closing bracket too many": ("f(a)", ")"),
    "mixed brackets": ("f(a", "]"),
    "two operators": ("x = 1 *", " /"),
    "not a token of Python": ("x = 1 ", "?"),
}


@pytest.fixture(scope="module")
def decoder() -> ReferenceDecoder:
    pytest.importorskip("mistral_common")
    return ReferenceDecoder(python_store())


@pytest.fixture(scope="module")
def original() -> ReferenceDecoder:
    pytest.importorskip("mistral_common")
    return ReferenceDecoder(python_store(streamlined=False))


@lru_cache
def _ids() -> dict[bytes, int]:
    return {token: i for i, token in reversed(list(enumerate(python_store().vocabulary.tokens))) if token}


def tokenize(text: str) -> list[int]:
    """Longest tokens first: not the tokenizer's own way, but tokens that spell the text."""
    data, found = text.encode(), []
    while data:
        length = next(n for n in range(min(len(data), 16), 0, -1) if data[:n] in _ids())
        found.append(_ids()[data[:length]])
        data = data[length:]
    return found


def feed(decoder: ReferenceDecoder, text: str) -> None:
    decoder.reset()
    decoder.advance_bytes(text.encode())


@pytest.mark.parametrize("name", every(2, LEGAL))
def test_legal_python(decoder: ReferenceDecoder, name: str) -> None:
    """Every token of the text is allowed by the mask, and the end in the end; so it is by bytes and at once."""
    decoder.reset()
    for token in tokenize(LEGAL[name]):
        assert token in mask_ids(decoder.mask()), (name, python_store().vocabulary.tokens[token])
        decoder.advance(token)
    assert decoder.is_accepting() and 2 in mask_ids(decoder.mask())
    decoder.reset()
    for byte in LEGAL[name].encode():
        decoder.advance_bytes(bytes([byte]))
    assert decoder.is_accepting()
    feed(decoder, LEGAL[name])
    assert decoder.is_accepting()


@pytest.mark.parametrize("name", ILLEGAL)
def test_incomplete_python(decoder: ReferenceDecoder, name: str) -> None:
    feed(decoder, ILLEGAL[name])
    assert not decoder.is_accepting() and 2 not in mask_ids(decoder.mask())
    with pytest.raises(IllegalTokenError, match="token 2 ends the text, which is not complete here"):
        decoder.advance(2)


@pytest.mark.parametrize("name", DEAD)
def test_illegal_python(decoder: ReferenceDecoder, name: str) -> None:
    """What comes next is in no mask, and is refused."""
    prefix, rest = DEAD[name]
    feed(decoder, prefix)
    before = decoder.hypotheses
    allowed = mask_ids(decoder.mask())
    tokens = python_store().vocabulary.tokens
    assert allowed and rest.encode() not in {tokens[i] for i in allowed}
    with pytest.raises(
        IllegalTokenError, match=r"are not legal here under grammar python\.lark; the state is unchanged"
    ):
        decoder.advance_bytes(rest.encode())
    assert decoder.hypotheses == before


@pytest.mark.slow
def test_masks_are_those_of_the_tokens(decoder: ReferenceDecoder, original: ReferenceDecoder) -> None:
    """At some places in a text: the mask, that of the store that is not streamlined, and each of many tokens by itself."""
    vocabulary = python_store().vocabulary
    sample = [i for i in range(0, vocabulary.size, 61) if vocabulary.tokens[i]]
    text = "def f(x,\n  y):\n    return [x.y,\n1] # c\n\nmatch x:\n  case C(a=1"
    for end in range(0, len(text) + 1, 7):
        feed(decoder, text[:end])
        feed(original, text[:end])
        mask = mask_ids(decoder.mask())
        assert mask == mask_ids(original.mask()), text[:end]
        tried = {i for i in sample if decoder.successors(vocabulary.tokens[i])}
        assert tried == mask & set(sample), text[:end]


@pytest.mark.slow
@pytest.mark.parametrize("n", share([1, 3], 1))
def test_real_programs(decoder: ReferenceDecoder, original: ReferenceDecoder, n: int) -> None:
    """Both stores have the same masks before every token of real programs, cut by the tokenizer itself, and allow it."""
    sentencepiece = pytest.importorskip("sentencepiece")
    if not SOURCES.exists():
        pytest.skip(f"no shared data: {SOURCES} is absent")
    package, file = BUILT_IN["mistral-7b-v0.1"]
    model = Path(str(importlib.import_module(package).__file__)).parent / file
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(model))
    programs: list[str] = []
    with lzma.open(SOURCES, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if record["lark_python_lark_1_3_1"] and 500 < len(record["text"]) < 1500 and record["text"].isascii():
                programs.append(record["text"])
            if len(programs) == n:
                break
    assert len(programs) == n
    n_positions = 0
    decoder.n_parser_calls = original.n_parser_calls = 0
    for text in programs:
        decoder.reset()
        original.reset()
        n_positions += check_same_masks(decoder, original, tokenizer.encode(text))
        assert decoder.is_accepting() and original.is_accepting()
    assert n_positions > 150 * n
    assert decoder.n_parser_calls < original.n_parser_calls / 5


@pytest.fixture(scope="module")
def small() -> EntryStore:
    """Words in brackets; id 0 is EOS, 1 another special, 2 has no bytes, 8 is padding."""
    grammar = parse_grammar('start: "(" start ")" | W\nW: /[a-z]+/', name="small", lexing="nfa")
    tokens = (b"", b"", b"", b"(", b")", b"ab", b"a)", b"((", b"")
    return compile_entry_store(grammar, Vocabulary("small", tokens, {0: "</s>", 1: "<s>"}, (0,)))


def test_errors_leave_the_state_as_it_was(small: EntryStore) -> None:
    decoder = ReferenceDecoder(small)
    decoder.advance(3)
    before = decoder.hypotheses
    for token, message in (
        (-1, "token -1 is out of range: the vocabulary has the ids 0 to 8"),
        (9, "token 9 is out of range: the vocabulary has the ids 0 to 8"),
        (0, "token 0 ends the text, which is not complete here"),
        (1, "token 1 stands for no text, so no grammar can allow it"),
        (2, "token 2 stands for no text"),
        (8, "token 8 stands for no text"),
        (4, r"bytes b'\)' are not legal here under grammar small; the state is unchanged"),
    ):
        with pytest.raises(IllegalTokenError, match=message):
            decoder.advance(token)
        assert decoder.hypotheses == before and not decoder.is_finished()
        assert mask_ids(decoder.mask()) == {3, 5, 6, 7}
    with pytest.raises(IllegalTokenError, match=r"bytes b'a\(' are not legal here"):
        decoder.advance_bytes(b"a(")
    assert decoder.hypotheses == before
    decoder.advance_bytes(b"")
    assert decoder.hypotheses == before


def test_the_end_of_a_text(small: EntryStore) -> None:
    decoder = ReferenceDecoder(small)
    assert not decoder.is_accepting() and mask_ids(decoder.mask()) == {3, 5, 7}
    decoder.advance(3)
    decoder.advance(6)  # the closing bracket ends the word within the token
    assert decoder.is_accepting() and mask_ids(decoder.mask()) == {0}
    decoder.advance(0)
    assert decoder.is_finished() and not decoder.mask().any()
    for token in (0, 3):
        with pytest.raises(
            IllegalTokenError, match=rf"token {token} comes after the end of the text: reset\(\) begins a new one"
        ):
            decoder.advance(token)
    decoder.reset()
    assert not decoder.is_finished() and mask_ids(decoder.mask()) == {3, 5, 7}


def test_an_unfinished_word_goes_on_or_ends(small: EntryStore) -> None:
    decoder = ReferenceDecoder(small)
    decoder.advance(5)
    assert mask_ids(decoder.mask()) == {0, 5}  # "ab" and more letters; `)` closes nothing
    assert decoder.n_masks == 1
    decoder.advance_bytes(b"a")
    assert decoder.is_accepting()
    with pytest.raises(IllegalTokenError):
        decoder.advance_bytes(b")")


def test_masks_that_differ_are_named(small: EntryStore) -> None:
    other = parse_grammar('start: "(" start ")" | W\nW: /[a-z]+/ | "()"', name="other", lexing="nfa")
    first, second = ReferenceDecoder(small), ReferenceDecoder(compile_entry_store(other, small.vocabulary))
    assert check_same_masks(first, ReferenceDecoder(small), [3, 5, 4]) == 3
    first.reset()
    with pytest.raises(StoreError, match=r"masks differ at position 1, before token 5, in the ids \[4"):
        check_same_masks(first, second, [3, 5, 4])
    with pytest.raises(IllegalTokenError):
        check_same_masks(ReferenceDecoder(small), ReferenceDecoder(small), [4])


def test_counts_of_parser_calls() -> None:
    """The empty sequence asks the parser nothing."""
    grammar = parse_grammar('start: "a"*', lexing="nfa")
    decoder = ReferenceDecoder(compile_entry_store(grammar, Vocabulary("v", (b"", b"a", b"aa"), {0: "</s>"}, (0,))))
    for _ in range(5):
        assert mask_ids(decoder.mask()) == {0, 1, 2}
        decoder.advance(2)
    assert decoder.n_masks == 5 and decoder.n_parser_calls == 0


def test_mask_shape(decoder: ReferenceDecoder) -> None:
    decoder.reset()
    mask = decoder.mask()
    assert mask.shape == (1000,) and mask.dtype == np.uint32
    assert 2 in mask_ids(mask)  # the empty text is a program
    assert load_vocabulary("mistral-7b-v0.1").special.keys() & mask_ids(mask) == {2}


@pytest.mark.parametrize("token", ["3", None, 1.5, True, pytest.param(10**5000, id="large")])
def test_tokens_that_are_none(small: EntryStore, token: Any) -> None:
    with pytest.raises(IllegalTokenError, match=r"a token is|is out of range"):
        ReferenceDecoder(small).advance(token)


@pytest.mark.parametrize("data", ["a", None, 3, [97]])
def test_data_that_are_no_bytes(small: EntryStore, data: Any) -> None:
    with pytest.raises(MaskwrightError, match=r"data is .*; expected bytes"):
        ReferenceDecoder(small).advance_bytes(data)


def test_readings_that_multiply_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two terminals with the same text, and rules that tell them apart: each byte doubles the readings."""
    monkeypatch.setattr("maskwright.decoding.reference.decoder.MOST_STACKS", 100)
    grammar = parse_grammar('start: s\ns: A s | B s |\nA: "a"\nB: /a/\n', lexing="nfa")
    decoder = ReferenceDecoder(build_store(grammar, [b"", b"a"]))
    with pytest.raises(LimitError, match="more than 100 readings of the text"):
        for _ in range(20):
            decoder.advance_bytes(b"a")
