"""docs/measurements.md: JSON Schema and regular expressions beside peers."""

from __future__ import annotations

from ..facts import Facts, record
from ..page import Page
from .measurements import SIZES, page

PAGES: tuple[Page, ...] = ()  # the page is measurements.py's
PERCENTILES = ("p50", "mean", "p99")

# JSON Schema
schemas = [record(f"schemas-{vocabulary}") for vocabulary in SIZES.values()]
found = [one.at(engine) for one in schemas for engine in ("ours", "llguidance")]
of_us = found[::2]


def row(
    head: str, facts: list[Facts], path: str, keys: tuple[str, ...] = ("",), within: str = "| | 32,000: maskwright |"
) -> None:
    """A row of the table. facts : of all four columns, or of maskwright's two."""
    cell = " / ".join("#" for _ in keys)
    cells = " ".join(f"{cell} | |" if len(facts) == 2 else f"{cell} |" for _ in facts)
    page.figure(
        f"| {head} | {cells}", *(one(f"{path}/{key}".strip("/")) for one in facts for key in keys), within=within
    )


page.figure("The # schemas of SchemaStore with", of_us[0]("schemas"))
page.figure("| schemas that are read | # | # | # | # |", *(one("schemas") - one("refused") for one in found))
lenient = [one.at("ours, lenient") for one in schemas]
page.figure("| with `lenient=True` | # | | # | |", *(one("schemas") - one("refused") for one in lenient))
# each instance is replayed twice, and counted both times
page.figure("with a token that is refused | # | # | # | # |", *(one("valid tokens refused") / 2 for one in found))
row("read, compile and first mask: p50", found, "compile and first mask/p50")
row("p99", found, "compile and first mask/p99")
page.figure("the same for those under 1 kB (#): p50 |", of_us[0]("compile and first mask, under 1 kB/n"))
page.given("for those under 1 kB", "the benchmark's question")
small = of_us[0]("compile and first mask, under 1 kB/n")
row(f"the same for those under 1 kB ({small}): p50", found, "compile and first mask, under 1 kB/p50")
row("mask: p50 / mean / p99", found, "mask, first", PERCENTILES)
row("mask: p99.9", found, "mask, first/p99.9")
row("mask, again: p50 / mean / p99", found, "mask, second", PERCENTILES)
row("mask and token, again: mean", found, "mask and advance, second/mean")
row("the same in one call (`step`): mean", of_us, "step, third/mean")
row("mask where items are compared: p50 / mean / p99", of_us, "mask where items are compared", PERCENTILES)
many = [one.at("many") for one in schemas]
page.figure(
    "masks of # texts of # schemas | # | | # | |",
    *[many[0]("different schemas")] * 2,
    *(one("128 masks, us") for one in many),
)
page.figure(
    "the same, schemas that compare items among them | # | | # | |",
    *(one("128 masks, with those of schemas that compare items, us") for one in many),
)
page.figure("Items are compared as values in # of the schemas", of_us[0]("schemas that compare items"))
references = sum("leads to nothing that is given" in reason for reason in of_us[0]("reasons").values())
page.figure("Of the # schemas that maskwright refuses, # refer to documents", of_us[0]("refused"), references)
page.figure("Of the # instances,", of_us[0]("valid tokens refused") / 2)
page.figure(
    "A text takes # kB to begin with, a schema's tables # kB",
    many[0]("kB of a text, median"),
    many[0]("kB of a schema's tables, median"),
)
tables = [one("MB of the vocabulary's tables") for one in many]
page.figure("the vocabulary's tables # MB (# MB at 131,072)", *tables)
page.figure("and # CPU seconds (#).", *(one("vocabulary's tables, CPU s") for one in schemas))

# Regular expressions
regexes = [record(f"regexes-{vocabulary}") for vocabulary in SIZES.values()]
ENGINES = ("ours", "index", "outlines", "llguidance", "xgrammar")
page.figure("# common patterns (dates", regexes[0]("patterns"))
page.figure(
    "of the # (#) patterns whose texts all engines take", *(one("patterns that all engines take") for one in regexes)
)
for size, one in zip(SIZES, regexes, strict=True):
    table = f"| V = {size} | store |"
    engines = [one.at(f"engines/{engine}") for engine in ENGINES]
    taken = [one("patterns") - len(engine("refused")) for engine in engines]
    page.figure("| patterns whose text is taken | # | # | # | # | # |", *taken, within=table)
    for head, path, keys in (
        ("compile: p50 / mean / p99", "compile, us", PERCENTILES),
        ("compile and first mask: p50 / p99", "compile and first mask, us", ("p50", "p99")),
        ("mask, first: p50 / mean / p99", "mask, first, us", PERCENTILES),
        ("mask, again: p50 / mean / p99", "mask, again, us", PERCENTILES),
    ):
        row(head, engines, path, keys, table)
    differ = [engine(key) for engine in engines[1:] for key in ("masks that differ from ours", "masks compared")]
    page.figure("| masks that differ from ours | | # of # | # of # | # of # | # of # |", *differ, within=table)
refused = [list(one("engines/outlines/refused").values()) for one in regexes]
slow = [sum("not compiled within 6 s" in why for why in whys) for whys in refused]
page.figure(
    "It refuses # of the texts (# at V = 131,072)", *(len(whys) - n for whys, n in zip(refused, slow, strict=True))
)
page.holds("Two more patterns take it longer than 6 s", slow == [2, 2])
page.given("so over all 100 it takes more than 120 ms", "two of 100 patterns take 6 s or more each")
