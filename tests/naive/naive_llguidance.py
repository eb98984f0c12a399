"""llguidance's lexing by its definition, for small grammars: lists of words, Earley over terminals, and nothing fast.

At the beginning of a lexeme those terminals compete that the parser can take, if there are any, and with them what is
ignored, except at the beginning of the text. Bytes are read as long as one of them can still match. Where none can, the
lexeme ends, and all terminals that match it are followed; if what is ignored matches, nothing is. If nothing matches,
the text is refused: there is no backing up.
"""

from __future__ import annotations

import itertools
import re

from front_cases import TERMINALS

ALPHABET = "abc "
LONGEST = 6
SKIP = "%ignore"
Item = tuple[str, tuple[str, ...], int, int]
Column = frozenset[Item]
Columns = tuple[Column, ...]
_WORDS = ["".join(word) for n in range(1, LONGEST + 1) for word in itertools.product(ALPHABET, repeat=n)]
_TOKEN = re.compile(r'\s*("[^"]*"|/[^/]*/|[a-z]+:|[a-z]+|[()|*+?])')


def _texts(source: str) -> frozenset[str]:
    pattern = re.compile(re.escape(source[1:-1]) if source[0] == '"' else source[1:-1])
    return frozenset(word for word in _WORDS if pattern.fullmatch(word))


TEXTS = {source: _texts(source) for source in TERMINALS} | {SKIP: _texts("/ +/")}
BEGINNINGS = {source: {word[:n] for word in texts for n in range(len(word) + 1)} for source, texts in TEXTS.items()}


class Naive:
    """A recogniser. is_productive : whether some sequence of terminals is a sentence."""

    def __init__(self, text: str, ignores: bool) -> None:
        self.ignores = ignores
        self.bodies: dict[str, list[tuple[str, ...]]] = {}
        for line in text.split("\n"):
            if not line.startswith("%"):
                tokens = _TOKEN.findall(line)
                self.bodies[tokens[0][:-1]] = self._alternatives(tokens[1:][::-1])
        alive: set[str] = set()
        while (
            new := {
                name
                for name, bodies in self.bodies.items()
                if any(all(s in alive or s not in self.bodies for s in body) for body in bodies)
            }
            - alive
        ):
            alive |= new
        self.is_productive = "start" in alive
        self.bodies = {
            name: [b for b in bodies if all(s in alive or s not in self.bodies for s in b)]
            for name, bodies in self.bodies.items()
        }
        self._known: dict[tuple[Columns, frozenset[str]], Columns] = {}
        self.first = self._closed((), {("start", body, 0, 0) for body in self.bodies["start"]})

    def _fresh(self, bodies: list[tuple[str, ...]]) -> str:
        name = f"#{len(self.bodies)}"
        self.bodies[name] = bodies
        return name

    def _alternatives(self, tokens: list[str]) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = [()]
        while tokens and tokens[-1] != ")":
            token = tokens.pop()
            if token == "|":
                found.append(())
                continue
            if token == "(":
                token = self._fresh(self._alternatives(tokens))
                tokens.pop()
            while tokens and tokens[-1] in "*+?":
                sign = tokens.pop()
                again = self._fresh([])
                self.bodies[again] += [(token,) if sign == "?" else (token, again), (token,) if sign == "+" else ()]
                token = again
            found[-1] += (token,)
        return found

    def _closed(self, before: Columns, column: set[Item]) -> Column:
        while True:
            new: set[Item] = set()
            for name, body, dot, begin in column:
                if dot < len(body):
                    new |= {(body[dot], other, 0, len(before)) for other in self.bodies.get(body[dot], ())}
                else:
                    origin = column if begin == len(before) else before[begin]
                    new |= {(n, b, d + 1, c) for n, b, d, c in origin if d < len(b) and b[d] == name}
            if new <= column:
                return frozenset(column)
            column |= new

    def _after(self, columns: Columns, terminals: frozenset[str]) -> Columns:
        """Remembered: texts that begin alike ask for the same."""
        key = columns, terminals
        if key not in self._known:
            taken = {(n, b, d + 1, c) for n, b, d, c in columns[-1] if d < len(b) and b[d] in terminals}
            self._known[key] = (*columns, self._closed(columns, taken))
        return self._known[key]

    def matches(self, text: str) -> bool | None:
        """Whether it is a text of the grammar.

        None where we differ and say so: where it is refused for want of backing up, or for blanks behind a text to
        which nothing can be added.
        """
        columns, at = (self.first,), 0
        while True:
            competing = {b[d] for _, b, d, _ in columns[-1] if d < len(b)} - self.bodies.keys()
            if not competing and text[at:].isspace():
                return None
            competing |= {SKIP} if self.ignores and at and competing else set()
            end = at
            while end < len(text) and any(text[at : end + 1] in BEGINNINGS[t] for t in competing):
                end += 1
            matching = {t for t in competing if text[at:end] in TEXTS[t]}
            if end > at and not matching:
                ended = any(text[at:n] in TEXTS[t] for t in competing for n in range(at + 1, end))
                return None if ended else False
            if end > at and SKIP not in matching:
                columns = self._after(columns, frozenset(matching))
            if end == len(text):
                return any(n == "start" and d == len(b) and c == 0 for n, b, d, c in columns[-1])
            if end == at:
                return False
            at = end
