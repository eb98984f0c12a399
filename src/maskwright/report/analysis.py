"""Analyses a grammar, alone or with a vocabulary.

In: a grammar, perhaps a vocabulary. Out: one JSON-ready dictionary with all facts that the reports
show (`AnalysisReport.facts`).
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_boolean, need_progress
from maskwright.analysis.errors import GrammarError, TerminalError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.normalise import Rules, normalise
from maskwright.analysis.graphs import VISIBLE_FIRST, shortest_texts
from maskwright.analysis.legality.deciders import ALWAYS, NEVER
from maskwright.analysis.legality.interchange import interchange_classes
from maskwright.analysis.legality.judge import Judge
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa, build_terminal_nfa
from maskwright.analysis.lexing.terminals import compile_terminals, lookahead_beyond_end
from maskwright.analysis.loading.sources import GrammarSource, as_grammar
from maskwright.analysis.nesting import on_own_stack
from maskwright.maskstore.entries.build import assemble, contexts_of, post_size, post_terminals, walk_vocabulary
from maskwright.maskstore.entries.streamline import (
    STEPS,
    SequencesAfter,
    Streamlined,
    count_entries,
    pair_savings,
    streamline,
)
from maskwright.maskstore.entries.walk import Entries, Reading, Walk, collect_entries
from maskwright.maskstore.table.compiled import Progress
from maskwright.maskstore.vocabulary.vocabulary import Vocabulary, VocabularySource, as_vocabulary, post_tokens
from maskwright.stores.entry_store import EntryStore

if TYPE_CHECKING:
    from maskwright.stores.store import Store

RULES: tuple[Rules, ...] = ("lark", "normalised")
"""The forms of the rules on which sequences are judged."""
READINGS: tuple[Reading, ...] = ("post", "sound")
"""The ways to count entries, see `analyze`."""


@dataclass(frozen=True)
class AnalysisReport:
    """The result of `analyze`.

    facts : everything that was found; JSON-ready.
    store : the streamlined store of the sound reading, on normalised rules; None without a
        vocabulary.
    engine : the store of the grammar's own lexing; None unless `exact` was given.
    """

    facts: dict[str, Any]
    store: EntryStore | None = None
    engine: Store | None = None

    def to_dict(self) -> dict[str, Any]:
        """`facts` itself, not a copy."""
        return self.facts

    def to_html(self) -> str:
        """The report as one HTML page that needs no network and no further files."""
        from maskwright.report.html import render_html

        return render_html(self.facts)

    def __rich__(self) -> Any:
        from maskwright.report.terminal import render_terminal

        return render_terminal(self.facts)


class _Clock:
    """Measures the CPU seconds of each part of the work, and CPU and wall seconds of the whole."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(("lexer", "walk", "store", "legality", "streamline"), 0.0)
        self._begin = time.process_time(), time.perf_counter()

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        """Add the CPU seconds of the `with` block to a part."""
        begin = time.process_time()
        yield
        self.seconds[part] = self.seconds.get(part, 0.0) + time.process_time() - begin

    def to_dict(self) -> dict[str, float]:
        """CPU seconds by part; `total`, `wall`: CPU and wall seconds since the beginning."""
        total = {"total": time.process_time() - self._begin[0], "wall": time.perf_counter() - self._begin[1]}
        return {part: round(value, 4) for part, value in {**self.seconds, **total}.items()}


@on_own_stack
def analyze(
    grammar: GrammarSource,
    vocabulary: VocabularySource | None = None,
    *,
    pairs: bool = True,
    exact: bool = False,
    forecast: bool = True,
    lint: bool = False,
    progress: Progress | None = None,
) -> AnalysisReport:
    """Facts about a grammar and, with a vocabulary, about what streamlining saves in its store.

    The entries are counted in two readings, and sequences are judged on two forms of the rules, as
    loaded and normalised.

    Readings: "post" is the one of the streamlining post, and reproduces its figures. It takes the
    characters of `string.printable`, strips the leading spaces of tokens, and ignores layout.
    "sound" is the one that decoding uses. It takes the true bytes of all tokens and obeys layout.

    Lexing: entries, lexer states and parser calls are those of lexing "nfa", whatever lexing the
    grammar was loaded with, because streamlining is about that lexing. The facts say so under
    `figures_for`. No keyword is soft in these figures: "nfa" reads a soft keyword as a keyword and
    as the pattern without being told.

    grammar : a grammar, or what `load_grammar` takes.
    vocabulary : a vocabulary, what `load_vocabulary` takes, or None.
    pairs : whether to count what a second terminal of context would save.
    exact : whether to build the store of the grammar's own lexing, "longest" or "contextual", too,
        and to give its sizes under `engine`; some 2 CPU seconds more for python.lark at V = 32k.
    forecast : whether to estimate what the engine will cost with tokenizers of two sizes
        (`maskwright.report.forecast`); this needs no vocabulary.
    lint : whether to include the findings of `maskwright.lint`, which come first in the reports;
        some 3 CPU seconds more for python.lark.
    progress : called with (what, done, total).

    Raises: GrammarError if `exact` is given without a vocabulary or for a grammar of lexing "nfa";
        and as `build_store`.
    Cost: 15 CPU seconds for python.lark at V = 32k (reports/record/2026-11-29-streamlining.json).
    """
    pairs, exact = as_boolean("pairs", pairs), as_boolean("exact", exact)
    forecast, lint = as_boolean("forecast", forecast), as_boolean("lint", lint)
    need_progress(progress)
    grammar = as_grammar(grammar)
    vocabulary = None if vocabulary is None else as_vocabulary(vocabulary)
    clock = _Clock()
    if exact and (vocabulary is None or grammar.lexing == "nfa"):
        what = "it was given no vocabulary" if vocabulary is None else "the grammar's lexing is 'nfa'"
        raise GrammarError(
            f"grammar {grammar.name}: exact=True builds the engine of the grammar's own lexing, but {what}"
        )
    loaded = grammar
    facts: dict[str, Any] = {"grammar": _grammar_facts(grammar), "figures_for": {"lexing": "nfa"}}
    grammar = replace(grammar.plain or grammar, lexing="nfa")
    with clock.measure("legality"):
        judges = {rules: Judge(grammar, rules) for rules in RULES}
        facts["interchange"] = _interchange_facts(grammar)
        facts["pairs"] = _pair_facts(judges)
    lexers: dict[Reading, TerminalNfa | None] = {}
    with clock.measure("lexer"):
        lexers["sound"] = build_terminal_nfa(compile_terminals(grammar))
        try:
            lexers["post"] = build_terminal_nfa(post_terminals(grammar))
        except TerminalError:
            # a terminal matches no printable text, so the post reading cannot lex it
            lexers["post"] = None
    facts["lexer"] = _lexer_facts(grammar, lexers)
    if lint:
        with clock.measure("lint"):
            facts["lint"] = _lint_facts(loaded)
    if forecast:
        from maskwright.report.forecast import forecast as forecast_costs

        with clock.measure("forecast"):
            facts["forecast"] = forecast_costs(loaded)
    store = engine = None
    if vocabulary is not None:
        facts["tokenizer"] = {
            "name": vocabulary.name,
            "size": vocabulary.size,
            "digest": vocabulary.digest,
            "text_tokens": len(vocabulary.text_ids()),
            "special_tokens": len(vocabulary.special),
        }
        store = _vocabulary_facts(facts, grammar, vocabulary, lexers, judges, pairs, clock, progress)
        if exact:
            from maskwright.stores.build import compile_store

            with clock.measure("engine"):
                engine = compile_store(loaded, vocabulary, progress)
            facts["engine"] = _engine_facts(engine, clock.seconds["engine"])
    facts["seconds"] = clock.to_dict()
    facts["peak_rss_mb"] = _peak_rss_mb()
    return AnalysisReport(facts, store, engine)


def _lint_facts(grammar: Grammar) -> dict[str, Any]:
    """The findings of lint by severity, the gravest first, and by place within a severity."""
    from maskwright.lint import lint_grammar
    from maskwright.lint.finding import SEVERITIES

    report = lint_grammar(grammar).to_dict()
    order = sorted(report["findings"], key=lambda finding: SEVERITIES.index(finding["severity"]))
    return {"counts": report["counts"], "findings": order, "skipped": report["skipped"]}


def _grammar_facts(grammar: Grammar) -> dict[str, Any]:
    normalised = normalise(grammar)
    layout, name = grammar.layout, grammar.symbol_name
    return {
        "name": grammar.name,
        "digest": grammar.digest,
        "lexing": grammar.lexing,
        "start": name(grammar.start),
        "terminals": grammar.n_terminals,
        "declared": [t.name for t in grammar.terminals if t.is_declared],
        "ignored": [name(t) for t in sorted(grammar.ignored)],
        "nonterminals": grammar.n_nonterminals,
        "rules": len(grammar.rules),
        "normalised": {"nonterminals": normalised.n_nonterminals, "rules": len(normalised.rules)},
        "layout": layout
        and {
            **{each: name(getattr(layout, each)) for each in ("newline", "indent", "dedent")},
            "brackets": [[name(a), name(b)] for a, b in layout.brackets],
            "tab_length": layout.tab_length,
            "tabs": layout.tabs,
        },
        "terminal_names": [t.name for t in grammar.terminals],
        "terminal_texts": [grammar.display_name(i) for i in range(grammar.n_terminals)],
    }


def _interchange_facts(grammar: Grammar) -> dict[str, Any]:
    def names(found: Iterable[tuple[int, ...]]) -> list[list[str]]:
        return [[grammar.symbol_name(t) for t in members] for members in found]

    classes, further = interchange_classes(grammar), interchange_classes(grammar, rewrite=True)
    return {
        "classes": names(classes),
        "terminals": sum(map(len, classes)),
        "further": names(members for members in further if members not in classes),
        "classes_normalised": names(further),
    }


def _pair_facts(judges: dict[Rules, Judge]) -> dict[str, Any]:
    """The verdict on each pair of terminals that occur in a text.

    `matrix` has a row for each left terminal and one for the start of the text. A digit of a row is
    the verdict on a right terminal, see `legend`.
    """
    tables = {rules: judge.always_deciders.pairs for rules, judge in judges.items()}
    live = list(judges["lark"].always_deciders.live_terminals)
    table = tables["normalised"]
    counts = {rules: table[np.ix_(live, live)] for rules, table in tables.items()}
    return {
        "pairs": len(live) ** 2,
        "never": int((counts["lark"] == NEVER).sum()),
        "always": {rules: int((count == ALWAYS).sum()) for rules, count in counts.items()},
        "live": live,
        "matrix": ["".join(map(str, row)) for row in table[np.ix_([*live, -1], live)].tolist()],
        "legend": {"0": "never", "1": "sometimes", "2": "always"},
    }


def _lexer_facts(grammar: Grammar, lexers: dict[Reading, TerminalNfa | None]) -> dict[str, Any]:
    """Sizes of the lexer in each reading; at the top level those of the post reading if it has any.

    `open_lookaheads` has the look-aheads past a terminal's end, of which the automata see nothing.
    """
    found: dict[str, Any] = {reading: post_size(nfa) for reading, nfa in lexers.items() if nfa is not None}
    reading = "post" if "post" in found else "sound"
    beyond = {t.name: list(lookahead_beyond_end(t)) for t in grammar.terminals if not t.is_declared}
    found["open_lookaheads"] = {name: patterns for name, patterns in beyond.items() if patterns}
    return {**found[reading], "reading": reading, **found}


def _vocabulary_facts(
    facts: dict[str, Any],
    grammar: Grammar,
    vocabulary: Vocabulary,
    lexers: dict[Reading, TerminalNfa | None],
    judges: dict[Rules, Judge],
    pairs: bool,
    clock: _Clock,
    progress: Progress | None,
) -> EntryStore:
    """Add the facts that need a vocabulary; returns the streamlined store of the sound reading."""
    facts["token_nfa"] = {}
    facts["entries"] = []
    store: EntryStore | None = None
    for reading in READINGS:
        nfa = lexers[reading]
        if nfa is None:
            continue
        read = grammar if reading == "sound" else replace(grammar, layout=None)
        with clock.measure("walk"):
            if reading == "sound":
                entries = walk_vocabulary(read, nfa, vocabulary, progress)
            else:
                tokens = post_tokens(vocabulary)
                walk = Walk(read, nfa, [token for _, token in tokens])
                entries = collect_entries(read, walk, np.array([i for i, _ in tokens], np.int32))
        facts["token_nfa"][reading] = {"rows": entries.n_token_nfa_rows, "tokens": len(entries.token_ids)}
        states = [(state.left, state.sequences) for state in entries.states]
        for rules in RULES:
            is_stored = reading == "sound" and rules == "normalised"
            with clock.measure("legality"):
                judge = judges[rules] if read is grammar else Judge(read, rules)
            with clock.measure("streamline"):
                contexts = contexts_of(read, entries) if is_stored else [SequencesAfter(*state) for state in states]
                walked = entries.walk.codes, entries.table
                result = streamline(read, *walked, contexts, judge, progress, exact=is_stored)
                counts = count_entries(result, states)
            facts["entries"].append(_entry_facts(reading, rules, counts, result))
            if (reading, rules) == ("post", "lark"):
                facts["post_states"] = _state_facts(read, entries, counts, result)
        if reading == "sound":
            with clock.measure("store"):
                store = EntryStore.of(assemble(read, vocabulary, entries, result, "normalised"))
            calls = {  # the empty sequence is not asked about
                step: [(np.unique(result.mapping[s.left][step][s.sequences]) > 0).sum() for s in entries.states]
                for step in ("ignored", "exact")
            }
            facts["parser_calls"] = {
                "original": round(float(np.mean(calls["ignored"] or [0])), 3),
                "streamlined": round(float(np.mean(calls["exact"] or [0])), 3),
                "what": "sequences to ask the parser about for one mask, mean over lexer states; ignored terminals left out in both",
            }
            facts["states"] = _state_facts(grammar, entries, counts, result)
            if pairs:
                with clock.measure("legality"):
                    n_pairs, one, two = pair_savings(read, entries, result, judges["normalised"])
                facts["pair_contexts"] = {
                    "contexts": n_pairs,
                    "mean_entries_after_one": round(one, 3),
                    "mean_entries_after_two": round(two, 3),
                }
            facts["remembered"] = _remembered_facts(store)
    first = "post" if "post" in facts["token_nfa"] else "sound"
    facts["token_nfa"] = {**facts["token_nfa"][first], "reading": first, **facts["token_nfa"]}
    assert store is not None  # INVARIANT: the sound reading always exists
    facts["store"] = {
        "cells": store.n_cells,
        "entries": store.n_entries,
        "masks": len(store.masks),
        "dense_masks": len(store.masks.dense),
        "mask_bytes": store.masks.n_bytes,
        "sequences": len(store.sequence_start) - 1,
    }
    return store


def _entry_facts(
    reading: Reading, rules: Rules, counts: dict[str, npt.NDArray[np.int32]], result: Streamlined
) -> dict[str, Any]:
    """The number of entries after each step, in one reading and one form of the rules.

    In the sound reading, entries that differ only in ignored terminals are already counted once in
    `original`. `walked` counts them separately.
    """
    totals = {step: int(count.sum()) for step, count in counts.items()}
    walked = totals["original"]
    before = totals["original"] = totals["ignored"] if reading == "sound" else walked
    return {
        "reading": reading,
        "rules": rules,
        "walked": walked,
        **totals,
        "ratio": round(before / max(1, totals["always"]), 3),
        "ratio_exact": round(before / max(1, totals["exact"]), 3),
        "seconds": {step: round(result.seconds[step], 4) for step in STEPS},
    }


def _state_facts(
    grammar: Grammar, entries: Entries, counts: dict[str, npt.NDArray[np.int32]], result: Streamlined
) -> list[dict[str, Any]]:
    """For each state that a token ends in: terminal, a shortest text, entries and `causes`.

    `causes` has the up to three terminals that begin most of the sequences left at the end, each
    with the number of these sequences.
    """
    nfa = entries.walk.nfa
    texts, newline = _shortest_texts(nfa), grammar.layout.newline if grammar.layout else 0
    found = []
    for index, state in enumerate(entries.states):
        is_start = state.state == nfa.n_states
        mapped = np.unique(result.final(state.left)[state.sequences])
        decoded = (entries.walk.codes.decode(result.table[number][0]) for number in mapped[mapped > 0].tolist())
        firsts = Counter(value if kind == "terminal" else newline for kind, value in decoded)
        causes = sorted(firsts.items(), key=lambda item: (-item[1], item[0]))[:3]
        found.append(
            {
                "state": state.state,
                "terminal": None if is_start else grammar.symbol_name(int(nfa.terminal[state.state])),
                "text": "" if is_start else texts.get(state.state, b"").decode("utf-8", "backslashreplace"),
                **{step: int(counts[step][index]) for step in ("original", *STEPS)},
                "causes": [[grammar.symbol_name(symbol), count] for symbol, count in causes],
            }
        )
    return found


def _shortest_texts(nfa: TerminalNfa) -> dict[int, bytes]:
    """Lexer state -> a shortest text from its terminal's initial state, printable if possible.

    A text is not empty, so that states to which only the empty one leads have none.
    """
    rows: list[list[int]] = nfa.next_state.tolist()
    initial: list[int] = nfa.initial[nfa.initial >= 0].tolist()

    def edges(state: int) -> Iterator[tuple[int, int]]:
        for source in initial if state < 0 else [state]:
            yield from ((byte, rows[source][byte]) for byte in VISIBLE_FIRST if rows[source][byte] >= 0)

    return shortest_texts([-1], edges)  # -1: before all terminals


def _remembered_facts(store: EntryStore) -> dict[str, Any]:
    """What the store saves by remembering the last terminal that the parser saw.

    This matters inside ignored terminals and newlines, where the lexer state does not tell it.
    """
    sizes = np.diff(store.cell_start)
    alone = [int(sizes[store.cell_of_state[state]]) for state in store.dependent]
    known = store.cell_of_last[store.cell_of_last >= 0]
    return {
        "states": len(store.dependent),
        "contexts": len(known),
        "mean_entries_alone": round(float(np.mean(alone)), 3) if alone else 0.0,
        "mean_entries_remembered": round(float(sizes[known].mean()), 3) if len(known) else 0.0,
    }


def _engine_facts(store: Store, seconds: float) -> dict[str, Any]:
    """Sizes of the closed stack automaton, of what it is built from, and of its table."""
    from maskwright.maskstore.table.check import table_sizes

    sizes = table_sizes(store.table)
    return {
        "lexing": store.grammar.lexing,
        "conflicts": store.grammar.conflicts,
        **store.counts,
        "lexer_states": sizes["lexer states"],
        "parser_states": sizes["states"],
        "table_bytes": store.table.nbytes,
        "seconds": round(seconds, 4),
    }


def _peak_rss_mb() -> float:
    """The most memory that this process has had; 0 on Windows, which does not say it this way."""
    try:
        import resource
    except ImportError:
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1 << 20 if sys.platform == "darwin" else 1 << 10), 1)
