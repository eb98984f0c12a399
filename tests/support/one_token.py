"""The way of one token from bytes to mask, printed: what docs/internals/mask.md shows. Run: python tests/support/one_token.py

With a text and a token it prints that token's way: python tests/support/one_token.py '{"k": [1, ' '"b"'

Everything is read from the objects that `build_store` makes on its way, and from the memory of a matcher.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import numpy as np

import maskwright as mw
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.encoding import Transducer
from maskwright.decoding.engine import constants
from maskwright.maskstore.automaton.stack_automaton import StackAutomaton, build_automaton
from maskwright.maskstore.table.write import engine_table, share_rows
from maskwright.maskstore.tokens.requirements import Requirements
from maskwright.maskstore.vocabulary.masks import n_words
from maskwright.stores.store import Store

TOKENS = [b'"a', b'"a":', b'"]', b"{", b"}", b"]", b"]}", b"1", b",", b" ", b"a", b"b"]
END = len(TOKENS)
WAYS = ((b'{"k": [1, ', b'"a'), (b'{"k": [1', b"]}"))
"""Texts, each with the token that is followed there."""


def compiled(grammar: Grammar) -> tuple[StackAutomaton, Store]:
    """The closed automaton of a grammar and TOKENS, and the store of both: what `build_engine_table` does."""
    vocabulary = mw.Vocabulary.from_tokens([*TOKENS, b"</s>"], eos=[END])
    if grammar.lexing != "longest" or grammar.verbatim or grammar.layout:
        raise SystemExit(f"{grammar.name} has modes or a layout, which this page leaves out; give a grammar without")
    automaton = build_automaton(grammar, vocabulary)
    return automaton, Store(grammar, vocabulary, engine_table(grammar, vocabulary, automaton), {})


def way(grammar: Grammar, automaton: StackAutomaton, store: Store, text: bytes, token: bytes) -> Iterator[str]:
    """The lines of one way."""
    required, transducer = automaton.required, automaton.required.transducer
    matcher = store.matcher()
    matcher.advance_bytes(text)
    state = int(matcher.text.texts._memory[constants.LEXER])
    stack = frames(matcher)
    yield f"text      {text.decode()!r}, then token {token.decode()!r}"
    yield f"lexer     state {state}: {under_way(grammar, transducer, state)}"
    yield f"stack     {' '.join(cell(grammar, automaton, top) for top in stack)} (the top first)"
    yield from walk(grammar, transducer, state, token)
    group, continuation = group_of(required, state, TOKENS.index(token))
    yield f"group     {shown(group)}"
    yield f"requires  {requirement(grammar, required, continuation)}"
    (lookup,) = automaton.depth_cases[state][0]  # brackets matter only where there is a layout
    if lookup.own:
        yield f"anyway    {shown(mask_of(automaton, lookup.own))}"
    node = lookup.root
    for top in stack:
        after, mask = edge(automaton, node, top)
        decided = shown(mask_of(automaton, mask)) if mask else "nothing"
        yield f"walk      node {node}, cell {cell(grammar, automaton, top)}: allows {decided}; goes on at node {after}"
        node = after
        if node == 0:
            break
    words = np.zeros(store.n_words, np.uint32)
    matcher.fill(words)
    yield f"row       {' '.join(str(int(words[0]) >> i & 1) for i in range(END + 1))}"
    yield f"is        {shown([i for i in range(END + 1) if words[0] >> i & 1])}"


def frames(matcher: mw.Matcher) -> list[int]:
    """The LR states on the matcher's stack, the top first."""
    memory = matcher.text.texts._memory
    arena, frame = int(memory[constants.ARENA]), int(memory[constants.STACKS])
    found = []
    while frame >= 0:
        found.append(int(memory[arena + 3 * frame]))
        frame = int(memory[arena + 3 * frame + 1])
    return found


def walk(grammar: Grammar, transducer: Transducer, state: int, token: bytes) -> Iterator[str]:
    """Each byte of a token: the lexer's state after it, and the terminals that it emits."""
    for byte in token:
        step = state, transducer.byte_class[byte]
        emitted = " ".join(map(grammar.display_name, transducer.outputs[transducer.output[step]])) or "nothing"
        state = int(transducer.next_state[step])
        if state < 0:
            yield f"byte {chr(byte)!r}  is refused, or read after the lexer backs up, which this page leaves out"
            return
        yield f"byte {chr(byte)!r}  emits {emitted}; state {state}: {under_way(grammar, transducer, state)}"


def under_way(grammar: Grammar, transducer: Transducer, state: int) -> str:
    live = [grammar.display_name(terminal) for terminal in transducer.live[state]]
    return f"{' or '.join(live)} under way" if live else "nothing under way"


def group_of(required: Requirements, state: int, token: int) -> tuple[list[int], int]:
    """The tokens that do the same in a lexer state as a token, and what they require of the parser: a continuation."""
    tokens = required.states[state]
    depth_case = tokens.depth_cases[0]
    for group, continuation in zip(depth_case.group.tolist(), depth_case.group_continuation.tolist(), strict=True):
        begin, end = tokens.member_start[group : group + 2]
        members = required.classes.tokens(tokens.members[begin:end], np.array([0, end - begin]))[0].tolist()
        if token in members:
            return members, continuation
    raise LookupError(f"no parser takes token {token} in lexer state {state}")


def requirement(grammar: Grammar, required: Requirements, continuation: int) -> str:
    parts = []
    while continuation >= 0:
        parts.append(columns(grammar, required, [required.continuations.symbols[continuation]]))
        continuation = required.continuations.next_continuation[continuation]
    if continuation < -1:
        parts.append(f"one of {columns(grammar, required, sorted(required.continuations.sets[-1 - continuation]))}")
    return ", then ".join(parts)


def columns(grammar: Grammar, required: Requirements, wanted: list[int]) -> str:
    return " ".join(grammar.display_name(t) for t, column in enumerate(required.column_of) if column in wanted)


def cell(grammar: Grammar, automaton: StackAutomaton, state: int) -> str:
    """An LR state with the terminal that led there; a nonterminal has no name any more once tables are merged."""
    symbol = int(automaton.tables.accessing[state])
    terminals = [t for t, column in enumerate(automaton.tables.terminal_column.tolist()) if column == symbol >= 0]
    return f"{state}:{grammar.display_name(terminals[0]) if terminals else 'start' if state == 0 else '*'}"


def edge(automaton: StackAutomaton, node: int, top: int) -> tuple[int, int]:
    """The node and the mask of an edge of the closure; an edge that is not there refuses all."""
    closure = automaton.closure
    at = np.flatnonzero(closure.edge_key == node * automaton.tables.n_states + top)
    return (int(closure.edge_node[at[0]]), int(closure.edge_mask[at[0]])) if len(at) else (0, 0)


def mask_of(automaton: StackAutomaton, mask: int) -> list[int]:
    """The tokens of a mask: those of its row, and the ids beside it."""
    rows = share_rows(automaton.closure, automaton.required.classes, n_words(END + 1))
    found = set(rows.ids[rows.begin[mask] : rows.begin[mask] + rows.count[mask]].tolist())
    if rows.row[mask] >= 0:
        found |= {i for i in range(END + 1) if rows.rows[rows.row[mask], i >> 5] >> (i & 31) & 1}
    return sorted(found)


def shown(tokens: list[int]) -> str:
    return " ".join(repr(TOKENS[i].decode()) if i < END else "</s>" for i in tokens)


def both_ways(ways: Iterable[tuple[bytes, bytes]] = WAYS) -> str:
    """A paragraph for each way. A token that is not among TOKENS takes the place of the last of them."""
    found = []
    for text, token in ways:
        if token not in TOKENS:
            TOKENS[-1] = token
        grammar = mw.load_grammar("json")
        automaton, store = compiled(grammar)
        try:
            found.append("\n".join(way(grammar, automaton, store, text, token)))
        except LookupError as error:
            raise SystemExit(str(error)) from None
    return "\n\n".join(found)


if __name__ == "__main__":
    print(both_ways([(sys.argv[1].encode(), sys.argv[2].encode())] if len(sys.argv) == 3 else WAYS))
