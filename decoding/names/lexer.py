"""How lexemes grow under a store's lexer, byte by byte: what the engine's table no longer tells.

The engine's lexer is a transducer. It knows which terminals a lexeme has become, but not always
where the lexeme began, since ignored ones emit nothing. The union automaton of the terminals knows.
"""

from __future__ import annotations

import hashlib
import weakref
from collections import deque
from dataclasses import dataclass

import numpy as np

from maskwright.analysis.arrays import Int32
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.kept import kept_with
from maskwright.analysis.lexing.encoding import START_STATE
from maskwright.analysis.lexing.lexemes import Lexemes
from maskwright.analysis.lexing.modes import Modes, lexing_modes
from maskwright.analysis.lexing.transducer import STATE_LIMIT
from maskwright.analysis.locks import new_lock
from maskwright.decoding.names import layout
from maskwright.maskstore.automaton.stack_automaton import build_modes
from maskwright.maskstore.schema.tries import sorted_trie
from maskwright.maskstore.table import schema
from maskwright.maskstore.table.compiled import EngineTable
from maskwright.maskstore.table.write import part_of

_PREFERRED = bytes([*range(127, 256), *range(32), *range(126, 31, -1)])
"""All bytes; of a class the last one is taken."""


@dataclass(frozen=True, eq=False)
class NameLexer:
    """The lexer of a store, for names. `name_lexer` makes one for all stores that are alike.

    array : `layout`'s `lexer`.
    trie : `layout`'s `trie`, of the store's vocabulary.
    longest : the most bytes of a token.
    next_state : (n, 256) int32; the union automaton, -1: no lexeme goes on.
    winner : (n,) int32; the terminal that wins in each of its states, or -1.
    starts : the states of the union automaton in which lexemes begin, one for each mode.
    ignored : the ignored terminals.
    bytes_of_classes : one byte of each class, printable ASCII where there is one.
    pending : by lexer state, the bytes since the lexeme under way could have ended, as far as the
        lexer remembers them, and the terminal that won there; b"" and -1 if it could not have.
    """

    array: Int32
    trie: Int32
    longest: int
    next_state: Int32
    winner: Int32
    starts: tuple[int, ...]
    ignored: frozenset[int]
    bytes_of_classes: bytes
    pending: tuple[tuple[bytes, int], ...]


MOST_KEPT = 4
"""Lexers that are kept for stores to come, as unpickled matchers bring them, one after another."""

_ALIKE: weakref.WeakValueDictionary[tuple[str, str, bytes], NameLexer] = weakref.WeakValueDictionary()
"""By what is the same in stores that are alike."""
_LAST: deque[NameLexer] = deque(maxlen=MOST_KEPT)
_LOCK = new_lock()


@kept_with
def name_lexer(store: EngineTable) -> NameLexer:
    """The lexer of a store, kept with it. Stores that are alike share it; the last few live on.

    Cost: 0.1 s; with decided conflicts and several modes the parser's tables are made anew, too.
    Some ms for a store that is like one before.
    """
    parser_and_lexer = store.table[schema.HEADER : store.table[schema.ENDING_START]]
    key = store.grammar.digest, store.vocabulary.digest, hashlib.sha256(parser_and_lexer.tobytes()).digest()
    with _LOCK:
        found = _ALIKE.get(key)
        if found is None:
            found = _ALIKE[key] = _made(store)
        _LAST.append(found)
    return found


def _made(store: EngineTable) -> NameLexer:
    grammar, table = store.grammar, store.table
    has_modes = int(table[schema.N_MODES]) > 1
    lexemes = Lexemes(grammar, lambda _, __: True, _modes(store) if has_modes else None, STATE_LIMIT)
    winner = np.array(lexemes.winner, np.int32)
    under_way, pending = _under_way(table, lexemes)
    live = lexemes.live
    parts: dict[int, Int32] = {
        layout.CLASS_OF: lexemes.byte_class.astype(np.int32),
        layout.NEXT: np.array(lexemes.next_by_class, np.int32).ravel(),
        layout.WINNER: winner,
        layout.GROWS: np.array(lexemes.reads_on, np.int32),
        layout.LIVE_START: np.concatenate([[0], np.cumsum([len(each) for each in live])]).astype(np.int32),
        layout.LIVE: np.array([terminal for each in live for terminal in each], np.int32),
        layout.KIND: _kinds(grammar),
        layout.UNDER_WAY: under_way,
    }
    header = np.zeros(layout.LEXER_HEADER, np.int32)
    header[layout.N_CLASSES] = len(lexemes.byte_of_class)
    header[layout.HAS_MODES] = has_modes
    texts = store.vocabulary.sorted_texts
    byte, end, first, ids = sorted_trie(texts.data, texts.offsets[:-1], texts.offsets[1:], texts.ids)
    trie_header = np.zeros(layout.TRIE_HEADER, np.int32)
    trie_header[layout.N_NODES] = len(byte)
    columns = {layout.TRIE_BYTE: byte, layout.TRIE_END: end, layout.TRIE_FIRST: first, layout.TRIE_IDS: ids}
    class_of = lexemes.byte_class.tolist()
    return NameLexer(
        array=joined(header, parts),
        trie=joined(trie_header, columns),
        longest=texts.longest,
        next_state=lexemes.union.next_state,
        winner=winner,
        starts=lexemes.union.starts,
        ignored=grammar.ignored,
        bytes_of_classes=bytes(dict(zip(map(class_of.__getitem__, _PREFERRED), _PREFERRED, strict=True)).values()),
        pending=tuple(pending),
    )


def _modes(store: EngineTable) -> Modes:
    """The modes of a store's lexer, whose `may_follow` proves nothing.

    PERF: the table takes the terminals that the merged tables take, whose making takes 0.3 s. Only
    where conflicts are decided it has none that lead into dead ends, which compete all the same.
    """
    if store.grammar.conflicts == "shift":
        return build_modes(store.grammar)[1]
    table = store.table
    takes = part_of(table, schema.ACTION).reshape(table[schema.N_STATES], table[schema.N_COLUMNS]) != 0
    return lexing_modes(store.grammar, takes, part_of(table, schema.SYMBOL_COLUMN), None)


def joined(header: Int32, parts: dict[int, Int32]) -> Int32:
    """A header and the parts behind it, read-only; header[offset] says where each part begins."""
    at = len(header)
    for offset, part in parts.items():
        header[offset] = at
        at += len(part)
    found: Int32 = np.concatenate([header, *parts.values()]).astype(np.int32, copy=False)
    found.setflags(write=False)
    return found


def _kinds(grammar: Grammar) -> Int32:
    kinds = np.full(grammar.n_terminals, layout.READ, np.int32)
    kinds[[t for t in range(grammar.n_terminals) if grammar.terminals[t].is_declared]] = layout.UNREAD
    kinds[sorted(grammar.ignored)] = layout.IGNORED
    if grammar.layout is not None:
        kinds[grammar.layout.newline] = layout.NEWLINE_KIND
    return kinds


def _under_way(table: Int32, lexemes: Lexemes) -> tuple[Int32, list[tuple[bytes, int]]]:
    """By state of the engine's lexer: the union's state of the lexeme under way, and `pending`.

    Each state is reached by the bytes of its lexeme alone, from where a lexeme begins.
    """
    class_of = part_of(table, schema.BYTE_CLASS).tolist()
    bytes_of = [class_of.index(one) for one in range(table[schema.N_CLASSES])]
    after, union = part_of(table, schema.NEXT_STATE).reshape(-1, len(bytes_of)), lexemes.union.next_state[:, bytes_of]
    found, pending = np.full(len(after), -1, np.int32), [(b"", -1)] * len(after)
    agenda = part_of(table, schema.MODE_STATE).tolist()
    for state, start in zip(agenda, lexemes.union.starts, strict=True):
        found[state] = start
    for state in agenda:
        (data, last), targets, grown = pending[state], after[state], union[found[state]]
        is_new = (targets > START_STATE) & (grown >= 0) & (found[targets] < 0)
        for one in is_new.nonzero()[0].tolist():
            target, winner = int(targets[one]), lexemes.winner[grown[one]]
            if found[target] < 0:  # no other byte of this state leads there
                found[target] = grown[one]
                unended = data + bytes([bytes_of[one]]) if last >= 0 else b""
                pending[target] = (b"", winner) if winner >= 0 else (unended, last)
                agenda.append(target)
    return found, pending
