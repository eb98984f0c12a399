"""Lexers that have to back up: how far, over what, and where nothing leads on."""

from __future__ import annotations

from collections.abc import Iterator

from maskwright.analysis.errors import BackupError, GrammarError, LimitError
from maskwright.analysis.graphs import reachable, shortest_texts
from maskwright.analysis.lexing.encoding import START_STATE, Transducer
from maskwright.analysis.lexing.lexemes import check_literals
from maskwright.analysis.lexing.transducer import STATE_LIMIT
from maskwright.lint.facts import Facts
from maskwright.lint.finding import NO_STORE, Finding, listed
from maskwright.lint.lexer import BYTE_ORDER

MANY_LEXEMES = 2
"""Backing up over more lexemes than this is reported."""
MANY_BYTES = 8
"""Backing up over more bytes than this is reported."""


def backing_up(facts: Facts) -> Iterator[Finding]:
    """Findings on backing up: no bound on how far the lexer backs up, or a large one.

    The transducer is built for this. Literals are counted first. If a grammar has too many of them,
    lint refuses to make the parser's tables and would not come to the transducer.

    Raises: LimitError and GrammarError as `check_literals` and `Facts.modes`.
    """
    grammar = facts.grammar
    check_literals(grammar, STATE_LIMIT)
    _ = facts.modes  # compute these first: their errors are not the transducer's
    try:
        yield from _long(facts, facts.transducer)
    except LimitError as error:
        # Two terminals may differ too late. The finding is placed at the one that goes on.
        code, at = (
            ("endless-backup", [-1, *error.terminals[:2]][-1]) if isinstance(error, BackupError) else ("too-large", -1)
        )
        remedy = "make these terminals differ sooner, or let the rules build what only the longer one can spell"
        if grammar.lexing == "longest" and len(facts.modes) == 1:
            remedy += "; lexing='contextual' helps where no parser state accepts both"
        is_held = isinstance(error, BackupError)
        decoding = "texts in which the longer lexeme comes to nothing are refused" if is_held else NO_STORE
        yield facts.finding(code, "warning" if is_held else "error", at, facts.without_name(error), decoding, remedy)
    except GrammarError as error:
        remedy = r"write the newline as in (\r?\n[\t ]*)+, and let no other terminal go on past it"
        yield facts.finding("layout-newline", "error", grammar.newline, facts.without_name(error), NO_STORE, remedy)


def _long(facts: Facts, transducer: Transducer) -> Iterator[Finding]:
    """For each terminal how much is read again when a longer lexeme fails, if it is much."""
    lexemes = [0] * transducer.n_states
    most: dict[int, tuple[int, int, int]] = {}  # terminal -> lexemes, bytes, state
    for state, fallback in enumerate(transducer.fallback):
        if fallback < 0:
            continue
        if (reread := transducer.reread[state]) is not None:
            # The state after reading again has a lower number, so its count is known.
            lexemes[state] = len(reread[0]) + 1 + lexemes[reread[1]]
        found = lexemes[state], len(transducer.pending[state]), state
        most[fallback] = max(most.get(fallback, (0, 0, 0)), found)
    for terminal, (n_lexemes, n_bytes, state) in sorted(most.items()):
        if n_lexemes <= MANY_LEXEMES and n_bytes <= MANY_BYTES:
            continue
        alive = listed([facts.name(t) for t in transducer.live[state]])
        how_far = f"{n_bytes} bytes" if n_bytes else f"{n_lexemes} lexemes"
        message = f"past {facts.name(terminal)} the lexer may read up to {how_far} of what could become {alive}, then have to back up"
        decoding = "masks are exact all the same; the lexer and the store have states for each such case"
        remedy = "make these terminals differ sooner"
        yield facts.finding("long-backup", "info", terminal, message, decoding, remedy)


def newline_without_line_feed(facts: Facts) -> Iterator[Finding]:
    """Whether the layout's newline matches texts without a line feed. These have no column."""
    layout = facts.grammar.layout
    example = facts.no_newline
    if layout is not None and example is not None:
        message = f"the layout's newline {facts.name(layout.newline)} also matches texts without a line feed, which have no column"
        decoding = "such a text is not a newline: another terminal must match it and end before a line feed makes it one, or it is refused"
        remedy = (
            r"let the newline end in a line feed and blanks, (comment? \r?\n blanks)+, and let a text end in a newline"
        )
        yield facts.finding("newline-without-line-feed", "info", layout.newline, message, decoding, remedy, example)


def refused_dead_ends(facts: Facts) -> Iterator[Finding]:
    """For each refused terminal a shortest prefix that masks allow and from which nothing leads on.

    Past a lexeme of X the lexer may be inside what can only become a terminal that no rule takes.
    The mask still takes it for X and the beginning of another lexeme, as long as that is possible.
    It asks whether this other reading can go on, not whether the longer lexeme always wins.

    These are searched only if lexing has one mode.
    """
    grammar, layout = facts.grammar, facts.grammar.layout
    members = set() if layout is None else {layout.newline, layout.indent, layout.dedent}
    refused = set(range(grammar.n_terminals)) - facts.used - grammar.ignored - members
    refused -= {terminal for terminal in refused if grammar.terminals[terminal].is_declared}
    if not refused or len(facts.modes) > 1:
        return
    transducer, reported = facts.transducer, set[int]()
    for state, path in beginnings(transducer).items():
        first, live = transducer.fallback[state], transducer.live[state]
        if first < 0 or first in grammar.ignored or not set(live) <= refused - reported:
            continue
        text = _dead_text(facts, refused, state, path)
        if text is None:
            continue
        reported.update(live)
        before, names = facts.name(first), listed([facts.name(terminal) for terminal in live])
        message = f"no rule takes {names}, and the text below can only become such a terminal, or one that cannot follow {before} there"
        decoding = (
            f"masks allow the text below as {before} and the beginning of what may follow; no token leads on from it"
        )
        remedy = "let the refused terminal match such beginnings too, so that they are refused at once"
        yield facts.finding("refused-dead-end", "warning", live[0], message, decoding, remedy, text)


def beginnings(transducer: Transducer) -> dict[int, bytes]:
    """State -> a shortest byte string that leads there with nothing emitted, in order of length."""
    byte_of: dict[int, int] = {}
    for byte in BYTE_ORDER:
        byte_of.setdefault(int(transducer.byte_class[byte]), byte)
    rows: list[list[int]] = transducer.next_state.tolist()
    outputs: list[list[int]] = transducer.output.tolist()
    return shortest_texts(
        [START_STATE, *transducer.mode_state.tolist()],
        lambda state: [
            (byte, rows[state][klass])
            for klass, byte in byte_of.items()
            if rows[state][klass] > START_STATE and not outputs[state][klass]
        ],
    )


def _dead_text(facts: Facts, refused: set[int], state: int, path: bytes) -> bytes | None:
    """A text that ends with the path, that masks allow, and from which nothing leads on.

    Returns None if there is none.
    """
    transducer, reader, writer = facts.transducer, facts.reader, facts.writer
    first, reread = transducer.fallback[state], transducer.reread[state]
    n, ignored = facts.grammar.n_terminals, facts.grammar.ignored
    beginning = set() if reread is None else set(reread[0][:1] or transducer.live[reread[1]])
    escapes = _escapes(transducer, state)
    if -1 in escapes or beginning & refused or not beginning:
        return None
    for symbols in writer.paths().values():
        before = writer.yield_of(symbols) if symbols and symbols[-1] == first else None
        if before is None:
            continue
        following = reader.next_terminals(before) | ignored
        if reader.stacks_after((*before, n)):
            following |= {n}
        if beginning & following and not escapes & following:
            text = writer.text(before, {len(before) - 1: path})
            if text is not None and text.endswith(path):
                return text
    return None


def _escapes(transducer: Transducer, state: int) -> set[int]:
    """The terminals that may come next once the lexeme under way has failed; -1 for any terminal.

    They come after the terminal to which the lexer backs up.
    """
    first = transducer.fallback[state]
    found: set[int] = set()

    def onwards(at: int) -> Iterator[int]:
        end = int(transducer.end_output[at])
        if end >= 0:
            found.update(transducer.outputs[end][1:2])
        for target, number in zip(transducer.next_state[at].tolist(), transducer.output[at].tolist(), strict=True):
            emitted = transducer.outputs[number]
            if target < START_STATE or emitted[:1] not in ((), (first,)):
                continue  # the lexer refuses the byte, or the parser refuses the terminal
            if len(emitted) > 1:
                found.add(emitted[1])
            elif emitted:
                found.update(transducer.live[target] or (-1,))
            elif transducer.fallback[target] == first:
                yield target

    reachable([state], onwards)
    return found
