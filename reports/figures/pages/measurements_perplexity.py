"""docs/measurements.md: texts by templates, under masks, and free."""

from __future__ import annotations

from ..facts import record
from ..page import Page
from .measurements import page

PAGES: tuple[Page, ...] = ()  # the page is measurements.py's

HEADS = {
    "free": "the model alone",
    "masks": "masks of `python`",
    "template": "the template",
    "naturalised": "the template, naturalised",
    "pattern": "its pattern, under masks",
    "canonical": "the same, canonical tokens",
}
found = record("perplexity")
page.figure("after # functions of the standard library that it has not seen", found("prompts"))
page.figure("it writes # tokens at most", found("max_tokens"))
page.figure("without any masks, of the # texts together", found("prompts"))
page.holds("of the 50 texts together", all(way["texts"] == found("prompts") for way in found("ways").values()))
bits: dict[str, tuple[float, float]] = {}
own_bits: dict[str, float] = {}
for temperature, how in ((0, "greedily"), (1, "temperature 1")):
    for way, head in HEADS.items():
        one = found.at(f"ways/{way}, temperature {temperature}")
        written, again, own = one("written"), one("again"), one("retokenised")
        values = (*written.values(), *again.values(), *own.values())
        page.figure(f"| {head}, {how} | {' | '.join('#' * 10)} |", one("same"), *values)
        own_bits[f"{way}, {temperature}"] = own["bits_a_byte"]
        bits[f"{way}, {temperature}"] = written["bits_a_byte"], again["bits_a_byte"]
page.given("temperature 1", "the benchmark's option")
page.holds(
    "as likely as the model's own, to 2 %",
    all(bits[f"masks, {at}"][0] < 1.02 * bits[f"free, {at}"][0] for at in (0, 1)),
)
page.holds(
    "Its text is a little likelier once it is spelled as usual, if the model chose greedily",
    0.9 * bits["template, 0"][0] < bits["template, 0"][1] < bits["template, 0"][0],
)
page.holds(
    "The pattern under masks is likelier in the tokenizer's spelling",
    all(bits[f"pattern, {at}"][1] < min(bits[f"template, {at}"]) for at in (0, 1)),
)
page.holds(
    "tokens](generation.md#canonical-and-forced-tokens) as it is written",
    all(bits[f"canonical, {at}"][0] < min(bits[f"template, {at}"]) for at in (0, 1)),
)
page.holds(
    "the free text is worse the second time, and the template's too",
    all(bits[f"{way}, 1"][1] > bits[f"{way}, 1"][0] for way in ("free", "template")),
)
page.holds(
    "no likelier* than with its own tokens",
    all(bits[f"naturalised, {at}"][0] > bits[f"template, {at}"][0] for at in (0, 1)),
)
given_back = ("free, 0", "masks, 0", "pattern, 0")
page.holds(
    "what the model alone, masks and pattern wrote greedily", all(own_bits[way] == bits[way][0] for way in given_back)
)
page.holds(
    "makes every other text less likely than",
    all(own > bits[way][1] for way, own in own_bits.items() if way not in given_back),
)
