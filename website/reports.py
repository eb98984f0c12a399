"""The pages of reports, made of the records under reports/record: each chart names its record and the command that wrote it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import charts
from charts import seconds
from recorded import Record, Records, engine, side_by_side, source, table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reports" / "bench"))

from peers.summary import CURVE  # noqa: E402

from maskwright.report.svg import RULES_LABELS, STEP_LABELS  # noqa: E402

WORKS = {"python": "python.lark", "json": "JSON"}
SIZES = {"mistral-7b-v0.1": 32_000, "tekken": 131_072}
LEVELS = ("p50", "p90", "p99", "p99.9")
REACH = "*`python reports/bench/reach.py GRAMMAR --stores --record` for each grammar.*\n"
Points = dict[str, list[tuple[float, float]]]


def write(folder: Path) -> None:
    """folder : the pages'."""
    found = Records()
    for name, page in PAGES.items():
        (folder / f"{name}.md").write_text(charts.apart("\n".join(page(found))), encoding="utf-8")
    (folder / "README.md").write_text("\n".join(index(found)), encoding="utf-8")


def index(records: Records) -> Iterator[str]:
    yield "# Reports\n"
    yield "Charts of what the benchmarks recorded. [Measurements](../docs/measurements.md) says how it was measured.\n"
    for name, page in PAGES.items():
        yield f"- [{name.capitalize()}]({name}.md): {page.__doc__}"
    yield "\n## All records\n"
    yield table(
        ("date", "record", "command", "processor"),
        [
            (
                record["date"],
                f"[{file[11:-5]}](record/{file})",
                f"`{record['command'].strip()}`",
                record["machine"]["cpu"],
            )
            for file, record in records.all()
        ],
    )


def latency(records: Records) -> Iterator[str]:
    """how long a mask takes, beside every peer"""
    masks, fill = records["masks"], records["serving-fill"]
    yield "# Latency\n\nAll axes of time are logarithmic.\n\n## Grammars\n"
    yield "A mask and an advance of one text on one core, over real files: the share of steps that take at most so long.\n"
    curves = {
        cell_name(cell): {
            engine(name): list(zip(one["curve_us"], CURVE, strict=True))
            for name, one in cell["engines"].items()
            if one.get("curve_us")
        }
        for cell in masks["cells"]
    }
    yield side_by_side(charts.shares(title, each) for title, each in curves.items())
    yield table(
        ("work", "engine", *LEVELS, "most", "mean"),
        [
            (
                cell_name(cell),
                engine(name),
                # a slow engine has too few steps for the last level
                *(seconds(one["both_us"][key]) if key in one["both_us"] else "-" for key in (*LEVELS, "max", "mean")),
            )
            for cell in masks["cells"]
            for name, one in measured(cell)
        ],
    )
    yield from left_out(masks)
    yield source(masks)
    yield "## JSON schemas\n\nMasks of the schemas of SchemaStore with their instances, each engine on what it reads.\n"
    whens = {"first": "mask, first", "again": "mask, second"}
    yield from by_vocabulary(records, "schemas", ("ours", "llguidance"), whens, "A mask of a schema")
    yield "## Patterns\n\nMasks of common regular expressions, of those whose texts all engines take.\n"
    whens = {"first": "mask, first, us", "again": "mask, again, us"}
    yield from by_vocabulary(records, "regexes", (), whens, "A mask of a pattern")
    yield "## In vLLM\n\nCPU time of a row, in a batch of 128, of vLLM's backends.\n"
    kinds = ("median", "mean", "worst_step")
    yield side_by_side(
        charts.ranges(
            what.capitalize(),
            {
                engine(n): {kind.replace("_", " "): one["fill_least"][kind] for kind in kinds}
                for n, one in engines.items()
            },
        )
        for what, engines in fill["microseconds_of_cpu_a_row"].items()
    )
    yield source(fill)


def compiling(records: Records) -> Iterator[str]:
    """how long it takes until a grammar, a schema or a pattern can be used"""
    record, masks = records["compiling"], records["masks"]
    yield "# Compiling\n\nAll axes are logarithmic.\n\n## Grammars\n"
    yield "CPU time, after what the vocabulary alone decides was worked out. *Lazy* is a store with `lazy=True`, to its first mask.\n"
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for cell in record["cells"]:
        ours = cell["maskwright"]
        values = {"closed": ours["cpu_s"] * 1e6, "lazy": ours["open_cpu_s"] * 1e6}
        if "glrmask" in cell:
            values["glrmask"] = cell["glrmask"]["cpu_s"] * 1e6
        rows.setdefault(cell["vocabulary"], {})[cell["grammar"]] = values
    yield side_by_side(charts.ranges(f"Compiling a grammar, {size(name)}", each) for name, each in rows.items())
    yield source(record)
    yield "## Beside the peers\n"
    yield "CPU time in a fresh process, what the vocabulary alone decides included, and the first mask. "
    yield "What an engine puts off, its masks pay.\n"
    yield side_by_side(
        charts.ranges(
            cell_name(cell),
            {
                engine(name): {"compile": one["compile_cpu_s"] * 1e6, "first mask": one["first_mask_us"]}
                for name, one in measured(cell)
            },
        )
        for cell in masks["cells"]
    )
    yield source(masks)
    yield "## JSON schemas\n\nTo read and compile a schema, and its first mask.\n"
    kinds = {"all": "compile and first mask", "under 1 kB": "compile and first mask, under 1 kB"}
    yield from by_vocabulary(records, "schemas", ("ours", "llguidance"), kinds, "A schema")
    yield "## Patterns\n\nTo compile a pattern, and its first mask.\n"
    yield from by_vocabulary(records, "regexes", (), {"": "compile and first mask, us"}, "A pattern")


def scaling(records: Records) -> Iterator[str]:
    """with the vocabulary, the grammar, the length of the text, nesting, and the batch"""
    record, masks, texts = records["compiling"], records["masks"], records["scaling"]
    yield "# Scaling\n\nAll axes are logarithmic.\n\n## With the vocabulary\n"
    compiled: Points = {}
    for cell in record["cells"]:
        compiled.setdefault(cell["grammar"], []).append((SIZES[cell["vocabulary"]], cell["maskwright"]["cpu_s"] * 1e6))
    means: dict[str, Points] = {work: {} for work in WORKS}
    for cell in masks["cells"]:
        for name, one in measured(cell):
            points = means[cell["work"]].setdefault(engine(name), [])
            points.append((cell["vocabulary"], one["both_us"]["mean"]))
    tokens = "tokens of the vocabulary"
    yield side_by_side(
        [
            charts.lines("Compiling", compiled, tokens),
            *(charts.lines(f"Mask and advance, mean: {WORKS[w]}", curves, tokens) for w, curves in means.items()),
        ]
    )
    yield source(record, masks)
    yield "## With the grammar\n\nThe grammars that come along: compiling, and a mask and an advance over real texts.\n"
    built: Points = {}
    steps: Points = {}
    for one in records.beginning("reach-"):
        for tokenizer, store in one.get("stores", {}).items():
            built.setdefault(size(tokenizer), []).append((store["edges"], store["build_cpu_s"] * 1e6))
            steps.setdefault(size(tokenizer), []).append((store["edges"], store["step_us"]))
    edges = "edges of the stack automaton"
    yield side_by_side(
        charts.lines(title, points, edges, is_joined=False)
        for title, points in (("Compiling", built), ("Mask and advance, mean", steps))
    )
    yield REACH
    for key, title, across in (
        ("length", "With the length of the text", "tokens before"),
        ("nesting", "With nesting", "open brackets"),
    ):
        yield f"## {title}\n\n{texts['what'][key]}\n"
        yield side_by_side(
            charts.lines(
                size(cell["tokenizer"]),
                {
                    engine(name): [(point[key], point["both_us"]["p50"]) for point in points]
                    for name, points in cell[key].items()
                    if points
                },
                across,
            )
            for cell in texts["cells"]
        )
        yield source(texts)
    yield from batches(records)


def batches(records: Records) -> Iterator[str]:
    """The part of `scaling` about batches."""
    masks, gpu = records["masks"], records["gpu"]
    yield "## With the batch\n\nA mask and an advance for each text of a batch, median, on one core.\n"
    curves: dict[str, Points] = {}
    for cell in masks["cells"]:
        for name, one in measured(cell):
            at = {1: one["both_us"]["p50"]}
            at |= {int(n): each["both_us"]["p50"] / int(n) for n, each in one["batches"].items() if "both_us" in each}
            if len(at) > 1:
                curves.setdefault(cell_name(cell), {})[engine(name)] = list(at.items())
    yield side_by_side(charts.lines(title, each, "texts in the batch") for title, each in curves.items())
    yield source(masks)
    yield f"A step of a model on a GPU ({gpu['device']['name']}), with each way to mask it.\n"
    curves = {}
    for cell in gpu["parts"]["decode"]["cells"]:
        points = curves.setdefault(f"{WORKS[cell['work']]}, {size(cell['tokenizer'])}", {})
        for batch in cell["batches"]:
            for name, loop in batch["loops"].items():
                if "step_us" in loop:
                    points.setdefault(name, []).append((batch["batch"], loop["step_us"]["median"]))
    yield side_by_side(charts.lines(title, each, "texts in the batch") for title, each in curves.items())
    yield source(gpu)


def reach(records: Records) -> Iterator[str]:
    """how much of each language the grammars take, and refuse, rightly"""
    found = records.beginning("reach-")
    yield "# Reach\n"
    yield "Real texts that a grammar must accept, and texts that it must refuse, at the right place. "
    yield "The exceptions are known: each has its cause in the record.\n"
    sides = ("positive", "negative")
    yield table(
        ("grammar", "accepted", "exceptions", "refused", "exceptions"),
        [
            (
                f"[{record['grammar']}](record/{record['file']})",
                *(
                    cell
                    for one in map(record.get, sides)
                    for cell in (f"{one['right']:,} of {one['texts']:,}", one["known"])
                ),
            )
            for record in found
        ],
    )
    yield "## Exceptions\n"
    words = {"positive": "is refused", "negative": "is accepted, or refused elsewhere"}
    causes = [(r["grammar"], words[side], e["cause"]) for r in found for side in sides for e in r[side]["exceptions"]]
    yield table(
        ("grammar", "texts", "what happens", "cause"),
        [(cause[0], causes.count(cause), *cause[1:]) for cause in dict.fromkeys(causes)],
    )
    yield REACH


def reduction(records: Records) -> Iterator[str]:
    """what is left of the mask store after each step of streamlining"""
    record, equal = records["streamlining"], records.beginning("mask_equality-")
    yield "# Reduction\n"
    yield "Entries of all lexer states of Lark's python.lark after each step of streamlining, on logarithmic axes. "
    yield "[What the readings and rules are](../docs/measurements.md#streamlining).\n"
    warm = {name.split()[0]: run["entries"] for name, run in record["runs"].items() if name.endswith("warm")}
    entries = warm["mistral-7b-v0.1"]
    kept = [step for step in STEP_LABELS if all(step in entry for entry in entries)]
    names = [STEP_LABELS[step] for step in kept]
    forms = {f"{e['reading']} reading, {RULES_LABELS[e['rules']]}": [e[step] for step in kept] for e in entries}
    sound = {size(name): [each[-1][step] for step in kept] for name, each in warm.items()}
    yield side_by_side(
        [
            charts.steps(f"Entries, {size('mistral-7b-v0.1')}", names, forms),
            charts.steps("Entries, sound reading, rules normalised", names, sound),
        ]
    )
    rows = [(name, *(f"{values[i]:,}" for values in forms.values())) for i, name in enumerate(names)]
    yield table(("after the step", *forms), rows)
    yield source(record)
    yield "## Questions to the parser\n"
    yield "How often the parser is asked for a mask, mean over real files. The masks are the same.\n"
    calls = {size(one["tokenizer"]): dict(list(one["parser_calls_per_mask"].items())[:2]) for one in equal}
    yield side_by_side([charts.ranges("Questions a mask", calls, charts.count)])
    yield source(*equal)


PAGES = {"latency": latency, "compiling": compiling, "scaling": scaling, "reach": reach, "reduction": reduction}


def by_vocabulary(
    records: Records, name: str, engines: Iterable[str], keys: Mapping[str, str], title: str
) -> Iterator[str]:
    """A chart of percentiles for each vocabulary.

    name : the records' names are it and the vocabulary's. engines : by default what the record has under "engines".
    keys : what is measured -> the record's key.
    """
    used = {tokenizer: records[f"{name}-{tokenizer}"] for tokenizer in SIZES}
    drawn = []
    for tokenizer, record in used.items():
        found = {each: record[each] for each in engines} or record["engines"]
        rows = {
            f"{engine(each)}: {when}".removesuffix(": "): {
                level: one[key][level] for level in LEVELS if level in one[key]
            }
            for each, one in found.items()
            for when, key in keys.items()
        }
        drawn.append(charts.ranges(f"{title}, {size(tokenizer)}", rows))
    yield side_by_side(drawn)
    yield source(*used.values())


def measured(cell: Record) -> Iterator[tuple[str, Any]]:
    """The engines of a cell of masks.py that did the work."""
    return ((name, one) for name, one in cell["engines"].items() if one["status"] == "measured")


def left_out(masks: Record) -> Iterator[str]:
    """Which engines did not do the work, and why."""
    for cell in masks["cells"]:
        for name, one in cell["engines"].items():
            if one["status"] != "measured":
                yield f"- {cell_name(cell)}: {engine(name)} {one['status']} ({one['reason']})"
    yield ""


def cell_name(cell: Record) -> str:
    return f"{WORKS[cell['work']]}, V = {cell['vocabulary']:,}"


def size(tokenizer: str) -> str:
    return f"V = {SIZES[tokenizer]:,}"
