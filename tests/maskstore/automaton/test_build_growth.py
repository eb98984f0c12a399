"""Building a store takes time in proportion to a simple grammar's size; what is too large is said; Ctrl-C is obeyed on the way."""

from __future__ import annotations

import os
import random
import string
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from growth import growth
from own_process import seconds_to_end
from paths import HELPERS
from shares import share

from maskwright.analysis.errors import LimitError
from maskwright.analysis.lexing import lexemes, terminals
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.maskstore.automaton import stack_automaton
from maskwright.maskstore.vocabulary.vocabulary import LONGEST_TOKEN, Vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

TOKENS = [*(bytes([byte]) for byte in range(32, 127)), b"\n", b"k1", b"w12", b"3;", b"t1x", b"ab", b"</s>"]
VOCABULARY = Vocabulary("small", (*TOKENS[:-1], b""), {len(TOKENS) - 1: "</s>"}, (len(TOKENS) - 1,))


def some(names: str, n: int) -> str:
    return "start: (" + " | ".join(f"{names}{i}" for i in range(n)) + ")*\n"


def sets_of_letters(n: int) -> str:
    rng = random.Random(1)
    return some("T", n) + "".join(f"T{i}: /[{''.join(rng.sample(string.ascii_lowercase, 13))}]+/\n" for i in range(n))


EXPRESSIONS = "".join(f'e{i}: e{i} "o{i}" e{i + 1} | e{i + 1}\n' for i in range(12)) + 'e12: "x" | "(" e0 ")"\n'

GRAMMARS: dict[str, tuple[Callable[[int], str], int]] = {
    "rules": (lambda n: some("r", n) + "".join(f'r{i}: "k{i};"\n' for i in range(n)), 1_000),
    "literals": (lambda n: "start: " + " | ".join(f'"w{i}"' for i in range(n)) + "\n", 2_000),
    "terminals": (lambda n: some("T", n) + "".join(f"T{i}: /t{i}[xy]/\n" for i in range(n)), 500),
    "overlapping terminals": (lambda n: some("T", n) + "".join(f"T{i}: /[a-z]+-{i}/\n" for i in range(n)), 300),
    "unit rules": (lambda n: "start: r0\n" + "".join(f"r{i}: r{i + 1}\n" for i in range(n)) + f'r{n}: "a"\n', 1_000),
    "nested rules": (
        lambda n: "start: r0\n" + "".join(f'r{i}: "a" r{i + 1}\n' for i in range(n)) + f'r{n}: "b"\n',
        500,
    ),
    "a long repetition": (lambda n: f"start: T\nT: /[^<>]{{0,{n}}}>/\n", 1_500),
    "a repetition that may go on behind its end": (
        lambda n: f'start: T ","\nT: /([a-z]+-){{{n // 2},{n}}}end/\n',
        3_000,
    ),
    "statements that share expressions": (
        lambda n: some("r", n) + "".join(f'r{i}: "k{i}_" e0 "m{i}_" e0 ";"\n' for i in range(n)) + EXPRESSIONS,
        50,
    ),
}
"""A text for n, and n for an ordinary test."""
MOST = {"unit rules": 4.6, "nested rules": 4.6, "statements that share expressions": 4.6}
"""Times as long for twice the size, if not 2.6: these have tables of states times rules, which cannot be made smaller, or what ends in a
shared rule is followed for each place that it may return to."""
LARGEST = {
    "rules": 1_000,
    "literals": 1_000,
    "unit rules": 1_000,
    "nested rules": 1_000,
    "a long repetition": 1_500,
    "a repetition that may go on behind its end": 3_000,
    "statements that share expressions": 50,
}
"""The largest n, if there is one: four times as much must be within the limits, and near the processor's caches."""


def build(text: str) -> tuple[Store, float]:
    """A store, and what it takes in CPU seconds if nothing is kept of the terminals of those before."""
    grammar = parse_grammar(text)
    terminals.compile_terminals.cache_clear()
    terminals._compile.forget()
    lexemes._greatest_width.forget()
    start = time.process_time()
    return compile_store(grammar, VOCABULARY), time.process_time() - start


@pytest.mark.parametrize("name", share(GRAMMARS, 2))
def test_a_large_simple_grammar_is_built_soon(name: str) -> None:
    write, n = GRAMMARS[name]
    store, seconds = build(write(n))
    assert seconds < 20
    words = np.zeros(store.n_words, np.uint32)
    store.matcher().fill(words)
    assert words.any()


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAMMARS)
def test_building_is_linear(name: str) -> None:
    write, n = GRAMMARS[name]
    build(write(10))
    n = min(n // 2 if name in MOST else n, LARGEST.get(name, n))
    while n < LARGEST.get(name, n + 1) and build(write(n))[1] < (0.15 if name in MOST else 0.35):
        n *= 2
    ratio = growth(lambda n: build(write(n))[1], n)
    assert ratio < MOST.get(name, 2.6), f"{n}: {ratio:.2f}"


MANY_WAYS = "start: r0\n" + "".join(f'r{i}: (r{i} "o{i}")? r{i + 1}\n' for i in range(60)) + 'r60: "a" | "(" r0 ")"\n'
"""A closing bracket ends any of sixty rules."""

LONG_TOKENS: dict[str, tuple[str, Callable[[int], bytes], int]] = {
    "closing": ("json", lambda n: b"]" * n, 3_000),
    "closing, mixed": ("json", lambda n: b"]}" * (n // 2), 3_000),
    "opening": ("json", lambda n: b"[" * n, 16_000),
    "opening and closing": ("json", lambda n: b"[" * (n // 2) + b"]" * (n // 2), 3_000),
    "closing more than is open": ("json", lambda n: b"[" * (n // 3) + b"]" * (n // 2), 3_000),
    "members": ("json", lambda n: b',"a":1' * (n // 6), 16_000),
    "blanks": ("json", lambda n: b" " * n, 16_000),
    "letters": ("json", lambda n: b"a" * n, 16_000),
    "right recursion": ('start: "(" start ")" start | "a" start | "a"', lambda n: b")" * n, 1_000),
    "ends of blocks": ("python", lambda n: b")" * n, 200),
}
"""A grammar, a token of n bytes, and n for an ordinary test; those under python are slow."""


def build_token(grammar: str, token: bytes) -> float:
    """CPU seconds for a vocabulary with a long token."""
    loaded = parse_grammar(grammar) if "start:" in grammar else load_grammar(grammar)
    vocabulary = Vocabulary("long", (*TOKENS[:-1], b"", token), {len(TOKENS) - 1: "</s>"}, (len(TOKENS) - 1,))
    start = time.process_time()
    compile_store(loaded, vocabulary)
    return time.process_time() - start


@pytest.mark.parametrize("name", share([name for name in LONG_TOKENS if LONG_TOKENS[name][0] != "python"], 1))
def test_a_vocabulary_with_a_long_token_is_built_soon(name: str) -> None:
    grammar, write, n = LONG_TOKENS[name]
    assert build_token(grammar, write(n)) < 40, "what is compiled first counts too"


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG_TOKENS)
def test_building_is_linear_in_the_longest_token(name: str) -> None:
    grammar, write, n = LONG_TOKENS[name]
    n = min(n, LONGEST_TOKEN // 4)
    short = min(build_token(grammar, b"ab") for _ in range(3))
    # what the token costs must outweigh what varies in all else
    while 8 * n <= LONGEST_TOKEN and build_token(grammar, write(n)) - short < max(0.35, short / 2):
        n *= 2
    ratio = growth(lambda n: build_token(grammar, write(n)) - short + 0.1, n)
    assert ratio < 2.6, f"{n}: {ratio:.2f}"


@pytest.mark.parametrize(
    ("text", "message"),
    share([
        pytest.param(
            sets_of_letters(200),
            "the terminals together have more than 60000 lexer states; those alive side by side in one state are T",
            id="sets of terminals",
        ),
        pytest.param(GRAMMARS["literals"][0](60_001), "has 60001 string literals, but a lexer has at most 60000 states", id="literals"),
        pytest.param(GRAMMARS["unit rules"][0](6_000), r"LR tables have 6\d+ states .*, past the limit of \d+; merge", id="unit rules"),
    ], 1),
)  # fmt: skip
def test_what_is_too_large_is_said_soon(text: str, message: str) -> None:
    grammar = parse_grammar(text)
    start = time.process_time()
    with pytest.raises(LimitError, match=message):
        compile_store(grammar, VOCABULARY)
    assert time.process_time() - start < 20


def test_more_literals_than_a_lexer_has_states_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_automaton, "STATE_LIMIT", 1_000)
    with pytest.raises(
        LimitError, match="has 1001 string literals, but a lexer has at most 1000 states; write literals"
    ):
        compile_store(parse_grammar(GRAMMARS["literals"][0](1_001)), VOCABULARY)


INTERRUPTED = {
    "reading": (lambda: GRAMMARS["literals"][0](60_000), 1.0),
    "blanks": (lambda: "start: a" + " " * 5_000_000 + "\n" * 1_000_000 + 'a: "x"\n' + "// \n" * 500_000, 0.5),
    "parser": (lambda: GRAMMARS["rules"][0](12_000), 8.0),
    "lexer": (lambda: GRAMMARS["terminals"][0](6_000), 6.0),
    "parses": (
        lambda: (
            "// maskwright: lexing = longest\nstart: r0\n"
            + "".join(f'r{i}: (r{i} "o{i}")? r{i + 1}\n' for i in range(400))
            + 'r400: "a" | "(" r0 ")"\n'
        ),
        12.0,
    ),
    "long token": (lambda: MANY_WAYS, 5.0),
}
"""A grammar that takes long, and after how many seconds Ctrl-C is pressed: in the stage that the name says, more or less."""

PROGRAM = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs this in the background may have turned it off
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.stores.build import compile_store
sys.path[:0] = {folders!r}
from test_build_growth import INTERRUPTED, VOCABULARY, interrupted_vocabulary
compile_store(parse_grammar('start: "a"'), VOCABULARY)
text = INTERRUPTED[{name!r}][0]()
print("ready", flush=True)
compile_store(parse_grammar(text), interrupted_vocabulary({name!r}))
print("done", flush=True)
"""


def interrupted_vocabulary(name: str) -> Vocabulary:
    if name != "long token":
        return VOCABULARY
    return Vocabulary("long", (*TOKENS[:-1], b"", b")" * LONGEST_TOKEN), {len(TOKENS) - 1: "</s>"}, (len(TOKENS) - 1,))


def interrupted(name: str, seconds: float) -> float | None:
    """Seconds until a process has ended after Ctrl-C, as `seconds_to_end`; None if it had ended before."""
    program = PROGRAM.format(folders=[str(Path(__file__).parent), *HELPERS], name=name)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        try:
            process.wait(seconds)
            return None
        except subprocess.TimeoutExpired:
            taken = seconds_to_end(process)
        errors = process.stderr.read()
        assert "KeyboardInterrupt" in errors, errors[-2000:]
        return taken


MOST_SECONDS = 2.0
"""A second for Ctrl-C, and what it takes to end a process of some hundred megabytes."""


@pytest.mark.parametrize("name", share(["long token", "reading", "lexer"], 1))
def test_ctrl_c_is_obeyed(name: str) -> None:
    taken = interrupted(name, 1.0)
    assert taken is not None and taken < MOST_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("name", INTERRUPTED)
def test_ctrl_c_is_obeyed_at_every_stage(name: str) -> None:
    taken = [interrupted(name, part * INTERRUPTED[name][1]) for part in (0.15, 0.4, 0.7, 1.0)]
    in_time = [seconds for seconds in taken if seconds is not None]
    assert in_time and max(in_time) < MOST_SECONDS, taken
