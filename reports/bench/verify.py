"""Which of the library's stores `mw.verify` passes, and in what time.

    python reports/bench/verify.py [--tokenizer python-tiny] [--seconds 1800]

Each grammar of the library, and Lark's own python.lark and lark.lark, is verified in a process of its own, for at most so many seconds by
the clock. What takes longer is written down as given up: it is neither passed nor refused. The times written down are CPU time, and memory
is the most that the process has had, the library and the store included. A process that is killed ends the script.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from common import write_record

import maskwright as mw
from maskwright.analysis.errors import LimitError, StoreError
from maskwright.analysis.loading.names import library_names


def verified(name: str, tokenizer: str, seconds: float) -> dict[str, Any]:
    """What becomes of one store."""
    store = mw.build_store(name, mw.load_vocabulary(tokenizer))
    begin = time.process_time()
    try:
        report = mw.verify(store, seconds=seconds)
    except LimitError as error:
        found: dict[str, Any] = {"passed": None, "why": str(error)}
    except StoreError as error:  # its parser or lexer is not the grammar's
        found = {"passed": False, "why": str(error)}
    else:
        found = {
            "passed": report.passed,
            "differences": len(report.differences),
            "faults": list(report.faults),
            "has_checked_tables": report.has_checked_tables,
            "not_shown": report.not_shown,
            "counts": dict(report.counts),
        }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"cpu_s": round(time.process_time() - begin, 2), "peak_mb": round(peak / 1024), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", default="python-tiny")
    parser.add_argument("--seconds", type=float, default=1800.0, help="the most for each grammar")
    options = parser.parse_args()
    found = {}
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, max_tasks_per_child=1) as pool:
        for name in (*library_names(), "lark:lark", "lark:python"):
            found[name] = pool.submit(verified, name, options.tokenizer, options.seconds).result()
            print(name, found[name], flush=True)
    command = " ".join(["python", "reports/bench/verify.py", *sys.argv[1:]])
    write_record("verify", command, {"tokenizer": options.tokenizer, "stores": found})


if __name__ == "__main__":
    main()
