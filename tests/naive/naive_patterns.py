r"""What is a pattern of ECMA 262 with the flag `u`: a recursive descent from the grammar, section 22.2.1.

Properties of characters are not looked up: each `\p{...}` is one. Back-references and named groups
are none here.
"""

from __future__ import annotations

import re

SYNTAX = "^$\\.*+?()[]{}|/"
QUANTIFIER = re.compile(r"(?:[*+?]|\{([0-9]+)(?:(,)([0-9]*))?\})\??", re.ASCII)
CODE = re.compile(r"c[A-Za-z]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|u\{([0-9A-Fa-f]+)\}|0(?![0-9])", re.ASCII)
PROPERTY = re.compile(r"[pP]\{[A-Za-z_=]+\}", re.ASCII)


class NoPattern(Exception):
    """The text is no pattern."""


class Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def here(self, *options: str) -> str:
        """Which of some texts stands here, "" for none; it is passed."""
        for option in options:
            if self.text.startswith(option, self.at):
                self.at += len(option)
                return option
        return ""

    def disjunction(self) -> None:
        while self.at < len(self.text) and self.text[self.at] != ")":
            if not self.here("|", "^", "$", r"\b", r"\B"):
                self.term()

    def term(self) -> None:
        if self.here("(?=", "(?!", "(?<=", "(?<!"):
            self.closed()
            return
        if self.here("(?:") or (not self.text.startswith("(?", self.at) and self.here("(")):
            self.closed()
        elif self.here("["):
            self.set()
        elif self.here("\\"):
            self.escape("")
        elif not self.here("."):
            if self.text[self.at] in SYNTAX.replace("/", ""):
                raise NoPattern
            self.at += 1
        found = QUANTIFIER.match(self.text, self.at)
        if found:
            self.at = found.end()
            if found[3] and int(found[3]) < int(found[1]):
                raise NoPattern

    def closed(self) -> None:
        self.disjunction()
        if not self.here(")"):
            raise NoPattern

    def escape(self, more: str) -> int | None:
        """The character behind a backslash, None for a class. more : other letters that may follow."""
        letter = self.text[self.at : self.at + 1]
        if letter and letter in "dDwWsS":
            self.at += 1
            return None
        if letter and letter in SYNTAX + "tnvfr" + more:
            self.at += 1
            return {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "b": 8}.get(letter, ord(letter))
        found = PROPERTY.match(self.text, self.at)
        if found:
            self.at = found.end()
            return None
        found = CODE.match(self.text, self.at)
        if not found or (found[1] and int(found[1], 16) > 0x10FFFF):
            raise NoPattern
        self.at = found.end()
        whole = found[0]
        if whole == "0":
            return 0
        return ord(whole[1]) % 32 if whole[0] == "c" else int(found[1] or whole[1:], 16)

    def set(self) -> None:
        self.here("^")
        while not self.here("]"):
            first = self.member()
            if self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] != "]":
                self.at += 1
                last = self.member()
                if first is None or last is None or last < first:
                    raise NoPattern

    def member(self) -> int | None:
        if self.here("\\"):
            return self.escape("b-")
        if self.at >= len(self.text):
            raise NoPattern
        self.at += 1
        return ord(self.text[self.at - 1])


def is_pattern(text: str) -> bool:
    """Whether a text is a pattern."""
    reader = Reader(text)
    try:
        reader.disjunction()
    except NoPattern:
        return False
    return reader.at == len(text)
