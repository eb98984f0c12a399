"""Terminals held to names in the slots of a batch: each slot against a matcher of its own, and against the naive twin."""

from __future__ import annotations

import copy
import pickle
import random
from functools import partial

import numpy as np
import pytest
from engine_cases import (
    random_contextual_grammar,
    random_layout_grammar,
    random_longest_grammar,
    random_vocabulary,
    samples,
)
from mask_bits import ids
from naive_engine import NaiveEngine
from naive_names import continuation, spelled
from shares import share

import maskwright as mw
from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError, MaskwrightError
from maskwright.decoding.batch import Batch
from maskwright.decoding.logits import ResidentRows
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store

KINDS = {"plain": random_longest_grammar, "layout": random_layout_grammar, "contextual": random_contextual_grammar}
CASES = [
    *share([pytest.param("plain", seed, id=f"plain-{seed}") for seed in range(20)], 3),
    *share([pytest.param("contextual", seed, id=f"contextual-{seed}") for seed in range(20)], 3),
    *share([pytest.param("layout", seed, id=f"layout-{seed}") for seed in range(12)], 2),
]
SIZE = 4
BYTES = Vocabulary("bytes", (*(bytes([i]) for i in range(256)), b""), {256: "</s>"}, (256,))


def row_of(matcher: Matcher) -> tuple[bytes, bool]:
    """A mask, and whether it is one of a dead end, where nothing is said of the words."""
    words = np.zeros(-(-matcher.store.vocabulary.size // 32), np.uint32)
    try:
        matcher.fill(words)
    except DeadEndError:
        return b"", True
    return words.tobytes(), False


def check_rows(batch: Batch, matchers: list[Matcher]) -> None:
    """Each slot's mask, asked for alone and with all others."""
    words = np.zeros((SIZE, -(-batch.store.vocabulary.size // 32)), np.uint32)
    expected = [row_of(matcher) for matcher in matchers]
    dead = [slot for slot, (_, is_dead) in enumerate(expected) if is_dead]
    if dead:
        with pytest.raises(DeadEndError, match=f"slot {dead[0]}"):
            batch.fill(words)
    else:
        batch.fill(words)
    for slot, (mask, is_dead) in enumerate(expected):
        if not is_dead:
            assert words[slot].tobytes() == mask, slot
            allowed = [token for token in range(batch.store.vocabulary.size) if batch.is_allowed(slot, token)]
            assert allowed == sorted(ids(words[slot]))
        assert batch.is_accepting(slot) == matchers[slot].is_accepting()


def take_step(batch: Batch, matchers: list[Matcher], naive: NaiveEngine, rng: random.Random) -> None:
    slot, grammar = rng.randrange(SIZE), batch.store.grammar
    what = rng.choice(
        ["restrict", "restrict", "advance", "advance", "advance", "bytes", "rollback", "copy", "reset", "pickle"]
    )
    if what == "restrict" and not matchers[slot].is_finished():
        free = [
            t
            for t, one in enumerate(grammar.terminals)
            if not one.is_declared and t not in grammar.ignored and t != grammar.newline
        ]
        terminal = rng.choice(free)
        texts = spelled(naive, terminal, rng)
        names = rng.sample(texts, min(len(texts), rng.randint(0, 3))) + samples(grammar, rng, 1)
        told = []
        for restrict in (partial(batch.restrict, slot), matchers[slot].restrict):
            try:
                restrict(grammar.terminals[terminal].name, [name for name in names if name])
                told.append("")
            except MaskwrightError as error:
                told.append(str(error).removeprefix(f"slot {slot}: "))
        assert told[0] == told[1] and (not told[0] or "has begun a lexeme" in told[0])
    elif what == "advance":
        tokens, wrong = np.full(SIZE, -1), []
        for at, matcher in enumerate(matchers):
            choices = [token for token in range(batch.store.vocabulary.size) if matcher.is_allowed(token)]
            if choices and rng.random() < 0.7:
                tokens[at] = rng.choice(choices)
                if rng.random() < 0.1:
                    tokens[at] = rng.randrange(batch.store.vocabulary.size)
                    wrong += [] if matcher.is_allowed(int(tokens[at])) else [at]
                if at not in wrong:
                    matcher.advance(int(tokens[at]))
        if wrong:
            with pytest.raises(IllegalTokenError, match=f"slot {wrong[0]}"):
                batch.advance(tokens)
        else:
            batch.advance(tokens)
    elif what == "bytes":
        data = rng.choice([*samples(grammar, rng, 2), b"a"])
        if matchers[slot].try_bytes(data):
            batch.advance_bytes(slot, data)
        elif data:
            with pytest.raises(IllegalTokenError):
                batch.advance_bytes(slot, data)
    elif what == "rollback":
        known = int(repr(matchers[slot]).rpartition(", ")[2].split()[0])
        n = rng.randint(0, min(known, 3))
        batch.rollback(slot, n)
        matchers[slot].rollback(n)
    elif what == "copy":
        source = rng.randrange(SIZE)
        batch.copy(source, slot)
        matchers[slot] = matchers[source].fork()
    elif what == "reset":
        batch.reset(slot)
        matchers[slot].reset()


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_each_slot_is_a_matcher(kind: str, seed: int) -> None:
    grammar = KINDS[kind](seed)
    rng = random.Random(f"batch {kind} {seed}")
    try:
        naive = NaiveEngine(grammar, grammar.conflicts)
        store = compile_store(grammar, random_vocabulary(grammar, seed, 25))
        batch = store.batch(SIZE, max_rollback=rng.choice([0, 3, 20]), n_threads=rng.choice([1, 2]))
        matchers = [store.matcher(max_rollback=batch.max_rollback) for _ in range(SIZE)]
        for _ in range(25):
            take_step(batch, matchers, naive, rng)
            check_rows(batch, matchers)
            if rng.random() < 0.1:
                batch = pickle.loads(pickle.dumps(batch))
    except LimitError:
        pytest.skip("the grammar has too many readings")
    except MaskwrightError as error:
        if "no text" in str(error):
            pytest.skip(str(error))
        raise


@pytest.mark.parametrize("seed", share(range(12), 3))
def test_masks_of_slots_equal_the_naive_twins(seed: int) -> None:
    grammar = random_longest_grammar(seed)
    naive, rng = NaiveEngine(grammar), random.Random(seed)
    store = compile_store(grammar, random_vocabulary(grammar, seed, 25))
    batch = store.batch(3)
    terminal = rng.choice([t for t, one in enumerate(grammar.terminals) if t not in grammar.ignored])
    names = [frozenset(spelled(naive, terminal, rng)[:n]) for n in (0, 1, 3)]
    for slot in range(3):
        batch.restrict(slot, grammar.terminals[terminal].name, names[slot])
    text = b""
    for token in rng.sample(range(len(store.vocabulary.tokens)), 12):
        data = store.vocabulary.tokens[token]
        if not data:
            continue
        for slot in range(3):
            found = continuation(naive, text + data, 0, terminal, names[slot], 150)
            if found is not False:
                assert batch.is_allowed(slot, token) == (found is not None), (slot, data)


QUERY = 'start: NAME ("." NAME)*\nNAME: /[a-z]+/\nWS: / +/\n%ignore WS\n'


def test_what_is_held_is_said_and_ends() -> None:
    batch = mw.build_store(mw.parse_grammar(QUERY), BYTES).batch(2)
    batch.restrict(1, "NAME", ["mail", "name"])
    with pytest.raises(IllegalTokenError, match=r"slot 1.*NAME is held to 2 names"):
        batch.advance_bytes(1, b"x")
    batch.advance_bytes(0, b"x")
    assert "may not come next: terminal NAME is held to 2 names" in batch.explain(1, ord("x"))
    assert batch.explain(1, ord("m")) == "token 109 (b'm') may come next"
    assert "is held" not in batch.explain(0, ord("1"))
    batch.advance_bytes(1, b"ma")
    with pytest.raises(LimitError, match="is held to 2 names"):
        batch.shortest_ending(1)
    batch.advance_bytes(1, b"il")
    assert batch.shortest_ending(1).data == b"" and batch.min_bytes_left(1) == 0
    batch.advance_bytes(0, b".")
    batch.restrict(0, "NAME", [])
    with pytest.raises(DeadEndError, match=r"^slot 0: .*: terminal NAME is held to 0 names"):
        batch.fill(np.zeros((2, 9), np.uint32))
    assert copy.deepcopy(batch).is_allowed(0, ord("a")) is False
    rows = ResidentRows([batch.store], "cpu", 8)
    with pytest.raises(DeadEndError, match=r"^row 0: .*: terminal NAME is held to 0 names"):
        rows.ids(batch)
    batch.reset(0)
    batch.rollback(1, 2)
    words = np.zeros((2, 9), np.uint32)
    batch.fill(words)
    assert words[0].tobytes() != words[1].tobytes()
    assert np.array_equal(rows.words[rows.ids(batch).long()].numpy(), words.view(np.int32))
    batch.reset(1)
    batch.fill(words)
    assert words[0].tobytes() == words[1].tobytes() and not batch.holds_names


def test_a_second_call_inside_a_held_lexeme_is_that_of_a_matcher() -> None:
    batch = mw.build_store(mw.parse_grammar(QUERY), BYTES).batch(2)
    batch.restrict(1, "NAME", ["mail", "name", "map"])
    batch.advance_bytes(1, b"ma")
    batch.restrict(1, "NAME", ["map", "mat"])
    assert [batch.is_allowed(1, ord(letter)) for letter in "ptix."] == [True, False, False, False, False]
    batch.copy(1, 0)
    batch.rollback(1)
    assert [batch.is_allowed(slot, ord(letter)) for slot, letter in ((0, "p"), (0, "i"), (1, "n"), (1, "p"))] == [
        True,
        False,
        True,
        False,
    ]


def test_errors_are_those_of_matchers() -> None:
    batch = mw.build_store(mw.parse_grammar(QUERY), BYTES).batch(2)
    with pytest.raises(MaskwrightError, match=r"slot 2 is out of range"):
        batch.restrict(2, "NAME", ["a"])
    with pytest.raises(mw.UnknownNameError, match="NAMES"):
        batch.restrict(0, "NAMES", ["a"])
    batch.advance_bytes(0, b"x")
    batch.advance(np.array([256, -1]))
    with pytest.raises(MaskwrightError, match="the text has ended"):
        batch.restrict(0, "NAME", ["a"])


def test_texts_without_terminals_say_what_to_do() -> None:
    schema = mw.build_store(mw.load_schema({"type": "string"}), BYTES)
    composed = mw.build_store(mw.compose('start: "a" PART\n%declare PART', {"PART": mw.load_choice(["x"])}), BYTES)
    for texts, remedy in ((schema, "enum, propertyNames"), (composed, "in a composition, give the part")):
        for one, arguments in ((texts.matcher(), ("NAME", ["a"])), (texts.batch(2), (0, "NAME", ["a"]))):
            with pytest.raises(MaskwrightError, match=remedy):
                one.restrict(*arguments)


def test_a_text_that_holds_nothing_takes_the_place_of_one_that_does() -> None:
    store = mw.build_store(
        "start: NAME\nNAME: /[a-z]+/", mw.Vocabulary.from_tokens([b"</s>", *map(bytes, zip(range(97, 123)))], eos=[0])
    )
    batch = store.batch(2)
    batch.restrict(0, "NAME", ["foo"])
    batch.copy(1, 0)
    batch.advance_bytes(0, b"bar")
    one, other = store.matcher(), store.matcher()
    one.restrict("NAME", ["foo"])
    one.become(other)
    assert one.try_bytes(bytearray(b"bar")) and one.is_accepting() and not one.holds_names and not batch.holds_names
