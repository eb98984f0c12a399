"""The grammar c: cases by hand, held against gcc as well where it is installed, texts of the data, and texts drawn under the masks."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess

import pytest
from library_cases import byte_parser, library_grammar, records, sampled
from shares import share
from written_cases import written

from maskwright.analysis.lr.conflicts import conflicts

GCC = shutil.which("gcc")

NO_SYMBOLS = {"c-dev-0273", "c-dev-0300", "c-dev-0301"}
"""What the reference refuses at a name that is no typedef name; without a symbol table it can be one, and the next token is refused."""

C23 = {"c-dev-0516"}
"""pycparser reads a number of C23."""

SYNTAX = re.compile(r"error: (?:expected |stray |missing terminating|unterminated|empty character|invalid suffix)")
"""The errors of gcc that are about syntax, as it words them."""


EXPRESSION = "( ( int ) 1 + ( 2 ) * sizeof ( int ) , - ( ( long * ) 3 ) [ 4 ] ? 5 : ~ ( ( struct s ) { 6 } ) )"


def errors(text: str) -> list[str]:
    """The errors that gcc reports in a text that is preprocessed."""
    command = [str(GCC), "-fsyntax-only", "-w", "-std=gnu17", "-x", "cpp-output", "-"]
    done = subprocess.run(
        command, input=text.encode(), capture_output=True, check=False, env={**os.environ, "LC_ALL": "C"}
    )
    lines = [line for line in done.stderr.decode(errors="replace").splitlines() if "error: " in line]
    return lines or (["refused"] if done.returncode else [])


def test_conflicts() -> None:
    """Only where a name may be a typedef name or something else."""
    found = conflicts(library_grammar("c"))
    assert len(found) == 10
    readings = [" ".join(item for action in conflict.actions for item in action.items) for conflict in found]
    assert all(re.search(r"typedef_(?:name|member) : (?:plain |qualifiers )?NAME \.", reading) for reading in readings)


@pytest.mark.slow
@pytest.mark.skipif(GCC is None, reason="gcc is not installed")
def test_gcc_agrees() -> None:
    cases = written("c")
    for case in cases["accept"]:
        assert errors(case["text"]) == [], case["name"]
    for case in cases["refuse"]:
        assert (errors(case["text"]) == []) == case.get("gcc", False), case["name"]


def test_names_need_no_declaration() -> None:
    """Each occurrence may be a typedef name; a parser with a symbol table refuses what has no typedef."""
    parser = byte_parser("c")
    for statement in (b"a b;", b"a *b;", b"a (b);", b"a = (b)c;", b"a (b(c, d e));", b"a ** b, c;", b"for (a b; ; ) ;"):
        assert parser.accepts(b"void f(void) { " + statement + b" }"), statement
    for statement in (b"a b c;", b"a b + c;", b"a(b c) + d;", b"a = b c;", b"(a b);", b"f((a)b c);", b"if (a b) ;"):
        assert not parser.accepts(b"void f(void) { " + statement + b" }"), statement


def test_many_readings_stay_few_stacks() -> None:
    parser = byte_parser("c")
    for text in (b"(a)" * 400 + b"b", b"(a)(" * 400 + b"b" + b")" * 400, b"(a)*(" * 400 + b"b" + b")" * 400):
        assert parser.accepts(b"int f(int a) { return " + text + b"; }")
    for text in (b"T " + b"*(" * 400 + b"a" + b")" * 400, b"a(" * 400 + b"b" + b")" * 400, b"a *b, " * 400 + b"*c"):
        assert parser.accepts(b"void f(void) { " + text + b"; }"), text[:20]


def test_damaged_texts() -> None:
    for record in records("negative/c", 1000):
        at = byte_parser("c").refusal(record["text"].encode())
        lower, upper = record["first_bad_lower"], record["first_bad_upper"]
        assert at is not None, record["id"]
        lower -= record["id"] in C23
        assert lower <= at <= upper + (record["id"] in NO_SYMBOLS), record["id"]


def test_texts_before_the_damage() -> None:
    texts = {record["valid_text"] for record in records("negative/c", 1000)}
    assert all(byte_parser("c").refusal(text.encode()) is None for text in texts)


def test_drawn_texts() -> None:
    """None of their prefixes is a dead end."""
    assert len(set(sampled("c", 60))) > 40


@pytest.mark.skipif(GCC is None, reason="gcc is not installed")
@pytest.mark.parametrize("n", share([40, 150], 1))
def test_mutants_of_expressions(n: int) -> None:
    """Of an expression without a name, which no symbol table can change: its tokens shuffled, dropped and doubled."""
    parser = byte_parser("c")
    chosen = random.Random(3)
    tokens = EXPRESSION.split()
    verdicts = {True: 0, False: 0}
    for _ in range(n):
        mutant = list(tokens)
        for _ in range(chosen.randint(1, 2)):
            at, change = chosen.randrange(len(mutant)), chosen.randrange(3)
            mutant[at : at + 2] = (
                mutant[at : at + 2][::-1],
                mutant[at + 1 : at + 2],
                [mutant[at], *mutant[at : at + 2]],
            )[change]
        text = f"struct s {{ int b; }}; int main(void) {{ return {' '.join(mutant)}; }}"
        is_legal = not any(SYNTAX.search(error) for error in errors(text))
        verdicts[is_legal] += 1
        assert parser.accepts(text.encode()) == is_legal, (text, errors(text))
    assert min(verdicts.values()) > n // 10
