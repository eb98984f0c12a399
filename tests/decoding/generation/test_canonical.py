"""Forced bytes and tokens, and generation under canonical masks."""

from __future__ import annotations

import functools
import random

import numpy as np
import numpy.typing as npt
import pytest
from mask_bits import ids
from shares import share

import maskwright as mw
from maskwright.analysis.errors import MaskwrightError, VocabularyError
from maskwright.decoding.generation.forced import forced_tokens

pytest.importorskip("tokenizers")

GRAMMAR = r"""
start: "{" pair ("," pair)* "}"
pair: "\"name\":" STRING | "\"value\":" NUMBER | "\"description\":" STRING | "\"enabled\":" ("true" | "false")
STRING: /"[a-z ]{0,12}"/
NUMBER: /[0-9]{1,6}(\.[0-9]+)?/
"""
SCHEMA = {
    "type": "object",
    "properties": {"enabled": {"type": "boolean"}, "kind": {"enum": ["alpha", "alphabet", "beta"]}},
    "required": ["enabled", "kind"],
    "additionalProperties": False,
}


@functools.cache
def canonical() -> mw.CanonicalTokens:
    return mw.load_canonical("python-tiny")


@functools.cache
def store(kind: str) -> mw.Store | mw.SchemaStore | mw.ComposedStore:
    if kind == "schema":
        return mw.build_store(mw.load_schema(SCHEMA, whitespace="compact"), "python-tiny")
    if kind == "composition":
        host = 'start: "<tag>" INSIDE "</tag>"\n%regex INSIDE /ab{3,5}c/\n'
        return mw.build_store(mw.read_composition(host), "python-tiny")
    return mw.build_store(mw.parse_grammar(GRAMMAR), "python-tiny")


def naive_forced(matcher: mw.Matcher, limit: int = 64) -> bytes:
    """Byte by byte: which of the 256 can come?"""
    there = matcher.fork()
    found = b""
    while len(found) < limit and not there.is_finished() and not there.is_accepting():
        possible, fork = [], there.fork()
        for byte in range(256):
            if fork.try_bytes(bytes((byte,))):
                possible.append(byte)
                fork = there.fork()
        if len(possible) != 1:
            break
        there.advance_bytes(bytes(possible))
        found += bytes(possible)
    return found


def drawn(matcher: mw.Matcher, rng: random.Random) -> int:
    words = np.zeros((matcher.store.vocabulary.size + 31) // 32, np.int32)
    matcher.fill(words)
    return rng.choice(sorted(ids(words)))


@pytest.mark.parametrize("seed", share(range(40), 1))
@pytest.mark.parametrize("kind", ["grammar", "schema", "composition"])
def test_forced_bytes_are_those_that_alone_can_come(kind: str, seed: int) -> None:
    rng = random.Random(seed)
    matcher = store(kind).matcher()
    for _ in range(12):
        assert matcher.forced_bytes(64) == naive_forced(matcher)
        if matcher.is_finished():
            break
        matcher.advance(drawn(matcher, rng))


def test_forced_bytes_end_at_the_limit_and_where_the_text_may_end() -> None:
    matcher = mw.build_store(mw.parse_grammar('start: "hello" ("!" "!"?)'), "python-tiny").matcher()
    assert matcher.forced_bytes() == b"hello!"
    assert matcher.forced_bytes(limit=2) == b"he"
    assert matcher.forced_bytes(0) == b""
    with pytest.raises(MaskwrightError, match="0 or more"):
        matcher.forced_bytes(-1)
    matcher.advance_bytes(b"hello!")
    assert matcher.forced_bytes() == b""


def test_forced_bytes_of_a_vocabulary_without_single_bytes() -> None:
    vocabulary = mw.load_vocabulary([b"hello", b"hell", b"o!", b"!", b"?", b""], eos=[5])
    matcher = mw.build_store(mw.parse_grammar('start: "hello" ("!" | "?")'), vocabulary).matcher()
    assert matcher.forced_bytes() == b"hello"  # behind "hell" comes "o!", but behind "hello" also "?"
    matcher.advance(1)
    assert matcher.forced_bytes() == b"o!"
    whole = mw.load_vocabulary([b"hello", b"!", b"?", b""], eos=[3])
    matcher = mw.build_store(mw.parse_grammar('start: "hello" ("!" | "?")'), whole).matcher()
    assert matcher.forced_bytes() == b"hello"
    assert matcher.forced_bytes(limit=2) == b"he"


def spelled_texts(texts: list[bytes], tokens: list[bytes]) -> set[bytes]:
    """Those of some texts that tokens spell."""

    def can(text: bytes) -> bool:
        return not text or any(text.startswith(token) and can(text[len(token) :]) for token in tokens)

    return {text for text in texts if can(text)}


@pytest.mark.parametrize("seed", range(4))
def test_forced_bytes_of_random_vocabularies(seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    while compared < 60:
        texts = ["".join(rng.choices("ab", k=rng.randint(1, 6))) for _ in range(rng.randint(1, 3))]
        wholes = [text.encode() for text in texts]
        pieces = {whole[i:j] for whole in wholes for i in range(len(whole)) for j in range(i + 1, len(whole) + 1)}
        tokens = sorted(rng.sample(sorted(pieces), rng.randint(1, len(pieces))))
        spelled_ones = spelled_texts(wholes, tokens)
        if not spelled_ones:
            continue
        vocabulary = mw.load_vocabulary([*tokens, b""], eos=[len(tokens)])
        least, most = min(spelled_ones), max(spelled_ones)
        expected = next((least[:n] for n in range(len(least)) if least[n] != most[n]), least)
        found = mw.build_store(mw.load_choice(sorted(set(texts))), vocabulary).matcher().forced_bytes()
        assert expected.startswith(found), (texts, tokens)
        if set(wholes) == spelled_ones and {b"a", b"b"} <= set(tokens):
            assert found == expected  # no token leads to what cannot be spelled
        compared += 1


def test_a_vocabulary_without_single_bytes_keeps_its_tokens() -> None:
    from maskwright.maskstore.canonical.cuts import Cuts
    from maskwright.maskstore.canonical.spines import Merges

    pieces = [b"hell", b"o!", b"hello", b"!", b"?", b""]
    vocabulary = mw.load_vocabulary(pieces, eos=[5])
    ids = {data: token for token, data in enumerate(pieces) if data}

    class Whole(Merges):
        """A BPE whose tokens are symbols from the beginning."""

        def symbols(self, data: bytes) -> list[bytes]:
            return [data]

    tokens = mw.CanonicalTokens(vocabulary, Whole(ids, pairs={}), Cuts("(?s:.)+", "v"))
    matcher = mw.build_store(mw.parse_grammar('start: "hello" ("!" | "?")'), vocabulary).matcher()
    for first, text in ((0, b"hello!"), (2, b"hello!"), (2, b"hello?")):
        logits = np.zeros(6)
        logits[first] = 9
        logits[ids[text[-1:]]] = 5
        found = mw.generate(
            lambda _, logits=logits: logits, matcher.fork(), [5], canonical=tokens, fast_forward=True
        ).run()
        assert (found.data, found.relaxed) == (text, 0)


@functools.cache
def spelled(text: str) -> tuple[int, ...]:
    from maskwright.maskstore.vocabulary.encoders import load_encoder

    return tuple(load_encoder("python-tiny").tokenize(text))


TEXTS = [
    '{"name":"a b","value":12.5}',
    '{"enabled":true,"description":"","name":"x"}',
    '{"value":1}',
    '{"description":"see  it"}',
]


@pytest.mark.parametrize("text", TEXTS)
def test_forced_tokens_are_the_tokenizers_own(text: str) -> None:
    matcher, state = store("grammar").matcher(), canonical().start()
    tokens = list(spelled(text))
    forced = 0
    while tokens:
        found = forced_tokens(matcher, state)
        assert found == tokens[: len(found)]
        forced += len(found)
        for token in found or tokens[:1]:
            matcher.advance(token)
            state.advance(token)
            tokens.pop(0)
    assert forced >= 2


def random_model(seed: int, size: int) -> object:
    def logits(tokens: list[int]) -> npt.NDArray[np.float32]:
        return np.random.default_rng([seed, len(tokens), *tokens[-3:]]).standard_normal(size).astype(np.float32)

    return logits


@pytest.mark.parametrize("seed", share(range(60), 2))
@pytest.mark.parametrize("kind", ["grammar", "schema", "composition"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_generated_texts_are_canonical_and_the_same_with_fast_forward(kind: str, seed: int, temperature: float) -> None:
    found = {}
    for fast_forward in (False, True):
        model = random_model(seed, canonical().vocabulary.size)
        found[fast_forward] = mw.generate(
            model,
            store(kind).matcher(),
            [0],
            max_tokens=80,
            temperature=temperature,
            close=False,
            canonical=canonical(),
            fast_forward=fast_forward,
        ).run()
    plain, fast = found[False], found[True]
    if temperature == 0:
        assert plain.tokens == fast.tokens
        assert fast.model_calls + fast.forced == plain.model_calls
    for completion in found.values():
        assert completion.relaxed == 0
        if completion.reason == "end":
            assert spelled(completion.data.decode()) == completion.tokens


def test_fast_forward_alone_changes_no_text_and_saves_calls() -> None:
    saved = 0
    for seed in range(8):
        model = random_model(seed, canonical().vocabulary.size)
        plain, fast = (
            mw.generate(model, store("grammar").matcher(), [0], max_tokens=40, fast_forward=on).run()
            for on in (False, True)
        )
        assert plain.tokens == fast.tokens
        saved += plain.model_calls - fast.model_calls
    assert saved > 0


def test_a_dead_end_of_canonical_tokens_is_left_by_another_token() -> None:
    # `abc` alone spells "abc", and the mask has no token but single letters
    from maskwright.maskstore.canonical.cuts import Cuts
    from maskwright.maskstore.canonical.spines import Merges
    from maskwright.maskstore.vocabulary import Vocabulary

    vocabulary = Vocabulary("v", (b"a", b"b", b"", b"ab"), {2: "</s>"}, (2,))
    tokens = mw.CanonicalTokens(
        vocabulary, Merges({b"a": 0, b"b": 1, b"ab": 3}, pairs={(b"a", b"b"): 0}), Cuts("(?s:.)+", "v")
    )
    grammar = mw.parse_grammar('start: A B\nA: "a"\nB: "b"\n')
    without = Vocabulary("w", (b"a", b"b", b"", b""), {2: "</s>"}, (2,))
    found = mw.generate(
        lambda _: np.zeros(4), mw.build_store(grammar, vocabulary).matcher(), [2], canonical=tokens
    ).run()
    assert (found.tokens, found.relaxed) == ((3,), 0)
    with pytest.raises(VocabularyError, match="whose tokens are others"):
        mw.generate(lambda _: np.zeros(4), mw.build_store(grammar, without).matcher(), [2], canonical=tokens)
    with pytest.raises(MaskwrightError, match="canonical"):
        mw.generate(lambda _: np.zeros(4), mw.build_store(grammar, without).matcher(), [2], canonical=True)  # type: ignore[arg-type]


def test_where_nothing_canonical_can_come_another_token_is_taken_and_counted() -> None:
    from maskwright.maskstore.canonical.cuts import Cuts
    from maskwright.maskstore.canonical.spines import Merges
    from maskwright.maskstore.vocabulary import Vocabulary

    # the merges make "bc" of every b and c, and a token "abc" that no merges make
    vocabulary = Vocabulary("v", (b"a", b"b", b"c", b"", b"bc"), {3: "</s>"}, (3,))
    merges = Merges({b"a": 0, b"b": 1, b"c": 2, b"bc": 4}, pairs={(b"b", b"c"): 0})
    tokens = mw.CanonicalTokens(vocabulary, merges, Cuts("(?s:.)+", "v"))
    matcher = mw.build_store(mw.parse_grammar('start: "abc" | "abb"'), vocabulary).matcher()
    matcher.advance_bytes(b"ab")
    # the prompt's tokens are a, b: now "c" would have been "bc"
    found = mw.generate(lambda _: np.array([0, 0, 9, 0, 0.0]), matcher, [3, 0, 1], canonical=tokens).run()
    assert found.data == b"b"
    matcher = mw.build_store(mw.parse_grammar('start: "abc"'), vocabulary).matcher()
    matcher.advance_bytes(b"ab")
    found = mw.generate(lambda _: np.array([0, 0, 9, 0, 0.0]), matcher, [3, 0, 1], canonical=tokens).run()
    assert (found.data, found.relaxed) == (b"c", 1)


@pytest.mark.parametrize("max_tokens", range(2, 7))
def test_a_forced_token_that_does_not_fit_leaves_another_spelling(max_tokens: int) -> None:
    from maskwright.maskstore.canonical.cuts import Cuts
    from maskwright.maskstore.canonical.spines import Merges

    # of "abcd" the tokenizer makes a, bc, d; within the budget it may have to be one token
    pieces = [b"", b"a", b"b", b"c", b"d", b"x", b"y", b"bc", b"abcd", b"ab"]
    vocabulary = mw.Vocabulary.from_tokens(pieces, eos=[0])
    ids = {data: token for token, data in enumerate(pieces) if data}
    pairs = {(b"b", b"c"): 0, (b"a", b"b"): 1}
    tokens = mw.CanonicalTokens(vocabulary, Merges(ids, pairs=pairs), Cuts("(?s:.)+", "v"))
    under = mw.build_store(mw.parse_grammar('start: "abcd" ("x" | "y")'), vocabulary)
    row = np.zeros(len(pieces), np.float32)
    row[[ids[b"y"], ids[b"abcd"], ids[b"a"]]] = 9, 5, 3
    plain, fast = (
        mw.generate(lambda _: row, under.matcher(), [0], canonical=tokens, fast_forward=on, max_tokens=max_tokens).run()
        for on in (False, True)
    )
    assert (plain.tokens, plain.reason, plain.relaxed) == (fast.tokens, fast.reason, fast.relaxed)
    assert plain.data == (b"abcdx" if max_tokens in (2, 4) else b"abcdy")  # these budgets end in the ending at hand


def test_a_forced_token_that_is_not_canonical_is_counted() -> None:
    from maskwright.maskstore.canonical.cuts import Cuts
    from maskwright.maskstore.canonical.spines import Merges

    vocabulary = mw.Vocabulary.from_tokens([b"", b"a", b"b", b"ab"], eos=[0])
    tokens = mw.CanonicalTokens(
        vocabulary, Merges({b"a": 1, b"b": 2, b"ab": 3}, pairs={(b"a", b"b"): 0}), Cuts("(?s:.)+", "v")
    )
    under = mw.build_store(mw.parse_grammar('start: "ab"'), vocabulary)
    for on in (False, True):
        matcher = under.matcher()
        matcher.advance(1)  # behind a canonical "a" comes no "b"
        found = mw.generate(lambda _: np.zeros(4), matcher, [0, 1], canonical=tokens, fast_forward=on).run()
        assert (found.tokens, found.relaxed) == ((2,), 1)


@functools.cache
def with_calls() -> tuple[mw.Vocabulary, mw.CanonicalTokens, list[int]]:
    """A byte-level tokenizer with two special tokens around a tool call."""
    import small_tokenizers

    tokenizer = small_tokenizers.byte_level()
    tokenizer.add_special_tokens(["<call>", "</call>"])
    vocabulary = mw.load_vocabulary(tokenizer)
    return vocabulary, mw.load_canonical(tokenizer), [tokenizer.token_to_id(name) for name in ("<call>", "</call>")]


@pytest.mark.parametrize("fast_forward", [False, True])
def test_a_tool_call_begins_by_its_token(fast_forward: bool) -> None:
    vocabulary, tokens, (begin, end) = with_calls()
    call = {
        "type": "tag",
        "begin": {"type": "token", "token": "<call>"},
        "content": {"type": "json_schema", "json_schema": {"type": "integer"}},
        "end": {"type": "token", "token": "</call>"},
    }
    form = {"type": "token_triggered_tags", "trigger_tokens": ["<call>"], "tags": [call]}
    composition = mw.read_structural_tag({"type": "structural_tag", "format": form})
    row = np.zeros(vocabulary.size, np.float32)
    row[begin], row[vocabulary.tokens.index(b"7")] = 9, 5

    def model(read: list[int]) -> npt.NDArray[np.float32]:
        found = row.copy()
        found[end] = 20 * (vocabulary.tokens[read[-1]] == b"7")
        return found

    matcher = mw.build_store(composition, vocabulary).matcher()
    found = mw.generate(
        model, matcher, [0], canonical=tokens, fast_forward=fast_forward, max_tokens=8, close=False
    ).run()
    seven = vocabulary.tokens.index(b"7")
    assert found.tokens == (begin, seven, end, begin, seven, end, begin, seven)
    assert found.relaxed == 0


@pytest.mark.parametrize("kind", ["grammar", "schema", "composition"])
@pytest.mark.parametrize("fast_forward", [False, True])
def test_vocabularies_may_be_padded(kind: str, fast_forward: bool) -> None:
    own = canonical().vocabulary
    more = mw.load_vocabulary([*own.tokens, *[b""] * 80], eos=list(own.eos))
    source: mw.Grammar | mw.JsonSchema | mw.Composition = mw.parse_grammar(GRAMMAR)
    if kind == "schema":
        source = mw.load_schema(SCHEMA, whitespace="compact")
    elif kind == "composition":
        source = mw.read_composition('start: "<tag>" INSIDE "</tag>"\n%regex INSIDE /ab{3,5}c/\n')

    def text(built: object, vocabulary: mw.Vocabulary) -> tuple[int, ...]:
        matcher = built.matcher()  # type: ignore[attr-defined]
        options = {"max_tokens": 60, "canonical": canonical(), "fast_forward": fast_forward}
        return mw.generate(random_model(1, more.size), matcher, [0], vocabulary=vocabulary, **options).run().tokens  # type: ignore[arg-type]

    found = text(store(kind), own)
    assert found == text(store(kind), more)  # the model's vocabulary has more ids than the store's
    assert found == text(mw.build_store(source, more), more)
    matcher = mw.build_store(source, more).matcher()
    assert forced_tokens(matcher, canonical().start()) == forced_tokens(store(kind).matcher(), canonical().start())


def test_the_bundled_model_writes_canonical_tokens() -> None:
    pytest.importorskip("transformers")
    found = mw.complete(store("grammar"), '{"na', canonical=True, fast_forward=True, max_tokens=40)
    assert found.is_complete
    assert found.model_calls < len(found.tokens) + 1
