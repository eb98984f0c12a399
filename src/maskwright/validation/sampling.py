"""The check "sample": are texts drawn under the masks texts of the grammar and of the language?

In: a store, perhaps texts. Out: the samples that somebody else refuses. Tokens are drawn uniformly
from those allowed, or by a model. After a budget of tokens the text is closed with a short ending
(`short_ending`). Some *cut-offs*, prefixes of the same text, are closed too. The judge of the store
(`judges`) judges the closed texts. If texts are given, each sample begins with the first tokens of
one of them, up to a random one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError, VocabularyError
from maskwright.decoding.endings.ending import endings_of
from maskwright.decoding.endings.ending_search import MAX_NODES
from maskwright.maskstore.vocabulary.masks import tokens_of
from maskwright.validation.judges import (
    ACCEPTED,
    DRAWN,
    FALSE_PERMISSION,
    FORMATS_DIFFER,
    LEFT_OUT,
    NOT_COUNTED,
    REFUSED_GRAMMAR,
    REFUSED_REFERENCE,
    UNDECIDED,
    judge_of,
)
from maskwright.validation.references import cause_of
from maskwright.validation.replay import BEFORE, replay
from maskwright.validation.work import Outcome, Setup

NO_ENDING = "no ending"

NextToken = Callable[[Sequence[int], npt.NDArray[np.uint32]], int]
"""A function that draws the next token.

It takes the token ids so far and the mask of the allowed tokens, (ceil(V / 32),) uint32, where bit
i of word w is token 32 w + i. It returns a token id; an end-of-text id ends the text.

If it has a method `begin_text`, the method is called with the number of each sample before the
sample is drawn. A refused sample is drawn again to be minimised. It must come out as before then,
whatever was drawn in between, and in whichever process. If it has a member `interventions`, the
`Intervention`s of the masks in the text under way, the report sums them up.
"""

Draw = tuple[int, str | None, str | None]
"""A sample to draw: its number, the text that it begins with, and a cause of refusal.

The text and the cause may be None. With a cause, the refused sample is minimised.
"""

MINIMAL_STEPS = 64
"""About how many prefixes are tried in a first round, to minimise a refused text."""

SEVERITY = (
    FALSE_PERMISSION,
    REFUSED_GRAMMAR,
    NO_ENDING,
    REFUSED_REFERENCE,
    UNDECIDED,
    LEFT_OUT,
    FORMATS_DIFFER,
    DRAWN,
    ACCEPTED,
)
"""Classes of closed texts, the gravest first. A sample over a limit has none."""


class Sampler:
    """The check "sample": draws, closes and judges samples. A unit of work is a draw.

    reference, reference_seconds : as for `judge_of`.
    seed : seed of all that is drawn.
    budget : most tokens that are drawn for a sample.
    cuts : most cut-offs of a sample.
    next_token : draws the next token; None: uniformly from the tokens allowed.
    """

    def __init__(
        self,
        setup: Setup,
        reference: str,
        reference_seconds: float,
        seed: int,
        budget: int,
        cuts: int,
        next_token: NextToken | None,
    ) -> None:
        self.setup, self.store = setup, setup.store
        self.seed, self.budget, self.cuts, self.next_token = seed, budget, cuts, next_token
        self.matcher = self.store.matcher(0)
        self.words = np.zeros(self.store.n_words, np.uint32)
        self.eos = frozenset(self.store.vocabulary.eos)
        self.judge = judge_of(self.store, reference, reference_seconds)

    def __call__(self, draw: Draw) -> Outcome:
        """The outcome of a sample: of its gravest closed text, see `Draw` and `SEVERITY`.

        Raises: MaskwrightError if `next_token` chooses a token that the mask refuses.
        """
        number, text, cause = draw
        rng = random.Random(f"{self.seed}:{number}")
        begin_text = getattr(self.next_token, "begin_text", None)
        if begin_text is not None:
            begin_text(number)
        try:
            prompt = self.prompt(text, rng)
            tokens = self.draw(prompt, rng)
        except DeadEndError as error:
            return {"class": NO_ENDING, "why": str(error)}
        cuts = sorted(rng.sample(range(len(tokens)), min(self.cuts, len(tokens)))) if tokens else []
        facts: Outcome = {
            "class": ACCEPTED,
            "tokens": len(tokens) - len(prompt),
            "closed": len(cuts) + 1,
            "characters": 0,
            "limits": 0,
            "not_judged": 0,
        }
        interventions = getattr(self.next_token, "interventions", None)
        if interventions is not None:
            facts["interventions"] = len(interventions)
            facts["masked_away"] = sum(one.probability for one in interventions)
        refused = len(tokens)
        for cut in [len(tokens), *cuts]:
            kind, said, closed = self.close(tokens[:cut])
            facts["characters"] += len(closed)
            if kind in NOT_COUNTED:
                facts[NOT_COUNTED[kind]] += 1
            elif SEVERITY.index(kind) < SEVERITY.index(facts["class"]):
                facts |= {"class": kind, **self.shown(tokens[:cut], closed, said)}
                refused = cut
        if cause is not None:
            self.minimise(tokens[:refused], cause, facts)
        return facts

    def minimise(self, tokens: list[int], cause: str, facts: Outcome) -> None:
        """Look for a short prefix that, when closed, is refused for the same cause.

        It is the shortest one if the text has at most MINIMAL_STEPS tokens. The result is the
        member `minimal` of the facts.

        tokens : the tokens of a text that, when closed, is refused for the cause.
        """

        def is_refused(cut: int) -> bool:
            kind, said, _ = self.close(tokens[:cut])
            return kind == facts["class"] and cause_of(said) == cause

        n = len(tokens)
        stride = max(1, -(-n // MINIMAL_STEPS))
        first = next(filter(is_refused, range(0, n, stride)), n)
        cut = next(filter(is_refused, range(max(0, first - stride + 1), first)), first)
        _, said, closed = self.close(tokens[:cut])
        facts["minimal"] = self.shown(tokens[:cut], closed, said)

    def prompt(self, text: str | None, rng: random.Random) -> list[int]:
        """The tokens of a text up to a random one, as far as the masks allow them.

        [] if there is no text, or if no tokens spell it.
        """
        self.matcher.reset()
        if text is None:
            return []
        try:
            tokens = self.setup.tokens(text)
        except VocabularyError:
            return []
        tokens = tokens[: rng.randint(0, len(tokens))]
        return tokens[: replay(self.matcher, tokens)]

    def draw(self, tokens: list[int], rng: random.Random) -> list[int]:
        """The tokens, and up to a budget of further ones. The matcher has read `tokens` before."""
        tokens = list(tokens)
        for _ in range(self.budget):
            self.matcher.fill(self.words)
            if self.next_token is None:
                allowed = tokens_of(self.words)
                if not len(allowed):  # the text is whole, and the vocabulary has no end of text
                    break
                token = int(allowed[rng.randrange(len(allowed))])
            else:
                token = int(self.next_token(tokens, self.words))
                if not (int(self.words[token >> 5]) >> (token & 31)) & 1:
                    raise MaskwrightError(
                        f"the model chose token {token}, which is masked; it must choose an allowed token"
                    )
            if token in self.eos:
                break
            self.matcher.advance(token)
            tokens.append(token)
        return tokens

    def close(self, tokens: list[int]) -> tuple[str, str, str]:
        """Close tokens with a short ending; returns the class, what was said, and the text.

        The class may be one of `NOT_COUNTED`.
        """
        matcher, data, why = self.matcher, self.bytes_of(tokens), ""
        matcher.reset()
        if replay(matcher, tokens) < len(tokens):
            # the tokens were drawn under the masks, so the masks contradict themselves
            why = "the masks refuse what they allowed before"
        else:
            try:
                # the ending need not be a shortest one: any short ending shows what the masks allow
                text, is_plain = matcher.text, self.store.engine == "grammar"
                ending = endings_of(text).short(text, max_nodes=MAX_NODES) if is_plain else matcher.short_ending()
                if replay(matcher, [*ending.tokens]) < len(ending.tokens) or not matcher.is_accepting():
                    why = f"the masks refuse the ending {ending.data!r}"
                else:
                    data += ending.data
                    closed = data.decode("utf-8")
                    return (*self.judge.drawn(closed), closed)
            except (DeadEndError, LimitError) as error:
                why = str(error)
            except UnicodeDecodeError as error:
                why = f"not UTF-8 at byte {error.start}"
        return NO_ENDING, why, data.decode("utf-8", "replace")

    def bytes_of(self, tokens: Sequence[int]) -> bytes:
        """The bytes of some tokens."""
        return b"".join(map(self.store.vocabulary.tokens.__getitem__, tokens))

    def shown(self, tokens: list[int], closed: str, said: str) -> dict[str, Any]:
        """The members of an outcome that say where the tokens end, and what closes them."""
        data = self.bytes_of(tokens)
        last = data.rpartition(b"\n")[2].decode("utf-8", "replace")
        return {
            "line": 1 + data.count(b"\n"),
            "column": len(last) + 1,
            "byte": len(data),
            "before": data.decode("utf-8", "replace")[-BEFORE:],
            "token": None,
            "ending": closed.encode()[len(data) :].decode("utf-8", "replace"),
            "why": said,
            "text": closed,
        }
