"""A text that is read from left to right."""

from __future__ import annotations

import re


class Cursor:
    """The text and how far it has been read. at : the offset of the next character."""

    def __init__(self, text: str, at: int = 0) -> None:
        self.text, self.at = text, at

    @property
    def next(self) -> str:
        """The next character; "" at the end."""
        return self.text[self.at : self.at + 1]

    def starts(self, beginning: str | tuple[str, ...]) -> bool:
        """Whether the rest of the text begins so, or in one of several ways."""
        return self.text.startswith(beginning, self.at)

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What a pattern matches here; it is read over."""
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def take(self, wanted: str) -> bool:
        """Reads over a text if it comes next; whether it does."""
        if not self.starts(wanted):
            return False
        self.at += len(wanted)
        return True
