r"""Restrictions of single words: a convention lets a rule have only the words of a regular set, a list only those that it names.

Under longest match a lexeme is of one terminal, whatever the rules want it to be. So a convention *parts* the terminal: for conventions
R1 .. Rk on words of a terminal T there is one terminal for each nonempty set of T's texts that the same of them hold for. A rule under a
convention takes the parts that it holds for; wherever else T stood, each part may stand. A list makes its words string literals, which
win over patterns, and lets them stand for the patterns that match them (`soft`).

A part is written as a pattern of Python's `re`. Let C be a set with all characters of T's texts, and R' be R with each of its sets of
characters cut down to C. A text of T that ends before a character outside C is in R if and only if ``(?=(?:R')(?!C))`` holds at its
beginning: R' reads characters of C only, so it can end there and nowhere else.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar.grammar import Grammar, Layout, Rule, Terminal

MAX_PARTS = 64
"""BOUND: parts of one terminal. Conventions that a language has are few, and alike ones need no parts of their own."""


@dataclass(frozen=True, slots=True)
class Convention:
    """The words of `symbol` are in the set of the regular expression; those that are not may be an `otherwise`, if that is given."""

    name: str
    pattern: str
    symbol: int
    otherwise: int | None = None


def leaves(grammar: Grammar, symbol: int) -> tuple[int, ...] | None:
    """The terminals that a symbol derives, in order; None if it derives anything but single terminals."""
    found: dict[int, None] = {}
    seen = {symbol}
    agenda = [symbol]
    for at in agenda:  # grows while it is read
        if not grammar.is_nonterminal(at):
            found[at] = None
            continue
        for rule in grammar.rules_of[at]:
            if len(rule.rhs) != 1:
                return None
            if rule.rhs[0] not in seen:
                seen.add(rule.rhs[0])
                agenda.append(rule.rhs[0])
    return tuple(found)


def apply_conventions(grammar: Grammar, conventions: Sequence[Convention]) -> Grammar:
    """The grammar in which all conventions hold.

    Raises GrammarError for a convention on more than single words, one that no word fulfils, or one that `re` refuses; LimitError for
    more than MAX_PARTS parts of a terminal.
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
    return _Conventional(grammar, conventions, parts).result()


def _words(grammar: Grammar, convention: Convention) -> tuple[int, ...]:
    found = leaves(grammar, convention.symbol)
    shown = grammar.symbol_name(convention.symbol)
    if found is None:
        rule = next(r for r in _below(grammar, convention.symbol) if len(r.rhs) != 1)
        raise GrammarError(
            f"grammar {grammar.name}: convention {convention.name} is about single words, but {shown} can be more, as by rule "
            f"{grammar.rule_text(rule)!r}; name a rule, or a terminal, of single words"
        )
    layout = grammar.layout
    special = grammar.ignored | grammar.verbatim | ({layout.newline, layout.indent, layout.dedent} if layout else set())
    for terminal in found:
        if terminal in special or grammar.terminals[terminal].is_declared:
            raise GrammarError(
                f"grammar {grammar.name}: convention {convention.name} is about words, but {shown} can be terminal "
                f"{grammar.display_name(terminal)}, which is ignored, verbatim or of the layout"
            )
    return found


def _check(convention: Convention) -> None:
    from maskwright.analysis.lexing.messages import naming
    from maskwright.analysis.lexing.parse import parse  # lexing imports grammars, so not when this file is imported

    with naming(f"convention {convention.name}", convention.pattern):
        parse(convention.pattern)


@dataclass(frozen=True, slots=True)
class _Part:
    """A terminal, and the patterns of the conventions that hold for its texts."""

    terminal: Terminal
    holds: frozenset[str]


def _parts(grammar: Grammar, number: int, conventions: Sequence[Convention]) -> list[_Part]:
    """The parts of a terminal; a string literal is one part."""
    from maskwright.analysis.lexing.terminals import compile_pattern, compile_terminal

    terminal = grammar.terminals[number]
    compile_terminal(terminal, where=grammar.name)  # an error of its own is not the convention's
    patterns = list(dict.fromkeys(c.pattern for c in conventions))
    found: list[tuple[frozenset[str], str]] = [(frozenset(), "")]
    body = f"(?{terminal.flags}:{terminal.pattern})" if terminal.flags else f"(?:{terminal.pattern})"
    alphabet, outside = _alphabet(terminal)
    for pattern in patterns:
        inside = _confined(pattern, alphabet)
        finer = []
        for holds, looks in found:
            for is_held, sign in ((True, "="), (False, "!")):
                more = f"{looks}(?{sign}(?:{inside}){outside})"
                if not compile_pattern(f"{more}{body}{outside}").is_empty:
                    finer.append((holds | {pattern} if is_held else holds, more))
        found = finer
        if len(found) > MAX_PARTS:
            raise LimitError(
                f"grammar {grammar.name}: the conventions part terminal {terminal.name} into more than {MAX_PARTS}; "
                "give alike conventions the same regular expression"
            )
    if len(found) == 1:
        return [_Part(terminal, found[0][0])]
    taken = set(grammar.terminal_number)
    made = []
    for holds, looks in found:
        names = dict.fromkeys(c.name.upper() for c in conventions if c.pattern in holds)
        name = unused_name("__".join((terminal.name, *(names or ("OTHER",)))), taken)
        made.append(_Part(replace(terminal, name=name, pattern=f"{looks}{body}{outside}", flags=""), holds))
    return made


def unused_name(name: str, taken: set[str]) -> str:
    """The name, made longer if it is taken; then it is."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _alphabet(terminal: Terminal) -> tuple[tuple[tuple[int, int], ...], str]:
    """A set of characters with all of the terminal's texts, and a look-ahead for what is not in it.

    Either all characters beyond ASCII or none: written out, those of identifiers would fill pages.
    """
    from maskwright.analysis.lexing import charset
    from maskwright.analysis.lexing.parse import parse
    from maskwright.analysis.lexing.tree import Chars, Look, children

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
    def one(character: int) -> str:
        if 0x30 <= character <= 0x39 or 0x41 <= character <= 0x5A or 0x61 <= character <= 0x7A or character == 0x5F:
            return chr(character)
        return f"\\x{character:02x}" if character < 0x100 else f"\\U{character:08x}"

    return "[" + "".join(one(low) if low == high else f"{one(low)}-{one(high)}" for low, high in ranges) + "]"


def _confined(pattern: str, alphabet: Sequence[tuple[int, int]]) -> str:
    """A pattern for the texts of `pattern` of characters of the alphabet, when they end before another character or nowhere."""
    from maskwright.analysis.lexing import charset
    from maskwright.analysis.lexing.parse import parse
    from maskwright.analysis.lexing.tree import Atomic, Chars, Choice, Look, Node, Repeat
    from maskwright.analysis.lexing.tree import Sequence as Row

    everything = tuple(alphabet)

    def write(node: Node) -> str:
        match node:
            case Chars(ranges):
                left_out = charset.difference(everything, ranges)
                kept = charset.difference(everything, left_out)
                if not kept:
                    return "(?!)"
                if len(left_out) < len(kept):
                    return (f"(?!{_set(left_out)})" if left_out else "") + _set(everything)
                return _set(kept)
            case Row(parts):
                return "".join(map(write, parts))
            case Choice(options):
                return f"(?:{'|'.join(map(write, options))})" if options else "(?!)"
            case Repeat(body, least, most, mode):
                # lazy or greedy: the same whole texts
                most_shown = "" if most is None else str(most)
                return f"(?:{write(body)}){{{least},{most_shown}}}" + ("+" if mode == "possessive" else "")
            case Atomic(body):
                return f"(?>{write(body)})"
            case Look(body, ahead, negated):
                return f"(?{'' if ahead else '<'}{'!' if negated else '='}{write(body)})"

    return write(parse(pattern))


class _Conventional:
    """A grammar's rules with parts in the place of terminals. Symbols keep their numbers until the end, new ones have higher ones."""

    def __init__(self, grammar: Grammar, conventions: Sequence[Convention], parts: dict[int, list[_Part]]) -> None:
        self.grammar = grammar
        self.conventions: dict[int, list[Convention]] = {}
        for convention in conventions:
            self.conventions.setdefault(convention.symbol, []).append(convention)
        fresh = itertools.count(grammar.n_terminals + grammar.n_nonterminals)
        self.terminals: list[tuple[int, Terminal]] = []
        self.parts_of: dict[int, tuple[int, ...]] = {}
        self.holds: dict[int, frozenset[str]] = {}
        for number, terminal in enumerate(grammar.terminals):
            found = parts.get(number)
            if found is None:
                found = [_Part(terminal, frozenset())]
            numbers = [number] if len(found) == 1 else [next(fresh) for _ in found]
            self.parts_of[number] = tuple(numbers)
            for part, of in zip(found, numbers, strict=True):
                self.terminals.append((of, part.terminal))
                self.holds[of] = part.holds
        self.fresh = fresh

    def allowed(self, symbol: int, own: bool = True, seen: frozenset[int] = frozenset()) -> dict[int, None]:
        """The parts that a symbol of single words may be; own : its own conventions hold too."""
        found: dict[int, None] = {}
        if self.grammar.is_nonterminal(symbol):
            for rule in self.grammar.rules_of[symbol]:
                if rule.rhs[0] not in seen:
                    found |= self.allowed(rule.rhs[0], True, seen | {symbol})
        else:
            found |= dict.fromkeys(self.parts_of[symbol])
        wanted = [c.pattern for c in self.conventions.get(symbol, ())] if own else []
        return {part: None for part in found if all(pattern in self.holds[part] for pattern in wanted)}

    def result(self) -> Grammar:
        grammar = self.grammar
        either = {t: numbers for t, numbers in self.parts_of.items() if len(numbers) > 1}
        rules: list[Rule] = []
        whole: set[int] = set()
        for symbol, conventions in self.conventions.items():
            kept, every = self.allowed(symbol), self.allowed(symbol, own=False)
            if not kept:
                words = ", ".join(grammar.display_name(t)[:40] for t in (leaves(grammar, symbol) or ())[:4])
                one = " and ".join(f"{c.name}={c.pattern}" for c in conventions)
                raise GrammarError(
                    f"grammar {grammar.name}: no word that can be {grammar.symbol_name(symbol)} fulfils convention {one}; "
                    f"the expression has to match whole words, which are {words} here"
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
        replaced, more = _standing_for(grammar, old, either, self.fresh)
        return assemble(grammar, self.terminals, more, [*replaced, *rules])


def _standing_for(
    grammar: Grammar, rules: Sequence[Rule], either: Mapping[int, tuple[int, ...]], fresh: Iterator[int]
) -> tuple[list[Rule], list[tuple[int, str]]]:
    """The rules with any of `either[t]` wherever terminal t stands, and all nonterminals: the grammar's and new ones."""
    standing: dict[int, int] = {}
    found: list[Rule] = []
    for rule in rules:
        if len(rule.rhs) == 1:  # no nonterminal in between
            found += [Rule(rule.lhs, (s,)) for s in either.get(rule.rhs[0], rule.rhs)]
            continue
        body = []
        for symbol in rule.rhs:
            options = either.get(symbol, (symbol,))
            if len(options) > 1 and symbol not in standing:
                standing[symbol] = next(fresh)
            body.append(standing.get(symbol, options[0]))
        found.append(Rule(rule.lhs, tuple(body)))
    found += [Rule(new, (s,)) for old, new in standing.items() for s in either[old]]
    names = [(grammar.n_terminals + i, name) for i, name in enumerate(grammar.nonterminals)]
    return found, [*names, *((new, grammar.symbol_name(old)) for old, new in standing.items())]


def assemble(
    grammar: Grammar,
    terminals: Iterable[tuple[int, Terminal]],
    nonterminals: Iterable[tuple[int, str]],
    rules: Iterable[Rule],
) -> Grammar:
    """A grammar of these symbols, each with the number that stands for it in `rules` and in the grammar's other members."""
    terminals, nonterminals = list(terminals), list(nonterminals)
    number = {old: new for new, (old, _) in enumerate([*terminals, *nonterminals])}
    layout = grammar.layout
    if layout is not None:
        brackets = tuple((number[opening], number[closing]) for opening, closing in layout.brackets)
        members = (number[layout.newline], number[layout.indent], number[layout.dedent])
        layout = Layout(*members, brackets, layout.tab_length)
    return replace(
        grammar,
        terminals=tuple(terminal for _, terminal in terminals),
        nonterminals=tuple(name for _, name in nonterminals),
        rules=tuple(dict.fromkeys(Rule(number[rule.lhs], tuple(number[s] for s in rule.rhs)) for rule in rules)),
        start=number[grammar.start],
        ignored=frozenset(number[t] for t in grammar.ignored),
        verbatim=frozenset(number[t] for t in grammar.verbatim),
        layout=layout,
    )


def allow_only(grammar: Grammar, name: str, symbol: int, entries: Sequence[str]) -> Grammar:
    """The grammar in which `symbol`, words with dots between them, is one of the entries; ``a.*`` is ``a`` and all that begins with ``a.``.

    Raises GrammarError for an entry that the symbol cannot be, and where the symbol is no such thing.
    """
    from maskwright.analysis.lexing.terminals import compile_terminal

    shown = grammar.symbol_name(symbol)
    below = _below(grammar, symbol)
    firsts = {rule.rhs[:1] for rule in below if rule.lhs == symbol}
    first = next(iter(firsts)) if len(firsts) == 1 else ()
    word = symbol if leaves(grammar, symbol) is not None else first[0] if first else symbol
    words = leaves(grammar, word)
    if words is None:
        raise GrammarError(
            f"grammar {grammar.name}: {name} is a list for {shown}, whose alternatives do not all begin with one rule of single words; "
            f'write it as in: {shown}: name ("." name)*'
        )
    literals = {t.literal: i for i, t in enumerate(grammar.terminals) if t.literal is not None}
    dot = literals.get(".") if any(literals.get(".") in rule.rhs for rule in below) else None
    wide: list[tuple[str, ...]] = []
    exact: list[tuple[str, ...]] = []
    for entry in entries:
        parts = tuple(entry.split(".")) if dot is not None else (entry,)
        (wide if dot is not None and parts[-1] == "*" else exact).append(parts)
    wide = [parts[:-1] for parts in dict.fromkeys(wide)]
    automata = {
        t: compile_terminal(terminal, where=grammar.name)
        for t, terminal in enumerate(grammar.terminals)
        if terminal.literal is None
        and not terminal.is_declared
        and t not in grammar.ignored | grammar.verbatim
        and (grammar.layout is None or t != grammar.layout.newline)
    }
    fresh = itertools.count(grammar.n_terminals + grammar.n_nonterminals)
    taken = set(grammar.terminal_number)
    added: dict[str, tuple[int, Terminal]] = {}
    number = {text: t for text, t in literals.items() if t in words}
    for text in dict.fromkeys(part for parts in (*wide, *exact) for part in parts):
        kind = next((t for t in words if t in automata and automata[t].matches(text.encode("utf-8", "replace"))), None)
        if text in number:
            continue
        if kind is None or text in literals:
            why = (
                f"{text!r} is a keyword"
                if text in literals
                else f"{text!r} is none of its words"
                if text
                else "it lacks a word"
            )
            entry = next(".".join(parts) for parts in (*wide, *exact) if text in parts)
            raise GrammarError(f"grammar {grammar.name}: {name} has {entry!r}, which cannot be a {shown}: {why}")
        new = Terminal(
            unused_name(f"WORD_{text.upper()}" if text.isidentifier() else "WORD", taken), re.escape(text), "", text
        )
        number[text] = next(fresh)
        added[text] = (number[text], replace(new, priority=grammar.terminals[kind].priority))
    either = {
        t: (t, *soft)
        for t in automata
        if (soft := tuple(number[text] for text in added if automata[t].matches(text.encode())))
    }
    rest = next(fresh)
    kept = [rule for rule in grammar.rules if rule.lhs != symbol]
    if wide and dot is not None:
        kept += [Rule(rest, (dot, word)), Rule(rest, (rest, dot, word))]
    rules, nonterminals = _standing_for(grammar, kept, either, fresh)

    def body(parts: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(s for part in parts for s in (*(() if dot is None else (dot,)), number[part]))[dot is not None :]

    for parts in exact:
        if not any(parts[: len(prefix)] == prefix for prefix in wide):
            rules.append(Rule(symbol, body(parts)))
    for prefix in wide:
        if not any(prefix[: len(other)] == other for other in wide if other != prefix):
            rules += [Rule(symbol, body(prefix)), Rule(symbol, (*body(prefix), rest))]
    if wide and dot is not None:
        if word == symbol:
            raise GrammarError(f"grammar {grammar.name}: {name} cannot have entries with '*', as {shown} is one word")
        nonterminals.append((rest, f"{shown}.*"))
    terminals = [*enumerate(grammar.terminals), *added.values()]
    return assemble(grammar, terminals, nonterminals, rules)


def _below(grammar: Grammar, symbol: int) -> list[Rule]:
    """The rules that a symbol leads to."""
    found: list[Rule] = []
    agenda = [symbol]
    for at in agenda:  # grows while it is read
        for rule in grammar.rules_of.get(at, ()):
            found.append(rule)
            agenda += [s for s in dict.fromkeys(rule.rhs) if s not in agenda]
    return found
