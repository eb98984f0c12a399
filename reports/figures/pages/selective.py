"""docs/gpu.md: selective multiplication"""

from __future__ import annotations

from ..facts import record
from ..page import Page
from .gpu import page

PAGES: tuple[Page, ...] = ()  # the page is gpu.py's

selective = record("selective-cpu")
shape = selective.at("shape")
page.figure("One core of an EPYC, float32, # x #,", shape("vocab_size"), shape("hidden_size"))
heads = {head["batch"]: head["crossover"] for head in selective("head")}
page.figure("crossover at # ids for one text, # a text for #, # for #.", heads[1], heads[4], 4, heads[16], 16)
schemas = [selective.at(f"schemas/{name}") for name in ("character", "recording")]
allowed = [step[0] for schema in schemas for step in schema("per_step")]
crossover = heads[1]
page.figure(
    "at most # tokens or, within strings, at least #",
    max(n for n in allowed if n <= crossover),
    min(n for n in allowed if n > crossover),
)
page.figure("are # of # and # of # steps", *(schema(key) for schema in schemas for key in ("steps_selected", "steps")))
page.figure("take # ms instead of #;", schemas[0]("ours_where_few_ms_median"), schemas[0]("full_ms_median"))
page.figure("is # and # times as fast. With", *(schema("head_speedup") for schema in schemas))
page.figure("With all # layers of phi-1.5's shape", shape("num_hidden_layers"))
page.figure("which take # and # ms a step on that core", *(schema("layers_ms_median") for schema in schemas))
page.figure("as a whole is # and # times as fast", *(schema("step_speedup") for schema in schemas))

cuda = record("selective-cuda")
page.holds("On one NVIDIA H200", cuda("device") == "NVIDIA H200")
products = {head["batch"]: head for head in cuda("head")}
page.figure(
    "the full product takes # ms for one text and # for #,", products[1]["full_ms"], products[256]["full_ms"], 256
)
least = min(ms for head in products.values() for _, ms in head["selective_ms"])
page.figure("the selective one # ms or more", least)
page.figure("The measured crossover is #, so", max(head["crossover"] for head in products.values()))
loops = [cuda.at(f"schemas/{name}") for name in ("character", "recording")]
page.figure("all # steps of the loop took the full product", sum(loop("steps") for loop in loops))
whole = 100 * max(products[1]["full_ms"] / (products[1]["full_ms"] + loop("layers_ms_median")) for loop in loops)
page.figure("At most # % of a step can be gained there", whole)
page.given("the full product was measured at 56", "the record's 0.056 ms, in the unit of the code")
page.given("if the last product took no time at all: 0.4 %", "what the line computes")
page.holds("took the full product", not any(loop("steps_selected") for loop in loops))
page.figure("as fast as without (# and # times)", *sorted(loop("step_speedup") for loop in loops))
