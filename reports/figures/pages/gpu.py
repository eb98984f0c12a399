"""docs/gpu.md"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import Facts, constant, record
from ..page import Page

page = Page("docs/gpu.md")
PAGES = (page,)
page.given("Four bytes a text cross the bus", "an int32")

gpu = record("gpu")
page.given("4 bytes a text, the number of a row", "an int32")
page.given("CUDA 13 parts", "a version of CUDA")
page.limit("none of the last # equals it", constant("decoding/logits/rows.py", "DEFAULT_CAPACITY"))
page.limit("`n_records` stack frames (#:", constant("decoding/gpu/gpu.py", "FIRST_RECORDS"))
steps = gpu.at("parts/step")
python, json = (steps.at(f"cells/work={work},tokenizer=tekken") for work in ("python", "json"))
page.figure(
    "A slot takes # KB, or # KB where", *(one("batches/batch=256/memory/slot_bytes") / 1e3 for one in (json, python))
)

# What it costs
page.given("(PyTorch 2.11, Triton 3.6, a host with 16 cores", "versions, and the machine")
page.holds(
    "On one NVIDIA H200 (PyTorch 2.11, Triton 3.6", f"{gpu('device/torch')} {gpu('device/triton')}" == "2.11.0 3.6.0"
)
page.figure("a host with # cores", gpu("host/cores"))


def signed(percents: float) -> tuple[str, float]:
    """A cell, and its value."""
    return ("-" if percents < 0 else "+") + "# %", abs(percents)


def loops(cell: Facts, n: int) -> Iterator[tuple[str, float]]:
    """The cells of a row after its number of texts."""
    measured = cell.at(f"batches/batch={n}/loops")
    yield "# ms", measured("unconstrained/step_us/median") / 1e3
    for name in ("resident rows", "GpuBatch, forked", "llguidance", "xgrammar"):
        if name not in measured.facts:
            yield "not measured", 0.0
            continue
        loop = measured.at(name)
        if loop("status") == "measured":
            yield signed(loop("overhead_percent/median"))
        elif "one_step_us" in loop.facts:
            yield "more: # s a step", loop("one_step_us") / 1e6
        else:
            yield "", 0.0


decode = gpu.at("parts/decode")
for work, tokenizer, name in (
    ("python", "tekken", "python, 131,072"),
    ("python", "mistral-7b-v0.1", "python, 32,000"),
    ("json", "tekken", "json, 131,072"),
    ("json", "mistral-7b-v0.1", "json, 32,000"),
):
    cell = decode.at(f"cells/work={work},tokenizer={tokenizer}")
    rows, values = [], []
    for one in cell("batches"):
        if one["loops"]:
            cells = list(loops(cell, one["batch"]))
            rows.append(
                " | ".join(["", "" if rows else name, "#", *(text for text, _ in cells), ""]).replace("  ", " ").strip()
            )
            values += [one["batch"], *(value for text, value in cells if "#" in text)]
    page.figure(" ".join(rows), *values)
resident = [one["loops"]["resident rows"] for cell in decode("cells") for one in cell["batches"] if one["loops"]]
overheads = {
    name: [
        one["loops"][name]["overhead_percent"]["median"]
        for cell in decode("cells")
        for one in cell["batches"]
        if one["loops"]
    ]
    for name in ("GpuBatch", "GpuBatch, forked", "resident rows")
}
page.figure("a step costs up to # % of a model", max(overheads["GpuBatch"] + overheads["GpuBatch, forked"]))
page.figure("where resident rows cost at most # %:", max(overheads["resident rows"]))
page.figure("what is below 0, down to -# %, is noise", abs(min(overheads["resident rows"])))
page.holds("what is below 0", min(overheads["resident rows"]) < 0)
hosts = [loop["host_us"] / 1e3 for loop in resident]
page.figure("The host's work for resident rows is # to # ms a step", min(hosts), max(hosts))
refused = [
    loop
    for cell in decode("cells")
    for one in cell["batches"]
    for loop in one["loops"].values()
    if loop["status"] == "measured"
]
page.holds("No engine refused a token of the texts", not any(loop["forced_refused"] for loop in refused))
page.holds("and no sampled token was outside a mask", not any(loop.get("sampled_outside_masks") for loop in refused))

shapes = [shape for shape in gpu("parts/apply/shapes") if shape["rows"] == "real"]
many = [shape for shape in shapes if shape["batch"] >= 64]
page.given("From 64 texts on", "how the page parts the record")


def edges(name: str) -> tuple[float, float]:
    """The least and the most, in passes over the logits."""
    found = [shape["candidates"][name]["of_pass"] for shape in many]
    return min(found), max(found)


page.figure("`apply_rows` takes # to # times as long", *edges("ours rows"))
page.figure("at # TB/s where they are many", max(shape["pass_gb_per_s"] for shape in many) / 1e3)
page.figure("xgrammar's CUDA kernel # to # times,", *edges("xgrammar cuda"))
page.figure(
    "its Triton kernel # to # times, llguidance's # to # times", *edges("xgrammar triton"), *edges("llguidance")
)
few = [shape["candidates"]["ours rows"]["us"]["median"] for shape in shapes if shape["batch"] < 64]
page.figure(
    "For fewer texts it takes # to # us, of which # are", min(few), max(few), gpu("parts/apply/floor_us/median")
)

sizes = [one["batch"] for one in python("batches")]
cold = [one(f"batches/batch={n}/step_cold_us/median") for one in (python, json) for n in sizes]
page.figure("#, # and # us for #, # and # texts in Python, #, # and # in JSON", *cold[:3], *sizes, *cold[3:])
rows_of_one = python.at("resident_memory")
page.figure("take # MB of the device (# rows)", rows_of_one("device_bytes") / 1e6, rows_of_one("rows"))
page.figure("`GpuBatch` with # texts # MB", 256, python("batches/batch=256/memory/tensors_bytes") / 1e6)

checks = gpu("parts/check/cells")
page.figure("**The same rows.** # rows of both ways", sum(one["rows"] for one in checks))
page.figure("both vocabularies, # texts that come and go", checks[0]["batch"])
page.figure("at random, # illegal tokens among them", sum(one["flagged"] for one in checks))
page.holds("None differs", not any(one["wrong"] for one in checks))
