"""Restrictions: a grammar of fewer texts, for style or safety, made from another grammar.

There are four kinds. A grammar file declares those of the first three by option lines (`options`):

- ``restriction docstrings = suite:documented_suite COMMENT: :TABS``. Each use of `suite` becomes a
  use of `documented_suite`. Rules with a COMMENT are removed, and COMMENT is no longer ignored.
  TABS are lexed, and no rule takes them, so that they are refused and not read as something
  shorter. Several such restrictions are applied in the file's order.
- ``convention variable_name = variable_name:atom``. Words must match a regular expression. A word
  that does not match is no `variable_name`, but may be an `atom`. Without ``:atom`` it is refused.
  Every rule of single words, and every such terminal, is a convention of its own name without a
  declaration.
- ``allowed imports = module .:relative``. A rule of words with dots between them can only be what a
  list names. `relative` is removed unless the list has a dot alone.

A fourth kind, ``length:STRING=..80``, bounds the lexemes of a terminal (`bound_length`).

A caller asks for them as ``docstrings``, ``variable_name=[a-z_]+``, ``imports=os,numpy.*``.

What remains has the meaning that it had. A terminal that no rule needs any more is therefore still
lexed, unless the restriction names it: ``lambda`` does not become a name where there are no
lambdas.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from maskwright.analysis.errors import GrammarError, UnknownNameError
from maskwright.analysis.grammar.grammar import Grammar, Lengths, Rule
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.analysis.grammar.normalise import productive_symbols, reduce
from maskwright.analysis.grammar.options import Restriction, read_options
from maskwright.analysis.graphs import way_to, ways
from maskwright.analysis.lexing.messages import naming
from maskwright.analysis.lexing.terminals import compile_terminal, length_automaton
from maskwright.analysis.marks import PART_FLAGS
from maskwright.analysis.regex.dfa import difference, intersect
from maskwright.analysis.restrict.conventions import Convention, apply_conventions
from maskwright.analysis.restrict.wanted import read_wanted
from maskwright.analysis.restrict.words import allow_only, assemble, single_terminals, unused_name

_OPTION_LINES = re.compile(r"^[ \t]*//.*$", re.MULTILINE)


def restrict(grammar: Grammar, restrictions: Iterable[str]) -> Grammar:
    """The grammar under restrictions, each ``NAME`` or ``NAME=VALUE``.

    A restriction by other rules needs these rules to be compiled. So give it to `load_grammar`,
    which compiles them. All others can be given here too, but for the length of a terminal that the
    grammar's file bounds itself: `load_grammar` overrides its line.

    Raises: UnknownNameError for a restriction that the grammar does not know; TerminalError for a
    regular expression that cannot be compiled; GrammarError for a value that the restriction cannot
    have, for a convention that no word fulfils, for a list that names nothing or what its rule
    cannot be, for words told apart while lexing is not "longest", and if no text is left;
    LimitError as `apply_conventions`, and for a regular expression whose automaton grows too large.
    """
    declared = {found.name: found for found in read_options(grammar.text, lambda message, _: message).restrictions}
    wanted = dict(read_wanted(restrictions))
    bounds = {
        name.removeprefix(PREFIX).strip(): wanted.pop(name) or "" for name in list(wanted) if name.startswith(PREFIX)
    }
    for name, value in wanted.items():
        _check_known(grammar, declared, name, value)
    by_rules = [found for name, found in declared.items() if name in wanted and found.kind == "restriction"]
    lists = [found for name, found in declared.items() if name in wanted and found.kind == "allowed"]
    entries = {found.name: _entries(grammar.name, found, wanted[found.name] or "") for found in lists}
    longest_only = [f.name for f in by_rules if any(not old for old, _ in f.pairs)]
    longest_only += [name for name in wanted if name not in declared or declared[name].kind != "restriction"]
    if grammar.lexing != "longest" and longest_only:
        raise GrammarError(
            f"grammar {grammar.name}: restriction {longest_only[0]} tells words apart by the longest match, but lexing is "
            f"{grammar.lexing!r}; load the grammar with lexing='longest'"
        )
    steps = [(found.name, dict(found.pairs)) for found in by_rules]
    steps += [(f.name, {new: ""}) for f in lists for old, new in f.pairs if old == "." and "." not in entries[f.name]]
    steps += [(f.name, {f.pairs[0][0]: ""}) for f in lists if entries[f.name] == ["."]]
    refused = {new for found in by_rules for old, new in found.pairs if not old}
    grammar = _by_other_rules(grammar, steps, refused)
    for found in lists:
        names = [entry for entry in entries[found.name] if entry != "."]
        for about, _ in found.pairs:
            symbol = _symbol(grammar, about)
            if about != "." and symbol is not None and names:
                grammar = allow_only(grammar, found.name, symbol, names)
    conventions = []
    for name, value in wanted.items():
        own = declared.get(name, Restriction("convention", name, ((name, ""),)))
        if own.kind != "convention" or value is None:
            continue
        for about, otherwise in own.pairs:
            symbol = _symbol(grammar, about)
            if symbol is not None:
                other = _symbol(grammar, otherwise) if otherwise else None
                conventions.append(Convention(name, value, symbol, other))
    conventional = apply_conventions(grammar, conventions)
    for name in bounds:
        if name in grammar.terminal_number and name not in conventional.terminal_number:
            number = grammar.terminal_number[name]
            about = next((one.name for one in conventions if number in _words(grammar, one)), "of its words")
            raise GrammarError(
                f"grammar {grammar.name}: convention {about} splits terminal {name}, so {PREFIX}{name} cannot bound it; bound the words in "
                f"the convention, as in {about}=[a-z]{{1,20}}"
            )
    return bound_lengths(conventional, bounds)


def bounded_names(restrictions: Iterable[str]) -> frozenset[str]:
    """The terminals of which restrictions give the length.

    Raises: as `read_wanted`.
    """
    return frozenset(name.removeprefix(PREFIX).strip() for name in read_wanted(restrictions) if name.startswith(PREFIX))


def _check_known(grammar: Grammar, declared: Mapping[str, Restriction], name: str, value: str | None) -> None:
    """Raises UnknownNameError for an unknown restriction.

    Raises GrammarError for a value where none is expected, and for a convention without one.
    """
    found = declared.get(name)
    symbol = _symbol(grammar, name)
    known = list(declared)
    if found is None and symbol is None:
        close = difflib.get_close_matches(name[:200], [*known, *grammar.nonterminals], n=3)
        hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
        has = f"it has {', '.join(known)}" if known else "it declares none"
        raise UnknownNameError(
            f"grammar {grammar.name} has no restriction {name[:40]!r}{hint} ({has}; RULE=REGEX works for each rule of single words, "
            f"{PREFIX}TERMINAL=..80 for each terminal)"
        )
    kind = "convention" if found is None else found.kind
    if kind == "restriction" and value is not None:
        raise GrammarError(
            f"grammar {grammar.name}: restriction {name} takes no value, but found {value[:40]!r}; give it as {name}"
        )
    if kind == "convention" and not value:
        raise GrammarError(
            f"grammar {grammar.name}: convention {name} needs a regular expression for whole words, as in {name}=[a-z_]+"
        )


def _words(grammar: Grammar, convention: Convention) -> tuple[int, ...]:
    """The terminals that a convention is about."""
    return single_terminals(grammar, convention.symbol) or ()


def _entries(grammar: str, found: Restriction, value: str) -> list[str]:
    """The entries of a list, each once. Raises GrammarError for a list that is not valid."""
    entries = list(dict.fromkeys(entry.strip() for entry in value.split(",")))
    has_dot = any(old == "." for old, _ in found.pairs)
    if not any(entries):
        dot = "; a dot alone is for relative ones" if has_dot else ""
        raise GrammarError(
            f"grammar {grammar}: the list {found.name} names no {found.pairs[0][0]}; give it as in {found.name}=os,sys,numpy.*{dot}"
        )
    if "" in entries:
        raise GrammarError(
            f"grammar {grammar}: the list {found.name}={value[:80]} has an empty entry; write {','.join(filter(None, entries))}"
        )
    if "." in entries and not has_dot:
        raise GrammarError(
            f"grammar {grammar}: the list {found.name} has the entry '.', but the grammar declares nothing for it"
        )
    return entries


def _symbol(grammar: Grammar, name: str) -> int | None:
    """The number of a symbol, or None if the grammar does not have it."""
    if name in grammar.terminal_number:
        return grammar.terminal_number[name]
    return grammar.n_terminals + grammar.nonterminals.index(name) if name in grammar.nonterminals else None


def _by_other_rules(grammar: Grammar, steps: Sequence[tuple[str, Mapping[str, str]]], refused: set[str]) -> Grammar:
    """The grammar after each step in turn.

    steps : the name of a restriction, and its map from an old symbol to a new one or "".
    refused : names of terminals that stay though no rule takes them.
    """
    if not steps:
        return grammar
    original = grammar
    removed: dict[int, str] = {}
    named: set[int] = set()
    for restriction, pairs in steps:
        new_of: dict[int, int | None] = {}
        for old, new in pairs.items():
            old_number, new_number = _symbol(grammar, old), _symbol(grammar, new)
            for name, number in ((old, old_number), (new, new_number)):
                if name and number is None:
                    _check_defined(grammar, restriction, name, is_new=name == new)
            named |= {number for number in (old_number, new_number) if number is not None}
            if old_number is None:
                continue
            must_be_rule, must_be_terminal = old_number == grammar.start, not grammar.is_nonterminal(old_number)
            if new_number is not None and (must_be_rule, must_be_terminal)[grammar.is_nonterminal(new_number)]:
                raise GrammarError(
                    f"grammar {grammar.name}: restriction {restriction} replaces {old} with {new}, but one is a rule and the other "
                    "a terminal; name two rules or two terminals"
                )
            new_of[old_number] = new_number if new else None
            if not new:
                removed.setdefault(old_number, restriction)
        grammar = _replaced(grammar, restriction, new_of)
    _check_alive(original, grammar, removed, [name for name, _ in steps])
    kept = {grammar.terminal_number[name] for name in refused if name in grammar.terminal_number}
    return _without_unused(reduce(grammar), named, kept)


def _check_defined(grammar: Grammar, restriction: str, name: str, *, is_new: bool) -> None:
    """Raises GrammarError for a name that the grammar should know as a symbol.

    The file may lack such a rule; or, for a new symbol, the rule may not have been compiled because
    the start symbol does not lead to it.
    """
    base = name.partition("{")[0]
    is_in_text = re.search(rf"(?<!\w){re.escape(base)}(?!\w)", _OPTION_LINES.sub("", grammar.text)) is not None
    if not is_in_text:
        raise GrammarError(
            f"grammar {grammar.name}: restriction {restriction} names {name}, which the grammar does not define; define it, or correct its "
            "option line"
        )
    if is_new:
        raise GrammarError(
            f"grammar {grammar.name}: restriction {restriction} needs {name}, which nothing else leads to, so it was not compiled; "
            f"give the restriction when the grammar is loaded: load_grammar(..., restrict=[{restriction!r}])"
        )


def _replaced(grammar: Grammar, restriction: str, new_of: Mapping[int, int | None]) -> Grammar:
    """The grammar with all replacements made at once.

    They are made in the rules, and among the ignored and verbatim terminals and those of the
    layout.

    new_of : for each old symbol the new one, or None if it is removed.
    """

    def new(symbol: int) -> int | None:
        return new_of.get(symbol, symbol)

    def set_of(terminals: Iterable[int]) -> frozenset[int]:
        return frozenset(t for t in map(new, terminals) if t is not None)

    rules = []
    for rule in grammar.rules:
        body = tuple(map(new, rule.rhs))
        if None not in body and not (rule.lhs in new_of and new_of[rule.lhs] is None):
            rules.append(Rule(rule.lhs, tuple(s for s in body if s is not None)))
    layout = grammar.layout
    if layout is not None:
        brackets = [t for pair in layout.brackets for t in pair]
        for terminal in (*brackets, layout.newline, layout.indent, layout.dedent):
            if new(terminal) is None:
                raise GrammarError(
                    f"grammar {grammar.name}: restriction {restriction} removes terminal {grammar.display_name(terminal)}, "
                    "which the layout needs"
                )
        members = [new(t) for t in (layout.newline, layout.indent, layout.dedent, *brackets)]
        newline, indent, dedent, *others = [t for t in members if t is not None]
        pairs = tuple(zip(others[::2], others[1::2], strict=True))
        layout = replace(layout, newline=newline, indent=indent, dedent=dedent, brackets=pairs)
    start = new(grammar.start)
    if start is None:
        raise GrammarError(
            f"grammar {grammar.name}: restriction {restriction} empties the language: it removes the start symbol "
            f"{grammar.symbol_name(grammar.start)}"
        )
    return replace(
        grammar,
        rules=tuple(dict.fromkeys(rules)),
        start=start,
        ignored=set_of(grammar.ignored),
        verbatim=set_of(grammar.verbatim),
        layout=layout,
    )


def _check_alive(before: Grammar, after: Grammar, removed: Mapping[int, str], names: Sequence[str]) -> None:
    """Raises GrammarError if no text is left.

    The message says which rule died first, and how the start symbol needs it.
    """
    productive = productive_symbols(after)
    if after.start in productive:
        return
    # the cause is a rule that lost alternatives: name the one nearest to the start symbol
    before_each = ways(
        [after.start], lambda at: [s for rule in after.rules_of[at] for s in rule.rhs if s not in productive]
    )
    for symbol in [*before_each, after.start]:
        lost = [rule for rule in before.rules_of[symbol] if any(s in removed for s in rule.rhs)]
        left = after.rules_of[symbol]
        if lost or not left:
            break
    shown = [after.symbol_name(s) for s in way_to(symbol, before_each)]
    needs = f" ({', '.join(f'{a} needs {b}' for a, b in itertools.pairwise(shown))})" if len(shown) > 1 else ""
    if lost:
        gone = next(s for s in lost[0].rhs if s in removed)
        why = f"its alternative {before.rule_text(lost[0])!r} is lost with {before.display_name(gone)}, which {removed[gone]} removes"
        why += ", and what is left leads back to itself or to rules that never end" if left else ""
    else:
        why = "no finite text can be derived from it"
    raise GrammarError(
        f"grammar {after.name}: {' and '.join(dict.fromkeys(names))} {'empties' if len(set(names)) == 1 else 'empty'} the language: "
        f"rule {shown[-1]} dies first{needs}: {why}"
    )


def _without_unused(grammar: Grammar, named: set[int], kept: set[int]) -> Grammar:
    """The grammar without those terminals of `named` that nothing needs.

    With a terminal goes the one that has its lexemes of other lengths.

    named : numbers of symbols. Terminals still have the numbers of the original grammar.
    kept : numbers of terminals that stay in any case.
    """
    used = {s for rule in grammar.rules for s in rule.rhs} | grammar.ignored | kept
    if grammar.layout is not None:
        layout = grammar.layout
        used |= {layout.newline, layout.indent, layout.dedent, *(t for pair in layout.brackets for t in pair)}
    gone = {t for t in named if t < grammar.n_terminals and t not in used}
    names = {grammar.terminals[t].name for t in gone}
    gone |= {t for t, terminal in enumerate(grammar.terminals) if terminal.beyond in names}
    grammar = replace(grammar, verbatim=grammar.verbatim - gone)
    terminals = [(t, terminal) for t, terminal in enumerate(grammar.terminals) if t not in gone]
    return assemble(grammar, terminals, grammar.rules)


PREFIX = "length:"


def bound_lengths(grammar: Grammar, bounds: Mapping[str, str]) -> Grammar:
    """The grammar whose terminals have lexemes of certain lengths, in characters.

    bounds : for names of terminals what is written behind the ``=``, see `Lengths.read`.

    Raises: UnknownNameError, TerminalError and LimitError as `bound_length`; GrammarError as it
    does, and for a bound that is none.
    """
    for name, text in bounds.items():
        try:
            lengths = Lengths.read(name, text)
        except GrammarError as error:
            raise GrammarError(f"grammar {grammar.name}: {error}") from error
        grammar = bound_length(grammar, name, lengths)
    return grammar


def bound_length(grammar: Grammar, name: str, lengths: Lengths) -> Grammar:
    """The grammar in which one terminal has lexemes of certain lengths only.

    Each text with a lexeme of other lengths is left out. What is left is read as before: a lexeme
    that is too long is not cut in two. So under longest match a bound on an ignored terminal bounds
    the run of it, not each piece of the run.

    The terminal keeps the lexemes that are within the bounds. All others become lexemes of a second
    terminal, which competes where the first one does and which no rule takes (`Terminal.beyond`).
    Lexing "nfa" reads a text in every way that there is, so it has no such terminal, and a run may
    be several lexemes. A bound that leaves out no lexeme changes nothing.

    Raises: UnknownNameError for a name that is no terminal's; GrammarError for a bound that no
    lexeme is within, or that is the terminal's second, for a terminal of the layout, and for one
    that stands for a part; TerminalError and LimitError as `compile_terminal`: the automaton counts
    characters.
    """
    number = grammar.terminal_number.get(name)
    if number is None or grammar.terminals[number].beyond:
        known = [terminal.name for terminal in grammar.terminals if not terminal.beyond]
        raise UnknownNameError(
            f"grammar {grammar.name} uses no terminal {name[:40]!r} to bound" + suggestion(name[:200], known)
        )
    terminal = grammar.terminals[number]
    layout = grammar.layout
    if layout is not None and number in (layout.newline, layout.indent, layout.dedent):
        raise GrammarError(
            f"grammar {grammar.name}: terminal {name} is part of the layout, so its length cannot be bounded; bound blanks between "
            "lexemes by their own terminal"
        )
    if terminal.flags == PART_FLAGS:
        raise GrammarError(
            f"grammar {grammar.name}: {name} stands for a part, so its length cannot be bounded; bound the part's terminals"
        )
    if terminal.lengths is not None:
        raise GrammarError(
            f"grammar {grammar.name}: the length of {name} is {terminal.lengths} already, by a restriction or a line of its file; "
            f"load the grammar with {PREFIX}{name}={lengths} alone, which overrides such a line"
        )
    every = compile_terminal(terminal, where=grammar.name)
    with naming(f"{PREFIX}{name}={lengths}", terminal.pattern or ""):
        within = length_automaton(lengths)
        kept, others = intersect(every, within), difference(every, within)
    if kept.is_empty:
        example = every.shortest().decode("utf-8")
        raise GrammarError(
            f"grammar {grammar.name}: no lexeme of {name} has a length of {lengths}; a shortest one, {example[:40]!r}, has {len(example)} "
            "characters"
        )
    if others.is_empty:
        return grammar
    parts = list(enumerate(grammar.terminals))
    parts[number] = number, replace(terminal, lengths=lengths)
    if grammar.lexing != "nfa":
        other = unused_name(f"{name}__OTHER_LENGTHS", set(grammar.terminal_number))
        fresh = grammar.n_terminals + grammar.n_nonterminals
        parts.append((fresh, replace(terminal, name=other, lengths=lengths, beyond=name)))
    return assemble(grammar, parts, grammar.rules)
