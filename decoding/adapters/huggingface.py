"""Masks for `model.generate` of transformers: a logits processor that follows whichever prefixes it is called with."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, IllegalTokenError, MaskwrightError, VocabularyError
from maskwright.decoding._row_kernels import NOTHING
from maskwright.decoding.ending import short_ending
from maskwright.decoding.kernels import ResidentRows, mend_rows, need_torch
from maskwright.decoding.kernels.rows import DEFAULT_CAPACITY, check_stores
from maskwright.decoding.kernels.staging import StreamEvent
from maskwright.decoding.matcher import DEFAULT_ROLLBACK, Matcher
from maskwright.maskstore.automaton_store import AutomatonStore
from maskwright.maskstore.fileformat import as_store

if TYPE_CHECKING:
    from maskwright.decoding.ending import Ending
    from maskwright.maskstore.vocabulary import Vocabulary

Ids = npt.NDArray[np.int64]
Key = tuple[int, bytes, int]
"""Rows can take each other's places if they agree in this: the number of the store, the text before, and the start."""


class MaskwrightLogitsProcessor:
    """-inf for every token that the grammar does not allow next: `model.generate(..., logits_processor=[processor])`.

    store : one, or its file, for all sequences, or a list with one for each sequence of the batch (before beams and
        num_return_sequences); all for one tokenizer.
    tokenizer : the model's, if its tokens shall be compared with the store's; a mismatch is a VocabularyError.
    prompt_lengths : where the constrained text begins, in positions from the left, padding included: a number, or one for each sequence.
        By default it begins behind the prompt, whose length is that of the first call's input.
    constrain_prompt : the prompt is text of the grammar too; it is read from its first token that stands for text.
    prefix : text that comes before the constrained tokens (what the prompt ends with, for example), or one for each sequence. Read
        as bytes, so it need not be cut into tokens as the prompt is.
    drafts : whether a prefix may hold tokens that were only proposed (speculative decoding). None: it may where the assisted decoding of
        transformers calls.
    in_place : write into the scores given. transformers hands the same tensor to other uses (output_logits, prompt lookup), so by
        default a copy is changed.

    A row's state follows its prefix: what it shares with a prefix seen in the call before is not read again, and beams change places.
    After the end of a text only its end-of-text tokens are left. A processor serves one `generate` after the other: a prompt other than the
    last one's, or `reset`, begins anew.

    Raises when it is called: IllegalTokenError naming row, position and token if another party wrote a token that the grammar refuses;
    DeadEndError if no token can come next; MaskwrightError if the logits do not fit the vocabulary, or if all allowed tokens have been
    ruled out by others. Logits are never all -inf.

    On a GPU masks stay there (`ResidentRows`): a call sends the number of each row, and waits once, for `input_ids`. So that it need not
    wait for its own result too, a row of which others ruled out everything gets 0 for the tokens that are allowed, and the error
    comes with the next call, or with `endings`; on the CPU it comes at once.
    Cost: a few us for each row and some two copies of the logits.
    """

    def __init__(
        self,
        store: AutomatonStore | str | os.PathLike[str] | Sequence[AutomatonStore | str | os.PathLike[str]],
        tokenizer: Any = None,
        *,
        prompt_lengths: int | Sequence[int] | None = None,
        constrain_prompt: bool = False,
        prefix: str | bytes | Sequence[str | bytes] = b"",
        max_rollback: int = DEFAULT_ROLLBACK,
        drafts: bool | None = None,
        in_place: bool = False,
    ) -> None:
        given: Any = store if isinstance(store, Sequence) and not isinstance(store, str) else (store,)
        found: Any = tuple(as_store(each) for each in given)  # check_stores refuses those without masks
        self._stores: tuple[AutomatonStore, ...] = found
        check_stores(self._stores)
        if constrain_prompt and prompt_lengths is not None:
            raise MaskwrightError(
                "constrain_prompt and prompt_lengths both say where the text begins; give one of them"
            )
        self.vocabulary: Vocabulary = self._stores[0].vocabulary
        if tokenizer is not None:
            from maskwright.maskstore.vocabulary import load_vocabulary

            check_same_tokens(self.vocabulary, load_vocabulary(tokenizer))
        texts = [prefix] if isinstance(prefix, str | bytes) else prefix
        self._prefixes = tuple(text.encode() if isinstance(text, str) else text for text in texts)
        self._prompt_lengths = prompt_lengths
        self._constrain_prompt = constrain_prompt
        self._max_rollback = max_rollback
        self._drafts = drafts
        self._in_place = in_place
        self._has_text = np.array([bool(token) for token in self.vocabulary.tokens])
        self._eos = list(self.vocabulary.eos)
        self._n_columns = 1 + max(
            [*np.flatnonzero(self._has_text).tolist()[-1:], *self._eos], default=0
        )  # what logits must have
        self._resident: ResidentRows | None = None
        self._eos_there: Any = None
        self.reset()

    def reset(self) -> None:
        """Forget all texts: the next call begins a generation."""
        self._last: Ids | None = None
        self._prompt: Ids = np.zeros((0, 0), np.int64)
        self._matchers: list[Matcher] = []
        self._texts: list[bytes] = []
        self._keys: list[Key] = []
        self._starts: list[int] = []
        self._n_read: list[int] = []
        self._has_ended: list[bool] = []
        self._is_stray: list[bool] = []
        self._judgement: Judgement | None = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Masked scores for the prefixes. input_ids : (B, L) integers. scores : (B, N) floating point, N at least the tokenizer's size."""
        need_torch()
        ids: Ids = input_ids.detach().cpu().numpy().astype(np.int64, copy=False)
        if ids.ndim != 2 or scores.ndim != 2 or len(ids) != len(scores) or not len(ids):
            raise MaskwrightError(
                f"input_ids have shape {ids.shape} and scores {tuple(scores.shape)}; expected (B, L) and (B, N) for the same B > 0"
            )
        if scores.shape[1] < self._n_columns:
            raise MaskwrightError(
                f"the model gives {scores.shape[1]} logits, but vocabulary {self.vocabulary.name} has tokens up to id "
                f"{self._n_columns - 1}: the store was built for another tokenizer than the model's"
            )
        try:
            self._raise_if_dead()
            self._follow(ids)
            return self._mask(scores)
        except BaseException:
            self.reset()  # some rows may be ahead of others
            raise

    def masks(self, ids: Ids) -> npt.NDArray[np.int32]:
        """The masks for these prefixes, (B, W) int32, on the host, which the call for the same prefixes is going to apply.

        ids : (B, L). Texts that have ended have their end-of-text tokens. Where that call is going to raise, or its logits do not count,
        there are all tokens.
        """
        words = np.zeros((len(ids), max(store.n_words for store in self._stores)), np.int32)
        try:
            self._follow(ids)
        except BaseException:
            self.reset()  # some rows may be ahead of others
            raise
        for row, matcher in enumerate(self._matchers):
            if self._is_stray[row]:
                words[row] = -1
            elif self._has_ended[row]:
                for token in self._eos:
                    words[row, token >> 5] |= np.uint32(1 << (token & 31)).view(np.int32)
            else:
                try:
                    matcher.fill(words[row])
                except DeadEndError:
                    words[row] = -1
        return words

    def endings(self, sequences: Any) -> list[Ending]:
        """For each sequence that `generate` returned, what completes it: empty where it ended by itself, else `Matcher.short_ending`.

        What max_new_tokens cut off is a beginning of a legal text only; the ending's bytes (or tokens) make it one.
        Raises MaskwrightError before the first generation, and if all allowed tokens had been ruled out by others in its last step;
        IllegalTokenError if the sequences are not legal beginnings.
        """
        if self._last is None:
            raise MaskwrightError("there was no generation yet, so where the texts begin is not known")
        self._raise_if_dead()
        ids: Ids = np.asarray(sequences.detach().cpu() if hasattr(sequences, "detach") else sequences, dtype=np.int64)
        rows = len(self._starts)
        found = []
        for row, tokens in enumerate(ids.tolist()):
            number = self._number(row, len(ids), len(self._stores), "stores")
            matcher = Matcher(self._stores[number], 0)
            matcher.advance_bytes(self._prefixes[self._number(row, len(ids), len(self._prefixes), "prefixes")])
            for position in range(self._starts[row * rows // len(ids)], len(tokens)):
                if matcher.is_finished():
                    break
                self._advance(matcher, row, position, tokens[position])
            found.append(short_ending(matcher))
        return found

    def _follow(self, ids: Ids) -> None:
        """Bring each row's matcher behind its prefix."""
        last = self._last
        rows, length = ids.shape
        if last is None or rows != len(last) or length > last.shape[1] + 1:
            self._begin(ids)
            return
        if length == last.shape[1] + 1 and np.array_equal(ids[:, :-1], last):
            in_step = [
                ended or start + n == length - 1
                for start, n, ended in zip(self._starts, self._n_read, self._has_ended, strict=True)
            ]
            if all(in_step):
                self._last = ids.copy()
                for row, token in enumerate(ids[:, -1].tolist()):
                    if not self._has_ended[row]:
                        self._read(row, [token], is_committed=False)
                return
        width = self._prompt.shape[1]
        if length < width or not np.array_equal(ids[:, :width], self._prompt):
            self._begin(ids)
            return
        self._rearrange(last, ids)

    def _begin(self, ids: Ids) -> None:
        """The first call of a generation."""
        rows, length = ids.shape
        numbers = [self._number(row, rows, len(self._stores), "stores") for row in range(rows)]
        texts = [self._prefixes[self._number(row, rows, len(self._prefixes), "prefixes")] for row in range(rows)]
        if self._constrain_prompt:
            starts = [self._first_text(row) for row in ids]
        elif self._prompt_lengths is None:
            starts = [length] * rows
        elif isinstance(self._prompt_lengths, int):
            starts = [self._prompt_lengths] * rows
        else:
            lengths = self._prompt_lengths
            starts = [int(lengths[self._number(row, rows, len(lengths), "prompt_lengths")]) for row in range(rows)]
        for row, start in enumerate(starts):
            if not 0 <= start <= length:
                raise MaskwrightError(
                    f"row {row}: prompt_lengths says {start}, but the prompt has {length} positions, padding included"
                )
        self._starts, self._n_read = starts, [0] * rows
        self._has_ended, self._is_stray = [False] * rows, [False] * rows
        self._matchers = [Matcher(self._stores[number], self._max_rollback) for number in numbers]
        self._texts = texts
        self._keys = list(zip(numbers, texts, starts, strict=True))
        self._prompt = ids.copy()
        self._last = self._prompt
        for row in range(rows):
            self._restart(row)
            self._read(row, ids[row, starts[row] :].tolist(), is_committed=True)

    def _restart(self, row: int) -> None:
        """The row's text back to its start, behind the prefix."""
        matcher = self._matchers[row]
        matcher.reset()
        try:
            matcher.advance_bytes(self._texts[row])
        except IllegalTokenError as error:
            raise IllegalTokenError(f"row {row}: the prefix is no beginning of a legal text: {error}") from None
        self._n_read[row], self._has_ended[row], self._is_stray[row] = 0, False, False

    def _rearrange(self, last: Ids, ids: Ids) -> None:
        """Rows have changed places, or a prefix is shorter than before: each goes on from a row of the last call."""
        rows, length = ids.shape
        read = [last[row, self._starts[row] : self._starts[row] + self._n_read[row]] for row in range(rows)]
        whole: dict[tuple[Key, bytes], int] = {}
        for row in range(rows):
            whole.setdefault((self._keys[row], read[row].tobytes()), row)
        wanted = [ids[row, self._starts[row] :] for row in range(rows)]
        sources = []
        for row in range(rows):
            source = row
            if shared(read[row], wanted[row]) < len(read[row]):
                source = whole.get((self._keys[row], wanted[row][:-1].tobytes()), row)
            sources.append(source)
        taken: set[int] = {row for row in range(rows) if sources[row] == row}
        matchers, counts, ended = list(self._matchers), list(self._n_read), list(self._has_ended)
        for row, source in enumerate(sources):
            if source == row:
                continue
            if source in taken:
                self._matchers[row] = matchers[source].fork()
            else:
                self._matchers[row] = matchers[source]
                taken.add(source)
            self._n_read[row], self._has_ended[row] = counts[source], ended[source]
        self._last = ids.copy()
        is_committed = length <= last.shape[1]
        for row, source in enumerate(sources):
            self._is_stray[row] = False
            keep = shared(read[source], wanted[row])
            self._back_to(row, keep)
            if not self._has_ended[row]:
                self._read(row, wanted[row][self._n_read[row] :].tolist(), is_committed)

    def _back_to(self, row: int, n: int) -> None:
        """Take back all but the first n tokens of a row; read them again from the start if they are not remembered."""
        back = self._n_read[row] - n
        if not back:
            return
        try:
            self._matchers[row].rollback(back)
            self._n_read[row], self._has_ended[row] = n, False
        except MaskwrightError:
            self._restart(row)

    def _read(self, row: int, tokens: Iterable[int], is_committed: bool) -> None:
        """Read tokens up to the end of the text. is_committed : they have been accepted, so that none is a mere draft."""
        matcher = self._matchers[row]
        for token in tokens:
            position = self._starts[row] + self._n_read[row]
            try:
                self._advance(matcher, row, position, token)
            except IllegalTokenError:
                if is_committed or not (_is_drafting() if self._drafts is None else self._drafts):
                    raise
                self._is_stray[row] = True
                return
            self._n_read[row] += 1
            if token in self._eos:
                self._has_ended[row] = True
                return

    def _advance(self, matcher: Matcher, row: int, position: int, token: int) -> None:
        try:
            matcher.advance(token)
        except IllegalTokenError as error:
            raise IllegalTokenError(
                f"row {row}, position {position}: {error}. The masks refused this token, so something else wrote it: a prompt that is not "
                "text of the grammar, another logits processor that comes later, or a draft (then say drafts=True)"
            ) from None

    def _mask(self, scores: Any) -> Any:
        resident = self._resident_on(scores.device, len(scores))
        row_ids = resident.ids([None if self._is_stray[row] else m for row, m in enumerate(self._matchers)])
        masked = scores if self._in_place else scores.clone()
        resident.apply(masked, row_ids)
        if any(self._has_ended):
            # PERF: in one go, and no number comes from the host: texts that have ended have the row NOTHING
            ends = masked.index_select(1, self._eos_there)
            ends.masked_fill_((row_ids == NOTHING)[:, None], 0.0)
            masked.index_copy_(1, self._eos_there, ends)
        self._judgement = Judgement(mend_rows(masked, row_ids, resident.words), row_ids)
        if not _is_late(masked.device):
            self._raise_if_dead()
        return masked

    def _resident_on(self, device: Any, rows: int) -> ResidentRows:
        """The masks on a device; new ones if it is another than before, or if there are more rows than they can serve."""
        resident = self._resident
        if resident is None or resident.device != device or resident.capacity <= 2 * rows:
            resident = ResidentRows(self._stores, device, max(DEFAULT_CAPACITY, 2 * rows + 1))
            self._resident = resident
            self._eos_there = need_torch().tensor(self._eos, device=device, dtype=need_torch().long)
        return resident

    def _raise_if_dead(self) -> None:
        """Raise if all that a row allowed had been ruled out by others when it was masked last."""
        judgement, resident = self._judgement, self._resident
        if judgement is None or resident is None:
            return
        self._judgement = None
        row, row_id = judgement.first()
        if row < 0:
            return
        allowed = resident.allowed(row_id)
        tokens = self.vocabulary.tokens
        some = ", ".join(f"{i} ({'end of text' if i in self._eos else repr(tokens[i])})" for i in allowed[:5].tolist())
        raise MaskwrightError(
            f"row {row}: none of the {len(allowed)} tokens that the grammar allows has a finite logit: the model or another logits "
            f"processor (suppress_tokens, bad_words_ids, min_new_tokens, a forced token) ruled them all out. Allowed are {some}"
            + (" ..." if len(allowed) > 5 else "")
        )

    def _first_text(self, ids: Ids) -> int:
        """The position of the first token that stands for text: padding and the begin-of-text token come before."""
        inside = (ids >= 0) & (ids < len(self._has_text))
        stands = ~inside | self._has_text[np.where(inside, ids, 0)]
        return int(stands.argmax()) if stands.any() else len(ids)

    @staticmethod
    def _number(row: int, rows: int, n: int, what: str) -> int:
        """Which sequence a row belongs to: transformers puts the beams of a sequence, or its samples, one after the other."""
        if rows % n:
            raise MaskwrightError(
                f"{n} {what} are given for {rows} rows; expected one for all, or one for each sequence"
            )
        return row * n // rows


def check_same_tokens(ours: Vocabulary, theirs: Vocabulary) -> None:
    """Raises VocabularyError unless each id stands for the same bytes in both; either may have more ids without text at its end."""
    for token in range(max(ours.size, theirs.size)):
        first = ours.tokens[token] if token < ours.size else b""
        second = theirs.tokens[token] if token < theirs.size else b""
        if first != second:
            raise VocabularyError(
                f"the store is for another tokenizer: token {token} is {first!r} in the store's vocabulary {ours.name} ({ours.size} ids), "
                f"{second!r} in {theirs.name} ({theirs.size} ids); build the store with the model's tokenizer"
            )


def _is_late(device: Any) -> bool:
    """Whether results come later than the call that asks for them."""
    return bool(device.type != "cpu")


class Judgement:
    """Which rows had nothing left when they were masked, on its way from the device.

    is_dead : (B,) uint8. row_ids : (B,) int32.
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
        """The first such row and its id, or -1 twice. Waits for the step that was masked."""
        if self._event is not None:
            self._event.synchronize()
        is_dead = self._is_dead.cpu().numpy()
        if not is_dead.any():
            return -1, -1
        row = int(is_dead.argmax())
        return row, int(self._row_ids[row])


def shared(first: Ids, second: Ids) -> int:
    """The length of the longest common prefix."""
    n = min(len(first), len(second))
    differs = first[:n] != second[:n]
    return int(differs.argmax()) if differs.any() else n


def _is_drafting() -> bool:
    """Whether transformers' assisted decoding called: it asks for logits behind proposals that it is going to refuse.

    Nothing it passes tells; so the stack is looked at, in the one case that matters, when a token is not legal.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_assisted_decoding":
            return True
        frame = frame.f_back
    return False


__all__ = ["MaskwrightLogitsProcessor", "check_same_tokens", "check_stores"]
