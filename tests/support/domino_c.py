"""Texts of the grammar domino.c, drawn at random from a description of their own, and what gcc says of a text's syntax."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator

GCC = shutil.which("gcc")

NAMES = ("a", "b1", "_c", "main", "integer", "iff", "Else", "f")
SYNTAX = re.compile(r"error: (?:expected |stray |missing terminating|unterminated|invalid suffix|invalid digit)")


def is_refused(text: str) -> bool:
    """Whether gcc finds an error of syntax in a text."""
    command = [str(GCC), "-fsyntax-only", "-w", "-x", "cpp-output", "-"]
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False, env=environment)
    return SYNTAX.search(done.stderr.decode(errors="replace")) is not None


def texts(n: int, seed: int = 1) -> Iterator[str]:
    for number in range(n):
        yield _Writer(random.Random(f"{seed} {number}")).program()


class _Writer:
    """Draws what the grammar's description says, with blanks of any kind between the tokens."""

    def __init__(self, chosen: random.Random) -> None:
        self.chosen = chosen
        self.room = 60

    def program(self) -> str:
        tokens = [token for _ in range(self.chosen.randrange(4)) for token in self.function()]
        return "".join(token + self.blank(token) for token in tokens)

    def blank(self, token: str) -> str:
        needed = token[-1].isalnum() or token[-1] in "_-/*+"
        return self.chosen.choice([" ", " ", "\n", "\t ", "\n    "] if needed else [" ", "", "\n", ""])

    def one_of(self, *parts: str) -> str:
        self.room -= 1
        return self.chosen.choice(parts)

    def name(self) -> str:
        return self.one_of(*NAMES)

    def function(self) -> list[str]:
        parameter = self.chosen.choice([[], [self.type(), self.name()]])
        return [self.type(), self.name(), "(", *parameter, ")", *self.block()]

    def type(self) -> str:
        return self.one_of("int", "float", "char")

    def block(self) -> list[str]:
        n = self.chosen.randrange(4) if self.room > 0 else 0
        return ["{", *(token for _ in range(n) for token in self.statement()), "}"]

    def statement(self) -> list[str]:
        kind = self.chosen.randrange(8)
        if kind == 0:
            return [self.type(), *self.assignment(), ";"]
        if kind == 1:
            return [*self.assignment(), ";"]
        if kind == 2:
            return [*self.call(), ";"]
        if kind == 3:
            return ["return", *self.expression(), ";"]
        if kind == 4:
            return ["while", "(", *self.condition(), ")", *self.block()]
        if kind == 5:
            begin = [self.type()] * self.chosen.randrange(2) + self.assignment()
            return ["for", "(", *begin, ";", *self.condition(), ";", *self.assignment(), ")", *self.block()]
        if kind == 6:
            otherwise = ["else", *self.block()] if self.chosen.randrange(2) else []
            return ["if", "(", *self.condition(), ")", *self.block(), *otherwise]
        return [self.one_of("// a \"b' */ int\n", "/* a\n * // ** ; */", "/***/", "//\n")]

    def assignment(self) -> list[str]:
        return [self.name(), "=", *self.expression()]

    def condition(self) -> list[str]:
        return [*self.expression(), self.one_of("<=", "<", "==", "!=", ">=", ">"), *self.expression()]

    def call(self) -> list[str]:
        n = self.chosen.randrange(3) if self.room > 0 else 0
        arguments = [token for _ in range(n) for token in [",", *self.expression()]]
        return [self.name(), "(", *arguments[1:], ")"]

    def expression(self) -> list[str]:
        kind = self.chosen.randrange(8) if self.room > 0 else self.chosen.randrange(2)
        if kind == 0:
            return [self.one_of("0", "1", "42", "017", "100000")]
        if kind == 3:
            return ["-", *self.factor()]
        if kind == 4:
            return self.call()
        if kind == 5:
            return ["(", *self.expression(), ")"]
        if kind > 5:
            return [*self.expression(), self.one_of("+", "-", "*", "/"), *self.factor()]
        return [self.name()]

    def factor(self) -> list[str]:
        return [self.name()] if self.room < 0 else ["(", *self.expression(), ")"]
