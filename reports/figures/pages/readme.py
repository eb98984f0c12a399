"""README.md"""

from __future__ import annotations

from ..facts import record
from ..page import Page
from .gpu import overheads

page = Page("README.md")
PAGES = (page,)

schemas = record("schemas-mistral-7b-v0.1").at("ours")
small, mask = schemas("compile and first mask, under 1 kB/p50") / 1e3, schemas("mask, first/mean")
page.figure("A schema under a kilobyte takes # ms (median), a mask # us", small, mask)
compiling = record("compiling")
of_lark = compiling.at("cells/grammar=lark:python,vocabulary=mistral-7b-v0.1/maskwright")
of_python, of_json = (
    compiling.at(f"cells/grammar={name},vocabulary=mistral-7b-v0.1/maskwright") for name in ("python", "json")
)
page.figure("Compiling python.lark takes # CPU seconds at 32,000 tokens", of_lark("cpu_s"))
page.figure(
    '(`"python"` #), and # to a first mask with `lazy=True`; JSON takes #. Before, a process takes # for the vocabulary',
    of_python("cpu_s"),
    of_lark("open_cpu_s"),
    of_json("cpu_s"),
    of_lark("prepare_cpu_s"),
)
engines = record("masks").at("cells/work=python,vocabulary=32000/engines")
page.figure(
    "compiles python.lark without its indentation in #, and then takes # us a token (# in the median) where maskwright takes # (#)",
    engines("llguidance/compile_cpu_s"),
    engines("llguidance/both_us/mean"),
    engines("llguidance/both_us/p50"),
    engines("ours/both_us/mean"),
    engines("ours/both_us/p50"),
)
page.figure("rows on the GPU: at most # % of a step", max(overheads["resident rows"]))
