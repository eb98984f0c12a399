"""What is passed by mistake: an error that says what it is, of the kind that callers catch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from stores import LAYOUT_TEXT, small_automaton, small_vocabulary

from maskwright.analysis.composition import compose
from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.batch import Batch
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.file.fileformat import save_store
from maskwright.stores.build import build_store
from maskwright.stores.store import Store, load_store

NO_INTEGERS: list[Any] = [None, "1", 1.5, 1.0, float("nan"), True, np.bool_(True), b"1", [1], np.array([1, 2]), 1 + 0j]


def store() -> Store:
    return small_automaton("lines")


def raises(call: Callable[[], object], message: str) -> None:
    with pytest.raises(MaskwrightError, match=message) as caught:
        call()
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
def test_numbers_that_are_none(value: Any) -> None:
    batch, matcher = store().batch(2), store().matcher()
    words = np.zeros((2, store().n_words), np.uint32)
    expected = "expected an integer"
    raises(lambda: store().batch(value), f"^size is .*{expected}")
    raises(lambda: store().batch(1, value), f"^max_rollback is .*{expected}")
    raises(lambda: store().batch(1, 1, value), f"^n_threads is .*{expected}")
    raises(lambda: store().matcher(value), f"^max_rollback is .*{expected}")
    raises(lambda: matcher.rollback(value), f"^the number of tokens to roll back is .*{expected}")
    raises(lambda: batch.rollback(0, value), f"^slot 0: the number of tokens to roll back is .*{expected}")
    uses: list[Callable[[], object]] = [
        lambda: batch.reset(value), lambda: batch.rollback(value), lambda: batch.is_allowed(value, 0),
        lambda: batch.is_accepting(value), lambda: batch.is_finished(value), lambda: batch.advance_bytes(value, b"a"),
        lambda: batch.copy(value, 0), lambda: batch.copy(0, value), lambda: batch.explain(value, 0),
        lambda: batch.shortest_ending(value), lambda: batch.min_bytes_left(value), lambda: batch.fill(words, [value]),
        lambda: batch.fill(words, [0, value]),
    ]  # fmt: skip
    for use in uses:
        raises(use, f"^a slot is .*{expected}")


@pytest.mark.parametrize(
    "value", [None, "1", 1.5, float("nan"), b"1", [1], np.array([1, 2]), True, np.False_], ids=repr
)
def test_tokens_that_are_none(value: Any) -> None:
    batch, matcher = store().batch(2), store().matcher()
    uses: list[Callable[[], object]] = [
        lambda: matcher.advance(value),
        lambda: matcher.is_allowed(value),
        lambda: matcher.explain(value),
        lambda: batch.is_allowed(0, value),
        lambda: batch.explain(0, value),
    ]
    for use in uses:
        raises(use, "is a .*, not an id; expected an integer")


@pytest.mark.parametrize("huge", [1 << 31, 1 << 63, 1 << 64, 10**5000, -(10**5000)], ids=["31", "63", "64", "+", "-"])
def test_numbers_that_are_huge(huge: int) -> None:
    batch, matcher = store().batch(2), store().matcher()
    composed = build_store(compose('start: "(" PART ")"\n%declare PART', {"PART": {"const": 1}}), small_vocabulary())
    raises(lambda: matcher.rollback(huge), "^cannot roll back .* tokens: 0 are remembered")
    raises(lambda: batch.reset(huge), "^slot .* is out of range: the batch has the slots 0 to 1")
    raises(lambda: store().batch(1, 1, huge), "^n_threads is .*; expected at least 1, and at most 1024")
    assert not matcher.is_allowed(huge)
    said = str(huge) if abs(huge) < 1 << 65 else "a value of type int that is too large to be shown"
    raises(lambda: matcher.advance(huge), f"^token {said} is out of range: the vocabulary has the ids 0 to")
    assert str(matcher.explain(huge)).startswith(f"token {said} is out of range")
    assert store().batch(1).explain(0, huge).startswith(f"token {said} is out of range")
    raises(lambda: batch.advance([0, huge]), r"^slot 1: .* out of range|dtype (object|float64); expected 2 integers")
    raises(lambda: matcher.replay([huge]), r"out of range|dtype object; expected \(n,\) integers")
    for size, rollback in ((huge, 1), (1, huge)):
        if huge > 0:
            with pytest.raises(LimitError, match="are more than can be numbered in 31 bits; make several batches"):
                store().batch(size, rollback)
            with pytest.raises(LimitError, match="more than can be numbered in 31 bits"):
                composed.matcher(huge)
        else:
            raises(lambda size=size, rollback=rollback: store().batch(size, rollback), "expected at least [01]")  # type: ignore[misc]


@pytest.mark.parametrize("value", ["a", 5, None, ["a"], np.zeros(3, np.uint8), 1.5], ids=repr)
def test_text_that_is_no_bytes(value: Any) -> None:
    matcher = store().matcher()
    message = "^the text is .*; expected bytes" + ("; encode it: text.encode\\(\\)" if isinstance(value, str) else "$")
    raises(lambda: matcher.advance_bytes(value), message)
    raises(lambda: store().batch(1).advance_bytes(0, value), message.replace("^", "^slot 0: "))
    for data in (b"ab", bytearray(b"ab"), memoryview(b"ab"), memoryview(b"a-b-")[::2]):
        matcher.advance_bytes(data)  # type: ignore[arg-type]
    assert matcher.text.stacks()


@pytest.mark.parametrize(
    "tokens",
    [[[1], [1, 2]], [1.5, 2.0], ["a", "b"], [None, 1], [True, False], 5, np.array(1), np.array([[0, 0]]), {1, 2}, "ab", [1 << 64, 0]],
    ids=repr,
)  # fmt: skip
def test_tokens_of_a_batch_that_are_none(tokens: Any) -> None:
    raises(lambda: store().batch(2).advance(tokens), "expected 2 integers, -1 for texts to leave alone")
    raises(lambda: store().matcher().replay(tokens), r"expected \(n,\) integers|out of range|is not legal")


class NoArray:
    def __array__(self, *_: object, **__: object) -> None:
        raise RuntimeError("on another device")


def test_tokens_that_fail_when_they_are_read() -> None:
    raises(
        lambda: store().batch(2).advance(NoArray()),
        r"tokens cannot be read as an array \('on another device'\); expected",
    )


def test_the_greatest_id_is_not_minus_one() -> None:
    batch = store().batch(2)
    for token in (2**64 - 1, 2**64 - 2, 2**63):
        raises(
            lambda token=token: batch.advance(np.array([token, 0], np.uint64)), f"slot 0: token {token} is out of range"
        )  # type: ignore[misc]
        batch.rollback(1)
        raises(
            lambda token=token: store().matcher().replay(np.array([token], np.uint64)), f"token {token} is out of range"
        )  # type: ignore[misc]


@pytest.mark.parametrize("dtype", [">i8", ">u4", "<i2", "u8", "i1"])
def test_tokens_of_any_order_and_in_any_memory(dtype: str) -> None:
    batch = store().batch(2)
    tokens = np.array([0, 7, 1, 7], dtype)[::2]
    tokens.setflags(write=False)
    batch.advance(tokens)
    other = store().batch(2)
    other.advance([0, 1])
    assert [each.text.stacks() for each in batch._texts] == [each.text.stacks() for each in other._texts]


@pytest.mark.parametrize("slots", [3, None.__class__, 1.5, object()], ids=["number", "class", "float", "object"])
def test_slots_that_are_no_list(slots: Any) -> None:
    words = np.zeros((2, store().n_words), np.uint32)
    raises(lambda: store().batch(2).fill(words, slots), "^slots is .*; expected a list of slot numbers")


def misaligned(n: int) -> np.ndarray:
    return np.zeros(4 * n + 1, np.uint8)[1:].view(np.uint32)


def test_bitmasks_in_odd_places() -> None:
    n = store().n_words
    matcher = store().matcher()
    raises(lambda: matcher.fill(misaligned(n)), "not contiguous, not writable or not aligned")
    raises(lambda: matcher.fill(np.zeros(n, ">u4")), "dtype >u4; expected")
    raises(lambda: matcher.fill(np.array(5, np.uint32)), r"shape \(\); expected")
    matrix = np.zeros(n, np.uint32).view(np.recarray)
    matcher.fill(matrix)
    plain = np.zeros(n, np.uint32)
    matcher.fill(plain)
    assert (np.asarray(matrix) == plain).all() and plain.any()


def test_bitmasks_of_torch_that_numpy_cannot_write_to() -> None:
    torch = pytest.importorskip("torch")
    matcher = store().matcher()
    n = store().n_words
    raises(lambda: matcher.fill(torch.zeros(n, dtype=torch.bfloat16)), "cannot be written to by NumPy|dtype")
    raises(lambda: matcher.fill(torch.zeros(n, dtype=torch.int32).to_sparse()), "cannot be written to by NumPy")
    raises(lambda: matcher.fill(torch.zeros(n, dtype=torch.int32, device="meta")), "on device meta")


# Stores


def test_what_a_store_is_not_made_of() -> None:
    grammar, vocabulary = parse_grammar(LAYOUT_TEXT, name="lines"), small_vocabulary()
    for wrong in (None, 5, [], object(), 1.5):
        raises(
            lambda wrong=wrong: build_store(wrong, vocabulary), "^a grammar is a name, a path or a text; this is an? "
        )  # type: ignore[misc]
        raises(lambda wrong=wrong: build_store(grammar, wrong), "^(no vocabulary can be read from|<tokens>)")  # type: ignore[misc]
    raises(lambda: build_store(vocabulary, grammar), "^<Vocabulary .* is a vocabulary, not a grammar")  # type: ignore[arg-type]
    raises(
        lambda: build_store(grammar, vocabulary, progress=5),
        "^progress is 5, an int; expected a function of three arguments",
    )  # type: ignore[arg-type]
    with pytest.raises(MaskwrightError, match="rules is 'x'; expected 'normalised' or 'lark'"):
        build_store(parse_grammar('start: "a"', lexing="nfa"), vocabulary, rules="x")  # type: ignore[arg-type]


def test_what_is_no_path(tmp_path: Any) -> None:
    for wrong in (None, 5, 1.5, [], object()):
        raises(lambda wrong=wrong: load_store(wrong), "^the path of a store is .*; expected a str or a Path")  # type: ignore[misc]
        raises(lambda wrong=wrong: save_store(store(), wrong), "^the path of a store is .*; expected a str or a Path")  # type: ignore[misc]
    raises(lambda: load_store("a\0b"), "cannot be read")
    path = tmp_path / "s"
    save_store(store(), path)
    raises(lambda: load_store(path, vocabulary="small"), "^no vocabulary 'small'")
    raises(lambda: load_store(path, grammar="json"), "was made for the grammar")
    raises(lambda: save_store("s", path), "^the store is 's', a str; expected a store")  # type: ignore[arg-type]
    assert load_store(str(path)).vocabulary.digest == store().vocabulary.digest


def test_matchers_of_no_store() -> None:
    for wrong in (None, "json", 5):
        raises(lambda wrong=wrong: Matcher(wrong), "^the store is .*; expected a store, as mw.build_store")  # type: ignore[misc]
        raises(lambda wrong=wrong: Batch(wrong, 1), "^the store is .*; expected a store, as mw.build_store")  # type: ignore[misc]


# Resident rows


def test_rows_of_what_is_none() -> None:
    torch = pytest.importorskip("torch")
    from maskwright.decoding.logits import ResidentRows

    for wrong in NO_INTEGERS:
        raises(lambda wrong=wrong: ResidentRows(store(), "cpu", wrong), "^capacity is .*expected an integer")  # type: ignore[misc]
    raises(lambda: ResidentRows(store(), "cpu", 10**5000), "^capacity is .* rows; expected more than twice")
    for wrong in (None, 5, "ab", [None]):
        raises(lambda wrong=wrong: ResidentRows(wrong, "cpu"), "^the store is .*; expected a store, as mw.build_store")  # type: ignore[misc]
    raises(lambda: ResidentRows(store(), "nowhere"), "'nowhere' is not a device")
    rows = ResidentRows(store(), "cpu", 8)
    batch = store().batch(2)
    for wrong in (None, 5, "ab", {1}, 1.5):
        raises(lambda wrong=wrong: rows.ids(wrong), "^the texts are a|^slot 0 is 'a', a str")  # type: ignore[misc]
    for wrong in NO_INTEGERS:
        raises(lambda wrong=wrong: rows.ids(batch, [wrong]), "^a slot is .*expected an integer")  # type: ignore[misc]
        raises(lambda wrong=wrong: rows.allowed(wrong), "^row is .*expected an integer")  # type: ignore[misc]
    raises(lambda: rows.ids(batch, 5), "^slots is 5; expected a list")  # type: ignore[arg-type]
    raises(lambda: rows.ids(batch, out=np.zeros(2, np.int32)), "^out is a ndarray")
    found = rows.ids(batch)
    for row in (-1, 2, 8, 1 << 70):
        raises(lambda row=row: rows.allowed(row), "^row .* is out of range: the rows in use are 0 to 1")  # type: ignore[misc]
    assert len(rows.allowed(int(found[0])))
    for wrong in (None, 5, [[0.0]], np.zeros((2, 2), np.int32)):
        raises(lambda wrong=wrong: rows.apply(wrong, found), "logits")  # type: ignore[misc]
    logits = torch.zeros(2, store().vocabulary.size)
    for wrong in (None, 5, "ab", [0.5, 0.5], torch.tensor([0, 99]), torch.zeros(3, dtype=torch.int32)):
        raises(lambda wrong=wrong: rows.apply(logits, wrong), "row_ids|ids")  # type: ignore[misc]


# The logits processor


def processor(**options: Any) -> Any:
    from maskwright.decoding.adapters import MaskwrightLogitsProcessor

    return MaskwrightLogitsProcessor(options.pop("given", store()), **options)


OF_THE_PROCESSOR: list[tuple[str, list[Any], str]] = [
    ("prefix", [5, None, True, [1], [None], b"a"[0]], "prefix is .*; expected a str or bytes, or a list with one for each"),
    ("prefix", ["\ud800", ["a", "\ud800"]], "prefix is .*, which holds half a surrogate pair"),
    ("prompt_lengths", ["a", True, b"1", np.True_], "^prompt_lengths is .*; expected an integer, or a list"),
    ("prompt_lengths", [["a"], 1.5, [1.5], [None], [True], [[1], [1, 2]]], "^prompt_lengths .*; expected an integer, or a list"),
    ("prompt_lengths", [[], [[1]], np.zeros((1, 1), int)], "^prompt_lengths have shape .*; expected an integer, or a list"),
    ("max_rollback", ["1", 1.5, True, None], "^max_rollback is .*; expected an integer"),
    ("constrain_prompt", ["no", 0, None, []], "^constrain_prompt is .*; expected True or False"),
    ("in_place", ["no", 1, None, []], "^in_place is .*; expected True or False"),
    ("drafts", ["no", 0, [], 1.5], "^drafts is .*; expected True or False"),
    ("given", [5, None, [None]], "^the store is .*; expected a store, as mw.build_store"),
    ("given", [b"nowhere/s"], "cannot be read|no such file|not found|there is no"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "wrongs", "message"), OF_THE_PROCESSOR)
def test_what_a_processor_is_not_made_with(what: str, wrongs: list[Any], message: str) -> None:
    pytest.importorskip("torch")
    for wrong in wrongs:
        raises(lambda wrong=wrong: processor(**{what: wrong}), message)  # type: ignore[misc]


def test_what_a_processor_is_made_with() -> None:
    torch = pytest.importorskip("torch")
    ids, scores = torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, store().vocabulary.size)
    expected = processor(prompt_lengths=[3, 3])(ids, scores)
    for lengths in (3, np.int64(3), np.array([3, 3]), torch.tensor([3, 3]), torch.tensor(3), (np.int8(3), 3)):
        assert torch.equal(processor(prompt_lengths=lengths)(ids, scores), expected)
    processor(in_place=np.True_, constrain_prompt=np.False_, prefix=bytearray(b""))(ids, scores)
    assert torch.equal(scores, expected)


def test_what_a_processor_is_not_called_with() -> None:
    torch = pytest.importorskip("torch")
    size = store().vocabulary.size
    ids, scores = torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, size)
    wrongs: list[Any] = [
        None,
        5,
        "ab",
        [[0] * 3] * 2,
        np.zeros((2, 3)),
        torch.zeros(2, 3, device="meta"),
        scores.to_sparse(),
    ]
    made = processor()
    for wrong in wrongs:
        message = (
            "the tensor is on device meta|the tensor has the layout"
            if isinstance(wrong, torch.Tensor)
            else "expected a tensor of torch"
        )
        raises(lambda wrong=wrong: made(wrong, scores), f"(?s)^input_ids.*({message})")  # type: ignore[misc]
        raises(lambda wrong=wrong: made(ids, wrong), f"(?s)^scores.*({message})")  # type: ignore[misc]
    for wrong in (ids.double(), ids.bool()):
        raises(lambda wrong=wrong: made(wrong, scores), "^input_ids have shape .*; expected integers")  # type: ignore[misc]
    for wrong in (ids[0], ids[:1], ids[:0]):
        raises(lambda wrong=wrong: made(wrong, scores), "^input_ids have shape .*; expected|the same B > 0")  # type: ignore[misc]
    made(ids, scores)
    for wrong in (None, 5, "ab", [[1.5]], [1], ids.float(), ids.to("meta"), [[1], [1, 2]]):
        raises(lambda wrong=wrong: made.endings(wrong), "sequences")  # type: ignore[misc]
    for wrong in (None, "ab", [1], [[1.5]]):
        raises(lambda wrong=wrong: made.masks(wrong), "ids")  # type: ignore[misc]


NO_LISTS: list[Any] = [None, 5, True, "01", b"01", 1.5]
NO_NUMBERS: list[Any] = [None, "1", 1.5, 1.0, True, np.bool_(True), b"1", [1], 1 + 0j]


def gpu_batch(*arguments: Any, **options: Any) -> Any:
    pytest.importorskip("torch")
    from maskwright.decoding.gpu import GpuBatch

    return GpuBatch(*(arguments or (store(), 2)), **{"device": "cpu", **options})


@pytest.mark.slow
def test_slots_of_a_device_that_are_none() -> None:
    batch = gpu_batch()
    batch.admit([0, 1])
    batch.advance([0, -1])
    before = batch.states(), batch.lengths.tolist()
    for call in (batch.admit, batch.reset, batch.evict):
        for wrong in NO_LISTS:
            raises(lambda call=call, wrong=wrong: call(wrong), "^slots is .*; expected a list of slot numbers")  # type: ignore[misc]
        for wrong in NO_NUMBERS:
            raises(lambda call=call, wrong=wrong: call([0, wrong]), "^a slot is .*; expected an integer")  # type: ignore[misc]
        for wrong in (-1, 2, 1 << 70, 10**2000):
            raises(lambda call=call, wrong=wrong: call([wrong]), "^slot .* is out of range: the batch has the slots 0")  # type: ignore[misc]
    for wrong in NO_NUMBERS:
        raises(lambda wrong=wrong: batch.fetch(wrong), "^a slot is .*; expected an integer")  # type: ignore[misc]
        raises(lambda wrong=wrong: batch.fetch(0, wrong), "^max_rollback is .*; expected an integer")  # type: ignore[misc]
    for wrong in (3, True, "ab", b"ab"):
        raises(lambda wrong=wrong: batch.admit([0, 1], wrong), "^matchers is .*; expected a list of matchers")  # type: ignore[misc]
    for wrong in (5, "ab", store(), [None]):
        raises(lambda wrong=wrong: batch.admit([0], [wrong]), "^a member of matchers is .*; expected a Matcher or None")  # type: ignore[misc]
    assert (batch.states(), batch.lengths.tolist()) == before
    batch.reset(np.array([0, 1], np.uint8))
    assert batch.lengths.tolist() == [0, 0]


def test_tokens_of_a_device_that_are_none() -> None:
    torch = pytest.importorskip("torch")
    batch = gpu_batch()
    batch.admit([0, 1])
    for call in (batch.advance, batch.prepare):
        for wrong in (
            ["a", "b"], [1.0, 2.0], [True, False], [[1], [1, 2]], [1], 5, "ab", [None, 1], [object(), 1],
            torch.zeros(2), torch.zeros(2, dtype=torch.bool), torch.zeros(2, dtype=torch.complex64), torch.zeros(3, dtype=torch.int32),
        ):  # fmt: skip
            raises(lambda call=call, wrong=wrong: call(wrong), "^tokens ")  # type: ignore[misc]
    assert batch.lengths.tolist() == [0, 0]
    batch.advance(np.array([0, (1 << 64) - 1], np.uint64))
    assert batch.lengths.tolist() == [1, 0] and batch.states()[1] == "token out of range"


def test_what_no_batch_on_a_device_is_made_of() -> None:
    for wrong in NO_NUMBERS:
        raises(lambda wrong=wrong: gpu_batch(store(), wrong), "^size is .*; expected an integer")  # type: ignore[misc]
        raises(lambda wrong=wrong: gpu_batch(held=[wrong]), "^a member of held is .*; expected an integer")  # type: ignore[misc]
        for what in ("n_records", "n_deep", "deep_records"):
            raises(lambda what=what, wrong=wrong: gpu_batch(**{what: wrong}), f"^{what} is .*; expected an integer")  # type: ignore[misc]
    for wrong in NO_LISTS[1:]:
        raises(lambda wrong=wrong: gpu_batch(held=wrong), "^held is .*; expected a list of tokens, or None")  # type: ignore[misc]
    for wrong in (None, 5, "json", store().grammar):
        raises(lambda wrong=wrong: gpu_batch(wrong, 1), "^the store is .*; expected a Store, as mw.build_store")  # type: ignore[misc]


@pytest.mark.parametrize("name", ["Explainer", "build_follow_graph"])
def test_what_no_verdicts_are_made_of(name: str) -> None:
    import maskwright

    for wrong in (None, 5, "json", store().grammar):
        raises(
            lambda wrong=wrong: getattr(maskwright, name)(wrong), "^deciders is .*; expected the Deciders of a grammar"
        )  # type: ignore[misc]


# Generation


OF_GENERATE: list[tuple[str, list[Any], str]] = [
    ("max_tokens", ["1", 1.5, True, None], "^max_tokens is .*; expected an integer"),
    ("top_k", ["1", 1.5, True, None], "^top_k is .*; expected an integer"),
    ("seed", ["1", 1.5, True, None], "^seed is .*; expected an integer"),
    ("seconds", ["1", True, [1]], "^seconds is .*; expected a number"),
    ("temperature", ["1", True, None], "^temperature is .*; expected a number"),
    ("top_p", ["1", True, None], "^top_p is .*; expected a number"),
    ("stop", ["ab", b"ab", 5, None, [5], [None]], "stop is .*; expected a list of strings or bytes"),
    ("stop_when_complete", ["no", 0, None], "^stop_when_complete is .*; expected True or False"),
    ("close", ["no", 0, None], "^close is .*; expected True or False"),
    ("heal", ["a", 5, None], "^heal is .*; expected bytes"),
    ("vocabulary", [5, "python-tiny"], "^vocabulary is .*; expected a Vocabulary"),
    ("matcher", [5, "json"], "^matcher is .*; expected a Matcher"),
    ("prompt_tokens", [None, 5, "ab", [1.5], [[1]], [True]], "^prompt_tokens "),
]


@pytest.mark.parametrize(("what", "wrongs", "message"), OF_GENERATE)
def test_what_is_not_generated_with(what: str, wrongs: list[Any], message: str) -> None:
    from maskwright.decoding.generation import generate

    fine = {
        "model": lambda tokens: None,
        "matcher": store().matcher(),
        "prompt_tokens": [1],
        "vocabulary": small_vocabulary(),
    }
    for wrong in wrongs:
        raises(lambda wrong=wrong: generate(**{**fine, what: wrong}), message)  # type: ignore[misc]
        if what != "vocabulary":  # the matcher's, which is asked for it
            most = {key: value for key, value in fine.items() if key != "vocabulary"}
            raises(lambda wrong=wrong, most=most: generate(**{**most, what: wrong}), message)  # type: ignore[misc]


def test_models_that_have_no_name() -> None:
    from maskwright.completion import load_model, start_completion

    for wrong in (None, 5, True, b"python-tiny"):
        raises(lambda wrong=wrong: load_model(wrong), "^the name of a model is .*; expected a str or a Path")  # type: ignore[misc]
    raises(lambda: load_model("python-tiny", device=5), "^device is 5, an int; expected a str or None")  # type: ignore[arg-type]
    nothing: Any = None
    for what in ("constrained", "heal"):
        raises(
            lambda what=what: start_completion(store(), "", nothing, **{what: "no"}),
            f"^{what} is 'no', a str; expected True",
        )  # type: ignore[misc]
