"""A middle as a matcher: what it reads, how it ends, what it says, and what it cannot do."""

from __future__ import annotations

import copy
import json
import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest

import maskwright as mw
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
    from maskwright.decoding.infill import reach

    monkeypatch.setattr(reach, "MOST_STEPS", 10)
    with pytest.raises(mw.LimitError, match="more than 10 steps"):
        store().matcher(prefix="[", suffix="1, 2, 3]")


def test_first_readings_are_short() -> None:
    """A suffix that is wrong behind its first bytes is refused there too."""
    suffix = b" " * (infill_text._LOOK + 5) + b"]"
    assert store().matcher(prefix="[1", suffix=suffix).is_accepting()
    assert not store().matcher(prefix="[1,", suffix=suffix).is_accepting()


def test_deep_stacks() -> None:
    deep = store().matcher(prefix="[" * 1_500, suffix="]" * 1_500)
    assert deep.shortest_ending().data == b""
