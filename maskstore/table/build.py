"""From a grammar and a vocabulary to the engine's table."""

from __future__ import annotations

from collections.abc import Callable

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.automaton.stack_automaton import StackAutomaton, build_automaton, prepare_automaton
from maskwright.maskstore.table.compiled import EngineTable, Progress
from maskwright.maskstore.table.write import engine_table
from maskwright.maskstore.vocabulary import Vocabulary


def prepare_engine_table(
    grammar: Grammar, vocabulary: Vocabulary, progress: Progress | None = None
) -> tuple[EngineTable, Callable[[Progress], EngineTable]]:
    """The table of an open automaton, and a function that closes it.

    progress : see `Progress`. The function gets one too.

    The function may be called in another thread. Its table gives the same masks, and numbers
    the states of lexer and parser in the same way. It is open if the automaton goes over its
    budget.

    Raises: as `build_automaton` and `engine_table`.

    Cost: a fifth to two thirds of `build_engine_table`.
    """
    builder = prepare_automaton(grammar, vocabulary, progress)

    def table(automaton: StackAutomaton) -> EngineTable:
        return EngineTable(grammar, vocabulary, engine_table(grammar, vocabulary, automaton), automaton.counts)

    return table(builder.opened()), lambda progress: table(builder.closed(progress))


def build_engine_table(grammar: Grammar, vocabulary: Vocabulary, progress: Progress | None = None) -> EngineTable:
    """Compile a grammar and a vocabulary completely.

    progress : see `Progress`.

    Raises: as `build_automaton` and `engine_table`.

    Cost: 2 CPU-s for python.lark at V = 32k.
    """
    automaton = build_automaton(grammar, vocabulary, progress)
    return EngineTable(grammar, vocabulary, engine_table(grammar, vocabulary, automaton), automaton.counts)
