"""docs/json-schema.md"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from ..facts import constant, record
from ..page import Page

page = Page("docs/json-schema.md")
PAGES = (page,)
BENCH = Path(__file__).resolve().parents[2] / "bench"

indent = constant("analysis/schema/spacing.py", "DEEPEST_INDENT")
page.limit("a line break with at most # blanks or tabs", indent)
page.limit("to # levels of four blanks", indent // 4)

# Limits
alternatives = constant("maskstore/schema/layout.py", "MOST_SHAPES")
page.limit("# alternatives may stand in one place", constant("analysis/schema/normal.py", "MOST_CLAUSES"))
page.limit("in one place; # of those that `patternProperties`", alternatives)
page.limit("more than # such members", constant("analysis/schema/objects.py", "MOST_WANTED"))
page.limit("Refused for more than # that must be counted together", constant("analysis/schema/arrays.py", "MOST_SETS"))
page.limit("for more than # combinations of counts", constant("analysis/schema/arrays.py", "MOST_ITEM_STATES"))
page.limit("where the automaton would have more than # states", constant("analysis/schema/strings.py", "MOST_STATES"))
page.limit("(# where several patterns", constant("analysis/schema/strings.py", "MOST_COMBINED"))
page.limit("limits keys at more than # characters", constant("analysis/schema/builder.py", "MOST_COUNTED"))
page.limit("where keys match `patternProperties` in more than # ways", constant("analysis/schema/keys.py", "MOST_SETS"))
page.limit("or the patterns have together more than # states", constant("analysis/schema/keys.py", "MOST_STATES"))
counts = record("schemas-counts")
page.figure("Of # schemas of SchemaStore # get a store", counts("schemas"), counts("stores"))
page.figure("# of them by the plain interpreter", len(counts("with items that the plain interpreter compares")))
refused = counts("refused").values()
elsewhere = counts("refused for documents that are not given")
page.parts("Of the other #, # refer to documents that stand elsewhere", len(refused), elsewhere, rest=1)
page.holds("and one asks for an email beside a pattern", sum("/email: " in why for why in refused) == 1)
page.limit("Such texts have at most # readings", constant("decoding/reference/json_texts.py", "MOST_READINGS"))
compared = record("schemas-mistral-7b-v0.1").at("ours/mask where items are compared")
page.figure("# ms at the median of SchemaStore's instances at 32,000 tokens", compared("p50") / 1e3)
page.figure("# ms at the ninetieth percentile, # ms at the 99.9th", compared("p90") / 1e3, compared("p99.9") / 1e3)

# The test suite, beside peers
coverage = record("schema_coverage")
sys.path.insert(0, str(BENCH))
script = runpy.run_path(str(BENCH / "schema_coverage.py"))
sys.path.remove(str(BENCH))
sys.modules.pop("common", None)  # other scripts have their own
typed = coverage("typed/engines")
head, rule, *_, all_typed, as_it_stands = script["table"](coverage("engines"), typed).splitlines()
page.holds("\n".join((head, rule, all_typed, as_it_stands)), True)
page.figure("drafts 7 and 2020-12, # groups)", coverage("groups"))
page.given("says: 5 of 6 schemas are compiled, and of their tests 20 are judged right. 1 instance", "an example")
page.given("2 instances are refused in every", "an example")
page.given("and 3 values that are no instances", "an example")
ours, strict, glrmask = (
    coverage.at(f"typed/engines/{engine}/total") for engine in ("ours", "xgrammar-strict", "glrmask")
)
page.figure("Its # schemas that are not compiled need documents", ours("refused groups"))
refused_groups = {
    name: facts["refused groups"]
    for name, facts in coverage("typed/engines/ours/keywords").items()
    if "refused groups" in facts
}
page.holds("need documents which are not given", refused_groups == {"refRemote": 12, "dynamicRef": 3})
page.figure("With its default # instances are refused and # other values taken", strict("refused"), strict("accepted"))
formats = sum(
    facts.get("accepted", 0) for key, facts in coverage("typed/engines/glrmask/keywords").items() if "format" in key
)
page.figure("as drafts allow: # of its #.", formats, glrmask("accepted"))
page.given("takes longer than the limit (10 s)", "the benchmark's option")
page.holds("maskwright has this suite among its own tests", ours("right") == ours("judged"))
