"""docs/composition.md"""

from __future__ import annotations

from maskwright.analysis.marks import MOST_PARTS

from ..facts import constant, record
from ..page import Page

page = Page("docs/composition.md")
PAGES = (page,)

page.limit(
    "(in XML: up to # members)", constant("analysis/composition/structural_tags_schemas.py", "MOST_IN_ANY_ORDER")
)
page.limit(
    "`maxLength` of more than # for a raw string",
    constant("analysis/composition/structural_tags_xml.py", "MOST_CHARACTERS"),
)
page.limit("`repeat` goes up to # times", constant("analysis/composition/structural_tags.py", "MOST_REPEATS"))
page.limit("one has at most # parts", MOST_PARTS)
page.limit("up to # at a time", constant("decoding/composition/readings.py", "MOST_READINGS"))
rows = record("compositions")("rows")
composed = [row for row in rows if row["texts"] == "composed"]
first = [row["first_fill_mean"] for row in composed]
page.figure("takes # to # us a mask in the mean", min(first), max(first))
page.holds("least of five readings", record("compositions")("rounds") == 5)
for case in ("JSON in a fence", "Python in a tag", "SQL in a JSON string"):
    values = []
    for vocabulary in ("mistral-7b-v0.1", "tekken"):
        of = {row["texts"]: row for row in rows if (row["case"], row["vocabulary"]) == (case, vocabulary)}
        values += [of["composed"][key] for key in ("fill_p50", "fill_mean", "warm_fill_p50")] + [
            of["alone"][key] for key in ("fill_p50", "fill_mean")
        ]
    page.figure(f"| {case} | #, # | # | #, # | #, # | # | #, # |", *values)
for case in dict.fromkeys(row["case"] for row in rows if row["texts"] == "call"):
    of = {row["vocabulary"]: row for row in rows if row["case"] == case}
    steps = [of[name][key] for name in ("mistral-7b-v0.1", "tekken") for key in ("step_mean", "step_p99")]
    page.figure(f"| {case} | #, # | #, # |", *steps)
