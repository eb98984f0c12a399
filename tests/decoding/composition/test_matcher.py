"""Matchers and batches of compositions: real languages, and what all matchers can do."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import numpy as np
import pytest
from growth import growth
from shares import share

import maskwright as mw
from maskwright.decoding.composition import text as composed_text
from maskwright.decoding.composition.readings import MOST_READINGS

BYTES = [bytes((byte,)) for byte in range(256)]
WORDS = [
    b'": "', b'"}', b"\\n", b"</", b"</code>", b"```", b"}\n", b'{"a', b" = ", b"SELECT", b'\\"', b"\\u00", b'"\\',
    b"\n    ",
]  # fmt: skip
VOCABULARY = mw.Vocabulary("small", (b"", b"", *BYTES, *WORDS), {0: "</s>", 1: "<call>"}, (0,))
SQL_TOOL = {
    "type": "object",
    "properties": {"sql": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["sql", "n"],
    "additionalProperties": False,
}


def check_masks(store: mw.ComposedStore, text: bytes, step: int = 1) -> None:
    """Compare masks with reading each token's bytes one by one, at every so many bytes of a text."""
    matcher = store.matcher()
    for at in range(0, len(text) + 1, step):
        found = matcher.allowed_tokens()
        slow, fork = [], matcher.fork()
        for token, data in enumerate(VOCABULARY.tokens):
            n_read = 0
            while n_read < len(data) and fork.try_bytes(data[n_read : n_read + 1]):
                n_read += 1
            if data and n_read == len(data):
                slow.append(token)
            if n_read:
                fork = matcher.fork()
        if matcher.is_accepting():
            slow.insert(0, 0)
        assert [token for token in found if token != 1] == slow, (text[:at], matcher)
        if at < len(text):
            matcher.advance_bytes(text[at : at + step])


@pytest.mark.parametrize(
    ("texts", "wrong"),
    [
        (
            [
                '{"sql": "SELECT a FROM t WHERE x = \\"y\\"", "n": 1}',
                '{"n":2,"sql":"SELECT\\n1"}',
                '{"sql":"\\u0053ELECT 1","n":3}',
            ],
            ['{"sql": "FROM', '{"sql": "SELECT a FROM t", "n": 1, "sql"', '{"sql": "SELECT a FROM t WHERE x = "y"'],
        )
    ],
)
@pytest.mark.parametrize("step", share([3, 1], 1))
def test_sql_in_a_field(texts: list[str], wrong: list[str], step: int) -> None:
    store = mw.cached_store(mw.compose(SQL_TOOL, {"/properties/sql": "sql"}), VOCABULARY)
    sql = mw.cached_store("sql", VOCABULARY)
    for text in texts:
        matcher, inner = store.matcher(), sql.matcher()
        matcher.advance_bytes(text.encode())
        assert matcher.is_accepting()
        inner.advance_bytes(json.loads(text)["sql"].encode())
        assert inner.is_accepting()
    for text in wrong:
        assert not store.matcher().try_bytes(text.encode())
    check_masks(store, texts[0].encode()[:40], step)


@pytest.mark.parametrize("step", share([4, 1], 1))
def test_python_in_xml(step: int) -> None:
    store = mw.cached_store(mw.compose('start: "<code>" PY "</code>"\n%declare PY', {"PY": "python"}), VOCABULARY)
    text = b'<code>\nif a < b:\n    f("</code>")\n    return 1\n</code>'
    matcher = store.matcher()
    matcher.advance_bytes(text)
    assert matcher.is_accepting()
    assert not store.matcher().try_bytes(b"<code>\nif a:\n</code>")
    check_masks(store, text, step)


def test_json_in_a_fence() -> None:
    host = 'start: TEXT "```\\n" JSON "\\n```" TEXT?\nTEXT: /[^`]+/\n%declare JSON'
    store = mw.build_store(mw.compose(host, {"JSON": {"type": "object"}}), VOCABULARY)
    check_masks(store, b'So:\n```\n{"a": [1, {"b": "```"}]}\n``` ok')


def test_a_composition_inside_another() -> None:
    inner = mw.compose('start: "[" NUMBER "]"\n%declare NUMBER', {"NUMBER": {"type": "integer"}})
    outer = mw.compose('start: "x" LIST+\n%declare LIST', {"LIST": mw.in_json_string(inner)})
    store = mw.build_store(outer, VOCABULARY)
    matcher = store.matcher()
    matcher.advance_bytes(b'x"[12]""[\\u0033]"')
    assert matcher.is_accepting()
    assert not store.matcher().try_bytes(b'x"[a')
    check_masks(store, b'x"[1]""[')


def test_special_tokens() -> None:
    host = "start: TEXT? (CALL JSON)*\nTEXT: /[^{]+/\n%declare CALL JSON"
    composition = mw.compose(host, {"CALL": mw.special_token("<call>"), "JSON": {"type": "object"}})
    store = mw.build_store(composition, VOCABULARY)
    matcher = store.matcher()
    matcher.advance_bytes(b"hello ")
    assert {0, 1} < set(matcher.allowed_tokens())
    matcher.advance(1)
    assert 1 not in matcher.allowed_tokens()
    matcher.advance_bytes(b"{}")
    assert {0, 1} <= set(matcher.allowed_tokens())
    matcher.advance(1)
    assert matcher.short_ending().data == b"{}"
    matcher.rollback(3)
    assert 1 in matcher.allowed_tokens()
    assert matcher.is_allowed(1)
    for token in ("<none>", 0, 5, 10**6):
        with pytest.raises(mw.VocabularyError, match="part CALL"):
            mw.build_store(mw.compose(host, {"CALL": mw.special_token(token), "JSON": {"type": "object"}}), VOCABULARY)


@pytest.fixture(scope="module")
def tool() -> mw.ComposedStore:
    return mw.build_store(mw.compose(SQL_TOOL, {"/properties/sql": mw.load_regex('a[b"]+c')}), VOCABULARY)


def test_endings_complete_the_text(tool: mw.ComposedStore) -> None:
    text = b'{"n": 1, "sql": "a\\"\\u0062c"}'
    for at in range(len(text) + 1):
        matcher = tool.matcher()
        matcher.advance_bytes(text[:at])
        ending = matcher.short_ending()
        assert b"".join(VOCABULARY.tokens[token] for token in ending.tokens) == ending.data
        for token in ending.tokens:
            matcher.advance(token)
        assert matcher.is_accepting(), (text[:at], ending)


def test_errors(tool: mw.ComposedStore) -> None:
    matcher = tool.matcher()
    matcher.advance_bytes(b'{"sql": "a')
    with pytest.raises(mw.IllegalTokenError, match=r"in /properties/sql; the state is unchanged. Byte 0 of it, b'x'"):
        matcher.advance(VOCABULARY.tokens.index(b"x"))
    with pytest.raises(mw.IllegalTokenError, match="out of range"):
        matcher.advance(10**6)
    with pytest.raises(mw.IllegalTokenError, match="ends the text, which is not complete"):
        matcher.advance(0)
    assert "may come next" in matcher.why(VOCABULARY.tokens.index(b"b"))
    assert matcher.explain(VOCABULARY.tokens.index(b"x")).verdict == "refused"
    assert not matcher.is_allowed(10**6)


@pytest.mark.parametrize("most", share([40, MOST_READINGS], 1))
def test_ways_to_read_a_text_are_limited(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwright.decoding.composition.readings.MOST_READINGS", most)
    endless = mw.compose('start: x\nx: A x "c" | "d"\n%declare A', {"A": mw.load_regex("[ab]+")})
    matcher = mw.build_store(endless, VOCABULARY).matcher()
    with pytest.raises(mw.LimitError, match=f"{most} ways"):
        for _ in range(most + 90):
            matcher.advance_bytes(b"a")


@pytest.mark.slow
def test_complete_and_processor() -> None:
    made = mw.compose('start: "x = " CALL\n%declare CALL', {"CALL": {"enum": ["a", "b"]}})
    model = mw.load_model("python-tiny")
    store = mw.build_store(made, model.vocabulary)
    found = mw.complete(store, "x = ", model, max_tokens=12)
    assert json.loads(found.data) in ("a", "b")


def test_hosts_with_conflicts_follow_all_parses() -> None:
    host = 'start: "x" P1 P2+ P2 P2 P0\n%declare P0 P1 P2'
    parts = {"P0": mw.load_regex("b*"), "P1": mw.load_regex(" *"), "P2": mw.load_regex("a")}
    store = mw.build_store(mw.compose(host, parts), VOCABULARY)
    check_masks(store, b"xaaaaaab")


def test_tokens_with_a_marks_byte_are_never_allowed() -> None:
    tokens = [b"", *BYTES, b"a\xf8", b"aa\xf8@@b", b"\xf8@@"]
    vocabulary = mw.Vocabulary.from_tokens(tokens, eos=[0])
    for host in ('start: P+ "b"\n%declare P', {"type": "object", "properties": {"b": {"type": "string"}}}):
        name = "P" if isinstance(host, str) else "/properties/b"
        matcher = mw.build_store(mw.compose(host, {name: mw.load_regex("a+")}), vocabulary).matcher()
        matcher.advance_bytes(b"a" if isinstance(host, str) else b'{"b": "a')
        words = np.zeros(-(-vocabulary.size // 32), np.uint32)
        matcher.fill(words)
        for token in (*range(0xF9, 0x101), 257, 258, 259):
            assert not words[token >> 5] >> np.uint32(token & 31) & 1
            assert not matcher.is_allowed(token)


def test_what_only_escapes_spell() -> None:
    """No token says a line feed inside a JSON string; two of them do."""
    vocabulary = mw.Vocabulary.from_tokens([b"", *BYTES], eos=[0])
    inner = mw.in_json_string(mw.compose("start: B\n%declare B", {"B": mw.in_json_string(mw.load_regex('"a\\\\\n'))}))
    matcher = mw.build_store(mw.compose("start: A\n%declare A", {"A": inner}), vocabulary).matcher()
    ending = matcher.short_ending().data
    assert json.loads(json.loads(ending)) == '"a\\\n'
    tool = mw.compose(SQL_TOOL, {"/properties/sql": 'start: "x"? "\\n"'})
    matcher = mw.build_store(tool, vocabulary).matcher()
    matcher.advance_bytes(b'{"sql": "x')
    assert matcher.short_ending().data == b'\\n","n":0}'


def test_special_tokens_of_a_part() -> None:
    inner = mw.compose('start: "a" T "b"\n%declare T', {"T": mw.special_token(1)})
    store = mw.build_store(mw.compose('start: "<" X ">"\n%declare X', {"X": inner}), VOCABULARY)
    matcher = store.matcher()
    matcher.advance_bytes(b"<a")
    assert matcher.allowed_tokens() == [1] and matcher.is_allowed(1)
    matcher.advance(1)
    matcher.advance_bytes(b"b>")
    assert matcher.is_accepting()
    matcher.rollback(2)
    assert matcher.allowed_tokens() == [1]
    with pytest.raises(mw.GrammarError, match="cannot be in a JSON string"):
        mw.in_json_string(inner)


def test_ambiguous_cuts_inside_a_token_take_no_time() -> None:
    store = mw.build_store(mw.compose("start: P*\n%declare P", {"P": mw.load_regex("a+")}), VOCABULARY)
    matcher = store.matcher()
    matcher.advance_bytes(b"a" * 60)
    assert matcher.is_accepting() and not matcher.try_bytes(b"a" * 60 + b"!")


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "integer"}, "12 "),
        ({"type": ["string", "array"]}, '"a}"'),
        ({"type": "array"}, '["]", [1] ]'),
        ({"enum": [None, True, {"a": 1}]}, "true"),
        ({"const": {"a": "}"}}, '{"a": "}" }'),
    ],
)
def test_json_before_a_host_that_goes_on(schema: dict[str, object], text: str) -> None:
    store = mw.build_store(mw.compose('start: "<" J ">}]" J*\n%declare J', {"J": schema}), VOCABULARY)
    check_masks(store, f"<{text}>}}]{text}".encode())


def byte_by_byte(store: mw.ComposedStore, text: bytes) -> mw.Matcher:
    matcher = store.matcher()
    for byte in text:
        matcher.advance_bytes(bytes((byte,)))
    return matcher


HOSTS = ('start: (P ",")* Q', "start: (P | Q)*", "start: (P Q?)*", 'start: (P ";")+ | Q')


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("seed", share(range(6), 1))
def test_long_bytes_are_read_as_their_single_bytes_are(host: str, seed: int) -> None:
    rng = random.Random(seed)
    parts = rng.sample(["a+", "[ab]*", "b{1,3}", "[a-z]*,", "(ab|a)"], 2)
    declared = dict(zip("PQ", map(mw.load_regex, parts), strict=True))
    store = mw.build_store(mw.compose(f"{host}\n%declare P Q\n", declared), VOCABULARY)
    for _ in range(6):
        matcher = store.matcher()
        matcher.try_bytes(bytes(rng.choices(b"ab,;", k=3)))
        started, here = matcher.said(), matcher.text.key()
        text = bytes(rng.choices(b"aab,;", k=rng.randint(1, 60)))
        try:
            single = byte_by_byte(store, started + text)
        except mw.IllegalTokenError:
            with pytest.raises(mw.IllegalTokenError, match="state is unchanged"):
                matcher.advance_bytes(text)
            assert (matcher.said(), matcher.text.key()) == (started, here)
            continue
        matcher.advance_bytes(text)
        assert matcher.said() == started + text
        assert matcher.allowed_tokens() == single.allowed_tokens()
        assert matcher.is_accepting() == single.is_accepting()
        matcher.rollback(1)
        assert (matcher.said(), matcher.text.key()) == (started, here)


@pytest.mark.slow
def test_the_cost_of_long_bytes_is_linear() -> None:
    store = mw.build_store(mw.compose("start: P*\n%declare P", {"P": mw.load_regex("a+")}), VOCABULARY)

    def cost(n: int) -> float:
        matcher = store.matcher()
        begin = time.process_time()
        matcher.advance_bytes(b"a" * n)
        with pytest.raises(mw.IllegalTokenError, match=f"Byte {n} of it"):
            matcher.advance_bytes(b"a" * n + b"!")
        return time.process_time() - begin

    cost(10)
    assert growth(cost, 60) < 3  # it was cubic


def test_an_interrupted_token_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C behind the part's text, before the whole text has noted it."""
    host = 'start: PROSE "```" A "```"\nPROSE: /[^`]+/\n%declare A'
    store = mw.build_store(mw.compose(host, {"A": {"type": "object"}}), "python-tiny")
    matcher, other = store.matcher(), store.matcher()
    for each in (matcher, other):
        each.advance_bytes(b"It is")
        each.advance_bytes(b'```{"a":[1,')
    note = type(matcher.text)._note

    def interrupted(self: Any, *arguments: Any) -> None:
        monkeypatch.setattr(type(matcher.text), "_note", note)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(matcher.text), "_note", interrupted)
    with pytest.raises(KeyboardInterrupt):
        matcher.advance_bytes(b"2")
    assert matcher.said() == other.said() and matcher.remembered() == other.remembered() == 2
    assert matcher.allowed_tokens() == other.allowed_tokens()
    matcher.advance_bytes(b'"x"')
    matcher.rollback(2)
    assert matcher.try_bytes(b"``") and not matcher.try_bytes(b"x")


def test_an_interrupted_rollback_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C once the part's text has gone back, before the whole text has."""
    host = 'start: PROSE "```" A "```"\nPROSE: /[^`]+/\n%declare A'
    store = mw.build_store(mw.compose(host, {"A": {"type": "object"}}), "python-tiny")
    matcher, other = store.matcher(), store.matcher()
    for each in (matcher, other):
        each.advance_bytes(b'It is```{"a":[1,')
    for data in (b"2", b"3"):
        matcher.advance(store.vocabulary.tokens.index(data))
    kind = type(matcher.text._own)  # type: ignore[attr-defined]
    rollback = kind.rollback

    def interrupted(self: Any) -> None:
        monkeypatch.undo()
        rollback(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(kind, "rollback", interrupted)
    with pytest.raises(KeyboardInterrupt):
        matcher.rollback(2)
    assert matcher.said() == other.said() and matcher.remembered() == other.remembered() == 1
    assert matcher.allowed_tokens() == other.allowed_tokens()
    matcher.rollback(1)
    assert matcher.allowed_tokens() == store.matcher().allowed_tokens()


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_an_interrupted_token_of_a_part_is_not_read(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C behind the part's text, whether its quick call has read the token or the slow one."""
    host = 'start: PROSE "```" A "```"\nPROSE: /[^`]+/\n%declare A'
    store = mw.build_store(mw.compose(host, {"A": {"type": "object"}}), "python-tiny")
    matcher, other = store.matcher(), store.matcher()
    digits = [store.vocabulary.tokens.index(data) for data in (b"1", b"2", b"3", b"4")]
    for each in (matcher, other):
        each.advance_bytes(b'It is```{"a":[1')
        for token in digits[:at]:
            each.advance(token)
            each.allowed_tokens()
    step = composed_text.Step

    def interrupted(*arguments: Any) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(composed_text, "Step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        matcher.advance(digits[at])
    assert composed_text.Step is step and matcher.said() == other.said() and matcher.remembered() == other.remembered()
    assert matcher.allowed_tokens() == other.allowed_tokens()
    for each in (matcher, other):
        each.advance(digits[at])
        assert each.try_bytes(b"]}``")
        each.rollback(at + 1)
    assert matcher.allowed_tokens() == other.allowed_tokens()
