"""docs/grammars: what grammars of the library reach, and their stores."""

from __future__ import annotations

from ..facts import Facts, record
from ..page import Page

SIZES = {"32,000": "mistral-7b-v0.1", "131,072": "tekken"}
KEYS = ("entries", "nodes", "edges", "table_bytes", "build_cpu_s", "engine_us")
PAGES = tuple(
    Page(f"docs/grammars/{name}.md") for name in ("c", "domino", "go", "json", "lark", "python", "sql", "toml")
)
c, domino, go, json, lark, python, sql, toml = PAGES


def stores(page: Page, kind: str, head: str = "| ") -> Facts:
    """The two rows of a grammar's stores. head : what the first row begins with."""
    reach = record(f"reach-{kind}")
    values: list[float] = []
    for vocabulary in SIZES.values():
        store = reach.at(f"stores/{vocabulary}")
        values += [store("table_bytes") / 1e6 if key == "table_bytes" else store(key) for key in KEYS]
    cells = "# | # | # | # MB | # CPU-s | # us |"
    between = "| | " if head != "| " else "| "
    page.figure(f"{head}32,000 | {cells} {between}131,072 | {cells}", *values)
    return reach


c_reach = record("reach-c").at("negative")
c.figure("Four of the # damaged texts", c_reach("texts"))
c.holds("Four of the", c_reach("known") == 4)

drawn = 1_000
domino.given("1,000 texts of each task", "n_texts of tests/support/domino_tasks.py")
for name in ("json_gsm8k", "conll", "xml_person", "rpg_template"):
    both = stores(domino, f"domino.{name}", f"| {name} | ")
    domino.figure("those of # mutants", both("positive/texts") + both("negative/texts") - drawn)
    domino.holds(
        "All verdicts are right",
        all(both(f"{kind}/texts") == both(f"{kind}/right") for kind in ("positive", "negative")),
    )

go_reach = stores(go, "go")
go.given("| 124 files of the evaluation data", "the evaluation data")
go.figure("| # files of Go's standard library", go_reach("positive/texts") - 124)
go.holds("all accepted", go_reach("positive/accepted") == go_reach("positive/texts"))
go.figure("| # mutants of the former", go_reach("negative/refused"))
go.given("of the former (of 1,240)", "ten for each file of the evaluation data")
go.holds("all refused, none before", go_reach("negative/right") == go_reach("negative/texts"))

sizes = {name: stores(json, name, f"| {name} | ") for name in ("json", "json.compact", "json.indent2")}
json.given("(8.2 warns of it)", "a section of the RFC")
json.given("for **16 levels**", "the grammar's file")
json.given("beyond 16 levels", "the grammar's file")
json.given("839 files, 29 y_ and 8 i_", "the evaluation data and JSONTestSuite")
json.given("1,000 mutated files and 72 n_ at the exact byte, 11 files", "the evaluation data and JSONTestSuite")
for name, reached in sizes.items():
    counts = [reached(key) for key in ("positive/accepted", "negative/refused")]
    end = "" if name == "json" else ", there"
    row = {
        "json": "11 files that are not UTF-8",
        "json.compact": "first blank or bad byte",
        "json.indent2": "changed, at that byte",
    }[name]
    json.figure(
        {"json": "i_ of JSONTestSuite", "json.compact": "and without escapes", "json.indent2": "| the same"}[name]
        + " | all # |",
        counts[0],
    )
    json.figure(f"{row} | all #{end} |", counts[1])
    json.holds("must accept", counts == [reached("positive/texts"), reached("negative/texts")])
calls = [reached(f"stores/{vocabulary}/step_us") for reached in sizes.values() for vocabulary in SIZES.values()]
json.figure("two calls from Python cost # to # us", min(calls), max(calls))

lark_reach = stores(lark, "lark")
lark.given("Of 4,000 mutants", "N_MUTANTS of reports/bench/corpora/lark.py")
lark.holds("takes about half", 0.4 < lark_reach("negative/texts") / 4_000 < 0.6)
lark.holds("but one", lark_reach("positive/refused") == 1)

toml_reach = stores(toml, "toml")
toml.given("Integers past 64 bits", "the specification")
valid = toml_reach("positive/texts")
toml.given("| 83 files that tomllib reads", "the evaluation data")
toml.figure(
    "| # files that toml-test calls valid | # accepted; # refused",
    valid - 83,
    toml_reach("positive/accepted") - 83,
    toml_reach("positive/refused"),
)
toml.figure(
    "| # files that toml-test calls invalid | # refused; # accepted",
    *(toml_reach(f"negative/{key}") for key in ("texts", "refused", "accepted")),
)
toml.given("holds 1,500 mutants", "the test")

sql_reach = record("reach-sql")
accepted = sql_reach.at("positive")
sql.figure("| # statements of the evaluation data", accepted("texts"))
sql.figure("no syntax error | # accepted; # refused |", accepted("accepted"), accepted("refused"))
sql.figure("The # are named", accepted("refused"))
sql.given("| 2,700 statements in which it did", "the evaluation data")
sql.figure("| # mutants of the former", sql_reach("negative/refused") - 2_700)
sql.holds("all refused", sql_reach("negative/refused") == sql_reach("negative/texts"))
sql.figure("on all # statements", accepted("texts") + 2_700)

python.given("is newer than 3.10", "a version of Python")
python.given("the lexer of 3.12", "a version of Python")
python.given(
    "more than 100 levels of indentation, 200 of brackets, 150 of f-strings; integers of more than 4,300 digits",
    "CPython's limits",
)
python.given("(`01` is then 1.0)", "an example")
python.given("2,147,483,647 columns of indentation", "the largest of C's ints")
python.given("if that is a 3.13", "a version of Python")
python.given("of CPython 3.13 and 3.11 with", "versions of Python")
python_reach = record("reach-python")
CELLS = "# | # | # | # | # MB | # CPU-s | # us |"
for size, vocabulary in SIZES.items():
    values = []
    for kind in ("stores", "stores of lark:python"):
        store = python_reach.at(f"{kind}/{vocabulary}")
        values += [store(key) for key in ("entries", "nodes", "edges", "held")]
        values += [store("table_bytes") / 1e6, store("build_cpu_s"), store("step_us")]
    python.figure(f"| {size} | `python` | {CELLS} | | `lark:python` | {CELLS}", *values)
python.holds(
    "are accepted without exception",
    all(python_reach(f"{kind}/right") == python_reach(f"{kind}/texts") for kind in ("positive", "negative")),
)

compiled = record("compiling").at("cells/grammar=lark:python,vocabulary=mistral-7b-v0.1/maskwright")
lark.figure("# CPU seconds at V = 32,000", compiled("cpu_s"))
