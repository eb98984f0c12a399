"""The answers of `explain`: the reading of a text, its refusals, and what could stand there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from maskwright.analysis.errors import StoreError
from maskwright.analysis.grammar.columns import MOST_COLUMN, Column
from maskwright.analysis.lexing.encoding import START_STATE
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.slot import SlotText
from maskwright.decoding.engine.state import listed_bytes
from maskwright.decoding.engine.texts import Texts
from maskwright.decoding.explain.explanation import (
    Attempt,
    Explanation,
    Lexeme,
    NearToken,
    listed,
    mark_hint,
    out_of_range,
    position_of,
    shown_bytes,
)
from maskwright.decoding.explain.stack_descriptions import StackDescriptions
from maskwright.decoding.reference.interpreter import Interpreter
from maskwright.decoding.reference.machine import Machine
from maskwright.decoding.reference.parser import END, Configuration, Refusal, Stack
from maskwright.maskstore.table.compiled import EngineTable
from maskwright.maskstore.vocabulary.masks import tokens_of

MOST_LEXEMES = 12
"""Lexemes before the position that an explanation shows."""
MOST_STACKS = 4
"""Stacks that one attempt shows."""
MOST_NEAR = 8
"""Nearest allowed tokens that an explanation names."""
FEW = 6
"""Most expected terminals that a summary lists."""


class Explainer:
    """One explanation under way."""

    def __init__(self, machine: Machine, store: EngineTable | None = None, state: SlotText | None = None) -> None:
        self.machine = machine
        self.grammar = machine.grammar
        self.store = store
        self.state = state
        self.is_one_of_several = False
        self.trace = Interpreter(machine)
        self.in_words = StackDescriptions(self.trace)

    def text(self, text: bytes) -> Explanation:
        """Explain a whole text."""
        places, good = self.run([self.trace.start], text)
        if good == len(text):
            refused = self.trace.end(places)
            whole = "a complete text" if not refused else "the beginning of a text"
            return self.found(
                "the text",
                f"legal under grammar {self.grammar.name}: {whole}, {len(text):,} bytes",
                text,
                places,
                is_allowed=True,
                is_whole=not refused,
                ending=self.attempts(refused, text, places[0].read),
                expected=self.expected_of(refused) if refused else (),
            )
        refused = self.refusals(places, text[good : good + 1])
        attempts = self.attempts(refused, text[: good + 1], places[0].read)
        expected, at = self.expected_of(refused), position_of(text, good)
        why = attempts[0].why + (f"; expected {listed(expected)}" if 0 < len(expected) <= FEW else "")
        why += mark_hint(text, good)
        return self.found(
            "the text",
            f"not legal under grammar {self.grammar.name} at line {at.line}, column {at.column}: {why}",
            text[:good],
            places,
            text[good:],
            attempts=attempts,
            expected=expected,
            bytes_allowed=self.bytes_allowed(places),
        )

    def token(self, places: list[Configuration], data: bytes, what: str, text: bytes | None) -> Explanation:
        """Explain bytes that come next. text : the text before them, None if it is not known."""
        after, good = self.run(places, data)
        since, reads_as = places[0].read, self.reads_as(places, data)
        if good == len(data):
            attempts, summary = self.attempts_that_go_on(after, since), f"{what} may come next"
            return self.found(what, summary, text, places, data, is_allowed=True, attempts=attempts, reads_as=reads_as)
        refused = self.refusals(after, data[good : good + 1])
        byte = f"byte {good} of it, {shown_bytes(data[good : good + 1])}," if good else "it"
        allowed = self.bytes_allowed(after)
        return self.found(
            what,
            f"{what} is not legal here under grammar {self.grammar.name}: {byte} cannot come here; allowed: {listed_bytes(allowed)}",
            text,
            places,
            data,
            good,
            attempts=self.attempts(refused, None if text is None else text + data[: good + 1], since),
            reads_as=reads_as,
            expected=self.expected_of(refused),
            bytes_allowed=allowed,
            nearest=self.nearest(text, data),
        )

    def token_by_id(self, places: list[Configuration], token: int, text: bytes | None) -> Explanation:
        """Explain a token of the store's vocabulary, or an unknown id. text : as in `token`."""
        assert self.store is not None
        vocabulary = self.store.vocabulary
        if not 0 <= token < vocabulary.size:
            return out_of_range(self.grammar.name, token, vocabulary)
        data, what = vocabulary.tokens[token], f"token {token}"
        if data and token not in vocabulary.eos:
            return self.token(places, data, f"{what} ({data!r})", text)
        shown = f"{what} ({vocabulary.special.get(token, '')!r})"
        if token not in vocabulary.eos:
            why = f"{shown} stands for no text, so no grammar can allow it"
            return Explanation(self.grammar.name, what, "refused", why)
        refused = self.trace.end(places)
        if not refused:
            return self.found(what, f"{shown} may come next: the text is complete", text, places, is_allowed=True)
        return self.found(
            what,
            f"{shown} ends the text, which is not complete here",
            text,
            places,
            attempts=self.attempts(refused, text, places[0].read),
            expected=self.expected_of(refused),
            bytes_allowed=self.bytes_allowed(places),
            nearest=self.nearest(text, b""),
        )

    def found(
        self,
        what: str,
        summary: str,
        text: bytes | None,
        places: list[Configuration],
        data: bytes = b"",
        good: int = 0,
        *,
        is_allowed: bool = False,
        **more: Any,
    ) -> Explanation:
        """An explanation with what was read before, and the state there.

        text : None if it is not known. data : what comes after it; `good` bytes of it are legal.
        """
        place = places[0]
        names = "" if place.lexer == START_STATE else listed(self.names(self.machine.transducer.live[place.lexer]))
        if text is None:
            if self.is_one_of_several:
                more["note"] = (
                    "(the matcher keeps no text: where several terminals or rules could have been read, one of them is shown)"
                )
            more["unfinished"] = f"a lexeme that may become {names}" if names else ""
        else:
            lexemes, begin = self.machine.lexemes(text, place)
            more["position"], more["n_lexemes"] = position_of(text + data, len(text) + good), len(lexemes)
            more["lexemes"] = tuple(
                Lexeme(
                    self.grammar.display_name(t),
                    shown_bytes(text[b:e], 20) if e > b else "",
                    b,
                    e,
                    t in self.grammar.ignored,
                )
                for t, b, e in lexemes[-MOST_LEXEMES:]
            )
            if begin < len(text):
                more["unfinished"] = f"{shown_bytes(text[begin:])}, which may become {names or 'nothing'}"
        return Explanation(
            self.grammar.name,
            what,
            "allowed" if is_allowed else "refused",
            summary,
            depth=place.depth,
            columns=() if self.grammar.layout is None else tuple(column.wide for column in place.columns),
            **more,
        )

    def run(self, configurations: list[Configuration], data: bytes) -> tuple[list[Configuration], int]:
        """The configurations after the longest legal prefix of some bytes, and its length."""
        # Every prefix of a legal prefix is legal. So we check where a lexeme has ended, and then
        # find the exact end by bisection since the last check.
        recent, base = [configurations], 0
        for at, byte in enumerate(data):
            after, _ = self.trace.read(recent[-1], bytes([byte]))
            if (
                after
                and any(configuration.read is not recent[-1][0].read for configuration in after)
                and len(recent) > 1
            ):
                if not self.trace.is_legal(recent[-1]):
                    break
                recent, base = recent[-1:], at
            if not after:
                break
            recent.append(after)
        low, high = 0, len(recent) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.trace.is_legal(recent[middle]):
                low = middle
            else:
                high = middle - 1
        return recent[low], base + low

    def refusals(self, configurations: list[Configuration], data: bytes) -> list[Refusal]:
        """Why no reading goes on with some bytes."""
        after, refused = self.trace.read(configurations, data)
        for reading in self.trace.readings(after):
            if isinstance(reading, Refusal):
                refused.append(reading)
                continue
            for symbol in self.trace.lookahead_set(reading):
                refusing = self.trace.shift(reading.stacks, symbol).refusing
                refused.append(Refusal("terminal", reading, symbol, refusing))
        return refused

    def bytes_allowed(self, configurations: list[Configuration]) -> bytes:
        """The bytes that may come next, ascending. One byte of each class is tried."""
        byte_class = self.machine.byte_class
        ways = {
            klass: self.trace.read(configurations, bytes([byte_class.index(klass)]))[0] for klass in set(byte_class)
        }
        fine = {klass: self.trace.is_legal(way) for klass, way in ways.items()}
        return bytes(byte for byte in range(256) if fine[byte_class[byte]])

    def reads_as(self, configurations: list[Configuration], data: bytes) -> tuple[str, ...]:
        """Names of the terminals that the lexer alone would emit for some bytes.

        Empty if the grammar has several modes, because choosing a mode needs the parser. Empty too
        if the lexer refuses the bytes.
        """
        machine, state = self.machine, configurations[0].lexer
        if len(machine.mode_state) > 1:
            return ()
        found: list[int] = []
        for byte in data:
            klass = machine.byte_class[byte]
            found += machine.transducer.outputs[machine.output[state][klass]]
            state = machine.next_state[state][klass]
            if state < 0:
                return ()
        live = machine.transducer.live[state]
        return (*self.names(found), *([f"({listed(self.names(live), 4)} under way)"] if live else []))

    def configurations_of(self, text: SlotText) -> list[Configuration]:
        """The configuration of a text, with states of the full tables instead of the store's.

        Raises: StoreError if the store's lexer or parser differs from what is built for its grammar
            now.
        """
        memory = text.memory
        self.machine.check_lexer(text.store.table)
        stacks = tuple(self._lifted(states) for states in text.stacks())
        lexer, wide, narrow, depth = (
            int(memory[p]) for p in (constants.LEXER, constants.COLUMN, constants.NARROW, constants.DEPTH)
        )
        return [Configuration(lexer, Column(wide, narrow), depth, tuple(text.columns()), stacks, False, None)]

    def _lifted(self, merged: Sequence[int]) -> Stack:
        """A stack of the full tables that corresponds to a stack of the engine's merged tables.

        Any stack whose states have the same classes does the same on every text
        (`analysis.lr.bisimulation`), so we take the smallest fitting state at each step.

        merged : LR states of the engine, from the bottom.
        """
        class_of, transitions = self.machine.class_of, self.machine.automaton.transitions
        origin = self.machine.origin
        stack, state = self.trace.parser.start, 0
        for wanted in (origin[one] if one < len(origin) else -1 for one in merged[1:]):
            targets = transitions[state]
            fitting = [int(s) for s in targets[targets >= 0] if class_of[s] == wanted]
            if not fitting:
                raise StoreError(
                    f"the store of grammar {self.grammar.name} has a parser that is not its grammar's: it was changed, or built "
                    "by another version of maskwright; build it anew"
                )
            state, self.is_one_of_several = min(fitting), self.is_one_of_several or len(fitting) > 1
            stack = stack.push(state)
        return stack

    def names(self, symbols: Iterable[int]) -> tuple[str, ...]:
        """Display names of terminals; END is the end of the text."""
        return tuple(map(self.in_words.symbol, symbols))

    def expected_of(self, refused: Iterable[Refusal]) -> tuple[str, ...]:
        """Names of the terminals that could come.

        Where the parser refuses: first those that the refusing stacks take after their reductions,
        then those that the stacks took before. Where the lexer stops: first those that can come
        once the lexeme has ended, then those that the lexeme may become.
        """
        first: dict[int, None] = {}
        then: dict[int, None] = {}
        for refusal in refused:
            configuration = refusal.configuration
            if refusal.kind in ("bytes", "unfinished"):
                wanted = self.trace.lookahead_set(configuration)
                then |= dict.fromkeys(self.trace.acceptable(configuration.stacks, wanted))
                output = int(self.machine.transducer.end_output[configuration.lexer])
                outputs = self.machine.transducer.outputs
                ended = self.trace.emit(configuration, outputs[output]) if output >= 0 else refusal
                if isinstance(ended, Configuration):
                    first |= dict.fromkeys(self.trace.expected(ended.stacks))
            else:
                first |= dict.fromkeys(self.trace.expected(refusal.stacks))
                then |= dict.fromkeys(self.trace.expected(configuration.stacks))
        return self.names([*first, *(symbol for symbol in then if symbol not in first)])

    def attempts(self, refused: Sequence[Refusal], text: bytes | None, since: Any) -> tuple[Attempt, ...]:
        """The ways to read, one attempt for each kind of refusal in each configuration.

        text : up to and with the byte where reading stopped; None if it is not known.
        since : what the parser had read when the token began.
        """
        groups: dict[tuple[Configuration, str], list[Refusal]] = {}
        for refusal in refused:
            groups.setdefault((refusal.configuration, refusal.kind), []).append(refusal)
        found = []
        for (configuration, kind), members in groups.items():
            by_stack: dict[Stack, list[int]] = {}
            for member in members:
                for stack in member.stacks:
                    by_stack.setdefault(stack, []).append(member.symbol)
            descriptions = tuple(
                self.in_words.describe(stack, self.names(symbols))
                for stack, symbols in list(by_stack.items())[:MOST_STACKS]
            )
            symbols = tuple(dict.fromkeys(member.symbol for member in members))
            why = self.why(kind, members[0], symbols, text)
            found.append(Attempt(self.names(configuration.terminals(since)), (), why, descriptions))
        return tuple(found)

    def why(self, kind: str, refusal: Refusal, symbols: tuple[int, ...], text: bytes | None) -> str:
        """Why a reading stops, in words. symbols : those refused. text : as in `attempts`."""
        configuration, names = refusal.configuration, listed(self.names(symbols), 4)
        column = refusal.column.wide
        open_columns = ", ".join(str(opened.wide) for opened in configuration.columns)
        live = self.machine.transducer.live[configuration.lexer]
        if kind == "bytes":
            shown = f"with {shown_bytes(text[-1:])}" if text else "with that byte"
            if not live or (text and self.machine.ends_before(text, configuration)):
                return f"no terminal begins {shown}"
            _, begin = ([], 0) if text is None else self.machine.lexemes(text[:-1], configuration)
            lexeme = shown_bytes(text[begin:-1]) if text is not None and begin < len(text) - 1 else ""
            if not lexeme and text is not None:
                return f"no terminal that could stand here begins {shown}"
            return f"{lexeme or 'the lexeme under way'} may become {listed(self.names(live), 6)}, none of which continues {shown}"
        if kind == "tabs" and column >= MOST_COLUMN:
            return (
                f"a line begins {MOST_COLUMN} columns in, or more, which is more than can be counted: use fewer blanks"
            )
        if kind == "tabs":
            return "a line begins with tabs and blanks that do not agree with those of the open block: use only one of the two"
        if kind == "column":
            return f"a line begins at column {column}, where no block is open (open: {open_columns}){self.tabs(text)}"
        if kind == "indent":
            return f"a line is indented to column {column}, but no block can begin here (open: {open_columns}){self.tabs(text)}"
        if kind == "dedent":
            return f"a line goes back to column {column}, but the block cannot end here (open: {open_columns})"
        if kind == "newline":
            return f"the line cannot end here: {names} is refused"
        if kind == "end":
            return "the text cannot end here"
        if kind == "unfinished":
            return f"the text cannot end inside a lexeme that may become {listed(self.names(live), 6)}"
        layout = self.grammar.layout
        is_block = layout is not None and self.trace.expected(configuration.stacks) == [layout.indent]
        is_dead = any(self.trace.shift(refusal.stacks, symbol).dead for symbol in symbols)
        return (
            f"{names} cannot come here"
            + (": a block must begin, so the line must be indented" if is_block else "")
            + (": conflicts are decided by a shift, and then no text continues after it" if is_dead else "")
        )

    def tabs(self, text: bytes | None) -> str:
        """A hint on the width of a tab if the text's last line holds one; else ""."""
        layout = self.grammar.layout
        if (
            layout is None
            or layout.tabs == "consistent"
            or text is None
            or b"\t" not in text[text.rfind(b"\n", 0, len(text) - 1) + 1 :]
        ):
            return ""
        return f"; a tab counts {layout.tab_length} columns"

    def attempts_that_go_on(self, configurations: list[Configuration], since: Any) -> tuple[Attempt, ...]:
        """The effects of an allowed token, one attempt for each way to read it.

        Each has the terminals completed, those that may be under way, and the rules of the stacks
        there.
        """
        found = []
        for reading in self.trace.readings(configurations):
            if isinstance(reading, Refusal):
                continue
            live = self.machine.transducer.live[reading.lexer]
            wanted = self.trace.lookahead_set(reading)
            taken = self.trace.acceptable(reading.stacks, wanted)
            if wanted and not taken:
                continue
            taken = taken if wanted and live else list(live)
            after = reading.stacks
            for symbol in taken:
                if symbol not in self.grammar.ignored and symbol not in (self.grammar.newline, END):
                    after = self.trace.shift(reading.stacks, symbol).stacks
                    break
            descriptions = tuple(self.in_words.describe(stack, ()) for stack in after[:MOST_STACKS])
            found.append(Attempt(self.names(reading.terminals(since)), self.names(taken), "", descriptions))
        return tuple(found)

    def nearest(self, text: bytes | None, data: bytes) -> tuple[NearToken, ...]:
        """Allowed tokens: those with the longest common prefix first, then the shortest."""
        if self.store is None:
            return ()
        words = np.zeros(self.store.n_words, np.uint32)
        state = self.state or SlotText(Texts(self.store, 1, 0))
        if not (text is None or state.try_read(text)) or not state.try_fill(words.view(np.int32)):
            return ()
        allowed = tokens_of(words).tolist()
        tokens = self.store.vocabulary.tokens
        near = [NearToken(token, tokens[token], _shared(tokens[token], data)) for token in allowed if tokens[token]]
        return tuple(sorted(near, key=lambda one: (-one.shared, len(one.data), one.token))[:MOST_NEAR])


def _shared(a: bytes, b: bytes) -> int:
    """The length of the common prefix, in bytes."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
