"""Selective multiplication: the last product alone by number of allowed tokens, and a decode loop forced along texts of two schemas.

    python reports/bench/selective.py [--device cpu|cuda] [--layers 24] [--documents 100] [--quick]

As .txt's post of 2024 has it (a model of phi-1.5's shape, structured texts replayed), but with random weights. The schemas are the post's
two, read as Outlines reads them: members in the schema's order and no others, a blank or none where JSON allows white space. Texts are
drawn from the schemas by `random` and cut into tokens of Mistral 7B v0.1, the rest of phi-1.5's 51,200 columns being padding: its own
tokenizer was not at hand. The pictures are the post's: for each schema the time of a token in each text by the share of tokens for which
the selective product was used, and violins of these times by number of ids.

What is compared: the full product, bare, with what `selective` does at a step: fill the mask, list its ids, take the selective product or,
past the crossover, the full one. So masks, which have to be made anyway, are charged to the latter only. Both run in turn, and the least
of several times counts: on the CPU CPU time of the calling thread (`seconds` says why). On CUDA a time is the mean of ten calls in a row:
the few rows of a small product are then in the cache. Without a GPU the part for CUDA says "not measured yet"; on the CPU
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
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from common import least_in_turn, machine, write_record
from peers.tokenizers import encoder
from rich.console import Console
from rich.table import Table
from selective_chart import COLOURS, SHOWN, picture

import maskwright as mw
from maskwright.decoding.logits.selective import IdLists, id_lists, measure_crossover, seconds, selective_logits

HERE = Path(__file__).resolve().parent
ARTIST = {
    "type": "object",
    "properties": {
        "id": {"type": "number"},
        "name": {"type": "string"},
        "functions": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["id", "name", "functions"],
}
WORK = {"id": {"type": "number"}, "name": {"type": "string"}, "composer": {"$ref": "#/definitions/artist"}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "character": {
        "title": "Character",
        "type": "object",
        "$defs": {"Armor": {"type": "string", "enum": ["leather", "chainmail", "plate"]}},
        "properties": {
            "name": {"type": "string", "maxLength": 10},
            "age": {"type": "integer"},
            "armor": {"$ref": "#/$defs/Armor"},
            "strength": {"type": "integer"},
        },
        "required": ["name", "age", "armor", "strength"],
    },
    "recording": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "title": "Schema for a recording",
        "type": "object",
        "definitions": {"artist": ARTIST},
        "properties": {
            "id": {"type": "number"},
            "work": {"type": "object", "properties": WORK},
            "recording_artists": {"type": "array", "items": {"$ref": "#/definitions/artist"}},
        },
        "required": ["id", "work", "recording_artists"],
    },
}
"""The post's simple and its complex one."""
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


def store_of(schema: dict[str, Any], vocabulary: mw.Vocabulary) -> Any:
    read = mw.load_schema(schema, whitespace=" ?", key_order="schema", additional_properties=False)
    return mw.build_store(read, vocabulary)


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
    return IdLists(ids, np.full(batch, n, np.int32))


def head_facts(torch: Any, weight: Any, bias: Any, batch: int, repeats: int) -> dict[str, Any]:
    """Times in ms of the full product and of the selective one by number of ids a row, each row with other ids."""
    rng = np.random.default_rng(batch)
    hidden = torch.randn(batch, weight.shape[1]).to(weight.device, weight.dtype)
    repeats = max(3, repeats // max(1, batch // 4)) if weight.device.type == "cpu" else repeats

    def full() -> Any:
        return torch.nn.functional.linear(hidden, weight, bias)

    def clock(call: Any) -> float:
        return 1e3 * seconds(torch, call, weight.device)

    full()
    full_ms, curve = float("inf"), []
    for power in range(len(weight).bit_length()):
        pool = [random_lists(rng, batch, 1 << power, len(weight)) for _ in range(4)]
        turn = iter(pool * 1000)

        def some(turn: Any = turn) -> Any:
            return selective_logits(hidden, weight, next(turn), bias)

        some()
        some_ms, beside = least_in_turn((some, full), repeats, clock)
        full_ms = min(full_ms, beside)
        curve.append([1 << power, round(some_ms, 4)])
        if curve[-1][1] > 3 * full_ms:
            break
    crossover = measure_crossover(weight, batch, bias)
    return {"batch": batch, "full_ms": round(full_ms, 4), "selective_ms": curve, "crossover": crossover}


# ---- The decode loop


def loop_facts(torch: Any, model: Any, store: mw.Store, texts: list[list[int]], repeats: int) -> dict[str, Any]:
    """Each step of the texts, one text at a time: tokens allowed, and ms of the layers, of the full product, and of ours.

    per_step : so of the first `SHOWN`. per_text : steps, selected ones, and ms of these three. by_ids : number of steps and of
    selected ones by the power of two that the allowed tokens reach, and how often a token took so many ms, with the full product and
    with ours, to two digits.

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
            outs: list[Any] = []

            def forward(given: Any = given, cache: Any = cache, outs: Any = outs) -> None:
                outs.append(model.model(given, past_key_values=cache, use_cache=True))

            layers = seconds(torch, forward, device, 1)
            cache, hidden = outs[0].past_key_values, outs[0].last_hidden_state[:, -1]

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
            times = least_in_turn((full, ours), repeats, lambda call: seconds(torch, call, device))
            allowed = int(np.unpackbits(words.view(np.uint8)).sum())
            check_same(torch, full(), ours(), words, tokens[position])
            steps.append([allowed, *(1e3 * value for value in (layers, *times))])
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
        "per_step": [[int(row[0]), *(round(float(value), 4) for value in row[1:])] for row in rows[:SHOWN]],
        "per_text": per_text(rows, selected, [len(tokens) for tokens in texts]),
        "by_ids": by_ids(rows, selected),
    }


def per_text(rows: Any, selected: Any, lengths: list[int]) -> list[list[float]]:
    ends = np.cumsum(lengths)
    return [
        [n, int(selected[end - n : end].sum()), *(round(float(value), 3) for value in rows[end - n : end, 1:].sum(0))]
        for n, end in zip(lengths, ends, strict=True)
    ]


def by_ids(rows: Any, selected: Any) -> list[dict[str, Any]]:
    powers = np.log2(rows[:, 0]).astype(int)
    found = []
    for power in sorted(set(powers.tolist())):
        some = powers == power
        times = {name: rows[some, 1] + rows[some, column] for name, column in (("full", 2), ("ours", 3))}
        counted = {name: Counter(f"{value:.2g}" for value in each.tolist()) for name, each in times.items()}
        counts = {"ids_at_least": 1 << power, "steps": int(some.sum()), "selected": int(selected[some].sum())}
        found.append(
            {
                **counts,
                **{name: dict(sorted(each.items(), key=lambda one: float(one[0]))) for name, each in counted.items()},
            }
        )
    return found


def check_same(torch: Any, full: Any, ours: Any, words: Any, token: int) -> None:
    """Ours are the full product's logits up to rounding, wherever they are finite; the token to come is one of them."""
    finite = torch.isfinite(ours)
    tolerance = {torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 5e-2}[ours.dtype]
    if not finite[0, token] or not torch.allclose(ours[finite], full[finite], rtol=tolerance, atol=tolerance):
        sys.exit("the selective product differs from the full one: nothing was recorded")


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
        for name, schema in SCHEMAS.items():
            store = store_of(schema, vocabulary)
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
        console.print(
            name, {key: value for key, value in schema.items() if key not in ("per_step", "per_text", "by_ids")}
        )


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
    parser.add_argument("--documents", type=int, default=100, help="of each schema")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch on the CPU")
    parser.add_argument("--repeats", type=int, default=3, help="runs whose least time counts")
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
    torch.set_num_threads(options.threads)
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
    given = ("device", "dtype", "layers", "hidden", "columns", "documents", "threads", "repeats")
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
