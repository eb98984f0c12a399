"""Drafts of the constraint's own: legal, without a trace in the text, and learned as `TokenCounts` learns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.decoding.generation import TokenCounts
from maskwright.serving.drafts import Drafts
from maskwright.serving.server_matcher import ServerMatcher
from maskwright.serving.vllm_backend import MaskwrightGrammar
from maskwright.serving.vllm_drafts import PLACEHOLDER, PROPOSER, Proposer, number_of_drafts

VOCABULARY = mw.load_vocabulary("python-tiny")
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 4}, "is_old": {"type": "boolean"}},
    "required": ["name", "is_old"],
    "additionalProperties": False,
}
CONSTRAINTS: dict[str, Any] = {
    "schema": mw.load_schema(SCHEMA, whitespace="compact", key_order="schema"),
    "grammar": mw.parse_grammar('start: "from " NAME " import " NAME\nNAME: /[a-c]{2,4}/\n'),
    "pattern": mw.load_regex("(north|south)ward(-bound){1,3}"),
    "composed": mw.read_llguidance('start: "call(" %json {"enum": ["one", "two"]} ");"'),
}


@pytest.fixture(scope="module")
def stores() -> dict[str, Any]:
    return {name: mw.build_store(each, VOCABULARY) for name, each in CONSTRAINTS.items()}


def chosen(words: np.ndarray[Any, Any], before: int) -> int:
    """What a model that knows only the last token likes best among the tokens of a mask."""
    allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
    liked = np.random.default_rng(before + 1).random(VOCABULARY.size)
    return int(allowed[np.argmax(liked[allowed])])


def mask(matcher: Any) -> np.ndarray[Any, Any]:
    words = np.zeros(matcher.store.n_words, np.int32)
    matcher.fill(words)
    return words


def greedy(store: Any) -> list[int]:
    """The model's text, with the token that ends it."""
    matcher, found = store.matcher(), list[int]()
    while not matcher.is_finished() and len(found) < 60:
        found.append(chosen(mask(matcher), found[-1] if found else -1))
        matcher.advance(found[-1])
    return found


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_learning_as_a_text_comes_is_learning_it_as_a_whole(stores: dict[str, Any], name: str) -> None:
    store, drafts, counts = stores[name], Drafts(VOCABULARY, 4), TokenCounts(VOCABULARY, ahead=4)
    random = np.random.default_rng(1)
    for _ in range(4):
        text, matcher, at = greedy(store), store.matcher(64), 0
        while at < len(text):
            n = int(random.integers(1, 6))
            for token in text[at : at + n]:
                matcher.advance(token)
            if not matcher.is_finished():
                before = mask(matcher).copy()
                drafts.learn(matcher, text[at : at + n], text[at - 1] if at else -1)
                assert np.array_equal(mask(matcher), before)
                assert counts.learn(_after(store, text[:at]), text[at : at + n], text[at - 1] if at else -1)
            at += n
    assert drafts.counts._counts == counts._counts and len(counts)


def _after(store: Any, tokens: list[int]) -> Any:
    matcher = store.matcher()
    for token in tokens:
        matcher.advance(token)
    return matcher


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_drafts_are_legal_and_leave_the_text_as_it_is(stores: dict[str, Any], name: str) -> None:
    store, drafts = stores[name], Drafts(VOCABULARY, 5)
    text = greedy(store)
    for number in range(3):
        matcher, n_right = store.matcher(64), 0
        for at, token in enumerate(text):
            before = mask(matcher).copy()
            found = drafts.next(matcher, text[at - 1] if at else -1, 3)
            assert np.array_equal(mask(matcher), before) and len(found) <= 3
            there = matcher.fork()
            for draft in found:
                assert there.is_allowed(draft)
                there.advance(draft)
            n_right += bool(found) and found[0] == token
            matcher.advance(token)
            if not matcher.is_finished():
                drafts.learn(matcher, [token], text[at - 1] if at else -1)
        if number == 2:
            assert n_right >= len(text) // 2


def written(grammar: MaskwrightGrammar, n_drafts: int) -> tuple[list[int], int, int]:
    """The text of the model as vLLM's scheduler makes it, how many drafts were accepted, and the passes of the model."""
    torch = pytest.importorskip("torch")
    bitmask = torch.zeros((1, -(-VOCABULARY.size // 32)), dtype=torch.int32)
    found: list[int] = []
    n_accepted = n_passes = 0
    while not grammar.is_terminated() and len(found) < 60:
        drafts = grammar.validate_tokens([PLACEHOLDER] * n_drafts) if n_drafts and found else []
        new: list[int] = []
        n_tried = 0
        n_passes += 1
        for draft in [*drafts, None]:
            grammar.fill_bitmask(bitmask, 0)
            new.append(chosen(bitmask.numpy()[0], [*found, *new][-1] if found or new else -1))
            if draft is None or new[-1] != draft:
                break
            assert grammar.accept_tokens("r", [draft])
            n_tried += 1
            if grammar.is_terminated():
                break  # vLLM drops what is behind
        grammar.rollback(n_tried)
        n_accepted += n_tried
        found += new
        assert grammar.accept_tokens("r", new)
    return found, n_accepted, n_passes


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_greedy_texts_are_the_same_with_drafts(stores: dict[str, Any], name: str) -> None:
    store, drafts = stores[name], Drafts(VOCABULARY, 4)
    plain = greedy(store)
    passes = []
    for _ in range(4):
        grammar = MaskwrightGrammar(ServerMatcher(store, None, VOCABULARY.size), drafts)
        text, n_accepted, n_passes = written(grammar, 4)
        assert text == plain
        assert n_passes + n_accepted - len(text) in (0, 1)  # 1 if it ended with a draft
        passes.append(n_passes)
    assert passes[-1] <= -(-len(plain) // 2)


def test_other_drafts_are_checked_as_before(stores: dict[str, Any]) -> None:
    matcher = ServerMatcher(stores["grammar"], None, VOCABULARY.size)
    tokens = [VOCABULARY.tokens.index(bytes((byte,))) for byte in b"frx"]
    grammar = MaskwrightGrammar(matcher, Drafts(VOCABULARY, 4))
    assert grammar.validate_tokens(tokens) == tokens[:2]
    assert MaskwrightGrammar(matcher).validate_tokens([PLACEHOLDER] * 3) == []


def test_own_drafts_know_the_ends_of_the_request(stores: dict[str, Any]) -> None:
    """An end of the request's own that stands for text otherwise is none that may come inside."""

    def behind_n(end: int | None) -> tuple[ServerMatcher, list[int]]:
        matcher = ServerMatcher(stores["pattern"], None if end is None else [end], VOCABULARY.size)
        matcher.advance_bytes(b"n")
        return matcher, MaskwrightGrammar(matcher, Drafts(VOCABULARY, 4)).validate_tokens([PLACEHOLDER] * 4)

    _, drafts = behind_n(None)
    assert drafts
    for end in drafts:
        matcher, found = behind_n(end)
        assert end not in found and matcher.longest_prefix(found) == found


def test_the_proposer_is_on_where_it_is_named() -> None:
    config = SimpleNamespace(method="custom_class", model=PROPOSER, num_speculative_tokens=3)
    assert number_of_drafts(SimpleNamespace(speculative_config=config)) == 3
    proposer = Proposer(SimpleNamespace(speculative_config=config))
    proposer.load_model()
    assert proposer.propose([[5], [], [6, 7]], None, None) == [[PLACEHOLDER] * 3, [], [PLACEHOLDER] * 3]
    for other in (None, SimpleNamespace(method="ngram", model=None, num_speculative_tokens=3)):
        assert number_of_drafts(SimpleNamespace(speculative_config=other)) == 0
    assert number_of_drafts(SimpleNamespace()) == 0


def test_what_cannot_be_taken_back_is_not_learned(stores: dict[str, Any]) -> None:
    drafts, text = Drafts(VOCABULARY, 4), greedy(stores["pattern"])
    matcher = stores["pattern"].matcher(2)
    for token in text[:3]:
        matcher.advance(token)
    before = mask(matcher).copy()
    drafts.learn(matcher, text[:3], -1)
    assert np.array_equal(mask(matcher), before) and len(drafts.counts) == 0
