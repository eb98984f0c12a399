"""Shortest endings: the fewest bytes that make the text so far a legal text, and their tokens.

The search is iterative deepening over the states of lexer, layout and parser, byte by byte. Its
lower bound is nearly exact, so it goes almost straight. The bound for a lexer state q and a stack g
is

    min over terminals u of  bytes from q to the end of lexeme u  +  V(g after u, u)

V(g, u) is the length of a least ending of stack g after lexeme u in a relaxed problem. There every
later lexeme has its least length, two lexemes that no spelling allows side by side are separated,
and an indented line pays for its indentation. V is computed from the bottom of the stack up, one
step for each frame: what is left of a rule has a least cost, and where the rule is reduced the
parser is lower on the stack with a nonterminal to push. Costs are matrices over classes of
terminals (those that must be separated from the same lexemes). They consist of bytes and of lines,
since only the stack tells how deep the lines of a rule are indented.

INVARIANT: every bound is a true lower bound, so an ending that is found is shortest. A bound that
proves too low is raised, and the search begins again. Of several shortest endings the search finds
the first in the order of bytes with printable ASCII first, as in `Dfa.shortest`.
BOUND: a search looks at `MAX_NODES` states at most (and some more for each byte) and holds
`MAX_HELD` bytes. Then it gives up; or, for `short_ending`, it follows the bounds that it has learnt
straight to an ending that is legal, though perhaps not shortest.

Source: Hart, Nilsson, Raphael (1968) for search under a lower bound; Korf, "Depth-first
iterative-deepening" (1985), with learnt bounds as in Reinefeld and Marsland (1994); Knuth, "A
generalization of Dijkstra's algorithm" (1977) for least costs of nonterminals.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.kept import cached_property
from maskwright.analysis.locks import new_lock
from maskwright.decoding.endings._ending_kernels import COSTLY
from maskwright.decoding.endings.ending_search import EndingSearch
from maskwright.decoding.endings.ending_spelling import Spelling
from maskwright.decoding.engine.ending import Ending as Ending
from maskwright.maskstore.table.compiled import EngineTable

if TYPE_CHECKING:
    from maskwright.decoding.engine.slot import SlotText

SHORT_NODES = 2_000
"""States that the search for a short ending looks at beyond those for each byte of the ending.

After these it takes an ending that is near.
"""
SHORT_STEPS = 2_000
"""Steps straight to an ending that is near, likewise."""
SECOND_TRY = 10
"""If both fail, both are tried once more with this many times as many states and steps.

Some endings are near, but not on a straight way.
"""


def shortest_ending(text: SlotText) -> Ending:
    """A shortest byte string that completes a text, and the fewest tokens that spell it.

    Both are empty if the text is legal already. The ending is the first of the shortest ones that
    the vocabulary can spell, in the order of bytes with printable ASCII first. Of several spellings
    with the fewest tokens it is the one whose tokens are longer from the left.

    Raises: DeadEndError if no sequence of tokens completes the text; LimitError if none was found
    among `MAX_NODES` states (and some more for each byte) or in `MAX_HELD` bytes of memory, or if
    the text has too many readings (`MAX_READINGS`).

    Cost: the first call on a store builds its tables (python: 1.5 s). After that O(depth of the
    stack), and a few ms for each terminal.
    """
    return _ending(text, lambda search: (search.run(search.start_of(text)), True))


def short_ending(text: SlotText, max_nodes: int | None = None, most_bytes: int | None = None) -> Ending:
    """A shortest ending if the search soon finds it; else one that is hardly longer.

    It is for callers that need some ending in time.

    max_nodes : states that may be looked at to find a shortest one (and some more for each byte);
        `SHORT_NODES` by default.
    most_bytes : an ending that has certainly more is not searched for.

    Raises: DeadEndError as `shortest_ending`; LimitError if none is found.

    Cost: memory of about `MAX_HELD` bytes at most beside the tables; `MAX_KEPT` stay.
    """
    nodes = SHORT_NODES if max_nodes is None else max_nodes

    def found_by(search: EndingSearch) -> tuple[bytes | None, bool]:
        if most_bytes is not None:
            search.refuse_far(search.start_of(text), most_bytes)
        for times in (1, SECOND_TRY):
            try:
                return search.run(search.start_of(text), times * nodes), True
            except LimitError:
                pass
            try:
                return search.descend(search.start_of(text), times * SHORT_STEPS), False
            except LimitError as error:
                last = error
        raise last

    return _ending(text, found_by)


def min_bytes_left(text: SlotText) -> int:
    """The length of a shortest ending, in bytes, whether or not the vocabulary can spell it.

    Raises: DeadEndError if no bytes complete the text; LimitError as `shortest_ending`.

    Cost: as `shortest_ending`.
    """
    tools = _tools_of(text.store)
    with tools.lock:
        if text.can_end():
            return 0
        search = tools.search()
        found = search.run(search.start_of(text))
        return len(_checked(tools, text, found))


def is_completable(text: SlotText, max_nodes: int = 2_000) -> bool | None:
    """Whether some bytes complete a text, whatever the vocabulary; None if the search gave up.

    max_nodes : states that may be looked at (and some more for each byte).
    """
    tools = _tools_of(text.store)
    with tools.lock:
        search = tools.search()
        try:
            return _checked(tools, text, search.run(search.start_of(text), max_nodes)) is not None
        except DeadEndError:
            return False
        except LimitError:
            return None


def _ending(text: SlotText, found_by: Callable[[EndingSearch], tuple[bytes | None, bool]]) -> Ending:
    """The ending that a search finds, and the tokens that spell it.

    found_by : the search; it returns the bytes, and whether they are shortest.
    """
    tools = _tools_of(text.store)
    with tools.lock:
        if text.can_end():
            return Ending(b"", ())
        found, is_shortest = found_by(tools.search())
        data = _checked(tools, text, found)
        tokens = tools.spelling.fewest_tokens(data)
        if tokens is None:
            found, is_shortest = found_by(tools.search(spelled=True))
            if found is None or (tokens := tools.spelling.fewest_tokens(found)) is None:
                raise DeadEndError(tools.spelling.explanation(data))
            data = found
        return Ending(data, tokens, is_shortest)


def _checked(tools: _Tools, text: SlotText, found: bytes | None) -> bytes:
    if found is None:
        if tools.uncounted is None:
            tools.uncounted = _uncounted(text.store.grammar, tools.search().lexer.width)
        if tools.uncounted:
            raise LimitError(tools.uncounted)
        raise DeadEndError(
            f"grammar {text.store.grammar.name}: no bytes complete this text; `maskwright lint` says why"
        )
    return found


def _uncounted(grammar: Grammar, width: Sequence[int]) -> str:
    """In words, that a rule needs COSTLY bytes or more, which the search takes for never; else "".

    width : for each terminal its least bytes.
    """
    # a terminal that is no text of its own counts nothing
    least = {terminal: width[terminal] if width[terminal] < COSTLY else 0 for terminal in range(grammar.n_terminals)}
    changed = True
    while changed:
        changed = False
        for rule in grammar.rules:
            if all(symbol in least for symbol in rule.rhs):
                total = sum(least[symbol] for symbol in rule.rhs)
                if total < least.get(rule.lhs, total + 1):
                    least[rule.lhs], changed = total, True
    longest = max((sum(least.get(symbol, 0) for symbol in rule.rhs) for rule in grammar.rules), default=0)
    if longest < COSTLY:
        return ""
    return (
        f"grammar {grammar.name}: some texts have at least {longest:,} bytes; endings are searched for up to {COSTLY - 1:,}: repeat "
        "less often"
    )


class _Tools:
    """What looks for endings of the texts of a store, one text at a time.

    lock : held meanwhile. uncounted : why nothing follows from a search that found none, where
        some rule needs COSTLY bytes or more; "" if there is none, None before it was asked.
    """

    def __init__(self, store: EngineTable) -> None:
        self.lock = new_lock()
        # While these live, the store's table may be replaced (`EngineTable.is_final`), by one with
        # the same lexer and parser. So they keep to the first one.
        self._fixed = EngineTable(store.grammar, store.vocabulary, store.table, store.counts)
        self._searches: dict[bool, EndingSearch] = {}
        self.uncounted: str | None = None

    @cached_property
    def spelling(self) -> Spelling:
        """What spells bytes in tokens."""
        return Spelling(self._fixed.vocabulary)

    def search(self, *, spelled: bool = False) -> EndingSearch:
        """The search for bytes, or for those that the vocabulary can spell."""
        found = self._searches.get(spelled)
        if found is None:
            found = self._searches[spelled] = EndingSearch(self._fixed, self.spelling if spelled else None)
        return found


_TOOLS: dict[int, _Tools] = {}
_LOCK = new_lock()
if hasattr(os, "register_at_fork"):  # a search that another thread had begun is half made in the fork
    os.register_at_fork(after_in_child=_TOOLS.clear)


def _tools_of(store: EngineTable) -> _Tools:
    """The tools of a store. The first call makes them; they live as long as the store."""
    with _LOCK:
        found = _TOOLS.get(id(store))
        if found is None:
            found = _TOOLS[id(store)] = _Tools(store)
            weakref.finalize(store, _TOOLS.pop, id(store), None)
    return found
