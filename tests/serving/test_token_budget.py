"""Texts that are closed before their tokens are used up: any choice among the masks, drafts that are taken back, what cannot be kept."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mask_bits import ids
from shares import share

import maskwright as mw
from maskwright.serving.server_matcher import ServerMatcher, TokenBudget
from maskwright.serving.vllm_backend import MaskwrightGrammar

VOCABULARY = mw.load_vocabulary("python-tiny")
RESERVE = 8
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 3}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["name", "tags"],
    "additionalProperties": False,
}
CONSTRAINTS: dict[str, Any] = {
    "lists": mw.parse_grammar('start: "[" (start ",")* start? "]"\n%ignore " "\n'),
    "pairs": mw.parse_grammar('start: "a" start "bb" | "ab"\n'),
    "schema": mw.load_schema(PERSON),
    "pattern": mw.load_regex("x(yz)*[a-c]{4}"),
    "composed": mw.read_llguidance('start: "<" %json {"type": "array", "items": {"type": "boolean"}} ">"'),
}


@pytest.fixture(scope="module")
def stores() -> dict[str, Any]:
    return {name: mw.build_store(each, VOCABULARY) for name, each in CONSTRAINTS.items()}


def grammar_of(store: Any, most: int, reserve: int = RESERVE, longest: int = 4096) -> tuple[MaskwrightGrammar, Any]:
    """The grammar of a request of vLLM, and the request, which has a prompt of 10 tokens."""
    request = SimpleNamespace(max_tokens=most, num_prompt_tokens=10, num_output_tokens=0)
    found = MaskwrightGrammar(ServerMatcher(store, None, VOCABULARY.size))
    if reserve:
        found.keep_budget(request, longest, reserve)
    return found, request


def budget_of(store: Any, most: int, longest: int = 4096, n_output_tokens: int = 0) -> tuple[TokenBudget, Any, Any]:
    """A budget, its request, and the mask of the text's first token."""
    request = SimpleNamespace(max_tokens=most, num_prompt_tokens=10, num_output_tokens=n_output_tokens)
    matcher = ServerMatcher(store, None, VOCABULARY.size)
    row = np.zeros(-(-VOCABULARY.size // 32), np.uint32)
    assert matcher.fill_row(row) is None
    return TokenBudget(matcher, RESERVE, request, longest), request, row


def allowed(grammar: MaskwrightGrammar) -> list[int]:
    torch = pytest.importorskip("torch")
    mask = torch.zeros((1, -(-VOCABULARY.size // 32)), dtype=torch.int32)
    grammar.fill_bitmask(mask, 0)
    found = np.flatnonzero(np.unpackbits(mask.numpy().view(np.uint8)[0], bitorder="little"))
    return [int(token) for token in found]


def written(grammar: MaskwrightGrammar, request: Any, most: int, seed: int, drafts: int = 0) -> list[int]:
    """The tokens that a model without preferences writes, as vLLM's scheduler takes them; drafts are tried and taken back."""
    random = np.random.default_rng(seed)
    found: list[int] = []
    while len(found) < most and not grammar.is_terminated():
        n_tried = 0
        for _ in range(drafts):
            if grammar.is_terminated():
                break
            assert grammar.accept_tokens("r", [int(random.choice(allowed(grammar)))])
            n_tried += 1
        grammar.rollback(n_tried)
        found.append(int(random.choice(allowed(grammar))))
        request.num_output_tokens = len(found)
        assert grammar.accept_tokens("r", found[-1:])
    return found


@pytest.mark.parametrize("drafts", [0, 2])
@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("seeds", share([range(0, 12, 6), range(0, 12, 2)], 1), ids=str)
def test_texts_end_in_time(stores: dict[str, Any], name: str, drafts: int, seeds: range) -> None:
    least = len(stores[name].matcher().short_ending().tokens) + 1
    n_cut = 0
    for seed in seeds:
        most = least + seed * 3
        grammar, request = grammar_of(stores[name], most)
        tokens = written(grammar, request, most, seed, drafts)
        assert grammar.is_terminated() and len(tokens) <= most, (name, seed)
        grammar, request = grammar_of(stores[name], most, reserve=0)
        written(grammar, request, most, seed)
        n_cut += not grammar.is_terminated()
    assert n_cut or name == "pattern"


def test_before_the_end_masks_are_as_without(stores: dict[str, Any]) -> None:
    plain, _ = grammar_of(stores["lists"], 100, reserve=0)
    closed, request = grammar_of(stores["lists"], 100)
    for n in range(1, 40):
        assert allowed(plain) == allowed(closed)
        request.num_output_tokens = n
        token = VOCABULARY.tokens.index(b"[")
        assert plain.accept_tokens("r", [token]) and closed.accept_tokens("r", [token])


def test_the_model_s_longest_text_is_a_budget_too(stores: dict[str, Any]) -> None:
    grammar, request = grammar_of(stores["lists"], 10_000, longest=10 + 30)
    written(grammar, request, 30, 0)
    assert grammar.is_terminated()
    budget, _, _ = budget_of(stores["lists"], 50, longest=40, n_output_tokens=7)
    assert budget.left == 23
    budget.read([1] * 7)
    budget.read([1] * 2)
    assert budget.left == 21
    budget.rollback(2)
    assert budget.left == 23


def test_drafts_are_told_from_tokens_behind_reasoning(stores: dict[str, Any]) -> None:
    """What was written before the constraint began does not make the first draft a token."""
    budget, request, row = budget_of(stores["lists"], 100, n_output_tokens=50)
    budget.restrict(row)
    for n in range(1, 4):
        budget.read([1])
        budget.restrict(row)
        assert budget.left == 50 - n and budget._n_drafts
    budget.rollback(3)
    request.num_output_tokens = 51
    budget.read([1])
    assert budget.left == 49 and not budget._n_drafts


@pytest.mark.parametrize("draft", ["", "Z"])
def test_what_is_searched_of_a_draft_says_nothing_of_the_text(draft: str) -> None:
    """Behind the draft no text ends in time, so that the next search there could wait; behind "q" one token can come."""
    pieces = [bytes([byte]) for byte in range(256)]
    vocabulary = mw.Vocabulary.from_tokens([*pieces, b""], eos=[256])
    text = 'start: LETTER start "!!" | "qu" start "!!" | "Z" start LONG | "."\nLETTER: /[a-p]|[r-z]/\nLONG: /%{300}/'
    store = mw.build_store(mw.parse_grammar(text), vocabulary)
    request = SimpleNamespace(max_tokens=150, num_prompt_tokens=0, num_output_tokens=0)
    matcher = ServerMatcher(store, None, vocabulary.size)
    budget = TokenBudget(matcher, 16, request, 1000)
    row = np.zeros(9, np.uint32)

    def mask() -> set[int]:
        assert matcher.fill_row(row) is None
        budget.restrict(row)
        return ids(row)

    def read(token: int) -> None:
        assert matcher.try_advance(token)
        budget.read([token])

    def write(token: int) -> None:
        request.num_output_tokens += 1
        read(token)

    while (allowed := mask()) != {ord(".")} and budget._known[-1][2] != budget.left - 1:
        assert ord("a") in allowed
        write(ord("a"))
    assert ord("q") in allowed and budget.left > 100
    for byte in draft.encode():
        read(byte)
        mask()
        matcher.rollback(1)
        budget.rollback(1)
    write(ord("q"))
    assert mask() == {ord("u")}
    write(ord("u"))
    while not matcher.is_finished() and budget.left:
        allowed = mask()
        write(ord("a") if ord("a") in allowed else min(allowed))
    assert matcher.is_finished()


def test_a_text_that_begins_anew_knows_no_ending_of_the_old_one() -> None:
    store = mw.build_store(mw.load_regex("a{20}"), VOCABULARY)
    grammar, request = grammar_of(store, 24, reserve=2)
    a = VOCABULARY.tokens.index(b"a")
    for _ in range(2):
        for n in range(20):
            assert a in allowed(grammar)
            request.num_output_tokens = n + 1
            assert grammar.accept_tokens("r", [a])
        assert allowed(grammar) == list(VOCABULARY.eos)
        grammar.reset()
        request.num_output_tokens = 0


def test_what_cannot_be_kept_is_said_once(stores: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    grammar, request = grammar_of(stores["schema"], 3)
    with caplog.at_level(logging.WARNING, "maskwright"):
        assert len(written(grammar, request, 3, 0)) == 3 and not grammar.is_terminated()
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "a text will be cut off by its budget of tokens"
    ]
    assert "and 3 are left" in caplog.text


def test_one_of_few_tokens_that_opens_too_much_is_refused() -> None:
    """`[` is followed by `]` or by a text of some 50 tokens."""
    schema = {"type": "array", "items": {"const": "x" * 200}}
    store = mw.build_store(mw.load_schema(schema, whitespace="compact"), VOCABULARY)
    bracket, quote = (VOCABULARY.tokens.index(byte) for byte in (b"[", b'"'))
    for most, may_open in ((40, False), (400, True)):
        grammar, request = grammar_of(store, most)
        assert bracket in allowed(grammar)
        request.num_output_tokens = 1
        assert grammar.accept_tokens("r", [bracket])
        assert (quote in allowed(grammar)) == may_open


def test_one_of_many_tokens_that_opens_much_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """The limit of what masks alone can do: see `TokenBudget`."""
    store = mw.build_store(mw.load_regex("[a-z]*(!x{300})?"), VOCABULARY)
    grammar, request = grammar_of(store, 40)
    text = b"abc!" + b"x" * 36
    with caplog.at_level(logging.WARNING, "maskwright"):
        for n, byte in enumerate(text, 1):
            token = VOCABULARY.tokens.index(bytes((byte,)))
            assert token in allowed(grammar)
            request.num_output_tokens = n
            assert grammar.accept_tokens("r", [token])
    assert not grammar.is_terminated() and len(caplog.records) == 1
    assert "cut off by its budget of tokens: its shortest ending takes" in caplog.text


def test_a_restricted_mask_holds_the_next_token_of_an_ending(stores: dict[str, Any]) -> None:
    ending = ServerMatcher(stores["schema"], None, VOCABULARY.size).short_ending().tokens
    budget, _, row = budget_of(stores["schema"], len(ending) + 1 + RESERVE + 20)
    full = row.copy()
    budget.restrict(row)
    assert np.array_equal(row, full)
    budget, _, row = budget_of(stores["schema"], len(ending) + 1)
    budget.restrict(row)
    bits = sorted(ids(row))
    assert bits == [ending[0]] and json.loads(b"".join(VOCABULARY.tokens[token] for token in ending))


def test_an_ending_is_spelled_without_tokens_at_which_the_server_stops() -> None:
    """A request's stop token that stands for text otherwise cannot close the text."""
    pieces = [bytes([byte]) for byte in range(256)]
    for tokens, wanted in (([*pieces, b"]]", b""], {ord("]")}), ([*pieces[:93], *pieces[94:], b"", b"]]", b""], None)):
        vocabulary = mw.Vocabulary.from_tokens(tokens, eos=[257])
        matcher = ServerMatcher(mw.build_store(mw.load_regex(r"\[\[a*\]\]"), vocabulary), (256, 257), 258)
        request = SimpleNamespace(max_tokens=6, num_prompt_tokens=0, num_output_tokens=3)
        budget = TokenBudget(matcher, 2, request, 100)
        said = [ord("["), ord("["), vocabulary.tokens.index(b"a")]
        assert all(map(matcher.try_advance, said))
        budget.read(said)
        row = np.zeros(9, np.uint32)
        assert matcher.fill_row(row) is None
        budget.restrict(row)
        allowed = ids(row)
        assert allowed == (wanted or {vocabulary.tokens.index(b"a")})
