"""Texts that longest match, contextual lexing and Lark's own lexers read differently.

Candidates are texts in which the lexings have something to disagree about: a text of a terminal
that another one wins, two terminals that run together, or a lexeme that begins with one of a
terminal that Lark tries first. Each lexing reads each candidate with the same LALR tables. The
shortest text on which two lexings disagree is reported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from types import SimpleNamespace
from typing import Any, Literal

from lark.common import LexerConf
from lark.exceptions import LexError, UnexpectedInput
from lark.indenter import DedentError, Indenter
from lark.lexer import (
    BasicLexer,
    ContextualLexer,
    LexerThread,
    PatternRE,
    PatternStr,
    TerminalDef,
)

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lr.automaton import bits
from maskwright.decoding.reference.machine import Lexer
from maskwright.decoding.reference.parser import Parser, Stacks
from maskwright.lint.facts import Facts
from maskwright.lint.finding import Finding
from maskwright.lint.texts import Reader, Reading, Tree, TreeStack

MAX_CANDIDATES = 400
"""Texts that are read with every lexing.

A number, not a time, because findings must not depend on the machine.
"""

MAX_MADE = 2_000
"""Texts that are written to find the candidates."""

MAX_PAIRS = 500_000
"""Pairs of neighbours that are looked at to find some that run together."""

MAX_REDUCTIONS = 10_000
"""Reductions before one terminal.

A parser that shifts rather than reduces may reduce by empty rules for ever.
"""

MAX_VARIANTS = 4
"""Texts of one terminal that other terminals match too."""


def lexing_findings(facts: Facts) -> Iterator[Finding]:
    """The shortest candidate that another lexing reads differently than the grammar's own.

    There is one finding for each such lexing.
    """
    own = facts.reading_lexing
    other: Literal["longest", "contextual"] = "contextual" if own == "longest" else "longest"
    readers: dict[str, Reader | _Larks] = {}
    try:
        modes = facts.modes_of(other)
        readers[f"{other} lexing"] = Reader(Lexer(facts.known_lexemes(modes)), modes, facts.tables)
    except LimitError:
        pass  # the other lexing would have too many modes or states
    readers["Lark's contextual lexer"] = _Larks(facts, is_contextual=True)
    readers["Lark's basic lexer"] = _Larks(facts, is_contextual=False)
    best: dict[str, tuple[bytes, Reading, Reading]] = {}
    for text in candidates(facts):  # the shortest first
        mine = facts.reader.read(text)
        for name, reader in readers.items():
            theirs = None if name in best else reader.read(text)
            if theirs is None:  # what this lexing does is not known
                continue
            if mine.accepted != theirs.accepted or (mine.accepted and _spelled(facts, mine) != _spelled(facts, theirs)):
                best[name] = text, mine, theirs
    for name in filter(best.__contains__, readers):
        text, mine, theirs = best[name]
        code, decoding = "lexing-differs", f"masks follow {own} lexing"
        remedy = f"choose by --lexing {other}; or make the terminals differ, so that all agree"
        if name.startswith("Lark"):
            code, decoding = "lark-differs", f"{decoding}, so they do not always agree with a parser made by Lark"
            remedy = (
                "declare keywords that may be names as soft (--soft), or make the terminals differ, so that all agree"
            )
            if mine.is_unfinished:
                remedy = "let texts end in bytes that continue no lexeme, such as a line feed, or make the terminals differ, "
                remedy += "so that all agree"
        message = f"{own} lexing {_says(facts, mine)}, {name} {_says(facts, theirs)}"
        yield facts.finding(code, "info", (0, 0), message, decoding, remedy, text)


def _spelled(facts: Facts, reading: Reading) -> tuple[int, ...]:
    """The terminals of a reading, without those that the layout inserts."""
    layout = facts.grammar.layout
    inserted = () if layout is None else (layout.indent, layout.dedent)
    return tuple(terminal for terminal in reading.terminals if terminal not in inserted)


def _says(facts: Facts, reading: Reading) -> str:
    """The result of a lexing, in words."""
    names = " ".join(map(facts.name, _spelled(facts, reading))) or "no terminal"
    if reading.accepted:
        return f"reads {names}"
    unfinished = ", since it ends inside a lexeme that more text may complete" if reading.is_unfinished else ""
    return f"refuses the text below (after {names}){unfinished}"


def candidates(facts: Facts) -> list[bytes]:
    """Texts about which lexings may disagree, the shortest first, at most MAX_CANDIDATES."""
    writer, lexer, acceptable = facts.writer, facts.lexer, facts.acceptable
    paths = writer.paths().items()
    found: set[bytes | None] = set()
    # Write each contested terminal at the nearest parser state that takes it and a rival, and at
    # the nearest that takes it and no rival.
    for terminal, variants in _contested(facts).items():
        for lexeme, rivals in variants:
            here = [(state, symbols) for state, symbols in paths if acceptable[state, terminal]]
            nearest = {any(acceptable[state, r] for r in rivals): symbols for state, symbols in reversed(here)}
            found |= {_text(facts, symbols, terminal, lexeme) for symbols in nearest.values()}
    pairs = (
        (symbols, symbols[-1], y)
        for state, symbols in paths
        if symbols and symbols[-1] in writer.lexemes
        for y in bits(facts.follows[symbols[-1]])
        if y in writer.lexemes and acceptable[state, y]
    )
    done: set[tuple[int, int]] = set()
    n_made = 0
    for symbols, x, y in pairs:
        if (x, y) in done:
            continue
        if n_made >= MAX_MADE or len(done) >= MAX_PAIRS:
            facts.notes.append("lexings are compared on some neighbours only: there are too many of them to try all")
            break
        done.add((x, y))
        own, other = writer.lexemes[x], writer.lexemes[y]
        if lexer.after(x, own, other) != (x, len(own)):
            n_made += 1
            found.add(_text(facts, symbols, y, other, is_glued=True))
    if facts.no_newline is not None:
        newline = facts.grammar.newline
        first = next((symbols for state, symbols in paths if acceptable[state, newline]), None)
        if first is not None:
            found.add(_text(facts, first, newline, facts.no_newline))
    ordered = sorted((text for text in found if text is not None), key=lambda text: (len(text), text))
    return [text for text in ordered[:MAX_CANDIDATES] if text.decode("utf-8", "ignore").encode() == text]


def _contested(facts: Facts) -> dict[int, list[tuple[bytes, list[int]]]]:
    """Terminal -> short texts of it that other terminals claim, each with these terminals.

    Another terminal claims a text if it matches all of it, or if Lark tries it first and it matches
    a beginning.
    """
    lexer, order = facts.lexer, _lark_order(facts.grammar)
    found: dict[int, dict[tuple[int, ...], bytes]] = {}
    known: dict[tuple[int, int], bytes] = {(start, -1): b"" for start in lexer.union.starts}
    agenda = list(known)
    for at in agenda:  # grows while it is read
        state, earlier = at
        accepting = lexer.union.accepting[state]
        for terminal in accepting:
            rivals = tuple(t for t in accepting if t != terminal)
            if earlier >= 0 and order[earlier] < order[terminal]:
                rivals = (*rivals, earlier)
            if rivals:
                found.setdefault(terminal, {}).setdefault(rivals, known[at])
        first = min((*accepting, earlier) if earlier >= 0 else accepting, key=order.__getitem__, default=earlier)
        for byte, target in lexer.edges[state]:
            if (target, first) not in known and len(known) < 20_000:
                known[target, first] = known[at] + bytes([byte])
                agenda.append((target, first))
    return {
        t: [(lexeme, list(rivals)) for rivals, lexeme in list(variants.items())[:MAX_VARIANTS]]
        for t, variants in sorted(found.items())
    }


def _lark_order(grammar: Grammar) -> list[int]:
    """For each terminal its rank in the order in which Lark's lexers try them."""
    definitions = {d.name: d for d in _definitions(grammar)}

    def key(number: int) -> tuple[int, int, int, str]:
        d = definitions.get(grammar.terminals[number].name)
        return (0, 0, 0, "") if d is None else (-d.priority, -d.pattern.max_width, -len(d.pattern.value), d.name)

    order = sorted(range(grammar.n_terminals), key=key)
    return [order.index(number) for number in range(grammar.n_terminals)]


def _text(facts: Facts, symbols: tuple[int, ...], terminal: int, lexeme: bytes, is_glued: bool = False) -> bytes | None:
    """The text of a viable prefix and a lexeme, completed to a whole text; None if none is found.

    is_glued : whether the lexeme may run together with what is before it.
    """
    writer = facts.writer
    before = writer.yield_of(symbols)
    if before is None or len(before) > 40:
        return None
    head = writer.text(before)
    if head is not None and not is_glued:
        head = writer.text((*before, terminal), {len(before): lexeme})
        head = None if head is None else head[: len(head) - len(lexeme)]
    stacks = facts.reader.stacks_after((*before, terminal))
    if head is None or not stacks:
        return None
    built: TreeStack = (0, None, None)
    for state in stacks[0].states()[1:]:
        built = (state, Tree(-1), built)  # What has been read is not written again.
    tree = writer.completion(built)
    own = writer.lexemes.get(terminal, lexeme)
    ending = () if tree is None else (t for t in tree.terminals() if t >= 0)
    whole = None if tree is None else writer.text((terminal, *ending), {0: own})
    if whole is None:
        return None
    return head + lexeme + (whole[len(own) :] if whole.startswith(own) else b"")


def _definitions(grammar: Grammar) -> list[TerminalDef]:
    """The terminals as Lark defines them."""
    found = []
    for terminal in grammar.terminals:
        if terminal.pattern is None:
            continue
        kind: Any = PatternRE if terminal.literal is None else PatternStr
        value = terminal.pattern if terminal.literal is None else terminal.literal
        found.append(TerminalDef(terminal.name, kind(value, tuple(terminal.flags)), terminal.priority))
    return found


class _Larks:
    """Lark's own lexers and `Indenter`, in front of our LALR tables.

    The tables shift rather than reduce, as Lark's do.
    """

    def __init__(self, facts: Facts, is_contextual: bool) -> None:
        grammar = self.grammar = facts.grammar
        tables, layout = facts.larks_tables, grammar.layout
        self.parser = Parser(tables, grammar.name, MAX_REDUCTIONS, is_cut=True)
        names = [t.name for t in grammar.terminals]
        conf = LexerConf(_definitions(grammar), re, [names[i] for i in sorted(grammar.ignored)], skip_validation=True)
        self.lexer: Any = BasicLexer(conf)
        if is_contextual:
            rows = tables.action[:, : grammar.n_terminals]
            states: dict[int, Collection[str]] = {
                state: {names[t] for t in row.nonzero()[0].tolist()} for state, row in enumerate(rows)
            }
            self.lexer = ContextualLexer(conf, states, () if layout is None else (names[layout.newline],))
        self.postlex: Any = None
        if layout is not None:
            members = {
                "NL_type": names[layout.newline],
                "OPEN_PAREN_types": [names[opening] for opening, _ in layout.brackets],
                "CLOSE_PAREN_types": [names[closing] for _, closing in layout.brackets],
                "INDENT_type": names[layout.indent],
                "DEDENT_type": names[layout.dedent],
                "tab_len": layout.tab_length,
            }
            self.postlex = type("Layout", (Indenter,), members)()

    def read(self, text: bytes) -> Reading | None:
        """Read a text. None where the parser would reduce for ever, as Lark's would."""
        position = SimpleNamespace(position=0)
        thread: Any = LexerThread.from_text(self.lexer, text.decode())
        stream: Any = thread.lex(position)
        if self.postlex is not None:
            stream = self.postlex.process(stream)
        stacks: Stacks = (self.parser.start,)
        terminals: list[int] = []
        try:
            for token in stream:
                terminal = self.grammar.terminal_number[token.type]
                after = self.parser.shift(stacks, terminal)
                if not after.stacks:
                    break
                stacks = after.stacks
                terminals.append(terminal)
                position.position = stacks[0].top
            else:
                after = self.parser.shift(stacks, self.parser.end_column)
        except (LexError, UnexpectedInput, DedentError, IndexError, AssertionError):
            # The Indenter raises the last two: for a newline without a line feed, and for a text
            # that ends inside brackets.
            return Reading(False, 0, tuple(terminals))
        return Reading(bool(after.stacks), 0, tuple(terminals)) if after.stacks or after.refusing else None
