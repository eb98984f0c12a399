"""`Matcher.restrict`: what a terminal that is held to names leaves of masks, texts and endings."""

from __future__ import annotations

import itertools
import pickle
import random
import string

import numpy as np
import pytest
from engine_cases import contextual, longest, vocabulary_of
from mask_bits import row

import maskwright as mw
from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError, MaskwrightError, UnknownNameError
from maskwright.decoding.matcher import Matcher
from maskwright.decoding.names import lexer
from maskwright.stores.build import compile_store

CALLS = """
start: (st ";")*
st: "let" NAME "=" v | v
v: NAME | v "." NAME | NUMBER | "none" | "(" v ")"
NAME: /[a-zé€]+/
NUMBER: /[0-9]+|\\.[0-9]+/
COMMENT: /#[a-z]*#/
%ignore " "
%ignore COMMENT
"""
TOKENS = (
    b"foo", b"foobar", b"bar", b"fo", b"o.x", b"foo;", b"foo.", b" foo", b"no", b"none", b"r;", b"o)", b".foo",
    b"\xc3", b"\xc3\xa9t",
)  # fmt: skip


@pytest.fixture(scope="module")
def store() -> mw.Store:
    singles = (string.ascii_lowercase + string.digits + " .;=()#").encode() + "é€".encode()
    return compile_store(longest(CALLS), vocabulary_of(*TOKENS, singles=singles))


def held(store: mw.Store, text: bytes, *names: str | bytes, then: bytes = b"") -> Matcher:
    matcher = store.matcher()
    matcher.advance_bytes(text)
    matcher.restrict("NAME", names)
    matcher.advance_bytes(then)
    return matcher


def allows(matcher: Matcher, *texts: bytes) -> list[bool]:
    """Whether each of some bytes may come; by `try_bytes` on a copy."""
    return [matcher.fork().try_bytes(text) for text in texts]


def tokens(matcher: Matcher) -> set[bytes]:
    return {matcher.store.vocabulary.tokens[token] for token in row(matcher)}


def test_the_next_lexeme_is_a_name_and_what_follows_is_free(store: mw.Store) -> None:
    matcher = held(store, b"x.", "foo", "bar")
    assert tokens(matcher) >= {b"foo", b"fo", b"bar", b"f", b"foo;", b"foo.", b" foo", b" ", b"#", b"b"}
    assert not tokens(matcher) & {b"foobar", b"no", b"none", b"x", b"n", b"\xc3"}
    matcher.advance_bytes(b"foo.")
    assert b"foobar" in tokens(matcher) and b"x" in tokens(matcher)


def test_a_name_may_be_a_prefix_of_another(store: mw.Store) -> None:
    matcher = held(store, b"x.", "foo", "foobar", then=b"foo")
    assert allows(matcher, b";", b"bar;", b"b", b"ba;", b"x", b"barx") == [True, True, True, False, False, False]
    only_long = held(store, b"x.", "foobar", then=b"foo")
    assert allows(only_long, b";", b" ", b"bar;") == [False, False, True]
    only_short = held(store, b"x.", "foo", then=b"foo")
    assert allows(only_short, b"b", b";") == [False, True]
    assert b"foo;" in tokens(held(store, b"x.", "foo")) and b"foo;" not in tokens(held(store, b"x.", "foobar"))


def test_other_terminals_stay_as_they_are(store: mw.Store) -> None:
    matcher = held(store, b"", "foo")
    assert tokens(matcher) >= {b"1", b"(", b"no", b"none", b"n", b"foo", b"l", b"."}
    assert allows(matcher, b"none;", b"nonex", b"let foo", b"let bar", b"12;x", b"(x") == [
        True,
        False,
        True,
        True,
        True,
        True,
    ]
    # the first lexeme was no name, so nothing is held any more
    matcher.advance_bytes(b"(")
    assert b"x" in tokens(matcher)


def test_a_keyword_among_the_names_stays_a_keyword(store: mw.Store) -> None:
    assert not tokens(held(store, b"x.", "none", "foo")) & {b"n", b"no", b"none"}
    assert tokens(held(store, b"x.", "none", "nonex")) >= {b"n", b"no", b"none"}
    assert not allows(held(store, b"x.", "none", "nonex", then=b"none"), b";")[0]


def test_white_space_and_comments_may_come_first(store: mw.Store) -> None:
    matcher = held(store, b"x.", "foo", then=b"  #a# ")
    assert tokens(matcher) == {b"f", b"fo", b"foo", b"foo;", b"foo.", b" ", b"#", b" foo"}
    assert not allows(matcher, b"#a#b")[0]


def test_a_lexeme_under_way_is_not_meant(store: mw.Store) -> None:
    matcher = held(store, b"x", "foo")
    assert allows(matcher, b"yz;", b".foo", b".bar", b";bar") == [True, True, True, True]
    # of `.5` the point is under way, and no name
    assert allows(held(store, b"x.", "foo"), b"foo;", b"bar;") == [True, False]
    assert allows(held(store, b"let", "foo"), b" foo=", b" bar") == [True, False]


def test_names_in_utf_8_are_spelled_in_pieces(store: mw.Store) -> None:
    matcher = held(store, b"x.", "éa", "ét", "€")
    assert tokens(matcher) == {b"\xc3", b"\xc3\xa9t", b"\xe2", b" ", b"#"}
    matcher.advance_bytes(b"\xc3")
    assert tokens(matcher) == {b"\xa9"}
    matcher.advance_bytes(b"\xa9")
    assert tokens(matcher) == {b"a", b"t"}
    assert not allows(matcher, b";")[0] and allows(matcher, b"a;")[0]


def test_without_names_the_terminal_cannot_come(store: mw.Store) -> None:
    matcher = held(store, b"")
    assert tokens(matcher) >= {b"1", b"none", b"("} and not tokens(matcher) & {b"foo", b"x", b"f"}
    dead = held(store, b"x.")
    with pytest.raises(DeadEndError, match="terminal NAME is held to 0 names here"):
        dead.fill(np.zeros(store.n_words, np.uint32))
    assert not dead.try_fill(np.zeros(store.n_words, np.uint32))
    assert not any(dead.is_allowed(token) for token in range(store.vocabulary.size))


def test_rollback_and_fork_keep_what_was_held(store: mw.Store) -> None:
    matcher = held(store, b"x.", "foo", "foobar")
    before = row(matcher)
    ids = store.vocabulary.id_of_text
    for text in (b"fo", b"o.x", b"x", b";"):
        matcher.advance(ids[text])
    copy = matcher.fork()
    matcher.rollback(4)
    assert row(matcher) == before
    matcher.advance(ids[b"foo"])
    assert allows(matcher, b"x", b"bar") == [False, True]
    copy.rollback(3)
    assert allows(copy, b"x", b"obar", b"o;") == [False, True, True]
    copy.rollback(2)  # behind the call
    assert allows(copy, b"x.bar") == [True]
    matcher.reset()
    assert b"x" in tokens(matcher)


def test_a_second_call_replaces_the_first(store: mw.Store) -> None:
    matcher = held(store, b"x.", "foo")
    matcher.restrict("NAME", ["bar"])
    assert allows(matcher, b"foo", b"bar;") == [False, True]
    matcher.advance_bytes(b"bar.")
    matcher.restrict("NAME", ["foo"])
    assert allows(matcher, b"foo", b"bar") == [True, False]
    matcher.rollback(1)
    assert allows(matcher, b"foo", b"bar") == [False, True]


def test_a_lexeme_that_is_held_stays_so_under_a_second_call(store: mw.Store) -> None:
    matcher = held(store, b"x.", "foo", "foobar", "fob", then=b"fo")
    before = row(matcher)
    matcher.restrict("NAME", ["bar", "foobar", "fob"])
    assert allows(matcher, b"o;", b"ob", b"b;", b"x", b";") == [False, True, True, False, False]
    assert row(matcher) < before
    assert allows(matcher.fork(), b"obar.anything;") == [True]  # behind it nothing is held
    again = pickle.loads(pickle.dumps(matcher))
    assert row(again) == row(matcher)
    matcher.advance_bytes(b"ob")
    matcher.rollback(1)
    assert row(matcher) == row(again)
    matcher.rollback(1)
    assert allows(matcher, b"foo;", b"bar") == [True, False]  # as it was before the lexeme began
    matcher.advance_bytes(b"fo")
    matcher.restrict("NAME", ["bar"])
    with pytest.raises(DeadEndError, match="held to 0 names"):
        row(matcher)


def test_a_second_call_means_the_next_lexeme_where_this_one_is_free(store: mw.Store) -> None:
    matcher = held(store, b"x.", "foo", then=b" #a")  # comments are not seen
    matcher.restrict("NAME", ["bar"])
    assert allows(matcher, b"#bar", b"#foo") == [True, False]


def test_another_terminal_cannot_be_held_inside_a_held_lexeme(store: mw.Store) -> None:
    matcher = held(store, b"", "foo", then=b"fo")
    before = row(matcher)
    with pytest.raises(MaskwrightError, match=r"b'fo' has begun a lexeme, and terminal NAME is held .* hold NUMBER"):
        matcher.restrict("NUMBER", ["1"])
    assert row(matcher) == before
    matcher.advance_bytes(b"o.")
    matcher.restrict("NUMBER", ["1"])
    assert allows(matcher, b"x") == [True]


def test_step_replay_and_pickles_hold_it(store: mw.Store) -> None:
    ids = store.vocabulary.id_of_text
    words = np.zeros(store.n_words, np.uint32)
    matcher = held(store, b"x.", "foo", "bar")
    matcher.step(ids[b"fo"], words)
    assert {store.vocabulary.tokens[t] for t in range(store.vocabulary.size) if words[t >> 5] >> (t & 31) & 1} >= {
        b"o",
        b"o.x",
    }
    again = pickle.loads(pickle.dumps(matcher))
    assert allows(again, b"o;", b"x") == [True, False]
    again.rollback(1)
    assert allows(again, b"bar", b"x") == [True, False]
    assert held(store, b"x.", "foo").replay([ids[b"fo"], ids[b"o.x"], ids[b"bar"]]) == 3
    assert held(store, b"x.", "foo").replay([ids[b"fo"], ids[b"x"]]) == 1
    assert Matcher(store, 0).fork().try_bytes(b"x.")
    no_history = Matcher(store, 0)
    no_history.advance_bytes(b"x.")
    no_history.restrict("NAME", ["foo"])
    assert allows(no_history, b"foo;", b"x") == [True, False]
    no_history.advance_bytes(b"foo;")
    assert allows(no_history, b"bar")[0]


def test_a_pickle_does_not_make_the_lexer_again(store: mw.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one took 2.3 s under the library's `python`."""
    data = pickle.dumps(held(store, b"x.", "foo"))
    monkeypatch.setattr(lexer, "_made", lambda _: pytest.fail("the lexer is made again"))
    for _ in range(2):
        again = pickle.loads(data)
        assert again.store is not store and allows(again, b"foo;", b"x") == [True, False]
    assert len(lexer._LAST) <= lexer.MOST_KEPT


def test_errors_say_what_is_held(store: mw.Store) -> None:
    matcher = held(store, b"x.", "foo", "bar")
    with pytest.raises(IllegalTokenError, match=r"allowed: .*terminal NAME is held to 2 names here \('bar', 'foo'\)"):
        matcher.advance(store.vocabulary.id_of_text[b"x"])
    with pytest.raises(IllegalTokenError, match="Byte 1 of it"):
        matcher.advance_bytes(b"fx")
    said = matcher.explain(store.vocabulary.id_of_text[b"x"])
    assert not said.is_allowed and "is held to 2 names" in said.summary
    assert matcher.explain(store.vocabulary.id_of_text[b"fo"]).is_allowed


def test_a_text_may_end_behind_a_name_only() -> None:
    store = compile_store(longest('start: NAME | NAME "." NAME\nNAME: /[a-z]+/'), vocabulary_of(singles=b"abc."))
    matcher = store.matcher()
    matcher.restrict("NAME", ["ab"])
    eos = store.vocabulary.eos[0]
    matcher.advance_bytes(b"a")
    assert not matcher.is_accepting() and not matcher.is_allowed(eos) and eos not in row(matcher)
    with pytest.raises(IllegalTokenError, match="not complete"):
        matcher.advance(eos)
    matcher.advance_bytes(b"b")
    assert matcher.is_accepting() and eos in row(matcher)
    matcher.advance(eos)
    assert matcher.is_finished() and row(matcher) == set()
    with pytest.raises(MaskwrightError, match="the text has ended"):
        matcher.restrict("NAME", [])


def test_forced_bytes_and_endings_spell_names(store: mw.Store) -> None:
    matcher = held(store, b"x.", "foobar")
    assert matcher.forced_bytes() == b""  # a blank may come
    assert held(store, b"x.", "foobar", then=b"f").forced_bytes() == b"oobar"
    ending = matcher.short_ending()
    assert ending.data == b"foobar;" and not ending.is_shortest
    for token in ending.tokens:
        assert matcher.is_allowed(token)
        matcher.advance(token)
    assert matcher.is_accepting()
    with pytest.raises(LimitError, match="a shortest ending is not known here, since terminal NAME is held"):
        held(store, b"x.", "foobar").shortest_ending()
    assert held(store, b"let x=", "foobar").short_ending().data == b"0;"
    assert held(store, b"let ", "foobar").short_ending().data == b"foobar=0;"
    assert held(store, b"x.", "a").shortest_ending().data == b"a;"
    assert held(store, b"x.", "a").min_bytes_left() == 2
    with pytest.raises(LimitError, match="no ending was found, since"):
        held(store, b"x.", "none").short_ending()


@pytest.mark.parametrize(
    ("grammar", "text", "names", "then", "ending"),
    [
        ('start: "x " (NAME | "lambda" ":" NUM)', b"x ", ["abc"], b"la", b"mbda:0"),
        ('start: "x " (NAME | "lambda" ":" NUM)', b"x ", ["lab"], b"la", b"b"),
        # the keyword may grow into a name, and only what follows keeps it one
        ('start: "x " (NAME | "la" ":" NUM)', b"x ", ["abc"], b"la", b":0"),
        ('start: "x " (NAME | "la" ":" NUM)', b"x ", [], b"", b"la:0"),
        ('start: "x " NAME ";"', b"x ", [f"id {i}" for i in range(40)] + ["customer"], b"", b"customer;"),
        ('start: "x " NAME ";"', b"x ", [f"id {i}" for i in range(40)] + ["customer"], b"cu", b"stomer;"),
    ],
)
def test_short_endings_where_the_shortest_spells_no_name(
    grammar: str, text: bytes, names: list[str], then: bytes, ending: bytes
) -> None:
    """What began a keyword had no ending, nor had names behind 16 shorter ones that are no lexemes."""
    singles = (string.ascii_lowercase + string.digits + " :;").encode()
    store = compile_store(longest(grammar + "\nNAME: /[a-z]+/\nNUM: /[0-9]/"), vocabulary_of(singles=singles))
    matcher = held(store, text, *names, then=then)
    found = matcher.short_ending()
    assert found.data == ending
    for token in found.tokens:
        matcher.advance(token)
    assert matcher.is_accepting()


def test_generate_takes_a_keyword_in_pieces() -> None:
    grammar = longest('start: "x " (NAME | "lambda" ":" NUM)\nNAME: /[a-z]+/\nNUM: /[0-9]/')
    store = compile_store(grammar, vocabulary_of(b"la", singles=b"abcdlmx :1"))
    written = [store.vocabulary.id_of_text[piece] for piece in (b"la", b"m", b"b", b"d", b"a", b":", b"1")]
    matcher = held(store, b"x ", "abc")

    def model(read: list[int]) -> np.ndarray:
        logits = np.zeros(store.vocabulary.size)
        logits[[*written, store.vocabulary.eos[0]][min(len(read) - 1, len(written))]] = 9
        return logits

    assert mw.generate(model, matcher, [0], max_tokens=20).run().data == b"lambda:1"


def test_under_contextual_lexing_names_depend_on_the_place() -> None:
    grammar = contextual(longest('start: "a" NAME | "b" WORD\nNAME: /[a-c]+/\nWORD: /[a-z]+/\n%ignore " "'), "none")
    store = compile_store(grammar, vocabulary_of(b"ab", b"cab", singles=b"abcz "))
    matcher = store.matcher()
    matcher.advance_bytes(b"a")
    matcher.restrict("NAME", ["cab", "z"])
    assert allows(matcher, b"cab", b"b", b" cab", b"z") == [True, False, True, False]
    matcher.reset()
    matcher.advance_bytes(b"b")
    matcher.restrict("NAME", ["cab"])
    assert allows(matcher, b"ab", b"zz")[1]


@pytest.mark.parametrize("n", [10_000, 100_000])
def test_many_names(store: mw.Store, n: int) -> None:
    rng = random.Random(n)
    names = {"".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 9))).encode() for _ in range(n)}
    matcher = held(store, b"x.", *names)
    mask = tokens(matcher)
    free = tokens(held(store, b"x.", b"a")) | tokens(store_at(store, b"x."))
    for token in free - {b" foo"}:
        name, rest = (
            token[: len(token) - len(token.lstrip(string.ascii_lowercase.encode()))],
            token.lstrip(string.ascii_lowercase.encode()),
        )
        if not name or not token.isascii():
            continue
        expected = name in names if rest else any(each.startswith(name) for each in names)
        assert (token in mask) == expected, token


def store_at(store: mw.Store, text: bytes) -> Matcher:
    matcher = store.matcher()
    matcher.advance_bytes(text)
    return matcher


@pytest.mark.parametrize(
    ("terminal", "names", "error", "message"),
    [
        ("NAMES", [], UnknownNameError, "has no terminal 'NAMES'; those with patterns are COMMENT, NAME, NUMBER"),
        ("COMMENT", [], MaskwrightError, "no rule reads it"),
        (3, [], MaskwrightError, "expected a terminal's name"),
        ("NAME", "foo", MaskwrightError, "names is 'foo', a str; expected a list of names"),
        ("NAME", 3, MaskwrightError, "expected a list of names"),
        ("NAME", ["foo", 3], MaskwrightError, "a name is 3, an int; expected a str or bytes"),
        ("NAME", [""], MaskwrightError, "a name is empty"),
        ("NAME", ["\udc80"], MaskwrightError, "half a surrogate pair"),
    ],
)
def test_what_cannot_be_held_is_refused(
    store: mw.Store, terminal: object, names: object, error: type[MaskwrightError], message: str
) -> None:
    matcher = store.matcher()
    with pytest.raises(error, match=message):
        matcher.restrict(terminal, names)  # type: ignore[arg-type]
    assert b"x" in tokens(matcher)


AGAIN = {
    "a number that may go on": (
        'start: (NUMBER | NAME | ";")*\nNUMBER: /[0-9]+(e[0-9]+)?/\nNAME: /[a-z]+/',
        b"1",
        ["foo"],
        {
            b"e;": False,
            b"e": True,
            b"e5;": True,
            b"foo;": True,
            b";e": True,
            b"ee": False,
            b"e5foo;": True,
            b"e5e;": False,
        },
    ),
    "a number that cannot, where the parser is": (
        'start: ONE NAME ";" | "x" NUMBER\nONE: "1"\nNUMBER: "1e5"\nNAME: /[a-z]+/',
        b"1",
        ["foo"],
        {b"e": False, b"f": True, b"foo;": True, b"e5": False},
    ),
    "a name in what is read again": (
        'start: (NUMBER | NAME | ";")*\nNUMBER: /[0-9]+([a-z]+[0-9])?/\nNAME: /[a-z]+/',
        b"1",
        ["ee", "foo"],
        {b"e;": False, b"ee;": True, b"eee;": False, b"foo;": True, b"fob;": False, b"fob": True, b"fob1;": True},
    ),
    "a terminal before what may be ignored": (
        'start: (HASH | NAME | ";")*\nHASH: "#"\nNAME: /[a-z]+/\n%ignore /#[a-z]{0,3}#/\n%ignore " "',
        b";",
        ["foo"],
        {b"#a b;": True, b"#a#b;": False, b"#a#foo;": True, b"a": False, b" #a;": True},
    ),
    "what is ignored, short or long": (
        'start: (NAME | ";")*\nNAME: /[a-z]+/\n%ignore /#([a-z]*#)?/',
        b";",
        ["foo"],
        {b"#a;": False, b"#a": True, b"#a#foo;": True, b"#foo;": True, b"#a#b": False, b"##b": False},
    ),
    "what is read again in several steps": (
        'start: (A | B | NAME | ";")*\nA: /a(bcd[0-9])?/\nB: /bc?/\nNAME: /[c-z]+/',
        b";",
        ["foo", "d"],
        {b"abcd;": True, b"abcd": True},
    ),
    "what began before, and is read again in several steps": (
        'start: (NUMBER | "." | NAME | ";")*\nNUMBER: /[0-9](\\.[a-z]+[0-9])?/\nNAME: /[a-z]+/',
        b"1.",
        ["foo"],
        {b"a": True, b"a;": False, b"foo;": True, b"foo2foo;": True, b"foo2bar;": False, b"a2;": True},
    ),
}


@pytest.mark.parametrize("case", AGAIN)
@pytest.mark.parametrize("lexing", ["longest", "contextual"])
def test_a_text_cut_into_other_tokens_is_no_other_text(case: str, lexing: str) -> None:
    """The bytes since a lexeme could have ended were forgotten: what is read again was held or not by chance."""
    grammar, before, names, texts = AGAIN[case]
    made = longest(grammar) if lexing == "longest" else contextual(longest(grammar), "none")
    for text, may_come in texts.items():
        cuts = [
            [
                text[i:j]
                for i, j in itertools.pairwise([0, *(k for k in range(1, len(text)) if cut >> k & 1), len(text)])
            ]
            for cut in range(0, 1 << min(len(text), 6), 2)
        ]
        there = compile_store(made, vocabulary_of(*{part for cut in cuts for part in cut}, singles=b"abcdef;#. 12foo"))
        for cut in cuts:
            matcher = there.matcher()
            matcher.advance_bytes(before)
            matcher.restrict("NAME", names)
            for part in cut:
                is_left = part in tokens(matcher)
                assert matcher.fork().try_bytes(part) == is_left, (cut, part)
                if not is_left:
                    break
                matcher.advance_bytes(part)
            assert is_left == may_come, cut
