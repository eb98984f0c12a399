"""Builds the index of a pattern and a vocabulary."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer, clip, need_type
from maskwright.analysis.errors import DeadEndError, MaskwrightError
from maskwright.analysis.graphs import reachable
from maskwright.analysis.nesting import on_own_stack
from maskwright.analysis.schema.text_patterns import Regex
from maskwright.maskstore.index.functions import Functions, functions_of, trie_levels
from maskwright.maskstore.index.token_index import TokenIndex
from maskwright.maskstore.vocabulary import VocabularySource, as_vocabulary

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
