r"""Conventions for words: a rule may have only the words of a regular set.

Under longest match a lexeme belongs to one terminal, whatever the rules want it to be. Conventions
therefore *part* a terminal. Let R1 .. Rk be the conventions on words of a terminal T. Texts of T
for which the same conventions hold form one part, and each nonempty part becomes a terminal. A rule
under a convention takes the parts for which the convention holds. Wherever else T stood, each part
may stand.

Example: under the convention ``[a-z]+`` the terminal ``/[A-Za-z]+/`` has two parts, the texts in
lower case and all others.

A part is written as a pattern of Python's `re`. Let C be a set with all characters of T's texts,
and let R' be R with each of its sets of characters cut down to C. A text of T that ends before a
character outside C is in R if and only if ``(?=(?:R')(?!C))`` holds at its beginning. The reason is
that R' reads characters of C only, so it can end there and nowhere else.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar.grammar import Grammar, Rule, Terminal
from maskwright.analysis.lexing.lexemes import terminal_rank
from maskwright.analysis.lexing.messages import naming
from maskwright.analysis.lexing.terminals import compile_pattern, compile_terminal
from maskwright.analysis.regex import charset
from maskwright.analysis.regex.dfa import intersect
from maskwright.analysis.regex.parse import parse
from maskwright.analysis.regex.tree import Atomic, Chars, Choice, Look, Node, Repeat, children
from maskwright.analysis.regex.tree import Sequence as Row
from maskwright.analysis.restrict.words import assemble, rules_below, single_terminals, unused_name, with_substitutes

MAX_PARTS = 64
"""BOUND: parts of one terminal.

A language has few conventions, and conventions with the same expression share their parts.
"""


@dataclass(frozen=True, slots=True)
class Convention:
    """The words of `symbol` must be in the set of a regular expression.

    name : the convention's name, for messages.
    pattern : the regular expression, which must match whole words.
    symbol : number of the rule or terminal that the convention is about.
    otherwise : number of the rule that takes the words that are not in the set; None if they are
        refused.
    """

    name: str
    pattern: str
    symbol: int
    otherwise: int | None = None


def apply_conventions(grammar: Grammar, conventions: Sequence[Convention]) -> Grammar:
    """The grammar in which all conventions hold.

    Raises: GrammarError for a convention on more than single words, for one that no word fulfils,
    and where parting a terminal would change which of two terminals wins; TerminalError for a
    pattern that `re` refuses or that has no regular reading; LimitError for more than MAX_PARTS
    parts of a terminal, and for patterns whose automata grow too large.
    """
    if not conventions:
        return grammar
    words: dict[int, tuple[int, ...]] = {}
    for convention in conventions:
        _check(convention)
        words[convention.symbol] = _words(grammar, convention)
    parts = {
        t: _parts(grammar, t, [c for c in conventions if t in words[c.symbol]])
        for t in sorted({t for found in words.values() for t in found})
    }
    result = _Conventional(grammar, conventions, parts).result()
    _check_ties(
        grammar, result, {t: [part.terminal.name for part in found] for t, found in parts.items() if len(found) > 1}
    )
    return result


def _words(grammar: Grammar, convention: Convention) -> tuple[int, ...]:
    """The terminals that a convention is about. Raises GrammarError if they are no words."""
    found = single_terminals(grammar, convention.symbol)
    shown = grammar.symbol_name(convention.symbol)
    if found is None:
        rule = next(r for r in rules_below(grammar, convention.symbol) if len(r.rhs) != 1)
        raise GrammarError(
            f"grammar {grammar.name}: convention {convention.name} is about single words, but {shown} can be more than one, as in rule "
            f"{grammar.rule_text(rule)!r}; name a rule or terminal of single words"
        )
    layout = grammar.layout
    special = grammar.ignored | grammar.verbatim | ({layout.newline, layout.indent, layout.dedent} if layout else set())
    for terminal in found:
        if terminal in special or grammar.terminals[terminal].is_declared:
            raise GrammarError(
                f"grammar {grammar.name}: convention {convention.name} is about words, but {shown} can be terminal "
                f"{grammar.display_name(terminal)}, which is ignored, verbatim or part of the layout"
            )
        if grammar.terminals[terminal].lengths is not None:
            raise GrammarError(
                f"grammar {grammar.name}: convention {convention.name} is about words whose length is bounded already; bound it in the "
                f"convention, as in {convention.name}=[a-z]{{1,20}}"
            )
    return found


def _check(convention: Convention) -> None:
    """Raises TerminalError or LimitError for a pattern that cannot be compiled."""
    with naming(f"convention {convention.name}", convention.pattern):
        parse(convention.pattern)
        compile_pattern(convention.pattern)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a terminal, and the patterns of the conventions that hold for its texts."""

    terminal: Terminal
    patterns: frozenset[str]


def _parts(grammar: Grammar, number: int, conventions: Sequence[Convention]) -> list[_Part]:
    """The parts of a terminal; a string literal has one part."""
    terminal = grammar.terminals[number]
    compile_terminal(terminal, where=grammar.name)  # raises the terminal's own error, if any, under its own name
    patterns = list(dict.fromkeys(c.pattern for c in conventions))
    found: list[tuple[frozenset[str], str]] = [(frozenset(), "")]
    body = f"(?{terminal.flags}:{terminal.pattern})" if terminal.flags else f"(?:{terminal.pattern})"
    alphabet, outside = _alphabet(terminal)
    for pattern in patterns:
        inside = _confined(pattern, alphabet)
        finer = []
        for held, looks in found:
            for is_held, sign in ((True, "="), (False, "!")):
                more = f"{looks}(?{sign}(?:{inside}){outside})"
                if not compile_pattern(f"{more}{body}{outside}").is_empty:
                    finer.append((held | {pattern} if is_held else held, more))
        found = finer
        if len(found) > MAX_PARTS:
            raise LimitError(
                f"grammar {grammar.name}: the conventions split terminal {terminal.name} into more than {MAX_PARTS} parts; "
                "give similar conventions the same regular expression"
            )
    if len(found) == 1:
        return [_Part(terminal, found[0][0])]
    taken = set(grammar.terminal_number)
    made = []
    for held, looks in found:
        names = dict.fromkeys(c.name.upper() for c in conventions if c.pattern in held)
        name = unused_name("__".join((terminal.name, *(names or ("OTHER",)))), taken)
        made.append(_Part(replace(terminal, name=name, pattern=f"{looks}{body}{outside}", flags=""), held))
    return made


def _check_ties(before: Grammar, after: Grammar, parts: Mapping[int, Sequence[str]]) -> None:
    """Raises GrammarError where a part would win over a terminal that won over the parted terminal.

    This happens where the length of the patterns alone decides: a part has a longer pattern.
    """
    old, new = terminal_rank(before.terminals), terminal_rank(after.terminals)
    for number, names in parts.items():
        for other, terminal in enumerate(before.terminals):
            other_after = after.terminal_number.get(terminal.name)
            if other_after is None or terminal.is_declared or old[other] > old[number]:
                continue
            if any(new[after.terminal_number[name]] < new[other_after] for name in names):
                own = before.terminals[number]
                both = intersect(compile_terminal(own), compile_terminal(terminal))
                if not both.is_empty:
                    raise GrammarError(
                        f"grammar {before.name}: terminals {own.name} and {terminal.name} both match {both.shortest()!r}, and only the "
                        f"length of their patterns decides which wins; give {terminal.name} a priority ({terminal.name}.1) before a "
                        f"convention splits {own.name}"
                    )


def _alphabet(terminal: Terminal) -> tuple[tuple[tuple[int, int], ...], str]:
    """A set of characters with all of the terminal's texts, and a look-ahead for what is not in it.

    The set has either all characters beyond ASCII or none: those of identifiers, written out, would
    fill pages.
    """
    ranges: list[tuple[int, int]] = []
    agenda = [parse(terminal.pattern or "", terminal.flags)]
    for node in agenda:  # grows while it is read
        if isinstance(node, Chars):
            ranges.extend(node.ranges)
        elif not isinstance(node, Look):
            agenda.extend(children(node))
    if any(high > 0x7F for _, high in ranges):
        ranges = [*((low, min(high, 0x7F)) for low, high in ranges if low <= 0x7F), (0x80, charset.LAST)]
    alphabet = charset.normalise(ranges)
    return alphabet, f"(?!{_set(alphabet)})" if alphabet else ""


def _set(ranges: Sequence[tuple[int, int]]) -> str:
    """A set of characters as a character class of `re`."""

    def one(character: int) -> str:
        if 0x30 <= character <= 0x39 or 0x41 <= character <= 0x5A or 0x61 <= character <= 0x7A or character == 0x5F:
            return chr(character)
        return f"\\x{character:02x}" if character < 0x100 else f"\\U{character:08x}"

    return "[" + "".join(one(low) if low == high else f"{one(low)}-{one(high)}" for low, high in ranges) + "]"


def _confined(pattern: str, alphabet: Sequence[tuple[int, int]]) -> str:
    """A pattern for those texts of `pattern` whose characters are all in the alphabet.

    It holds for texts that end before a character outside the alphabet, or at the end.
    """
    everything = tuple(alphabet)

    def write(node: Node, is_behind: bool = False) -> str:
        match node:
            case Chars(ranges):
                left_out = charset.difference(everything, ranges)
                kept = charset.difference(everything, left_out)
                if not kept:
                    return r"[^\x00-\U0010ffff]"  # no character; a look-behind could not hold (?!)
                if len(left_out) < len(kept) and not is_behind:
                    return (f"(?!{_set(left_out)})" if left_out else "") + _set(everything)
                return _set(kept)
            case Row(parts):
                return "".join([write(part, is_behind) for part in parts])
            case Choice(options):
                return f"(?:{'|'.join([write(option, is_behind) for option in options])})" if options else "(?!)"
            case Repeat(body, least, most, mode):
                # lazy or greedy: the same whole texts
                count = f"{{{least},{'' if most is None else most}}}"
                return f"(?:{write(body, is_behind)}){count}" + ("+" if mode == "possessive" else "")
            case Atomic(body):
                return f"(?>{write(body, is_behind)})"
            case Look(body, ahead, negated):
                return f"(?{'' if ahead else '<'}{'!' if negated else '='}{write(body, is_behind or not ahead)})"

    return write(parse(pattern))


class _Conventional:
    """A grammar's rules with parts instead of terminals.

    Symbols keep their numbers until the end; new symbols have higher ones.
    """

    def __init__(self, grammar: Grammar, conventions: Sequence[Convention], parts: dict[int, list[_Part]]) -> None:
        self.grammar = grammar
        self.conventions: dict[int, list[Convention]] = {}
        for convention in conventions:
            self.conventions.setdefault(convention.symbol, []).append(convention)
        fresh = itertools.count(grammar.n_terminals + grammar.n_nonterminals)
        self.terminals: list[tuple[int, Terminal]] = []
        self.parts_of: dict[int, tuple[int, ...]] = {}
        self.patterns_of: dict[int, frozenset[str]] = {}
        for number, terminal in enumerate(grammar.terminals):
            found = parts.get(number)
            if found is None:
                found = [_Part(terminal, frozenset())]
            numbers = [number] if len(found) == 1 else [next(fresh) for _ in found]
            self.parts_of[number] = tuple(numbers)
            for part, of in zip(found, numbers, strict=True):
                self.terminals.append((of, part.terminal))
                self.patterns_of[of] = part.patterns
        self.fresh = fresh

    def allowed(self, symbol: int, own: bool = True, seen: frozenset[int] = frozenset()) -> dict[int, None]:
        """The parts that a symbol of single words may be.

        own : whether the symbol's own conventions must hold too.
        seen : symbols that are under way, against rules in a circle.
        """
        found: dict[int, None] = {}
        if self.grammar.is_nonterminal(symbol):
            for rule in self.grammar.rules_of[symbol]:
                if rule.rhs[0] not in seen:
                    found |= self.allowed(rule.rhs[0], True, seen | {symbol})
        else:
            found |= dict.fromkeys(self.parts_of[symbol])
        wanted = [c.pattern for c in self.conventions.get(symbol, ())] if own else []
        return {part: None for part in found if all(pattern in self.patterns_of[part] for pattern in wanted)}

    def result(self) -> Grammar:
        """The grammar with parts. Raises GrammarError for a convention that no word fulfils."""
        grammar = self.grammar
        either = {t: numbers for t, numbers in self.parts_of.items() if len(numbers) > 1}
        rules: list[Rule] = []
        whole: set[int] = set()
        for symbol, conventions in self.conventions.items():
            kept, every = self.allowed(symbol), self.allowed(symbol, own=False)
            if not kept:
                words = ", ".join(grammar.display_name(t)[:40] for t in (single_terminals(grammar, symbol) or ())[:4])
                one = " and ".join(f"{c.name}={c.pattern}" for c in conventions)
                raise GrammarError(
                    f"grammar {grammar.name}: no word that can be {grammar.symbol_name(symbol)} fulfils convention {one}; "
                    f"the expression must match whole words, here {words}"
                )
            for convention in conventions:
                if convention.otherwise is not None:
                    rules += [Rule(convention.otherwise, (part,)) for part in every if part not in kept]
            if grammar.is_nonterminal(symbol):
                whole.add(symbol)
                rules += [Rule(symbol, (part,)) for part in kept]
            else:
                either[symbol] = tuple(kept)
        old = [rule for rule in grammar.rules if rule.lhs not in whole]
        replaced, more = with_substitutes(grammar, old, either, self.fresh)
        return assemble(grammar, self.terminals, [*replaced, *rules], more)
