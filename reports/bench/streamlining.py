"""Time and size of the whole analysis of python.lark, each run in a fresh process: both tokenizers, JIT cold and warm; and what the exact
step adds to the sound reading.

python reports/bench/streamlining.py
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import write_record

import maskwright as mw
from maskwright.analysis.legality.judge import Judge
from maskwright.analysis.lexing.terminal_nfa import build_terminal_nfa
from maskwright.analysis.lexing.terminals import compile_terminals
from maskwright.maskstore.entries.build import contexts_of, walk_vocabulary
from maskwright.maskstore.entries.streamline import count_entries, streamline


def run(tokenizer: str, numba_cache: str) -> dict[str, Any]:
    """One `maskwright analyze --no-lint` in a process of its own: its JSON, and the CPU seconds and memory that the system saw."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "facts.json"
        command = [sys.executable, "-m", "maskwright", "analyze", "lark:python", "-t", tokenizer, "--no-lint"]
        command += ["--json", str(path)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.perf_counter()
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "NUMBA_CACHE_DIR": numba_cache}
        )
        wall = time.perf_counter() - begin
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        facts = json.loads(path.read_text(encoding="utf-8"))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"process_cpu_seconds": round(cpu, 2), "process_wall_seconds": round(wall, 2), "facts": facts}


def exact_step(tokenizer: str) -> dict[str, Any]:
    """Entries before and after the step `exact`, its verdicts beyond the approximations, and CPU seconds of all steps, JIT warm."""
    grammar = mw.load_grammar("lark:python", lexing="nfa")
    entries = walk_vocabulary(grammar, build_terminal_nfa(compile_terminals(grammar)), mw.load_vocabulary(tokenizer))
    contexts = contexts_of(grammar, entries)
    for _ in range(2):  # the first compiles
        result = streamline(grammar, entries.walk.codes, entries.table, contexts, Judge(grammar))
    counts = count_entries(result, [(state.left, state.sequences) for state in entries.states])
    return {
        "entries": {step: int(count.sum()) for step, count in counts.items()},
        "verdicts_beyond_the_approximations": result.exact_verdicts,
        "cpu_seconds": {step: round(seconds, 3) for step, seconds in result.seconds.items()},
    }


def main() -> None:
    found: dict[str, Any] = {}
    exact = {tokenizer: exact_step(tokenizer) for tokenizer in ("mistral-7b-v0.1", "tekken")}
    print(exact)
    with tempfile.TemporaryDirectory() as numba_cache:
        for tokenizer in ("mistral-7b-v0.1", "tekken"):
            for state in ("cold", "warm") if tokenizer == "mistral-7b-v0.1" else ("warm",):
                result = run(tokenizer, numba_cache)
                facts = result.pop("facts")
                for key in ("pairs", "states"):
                    facts.pop(key)
                facts["grammar"].pop("terminal_names")
                facts["grammar"].pop("terminal_texts")
                found[f"{tokenizer} {state}"] = {**result, **facts}
                print(tokenizer, state, result, facts["seconds"], facts["peak_rss_mb"], "MB")
    write_record("streamlining", "python reports/bench/streamlining.py", {"exact_step": exact, "runs": found})


if __name__ == "__main__":
    main()
