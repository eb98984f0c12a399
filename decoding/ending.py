"""Shortest endings: the fewest bytes that make the text so far a legal text, as bytes and as tokens.

Iterative deepening over the states of lexer, layout and parser, byte by byte, under a lower bound that is nearly exact, so that the
search goes almost straight. The bound for a lexer state q and a stack g is

    min over terminals u of  bytes from q to the end of lexeme u  +  V(g after u, u)

where V(g, u) is a least ending of stack g after lexeme u in a relaxed problem: every later lexeme has its least length, two lexemes that
no spelling lets stand side by side are parted, and an indented line pays for its indentation. V is computed from the bottom of the stack
up, one step a frame: what is left of a rule has a least cost, and where it is reduced the parser stands lower on the stack with a
nonterminal to push. Costs are matrices over classes of terminals (which lexemes they must be parted from).

INVARIANT: every bound is a true lower bound, so what is found is shortest; a bound that proves too low is raised, and the search begins
again. Of several shortest endings it is the first in the order of bytes with printable ASCII first, as in `Dfa.shortest`.

Source: Hart, Nilsson, Raphael (1968) for search under a lower bound; Korf, "Depth-first iterative-deepening" (1985), with learnt bounds as
in Reinefeld and Marsland (1994); Knuth, "A generalization of Dijkstra's algorithm" (1977) for least costs of nonterminals.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maskwright.analysis.errors import DeadEndError, LimitError

if TYPE_CHECKING:
    from maskwright.decoding.texts import Texts
    from maskwright.maskstore.automaton_store import AutomatonStore
from maskwright.decoding.ending_search import MAX_NODES, EndingSearch
from maskwright.decoding.ending_spelling import Spelling


@dataclass(frozen=True)
class Ending:
    """data : bytes that complete the text. tokens : ids that spell it; the end-of-text token is not among them."""

    data: bytes
    tokens: tuple[int, ...]


def shortest_ending(texts: Texts, slot: int = 0) -> Ending:
    """A shortest byte string after which the text in a slot is legal, and fewest tokens that spell it; empty if it is legal already.

    Of several shortest endings the first in the order of bytes, printable ASCII first; if the vocabulary cannot spell that one, the first
    of the shortest that it can. Of several spellings the one whose tokens are longer from the left.

    Raises DeadEndError if no sequence of tokens completes the text, LimitError if none was found among `MAX_NODES` states, or if the text
    has too many readings (`MAX_READINGS`).
    Cost: the first call on a store builds its tables (python.lark: 0.6 s); then O(depth of the stack) and a few ms for each terminal.
    """
    with _LOCK:
        spelling = _spelling_of(texts.store)
        data = _shortest(texts, slot)
        tokens = spelling.fewest_tokens(data)
        if tokens is None:
            search = _search_of(texts.store, spelling)
            found = search.run(search.start_of(texts, slot))
            if found is None or (tokens := spelling.fewest_tokens(found)) is None:
                raise DeadEndError(spelling.explanation(data))
            data = found
        return Ending(data, tokens)


def min_bytes_left(texts: Texts, slot: int = 0) -> int:
    """The length of a shortest ending, whether or not the vocabulary can spell it. Cost: as `shortest_ending`."""
    with _LOCK:
        return len(_shortest(texts, slot))


def _shortest(texts: Texts, slot: int) -> bytes:
    if texts._is_finished(slot) or texts._is_accepting(slot):
        return b""
    search = _search_of(texts.store, None)
    found = search.run(search.start_of(texts, slot))
    if found is None:
        raise LimitError(
            f"grammar {texts.store.grammar.name}: no ending was found for the text among {MAX_NODES:,} states of lexer and parser"
        )
    return found


_LOCK = threading.Lock()
_SEARCHES: dict[tuple[int, bool], EndingSearch] = {}
_SPELLINGS: dict[int, Spelling] = {}


def _search_of(store: AutomatonStore, spelling: Spelling | None) -> EndingSearch:
    """The store's search, made at the first call and kept as long as its table is."""
    key = (id(store.table), spelling is not None)
    found = _SEARCHES.get(key)
    if found is None:
        found = _SEARCHES[key] = EndingSearch(store, spelling)
        weakref.finalize(store.table, _SEARCHES.pop, key, None)
    return found


def _spelling_of(store: AutomatonStore) -> Spelling:
    found = _SPELLINGS.get(id(store.table))
    if found is None:
        found = _SPELLINGS[id(store.table)] = Spelling(store)
        weakref.finalize(store.table, _SPELLINGS.pop, id(store.table), None)
    return found
