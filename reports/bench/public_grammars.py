"""Other people's grammars: does each load here, how long does that take, and which texts does it accept?

    python reports/bench/public_grammars.py FOLDER [--peers-python PYTHON] [--only PART] [--seconds 60]

FOLDER has a manifest.json, a list of files: `file` (below the folder, with the files that it imports beside it),
`language` (lark, gbnf, ebnf or llguidance), `repo`, `path`, and what that repository says of the file: `start`,
`lexer` ("contextual" or "basic"), `parser` ("lalr" or "earley"), `indenter` (the arguments of `mw.Indenter`),
`flags`, `regex` (that it needs the package regex), `grammars`, `licence`; then `samples` (files of texts that belong
to it), `texts` (more of them) and `rejected` (texts that do not).

Each file has a fresh process with limits of CPU time and memory. There the grammar is loaded, a store is built for a
vocabulary of all bytes and some longer tokens, texts are written by a random walk over the masks, and all texts are
read. Then each text, and five copies of it in which one byte is other, are read again by the reference: Lark with
parser="lalr" and the repository's lexer, or llguidance and xgrammar where `--peers-python` names an interpreter that
has them (`public_references.py`). The record has no text of a grammar, only what came of it.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LONGER = (
    "the in == != <= >= ); () {} [] // /* */ :: -> => := && || ** ++ \r\n \n\n \t\t "
    "true false null int def return select"
)
SLOW = 2.0
"""CPU seconds past which a file that loads counts as slow."""
MOST_MUTANTS = 5
WALKS = 3
STEPS = 40
MEMORY = 6 << 30
Entry = dict[str, Any]
Facts = dict[str, Any]


# ---- One file, in a process of its own


def vocabulary(text: str) -> Any:
    """All bytes, some longer tokens, and the special tokens that an llguidance grammar names."""
    import maskwright as mw

    tokens = [b"</s>", *(bytes([byte]) for byte in range(256)), *(word.encode() for word in LONGER.split(" ") if word)]
    tokens += [b"    ", b"  ", b'": "', b'", "', b"\xc3\xa9", b"\xe2\x82\xac", b"print", b"name", b"value", b"0x"]
    tokens = list(dict.fromkeys(tokens))
    special: dict[str, int] = {}
    outside = re.sub(r'"(?:[^"\\\n]|\\.)*"|/(?:[^/\\\n]|\\.)+/', " ", text)
    for name in dict.fromkeys(re.findall(r"<\|?/?[A-Za-z_]\w*\|?>", outside)):
        special[name] = len(tokens)
        tokens.append(b"")
    ids = {int(number) for inside in re.findall(r"<\[([\d,-]+)\]>", outside) for number in re.findall(r"\d+", inside)}
    if ids:
        tokens += [b""] * (max(ids) + 1 - len(tokens))
        special |= {f"<{number}>": number for number in ids if not tokens[number]}
    return mw.Vocabulary.from_tokens(tokens, eos=[0], special=special)


def load(folder: Path, entry: Entry) -> Any:
    """The constraint of a file, by the call that the documentation names for its language."""
    import maskwright as mw

    path = folder / entry["file"]
    if entry["language"] == "llguidance":
        return mw.read_llguidance(path.read_text(encoding="utf-8"), name=path.name, grammars=parts(entry))
    if entry["language"] != "lark":
        return mw.read_constraint(path, entry["language"])
    said = dict(entry.get("indenter") or {})
    layout: Any = "auto"
    if said:
        brackets = tuple((left, right) for left, right in said.pop("brackets"))
        layout = mw.Indenter(**said, brackets=brackets)
    return mw.load_grammar(
        path, start=entry["start"], lexing="longest" if entry["lexer"] == "basic" else "contextual", layout=layout
    )


def parts(entry: Entry) -> dict[str, Any] | None:
    """What the manifest gives for `@name`."""
    import maskwright as mw

    given = entry.get("grammars")
    return {name: mw.load_schema(each["json_schema"]) for name, each in given.items()} if given else None


def is_read(store: Any, text: str) -> bool:
    matcher = store.matcher()
    return bool(matcher.try_bytes(text.encode()) and matcher.is_accepting())


def walk(store: Any, generator: random.Random) -> str | None:
    """Random bytes that the masks allow, then the shortest ending; None if that is not UTF-8."""
    matcher = store.matcher()
    written = b""
    for _ in range(generator.randrange(STEPS)):
        allowed = [token for token in matcher.allowed_tokens(as_bytes=True) if token]
        if not allowed:
            break
        plain = [token for token in allowed if token.isascii()]
        token = generator.choice(plain or allowed)
        matcher.advance_bytes(token)
        written += token
    ending = matcher.shortest_ending() if hasattr(matcher, "shortest_ending") else matcher.short_ending()
    try:
        return str((written + ending.data).decode())
    except UnicodeDecodeError:
        return None


def mutants(text: str) -> list[str]:
    """Copies with one byte left out, put in, or replaced; the same ones each time."""
    generator = random.Random(text)
    data = text.encode()
    found: list[str] = []
    for _ in range(40):
        at = generator.randrange(len(data) + 1)
        byte = bytes([generator.choice(data + b" ;(1a\n\"'.=")])
        changed = generator.choice(
            [data[:at] + data[at + 1 :], data[:at] + byte + data[at:], data[:at] + byte + data[at + 1 :]]
        )
        try:
            other = changed.decode()
        except UnicodeDecodeError:
            continue
        if other != text and other not in found:
            found.append(other)
        if len(found) == MOST_MUTANTS:
            break
    return found


def given_texts(folder: Path, entry: Entry) -> dict[str, str]:
    """The texts that a manifest has for a file: text -> "sample" or "rejected"."""
    found = {text: "rejected" for text in entry.get("rejected", ()) if not text.startswith("FINAL_REJECT:")}
    found |= {text.removeprefix("FINAL_REJECT:"): "rejected" for text in entry.get("rejected", ())}
    for name in entry.get("samples", ()):
        try:
            found[(folder / name).read_bytes().decode("utf-8")] = "sample"
        except UnicodeDecodeError:
            continue
    return found | {text: "sample" for text in entry.get("texts", ())}


def one(folder: Path, entry: Entry, seconds: int) -> Facts:
    """What comes of one file, in this process."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    import maskwright as mw

    facts: Facts = {"step": "load"}
    begin = time.process_time()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            constraint = load(folder, entry)
            facts["load_s"] = round(time.process_time() - begin, 3)
            facts["step"] = "store"
            store = mw.build_store(constraint, vocabulary((folder / entry["file"]).read_text(encoding="utf-8")))
        facts["warnings"] = [str(each.message) for each in caught]
        facts["step"] = "texts"
        facts["cpu_s"] = round(time.process_time() - begin, 3)
        facts["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        facts |= read_texts(store, folder, entry)
        facts["step"] = "done"
    except mw.MaskwrightError as error:
        facts |= {"error": type(error).__name__, "message": str(error)}
    except Exception as error:  # a crash is what this looks for
        facts |= {"error": type(error).__name__, "message": str(error), "crash": True}
    facts.setdefault("cpu_s", round(time.process_time() - begin, 3))
    facts.setdefault("peak_mb", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
    return facts


def read_texts(store: Any, folder: Path, entry: Entry) -> Facts:
    """Verdicts on the given texts, on walks, and on mutants of what is read."""
    texts = given_texts(folder, entry)
    generator = random.Random(0)
    for _ in range(WALKS):
        text = walk(store, generator)
        if text is not None:
            texts.setdefault(text, "walk")
    rows: list[tuple[str, str, bool]] = [(kind, text, is_read(store, text)) for text, kind in texts.items()]
    changed = {other: "mutant" for kind, text, read in rows if read and kind != "rejected" for other in mutants(text)}
    rows += [(kind, text, is_read(store, text)) for text, kind in changed.items() if text not in texts]
    return {"texts": rows}


# ---- All files


def run(command: list[str], given: str, seconds: float) -> Facts:
    """What a process prints as JSON, or what became of it."""
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=seconds * 4)
    except subprocess.TimeoutExpired:
        return {"error": "Timeout", "message": f"more than {seconds * 4:.0f} s", "crash": True}
    if done.returncode == 0 and done.stdout.strip():
        found: Facts = json.loads(done.stdout.splitlines()[-1])
        return found
    if done.returncode in (-24, -9):
        return {"error": "Timeout", "message": f"more than {seconds:.0f} s of CPU time", "cpu_s": seconds}
    last = done.stderr.strip().splitlines()[-1:] or [""]
    return {"error": f"exit {done.returncode}", "message": last[0], "crash": True}


def kind_of(entry: Entry, ours: Facts, theirs: Facts) -> str:
    """Why a file does not load, in a few words; "" if it loads fast."""
    if ours["step"] == "done":
        return "slow" if ours["cpu_s"] > SLOW else ""
    if ours.get("error") == "Timeout":
        return "slow"
    if ours.get("crash"):
        return "crash"
    message = ours["message"]
    if ours["error"] == "DeadEndError":
        return "dead end"
    if ours["error"] == "BackupError":
        return "backs up without bound"
    if ours["error"] in ("LimitError", "NestingError"):
        return "limit" if ours["step"] != "texts" else "limit on a text"
    if re.search(r"back-?reference|look-?behind|looks at what comes before", message):
        return "back-reference or look-behind"
    if theirs.get("error"):
        return "refused by the reference too"
    if entry.get("parser") == "earley" and "lalr" in theirs:
        return "Earley only"
    return "refused here only" if theirs else "refused"


def disagreements(ours: Facts, theirs: Facts) -> list[list[Any]]:
    """Kind and text of each text with another verdict, and our verdict."""
    verdicts = theirs.get("verdicts")
    if verdicts is None or "texts" not in ours:
        return []
    return [
        [kind, text, mine]
        for (kind, text, mine), other in zip(ours["texts"], verdicts, strict=True)
        if other is not None and mine != other
    ]


def measure(folder: Path, index: int, entry: Entry, arguments: argparse.Namespace) -> Facts:
    """A row of the record, and the texts that are read differently."""
    worker = [sys.executable, __file__, str(folder), "--one", str(index), "--seconds", str(arguments.seconds)]
    ours: Facts = {"step": "load"} | run(worker, "", arguments.seconds)
    texts = ours.get("texts", [])
    reference = sys.executable if entry["language"] == "lark" else arguments.peers_python
    theirs: Facts = {}
    if reference:
        given = json.dumps({"folder": str(folder), "entry": entry, "texts": [text for _, text, _ in texts]})
        theirs = run([reference, str(HERE / "public_references.py")], given, arguments.seconds)
    read = Counter((kind, bool(mine)) for kind, _, mine in texts)
    differ = disagreements(ours, theirs)
    return {
        "name": entry["file"],
        "file": {key: entry.get(key) for key in ("repo", "path", "licence", "language", "parser")},
        "result": "loads" if ours["step"] == "done" else "refused" if ours["step"] != "texts" else "fails on a text",
        "kind": kind_of(entry, ours, theirs),
        "cpu_s": ours.get("cpu_s"),
        "peak_mb": ours.get("peak_mb"),
        "error": ours.get("error"),
        "message": ours.get("message"),
        "warnings": len(ours.get("warnings", ())),
        "reference": theirs.get("error") or (theirs.get("name") if theirs else None),
        "reference_message": theirs.get("message"),
        "texts": {f"{kind}, {'read' if mine else 'refused'}": n for (kind, mine), n in sorted(read.items())},
        "differ": dict(Counter(kind for kind, _, _ in differ)),
        "differing_texts": differ,
        "refused_samples": [text for kind, text, mine in texts if kind == "sample" and not mine],
        "all_warnings": ours.get("warnings", []),
    }


def table(rows: list[Facts]) -> None:
    """A line for each file, then the counts by language and kind."""
    for row in rows:
        file = row["file"]
        place = f"{file['repo']} {file['path']}"[-78:]
        differ = f"  differ {row['differ']}" if row["differ"] else ""
        print(f"{file['language']:10} {place:78} {row['result']:8} {row['kind']:28} {row['cpu_s']} s{differ}")
        if row["message"]:
            print(f"    {row['error']}: {row['message'][:300]}")
    for (language, kind), n in sorted(Counter((row["file"]["language"], row["kind"]) for row in rows).items()):
        print(f"{language:10} {kind or 'loads':30} {n}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help="files whose name has this part; without a record")
    parser.add_argument("--seconds", type=int, default=60, help="of CPU time, for each file")
    parser.add_argument("--details", type=Path, help="rows with their texts are kept here, and not measured again")
    from common import add_peers, write_record

    add_peers(parser)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    entries: list[Entry] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    if arguments.one is not None:
        print(json.dumps(one(folder, entries[arguments.one], arguments.seconds)))
        return
    known: dict[str, Facts] = {}
    if arguments.details and arguments.details.exists():
        known = {row["name"]: row for row in json.loads(arguments.details.read_text(encoding="utf-8"))}
    rows = []
    for index, entry in enumerate(entries):
        if arguments.only in entry["file"]:
            rows.append(known.get(entry["file"]) or measure(folder, index, entry, arguments))
            known[entry["file"]] = rows[-1]
            print(f"{index + 1}/{len(entries)} {entry['file']}: {rows[-1]['result']}", file=sys.stderr)
            if arguments.details:
                arguments.details.write_text(json.dumps(list(known.values()), indent=1), encoding="utf-8")
    table(rows)
    if not arguments.only:
        for row in rows:
            row["refused_samples"] = len(row["refused_samples"])
            for key in ("message", "reference_message"):  # their other lines quote the grammar
                row[key] = row[key] and row[key].replace(f"{folder}/", "").strip().split("\n")[0]
            del row["name"], row["differing_texts"], row["all_warnings"]
        counts = Counter(f"{row['file']['language']}: {row['kind'] or 'loads'}" for row in rows)
        command = "python reports/bench/public_grammars.py FOLDER" + " --peers-python PYTHON" * bool(
            arguments.peers_python
        )
        write_record("public_grammars", command, {"counts": dict(sorted(counts.items())), "files": rows})


if __name__ == "__main__":
    main()
