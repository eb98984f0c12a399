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

names = record("names")
few, many = names.at("masks/10000 names"), names.at("masks/100000 names")
files = names.at("real_files")

page.figure("a mask without names took # us", names("masks/mask_us_without_names"))
page.figure("took # ms for # names and # ms for #;", few("restrict_ms"), 10_000, many("restrict_ms"), 100_000)
for where, saying in {
    "where_the_name_begins": "# and # us where the name begins",
    "behind_get_": "# and # us after `get_`",
    "behind_get_pat": "# and # us where few names are left",
}.items():
    page.figure(saying, few(f"mask_us_{where}"), many(f"mask_us_{where}"))
firsts = names.at("first_lists")
page.figure(
    "was there after # s behind `os.`, # s in scope, # s behind `import ` and # s behind `lark.`",
    firsts("os./seconds"),
    firsts("scope/seconds"),
    firsts("import/seconds"),
    firsts("lark./seconds"),
)
page.figure("after # s of CPU behind `lark.`", names("first_tokens/lark./with names"))
n_held = sum(files("held").values())
n_missed = sum(files("refused").values()) + files("refused_imports_not_installed")
page.parts(
    "Of the # places that were held in real files, the lists had the true name at #; the other # are imports",
    n_held,
    n_held - n_missed,
    files("refused_imports_not_installed"),
)
with_names, without = names.at("completions/with names"), names.at("completions/without names")
page.figure(
    "Of # completions # had only names that exist where jedi lists them, and # without names",
    with_names("texts"),
    with_names("texts_whose_listed_names_all_exist"),
    without("texts_whose_listed_names_all_exist"),
)
