"""A middle as a matcher: what it reads, how it ends, what it says, and what it cannot do."""

from __future__ import annotations

import copy
import json
import pickle
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.decoding.engine import constants
from maskwright.decoding.infill import hole, reach
from maskwright.decoding.infill import text as infill_text
from maskwright.decoding.infill.check import check_hole, offset_of
from maskwright.decoding.infill.groups import Groups
from maskwright.decoding.infill.hole import tables_of


@cache
def store(name: str = "json") -> Any:
    constraint: Any = name
    if name == "schema":
        constraint = mw.load_schema({"type": "array", "items": {"type": "integer"}})
    elif name in ("even", "lines"):
        text = 'start: s+\ns: "a" _NL | "i" _NL _IN s+ _DE\n_NL: /(\\n(  )*)+/\n%declare _IN _DE'
        text = text.replace("(  )*", " *") if name == "lines" else text
        constraint = mw.parse_grammar(text, layout=mw.Indenter("_NL", "_IN", "_DE"))
    return mw.build_store(constraint, "python-tiny")


def test_a_middle_ends_where_the_whole_is_a_text() -> None:
    matcher = store().matcher(prefix='{"a": [1, 2', suffix="3], 4: 5}"[:3] + ' "b": null}')
    eos = store().vocabulary.eos[0]
    assert matcher.is_accepting() and matcher.is_allowed(eos)
    matcher.advance_bytes(b', "x')
    assert not matcher.is_accepting() and not matcher.is_allowed(eos)
    with pytest.raises(mw.IllegalTokenError, match="ends the text, which is not complete"):
        matcher.advance(eos)
    assert matcher.shortest_ending().data == b'",'
    assert matcher.min_bytes_left() == 2 and matcher.said() == b', "x'
    matcher.advance_bytes(b'",')
    matcher.advance(eos)
    assert matcher.is_finished() and matcher.allowed_tokens() == []
    with pytest.raises(mw.IllegalTokenError, match="after the end of the text"):
        matcher.advance(5)
    matcher.rollback(2)
    assert not matcher.is_finished() and not matcher.is_accepting() and matcher.said() == b', "x'
    matcher.reset()
    assert matcher.is_accepting() and matcher.said() == b""


@pytest.mark.parametrize("name", ["json", "schema"])
def test_middles_in_slots_of_a_batch_are_matchers(name: str) -> None:
    made, n = store(name), 4
    batch, words = made.batch(n), np.zeros((n, made.n_words), np.uint32)
    row = np.zeros(made.n_words, np.uint32)
    alone = [made.matcher() for _ in range(n)]
    for slot, (prefix, suffix) in {1: (b"[1, 2", b"3]"), 3: (b"", b"7, 8]")}.items():
        alone[slot] = made.matcher(prefix=prefix, suffix=suffix)
        batch.put(slot, alone[slot])

    def check() -> None:
        batch.fill(words)
        for slot, matcher in enumerate(alone):
            matcher.fill(row)
            assert np.array_equal(words[slot], row) and batch.is_accepting(slot) == matcher.is_accepting()

    check()
    for each in (b"[", b"1", b","):
        token = made.vocabulary.tokens.index(each)
        legal = [matcher.is_allowed(token) for matcher in alone]
        batch.advance([token if is_legal else -1 for is_legal in legal])
        for matcher, is_legal in zip(alone, legal, strict=True):
            matcher.advance(token) if is_legal else None
        check()
    again = pickle.loads(pickle.dumps(batch)) if name == "json" else batch
    again.copy(3, 0)
    alone[0] = alone[3].fork()
    again.put(3, again.store.matcher())  # a plain text again
    alone[3] = made.matcher()
    again.reset(1)
    alone[1].reset()
    batch = again
    check()
    assert batch.holds_names and not made.batch(2).holds_names
    with pytest.raises(mw.MaskwrightError, match="this matcher is of another one"):
        batch.put(0, store("even").matcher())
    with pytest.raises(mw.MaskwrightError, match="slot 4 is out of range"):
        batch.put(4, batch.store.matcher())


def test_forks_and_pickles_go_on_by_themselves() -> None:
    matcher = store().matcher(max_rollback=3, prefix=b"[1, ", suffix=b"]")
    for data in (b"[2", b"]", b", ", b'"a'):
        matcher.advance_bytes(data)
    for other in (matcher.fork(), copy.deepcopy(matcher), pickle.loads(pickle.dumps(matcher))):
        assert other.remembered() == 3 and other.said() == matcher.said()
        assert other.allowed_tokens() == matcher.allowed_tokens()
        other.advance_bytes(b'"')
        assert other.is_accepting() and not matcher.is_accepting()
        other.rollback(3)
        assert other.said() == b"[2]"
        with pytest.raises(mw.MaskwrightError, match="0 are remembered"):
            other.rollback(1)
        if other.store is matcher.store:
            other.become(matcher)
            assert other.said() == matcher.said()
        other.reset()
        assert other.said() == b"" and other.min_bytes_left() == 1
    matcher.advance_bytes(b'"')
    matcher.advance(store().vocabulary.eos[0])
    assert pickle.loads(pickle.dumps(matcher)).is_finished()


def test_a_broken_prefix_names_its_byte() -> None:
    with pytest.raises(
        mw.IllegalTokenError, match=r"b'\]' cannot stand at byte 8 of it, its line 2:3, behind b'\[\{\"a\"\\n :'"
    ):
        store().matcher(prefix='[{"a"\n :]', suffix="]")


def test_no_middle_is_said_at_once() -> None:
    with pytest.raises(mw.DeadEndError, match=r"b'}' cannot stand at byte 6 of it, its line 2:5.*'r' could"):
        store().matcher(prefix="[", suffix='"\n, [t}]')
    with pytest.raises(mw.DeadEndError, match="all of it can follow, but the text may not end behind it"):
        store().matcher(prefix='{"a": ', suffix="1")
    assert store().matcher(prefix='{"a": ', suffix="1", exact=False).is_accepting() is False


def test_a_broken_suffix_is_cut_at_a_lines_end() -> None:
    matcher: Any = store().matcher(prefix="[", suffix="2,\n3,\n4 5]\n", if_broken="cut")
    assert matcher.left_out == b"4 5]\n"
    assert matcher.is_accepting()
    matcher.advance_bytes(b'["a')
    assert matcher.shortest_ending().data == b'",'
    matcher: Any = store().matcher(prefix="[", suffix="2 3\n]", if_broken="cut")  # type: ignore[no-redef]
    assert matcher.left_out == b"\n]"  # `2 3` can stand in a string
    assert matcher.shortest_ending().data == b'"'
    matcher: Any = store().matcher(prefix="[", suffix="2]", if_broken="cut")  # type: ignore[no-redef]
    assert matcher.left_out == b""


def test_tokens_that_lead_nowhere_are_refused_with_a_reason() -> None:
    matcher = store().matcher(prefix="{", suffix=": 1}")
    plain = store().matcher()
    plain.advance_bytes(b"{")
    refused = set(plain.allowed_tokens()) - set(matcher.allowed_tokens())
    close = store().vocabulary.tokens.index(b"}")
    assert refused == {close}
    with pytest.raises(mw.IllegalTokenError, match="since no middle leads from there to the suffix"):
        matcher.advance(close)
    assert "no middle leads" in matcher.why(close)
    ends = store().matcher(prefix="{", suffix=": 1}", exact=False)
    assert ends.is_allowed(close)


@pytest.mark.parametrize("name", ["schema", "even"])
def test_other_kinds_know_where_a_middle_ends(name: str) -> None:
    """Lines with an even number of blanks only are no layout of which more is known."""
    prefix, suffix, rest = ("[1, ", "2]", b"3, ") if name == "schema" else ("i\n  i\n", "    a\n", b"  ")
    matcher = store(name).matcher(prefix=prefix, suffix=suffix)
    assert matcher.is_accepting()
    matcher.advance_bytes(rest)
    assert matcher.is_accepting() and matcher.is_allowed(store(name).vocabulary.eos[0])
    with pytest.raises(mw.MaskwrightError, match="a newline may have any column"):
        store(name).matcher(prefix=prefix, suffix=suffix, exact=True)


def test_a_middle_in_indented_lines() -> None:
    python = store("python")
    matcher = python.matcher(prefix="def f(x):\n    if x:\n", suffix="    return 1\n", exact=True)
    assert not matcher.is_accepting()
    assert matcher.shortest_ending().data == b" "
    matcher.advance_bytes(b" ")
    assert matcher.is_accepting()


def test_a_suffix_whose_lines_no_block_holds() -> None:
    lines = store("lines")
    with pytest.raises(mw.DeadEndError, match=r"b'a' cannot stand at byte 2 of it, its line 2:1"):
        lines.matcher(prefix="i\n   a\n", suffix="i\na\n", exact=True)
    with pytest.raises(mw.DeadEndError, match=r"b'a' cannot stand at byte 9 of it, its line 3:4"):
        lines.matcher(prefix="i\n   a\n", suffix="a\n  a\n   a\n")
    cut: Any = lines.matcher(prefix="i\n   a\ni", suffix="a\n  a\n   a\n", if_broken="cut")
    assert cut.left_out == b"   a\n" and not cut.is_accepting()
    assert cut.shortest_ending().data == b"\n  "
    # the blanks of the middle and of the suffix are one line's
    assert lines.matcher(prefix="i\n   a\n", suffix=" a\n  a\n").shortest_ending().data == b"i\n "


@pytest.mark.parametrize("suffix", ["    return 1\n", "]\n  else:\n    pass\n", " else 2\n"])
def test_masks_under_a_layout_are_those_of_each_token_alone(suffix: str) -> None:
    python = store("python")
    matcher = python.matcher(prefix="def f(x):\n  if x:\n    a = [", suffix=suffix)
    for data in (b"b", b"[0]\n", b"]\n    ", b"c = f'{[", b"0\n]}'\n  ", b"\n    "):
        matcher.advance_bytes(data)
        alone = [n for n in range(python.vocabulary.size) if matcher.is_allowed(n)]
        assert matcher.allowed_tokens() == alone


def test_what_cannot_be_asked() -> None:
    with pytest.raises(mw.MaskwrightError, match="if_broken"):
        store().matcher(suffix="]", if_broken="cutt")
    with pytest.raises(mw.MaskwrightError, match="the suffix"):
        store().matcher(suffix=3)
    with pytest.raises(mw.MaskwrightError, match="exact"):
        store().matcher(suffix="]", exact="yes")


def test_a_generation_keeps_its_budget() -> None:
    """A model that likes nothing but `[`."""
    vocabulary = store().vocabulary
    logits = np.zeros(vocabulary.size, np.float32)
    logits[vocabulary.tokens.index(b"[")] = 5
    matcher = store().matcher(prefix='{"a": ', suffix='1], "b": 2}')
    steps = list(mw.generate(lambda tokens: logits, matcher, [1], max_tokens=12))
    middle = b"".join(step.data for step in steps)
    assert json.loads(b'{"a": ' + middle + b'1], "b": 2}')["b"] == 2
    assert middle.count(b"[") > 3


@pytest.mark.parametrize("name", ["json", "modes"])
def test_groups_are_of_tokens_that_do_the_same(name: str) -> None:
    """Tokens of one group leave one state of lexer and parser."""
    grammar: Any = name
    if name == "modes":
        grammar = mw.parse_grammar('start: s*\ns: "<" N ">" | T\nN: /[a-m]+/\nT: /[a-z =.]+/\nW: / +/\n%ignore W')
    one = mw.build_store(grammar, "python-tiny")
    groups, states = tables_of(one).groups, tables_of(one).states
    assert isinstance(groups, Groups)
    matcher = one.matcher()
    for data in (b"[1", b', {"a', b'": t') if name == "json" else (b"ab", b"<", b"a>"):
        matcher.advance_bytes(data)
        state = states.start(matcher.text)  # type: ignore[arg-type]
        found: dict[int, set[Any]] = {}
        for token in matcher.allowed_tokens():
            if one.vocabulary.tokens[token]:
                after: Any = state
                for byte in one.vocabulary.tokens[token]:
                    after = states.after(after, bytes([byte]))
                label = int(groups.labels(state[1] or states.mode_start(state[0]))[token])
                found.setdefault(label, set()).add(after)
        assert len(found) > 1 and {len(each) for each in found.values()} == {1}


def test_places() -> None:
    assert offset_of("ab\n\ncd", "1:3") == 2 and offset_of("ab\n\ncd", "2:1") == 3 and offset_of("ab\n\ncd", "3:3") == 6
    for place, why in {"0:1": "is no place", "1:4": "line 1 has 2 characters", "4:1": "it has 3 lines"}.items():
        with pytest.raises(mw.MaskwrightError, match=why):
            offset_of("ab\n\ncd", place)


def test_a_hole_is_checked() -> None:
    found = check_hole(store(), '[1, {"a": ]', "1:11")
    assert found["has_middle"] and found["shortest"] == "0}" and not found["may_be_empty"]
    assert found["words"].startswith("the shortest middle is '0}'; what may come first: ")
    found = check_hole(store(), "[1, x]", "1:5", "1:6")
    assert found["has_middle"] and not found["may_be_empty"] and len(found["shortest"]) == 1
    found = check_hole(store(), "[1, 2\n3 tru]", "1:6")
    assert found["has_middle"] is False and found["left_out"] == "3 tru]"
    assert "all but the last 6 characters can follow ''" in found["words"]
    with pytest.raises(mw.MaskwrightError, match="before it begins"):
        check_hole(store(), "[1]", "1:3", "1:2")


def test_a_limit_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "MOST_STEPS", 10)
    with pytest.raises(mw.LimitError, match="more than 10 steps"):
        store().matcher(prefix="[", suffix="1, 2, 3]")


@pytest.mark.parametrize("prefix, suffix", [("[", "3], 1]"), ('[{"a": [1', "3}]")])
def test_a_limit_leaves_no_wrong_answers(monkeypatch: pytest.MonkeyPatch, prefix: str, suffix: str) -> None:
    """Whatever was given up before, each question has its answer, or is given up too."""
    asked = (mw.Matcher.allowed_tokens, mw.Matcher.shortest_ending, mw.Matcher.min_bytes_left)
    whole = store().matcher(prefix=prefix, suffix=suffix)
    wanted = [ask(whole) for ask in asked]  # type: ignore[operator]
    monkeypatch.setattr(hole, "MOST_KEPT", 0)
    n_answers = n_limits = 0
    for most in range(20, 420, 40):
        store().matcher(suffix="1")  # so that nothing of the other suffix is kept
        monkeypatch.setattr(reach, "MOST_STEPS", most)
        try:
            matcher = store().matcher(prefix=prefix, suffix=suffix)
            for _ in range(20):
                for ask, answer in zip(asked, wanted, strict=True):
                    try:
                        assert ask(matcher) == answer  # type: ignore[operator]
                        n_answers += 1
                    except mw.LimitError:
                        n_limits += 1
        except mw.LimitError:
            n_limits += 1
        monkeypatch.undo()
        monkeypatch.setattr(hole, "MOST_KEPT", 0)
    assert n_answers > 50 and n_limits > 50


def test_a_long_life_meets_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are counted for each question: tables that grow too large are made again."""
    matcher = store().matcher(prefix="[", suffix=' , [true, {"b": null}]]')
    most, n_steps = matcher.text.hole.reach.n_steps + 20, []  # type: ignore[attr-defined]
    monkeypatch.setattr(reach, "MOST_STEPS", most)
    for data in (b"1", b", 2", b', {"a": [', b'{"c": ["', b'"]', b"}", b"]}", b", [[[[1", b"]]]", b"]"):
        matcher.advance_bytes(data)
        assert matcher.allowed_tokens()
        n_steps.append(matcher.text.hole.reach.n_steps)  # type: ignore[attr-defined]
    assert any(after < before for before, after in pairwise(n_steps)) and max(n_steps) <= most


def test_an_interrupted_question_leaves_no_wrong_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = store().matcher(prefix="[", suffix="7], 7]")
    whole, n = matcher.allowed_tokens(), 0
    table: Any = matcher.text.hole.reach  # type: ignore[attr-defined]
    expand = table._expand

    def interrupted(*arguments: Any) -> None:
        nonlocal n
        n += 1
        if n % 5 == 0:
            raise KeyboardInterrupt
        expand(*arguments)

    for _ in range(10):
        table._drop()
        table.forget()
        matcher.text.hole._verdicts.clear()  # type: ignore[attr-defined]
        monkeypatch.setattr(table, "_expand", interrupted)
        with pytest.raises(KeyboardInterrupt):
            matcher.allowed_tokens()
        monkeypatch.undo()
        assert matcher.allowed_tokens() == whole


def test_first_readings_are_short() -> None:
    """A suffix that is wrong behind its first bytes is refused there too."""
    suffix = b" " * (infill_text._LOOK + 5) + b"]"
    assert store().matcher(prefix="[1", suffix=suffix).is_accepting()
    assert not store().matcher(prefix="[1,", suffix=suffix).is_accepting()


def test_deep_stacks() -> None:
    deep = store().matcher(prefix="[" * 1_500, suffix="]" * 1_500)
    assert deep.shortest_ending().data == b""


def test_rules_may_be_long() -> None:
    """One of 450 symbols, under a layout, whose brackets are counted."""
    text = 'start: s+\ns: "i" _NL _IN s+ _DE | "a" ' + '"b" ' * 450 + "_NL\n_NL: /(\\n *)+/\n%declare _IN _DE"
    grammar = mw.parse_grammar(text, layout=mw.Indenter("_NL", "_IN", "_DE"))
    matcher = mw.build_store(grammar, "python-tiny").matcher(prefix="i\n a", suffix="b" * 449 + "\n", exact=True)
    assert matcher.min_bytes_left() == 1


def test_what_could_stand_in_a_suffix_is_said_where_it_is_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    tables, steps = tables_of(store()), list[int]()
    least = reach.Reach.least

    def counted(table: Any, *arguments: Any) -> int:
        assert tables.lock._is_owned()  # type: ignore[attr-defined]
        found = least(table, *arguments)
        steps.append(table.n_steps)
        return found

    monkeypatch.setattr(reach.Reach, "least", counted)
    with pytest.raises(mw.DeadEndError, match=r"b'3' cannot stand at byte 5 of it.*',', '\]' could\."):
        store().matcher(prefix="[", suffix="1,\n2 3]")
    few = len(steps)
    assert few <= 1 + 3 + sum(map(bool, tables.states.lexer.by_class))  # bits of the length, and classes of bytes
    values = ", ".join(f'{{"k{n}": [{n}, true]}}' for n in range(60))
    with pytest.raises(mw.DeadEndError, match=f"b'3' cannot stand at byte {len(values) + 1} of it") as error:
        store().matcher(prefix="[", suffix=values + " 3]")
    assert "could" not in str(error.value)
    n_bits = (len(values) + 3).bit_length()
    assert sum(steps[few + 1 + n_bits :]) <= hole.MOST_NAMED + max(steps)


def test_a_matcher_becomes_a_middle_and_a_plain_one_again() -> None:
    for name in ("json", "schema"):
        matcher, middle = store(name).matcher(), store(name).matcher(prefix="[1, ", suffix="2]")
        middle.advance_bytes(b"3, ")
        matcher.become(middle)
        assert matcher.said() == b"3, " and matcher.is_accepting()
        matcher.advance_bytes(b"4, ")
        assert middle.said() == b"3, " and matcher.is_accepting()
        matcher.become(store(name).matcher())
        matcher.advance_bytes(b"[3")
        assert not matcher.is_accepting()


def test_a_cut_needs_exact_masks() -> None:
    for name in ("json", "schema"):
        with pytest.raises(mw.MaskwrightError, match="with exact=False nobody knows what can"):
            store(name).matcher(prefix="[", suffix="1 2]", exact=False, if_broken="cut")


def test_keys_tell_exact_masks_from_others() -> None:
    exact, other = (store().matcher(prefix="{", suffix=": 1}", exact=each) for each in (True, False))
    assert exact.allowed_tokens() != other.allowed_tokens()
    assert exact.text.key() != other.text.key() == other.fork().text.key()


def test_a_search_that_was_cut_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more `a` has more readings than are followed, and all middles have it."""
    text = 's: "a" s "a" | "a"\nstart: s "."'
    ambiguous = mw.build_store(mw.parse_grammar(text, conflicts="all"), "python-tiny")
    matcher = ambiguous.matcher(prefix="a" * 16, suffix=".")
    monkeypatch.setattr(constants, "MAX_STACKS", len(matcher.text.state[0].frames))  # type: ignore[attr-defined]
    with pytest.raises(mw.LimitError, match="too many readings"):
        matcher.shortest_ending()


def test_labels_take_little_memory() -> None:
    labels = tables_of(store()).groups.labels(1)
    assert labels.dtype == np.int32


def test_matchers_of_a_suffix_share_its_tables() -> None:
    one = store().matcher(prefix='["', suffix="11]")
    one.shortest_ending()
    first: Any = one.text
    second: Any = store().matcher(prefix='{"a": [', suffix="11]}").text
    assert second.hole is not first.hole
    again: Any = store().matcher(prefix="[2, ", suffix="11]").text
    assert again.hole is first.hole and again.hole.weighted.n_steps
    for n in range(hole.MOST_HOLES):
        store().matcher(prefix="[", suffix=f"{20 + n}]")
    last: Any = store().matcher(prefix="[", suffix="11]").text
    assert last.hole is not first.hole and len(tables_of(store())._holes) == hole.MOST_HOLES
