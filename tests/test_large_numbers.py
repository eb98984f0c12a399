"""Numbers that ask for more than there is: each works, or is refused in words, within 10 CPU seconds and 500 MB.

Each case runs in a fork of its own that may take 4 GB and 60 s, never in this process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

MOST_CPU_SECONDS, MOST_MEGABYTES = 10, 500
MANY = 1_000_000_000

FORKING = r"""
import json, os, resource, sys, time
import maskwright as mw
BYTES = mw.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])

def use(constraint, prefix=b""):
    "What a server asks of a constraint. What is refused in words is no fault."
    matcher = mw.build_store(constraint, BYTES).matcher()
    matcher.advance_bytes(prefix)
    for ask in (matcher.allowed_tokens, matcher.shortest_ending, matcher.forced_bytes, lambda: matcher.explain(0)):
        try:
            ask()
        except mw.MaskwrightError:
            pass

def schema(text, prefix=b"", **options):
    use(mw.load_schema(text, **options), prefix)
    mw.lint_schema(text)

def tag(form):
    use(mw.read_structural_tag(json.dumps({"type": "structural_tag", "format": form})))

def run(source):
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    try:
        exec(source, globals())
        return "works"
    except mw.MaskwrightError as error:
        return f"refused: {type(error).__name__}: {str(error)[:200]}"
    except BaseException as error:
        error.__traceback__ = None  # it may hold all memory
        return f"{type(error).__name__}: {str(error)[:200]}"

for warm in ({"type": "string"}, {"type": "array", "uniqueItems": True}):
    schema(json.dumps(warm))
use('start: "a"+')
tag({"type": "tag", "begin": "<a>", "content": {"type": "json_schema", "json_schema": {}}, "end": "</a>"})
held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for line in sys.stdin:
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(write, run(json.loads(line)).encode())
        os._exit(0)
    os.close(write)
    until, ended = time.monotonic() + 60, 0
    while not ended and time.monotonic() < until:
        time.sleep(0.002)
        ended, _, used = os.wait4(pid, os.WNOHANG)
    if not ended:
        os.kill(pid, 9)
        _, _, used = os.wait4(pid, 0)
    with open(read) as pipe:
        said = pipe.read()
    print(json.dumps([said or "killed", used.ru_utime + used.ru_stime, (used.ru_maxrss - held) / 1024]), flush=True)
"""

Tried = tuple[str, float, float]


@pytest.fixture(scope="module")
def tried() -> Iterator[Callable[[str], Tried]]:
    """What comes of some statements: what they said, CPU seconds, MB."""
    run = [sys.executable, "-c", FORKING]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None

        def ask(source: str) -> Tried:
            assert process.stdin is not None and process.stdout is not None
            print(json.dumps(source), file=process.stdin, flush=True)
            said, seconds, megabytes = json.loads(process.stdout.readline())
            return said, seconds, megabytes

        yield ask
        process.stdin.close()


def check(found: Tried) -> None:
    said, seconds, megabytes = found
    assert said == "works" or said.startswith("refused: "), said
    assert seconds < MOST_CPU_SECONDS and megabytes < MOST_MEGABYTES, found


def nested(n: int, depth: int) -> str:
    return "(" * depth + "a" + f"){{{n}}}" * depth


STRINGS: dict[str, Any] = {"type": "string", "minLength": MANY}
ITEMS: dict[str, Any] = {"type": "array", "minItems": MANY}
CONTAINS: dict[str, Any] = {"type": "array", "contains": {"const": 1}, "minContains": MANY}
MEMBERS: dict[str, Any] = {"type": "object", "minProperties": 10**12, "maxProperties": 10**12}
WITHIN: dict[str, tuple[Any, bytes]] = {
    "minLength": (STRINGS, b'"ab'),
    "minLength of 21 digits": ({"type": "string", "minLength": 10**20}, b'"'),
    "minLength and a pattern": (STRINGS | {"pattern": "^(ab*)*$"}, b'"ab'),
    "minLength and a pattern of many states": (STRINGS | {"pattern": "^[a-f]*(a[a-f]{9})?$"}, b'"ab'),
    "a range of lengths": (STRINGS | {"maxLength": MANY}, b'"'),
    "minItems": (ITEMS, b"[1,"),
    "minItems of integers": (ITEMS | {"items": {"type": "integer"}}, b"[1"),
    "minItems that differ": (ITEMS | {"uniqueItems": True}, b"[1,"),
    "long strings that differ": ({"type": "array", "minItems": 3, "uniqueItems": True, "items": STRINGS}, b'["a'),
    "long numbers that differ": (
        {"type": "array", "minItems": 3, "uniqueItems": True, "items": {"type": "integer", "minimum": 10**300}},
        b"[1",
    ),
    "arrays of arrays": ({"type": "array", "minItems": 1000, "items": ITEMS}, b"[["),
    "minContains": (CONTAINS, b"[1, 2"),
    "contains in a prefix": (CONTAINS | {"minContains": 400, "prefixItems": [{}] * 1_000}, b"[2,"),
    "minProperties": (MEMBERS, b'{"a":1,'),
    "minProperties of some names": (MEMBERS | {"propertyNames": {"pattern": "^a"}}, b'{"a'),
    "maxProperties": ({"type": "object", "maxProperties": 10**12}, b'{"a'),
    "long keys": ({"type": "object", "minProperties": 1, "propertyNames": {"minLength": MANY}}, b""),
    "a multiple of 1e300": ({"multipleOf": 1e300}, b"1"),
    "a multiple of 1e-300": ({"multipleOf": 1e-300}, b"1"),
    "a multiple of a prime": ({"multipleOf": 1_000_000_007}, b"1"),
    "a long bound": ({"type": "integer", "minimum": 10**400}, b"1"),
}
"""Schemas, with a text so far."""


@pytest.mark.parametrize("case", WITHIN)
def test_numbers_of_schemas(case: str, tried: Callable[[str], Tried]) -> None:
    schema, prefix = WITHIN[case]
    check(tried(f"schema({json.dumps(schema)!r}, {prefix!r})"))


@pytest.mark.parametrize("number", ["1e1000000000", "1e-1000000000", "1e-400", "9" * 5000, "0." + "7" * 3000])
@pytest.mark.parametrize("keyword", ["multipleOf", "minimum", "minLength", "maxItems", "minContains", "const"])
def test_numbers_of_many_digits_in_schemas(keyword: str, number: str, tried: Callable[[str], Tried]) -> None:
    check(tried(f"""schema('{{"contains": {{}}, "{keyword}": {number}}}')"""))


@pytest.mark.parametrize(
    "schema",
    [
        '{"type": "array", "prefixItems": [{}] * 10**6, "uniqueItems": True, "minItems": 10**6}',
        '{"type": "array", "prefixItems": [{}] * 10**6, "contains": {"const": 1}, "minContains": 500_000}',
        '{"type": "array", "prefixItems": [{"type": "integer"} for _ in range(10**6)]}',
        '{"type": "object", "required": [f"a{i}" for i in range(100_000)]}',
    ],
)
def test_large_schemas(schema: str, tried: Callable[[str], Tried]) -> None:
    check(tried(f"use(mw.load_schema({schema}))"))


PATTERNS = [
    *("a{1000000000}", "(a{1000}){1000}{1000}", nested(1000, 3), nested(2, 60), "(a?){1000000000}", "(){1000000000}"),
    *(
        "a{0,1000000000}",
        "a{1000000000,}",
        r"\w{100000}",
        ".{99999}b.{99999}",
        "(?=a{1000000000})a*",
        "(a{1000000000}){0}",
    ),
    *("(a|b)*a(a|b){40}", "a{" + "9" * 30 + "}", "a{" + "9" * 5000 + "}"),
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern[:20])
def test_repetitions_in_patterns(pattern: str, tried: Callable[[str], Tried]) -> None:
    for call in (
        f"use(mw.load_regex({pattern!r}))",
        f"schema({json.dumps({'type': 'string', 'pattern': pattern})!r})",
        f"use({f'start: A{chr(10)}A: /x{pattern}/'!r})",
        f"use(mw.read_llguidance({f'start: A{chr(10)}A: /x{pattern}/'!r}))",
        f"tag({{'type': 'regex', 'pattern': {pattern!r}}})",
    ):
        check(tried(call))


@pytest.mark.parametrize("n", ["1000000000", "200000000", "9" * 30, "9" * 5000], ids=lambda n: n[:12])
@pytest.mark.parametrize(
    "rule",
    [
        'start: "a"~N', 'start: "a"~1..N', 'start: A\nA: "a"~N', 'start: x~N\nx: "(" start ")" | "a"', 'start: ("a"?)~N',
        'start: (("a"~1000)~1000)~N',
    ],
)  # fmt: skip
def test_repetitions_in_lark(rule: str, n: str, tried: Callable[[str], Tried]) -> None:
    for call in (f"use({rule.replace('N', n)!r})", f"use(mw.read_llguidance({rule.replace('N', n)!r}))"):
        check(tried(call))


@pytest.mark.parametrize("kind", ["gbnf", "ebnf"])
@pytest.mark.parametrize(
    "rule",
    [
        '"a"{N}', '"a"{0,N}', '"a"{N,}', "[a-z]{N}", '("a"?){N}', '((("a"{1000}){1000}){1000})', 'x{N}\nx ::= "(" root ")" | "a"',
        '((x{1000}){1000}){1000}\nx ::= "(" root ")" | "a"',
    ],
)  # fmt: skip
def test_repetitions_in_other_languages(kind: str, rule: str, tried: Callable[[str], Tried]) -> None:
    for n in ("1000000000", "1000000", "9" * 5000)[: 3 if "N" in rule else 1]:
        check(tried(f"use(mw.read_constraint({'root ::= ' + rule.replace('N', n)!r}, {kind!r}))"))


def of_schema(schema: object) -> dict[str, object]:
    return {"type": "json_schema", "json_schema": schema}


LETTER: dict[str, object] = {"type": "const_string", "value": "a"}


@pytest.mark.parametrize(
    "form",
    [
        *map(of_schema, (STRINGS, ITEMS, CONTAINS, MEMBERS)),
        {"type": "repeat", "min": MANY, "max": MANY, "content": LETTER},
        {"type": "repeat", "min": 10**4, "max": 10**4, "content": {"type": "repeat", "min": 10**4, "max": 10**4, "content": LETTER}},
        {"type": "any_text", "max_chars": MANY},
        {"type": "any_tokens", "max_tokens": 10**18},
        {"type": "grammar", "grammar": 'root ::= "a"{1000000000}'},
        {"type": "qwen_xml_parameter", "json_schema": {"type": "object", "properties": {"a": STRINGS}, "required": ["a"]}},
        {"type": "qwen_xml_parameter", "json_schema": {"type": "object", "properties": {"a": ITEMS}, "required": ["a"]}},
        {"type": "qwen_xml_parameter", "json_schema": MEMBERS},
    ],
    ids=lambda form: str(form)[:40],
)  # fmt: skip
def test_numbers_in_structural_tags(form: object, tried: Callable[[str], Tried]) -> None:
    check(tried(f"tag({form!r})"))


@pytest.mark.parametrize(
    "call",
    [
        "mw.load_schema({}, whitespace=10**9)",
        "mw.parse_grammar('start: A\\nA: /a+/', restrict=['length:A=1000000000..'])",
        "mw.build_store('start: \"a\"', BYTES).matcher(max_rollback=10**15)",
        "mw.build_store(mw.load_schema({}), BYTES).matcher(max_rollback=10**30)",
        "mw.build_store(mw.load_schema({}), BYTES).batch(10**12)",
        "mw.build_store('start: \"a\"*', BYTES).matcher().forced_bytes(10**30)",
    ],
)
def test_numbers_of_calls(call: str, tried: Callable[[str], Tried]) -> None:
    check(tried(call))
