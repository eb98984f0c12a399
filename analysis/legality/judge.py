"""Verdicts on sequences as a lexer emits them: with newlines that a layout has not yet handled.

The deciders judge words of the grammar's language. A layout stands between a lexer's output and
those words:

- The layout inserts indents and dedents, which no text spells. A sequence is never legal if it is
  illegal with any number of them, anywhere. For this question they are erased from the rules.
- Inside brackets the layout drops newlines. A sequence is judged in each of its *variants*, one for
  each number of brackets that may be open before it. It is never legal if that holds in every
  variant.
- Where a newline outside brackets has *ended*, so that its column is known, an indent or dedents
  may follow. No sequence that crosses such a newline is called always or jointly legal.

Example: after `(`, the sequence NEWLINE NAME has the variant NAME, since `(` opens a bracket.

The caller must drop ignored terminals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import get_args

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import need_choice
from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.normalise import Rules, normalise
from maskwright.analysis.legality.deciders import ALWAYS, ANYWHERE, MAX_LENGTH, NEVER, Deciders, Prover, Query
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.loading.sources import GrammarSource, as_grammar

ENDED_NEWLINE = -3
"""In a sequence: a newline lexeme that has ended.

The newline terminal itself stands for a lexeme that may still go on.
"""

MAX_TERMINALS = 2_000
"""BOUND: what is kept grows with the square of it, and the time too."""
Symbols = tuple[int, ...]
Case = tuple[int, Symbols]
"""A left terminal (or START, ANYWHERE) and a sequence of terminals and ENDED_NEWLINE."""


class Judge:
    """Judges terminal sequences of one grammar.

    grammar : a grammar, or what `load_grammar` takes.
    rules : the rules for always- and jointly-verdicts: "lark" as Lark expands them, or "normalised"
        (`normalise`), which proves more. Never-verdicts are always made on the normalised rules.
        They are the same on both, since both have the same language.
    layout : the grammar's layout, or None.
    never_deciders : deciders on the normalised rules, indents and dedents erased.
    always_deciders : deciders on `rules`.

    Raises: MaskwrightError if `rules` is unknown; GrammarError if the language is empty; LimitError
    for more than MAX_TERMINALS terminals; whatever `load_grammar` raises.
    """

    def __init__(self, grammar: GrammarSource, rules: Rules = "normalised") -> None:
        need_choice("rules", rules, get_args(Rules))
        grammar = as_grammar(grammar)
        if grammar.n_terminals > MAX_TERMINALS:
            raise LimitError(
                f"grammar {grammar.name} has {grammar.n_terminals:,} terminals; each is judged after each other one, so {MAX_TERMINALS:,} "
                "are the most that are analysed, or decoded by lexing 'nfa'; lint, and lexing 'longest' and 'contextual', take more"
            )
        self.grammar = grammar
        self.rules = rules
        normalised = normalise(grammar)
        self.layout = grammar.layout
        self.newline = grammar.newline
        """The layout's newline terminal, or a number that no terminal has."""
        erased = () if self.layout is None else (self.layout.indent, self.layout.dedent)
        self.never_deciders = Deciders(normalised, erased=erased)
        self.always_deciders = Deciders(normalised if rules == "normalised" else grammar)
        self._opening = {opening for opening, _ in self.layout.brackets} if self.layout else set()
        self._closing = {closing for _, closing in self.layout.brackets} if self.layout else set()
        self.follow: npt.NDArray[np.bool_] = self.never_deciders.pairs != NEVER
        """(n_terminals + 1, n_terminals) bool; the follow graph's edges by left and right terminal.

        The last row has the edges from the start of the text. Indents and dedents are erased.
        """
        self._follow_rows: list[list[bool]] = self.follow.tolist()

    def variants(self, left: int, sequence: Symbols) -> list[Symbols]:
        """The distinct variants of a sequence: what the parser may see of it.

        There is one for each number of brackets that may be open before `left`. A variant lacks the
        newlines that are dropped inside brackets; kept ones stay as they are, ENDED_NEWLINE or the
        terminal. A sequence without newlines has one variant, itself.
        """
        return [variant for (variant,) in self._variants(left, sequence)]

    def _variants(self, left: int, *sequences: Symbols) -> list[tuple[Symbols, ...]]:
        """The distinct variants of some sequences, side by side for each number of brackets."""
        if self.layout is None or all(ENDED_NEWLINE not in one and self.newline not in one for one in sequences):
            return [sequences]
        each = (tuple(self.variant(left, one, depth) for one in sequences) for depth in self.depths(left, *sequences))
        return list(dict.fromkeys(each))

    def depths(self, left: int, *sequences: Symbols) -> range:
        """The numbers of brackets open before `left` that the sequences' variants tell apart."""
        if left in (START, self.newline):
            return range(1)  # a kept newline and the start of the text stand outside brackets
        closed = max(sum(symbol in self._closing for symbol in sequence) for sequence in sequences)
        return range(2 + (left in self._closing) + closed)

    def variant(self, left: int, sequence: Symbols, depth: int) -> Symbols:
        """The variant of a sequence if `depth` brackets are open before `left`.

        A closing bracket too many leaves the number at 0: the parser refuses it anyway.
        """
        kept: list[int] = []
        for i, symbol in enumerate((left, *sequence)):
            if symbol in self._opening:
                depth += 1
            elif symbol in self._closing:
                depth = max(0, depth - 1)
            elif i and depth and symbol in (ENDED_NEWLINE, self.newline):
                continue
            if i:
                kept.append(symbol)
        return tuple(kept)

    def _plain(self, sequence: Symbols) -> Symbols:
        """The sequence with the newline terminal for each ENDED_NEWLINE."""
        if ENDED_NEWLINE not in sequence:
            return sequence
        return tuple(self.newline if symbol == ENDED_NEWLINE else symbol for symbol in sequence)

    def is_path(self, left: int, sequence: Symbols) -> bool:
        """Whether some variant is a path of the follow graph, beginning at `left`.

        If not, the sequence is never legal.

        Cost: O(length) for each variant.
        """
        return any(self._is_path(left, self._plain(variant)) for variant in self.variants(left, sequence))

    def _is_path(self, left: int, terminals: Symbols) -> bool:
        for right in terminals:
            if left != ANYWHERE and not self._follow_rows[left][right]:
                return False
            left = right
        return True

    def never(self, cases: Sequence[Case], progress: Callable[[int], None] | None = None) -> npt.NDArray[np.bool_]:
        """Whether each case's sequence is proved never legal after its left symbol.

        progress : called with the number of variants judged since the last call.

        Returns (n_cases,) bool. True is a proof. False is exact without layout, up to MAX_LENGTH
        terminals; otherwise it means unknown.

        Cost: as `Deciders.judge` of all variants.
        """
        legal = np.zeros(len(cases), np.bool_)
        queries: list[Query] = []
        owner: list[int] = []
        for number, (left, sequence) in enumerate(cases):
            variants = self.variants(left, sequence)
            legal[number] = () in variants
            queries += [Query(left, self._plain(variant)) for variant in variants if variant]
            owner += [number] * sum(map(bool, variants))
        verdicts = self.never_deciders.judge(queries, progress)
        legal[np.array(owner, np.int64)[verdicts != NEVER]] = True
        return ~legal

    def always(self, cases: Sequence[Case], progress: Callable[[int], None] | None = None) -> npt.NDArray[np.bool_]:
        """Whether each case's sequence is proved always legal after its left symbol.

        progress : called with the number of variants judged since the last call.

        Returns (n_cases,) bool. True is a proof, False means unknown. After ANYWHERE only the empty
        sequence is proved.

        Cost: as `Deciders.judge` of all variants.
        """
        proved = np.ones(len(cases), np.bool_)
        queries: list[Query] = []
        owner: list[int] = []
        for number, (left, sequence) in enumerate(cases):
            variants = self.variants(left, sequence)
            proved[number] = all(self._is_certain(left, variant) for variant in variants)
            if proved[number]:
                queries += [Query(left, variant) for variant in variants]
                owner += [number] * len(variants)
        verdicts = self.always_deciders.judge(queries, progress)
        proved[np.array(owner, np.int64)[verdicts != ALWAYS]] = False
        return proved

    def jointly(self, prover: Prover, left: int, first: Symbols, second: Symbols) -> bool:
        """Whether two sequences are proved legal after the same prefixes that end in `left`.

        True is a proof, False means unknown.

        prover : a prover of `always_deciders`.
        left : a terminal.
        """
        return all(
            self._is_certain(left, one) and self._is_certain(left, other) and prover.is_jointly_legal(left, one, other)
            for one, other in self._variants(left, first, second)
        )

    def _is_certain(self, left: int, variant: Symbols) -> bool:
        """Whether no indent or dedent can come before or inside the variant."""
        return ENDED_NEWLINE not in variant and self.newline not in (left, *variant[:-1])


def joint_representatives(
    judge: Judge,
    cases: Sequence[tuple[int, Symbols]],
    progress: Callable[[int], None] | None = None,
) -> list[int]:
    """For each case the index of an earlier case that is jointly legal with it, or its own index.

    Two cases with one left terminal are merged if their sequences are proved legal after the same
    prefixes that end in it (`Judge.jointly`). Only cases with equal signatures are compared: each
    of some derivation paths accepts both or neither. All cases merged get the index of the first.
    Not merged are cases without a left terminal, and sequences that are empty or longer than
    MAX_LENGTH.

    cases : pairs of a left terminal (or START, ANYWHERE) and a sequence.
    progress : called with 1 after each case that can be merged.

    Returns n_cases indices of `cases`.

    Cost: O(n^2) for n cases of one left terminal to compute signatures, and two proofs for each
    case and candidate; 0.5 s for python.lark.
    """
    representative = list(range(len(cases)))
    judged = [i for i, (left, sequence) in enumerate(cases) if left >= 0 and 0 < len(sequence) <= MAX_LENGTH]
    prover = judge.always_deciders.prover()
    leaders: dict[tuple[int, bytes], list[int]] = {}
    for index, signature in zip(judged, _signatures(judge, [Query(*cases[i]) for i in judged]), strict=True):
        left, sequence = cases[index]
        alike = leaders.setdefault((left, signature), [])
        for leader in alike:
            if judge.jointly(prover, left, cases[leader][1], sequence):
                representative[index] = leader
                break
        else:
            alike.append(index)
        if progress is not None:
            progress(1)
    return representative


def _signatures(judge: Judge, queries: list[Query]) -> list[bytes]:
    """For each query which derivation paths accept its sequence, as the bytes of a bit mask.

    The paths of a left terminal are one accepting path for each of its sequences, without
    repetitions.
    """
    deciders = judge.always_deciders
    witnesses = deciders.witness_paths(queries)
    of_left: dict[int, dict[bytes, int]] = {}
    for query, path in zip(queries, witnesses, strict=True):
        of_left.setdefault(query.left, {}).setdefault(path.tobytes(), len(of_left[query.left]))
    pools = {left: number for number, left in enumerate(of_left)}
    paths = np.full((len(pools), max(map(len, of_left.values()), default=1), witnesses.shape[1]), -1, np.int32)
    for left, distinct in of_left.items():
        for content, number in distinct.items():
            paths[pools[left], number] = np.frombuffer(content, np.int32)
    return [row.tobytes() for row in deciders.signatures(queries, [pools[query.left] for query in queries], paths)]
