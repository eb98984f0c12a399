"""docs/measurements.md: tokens that cross lexemes."""

from __future__ import annotations

from ..facts import record
from ..page import Page
from .measurements import page

PAGES: tuple[Page, ...] = ()  # the page is measurements.py's

lookahead = record("lookahead")
page.figure("# functions and classes of the standard library", lookahead("texts"))
page.figure("that the bundled model has not seen, # tokens, under Lark's", lookahead("tokens"))
page.figure("at each place of the true text # are legal", lookahead("greedy_legal"))
for k, one in lookahead("lookahead").items():
    refused = [one[f"{what}_refused_percent"] for what in ("greedy", "true", "mass")]
    page.figure(
        f"| k = {k} | # | # | # | # | # | # |",
        *refused,
        one["tokens"],
        one["free_perplexity"],
        one["masked_perplexity"],
        within="| | likeliest |",
    )
times = lookahead("lookahead/0/masked_perplexity") / lookahead("lookahead/infinity/masked_perplexity")
page.holds("three times the perplexity", 2.5 < times < 3.5)
page.holds(
    "little is left of that",
    lookahead("lookahead/1/masked_perplexity") < 1.05 * lookahead("lookahead/infinity/masked_perplexity"),
)
page.holds(
    "lower it a little",
    lookahead("lookahead/infinity/masked_perplexity") < lookahead("lookahead/infinity/free_perplexity"),
)
