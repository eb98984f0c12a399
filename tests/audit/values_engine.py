"""An engine of whole JSON texts: jsonschema judges them, less the keywords in the environment variable IGNORED.

It is slow and has no real masks: the end of text is allowed where the text so far is an instance, and every byte is taken.
VALUES_CASE makes it wrong in other ways: "refuse null" (takes no text with null), "raise" (at each end), "die" (at each end).
"""

from __future__ import annotations

import json
import os
from typing import Any


def _without(schema: Any, ignored: set[str]) -> Any:
    if isinstance(schema, dict):
        return {key: _without(value, ignored) for key, value in schema.items() if key not in ignored}
    return [_without(each, ignored) for each in schema] if isinstance(schema, list) else schema


class Session:
    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.judge: Any = None
        self.case = os.environ.get("VALUES_CASE", "")
        self.reset()

    def reset(self) -> None:
        self.text = b""

    def advance(self, token: int) -> bool:
        self.text += bytes([token - 1])
        return not (self.case == "refuse null" and self.text.endswith(b"null"))

    def fill(self, words: Any) -> None:
        if self.case == "raise":
            raise RuntimeError("no end in sight")
        if self.case == "die":
            os._exit(3)
        words[:] = 0xFFFFFFFE
        if self.judge is None:  # not before, so that a process that only dies starts soon
            from maskwright.analysis.schema.load import load_schema
            from maskwright.validation.instances import InstanceJudge

            self.judge = InstanceJudge(load_schema(self.schema, lenient=True))
        if self.judge.judge(self.text.decode()).answer == "accepted":
            words[0] |= 1


def make(schema_text: str, vocabulary: Any) -> Any:
    ignored = set(filter(None, os.environ.get("IGNORED", "").split(",")))
    schema = _without(json.loads(schema_text), ignored)
    return lambda: Session(schema)
