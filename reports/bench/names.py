"""Names given at run time: what masks cost, what the lists refuse wrongly on real files, and which names of completions exist.

python reports/bench/names.py [--files N] [--places N] [--functions N] [--tokens N] [--tokenizer T]

First list: the seconds from `PythonNames` to the names at some places, each in a process of its own. First token: there, too, the CPU
seconds to the first token of the bundled model, with names and without, of this process and those that it starts; least of three. The
store and an ending are there before, as `maskwright complete` has them. The model computes on one thread: others wait busily for it where
the machine has more to do, up to a tenth of a second for a token, and that would count.

Masks: `restrict` and masks of the library's `python` behind `os.`, for 10 to 100,000 names made of words, in CPU time.

Real files: at the names of files of the evaluation data, what `PythonNames` says of the text before; a refusal is a name that is in the
file and not in the list. The files stand alone, without their projects and what these install: an import of what is not installed is
refused, as it should be, and counted apart.

Completions: prompts are files of the same data, cut behind the line of a `def`. Each is completed greedily by the bundled model with names
and without, under one budget. Of the names in the new text, at the places where jedi has a list, `there` counts those in it; of the modules
that are imported, `found` counts those that Python finds. Needs jedi (pip install 'maskwright[names]').
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import keyword
import os
import random
import re
import subprocess
import sys
import time
import tokenize
from collections import Counter
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from common import add_data, python_files, write_record

import maskwright as mw
from maskwright.completion import load_model, start_completion
from maskwright.python_names import PythonNames, kind_of_place
from maskwright.stores.cache import cached_store

LONGEST = 6_000
"""Characters of a file at most."""
WORDS = [
    "get",
    "set",
    "path",
    "name",
    "file",
    "read",
    "write",
    "line",
    "data",
    "is",
    "to",
    "from",
    "list",
    "node",
    "key",
    "value",
    "max",
    "user",
]


PLACES = {
    "os.": "import os\nos.",
    "lark.": "import lark\nlark.",
    "import": "import ",
    "scope": "def area(w, h):\n    return ",
}
"""Places at which the first list is timed."""
_FIRST = """
import sys, time
from maskwright.python_names import PythonNames
begin = time.perf_counter()
names = PythonNames(sys.argv[1])(sys.argv[2].encode())
print(time.perf_counter() - begin, len(names[1]))
"""
_FIRST_TOKEN = """
import os, sys
import maskwright as mw
from maskwright.completion import load_model, start_completion
from maskwright.python_names import PythonNames
model = load_model("python-tiny")
store = mw.cached_store("python", model.vocabulary)
matcher = store.matcher()
matcher.advance_bytes(sys.argv[2].encode())
matcher.short_ending()
begin = sum(os.times()[:4])
names = PythonNames(sys.argv[1]) if sys.argv[3:] else None
next(iter(start_completion(store, sys.argv[2], model, names=names, max_tokens=16)))
print(sum(os.times()[:4]) - begin)
"""


def cpu_seconds(command: list[str]) -> float:
    """What a process prints, whose matrices are multiplied on one thread."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return float(subprocess.run(command, capture_output=True, check=True, text=True, env=environment).stdout)


def first_tokens(folder: str) -> dict[str, Any]:
    """The CPU seconds to the first token at each place, the least of three processes."""
    found = {}
    for place, text in PLACES.items():
        command = [sys.executable, "-c", _FIRST_TOKEN, folder, text]
        ways = {"without names": command, "with names": [*command, "names"]}
        seconds = {way: [cpu_seconds(each) for each in [one] * 3] for way, one in ways.items()}
        found[place] = {way: round(min(each), 2) for way, each in seconds.items()}
    return found


def first_lists(folder: str) -> dict[str, Any]:
    """The wall seconds and the length of the first list at each place."""
    found = {}
    for place, text in PLACES.items():
        command = [sys.executable, "-c", _FIRST, folder, text]
        seconds, n_names = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
        found[place] = {"seconds": round(float(seconds), 2), "names": int(n_names)}
    return found


def microseconds(call: Any, times: int = 30) -> float:
    """The least CPU time of some calls."""
    call()
    found = []
    for _ in range(times):
        begin = time.process_time()
        call()
        found.append(time.process_time() - begin)
    return round(1e6 * min(found), 1)


def costs(tokenizer: str) -> dict[str, Any]:
    """What `restrict` and masks cost, by the number of names."""
    store = cached_store(mw.load_grammar("python"), mw.load_vocabulary(tokenizer))
    matcher = store.matcher()
    matcher.advance_bytes(b"import os\nos.")
    words = np.zeros(store.n_words, np.uint32)
    found: dict[str, Any] = {"tokenizer": tokenizer, "mask_us_without_names": microseconds(lambda: matcher.fill(words))}
    matcher.restrict("NAME", ["first_call"])
    rng = random.Random(1)
    for n in (10, 1_000, 10_000, 100_000):
        names = {"get_path"}
        while len(names) < n:
            names.add("_".join(rng.choices(WORDS, k=rng.randint(1, 4))) + rng.choice(["", "s", "2"]))
        begin = time.process_time()
        matcher.restrict("NAME", sorted(names))
        seconds = time.process_time() - begin
        inside, late = matcher.fork(), matcher.fork()
        inside.advance_bytes(b"get_")
        late.advance_bytes(b"get_pat")
        found[f"{n} names"] = {
            "restrict_ms": round(1e3 * seconds, 2),
            "mask_us_where_the_name_begins": microseconds(lambda: matcher.fill(words)),
            "mask_us_behind_get_": microseconds(lambda at=inside: at.fill(words)),
            "mask_us_behind_get_pat": microseconds(lambda at=late: at.fill(words)),
        }
    return found


def names_of(text: str) -> list[tuple[int, str]]:
    """The names in a text that are no keywords: where each begins, and what it is; as far as Python tokenizes it."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
                found.append((starts[token.start[0] - 1] + token.start[1], token.string))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    return found


def texts(n: int) -> Iterator[str]:
    files = [str(record["text"]) for record in python_files() if len(record["text"]) <= LONGEST]
    yield from random.Random(1).sample(files, min(n, len(files)))


def is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module.split(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def refusals(source: PythonNames, n_files: int, n_places: int) -> dict[str, Any]:
    """How many true names a source refuses, by the kind of place."""
    asked, held, refused = Counter[str](), Counter[str](), Counter[str]()
    examples: list[str] = []
    n_names = n_missing = 0
    rng = random.Random(2)
    for text in texts(n_files):
        places = names_of(text)
        n_names += len(places)
        places = [(at, name) for at, name in places if kind_of_place(text[:at]) is not None]
        for at, name in rng.sample(places, min(len(places), n_places)):
            kind = str(kind_of_place(text[:at]))
            asked[kind] += 1
            found = source(text[:at].encode())
            if found is None:
                continue
            held[kind] += 1
            if name in found[1]:
                continue
            line = text[text.rfind("\n", 0, at) + 1 :].split("\n")[0].strip()
            if kind == "import" and not is_installed(name):
                n_missing += 1
            else:
                refused[kind] += 1
                examples.append(f"{kind}: {name} in {line[:100]}")
    return {
        "names": n_names, "asked": dict(asked), "held": dict(held), "refused": dict(refused), "refused_imports_not_installed": n_missing,
        "examples": examples[:20],
    }  # fmt: skip


def prompts(n: int) -> list[str]:
    """Files cut behind the line of a `def`."""
    rng = random.Random(3)
    found: list[str] = []
    for text in texts(1_000):
        ends = [
            match.end() for match in re.finditer(r"^ *def \w+\([^()\n]*\):\n", text, re.MULTILINE) if match.end() > 200
        ]
        if ends and len(found) < n:
            found.append(text[: rng.choice(ends)])
    return found


def completions(source: PythonNames, n: int, tokens: int) -> dict[str, Any]:
    """Which names of completions exist, with names and without."""
    model = load_model(device="cpu")
    store = cached_store(mw.load_grammar("python"), model.vocabulary)
    found: dict[str, Any] = {}
    for way, names in (("without names", None), ("with names", source)):
        listed, there, whole = Counter[str](), Counter[str](), 0
        modules = n_found = n_texts = 0
        begin = time.process_time()
        for prompt in prompts(n):
            try:
                text = prompt + start_completion(
                    store, prompt, model, names=names, max_tokens=tokens
                ).run().data.decode(errors="replace")
            except mw.MaskwrightError as error:
                print(f"left out: {error}", file=sys.stderr)
                continue
            n_texts += 1
            is_whole = True
            for at, name in names_of(text):
                if at < len(prompt):
                    continue
                if re.search(r"(?:^|\n) *(?:import|from) $", text[:at]):
                    modules += 1
                    n_found += is_installed(name)
                known = source(text[:at].encode())
                if known is not None:
                    kind = str(kind_of_place(text[:at]))
                    listed[kind] += 1
                    there[kind] += name in known[1]
                    is_whole &= name in known[1]
            whole += is_whole
        found[way] = {
            "texts": n_texts, "texts_whose_listed_names_all_exist": whole, "listed": dict(listed), "there": dict(there),
            "modules": modules, "found": n_found, "cpu_seconds": round(time.process_time() - begin, 1),
        }  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--places", type=int, default=25)
    parser.add_argument("--functions", type=int, default=60)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--tokenizer", default="mistral-7b-v0.1")
    add_data(parser)
    given = parser.parse_args()
    if importlib.util.find_spec("jedi") is None:
        sys.exit("jedi is not installed (pip install 'maskwright[names]'): nothing was measured")
    with TemporaryDirectory() as folder:
        source = PythonNames(folder)
        facts = {
            "first_lists": first_lists(folder),
            "first_tokens": first_tokens(folder),
            "masks": costs(given.tokenizer),
            "real_files": refusals(source, given.files, given.places),
            "completions": completions(source, given.functions, given.tokens),
        }
    write_record("names", " ".join(["python reports/bench/names.py", *sys.argv[1:]]), facts)
    print(facts)


if __name__ == "__main__":
    main()
