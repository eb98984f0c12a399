"""README.md"""

from __future__ import annotations

from ..facts import record
from ..page import Page

page = Page("README.md")
PAGES = (page,)

schemas = record("schemas-mistral-7b-v0.1").at("ours")
small, mask = schemas("compile and first mask, under 1 kB/p50") / 1e3, schemas("mask, first/mean")
page.figure(
    "A schema smaller than 1 kB compiles in # ms once the first one has been compiled (median); each mask takes # us",
    small,
    mask,
)
page.given("A schema smaller than 1 kB", "how the record parts the schemas")
of_lark = record("compiling").at("cells/grammar=lark:python,vocabulary=mistral-7b-v0.1/maskwright")
page.figure("a vocabulary of 32,000 tokens takes # s of CPU time", of_lark("cpu_s"))
