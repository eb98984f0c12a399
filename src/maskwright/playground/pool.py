"""The worker processes that make a playground's answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from maskwright.worker import Setup
from maskwright.worker_pool import Pool

MARGIN = 1.0
"""CPU seconds that a worker has beyond its own limit."""


class AnswerPool(Pool):
    """Workers that answer questions, see `Answers`. They begin to start at once.

    tokenizer : as for `load_vocabulary`.
    seconds : of CPU time that one answer may take, and of wall time that a worker is waited for.
    most_memory : bytes of memory that an answer may ask for, where the platform can limit it.
    size : how many there are.

    Raises: NoProcessError if none can be started.
    """

    def __init__(self, tokenizer: str, seconds: float, most_memory: int, size: int = 2) -> None:
        super().__init__(Setup("maskwright.playground.answers:answering", (tokenizer, seconds), most_memory), size)
        self.seconds = seconds
        self.start()

    def answer(self, question: Mapping[str, Any], is_cancelled: Callable[[], bool] = lambda: False) -> dict[str, Any]:
        """The answer to a question, as `Answers.answer`.

        is_cancelled : see `Pool.ask`, as for what it raises.
        """
        found: dict[str, Any] = self.ask(
            dict(question),
            self.seconds + MARGIN,
            "the answer",
            key=(question.get("kind"), question.get("constraint")),
            waiting=self.seconds,
            is_cancelled=is_cancelled,
        )
        return found


__all__ = ["AnswerPool"]
