"""Files of stores of every kind: the same bytes each time, whole files for readers, and no damage that is not seen."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from paths import TESTS
from shares import every, share
from stores import EVERY_KIND, content_digest, read_parts, refusal

import maskwright as mw
from maskwright.analysis.errors import StoreError
from maskwright.maskstore.file.fileformat import save_store, store_info


@pytest.mark.parametrize("seed", share(["12345", "0", "1"], 1))
def test_equal_stores_give_equal_bytes_under_every_hash_seed(seed: str, tmp_path: Path) -> None:
    script = "from stores import EVERY_KIND, save_store\nfor name, make in EVERY_KIND.items(): save_store(make(), name)"
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(TESTS / "support")}
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, check=True)
    for name, make in EVERY_KIND.items():
        save_store(make(), tmp_path / "here")
        save_store(mw.load_store(tmp_path / name), tmp_path / "again")
        assert (tmp_path / name).read_bytes() == (tmp_path / "here").read_bytes() == (tmp_path / "again").read_bytes()


@pytest.mark.parametrize("kind", every(2, EVERY_KIND))
def test_damage_is_seen(kind: str, tmp_path: Path) -> None:
    """Any bit flipped, most often in the header; cut off anywhere; a byte too many."""
    path, other, rng = tmp_path / "s", tmp_path / "altered", random.Random(1)
    save_store(EVERY_KIND[kind](), path)
    facts, tensors = read_parts(path)
    data = path.read_bytes()
    assert facts["sha256"] == content_digest(facts, tensors) and str(tmp_path).encode() not in data
    header = 8 + int.from_bytes(data[:8], "little")
    body = rng.sample(range(header, len(data)), min(300, len(data) - header))
    for place in [*range(24), *rng.sample(range(24, header), min(200, header - 24)), *body]:
        altered = bytearray(data)
        altered[place] ^= 1 << rng.randrange(8)
        other.write_bytes(altered)
        refusal(other)
    for length in sorted({*range(40), *range(0, len(data), 997), len(data) - 1}):
        other.write_bytes(data[:length])
        assert "is not a whole safetensors file" in refusal(other)
        assert "is not a whole safetensors file" in refusal(other, store_info)
    other.write_bytes(data + b"\0")
    assert "is not a whole safetensors file" in refusal(other)


@pytest.mark.parametrize("kinds", [("lines", "sums"), ("entries", "schema"), ("pattern", "composition")], ids=str)
def test_readers_beside_writers_see_whole_files(kinds: tuple[str, str], tmp_path: Path) -> None:
    path, failures = tmp_path / "s", list[str]()
    stores = [EVERY_KIND[kind]() for kind in kinds]
    save_store(stores[0], path)

    def repeat(action: Callable[[int], object]) -> None:
        for round_ in range(40):
            try:
                action(round_)
            except StoreError as error:
                failures.append(str(error))

    def read(_: int) -> None:
        found = repr(mw.load_store(path))
        if found not in map(repr, stores):
            failures.append(found)

    threads = [
        threading.Thread(target=repeat, args=[lambda i, k=k: save_store(stores[(i + k) % 2], path)]) for k in range(3)
    ]
    threads += [threading.Thread(target=repeat, args=[read]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and list(tmp_path.iterdir()) == [path]
