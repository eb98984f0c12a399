"""Rows on a device: at each step those that `fill` writes, whatever gave way, and whenever the device gets round to its copies."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from engine_cases import (
    longest,
    random_contextual_grammar,
    random_layout_grammar,
    random_longest_grammar,
    random_vocabulary,
    vocabulary_of,
)
from mask_bits import ids
from stores import small_store

import maskwright as mw
from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError, VocabularyError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.decoding.engine import constants
from maskwright.decoding.logits import _row_kernels as book_kernels
from maskwright.decoding.matcher import Matcher
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

torch = pytest.importorskip("torch")

from maskwright.decoding.logits import ResidentRows  # noqa: E402
from maskwright.decoding.logits.staging import Staging, checked_device  # noqa: E402

KINDS: dict[str, Callable[[int], Grammar]] = {
    "plain": random_longest_grammar,
    "layout": random_layout_grammar,
    "contextual": random_contextual_grammar,
}
CASES = [(kind, seed) for kind, n in (("plain", 10), ("layout", 10), ("contextual", 6)) for seed in range(n)]
CHAIN = 'start: NAME "if" NAME "else" start | NAME | "(" start ")"\nNAME: /x+/\n%ignore " "'
BLOCKS = r"""
start: (st | _NEWLINE)*
st: NAME _NEWLINE | "try" ":" block "or" ":" block
block: _NEWLINE _INDENT st+ _DEDENT
NAME: /a+/
_NEWLINE: /(\n[ ]*)+/
%ignore " "
%declare _INDENT _DEDENT
"""


@cache
def random_store(kind: str, seed: int) -> Store:
    grammar = KINDS[kind](seed)
    return compile_store(grammar, random_vocabulary(grammar, seed))


@cache
def pair_store() -> Store:
    """Its texts are few: an a, a c that leads nowhere, and the end."""
    return compile_store(longest('start: "a" "b"', "pair"), vocabulary_of(b"a", b"c"))


@cache
def letters_store(n: int = 12) -> Store:
    """After each letter another row: what may come is the letter behind it, or the first."""
    letters = [chr(97 + i) for i in range(n)]
    steps = " | ".join(f'"{letter}" s{(i + 1) % n}' for i, letter in enumerate(letters))
    rules = "\n".join(f's{i}: "{letter}" s{(i + 1) % n} | "."' for i, letter in enumerate(letters))
    return compile_store(
        longest(f"start: {steps}\n{rules}", "letters"), vocabulary_of(*(x.encode() for x in letters), b".")
    )


@cache
def blocks_store() -> Store:
    vocabulary = vocabulary_of(b"try:\n ", b"or:\n ", b"a\n", singles=b"a\n :tryo")
    return compile_store(longest(BLOCKS, "blocks"), vocabulary)


def filled(matcher: Matcher) -> np.ndarray:
    words = np.zeros(matcher.store.n_words, np.int32)
    matcher.fill(words)
    return words


def token_of(rng: random.Random, words: np.ndarray) -> int:
    return rng.choice(sorted(ids(words)))


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_rows_are_what_fill_writes(kind: str, seed: int) -> None:
    """A batch with random ends and admissions, and the same texts as matchers; few rows, so that most give way."""
    store = random_store(kind, seed)
    rng = random.Random(seed)
    size = 4
    many, few = ResidentRows(store, "cpu"), ResidentRows(store, "cpu", 2 * size + 1)
    batch = store.batch(size)
    twins: list[Matcher | None] = [store.matcher() for _ in range(size)]
    for _ in range(60):
        expected = []
        for slot, twin in enumerate(twins):
            try:
                expected.append(None if twin is None else filled(twin))
            except DeadEndError:
                twins[slot] = None
                expected.append(None)
        slots = [slot for slot in range(size) if twins[slot] is not None]
        for rows, texts in ((many, batch), (few, batch), (few, twins)):
            found = rows.ids(texts, slots if texts is batch else None)
            assert found.dtype == torch.int32
            for number, words in zip(found.tolist(), expected, strict=True):
                assert (number == -1) == (words is None)
                if words is not None:
                    assert np.array_equal(rows.words[number].numpy(), words)
                    assert (number == 0) == (not words.any())
        tokens = [-1] * size
        for slot, twin in enumerate(twins):
            words = expected[slot]
            if twin is None or words is None or rng.random() < 0.05:
                twins[slot] = store.matcher()
                batch.reset(slot)
            elif not twin.is_finished():
                tokens[slot] = token_of(rng, words)
                try:
                    twin.advance(tokens[slot])
                except LimitError:  # several readings that one lexer cannot follow
                    tokens[slot], twins[slot] = -1, None
        batch.advance(np.array(tokens))
    assert few.n_rows <= 2 * size + 1 and many.n_rows > 1


def kind_of(rows: ResidentRows, row: int) -> int:
    return int(rows._book[book_kernels.BOOK_HEADER + row * book_kernels.RECORD + book_kernels.KIND])


def test_the_end_is_taken_out_where_a_block_is_open() -> None:
    """Under layout masks say only that a block may end; behind the first block of two the text may not. Both rows are kept."""
    store = blocks_store()
    rows, eos = ResidentRows(store, "cpu"), store.vocabulary.eos[0]
    kinds = []
    for texts in (b"a\n", b"try:\n a\n", b"try:\n a\nor:\n a\n", b"try:\n try:\n  a\n or:\n  a\n", b"try:\n a\n"):
        matcher, batch = store.matcher(), store.batch(1)
        matcher.advance_bytes(texts)
        batch.advance_bytes(0, texts)
        found = int(rows.ids([matcher])[0])
        assert int(rows.ids(batch)[0]) == found
        assert np.array_equal(rows.words[found].numpy(), filled(matcher))
        assert (eos in rows.allowed(found).tolist()) == matcher.is_accepting() == (kind_of(rows, found) == 0)
        kinds.append(kind_of(rows, found))
    assert kinds[0] == 0 and kinds[1] == kinds[4] == book_kernels.WITHOUT_EOS


def test_a_deep_text_whose_masks_are_not_known() -> None:
    """A run that finds its continuation in the text's cache: rows are told apart by their words."""
    store = compile_store(longest(CHAIN, "chain"), vocabulary_of(b"x", b" else ", singles=b" ()efilsx"))
    rows = ResidentRows(store, "cpu", 9)
    matcher, batch = store.matcher(), store.batch(2)
    seen = set()
    for _ in range(500):
        for data in (b"x", b" if x else "):
            matcher.advance_bytes(data)
            batch.advance_bytes(0, data)
            words = filled(matcher.fork())
            for texts in ([matcher], batch):
                found = rows.ids(texts)
                assert np.array_equal(rows.words[int(found[0])].numpy(), words)
            seen.add(kind_of(rows, int(found[0])))
    assert seen == {0, book_kernels.BY_WORDS}
    assert rows.n_rows < 9


def test_room_that_runs_out_is_made() -> None:
    """Finding a mask behind a newline takes records: some of the texts have none left, and get the rows they would have had."""
    store = blocks_store()
    rows, batch = ResidentRows(store, "cpu"), store.batch(4)
    matcher = store.matcher()
    data = b"try:\n try:\n  a\n "
    matcher.advance_bytes(data)
    words = filled(matcher.fork())
    for slot in range(4):
        batch.advance_bytes(slot, data)
    made = []
    give_room = batch.many._give_room
    batch.many._give_room = lambda slot, tries: (made.append(slot), give_room(slot, tries))[1]  # type: ignore[method-assign]
    for texts, slots in ((batch.many, (1, 3)), (matcher.text.texts, (0,))):
        for slot in slots:
            region = int(texts._regions[slot])
            texts._memory[region + constants.CAPACITY] = texts._memory[region + constants.USED]
    for texts in (batch, [matcher]):
        for number in rows.ids(texts).tolist():
            assert np.array_equal(rows.words[number].numpy(), words)
    assert made == [1, 3] and rows.n_rows == 2


def test_what_is_resident_is_not_composed_again() -> None:
    store = letters_store()
    rows = ResidentRows(store, "cpu")
    batch = store.batch(3)
    new = []
    for step in range(40):
        rows.ids(batch)
        new.append(int(rows._book[book_kernels.N_NEW]))
        batch.advance(np.array([(step + slot) % 12 for slot in range(3)]))
    assert sum(new) == rows.n_rows - 1 == 13 and not any(new[13:])


def test_the_row_not_asked_for_longest_gives_way() -> None:
    store = letters_store()
    rows = ResidentRows(store, "cpu", 6)
    matcher = store.matcher()
    ids = []
    for step in range(4):
        ids.append(int(rows.ids([matcher])[0]))
        matcher.advance(step)
    assert ids == [1, 2, 3, 4]
    matcher.rollback(3)
    assert int(rows.ids([matcher])[0]) == 2  # row 1 was not asked for since, nor 3 and 4
    for step, expected in ((1, 3), (2, 4), (3, 5), (4, 1), (5, 2), (6, 3)):
        matcher.advance(step)
        assert int(rows.ids([matcher])[0]) == expected


def test_rows_of_this_call_and_the_last_stay() -> None:
    store = letters_store()
    rows = ResidentRows(store, "cpu", 9)
    batch = store.batch(4)
    batch.advance(np.array([0, 3, 6, 9]))
    before: list[tuple[int, np.ndarray]] = []
    for step in range(30):
        now = [(number, rows.words[number].clone().numpy()) for number in rows.ids(batch).tolist()]
        for number, words in before + now:
            assert np.array_equal(rows.words[number].numpy(), words)
        before = now
        batch.advance(np.array([(step + 1 + 3 * slot) % 12 for slot in range(4)]))
    short = ResidentRows(store, "cpu", 8)
    with pytest.raises(LimitError, match=r"all 8 rows are in use by this step and the one before; .* more than twice"):
        for step in range(30, 33):
            short.ids(batch)
            batch.advance(np.array([(step + 1 + 3 * slot) % 12 for slot in range(4)]))


class Device:
    """A device that gets round to what it was asked for late, in order: when an event is waited for, or when it likes."""

    def __init__(self) -> None:
        self.queue: list[Callable[[], Any]] = []
        self.n_waits = 0

    def run(self, n: int) -> None:
        for _ in range(min(n, len(self.queue))):
            self.queue.pop(0)()

    def event(self) -> Any:
        device = self

        class Event:
            is_done = True

            def record(self) -> None:
                self.is_done = False
                device.queue.append(lambda: setattr(self, "is_done", True))

            def synchronize(self) -> None:
                device.n_waits += not self.is_done
                while not self.is_done:
                    device.run(1)

        return Event()

    def tensor(self, *shape: int) -> Any:
        device = self

        class Late(torch.Tensor):
            def copy_(self, source: Any, non_blocking: bool = False) -> Any:
                assert non_blocking
                device.queue.append(lambda: torch.Tensor.copy_(self, source))
                return self

        return torch.zeros(shape, dtype=torch.int32).as_subclass(Late)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("capacity", [9, 14, 64])
def test_copies_under_way_are_of_what_the_step_asked_for(seed: int, capacity: int) -> None:
    """The host runs ahead of the device as far as the staging lets it; each step must still see its own numbers and its own rows."""
    device, rng = Device(), random.Random(seed)
    store = letters_store()
    rows = ResidentRows(store, "cpu", capacity)
    rows.words, rows._is_async = device.tensor(capacity, store.n_words), True
    rows._staging = Staging(capacity, False, device.event)
    numbers = device.tensor(6)
    matchers: list[Matcher | None] = [store.matcher() for _ in range(4)]
    checked = []

    def check(expected: list[np.ndarray | None]) -> None:
        for slot, words in enumerate(expected):
            number = int(numbers[slot])
            assert (number == -1) == (words is None)
            if words is not None:
                assert np.array_equal(rows.words[number].numpy(), words)
        checked.append(1)

    for step in range(120):
        expected = [None if matcher is None else filled(matcher) for matcher in matchers]
        assert rows.ids(matchers, out=numbers).shape == (4,)
        device.queue.append(lambda expected=expected: check(expected))
        device.run(rng.choice([0, 0, 1, 3, 9]))
        for slot, matcher in enumerate(matchers):
            if matcher is None or matcher.is_finished() or rng.random() < 0.1:
                matchers[slot] = None if rng.random() < 0.3 else store.matcher()
            else:
                words = filled(matcher)
                matcher.advance(token_of(rng, words))
        assert len(checked) >= step - 2
    device.run(len(device.queue))
    assert len(checked) == 120 and device.n_waits
    assert rows.n_rows == min(capacity, 1 + 13) or capacity > 13


def test_a_device_that_keeps_up_is_not_waited_for() -> None:
    device, store = Device(), letters_store()
    rows = ResidentRows(store, "cpu", 9)
    rows.words, rows._is_async = device.tensor(9, store.n_words), True
    rows._staging = Staging(9, False, device.event)
    matcher, out = store.matcher(), device.tensor(1)
    for step in range(40):
        rows.ids([matcher], out=out)
        device.run(99)
        matcher.advance(step % 12)
    assert not device.n_waits


def test_rows_composed_before_an_error_are_sent_all_the_same() -> None:
    """One text cannot go on; the others' rows must be there when they are asked for again."""
    device, store = Device(), pair_store()
    rows = ResidentRows(store, "cpu", 9)
    rows.words, rows._is_async = device.tensor(9, store.n_words), True
    batch = store.batch(3)
    batch.advance(np.array([-1, 0, -1]))
    out = device.tensor(3)
    with pytest.raises(DeadEndError, match=r"^slot 1: no token .* can come next"):
        rows.ids(batch, out=out)
    found = rows.ids(batch, [0, 2], out=out)
    device.run(99)
    assert found.tolist() == [1, -1, 1] and rows.words[1].tolist() == [1]
    with pytest.raises(DeadEndError, match="row 2: no token of vocabulary small can come next, and"):
        dead = store.matcher()
        dead.advance(0)
        rows.ids([None, store.matcher(), dead])


def test_stores_of_a_batch() -> None:
    """Equal masks of different stores are different rows; a store may be named twice."""
    vocabulary = vocabulary_of(b"a", b"b", b"c")
    stores = [compile_store(longest(f'start: "a" "{x}"', x), vocabulary) for x in "bc"]
    rows = ResidentRows([*stores, stores[0]], "cpu")
    matchers = [stores[0].matcher(), stores[1].matcher(), None, stores[0].matcher()]
    assert rows.ids(matchers).tolist() == [1, 2, -1, 1]
    for matcher in matchers:
        if matcher is not None:
            matcher.advance(0)
    found = rows.ids(matchers)
    assert [rows.allowed(number).tolist() for number in found.tolist() if number != -1] == [[1], [2], [1]]
    logits = torch.zeros(4, 40, dtype=torch.bfloat16)
    rows.apply(logits, found)
    assert [torch.isfinite(one).nonzero().flatten().tolist() for one in logits] == [[1], [2], list(range(40)), [1]]


def test_numbers_are_written_where_a_graph_wants_them() -> None:
    rows, store = ResidentRows(pair_store(), "cpu"), pair_store()
    out = torch.full((5,), 7, dtype=torch.int32)
    found = rows.ids([store.matcher(), None], out=out)
    assert found.data_ptr() == out.data_ptr() and out.tolist() == [1, -1, 7, 7, 7]
    first, second = rows.ids([store.matcher()]), rows.ids([None])
    assert (first.tolist(), second.tolist()) == ([1], [-1])  # tensors of their own


def test_texts_of_all_kinds_have_rows() -> None:
    """Of schemas and compositions by their words, beside those of grammars; a batch of one store, and of several."""
    vocabulary = mw.load_vocabulary("python-tiny")
    host = mw.compose('start: "x" PART "y"\n%declare PART', {"PART": {"type": "integer"}})
    stores = [mw.build_store(each, vocabulary) for each in ({"type": "object"}, "json", host)]
    rows = ResidentRows(stores, "cpu", 16)
    for batch, begins in (
        (mw.Batch(stores[0], 2), (b'{"', b"")),
        (mw.Batch(stores), (b'{"', b"[", b"x1")),
        (mw.Batch([stores[0], stores[0]]), (b"{", b"{")),
    ):
        for slot, text in enumerate(begins):
            batch.advance_bytes(slot, text)
        words = np.zeros((batch.size, stores[0].n_words), np.int32)
        batch.fill(words)
        ids = rows.ids(batch)
        assert np.array_equal(rows.words[ids.long()].numpy(), words)
        assert rows.ids(batch, slots=[1]).tolist() == [-1, ids[1], *[-1] * (batch.size - 2)]
    assert ids[0] == ids[1], "one mask has one row"
    ended = stores[0].matcher()
    ended.advance_bytes(b"{}")
    ended.advance(vocabulary.eos[0])
    assert rows.ids([ended, None]).tolist() == [book_kernels.NOTHING, -1]


def test_rows_made_in_inference_mode_can_be_written_to_outside() -> None:
    with torch.inference_mode():
        rows = ResidentRows(pair_store(), "cpu")
        rows.ids([pair_store().matcher()])
    assert not rows.words.is_inference()
    rows.words[1].copy_(rows.words[0])


def test_what_does_not_fit_is_said() -> None:
    store = pair_store()
    with pytest.raises(
        MaskwrightError, match=r"there is no CUDA device here that PyTorch .* can use; give device='cpu'"
    ):
        ResidentRows(store)
    with pytest.raises(MaskwrightError, match="'gpu' is not a device"):
        ResidentRows(store, "gpu")
    with pytest.raises(MaskwrightError, match="capacity is 2 rows; expected more than twice the sequences"):
        ResidentRows(store, "cpu", 2)
    with pytest.raises(MaskwrightError, match="no store is given"):
        ResidentRows([], "cpu")
    with pytest.raises(VocabularyError, match="different vocabularies, small and small"):
        ResidentRows([store, letters_store()], "cpu")
    with pytest.raises(MaskwrightError, match="cannot be used for decoding: a store with lexing 'nfa' has no matcher"):
        ResidentRows(small_store(), "cpu")  # type: ignore[arg-type]
    rows = ResidentRows(store, "cpu", 4)
    with pytest.raises(MaskwrightError, match="5 sequences are more than the 4 rows kept"):
        rows.ids(store.batch(5))
    with pytest.raises(MaskwrightError, match=r"the texts belong to <Store letters .*, which is not one of the stores"):
        rows.ids([letters_store().matcher()])
    with pytest.raises(MaskwrightError, match="the texts are a Matcher; expected a batch, or a list of matchers"):
        rows.ids(store.matcher())
    with pytest.raises(MaskwrightError, match=r"slot 1 is 3, an int; expected a matcher, or None"):
        rows.ids([None, 3])  # type: ignore[list-item]
    with pytest.raises(MaskwrightError, match=r"slots are for a batch"):
        rows.ids([store.matcher()], slots=[0])
    with pytest.raises(MaskwrightError, match=r"slot 2 is out of range"):
        rows.ids(store.batch(2), slots=[2])
    for out, message in (
        (torch.zeros(1), r"out is float32 of shape \(1,\) on cpu; expected an int32 tensor of shape \(2,\)"),
        (torch.zeros(1, dtype=torch.int32), r"out is int32 of shape \(1,\) on cpu"),
        (torch.zeros(2, dtype=torch.int32, device="meta"), "on meta; expected an int32 tensor"),
        (np.zeros(2, np.int32), "out is a ndarray"),
    ):
        with pytest.raises(MaskwrightError, match=message):
            rows.ids(store.batch(2), out=out)
    found = rows.ids(store.batch(2))
    with pytest.raises(MaskwrightError, match="the model gives 2 logits, but vocabulary small has tokens up to id 2"):
        rows.apply(torch.zeros(2, 2), found)
    with pytest.raises(MaskwrightError, match="2 row_ids are given for 3 rows of logits"):
        rows.apply(torch.zeros(3, 8), found)
    assert "of 4 rows" in repr(rows)


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checked_device("cpu") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert checked_device("cuda") == torch.device("cuda", 1)
    with pytest.raises(MaskwrightError, match="there is no cuda:2: PyTorch finds 2 CUDA devices"):
        checked_device("cuda:2")
