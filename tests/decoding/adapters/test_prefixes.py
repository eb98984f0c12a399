"""Rows of ids in whatever order and number: each row's matcher has read what is behind its prompt, or there is an error."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from shares import share

from maskwright.analysis.errors import IllegalTokenError, MaskwrightError
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.adapters.prefixes import Prefixes, Rules, sequence_of
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

LIST_TEXT = 'start: "[" (item ("," item)*)? "]"\nitem: "1" | "a" | start | "{" "}"'
PAIRS_TEXT = 'start: "a" start "b" | "a" "b"'
PIECES = [b"[", b"]", b",", b"1", b"a", b"b", b"{", b"}", b"[1", b",1", b"]]", b"[[", b"x"]
EOS, PAD, BOS = len(PIECES), len(PIECES) + 1, len(PIECES) + 2
VOCABULARY = Vocabulary("pieces", (*PIECES, b"", b"", b""), {EOS: "</s>", PAD: "<pad>", BOS: "<s>"}, (EOS,))
OPEN, CLOSE, COMMA, ONE, A, B = range(6)
X = PIECES.index(b"x")


@functools.cache
def store(text: str = LIST_TEXT) -> Store:
    return compile_store(parse_grammar(text, name="list" if text == LIST_TEXT else "pairs"), VOCABULARY)


def prefixes(*stores: Store, **options: Any) -> Prefixes:
    known = {"prefixes": (b"",), "prompt_lengths": None, "constrain_prompt": False, "max_rollback": 3, "drafts": None}
    return Prefixes(Rules(stores or (store(),), **{**known, **options}))


def ids(*rows: list[int]) -> Any:
    return np.array(rows, np.int64)


def check(followed: Prefixes, texts: list[list[int]], stores: list[Store]) -> None:
    """From the definition: a fresh matcher of each row's store over all of its text."""
    assert len(followed.matchers) == len(texts)
    for row, tokens in enumerate(texts):
        fresh = stores[row].matcher()
        for token in tokens:
            fresh.advance(token)
            if token == EOS:
                break
        assert followed.has_ended[row] == fresh.is_finished(), row
        words, expected = np.zeros(stores[row].n_words, np.int32), np.zeros(stores[row].n_words, np.int32)
        followed.matchers[row].fill(words)
        fresh.fill(expected)
        assert np.array_equal(words, expected), (row, tokens)


def draw_text(rng: np.random.Generator, of: Store, length: int) -> list[int]:
    """A random legal beginning of so many tokens; padding behind its end."""
    matcher = of.matcher()
    found: list[int] = []
    while len(found) < length:
        if matcher.is_finished():
            found.append(PAD)
            continue
        allowed = [token for token in range(VOCABULARY.size) if matcher.is_allowed(token)]
        found.append(int(rng.choice(allowed)))
        matcher.advance(found[-1])
    return found


def test_several_tokens_at_once_are_read() -> None:
    followed = prefixes()
    followed.follow(ids([BOS]))
    followed.follow(ids([BOS, OPEN, ONE]))
    check(followed, [[OPEN, ONE]], [store()])
    followed.follow(ids([BOS, OPEN, ONE, COMMA, OPEN, CLOSE]))
    check(followed, [[OPEN, ONE, COMMA, OPEN, CLOSE]], [store()])
    with pytest.raises(IllegalTokenError, match=r"row 0, position 7: .*call reset\(\) first"):
        followed.follow(ids([BOS, OPEN, ONE, COMMA, OPEN, CLOSE, CLOSE, X]))


def test_rows_may_be_dropped_added_and_changed_about() -> None:
    stores = (store(), store(PAIRS_TEXT))
    followed = prefixes(*stores)
    one, two = [X, BOS], [X, X]
    followed.follow(ids(one, two))
    followed.follow(ids([*one, OPEN], [*two, A]))
    followed.follow(ids([*two, A, A]))  # the first is gone
    check(followed, [[A, A]], [stores[1]])
    followed.follow(ids([*two, A, A, B], [*one, OPEN, OPEN, CLOSE], [*two, A, A, A]))
    check(followed, [[A, A, B], [OPEN, OPEN, CLOSE], [A, A, A]], [stores[1], stores[0], stores[1]])
    followed.follow(ids([*one, OPEN], [*two, A]))
    check(followed, [[OPEN], [A]], list(stores))
    followed.follow(ids([*two, A, A], [*one, OPEN, ONE]))
    check(followed, [[A, A], [OPEN, ONE]], [stores[1], stores[0]])


@pytest.mark.parametrize("seed", share(range(30), 6))
def test_random_loops(seed: int) -> None:
    """Jumps ahead and back, rows dropped, copied and shuffled, padding cut off on the left, calls that fail: never another mask."""
    rng = np.random.default_rng(seed)
    stores = [store(), store(PAIRS_TEXT), store()]
    prompts = [[PAD, PAD, X, ONE], [BOS, X, X, BOS], [PAD, BOS, X, B]]
    texts = [draw_text(rng, one, 40) for one in stores]
    followed = prefixes(*stores)
    followed.follow(ids(*prompts))
    length = 0
    for _ in range(40):
        length = int(np.clip(length + rng.choice([-7, -2, -1, 0, 1, 1, 1, 2, 3]), 0, 40))
        chosen = list(range(3)) if rng.random() < 0.6 else rng.integers(3, size=rng.integers(1, 6)).tolist()
        if not length:
            chosen = list(range(3))  # prompts alone are a new generation
        rows = [prompts[i] + texts[i][:length] for i in chosen]
        kind = rng.random()
        if kind < 0.1 and length:
            wrong = [*rows[-1][:-1], X]
            if EOS not in wrong:
                with pytest.raises(IllegalTokenError, match=f"row {len(rows) - 1}, position"):
                    followed.follow(ids(*rows[:-1], wrong))
        elif kind < 0.2:
            followed.distrust()
        cut = int(rng.integers(2)) if length and set(chosen) <= {0, 2} else 0
        followed.follow(ids(*(row[cut:] for row in rows)))
        check(followed, [texts[i][:length] for i in chosen], [stores[i] for i in chosen])
    followed.reset()
    assert not followed.has_begun


def test_after_an_error_the_texts_begin_where_they_began() -> None:
    followed = prefixes()
    followed.follow(ids([BOS], [BOS]))
    followed.follow(ids([BOS, OPEN], [BOS, OPEN]))
    for _ in range(2):
        with pytest.raises(IllegalTokenError, match="row 1, position 2"):
            followed.follow(ids([BOS, OPEN, ONE], [BOS, OPEN, B]))
    followed.follow(ids([BOS, OPEN, ONE], [BOS, OPEN, CLOSE]))
    check(followed, [[OPEN, ONE], [OPEN, CLOSE]], [store()] * 2)


def test_an_interrupted_call_is_made_good(monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.decoding.matcher import Matcher

    followed = prefixes()
    followed.follow(ids([BOS], [BOS]))
    advance, calls = Matcher.advance, []

    def interrupted(self: Matcher, token: int) -> None:
        advance(self, token)
        calls.append(token)
        if len(calls) == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Matcher, "advance", interrupted)
        with pytest.raises(KeyboardInterrupt):
            followed.follow(ids([BOS, OPEN], [BOS, OPEN]))
    followed.follow(ids([BOS, OPEN], [BOS, OPEN]))
    check(followed, [[OPEN], [OPEN]], [store()] * 2)


def test_a_next_prompt() -> None:
    """Other prompts begin anew; so does what comes behind texts that have all ended; what was cut off goes on as text, or is refused."""
    followed = prefixes()
    followed.follow(ids([BOS, X]))
    ended = [BOS, X, OPEN, CLOSE, EOS]
    for n in range(3, 6):
        followed.follow(ids(ended[:n]))
    followed.follow(ids([*ended, PAD, PAD]))
    assert followed.has_ended == [True], "padding is no prompt"
    followed.follow(ids([*ended, BOS, X, ONE, X]))  # a conversation's next turn
    check(followed, [[]], [store()])
    followed.follow(ids([*ended, BOS, X, ONE, X, OPEN]))
    check(followed, [[OPEN]], [store()])
    for turn in ([X, X], [X, X, X], [ONE, X], [PAD, X, PAD]):  # one token again and again is text like any other
        followed.reset()
        for n in range(2, 6):
            followed.follow(ids(ended[:n]))
        followed.follow(ids([*ended, *turn]))
        check(followed, [[]], [store()])
    followed.follow(ids([BOS, ONE, ONE, ONE], [BOS, X, X, X]))
    check(followed, [[], []], [store()] * 2)
    followed.follow(ids([BOS, X], [BOS, X], [BOS, X]))
    followed.follow(ids(*[[BOS, X, OPEN]] * 3))
    with pytest.raises(
        IllegalTokenError, match=r"continues where the last generation stopped \(then call reset\(\) first\)"
    ):
        followed.follow(ids(*[[BOS, X, OPEN, BOS, X]] * 3))
    followed.reset()
    followed.follow(ids(*[[BOS, X, OPEN, BOS, X]] * 3))
    check(followed, [[]] * 3, [store()] * 3)


def test_where_texts_begin_is_not_guessed() -> None:
    followed = prefixes()
    followed.follow(ids([BOS, X], [BOS, ONE]))
    followed.follow(ids([BOS, X, OPEN], [BOS, ONE, OPEN]))
    with pytest.raises(MaskwrightError, match="row 0 continues a prompt of the last generation, but row 1 does not"):
        followed.follow(ids([BOS, X, OPEN, ONE], [BOS, BOS, OPEN, ONE]))
    with pytest.raises(IllegalTokenError, match="row 0, position 5: the text had ended, but more text follows it"):
        followed.follow(ids([BOS, X, OPEN, CLOSE, EOS, BOS, X], [BOS, ONE, OPEN, ONE, COMMA, ONE, COMMA]))


def test_rows_that_lost_their_beginning_are_an_error() -> None:
    followed = prefixes()
    followed.follow(ids([ONE, X]))
    followed.follow(ids([ONE, X, OPEN]))
    with pytest.raises(MaskwrightError, match="the rows have lost their first token"):
        followed.follow(ids([X, OPEN, ONE]))


def test_two_generations_at_a_time_are_an_error() -> None:
    followed = prefixes()
    for generation in ([BOS, X], [BOS, ONE]):
        followed.follow(ids(generation))
    with pytest.raises(MaskwrightError, match="the rows continue an earlier generation, not the last one"):
        followed.follow(ids([BOS, X, OPEN]))


def test_sequences_that_cannot_be_told_apart() -> None:
    stores = (store(), store(PAIRS_TEXT))
    followed = prefixes(*stores)
    followed.follow(ids([BOS], [BOS]))
    followed.follow(ids([BOS, OPEN], [BOS, A]))
    with pytest.raises(
        MaskwrightError, match="sequences of different stores, prefixes or prompt_lengths have the same prompt"
    ):
        followed.follow(ids([BOS, A, A]))
    followed.follow(ids(*[[BOS]] * 4))  # prompts alone begin anew, in any number
    check(followed, [[]] * 4, [stores[0], stores[0], stores[1], stores[1]])


def test_an_empty_text_stays_at_its_end() -> None:
    """An end-of-text token stands for no text: it is not taken for padding of a prompt that is to be read."""
    empty = compile_store(parse_grammar('start: "a"*', name="maybe"), VOCABULARY)
    for options in ({}, {"constrain_prompt": True}):
        followed = prefixes(empty, **options)
        followed.follow(ids([BOS]))
        followed.follow(ids([BOS, EOS]))
        assert followed.has_ended == [True]
        followed.follow(ids([BOS, EOS, EOS, EOS]))
        assert followed.has_ended == [True]


@pytest.mark.parametrize("seed", share(range(20), 3))
def test_what_is_behind_an_end_is_judged_alike_step_by_step_and_at_once(seed: int) -> None:
    """Padding may come, of tokens without text or of one token; other text is an error at the step that shows it."""
    rng = np.random.default_rng(seed)
    n_refused = 0
    for _ in range(20):
        behind = rng.choice([[EOS, PAD, BOS], [X, X, X], [X, ONE, PAD], [PAD, PAD, ONE]][rng.integers(4)], 6).tolist()
        other = draw_text(rng, store(PAIRS_TEXT), 9)
        followed, rows = prefixes(store(), store(PAIRS_TEXT)), [[BOS, X], [X, BOS]]
        followed.follow(ids(*rows))
        for n, token in enumerate([OPEN, CLOSE, EOS, *behind], 1):
            rows = [[*rows[0], token], [*rows[1], other[n - 1]]]
            swapped, anew = prefixes(store(), store(PAIRS_TEXT)), prefixes(prompt_lengths=2)
            swapped.follow(ids([BOS, X], [X, BOS]))
            try:
                anew.follow(ids(rows[0]))
            except IllegalTokenError:
                error = "row 0, position 5: the text had ended, but more text follows it"
                with pytest.raises(IllegalTokenError, match=error):
                    followed.follow(ids(*rows))
                with pytest.raises(IllegalTokenError, match=error.replace("row 0", "row 1")):
                    swapped.follow(ids(*rows[::-1]))
                n_refused += 1
                break
            followed.follow(ids(*rows))
            swapped.follow(ids(*rows[::-1]))
            assert followed.has_ended[0] == swapped.has_ended[1] == anew.has_ended[0] == (n >= 3)
    assert n_refused


def test_lengths_that_are_told_hold_in_every_call() -> None:
    """What comes behind them is read whatever came before: an earlier output, for example."""
    followed = prefixes(prompt_lengths=2)
    followed.follow(ids([BOS, X, OPEN, ONE]))
    check(followed, [[OPEN, ONE]], [store()])
    followed.follow(ids([BOS, ONE, OPEN], [BOS, X, OPEN]))
    check(followed, [[OPEN], [OPEN]], [store()] * 2)
    followed.follow(ids([BOS, ONE, OPEN, CLOSE]))
    check(followed, [[OPEN, CLOSE]], [store()])


def test_drafts_behind_the_end_of_a_text() -> None:
    followed = prefixes(drafts=True)
    followed.follow(ids([BOS]))
    followed.follow(ids([BOS, OPEN]))
    drafts = ([CLOSE], [CLOSE, EOS], [CLOSE, EOS, ONE], [CLOSE, EOS, ONE, X], [CLOSE, EOS, ONE, X, B], [ONE])
    for drafted in drafts:
        followed.follow(ids([BOS, OPEN, *drafted]))
    check(followed, [[OPEN, ONE]], [store()])


def test_rows_of_a_prompt_follow_one_another() -> None:
    """As docs/serving.md says it: store i is that of the rows k i to k i + k - 1."""
    assert [sequence_of(row, 4, 2, "stores") for row in range(4)] == [0, 0, 1, 1]
    assert [sequence_of(row, 4, 4, "stores") for row in range(4)] == [0, 1, 2, 3]
    for n in (3, 5, 8):
        with pytest.raises(MaskwrightError, match=f"{n} stores are given for 4 rows"):
            sequence_of(0, 4, n, "stores")
