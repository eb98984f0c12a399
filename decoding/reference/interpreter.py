"""Read a text in plain Python: byte by byte through the transducer, explicit stacks for the parser.

The answers are the engine's, worked out by other code: no look-ups, no merged states. Each refusal
is kept with the stacks that refuse. This is for explaining, not for decoding: it takes about 25 us
a byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.columns import FIRST_COLUMN
from maskwright.analysis.lexing.encoding import DEAD, RESTART, START_STATE
from maskwright.decoding.engine.constants import MAX_STACKS
from maskwright.decoding.reference.machine import Machine
from maskwright.decoding.reference.parser import END, Configuration, Parser, Refusal, Stack, TextParser


class Interpreter(TextParser):
    """The readings of one text, and of what may come after it.

    parser : its tables are the full ones, with no states merged.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        parser = Parser(
            machine.tables,
            machine.grammar.name,
            MAX_STACKS,
            advice="load the grammar with conflicts='shift', or make its rules less ambiguous",
            is_dead=None if machine.live is None else self._is_dead,
        )
        super().__init__(machine.grammar, parser, machine.mode_of)
        self._kinds = {parser.start: 0}

    def _is_dead(self, stack: Stack, state: int) -> bool:
        """Whether no text can be completed after a shift."""
        live, class_of, kinds = self.machine.live, self.machine.class_of, self._kinds
        assert live is not None
        waiting, at = [], stack
        while at not in kinds:
            waiting.append(at)
            assert at.below is not None  # INVARIANT: the lowest stack has a kind
            at = at.below
        for one in reversed(waiting):
            kinds[one] = live.push(class_of[at.top], kinds[at], class_of[one.top])
            at = one
        return not live.can_shift(class_of[stack.top], kinds[stack], class_of[state])

    def read(self, configurations: Iterable[Configuration], data: bytes) -> tuple[list[Configuration], list[Refusal]]:
        """The configurations after some bytes, and the refusals on the way.

        Raises: LimitError if the text has too many readings, or if the lexer would read too many
            bytes again.
        """
        machine, transducer = self.machine, self.machine.transducer
        found: dict[tuple[object, ...], Configuration] = {}
        refused: list[Refusal] = []
        agenda = [(configuration, data) for configuration in configurations][::-1]
        longest = len(data) + 4 * (transducer.longest_pending + 2)
        while agenda:
            configuration, waiting = agenda.pop()
            if not waiting:
                key = configuration[:4]
                # Readings that the lexer cannot tell apart go on as one.
                if key in found:
                    both = dict.fromkeys((*found[key].stacks, *configuration.stacks))
                    configuration = found[key]._replace(
                        stacks=tuple(both),
                        last_was_newline=found[key].last_was_newline and configuration.last_was_newline,
                    )
                found[key] = configuration
                continue
            ways = [configuration]
            if configuration.lexer == START_STATE and len(machine.mode_state) > 1:
                ways = [one._replace(lexer=machine.mode_state[mode]) for mode, one in self.by_mode(configuration)]
            for here in ways:
                klass = machine.byte_class[waiting[0]]
                after = machine.next_state[here.lexer][klass]
                if after == DEAD:
                    refused.append(Refusal("bytes", here))
                    continue
                reached = self.emit(here, transducer.outputs[machine.output[here.lexer][klass]])
                if isinstance(reached, Refusal):
                    refused.append(reached)
                elif after == RESTART:
                    reread = transducer.pending[here.lexer] + waiting
                    if len(reread) > longest:
                        raise LimitError(
                            f"grammar {self.grammar.name}: the lexer would reread too much of the text; make the grammar's terminals "
                            "differ sooner"
                        )
                    agenda.append((reached._replace(lexer=START_STATE), reread))
                else:
                    column = reached.column
                    if machine.is_newline[after] and self.grammar.layout is not None:
                        column = self.grammar.layout.column_after(waiting[:1], column)
                    agenda.append((reached._replace(lexer=after, column=column), waiting[1:]))
        return list(found.values()), refused

    def backed_up(self, configuration: Configuration) -> list[Configuration | Refusal]:
        """What comes if the lexeme under way fails and ends where it last could.

        Returns the refusals on the way, then the configurations; [] if the lexer cannot back up.
        """
        transducer, lexer = self.machine.transducer, configuration.lexer
        terminal = transducer.fallback[lexer]
        if terminal < 0:
            return []
        emitted = () if terminal in self.grammar.ignored else (terminal,)
        reread = transducer.reread[lexer]
        after = self.emit(configuration, emitted + reread[0] if reread is not None else emitted)
        if isinstance(after, Refusal):
            return [after]
        if reread is not None:
            return [after._replace(lexer=reread[1])]
        found, refused = self.read([after._replace(lexer=START_STATE)], transducer.pending[lexer])
        return [*refused, *found]

    def readings(self, configurations: Iterable[Configuration]) -> Iterator[Configuration | Refusal]:
        """All readings of the lexemes under way: each configuration, then backed up, and so on.

        Refusals on the way are yielded too.
        """
        agenda: list[Configuration | Refusal] = [*reversed(list(configurations))]
        while agenda:
            one = agenda.pop()
            yield one
            if isinstance(one, Configuration):
                agenda += self.backed_up(one)[::-1]

    def lookahead_set(self, configuration: Configuration) -> tuple[int, ...]:
        """The lookahead set of a configuration: one of these terminals must be acceptable next.

        Returns () if there is no condition.
        """
        lookahead = self.machine.transducer.lookahead[configuration.lexer]
        if lookahead is not None and (self.grammar.newline not in lookahead or configuration.depth == 0):
            grammar = self.grammar
            wanted = tuple(t for t in sorted(lookahead) if t != grammar.n_terminals)
            if grammar.n_terminals not in lookahead:
                return wanted
            return (*wanted, END) if grammar.layout is None else (*wanted, grammar.layout.dedent, END)
        if not configuration.last_was_newline:
            return ()
        # After a newline whose column is known, no indent can come any more.
        layout = self.grammar.layout
        return tuple(t for t in (*range(len(self.column_of)), END) if layout is None or t != layout.indent)

    def goes_on(self, configuration: Configuration) -> bool:
        """Whether the lexeme under way may become something that the parser takes."""
        wanted = self.lookahead_set(configuration)
        return not wanted or any(self.shift(configuration.stacks, symbol).stacks for symbol in wanted)

    def is_legal(self, configurations: Iterable[Configuration]) -> bool:
        """Whether some continuation of the text, from one of the configurations, is legal."""
        return any(not isinstance(one, Refusal) and self.goes_on(one) for one in self.readings(configurations))

    def end(self, configurations: Iterable[Configuration]) -> list[Refusal]:
        """Why the text cannot end here; empty if it can."""
        transducer = self.machine.transducer
        refused: list[Refusal] = []
        agenda: list[Configuration | Refusal] = [*reversed(list(configurations))]
        while agenda:
            one = agenda.pop()
            if isinstance(one, Refusal):
                refused.append(one)
                continue
            output = int(transducer.end_output[one.lexer])
            if output == RESTART:
                agenda += self.backed_up(one)[::-1]
                continue
            if output < 0:
                refused.append(Refusal("unfinished", one))
                continue
            # A newline that ends the text belongs to no further line, so blanks after it do not
            # count.
            after = self.emit(one._replace(column=FIRST_COLUMN), transducer.outputs[output])
            if isinstance(after, Configuration):
                after = self.close(after)
            if isinstance(after, Configuration):
                return []
            refused.append(after)
        return refused
