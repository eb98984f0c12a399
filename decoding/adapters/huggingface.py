"""Masks for `model.generate` of transformers: a logits processor that follows its prefixes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_boolean, as_integer, refuse_argument
from maskwright.analysis.errors import DeadEndError, MaskwrightError, VocabularyError
from maskwright.decoding.adapters.prefixes import Ids, Prefixes, Rules
from maskwright.decoding.engine.arguments import integers, texts
from maskwright.decoding.engines import check_tables
from maskwright.decoding.logits import ResidentRows, mend_rows, need_torch
from maskwright.decoding.logits._row_kernels import NOTHING
from maskwright.decoding.logits.optional import need_dense
from maskwright.decoding.logits.rows import DEFAULT_CAPACITY
from maskwright.decoding.logits.staging import StreamEvent
from maskwright.decoding.matcher import DEFAULT_ROLLBACK, Matcher
from maskwright.maskstore.file.fileformat import read_store

if TYPE_CHECKING:
    from maskwright.decoding.endings.ending import Ending
    from maskwright.decoding.engines import AnyTable
    from maskwright.maskstore.vocabulary import Vocabulary


class MaskwrightLogitsProcessor:
    """Writes -inf for every token that the grammar refuses, in `model.generate` of transformers.

    Use it as `model.generate(..., logits_processor=[processor])`.

    store : a store, of a grammar, a schema or a pattern, or its file, for all sequences; or a list
        with one for each sequence of the batch (before beams and num_return_sequences). All are for
        one tokenizer.
    tokenizer : the model's, if its tokens are to be compared with the store's.
    prompt_lengths : where the constrained text begins, in positions from the left, padding
        included: a number, or one for each sequence. By default it begins after the prompt, whose
        length is that of the first call's input.
    constrain_prompt : the prompt is text of the grammar too. It is read from its first token that
        stands for text.
    prefix : text before the constrained tokens (what the prompt ends with, for example), or one for
        each sequence. It is read as bytes, so it may be cut into other tokens than the prompt.
    max_rollback : how many tokens of a text can be taken back without reading it from its start.
    drafts : whether a prefix may hold tokens that were only proposed (speculative decoding). None:
        it may if the assisted decoding of transformers calls.
    in_place : write into the given scores. By default a copy is changed, because transformers hands
        the same tensor to other uses (output_logits, prompt lookup).

    A row's state follows its prefix, whatever tokens have come or gone since the last call. All
    tokens are read, except those that a row shares with a row of the call before. Rows may change
    their order and number. After the end of a text only its end-of-text tokens are left.

    A processor serves one `generate` after the other. Rows that begin with none of the last prompts
    begin anew. So do rows that go on after all their texts had ended. A prompt that goes on where a
    text was cut off is read as that text. Call `reset` before if it is a new prompt. After an
    error, or an interruption, the next call reads its rows from their start.

    Raises: when it is made, VocabularyError if `tokenizer` or the stores differ in their tokens;
    MaskwrightError for arguments of the wrong kind, a store without matchers, or `constrain_prompt`
    together with `prompt_lengths`; and as `load_store` for a file. For the errors of a call see
    `__call__`.

    On a GPU the masks stay there (`ResidentRows`). A call sends the number of each row and new
    masks, and waits once, for `input_ids`. It does not wait for its own result. If other processors
    ruled out all that a row allows, the allowed tokens get 0, and the error comes with the next
    call, or with `endings`. On the CPU it comes at once. So logits are never all -inf.

    Cost: a few us for each row, and some two copies of the logits.
    """

    def __init__(
        self,
        store: AnyTable | str | os.PathLike[str] | Sequence[AnyTable | str | os.PathLike[str]],
        tokenizer: Any = None,
        *,
        prompt_lengths: int | Sequence[int] | None = None,
        constrain_prompt: bool = False,
        prefix: str | bytes | Sequence[str | bytes] = b"",
        max_rollback: int = DEFAULT_ROLLBACK,
        drafts: bool | None = None,
        in_place: bool = False,
    ) -> None:
        constrain_prompt, in_place = as_boolean("constrain_prompt", constrain_prompt), as_boolean("in_place", in_place)
        drafts = None if drafts is None else as_boolean("drafts", drafts)
        given: Any = store if isinstance(store, Sequence) and not isinstance(store, str | bytes) else (store,)
        found: Any = tuple(
            read_store(os.fsdecode(each))[0] if isinstance(each, str | bytes | os.PathLike) else each for each in given
        )
        self._stores: tuple[AnyTable, ...] = found
        check_tables(self._stores)
        if constrain_prompt and prompt_lengths is not None:
            raise MaskwrightError(
                "constrain_prompt and prompt_lengths both say where the text begins; give one of them"
            )
        self.vocabulary: Vocabulary = self._stores[0].vocabulary
        if tokenizer is not None:
            from maskwright.maskstore.vocabulary import load_vocabulary

            check_same_tokens(self.vocabulary, load_vocabulary(tokenizer))
        prefixes = texts("prefix", prefix, "a str or bytes, or a list with one for each sequence")
        lengths = None if prompt_lengths is None else _lengths(prompt_lengths)
        max_rollback = as_integer("max_rollback", max_rollback)
        rules = Rules(self._stores, prefixes, lengths, constrain_prompt, max_rollback, drafts)
        self._prefixes = Prefixes(rules)
        self._in_place = in_place
        self._eos = list(self.vocabulary.eos)
        self._n_columns = 1 + max(
            [*(token for token, data in enumerate(self.vocabulary.tokens) if data), *self._eos], default=0
        )  # what logits must have
        self._resident: ResidentRows | None = None
        self._eos_there: Any = None
        self.reset()

    def reset(self) -> None:
        """Forget all texts. The next call begins a generation."""
        self._prefixes.reset()
        self._dead_rows: DeadRows | None = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Masked scores for the prefixes: (B, N), a copy unless `in_place`.

        input_ids : (B, L) integers.
        scores : (B, N) floating point; N is at least the tokenizer's size.

        Raises: IllegalTokenError, naming row, position and token, if something else wrote a token
        that the grammar refuses; DeadEndError if no token can come next; MaskwrightError if the
        logits do not fit the vocabulary, other processors ruled out all allowed tokens, or it is
        not known where a row's text begins (two generations at a time, rows that lost their first
        token, some rows of the last generation beside others).
        """
        need_dense("scores", scores)
        ids: Ids = _ids("input_ids", need_dense("input_ids", input_ids))
        try:
            if ids.ndim != 2 or scores.ndim != 2 or len(ids) != len(scores) or not len(ids):
                raise MaskwrightError(
                    f"input_ids have shape {ids.shape} and scores {tuple(scores.shape)}; expected (B, L) and (B, N) for the same B > 0"
                )
            self._raise_if_dead()
            self._prefixes.follow(
                ids
            )  # before the check of scores: a first call says where texts begin even if it fails
            if scores.shape[1] < self._n_columns:
                raise MaskwrightError(
                    f"the model gives {scores.shape[1]} logits, but vocabulary {self.vocabulary.name} has tokens up to id "
                    f"{self._n_columns - 1}: the store was built for a different tokenizer than the model's"
                )
            return self._mask(scores)
        except BaseException:
            self._dead_rows = None
            self._prefixes.distrust()
            raise

    def masks(self, ids: Ids) -> npt.NDArray[np.int32]:
        """The masks that the call for the same prefixes will apply: (B, W) int32, on the host.

        ids : (B, L).

        A text that has ended has its end-of-text tokens. A row has all tokens if the call will
        raise for it, or if its logits do not count.

        Raises: MaskwrightError for other shapes; and as `__call__` for illegal tokens and unknown
        beginnings.
        """
        ids = _ids("ids", ids)
        if ids.ndim != 2:
            raise MaskwrightError(f"ids have shape {ids.shape}; expected (B, L)")
        words = np.zeros((len(ids), max(store.n_words for store in self._stores)), np.int32)
        self._prefixes.follow(ids)
        for row, matcher in enumerate(self._prefixes.matchers):
            if self._prefixes.is_stray[row]:
                words[row] = -1
            elif self._prefixes.has_ended[row]:
                for token in self._eos:
                    words[row, token >> 5] |= np.uint32(1 << (token & 31)).view(np.int32)
            else:
                try:
                    matcher.fill(words[row])
                except DeadEndError:
                    words[row] = -1
        return words

    def endings(self, sequences: Any) -> list[Ending]:
        """For each sequence that `generate` returned, what completes it; empty if it had ended.

        sequences : (B, L), as `generate` returns them.

        Padding at the end of a row is no text: beam search pads before an end of text, and whole
        rows, where there are fewer texts than it is to return.

        max_new_tokens may cut a text off, so that it is only a beginning of a legal text. The bytes
        (or tokens) of the ending, `Matcher.short_ending`, complete it.

        Raises: MaskwrightError before the first generation, for other shapes, and if all allowed
        tokens had been ruled out by other processors in its last step; IllegalTokenError if a
        sequence is not a legal beginning; and as `short_ending`.
        """
        if not self._prefixes.has_begun:
            raise MaskwrightError("there was no generation yet, so it is not known where the texts begin")
        self._raise_if_dead()
        ids: Ids = _ids(
            "the sequences", need_dense("the sequences", sequences) if hasattr(sequences, "detach") else sequences
        )
        if ids.ndim != 2:
            raise MaskwrightError(f"the sequences have shape {ids.shape}; expected (B, L), as `generate` returns them")
        found = []
        for row, tokens in enumerate(ids.tolist()):
            origin, start = self._prefixes.origin(ids[row], row, len(ids))
            matcher = Matcher(origin.store, 0)
            matcher.advance_bytes(origin.prefix)
            padding = _padding(tokens, origin.store.vocabulary)
            for position in range(start, len(tokens)):
                if matcher.is_finished() or (position >= padding and not matcher.is_allowed(tokens[position])):
                    break
                self._prefixes.advance(matcher, row, position, tokens[position])
            found.append(matcher.short_ending())
        return found

    def _mask(self, scores: Any) -> Any:
        resident = self._resident_on(scores.device, len(scores))
        rows = zip(self._prefixes.matchers, self._prefixes.is_stray, strict=True)
        row_ids = resident.ids([None if is_stray else matcher for matcher, is_stray in rows])
        masked = scores if self._in_place else scores.clone()
        resident.apply(masked, row_ids)
        if any(self._prefixes.has_ended):
            # PERF: one pass for all rows, and no number comes from the host: texts that have ended
            # have the row NOTHING
            ends = masked.index_select(1, self._eos_there)
            ends.masked_fill_((row_ids == NOTHING)[:, None], 0.0)
            masked.index_copy_(1, self._eos_there, ends)
        self._dead_rows = DeadRows(mend_rows(masked, row_ids, resident.words), row_ids)
        if not _is_asynchronous(masked.device):
            self._raise_if_dead()
        return masked

    def _resident_on(self, device: Any, rows: int) -> ResidentRows:
        """The rows on a device; new ones for another device, or if the batch needs more."""
        resident = self._resident
        if resident is None or resident.device != device or resident.capacity <= 2 * rows:
            resident = ResidentRows(self._stores, device, max(DEFAULT_CAPACITY, 2 * rows + 1))
            self._resident = resident
            self._eos_there = need_torch().tensor(self._eos, device=device, dtype=need_torch().long)
        return resident

    def _raise_if_dead(self) -> None:
        """Raise if other processors had ruled out all that a row allowed in the last call."""
        judgement, resident = self._dead_rows, self._resident
        if judgement is None or resident is None:
            return
        self._dead_rows = None
        row, row_id = judgement.first()
        if row < 0:
            return
        allowed = resident.allowed(row_id)
        tokens = self.vocabulary.tokens
        some = ", ".join(f"{i} ({'end of text' if i in self._eos else repr(tokens[i])})" for i in allowed[:5].tolist())
        raise MaskwrightError(
            f"row {row}: none of the {len(allowed)} tokens that the grammar allows has a finite logit: the model or another logits "
            f"processor (suppress_tokens, bad_words_ids, min_new_tokens, a forced token) ruled them all out. Allowed: {some}"
            + (" ..." if len(allowed) > 5 else "")
        )


def _padding(tokens: list[int], vocabulary: Vocabulary) -> int:
    """Where a row ends with one token, once or again and again, that stands for no text."""
    last, end = tokens[-1] if tokens else 0, len(tokens)
    if not 0 <= last < vocabulary.size or not vocabulary.tokens[last]:
        while end and tokens[end - 1] == last:
            end -= 1
    return end


def _ids(what: str, values: Any) -> Ids:
    """Token ids on the host. values : a dense tensor, an array or lists."""
    return integers(what, values.cpu() if hasattr(values, "cpu") else values, "integers, of shape (B, L)").astype(
        np.int64, copy=False
    )


def _lengths(given: Any) -> int | Sequence[int]:
    """prompt_lengths, checked when they are given, not when they are first used."""
    expected = "an integer, or a list with one for each sequence"
    if isinstance(given, bool | np.bool_ | str | bytes):
        refuse_argument("prompt_lengths", given, expected)
    found = integers(
        "prompt_lengths", need_dense("prompt_lengths", given).cpu() if hasattr(given, "detach") else given, expected
    )
    if found.ndim > 1 or not found.size:
        raise MaskwrightError(f"prompt_lengths have shape {found.shape}; expected {expected}")
    return found.tolist()  # type: ignore[no-any-return]


def check_same_tokens(ours: Vocabulary, theirs: Vocabulary) -> None:
    """Check that each id stands for the same bytes in both vocabularies.

    ours, theirs : the store's vocabulary and the model's. Either may have more ids without text at
        its end.

    Raises: VocabularyError if an id differs; it names the first.
    """
    for token in range(max(ours.size, theirs.size)):
        first = ours.tokens[token] if token < ours.size else b""
        second = theirs.tokens[token] if token < theirs.size else b""
        if first != second:
            raise VocabularyError(
                f"the store is for another tokenizer: token {token} is {first!r} in the store's vocabulary {ours.name} ({ours.size} ids), "
                f"{second!r} in {theirs.name} ({theirs.size} ids); build the store with the model's tokenizer"
            )


def _is_asynchronous(device: Any) -> bool:
    """Whether results come later than the call that asks for them: not on the CPU."""
    return bool(device.type != "cpu")


class DeadRows:
    """Which rows had no finite logit left when they were masked.

    is_dead : (B,) uint8, on the logits' device. It is copied to the host, which does not wait.
    row_ids : (B,) int32, on the same device.
    """

    def __init__(self, is_dead: Any, row_ids: Any) -> None:
        torch = need_torch()
        self._is_dead, self._row_ids, self._event = is_dead, row_ids, None
        if is_dead.device.type == "cuda":
            self._is_dead = torch.empty(is_dead.shape, dtype=is_dead.dtype, pin_memory=True)
            self._is_dead.copy_(is_dead, non_blocking=True)
            self._event = StreamEvent(is_dead.device)
            self._event.record()

    def first(self) -> tuple[int, int]:
        """The first such row and its id, or -1 twice. Waits until that step was masked."""
        if self._event is not None:
            self._event.synchronize()
        is_dead = self._is_dead.cpu().numpy()
        if not is_dead.any():
            return -1, -1
        row = int(is_dead.argmax())
        return row, int(self._row_ids[row])


__all__ = ["MaskwrightLogitsProcessor", "check_same_tokens"]
