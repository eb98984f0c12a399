"""JSON Schema keyword by keyword, beside peers: what the JSON-Schema-Test-Suite finds, in its drafts 7 and 2020-12.

    python reports/bench/schema_coverage.py --peers-python VENV/bin/python [--engines ours,xgrammar] [--table]

For the venv: `pip install torch==2.13.0 xgrammar==0.2.9 llguidance==1.9.1 glrmask==0.5.0 outlines-core==0.2.14`.

A group of the suite is a schema with tests: values that are instances or not. An engine refuses the schema, or compiles it (in its
documented way for whole schemas, with a vocabulary of the 256 bytes) and is then given each value as texts, byte by byte. What counts:

- A value's *spellings* are several texts: as json.dumps writes it, without blanks, with non-ASCII characters escaped, with numbers
  written out (100000 and 100000.0 for 1e5), and with keys in another order: that in which the schema names them, and all orders of the
  outermost object where it has at most four keys.
- An instance is judged *right* if the first spelling is taken, *otherwise spelled* if only another one is, and else *refused*.
- A value that is no instance is judged *right* if no spelling is taken, and else *accepted*: the model may write it.
- A schema without instances may be refused for that reason; all its tests are then judged right.
- A process that ends, or takes more than LIMIT seconds for a schema, has failed on the group. A test on which an engine raises is an
  *error*.

Options are the engines' defaults. For xgrammar the table has strict_mode=False: with its default, which forbids all properties and
items that a schema does not name, more instances are refused; the record has both. Its `any_order` does not check `required`, so it is
off. Outlines is what `build_regex_from_schema` writes, matched by the package regex: outlines-core's own Index takes up to 23 s to
compile such an expression (`--engines outlines,outlines-index` runs both).

A schema of the suite that has no `$schema` gets that of its draft; an engine that refuses it so gets it without. Left out are the tests
by which `format` and `contentMediaType` assert nothing or something (drafts leave it open; here formats are asserted). Groups that
need documents from elsewhere stay in: refusing those is no fault, and shows as a group that is not compiled.

Most schemas of the suite have no `type`, which people write. So there is a second run, "typed": where all of a schema's outermost
keywords speak of values of one type, `type` says so, and tests with values of other types are left out. Other groups are as before.
The table is that of the second run; its last row is the first run's.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import select
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from common import add_data, add_peers, command_said, shared_records, write_record

DRAFTS = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
ENGINES = ("ours", "llguidance", "xgrammar", "xgrammar-strict", "glrmask", "outlines")
MORE = ("outlines-index",)
"""Engines that are measured only when they are named."""
START = 120.0
"""Seconds in which an engine's process must have started."""
LIMIT = 10.0
"""Seconds for a schema, compiling and all its tests."""
TYPED = {
    "object": "properties required additionalProperties patternProperties propertyNames minProperties maxProperties "
    "dependencies dependentRequired dependentSchemas unevaluatedProperties",
    "array": "items prefixItems additionalItems minItems maxItems contains minContains maxContains uniqueItems unevaluatedItems",
    "string": "minLength maxLength pattern format",
    "number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
}
"""The keywords that speak of values of one type."""
ASIDE = {"$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default"}
"""Keywords that say nothing of values."""
PERMUTED = 4
"""Objects of at most so many keys are written in all orders."""
NUMBERS = ("as they are", "1", "1.0")
"""How numbers are spelled: those that are whole, if need be without or with a fraction; none with an exponent then."""
NO_INSTANCE = ("no value satisfies", "unsatisfiable", "cannot accept any value")
HEADINGS = {"ours": "maskwright", "outlines": "outlines-core"}


# --- the work ---


def key_ranks(schema: Any, ranks: dict[str, int]) -> dict[str, int]:
    """The order in which a schema names keys: first those of `properties`, as they are met, then others."""
    if isinstance(schema, list):
        for each in schema:
            key_ranks(each, ranks)
    elif isinstance(schema, dict):
        named = schema.get("properties")
        for key in named if isinstance(named, dict) else ():
            ranks.setdefault(key, len(ranks))
        required = schema.get("required")
        for key in required if isinstance(required, list) else ():
            if isinstance(key, str):
                ranks.setdefault(key, len(ranks))
        for each in schema.values():
            key_ranks(each, ranks)
    return ranks


def ordered(value: Any, ranks: dict[str, int]) -> Any:
    """A value with the keys of its objects in the order of the schema; others come behind, as they were."""
    if isinstance(value, list):
        return [ordered(each, ranks) for each in value]
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: ranks.get(key, len(ranks)))
        return {key: ordered(value[key], ranks) for key in keys}
    return value


def text_of(value: Any, compact: bool = False, ascii_only: bool = False, numbers: str = "as they are") -> str:
    """A value as json.dumps writes it. numbers : one of NUMBERS."""
    comma, colon = (",", ":") if compact else (", ", ": ")
    if isinstance(value, dict):
        pairs = (
            text_of(key, compact, ascii_only, numbers) + colon + text_of(each, compact, ascii_only, numbers)
            for key, each in value.items()
        )
        return "{" + comma.join(pairs) + "}"
    if isinstance(value, list):
        return "[" + comma.join(text_of(each, compact, ascii_only, numbers) for each in value) + "]"
    if numbers != "as they are" and isinstance(value, int | float) and not isinstance(value, bool):
        exact = Decimal(repr(value))
        if exact != exact.to_integral_value():
            return f"{exact:f}"
        return f"{exact.to_integral_value():f}" + ".0" * (numbers == "1.0")
    return json.dumps(value, ensure_ascii=ascii_only)


def spellings(value: Any, schema: Any) -> list[str]:
    """The texts of a value, the usual one first."""
    in_order = ordered(value, key_ranks(schema, {}))
    values = [value, in_order]
    if isinstance(value, dict) and 1 < len(value) <= PERMUTED:
        values += [{key: in_order[key] for key in keys} for keys in itertools.permutations(in_order)]
    ways = list(itertools.product((False, True), (False, True), NUMBERS))
    texts = dict.fromkeys(text_of(each, *way) for way in ways for each in values)
    return [text for text in texts if text.isascii() or is_unicode(text)]


def is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return True


def is_open(draft_file: str, description: str) -> bool:
    """Whether drafts leave a test's answer open."""
    if draft_file == "format.json":
        return "annotation" in description
    return draft_file in ("content.json", "optional/content.json")


def only_type(schema: Any) -> str:
    """The one type that all outermost keywords of a schema speak of, or ""."""
    if not isinstance(schema, dict):
        return ""
    keywords = set(schema) - ASIDE
    return next((name for name, own in TYPED.items() if keywords and keywords <= set(own.split())), "")


def is_of_type(value: Any, name: str) -> bool:
    """Whether a value is of a type of JSON Schema."""
    if isinstance(value, bool):
        return False
    return isinstance(value, {"object": dict, "array": list, "string": str, "number": int | float}[name])


def gather(typed: bool = False) -> list[dict[str, Any]]:
    """The groups: keyword, draft, forms of the schema, tests with their spellings. typed : the second run."""
    found = []
    for record in shared_records("jsonschema/json_schema_test_suite"):
        if record["draft"] not in DRAFTS:
            continue
        file = record["id"].split("#")[0].split("/", 2)[2]
        schema = record["schema"]
        tests = [test for test in record["tests"] if not is_open(file, test["description"])]
        name = only_type(schema) if typed else ""
        if name:
            schema = {**schema, "type": name}
            tests = [test for test in tests if is_of_type(test["data"], name)]
        forms = [schema]
        if isinstance(schema, dict):
            without = {key: value for key, value in schema.items() if key != "$schema"}
            # no other group names the draft's own dialect otherwise
            forms = [schema if "$schema" in schema else {"$schema": DRAFTS[record["draft"]], **schema}, without]
        if tests:
            found.append(
                {
                    "id": record["id"],
                    "keyword": file.removesuffix(".json"),
                    "draft": record["draft"],
                    "remote": record["needs_remotes"],
                    "typed": bool(name),
                    "forms": [json.dumps(form) for form in forms],
                    "valid": [test["valid"] for test in tests],
                    "about": [test["description"] for test in tests],
                    "tests": [spellings(test["data"], schema) for test in tests],
                }
            )
    return found


# --- an engine ---


class Ended(Exception):
    """The engine's process has ended, or takes too long."""


class Engine:
    """An engine in a process of its own, which is started again when it has ended."""

    def __init__(self, name: str, python: str) -> None:
        worker = Path(__file__).resolve().parent / "peers" / "coverage.py"
        self.command = [python, str(worker), name]
        self.process: subprocess.Popen[bytes] | None = None
        self.buffer = b""
        self.version = ""

    def ask(self, request: dict[str, Any]) -> Iterator[Any]:
        """The answers to a request. Raises: Ended."""
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            self.buffer = b""
            try:
                self.version = self._line(time.monotonic() + START)
            except Ended as error:
                sys.exit(f"{' '.join(self.command)} does not start: {error}")
        assert self.process is not None and self.process.stdin is not None
        end = time.monotonic() + LIMIT
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            self.close()
            raise Ended("the process has ended") from None
        first = self._line(end)
        yield first
        if first["compiled"]:
            for _ in request["tests"]:
                yield self._line(end)

    def close(self) -> None:
        if self.process is not None:
            process, self.process = self.process, None
            process.kill()
            with contextlib.suppress(OSError):
                process.communicate()

    def _line(self, end: float) -> Any:
        assert self.process is not None and self.process.stdout is not None
        source = self.process.stdout.fileno()
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([source], [], [], left)[0]:
                self.close()
                raise Ended(f"no answer within {LIMIT:g} s")
            part = os.read(source, 1 << 16)
            if not part:
                code = self.process.wait()
                self.close()
                raise Ended(f"the process ended with code {code}")
            self.buffer += part
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)


def judge(group: dict[str, Any], verdict: Any, k: int) -> str:
    """What an engine's answers to a test's spellings amount to."""
    if isinstance(verdict, str):
        return "errors"
    if not group["valid"][k]:
        return "accepted" if any(verdict) else "right"
    return "right" if verdict[0] else "otherwise spelled" if any(verdict) else "refused"


def run(engine: Engine, group: dict[str, Any]) -> tuple[Counter[str], dict[str, Any]]:
    """The counts of an engine on a group, and what is to be noted of it."""
    counts = Counter({"groups": 1, "tests": len(group["tests"])})
    notes: dict[str, Any] = {}
    try:
        answers = engine.ask({"forms": group["forms"], "tests": group["tests"]})
        first = next(answers)
        if not first["compiled"]:
            said = first["reason"]
            if not any(group["valid"]) and any(reason in said.lower() for reason in NO_INSTANCE):
                return counts + Counter(
                    {"compiled": 1, "judged": len(group["tests"]), "right": len(group["tests"])}
                ), {}
            return counts + Counter({"refused groups": 1}), {"refused": said[:120]}
        compiled = Counter({"compiled": 1})
        for k, verdict in enumerate(answers):
            what = judge(group, verdict, k)
            compiled += Counter({"judged": 1, what: 1})
            if what != "right":
                notes.setdefault(what, []).append(group["about"][k][:80])
                if isinstance(verdict, str):
                    notes["error"] = verdict
        return counts + compiled, notes
    except Ended as error:
        return counts + Counter({"failed groups": 1}), {"failed": str(error)}


# --- the table ---


def cell(facts: dict[str, int]) -> str:
    """`2/3: 7` of 3 groups 2 are compiled, and 7 tests judged right; then what is wrong."""
    shown = f"{facts.get('compiled', 0)}/{facts['groups']}: {facts.get('right', 0)}"
    letters = {"otherwise spelled": "o", "refused": "r", "accepted": "**a**", "errors": "e", "failed groups": "f"}
    wrong = [f"{facts[name]} {letter}" for name, letter in letters.items() if facts.get(name)]
    return shown + (", " + ", ".join(wrong) if wrong else "")


def table(engines: dict[str, Any], typed: dict[str, Any]) -> str:
    """The table of docs/json-schema.md: the second run by keyword, then both runs in all."""
    names = [name for name in engines if name != "xgrammar-strict" or len(engines) == 1]
    keywords = {keyword: facts["tests"] for keyword, facts in typed[names[0]]["keywords"].items()}
    rows = [
        (f"`{keyword}`", n, [typed[name]["keywords"][keyword] for name in names]) for keyword, n in keywords.items()
    ]
    for about, facts in (("all", typed), ("all, as the suite has them", engines)):
        rows.append((about, facts[names[0]]["total"]["tests"], [facts[name]["total"] for name in names]))
    titles = [f"{HEADINGS.get(name, name)} {engines[name]['version']}" for name in names]
    lines = ["| keyword | tests | " + " | ".join(titles) + " |", "|---|---|" + "---|" * len(names)]
    lines += [f"| {about} | {n:,} | {' | '.join(map(cell, cells))} |" for about, n, cells in rows]
    return "\n".join(lines)


def measure(name: str, python: str, work: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts of an engine, by keyword, by draft and in all, and its notes by group."""
    engine = Engine(name, python)
    keywords: defaultdict[str, Counter[str]] = defaultdict(Counter)
    drafts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    total: Counter[str] = Counter()
    notes = {}
    for group in work:
        counts, noted = run(engine, group)
        for where in (keywords[group["keyword"]], drafts[group["draft"]], total):
            where.update(counts)
        if noted:
            notes[group["id"]] = noted
    engine.close()
    order = sorted(keywords, key=lambda keyword: ("/" in keyword, keyword.lower()))
    return {
        "version": engine.version,
        "total": dict(total),
        "drafts": {draft: dict(counts) for draft, counts in drafts.items()},
        "keywords": {keyword: dict(keywords[keyword]) for keyword in order},
        "notes": notes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_peers(parser)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--table", action="store_true", help="print the table, and write no record")
    add_data(parser)
    options = parser.parse_args()
    if unknown := set(options.engines.split(",")) - {*ENGINES, *MORE}:
        parser.error(f"no engine {', '.join(sorted(unknown))}; there are {', '.join((*ENGINES, *MORE))}")
    work, typed_work = gather(), gather(typed=True)
    engines: dict[str, Any] = {}
    typed: dict[str, Any] = {}
    for name in options.engines.split(","):
        python = sys.executable if name == "ours" else options.peers_python
        if python:
            engines[name] = measure(name, python, work)
            typed[name] = measure(name, python, typed_work)
            print(name, engines[name]["total"], "typed", typed[name]["total"], file=sys.stderr)
            del engines[name]["notes"]  # those of the second run are kept
            if name == "xgrammar-strict":
                del typed[name]["notes"]
    print(table(engines, typed))
    if options.table:
        return
    facts = {
        "suite": "json-schema-org/JSON-Schema-Test-Suite, commit 44401e0c046704b476ec9d2e2fccdaee618f259d, a selection",
        "groups": len(work),
        "groups that need other documents": sum(group["remote"] for group in work),
        "tests": sum(len(group["tests"]) for group in work),
        "instances": sum(sum(group["valid"]) for group in work),
        "texts": sum(len(texts) for group in work for texts in group["tests"]),
        "seconds for a schema": LIMIT,
        "engines": engines,
        "typed": {"groups with a type": sum(group["typed"] for group in typed_work), "engines": typed},
    }
    write_record("schema_coverage", command_said(), facts)


if __name__ == "__main__":
    main()
