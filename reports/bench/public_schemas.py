"""Other people's schemas: which of them load strictly, and do masks, endings and jsonschema agree on values.

    python reports/bench/public_schemas.py FOLDER [--most N] [--only TEXT] [--notes FILE]

FOLDER holds `manifest.json`, a list of objects, and the files that it names:

    {"source": "owner/repository", "path": "where/it/stood.json", "kind": "a word or two", "licence": "MIT",
     "file": "FILE", "documents": {"URI": "FILE"}, "instances": ["FILE"], "dialect": "openapi-3.0"}

A schema is read with the default options and its documents, in a process of its own with LIMIT seconds of CPU and
MEMORY bytes. Of one that gets a store for the 256 bytes, values are judged by the masks and by jsonschema:

- the manifest's instances, and up to 3 more that `schema_instances.Maker` draws and jsonschema accepts;
- 5 mutants of each.

A value's text is that of `json.dumps(value, ensure_ascii=False)`, whole numbers without a point. The classes of values:

- *agree*; *false refusal*: jsonschema accepts what masks refuse; *false permission*: masks take what it refuses.
- *spelled otherwise*: the masks take it in the style "any" alone. *by a format*: the two agree without `format`.
- *not judged*: jsonschema fails, as on a pattern that Python's `re` lacks. *given up*: a LimitError.

Formats that jsonschema has no checker for say nothing there.

Then 10 times an instance that both take is cut off at random, in half of the cases a few bytes are drawn under the
masks behind that, and `shortest_ending` completes the text. An ending of the empty text comes before, and its time is
recorded by itself. Endings that are no instances, fail, or take more than SLOW_ENDING seconds of CPU are counted, and
those that do so again when they are asked for a second time. Of an OpenAPI 3.0 document, whose dialect jsonschema
lacks, no values are judged. No text of schemas or values is in the record; --notes writes them to a file.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from common import write_record
from rich.progress import track
from schema_instances import HopelessError, Maker, mutant, plain

import maskwright as mw
from maskwright.validation.instances import InstanceJudge

LIMIT = 60
"""Seconds of CPU for loading a schema, and again for all values."""
ENOUGH = 8
"""Seconds of CPU after which no further values are made."""
MEMORY = 4 << 30
"""Bytes of address space."""
SLOW_LOAD = 2.0
SLOW_ENDING = 0.01
MADE = 3
TRIES = 60
MUTANTS = 5
CUTS = 10
WALKED = 8
LONGEST = 40_000
"""Bytes of the text of an instance."""
VOCABULARY = mw.Vocabulary(
    tokens=(*[bytes([byte]) for byte in range(256)], b""), special={256: "</s>"}, eos=(256,), name="bytes"
)
DRAWN = np.array(sorted(b'"{}[]:,abcdeklmnoprstuxy01237 -_./'))
"""What is drawn behind a cut-off."""
WRONG = ("false refusal", "false permission", "spelled otherwise", "given up")
Tell = Callable[[dict[str, Any]], None]


class Case:
    """A schema that has been loaded, with who judges its values."""

    def __init__(self, schema: Any, documents: dict[str, Any], loaded: mw.JsonSchema, store: Any) -> None:
        self.schema, self.documents = schema, documents
        self.matcher = store.matcher()
        self.judge = InstanceJudge(loaded)
        self.counts: Counter[str] = Counter()
        self.notes: list[dict[str, Any]] = []

    def takes(self, text: bytes) -> bool:
        """Whether the masks take a text as a whole. Raises: LimitError."""
        return _takes(self.matcher, text)

    @cached_property
    def loosened(self) -> dict[str, Any]:
        """Matchers of the same schema with any spelling, and without formats."""
        found = {}
        for kind, options in (("spelled otherwise", {}), ("by a format", {"formats": "annotate"})):
            loaded = mw.load_schema(self.schema, documents=self.documents, style="any", **options)
            found[kind] = mw.build_store(loaded, VOCABULARY).matcher()
        return found

    def judged(self, value: Any, what: str) -> bool:
        """Judges a value, and counts and notes what comes of it. Returns whether both take it."""
        text = json.dumps(value, ensure_ascii=False)
        try:
            data = text.encode()
        except UnicodeEncodeError:  # half a surrogate pair
            return False
        verdict = self.judge.judge(text)
        is_instance = _is_accepted(verdict)
        try:
            is_taken = self.takes(data)
        except mw.LimitError as error:
            return self._count("given up", what, text, str(error))
        if verdict.answer == "not judged" and not is_instance:
            kind = "not judged"
        elif is_taken == is_instance:
            kind = "agree"
        elif is_taken:
            kind = "by a format" if verdict.keyword == "format" else "false permission"
        else:
            kind = next((k for k, matcher in self.loosened.items() if _takes(matcher, data)), "false refusal")
        said = str(verdict.message) if is_taken or kind == "not judged" else self._refusal(data)
        self._count(kind, what, text, said)
        return kind == "agree" and is_taken

    def _count(self, kind: str, what: str, text: str, said: str) -> bool:
        self.counts[kind] += 1
        if kind != "agree":
            self.notes.append({"class": kind, "value": what, "text": text[:3000], "said": said[:400]})
        return False

    def _refusal(self, data: bytes) -> str:
        """What the masks say against a text."""
        self.matcher.reset()
        try:
            self.matcher.advance_bytes(data)
        except mw.MaskwrightError as error:
            return str(error)
        return "it may not end there"

    def instances(self, given: list[Any], end: float) -> list[str]:
        """Judges all values. Returns the texts of instances that both take."""
        values = [(plain(value), f"given {k}") for k, value in enumerate(given)]
        values += [(value, f"made {k}") for k, value in enumerate(self.made(end))]
        generator, found = random.Random(1), []
        for value, what in values:
            if len(json.dumps(value)) > LONGEST:
                continue
            if self.judged(value, what):
                found.append(json.dumps(value, ensure_ascii=False))
            for k in range(MUTANTS):
                if time.process_time() > end:
                    break
                self.judged(plain(mutant(value, generator)), f"{what}, mutant {k}")
        return found

    def made(self, end: float) -> Iterator[Any]:
        """Values that jsonschema takes for instances, none twice."""
        maker, seen = Maker(self.schema, self.documents), set()
        for _ in range(TRIES):
            if len(seen) == MADE or time.process_time() > end:
                return
            try:
                value = plain(maker.make())
                text = json.dumps(value)
            except (HopelessError, RecursionError):
                continue
            except Exception:  # of the package referencing, or for a schema whose keywords have odd values
                continue
            verdict = self.judge.judge(text)
            if text not in seen and _is_accepted(verdict):
                seen.add(text)
                yield value

    def endings(self, texts: list[str]) -> dict[str, Any]:
        """Cuts texts off and completes them."""
        generator = random.Random(2)
        facts: dict[str, Any] = {"endings": 0, "slow endings": 0, "slow again": 0, "slowest ending, ms": 0.0}
        self.matcher.reset()
        begin = time.process_time()
        with contextlib.suppress(mw.MaskwrightError):
            self.matcher.shortest_ending()
        facts["first ending, ms"] = round(1000 * (time.process_time() - begin), 2)
        facts |= {"no instances": 0, "failed endings": 0}
        for k in range(CUTS if texts else 0):
            data = generator.choice(texts).encode()
            begun = data[: generator.randint(0, len(data))]
            self.matcher.reset()
            try:
                self.matcher.advance_bytes(begun)
                begun += self._walk(generator) if k % 2 else b""
                begin = time.process_time()
                ending = self.matcher.shortest_ending().data
                seconds = time.process_time() - begin
            except mw.MaskwrightError as error:
                facts["failed endings"] += 1
                self.notes.append(
                    {"class": "failed ending", "text": begun.decode(errors="replace"), "said": str(error)}
                )
                continue
            facts["endings"] += 1
            facts["slowest ending, ms"] = max(facts["slowest ending, ms"], round(1000 * seconds, 2))
            if seconds > SLOW_ENDING:
                facts["slow endings"] += 1
                facts["slow again"] += self._seconds_again(begun) > SLOW_ENDING
                shown = begun.decode(errors="replace")[:3000]
                self.notes.append({"class": "slow ending", "text": shown, "said": f"{1000 * seconds:.1f} ms"})
            whole = (begun + ending).decode(errors="replace")
            verdict = self.judge.judge(whole)
            if verdict.answer == "refused" and verdict.keyword != "format":
                facts["no instances"] += 1
                self.notes.append({"class": "no instance", "text": whole[:3000], "said": str(verdict.message)[:400]})
        return facts

    def _walk(self, generator: random.Random) -> bytes:
        """A few bytes that are legal, which are read."""
        words = np.zeros(9, np.uint32)
        found = b""
        for _ in range(generator.randint(1, WALKED)):
            self.matcher.fill(words)
            may = DRAWN[(words[DRAWN >> 5] >> (DRAWN & 31)) & 1 == 1]
            if not len(may):
                break
            byte = bytes([int(generator.choice(list(may)))])
            self.matcher.advance_bytes(byte)
            found += byte
        return found

    def _seconds_again(self, begun: bytes) -> float:
        """CPU seconds of an ending that has been found before."""
        self.matcher.reset()
        self.matcher.advance_bytes(begun)
        begin = time.process_time()
        self.matcher.shortest_ending()
        return time.process_time() - begin


def _is_accepted(verdict: Any) -> bool:
    """Whether jsonschema takes a value for an instance, apart from formats that it has no checker for."""
    return verdict.answer == "accepted" or "has no checker" in str(verdict.message)


def _takes(matcher: Any, text: bytes) -> bool:
    matcher.reset()
    return bool(matcher.try_bytes(text) and matcher.is_accepting())


def look_at(entry: dict[str, Any], folder: Path, tell: Tell) -> None:
    """All of one schema, told step by step."""

    def read(file: str) -> Any:
        return json.loads((folder / file).read_text(encoding="utf-8"))

    schema, documents = read(entry["file"]), {uri: read(file) for uri, file in entry.get("documents", {}).items()}
    begin = time.process_time()
    try:
        loaded = mw.load_schema(schema, documents=documents)
        tell({"load, CPU s": round(time.process_time() - begin, 3)})
        begin = time.process_time()
        store = mw.build_store(loaded, VOCABULARY)
    except (mw.MaskwrightError, MemoryError) as error:
        seconds = round(time.process_time() - begin, 3)
        tell({"result": "refused", "reason": f"{type(error).__name__}: {error}", "refused after, CPU s": seconds})
        return
    tell({"result": "loaded", "store, CPU s": round(time.process_time() - begin, 3)})
    end = time.process_time() + LIMIT
    resource.setrlimit(resource.RLIMIT_CPU, (int(end) + 10, resource.RLIM_INFINITY))
    case = Case(schema, documents, loaded, store)
    given = [] if entry.get("dialect") else [read(file) for file in entry.get("instances", [])]
    texts = [] if entry.get("dialect") else case.instances(given, time.process_time() + ENOUGH)
    tell({"values": dict(case.counts)})
    facts = case.endings(texts)
    tell({**facts, "notes": case.notes})


def load_all() -> None:
    """Loads kernels and packages, which processes that are forked then have."""
    schema: dict[str, Any] = {"$ref": "a#/$defs/a"}
    documents = {"a": {"$defs": {"a": {"type": "string", "pattern": "a", "format": "uri"}}}}
    loaded = mw.load_schema(schema, documents=documents)
    case = Case(schema, documents, loaded, mw.build_store(loaded, VOCABULARY))
    case.instances(["a", 1], time.process_time() + 1)
    case.endings(['"a:"'])


def in_own_process(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What `look_at` tells in a process with limits."""
    source, target = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + LIMIT + 1, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        code = 1
        try:
            with os.fdopen(target, "w", encoding="utf-8") as told:

                def tell(facts: dict[str, Any]) -> None:
                    told.write(json.dumps(facts) + "\n")
                    told.flush()

                try:
                    look_at(entry, folder, tell)
                except BaseException as error:
                    tell({"broke": f"{type(error).__name__}: {error}"})
            code = 0
        finally:
            os._exit(code)
    os.close(target)
    facts: dict[str, Any] = {}
    with os.fdopen(source, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            with contextlib.suppress(ValueError):
                facts |= json.loads(line)
    status = os.waitpid(child, 0)[1]
    if status:
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"code {os.waitstatus_to_exitcode(status)}"
        facts |= {"ended": f"the process ended by {how}: more than {LIMIT} s of CPU or {MEMORY >> 30} GiB"}
        facts.setdefault("result", "ended")
    facts.setdefault("result", "broke")
    return facts


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts of all files."""
    loaded = [each for each in found if each["result"] == "loaded"]
    values: Counter[str] = Counter()
    for each in loaded:
        values.update(each.get("values", {}))
    seconds = sorted(each.get("load, CPU s", 0.0) for each in loaded)

    def total(name: str) -> int:
        return sum(each.get(name, 0) for each in loaded)

    return {
        "schemas": len(found),
        "loaded": len(loaded),
        "percent": round(100 * len(loaded) / max(1, len(found)), 1),
        "load, CPU s, median and greatest": [seconds[len(seconds) // 2], seconds[-1]] if seconds else [],
        f"more than {SLOW_LOAD:g} s": sum(each > SLOW_LOAD for each in seconds),
        "values": dict(values),
        "schemas with wrong verdicts": sum(any(each.get("values", {}).get(k) for k in WRONG[:2]) for each in loaded),
        "endings": total("endings"),
        f"endings of more than {1000 * SLOW_ENDING:g} ms": total("slow endings"),
        "again so slow": total("slow again"),
        "endings that are no instances": total("no instances"),
        "endings that fail": total("failed endings"),
        "broke": sum("broke" in each or "ended" in each for each in found),
    }


def table(found: list[dict[str, Any]]) -> str:
    """By kind: schemas, how many load, verdicts that differ, endings that are wrong or slow."""
    kinds: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in found:
        kinds[each["kind"]].append(each)
    lines = ["| kind | schemas | loaded | values | false refusals | false permissions | endings | wrong | slow |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for kind, rows in sorted(kinds.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        facts = summary(rows)
        values = facts["values"]
        cells = [
            kind,
            len(rows),
            facts["loaded"],
            sum(values.values()),
            values.get(WRONG[0], 0),
            values.get(WRONG[1], 0),
        ]
        wrong = facts["endings that are no instances"] + facts["endings that fail"]
        cells += [facts["endings"], wrong, facts[f"endings of more than {1000 * SLOW_ENDING:g} ms"]]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--most", type=int, default=100_000, help="schemas that are looked at")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="schemas whose source and path hold a text; no record"
    )
    parser.add_argument("--notes", type=Path, metavar="FILE", help="a line of JSON for each schema, with texts")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    entries = json.loads((options.folder / "manifest.json").read_text(encoding="utf-8"))
    entries = [entry for entry in entries if options.only in f"{entry['source']}/{entry['path']}"][: options.most]
    load_all()
    found = []
    with contextlib.ExitStack() as stack:
        notes = stack.enter_context(options.notes.open("w", encoding="utf-8")) if options.notes else None
        for entry in track(entries, description="schemas", console=None):
            facts = in_own_process(entry, options.folder)
            names = {key: entry.get(key, "") for key in ("source", "path", "kind", "licence")}
            if notes:
                notes.write(json.dumps({**names, "file": entry["file"], **facts}) + "\n")
                notes.flush()
            facts.pop("notes", None)
            found.append({**names, **facts})
    facts = summary(found)
    print(table(found))
    print(json.dumps(facts, indent=1))
    if not options.only:
        write_record("public_schemas", "python reports/bench/public_schemas.py FOLDER", {**facts, "files": found})


if __name__ == "__main__":
    sys.exit(main())
