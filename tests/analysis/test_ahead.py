"""Entry points compiled ahead of time do what Numba's do, are not taken where they are old, and need no Numba."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT, TESTS

from maskwright.analysis import ahead, jit
from maskwright.decoding import engine
from maskwright.decoding.engine.entries import entries

ENGINE = "maskwright.decoding.engine"
FOLDER = str(Path(str(engine.__file__)).parent)

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
        [sys.executable, "-c", WALKS, str(TESTS / "support")],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return tuple(json.loads(run.stdout))  # type: ignore[return-value]


@pytest.mark.slow  # Numba compiles the whole engine
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
    # the check of calls takes Numba's types
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), ahead.CHECK_VARIABLE: ""}
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
    monkeypatch.setattr(ahead, "extension", lambda package: None)
    made = ahead.EntryPoints(ENGINE, {"_mask_kernels": ("fill",)})
    assert not made.is_compiled_ahead and callable(made.fill) and not isinstance(made.fill, jit.Kernel)
    with pytest.raises(AttributeError, match="no entry point is called fil"):
        made.fil  # noqa: B018


def test_an_extension_of_other_sources_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {ahead.extension_name(FOLDER, variant) for variant in ahead.VARIANTS}
    assert len(names) == len(ahead.VARIANTS)
    original = ahead.checksum
    monkeypatch.setattr(ahead, "checksum", lambda path: original(path) + path.endswith("_end_kernels.py"))
    other = {ahead.extension_name(FOLDER, variant) for variant in ahead.VARIANTS}
    assert not names & other
    assert ahead.extension.__wrapped__(ENGINE) is None


def test_a_variant_that_the_machine_lacks_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_V3_FLAGS", {"no such flag"})
    assert ahead.variants.__wrapped__() == ("plain",)
    monkeypatch.setattr(ahead, "VARIANTS", {"plain": ""})  # as on aarch64
    assert ahead.variants.__wrapped__() == ("plain",)


def entry_points() -> list[tuple[str, str, list[str], list[str]]]:
    """All kernels that Python may call: package, name, parameters with a type, parameters."""
    code = (
        "import sys; sys.path.insert(0, 'scripts')\nimport compile_kernels as c\n"
        "print([(p, k.py_func.__name__, list(c.ahead.parameter_types(k.py_func)), "
        "list(c.inspect.signature(k.py_func).parameters)) for p in c.packages() for k in c.entry_points(p)])"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return ast.literal_eval(run.stdout)  # type: ignore[no-any-return]


def test_entry_points_have_types_and_are_in_the_extensions() -> None:
    found = entry_points()
    assert len(found) > 55 and len({package for package, *_ in found}) == 11
    for package, name, typed, parameters in found:
        assert typed == parameters, f"{package}: {name}"
        importlib.import_module(package)
        extension = ahead.extension(package)
        if extension is not None:
            assert hasattr(extension, name) or hasattr(extension, f"{name}_int32"), name


def test_no_kernel_that_python_calls_is_left_out() -> None:
    """Every kernel that a module without kernels calls is an entry point; the GPU's run only where Numba is."""
    kernels: dict[str, bool] = {}
    plain: list[str] = []
    for folder in ("analysis", "maskstore", "decoding", "src/maskwright"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            if "\n@kernel" not in text:
                plain.append(text)
            for decorated in re.finditer(r"\n@kernel(\(.*\))?\ndef (\w+)", text):
                kernels[f"{path.stem}.{decorated[2]}"] = "entry=True" in (decorated[1] or "") or "gpu" in path.parts
    assert len(kernels) > 150
    called = 0
    for text in plain:
        modules: dict[str, str] = {}
        for module, alias in re.findall(r"^from maskwright\S* import (\w*_kernels)(?: as (\w+))?$", text, re.MULTILINE):
            modules[alias or module] = module
        for alias, name in re.findall(r"\b(\w+)\.(\w+)\(", text):
            kernel = f"{modules.get(alias)}.{name}"
            if kernel in kernels:
                called += 1
                assert kernels[kernel], kernel
    assert called > 30


CALLS = r"""
import numpy as np
import maskwright as mw
LINES = (
    'start: (st | _NL)*\nst: NAME _NL | "if" NAME ":" _NL _INDENT st+ _DEDENT\nNAME: /[a-z]+/\n_NL: /(\\r?\\n[\\t ]*)+/\n'
    '%ignore " "\n%declare _INDENT _DEDENT\n'
)
for grammar in ("json", mw.parse_grammar(LINES, lexing="longest"), mw.parse_grammar('start: "x" A\nA: /[a-z]+/')):
    store = mw.build_store(grammar, "python-tiny")
    matcher, batch = store.matcher(), store.batch(2, n_threads=2)
    words = np.zeros((2, store.n_words), np.uint32)
    batch.fill(words)
    matcher.fill(words[0])
    matcher.short_ending(), matcher.shortest_ending(), matcher.min_bytes_left()
    for kind in (np.float16, np.float32, np.float64):
        mw.apply_mask(np.zeros((2, store.vocabulary.size), kind), words)
mw.build_store(mw.load_grammar("json", lexing="nfa"), "python-tiny", allow_dead=True)
mw.analyze("json", "python-tiny")
"""


@pytest.mark.slow
@needs_extension
def test_calls_of_entry_points_have_the_types_that_were_compiled() -> None:
    """Machine code does not look at what it is given; here every call is looked at. `make check-all` does so for the fast tests."""
    environment = os.environ | {ahead.CHECK_VARIABLE: "1"}
    run = subprocess.run([sys.executable, "-c", CALLS], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]


@needs_extension
def test_a_checked_call_of_another_type_is_refused() -> None:
    code = (
        "import numpy as np\nfrom maskwright.maskstore.tokens import _kernels as kernels\n"
        "def spread(words):\n"
        "    found = np.zeros((len(words), 1), np.uint32)\n"
        "    kernels.spread_classes(words, np.arange(33), np.arange(32, dtype=np.int32)[::-1].copy(), found)\n"
        "    return found.tolist()\n"
        "assert spread(np.array([[1], [2]], np.uint32)) == [[1 << 31], [1 << 30]]\n"
        "for wrong in (np.ones((2, 3), np.int64), np.ones(3, np.uint32), np.ones((3, 2), np.uint32).T, [[1]]):\n"
        "    try: spread(wrong)\n"
        "    except AssertionError as error: assert 'spread_classes: words' in str(error)\n"
        "    else: raise SystemExit('taken')"
    )
    environment = os.environ | {ahead.CHECK_VARIABLE: "1"}
    subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)


def test_the_script_says_what_is_missing() -> None:
    """Without a compiler it ends well, and leaves Numba to compile."""
    code = (
        "import sys; sys.path.insert(0, 'scripts')\n"
        "import compile_kernels\n"
        "compile_kernels.ahead.extension_name = lambda folder, variant: '_compiled_nothing_' + variant\n"
        "from pathlib import Path; Path.unlink = lambda self: None\n"
        "compile_kernels.packages = lambda: ['maskwright.decoding.endings']\n"
        "compile_kernels.main([])"
    )
    environment = os.environ | {"CC": "/there/is/no/compiler"}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert "are compiled at their first call, since this failed: " in run.stdout


def test_without_numba_and_extensions_an_error_says_so() -> None:
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from maskwright.analysis.errors import MissingExtraError\n"
        "from maskwright.maskstore.tokens import _kernels\n"
        "try: _kernels.stable_order.dispatcher\n"
        "except MissingExtraError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "stable_order was not compiled when this package was built, and Numba" in run.stdout


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
