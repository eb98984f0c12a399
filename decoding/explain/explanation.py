"""What is said about a text or a token: the data, as JSON, for a terminal, as plain lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["allowed", "refused"]

MOST_SHOWN = 12
"""Names in one line of a rendering; the data has all."""
WIDEST_LINE = 100


@dataclass(frozen=True, slots=True)
class Position:
    """A byte of the text. line, column : from 1, the column in characters. before, after : the line, parted at the byte."""

    offset: int
    line: int
    column: int
    before: str
    after: str


def position_of(text: bytes, offset: int) -> Position:
    """Where a byte of a text is; of a long line what is beside it."""
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


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A terminal that was read: its name, and the bytes from `begin` to `end`, of which `text` is a beginning. Layout's have none."""

    terminal: str
    text: str
    begin: int
    end: int
    is_ignored: bool


@dataclass(frozen=True, slots=True)
class StackView:
    """A stack of the parser before a terminal, once all is reduced that can be.

    refuses : the terminals that it refuses; () where it accepts. state : of the top, in `analysis.lr`. symbols : on the stack, from the
    bottom. items : the rules under way in the top state, with a dot. rules : one chain of rules around them, the innermost first. expected
    : terminals that it takes.
    """

    refuses: tuple[str, ...]
    state: int
    symbols: tuple[str, ...]
    items: tuple[str, ...]
    rules: tuple[str, ...]
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to read the token, or the bytes of the text from the lexeme that is refused.

    read : terminals complete, and those that layout inserts. under_way : what the last lexeme may still become and the parser takes. why :
    it is refused; "" if it is not. stacks : that refuse; if none does, those behind `read`.
    """

    read: tuple[str, ...]
    under_way: tuple[str, ...]
    why: str
    stacks: tuple[StackView, ...]


@dataclass(frozen=True, slots=True)
class Near:
    """A token that may come in place of a refused one. shared : bytes that both begin with."""

    token: int
    data: bytes
    shared: int


@dataclass(frozen=True)
class Explanation:
    """Why a token may or may not come, or where a text goes wrong.

    what : was asked about. summary : all in one sentence. position : the first byte that cannot be; where everything is legal, the text's
    end, or None if the text is not known. lexemes : the last ones read before, n_lexemes of them in all, ignored ones among them.
    unfinished : the bytes of the lexeme under way there. columns : of the open blocks, () without layout. depth : open brackets.
    reads_as : what the lexer makes of the token by itself, the last being what may be under way. expected : terminals that could come.
    bytes_allowed : bytes that may stand at the position. nearest : tokens that are allowed, those most alike first. is_whole : whether the
    text is legal as it stands, None where that was not asked. ending : why it is not. note : what the answer was worked out from.
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
    nearest: tuple[Near, ...] = ()
    is_whole: bool | None = None
    ending: tuple[Attempt, ...] = ()
    note: str = ""

    @property
    def is_allowed(self) -> bool:
        return self.verdict == "allowed"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; bytes are shown as Python writes them."""
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
        """A style of `rich` and a line."""
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
            shown = " ".join(_lexeme(lexeme) for lexeme in self.lexemes if not lexeme.is_ignored)
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
            yield "", "it is a whole text" if self.is_whole else "it is not a whole text yet:"
            for attempt in self.ending:
                yield from _attempt(attempt, False)
        if self.expected:
            yield "bold", f"expected: {listed(self.expected)}"
        if self.bytes_allowed:
            yield "", f"bytes that may stand here: {listed(shown_ranges(self.bytes_allowed))}"
        if self.nearest:
            near = (f"{one.token} {shown_bytes(one.data)}" for one in self.nearest)
            yield "", f"nearest tokens that are allowed: {', '.join(near)}"


def _attempt(attempt: Attempt, is_allowed: bool) -> Iterator[tuple[str, str]]:
    read = " ".join(attempt.read)
    if attempt.why:
        yield "red" if not is_allowed else "dim", f"tried: {f'{read}, then ' if read else ''}{attempt.why}"
    else:
        complete = f"completes {read}" if read else "completes no terminal"
        yield (
            "green",
            f"{complete}; {f'begins {listed(attempt.under_way)}' if attempt.under_way else 'nothing is under way'}",
        )
    for view in attempt.stacks:
        if view.refuses:
            yield "", f"  state {view.state} refuses {listed(view.refuses)}"
        else:
            yield "", f"  state {view.state}"
        if view.symbols:
            more = len(view.symbols) - MOST_SHOWN
            yield "dim", f"    on the stack: {'... ' if more > 0 else ''}{' '.join(view.symbols[-MOST_SHOWN:])}"
        for item in view.items[:MOST_SHOWN]:
            yield "", f"    {item}"
        if len(view.items) > MOST_SHOWN:
            yield "dim", f"    and {len(view.items) - MOST_SHOWN} more"
        for rule in view.rules:
            yield "dim", f"      in {rule}"


def _lexeme(lexeme: Lexeme) -> str:
    return f"{lexeme.terminal} {lexeme.text}" if lexeme.text else lexeme.terminal


def listed(names: tuple[str, ...], most: int = MOST_SHOWN) -> str:
    """Names with commas, and how many were left out.

    >>> listed(("a", "b", "c"), 2)
    'a, b and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def shown_bytes(data: bytes, most: int = 40) -> str:
    """Bytes in quotes: as text where they are UTF-8, else as Python writes bytes.

    >>> [shown_bytes(b) for b in (b"a b", b"\\xff", "é\\n".encode())]
    ["'a b'", "b'\\\\xff'", "'é\\\\n'"]
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return repr(data[:most]) + ("..." if len(data) > most else "")
    return repr(text[:most]) + ("..." if len(text) > most else "")


def shown_ranges(data: bytes) -> tuple[str, ...]:
    """Ascending bytes, neighbours of one kind (digits, letters, all else) together.

    >>> shown_ranges(b"+0123abc")
    ("'+'", "'0' to '3'", "'a' to 'c'")
    """
    runs: list[list[int]] = []
    for byte in data:
        if runs and byte == runs[-1][-1] + 1 and _kind(byte) == _kind(runs[-1][0]):
            runs[-1].append(byte)
        else:
            runs.append([byte])
    return tuple(
        f"{shown_bytes(bytes([run[0]]))} to {shown_bytes(bytes([run[-1]]))}"
        if len(run) > 2
        else ", ".join(shown_bytes(bytes([byte])) for byte in run)
        for run in runs
    )


def _kind(byte: int) -> int:
    return 3 if byte >= 128 else 2 if chr(byte).isalpha() else 1 if chr(byte).isdigit() else 0
