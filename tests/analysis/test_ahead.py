"""Entry points compiled ahead of time do what Numba's do, are not taken where they are old, and need no Numba."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT, TESTS

from maskwright.analysis import ahead, jit
from maskwright.decoding.engine import entries as module
from maskwright.decoding.engine.entries import PACKAGE, SIGNATURES, entries

needs_extension = pytest.mark.skipif(not entries.is_compiled_ahead, reason="no extension: there is no C compiler here")

WALKS = """
import contextlib, json, random, sys, zlib
import numpy as np
sys.path.insert(0, sys.argv[1])
from engine_cases import random_contextual_grammar, random_layout_grammar, random_longest_grammar, random_vocabulary
from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.engine.entries import entries
from maskwright.stores.build import compile_store
sums = {}
for make in (random_longest_grammar, random_layout_grammar, random_contextual_grammar):
    for seed in range(30, 45):
        try:
            grammar = make(seed)
            store = compile_store(grammar, random_vocabulary(grammar, seed))
        except MaskwrightError:
            continue
        rng, found = random.Random(seed), 0
        matchers, batch = [store.matcher() for _ in range(3)], store.batch(3, n_threads=2)
        words, rows = np.zeros(store.n_words, np.uint32), np.zeros((3, store.n_words), np.uint32)
        for _ in range(40):
            tokens = []
            for slot, matcher in enumerate(matchers):
                try:
                    matcher.fill(words)
                except MaskwrightError as error:
                    found = zlib.crc32(str(error).encode(), found)
                    matcher.reset()
                    batch.reset(slot)
                    matcher.fill(words)
                found = zlib.crc32(words.tobytes(), found)
                allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
                tokens.append(rng.choice(allowed) if rng.random() < 0.9 and allowed else rng.randrange(store.vocabulary.size))
            for call in (lambda: batch.fill(rows), lambda: batch.advance(tokens)):
                try:
                    call()
                except MaskwrightError as error:
                    found = zlib.crc32(str(error).encode(), found)
            found = zlib.crc32(rows.tobytes(), found)
            for slot, (matcher, token) in enumerate(zip(matchers, tokens)):
                try:
                    matcher.advance(token)
                except MaskwrightError as error:
                    found = zlib.crc32(str(error).encode(), found)
                if rng.random() < 0.1:
                    with contextlib.suppress(MaskwrightError):
                        matcher.rollback(1)
                    found = zlib.crc32(bytes([matcher.is_accepting()]), found)
                if matcher.is_finished() or rng.random() < 0.05:
                    matcher.reset()
                    batch.reset(slot)
        sums[f"{make.__name__} {seed}"] = found
print(json.dumps([entries.is_compiled_ahead, sums]))
"""


def walks(**environment: str) -> tuple[bool, dict[str, int]]:
    run = subprocess.run(
        [sys.executable, "-c", WALKS, str(TESTS)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return tuple(json.loads(run.stdout))  # type: ignore[return-value]


@needs_extension
def test_random_walks_are_the_same_with_numba() -> None:
    is_ahead, expected = walks()
    is_jit, found = walks(MASKWRIGHT_JIT="1")
    assert is_ahead and not is_jit
    assert found == expected and len(found) > 20


@needs_extension
def test_a_store_is_read_and_used_without_numba(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np, maskwright as mw\n"
        f"store = mw.load_store({str(TESTS / 'data' / 'stores' / 'version-3-automaton.safetensors')!r})\n"
        "matcher, batch = store.matcher(), store.batch(2, n_threads=2)\n"
        "words = np.zeros((2, store.n_words), np.uint32)\n"
        "matcher.fill(words[0]); batch.fill(words); batch.advance([0, -1]); matcher.advance(0); matcher.advance_bytes(b'a')\n"
        "matcher.fork().rollback(1); matcher.is_accepting(); matcher.replay([0]); matcher.reset(); batch.copy(0, 1)\n"
        "print(sorted({'numba', 'llvmlite'} & set(sys.modules)))"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]" and list(tmp_path.iterdir()) == []


@needs_extension
def test_calls_let_other_threads_run() -> None:
    """A replay of a long text holds no lock: another thread counts meanwhile."""
    from stores import small_automaton

    store = small_automaton("lines")
    token = store.vocabulary.tokens.index(b"a")
    matcher = store.matcher()
    counted, is_over = [0], threading.Event()

    def count() -> None:
        while not is_over.is_set():
            counted[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # only who gives the lock away lets others run
    try:
        thread.start()
        before = counted[0]
        matcher.replay(np.full(2_000_000, token))
        assert counted[0] > before + 100
    finally:
        is_over.set()
        sys.setswitchinterval(interval)
        thread.join()


def test_without_an_extension_numba_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_extension", lambda package, signatures: None)
    made = ahead.EntryPoints(PACKAGE, SIGNATURES)
    assert not made.is_compiled_ahead
    for name in (name for kernels in SIGNATURES.values() for name in kernels):
        assert callable(getattr(made, name)) and not isinstance(getattr(made, name), jit.Kernel)
    with pytest.raises(AttributeError, match="no entry point is called fil"):
        made.fil  # noqa: B018


def test_an_extension_of_other_sources_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {ahead.extension_name(PACKAGE, SIGNATURES, variant) for variant in ahead.VARIANTS}
    assert len(names) == 2
    original = ahead.checksum
    monkeypatch.setattr(ahead, "checksum", lambda path: original(path) + path.endswith("_end_kernels.py"))
    other = {ahead.extension_name(PACKAGE, SIGNATURES, variant) for variant in ahead.VARIANTS}
    assert not names & other
    assert ahead._extension(PACKAGE, SIGNATURES) is None


def test_a_variant_that_the_machine_lacks_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_V3_FLAGS", {"no such flag"})
    assert ahead.variants() == ("plain",)


def test_signatures_are_of_kernels_and_of_their_arguments() -> None:
    for name, kernels in SIGNATURES.items():
        source = importlib.import_module(f"{PACKAGE}.{name}")
        for kernel, words in kernels.items():
            code = getattr(source, kernel).py_func.__code__
            assert words.count(",") + 1 == code.co_argcount, kernel
    assert {path.stem for path in Path(str(module.__file__)).parent.glob("_*_kernels.py")} >= set(SIGNATURES)


def test_the_script_says_what_is_missing() -> None:
    """Without a compiler it ends well, and leaves Numba to compile."""
    code = (
        "import sys; sys.path.insert(0, 'scripts')\n"
        "import compile_kernels\n"
        "compile_kernels.extension_name = lambda *_: '_compiled_nothing'\n"
        "compile_kernels.compile_package = lambda *_: 1 / 0\n"
        "from pathlib import Path; Path.unlink = lambda self: None\n"
        "compile_kernels.main()"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "are compiled at their first call, since this failed: ZeroDivisionError" in run.stdout


def test_a_kernel_is_compiled_at_its_first_call() -> None:
    code = (
        "import sys\nfrom maskwright.decoding.engine import _memory_kernels, _mask_kernels\n"
        "from maskwright.analysis.jit import Kernel\n"
        "assert 'numba' not in sys.modules and isinstance(_mask_kernels.fill, Kernel)\n"
        "_mask_kernels.fill.dispatcher\n"
        "assert not isinstance(_mask_kernels.fill, Kernel) and not isinstance(_mask_kernels.find_masks, Kernel)\n"
        "assert isinstance(_memory_kernels.rollback, Kernel), 'fill does not call it'\n"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
