"""proofs/README.md"""

from __future__ import annotations

import re

from ..facts import record
from ..page import Page

page = Page("proofs/README.md")
PAGES = (page,)

mutations = record("proof_mutations")
changes = mutations("changes")
rows = {name for change in changes for name in change["theorems"]}
page.given("compiles every file (half a minute)", "20 s where it was tried, and no claim about other machines")
page.given("Needs Coq 8.16 (", "the version of Debian 12")
page.figure("# changes, for each of the # rows one or more", len(changes), len(rows))
of_today = set(re.findall(r"^\| `([\w.]+)` \| .* \| .* \| .* \|$", page.path.read_text(encoding="utf-8"), re.MULTILINE))
page.holds("one made its test fail, as it should", all(change["fails"] for change in changes) and rows == of_today)
