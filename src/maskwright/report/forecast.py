"""What a grammar will cost with a tokenizer not known yet: entries, undecided parses, stack reads, bytes; and the rules that cause it.

The grammar's automata are given a *generic vocabulary*: made-up tokens, as many of each kind as byte-level tokenizers of a size have, but
of words only a sample, since one word does what the other does. For these everything is counted exactly. Figures are good to a small
factor, and to compare grammars or versions of one; `reports/bench/forecast.py` holds them against measured ones.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.transducer import START_STATE
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import Automaton
from maskwright.analysis.lr.automaton import build_automaton as build_lr
from maskwright.analysis.lr.bisimulation import coarsest_partition
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.maskstore.automaton.stack_automaton import Budget, StackAutomaton, build_automaton
from maskwright.maskstore.table.check import part_bytes
from maskwright.maskstore.table.write import engine_table
from maskwright.maskstore.tokens.requirements import Requirements
from maskwright.maskstore.vocabulary import Vocabulary

SIZES = (32_768, 131_072)
"""Tokenizer sizes that the forecast is for."""

KINDS = {
    32_768: {"words": 700, "numbers": 20, "blanks": 34, "marks": 800, " marks": 260, "marks\n": 40, "marks word": 60},
    131_072: {
        "words": 300,
        "numbers": 20,
        "blanks": 90,
        "marks": 580,
        " marks": 400,
        "marks\n": 600,
        "marks word": 1000,
    },
}
"""Tokens of each kind: of a small tokenizer, and those that a large one has besides. Words are a sample, and so are words behind marks.

As counted in the vocabularies of Mistral-7B v0.1 and of Tekken.
"""

BYTES = {
    32_768: {"automaton": 1.0, "mask": 330, "token": 9.4},
    131_072: {"automaton": 1.5, "mask": 900, "token": 10.7},
}
"""By tokenizer size: how much larger the automaton is than that of the small generic vocabulary, bytes of a mask, bytes of a token.

Set by eye so that JSON, python.lark and lark.lark come out right; the bench holds them against these and others (reports/record).
"""

MANY = 100_000
"""Entries of the small generic vocabulary past which those of the larger one are not counted but taken to be GROWTH times as many."""

GROWTH = 2.5
"""Between that of JSON (1.6) and that of python.lark (3.8), as measured with the vocabularies of Mistral-7B v0.1 and of Tekken."""

BUDGET = Budget(edges=1_500_000, bytes=1 << 30)
"""Beyond this an automaton is called open: the engine would ask the parser about each entry."""

RUNS = 2_000
"""Stacks that are drawn to count reads."""
DEEPEST = 200
N_STATES = 5
N_CAUSES = 6
NOTABLE = 0.02
"""Share of the stack reads past the first from which a rule is worth rewriting."""

MUCH = 0.2
"""Share of all entries from which a terminal is worth splitting."""

REWRITABLE = ("right recursion", "common beginning")

_TOKEN_PARTS = ("token_start", "token_bytes")
_MASK_PARTS = ("rows", "masks", "mask_ids")
_AUTOMATON_PARTS = ("edge_pairs", "roots", "nodes", "edges")

_MARKS = "(((())))[[]]{{}},,,...::;;;''\"\"==--__//\\\\<<>>**##@!?&|%$$^~`+"
"""Weighted by repeats, as code and data have them."""
_LETTERS = "eeeeettttaaaooiinnsshhrrddlluccmmwffggyyppbbvkjxqz"
_WORD_LENGTHS = (1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 6, 6, 7, 8, 9, 10, 12)


def generic_tokens(grammar: Grammar) -> dict[int, list[bytes]]:
    """For each size tokens without repeats, those of a smaller size first: bytes, the grammar's own words, then drawn ones.

    The same for the same grammar on every machine.
    """
    tokens = dict.fromkeys(bytes([byte]) for byte in range(256))
    for terminal in grammar.terminals:
        if terminal.literal and terminal.literal.isprintable():
            spelled = terminal.literal.encode()
            tokens |= dict.fromkeys((spelled, b" " + spelled))
    rng = random.Random(0)
    found = {}
    for size in SIZES:
        for kind, number in KINDS[size].items():
            for _ in range(number):
                tokens[_drawn(rng, kind).encode()] = None
        found[size] = list(tokens)
    return found


def _drawn(rng: random.Random, kind: str) -> str:
    if kind == "words":
        word = _word(rng)
        return rng.choice(["", " "]) + (word.capitalize() if rng.random() < 0.25 else word)
    if kind == "numbers":
        return str(rng.randint(0, 999))
    if kind == "blanks":
        ends = "\n" * rng.choice([0, 0, 1, 1, 2])
        return ends + " " * rng.randint(1, 16) if rng.random() < 0.8 else (ends or "\t") + "\t" * rng.randint(0, 3)
    if kind == "marks word":
        return rng.choice([_marks(rng, 1) + _word(rng), _marks(rng, 1) + "_", "_" + _marks(rng, 1)])
    if kind == "marks\n":
        return _marks(rng, 3) + "\n" * rng.randint(1, 2)
    return (" " if kind == " marks" else "") + _marks(rng, 4)


def _word(rng: random.Random) -> str:
    return "".join(rng.choices(_LETTERS, k=rng.choice(_WORD_LENGTHS)))


def _marks(rng: random.Random, most: int) -> str:
    """Punctuation; each mark is the one before with a chance of one in four."""
    found = rng.choice(_MARKS)
    for _ in range(min(most, rng.choice((1, 2, 2, 2, 3, 3, 4))) - 1):
        found += found[-1] if rng.random() < 0.25 else rng.choice(_MARKS)
    return found


def forecast(grammar: Grammar) -> dict[str, Any]:
    """The forecast, JSON-ready; of a grammar that can have no engine {"unavailable": why}. Lexing "nfa" is forecast as "longest".

    lexer_states, parser_states : of the engine. entries : what tokens ask of the parser, over all lexer states, the mean of a state and the
    worst one, for each of SIZES. undecided : configurations of parses that wait for the stack below what they know. nodes, edges : of the
    stack automaton for the generic vocabulary, None if it is open. stack_reads : cells of the stack that a mask reads, mean, 99th
    percentile and most, over drawn stacks. bytes : of the store, for each of SIZES. worst_states : lexer states with most entries. causes :
    rules by the share of stack reads past the first cell that they make necessary. advice : in sentences.

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
    parts = part_bytes("the forecast's table", table)
    is_open = automaton.counts["open"] > 0
    runs = None if is_open else _draw_runs(automaton)
    worst = _worst_states(grammar, automaton, entries)
    causes = [] if runs is None else _causes(grammar, runs)
    return {
        "generic_tokens": len(tokens),
        "lexer_states": automaton.required.transducer.n_states,
        "parser_states": automaton.tables.n_states,
        "entries": {str(size): _entry_facts(entries[size]) for size in SIZES},
        "undecided": automaton.counts["suspended"],
        "is_open": is_open,
        "nodes": None if is_open else automaton.counts["nodes"],
        "edges": None if is_open else automaton.counts["edges"],
        "stack_reads": None if runs is None else runs.to_dict(),
        "bytes": {str(size): _bytes(parts, automaton, size) for size in SIZES},
        "worst_states": worst,
        "causes": causes,
        "advice": _advice(grammar, automaton, entries, causes, is_open),
    }


# ---------------------------------------------------------------------------------------------------------- sizes


Entries = dict[int, list[int]]
"""By tokenizer size the entries of each lexer state."""


def _entries(grammar: Grammar, automaton: StackAutomaton, generic: dict[int, list[bytes]]) -> Entries:
    required = automaton.required
    first = [sum(len(depth_case.group) for depth_case in state.depth_cases) for state in required.states]
    found = {SIZES[0]: first}
    for size in SIZES[1:]:
        tokens = generic[size]
        if sum(first) > MANY:
            found[size] = [round(count * GROWTH) for count in first]
            continue
        ids = np.arange(len(tokens), dtype=np.int32)
        more = Requirements(grammar, required.transducer, automaton.tables, required.modes, tokens, ids, (len(tokens),))
        found[size] = [sum(len(depth_case.group) for depth_case in state.depth_cases) for state in more.states]
    return found


def _entry_facts(counts: list[int]) -> dict[str, float]:
    resting = [count for count in counts if count]
    return {
        "all": sum(resting),
        "mean": round(sum(resting) / max(1, len(resting)), 1),
        "worst": max(resting, default=0),
    }


def _bytes(parts: dict[str, int], automaton: StackAutomaton, size: int) -> int:
    """Bytes of a store's table: what grows with the automaton, with the masks, with the tokens, and what does not grow."""
    grows = sum(parts[name] for name in _AUTOMATON_PARTS)
    fixed = sum(parts.values()) - grows - sum(parts[name] for name in (*_TOKEN_PARTS, *_MASK_PARTS))
    of = BYTES[size]
    masks = automaton.counts["masks"] * of["automaton"] * of["mask"]
    return round(fixed + grows * of["automaton"] + masks + of["token"] * size)


# ---------------------------------------------------------------------------------------------------- stack reads


@dataclass(frozen=True)
class _Runs:
    """lengths : cells that each run read. undecided : LR states of the merged tables by how often a run had to go on past them."""

    lengths: list[int]
    undecided: dict[int, int]

    def to_dict(self) -> dict[str, float]:
        lengths = self.lengths or [0]
        percentile = float(np.percentile(lengths, 99))
        return {"mean": round(float(np.mean(lengths)), 2), "p99": round(percentile, 1), "most": max(lengths)}


def _draw_runs(automaton: StackAutomaton) -> _Runs:
    """Runs of the closed automaton over drawn stacks: a lexer state, a cell that its root knows, then any cell that can lie below."""
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
    undecided: Counter[int] = Counter()
    for _ in range(RUNS if roots else 0):
        root = rng.choice(roots)
        first, last = np.searchsorted(keys, [root * n_cells, (root + 1) * n_cells]).tolist()
        edge = rng.randrange(first, last) if last > first else -1
        length = 0
        while edge >= 0:
            length += 1
            cell, node = int(keys[edge]) % n_cells, int(targets[edge])
            if node == 0 or length == DEEPEST or starts[cell] == starts[cell + 1]:
                break
            undecided[cell] += 1
            key = node * n_cells + below[rng.randrange(starts[cell], starts[cell + 1])]
            at = int(np.searchsorted(keys, key))
            edge = at if at < len(keys) and int(keys[at]) == key else -1
        lengths.append(length)
    return _Runs(lengths, dict(sorted(undecided.items())))


def _causes(grammar: Grammar, runs: _Runs) -> list[dict[str, Any]]:
    """The rules that were open where runs had to go on, the most frequent first, and those worth rewriting.

    A merged state is shown by the least of those that it stands for, and a state by its least item.
    """
    tables = build_lr_tables(grammar, grammar.conflicts)
    lr = build_lr(parsed_grammar(grammar, grammar.conflicts)).restricted(tables.origin)
    classes = coarsest_partition(tables).states.tolist()
    state_of = {number: state for state, number in reversed(list(enumerate(classes)))}
    total = sum(runs.undecided.values())
    last_symbols = _last_symbols(lr)
    found: list[dict[str, Any]] = []
    for cell, times in sorted(runs.undecided.items(), key=lambda pair: (-pair[1], pair[0])):
        item, kind, why = _kind(lr, last_symbols, lr.kernels[state_of[cell]])
        if len(found) < N_CAUSES or (kind in REWRITABLE and times / total >= NOTABLE):
            found.append({"rule": lr.items.text(item), "share": round(times / total, 3), "kind": kind, "why": why})
    return found


def _last_symbols(lr: Automaton) -> dict[int, set[int]]:
    """For each nonterminal those with which its texts may end, itself included."""
    grammar = lr.grammar
    last = {lhs: {rule.rhs[-1] for rule in rules if rule.rhs} for lhs, rules in grammar.rules_of.items()}
    found = {}
    for lhs in last:
        seen, agenda = {lhs}, [lhs]
        while agenda:
            more = {s for s in last[agenda.pop()] if grammar.is_nonterminal(s)} - seen
            seen |= more
            agenda += sorted(more)
        found[lhs] = seen
    return found


def _kind(lr: Automaton, last_symbols: dict[int, set[int]], kernel: Sequence[int]) -> tuple[int, str, str]:
    """The item that makes a parser look below a state, what it is, and what to do about it."""
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


# --------------------------------------------------------------------------------------------------- lexer states


def _worst_states(grammar: Grammar, automaton: StackAutomaton, entries: Entries) -> list[dict[str, Any]]:
    transducer = automaton.required.transducer
    texts = _shortest_texts(automaton)
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


def _shortest_texts(automaton: StackAutomaton) -> dict[int, bytes]:
    """For each lexer state a shortest lexeme's beginning that leads there, printable bytes preferred."""
    transducer = automaton.required.transducer
    order = sorted(range(256), key=lambda byte: (not 32 < byte < 127, byte))
    texts = {START_STATE: b""} | {int(state): b"" for state in transducer.mode_state.tolist()}
    agenda = deque(texts)
    while agenda:
        state = agenda.popleft()
        for byte in order:
            klass = int(transducer.byte_class[byte])
            after = int(transducer.next_state[state, klass])
            if after >= 0 and after not in texts and not transducer.output[state, klass]:
                texts[after] = texts[state] + bytes([byte])
                agenda.append(after)
    return texts


def _advice(
    grammar: Grammar, automaton: StackAutomaton, entries: Entries, causes: Sequence[dict[str, Any]], is_open: bool
) -> list[str]:
    """What would make it cheaper, in sentences; nothing where nothing stands out."""
    found = []
    if is_open:
        found.append(
            "the stack automaton goes past the forecast's budget, so a store may leave it open and ask the parser about each entry: "
            "look for rules that are ambiguous or recursive at both ends"
        )
    for cause in causes:
        if cause["share"] >= NOTABLE and cause["kind"] in REWRITABLE:
            found.append(f"{cause['rule']} ({cause['share']:.0%} of the reads past the first): {cause['why']}")
    transducer = automaton.required.transducer
    of_terminal: Counter[int] = Counter()
    states: Counter[int] = Counter()
    for q, live in enumerate(transducer.live):
        if len(live) == 1:
            of_terminal[live[0]] += entries[SIZES[0]][q]
            states[live[0]] += 1
    total = max(1, sum(entries[SIZES[0]]))
    for terminal, count in sorted(of_terminal.items(), key=lambda pair: (-pair[1], pair[0]))[:2]:
        if count / total >= MUCH and states[terminal] > 4:
            found.append(
                f"terminal {grammar.display_name(terminal)} has {states[terminal]} lexer states with {count / total:.0%} of all entries: "
                "a pattern with fewer states where it may end, or one split into terminals that the rules join, has fewer"
            )
    backs_up = [q for q, terminal in enumerate(transducer.fallback) if terminal >= 0]
    if len(backs_up) > transducer.n_states // 10 and len(backs_up) > 8:
        names = Counter(transducer.fallback[q] for q in backs_up)
        name = grammar.display_name(min(names, key=lambda t: (-names[t], t)))
        found.append(
            f"in {len(backs_up)} lexer states the lexer may back up, most often to {name}: make terminals differ sooner"
        )
    return found
