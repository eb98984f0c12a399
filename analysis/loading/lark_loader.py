"""From `.lark` files and texts to a `Grammar`, through Lark's own loader.

Templates, imports, `%declare`, `%override`, `%extend`, priorities, aliases, inlined rules,
anonymous terminals, flags and EBNF operators mean what they mean to Lark, because Lark's
`GrammarBuilder` compiles them to BNF. No parser is built, so any context-free grammar loads.

Some texts would keep Lark's loader busy without end: alternatives that multiply, terminals that
double inside each other, templates that call themselves with ever longer arguments. They are
refused first.
"""

from __future__ import annotations

import difflib
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import FunctionType, NoneType
from typing import Any, Literal, get_args

import lark.load_grammar
from lark import Tree as LarkTree
from lark.grammar import Rule as LarkRule
from lark.lexer import PatternStr, TerminalDef
from lark.load_grammar import Grammar as LarkGrammar
from lark.load_grammar import GrammarBuilder, SimplifyRule_Visitor

from maskwright.analysis.arguments import as_strings, clip, need_type
from maskwright.analysis.errors import (
    EmptyLanguageError,
    GrammarError,
    MaskwrightError,
    MaskwrightWarning,
    UnknownNameError,
)
from maskwright.analysis.grammar.grammar import Conflicts, Grammar, Layout, Lexing, Reserved, Rule, Terminal
from maskwright.analysis.grammar.lark_files import (
    GrammarFiles,
    offsets_of,
    position_of,
    rule_name,
    short_name,
    suggestion,
)
from maskwright.analysis.grammar.normalise import productive_symbols, unproductive_cycle
from maskwright.analysis.grammar.options import read_options
from maskwright.analysis.lexing.lexemes import check_texts
from maskwright.analysis.lexing.transducer import STATE_LIMIT
from maskwright.analysis.loading.indenter import Indenter
from maskwright.analysis.loading.lark_errors import recursion_error, translate
from maskwright.analysis.loading.lark_limits import check_sizes, literals_used, split_large
from maskwright.analysis.loading.names import find_source, meant
from maskwright.analysis.loading.overlaps import join_equal, soften
from maskwright.analysis.loading.parts import defined, with_parts
from maskwright.analysis.loading.stated import check_lengths, check_refused, narrowed, refused_terminals, with_verbatim
from maskwright.analysis.lr.splits import default_conflicts
from maskwright.analysis.nesting import on_own_stack
from maskwright.analysis.restrict.wanted import as_tuple, replacements
from maskwright.analysis.restrict.words import without_terminals

_LAYOUT_NAMES = (("_NEWLINE", "_INDENT", "_DEDENT"), ("NEWLINE", "INDENT", "DEDENT"), ("_NL", "_INDENT", "_DEDENT"))
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))


@on_own_stack
def load_grammar(
    source: str | os.PathLike[str],
    *,
    start: str | None = None,
    lexing: Lexing | None = None,
    reserved: Reserved | None = None,
    layout: Layout | Indenter | Literal["auto"] | None = "auto",
    conflicts: Conflicts | None = None,
    soft: Sequence[str] | None = None,
    restrict: Sequence[str] | None = None,
) -> Grammar:
    """The grammar of a `.lark` file, of a name, or of a text.

    ``"python"`` names a grammar of our library, ``"lark:python"`` the file `python.lark` of Lark's
    wheel.

    source : a name, a path, or the text itself. A string is a text if it has a line feed or is one
        rule; `parse_grammar` takes texts only.

    Where `start`, `lexing`, `reserved`, `conflicts` or `soft` is None, the file itself decides, by
    lines such as ``// maskwright: lexing = contextual`` (see `options`). Without such a line the
    default given here holds. A line ``// maskwright: length WS = ..8`` holds unless `restrict`
    bounds the same terminal.

    start : the start symbol. By default "start"; for grammars of the wheel, the one that reads a
        whole file.
    lexing : how texts are cut into lexemes; see `Grammar`. By default "contextual", as in Lark's
        LALR parser, but "longest" for grammars of the wheel.
    reserved : which literals stay reserved where the parser cannot take them; see `Grammar`. By
        default "none", as in Lark's LALR parser.
    layout : indentation. "auto" recognises Lark's convention (`%declare _INDENT _DEDENT` beside
        `_NEWLINE`, as in python.lark). An `Indenter` states it by names, a `Layout` by terminal
        numbers. Alternatives with a declared terminal that is not the layout's have no text and are
        left out, with a MaskwrightWarning.
    conflicts : what a parser does with conflicts; see `Grammar`. By default "all", but "shift"
        where one lexer could not serve all parses (`lr.splits`), with a MaskwrightWarning.
    soft : string literals that may also stand for a pattern that matches them, as `_` may be a
        name; see `soften`. By default none, but `_` for python.lark. Has no effect if lexing is
        "nfa", which takes a literal and a pattern alike.
    restrict : restrictions of style or safety, ``NAME`` or ``NAME=VALUE``, such as
        ``["no_comments", "imports=os,sys", "length:STRING=..80"]``; see `restrict`.

    Raises: UnknownNameError for a name that is neither a file nor a known grammar, for an argument
    that names no choice, and for a restriction that the grammar does not know; EmptyLanguageError
    if no finite text can be derived; GrammarError for everything else that is wrong in the file, in
    an argument or with a restriction; LimitError if the grammar would grow past a limit of
    `lark_files`, or is nested too deeply (NestingError).
    """
    found = find_source(source)
    if not found.text.strip():
        raise GrammarError(f'grammar {found.display} is empty; expected rules, such as start: "yes"')
    return parse_grammar(
        found.text,
        name=found.name,
        start=found.start if start is None else start,
        lexing=found.lexing if lexing is None else lexing,
        reserved=reserved,
        layout=layout,
        conflicts=conflicts,
        soft=found.soft if soft is None else soft,
        restrict=restrict,
        folder=found.folder,
        display=found.display,
    )


@on_own_stack
def parse_grammar(
    text: str,
    *,
    name: str = "<text>",
    start: str | None = None,
    lexing: Lexing | None = None,
    reserved: Reserved | None = None,
    layout: Layout | Indenter | Literal["auto"] | None = "auto",
    conflicts: Conflicts | None = None,
    soft: Sequence[str] | None = None,
    restrict: Sequence[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    display: str | None = None,
    parts: Sequence[str] = (),
    must_compile: bool = False,
) -> Grammar:
    """The grammar written in `text`, in Lark's grammar language.

    name : the grammar's name.
    start, lexing, reserved, layout, conflicts, soft, restrict : see `load_grammar`.
    folder : where `%import .relative` looks. Without it such imports are refused.
    display : what error messages call the text; `name` by default.
    parts : names of declared terminals that stand for parts of other languages (`mw.compose`).
    must_compile : whether to refuse soon what has too many string literals for any lexer.

    Raises: as `load_grammar`.

    >>> print(parse_grammar('start: "a" start "b" | "a" "b"'))
    <Grammar <text>: 2 terminals, 1 nonterminals, 2 rules, start 'start'>
    """
    if not isinstance(text, str):
        remedy = "; decode it: data.decode()" if isinstance(text, bytes | bytearray) else meant(text, "parse_grammar")
        raise GrammarError(f"the text of a grammar is of type {type(text).__name__}; expected a str{remedy}")
    need_type("name", name, str, "a str", GrammarError)
    for what, value in (("start", start), ("display", display)):
        need_type(what, value, (str, NoneType), "a str or None", GrammarError)
    need_type("folder", folder, (str, os.PathLike, NoneType), "a str, a Path or None", GrammarError)
    _need_choice("lexing", lexing, get_args(Lexing))
    _need_choice("choice of reserved literals", reserved, get_args(Reserved))
    _need_choice("way to treat conflicts", conflicts, get_args(Conflicts))
    if not (isinstance(layout, Layout | Indenter | NoneType) or (isinstance(layout, str) and layout == "auto")):
        raise GrammarError(f"layout is {clip(layout)}; expected 'auto', None, an Indenter or a Layout")
    if soft is not None:
        soft = as_strings("soft", soft, "a list of string literals, or None", GrammarError)
    restrict = () if restrict is None else as_tuple(restrict)
    files = GrammarFiles(display or name)
    main = os.path.join(os.fsdecode(folder) or os.curdir, "main.lark") if folder is not None else "main.lark"
    doing = "reading the text"
    try:
        to_read = files.add(files.main, defined(text, parts, files) if parts else text)
        options = read_options(files.texts[0], files.at)
        start, lexing = start or options.start, lexing or options.lexing or "contextual"
        soft = options.soft if soft is None else soft
        builder, _ = _larks_load(to_read, main, [files], False)
        doing = "compiling it to BNF"
        split_large(builder)
        check_sizes(builder, files)
        start = _find_start(start, builder, files)
        if must_compile and lexing != "nfa" and not restrict:
            check_texts(name, literals_used(builder, start), STATE_LIMIT)
        more = replacements(options.restrictions, restrict)
        keep = (*_layout_names(layout, builder), *refused_terminals(options.refused, builder, files), *more)
        terminal_defs, lark_rules, ignored = _compile(builder, (start, *more), keep)
    except MaskwrightError:
        raise
    except Exception as error:
        if (deep := recursion_error(error)) is not None:
            raise deep from None
        # Lark raises AssertionError, AttributeError, KeyError, ValueError and others
        raise translate(error, files, doing) from error
    terminals = _terminals(terminal_defs, builder, lark_rules, keep, files.texts[0])
    terminals = with_parts(terminals, parts, files, text)
    grammar = _to_bnf(name, files, start, terminals, lark_rules, ignored, lexing)
    replaced = {name for restriction in options.restrictions for name in restriction.replacements}
    unused = tuple(name for name in _unused(builder, terminals) if name not in replaced)
    conflicts, reserved = conflicts or options.conflicts, reserved or options.reserved or "none"
    grammar = replace(grammar, unused_terminals=unused, conflicts=conflicts or "all", reserved=reserved)
    grammar = with_verbatim(_with_layout(grammar, layout, files, bool(parts)), options.verbatim, files)
    if options.tabs and grammar.layout is not None:
        grammar = replace(grammar, layout=replace(grammar.layout, tabs="consistent"))
    check_refused(grammar, options.refused, files)
    plain = None
    if soft and lexing != "nfa":
        plain, grammar = grammar, soften(grammar, soft)
    check_lengths(options.lengths, grammar, builder, files)
    plain = None if plain is None else narrowed(plain, restrict, options.lengths, files)
    grammar = narrowed(grammar, restrict, options.lengths, files)
    grammar = join_equal(grammar if plain is None else replace(grammar, plain=plain))
    productive = productive_symbols(grammar)
    if grammar.start not in productive:
        raise EmptyLanguageError(_endless(grammar, productive, files), grammar)
    return grammar if conflicts is not None else _with_default_conflicts(grammar)


def _with_default_conflicts(grammar: Grammar) -> Grammar:
    """The grammar with what its parser does with conflicts where nobody says it."""
    found = default_conflicts(grammar)
    if found == grammar.conflicts:
        return grammar
    warnings.warn(
        f"grammar {grammar.name}: where its rules conflict, one lexer cannot serve all parses, so the parser shifts, as Lark's does, and "
        "some texts of the rules are refused; `maskwright lint` shows where. Say conflicts='shift' if that is meant, or make the rules "
        "differ earlier",
        MaskwrightWarning,
        stacklevel=3,
    )
    return replace(grammar, conflicts=found)


def _need_choice(what: str, value: object, choices: Sequence[str]) -> None:
    if value is not None and not (isinstance(value, str) and value in choices):
        shown = value if isinstance(value, str) else clip(value)
        raise UnknownNameError(f"no {what} is named {clip(value)}" + suggestion(shown, choices))


def _endless(grammar: Grammar, productive: frozenset[int], files: GrammarFiles) -> str:
    """Why no finite text can be derived: a message at the rule that must be corrected."""
    cycle = unproductive_cycle(grammar, productive)
    rules = [rule for symbol in cycle for rule in grammar.rules_of.get(symbol, ())]
    names = list(dict.fromkeys(rule_name(grammar.symbol_name(symbol)) for symbol in cycle))
    is_left = all(rule.rhs and rule.rhs[0] not in productive for rule in rules)
    what = "endless left recursion" if is_left else "endless recursion"
    start, chain = grammar.symbol_name(grammar.start), " -> ".join([*names, names[0]])
    if grammar.start in cycle:
        fault = f"start symbol {start!r} is unproductive: no finite text can be derived from it"
        name = rule_name(start)
    else:
        name = names[0]
        fault = f"rule {name!r} is unproductive: no finite text can be derived from it, nor from start symbol {start!r}, which needs it"
    message = f"{fault} ({what}: {chain}); give it an alternative that does not lead back to itself"
    return str(files.error(message, name))


class _Simplify(SimplifyRule_Visitor):
    """Lark's, which recurses over the groups of a rule; here, over those that multiply."""

    def expansion(self, tree: LarkTree[Any]) -> None:
        self._flatten(tree)
        for i, child in enumerate(tree.children):
            if isinstance(child, LarkTree) and child.data == "expansions" and len(set(child.children)) == 1:
                tree.children[i] = child.children[0]
        super().expansion(tree)


class _Builder(GrammarBuilder):
    """Lark's, which passes over what an imported file does not have; this one refuses it."""

    def do_import(self, dotted_path: Any, base_path: Any, aliases: Any, base_mangle: Any = None) -> None:
        files: Any = self.import_paths[0]
        number = len(files.texts)
        _larks_import(self, dotted_path, base_path, aliases, base_mangle)
        mangle = _globals["_get_mangle"]("__".join(dotted_path), aliases, base_mangle)
        for name in aliases:
            if mangle(name) not in self._definitions:
                known = list(offsets_of(files.texts[number]).definitions)
                message = f"cannot import {name}: {'.'.join(dotted_path)} has no such rule or terminal"
                raise files.error(message + suggestion(name, (), beside=known), name)


_globals: dict[str, Any] = {**vars(lark.load_grammar), "SimplifyRule_Visitor": _Simplify, "GrammarBuilder": _Builder}
_larks_compile: Any = FunctionType(LarkGrammar.compile.__code__, _globals)
_larks_import: Any = FunctionType(GrammarBuilder.do_import.__code__, _globals)
_larks_load: Any = FunctionType(lark.load_grammar.load_grammar.__code__, _globals)
"""Functions of Lark's, with `_Simplify` and `_Builder`."""


def _compile(
    builder: LarkGrammar, starts: Sequence[str], keep: Sequence[str]
) -> tuple[list[TerminalDef], list[LarkRule], Sequence[str]]:
    """Terminals, rules and ignored terminals, as Lark compiles them.

    Rules that no other rule uses are left out, and so are terminals that neither a rule nor
    `%ignore` uses.

    PERF: `builder.compile` would leave them out, but takes n passes over a chain of n such rules.

    starts : names of rules that stay.
    keep : names of terminals that stay.
    """
    every = [str(name) for name, params, _, _ in builder.rule_defs if not params]
    terminals, rules, ignored = _larks_compile(builder, every, "*")
    rules_of: dict[str, list[LarkRule]] = {}
    for rule in rules:
        rules_of.setdefault(rule.origin.name, []).append(rule)
    users = Counter(
        name
        for origin, group in rules_of.items()
        for name in {symbol.name for rule in group for symbol in rule.expansion if not symbol.is_term} - {origin}
    )
    users.update(starts)
    agenda = [name for name in rules_of if not users[name]]
    unused = set(agenda)
    for origin in agenda:  # grows while it is read
        group = rules_of[origin]
        for name in {symbol.name for rule in group for symbol in rule.expansion if not symbol.is_term} - {origin}:
            users[name] -= 1
            if not users[name] and name in rules_of:
                agenda.append(name)
                unused.add(name)
    rules = [rule for rule in rules if rule.origin.name not in unused]
    needed = {symbol.name for rule in rules for symbol in rule.expansion if symbol.is_term}.union(ignored, keep)
    return [terminal for terminal in terminals if terminal.name in needed], rules, ignored


def _find_start(start: str | None, builder: LarkGrammar, files: GrammarFiles) -> str:
    """The name of the start symbol. Raises GrammarError if there is no such rule."""
    hint = "; name the start symbol (start=..., --start)" if start is None else ""
    start = start or "start"
    names = [name for name, params, _, _ in builder.rule_defs if not params]
    if start in names:
        return start
    offered = ", ".join(difflib.get_close_matches(start[:200], names, n=3) or names[:8]) or "none, it defines no rules"
    if any(str(name) == start.upper() for name, _ in builder.term_defs):
        offered += f" ({start.upper()}, in upper case, is a terminal: write {start.lower()}: ... for a rule)"
    raise GrammarError(
        f"grammar {files.main} has no rule {short_name(start)}{hint}; rules that could be meant: {offered}"
    )


def _layout_names(layout: Layout | Indenter | str | None, builder: LarkGrammar) -> tuple[str, ...]:
    """Newline, indent and dedent: terminals that are kept even if no rule uses them."""
    if isinstance(layout, Indenter):
        return layout.newline, layout.indent, layout.dedent
    declared = {name for name, (tree, _) in builder.term_defs if tree is None}
    lexed = {name for name, (tree, _) in builder.term_defs if tree is not None} - set(builder.ignore)
    found = (names for names in _LAYOUT_NAMES if names[0] in lexed and declared.issuperset(names[1:]))
    return () if layout is None else next(found, ())


def _terminals(
    definitions: Sequence[TerminalDef], builder: LarkGrammar, rules: Sequence[LarkRule], keep: Iterable[str], text: str
) -> tuple[Terminal, ...]:
    """The terminals that Lark compiled, and the declared ones that rules or the caller need."""
    kept = {symbol.name for rule in rules for symbol in rule.expansion if symbol.is_term}.union(keep)
    found = []
    for definition in definitions:
        pattern = definition.pattern
        literal = pattern.value if isinstance(pattern, PatternStr) else None
        line, column = position_of(text, definition.name)
        if not line:
            line, column = position_of(text, pattern.raw or pattern.value)
        value = re.escape(literal) if literal is not None else pattern.value
        flags = "".join(sorted(pattern.flags))
        found.append(Terminal(str(definition.name), value, flags, literal, definition.priority, line, column))
    for name, (tree, _) in builder.term_defs:
        if tree is None and name in kept:
            line, column = position_of(text, name)
            found.append(Terminal(name=str(name), pattern=None, line=line, column=column))
    return tuple(found)


def _unused(builder: LarkGrammar, terminals: Sequence[Terminal]) -> tuple[str, ...]:
    """The terminals that the text defines, imports or declares and that nothing needs."""
    needed = {terminal.name for terminal in terminals}
    others = [(name, tree) for name, (tree, _) in builder.term_defs if name not in needed]
    trees = [tree for _, (tree, _) in builder.term_defs if others and tree is not None]
    inside = {id(part) for tree in trees for part in tree.iter_subtrees() if part is not tree}
    return tuple(str(name) for name, tree in others if id(tree) not in inside)


def _to_bnf(
    name: str,
    files: GrammarFiles,
    start: str,
    terminals: tuple[Terminal, ...],
    lark_rules: Sequence[LarkRule],
    ignored: Sequence[str],
    lexing: Lexing,
) -> Grammar:
    """The grammar over numbers; its layout and most options are added later."""
    nonterminals = tuple(dict.fromkeys(str(rule.origin.name) for rule in lark_rules))
    number: dict[tuple[bool, str], int] = {(True, terminal.name): i for i, terminal in enumerate(terminals)}
    number |= {(False, nonterminal): len(terminals) + i for i, nonterminal in enumerate(nonterminals)}
    for symbol in (symbol for rule in lark_rules for symbol in rule.expansion):
        if (symbol.is_term, symbol.name) not in number:
            raise files.error(f"{symbol.name!r} is a template; give it its arguments", symbol.name, use=True)
    rules = tuple(
        Rule(number[False, str(rule.origin.name)], tuple(number[each.is_term, each.name] for each in rule.expansion))
        for rule in lark_rules
    )
    return Grammar(
        name=name,
        terminals=terminals,
        nonterminals=nonterminals,
        rules=rules,
        start=number[False, start],
        ignored=frozenset(number[True, terminal] for terminal in ignored if (True, terminal) in number),
        lexing=lexing,
        text=files.texts[0],
    )


def _with_layout(
    grammar: Grammar, layout: Layout | Indenter | str | None, files: GrammarFiles, is_host: bool
) -> Grammar:
    """The grammar with its layout, without alternatives that need a terminal that nothing spells.

    Raises GrammarError if the two do not fit together, if no text is left, and in a host of parts,
    of which one may have been forgotten.
    """
    if isinstance(layout, Indenter):
        layout = _by_number(grammar, layout, files)
    elif isinstance(layout, str):
        layout = recognise_layout(grammar)
    members = () if layout is None else (layout.indent, layout.dedent)
    gone = {number for number, one in enumerate(grammar.terminals) if one.is_declared and number not in members}
    if gone:
        names = [grammar.terminals[number].name for number in sorted(gone)]
        what = "is declared but has no pattern, and is not inserted by a layout"
        remedy = "so no text can produce it; define it, or pass layout=Indenter(...)"
        if is_host or without_terminals(grammar, gone) is None:
            raise files.error(f"terminal {names[0]} {what}, {remedy}", names[0])
        shown = " and ".join([*names[:8], *([f"{len(names) - 8} more"] if len(names) > 8 else [])])
        each = "terminal" if len(names) == 1 else "each of"
        message = f"grammar {grammar.name}: alternatives are left out: {each} {shown} {what}, {remedy}"
        warnings.warn(message, MaskwrightWarning, stacklevel=3)
    with_layout = replace(grammar, layout=layout)  # checks the numbers
    roles = () if layout is None else zip((layout.newline, *members), ("newline", "indent", "dedent"), strict=True)
    for number, role in roles:
        name = grammar.terminals[number].name
        if number in grammar.ignored:
            raise files.error(f"the layout's {role} terminal {name} is ignored, so the layout would never see it", name)
        if grammar.terminals[number].is_declared == (role == "newline"):
            wanted = "have a pattern" if role == "newline" else "be declared with %declare: the layout inserts it"
            raise files.error(f"the layout's {role} terminal {name} must {wanted}", name)
    return (without_terminals(with_layout, gone) if gone else None) or with_layout


def _by_number(grammar: Grammar, indenter: Indenter, files: GrammarFiles) -> Layout:
    """A layout by terminal numbers. Raises GrammarError for an unknown name."""
    number = {t.literal: i for i, t in enumerate(grammar.terminals) if t.literal is not None} | dict(
        grammar.terminal_number
    )

    def find(name: str) -> int:
        if name not in number:
            hint = suggestion(name, (), beside=[terminal.name for terminal in grammar.terminals])
            raise files.error(f"the layout names {name!r}, which is not a terminal that the grammar uses{hint}", name)
        return number[name]

    brackets = tuple((find(opening), find(closing)) for opening, closing in indenter.brackets)
    newline, indent, dedent = map(find, (indenter.newline, indenter.indent, indenter.dedent))
    return Layout(newline, indent, dedent, brackets, indenter.tab_length, indenter.tabs)


def recognise_layout(grammar: Grammar) -> Layout | None:
    """The layout that Lark's convention gives a grammar; None if the grammar does not follow it.

    The convention is: `_INDENT` and `_DEDENT` are declared and `_NEWLINE` has a pattern (or
    NEWLINE, INDENT, DEDENT, or `_NL`, `_INDENT`, `_DEDENT`). The newline is not ignored. The
    brackets are those of ``()``, ``[]`` and ``{}`` that are literals of the grammar.
    """
    number = grammar.terminal_number
    by_literal = {t.literal: i for i, t in enumerate(grammar.terminals) if t.literal is not None}
    for newline, indent, dedent in _LAYOUT_NAMES:
        if newline in number and indent in number and dedent in number and number[newline] not in grammar.ignored:
            declared = [grammar.terminals[number[name]].is_declared for name in (newline, indent, dedent)]
            if declared != [False, True, True]:
                continue
            pairs = [pair for pair in _BRACKETS if pair[0] in by_literal and pair[1] in by_literal]
            brackets = tuple((by_literal[opening], by_literal[closing]) for opening, closing in pairs)
            return Layout(number[newline], number[indent], number[dedent], brackets)
    return None
