"""Which of the library's stores `mw.verify` passes, and in what time.

    python reports/bench/verify.py [--tokenizer python-tiny] [--seconds 600]

Each grammar of the library, and Lark's own python.lark and lark.lark, is verified for at most so many seconds. What takes longer is written
down as given up: it is neither passed nor refused. Time is CPU time.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from common import write_record

import maskwright as mw
from maskwright.analysis.errors import LimitError, StoreError
from maskwright.analysis.loading.names import library_names


def verified(name: str, vocabulary: mw.Vocabulary, seconds: float) -> dict[str, Any]:
    """What becomes of one store."""
    store = mw.build_store(name, vocabulary)
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
            "counts": dict(report.counts),
        }
    return {"cpu_s": round(time.process_time() - begin, 2), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", default="python-tiny")
    parser.add_argument("--seconds", type=float, default=600.0, help="the most for each grammar")
    options = parser.parse_args()
    vocabulary = mw.load_vocabulary(options.tokenizer)
    found = {}
    for name in (*library_names(), "lark:lark", "lark:python"):
        found[name] = verified(name, vocabulary, options.seconds)
        print(name, found[name], flush=True)
    command = " ".join(["python", "reports/bench/verify.py", *sys.argv[1:]])
    write_record("verify", command, {"tokenizer": options.tokenizer, "stores": found})


if __name__ == "__main__":
    main()
