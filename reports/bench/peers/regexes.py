"""One engine on regular expressions: python -m peers.regexes ENGINE FOLDER, for reports/bench/regexes.py.

FOLDER has what `process.load_work` reads, and patterns.json: the patterns, each with a text that it matches as tokens. Prints JSON.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from peers.engine import Work
from peers.process import limited, load_work

PASSES = 3
ENOUGH = 500_000_000
"""Nanoseconds: a pattern that took longer is not compiled again."""
LIMIT = 6
"""CPU seconds for a pattern and its text."""
AGAIN = 20
"""Masks of one position that are timed together."""

Started = tuple[Callable[[], Any], Callable[[int], Any]]
"""What writes a text's mask, and what takes a token."""


def ours(work: Work, words: np.ndarray) -> tuple[Callable[[str], Callable[[], Started]], Callable[[], None]]:
    import maskwright as mw
    from maskwright.analysis.kept import Kept
    from maskwright.decoding.schema.workspace import shared_workspace

    vocabulary = mw.load_vocabulary(work.tokenizer)
    space = shared_workspace(vocabulary)

    def compiled(pattern: str) -> Callable[[], Started]:
        store = mw.build_store(mw.load_regex(pattern), vocabulary)

        def start() -> Started:
            matcher = store.matcher()
            return lambda: matcher.fill(words), matcher.advance

        return start

    compiled("a")  # imports what it needs
    # not what is found once in a process, whatever the pattern is: whether kernels are compiled
    once = ("ahead", "kernel_sources", "first_call")
    named = [name for name in sys.modules if name.startswith("maskwright") and name.rpartition(".")[2] not in once]
    modules = [sys.modules[name] for name in named]
    found = [kept for module in modules for kept in list(vars(module).values())]
    caches = list({id(kept): kept for kept in found if hasattr(kept, "cache_clear") or type(kept) is Kept}.values())

    def forget() -> None:
        space.forget()
        for kept in caches:
            kept.forget() if type(kept) is Kept else kept.cache_clear()

    return compiled, forget


def index(work: Work, words: np.ndarray) -> tuple[Callable[[str], Callable[[], Started]], Callable[[], None]]:
    """Our index: all states of the automaton over tokens, ahead of time, as outlines-core's."""
    import maskwright as mw

    vocabulary = mw.load_vocabulary(work.tokenizer)
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


def outlines(work: Work, words: np.ndarray) -> tuple[Callable[[str], Callable[[], Started]], None]:
    import outlines_core

    numbers: dict[bytes, list[int]] = {}
    for number, token in enumerate(work.tokens):
        if token and number not in work.special:
            numbers.setdefault(token, []).append(number)
    vocabulary = outlines_core.Vocabulary(work.eos[0], numbers)

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


def llguidance(work: Work, words: np.ndarray) -> tuple[Callable[[str], Callable[[], Started]], None]:
    import llguidance

    from peers.llguidance import make_tokenizer

    tokenizer = make_tokenizer(work)

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


def xgrammar(work: Work, words: np.ndarray) -> tuple[Callable[[str], Callable[[], Started]], None]:
    import torch
    import xgrammar

    torch.set_num_threads(1)
    size = len(work.tokens)
    info = xgrammar.TokenizerInfo(work.tokens, xgrammar.VocabType.RAW, vocab_size=size, stop_token_ids=work.eos)
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
) -> list[tuple[int, int, int, int]]:
    """Of each position of a text: CPU ns of the mask, the mean of more masks, a hash of the mask without special tokens, their number."""
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
        text = words & keep
        found.append((first, again, zlib.crc32(text.tobytes()), int(np.bitwise_count(text).sum())))
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


def measure(engine: str, work: Work, patterns: list[dict[str, Any]]) -> dict[str, Any]:
    clock = time.process_time_ns
    size = len(work.tokens)
    words, keep = np.zeros(-(-size // 32), np.uint32), np.zeros(-(-size // 32), np.uint32)
    for number in range(size):
        if work.tokens[number] and number not in work.special:
            keep[number >> 5] |= np.uint32(1 << (number & 31))
    make, package = ENGINES[engine]
    begin = clock()
    compiled, forget = make(work, words)
    facts: dict[str, Any] = {"version": version(package), "vocabulary, CPU ns": clock() - begin, "patterns": []}
    # once before the clock counts: code that is loaded or compiled at its first use
    fill, _ = compiled("warm[0-9]{1,3}(up|down)")()
    fill()
    facts["patterns"] = [
        limited(lambda each=each: one(compiled, forget, each, words, keep), LIMIT) for each in patterns
    ]
    return facts


def main() -> None:
    folder = Path(sys.argv[2])
    patterns = json.loads((folder / "patterns.json").read_text(encoding="utf-8"))
    print(json.dumps(measure(sys.argv[1], load_work(folder), patterns)))


if __name__ == "__main__":
    main()
