r"""Where a pre-tokenizer cuts a text, followed character by character.

Most tokenizers cut a text into *pieces* by a regular expression before they merge: the first match
is the first piece, the next match behind it the second. A token never crosses a cut. Whether a cut
is somewhere depends on what follows: of two blanks before a word the second belongs to the word
(``\s+(?!\S)``), which shows when the word begins. So a `Course` is a guess: where the piece under
way began, and which earlier matches must not go on. Characters that prove a guess wrong end it.

The expression is matched as its package does: alternatives in their order, repetitions greedy. A
*front* is what can still match, in the order in which it is preferred.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import NestingError, VocabularyError
from maskwright.analysis.fronts.rust_regex import perl_class
from maskwright.analysis.kept import cached_property
from maskwright.analysis.regex.charset import EVERYTHING, LAST, Ranges, complement, difference, normalise
from maskwright.analysis.regex.parse import Unsupported, parse
from maskwright.analysis.regex.properties import general_category
from maskwright.analysis.regex.tree import Atomic, Chars, Choice, Look, Node, Repeat, Sequence, is_nullable

MOST_COPIES = 64
"""Copies of a part that a repetition such as `{1,3}` may need."""

MOST_FRONTS = 10_000
"""Fronts that a pattern may have."""

Front = tuple[int, ...]

START = -1
"""The front before the first piece of a text."""


@dataclass(frozen=True, slots=True)
class Course:
    """A guess of where the cuts of a text are.

    must_fail : fronts of earlier pieces that must not match again, ascending.
    front : of the piece under way; `START` if no piece has begun.
    """

    must_fail: tuple[int, ...]
    front: int


class Cuts:
    """The cuts of one pattern.

    pattern : a regular expression as the packages tiktoken and tokenizers read it.
    where : the tokenizer, for messages.

    Attributes: n_classes, the number of classes of characters that the pattern tells apart;
    `classes`, (0x110000,) uint8, the class of each character. The number n_classes itself stands
    for the end of the text.

    Raises: VocabularyError for what cannot be followed: look-behinds, look-aheads of more than one
    character, possessive parts that differ from greedy ones, and patterns that match nothing or
    leave characters of a text between two matches.
    """

    def __init__(self, pattern: str, where: str) -> None:
        self._where, self._pattern = where, pattern
        try:
            tree = parse(_in_python(pattern))
        except (re.error, Unsupported, NestingError) as error:
            raise self._error(f"it cannot be read ({error})") from None
        self._sets: dict[Ranges, int] = {}
        self._program: list[tuple[str, int, tuple[int, ...]]] = [("match", 0, ())]
        self._begin = self._code(tree, 0, ())
        self.classes, self._members = self._classes()
        self.n_classes = self._members.shape[1]
        self._fronts: dict[Front, int] = {(self._begin,): 0}
        self._by_number: list[Front] = [(self._begin,)]
        self._steps: dict[tuple[int, int], tuple[bool, int]] = {}
        self._check()

    def start(self) -> Course:
        """The course at the beginning of a text."""
        return Course((), START)

    def step(self, course: Course, kind: int, is_cut: bool) -> Course | None:
        """The course after a character of a class; None if it proves the guess wrong.

        is_cut : whether a piece begins with the character.
        """
        must_fail = set()
        for front in course.must_fail:
            matches, then = self._step(front, kind)
            if matches:
                return None
            if then >= 0:
                must_fail.add(then)
        if course.front == START:
            if not is_cut:
                return None
        else:
            matches, then = self._step(course.front, kind)
            if not is_cut:
                return Course(tuple(sorted(must_fail)), then) if then >= 0 else None
            if not matches:
                return None
            if then >= 0:
                must_fail.add(then)
        _, then = self._step(0, kind)
        return Course(tuple(sorted(must_fail)), then)

    def can_end(self, course: Course) -> bool:
        """Whether the guess holds if the text ends here."""
        end = self.n_classes
        if any(self._step(front, end)[0] for front in course.must_fail):
            return False
        return course.front == START or self._step(course.front, end)[0]

    def is_possible(self, course: Course) -> bool:
        """Whether the guess holds for some text that begins like this."""
        known = self._possible.get(course)
        if known is None:
            seen, waiting = {course}, [course]
            known = False
            while waiting and not known:
                at = waiting.pop()
                known = self.can_end(at)
                for kind in range(self.n_classes):
                    for is_cut in (True, False):
                        then = self.step(at, kind, is_cut)
                        if then is not None and then not in seen:
                            seen.add(then)
                            waiting.append(then)
            self._possible[course] = known
        return known

    @cached_property
    def _possible(self) -> dict[Course, bool]:
        return {}

    def _step(self, front: int, kind: int) -> tuple[bool, int]:
        """Whether a front's piece may end before a character, and its front behind it, or -2."""
        found = self._steps.get((front, kind))
        if found is None:
            matches, then = self._follow(self._by_number[front], kind)
            number = -2
            if then:
                number = self._fronts.setdefault(then, len(self._fronts))
                if number == len(self._by_number):
                    self._by_number.append(then)
                    if number >= MOST_FRONTS:
                        raise self._error(f"it can stand in more than {MOST_FRONTS:,} ways")
            found = self._steps[front, kind] = matches, number
        return found

    def _follow(self, front: Front, kind: int) -> tuple[bool, Front]:
        found: list[int] = []
        seen: set[int] = set()
        waiting = list(reversed(front))
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            operation, argument, targets = self._program[at]
            if operation == "match":
                return True, tuple(found)  # what is preferred less than a match is never tried
            if operation == "split":
                waiting += reversed(targets)
            elif operation == "look":
                is_there = kind < self.n_classes and bool(self._members[argument, kind])
                if is_there != (targets[1] == 1):
                    waiting.append(targets[0])
            elif kind < self.n_classes and self._members[argument, kind] and targets[0] not in found:
                found.append(targets[0])
        return False, tuple(found)

    def _code(self, node: Node, then: int, follow: tuple[Node, ...]) -> int:
        """The instruction at which a part begins that goes on at the instruction `then`.

        follow : what may stand behind the part, for possessive parts.
        """
        match node:
            case Chars(ranges):
                return self._emit("character", self._set(ranges), (then,))
            case Sequence(parts):
                for at in range(len(parts) - 1, -1, -1):
                    then = self._code(parts[at], then, (*parts[at + 1 :], *follow))
                return then
            case Choice(options):
                return self._emit("split", 0, tuple(self._code(option, then, follow) for option in options))
            case Repeat():
                return self._repeat(node, then, follow)
            case Atomic(body):
                if not _is_final(body, follow):
                    raise self._error("its atomic group is not the same without")
                return self._code(body, then, follow)
            case Look(body=Chars(ranges), ahead=True, negated=negated):
                return self._emit("look", self._set(ranges), (then, int(negated)))
        raise self._error("only look-aheads of one character are supported")

    def _repeat(self, node: Repeat, then: int, follow: tuple[Node, ...]) -> int:
        if node.mode == "possessive" and not _is_final(node.body, follow):
            raise self._error("its possessive part is not the same as a greedy one")
        if max(node.least, node.most or 0) > MOST_COPIES:
            raise self._error(f"it repeats a part more than {MOST_COPIES} times")
        lazy = node.mode == "lazy"
        around = (node.body, *follow)
        if node.most is None:
            loop = self._emit("split", 0, ())
            body = self._code(node.body, loop, around)
            self._program[loop] = ("split", 0, (then, body) if lazy else (body, then))
            at = loop
        else:
            at = then
            for _ in range(node.most - node.least):
                body = self._code(node.body, at, around)
                at = self._emit("split", 0, (then, body) if lazy else (body, then))
        for _ in range(node.least):
            at = self._code(node.body, at, around)
        return at

    def _emit(self, operation: str, argument: int, targets: tuple[int, ...]) -> int:
        self._program.append((operation, argument, targets))
        return len(self._program) - 1

    def _set(self, ranges: Ranges) -> int:
        return self._sets.setdefault(ranges, len(self._sets))

    def _classes(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
        """The class of each character, and (set, class) -> whether the set has the class."""
        bounds = sorted(
            {
                0,
                *(low for ranges in self._sets for low, _ in ranges),
                *(high + 1 for ranges in self._sets for _, high in ranges),
            }
        )
        firsts = np.array([bound for bound in bounds if bound <= LAST])
        inside = np.zeros((len(self._sets), len(firsts)), np.bool_)
        for number, ranges in enumerate(self._sets):
            for low, high in ranges:
                inside[number, np.searchsorted(firsts, low) : np.searchsorted(firsts, high, "right")] = True
        inside[:, firsts == 0xD800] = inside[:, :1]  # halves of surrogate pairs are in no text
        members, classes = np.unique(inside, axis=1, return_inverse=True)
        if members.shape[1] > 255:
            raise self._error("it tells apart more than 255 classes of characters")
        lengths = np.diff([*firsts, LAST + 1])
        return np.repeat(classes.reshape(-1).astype(np.uint8), lengths), members

    def _check(self) -> None:
        """Refuse a pattern that matches the empty text, or leaves characters between matches."""
        seen = {(0, False)}
        waiting = [(0, False)]
        while waiting:
            front, has_matched = waiting.pop()
            for kind in range(self.n_classes + 1):
                matches, then = self._step(front, kind)
                if front == 0 and matches:
                    raise self._error("it matches the empty text")
                if front == 0 and kind == self.n_classes:
                    continue
                if then < 0:
                    if not (matches or has_matched):
                        raise self._error("it leaves some characters of a text between two matches")
                elif (state := (then, matches or has_matched)) not in seen:
                    seen.add(state)
                    waiting.append(state)

    def _error(self, why: str) -> VocabularyError:
        return VocabularyError(
            f"{self._where}: the tokenizer cuts texts by the pattern {self._pattern[:80]!r}, which canonical masks do not support: {why}"
        )


def _is_final(body: Node, follow: tuple[Node, ...]) -> bool:
    """Whether a part may be possessive without a difference: what follows begins otherwise.

    A part at the end of the pattern is final as well: its first match is the one that counts.
    """
    own = _first(body)
    for node in follow:
        if difference(own, _first(node)) != own:
            return False
        if isinstance(node, Look) or not is_nullable(node):
            return True
    return True


def _first(node: Node) -> Ranges:
    """The characters that a part may begin with, or more."""
    match node:
        case Chars(ranges):
            return ranges
        case Sequence(parts):
            found: Ranges = ()
            for part in parts:
                found = normalise([*found, *_first(part)])
                if not is_nullable(part):
                    break
            return found
        case Choice(options):
            return normalise([pair for option in options for pair in _first(option)])
        case Repeat(body=body) | Atomic(body=body):
            return _first(body)
        case Look(body=Chars(ranges), ahead=True, negated=negated):
            return complement(ranges) if negated else ranges
        case _:
            return EVERYTHING


_PARTS = re.compile(r"\\[pP](?:\{\^?[A-Za-z_ ]+\}|[A-Za-z])|\\.|\[\^?\]?|\]|\$|.", re.DOTALL)


@lru_cache(maxsize=64)
def _in_python(pattern: str) -> str:
    r"""The pattern in the syntax of Python's `re`.

    ``\p{L}`` and the other categories become sets, ``\s``, ``\d`` and ``\w`` Unicode's own, and
    ``$`` the end of the text.
    """
    found: list[str] = []
    in_set = False
    for part in _PARTS.findall(pattern):
        if part.startswith("[") and not in_set:
            in_set = True
            found.append(part)
            continue
        if part == "]" and in_set:
            in_set = False
        elif part == "$" and not in_set:
            part = r"\Z"
        elif part.startswith("[") and in_set:
            raise Unsupported("a class in a class", "write its characters")
        elif len(part) > 1 and part[1] in "pP":
            name = part[2:].strip("{}")
            is_negated = (part[1] == "P") != name.startswith("^")
            ranges = general_category(name.removeprefix("^"))
            if not ranges:
                raise Unsupported(f"the property {name}", "only general categories are known")
            part = _as_set(complement(ranges) if is_negated else ranges, in_set)
        elif len(part) > 1 and part[1] in "sSdDwW":
            part = _as_set(perl_class(part[1]), in_set)
        found.append(part)
    return "".join(found)


def _as_set(ranges: Ranges, in_set: bool) -> str:
    text = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
    return text if in_set else f"[{text}]"
