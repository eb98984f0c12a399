"""An engine for lists of words, written by hand: right as it stands, wrong as the environment variable LISTS_CASE says.

LISTS_CASE is a JSON object: {"refuse": [state, token]}, {"allow": [state, token]}, {"lie": token} (masked in, then not taken), or something
from a depth on: {"raise": depth}, {"everything": depth}, {"nothing": depth}, {"die": depth}, {"sleep": depth}. Tokens are text, "" for the
end of the text.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

import numpy as np

GRAMMAR = """
start: list
list: "[" (item ("," item)*)? "]"
item: WORD | list
WORD: /[a-z]+/
%ignore " "
"""

START, OPEN, WORD, AFTER, COMMA, END = "start", "open", "word", "after", "comma", "end"


def step(state: tuple[str, int], byte: int) -> tuple[str, int] | None:
    """The state after a byte: what was last, and how many lists are open."""
    last, depth = state
    character = chr(byte)
    if character == " ":
        return (AFTER if last == WORD else last), depth
    if character == "[" and last in (START, OPEN, COMMA):
        return OPEN, depth + 1
    if character == "]" and last in (OPEN, WORD, AFTER):
        return (AFTER if depth > 1 else END), depth - 1
    if character == "," and last in (WORD, AFTER):
        return COMMA, depth
    if "a" <= character <= "z" and last in (OPEN, COMMA, WORD):
        return WORD, depth
    return None


def run(state: tuple[str, int] | None, data: bytes) -> tuple[str, int] | None:
    for byte in data:
        if state is None:
            break
        state = step(state, byte)
    return state


class Session:
    def __init__(self, tokens: list[bytes], eos: list[int], case: dict[str, Any]) -> None:
        self.tokens, self.eos, self.case = tokens, eos, case
        print("an engine may print what it likes")

    def reset(self) -> None:
        self.state: tuple[str, int] = (START, 0)

    def allows(self, state: tuple[str, int], token: int) -> bool:
        """Whether the mask has a token, as the case says."""
        text = self.tokens[token]
        allowed = state[0] == END if token in self.eos else bool(text) and run(state, text) is not None
        for what in ("refuse", "allow"):
            is_meant = self.case.get(what) == [state[0], text.decode("latin-1")] and (text or token in self.eos)
            allowed = what == "allow" if is_meant else allowed
        return allowed

    def fill(self, words: Any) -> None:
        assert not words.any()
        depth = self.state[1]
        if "raise" in self.case and depth >= self.case["raise"]:
            raise KeyError(f"depth {depth}\nand more")
        if "die" in self.case and depth >= self.case["die"]:
            os._exit(7)
        if "sleep" in self.case and depth >= self.case["sleep"]:
            time.sleep(30)
        if "everything" in self.case and depth >= self.case["everything"]:
            words[:] = 0xFFFFFFFF
            return
        if "nothing" in self.case and depth >= self.case["nothing"]:
            return
        for token in range(len(self.tokens)):
            if self.allows(self.state, token):
                words[token >> 5] |= np.uint32(1 << (token & 31))

    def advance(self, token: int) -> bool:
        after = run(self.state, self.tokens[token])
        if after is None or self.case.get("lie") == self.tokens[token].decode("latin-1"):
            return False
        self.state = after
        return True


def make(grammar_text: str, vocabulary: Any) -> Any:
    assert "WORD" in grammar_text
    case = json.loads(os.environ.get("LISTS_CASE", "{}"))
    return lambda: Session(list(vocabulary.tokens), list(vocabulary.eos), case)


def no_function(grammar_text: str, vocabulary: Any) -> Any:
    return 3


def no_session(grammar_text: str, vocabulary: Any) -> Any:
    raise RuntimeError("this engine takes no such grammar")


NUMBER = 3
