"""Terminals that no rule takes, and prefixes that can only become such a terminal.

A mask lets such a prefix begin, and nothing leads out of it. Past a lexeme of X the lexer may be
inside what can only become a refused terminal. The mask still takes it for X and the beginning of
another lexeme, as long as that is possible. It asks whether this other reading can go on, not
whether the longer lexeme always wins in the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from maskwright.analysis.graphs import shortest_texts
from maskwright.analysis.lexing.encoding import START_STATE, Transducer
from maskwright.lint.facts import Facts
from maskwright.lint.finding import Finding, listed, shown


def refused_dead_ends(facts: Facts) -> Iterator[Finding]:
    """For each refused terminal a shortest prefix that masks allow and from which nothing leads on.

    These are searched only if lexing has one mode.
    """
    grammar = facts.grammar
    layout = grammar.layout
    members = set() if layout is None else {layout.newline, layout.indent, layout.dedent}
    refused = frozenset(range(grammar.n_terminals)) - facts.used - grammar.ignored - members
    refused -= {terminal for terminal in refused if grammar.terminals[terminal].is_declared}
    if not refused or len(facts.modes) > 1:
        return
    transducer = facts.transducer
    reported: set[int] = set()
    for state, path in _paths(transducer).items():
        first = transducer.fallback[state]
        if first < 0 or first in grammar.ignored or not set(transducer.live[state]) <= refused - reported:
            continue
        text = _dead_text(facts, transducer, refused, state, path)
        if text is None:
            continue
        names = [facts.name(terminal) for terminal in transducer.live[state]]
        reported.update(transducer.live[state])
        yield facts.finding(
            "refused-dead-end",
            "warning",
            facts.at_terminal(transducer.live[state][0]),
            f"no rule takes {listed(names)}, and the text below can only become such a terminal, or one that cannot "
            f"follow {facts.name(first)} there",
            f"masks allow the text below as {facts.name(first)} and the beginning of what may follow; no token leads on from it",
            "let the refused terminal match such beginnings too, so that they are refused at once",
            shown(text),
        )


def _paths(transducer: Transducer) -> dict[int, bytes]:
    """State -> a shortest byte string that leads there with nothing emitted, in order of length."""
    byte_of = [0] * transducer.next_state.shape[1]
    for byte in (*range(256), *range(0x20), *range(0x7E, 0x40, -1), *range(0x7A, 0x60, -1), *range(0x39, 0x2F, -1)):
        byte_of[int(transducer.byte_class[byte])] = byte  # the last byte of a class is the best to read
    empty = transducer.outputs.index(())
    rows: list[list[int]] = transducer.next_state.tolist()
    outputs: list[list[int]] = transducer.output.tolist()

    def edges(state: int) -> Iterator[tuple[int, int]]:
        for byte, target, output in zip(byte_of, rows[state], outputs[state], strict=True):
            if target > START_STATE and output == empty:
                yield byte, target

    return shortest_texts([START_STATE], edges)


def _dead_text(facts: Facts, transducer: Transducer, refused: frozenset[int], state: int, path: bytes) -> bytes | None:
    """A text that ends with the path, that masks allow, and from which nothing leads on.

    Returns None if there is none.
    """
    grammar = facts.grammar
    first = transducer.fallback[state]
    reread = transducer.reread[state]
    if reread is None:
        return None
    beginning = set(reread[0][:1]) or set(transducer.live[reread[1]])
    escapes = _escapes(transducer, state)
    for symbols in facts.writer.paths().values():
        if not symbols or symbols[-1] != first:
            continue
        before = facts.writer.yield_of(symbols)
        if before is None:
            continue
        following = facts.reader.next_terminals(before) | grammar.ignored
        if facts.reader.stacks_after((*before, grammar.n_terminals)):
            following |= {grammar.n_terminals}
        if not beginning & following or escapes & following or -1 in escapes:
            continue
        text = facts.writer.text(before, {len(before) - 1: path})
        if text is not None and text.endswith(path) and not beginning & refused:
            return text
    return None


def _escapes(transducer: Transducer, state: int) -> set[int]:
    """The terminals that may come next once the lexeme under way has failed; -1 for any terminal.

    They come after the terminal to which the lexer backs up.
    """
    first = transducer.fallback[state]
    found: set[int] = set()
    seen = {state}
    agenda = [state]
    while agenda:
        at = agenda.pop()
        end = int(transducer.end_output[at])
        if end >= 0:
            found.update(transducer.outputs[end][1:2])
        for target, number in zip(transducer.next_state[at].tolist(), transducer.output[at].tolist(), strict=True):
            emitted = transducer.outputs[number]
            if target < START_STATE or emitted[:1] not in ((), (first,)):
                # The lexer refuses the byte, or the parser refuses the terminal.
                continue
            if len(emitted) > 1:
                found.add(emitted[1])
            elif emitted:
                found.update(transducer.live[target] or (-1,))
            elif transducer.fallback[target] == first and target not in seen:
                seen.add(target)
                agenda.append(target)
    return found
