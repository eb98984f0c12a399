"""The potential of genlm-control: its own checks of consistency where it is installed, else a copy of the interface that it asks for."""

from __future__ import annotations

import asyncio
import itertools
import math
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.analysis.errors import MissingExtraError, VocabularyError
from maskwright.serving import genlm as module
from maskwright.serving.genlm import PrefixWeights, potential

PAIRS = 'start: "a" start "b" | "ab"'
VOCABULARY = mw.Vocabulary("abx", (b"a", b"b", b"ab", b"aab", b"x", b""), {5: "</s>"}, (5,))


class Token(bytes):
    """As genlm.backend.tokenization.Token: bytes with an id, by which it is equal to another."""

    token_id: int

    def __new__(cls, token_id: int, byte_string: bytes) -> Token:
        found = super().__new__(cls, byte_string)
        found.token_id = token_id
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token) and self.token_id == other.token_id

    def __hash__(self) -> int:
        return hash(self.token_id)


class Weights(dict[Any, float]):
    """What `logw_next` returns: weights by token."""

    def __init__(self, weights: Any, decode: Any) -> None:
        super().__init__(zip(decode, weights.tolist(), strict=True))
        self.weights = weights


class Potential:
    """The part of genlm.control.Potential that an implementation calls or overrides."""

    def __init__(self, vocabulary: list[Any]) -> None:
        self.vocab, self.eos = vocabulary, "EOS"
        self.vocab_eos = [*vocabulary, self.eos]

    def alloc_logws(self, default: float = -math.inf) -> Any:
        return np.full(len(self.vocab_eos), default)

    def make_lazy_weights(self, weights: Any) -> Weights:
        return Weights(weights, self.vocab_eos)


@pytest.fixture(params=["genlm-control", "copy"])
def genlm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """genlm-control, or modules of its names with the copy."""
    if request.param == "genlm-control":
        return pytest.importorskip("genlm.control", reason="not installed: pip install genlm-control")
    for name in ("genlm", "genlm.backend", "genlm.backend.tokenization", "genlm.control"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules["genlm.backend.tokenization"], "Token", Token, raising=False)
    monkeypatch.setattr(sys.modules["genlm.control"], "Potential", Potential, raising=False)
    return sys.modules["genlm.control"]


def pairs_store(lexing: Any = "longest") -> Any:
    return mw.build_store(mw.parse_grammar(PAIRS, lexing=lexing), VOCABULARY)


def is_pairs(text: bytes) -> bool:
    n = len(text) // 2
    return n > 0 and text == b"a" * n + b"b" * n


def begins_pairs(text: bytes) -> bool:
    n = len(text) - len(text.lstrip(b"a"))
    return text[n:] == b"b" * (len(text) - n) and len(text) - n <= n


@pytest.mark.parametrize("kept", [1, 3, 1024])
def test_weights_are_the_definition(genlm: Any, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all texts of up to four tokens in a mixed order: by the language, and by each other."""
    monkeypatch.setattr(module, "MOST_KEPT", kept)
    found = potential(pairs_store())

    async def check() -> None:
        contexts = [list(each) for n in range(5) for each in itertools.product(found.vocab, repeat=n)]
        np.random.default_rng(0).shuffle(contexts)
        for context in contexts:
            text = b"".join(bytes(token) for token in context)
            assert await found.complete(context) == (0.0 if is_pairs(text) else -math.inf)
            assert await found.prefix(context) == (0.0 if begins_pairs(text) else -math.inf)
            if not begins_pairs(text):
                with pytest.raises(ValueError, match="has weight zero under `prefix`"):
                    await found.logw_next(context)
                continue
            weights = await found.logw_next(context)
            assert weights[found.eos] == await found.complete(context)
            for token in found.vocab:
                assert weights[token] == await found.prefix([*context, token])

    assert [token.token_id for token in found.vocab] == [0, 1, 2, 3, 4]
    asyncio.run(check())


def test_its_own_checks_and_particles() -> None:
    """The contract of genlm-control, its product with another potential, and SMC, all of whose texts are of the language."""
    control = pytest.importorskip("genlm.control", reason="not installed: pip install genlm-control")
    found = potential(pairs_store())
    a, b = found.vocab[:2]

    async def check() -> None:
        contexts = [[], [a], [a, a, b], [a, b]]
        for each in (found, found * found, found.spawn()):
            await each.assert_contract(contexts)
        sampler = control.direct_token_sampler(found)
        sequences = await control.SMC(sampler)(n_particles=20, ess_threshold=0.5, max_tokens=30)
        ended = [context[:-1] for context in sequences.contexts if context[-1] == control.EOS]
        assert ended and all(is_pairs(b"".join(bytes(token) for token in context)) for context in ended)

    asyncio.run(check())


@pytest.mark.parametrize("kind", ["schema", "composition"])
def test_stores_of_other_kinds(kind: str) -> None:
    if kind == "schema":
        store: Any = mw.build_store(mw.load_schema({"enum": [1, 12]}), "python-tiny")
    else:
        tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "12"}}
        store = mw.build_store(mw.read_structural_tag(tag), "python-tiny")
    one, two = (store.vocabulary.tokens.index(text) for text in (b"1", b"2"))
    weights = PrefixWeights(store)
    allowed = weights.allowed((one,))
    assert allowed is not None and allowed[two] and not allowed[one]
    twelve = weights.matcher((one, two))
    assert twelve is not None and twelve.is_accepting() and weights.matcher((two,)) is None


def test_what_does_not_fit_is_refused(genlm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store = pairs_store()
    token = type(potential(store).vocab[0])
    for wrong in (token(1, b"a"), token(6, b"a")):
        with pytest.raises(VocabularyError, match="is not a token of vocabulary abx: build the store"):
            potential(store, [wrong])
    assert potential(store, [token(5, b"</s>")]).vocab == [token(5, b"</s>")]  # names of special tokens
    with pytest.raises(mw.MaskwrightError):
        potential(pairs_store("nfa"))
    monkeypatch.setitem(sys.modules, "genlm.control", None)
    with pytest.raises(MissingExtraError, match="pip install genlm-control"):
        potential(store)
