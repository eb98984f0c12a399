"""Shortest endings: the fewest bytes that make the text so far a legal text, as bytes and as tokens.

Iterative deepening over the states of lexer, layout and parser, byte by byte, under a lower bound that is nearly exact, so that the
search goes almost straight. The bound for a lexer state q and a stack g is

    min over terminals u of  bytes from q to the end of lexeme u  +  V(g after u, u)

where V(g, u) is a least ending of stack g after lexeme u in a relaxed problem: every later lexeme has its least length, two lexemes that
no spelling lets stand side by side are parted, and an indented line pays for its indentation. V is computed from the bottom of the stack
up, one step a frame: what is left of a rule has a least cost, and where it is reduced the parser stands lower on the stack with a
nonterminal to push. Costs are matrices over classes of terminals (which lexemes they must be parted from), of bytes and of lines: how deep
the lines of a rule stand is known on the stack only.

INVARIANT: every bound is a true lower bound, so what is found is shortest; a bound that proves too low is raised, and the search begins
again. Of several shortest endings it is the first in the order of bytes with printable ASCII first, as in `Dfa.shortest`.
BOUND: a search looks at `MAX_NODES` states at most (and some for each byte) and holds `MAX_HELD` bytes; then it gives up, or goes straight
down under what it has learnt to an ending that is legal, if not the shortest (`short_ending`).

Source: Hart, Nilsson, Raphael (1968) for search under a lower bound; Korf, "Depth-first iterative-deepening" (1985), with learnt bounds as
in Reinefeld and Marsland (1994); Knuth, "A generalization of Dijkstra's algorithm" (1977) for least costs of nonterminals.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskwright.analysis.errors import DeadEndError, LimitError

if TYPE_CHECKING:
    from maskwright.decoding.engine.texts import Texts
    from maskwright.maskstore.table.compiled import EngineTable
from maskwright.decoding.endings.ending_search import EndingSearch
from maskwright.decoding.endings.ending_spelling import Spelling
from maskwright.decoding.engine.alone import Alone

SHORT_NODES = 2_000
"""States that a search for a short ending looks at beyond what the ending's length explains; then it takes one that is near."""
SHORT_STEPS = 2_000
"""Steps down to one that is near, likewise."""
AGAIN = 10
"""If neither finds one, both go on to so many times as many: some endings are near and lie on no way straight down."""


@dataclass(frozen=True)
class Ending:
    """data : bytes that complete the text. tokens : ids that spell it; the end-of-text token is not among them.

    is_shortest : whether no fewer bytes complete the text.
    """

    data: bytes
    tokens: tuple[int, ...]
    is_shortest: bool = True


def shortest_ending(texts: Texts, slot: int = 0) -> Ending:
    """A shortest byte string after which the text in a slot is legal, and fewest tokens that spell it; empty if it is legal already.

    Of several shortest endings the first in the order of bytes, printable ASCII first; if the vocabulary cannot spell that one, the first
    of the shortest that it can. Of several spellings the one whose tokens are longer from the left.

    Raises DeadEndError if no sequence of tokens completes the text, LimitError if none was found among `MAX_NODES` states (and some for
    each byte) or in `MAX_HELD` bytes of memory, or if the text has too many readings (`MAX_READINGS`).
    Cost: the first call on a store builds its tables (python: 1.5 s); then O(depth of the stack) and a few ms for each terminal.
    """
    with _LOCK:
        return _ending(texts, slot, lambda search: (search.run(_start(search, texts, slot)), True))


def short_ending(texts: Texts, slot: int = 0, max_nodes: int | None = None) -> Ending:
    """A shortest ending if `max_nodes` states (and some for each byte) tell it; else one that is hardly longer. For who needs any in time.

    max_nodes : `SHORT_NODES` by default.

    Raises DeadEndError as `shortest_ending`, LimitError if none is found. Memory: at most about `MAX_HELD` bytes beside the tables;
    `MAX_KEPT` stay.
    """
    nodes = SHORT_NODES if max_nodes is None else max_nodes

    def found_by(search: EndingSearch) -> tuple[bytes | None, bool]:
        for times in (1, AGAIN):
            try:
                return search.run(_start(search, texts, slot), times * nodes), True
            except LimitError:
                pass
            try:
                return search.descend(_start(search, texts, slot), times * SHORT_STEPS), False
            except LimitError as error:
                last = error
        raise last

    with _LOCK:
        return _ending(texts, slot, found_by)


def min_bytes_left(texts: Texts, slot: int = 0) -> int:
    """The length of a shortest ending, whether or not the vocabulary can spell it. Cost: as `shortest_ending`."""
    with _LOCK:
        if texts._is_finished(slot) or texts._is_accepting(slot):
            return 0
        search = _search_of(texts.store, None)
        found = search.run(_start(search, texts, slot))
        return len(_checked(texts, found))


def _start(search: EndingSearch, texts: Texts, slot: int) -> Any:
    with Alone(texts):
        return search.start_of(texts, slot)


def is_completable(texts: Texts, slot: int = 0, max_nodes: int = 2_000) -> bool | None:
    """Whether some bytes complete the text in a slot, whatever the vocabulary. None: not known after `max_nodes` states.

    For calls that have the texts to themselves already (`Alone`), as those have that tell of a dead end.
    """
    with _LOCK:
        search = _search_of(texts.store, None)
        try:
            return search.run(search.start_of(texts, slot), max_nodes) is not None
        except LimitError:
            return None


def _ending(texts: Texts, slot: int, found_by: Callable[[EndingSearch], tuple[bytes | None, bool]]) -> Ending:
    if texts._is_finished(slot) or texts._is_accepting(slot):
        return Ending(b"", ())
    spelling = _spelling_of(texts.store)
    found, is_shortest = found_by(_search_of(texts.store, None))
    data = _checked(texts, found)
    tokens = spelling.fewest_tokens(data)
    if tokens is None:
        found, is_shortest = found_by(_search_of(texts.store, spelling))
        if found is None or (tokens := spelling.fewest_tokens(found)) is None:
            raise DeadEndError(spelling.explanation(data))
        data = found
    return Ending(data, tokens, is_shortest)


def _checked(texts: Texts, found: bytes | None) -> bytes:
    if found is None:
        raise DeadEndError(
            f"grammar {texts.store.grammar.name}: no bytes complete this text; `maskwright lint` says why"
        )
    return found


_LOCK = threading.Lock()
_SEARCHES: dict[tuple[int, bool], EndingSearch] = {}
_SPELLINGS: dict[int, Spelling] = {}


def _search_of(store: EngineTable, spelling: Spelling | None) -> EndingSearch:
    """The store's search, made at the first call and kept as long as its table is."""
    key = (id(store.table), spelling is not None)
    found = _SEARCHES.get(key)
    if found is None:
        found = _SEARCHES[key] = EndingSearch(store, spelling)
        weakref.finalize(store.table, _SEARCHES.pop, key, None)
    return found


def _spelling_of(store: EngineTable) -> Spelling:
    found = _SPELLINGS.get(id(store.table))
    if found is None:
        found = _SPELLINGS[id(store.table)] = Spelling(store)
        weakref.finalize(store.table, _SPELLINGS.pop, id(store.table), None)
    return found
