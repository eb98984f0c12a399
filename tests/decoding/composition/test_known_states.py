"""What all texts of a store share, known states above all, changes no mask, whatever happens to a text."""

from __future__ import annotations

import gc
import itertools
import random
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import naive_structural_tags
import numpy as np
import pytest
from mask_bits import mask_of
from naive_composition import Case, automaton_of
from shares import share

import maskwright as mw
from maskwright.analysis.regex.dfa import Dfa
from maskwright.decoding.composition import cursors, masks, readings, text
from maskwright.decoding.composition.json_string_cursor import JsonStringCursor

NAMES = {"get": r'\{"k":"(?:a|ab)"\}', "get_all": "a(?:b|ba)*;", "gets": "[ab]+", "set": '"[ab]+"'}
"""The arguments of some tools: of JSON, of a grammar, of a pattern, inside a JSON string."""
KEY = {"type": "object", "properties": {"k": {"enum": ["a", "ab"]}}, "required": ["k"], "additionalProperties": False}
PARTS: dict[str, Any] = {
    "GET": mw.load_schema(KEY, whitespace="compact"),
    "GET_ALL": "start: W\nW: /a(?:b|ba)*;/",
    "GETS": mw.load_regex(NAMES["gets"]),
    "SET": mw.in_json_string(mw.load_regex("[ab]+")),
    "TEXT": mw.load_regex("[ab]*"),
}
CALL = " | ".join(f'"<{name}>" {name.upper()} "</{name}>"' for name in NAMES)
HOST = f"start: TEXT (call TEXT)*\ncall: {CALL}\n%declare {' '.join(PARTS)}\n"
PATTERN = f"[ab]*(?:(?:{'|'.join(f'<{name}>(?:{part})</{name}>' for name, part in NAMES.items())})[ab]*)*"
DFA = automaton_of(Case(HOST, {}, PATTERN))
PIECES = ["a<", "<get", "<get>", "get", "_all>", "_all>a", "s>", "</", "</get", "b;</", ";</get_all>a"]
PIECES += ['"}', '"}<', '"}</get>b', '"k', '{"k":"a', 'ab"', '"<', 'b"</set>']
PIECES += ["ab" * 20, 'ab"}</get>' + "ab" * 20, "a</gets>" + "b" * 40, "ba" * 18 + "<set>"]
TOKENS = [b"</s>", *sorted({each.encode() for each in (*PIECES, *'ab<>/getsal_{}":k;')})]


@pytest.fixture(scope="module")
def vocabulary() -> mw.Vocabulary:
    return mw.Vocabulary.from_tokens(TOKENS, eos=[0])


@pytest.fixture
def store(vocabulary: mw.Vocabulary) -> mw.ComposedStore:
    """A store of which nothing is known yet."""
    return mw.build_store(mw.compose(HOST, PARTS), vocabulary)


def wanted_of(said: list[int], dfa: Dfa = DFA) -> set[int]:
    """The mask from the definition."""
    state = dfa.run(b"".join(TOKENS[token] for token in said))
    return {
        token for token, data in enumerate(TOKENS) if (dfa.run(data, state) >= 0 if token else dfa.is_accepting[state])
    }


def check(matcher: mw.Matcher, said: list[int]) -> set[int]:
    """Compare a text with its twin: its bytes, its mask, made and kept, and some verdicts. Returns the mask."""
    wanted = wanted_of(said)
    shown = b"".join(TOKENS[token] for token in said)
    assert matcher.said() == shown
    for _ in range(2):
        found = mask_of(matcher)
        assert found == wanted, (shown, sorted(TOKENS[token] for token in found ^ wanted))
    assert matcher.is_accepting() == (0 in wanted), shown
    for token in range(len(said) % 5, len(TOKENS), 5):
        assert matcher.is_allowed(token) == (token in wanted), (shown, TOKENS[token])
    return wanted


def tokens_of(data: bytes, rng: random.Random) -> list[int]:
    """Random tokens that spell some bytes."""
    found = list[int]()
    while data:
        found.append(rng.choice([token for token, each in enumerate(TOKENS) if token and data.startswith(each)]))
        data = data[len(TOKENS[found[-1]]) :]
    return found


def wander(store: mw.ComposedStore, rng: random.Random, steps: int, watch: Callable[[], None] = lambda: None) -> None:
    """Do random things to some texts of a store, and compare all of them with their twins."""
    texts: list[tuple[mw.Matcher, list[int]]] = [(store.matcher(6), [])]
    for _ in range(steps):
        at = rng.randrange(len(texts))
        matcher, said = texts[at]
        wanted, does = check(matcher, said), rng.random()
        going_on = sorted(wanted - {0})
        if does < 0.1 and len(texts) < 4:
            texts.append((matcher.fork(), said.copy()))
        elif does < 0.15:
            matcher.become(texts[0][0])
            said[:] = texts[0][1]
        elif does < 0.2 or len(said) > 30:
            matcher.reset()
            said.clear()
        elif (does < 0.35 or not going_on) and matcher.remembered():
            n = rng.randint(1, matcher.remembered())
            matcher.rollback(n)
            del said[-n:]
        elif going_on:
            said.append(rng.choice(going_on))
            if does < 0.6:
                matcher.advance(said[-1])
            elif does < 0.9:
                words = np.zeros(store.n_words + rng.randrange(2), np.uint32)
                matcher.step(said[-1], words)
            else:
                matcher.advance_bytes(TOKENS[said[-1]])
        watch()


@pytest.mark.parametrize("seed", share(range(12), 2))
def test_whatever_happens_to_texts(seed: int, store: mw.ComposedStore) -> None:
    wander(store, random.Random(seed), 150)


BOUNDS = [
    (masks, "MOST_KNOWN", 4),
    (masks, "MOST_READINGS_KNOWN", 2),
    (text, "MOST_AFTER", 2),
    (cursors, "MOST_MASKS", 1),
]
BOUNDS += [(readings, "MOST_STATES", 2), (readings, "MOST_ALLOWED", 5), (masks, "MOST_SHARED", 1)]


@pytest.mark.parametrize("seed", share(range(12), 2))
def test_what_is_kept_is_bounded(seed: int, store: mw.ComposedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the bounds, which are low here, masks are right too."""
    for module, name, most in BOUNDS:
        monkeypatch.setattr(module, name, most)
    most_of = {name: most for _, name, most in BOUNDS}
    shared, n_known = store.matcher(6).text._shared, 0

    def watch() -> None:
        nonlocal n_known
        states, known = shared.rules._states, shared._known
        n_known = max(n_known, len(known))
        assert len(known) <= most_of["MOST_KNOWN"] and len(states) <= most_of["MOST_STATES"]
        for key, each in known.items():
            assert len(key) <= most_of["MOST_READINGS_KNOWN"] and len(each.after) <= most_of["MOST_AFTER"]
        for state in states.values():
            assert max(len(state.allowed), len(state.crossing)) <= most_of["MOST_ALLOWED"]
            assert all(len(exits.masks) <= most_of["MOST_MASKS"] for exits in state.exits.values())
        assert len(masks._shared(store)) <= most_of["MOST_SHARED"]

    wander(store, random.Random(seed), 150, watch)
    assert n_known > 1
    check(store.matcher(7), [])
    assert store.matcher(7).text._shared is not shared
    watch()


def test_texts_that_never_come_to_a_state_again_know_none(
    store: mw.ComposedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masks, "MOST_KNOWN", 8)
    shared = store.matcher(6).text._shared
    shared._n_met = -1_000_000  # as many as were met of late
    wander(store, random.Random(5), 150)
    assert not shared._keeps and len(shared._known) <= 1


@pytest.mark.parametrize("order", [1, -1])
def test_names_of_tools(order: int, store: mw.ComposedStore) -> None:
    """Names that begin with one another lead to their own arguments, whichever was known first."""
    rng = random.Random(order)
    texts = [b'a<get>{"k":"ab"}</get>b', b"<get_all>abba;</get_all>", b"b<gets>abb</gets>", b'<set>"ba"</set>ab']
    for _ in range(3):
        for data in texts[::order]:
            matcher, said = store.matcher(6), list[int]()
            for token in tokens_of(data, rng):
                check(matcher, said)
                matcher.advance(token)
                said.append(token)
            assert 0 in check(matcher, said)


FORMS: list[dict[str, Any]] = [
    {"type": "any_text", "max_tokens": 3},
    {"type": "const_string", "value": "x>"},
    {"type": "any_tokens", "max_tokens": 2, "exclude_tokens": ["ab"]},
    {"type": "const_string", "value": "<"},
    {"type": "any_text", "max_tokens": 1},
]


@pytest.mark.parametrize("seed", share(range(8), 1))
def test_budgets(seed: int) -> None:
    """Known states tell what is left of a budget, in forks and behind tokens that were taken back too."""
    form = {"type": "star", "content": {"type": "sequence", "elements": FORMS}}
    texts = naive_structural_tags.VOCABULARY
    vocabulary = mw.Vocabulary("small", (b"", *(one.encode() for one in texts[1:])), {0: texts[0]}, (0,))
    store = mw.build_store(mw.read_structural_tag({"type": "structural_tag", "format": form}), vocabulary)
    rng = random.Random(seed)
    for _ in range(8):
        matcher, said = store.matcher(4), list[int]()
        for _ in range(12):
            twin = naive_structural_tags.Text(form)
            for token in said:
                twin.advance(token)
            wanted = twin.allowed()
            assert mask_of(matcher) == mask_of(matcher) == wanted, said
            if rng.random() < 0.2 and matcher.remembered():
                matcher.rollback()
                said.pop()
            elif wanted - {0}:
                matcher = matcher.fork() if rng.random() < 0.2 else matcher
                said.append(rng.choice(sorted(wanted - {0})))
                matcher.advance(said[-1])


METHODS = {"reads", "read", "rollback", "can_end", "can_end_behind", "fill", "fill_part", "key", "copy"}
KINDS = (
    cursors.Cursor,
    cursors.GrammarCursor,
    cursors.SchemaCursor,
    cursors.JsonCursor,
    cursors.PatternCursor,
    JsonStringCursor,
)


@contextmanager
def interrupted(at: int, *, is_late: bool) -> Iterator[None]:
    """Ctrl-C at a call of a cursor's method while this lasts: before what it does, or behind it."""
    counter = itertools.count()
    with pytest.MonkeyPatch.context() as patch:
        for kind, name in itertools.product(KINDS, METHODS):
            if name not in kind.__dict__:
                continue

            def call(*arguments: Any, method: Any = kind.__dict__[name]) -> Any:
                is_now = next(counter) == at
                if is_now and not is_late:
                    raise KeyboardInterrupt
                found = method(*arguments)
                if is_now:
                    raise KeyboardInterrupt
                return found

            patch.setattr(kind, name, call)
        yield


STRIDE = 11
"""Where nothing is known there are many calls: of so many one is interrupted."""
INTERRUPTED = [
    b"a", b"a<get", b'<get>{"k":"a', b'<get>{"k":"ab"}', b"<get_all>ab", b"a<gets>ab", b'<set>"a', b'<set>"a"',
]  # fmt: skip


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("before", share(INTERRUPTED, 3))
def test_interrupts(before: bytes, is_late: bool, store: mw.ComposedStore) -> None:
    """Ctrl-C anywhere in a mask, a token, or a rollback, of a text in known states or in a part.

    A mask or a token that is interrupted changes nothing, a rollback is done. No other text is told anything wrong.
    """
    rng = random.Random(before)
    said = tokens_of(before, rng)
    state = DFA.run(before)
    token = next(token for token, data in enumerate(TOKENS) if token and DFA.run(data, state) >= 0)
    words = np.zeros(store.n_words, np.uint32)
    does: dict[str, Callable[[mw.Matcher], object]] = {
        "fill": lambda matcher: matcher.fill(words),
        "token": lambda matcher: matcher.advance(token),
        "step": lambda matcher: matcher.step(token, words),
        "bytes": lambda matcher: matcher.advance_bytes(TOKENS[token]),
        "rollback": lambda matcher: matcher.rollback(),
        "fork": lambda matcher: matcher.fork(),
    }
    for (what, do), is_filled, is_new in itertools.product(does.items(), (False, True), (True, False)):
        stride = STRIDE if is_new and what != "fill" else 1
        for at in range(rng.randrange(stride), 3_000, stride):
            if is_new:  # nothing is known
                store.__dict__.pop(f"{masks.__name__}.{masks._shared.__qualname__}", None)
            matcher = store.matcher(8)
            for each in said:
                if is_filled:
                    mask_of(matcher)
                matcher.advance(each)
            try:
                with interrupted(at, is_late=is_late):
                    do(matcher)
                is_done = True
            except KeyboardInterrupt:
                is_done = False
            after = said[:-1] if what == "rollback" else said
            if what in ("token", "step", "bytes"):
                # a token is read before the mask of a step
                after = [*said, token] if is_done or matcher.said() != before else said
                assert what == "step" or is_done or after == said
            check(matcher, after)
            other = store.matcher(8)
            for n, each in enumerate(after):
                check(other, after[:n])
                other.advance(each)
            check(other, after)
            if is_done:
                break
        else:
            pytest.fail("the work has no end")


def test_two_threads_with_texts_of_one_store(store: mw.ComposedStore) -> None:
    errors: list[BaseException] = []
    begin = threading.Barrier(2)

    def work(seed: int) -> None:
        try:
            begin.wait()
            wander(store, random.Random(seed), 120)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []


def test_known_states_go_with_their_store(vocabulary: mw.Vocabulary) -> None:
    store = mw.build_store(mw.compose(HOST, PARTS), vocabulary)
    wander(store, random.Random(1), 60)
    matcher = store.matcher(6)
    matcher.advance_bytes(b'a<get>{"k":"')
    shared, known = matcher.text._shared, matcher.text._know()
    assert known is not None and known in shared._known.values()
    there = [weakref.ref(each) for each in (store, shared, shared.rules, shared.masks, known.readings[0].cursor.text)]
    del store, shared, known
    gc.collect()
    assert all(ref() is not None for ref in there), "a text holds its store"
    del matcher
    gc.collect()
    assert [ref() for ref in there] == [None] * len(there)
