"""(d) Rows of `GpuBatch` and of resident rows against the CPU engine's: every slot, every step, texts admitted and evicted at random.

Texts begin at their start or, by a matcher, in the middle, and end where they are evicted, where their document ends (half of them by an
end-of-text token), or at a token that is not allowed, which must be flagged. A slot that is not reading must hold the end-of-text tokens
and nothing else. On CUDA the step is a graph. What the CPU engine itself masks is checked elsewhere, against the definition.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Any

import gpu_clock as clock
import numpy as np
import numpy.typing as npt
import torch
from gpu_work import GpuWork

from maskwright.analysis.errors import IllegalTokenError, MaskwrightError

MEAN_STAY = 400
"""Tokens that a text is read for, on average, before it is evicted."""
ILLEGAL_EVERY = 2_000
"""Tokens between two that are not allowed, on average."""
LONGEST_PREFIX = 200
READING, ENDED, IDLE, FLAGGED = "reading", "ended", "idle", "flagged"


@dataclass
class _Text:
    """at : the next token's place. last : the place at which the text is evicted. is_known : the CPU's row for it has been written."""

    tokens: list[int]
    at: int
    last: int
    is_known: bool = False


class _Schedule:
    """Which texts are in the slots, and what they read next. Everything is drawn from one seed."""

    def __init__(self, work: GpuWork, size: int, seed: int) -> None:
        self.work, self.size = work, size
        self.rng = random.Random(seed)
        self.texts: list[_Text | None] = [None] * size
        self.eos = work.store.vocabulary.eos[0]

    def admit(self) -> dict[int, Any]:
        """New texts for half of the free slots: slot -> how many tokens have been read before."""
        admitted = {}
        for slot, text in enumerate(self.texts):
            if text is None and self.rng.random() < 0.5:
                tokens = self.rng.choice(self.work.documents).tokens
                at = self.rng.randrange(min(len(tokens), LONGEST_PREFIX)) if self.rng.random() < 0.5 else 0
                last = min(len(tokens), at + 1 + int(self.rng.expovariate(1 / MEAN_STAY)))
                self.texts[slot] = _Text(tokens, at, last)
                admitted[slot] = at
        return admitted

    def choose(self, words: npt.NDArray[np.uint32]) -> tuple[list[int], dict[int, str]]:
        """A token for each slot, -1 for none, and what the slots with one are to be afterwards. words : the CPU's last rows."""
        given, expected = [-1] * self.size, {}
        for slot, text in enumerate(self.texts):
            if text is None:
                continue
            token = self._refused(words[slot]) if text.is_known and self.rng.random() < 1 / ILLEGAL_EVERY else None
            if token is not None:
                given[slot], expected[slot] = token, FLAGGED
            elif text.at == len(text.tokens):
                given[slot], expected[slot] = self.eos, ENDED
            else:
                given[slot], expected[slot] = text.tokens[text.at], READING
                text.at += 1
                text.is_known = True
        return given, expected

    def _refused(self, row: npt.NDArray[np.uint32]) -> int | None:
        for _ in range(20):
            token = self.rng.randrange(self.work.store.vocabulary.size)
            if not row[token >> 5] >> np.uint32(token & 31) & 1:
                return token
        return None

    def leave(self, expected: dict[int, str]) -> list[int]:
        """The slots whose texts are over; half of those at the end of a document stay for the end-of-text token."""
        gone = []
        for slot, state in expected.items():
            text = self.texts[slot]
            assert text is not None
            is_over = text.at >= text.last and (text.at < len(text.tokens) or self.rng.random() < 0.5)
            if state != READING or is_over:
                self.texts[slot] = None
                gone.append(slot)
        return gone


def state_of(name: str) -> str:
    return name if name in (READING, ENDED, IDLE) else FLAGGED


def _resident(store: Any, device: torch.device) -> Any:
    from maskwright.decoding.logits import ResidentRows

    return ResidentRows(store, device)


def check(work: GpuWork, options: Any, device: torch.device) -> dict[str, Any]:
    """Reads options.check_tokens tokens in options.check_batch slots. Of what differs, `first_wrong` lists the first ten."""
    from maskwright.decoding.gpu import GpuBatch

    size, store = options.check_batch, work.store
    schedule = _Schedule(work, size, options.seed)
    gpu = GpuBatch(store, size, device=device)
    cpu = store.batch(size, max_rollback=0)
    resident = _resident(store, device)
    words = np.zeros((size, store.n_words), np.uint32)
    held = np.zeros(store.n_words, np.uint32)
    for token in store.vocabulary.eos:
        held[token >> 5] |= np.uint32(1 << (token & 31))
    tokens = torch.full((size,), -1, dtype=torch.int32, device=device)

    def step() -> None:
        gpu.advance(tokens)
        gpu.find_rows()

    run = clock.captured(step, device, lambda: gpu.evict(range(size)))
    names = ("steps", "tokens", "rows", "admitted", "from_a_matcher", "ended", "flagged", "idle", "wrong")
    counts = dict.fromkeys(names, 0)
    first_wrong: list[dict[str, Any]] = []
    evicted = set(range(size))
    begin = time.monotonic()
    while counts["tokens"] < options.check_tokens:
        admitted = schedule.admit()
        if admitted:
            gpu.admit(list(admitted), [_begin(store, cpu, schedule, slot, at) for slot, at in admitted.items()])
        evicted -= admitted.keys()
        given, expected = schedule.choose(words)
        _advance(cpu, given, expected)
        cpu.fill(words)
        tokens.copy_(torch.tensor(given, dtype=torch.int32))
        run()
        states, rows = gpu.states(), gpu.words.cpu().numpy().view(np.uint32)
        by_number = resident.words[resident.ids(cpu).long()].cpu().numpy().view(np.uint32)
        judged = {**expected, **dict.fromkeys(sorted(evicted), IDLE)}
        wanted = words.copy()
        wanted[[slot for slot, state in judged.items() if state != READING]] = held
        is_wrong = (rows != wanted).any(axis=1), (by_number != words).any(axis=1)
        for slot, state in judged.items():
            wrong = [
                *(["state"] if state_of(states[slot]) != state else []),
                *(["GpuBatch"] if is_wrong[0][slot] else []),
                *(["resident rows"] if is_wrong[1][slot] else []),
            ]
            counts["wrong"] += bool(wrong)
            if wrong and len(first_wrong) < 10:
                facts = {"step": counts["steps"], "slot": slot, "token": given[slot], "state": states[slot]}
                first_wrong.append({**facts, "expected": state, "wrong": wrong})
        counts["steps"] += 1
        counts["tokens"] += len(expected)
        counts["rows"] += sum(state == READING for state in expected.values())
        counts["admitted"] += len(admitted)
        counts["from_a_matcher"] += sum(at > 0 for at in admitted.values())
        counts["ended"] += sum(state == ENDED for state in expected.values())
        counts["flagged"] += sum(state == FLAGGED for state in expected.values())
        counts["idle"] += len(evicted)
        gone = schedule.leave(expected)
        for slot in gone:
            cpu.reset(slot)
        # the others are taken over by their next texts as they are
        leaving = [slot for slot in gone if schedule.rng.random() < 0.5]
        gpu.evict(leaving)
        evicted |= set(leaving)
    facts = {"work": work.name, "tokenizer": work.tokenizer, "batch": size, **counts, "first_wrong": first_wrong}
    return {**facts, "seconds": round(time.monotonic() - begin, 1)}


def _begin(store: Any, cpu: Any, schedule: _Schedule, slot: int, at: int) -> Any:
    """The slot's text read up to its place by the CPU engine; a matcher there, or None at the start of a text."""
    text = schedule.texts[slot]
    assert text is not None
    alone = np.full(schedule.size, -1)
    matcher = store.matcher(max_rollback=0) if at else None
    for token in text.tokens[:at]:
        alone[slot] = token
        cpu.advance(alone)
        matcher.advance(token)
    return matcher


def _advance(cpu: Any, given: list[int], expected: dict[int, str]) -> None:
    """The CPU engine reads the tokens, and refuses those that are to be flagged."""
    refused = [slot for slot, state in expected.items() if state == FLAGGED]
    together = np.array(given)
    together[refused] = -1
    cpu.advance(together)
    for slot in refused:
        alone = np.full(len(given), -1)
        alone[slot] = given[slot]
        try:
            cpu.advance(alone)
        except IllegalTokenError:
            continue
        raise MaskwrightError(
            f"the CPU engine reads token {given[slot]} in slot {slot}, though its mask does not have it"
        )
