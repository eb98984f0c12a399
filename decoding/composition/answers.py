"""What a matcher of a composition says of its text: where it is, why not a token, endings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from maskwright.decoding.composition.cursors import RunCursor
from maskwright.decoding.composition.words import why_not
from maskwright.decoding.engine.alone import Alone, Shared
from maskwright.decoding.engine.arguments import as_id
from maskwright.decoding.engine.forced import MOST_BYTES, forced_bytes
from maskwright.maskstore.composition.tables import TokenPart

if TYPE_CHECKING:
    from maskwright.decoding.composition.readings import Reading, Rules
    from maskwright.decoding.endings.ending import Ending
    from maskwright.decoding.explain.explanation import Explanation
    from maskwright.maskstore.composition.tables import ComposedTables


class Answers(Shared):
    """The part of `ComposedMatcher` that answers, and changes nothing."""

    store: ComposedTables
    _readings: list[Reading]
    _rules: Rules
    _is_ended: bool
    is_allowed: Any
    _may_come: Any
    _accepts: Any
    _close: Any

    def where(self, readings: Sequence[Reading] = ()) -> str:
        """In which languages the text may be now, or `readings` of it, for messages."""
        names = dict.fromkeys(
            self.store.parts[reading.part].name if reading.back is not None else self.store.name
            for reading in readings or self._readings
        )
        return " or ".join(names)

    def why(self, token: int) -> str:
        """Why a token may or may not come next, in one sentence, as the error of `advance` says it.

        Raises: IllegalTokenError if it is no integer; LimitError as `fill`.
        """
        with Alone(self), self._rules.lock:
            number = as_id(token)
            if self._may_come(number):
                return f"token {token} ({self.store.vocabulary.tokens[number]!r}) may come next"
            return why_not(cast(Any, self), number)

    def explain(self, token: int) -> Explanation:
        """Why a token may or may not come next, in words, for people.

        Raises: IllegalTokenError if it is no integer.
        """
        from maskwright.decoding.explain.explanation import Explanation

        number = as_id(token)
        verdict: Literal["allowed", "refused"] = "allowed" if self.is_allowed(number) else "refused"
        return Explanation(self.store.name, f"token {token}", verdict, self.why(number))

    def may_be_whole(self) -> bool:
        """Whether a token with text may come next that a part takes whole, not by its bytes."""
        with Alone(self), self._rules.lock:
            text = self.store.whole_with_text
            if self._is_ended or not text.any():
                return False
            parts = enumerate(self.store.parts)
            marks = [
                self._rules.marks[at] for at, one in parts if isinstance(one, TokenPart) and (one.words & text).any()
            ]
            for reading in self._close():
                cursor = reading.cursor
                if reading.back is None:
                    found = any(map(cursor.reads, marks))
                elif isinstance(cursor, RunCursor):
                    found = True
                else:
                    found = isinstance(cursor.matcher, Answers) and cursor.matcher.may_be_whole()
                if found:
                    return True
            return False

    def forced_bytes(self, limit: int = MOST_BYTES) -> bytes:
        """The longest bytes with which every continuation of the text begins, at most `limit`.

        b"" if the text may end here. The matcher is left as it is. Cost: a mask a byte.

        Raises: MaskwrightError if `limit` is negative; LimitError as `fill`.
        """
        return forced_bytes(cast(Any, self), limit)

    def short_ending(self) -> Ending:
        """An ending of the text so far, as bytes and as tokens; not always a shortest one.

        The end-of-text token is not among them. It is made of the shortest endings of the part and
        the host under way.

        Raises: DeadEndError if none is found; LimitError as `Matcher.short_ending`.
        """
        from maskwright.decoding.composition.ending import ending_of
        from maskwright.decoding.endings.ending import Ending

        with Alone(self), self._rules.lock:
            if self._is_ended or self._accepts():
                return Ending(b"", ())
            return ending_of(self._rules, self._close())

    def shortest_ending(self) -> Ending:
        """The same as `short_ending`. `Ending.is_shortest` says whether no ending is shorter."""
        return self.short_ending()

    def min_bytes_left(self) -> int:
        """The length of the ending, in bytes. Raises: as `short_ending`."""
        return len(self.short_ending().data)
