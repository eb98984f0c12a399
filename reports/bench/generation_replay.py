"""Passes of a model of 0.5 B shape that each way of generating saves, and what that is in time: texts that the model is made to want.

python reports/bench/generation_replay.py [--device cpu|cuda] [--int8] [--texts N] [--repeats N]

The model has the shape of Qwen 2.5 0.5B, random weights, and the columns of Mistral 7B's tokenizer. At each place its likeliest token is
made to be the next one of a text. So each way writes the same text, as a model does that knows what it wants, and all that differs is how
often it is asked, and how many tokens a pass reads. `same` counts the texts that came out as they were wanted.

Texts: random instances of generation.py's schema; counts are those of LEARNED others. The time is that of whole completions: passes and
masks, without what compiles the schema or loads the model. All ways write each text in turn, `--repeats` times, there and back. A way does
the same work each time, so each of its steps counts with its least time, and a way's time is the sum over all steps of all texts. That
leaves out what other programs take from it. "without masks, again" is measured beside the rest: how far it is from 1 is the noise. On the
CPU it is the process's CPU time on one thread, on a GPU the wall clock's. `us_beside_model` is the same CPU time a token with a function
for a model, which has the logits at once: what the loop itself takes. Without PyTorch, or a GPU where one is asked for, it says so and ends
well.

Weights are bfloat16 on a GPU and float32 on a CPU. With --int8 they are bytes there, as where models run on CPUs: PyTorch reads those
once for several tokens. Its product of float32 weights and two tokens takes several times as long as that of one token.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from common import write_record
from generation import LEARNED, SCHEMA, instance
from rich.console import Console
from rich.progress import track
from rich.table import Table

import maskwright as mw
from maskwright.maskstore.vocabulary.encoders import load_encoder

TOKENIZER = "mistral-7b-v0.1"
SHAPE = {
    "num_hidden_layers": 24,
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "tie_word_embeddings": True,
}
ROOM = 64
"""Tokens that a budget has beyond the text, so that none is refused for it."""
BEGIN = 1
"""The tokenizer's begin-of-text token."""
MANY = 20
"""Repeats without a model."""


def wanting(torch: Any, columns: int, device: str, *, is_int8: bool) -> Any:
    """A model that wants `text`, ids: at each place its likeliest token is the one that stands there next."""
    from transformers import LlamaConfig, LlamaForCausalLM

    class Wanting(LlamaForCausalLM):  # type: ignore[misc]
        text: tuple[int, ...] = ()

        @functools.wraps(LlamaForCausalLM.forward)  # generate looks at its parameters
        def forward(self, input_ids: Any = None, **more: Any) -> Any:
            cache = more.get("cache", more.get("past_key_values"))
            begin = cache.get_seq_length() if cache is not None else 0
            found = super().forward(input_ids=input_ids, **more)
            n_rows = found.logits.shape[1]
            behind = begin + input_ids.shape[1] - n_rows + 1
            wanted = [self.text[at] if at < len(self.text) else self.text[-1] for at in range(behind, behind + n_rows)]
            found.logits[0, torch.arange(n_rows), torch.tensor(wanted)] = 1e4
            return found

    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if device == "cuda" else torch.float32)
    try:
        with torch.device(device):
            model = Wanting(LlamaConfig(vocab_size=columns, max_position_embeddings=2048, pad_token_id=None, **SHAPE))
    finally:
        torch.set_default_dtype(before)
    model.eval().requires_grad_(False)
    if is_int8:
        with warnings.catch_warnings():  # torchao is to have it one day
            warnings.simplefilter("ignore")
            model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8, inplace=True)
    return model


class AtOnce:
    """A function for a model that wants `text`, as `wanting`, without a pass."""

    def __init__(self, columns: int) -> None:
        self.text: tuple[int, ...] = ()
        self._logits = np.zeros(columns, np.float32)

    def __call__(self, tokens: list[int]) -> Any:
        found = self._logits.copy()
        found[self.text[len(tokens)]] = 1e4
        return found


def measure(torch: Any, options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    vocabulary = mw.load_vocabulary(TOKENIZER)
    store = mw.build_store(
        mw.load_schema(SCHEMA, whitespace="compact", key_order="schema", escapes="minimal"), vocabulary
    )
    canonical, encode = mw.load_canonical(TOKENIZER), load_encoder(TOKENIZER).tokenize

    def tokenize(text: str) -> list[int]:
        """The tokenizer's own tokens, but for the first, which has no blank before it here."""
        first, *rest = encode(text)
        return [vocabulary.tokens.index(vocabulary.tokens[first].removeprefix(b" ")), *rest]

    rng = random.Random(2)
    counts = mw.TokenCounts(vocabulary)
    for _ in range(LEARNED):
        counts.learn(store.matcher(), tokenize(instance(rng)))
    saved = scratch / "counts.json"
    counts.save(saved)
    texts = [tokenize(instance(rng)) for _ in range(options.texts)]
    model = wanting(torch, vocabulary.size, options.device, is_int8=options.int8)
    function, end = AtOnce(vocabulary.size), vocabulary.eos[0]
    ways: dict[str, dict[str, Any]] = {
        "without masks": {},
        "without masks, again": {},
        "masks": {},
        "masks, own choice first": {"opportunistic": True},
        "forced tokens": {"canonical": canonical, "fast_forward": True},
        "counts": {"counts": True},
        "counts and forced tokens": {"counts": True, "canonical": canonical, "fast_forward": True},
    }
    clock = time.perf_counter if options.device == "cuda" else time.process_time

    def write(name: str, text: list[int], model: Any, clock: Any = clock) -> tuple[mw.Completion, list[float]]:
        """The text as one way writes it, and the seconds of each step."""
        more = dict(ways[name])
        if "counts" in more:  # what a text adds to them is not kept
            more["counts"] = mw.TokenCounts.load(saved, vocabulary)
        model.text = (BEGIN, *text, end)
        marks = [clock()]
        matcher = None if name.startswith("without masks") else store.matcher(max_rollback=64)
        steps = mw.generate(model, matcher, [BEGIN], vocabulary=vocabulary, max_tokens=len(text) + ROOM, **more)
        marks += [clock() for _ in steps]
        marks.append(clock())
        return steps.completion, [after - before for before, after in pairwise(marks)]

    for name in ways:  # what a first call prepares is not counted
        write(name, texts[0], model)
    facts: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for text in track(texts, "texts", transient=True):
        found = defaultdict(list)
        for turn in range(options.repeats):
            for name in list(ways)[:: -1 if turn % 2 else 1]:
                found[name].append(write(name, text, model))
        for name, runs in found.items():
            one, at_once = runs[0][0], [write(name, text, function, time.process_time) for _ in range(MANY)]
            facts[name].append(
                {
                    "model_calls": one.model_calls,
                    "forced": one.forced,
                    "predicted": one.predicted,
                    "same": all(list(one.tokens) == text for one, _ in runs),
                    "seconds": least(runs),
                    "beside": least(at_once),
                }
            )
    n_tokens = sum(len(text) + 1 for text in texts)
    sums = {name: {key: sum(one[key] for one in found) for key in found[0]} for name, found in facts.items()}
    return {
        name: {
            "texts": len(texts),
            "tokens": n_tokens,
            "model_calls": one["model_calls"],
            "calls_a_token": round(one["model_calls"] / n_tokens, 3),
            "forced": one["forced"],
            "predicted": one["predicted"],
            "same": one["same"],
            "ms_a_token": round(1e3 * one["seconds"] / n_tokens, 3),
            "us_beside_model": round(1e6 * one["beside"] / n_tokens, 1),
            "speedup": round(sums["without masks"]["seconds"] / one["seconds"], 3),
        }
        for name, one in sums.items()
    }


def least(runs: list[tuple[mw.Completion, list[float]]]) -> float:
    """The seconds of a text, each step with its least."""
    return sum(map(min, zip(*(steps for _, steps in runs), strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--int8", action="store_true", help="weights of a byte each, on the CPU")
    parser.add_argument("--texts", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5, help="how often each way writes each text")
    options = parser.parse_args()
    if options.int8 and options.device != "cpu":
        parser.error("--int8 is for --device cpu")
    try:
        import torch
        import transformers
    except ImportError as error:
        print(f"{error.name} is not installed: not measured")
        return
    if options.device == "cuda" and not torch.cuda.is_available():
        print("there is no GPU here: not measured")
        return
    if options.device == "cpu":
        torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(torch, options, Path(folder))
    shown = ("tokens", "model_calls", "calls_a_token", "same", "ms_a_token", "us_beside_model", "speedup")
    table = Table("", *shown)
    for name, one in found.items():
        table.add_row(name, *(str(one[key]) for key in shown))
    Console().print(table)
    facts = {
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "threads": torch.get_num_threads(),
        "weights": "int8" if options.int8 else "bfloat16" if options.device == "cuda" else "float32",
        "shape": SHAPE,
        "learned": LEARNED,
        "repeats": options.repeats,
        "ways": found,
    }
    command = " ".join(["python", "reports/bench/generation_replay.py", *sys.argv[1:]])
    write_record(f"generation_replay-{'int8' if options.int8 else options.device}", command, facts)


if __name__ == "__main__":
    main()
