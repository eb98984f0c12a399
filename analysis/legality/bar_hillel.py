"""never_legal by the general method: is the intersection with a regular language empty?

This engine is slow and independent: pyformlang builds the whole grammar of the intersection. It is
the oracle of tests and of `--engine pyformlang`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from maskwright.analysis.errors import GrammarError, MissingExtraError
from maskwright.analysis.grammar.grammar import Grammar


def never_legal_pyformlang(grammar: Grammar, context: tuple[int, ...], sequence: tuple[int, ...]) -> bool:
    """No prefix of a word of L ends in the context followed by the sequence.

    Let w be the context followed by the sequence, and Sigma the set of terminals. The statement
    holds if L ∩ Sigma* w Sigma* is empty. For the empty context, the start of the text, it says
    that the sequence begins no word of L, and holds if L ∩ w Sigma* is empty. Both answers are
    exact, for any context-free grammar. Useless symbols do no harm.

    context : terminals read just before, the nearest last: (X,) or (Y, X); () for the start of the
        text.
    sequence : the terminals in question; may be empty.

    Raises: MissingExtraError without pyformlang; GrammarError if a symbol is not a terminal of
    `grammar`.

    Cost: O(|G| |w|^3) rules of the intersection, where |G| is the size of the grammar's Chomsky
    normal form, which is made once for a grammar.

    Source: Bar-Hillel, Perles and Shamir (1961), "On formal properties of simple phrase structure
    grammars"; Romero (2021), "Pyformlang: an educational library for formal language manipulation".
    """
    word = context + sequence
    for symbol in word:
        if not 0 <= symbol < grammar.n_terminals:
            raise GrammarError(
                f"grammar {grammar.name}: symbol number {symbol} is not a terminal, "
                f"expected 0..{grammar.n_terminals - 1}"
            )
    language = _cfg(grammar)
    return bool(language.intersection(_automaton(word, grammar.n_terminals, anywhere=bool(context))).is_empty())


@lru_cache(maxsize=4)
def _cfg(grammar: Grammar) -> Any:
    """`grammar` as pyformlang's CFG, which keeps its own Chomsky normal form.

    INVARIANT: symbols are strings. An intersection numbers its variables 0, 1, .., and pyformlang
    treats a variable and a terminal of one value as equal. With terminals 0, 1, .. some variables
    would count as productive, and is_empty would be wrong.
    """
    cfg, _ = _pyformlang()
    symbols = [
        cfg.Variable(f"n{symbol}") if grammar.is_nonterminal(symbol) else cfg.Terminal(f"t{symbol}")
        for symbol in range(grammar.n_terminals + grammar.n_nonterminals)
    ]
    productions = [cfg.Production(symbols[rule.lhs], [symbols[s] for s in rule.rhs]) for rule in grammar]
    return cfg.CFG(start_symbol=symbols[grammar.start], productions=productions)


def _automaton(word: tuple[int, ...], n_terminals: int, anywhere: bool) -> Any:
    """The minimal DFA of Sigma* word Sigma*, or of word Sigma* if not `anywhere`."""
    _, finite_automaton = _pyformlang()
    nfa = finite_automaton.NondeterministicFiniteAutomaton()
    nfa.add_start_state(0)
    nfa.add_final_state(len(word))
    nfa.add_transitions([(i, f"t{terminal}", i + 1) for i, terminal in enumerate(word)])
    for state in {0, len(word)} if anywhere else {len(word)}:
        nfa.add_transitions([(state, f"t{terminal}", state) for terminal in range(n_terminals)])
    return nfa.to_deterministic().minimize()


def _pyformlang() -> tuple[Any, Any]:
    """The modules pyformlang.cfg and pyformlang.finite_automaton."""
    try:
        from pyformlang import cfg, finite_automaton
    except ImportError as error:
        raise MissingExtraError(
            "the pyformlang engine needs the package pyformlang, which is not installed; "
            "run pip install 'maskwright[oracle]'"
        ) from error
    return cfg, finite_automaton
