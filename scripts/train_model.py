"""Train the bundled model: a Llama of 2.4 M parameters and its byte-level BPE, on the Python standard library.

    python scripts/train_model.py --minutes 60 -o FOLDER [--library PATH ...] [--device cuda]

In: the standard library of the running Python, then those that --library names (folders like lib/python3.12). Out: a folder
in the Hugging Face layout. Needs torch, transformers, tokenizers, safetensors, rich and maskwright; nothing is downloaded.

The clock rules: learning rate and context length are functions of the share of --minutes that is over, so the run ends
well on a slow machine too, only earlier in the text. Ctrl-C exports what is there; the same command resumes from the
checkpoint beside FOLDER. Two runs with one seed on one machine differ, since they do not make the same number of steps.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import json
import math
import platform
import signal
import sys
import sysconfig
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from maskwright.models import is_held_out

END, PAD = "<|endoftext|>", "<|pad|>"  # END stands between files: begin and end of text in one; ids 0 and 1
N_TOKENS = 4096
CONTEXT = 512
TOKENS_PER_STEP = 2048
# From this share of the time on, sequences of this many tokens. Short ones are cheaper, and most of what there is to learn is near.
PHASES = ((0.0, 256), (0.75, CONTEXT))
WARM_UP = 0.02
# With steps this small 0.02 and 4e-3 are too high: loss held out stood at 4.6 nats until they had fallen below 0.4 of that.
MUON_RATE, ADAM_RATE, DECAY = 0.01, 2e-3, 0.05
LIBRARY_PASSES = 8  # per pass over tests/ and test/: a completion should look like a library, not like a unit test
# A newline brings the indentation behind it; a word brings the space before it and its leading underscores.
SPLIT = r"(?:\r?\n[ \t]*)+| ?(?:_*\p{L}+|_+|\p{N}{1,3}|[^\s_\p{L}\p{N}]+)|[^\S\r\n]+(?!\S)|\s"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts of Python files; `library` and `tests` are for training, `held_out` (no tests) is for judging. No path is in two of them."""

    library: list[str]
    tests: list[str]
    held_out: list[str]


def read_corpus(folders: list[Path]) -> Corpus:
    """The files of the folders that `ast.parse` takes; of several with one relative path the first folder's.

    Left out: tables (over 12 % digits, encodings/, pydoc_data/), and files a quarter of whose longer lines are also in
    a held-out file (code that was moved between two versions).
    """
    found: dict[str, str] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            name = path.relative_to(folder).as_posix()
            if name in found or name.startswith(("site-packages/", "encodings/", "pydoc_data/", "_sysconfigdata")):
                continue
            try:
                text = path.read_bytes().decode("utf-8")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ast.parse(text)
            except (SyntaxError, ValueError, RecursionError, OSError):
                continue
            if len(text) >= 64 and sum(map(text.count, "0123456789")) <= 0.12 * len(text):
                found[name] = text
    held_lines = {line for name, text in found.items() if is_held_out(name) for line in _long_lines(text)}
    library: list[str] = []
    tests: list[str] = []
    held_out: list[str] = []
    for name, text in sorted(found.items()):
        is_test = not {"test", "tests", "idle_test"}.isdisjoint(name.split("/"))
        lines = _long_lines(text)
        if is_held_out(name):
            held_out += [] if is_test else [text]
        elif sum(line in held_lines for line in lines) <= len(lines) / 4:
            (tests if is_test else library).append(text)
    return Corpus(library, tests, held_out)


def _long_lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.splitlines()) if len(line) >= 30]


def train_tokenizer(texts: list[str]) -> Tokenizer:
    """Byte-level BPE of N_TOKENS tokens: END, PAD, all 256 bytes, then merges inside the pieces that SPLIT makes."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=N_TOKENS,
        special_tokens=[END, PAD],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=24,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def build_model() -> LlamaForCausalLM:
    """Random weights; blocks begin as the identity (their output projections are 0)."""
    config = LlamaConfig(
        vocab_size=N_TOKENS,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=3,
        num_key_value_heads=1,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=1,
        attention_dropout=0.0,
        dtype="float32",
    )
    model = LlamaForCausalLM(config)
    for layer in model.model.layers:
        torch.nn.init.zeros_(layer.self_attn.o_proj.weight)
        torch.nn.init.zeros_(layer.mlp.down_proj.weight)
    return model


class Muon(torch.optim.Optimizer):
    """Momentum steps whose matrices are replaced by (nearly) their orthogonal factor: W -= rate * U V^T for M = U S V^T.

    For matrices only. Cost: 5 iterations of 3 products per matrix. Source: Jordan et al., Muon, 2024; its coefficients.
    Unlike torch.optim.Muon it stays in float32 on a CPU, where bfloat16 products are emulated, and takes equal shapes together.
    """

    def __init__(self, matrices: list[torch.nn.Parameter], momentum: float = 0.95) -> None:
        by_shape: dict[tuple[int, ...], list[torch.nn.Parameter]] = {}
        for matrix in matrices:
            by_shape.setdefault(tuple(matrix.shape), []).append(matrix)
        groups = [{"params": group} for group in by_shape.values()]
        super().__init__(groups, {"lr": 0.0, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            matrices, rate, momentum = group["params"], group["lr"], group["momentum"]
            grads = torch.stack([matrix.grad for matrix in matrices])
            state = self.state[matrices[0]]
            mean = state.setdefault("mean", torch.zeros_like(grads))
            mean.lerp_(grads, 1 - momentum)
            steps = orthogonal_factors(grads.lerp(mean, momentum))
            scale = rate * math.sqrt(max(1.0, grads.shape[1] / grads.shape[2]))
            for matrix, step in zip(matrices, steps, strict=True):
                matrix.mul_(1 - rate * DECAY).sub_(step, alpha=scale)


def orthogonal_factors(matrices: torch.Tensor) -> torch.Tensor:
    """U V^T of each matrix of a stack, to about 30 % in the singular values, by 5 quintic Newton-Schulz iterations."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.mT if tall else x


def windows(library: list[np.ndarray], tests: list[np.ndarray], length: int, seed: list[int]) -> Iterator[np.ndarray]:
    """Without end: `length` + 1 successive tokens of the files laid end to end, in random order; each pass lays them anew."""
    passes = 0
    while True:
        random = np.random.default_rng([*seed, length, passes])
        files = library * LIBRARY_PASSES + tests
        stream = np.concatenate([files[i] for i in random.permutation(len(files))])
        starts = np.arange(int(random.integers(length)), len(stream) - length - 1, length)
        for start in random.permutation(starts):
            yield stream[start : start + length + 1]
        passes += 1


@torch.no_grad()
def held_out_loss(model: LlamaForCausalLM, stream: np.ndarray, n_windows: int, device: str) -> float:
    """Mean nats per token over up to `n_windows` windows of CONTEXT tokens spread evenly over the stream."""
    starts = np.linspace(0, len(stream) - CONTEXT - 1, n_windows).astype(int)
    losses = []
    for start in starts:
        tokens = torch.from_numpy(stream[start : start + CONTEXT + 1].astype(np.int64)).to(device)[None]
        logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
        losses.append(cross_entropy(logits[0].float(), tokens[0, 1:]).item())
    return float(np.mean(losses))


def export(folder: Path, model: LlamaForCausalLM, tokenizer: Tokenizer) -> None:
    """config.json, generation_config.json, model.safetensors (float16), tokenizer.json, tokenizer_config.json.

    The configuration asks for float32: weights are kept in half the space, but a CPU computes slowly in float16.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=END,
        eos_token=END,
        pad_token=PAD,
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )
    fast.save_pretrained(folder)
    half = LlamaForCausalLM(model.config).to(torch.float16)
    half.load_state_dict(model.state_dict())
    half.save_pretrained(folder)
    # TokenizersBackend is what transformers 5 calls PreTrainedTokenizerFast; it knows both names, 4 only this one.
    changes = {
        "config.json": ("dtype", "float32"),
        "tokenizer_config.json": ("tokenizer_class", "PreTrainedTokenizerFast"),
    }
    for name, (key, value) in changes.items():
        settings = json.loads((folder / name).read_text(encoding="utf-8")) | {key: value}
        (folder / name).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    (folder / "model.safetensors").chmod(0o644)  # safetensors lets only its owner read it


def keep_freed_memory() -> None:
    """Let malloc keep what is freed, where it is glibc's.

    PERF: a step allocates tensors of 64 MB, each of which is fresh pages else; 1,000 -> 1,700 tokens/s (one core, EPYC Milan).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for parameter, value in ((-4, 0), (-1, 2**31 - 1), (-2, 2**28)):  # M_MMAP_MAX, M_TRIM_THRESHOLD, M_TOP_PAD
        mallopt(parameter, value)


def main() -> None:
    keep_freed_memory()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--minutes", type=float, required=True, help="length of the run, those of resumed runs included"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--library", type=Path, action="append", default=[], metavar="PATH", help="a further library")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, help="of a CPU; default: all")
    parser.add_argument("--export-every", type=float, default=10, metavar="MINUTES")
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="default: FOLDER.checkpoint.pt")
    parser.add_argument("--no-compile", action="store_true", help="for machines without a C++ compiler")
    options = parser.parse_args()
    if not 0 < options.minutes < math.inf:
        parser.error(f"--minutes {options.minutes}: a positive number is needed")
    for path in options.library:
        if not (path / "ast.py").is_file():
            parser.error(f"--library {path}: no ast.py there; name a folder like lib/python3.12")
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a shell starts background jobs deaf to it
        signal.signal(number, signal.default_int_handler)
    if options.threads:
        torch.set_num_threads(options.threads)
    train(options)


def train(options: argparse.Namespace) -> None:
    torch.manual_seed(options.seed)
    device, output = options.device, options.output
    checkpoint = options.checkpoint or output.with_name(output.name + ".checkpoint.pt")
    saved = torch.load(checkpoint, weights_only=True, map_location=device) if checkpoint.exists() else None

    corpus = read_corpus([Path(sysconfig.get_path("stdlib")), *options.library])
    texts = corpus.library * LIBRARY_PASSES + corpus.tests
    tokenizer = Tokenizer.from_str(saved["tokenizer"]) if saved else train_tokenizer(texts)
    library, tests, held_out = (
        [np.array([0, *encoding.ids], dtype=np.uint16) for encoding in tokenizer.encode_batch_fast(files)]
        for files in (corpus.library, corpus.tests, corpus.held_out)
    )
    judged = np.concatenate(held_out)
    bytes_per_token = sum(len(text.encode()) for text in corpus.held_out) / (len(judged) - len(held_out))
    print(
        f"{sum(map(len, library)):,} tokens of library, {sum(map(len, tests)):,} of tests, {len(judged):,} held out;",
        end=" ",
    )
    print(f"{bytes_per_token:.2f} bytes a token held out")

    model = build_model().to(device)
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    muon, adam = Muon(matrices), torch.optim.AdamW(others, lr=0.0, betas=(0.9, 0.95), weight_decay=0.0)
    spent, step, n_seen = 0.0, 0, 0
    curve: list[list[float]] = []
    if saved:
        model.load_state_dict(saved["model"])
        muon.load_state_dict(saved["muon"])
        adam.load_state_dict(saved["adam"])
        spent, step, n_seen, curve = saved["spent"], saved["step"], saved["n_seen"], saved["curve"]
    n_parameters = sum(p.numel() for p in model.parameters())
    print(f"{n_parameters:,} parameters, {model.num_parameters() * 2 / 1e6:.1f} MB; begins at step {step}")

    def loss_of(tokens: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
        return cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())

    loss_function = loss_of if options.no_compile else torch.compile(loss_of, dynamic=False)
    # Compiled before the clock starts, which rules the learning rate.
    loss_function(
        torch.zeros((TOKENS_PER_STEP // PHASES[0][1], PHASES[0][1] + 1), dtype=torch.long, device=device)
    ).backward()
    model.zero_grad()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    seconds, first, began = options.minutes * 60, step, time.monotonic() - spent
    exported, mean, length = began + spent, math.nan, 0
    source: Iterator[np.ndarray] = iter(())

    def keep() -> None:
        loss = held_out_loss(model, judged, 24, device)
        curve.append([round(time.monotonic() - began), n_seen, round(loss, 4)])
        print(f"{curve[-1][0]:6d} s  step {step:6,}  {n_seen:11,} tokens  held out {loss:.3f} nats a token", flush=True)
        state = {"model": model.state_dict(), "muon": muon.state_dict(), "adam": adam.state_dict(), "curve": curve}
        state |= {"spent": time.monotonic() - began, "step": step, "n_seen": n_seen, "tokenizer": tokenizer.to_str()}
        partial = checkpoint.with_name(checkpoint.name + ".tmp")
        torch.save(state, partial)
        partial.replace(checkpoint)
        export(output, model, tokenizer)

    with Progress(*columns, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("training", total=seconds)
        try:
            while (share := (time.monotonic() - began) / seconds) < 1:
                if length != (now := max(n for start, n in PHASES if share >= start)):
                    length, source = now, windows(library, tests, now, [options.seed, first])
                tokens = np.stack([next(source) for _ in range(TOKENS_PER_STEP // length)]).astype(np.int64)
                loss = loss_function(torch.from_numpy(tokens).to(device))
                loss.backward()
                rate = min(share / WARM_UP, (1 - share) / (1 - WARM_UP))
                for optimizer, peak in ((muon, MUON_RATE), (adam, ADAM_RATE)):
                    for group in optimizer.param_groups:
                        group["lr"] = peak * rate
                    optimizer.step()
                    optimizer.zero_grad()
                step, n_seen = step + 1, n_seen + TOKENS_PER_STEP
                mean = loss.item() if math.isnan(mean) else 0.98 * mean + 0.02 * loss.item()
                speed = (step - first) * TOKENS_PER_STEP / (time.monotonic() - began - spent)
                progress.update(task, completed=time.monotonic() - began)
                progress.update(
                    task, description=f"step {step:,}  {n_seen / 1e6:.1f} M tokens  loss {mean:.3f}  {speed:,.0f}/s"
                )
                if time.monotonic() - exported > options.export_every * 60:
                    keep()
                    exported = time.monotonic()
        except KeyboardInterrupt:
            print("interrupted: exporting what is there; the same command resumes")
        keep()
    nats = held_out_loss(model, judged, max(1, len(judged) // CONTEXT), device)
    facts = {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "of_minutes": options.minutes,
        "seed": options.seed,
        "python": platform.python_version(),
        "further_libraries": [path.resolve().name for path in options.library],
        "parameters": n_parameters,
        "steps": step,
        "tokens": {
            "library": sum(map(len, library)),
            "tests": sum(map(len, tests)),
            "held_out": len(judged),
            "seen": n_seen,
        },
        "held_out_nats_per_token": round(nats, 4),
        "held_out_bits_per_byte": round(nats / math.log(2) / bytes_per_token, 4),
        "held_out_bytes_per_token": round(bytes_per_token, 3),
        "held_out_curve": curve,  # seconds, tokens seen, nats per token of 24 windows
    }
    (output / "training.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")
    print(f"held out: {nats:.3f} nats a token, {facts['held_out_bits_per_byte']:.3f} bits a byte; exported to {output}")


if __name__ == "__main__":
    main()
