"""xgrammar's Python interface over maskwright's masks, for programs that were written for xgrammar.

In: calls of xgrammar's classes. Out: maskwright's exact masks. `install` puts this module in
xgrammar's place for a program, as TensorRT-LLM and LMDeploy need it. Only the names below
are there.
docs/serving-runtimes.md lists where texts differ from xgrammar's.
"""

from __future__ import annotations

import bisect
import operator
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.decoding.logits import need_torch
from maskwright.serving.server_matcher import ServerMatcher
from maskwright.serving.xgrammar_base import (
    MissingError,
    Partial,
    RefusedError,
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    as_words,
    get_bitmask_shape,
    reset_token_bitmask,
    row_of,
)
from maskwright.serving.xgrammar_compiler import (
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    StructuralTagItem,
    TokenizerInfo,
    VocabType,
    as_tokens,
)

if TYPE_CHECKING:
    from types import ModuleType

_ROLLBACK = 256
"""How many steps a matcher takes back by itself; for more its text is read again."""

_LONGEST_JUMP = 4096
"""The most bytes of a jump-forward string."""


class GrammarMatcher(Partial):
    """The text of one request: xgrammar's `GrammarMatcher`.

    compiled_grammar : what a `GrammarCompiler` returned.
    override_stop_tokens : ids that end the text instead of the tokenizer's.
    terminate_without_stop_token : whether the text counts as ended as soon as it is whole. No
        stop token is allowed then.
    max_rollback_tokens : no meaning, as in xgrammar; any number of steps can be taken back.
    default_temperature : None; grammars do not choose temperatures here.

    Raises: RefusedError for other arguments.
    """

    def __init__(
        self,
        compiled_grammar: CompiledGrammar,
        *,
        override_stop_tokens: int | Sequence[int] | None = None,
        terminate_without_stop_token: bool = False,
        max_rollback_tokens: int = -1,
        default_temperature: float | None = None,
    ) -> None:
        if not isinstance(compiled_grammar, CompiledGrammar):
            raise RefusedError("the grammar is not compiled; pass what a method of GrammarCompiler returns")
        if default_temperature is not None:
            raise RefusedError("default_temperature has no effect here; leave it out, and set the server's temperature")
        stops = compiled_grammar.tokenizer_info.stop_token_ids
        if override_stop_tokens is not None:
            stops = as_tokens("override_stop_tokens", override_stop_tokens)
        vocabulary = compiled_grammar.store.vocabulary
        wrong = [token for token in stops if not 0 <= token < vocabulary.size]
        if wrong:
            raise RefusedError(f"stop token {wrong[0]} is out of range: the vocabulary has {vocabulary.size} ids")
        self._compiled, self._stops = compiled_grammar, tuple(stops)
        self._ends_by_itself = terminate_without_stop_token
        has_ends = bool(stops) and not terminate_without_stop_token
        # as slow as it may be: nobody else need wait
        self._text = ServerMatcher(compiled_grammar.store, stops, vocabulary.size, _ROLLBACK, float("inf"), has_ends)
        self._said: list[int | bytes] = []
        self._n_words = -(-compiled_grammar.tokenizer_info.vocab_size // 32)

    def accept_token(self, token_id: int, *, debug_print: bool = False) -> bool:
        """Add a token. False if it is not allowed, out of range, or behind a stop token."""
        try:
            token = operator.index(token_id)
        except TypeError:
            return False
        if token >= self._compiled.tokenizer_info.vocab_size or not self._text.try_advance(token):
            return False
        self._said.append(token)
        return True

    def accept_string(self, input_str: str | bytes, *, debug_print: bool = False) -> bool:
        """Add a text as one step. False if it is not allowed, or behind a stop token."""
        if self._text.is_finished():
            return False
        try:
            data = input_str.encode() if isinstance(input_str, str) else bytes(input_str)
            self._text.advance_bytes(data)
        except (MaskwrightError, UnicodeEncodeError):  # half a surrogate pair is no text
            return False
        self._said.append(data)
        return True

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0, *, debug_print: bool = False) -> bool:
        """Write the mask of the tokens allowed next.

        bitmask : (W,) or (B, W) int32, W = ceil(vocab_size / 32) or more, on the CPU; a tensor, or
            another array that NumPy reads without a copy.
        index : the row.

        Returns whether a token is refused.

        Raises: RefusedError if the bitmask is of another kind, the text has terminated with a stop
        token, no exact mask can be made, or no token can come: the text is whole and no stop token
        is known, or it goes on with stop tokens alone. (With `terminate_without_stop_token` a whole
        text may have a mask of zeros.)
        """
        row = row_of(bitmask, index, self._n_words)
        if self._text.is_finished():
            raise RefusedError("the text has ended with a stop token, so nothing comes next; reset() begins a new one")
        self._fill(row)
        return bool(row[0] != -1) or not bool((row == -1).all())

    def _fill(self, row: npt.NDArray[np.int32]) -> None:
        has_tokens = self._compiled.tokenizer_info.vocab_size > 0
        failed = self._text.fill_row(row.view(np.uint32)) if has_tokens else "the tokenizer has no tokens"
        if failed is None:
            return
        row[:] = 0
        if self.is_terminated():
            return
        if self.is_completed() and not self._stops:
            failed = (
                "no token can come: the text is whole, and there is no stop token; pass stop_token_ids to TokenizerInfo"
            )
        raise RefusedError(failed)

    def rollback(self, num_tokens: int = 1) -> None:
        """Take back the last steps. Raises: RefusedError if there were fewer, or it is negative."""
        if not 0 <= num_tokens <= len(self._said):
            raise RefusedError(f"cannot take back {num_tokens} steps: there were {len(self._said)}")
        kept = len(self._said) - num_tokens
        back = self._said[kept:]
        try:
            self._text.rollback(sum(each != b"" for each in back))
        except MaskwrightError:  # more than it remembers
            self._text.reset()
            for each in self._said[:kept]:
                if isinstance(each, bytes):
                    self._text.advance_bytes(each)
                else:
                    self._text.advance(each)
        self._said = self._said[:kept]

    def reset(self) -> None:
        """Put the text back to its start."""
        self._text.reset()
        self._said = []

    def fork(self) -> GrammarMatcher:
        """A second matcher in the same state."""
        other = GrammarMatcher(
            self._compiled, override_stop_tokens=self._stops, terminate_without_stop_token=self._ends_by_itself
        )
        other._text, other._said = self._text.fork(), list(self._said)
        return other

    def is_terminated(self) -> bool:
        """Whether a stop token has come; or, if none is needed, whether the text is whole."""
        return self._text.is_finished() or (self._ends_by_itself and self.is_completed())

    def is_completed(self) -> bool:
        """Whether the text is legal as a whole."""
        return self._text.is_accepting()

    def find_jump_forward_string(self) -> str:
        """The text that must come next: whole characters, at most 4,096 bytes; "" if none must."""
        if self.is_terminated():
            return ""
        try:
            forced = self._text.forced_bytes(_LONGEST_JUMP)
        except LimitError:
            return ""
        try:
            return forced.decode()
        except UnicodeDecodeError as error:  # the text stands within a character, or its end does
            return forced[: error.start].decode()

    def find_jump_forward_tokens(self) -> list[int]:
        """Tokens that spell what must come next, each the longest; no last one that may grow.

        The model's own tokenizer may spell it otherwise. Special tokens are not among them.
        """
        vocabulary = self._compiled.store.vocabulary
        forced = self.find_jump_forward_string().encode() if not self.is_completed() else b""
        texts, id_of = vocabulary.sorted_texts, vocabulary.id_of_text
        found: list[int] = []
        at = 0
        while at < len(forced):
            here = forced[at : at + texts.longest]
            sizes = [n for n in range(len(here), 0, -1) if here[:n] in id_of and id_of[here[:n]] not in self._stops]
            size = sizes[0] if sizes else 0
            if not size:
                break
            found.append(id_of[here[:size]])
            at += size
        if found:
            last = vocabulary.tokens[found[-1]]
            after = bisect.bisect_right(texts.texts, last)
            if after < len(texts.texts) and texts.texts[after].startswith(last):
                found.pop()
        return found

    def traverse_draft_tree(
        self,
        retrieve_next_token: Any,
        retrieve_next_sibling: Any,
        draft_tokens: Any,
        token_bitmask: Any,
        time_threshold: float = -1.0,
        temperatures: Any = None,
    ) -> bool:
        """Write a mask for each node of a tree of drafts; the text stays where it is.

        retrieve_next_token, retrieve_next_sibling : (n,) int64; the first child and the next
            sibling of each node, or -1. Node 0 is the text as it stands.
        draft_tokens : (n,) int64.
        token_bitmask : (n, W) int32. Nodes that are not legal, end the text, or have no mask get
            zeros, and so do those below.
        time_threshold : seconds; at most 0 for no limit.
        temperatures : (n,) float32 or None; filled with -1, which is "none".

        Returns False if the time was up.

        Raises: RefusedError for arrays that do not fit; as `fill_next_token_bitmask` for node 0.
        """
        children, siblings, drafts = (
            np.asarray(each) for each in (retrieve_next_token, retrieve_next_sibling, draft_tokens)
        )
        n = len(drafts)
        if not n or any(each.shape != (n,) or each.dtype != np.int64 for each in (children, siblings, drafts)):
            raise RefusedError("the arrays of the draft tree do not fit; expected three of (n,) int64, n > 0")
        if (children >= n).any() or (siblings >= n).any():
            raise RefusedError(f"the draft tree names nodes past its last, {n - 1}")
        rows = [row_of(token_bitmask, node, self._n_words) for node in range(n)]
        if temperatures is not None:
            temperatures.fill_(-1.0)
        began, start = time.monotonic(), len(self._said)
        order = _in_order(children, siblings)
        for node, _ in order:
            rows[node][:] = 0
        cut = n  # the depth below which nothing is legal
        try:
            for node, depth in order:
                if node and 0 < time_threshold < time.monotonic() - began:
                    return False
                if depth <= cut:
                    self.rollback(len(self._said) - start - max(depth - 1, 0))
                    cut = n if self._fill_node(node, int(drafts[node]), rows[node]) else depth
        finally:
            self.rollback(len(self._said) - start)
        return True

    def _fill_node(self, node: int, draft: int, row: npt.NDArray[np.int32]) -> bool:
        """Read a draft, unless the node is 0, and write its mask. False if it has none.

        Raises: as `_fill` for node 0: one draft of several must not end a request.
        """
        if (node and not self.accept_token(draft)) or self.is_terminated():
            return False
        try:
            self._fill(row)
        except RefusedError:
            if not node:
                raise
            return False
        return True

    @property
    def stop_token_ids(self) -> list[int]:
        """The ids that end the text."""
        return list(self._stops)

    @property
    def max_rollback_tokens(self) -> int:
        """-1: any number of steps can be taken back."""
        return -1

    @property
    def temperature(self) -> None:
        """None: grammars do not choose temperatures here."""
        return None

    def __repr__(self) -> str:
        return f"<GrammarMatcher {self._text!r}>"


class BatchGrammarMatcher(Partial):
    """Several matchers in one call. max_threads : no meaning here."""

    def __init__(self, max_threads: int | str = "auto") -> None:
        self.max_threads = max_threads

    def batch_fill_next_token_bitmask(
        self,
        matchers: Sequence[GrammarMatcher],
        bitmask: Any,
        indices: Sequence[int] | None = None,
        debug_print: bool = False,
    ) -> None:
        """Write the masks of several matchers.

        bitmask : (B, W) int32.
        indices : the row of each; None for 0, 1, 2 and so on.

        Raises: RefusedError if they are not as many; as `GrammarMatcher.fill_next_token_bitmask`.
        """
        array = as_words(bitmask)
        for matcher, index in _pairs(matchers, range(len(matchers)) if indices is None else indices):
            matcher.fill_next_token_bitmask(array, index)

    @staticmethod
    def batch_accept_token(
        matchers: Sequence[GrammarMatcher], tokens: Sequence[int], debug_print: bool = False
    ) -> list[bool]:
        """Add a token to each. Returns which were allowed. Raises: RefusedError if not as many."""
        return [matcher.accept_token(token) for matcher, token in _pairs(matchers, tokens)]

    @staticmethod
    def batch_accept_string(
        matchers: Sequence[GrammarMatcher], strings: Sequence[str | bytes], debug_print: bool = False
    ) -> list[bool]:
        """Add a text to each. Returns which were allowed. Raises: RefusedError if not as many."""
        return [matcher.accept_string(text) for matcher, text in _pairs(matchers, strings)]

    @staticmethod
    def batch_rollback(matchers: Sequence[GrammarMatcher], num_tokens: int | Sequence[int] = 1) -> None:
        """Take back steps of each. Raises: RefusedError if not as many, or a text has fewer."""
        counts = [num_tokens] * len(matchers) if isinstance(num_tokens, int) else num_tokens
        for matcher, n in _pairs(matchers, counts):
            matcher.rollback(n)


def _pairs(matchers: Sequence[GrammarMatcher], values: Sequence[Any]) -> list[tuple[GrammarMatcher, Any]]:
    if len(matchers) != len(values):
        raise RefusedError(f"{len(matchers)} matchers and {len(values)} values are given; expected one for each")
    return list(zip(matchers, values, strict=True))


def _in_order(children: npt.NDArray[np.int64], siblings: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """The nodes of a draft tree, each before those below it, with how many drafts come before it.

    Raises: RefusedError if it is no tree.
    """
    found, todo = dict[int, int](), [(0, 0)]
    while todo:
        node, depth = todo.pop()
        if node in found:
            raise RefusedError(f"node {node} of the draft tree is reached twice; expected a tree")
        found[node] = depth
        after = ((siblings[node], depth), (children[node], depth + 1))
        todo += [(int(each), at) for each, at in after if each >= 0]
    return list(found.items())


_MODULES = ("compiler", "grammar", "matcher", "tokenizer_info")
"""xgrammar's modules whose names are all here."""


def install(*, replace: bool = False) -> ModuleType:
    """Put this module in xgrammar's place for this program. Returns it.

    replace : also where xgrammar was imported before. Modules that hold its names keep them.

    To be called before anything imports xgrammar. xgrammar need not be installed.

    Raises: RefusedError if xgrammar was imported before, unless `replace`.
    """
    module = sys.modules[__name__]
    there = sys.modules.get("xgrammar")
    if there is not None and there is not module and not replace:
        raise RefusedError("xgrammar was imported before; call install() first of all, or pass replace=True")
    for name in [name for name in sys.modules if name.startswith("xgrammar.")]:
        del sys.modules[name]
    for name in ("", *(f".{each}" for each in _MODULES)):
        sys.modules[f"xgrammar{name}"] = module
    return module


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return sys.modules[__name__]
    if name == "bitmask_dtype":
        return need_torch().int32
    raise MissingError(f"maskwright stands in for xgrammar here, and has no {name!r}")


__all__ = [
    "BatchGrammarMatcher",
    "CompiledGrammar",
    "Grammar",
    "GrammarCompiler",
    "GrammarMatcher",
    "MissingError",
    "RefusedError",
    "StructuralTagItem",
    "TokenizerInfo",
    "VocabType",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "get_bitmask_shape",
    "install",
    "reset_token_bitmask",
]
