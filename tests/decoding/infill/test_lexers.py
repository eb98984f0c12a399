"""Lexers of every kind: all texts up to a height are explored with the engine, and say what R must say."""

from __future__ import annotations

import random
from typing import Any

import pytest

import maskwright as mw
from maskwright.decoding.endings._ending_kernels import COSTLY
from maskwright.decoding.infill.hole import tables_of
from maskwright.decoding.infill.text import MiddleText
from maskwright.decoding.matcher import Matcher

BYTES = mw.Vocabulary.from_tokens([b"</s>", *(bytes([b]) for b in range(256))], eos=[0])
GRAMMARS: dict[str, tuple[str, bytes, int, list[bytes]]] = {
    "json": (
        r"""start: value
value: "[" [value ("," value)*] "]" | "{" [S ":" value ("," S ":" value)*] "}" | N | "t"
N: /-?(0|1+)(\.1+)?(e1+)?/
S: /"(a|\\["n])*"/
W: / +/
%ignore W
""",
        b'[]{},:1-.e"an\\ t',
        6,
        [b"[1,1]", b'{"a":[1,{"":t}],"a":1}', b'["a\\"",1.1e1]', b"[[],[[]]]", b"[ 1, -1.1 ]"],
    ),
    "code": (
        r"""start: use* item*
use: "i" ";"
item: "f" N block
block: "{" stmt* "}"
stmt: block | e ";" | "if" "(" e ")" stmt ["else" stmt]
e: e "+" N | e "++" | N | F | "(" e ")" | S
N: /[afils]+/
F: /1+(\.1*)?(e1+)?/
S: /'[a*\/]*'/
C: /\/\*([^*]|\*+[^*\/])*\*+\// | /\/\/[^\n]*/
W: /[ \n]+/
%ignore W
%ignore C
""",
        b"fails(){};+1.'*/ \n",
        5,
        [b"f a{if(a)a;else{a++ +a;}}", b"f a{/*a*/a+1.1;//a\n}", b"i;f ff{'a';}f a{}", b"i;\ni;\ni;f s{}"],
    ),
    "backs": (
        r"""start: s
s: A s D | B | "(" s ")" | D D A | X s
A: /a/
D: /b/
B: /ab{1,4}c/
X: /(ab){0,2}x/
W: / /
%ignore W
""",
        b"abcx() ",
        6,
        [b"aabcb", b"a(bba)b", b"xababxabc", b"aabbab", b"a a bbc b b", b"((ababx abc))"],
    ),
    "modes": (
        r"""start: s*
s: "<" N ">" s* "</" N ">" | T | "{" N ("=" V)? "}"
N: /[ab]+/
V: /[ab =]+;/
T: /[ab =.]+/
W: / +/
%ignore W
""",
        b"<>/{}ab=;. ",
        6,
        [b"<a>b.a</a>", b"{a=b a;}", b"<a><b></b>{b}. .</a>", b"a{ab =b;}b", b"<ab>{a} = </ab>"],
    ),
    "layout": (
        r"""start: (_NL | stmt)*
stmt: "a" e? _NL | "i" _NL _IN stmt+ _DE ["l" _NL _IN stmt+ _DE]
e: "(" e? ")"
_NL: /((#[a ()#]*)?\r?\n *)+/
W: / /
%ignore W
%declare _IN _DE
""",
        b"ail()\n #",
        13,
        [
            b"i\n a\n i\n   a(\n)\nl\n a\n",
            b"a\ni\n  a\n  a\na\n",
            b"i\n i\n  a\n  a\n a\n",
            b"a(\n (\n))\ni\n  a\n# aa\n\n  a",
            b"i\n i\n  i\n   a\n",
            b"i\n  a\nl\n   a\n   i\n    a\na\n",
        ],
    ),
    "tabs": (
        r"""start: stmt*
stmt: "a" _NL | "i" _NL _IN stmt+ _DE
_NL: /(\n[ \t]*)+/
%declare _IN _DE
""",
        b"ai\n \t",
        13,
        [b"i\n\ta\n\ti\n\t a\n", b"i\n a\na\n", b"i\n i\n \ta\n a\n", b"i\n\ti\n\t\ta\n\ta\n", b"i\n i\n\ti\n\t  a\n"],
    ),
    "fields": (
        r"""start: stmt*
stmt: "a" f? _NL | "i" _NL _IN stmt+ _DE
f: "'" T? (open "}" T?)* "'" | "(" f? "," f? ")"
open: "{" f?
T: /[a ]+/
_NL: /(\n *)+/
W: / /
%ignore W
%declare _IN _DE
""",
        b"ai',{}()\n ",
        12,
        [b"i\n a'a{'a'\n} a'\n a\n", b"a(\n,''\n)\na\n", b"a'{('a', \n'{\n}')}'\ni\n a\n", b"i\n i\n  a'{}'\n"],
    ),
}
LAYOUTS = {
    "layout": mw.Indenter("_NL", "_IN", "_DE", (("(", ")"),)),
    "tabs": mw.Indenter("_NL", "_IN", "_DE", tabs="consistent"),
    "fields": mw.Indenter("_NL", "_IN", "_DE", (("(", ")"), ("{", "}"))),
}
DEEPEST = 4
"""The columns up to which lines are explored."""


def built(name: str, lexing: Any) -> Any:
    grammar = mw.parse_grammar(GRAMMARS[name][0], lexing=lexing, layout=LAYOUTS.get(name))
    return mw.build_store(grammar, BYTES)


def explored(store: Any, alphabet: bytes, height: int, most: int) -> tuple[list[Matcher], list[list[int]]]:
    """Matchers of all texts that differ, up to a height of their stacks, and for each those a byte before."""
    first = store.matcher(max_rollback=1)
    number, matchers, before = {first.text.key(): 0}, [first], [list[int]()]
    for at, matcher in enumerate(matchers):  # grows
        for byte in alphabet:
            after = matcher.fork()
            if not after.try_bytes(bytes([byte])):
                continue
            key = after.text.key()
            if key not in number:
                _, _, column = tables_of(store).states.start(after.text)
                deepest = max(each.wide for each in (*after.text.columns(), column))
                if len(matchers) >= most or max(map(len, after.text.stacks())) > height or deepest > DEEPEST:
                    continue
                number[key] = len(matchers)
                matchers.append(after)
                before.append([])
            before[number[key]].append(at)
    return matchers, before


def random_suffix(rng: random.Random, samples: list[bytes], alphabet: bytes) -> bytes:
    sample = rng.choice(samples)
    found = bytearray(sample[rng.randrange(len(sample) + 1) :])
    if found and rng.random() < 0.5:
        found[rng.randrange(len(found))] = rng.choice(alphabet)
    return bytes(found)


@pytest.mark.parametrize("lexing", ["longest", "contextual"])
@pytest.mark.parametrize("name", GRAMMARS)
def test_what_can_come_to_the_suffix(name: str, lexing: Any) -> None:
    _, alphabet, height, samples = GRAMMARS[name]
    if (name, lexing) in {("modes", "longest"), ("backs", "contextual")}:
        pytest.skip("the other kind of lexing is what this grammar is for")
    store = built(name, lexing)
    assert tables_of(store).cells.tells
    matchers, before = explored(store, alphabet, height, 200)
    rng = random.Random(name)
    yes = no = 0
    for _ in range(10):
        suffix = random_suffix(rng, samples, alphabet)
        hole = tables_of(store).hole(suffix, False)
        good = []
        for at, matcher in enumerate(matchers):
            after = matcher.fork()
            if after.try_bytes(suffix) and after.is_accepting():
                good.append(at)
        can = dict.fromkeys(good, 0)
        """How many bytes lead to a state that can end, at most."""
        for at in good:  # grows, nearest first
            for each in before[at]:
                if each not in can:
                    can[each] = can[at] + 1
                    good.append(each)
        for at, matcher in enumerate(matchers):
            state = hole.tables.states.start(matcher.text)  # type: ignore[arg-type]
            leads = hole.leads(state)
            reach = hole.reach
            after = matcher.fork()
            ends = after.try_bytes(suffix) and after.is_accepting()
            given = reach.graph.given(state[1], state[2])
            assert ends == (hole.tables.least(reach, given, state) < COSTLY)
            assert leads or at not in can
            bound = hole.tables.least(hole.weighted, hole.weighted.graph.free(state[1]), state)
            assert bound <= can.get(at, COSTLY)
            yes, no = yes + leads, no + (not leads)
            if not leads:
                continue
            if at not in can or rng.random() < 0.05:
                # what was not explored so far is proved by a bridge; a shorter one must not be there
                there = Matcher.of(MiddleText(matcher.text.copy(), suffix, True))
                bridge = there.shortest_ending().data
                after = matcher.fork()
                assert after.try_bytes(bridge + suffix) and after.is_accepting()
                assert bound <= there.min_bytes_left() == len(bridge) <= can.get(at, COSTLY)
                assert name in LAYOUTS or len(bridge) == bound
    assert yes > 100 and no > 100
