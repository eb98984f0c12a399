"""Readers give the same answer at any depth of the caller's stack and under any recursion limit."""

from __future__ import annotations

import contextvars
import gc
import json
import re
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from shares import every

import maskwright as mw
from maskwright.analysis import nesting
from maskwright.analysis.deadline import look
from maskwright.analysis.errors import NestingError
from maskwright.analysis.fronts import export
from maskwright.analysis.fronts.gbnf import parse_ebnf, parse_gbnf
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.kept import Kept
from maskwright.analysis.nesting import MOST_NESTED, MOST_NESTED_JSON, check_nesting, on_own_stack, read_json
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.whole import regex_automaton
from maskwright.serving.reading import RequestReader


def around(before: str, inside: str, behind: str, head: str = "", tail: str = "") -> Callable[[int], str]:
    return lambda n: head + before * n + inside + behind * n + tail


def chain(rule: str, last: str, head: str) -> Callable[[int], str]:
    """Rules of which each names the next one."""
    return lambda n: head + "".join(rule.format(i, i + 1) for i in range(n)) + last.format(n)


def references(subschema: Callable[[Any], Any]) -> Callable[[int], Any]:
    """A schema's definitions, of which each refers to the next one."""

    def made(n: int) -> Any:
        found = {f"d{i}": subschema({"$ref": f"#/$defs/d{i + 1}"}) for i in range(n)}
        return {"$ref": "#/$defs/d0", "$defs": {**found, f"d{n}": {"type": "integer"}}}

    return made


def typed(n: int) -> Any:
    found: Any = int
    for _ in range(n):
        found = list[found]  # type: ignore[valid-type]
    return found


def tag(before: str, behind: str) -> Callable[[int], str]:
    return around(before, '{"type":"const_string","value":"a"}', behind, '{"type":"structural_tag","format":', "}")


def tool(n: int) -> Any:
    parameters: Any = {"type": "integer"}
    for _ in range(n):
        parameters = {"type": "object", "properties": {"a": parameters}}
    return [{"type": "function", "function": {"name": "f", "parameters": parameters}}]


def built(text: str) -> Any:
    return mw.build_store(mw.parse_grammar(text), mw.load_vocabulary([b"a", b"b", b"ab"], name="three"))


def ecma(pattern: str) -> Any:
    return regex_automaton(pattern, dialect="ecma")


def of_request(kind: Any) -> Callable[[str], Any]:
    reader = RequestReader()
    return lambda text: reader.read(reader.request(kind, text))


OBJECT = '{"type":"object","properties":{"a":'
LLG = "%llguidance {}\nstart: "
SMALL, LARGE = (99, 1_500), (99, 1_500, 100_000)
READERS: dict[str, tuple[Callable[[Any], Any], Callable[[int], Any], tuple[int, ...]]] = {
    "Lark: groups": (mw.parse_grammar, around("(", '"a"', ")", "start: "), SMALL),
    "Lark: groups beside each other": (mw.parse_grammar, around('("a") ', '"b"', "", "start: "), (1_500,)),
    "Lark: options": (mw.parse_grammar, around('["b" ', '"a"', "]", "start: "), SMALL),
    "Lark: alternatives": (mw.parse_grammar, around('("b" | "c" ', '"a"', ")+", "start: "), SMALL),
    "Lark: groups of a terminal": (mw.parse_grammar, around('("b" ', '"a"', ")?", "start: A\nA: "), SMALL),
    "Lark: terminals": (mw.parse_grammar, chain('A{0}: "b" A{1}?\n', 'A{0}: "a"', "start: A0\n"), (30, 110)),
    "Lark: rules": (mw.parse_grammar, chain('a{0}: "b" a{1}\n', 'a{0}: "a"', "start: a0\n"), (300,)),
    "Lark: template": (mw.parse_grammar, around('("b" ', "x", ")?", "t{x}: ", '\nstart: t{"a"}'), (49, 60, 1_500)),
    "Lark: arguments": (mw.parse_grammar, around("t{", '"a"', "}", 't{x}: "b" x\nstart: '), (49, 1_500)),
    "Lark: pattern": (built, around("(b|c", "a", ")", "start: /", "/"), LARGE),
    "Lark: request": (of_request("grammar"), around('("b" | ', '"a"', ")", "start: "), SMALL),
    "compile: groups": (built, around('("b" | "c" ', '"a"', ")+", "start: "), (99,)),
    "compile: terminal": (built, around('("b" | "c" ', '"a"', ")?", 'start: A\nA: "b" '), (99,)),
    "lint": (lambda text: mw.lint_grammar(mw.parse_grammar(text)), around('("b" ', '"a"', ")?", "start: "), (49,)),
    "export": (lambda text: export.to_gbnf(mw.parse_grammar(text)), around("(b|", "a", "d)?", "start: /", "b/"), SMALL),
    "pattern: groups": (mw.load_regex, around("(", "a", ")"), LARGE),
    "pattern: alternatives": (mw.load_regex, around("(b|c", "a", ")?"), LARGE),
    "pattern: loops": (mw.load_regex, around("(?:b", "a", ")+"), LARGE),
    "pattern: look-aheads": (mw.load_regex, around("(?=b|c", "a", ")", "", ".*"), LARGE),
    "pattern: words": (mw.load_regex, lambda n: "|".join("a" * i + "b" for i in range(n)), (200,)),
    "ECMA pattern": (ecma, around("(b|c", "a", ")?"), LARGE),
    "pattern of a schema": (lambda text: mw.load_schema({"pattern": text}), around("(b|", "a", ")?"), LARGE),
    "request: choice": (of_request("choice"), around("[", '"a"', "]"), LARGE),
    "JSON text": (mw.load_schema, around('{"a":', "1", "}"), (249, 250, 100_000)),
    "schema: properties": (mw.load_schema, around(OBJECT, "{}", "}}"), (124, 1_500, 100_000)),
    "schema: allOf": (mw.load_schema, around('{"allOf":[', '{"minLength":1}', "]}"), LARGE),
    "schema: oneOf": (mw.load_schema, around('{"oneOf":[{"required":["q"]},', "{}", "]}"), SMALL),
    "schema: not": (mw.load_schema, around('{"not":', '{"minLength":1}', "}"), LARGE),
    "schema: constant": (mw.load_schema, around("[", "1", "]", '{"const":', "}"), (249, 250, 1_500)),
    "schema: references": (mw.load_schema, references(lambda inner: {"allOf": [{"minimum": 0}, inner]}), (49, 1_500)),
    "schema: members": (mw.load_schema, references(lambda inner: {"properties": {"a": inner}}), (1_500,)),
    "type": (mw.load_schema, typed, (50,)),
    "GBNF": (parse_gbnf, around('("b" | "c" ', '"a"', ")?", "root ::= "), SMALL),
    "GBNF: rules": (parse_gbnf, chain('a{0} ::= "b" a{1}\n', 'a{0} ::= "a"', "root ::= a0\n"), (300,)),
    "GBNF: repetitions": (parse_gbnf, around("", '"a"', "*+", "root ::= "), (99, 250)),
    "EBNF": (parse_ebnf, around('("b" | "c" root "d" ', '"a"', ")?", "root ::= "), SMALL),
    "llguidance": (mw.read_llguidance, around('("b" | "c" ', '"a"', ")?", LLG), SMALL),
    "llguidance: brackets": (mw.read_llguidance, around("[", '"a"', "]", LLG), SMALL),
    "llguidance: terminals": (mw.read_llguidance, chain('A{0}: "b" A{1}\n', 'A{0}: "a"', f"{LLG}A0\n"), SMALL),
    "llguidance: pattern": (mw.read_llguidance, around("(b|c", "a", ")", f"{LLG}/", "/"), SMALL),
    "llguidance: %json": (mw.read_llguidance, around('{"allOf":[', "{}", "]}", f"{LLG}%json "), SMALL),
    "constraint": (mw.read_constraint, around('("b" ', '"a"', ")?", "root ::= "), SMALL),
    "tag: sequence": (mw.read_structural_tag, tag('{"type":"sequence","elements":[', "]}"), LARGE),
    "tag: tag": (mw.read_structural_tag, tag('{"type":"tag","begin":"<","end":">","content":', "}"), (99, 1_500)),
    "tag: XML": (
        lambda schema: mw.read_structural_tag(
            {"format": {"type": "json_schema", "style": "minimax_m3_xml", "json_schema": schema}}
        ),
        lambda n: json.loads(around(OBJECT, "{}", '},"required":["a"],"additionalProperties":false}')(n)),
        (98, 110),
    ),
    "tools": (lambda tools: mw.read_tools(tools, begin="<t>", end="</t>"), tool, (99, 1_500)),
}  # fmt: skip
"""Each reader with texts by their depth, and the depths: all are read, or all are refused."""


def answer(read: Callable[[Any], Any], text: Any, kept: Iterable[Kept[Any]] = ()) -> Any:
    """What a reader says, so that it can be compared. kept : forgets what was read before."""
    for one in kept:
        one.forget()
    re.purge()
    try:
        found = read(text)
    except mw.MaskwrightError as error:
        return type(error).__name__, str(error)
    if isinstance(found, Grammar):
        return found
    dfa = found if isinstance(found, Dfa) else getattr(found, "dfa", None)
    if dfa is not None:
        return dfa.next_state.tobytes(), dfa.is_accepting.tobytes()
    if isinstance(found, mw.JsonSchema):
        return repr(found.texts.graph)
    table = getattr(found, "table", None)
    return repr(found) if table is None else bytes(table)


def depth() -> int:
    frame, n = sys._getframe(), 0
    while frame.f_back is not None:
        frame, n = frame.f_back, n + 1
    return n


def deeper(frames: int, work: Callable[[], Any]) -> Any:
    """What `work` returns when it is called so many frames deeper."""
    return work() if frames <= 0 else deeper(frames - 1, work)


@contextmanager
def recursion_limit(limit: int | None) -> Iterator[None]:
    before = sys.getrecursionlimit()
    if limit is not None:
        sys.setrecursionlimit(limit)
    try:
        yield
        assert sys.getrecursionlimit() == (before if limit is None else limit)
    finally:
        sys.setrecursionlimit(before)


FEW = 60
"""Frames that are left to a reader where its caller is nearly at the limit."""
SITUATIONS: list[tuple[int | None, float]] = [(None, 0.5), (None, 1), (3_000, 0), (10_000, 0.9), (300, 0)]


@pytest.mark.parametrize("name", every(3, READERS))
def test_the_answer_depends_on_nothing_but_the_text(name: str) -> None:
    read, make, sizes = READERS[name]
    for size in sizes:
        text = make(size)
        expected = answer(read, text)
        kept = [one for one in gc.get_objects() if type(one) is Kept]  # isinstance would ask lazy modules
        for limit, part in SITUATIONS:
            with recursion_limit(limit):
                left = sys.getrecursionlimit() - depth() - FEW
                assert deeper(int(part * left), partial(answer, read, text, kept)) == expected, (size, limit, part)


REFUSED = {
    "Lark: groups": "<text>:1:108: brackets stand more than 100 deep inside one another; give the inner ones rules",
    "Lark: terminals": "terminal A0, with those in it, has groups nested more than 100 deep; write it flatter",
    "Lark: template": "template 't' has groups nested more than 50 deep; give the inner ones rules of their own",
    "Lark: pattern": "its groups are nested more than 100 deep .*; write it flatter",
    "pattern: groups": "its groups are nested more than 100 deep; write it flatter",
    "request: choice": "arrays and objects stand more than 250 deep",
    "JSON text": "the schema: arrays and objects stand more than 250 deep inside one another; write it flatter",
    "schema: not": "more than 100 subschemas stand inside one another without a member or an item between",
    "schema: constant": "arrays and objects stand more than 250 deep",
    "llguidance: terminals": "more than 100 terminals stand inside one another, A100 in the last; write them flatter",
    "tag: XML": "values stand more than 100 deep inside one another; write it flatter",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_nested_too_deeply_is_called_so(name: str) -> None:
    read, make, _ = READERS[name]
    with pytest.raises(mw.MaskwrightError, match=REFUSED[name]):
        read(make({"tag: XML": 110, "Lark: terminals": 110, "Lark: template": 60, "schema: not": 110}.get(name, 1_500)))


@pytest.mark.parametrize("name", [name for name, (_, _, sizes) in READERS.items() if sizes[0] < MOST_NESTED])
def test_what_is_nested_less_is_read(name: str) -> None:
    read, make, sizes = READERS[name]
    if name != "request: choice":  # no list of texts
        read(make(sizes[0]))


def test_groups_beside_each_other_are_not_nested() -> None:
    n = 1_500
    grammar = mw.parse_grammar("start: " + '("a") ' * n)
    assert grammar.rules == mw.parse_grammar("start: " + '"a" ' * n).rules
    assert mw.parse_grammar("start: " + '("a" "b"~2) ' * n).rules[0].rhs[-3:] == (1, 0, 0)


def test_a_pattern_of_nested_loops_is_read_at_once() -> None:
    found = regex_automaton("(b" * 100 + "a" + ")+" * 100)
    assert found.matches(b"b" * 100 + b"aba") and not found.matches(b"b" * 99 + b"a")


def test_json_is_counted() -> None:
    deepest = "[" * MOST_NESTED_JSON + "]" * MOST_NESTED_JSON
    check_nesting(read_json(deepest))
    for text in (f"[{deepest}]", f'{{"a":{deepest}}}', "[" * 100_000):
        with pytest.raises(NestingError, match="arrays and objects stand more than 250 deep inside one another"):
            read_json(text)
    shared: Any = []
    for _ in range(MOST_NESTED_JSON - 1):
        shared = [shared, shared]
    check_nesting(shared)
    shared.append(shared)
    with pytest.raises(NestingError):
        check_nesting(shared)


def endless(n: int) -> int:
    return endless(n + 1)


def test_what_no_stack_suffices_for_is_refused() -> None:
    with pytest.raises(NestingError, match="it is nested too deeply to be read or compiled; write it flatter"):
        on_own_stack(endless)(0)


def in_thread(work: Callable[[], Any]) -> Any:
    """What `work` returns on a stack of its own."""
    return deeper(200, on_own_stack(work))


def test_a_stack_of_its_own_has_the_callers_context_and_errors() -> None:
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(1)
    assert in_thread(variable.get) == 1
    assert in_thread(threading.get_ident) != threading.get_ident()
    assert on_own_stack(threading.get_ident)() == threading.get_ident()
    with pytest.warns(UserWarning, match="seen"):
        in_thread(lambda: warnings.warn("seen", stacklevel=1))
    with pytest.raises(KeyError) as caught:
        in_thread(lambda: {}["a"])
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names.count("<lambda>") == 2  # of `_in_thread`, and the one that failed
    assert "deeper" in names


def test_two_threads_under_a_lowered_limit_give_it_back() -> None:
    with recursion_limit(250):
        barrier = threading.Barrier(2)
        found: list[int] = []
        work = on_own_stack(lambda: (deeper(300, barrier.wait), found.append(sys.getrecursionlimit())))
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [nesting._LEAST_LIMIT] * 2


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals come to the main thread")
def test_an_interrupt_ends_the_work_soon() -> None:
    ended = threading.Event()

    def work() -> None:
        try:
            while True:
                look()
                time.sleep(0.001)
        finally:
            ended.set()

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            in_thread(work)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ended.wait(60)
