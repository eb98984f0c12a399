"""One engine in one process: compile, first mask, replay of real texts one by one and in batches. Times in ns to an .npz, facts to a .json.

    python -m peers.process ENGINE WORK_FOLDER OUT [--documents N] [--stride N] [--seconds S]
        [--batches 16,128] [--batch-steps N] [--batch-seconds S]

Replay is teacher-forced: at each step fill the mask, look whether the true next token is in it (not timed), advance by that token. A
document whose next token is not in the mask is abandoned there. (By an engine that keeps no state of its own, `goes_on`, it is counted, and
replayed to the end or until the engine gives up.) With a stride only the masks of every so many
windows of 16 tokens are filled, counted over all documents; all tokens are advanced by. The first mask of a window is not counted, since
an engine may do there what it has left undone since the last one.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import random
import resource
import select
import signal
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from peers.engine import Engine, UnsupportedError, Work

WINDOW = 16
"""Tokens in a row, of which with a stride all masks are filled or none."""
WAVE = 128
"""Steps that the texts of a batch make together; shorter documents are left out of batches."""
LOOK = 0.1
"""Seconds between two looks at a limited piece of work."""
PATIENCE = 20
"""Times its CPU seconds that a limited piece of work may take by the clock."""
MEMORY = 12 << 30
"""Bytes of address space of a limited piece of work."""
WARM_UP = 300
"""Tokens of the first document that are replayed before anything is timed."""


def load_work(folder: Path) -> Work:
    facts = json.loads((folder / "work.json").read_text(encoding="utf-8"))
    return Work(
        name=facts["name"],
        tokenizer=facts["tokenizer"],
        tokens=[bytes.fromhex(token) for token in facts["tokens"]],
        special={int(token): name for token, name in facts["special"].items()},
        eos=facts["eos"],
        documents=[(name, tokens) for name, tokens in facts["documents"]],
        folder=folder,
    )


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def is_allowed(words: Any, token: int) -> bool:
    return bool(int(words[token >> 5]) >> (token & 31) & 1)


def limited(work: Callable[[], dict[str, Any]], seconds: int) -> dict[str, Any]:
    """What `work` returns in a child process: engines keep nothing from one to the next, and cannot hang the run.

    seconds : of CPU time, so that the answer does not depend on what else the machine does; and `PATIENCE` times as long by the clock.

    The parent looks at the CPU time. With a limit of the system's own (RLIMIT_CPU) Linux counts it by ticks of 4 ms, for the child as
    well, and what takes less could not be timed.
    """
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            said = work()
        except Exception as error:
            said = {"refused": f"{type(error).__name__}: {error}"[:200]}
        os.write(sink, json.dumps(said).encode())  # less than a pipe holds
        os._exit(0)
    os.close(sink)
    end = time.monotonic() + PATIENCE * seconds
    while not (done := bool(select.select([source], [], [], LOOK)[0])):
        ticks = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        if time.monotonic() > end or int(ticks[11]) + int(ticks[12]) > seconds * os.sysconf("SC_CLK_TCK"):
            os.kill(child, signal.SIGKILL)
            break
    os.waitpid(child, 0)
    with os.fdopen(source, "rb") as lines:
        data = lines.read()
    if not done:
        return {"refused": f"not done within {seconds} s"}
    return json.loads(data) if data else {"refused": "the process ended"}


def replay(engine: Engine, work: Work, options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Batch size 1. Returns facts, and per timed step: document, position, mask and advance in ns; advances of the other steps apart."""
    steps: list[tuple[int, int, int, int]] = []
    others: list[int] = []
    refused: list[dict[str, Any]] = []
    ends_refused = replayed = finished = 0
    clock = time.perf_counter_ns
    goes_on = getattr(engine, "goes_on", False)
    end = time.monotonic() + options.seconds
    for number, (name, tokens) in enumerate(work.documents[: options.documents]):
        if time.monotonic() > end:
            break
        gc.collect()
        matcher = engine.matcher()
        fill, advance = matcher.fill, matcher.advance
        position, why = 0, ""
        wrong: tuple[int, str] | None = None
        for position, token in enumerate(tokens):
            mask_ns = -1
            try:
                if replayed // WINDOW % options.stride == 0:
                    begin = clock()
                    fill()
                    mask_ns = clock() - begin
                    if why := matcher.failure():
                        break
                    if not is_allowed(matcher.words, token):
                        wrong = wrong or (position, "not in the mask")
                        if not goes_on:
                            break
                begin = clock()
                taken = advance(token)
                advance_ns = clock() - begin
            except Exception as error:  # an engine's own error of any kind is what is being counted
                why = f"{type(error).__name__}: {error}"
                break
            if taken is False:
                why = "not taken by advance"
                break
            if mask_ns >= 0 and (options.stride == 1 or replayed % WINDOW):
                steps.append((number, position, mask_ns, advance_ns))
            else:
                others.append(advance_ns)
            replayed += 1
            if time.monotonic() > end:
                break
        else:
            finished += not wrong
            if getattr(engine, "has_eos", True):
                fill()
                ends_refused += not is_allowed(matcher.words, work.eos[0])
        if wrong := wrong or ((position, why) if why else None):
            position, why = wrong
            text = b"".join(work.tokens[t] for t in tokens[max(0, position - 8) : position])
            refused.append(
                {
                    "document": name,
                    "position": position,
                    "after": text.decode(errors="replace"),
                    "token": work.tokens[tokens[position]].decode(errors="replace"),
                    "why": why.strip().splitlines()[0][:200],
                }
            )
    facts = {
        "documents_begun": finished + len(refused),
        "is_whole": finished + len(refused) == min(len(work.documents), options.documents),
        "documents_refused": len(refused),
        "ends_refused": ends_refused if getattr(engine, "has_eos", True) else None,
        "steps": replayed,
        "masks": len(steps),
        "refused": refused[:20],
    }
    table = np.array(steps, dtype=np.int64).reshape(-1, 4)
    return facts, {"steps": table, "other_advances": np.array(others, dtype=np.int64)}


def places(work: Work, n: int, chosen: random.Random) -> list[tuple[list[int], int]]:
    """n texts under way: a document and the number of its tokens that have been read, each place in the files as likely as any other.

    All have WAVE tokens left.
    """
    documents = [tokens for _, tokens in work.documents if len(tokens) >= WAVE]
    found = chosen.choices(documents, [len(tokens) - WAVE + 1 for tokens in documents], k=n)
    return [(tokens, chosen.randrange(len(tokens) - WAVE + 1)) for tokens in found]


def replay_batch(engine: Engine, work: Work, n: int, options: argparse.Namespace) -> tuple[dict[str, Any], Any]:
    """Batch size n: (mask ns, advance ns, active slots) a step. Texts start anywhere in the files, as a server's are found."""
    steps: list[tuple[int, int, int]] = []
    refusals = 0
    clock = time.perf_counter_ns
    chosen = random.Random(n)
    left = options.batch_seconds
    while len(steps) < options.batch_steps and left > 0:
        batch = engine.batch(n)
        texts = places(work, n, chosen)
        for position in range(max(begun for _, begun in texts)):
            active = [slot for slot, (_, begun) in enumerate(texts) if position < begun]
            batch.prepare(active)
            batch.take([texts[slot][0][position] for slot in active])
            batch.advance()
        active = list(range(n))
        gc.collect()
        end = time.monotonic() + left
        for position in range(WAVE):
            batch.prepare(active)
            begin = clock()
            batch.fill()
            mask_ns = clock() - begin
            following = [tokens[begun + position] for tokens, begun in texts]
            kept = [slot for slot in active if is_allowed(batch.words[slot], following[slot])]
            refusals += len(active) - len(kept)
            if len(kept) < len(active):
                active = kept
                batch.prepare(active)
            batch.take([following[slot] for slot in active])
            begin = clock()
            batch.advance()
            advance_ns = clock() - begin
            steps.append((mask_ns, advance_ns, len(active)))
            if not active or len(steps) >= options.batch_steps or time.monotonic() > end:
                break
        left = end - time.monotonic()
    table = np.array(steps, dtype=np.int64).reshape(-1, 3)
    return {"steps": len(steps), "refused": refusals, "mean_active": float(table[:, 2].mean()) if steps else 0.0}, table


def measure(options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    work = load_work(Path(options.work))
    try:
        engine: Engine = importlib.import_module(f"peers.{options.engine}").Engine()
    except ImportError as error:
        return {"status": "not installed", "reason": str(error)}, {}
    facts: dict[str, Any] = {"status": "measured", "version": version(engine.package)}
    try:
        gc.collect()
        resident, cpu = resident_bytes(), time.process_time()
        engine.load_vocabulary(work)
        facts["vocabulary_cpu_s"] = time.process_time() - cpu
        facts["vocabulary_rss_bytes"] = resident_bytes() - resident
        resident, cpu = resident_bytes(), time.process_time()
        engine.compile(work)
        facts["compile_cpu_s"] = time.process_time() - cpu
        facts["compile_rss_bytes"] = resident_bytes() - resident
    except UnsupportedError as error:
        return {**facts, "status": "cannot", "reason": str(error)}, {}
    facts["grammar"] = engine.grammar
    matcher = engine.matcher()
    begin = time.perf_counter_ns()
    matcher.fill()
    facts["first_mask_us"] = (time.perf_counter_ns() - begin) / 1e3
    gc.disable()
    warm_up = argparse.Namespace(**{**vars(options), "stride": 1, "seconds": min(options.seconds, 20)})
    name, tokens = work.documents[0]
    replay(engine, Work(**{**vars(work), "documents": [(name, tokens[:WARM_UP])]}), warm_up)
    replayed, arrays = replay(engine, work, options)
    facts["replay"] = {**replayed, "stride": options.stride}
    facts["batches"] = {}
    if options.batches:
        few = argparse.Namespace(**{**vars(options), "batch_steps": 2, "batch_seconds": 1})
        with contextlib.suppress(Exception):  # what ails an engine's batches is said below
            replay_batch(engine, work, 2, few)
    for n in options.batches:
        try:
            facts["batches"][str(n)], arrays[f"batch_{n}"] = replay_batch(engine, work, n, options)
        except UnsupportedError as error:
            facts["batches"][str(n)] = {"reason": str(error)}
        except Exception as error:  # an engine that gives up in a batch has been measured one by one all the same
            facts["batches"][str(n)] = {"reason": f"{type(error).__name__}: {error}"[:200]}
    facts["rss_at_end_bytes"] = resident_bytes()
    return facts, arrays


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("engine")
    parser.add_argument("work")
    parser.add_argument("out")
    parser.add_argument("--documents", type=int, default=32)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--batch-seconds", type=float, default=20)
    parser.add_argument("--batches", type=lambda text: [int(n) for n in text.split(",") if n], default=[])
    parser.add_argument("--batch-steps", type=int, default=256)
    options = parser.parse_args()
    # one core: the last one that this process may use
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    facts, arrays = measure(options)
    np.savez(options.out + ".npz", **arrays)
    Path(options.out + ".json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main()
