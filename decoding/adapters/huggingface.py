"""Masks for `model.generate` of transformers: a logits processor that follows whichever prefixes it is called with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import boolean, integer, refuse_argument
from maskwright.analysis.errors import DeadEndError, MaskwrightError, VocabularyError
from maskwright.decoding.adapters.prefixes import Ids, Prefixes, Rules
from maskwright.decoding.endings.ending import short_ending
from maskwright.decoding.engine.arguments import integers, texts
from maskwright.decoding.logits import ResidentRows, mend_rows, need_torch
from maskwright.decoding.logits._row_kernels import NOTHING
from maskwright.decoding.logits.optional import need_dense
from maskwright.decoding.logits.rows import DEFAULT_CAPACITY, check_stores
from maskwright.decoding.logits.staging import StreamEvent
from maskwright.decoding.matcher import DEFAULT_ROLLBACK, Matcher
from maskwright.maskstore.file.fileformat import as_table
from maskwright.maskstore.table.compiled import EngineTable

if TYPE_CHECKING:
    from maskwright.decoding.endings.ending import Ending
    from maskwright.maskstore.vocabulary import Vocabulary


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

    A row's state follows its prefix, whatever tokens have come or gone since the last call: all of them are read, those that a row shares
    with one of the call before excepted. Rows may change places and number. After the end of a text only its end-of-text tokens are left.
    A processor serves one `generate` after the other. Rows that begin with none of the last prompts begin anew, and so do rows whose texts
    had all ended and that go on behind. A prompt that goes on where a text was cut off is read as that text; call `reset` before if it
    shall be a new prompt. After an error, or an interruption, the next call reads its rows from their start.

    Raises when it is called: IllegalTokenError naming row, position and token if another party wrote a token that the grammar refuses;
    DeadEndError if no token can come next; MaskwrightError if the logits do not fit the vocabulary, if all allowed tokens have been
    ruled out by others, or if it is not known where a row's text begins (two generations at a time, rows that lost their first token,
    some rows of the last generation beside others). Logits are never all -inf.

    On a GPU masks stay there (`ResidentRows`): a call sends the number of each row, and waits once, for `input_ids`. So that it need not
    wait for its own result too, a row of which others ruled out everything gets 0 for the tokens that are allowed, and the error
    comes with the next call, or with `endings`; on the CPU it comes at once.
    Cost: a few us for each row and some two copies of the logits.
    """

    def __init__(
        self,
        store: EngineTable | str | os.PathLike[str] | Sequence[EngineTable | str | os.PathLike[str]],
        tokenizer: Any = None,
        *,
        prompt_lengths: int | Sequence[int] | None = None,
        constrain_prompt: bool = False,
        prefix: str | bytes | Sequence[str | bytes] = b"",
        max_rollback: int = DEFAULT_ROLLBACK,
        drafts: bool | None = None,
        in_place: bool = False,
    ) -> None:
        constrain_prompt, in_place = boolean("constrain_prompt", constrain_prompt), boolean("in_place", in_place)
        drafts = None if drafts is None else boolean("drafts", drafts)
        given: Any = store if isinstance(store, Sequence) and not isinstance(store, str | bytes) else (store,)
        found: Any = tuple(as_table(each) for each in given)  # check_stores refuses those without masks
        self._stores: tuple[EngineTable, ...] = found
        check_stores(self._stores)
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
        max_rollback = integer("max_rollback", max_rollback)
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
        """Forget all texts: the next call begins a generation."""
        self._prefixes.reset()
        self._judgement: Judgement | None = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Masked scores for the prefixes. input_ids : (B, L) integers. scores : (B, N) floating point, N at least the tokenizer's size."""
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
            )  # before the scores are looked at: a first call says where texts begin, also if it fails
            if scores.shape[1] < self._n_columns:
                raise MaskwrightError(
                    f"the model gives {scores.shape[1]} logits, but vocabulary {self.vocabulary.name} has tokens up to id "
                    f"{self._n_columns - 1}: the store was built for another tokenizer than the model's"
                )
            return self._mask(scores)
        except BaseException:
            self._judgement = None
            self._prefixes.distrust()
            raise

    def masks(self, ids: Ids) -> npt.NDArray[np.int32]:
        """The masks for these prefixes, (B, W) int32, on the host, which the call for the same prefixes is going to apply.

        ids : (B, L). Texts that have ended have their end-of-text tokens. Where that call is going to raise, or its logits do not count,
        there are all tokens.
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
        """For each sequence that `generate` returned, what completes it: empty where it ended by itself, else `Matcher.short_ending`.

        What max_new_tokens cut off is a beginning of a legal text only; the ending's bytes (or tokens) make it one.
        Raises MaskwrightError before the first generation, and if all allowed tokens had been ruled out by others in its last step;
        IllegalTokenError if the sequences are not legal beginnings.
        """
        if not self._prefixes.has_begun:
            raise MaskwrightError("there was no generation yet, so where the texts begin is not known")
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
            for position in range(start, len(tokens)):
                if matcher.is_finished():
                    break
                self._prefixes.advance(matcher, row, position, tokens[position])
            found.append(short_ending(matcher))
        return found

    def _mask(self, scores: Any) -> Any:
        resident = self._resident_on(scores.device, len(scores))
        rows = zip(self._prefixes.matchers, self._prefixes.is_stray, strict=True)
        row_ids = resident.ids([None if is_stray else matcher for matcher, is_stray in rows])
        masked = scores if self._in_place else scores.clone()
        resident.apply(masked, row_ids)
        if any(self._prefixes.has_ended):
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


def _ids(what: str, values: Any) -> Ids:
    """Tokens on the host. values : a dense tensor, an array or lists."""
    return integers(what, values.cpu() if hasattr(values, "cpu") else values, "integers, of shape (B, L)").astype(
        np.int64, copy=False
    )


def _lengths(given: Any) -> int | Sequence[int]:
    """prompt_lengths, looked at when they are given, not when they are first used."""
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


__all__ = ["MaskwrightLogitsProcessor", "check_same_tokens", "check_stores"]
