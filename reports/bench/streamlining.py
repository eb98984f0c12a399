"""Time and size of the whole analysis of python.lark, each run in a fresh process: both tokenizers, JIT cold and warm.

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


def run(tokenizer: str, numba_cache: str) -> dict[str, Any]:
    """One `maskwright analyze` in a process of its own: its JSON, and the CPU seconds and memory that the system saw."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "facts.json"
        command = [sys.executable, "-m", "maskwright", "analyze", "lark:python", "-t", tokenizer, "--json", str(path)]
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


def main() -> None:
    found: dict[str, Any] = {}
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
    write_record("streamlining", "python reports/bench/streamlining.py", {"runs": found})


if __name__ == "__main__":
    main()
