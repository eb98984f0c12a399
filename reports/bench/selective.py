"""Selective multiplication: the last product alone by number of allowed tokens, and a decode loop forced along texts of two schemas.

    python reports/bench/selective.py [--device cpu|cuda] [--layers 24] [--documents 4] [--quick]

As .txt's post of 2024 has it (a model of phi-1.5's shape, structured texts replayed), but with random weights. The schemas are the post's
first one and the larger one that it stands beside in Outlines' benchmarks (bench_json_schema.py), as grammars under grammars/; of the post
itself only the beginning was at hand. Texts are drawn from the schemas by `random` and cut into tokens of Mistral 7B v0.1, the rest of
phi-1.5's 51,200 columns being padding: its own tokenizer was not at hand either.

What is compared: the full product, bare, with what `selective` does at a step: fill the mask, list its ids, take the selective product or,
past the crossover, the full one. So masks, which have to be made anyway, are charged to the latter only. On CUDA a time is the mean of ten
calls in a row: the few rows of a small product are then in the cache. Without a GPU the part for CUDA says "not measured yet"; on the CPU
the model has two layers by default, so that what a step gains there says nothing of phi-1.5.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, write_record
from peers.tokenizers import encoder
from rich.console import Console
from rich.table import Table

import maskwright as mw
from maskwright.decoding.logits.selective import IdLists, id_lists, measure_crossover, seconds, selective_logits
from maskwright.report.svg import Markup, ladder, node

HERE = Path(__file__).resolve().parent
SCHEMAS = ("character", "recording")
COLOURS = ("#0b6e4f", "#2b59c3", "#c1440e", "#7b3fa0", "#8a6d3b", "#5c6670")
STYLE = """text { font: 12px system-ui, sans-serif; fill: #222; } .quiet { fill: #666; font-size: 11px; }
.rule { stroke: #ddd; fill: none; } .curve { fill: none; stroke-width: 2; } .full { stroke-dasharray: 5 4; } .title { font-weight: 600; }"""
WORDS = (
    "Aldous",
    "Blue",
    "Coltrane",
    "Davis",
    "Giant",
    "Kind",
    "Miles",
    "Steps",
    "Thora",
    "Wren",
    "bass",
    "piano",
    "tenor",
    "trumpet",
)


# ---- The texts


def character(rng: random.Random) -> dict[str, Any]:
    return {
        "name": rng.choice(WORDS)[:10],
        "age": rng.randrange(16, 90),
        "armor": rng.choice(["leather", "chainmail", "plate"]),
        "strength": rng.randrange(1, 20),
    }


def recording(rng: random.Random) -> dict[str, Any]:
    def title() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randrange(1, 4)))

    def artist() -> dict[str, Any]:
        functions = [rng.choice(WORDS) for _ in range(rng.randrange(3))]
        return {"id": rng.randrange(10_000), "name": title(), "functions": functions}

    work = {"id": rng.randrange(10_000), "name": title(), "composer": artist()}
    return {
        "id": rng.randrange(10_000),
        "work": work,
        "recording_artists": [artist() for _ in range(rng.randrange(1, 4))],
    }


def token_lists(schema: str, documents: int, vocabulary: mw.Vocabulary, encode: Any) -> list[list[int]]:
    """Texts of a schema as tokens, the tokenizer's own but for the first, which has no blank before it here."""
    rng = random.Random(schema)
    draw = {"character": character, "recording": recording}[schema]
    found = []
    for _ in range(documents):
        tokens = encode(json.dumps(draw(rng)))
        first = vocabulary.tokens[tokens[0]].removeprefix(b" ")
        found.append([vocabulary.tokens.index(first), *tokens[1:]] if first else tokens[1:])
    return found


# ---- The last product alone


def random_lists(rng: np.random.Generator, batch: int, n: int, columns: int) -> IdLists:
    ids = np.sort(rng.integers(0, columns, (batch, n), dtype=np.int32), axis=1).ravel()
    return IdLists(ids, np.arange(0, batch * n, n, dtype=np.int32), np.full(batch, n, np.int32), n)


def least(torch: Any, call: Any, device: Any, repeats: int) -> float:
    return min(seconds(torch, call, device) for _ in range(repeats)) * 1e3


def head_facts(torch: Any, weight: Any, bias: Any, batch: int, repeats: int) -> dict[str, Any]:
    """Times in ms of the full product and of the selective one by number of ids a row, each row with other ids."""
    rng = np.random.default_rng(batch)
    hidden = torch.randn(batch, weight.shape[1]).to(weight.device, weight.dtype)
    repeats = max(3, repeats // max(1, batch // 4)) if weight.device.type == "cpu" else repeats

    def full() -> Any:
        return torch.nn.functional.linear(hidden, weight, bias)

    full()
    full_ms, curve = least(torch, full, weight.device, repeats), []
    for power in range(len(weight).bit_length()):
        pool = [random_lists(rng, batch, 1 << power, len(weight)) for _ in range(4)]
        turn = iter(pool * 1000)

        def some(turn: Any = turn) -> Any:
            return selective_logits(hidden, weight, next(turn), bias)

        some()
        curve.append([1 << power, round(least(torch, some, weight.device, repeats), 4)])
        if curve[-1][1] > 3 * full_ms:
            break
    full_ms = min(full_ms, least(torch, full, weight.device, repeats))
    crossover = measure_crossover(weight, batch, bias)
    return {"batch": batch, "full_ms": round(full_ms, 4), "selective_ms": curve, "crossover": crossover}


# ---- The decode loop


def loop_facts(torch: Any, model: Any, store: mw.Store, texts: list[list[int]], repeats: int) -> dict[str, Any]:
    """Each step of the texts, one text at a time: tokens allowed, and ms of the layers, of the full product, and of ours.

    Ours is what `selective` does: fill the mask, list its ids, take the selective product up to the crossover and the full one past it.
    """
    head, device = model.lm_head, model.lm_head.weight.device
    columns = head.weight.shape[0]
    limit = measure_crossover(head.weight, 1, head.bias)
    words = np.zeros((1, store.n_words), np.int32)
    steps: list[list[float]] = []
    for tokens in texts:
        matcher, cache = store.matcher(), None
        # what comes before the text: a begin-of-text token
        for position, token in enumerate([1, *tokens]):
            given = torch.tensor([[token]], device=device)
            begin = time.perf_counter()
            out = model.model(given, past_key_values=cache, use_cache=True)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            layers = time.perf_counter() - begin
            cache, hidden = out.past_key_values, out.last_hidden_state[:, -1]

            def full(hidden: Any = hidden) -> Any:
                return head(hidden)

            def ours(hidden: Any = hidden, matcher: Any = matcher) -> Any:
                matcher.fill(words[0])
                lists = id_lists(words, columns, limit)
                return head(hidden) if lists is None else selective_logits(hidden, head.weight, lists, head.bias)

            if position:
                matcher.advance(token)
            if position == len(tokens):
                break
            # in turns, so that what else the machine does meets both
            times = [(seconds(torch, full, device), seconds(torch, ours, device)) for _ in range(repeats)]
            allowed = int(np.unpackbits(words.view(np.uint8)).sum())
            check_same(torch, full(), ours(), words, tokens[position])
            steps.append([allowed, *(1e3 * value for value in (layers, *map(min, zip(*times, strict=True))))])
    rows = np.array(steps)
    selected = rows[:, 0] <= limit
    layers_ms, full_ms, ours_ms = rows[:, 1:].sum(0)
    middle = {
        f"{name}_ms_median": round(statistics.median(rows[some, column].tolist()), 4) if some.any() else None
        for name, some, column in (
            ("layers", np.ones(len(rows), bool), 1),
            ("full", selected, 2),
            ("ours_where_few", selected, 3),
            ("ours_where_many", ~selected, 3),
        )
    }
    return {
        "steps": len(rows),
        "crossover": limit,
        "steps_selected": int(selected.sum()),
        "allowed_median": statistics.median(rows[:, 0].tolist()),
        **middle,
        "head_speedup": round(float(full_ms / ours_ms), 3),
        "step_speedup": round(float((layers_ms + full_ms) / (layers_ms + ours_ms)), 4),
        "per_step": [[int(row[0]), *(round(float(value), 4) for value in row[1:])] for row in rows],
    }


def check_same(torch: Any, full: Any, ours: Any, words: Any, token: int) -> None:
    """Ours are the full product's logits up to rounding, wherever they are finite; the token to come is one of them."""
    finite = torch.isfinite(ours)
    tolerance = {torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 5e-2}[ours.dtype]
    if not finite[0, token] or not torch.allclose(ours[finite], full[finite], rtol=tolerance, atol=tolerance):
        sys.exit("the selective product differs from the full one: nothing was recorded")


# ---- The picture


def picture(facts: dict[str, Any], foot: str) -> str:
    """Panels: the last product by number of ids, one colour a batch; and for each schema its time in each step."""
    width, height = 460.0, 270.0
    panels = [head_panel(facts["head"])]
    panels += [loop_panel(name, facts["schemas"][name]) for name in facts["schemas"]]
    full = height * len(panels) + 30
    placed = [node("g", panel, transform=f"translate(0 {height * i:g})") for i, panel in enumerate(panels)]
    return node(
        "svg",
        node("title", "Selective multiplication: time of the last product by number of allowed tokens, and step by step"),
        node("style", Markup(STYLE)),
        node("rect", width=width, height=full, fill="#fff"),
        *placed,
        node("text", foot, class_="quiet", x=14, y=full - 8),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {full:g}",
        role="img",
    )  # fmt: skip


def frame(title: str, low: float, high: float, across: list[tuple[float, str]], label: str) -> tuple[list[Markup], Any]:
    """Axes of a panel, its vertical one logarithmic in ms; and where a value stands."""
    left, right, top, bottom = 62.0, 446.0, 44.0, 222.0
    ticks = [value / 1e6 for value in ladder(1e6 * low, 1e6 * high)]
    span = np.log(ticks[-1] / ticks[0])

    def up(value: float) -> float:
        return float(bottom - (bottom - top) * np.log(max(value, ticks[0]) / ticks[0]) / span)

    parts = [node("text", title, class_="title", x=14, y=18)]
    for tick in ticks:
        if len(ticks) < 8 or f"{round(1e6 * tick)}"[0] == "1":
            parts.append(node("path", class_="rule", d=f"M{left} {up(tick):.1f}H{right}"))
            parts.append(node("text", f"{tick:g} ms", class_="quiet", x=left - 6, y=up(tick) + 4, text_anchor="end"))
    for share, name in across:
        x = left + (right - left) * share
        parts.append(node("text", name, class_="quiet", x=x, y=bottom + 16, text_anchor="middle"))
    parts.append(node("text", label, class_="quiet", x=right, y=bottom + 32, text_anchor="end"))
    return parts, lambda share, value: f"{left + (right - left) * share:.1f} {up(value):.1f}"


def head_panel(cells: list[dict[str, Any]]) -> Markup:
    times = [ms for cell in cells for _, ms in cell["selective_ms"]] + [cell["full_ms"] for cell in cells]
    most = max(n for cell in cells for n, _ in cell["selective_ms"])
    across = [(np.log(n) / np.log(most), f"{n:,}") for n in (4**i for i in range(9)) if n <= most]
    parts, at = frame("the last product alone", min(times), max(times), across, "allowed tokens of each sequence")
    for i, cell in enumerate(cells):
        name = f"batch {cell['batch']}: crossover {cell['crossover']:,}"
        points = "L".join(at(np.log(n) / np.log(most), ms) for n, ms in cell["selective_ms"])
        parts.append(node("path", node("title", name), class_="curve", stroke=COLOURS[i], d=f"M{points}"))
        flat = f"M{at(0, cell['full_ms'])}L{at(1, cell['full_ms'])}"
        parts.append(
            node("path", node("title", f"full, batch {cell['batch']}"), class_="curve full", stroke=COLOURS[i], d=flat)
        )
        parts.append(node("path", class_="curve", stroke=COLOURS[i], d=f"M{14 + 86 * i} 32h14"))
        parts.append(node("text", f"batch {cell['batch']}", class_="quiet", x=32 + 86 * i, y=36))
    return Markup("".join(parts))


def loop_panel(name: str, facts: dict[str, Any]) -> Markup:
    steps = facts["per_step"][:120]
    times = [ms for _, _, *pair in steps for ms in pair]
    across = [(i / len(steps), f"{i}") for i in range(0, len(steps), 20)]
    share = f"{facts['steps_selected']} of {facts['steps']} steps selected"
    title = f"{name}: {share}, the last product {facts['head_speedup']:.3g}x as fast"
    parts, at = frame(title, min(times), max(times), across, "step (the first 120)")
    for column, shown, extra in ((2, "full product", " full"), (3, "mask and selective product where it pays", "")):
        points = "L".join(at(i / len(steps), step[column]) for i, step in enumerate(steps))
        colour, x = COLOURS[4 - column], 14 + 120 * (column - 2)
        parts.append(node("path", class_=f"curve{extra}", stroke=colour, d=f"M{points}"))
        parts.append(node("path", class_=f"curve{extra}", stroke=colour, d=f"M{x} 32h14"))
        parts.append(node("text", shown, class_="quiet", x=x + 18, y=36))
    return Markup("".join(parts))


# ---- All of it


def measure(torch: Any, options: argparse.Namespace) -> dict[str, Any]:
    from transformers import PhiConfig, PhiForCausalLM

    vocabulary = mw.load_vocabulary("mistral-7b-v0.1")
    encode = encoder("mistral-7b-v0.1")
    dtype = getattr(torch, options.dtype)
    torch.manual_seed(0)
    shape = {
        "num_hidden_layers": options.layers,
        "hidden_size": options.hidden,
        "intermediate_size": 4 * options.hidden,
    }
    with torch.device(options.device), torch.no_grad():
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        model = PhiForCausalLM(PhiConfig(vocab_size=options.columns, num_attention_heads=32, **shape)).eval()
        torch.set_default_dtype(before)
    facts: dict[str, Any] = {
        "shape": {**shape, "vocab_size": options.columns, "dtype": options.dtype},
        "head": [],
        "schemas": {},
    }
    with torch.no_grad():
        for batch in options.batches:
            facts["head"].append(head_facts(torch, model.lm_head.weight, model.lm_head.bias, batch, options.repeats))
        for name in SCHEMAS:
            store = mw.build_store(mw.load_grammar(str(HERE / "grammars" / f"schema_{name}.lark")), vocabulary)
            texts = token_lists(name, options.documents, vocabulary, encode)
            facts["schemas"][name] = loop_facts(torch, model, store, texts, options.repeats)
    return facts


def show(console: Console, facts: dict[str, Any]) -> None:
    table = Table(title="the last product, ms: full, and selective by allowed tokens of each sequence")
    columns = (1, 16, 256, 1024, 4096, 16384)
    for column in ("batch", "full", *(f"{n:,}" for n in columns), "crossover"):
        table.add_column(column, justify="right")
    for cell in facts["head"]:
        times = {n: ms for n, ms in cell["selective_ms"]}
        row = [f"{times[n]:.3g}" if n in times else "" for n in columns]
        table.add_row(str(cell["batch"]), f"{cell['full_ms']:.3g}", *row, f"{cell['crossover']:,}")
    console.print(table)
    for name, schema in facts["schemas"].items():
        console.print(name, {key: value for key, value in schema.items() if key != "per_step"})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default=None, help="default: cuda if there is a GPU")
    parser.add_argument(
        "--dtype",
        choices=["float32", "bfloat16", "float16"],
        default=None,
        help="default: float32 on the CPU, else bfloat16",
    )
    parser.add_argument("--layers", type=int, default=None, help="default: phi-1.5's 24; 2 on the CPU")
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--columns", type=int, default=51_200, help="logits of a token; at least 32,000")
    parser.add_argument("--batches", type=lambda text: [int(n) for n in text.split(",")], default=None)
    parser.add_argument("--documents", type=int, default=4, help="of each schema")
    parser.add_argument("--repeats", type=int, default=7, help="runs whose least time counts")
    parser.add_argument("--quick", action="store_true", help="a smoke run: small, no record, no picture")
    options = parser.parse_args()
    try:
        import torch
        import transformers
    except ImportError as error:
        print(f"{error.name} is not installed (pip install 'maskwright[hf]'): not measured yet")
        return
    has_gpu = torch.cuda.is_available()
    if options.device == "cuda" and not has_gpu:
        print("there is no GPU here: not measured yet")
        return
    options.device = options.device or ("cuda" if has_gpu else "cpu")
    on_cpu = options.device == "cpu"
    options.dtype = options.dtype or ("float32" if on_cpu else "bfloat16")
    options.layers = options.layers or (2 if on_cpu else 24)
    options.batches = options.batches or ([1, 4, 16] if on_cpu else [1, 4, 16, 64, 256])
    if options.quick:
        options.layers, options.hidden, options.documents, options.repeats, options.batches = 1, 128, 1, 2, [1, 2]
    if options.columns < 32_000 or options.hidden % 64 or len(options.batches) > len(COLOURS):
        parser.error("expected at least 32,000 columns, a hidden size that 64 divides, and at most six batches")
    console = Console(width=None if sys.stdout.isatty() else 160)
    load = [round(value, 2) for value in os.getloadavg()]
    facts = measure(torch, options)
    show(console, facts)
    if on_cpu:
        console.print("CUDA: not measured yet" if not has_gpu else "CUDA: run with --device cuda")
    if options.quick:
        return
    name = machine()["cpu"] if on_cpu else torch.cuda.get_device_name()
    device = {
        "device": name,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "threads": torch.get_num_threads(),
    }
    given = ("device", "dtype", "layers", "hidden", "columns", "documents", "repeats")
    command = "python reports/bench/selective.py " + " ".join(f"--{key} {getattr(options, key)}" for key in given)
    command += " --batches " + ",".join(map(str, options.batches))
    after = [round(value, 2) for value in os.getloadavg()]
    rest = {} if has_gpu else {"cuda": "not measured yet"}
    write_record(
        f"selective-{options.device}",
        command,
        {**device, "load_average": {"before": load, "after": after}, **rest, **facts},
    )
    foot = f"{datetime.date.today().isoformat()}, {name}, {options.dtype}, {options.layers} layers; both axes of times are logarithmic"
    (HERE.parent / f"selective-{options.device}.svg").write_text(picture(facts, foot) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
