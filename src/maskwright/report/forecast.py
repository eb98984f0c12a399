"""Estimates what a grammar will cost with a tokenizer that is not known yet, and why.

In: a grammar. Out: entries, undecided configurations, stack reads and bytes, and the rules and
lexer states that cause them.

The grammar's automata are built for a *generic vocabulary* of made-up tokens. It has as many tokens
of each kind as byte-level tokenizers of a size have, except for words: of these it has only a
sample, since one word acts like another. All counts are exact for this vocabulary. The figures are
good to a small factor. They serve to compare grammars, or versions of one grammar.
`reports/bench/forecast.py` compares them with measured figures.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.graphs import reachable
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import Automaton
from maskwright.analysis.lr.automaton import build_automaton as build_lr
from maskwright.analysis.lr.bisimulation import coarsest_partition
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.lint.backup import beginnings
from maskwright.maskstore.automaton.stack_automaton import Budget, StackAutomaton, build_automaton
from maskwright.maskstore.table.check import part_bytes
from maskwright.maskstore.table.write import engine_table
from maskwright.maskstore.tokens.requirements import Requirements
from maskwright.maskstore.vocabulary import Vocabulary, sorted_texts

SIZES = (32_768, 131_072)
"""Tokenizer sizes, in tokens, that the forecast is for."""

KINDS = {
    "words": (700, 300),
    "numbers": (20, 20),
    "blanks": (34, 90),
    "marks": (800, 580),
    " marks": (260, 400),
    "marks\n": (40, 600),
    "marks word": (60, 1000),
}
"""Kind of token -> how many tokens of this kind to draw for each of SIZES.

Of the large size only the tokens count that it has in addition to those of the small size. The
numbers are those counted in the vocabularies of Mistral-7B v0.1 and of Tekken, except that words,
and words after punctuation, are a sample.
"""

BYTES = {
    32_768: {"automaton": 1.0, "mask": 330, "token": 9.4},
    131_072: {"automaton": 1.5, "mask": 900, "token": 10.7},
}
"""Tokenizer size -> constants of the estimate of a store's bytes.

automaton : the size of the automaton relative to that for the small generic vocabulary.
mask : bytes of a mask.
token : bytes of a token.

Set by eye so that JSON, python.lark and lark.lark come out right. The benchmark compares the
estimate with the measured bytes of these grammars and of others (reports/record).
"""

MANY = 100_000
"""Above so many entries of the small generic vocabulary, those of the large one are not counted.

They are estimated as GROWTH times as many.
"""

GROWTH = 2.5
"""Estimate of the entries with a large tokenizer relative to those with a small one.

It lies between the growth of JSON (1.6) and that of python.lark (3.8), as measured with the
vocabularies of Mistral-7B v0.1 and of Tekken.
"""

BUDGET = Budget(edges=1_500_000, bytes=1 << 30)
"""An automaton that needs more is called open: the engine would ask the parser about each entry."""

N_DRAWN_STACKS = 2_000
"""Number of stacks that are drawn to count the cells that a mask reads."""
DEEPEST = 200
"""Most cells that are read of a drawn stack."""
N_STATES = 5
"""Number of lexer states listed as those with most entries."""
N_CAUSES = 6
"""Number of rules listed as causes, whether or not they are worth rewriting."""
NOTABLE = 0.02
"""A rule with at least this share of the stack reads past the first is worth rewriting."""

MUCH = 0.2
"""A terminal with at least this share of all entries is worth splitting."""

REWRITABLE = ("right recursion", "common beginning")
"""Kinds of causes that a rewritten rule removes."""

_TOKEN_PARTS = ("token_start", "token_bytes")
_MASK_PARTS = ("rows", "masks", "mask_ids")
_AUTOMATON_PARTS = ("edge_pairs", "roots", "nodes", "edges")
"""Parts of the engine's table that grow with the tokens, with the masks and with the automaton."""

_MARKS = "(((())))[[]]{{}},,,...::;;;''\"\"==--__//\\\\<<>>**##@!?&|%$$^~`+"
"""Punctuation to draw from; a mark is repeated according to its frequency in code and data."""
_LETTERS = "eeeeettttaaaooiinnsshhrrddlluccmmwffggyyppbbvkjxqz"
_WORD_LENGTHS = (1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 6, 6, 7, 8, 9, 10, 12)
"""Letters and lengths of words to draw from, repeated likewise."""


def generic_tokens(grammar: Grammar) -> dict[int, list[bytes]]:
    """The generic vocabulary: tokenizer size of SIZES -> distinct tokens.

    First come the 256 single bytes, then the grammar's literals with and without a leading blank,
    then the drawn tokens. The tokens of the small size begin the list of the large size. Equal
    grammars give equal tokens on every machine.
    """
    tokens = dict.fromkeys(bytes([byte]) for byte in range(256))
    for terminal in grammar.terminals:
        if terminal.literal and terminal.literal.isprintable():
            spelled = terminal.literal.encode()
            tokens |= dict.fromkeys((spelled, b" " + spelled))
    rng = random.Random(0)
    found = {}
    for at, size in enumerate(SIZES):
        for kind, numbers in KINDS.items():
            for _ in range(numbers[at]):
                tokens[_drawn(rng, kind).encode()] = None
        found[size] = list(tokens)
    return found


def _drawn(rng: random.Random, kind: str) -> str:
    """A random token of a kind of KINDS."""

    def word() -> str:
        return "".join(rng.choices(_LETTERS, k=rng.choice(_WORD_LENGTHS)))

    def marks(most: int) -> str:
        """Each repeats the one before with a chance of one in four."""
        found = rng.choice(_MARKS)
        for _ in range(min(most, rng.choice((1, 2, 2, 2, 3, 3, 4))) - 1):
            found += found[-1] if rng.random() < 0.25 else rng.choice(_MARKS)
        return found

    match kind:
        case "words":
            drawn = word()
            return rng.choice(["", " "]) + (drawn.capitalize() if rng.random() < 0.25 else drawn)
        case "numbers":
            return str(rng.randint(0, 999))
        case "blanks":
            ends = "\n" * rng.choice([0, 0, 1, 1, 2])
            return ends + " " * rng.randint(1, 16) if rng.random() < 0.8 else (ends or "\t") + "\t" * rng.randint(0, 3)
        case "marks word":
            return rng.choice([marks(1) + word(), marks(1) + "_", "_" + marks(1)])
        case "marks\n":
            return marks(3) + "\n" * rng.randint(1, 2)
    return (" " if kind == " marks" else "") + marks(4)


def forecast(grammar: Grammar) -> dict[str, Any]:
    """The forecast of a grammar's costs, JSON-ready.

    A grammar of lexing "nfa" is forecast as one of lexing "longest". A grammar for which no engine
    can be built gives {"unavailable": why}.

    Returns: a dictionary with the members

    - generic_tokens: number of tokens of the small generic vocabulary.
    - lexer_states, parser_states: of the engine.
    - entries: pairs of a group of tokens and a continuation that it requires, for each of SIZES:
      over all lexer states, the mean of the states that have any, and the most of one state.
    - undecided: number of configuration sets.
    - is_open: whether the stack automaton needs more than BUDGET.
    - nodes, edges: of the stack automaton for the small generic vocabulary; None if it is open.
    - stack_reads: cells of the stack that a mask reads: mean, 99th percentile and maximum over
      drawn stacks; None if the automaton is open.
    - bytes: of the store's table, for each of SIZES.
    - worst_states: the lexer states with most entries.
    - causes: rules, by the share of the stack reads past the first cell that is due to them.
    - advice: what could be rewritten, in sentences.

    Cost: 6 CPU-s for python.lark, 0.1 for JSON.
    """
    if grammar.lexing == "nfa":
        grammar = replace(grammar, lexing="longest")
    generic = generic_tokens(grammar)
    tokens = generic[SIZES[0]]
    vocabulary = Vocabulary("generic", (*tokens, b""), {len(tokens): "</s>"}, (len(tokens),))
    try:
        automaton = build_automaton(grammar, vocabulary, budget=BUDGET)
        table = engine_table(grammar, vocabulary, automaton)
        entries = _entries(grammar, automaton, generic)
    except (GrammarError, LimitError) as error:
        return {"unavailable": str(error)}
    is_open = automaton.counts["open"] > 0
    lengths, times_read_past = ([], Counter[int]()) if is_open else _walk_drawn_stacks(automaton)
    causes = _causes(grammar, times_read_past)
    reads = lengths or [0]
    p99 = round(float(np.percentile(reads, 99)), 1)
    return {
        "generic_tokens": len(tokens),
        "lexer_states": automaton.required.transducer.n_states,
        "parser_states": automaton.tables.n_states,
        "entries": {str(size): _entry_facts(entries[size]) for size in SIZES},
        "undecided": automaton.counts["suspended"],
        "is_open": is_open,
        "nodes": None if is_open else automaton.counts["nodes"],
        "edges": None if is_open else automaton.counts["edges"],
        "stack_reads": None if is_open else {"mean": round(float(np.mean(reads)), 2), "p99": p99, "most": max(reads)},
        "bytes": {str(size): _bytes(part_bytes("the forecast's table", table), automaton, size) for size in SIZES},
        "worst_states": _worst_states(grammar, automaton, entries),
        "causes": causes,
        "advice": _advice(grammar, automaton, entries, causes, is_open),
    }


# -------------------------------------------------------------------------------------------- sizes


Entries = dict[int, list[int]]
"""Tokenizer size -> (n_lexer_states,) number of entries of each lexer state."""


def _entries(grammar: Grammar, automaton: StackAutomaton, generic: dict[int, list[bytes]]) -> Entries:
    def counted(required: Requirements) -> list[int]:
        return [sum(len(depth_case.group) for depth_case in state.depth_cases) for state in required.states]

    required = automaton.required
    first = counted(required)
    found = {SIZES[0]: first}
    for size in SIZES[1:]:
        found[size] = [round(count * GROWTH) for count in first]
        if sum(first) <= MANY:
            tokens = generic[size]
            texts = sorted_texts(tokens, np.arange(len(tokens), dtype=np.int32))
            more = (grammar, required.transducer, automaton.tables, required.modes, texts, (len(tokens),))
            found[size] = counted(Requirements(*more))
    return found


def _entry_facts(counts: list[int]) -> dict[str, float]:
    resting = [count for count in counts if count]
    return {
        "all": sum(resting),
        "mean": round(sum(resting) / max(1, len(resting)), 1),
        "worst": max(resting, default=0),
    }


def _bytes(parts: dict[str, int], automaton: StackAutomaton, size: int) -> int:
    """The estimated bytes of a store's table for a tokenizer size.

    The sum of the parts that grow with the automaton, with the masks and with the tokens, and of
    those that do not grow.
    """
    grows = sum(parts[name] for name in _AUTOMATON_PARTS)
    fixed = sum(parts.values()) - grows - sum(parts[name] for name in (*_TOKEN_PARTS, *_MASK_PARTS))
    of = BYTES[size]
    masks = automaton.counts["masks"] * of["automaton"] * of["mask"]
    return round(fixed + grows * of["automaton"] + masks + of["token"] * size)


# -------------------------------------------------------------------------------------- stack reads


def _walk_drawn_stacks(automaton: StackAutomaton) -> tuple[list[int], Counter[int]]:
    """Walks of the closed stack automaton over drawn stacks.

    A stack is drawn from the top: a root, a cell for which the root has an edge, then each time any
    LR state that can lie below the last one.

    Returns the cells that each walk read, and LR state of the merged tables -> how many times a
        walk had to read past it.
    """
    closure, tables = automaton.closure, automaton.tables
    n_cells = tables.n_states
    order = np.argsort(closure.edge_key, kind="stable")
    keys, targets = closure.edge_key[order], closure.edge_node[order]
    starts, below = tables.predecessor_start.tolist(), tables.predecessors.tolist()
    roots = [
        one.root
        for of_state in automaton.depth_cases
        for one in (of_state[0] if of_state else ())
        if one.line_breaks == 0 and one.root > 0
    ]
    rng = random.Random(0)
    lengths: list[int] = []
    times_read_past: Counter[int] = Counter()
    for _ in range(N_DRAWN_STACKS if roots else 0):
        root = rng.choice(roots)
        first, last = np.searchsorted(keys, [root * n_cells, (root + 1) * n_cells]).tolist()
        edge = rng.randrange(first, last) if last > first else -1
        length = 0
        while edge >= 0:
            length += 1
            cell, node = int(keys[edge]) % n_cells, int(targets[edge])
            if node == 0 or length == DEEPEST or starts[cell] == starts[cell + 1]:
                break
            times_read_past[cell] += 1
            key = node * n_cells + below[rng.randrange(starts[cell], starts[cell + 1])]
            at = int(np.searchsorted(keys, key))
            edge = at if at < len(keys) and int(keys[at]) == key else -1
        lengths.append(length)
    return lengths, times_read_past


def _causes(grammar: Grammar, times_read_past: Counter[int]) -> list[dict[str, Any]]:
    """The rules that make walks read on: the most frequent ones, and those worth rewriting.

    They are sorted by frequency. A merged LR state stands for several states; the one with the
    smallest number is shown, by the item that `_kind` chooses.
    """
    if not times_read_past:
        return []
    tables = build_lr_tables(grammar, grammar.conflicts)
    lr = build_lr(parsed_grammar(grammar, grammar.conflicts)).restricted(tables.origin)
    classes = coarsest_partition(tables).states.tolist()
    last = _last_symbols(lr)
    found: list[dict[str, Any]] = []
    for cell, times in sorted(times_read_past.items(), key=lambda pair: (-pair[1], pair[0])):
        item, kind, why = _kind(lr, last, lr.kernels[classes.index(cell)])
        share = times / times_read_past.total()
        if len(found) < N_CAUSES or (kind in REWRITABLE and share >= NOTABLE):
            found.append({"rule": lr.items.text(item), "share": round(share, 3), "kind": kind, "why": why})
    return found


def _last_symbols(lr: Automaton) -> dict[int, set[int]]:
    """Nonterminal -> the nonterminals that can be last in its derivations, itself included.

    Example: for `a: "x" b` and `b: "y"`, a has a and b, and b has b.
    """
    grammar = lr.grammar
    last = {lhs: {rule.rhs[-1] for rule in rules if rule.rhs} for lhs, rules in grammar.rules_of.items()}
    return {lhs: set(reachable([lhs], lambda one: filter(grammar.is_nonterminal, last[one]))) for lhs in last}


def _kind(lr: Automaton, last_symbols: dict[int, set[int]], kernel: Sequence[int]) -> tuple[int, str, str]:
    """The item that makes a parser look below an LR state, its kind, and a remedy or a reason."""
    items, grammar = lr.items, lr.grammar
    open_items = [(i, grammar.rules[items.rule[i]], i - items.first[items.rule[i]]) for i in kernel if i < items.start]
    for item, rule, dot in open_items:
        last = rule.rhs[-1] if rule.rhs else rule.lhs
        if dot < len(rule.rhs) > 1 and grammar.is_nonterminal(last) and rule.lhs in last_symbols[last]:
            lhs = grammar.symbol_name(rule.lhs)
            why = f"each open level of {lhs} is read: write it left-recursively, or as a repetition"
            return item, "right recursion", why
    for number, (item, rule, dot) in enumerate(open_items):
        alike = [
            other
            for _, other, at in open_items[number + 1 :]
            if at
            and other.lhs != rule.lhs
            and other.rhs[:at] == rule.rhs[:dot]
            and other.lhs != other.rhs[0] != rule.lhs
        ]
        if alike:
            names = sorted({grammar.symbol_name(r.lhs) for r in alike})
            why = (
                f"{grammar.symbol_name(rule.lhs)} begins as {', '.join(names[:3])} does: left-factor them into one rule"
            )
            return item, "common beginning", why
    for item, rule, dot in open_items:
        if dot == len(rule.rhs) or (dot == len(rule.rhs) - 1 and grammar.is_nonterminal(rule.rhs[-1])):
            return item, "end of a rule", f"what may follow {grammar.symbol_name(rule.lhs)} depends on where it stands"
    item = open_items[0][0] if open_items else kernel[0]
    name = grammar.symbol_name(open_items[0][1].lhs) if open_items else "the text"
    return item, "inside a rule", f"a token may close {name} and go on with what stands around it"


# ------------------------------------------------------------------------------------- lexer states


def _worst_states(grammar: Grammar, automaton: StackAutomaton, entries: Entries) -> list[dict[str, Any]]:
    """The lexer states with most entries: a text that leads there, its terminals, its entries."""
    transducer = automaton.required.transducer
    texts = beginnings(transducer)
    counts = entries[SIZES[0]]
    order = sorted(range(len(counts)), key=lambda q: (-counts[q], q))[:N_STATES]
    return [
        {
            "text": texts.get(q, b"").decode("utf-8", "backslashreplace"),
            "may_become": [grammar.symbol_name(t) for t in transducer.live[q]],
            "entries": {str(size): entries[size][q] for size in SIZES},
        }
        for q in order
        if counts[q]
    ]


def _advice(
    grammar: Grammar, automaton: StackAutomaton, entries: Entries, causes: Sequence[dict[str, Any]], is_open: bool
) -> list[str]:
    """What would make the grammar cheaper, in sentences; [] if nothing stands out."""
    found = []
    if is_open:
        found.append(
            "the stack automaton goes past the forecast's budget, so a store may leave it open and ask the parser about each entry: "
            "look for rules that are ambiguous or recursive at both ends"
        )
    for cause in causes:
        if cause["share"] >= NOTABLE and cause["kind"] in REWRITABLE:
            found.append(f"{cause['rule']} ({cause['share']:.0%} of the reads past the first): {cause['why']}")
    transducer, of_state = automaton.required.transducer, entries[SIZES[0]]
    of_terminal: Counter[int] = Counter()
    states = Counter(live[0] for live in transducer.live if len(live) == 1)
    for live, count in zip(transducer.live, of_state, strict=True):
        of_terminal.update({live[0]: count} if len(live) == 1 else {})
    for terminal, count in sorted(of_terminal.items(), key=lambda pair: (-pair[1], pair[0]))[:2]:
        share = count / max(1, sum(of_state))
        if share >= MUCH and states[terminal] > 4:
            found.append(
                f"terminal {grammar.display_name(terminal)} has {states[terminal]} lexer states with {share:.0%} of all entries: "
                "a pattern with fewer states where it may end, or one split into terminals that the rules join, has fewer"
            )
    backs_up = Counter(terminal for terminal in transducer.fallback if terminal >= 0)
    n = backs_up.total()
    if n > transducer.n_states // 10 and n > 8:
        name = grammar.display_name(min(backs_up, key=lambda t: (-backs_up[t], t)))
        found.append(f"in {n} lexer states the lexer may back up, most often to {name}: make terminals differ sooner")
    return found
