"""README.md"""

from __future__ import annotations

from ..facts import record
from ..page import Page

page = Page("README.md")
PAGES = (page,)

schemas = record("schemas-mistral-7b-v0.1").at("ours")
small, mask = schemas("compile and first mask, under 1 kB/p50") / 1e3, schemas("mask, first/mean")
page.figure("A schema under a kilobyte compiles in # ms (median); each mask takes # us", small, mask)
of_lark = record("compiling").at("cells/grammar=lark:python,vocabulary=mistral-7b-v0.1/maskwright")
page.figure("Compiling python.lark takes # CPU seconds at 32,000 tokens", of_lark("cpu_s"))
