"""One engine on regular expressions: python regexes.py ENGINE WORK.json, for reports/bench/regexes.py.

Prints its figures as JSON. This file imports only numpy, the standard library and the engine.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import zlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path = [path for path in sys.path if Path(path or ".").resolve() != FOLDER]  # its llguidance.py is not the package

import numpy as np  # noqa: E402

PASSES = 3
ENOUGH = 500_000_000
"""Nanoseconds: a pattern that took longer is not compiled again."""
LIMIT = 6.0
"""Seconds for a pattern and its text."""
AGAIN = 20
"""Masks of one position that are timed together."""

Started = tuple[Callable[[], Any], Callable[[int], Any]]
"""What writes a text's mask, and what takes a token."""


def ours(work: dict[str, Any], words: np.ndarray) -> tuple[Callable[[str], Callable[[], Started]], Callable[[], None]]:
    import maskwright as mw
    from maskwright.analysis.kept import Kept
    from maskwright.decoding.schema.workspace import shared_workspace

    vocabulary = mw.load_vocabulary(work["tokenizer"])
    space = shared_workspace(vocabulary)

    def compiled(pattern: str) -> Callable[[], Started]:
        store = mw.build_store(mw.load_regex(pattern), vocabulary)

        def start() -> Started:
            matcher = store.matcher()
            return lambda: matcher.fill(words), matcher.advance

        return start

    compiled("a")  # imports what it needs
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("maskwright")]
    found = [kept for module in modules for kept in list(vars(module).values())]
    caches = list({id(kept): kept for kept in found if hasattr(kept, "cache_clear") or type(kept) is Kept}.values())

    def forget() -> None:
        space.forget()
        for kept in caches:
            kept.forget() if type(kept) is Kept else kept.cache_clear()

    return compiled, forget


def index(work: dict[str, Any], words: np.ndarray) -> tuple[Callable[[str], Callable[[], Started]], Callable[[], None]]:
    """Our index: all states of the automaton over tokens, ahead of time, as outlines-core's."""
    import maskwright as mw

    vocabulary = mw.load_vocabulary(work["tokenizer"])
    mw.build_index(mw.load_regex("a"), vocabulary)  # what is made of a vocabulary once

    def compiled(pattern: str) -> Callable[[], Started]:
        found = mw.build_index(mw.load_regex(pattern), vocabulary)

        def start() -> Started:
            state = [found.initial_state]

            def advance(token: int) -> None:
                after = found.next_state(state[0], token)
                if after is None:
                    raise ValueError(f"token {token} is refused")
                state[0] = after

            return lambda: np.copyto(words, found.mask(state[0])), advance

        return start

    from maskwright.analysis.regex.whole import _automaton

    return compiled, _automaton.forget


def outlines(work: dict[str, Any], words: np.ndarray) -> tuple[Callable[[str], Callable[[], Started]], None]:
    import outlines_core

    numbers: dict[bytes, list[int]] = {}
    for number, token in enumerate(work["bytes"]):
        if token and str(number) not in work["special"]:
            numbers.setdefault(token, []).append(number)
    vocabulary = outlines_core.Vocabulary(work["eos"][0], numbers)

    def compiled(pattern: str) -> Callable[[], Started]:
        index = outlines_core.Index(pattern, vocabulary)

        def start() -> Started:
            guide = outlines_core.Guide(index)
            address, size = words.ctypes.data, len(words)
            return (
                lambda: guide.write_mask_into(address, size, 4),
                lambda token: guide.advance(token, return_tokens=False),
            )

        return start

    return compiled, None


def llguidance(work: dict[str, Any], words: np.ndarray) -> tuple[Callable[[str], Callable[[], Started]], None]:
    import llguidance

    special = {int(number): text for number, text in work["special"].items()}

    class Tokenizer:
        def __init__(self) -> None:
            self.eos_token_id, self.bos_token_id = work["eos"][0], None
            # a leading byte 0xFF marks what is special
            self.tokens = [
                b"\xff" + special[i].encode() if i in special else token for i, token in enumerate(work["bytes"])
            ]
            self.special_token_ids = sorted(special)
            self.number = {t: i for i, t in reversed(list(enumerate(work["bytes"]))) if t and i not in special}
            self.longest = max(map(len, self.number))

        def __call__(self, text: str | bytes) -> list[int]:
            """llguidance encodes the bytes that a pattern forces: by the longest token, as texts are."""
            data = text.encode() if isinstance(text, str) else bytes(text)
            found, at = [], 0
            while at < len(data):
                widths = range(min(self.longest, len(data) - at), 0, -1)
                width = next(n for n in widths if data[at : at + n] in self.number)
                found.append(self.number[data[at : at + width]])
                at += width
            return found

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()), n_vocab=len(work["bytes"]))

    def compiled(pattern: str) -> Callable[[], Started]:
        text = llguidance.LLMatcher.grammar_from_regex(pattern)
        first = llguidance.LLMatcher(tokenizer, text, log_level=0)
        if first.is_error():
            raise ValueError(first.get_error())

        def start() -> Started:
            matcher = first.deep_copy()
            address, size = words.ctypes.data, words.nbytes
            return lambda: matcher.unsafe_compute_mask_ptr(address, size), matcher.consume_token

        return start

    return compiled, None


def xgrammar(work: dict[str, Any], words: np.ndarray) -> tuple[Callable[[str], Callable[[], Started]], None]:
    import torch
    import xgrammar

    torch.set_num_threads(1)
    size = len(work["bytes"])
    info = xgrammar.TokenizerInfo(work["bytes"], xgrammar.VocabType.RAW, vocab_size=size, stop_token_ids=work["eos"])
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    bitmask = torch.from_numpy(words.view(np.int32)[None])

    def compiled(pattern: str) -> Callable[[], Started]:
        grammar = compiler.compile_regex(pattern)

        def start() -> Started:
            matcher = xgrammar.GrammarMatcher(grammar)

            def fill() -> None:
                if not matcher.fill_next_token_bitmask(bitmask, 0):
                    words.fill(0xFFFFFFFF)  # all are allowed

            return fill, matcher.accept_token

        return start

    return compiled, None


ENGINES: dict[str, tuple[Any, str]] = {
    "ours": (ours, "maskwright"),
    "index": (index, "maskwright"),
    "outlines": (outlines, "outlines-core"),
    "llguidance": (llguidance, "llguidance"),
    "xgrammar": (xgrammar, "xgrammar"),
}


def replay(
    start: Callable[[], Started], ids: list[int], words: np.ndarray, keep: np.ndarray
) -> list[tuple[int, int, int]]:
    """Of each position of a text: CPU ns of the mask, the mean of more masks, and the mask's sum without special tokens."""
    clock = time.process_time_ns
    fill, advance = start()
    found = []
    for token in ids:
        begin = clock()
        fill()
        first = clock() - begin
        begin = clock()
        for _ in range(AGAIN):
            fill()
        again = (clock() - begin) // AGAIN
        if not words[token >> 5] >> (token & 31) & 1:
            raise ValueError(f"token {token} is refused")
        found.append((first, again, zlib.crc32((words & keep).tobytes())))
        advance(token)
    return found


def one(compiled: Any, forget: Any, each: dict[str, Any], words: np.ndarray, keep: np.ndarray) -> dict[str, Any]:
    """The times of one pattern and its text."""
    clock = time.process_time_ns
    times: list[tuple[int, int]] = []
    while len(times) < PASSES and sum(total for _, total in times) < ENOUGH:
        if forget is not None:
            forget()
        begin = clock()
        start = compiled(each["pattern"])
        middle = clock()
        start()[0]()
        times.append((middle - begin, clock() - begin))
    if forget is not None:
        forget()
        start = compiled(each["pattern"])
    masks = replay(start, each["ids"], words, keep)
    return {"compile": min(t for t, _ in times), "compile and mask": min(t for _, t in times), "masks": masks}


def limited(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `work` returns in a child process: engines keep nothing from pattern to pattern, and cannot hang the run."""
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        try:
            said = work()
        except Exception as error:
            said = {"refused": f"{type(error).__name__}: {error}"[:200]}
        os.write(sink, json.dumps(said).encode())  # less than a pipe holds
        os._exit(0)
    os.close(sink)
    done = bool(select.select([source], [], [], LIMIT)[0])
    if not done:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(source, "rb") as lines:
        data = lines.read()
    if not done:
        return {"refused": f"not compiled within {LIMIT:g} s"}
    return json.loads(data) if data else {"refused": "the process ended"}


def measure(engine: str, work: dict[str, Any]) -> dict[str, Any]:
    clock = time.process_time_ns
    size = len(work["bytes"])
    words, keep = np.zeros(-(-size // 32), np.uint32), np.zeros(-(-size // 32), np.uint32)
    for number in range(size):
        if work["bytes"][number] and str(number) not in work["special"]:
            keep[number >> 5] |= np.uint32(1 << (number & 31))
    make, package = ENGINES[engine]
    begin = clock()
    compiled, forget = make(work, words)
    facts: dict[str, Any] = {"version": version(package), "vocabulary, CPU ns": clock() - begin, "patterns": []}
    # once before the clock counts: code that is loaded or compiled at its first use
    fill, _ = compiled("warm[0-9]{1,3}(up|down)")()
    fill()
    facts["patterns"] = [
        limited(lambda each=each: one(compiled, forget, each, words, keep)) for each in work["patterns"]
    ]
    return facts


def main() -> None:
    work = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    work["bytes"] = [bytes.fromhex(token) for token in work["tokens"]]
    print(json.dumps(measure(sys.argv[1], work)))


if __name__ == "__main__":
    main()
