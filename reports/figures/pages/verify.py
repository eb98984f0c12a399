"""docs/verify.md"""

from __future__ import annotations

from ..facts import constant, record
from ..page import Page

page = Page("docs/verify.md")
PAGES = (page,)

flips, times = record("verify-flips"), record("verify")
total = flips("total")
page.parts(
    "integer of their headers: # changes. Of these, the loader's checker refused #, `verify` refused #, and the other # passed",
    *(sum(total.values()), total["no table"], total["refused"], total["passed"]),
)
page.given("after up to 150 texts of its store", "an option of the command that made the record")
page.given("until 1,000 of them give another mask", "how many the test asks for")
page.given("refuses all 1,000.", "how many the test asks for")
stores = times("stores")
passed = sorted(each["cpu_s"] for each in stores.values() if each["passed"])
page.holds("all pass", all(each["passed"] for each in stores.values()))
page.figure("Of # grammars with", len(stores))
page.figure("all pass, # of them in less than # CPU s each", sum(each < 3 for each in passed), 3)
longest = max(stores, key=lambda name: float(stores[name]["cpu_s"]))
page.holds("`sql` takes longest", longest == "sql")
for name, text in (("sql", "longest, # CPU s, and # GB of memory"), ("python", "`python` takes # CPU s and # GB")):
    page.figure(text, stores[name]["cpu_s"], stores[name]["peak_mb"] / 1024)
page.given("verify.py --seconds 1500", "an option of the command that made the record")
page.limit("more than # million visits", constant("maskstore/verify/verification.py", "MOST_VISITS") / 1e6)
page.limit("a text of more than # readings", constant("decoding/engine/constants.py", "MAX_STACKS"))
page.given("It was seen in 11 masks", "what is shown above it")
