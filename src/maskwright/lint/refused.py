"""Terminals that no rule takes, and prefixes that can only become such a terminal.

A mask lets such a prefix begin, and nothing leads out of it. Past a lexeme of X the lexer may be
inside what can only become a refused terminal. The mask still takes it for X and the beginning of
another lexeme, as long as that is possible. It asks whether this other reading can go on, not
whether the longer lexeme always wins in the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from maskwright.analysis.graphs import reachable, shortest_texts
from maskwright.analysis.lexing.encoding import START_STATE, Transducer
from maskwright.lint.facts import Facts
from maskwright.lint.finding import Finding, listed
from maskwright.lint.lexer import BYTE_ORDER


def refused_dead_ends(facts: Facts) -> Iterator[Finding]:
    """For each refused terminal a shortest prefix that masks allow and from which nothing leads on.

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
