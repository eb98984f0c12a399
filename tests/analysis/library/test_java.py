"""The grammar java: cases by hand, held against javac as well where JDK 17 is installed, files of the data, texts drawn under the masks."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess

import pytest
from library_cases import byte_parser, library_grammar, records, sampled
from paths import ROOT
from written_cases import written

from maskwright.analysis.lr.conflicts import conflicts

JAVA_SYNTAX = ROOT / "reports" / "bench" / "JavaSyntax.java"


@functools.cache
def is_installed() -> bool:
    """Whether there is the javac that the grammar follows."""
    if shutil.which("javac") is None:
        return False
    done = subprocess.run(["javac", "-version"], capture_output=True, check=False)
    return re.match(rb"javac 17\b", done.stdout + done.stderr) is not None


def javac(texts: list[str]) -> list[str]:
    """What javac's parser says of each text: "ok", or the place and code of its first error."""
    if not is_installed():
        pytest.skip("javac of JDK 17 is not installed")
    data = b"".join(b"%d\n%s" % (len(encoded), encoded) for encoded in (text.encode() for text in texts))
    done = subprocess.run(["java", str(JAVA_SYNTAX)], input=data, capture_output=True, check=True)
    return done.stdout.decode().splitlines()


def test_conflicts() -> None:
    """Only where a name may go on with type arguments, or with the second type of a cast."""
    found = conflicts(library_grammar("java"))
    assert sorted(conflict.terminal_name for conflict in found) == ["AMPERSAND"] * 2 + ["LESSTHAN"] * 3
    assert all("variable : name ." in conflict.actions[1].items for conflict in found)


@pytest.mark.slow
def test_javac_agrees() -> None:
    cases = written("java")
    verdicts = javac([case["text"] for kind in ("accept", "refuse") for case in cases[kind]])
    for case, verdict in zip(cases["accept"] + cases["refuse"], verdicts, strict=True):
        assert (verdict == "ok") == ("at" not in case), (case["name"], verdict)


def test_many_readings_stay_few_stacks() -> None:
    parser = byte_parser("java")
    for before, after in ((b"a < ", b""), (b"(a < ", b")"), (b"f(a < b, ", b")"), (b"(a & ", b")")):
        text = before * 300 + b"b" + after * 300
        assert parser.accepts(b"class A { Object a = " + text + b"; }"), before


def test_files_of_the_data() -> None:
    for record in records("source/java", 60):
        assert byte_parser("java").refusal(record["text"].encode()) is None, record["id"]


@pytest.mark.slow
def test_drawn_texts() -> None:
    """None is a dead end, and javac accepts them, but for what no context-free grammar can know."""
    texts = list(sampled("java", 60))
    for text, verdict in zip(texts, javac(texts), strict=True):
        wrong = verdict != "ok" and "sealed" not in text  # javac wants certain modifiers behind it
        assert not wrong or re.search(r"invalid\.meth\.decl|repeated\.modifier|invalid\.permits|fp\.number", verdict), (
            text,
            verdict,
        )
