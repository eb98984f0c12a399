"""Builds the index of a pattern and a vocabulary, from what each token does to all states at once.

A text is a partial function on the states: from the state before it to the state behind it. There
are far fewer functions than texts: all lower-case words of one length do the same under
``[a-z]{1,9}``. The trie of the tokens is followed once, a level at a time, and a node is its
function and nothing more.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer, clip, need_type
from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError
from maskwright.analysis.graphs import reachable
from maskwright.analysis.nesting import on_own_stack
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.minimise import column_classes
from maskwright.analysis.schema.text_patterns import Regex
from maskwright.maskstore.index.token_index import TokenIndex
from maskwright.maskstore.tokens.classes import numbered
from maskwright.maskstore.vocabulary import Vocabulary, VocabularySource, as_vocabulary

Array = npt.NDArray[np.int32]
Wide = npt.NDArray[np.int64]

_STEP = 1 << 20
"""The pairs of states that are looked at together: some 40 MB."""


class Level(NamedTuple):
    """The nodes of a trie at one depth, in the order of their bytes.

    parents : (n,) int32; the place of each node's parent in the level above.
    data : (n,) uint8; the byte that leads to each node.
    ids : (m,) int32; the tokens that end at this depth.
    ends : (m,) int32; the node at which each of them ends.
    """

    parents: Array
    data: npt.NDArray[np.uint8]
    ids: Array
    ends: Array


@lru_cache(maxsize=8)
def trie_levels(vocabulary: Vocabulary) -> tuple[Level, ...]:
    """The trie of the tokens that stand for text, without its root; the first level has depth 1.

    Cost: O(bytes of the tokens): 60 ms for 131,072 tokens; the last eight are kept.
    """
    texts = vocabulary.sorted_texts
    begins, lengths = texts.offsets[:-1], np.diff(texts.offsets)
    here = np.arange(len(lengths))
    node = np.zeros(len(lengths), np.int32)
    found = []
    depth = 0
    while len(here):
        byte = texts.data[begins[here] + depth]
        # INVARIANT: the texts are sorted, so that those below one node are neighbours
        is_new = np.ones(len(here), np.bool_)
        is_new[1:] = (node[1:] != node[:-1]) | (byte[1:] != byte[:-1])
        parents, data = node[is_new], byte[is_new]
        node = (np.cumsum(is_new) - 1).astype(np.int32)
        depth += 1
        goes_on = lengths[here] > depth
        ids, ends = texts.ids[here[~goes_on]], node[~goes_on]
        found.append(Level(parents, data, ids, ends))
        here, node = here[goes_on], node[goes_on]
    return tuple(found)


class Functions(NamedTuple):
    """What tokens do, as functions on states.

    start : (n + 1,) int64; function f is given at the states before[start[f] : start[f + 1]].
    before, behind : (n_pairs,) int32; a state, and the state to which the function takes it.
    of_token : (V,) int32; the function of each token, -1 for one that nothing can read.
    """

    start: Wide
    before: Array
    behind: Array
    of_token: Array


class _Functions:
    """The functions that were met: number 0 is that of the empty text."""

    def __init__(self, automaton: Dfa, most_pairs: int) -> None:
        classes, columns = column_classes(automaton.next_state)
        self.table = automaton.next_state[:, columns].astype(np.int64)
        self.n_classes = len(columns)
        is_live = np.any(self.table >= 0, axis=0, keepdims=True)[0]
        self.class_of = np.where(is_live[classes], classes, -1)
        self.n_states = automaton.n_states
        self.most_pairs = most_pairs
        identity = np.arange(self.n_states) * (self.n_states + 1)
        self.pairs = identity  # of each function's pairs: before * n_states + behind
        self.used = len(identity)
        self.start = [0, self.used]
        self.number = {identity.tobytes(): 0}

    def behind(self, keys: Wide) -> Wide:
        """The function behind each key: -1 for one that is nowhere defined.

        keys : (n,) int64; each a function times `n_classes`, and the class of the byte behind it.
        """
        start = np.array(self.start, np.int64)
        functions, classes = keys // self.n_classes, keys % self.n_classes
        counts = start[functions + 1] - start[functions]
        total = np.concatenate([[0], np.cumsum(counts)])
        found = np.empty(len(keys), np.int64)
        begin = 0
        while begin < len(keys):
            end = max(begin + 1, int(np.searchsorted(total, total[begin] + _STEP, side="right")) - 1)
            part = slice(begin, end)
            found[part] = self._step(start[functions[part]], counts[part], classes[part])
            begin = end
        return found

    def _step(self, starts: Wide, counts: Wide, classes: Wide) -> list[int]:
        owner = np.repeat(np.arange(len(counts)), counts)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        pairs = self.pairs[starts[owner] + within]
        before = pairs // self.n_states
        behind = self.table[pairs - before * self.n_states, classes[owner]]
        is_live = behind >= 0
        made = (before * self.n_states + behind)[is_live]
        ends = np.cumsum(np.bincount(owner[is_live], minlength=len(counts)))
        data, number = made.tobytes(), self.number
        found, at = [], 0
        for end in ends.tolist():
            if end == at:
                found.append(-1)
                continue
            known = len(number)
            function = number.setdefault(data[8 * at : 8 * end], known)
            if function == known:
                self._keep(made[at:end])
            found.append(function)
            at = end
        return found

    def _keep(self, pairs: Wide) -> None:
        end = self.used + len(pairs)
        if end > self.most_pairs:
            raise LimitError(
                f"the index has more than {self.most_pairs:,} pairs of states; a store of the pattern (mw.build_store) makes masks as they "
                "are asked for, and has no such limit"
            )
        if end > len(self.pairs):
            self.pairs = np.concatenate([self.pairs, np.empty(max(end, len(self.pairs)), np.int64)])
        self.pairs[self.used : end] = pairs
        self.used = end
        self.start.append(end)


def functions_of(automaton: Dfa, levels: tuple[Level, ...], size: int, most_pairs: int) -> Functions:
    """What each token does to the states of an automaton.

    levels : of the vocabulary (`trie_levels`).
    size : V, the number of ids.
    most_pairs : limit on the pairs of states of all functions together.

    Raises: LimitError if there are more pairs.
    Cost: O(nodes of the trie), and O(pairs of states) for each function and class of bytes.
    """
    made = _Functions(automaton, most_pairs)
    of_token = np.full(size, -1, np.int32)
    above = np.zeros(1, np.int64)
    for level in levels:
        function, byte_class = above[level.parents], made.class_of[level.data]
        is_live = (function >= 0) & (byte_class >= 0)
        here = np.full(len(is_live), -1, np.int64)
        if is_live.any():
            keys = (function * made.n_classes + byte_class)[is_live]
            number, firsts = numbered(keys)
            here[is_live] = made.behind(keys[firsts])[number]
        of_token[level.ids] = here[level.ends]
        if not (here >= 0).any():
            break
        above = here
    before, behind = np.divmod(made.pairs[: made.used], made.n_states)
    return Functions(np.array(made.start, np.int64), before.astype(np.int32), behind.astype(np.int32), of_token)


MOST_PAIRS = 1 << 24
"""BOUND: the pairs of states of all that tokens do, by default; they take 0.3 GB."""


@on_own_stack
def build_index(regex: Regex, vocabulary: VocabularySource, *, most_pairs: int = MOST_PAIRS) -> TokenIndex:
    """The automaton over tokens of a regular expression or a choice, complete.

    regex : what `load_regex` or `load_choice` returns.
    vocabulary : what `load_vocabulary` accepts.
    most_pairs : limit on the size: the pairs (state before, state behind) of all that tokens do,
        where tokens that do the same count once.

    A store (`build_store`) has the same masks and makes them when they are asked for, so it is
    there at once. The index is for those who want to see or walk the automaton.

    Raises: LimitError past `most_pairs`; DeadEndError if nothing matches the expression.
    Cost: some ms for common patterns; 60 ms more for the first index of a vocabulary of 131,072.
    Source: Willard, Louf, Efficient guided generation (2023), algorithm 4; there for each state and
    each token, here once for all tokens that do the same to all states.

    Example:
        >>> from maskwright.analysis.schema.text_patterns import load_regex
        >>> index = build_index(load_regex("(ab)+"), [b"a", b"b", b"ab", b"ba"])
        >>> index
        <TokenIndex '(ab)+' x <tokens>: 3 states, 7 transitions>
        >>> index.allowed_tokens(0).tolist(), index.next_state(0, 2), sorted(index.final_states)
        ([0, 2], 2, [2])
    """
    need_type("the pattern", regex, Regex, "what load_regex or load_choice returns")
    most_pairs = as_integer("most_pairs", most_pairs)
    if most_pairs < 1:
        raise MaskwrightError(f"most_pairs is {clip(most_pairs)}; expected at least 1")
    if regex.automaton.is_empty:
        raise DeadEndError(f"no text matches {regex.name}, so no index is made")
    found = as_vocabulary(vocabulary)
    functions = functions_of(regex.automaton, trie_levels(found), found.size, most_pairs)
    used, of_text = np.unique(functions.of_token[functions.of_token >= 0], return_inverse=True)
    class_of = np.full(found.size, -1, np.int32)
    class_of[functions.of_token >= 0] = of_text
    start, classes, targets = _transitions(functions, used, regex.automaton.n_states)
    reached = reachable([0], lambda state: np.unique(targets[start[state] : start[state + 1]]).tolist())
    states = np.array(sorted(reached), np.int32)
    for array in (class_of, start, classes, targets, states):
        array.setflags(write=False)
    return TokenIndex(regex.name, regex.automaton, found, class_of, start, classes, targets, states)


def _transitions(
    functions: Functions, used: npt.NDArray[np.int32], n_states: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """The functions that whole tokens have, by state: start, classes, targets of `TokenIndex`."""
    counts = functions.start[used + 1] - functions.start[used]
    classes = np.repeat(np.arange(len(used), dtype=np.int32), counts)
    within = np.arange(len(classes)) - np.repeat(np.cumsum(counts) - counts, counts)
    at = functions.start[used][classes] + within
    before = functions.before[at]
    order = np.argsort(before, kind="stable")
    start = np.zeros(n_states + 1, np.int64)
    np.cumsum(np.bincount(before, minlength=n_states), out=start[1:])
    return start, classes[order], functions.behind[at][order]
