"""docs/restrictions.md"""

from __future__ import annotations

from ..facts import record
from ..page import Page

page = Page("docs/restrictions.md")
PAGES = (page,)

page.given("4, 8, .. 40 columns", "what the restriction means")
page.given("4,096 tokens", "the bundled vocabulary")
rows = {row["name"]: row for row in record("restrictions-python-tiny")("rows")}
times = {way: [row[way]["mean_us"] for row in rows.values()] for way in ("restricted", "unrestricted")}
page.figure(
    "# to # us with, # to # us without",
    *(edge(times[way]) for way in ("restricted", "unrestricted") for edge in (min, max)),
)


def percents(name: str) -> float:
    """How many more nodes the store has."""
    return 100 * rows[name]["nodes"] / rows["none"]["nodes"] - 100


page.figure("`no_comments` has # % fewer nodes", -percents("no_comments"))
page.figure(
    "names and imports # % more at most",
    max(percents(name) for name in ("function_name", "class_name", "variable_name", "all names", "imports")),
)
page.figure("`whitespace` # % more", percents("whitespace"))
