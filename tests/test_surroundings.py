"""Masks and endings do not depend on where a process runs: locale, folders, home, Python's stack, threads."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = r"""
import hashlib, json, os, sys, tempfile, threading
where = sys.argv[1]
if where == "a folder that is gone":
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)
import maskwright as mw
import numpy as np

SINGLES = [bytes([byte]) for byte in range(256)]
BYTES = mw.Vocabulary.from_tokens([*SINGLES, b"ab", b"true", b'{"', b'":', b""], eos=[260])
ITEMS = {"type": "integer"}
for _ in range(60):
    ITEMS = {"type": "array", "items": ITEMS}
PERSON = {"type": "object", "properties": {"ä": {"type": "number"}, "b": {"enum": ["ü", 1, None]}}, "required": ["ä"]}
NODE = {"$defs": {"n": {"properties": {"c": {"$ref": "#/$defs/n"}}, "additionalProperties": False}}, "$ref": "#/$defs/n"}
TAG = {"type": "tag", "begin": "<a>", "content": {"type": "json_schema", "json_schema": {"type": "object"}}, "end": "</a>"}
CASES = {
    "json": (lambda: mw.load_grammar("json"), [b'{"a', b'":[', b"1"]),
    "lark": (lambda: 'start: "é" x+\nx: /[a-zäöü]+/i | "ß"', ["é".encode(), b"x"]),
    "groups": (lambda: "start: " + "(" * 60 + '"a"' + ")" * 60, [b"a"]),
    "brackets": (lambda: 'start: "(" start ")" | "a"', [b"(" * 200, b"a"]),
    "schema": (lambda: mw.load_schema(PERSON), [b'{"', "ä".encode(), b'": 1']),
    "deep": (lambda: mw.load_schema(ITEMS), [b"[" * 20]),
    "recursive": (lambda: mw.load_schema(NODE), [b'{"c":' * 100]),
    "unique": (lambda: mw.load_schema({"type": "array", "uniqueItems": True}), [b"[1,", b"[true],"]),
    "regex": (lambda: mw.load_regex(r"(\w+é|[^a]{2,5})+x"), [b"ab"]),
    "deep regex": (lambda: mw.load_regex("(" * 80 + "a|b" + ")" * 80 + "+"), [b"a"]),
    "gbnf": (lambda: mw.read_constraint('root ::= "a" ("b" | [é-ü])+', "gbnf"), [b"ab"]),
    "llguidance": (lambda: mw.read_llguidance('start: A "x"\nA: /a+/'), [b"a"]),
    "tag": (lambda: mw.read_structural_tag({"type": "structural_tag", "format": TAG}), [b"<a>", b'{"a"']),
    "tools": (lambda: mw.read_tools([{"type": "function", "function": {"name": "f", "parameters": PERSON}}]), [b"a"]),
}

def digest(make, pieces):
    try:
        store = mw.build_store(make(), BYTES)
        matcher, words = store.matcher(), np.zeros(store.n_words, np.uint32)
        found = []
        for piece in pieces:
            matcher.fill(words)
            found.append(words.tobytes())
            matcher.advance_bytes(piece)
        found += [matcher.allowed_tokens(), matcher.forced_bytes(), matcher.explain(33), matcher.why(0)]
        for ask in (matcher.shortest_ending, matcher.short_ending):
            try:
                found.append(ask())
            except mw.LimitError as error:
                found.append(type(error))
        return hashlib.sha256(repr(found).encode()).hexdigest()
    except BaseException as error:
        return repr(error)[:300]

def work():
    found = {name: digest(*case) for name, case in CASES.items()}
    found["lint"] = str(mw.lint_grammar('start: a | "x"\na: "y" | b\nb: "y"'))
    cached = mw.cached_store("json", BYTES).matcher()
    return found | {"cached": cached.allowed_tokens(), "vocabulary": mw.load_vocabulary("python-tiny").size}

def deeper(n, limit):
    if n:
        return deeper(n - 1, limit)
    sys.setrecursionlimit(limit)
    return work()

def in_threads(n, work):
    found = []
    threads = [threading.Thread(target=lambda: found.append(work())) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == n and all(one == found[0] for one in found)
    return found[0]

if where == "a low limit of recursion":
    found = deeper(0, 150)
elif where == "a deep stack":
    threading.stack_size(512 << 20)
    sys.setrecursionlimit(10_400)
    found = in_threads(1, lambda: deeper(10_000, 10_200))
elif where == "two threads":
    found = in_threads(2, work)
else:
    found = work()
print(json.dumps(found))
"""

PLACES: dict[str, dict[str, str]] = {
    "a folder that is gone": {},
    "no locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "no home": dict.fromkeys(("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "TMPDIR"), "/proc/nothing"),
    "a low limit of recursion": {},
    "a deep stack": {},
    "two threads": {},
}


@functools.cache
def found_in(where: str) -> dict[str, object]:
    run = [sys.executable, "-c", f"exec({SCRIPT!a})", where]  # ASCII alone, whatever the locale is
    environment = os.environ | PLACES.get(where, {})
    done = subprocess.run(run, capture_output=True, env=environment, timeout=120, cwd=Path(__file__).parent)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("where", PLACES)
def test_what_is_found_is_the_same_everywhere(where: str) -> None:
    if where == "a folder that is gone" and sys.version_info[:3] == (3, 13, 0):
        pytest.skip("CPython 3.13.0 imports nothing in a folder that is gone: SystemError")
    expected = found_in("nowhere special")
    assert {name for name, one in expected.items() if "Error" in str(one)} == set()
    assert found_in(where) == expected
