"""Texts of rules over literals: their verdicts, tokens and endings are those of all texts written out."""

from __future__ import annotations

import random

import pytest
from shares import share

import maskwright as mw
from maskwright.analysis.composition.tag_rules import START, Body, tag_rules
from maskwright.analysis.errors import EmptyLanguageError
from maskwright.analysis.marks import MARK, mark
from maskwright.decoding.tags.text import TagText
from maskwright.maskstore.composition.tables import TagTables

LONGEST = 9
"""Of the texts that are written out."""
TOKENS = (b"", b"a", b"b", b"ab", b"ba", b"aab", b"bb", b"abab", b"b\xf8", b"c", b"ca", b"cab")
VOCABULARY = mw.Vocabulary("letters", TOKENS, {0: "</s>"}, (0,))

Rules = dict[str, list[Body]]


def random_rules(rng: random.Random) -> Rules:
    """Rules that lead back to themselves behind a literal, or at the end of a body."""
    names = [START, "x", "y", "z"]
    rules: Rules = {}
    for at, name in enumerate(names):
        bodies: list[Body] = []
        for _ in range(rng.randrange(1, 4)):
            body: Body = tuple(
                rng.choice([rng.choice([b"a", b"b", b"ab", b"ca"]), rng.choice([0, 1]), *names[at + 1 :]])
                for _ in range(rng.randrange(0, 4))
            )
            if rng.random() < 0.3:
                body = (b"c", rng.choice(names[: at + 1]), *body)
            if rng.random() < 0.3:
                body = (*body, name)
            bodies.append(body)
        rules[name] = bodies
    return rules


def texts_of(rules: Rules) -> set[bytes]:
    """All texts of at most LONGEST bytes."""
    found: dict[str, set[bytes]] = {name: set() for name in rules}
    size = -1
    while size != sum(map(len, found.values())):
        size = sum(map(len, found.values()))
        for name, bodies in rules.items():
            for body in bodies:
                some = {b""}
                for item in body:
                    each = found[item] if isinstance(item, str) else {mark(item) if isinstance(item, int) else item}
                    some = {a + b for a in some for b in each if len(a + b) <= LONGEST}
                found[name] |= some
    return found[START]


@pytest.mark.parametrize("seed", share(range(120), 30))
def test_texts_are_those_written_out(seed: int) -> None:
    rules = random_rules(random.Random(seed))
    every = texts_of(rules)
    try:
        made, parts = tag_rules("rules", rules)
    except EmptyLanguageError:
        assert not every
        return
    if not every:
        return  # all are longer
    number = {mark(old): mark(new) for new, old in enumerate(parts)}
    for old, new in number.items():
        every = {text.replace(old, b"\xff" + new[1:]) for text in every}
    every = {text.replace(b"\xff", bytes((MARK,))) for text in every}
    start = TagText(TagTables("rules", VOCABULARY, made), 3)
    beginnings = {text[:n] for text in every for n in range(len(text) + 1)}
    for before in sorted(beginnings):
        text = start.copy()
        assert text.try_read(before)
        assert text.can_end() == (before in every)
        following = {one[len(before) : len(before) + 1] for one in beginnings if one.startswith(before)} - {b""}
        if len(before) < LONGEST - 3:
            # what comes behind may have no whole text that is short enough to be written out
            assert following <= {bytes((byte,)) for byte in range(256) if text.allows(bytes((byte,)))}
            assert set(text.next_bytes()) == {byte for byte in range(MARK) if text.allows(bytes((byte,)))}
        ends = [len(one) - len(before) for one in every if one.startswith(before)]
        ending = text.short_ending().data
        assert len(ending) == min(ends) and before + ending in every


@pytest.mark.parametrize("seed", share(range(120), 30))
def test_tokens_are_those_that_are_read(seed: int) -> None:
    """Tokens, and the cuts of tokens where a part may begin: against each token, read byte by byte."""
    rng = random.Random(seed)
    try:
        made, _ = tag_rules("rules", random_rules(rng))
    except EmptyLanguageError:
        return
    text = TagText(TagTables("rules", VOCABULARY, made), 3)
    for _ in range(6):
        tokens, cuts = text.tokens({8})
        readable = [id_ for id_, data in enumerate(TOKENS) if data and MARK not in data and text.allows(data)]
        assert sorted(tokens) == [0] * text.can_end() + readable
        wanted = {
            data[:n]: {(data[n:], id_)}
            for id_, data in enumerate(TOKENS)
            if MARK not in data
            for n in range(1, len(data))
            if text.allows(data[:n] + bytes((MARK,)))
        }
        assert {cut.before for cut in cuts} == set(wanted)
        for cut in cuts:
            behind = [(data[len(cut.before) :], id_) for id_, data in enumerate(TOKENS) if data.startswith(cut.before)]
            assert list(cut.behind) == sorted(one for one in behind if one[0] and MARK not in one[0])
            assert cut.token == (TOKENS.index(cut.before) if cut.before in TOKENS else -1)
            assert list(text.parts_behind(cut.before)) == [
                part for part in range(2) if text.allows(cut.before + mark(part))
            ]
        going_on = [bytes((byte,)) for byte in text.next_bytes()] + [mark(part) for part in text.parts_behind(b"")]
        if not going_on:
            break
        before = text.key()
        chosen = rng.choice(going_on)
        assert text.try_read(chosen)
        text.undo(1)
        assert text.key() == before
        assert text.try_read(chosen)


def test_what_is_too_long_or_at_too_many_places_is_refused() -> None:
    once: dict[str, list[Body]] = {f"x{i}": [(f"x{i + 1}",) * 10] for i in range(6)}
    made, _ = tag_rules("rules", {START: [("x0",)], **once, "x6": [(b"a",)]})
    with pytest.raises(mw.LimitError, match="more than 200,000 bytes"):
        TagText(TagTables("rules", VOCABULARY, made), 0).short_ending()
    made, _ = tag_rules("rules", {START: [("x0",)], **once, "x6": [(b"a", b"b"), ()]})
    with pytest.raises(mw.LimitError, match="at more than 20,000 places"):
        TagText(TagTables("rules", VOCABULARY, made), 0)


def test_a_deep_text_takes_no_recursion() -> None:
    made, _ = tag_rules("rules", {START: [(b"a", START, b"b"), ()]})
    text = TagText(TagTables("rules", VOCABULARY, made), 0)
    assert text.try_read(b"a" * 100_000) and not text.can_end()
    hash(text.key())
    assert text.try_read(b"b" * 99_999) and text.short_ending().data == b"b"
