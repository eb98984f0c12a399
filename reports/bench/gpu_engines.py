"""Engines that mask from the host, as a decoding loop runs them: take the tokens, make masks, copy what must be copied, apply.

Each does this as its documentation advises: the batch in one call, in parallel where the engine has threads of its own, from pinned
memory, while the GPU runs the forward pass. A text whose token an engine refuses is dropped by it and counted; its row is left unmasked
from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from gpu_work import GpuWork, Place


class HostEngine(Protocol):
    name: str
    lost: int
    """Texts whose forced token was refused."""

    def begin(self, texts: Sequence[Place]) -> None:
        """New texts at their places. Not timed."""
        ...

    def step(self, tokens: Any) -> None:
        """The host's work of a step. tokens : (B,) int32, on the host."""
        ...

    def apply(self, logits: Any) -> None:
        """Mask (B, columns) logits on the device."""
        ...

    def taken(self, tokens: Sequence[int]) -> int:
        """How many of a document's tokens the engine takes, from its start."""
        ...


def ours_at(store: Any, texts: Sequence[Place]) -> Any:
    """A batch of the CPU engine with the texts read."""
    batch = store.batch(len(texts))
    for position in range(max(begun for _, begun in texts)):
        batch.advance(np.array([tokens[position] if position < begun else -1 for tokens, begun in texts], np.int64))
    return batch


class Resident:
    """This package's CPU matcher with rows that live on the device: a row's number a text crosses the bus."""

    name = "resident rows"

    def __init__(self, work: GpuWork, device: torch.device) -> None:
        from maskwright.decoding.logits import ResidentRows

        self.store, self.device = work.store, device
        self.resident = ResidentRows(work.store, device)
        self.lost = 0

    def begin(self, texts: Sequence[Place]) -> None:
        self.batch = ours_at(self.store, texts)
        self.row_ids = torch.zeros(len(texts), dtype=torch.int32, device=self.device)

    def step(self, tokens: Any) -> None:
        self.batch.advance(tokens)
        self.resident.ids(self.batch, out=self.row_ids)

    def apply(self, logits: Any) -> None:
        self.resident.apply(logits, self.row_ids)

    def taken(self, tokens: Sequence[int]) -> int:
        return int(self.store.matcher().replay(tokens))


class _Bitmasks:
    """Words on the host, pinned where there is a GPU, and their copy on the device.

    The host writes them anew only after it has seen the tokens of the step that used the copy, so one of each is enough.
    """

    def __init__(self, n: int, n_words: int, device: torch.device) -> None:
        self.host = torch.full((n, n_words), -1, dtype=torch.int32, pin_memory=device.type == "cuda")
        self.there = torch.empty_like(self.host, device=device)

    def sent(self) -> Any:
        self.there.copy_(self.host, non_blocking=True)
        return self.there


class _Peer:
    """slots : the texts that are still followed, ascending."""

    bits: _Bitmasks
    slots: list[int]
    lost: int

    def _drop(self, fine: Sequence[bool]) -> None:
        """Go on without the texts whose token was refused. fine : by place in `slots`."""
        for slot, is_fine in zip(self.slots, fine, strict=True):
            if not is_fine:
                self.lost += 1
                self.bits.host[slot] = -1
        self.slots = [slot for slot, is_fine in zip(self.slots, fine, strict=True) if is_fine]


class Xgrammar(_Peer):
    name = "xgrammar"

    def __init__(self, work: GpuWork, device: torch.device, columns: int) -> None:
        import xgrammar
        from peers.xgrammar import Engine

        self.xgrammar, self.device, self.columns = xgrammar, device, columns
        self.engine = Engine()
        peer_work = work.for_peers(Path())
        # the bitmask covers the padding of the logits, as its documentation says
        peer_work.tokens.extend([b""] * (columns - len(peer_work.tokens)))
        self.engine.load_vocabulary(peer_work)
        self.engine.compile(peer_work)
        self.batch = xgrammar.BatchGrammarMatcher(max_threads="auto")
        self.texts: Any = None
        self.lost = 0

    def begin(self, texts: Sequence[Place]) -> None:
        if texts is not self.texts:
            self.texts = texts
            self.bits = _Bitmasks(len(texts), -(-self.columns // 32), self.device)
            self.starts = [self._at(tokens[:begun]) for tokens, begun in texts]
        self.lost = 0
        self.matchers = [matcher.fork() for matcher in self.starts]
        self.slots = list(range(len(texts)))

    def _at(self, tokens: Sequence[int]) -> Any:
        matcher = self.xgrammar.GrammarMatcher(self.engine.compiled)
        for token in tokens:
            if not matcher.accept_token(token):
                raise ValueError(f"xgrammar refuses a text before its place, at token {token}")
        return matcher

    def step(self, tokens: Any) -> None:
        active = [self.matchers[slot] for slot in self.slots]
        fine = self.batch.batch_accept_token(active, [int(tokens[slot]) for slot in self.slots])
        if not all(fine):
            self._drop(fine)
            active = [self.matchers[slot] for slot in self.slots]
        if active:
            self.batch.batch_fill_next_token_bitmask(active, self.bits.host, self.slots)

    def apply(self, logits: Any) -> None:
        self.xgrammar.apply_token_bitmask_inplace(logits, self.bits.sent(), vocab_size=self.columns)

    def taken(self, tokens: Sequence[int]) -> int:
        matcher = self.xgrammar.GrammarMatcher(self.engine.compiled)
        return next((i for i, token in enumerate(tokens) if not matcher.accept_token(token)), len(tokens))


class Llguidance(_Peer):
    name = "llguidance"

    def __init__(self, work: GpuWork, device: torch.device, columns: int) -> None:
        import llguidance
        import llguidance.torch
        from peers.llguidance import Engine

        self.llguidance, self.device = llguidance, device
        self.engine = Engine()
        peer_work = work.for_peers(Path())
        self.engine.load_vocabulary(peer_work)
        self.engine.compile(peer_work)
        self.n_words = peer_work.n_words
        self.executor = llguidance.LLExecutor()
        self.texts: Any = None
        self.lost = 0

    def begin(self, texts: Sequence[Place]) -> None:
        if texts is not self.texts:
            self.texts = texts
            self.bits = _Bitmasks(len(texts), self.n_words, self.device)
            self.starts = [self._at(tokens[:begun]) for tokens, begun in texts]
        self.lost = 0
        self.matchers = [matcher.deep_copy() for matcher in self.starts]
        self.slots = list(range(len(texts)))

    def _at(self, tokens: Sequence[int]) -> Any:
        matcher = self.engine.first.deep_copy()
        if tokens and not matcher.consume_tokens(list(tokens)):
            raise ValueError(f"llguidance refuses a text before its place: {matcher.get_error()}")
        return matcher

    def step(self, tokens: Any) -> None:
        pairs = [(self.matchers[slot], int(tokens[slot])) for slot in self.slots]
        fine = self.llguidance.torch.consume_token_par(self.executor, pairs)
        if not all(fine):
            self._drop(fine)
        if self.slots:
            active = [(self.matchers[slot], slot) for slot in self.slots]
            self.llguidance.torch.fill_next_token_bitmask_par(self.executor, active, self.bits.host)

    def apply(self, logits: Any) -> None:
        self.llguidance.torch.apply_token_bitmask_inplace(logits, self.bits.sent())

    def taken(self, tokens: Sequence[int]) -> int:
        return int(self.engine.first.deep_copy().try_consume_tokens(list(tokens)))


PEERS: dict[str, Any] = {"xgrammar": Xgrammar, "llguidance": Llguidance}
