"""Processes of one server, such as ranks or engines side by side: each maps the store's file, whose pages are in memory once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import maskwright as mw

RANK = """
import hashlib, sys
import numpy as np
from maskwright.serving.requests import RequestCompiler

compiler = RequestCompiler("python-tiny", {"python": sys.argv[1]}, on_disk=False, workers=0)
store = compiler.compile("grammar", "python")
matcher, digest = store.matcher(), hashlib.sha256()
words = np.zeros((store.vocabulary.size + 31) // 32, np.int32)
tokens = store.vocabulary.tokens
for byte in b"def mean(values):\\n    return sum(values) / len(values)\\n":
    matcher.fill(words)
    digest.update(words.tobytes())
    matcher.advance(tokens.index(bytes([byte])))
print(digest.hexdigest(), flush=True)
sys.stdin.read()
"""


def mapping(process: int, path: Path) -> dict[str, int]:
    """What Linux says of a process's mappings of a file: kB by kind."""
    found: dict[str, int] = {}
    is_of_file = False
    for line in Path(f"/proc/{process}/smaps").read_text("utf-8").splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            is_of_file = line.endswith(str(path))
        elif is_of_file and line.endswith(" kB"):
            kind, amount, _ = line.split()
            found[kind.rstrip(":")] = found.get(kind.rstrip(":"), 0) + int(amount)
    return found


def test_two_processes_share_a_store(tmp_path: Path) -> None:
    """Their masks are equal. On Linux the pages of the file are in memory once, and none is written."""
    path = tmp_path / "python.safetensors"
    mw.save_store(mw.build_store("python", "python-tiny"), path)
    command = [sys.executable, "-c", RANK, str(path)]
    ranks = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        digests = [rank.stdout.readline().strip() for rank in ranks if rank.stdout]
        pages = [mapping(rank.pid, path) for rank in ranks] if sys.platform == "linux" else []
    finally:
        for rank in ranks:
            rank.communicate()
    assert len(digests) == 2 and len(digests[0]) == 64 and digests[0] == digests[1]
    if not pages:
        pytest.skip("only Linux says which pages processes share")
    size = path.stat().st_size >> 10
    for found in pages:
        assert found["Rss"] > size // 2, "the table is not mapped"
        assert found["Private_Dirty"] == found["Shared_Dirty"] == 0
        assert found["Shared_Clean"] > 0.9 * found["Rss"]
    assert sum(found["Pss"] for found in pages) < 1.2 * max(found["Rss"] for found in pages)
