"""Classes of tokens: tokens that do the same in every lexer state.

No mask tells the tokens of a class apart. So the stack automaton is closed over classes, of which
there are hundreds or a few thousand, and only the finished masks are masks of tokens.

Example: with JSON's grammar the tokens `cat` and `dog` are of one class. In a string both go on
with it; nowhere else are they allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from maskwright.analysis.arrays import Int32, Int64, UInt32_2D
from maskwright.analysis.kept import cached_property
from maskwright.maskstore.tokens import _kernels

NO_CLASS = -1


@dataclass(frozen=True)
class TokenClasses:
    """The classes of a vocabulary's tokens, by number.

    start : (n_classes + 1,) int64; class i is ids[start[i] : start[i + 1]].
    ids : (n,) int32; token ids, ascending in each class. Tokens that no lexer state allows are in
        no class.
    """

    start: Int64
    ids: Int32

    @classmethod
    def of(cls, class_of: Int32, ids: Int32) -> TokenClasses:
        """The classes of tokens.

        class_of : (n,) int32; the class of each token, of which there are all up to the last one;
            NO_CLASS for a token of none.
        ids : (n,) int32; their ids, ascending.
        """
        start, order = np.zeros(int(class_of.max(initial=-1)) + 3, np.int64), np.empty(len(ids), np.int64)
        _kernels.stable_order(class_of + np.int32(1), start, order)  # those of no class come first
        return cls(start[1:] - start[1], ids[order[start[1] :]])

    def __len__(self) -> int:
        """The number of classes."""
        return len(self.start) - 1

    @cached_property
    def sizes(self) -> Int64:
        """The number of tokens of each class: (n_classes,) int64."""
        return np.diff(self.start)

    def tokens(self, classes: Int32, start: Int64) -> tuple[Int32, Int64]:
        """The tokens of sets of classes: ids, (n,) int32, and where those of each set begin.

        classes : int32; the classes of all sets, end to end, distinct in each.
        start : (n_sets + 1,) int64; where each set begins in them.

        The ids are ascending within a set.
        """
        counts = self.sizes[classes]
        ends = np.concatenate([[0], np.cumsum(counts)])
        ids = self.ids[np.repeat(self.start[classes] - ends[:-1], counts) + np.arange(ends[-1])]
        found = ends[start]
        # PERF: sorted as one number, a set and an id
        of_set = np.repeat(np.arange(len(start) - 1, dtype=np.int64), np.diff(found))
        return np.sort(of_set << 32 | ids).astype(np.int32), found

    def and_one(self, ids: Int32) -> TokenClasses:
        """These classes and one more. ids : (n,) int32; its tokens, ascending, of no class yet."""
        return TokenClasses(np.append(self.start, self.start[-1] + len(ids)), np.concatenate([self.ids, ids]))

    def rows(self, words: UInt32_2D, n_words: int) -> UInt32_2D:
        """Bitmasks of tokens for bitmasks of classes: (n, n_words) uint32.

        words : (n, words of a bitmask of classes) uint32. In both, bit i of word w is member
            32 w + i.
        n_words : words of a bitmask of tokens.
        """
        found = np.zeros((len(words), n_words), np.uint32)
        _kernels.spread_classes(words, self.start, self.ids, found)
        return found


def numbered(keys: Int32 | Int64) -> tuple[Int32, Int32]:
    """Numbers for keys in the order of first occurrence, and where each number occurs first: int32.

    keys : (n,).
    """
    number, firsts = np.empty((2, len(keys)), np.int32)
    slots = np.full(1 << max(4, (2 * len(keys)).bit_length()), -1, np.int32)
    n = _kernels.group_equal(keys.astype(np.int64), number, firsts, slots)
    return number, firsts[:n]


def token_classes(
    groups_of_state: Sequence[tuple[Int32, Int64]], n_tokens: int
) -> tuple[TokenClasses, list[tuple[Int32, Int64]]]:
    """The coarsest classes of which every group of every lexer state is a union.

    groups_of_state : for each state the ids of its tokens sorted by group, and where each group
        begins, as in `StateTokens`.
    n_tokens : the size of the vocabulary.

    Returns the classes, and the groups in terms of them: for each state class numbers sorted by
    group, and where each group begins.

    Cost: O(tokens of all groups). This is the refinement of a partition by one set after another.
    """
    n_groups = [len(starts) - 1 for _, starts in groups_of_state]
    # PERF: the groups of all states at once
    ids = np.concatenate([np.zeros(0, np.int32), *(each for each, _ in groups_of_state)])
    before = [0, *accumulate(len(each) for each, _ in groups_of_state)]
    starts = np.concatenate([*(each[:-1] for _, each in groups_of_state), np.zeros(1, np.int64)])
    starts += np.repeat(np.array(before, np.int64), [*n_groups, 1])
    class_of = np.zeros(n_tokens, np.int32)
    sizes, met, counts, after = np.zeros((4, n_tokens + 1), np.int32)
    sizes[0] = n_tokens
    _kernels.split_classes(ids, starts, class_of, sizes, 1, met, counts, after)
    is_allowed = np.zeros(n_tokens, np.bool_)
    is_allowed[ids] = True
    number, _ = numbered(class_of[is_allowed])
    class_of[:] = NO_CLASS
    class_of[is_allowed] = number
    classes = TokenClasses.of(class_of, np.arange(n_tokens, dtype=np.int32))
    first_token = np.zeros(n_tokens, np.bool_)
    first_token[classes.ids[classes.start[:-1]]] = True
    members, begins = np.empty(len(ids), np.int32), np.zeros(len(starts), np.int64)
    _kernels.join_groups(ids, starts, class_of, first_token, members, begins)
    members = members[: begins[-1]].copy()
    bounds = [0, *accumulate(n_groups)]
    at: list[int] = begins[bounds].tolist()
    return classes, [
        (members[at[i] : at[i + 1]], begins[bounds[i] : bounds[i + 1] + 1] - at[i]) for i in range(len(n_groups))
    ]
