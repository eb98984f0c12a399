"""docs/verify.md"""

from __future__ import annotations

from ..facts import constant, record
from ..page import Page

page = Page("docs/verify.md")
PAGES = (page,)

flips, times = record("verify-flips"), record("verify")
total = flips("total")
page.given("integers of the header without a name | 0 |", "what an unused integer must be")
page.figure("integer of their headers: # changes", sum(total.values()))
page.figure("The loader's checker refused # of them", total["no table"])
page.figure("refused #, and # passed", total["refused"], total["passed"])
page.given("behind up to 150 texts of its store", "an option of the command that made the record")
page.given("until 1,000 of them give another mask", "how many the test asks for")
page.given("refuses all 1,000.", "how many the test asks for")
stores = times("stores")
passed = sorted(each["cpu_s"] for each in stores.values() if each["passed"])
given_up = [each["cpu_s"] for each in stores.values() if each["passed"] is None]
page.figure(
    "Of # grammars with the vocabulary `python-tiny`, # pass in less than # CPU s each, and `go` in #",
    len(stores),
    sum(each < 3 for each in passed),
    3,
    stores["go"]["cpu_s"],
)
page.given("were given up after 200 s", "an option of the command that made the record")
page.figure("they had # to # CPU s by then", min(given_up), max(given_up))
page.holds("None was found wrong", all(each["passed"] is not False for each in stores.values()))
page.limit("more than # million visits", constant("maskstore/verify/verification.py", "MOST_VISITS") / 1e6)
page.limit("a text of more than # readings", constant("decoding/engine/constants.py", "MAX_STACKS"))
page.given("passed after 37 CPU s and `python` after 207", "run once by hand")
page.given("it takes more than 15 GB of memory", "run once by hand")
