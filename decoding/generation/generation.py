"""One text from a language model, token by token under masks, made legal within its budget.

At each step we launch the model's pass, fill the mask beside it, wait for the logits, choose a
token and read it. A token after which the text could not end within the budget is taken back, and
another one chosen. Where only an ending fits, or when time is up, we close the text with the ending
at hand. Without a matcher the same loop runs without masks, for comparison.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright.analysis.arguments import as_boolean
from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.engine.arguments import plain_bytes
from maskwright.decoding.generation.blanks import Blanks
from maskwright.decoding.generation.budget import Budget
from maskwright.decoding.generation.completion import Completion, Intervention, Reason, Step, intervention
from maskwright.decoding.generation.counts import TokenCounts
from maskwright.decoding.generation.guide import CanonicalGuide
from maskwright.decoding.generation.healing import Healing
from maskwright.decoding.generation.logits import Logits, Sampler, likeliest, reader_of
from maskwright.decoding.generation.names import NameGuide, NameSource
from maskwright.decoding.generation.options import (
    Options,
    as_prompt,
    as_stops,
    check_budget,
    check_sources,
)
from maskwright.decoding.generation.stops import Stops
from maskwright.decoding.logits import apply_mask
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import few_tokens, n_words

if TYPE_CHECKING:
    from maskwright.decoding.matcher import Matcher
    from maskwright.maskstore.canonical import CanonicalTokens

MOST_TRIES = 64
"""Tokens that may be chosen at one place although they do not fit; then the text is closed."""


class Generation:
    """An iterator over the steps of one completion. `generate` makes one.

    `completion` is available once the iterator is exhausted. `run` exhausts it.
    """

    def __init__(self, model: Any, matcher: Matcher | None, prompt_tokens: Sequence[int], options: Options) -> None:
        vocabulary, heal, names, counts = options.vocabulary, options.heal, options.names, options.counts
        canonical = options.canonical
        self._reader = reader_of(model, prompt_tokens)
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._max_tokens, self._max_seconds = options.max_tokens, options.seconds
        self._sampler = Sampler(options.temperature, options.top_k, options.top_p, options.seed)
        self._close = options.close and matcher is not None
        self._healing = Healing(vocabulary, heal)
        self._names = None if names is None or matcher is None else NameGuide(names, matcher, heal)
        self._stops = Stops(options.stop, vocabulary, matcher, heal, self._names)
        self._stop_when_complete = options.stop_when_complete
        self._words = np.zeros(n_words(vocabulary.size), np.int32)
        self._blanks = Blanks(vocabulary)
        self._tokens: list[int] = []
        self._text = b""  # after the prompt
        self._n_shown = self._n_spent = 0
        self._budget: Budget | None = None  # once the first token is asked for
        last = vocabulary.text_ids()[-1:].tolist()
        self._n_columns = 1 + max([*last, *(() if matcher is None else vocabulary.eos)], default=0)
        self._guide = (
            None if canonical is None or matcher is None else CanonicalGuide(canonical, matcher, prompt_tokens)
        )
        self._fast_forward = options.fast_forward and matcher is not None
        last_seen = prompt_tokens[-1]  # -1 below if it stands for no text
        self._before = last_seen if 0 <= last_seen < vocabulary.size and vocabulary.tokens[last_seen] else -1
        self._counts = None if matcher is None else counts
        self._place = b""  # where the next token stands, for the counts
        self._is_opportunistic = options.opportunistic and matcher is not None and not options.needs_masks
        self._asks_always = not (options.fast_forward or options.stop_when_complete or counts is not None)
        self._waiting: list[int] = []
        self._has_mask = False  # of the next token
        self._lookahead = options.lookahead_of(matcher)
        self._interventions: list[Intervention] = []
        self._n_forced = self._n_relaxed = self._n_masks = self._n_predicted = 0
        self._begin = self._first = self._mask_seconds = 0.0
        self._completion: Completion | None = None
        self._steps = self._run()

    def __iter__(self) -> Iterator[Step]:
        return self._steps

    def run(self) -> Completion:
        """Generate all steps that are left, and return the completion."""
        for _ in self._steps:
            pass
        return self.completion

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens read so far, as of `Completion`; a stop string may take the last ones back."""
        return tuple(self._tokens)

    @property
    def completion(self) -> Completion:
        """The whole completion.

        Raises: MaskwrightError if the iterator is not exhausted, or has ended by an error.
        """
        if self._completion is None:
            why = "is under way: exhaust it, or call run(), before you ask for its completion"
            if inspect.getgeneratorstate(self._steps) == inspect.GEN_CLOSED:
                why = "ended before its text was whole, by an error: start another one"
            raise MaskwrightError(f"the generation {why}")
        return self._completion

    def _run(self) -> Generator[Step]:
        self._begin = time.perf_counter()
        if self._close and self._matcher is not None:
            self._budget = Budget(self._matcher, self._healing.to_spell, self._names is not None)
            check_budget(self._matcher, self._budget.first, self._max_tokens)
        elif self._healing.to_spell and self._matcher is not None:
            self._matcher.fork().advance_bytes(self._healing.to_spell)  # or an error that says what is wrong
        reason: Reason | None = None
        while reason is None:
            reason = self._one()
            if not self._first:
                self._first = time.perf_counter() - self._begin
            certain = self._stops.n_certain(self._text, self._tokens) if reason is None else len(self._text)
            yield from self._show(certain)
        closing = b""
        if self._matcher is not None:
            # The generation may end before the prompt's healed end is spelled again.
            self._matcher.advance_bytes(self._healing.to_spell)
        if self._budget is not None and self._matcher is not None and not self._matcher.is_accepting():
            for token in self._budget.new_ending() if reason == "stop" else self._budget.ending:
                self._matcher.advance(token)
                self._tokens.append(token)
                closing += self._vocabulary.tokens[token]
            self._text += closing
            yield Step(closing, is_closing=True)
        self._completion = Completion(
            data=self._text,
            closing=closing,
            tokens=tuple(self._tokens),
            reason=reason,
            is_complete=None if self._matcher is None else self._matcher.is_accepting(),
            seconds=time.perf_counter() - self._begin,
            first_seconds=self._first,
            model_seconds=self._reader.seconds,
            mask_seconds=self._mask_seconds,
            ending_seconds=0.0 if self._budget is None else self._budget.seconds,
            model_calls=self._reader.calls,
            forced=self._n_forced,
            relaxed=self._n_relaxed,
            masks=self._n_masks,
            predicted=self._n_predicted,
            interventions=tuple(self._interventions),
        )

    def _one(self) -> Reason | None:
        """Generate one token, and return why the generation ends; None if it goes on."""
        left = self._max_tokens - self._n_spent
        if left <= 0 or not (self._budget is None or self._healing.to_spell or self._budget.leaves_choice(left)):
            return "tokens"
        if self._max_seconds is not None and time.perf_counter() - self._begin >= self._max_seconds:
            return "seconds"
        if self._asks_always:
            self._reader.launch()
        begin = time.perf_counter()
        self._has_mask = False
        token = self._waiting.pop(0) if self._waiting else -1
        if token < 0 and self._matcher is not None and not self._is_tried_first():
            self._fill(self._matcher)
            if self._stop_when_complete and self._is_complete():
                return "complete"
            token = self._forced_token()
        self._mask_seconds += time.perf_counter() - begin
        if token >= 0 and not self._read_forced(token, left):
            token = -1  # another spelling may fit into the budget
        if token < 0:
            token = self._ask(left)
        if token < 0:
            return "tokens"
        if token in self._vocabulary.eos:
            return "end"
        self._tokens.append(token)
        self._reader.push(token)
        if self._counts is not None and self._place:
            self._counts.count(self._place, token)
        self._before, self._place = token, b""
        was_healing = bool(self._healing.to_spell)
        new = self._healing.take(self._vocabulary.tokens[token] if token < self._vocabulary.size else b"")
        self._n_spent += bool(new) or not was_healing
        self._text += new
        return "stop" if self._cut() else None

    def _ask(self, left: int) -> int:
        """Let the model choose a token of the mask that fits into the budget, and read it.

        left : tokens that may still come, this one among them.

        Returns the token; -1 if none of those that the model likes most fits.
        """
        if self._counts is None or self._healing.to_spell or self._matcher is None:
            logits = self._reader.logits()
        else:
            logits = self._logits_ahead(self._counts, self._matcher)
        begin, last, name = self._clock(), self._n_columns - 1, self._vocabulary.name
        if len(logits) <= last:
            raise MaskwrightError(
                f"the model gives {len(logits)} logits, but vocabulary {name} has tokens up to id {last}: it is not this model's"
            )
        if self._healing.to_spell:
            apply_mask(logits, self._healing.words(None if self._matcher is None else self._words))
        blanks = None if self._matcher is None else self._blanks.too_many(self._text)
        if self._matcher is not None and not self._tokens and not self._healing.to_spell:
            blanks = self._blanks.at_start(self._matcher, self._before)
        if self._matcher is not None and blanks is not None:
            self._fill(self._matcher)
        own = self._note(logits) if self._has_mask else -1
        if blanks is not None:
            self._blanks.leave_out(blanks, logits, self._words)
            own = -1
        tries, n_relaxed = MOST_TRIES, self._n_relaxed
        token = self._try_first(logits) if self._is_tried_first() else self._choose(logits, own)
        while not (is_name := self._is_name(token)) or not self._fits(token, left):
            tries -= is_name
            if not tries:
                return -1
            logits[token] = -np.inf
            if self._matcher is not None:
                self._fill(self._matcher)
                apply_mask(logits, self._words)
            if not np.isfinite(logits).any():
                return -1
            self._n_relaxed = n_relaxed
            token = self._choose(logits)
        self._mask_seconds += self._clock() - begin
        return token

    def _clock(self) -> float:
        """Seconds, without those that were spent on endings."""
        return time.perf_counter() - (0.0 if self._budget is None else self._budget.seconds)

    def _fill(self, matcher: Matcher) -> None:
        """Make the mask of the next token, unless it is there."""
        if self._has_mask:
            return
        matcher.fill(self._words)
        if self._lookahead is not None and not self._healing.to_spell:
            self._lookahead.narrow(self._words)
        self._n_masks += 1
        self._has_mask = True

    def _is_tried_first(self) -> bool:
        """Whether the model's own choice is asked about before a mask is made."""
        return self._is_opportunistic and not self._healing.to_spell

    def _try_first(self, logits: Logits) -> int:
        """Choose a token without a mask, and another one with a mask if it is not allowed.

        The one that is read is distributed as if there had been a mask at once. An allowed token x
        is drawn with probability p(x), or behind a refused one with p(x) / p(allowed): in all
        p(x) + (1 - p(allowed)) p(x) / p(allowed) = p(x) / p(allowed).
        """
        assert self._matcher is not None
        # a logit of +inf or none that is finite: the mask decides whether that is an error
        token = self._sampler.choose(logits) if np.isfinite(np.nanmax(logits, initial=-np.inf)) else -1
        if 0 <= token < self._n_columns and self._matcher.is_allowed(token):
            self._matcher.advance(token)
            return token
        if not self._has_mask:
            self._fill(self._matcher)
            self._note(logits, token)
        return self._choose(logits)

    def _note(self, logits: Logits, own: int = -1) -> int:
        """Note it if the mask forbids the model's own choice, which is returned. own : if known."""
        own = likeliest(logits) if own < 0 else own
        if found := intervention(len(self._tokens), logits, self._words, own):
            self._interventions.append(found)
        return own

    def _logits_ahead(self, counts: TokenCounts, matcher: Matcher) -> Logits:
        """The logits of the next token; the model reads those that are likely behind it as well."""
        self._place = counts.place(self._words, self._before)
        self._n_predicted += self._reader.is_ahead
        return self._reader.logits(() if self._reader.is_ahead else counts.draft(matcher, self._words, self._before))

    def _is_name(self, token: int) -> bool:
        """Whether the names that begin in a token just read are there; else it is taken back."""
        eos, tokens = self._vocabulary.eos, self._vocabulary.tokens
        return self._names is None or token in eos or self._names.try_token(tokens[token])

    def _fits(self, token: int, left: int) -> bool:
        """Whether the text can still end in time behind a token that was just read.

        If not, the token is taken back.
        """
        if self._budget is None or token in self._vocabulary.eos:
            return True
        assert self._matcher is not None
        to_spell = self._healing.to_spell
        new = new_bytes = self._vocabulary.tokens[token]
        if to_spell and len(new) < len(to_spell):
            return True
        new = new[len(to_spell) :]
        left -= not to_spell or bool(new)
        text = self._text + new
        at = self._stops.place(text, self._n_shown)
        if at >= 0 and self._stops.closes(self._matcher, [*self._tokens, token], text, at, left):
            return True
        if at < 0 and self._budget.take(-1 if to_spell else token, left):
            return True
        self._matcher.rollback(1)
        if self._guide is not None:
            self._guide.take_back()
        if self._names is not None:
            self._names.take_back(new_bytes)
        return False

    def _choose(self, logits: Logits, own: int = -1) -> int:
        """Choose a token of the mask, and read it.

        logits : (N,) float32; those of refused tokens may be set to -inf. While healing, those that
            do not spell the prompt's end are so already.
        own : the likeliest token, if it is known.
        """
        guide = self._guide if not self._healing.to_spell else None
        token = -1 if guide is None else guide.choose(self._words, logits, self._sampler)
        if token < 0:
            token = self._sampler.choose(logits, None if self._matcher is None else self._words, own)
            if self._matcher is not None:
                self._matcher.advance(token)
            if self._guide is not None:
                is_canonical = self._guide.read(token)
                self._n_relaxed += guide is not None and not is_canonical
        return token

    def _forced_token(self) -> int:
        """The one token that can come next, of which the mask or the guide knows; -1 if none."""
        if not self._fast_forward or self._healing.to_spell:
            return -1
        if alone := few_tokens(self._words, 1):
            return alone[0]
        if self._guide is not None:
            self._waiting = self._guide.forced(self._words)
        return self._waiting.pop(0) if self._waiting else -1

    def _read_forced(self, token: int, left: int) -> bool:
        """Read a forced token, if it fits into the budget. left : as of `_ask`.

        If it does not, the model chooses the next token, and the mask is made.
        """
        assert self._matcher is not None
        self._matcher.advance(token)
        n_relaxed = self._guide is not None and not self._guide.read(token)
        if self._fits(token, left):
            self._n_forced += 1
            self._n_relaxed += n_relaxed
            return True
        self._waiting = []
        self._fill(self._matcher)
        return False

    def _is_complete(self) -> bool:
        """Whether the text is legal and ends with a blank line, or only white space can follow."""
        assert self._matcher is not None
        if not self._text.strip() or not self._matcher.is_accepting():
            return False
        return self._text.endswith((b"\n\n", b"\n\r\n")) or not (self._words & ~self._blanks.words).any()

    def _cut(self) -> bool:
        """Whether a stop string is in the text. If so, text and matcher go back to before it."""
        at = self._stops.place(self._text, self._n_shown)
        if at < 0:
            return False
        if self._matcher is not None:
            at = self._stops.go_back(self._matcher, self._tokens, self._text, at)
        self._text = self._text[:at]
        return True

    def _show(self, end: int) -> Iterator[Step]:
        """The step up to an offset of the text, if it is new."""
        if end > self._n_shown:
            yield Step(self._text[self._n_shown : end])
            self._n_shown = end


def generate(
    model: Any,
    matcher: Matcher | None,
    prompt_tokens: Sequence[int],
    *,
    vocabulary: Vocabulary | None = None,
    max_tokens: int = 256,
    seconds: float | None = None,
    stop: Sequence[str | bytes] = (),
    stop_when_complete: bool = False,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    close: bool = True,
    heal: bytes = b"",
    canonical: CanonicalTokens | None = None,
    fast_forward: bool = False,
    opportunistic: bool = False,
    counts: TokenCounts | None = None,
    names: NameSource | None = None,
    lookahead: int | None = None,
) -> Generation:
    """Generate a completion of a prompt, as an iterator over its steps.

    model : a model of transformers, what `load_model` returns, or a function from all tokens so far
        (a list of ids) to the next one's logits: (N,) numbers, as a torch tensor or a NumPy array.
    matcher : stands after the prompt's text (without `heal`), and is advanced. None leaves the
        model free.
    prompt_tokens : at least one id; what the model sees before the first new token. A prompt that
        is longer than the model's context loses its beginning, as does a text that outgrows the
        context. The matcher has seen all of it.
    vocabulary : the model's; by default the matcher's.
    max_tokens, seconds : the budget, in new tokens and in seconds. Tokens that only spell `heal`
        again do not count.
    stop : strings before which the text ends. It is then closed like any other. Where one begins
        within a token that a composition takes whole, the text ends before that token. None may
        have more bytes than the matcher can take back tokens (`max_rollback`).
    stop_when_complete : end where the text is legal and a blank line was written, or where nothing
        but white space can follow.
    temperature : 0 takes the likeliest token.
    top_k, top_p : sample from the k likeliest tokens, and from the likeliest that sum up to p.
    seed : of the sampler.
    close : close the text with an ending when the budget is used up; needs a matcher that can take
        back a token (`max_rollback`). The tokens of the ending count towards `max_tokens`. When
        time is up the ending is appended without the model.
    heal : bytes; the end of the prompt's text that `prompt_tokens` lacks. The first new tokens must
        spell it, and may go on.
    canonical : take only tokens that the model's tokenizer itself would make of the text (see
        `load_canonical`). Where none could come, another is taken (`Completion.relaxed`). It needs
        a matcher. The ending of a text whose budget is used up is not held to it.
    fast_forward : do not ask the model for tokens that are the only ones that can come. With
        `canonical` these are many more. Greedy texts are the same with it and without.
    opportunistic : let the model choose first, and make a mask only if the grammar refuses its
        choice. Greedy texts are the same with it and without, and samples have the same
        distribution. It makes no difference with `top_k`, `top_p`, `fast_forward`, `canonical`,
        `stop_when_complete`, `counts`, `names` or `lookahead`, which look at the mask.
    counts : which tokens came before at such places. A model of transformers reads those that are
        likely next in one pass, and still chooses each token, so the text is the same and takes
        fewer passes. What it chooses is counted too.
    names : which names there are, asked along the text: from the bytes that were written since
        `matcher` stood where it does (so `heal` is among them) to a terminal and the names that it
        is held to next, or None (`Matcher.restrict`). It is asked behind each token, and where a
        word begins within one. It needs a `Matcher` with `max_rollback`, and goes with neither
        `canonical`, `fast_forward` nor `counts`. The ending of a text whose budget is used up is
        held to the names at its beginning alone.
    lookahead : an experiment, which makes masks less permissive than the grammar: a token may come
        only if at most so many lexemes begin inside it, as in Domino. None for exact masks. It
        needs a grammar whose lexer has one mode, and goes with neither `canonical` nor
        `fast_forward`. The tokens that spell `heal` and those of an ending are not held to it.

    White space is bounded: after 128 bytes no more is taken, after four line feeds no further one,
    if anything else may come; none that is ignored at the start. A budget that holds an ending of
    the prompt is kept: no token is taken after which none fits; after `MOST_TRIES` the text closes.

    Raises: MaskwrightError if a parameter is out of range or of another kind, if there is neither a
        matcher nor a vocabulary, or, at the first token, if the vocabulary is not the model's;
        LimitError if `max_tokens` cannot hold the ending of the prompt that is found, or none is
        found (a longer ending of a grammar's text is taken all the same if a shorter one is not
        ruled out, since the search was cut off); DeadEndError if no token can come next. All but
        the errors of the parameters are raised while iterating.
    """
    close, stop_when_complete = as_boolean("close", close), as_boolean("stop_when_complete", stop_when_complete)
    vocabulary = check_sources(matcher, vocabulary, canonical, counts, close=close)
    options = Options(
        vocabulary=vocabulary,
        max_tokens=max_tokens,
        seconds=seconds,
        stop=as_stops(stop),
        stop_when_complete=stop_when_complete,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        close=close,
        heal=plain_bytes("heal", heal),
        canonical=canonical,
        fast_forward=as_boolean("fast_forward", fast_forward),
        opportunistic=as_boolean("opportunistic", opportunistic),
        counts=counts,
        names=names,
        lookahead=lookahead,
    )
    return Generation(model, matcher, as_prompt(prompt_tokens), options)
