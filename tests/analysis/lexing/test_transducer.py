"""The transducer against longest-match lexing of whole texts by derivatives (`naive_engine`)."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from engine_cases import LITERALS, PATTERNS, longest
from naive_engine import NaiveEngine
from shares import share

from maskwright.analysis.errors import BackupError, GrammarError, LimitError
from maskwright.analysis.grammar.grammar import Grammar, Lexing, Rule, Terminal
from maskwright.analysis.lexing import transducer
from maskwright.analysis.lexing.encoding import DEAD, START_STATE, Transducer
from maskwright.analysis.lexing.lexemes import terminal_rank
from maskwright.analysis.lexing.transducer import build_transducer
from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.automaton.stack_automaton import build_lexer_and_parser


def anything_goes(terminals: list[Terminal], ignored: int = 0) -> Grammar:
    """start: (T0 | T1 | ...)*; the last `ignored` terminals are ignored."""
    n, used = len(terminals), len(terminals) - ignored
    rules = (Rule(n, ()), *(Rule(n, (n, t)) for t in range(used)))
    return Grammar("any", tuple(terminals), ("start",), rules, n, frozenset(range(used, n)), lexing="longest")


def random_terminals(seed: int) -> Grammar:
    rng = random.Random(seed)
    pool = [(p, None) for p in PATTERNS] + [(re.escape(text), text) for text in LITERALS]
    chosen = rng.sample(pool, rng.randint(2, 6))
    terminals = [
        Terminal(f"T{i}", p, literal=text, priority=rng.choice((0, 0, 1))) for i, (p, text) in enumerate(chosen)
    ]
    return anything_goes(terminals, rng.randint(0, 1))


def built(seed: int) -> tuple[Transducer, NaiveEngine]:
    grammar = random_terminals(seed)
    try:
        return build_transducer(grammar, lambda first, second: True), NaiveEngine(grammar)
    except LimitError as error:
        assert "back up" in str(error)
        pytest.skip("these terminals back up without end")


def naive_terminals(naive: NaiveEngine, text: bytes) -> tuple[int, ...] | None:
    """The terminals of a whole text, ignored ones left out; None if it does not lex."""
    found, begin = [], 0
    every = frozenset(naive.terminals)
    while begin < len(text):
        winner, end, state = naive.scan(text, begin)
        if winner < 0 or (state >= 0 and end < len(text) and not naive.can_fail(text[begin:], end - begin, every)):
            return None
        found.append(winner)
        begin = end
    return tuple(t for t in found if t not in naive.grammar.ignored)


def run(transducer: Transducer, state: int, data: bytes) -> tuple[int, tuple[int, ...]]:
    """The state after some bytes that the lexer takes, and what it emits on the way."""
    emitted: tuple[int, ...] = ()
    for byte in data:
        klass = int(transducer.byte_class[byte])
        emitted += transducer.outputs[int(transducer.output[state, klass])]
        state = int(transducer.next_state[state, klass])
    return state, emitted


def terminals(transducer: Transducer, text: bytes) -> tuple[int, ...] | None:
    state, emitted = START_STATE, ()
    for byte in text:
        if transducer.next_state[state, transducer.byte_class[byte]] < 0:
            return None
        state, more = run(transducer, state, bytes([byte]))
        emitted += more
    last = int(transducer.end_output[state])
    return None if last < 0 else emitted + transducer.outputs[last]


def is_alive(transducer: Transducer, text: bytes) -> bool:
    state = START_STATE
    for byte in text:
        state = int(transducer.next_state[state, transducer.byte_class[byte]])
        if state < 0:
            assert state == DEAD
            return False
    return True


def random_text(rng: random.Random, naive: NaiveEngine, length: int) -> bytes:
    """Mostly bytes that go on; now and then any."""
    text = b""
    for _ in range(length):
        good = [byte for byte in naive.alphabet if naive.is_legal_prefix(text + bytes([byte]))]
        text += bytes([rng.choice(good if good and rng.random() < 0.9 else list(naive.alphabet))])
    return text


@pytest.mark.parametrize("seed", share(range(40), 7))
def test_texts_lex_as_by_definition(seed: int) -> None:
    transducer, naive = built(seed)
    rng = random.Random(seed)
    for _ in range(15):
        text = random_text(rng, naive, 10)
        for end in range(len(text) + 1):
            assert is_alive(transducer, text[:end]) == naive.is_legal_prefix(text[:end]), text[:end]
            assert terminals(transducer, text[:end]) == naive_terminals(naive, text[:end]), text[:end]


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_every_short_text(seed: int) -> None:
    transducer, naive = built(seed)
    texts = [b""]
    for _ in range(3):
        texts = [text + bytes([byte]) for text in texts for byte in naive.alphabet]
        for text in texts:
            assert terminals(transducer, text) == naive_terminals(naive, text), text
        texts = [text for text in texts if is_alive(transducer, text)]


@pytest.mark.parametrize("seed", share(range(40), 7))
def test_live_terminals_and_byte_classes(seed: int) -> None:
    """`live` are the terminals that the lexeme under way may win as; bytes of one class do the same from every state."""
    transducer, naive = built(seed)
    rng = random.Random(seed)
    text = random_text(rng, naive, 12)
    state = START_STATE
    for at, byte in enumerate(text):
        _, begin = naive.decided(text[:at])
        under_way = naive.scan(text[:at], begin)[2] if begin < at else -1
        assert transducer.live[state] == (tuple(sorted(naive.ahead((under_way, False)))) if under_way >= 0 else ())
        if transducer.next_state[state, transducer.byte_class[byte]] < 0:
            break
        state, _ = run(transducer, state, bytes([byte]))
    assert (
        transducer.next_state.shape == transducer.output.shape == (transducer.n_states, transducer.byte_class.max() + 1)
    )


def test_ties() -> None:
    """Priority, then literals, then width, then length of the pattern, then name."""
    terminals_ = (
        Terminal("A", "a+"),
        Terminal("B", "[a-z]{1,3}"),
        Terminal("C", "ab", literal="ab"),
        Terminal("D", "[ab]b", priority=1),
        Terminal("E", "b+"),
    )
    rank = terminal_rank(terminals_)
    assert sorted(range(5), key=rank.__getitem__) == [3, 2, 0, 4, 1]


def test_what_cannot_follow_is_not_backed_up_to() -> None:
    """`0x` is no number and name if these never meet."""
    grammar = anything_goes([Terminal("N", "0|0x[0-9]"), Terminal("NAME", "[a-z]")])
    assert terminals(build_transducer(grammar, lambda first, second: True), b"0x") == (0, 1)
    kept_apart = build_transducer(grammar, lambda first, second: False)
    assert terminals(kept_apart, b"0x") is None and is_alive(kept_apart, b"0x")
    assert terminals(kept_apart, b"0x1") == (0,)


def test_an_open_comment_is_unfinished_at_the_end() -> None:
    grammar = longest('start: ("/" | "*" | "a")*\nC: /\\/\\*([^*]|\\*+[^*\\/])*\\*+\\//\n%ignore C')
    transducer = build_transducer(grammar, lambda first, second: True)
    assert terminals(transducer, b"/") is not None
    assert terminals(transducer, b"/*a") is None
    assert terminals(transducer, b"/*a*/a") == terminals(transducer, b"a")


def test_unbounded_back_up_is_a_limit_that_names_terminals_and_the_way_out() -> None:
    grammar = anything_goes([Terminal("AAA", "aaa", literal="aaa"), Terminal("B", "a+b+z"), Terminal("C", "b+x")])
    with pytest.raises(
        LimitError, match=r"back up over more than it can .* AAA has ended or B goes on.*lexing='contextual'"
    ):
        build_transducer(grammar, lambda first, second: True)


def test_too_many_states_are_a_limit() -> None:
    grammar = anything_goes([Terminal("A", "[ab]*a[ab]{9}c")])
    with pytest.raises(LimitError, match="more than"):
        build_transducer(grammar, lambda first, second: True, limit=100)


LINES = """
start: (NAME _NEWLINE | "x" _NEWLINE _INDENT NAME _NEWLINE _DEDENT)*
NAME: /[a-c]+/
{extra}
_NEWLINE: {newline}
%declare _INDENT _DEDENT
"""


@pytest.mark.parametrize("long", ["\\n a b", "\\na\\nb"])
def test_a_newline_that_the_lexer_would_back_up_over_is_refused(long: str) -> None:
    """Its column would be lost."""
    text = LINES.format(extra=f'LONG: "{long}"', newline="/(\\n[ ]*)+/")
    with pytest.raises(GrammarError, match="back up over a newline"):
        build_transducer(longest(text + '%ignore LONG\n%ignore " "'), lambda first, second: True)


@pytest.mark.parametrize("newline", ["(#c*){1,3}(\\n[ ]*)*|(\\n[ ]*)+", "(\\n[ ]*|#c*)+", "(#c*)*(\\n[ ]*|#c*)+"])
def test_comments_that_a_line_feed_would_make_a_newline(newline: str) -> None:
    """A newline without a line feed cannot end: `#c##x` is three comments and an x, if no line feed comes."""
    grammar = longest(LINES.format(extra="COMMENT: /#c*/", newline=f"/{newline}/") + "%ignore COMMENT")
    transducer = build_transducer(grammar, lambda first, second: True)
    x = terminals(transducer, b"x")
    assert x
    for comments in (b"#", b"#c", b"##", b"#c##", b"#c#c#cc", b"####", b"#c#c#c#c#c", b"#c#" * 40):
        assert terminals(transducer, comments) == ()
        assert terminals(transducer, comments + b"x") == x
    assert terminals(transducer, b"#c#\n") == terminals(transducer, b"\n")
    assert terminals(transducer, b"#c#\nx") == (*(terminals(transducer, b"\n") or ()), *x)


def test_comments_that_are_emitted_until_a_line_feed_makes_a_newline_of_them_are_a_limit() -> None:
    """Any number of them would have to be held back."""
    text = LINES.format(extra="COMMENT: /#c*/", newline="/(\\n[ ]*|#c*)+/").replace(
        "NAME _NEWLINE |", "NAME COMMENT* _NEWLINE |"
    )
    with pytest.raises(LimitError, match="back up over more than it can"):
        build_transducer(longest(text), lambda first, second: True)


@pytest.mark.parametrize("long", ["/ +x/", "/ +x?x/", "/[ ]{3,}x/"])
def test_what_is_ignored_may_be_backed_up_over_without_end(long: str) -> None:
    """Blanks that an x would make a lexeme of: what they come to does not depend on their number."""
    grammar = longest(f'start: (LONG | "y" | "x")*\nLONG: {long}\n%ignore " "')
    transducer = build_transducer(grammar, lambda first, second: True)
    naive = NaiveEngine(grammar)
    for n in range(9):
        for last in (b"x", b"y", b"xx", b"yx", b""):
            assert terminals(transducer, b" " * n + last) == naive_terminals(naive, b" " * n + last)


def test_newlines_know_whether_they_may_end() -> None:
    grammar = longest(LINES.format(extra="", newline="/(\\n[ ]*|#c*)+/"))
    transducer = build_transducer(grammar, lambda first, second: True)
    for text, may_end in (
        (b"\n", True),
        (b"\n  ", True),
        (b"#", False),
        (b"#c", False),
        (b"#c\n", True),
        (b"\n#c", True),
    ):
        state, _ = run(transducer, START_STATE, text)
        assert transducer.is_newline[state]
        assert transducer.may_end_newline[state] == may_end, text
    state, emitted = run(transducer, START_STATE, b"#c\na")
    assert emitted == (grammar.layout.newline,) if grammar.layout else False
    assert not transducer.is_newline[state]
    assert transducer.byte_class[10] != transducer.byte_class[32] != transducer.byte_class[9]


def test_tables_are_read_only_and_the_same_each_time() -> None:
    grammar = random_terminals(3)
    first, second = (build_transducer(grammar, lambda first, second: True) for _ in range(2))
    for name in ("byte_class", "next_state", "output", "end_output"):
        array = getattr(first, name)
        assert np.array_equal(array, getattr(second, name))
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert first.outputs == second.outputs and first.live == second.live


@pytest.mark.parametrize("newline", [r"\n", r"\r?\n", r"(\n *)+;", r"\n *"])
@pytest.mark.parametrize("lexing", ["longest", "contextual"])
def test_a_newline_that_the_next_line_feed_does_not_continue_is_refused(newline: str, lexing: Lexing) -> None:
    """One that cannot grow is emitted at once, and masks had lacked tokens with ignored text before it."""
    text = f'start: (";" | _NEWLINE)*\n_NEWLINE: /{newline}/\n%declare _INDENT _DEDENT\n%ignore " "'
    with pytest.raises(GrammarError, match="newline _NEWLINE can end where no further line feed can continue it"):
        build_lexer_and_parser(parse_grammar(text, lexing=lexing))


def test_which_terminals_make_the_lexer_back_up_for_ever() -> None:
    """By number, the one that may have ended first: nobody has to read the message."""
    grammar = longest('start: (A | LONG | END)*\nA: "a"\nLONG: /a+b/\nEND: "c"')
    remedy = r"back up over more than it can \(12 lexemes or 64 bytes.*; make the terminals differ sooner, or load the grammar"
    with pytest.raises(BackupError, match=remedy) as caught:
        build_transducer(grammar, lambda first, second: True)
    assert [grammar.display_name(t) for t in caught.value.terminals] == ["A", "LONG"]
    with pytest.raises(BackupError, match=r"; make the terminals differ sooner$"):
        build_transducer(replace(grammar, lexing="contextual"), lambda first, second: True)


@pytest.mark.parametrize(
    "terminals",
    ['A: /a(?=[ab]{40}c)/\nB: "a"\nC: "b"\nD: /[ab]{41}c/\n', 'A: "a"\nB: "b"\nC: "c"\nD: /[ab]*a[ab]{10}c/\n'],
)
def test_endless_backing_up_is_refused_before_there_are_thousands_of_states(
    terminals: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice as many states with each lexeme more: these took seconds, one of more letters a quarter of a minute."""
    rows = 0
    row_of = transducer.Builder._row

    def count(self: Any, state: Any) -> Any:
        nonlocal rows
        rows += 1
        return row_of(self, state)

    monkeypatch.setattr(transducer.Builder, "_row", count)
    grammar = longest(f"start: (A | B | C | D)*\n{terminals}")
    with pytest.raises(BackupError, match="back up over more than it can"):
        build_transducer(grammar, lambda first, second: True)
    assert rows < transducer.MANY + transducer.MOST_DEEP + 100


@pytest.mark.parametrize("seed", range(40))
def test_looking_at_deep_states_first_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def built() -> Any:
        try:
            found = build_transducer(random_terminals(seed), lambda first, second: True)
        except LimitError as error:
            return type(error)
        return found.next_state.tolist(), found.output.tolist(), found.outputs, found.reread, found.fallback

    before = built()
    monkeypatch.setattr(transducer, "MANY", 1)
    assert built() == before
