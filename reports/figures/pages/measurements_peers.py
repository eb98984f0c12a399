"""docs/measurements.md: JSON Schema and regular expressions beside peers."""

from __future__ import annotations

from ..facts import Facts, constant, record
from ..page import Page
from .measurements import NAMES, SIZES, page

PAGES: tuple[Page, ...] = ()  # the page is measurements.py's
PERCENTILES = ("p50", "mean", "p99")
COUNTS = "reports/bench/peers/schema_counts.py"
WORKER = "reports/bench/peers/regexes.py"

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
page.holds("instances as they stand, in the tokenizer's own tokens", schemas[0]("encoder") == "the tokenizer's own")
page.figure(
    "A text takes # kB to begin with, a schema's tables # kB",
    many[0]("kB of a text, median"),
    many[0]("kB of a schema's tables, median"),
)
tables = [one("MB of the vocabulary's tables") for one in many]
page.figure("the vocabulary's tables # MB (# MB at 131,072)", *tables)
page.figure("and # CPU seconds (#).", *(one("vocabulary's tables, CPU s") for one in schemas))

orders, orders_tekken = (record(f"schema_orders-{vocabulary}") for vocabulary in SIZES.values())
AS_IT_STANDS, OF_SCHEMA = "as it stands", "schema"
page.figure(
    "The # schemas have # instances of at most # tokens; # of these",
    orders("schemas"),
    orders("instances"),
    constant("reports/bench/schema_orders.py", "LONGEST"),
    orders("instances in another order than the schema's"),
)
page.limit("one that takes more than # CPU seconds", constant(COUNTS, "LIMIT"))
for engine in ("ours", "llguidance", "xgrammar", "glrmask", "outlines"):
    one = orders.at(f"engines/{engine}")
    version = () if engine == "ours" else (one("version"),)
    lenient = (one("schemas read leniently"),) if engine in ("ours", "llguidance") else ()
    page.figure(
        f"| {NAMES[engine]} | # | {'# ' * len(lenient)}| # | # | # |",
        *(*version, one("schemas read"), *lenient, one("instances")),
        *(one(f"refused/{order}") for order in (AS_IT_STANDS, OF_SCHEMA)),
        within="| V = 32,000 | schemas read |",
    )
page.figure(
    "At V = 131,072 llguidance refuses # as they stand and # in the schema's order, glrmask # and #, maskwright # and #",
    *(
        orders_tekken(f"engines/{engine}/refused/{order}")
        for engine in ("llguidance", "glrmask", "ours")
        for order in (AS_IT_STANDS, OF_SCHEMA)
    ),
)


def why(engine: str, order: str) -> dict[str, int]:
    """Reason -> instances refused."""
    return dict(orders(f"engines/{engine}/why/{order}"))


ORDER, FORCED = (constant(COUNTS, name) for name in ("ORDER", "FORCED"))
page.figure(
    "# of those that llguidance refuses as they stand, # of xgrammar's, # of glrmask's and # of outlines-core's",
    *(why(engine, AS_IT_STANDS)[ORDER] for engine in ("llguidance", "xgrammar", "glrmask", "outlines")),
)
page.holds(
    "A forced token refuses none",
    not any(
        FORCED in one(f"engines/llguidance/why/{order}")
        for one in (orders, orders_tekken)
        for order in (AS_IT_STANDS, OF_SCHEMA)
    ),
)
page.holds("Of maskwright's 3, `jsonschema` refuses two as well", why("ours", OF_SCHEMA) == {"oneOf": 2, "format": 1})
page.holds("llguidance refuses one then, for a `format`", why("llguidance", OF_SCHEMA) == {"format": 1})
page.holds("glrmask one for a `multipleOf`", why("glrmask", OF_SCHEMA) == {"multipleOf": 1})
of_xgrammar = why("xgrammar", OF_SCHEMA)
page.figure(
    "(# for a `format`, # for a `pattern`, # for `additionalProperties`, # for `anyOf`)",
    *(of_xgrammar[keyword] for keyword in ("format", "pattern", "additionalProperties", "anyOf")),
)
page.figure(
    "of # the masks lack a token though it takes the same bytes in others",
    of_xgrammar[constant(COUNTS, "TOKEN")],
)
page.figure("of # no single keyword was the reason", why("outlines", OF_SCHEMA)[constant(COUNTS, "UNKNOWN")])
page.figure(
    "(# of outlines-core's take its index more than the limit)",
    next(n for why, n in orders("engines/outlines/schemas refused").items() if why.startswith("not done within")),
)
messages = orders("engines/llguidance/schemas refused")
keys = sum(n for message, n in messages.items() if message.startswith("Unimplemented keys"))
unique = sum(n for message, n in messages.items() if "uniqueItems" in message)
one_of, formats, elsewhere = (
    sum(n for message, n in messages.items() if message.startswith(begin))
    for begin in ("oneOf", "Unknown format", "Resource")
)
rest = sum(messages.values()) - keys - one_of - formats
page.parts(
    "Of the # that llguidance refuses, # have keywords that it has not, # a `oneOf`, # a format that it does not know; the other #",
    *(sum(messages.values()), keys, one_of, formats, rest),
)
page.holds("most often refer to documents that are not given", elsewhere > rest / 2)
page.figure("# of the # have `uniqueItems`", unique, keys)

# Regular expressions
regexes = [record(f"regexes-{vocabulary}") for vocabulary in SIZES.values()]
ENGINES = ("ours", "index", "outlines", "llguidance", "xgrammar")
PEERS = ("outlines", "llguidance", "xgrammar")
HEADS = " | ".join(NAMES[engine] for engine in PEERS)
page.figure("# common patterns (dates", regexes[0]("patterns"))
page.figure(
    "of the # (#) patterns whose texts all engines take", *(one("patterns that all engines take") for one in regexes)
)
page.holds("Texts are in the tokenizer's own tokens", regexes[0]("encoder") == "the tokenizer's own")
for size, one in zip(SIZES, regexes, strict=True):
    table = f"| V = {size} | store |"
    engines = [one.at(f"engines/{engine}") for engine in ENGINES]
    page.figure(f"{table} index | {HEADS} |", *(one(f"engines/{engine}/version") for engine in PEERS))
    for head, path, keys in (
        ("compile: p50 / mean / p99", "compile, us", PERCENTILES),
        ("compile and first mask: p50 / p99", "compile and first mask, us", ("p50", "p99")),
        ("mask, first: p50 / mean / p99", "mask, first, us", PERCENTILES),
        ("mask, again: p50 / mean / p99", "mask, again, us", PERCENTILES),
    ):
        row(head, engines, path, keys, table)
compared = [record(f"regexes_counts-{vocabulary}") for vocabulary in SIZES.values()]
table = "| V = 32,000 / 131,072 | index |"
page.figure(f"{table} {HEADS} |", *(compared[0](f"engines/{engine}/version") for engine in PEERS))
cells = " | ".join(["# / #"] * 4)
each = [(one, one.at(f"engines/{engine}")) for engine in ENGINES[1:] for one in compared]
taken = [one("patterns") - len(engine("refused")) for one, engine in each]
page.figure(f"| patterns whose text is taken, of # | {cells} |", compared[0]("patterns"), *taken, within=table)
for head, key in (
    ("masks along them", "masks compared"),
    ("other ones than the store's", "masks that differ from ours"),
    ("of these with one token, which is forced", "of them of one token"),
):
    page.figure(f"| {head} | {cells} |", *(engine(key) for _, engine in each), within=table)
refused = [list(one("engines/outlines/refused").values()) for one in compared]
slow = [sum("within 6 s" in why for why in whys) for whys in refused]
page.figure(
    "outlines-core refuses # of the texts (# at V = 131,072)",
    *(len(whys) - n for whys, n in zip(refused, slow, strict=True)),
)
page.figure("# (#) more patterns take it longer than # CPU seconds", *slow, constant(WORKER, "LIMIT"))
