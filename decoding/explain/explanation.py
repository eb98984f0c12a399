"""The data of an explanation, and how it is shown: as JSON, in a terminal, or as plain lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from maskwright.analysis.arguments import clip
from maskwright.decoding.engine.state import listed_bytes

if TYPE_CHECKING:
    from maskwright.maskstore.vocabulary import Vocabulary

Verdict = Literal["allowed", "refused"]

MOST_SHOWN = 12
"""Names in one line that is shown. The data has all of them."""
WIDEST_LINE = 100
"""Characters shown of a long line of the text; half of them on each side of the position."""


@dataclass(frozen=True, slots=True)
class Position:
    """A byte of the text, and the line around it.

    offset : bytes before it.
    line, column : counted from 1; the column in characters.
    before, after : the line before the byte and from the byte on. Long lines are cut, and control
        characters other than tabs are escaped.
    """

    offset: int
    line: int
    column: int
    before: str
    after: str


def position_of(text: bytes, offset: int) -> Position:
    """The position of a byte in a text.

    text : bytes.
    offset : in bytes, from 0 to the text's length.
    """
    begin = text.rfind(b"\n", 0, offset) + 1
    end = text.find(b"\n", offset)
    end = len(text) if end < 0 else end
    before = text[begin:offset].decode("utf-8", "backslashreplace")
    after = text[offset:end].decode("utf-8", "backslashreplace")
    column = len(text[begin:offset].decode("utf-8", "replace")) + 1
    if len(before) > WIDEST_LINE // 2:
        before = "..." + before[-WIDEST_LINE // 2 :]
    if len(after) > WIDEST_LINE // 2:
        after = after[: WIDEST_LINE // 2] + "..."
    printable = str.maketrans({c: repr(chr(c))[1:-1] for c in range(32) if c != 9})
    return Position(
        offset, text.count(b"\n", 0, begin) + 1, column, before.translate(printable), after.translate(printable)
    )


def mark_hint(text: bytes, offset: int) -> str:
    """What to do about a text that is refused at its byte order mark; "" for others."""
    is_mark = offset == 0 and text.startswith(b"\xef\xbb\xbf")
    return "; the text begins with a byte order mark, which is not part of it: remove it" if is_mark else ""


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A lexeme that was read.

    terminal : its terminal's name.
    text : its beginning, in quotes; "" if it has no bytes.
    begin, end : offsets in the text, in bytes. Equal for terminals that the layout inserts.
    is_ignored : whether the terminal is ignored.
    """

    terminal: str
    text: str
    begin: int
    end: int
    is_ignored: bool


@dataclass(frozen=True, slots=True)
class StackDescription:
    """A parser stack before a terminal, after all reductions that are possible.

    refuses : names of the terminals that it refuses; () where it accepts.
    state : number of the state on top, as in `analysis.lr`.
    symbols : on the stack, from the bottom.
    items : the rules under way in the top state, with a dot.
    rules : one chain of rules around them, the innermost first.
    expected : names of the terminals that it takes.
    """

    refuses: tuple[str, ...]
    state: int
    symbols: tuple[str, ...]
    items: tuple[str, ...]
    rules: tuple[str, ...]
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to read the token, or the bytes of the text from the refused lexeme on.

    read : names of the terminals completed, with those that the layout inserts.
    under_way : names of the terminals that the last lexeme may still become and the parser takes.
    why : why this reading is refused; "" if it is not.
    stacks : those that refuse. If none refuses, those after `read`.
    """

    read: tuple[str, ...]
    under_way: tuple[str, ...]
    why: str
    stacks: tuple[StackDescription, ...]


@dataclass(frozen=True, slots=True)
class NearToken:
    """A token that may come instead of a refused one.

    token : its id.
    data : its bytes.
    shared : length of the common prefix with the refused token, in bytes.
    """

    token: int
    data: bytes
    shared: int


@dataclass(frozen=True)
class Explanation:
    """Why a token may or may not come, or where a text goes wrong.

    grammar : the grammar's name.
    what : what was asked about.
    verdict : "allowed" or "refused".
    summary : the answer in one sentence.
    position : the first byte that is not legal. If everything is legal, the end of the text before
        the token (for `explain_text`, the text's end). None if the text is not known.
    lexemes : the last lexemes before the token; for `explain_text`, before the position.
    n_lexemes : how many lexemes there are in all, ignored ones included.
    unfinished : the lexeme under way there, in words; "" if there is none.
    columns : of the blocks open there; () without a layout.
    depth : brackets open there.
    reads_as : what the lexer makes of the token by itself. The last one is what may be under way.
    attempts : the ways to read the token or the text.
    expected : names of the terminals that could come.
    bytes_allowed : bytes that may stand at the position, ascending.
    nearest : allowed tokens, the most similar first.
    is_whole : whether the text is legal as it stands; None if that was not asked.
    ending : why the text is not legal as it stands.
    note : what the answer was worked out from.
    """

    grammar: str
    what: str
    verdict: Verdict
    summary: str
    position: Position | None = None
    lexemes: tuple[Lexeme, ...] = ()
    n_lexemes: int = 0
    unfinished: str = ""
    columns: tuple[int, ...] = ()
    depth: int = 0
    reads_as: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    expected: tuple[str, ...] = ()
    bytes_allowed: bytes = b""
    nearest: tuple[NearToken, ...] = ()
    is_whole: bool | None = None
    ending: tuple[Attempt, ...] = ()
    note: str = ""

    @property
    def is_allowed(self) -> bool:
        """Whether the verdict is "allowed"."""
        return self.verdict == "allowed"

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON. Bytes are shown as by `shown_bytes`."""
        found = asdict(self)
        found["bytes_allowed"] = [shown_bytes(bytes([byte])) for byte in self.bytes_allowed]
        found["nearest"] = [{**asdict(near), "data": shown_bytes(near.data)} for near in self.nearest]
        return found

    def __str__(self) -> str:
        return "\n".join(line for _, line in self._lines())

    def __rich__(self) -> Any:
        from rich.text import Text

        return Text("\n").join(Text(line, style=style) for style, line in self._lines())

    def _lines(self) -> Iterator[tuple[str, str]]:
        """Lines to show, each with a style of `rich`."""
        yield ("bold green" if self.is_allowed else "bold red"), self.summary
        if self.position is not None:
            at = self.position
            number = f"{at.line} | "
            yield "", f"{number}{at.before}{at.after}"
            indent = "".join("\t" if c == "\t" else " " * len(c) for c in at.before)
            yield "bold", f"{' ' * len(number)}{indent}^ line {at.line}, column {at.column} (byte {at.offset})"
        if self.note:
            yield "dim", self.note
        if self.lexemes:
            shown = " ".join(f"{one.terminal} {one.text}".rstrip() for one in self.lexemes if not one.is_ignored)
            more = self.n_lexemes - len(self.lexemes)
            yield "", f"read so far: {f'({more:,} lexemes) ' if more else ''}{shown}"
        if self.unfinished:
            yield "", f"under way: {self.unfinished}"
        if self.columns:
            brackets = f", {self.depth} brackets open" if self.depth else ""
            yield "", f"blocks open at columns {', '.join(map(str, self.columns))}{brackets}"
        if self.reads_as:
            yield "", f"the lexer reads it as {' '.join(self.reads_as)}"
        for attempt in self.attempts:
            yield from _attempt(attempt, self.is_allowed)
        if self.is_whole is not None:
            yield "", "it is a complete text" if self.is_whole else "it is not a complete text yet:"
            for attempt in self.ending:
                yield from _attempt(attempt, False)
        if self.expected:
            yield "bold", f"expected: {listed(self.expected)}"
        if self.bytes_allowed:
            yield "", f"bytes that may stand here: {listed_bytes(self.bytes_allowed)}"
        if self.nearest:
            near = (f"{one.token} {shown_bytes(one.data)}" for one in self.nearest)
            yield "", f"nearest tokens that are allowed: {', '.join(near)}"


def out_of_range(name: str, token: int, vocabulary: Vocabulary) -> Explanation:
    """The explanation of an id that a vocabulary lacks. name : of the grammar or schema."""
    what = f"token {clip(token)}"
    why = f"{what} is out of range: the vocabulary has the ids 0 to {vocabulary.size - 1}"
    return Explanation(name, what, "refused", why)


def _attempt(attempt: Attempt, is_allowed: bool) -> Iterator[tuple[str, str]]:
    """Lines that show an attempt, each with a style."""
    read = " ".join(attempt.read)
    if attempt.why:
        yield "red" if not is_allowed else "dim", f"tried: {f'{read}, then ' if read else ''}{attempt.why}"
    else:
        complete = f"completes {read}" if read else "completes no terminal"
        yield (
            "green",
            f"{complete}; {f'begins {listed(attempt.under_way)}' if attempt.under_way else 'nothing is under way'}",
        )
    for stack in attempt.stacks:
        if stack.refuses:
            yield "", f"  state {stack.state} refuses {listed(stack.refuses)}"
        else:
            yield "", f"  state {stack.state}"
        if stack.symbols:
            more = len(stack.symbols) - MOST_SHOWN
            yield "dim", f"    on the stack: {'... ' if more > 0 else ''}{' '.join(stack.symbols[-MOST_SHOWN:])}"
        for item in stack.items[:MOST_SHOWN]:
            yield "", f"    {item}"
        if len(stack.items) > MOST_SHOWN:
            yield "dim", f"    and {len(stack.items) - MOST_SHOWN} more"
        for rule in stack.rules:
            yield "dim", f"      in {rule}"


def listed(names: tuple[str, ...], most: int = MOST_SHOWN) -> str:
    """Names with commas; at most `most` of them, then how many were left out.

    >>> listed(("a", "b", "c"), 2)
    'a, b and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def shown_bytes(data: bytes, most: int = 40) -> str:
    """Bytes in quotes: as text where they are UTF-8, else as Python writes bytes.

    most : characters, or bytes, that are shown. If there are more, "..." follows.

    >>> [shown_bytes(b) for b in (b"a b", b"\\xff", "é\\n".encode())]
    ["'a b'", "b'\\\\xff'", "'é\\\\n'"]
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return repr(data[:most]) + ("..." if len(data) > most else "")
    return repr(text[:most]) + ("..." if len(text) > most else "")
