"""`.lark` files and texts to a `Grammar`, through Lark's own loader.

Templates, imports, `%declare`, `%override`, `%extend`, priorities, aliases, inlined rules, anonymous terminals, flags and EBNF operators
mean what they mean to Lark, because Lark's `GrammarBuilder` compiles them to BNF. No parser is built: any context-free grammar loads.
"""

from __future__ import annotations

import difflib
import os
import pkgutil
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from lark import exceptions as lark_exceptions
from lark.grammar import Rule as LarkRule
from lark.lexer import PatternStr, TerminalDef
from lark.load_grammar import load_grammar as lark_load_grammar

from maskwright.analysis.errors import GrammarError, UnknownNameError
from maskwright.analysis.grammar.grammar import Grammar, Layout, Lexing, Rule, Terminal
from maskwright.analysis.grammar.normalise import productive_symbols

LARK_WHEEL_STARTS = {"python": "file_input", "lark": "start"}
"""The grammars of Lark's own wheel that have rules, with the start symbol that reads a whole file."""

_LAYOUT_NAMES = (("_NEWLINE", "_INDENT", "_DEDENT"), ("NEWLINE", "INDENT", "DEDENT"), ("_NL", "_INDENT", "_DEDENT"))
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))


def load_grammar(
    source: str | os.PathLike[str],
    *,
    start: str | None = None,
    lexing: Lexing = "nfa",
    layout: Layout | Literal["auto"] | None = "auto",
) -> Grammar:
    """The grammar of a `.lark` file, or of a name: ``"lark:python"`` is `python.lark` of Lark's own wheel.

    start : the start symbol; by default ``start``, or the one that reads a whole file for the grammars of Lark's wheel.
    lexing : the lexer semantics; ``"nfa"`` is the one that stores are built for in this version.
    layout : indentation. ``"auto"`` recognises Lark's convention (`%declare _INDENT _DEDENT` beside `_NEWLINE`, as in python.lark);
        a `Layout` states it; None is only for grammars without declared terminals.

    Raises UnknownNameError for a name that is neither a file nor a known grammar, GrammarError for everything that is wrong in the file.
    """
    text_source = os.fspath(source)
    if text_source.startswith("lark:"):
        name = text_source.removeprefix("lark:")
        if name not in LARK_WHEEL_STARTS:
            raise UnknownNameError(f"no grammar {text_source!r} in Lark's wheel" + _nearest(text_source, _known_names()))
        data = pkgutil.get_data("lark", f"grammars/{name}.lark")
        if data is None:
            raise GrammarError(f"Lark's wheel holds no grammars/{name}.lark; reinstall lark")
        start = start or LARK_WHEEL_STARTS[name]
        return parse_grammar(data.decode("utf-8"), name=f"{name}.lark", start=start, lexing=lexing, layout=layout)
    path = Path(source)
    if not path.exists():
        looks_like_file = path.suffix or len(path.parts) > 1
        what = f"grammar file {text_source!r} does not exist" if looks_like_file else f"no grammar is named {text_source!r}"
        siblings = [str(p) for p in path.parent.glob("*.lark")] if path.parent.is_dir() else []
        raise UnknownNameError(what + _nearest(text_source, [*_known_names(), *siblings]))
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise GrammarError(
            f"grammar file {text_source!r} is not UTF-8: byte {error.object[error.start]:#04x} at offset {error.start}; "
            "save it as UTF-8"
        ) from error
    except OSError as error:
        raise GrammarError(f"grammar file {text_source!r} cannot be read: {error.strerror or error}") from error
    return parse_grammar(
        text, name=path.name, start=start, lexing=lexing, layout=layout, folder=path.parent, display=text_source
    )


def parse_grammar(
    text: str,
    *,
    name: str = "<text>",
    start: str | None = None,
    lexing: Lexing = "nfa",
    layout: Layout | Literal["auto"] | None = "auto",
    folder: str | os.PathLike[str] | None = None,
    display: str | None = None,
) -> Grammar:
    """The grammar written in `text`, in Lark's grammar language.

    folder : where `%import .relative` looks. display : what error messages call the text; `name` by default.

    >>> print(parse_grammar('start: "a" start "b" | "a" "b"'))
    <Grammar <text>: 2 terminals, 1 nonterminals, 2 rules, start 'start'>
    """
    shown = display or name
    if lexing not in ("longest", "contextual", "nfa"):
        raise UnknownNameError(f"no lexing is named {lexing!r}" + _nearest(str(lexing), ["longest", "contextual", "nfa"]))
    if "\x00" in text:
        raise GrammarError(f"grammar {shown} holds a NUL character: it is not a text file")
    try:
        source_name = str(Path(folder) / name) if folder is not None else name
        builder, _ = lark_load_grammar(text, source_name, [], False)
        declared = [term for term, (tree, _) in builder.term_defs if tree is None]
        rule_names = [rule_name for rule_name, parameters, _, _ in builder.rule_defs if not parameters]
        start = _find_start(start, rule_names, shown)
        terminal_defs, lark_rules, ignored = builder.compile([start], set(_layout_newlines(declared)))
    except lark_exceptions.LarkError as error:
        raise GrammarError(_with_position(str(error).strip(), text, shown)) from error
    except OSError as error:
        raise GrammarError(f"grammar {shown}: %import finds no file {error.filename!r}") from error
    except RecursionError as error:
        raise GrammarError(f"grammar {shown} is nested too deeply for Lark's loader; split its longest rule") from error
    terminals = _terminals(terminal_defs, declared, lark_rules, text)
    grammar = _to_bnf(name, text, start, terminals, lark_rules, ignored, lexing)
    grammar = _with_layout(grammar, layout, shown)
    _check(grammar, shown)
    return grammar


def _known_names() -> list[str]:
    return [f"lark:{name}" for name in sorted(LARK_WHEEL_STARTS)]


def _nearest(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, known, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return f"{hint} (known: {', '.join(known)}; or a path to a .lark file)" if known else hint


def _find_start(start: str | None, rule_names: Sequence[str], shown: str) -> str:
    if start is None:
        start = "start"
        hint = "; name the start symbol (start=..., --start)"
    else:
        hint = ""
    if start in rule_names:
        return start
    close = difflib.get_close_matches(start, rule_names, n=3)
    offered = ", ".join(close or list(rule_names)[:8]) or "none"
    raise GrammarError(f"grammar {shown} has no rule {start!r}{hint}; rules that could be meant: {offered}")


def _layout_newlines(declared: Sequence[str]) -> list[str]:
    return [newline for newline, indent, dedent in _LAYOUT_NAMES if indent in declared and dedent in declared]


def position_of(text: str, pattern: str) -> tuple[int, int]:
    """Line and column, from 1, of the first match of a regular expression outside `//` comments; (0, 0) if there is none."""
    for number, line in enumerate(text.splitlines(), start=1):
        match = re.search(pattern, line)
        comment = line.find("//")
        if match and not (0 <= comment < match.start() and line.lstrip().startswith("//")):
            return number, match.start() + 1
    return 0, 0


def caret(text: str, line: int, column: int) -> str:
    """The line with a caret under the column, indented."""
    lines = text.splitlines()
    if not 1 <= line <= len(lines):
        return ""
    shown = lines[line - 1].replace("\t", " ")
    return f"\n    {shown}\n    {' ' * (column - 1)}^"


def _with_position(message: str, text: str, shown: str) -> str:
    """Lark's message, with file:line:col and a caret where Lark gives none."""
    given = re.search(r"line (\d+),? column (\d+)", message)
    if given:
        return f"{shown}:{given.group(1)}:{given.group(2)}: {message}"
    for quoted in re.findall(r"'([A-Za-z_]\w*)'|\b([A-Z_][A-Z0-9_]+|[a-z_]\w*_\w*)\b", message):
        symbol = quoted[0] or quoted[1]
        line, column = position_of(text, rf"(?<!\w){re.escape(symbol)}(?!\w)")
        if line:
            return f"{shown}:{line}:{column}: {message}{caret(text, line, column)}"
    return f"{shown}: {message}"


def _terminals(
    definitions: Sequence[TerminalDef], declared: Sequence[str], rules: Sequence[LarkRule], text: str
) -> tuple[Terminal, ...]:
    used = {symbol.name for rule in rules for symbol in rule.expansion if symbol.is_term}
    found = []
    for definition in definitions:
        literal = definition.pattern.value if isinstance(definition.pattern, PatternStr) else None
        line, column = position_of(text, rf"^\s*{re.escape(definition.name)}\s*(\.-?\d+)?\s*:")
        if not line and definition.pattern.raw:
            line, column = position_of(text, re.escape(definition.pattern.raw))
        found.append(
            Terminal(
                name=definition.name,
                pattern=definition.pattern.value if literal is None else re.escape(literal),
                flags="".join(sorted(definition.pattern.flags)),
                literal=literal,
                priority=definition.priority,
                line=line,
                column=column,
            )
        )
    for name in declared:
        if name in used:
            line, column = position_of(text, rf"%declare\b.*\b{re.escape(name)}\b")
            found.append(Terminal(name=name, pattern=None, line=line, column=column))
    return tuple(found)


def _to_bnf(
    name: str,
    text: str,
    start: str,
    terminals: tuple[Terminal, ...],
    lark_rules: Sequence[LarkRule],
    ignored: Sequence[str],
    lexing: Lexing,
) -> Grammar:
    nonterminals = tuple(dict.fromkeys(str(rule.origin.name) for rule in lark_rules))
    number: dict[tuple[bool, str], int] = {(True, terminal.name): i for i, terminal in enumerate(terminals)}
    number |= {(False, nonterminal): len(terminals) + i for i, nonterminal in enumerate(nonterminals)}
    rules = tuple(
        Rule(number[False, str(rule.origin.name)], tuple(number[symbol.is_term, symbol.name] for symbol in rule.expansion))
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
        text=text,
    )


def _with_layout(grammar: Grammar, layout: Layout | Literal["auto"] | None, shown: str) -> Grammar:
    declared = [terminal for terminal in grammar.terminals if terminal.is_declared]
    if layout == "auto":
        layout = recognise_layout(grammar)
    members = () if layout is None else (layout.indent, layout.dedent)
    for terminal in declared:
        if grammar.terminal_number[terminal.name] not in members:
            raise GrammarError(
                f"{shown}:{terminal.line}:{terminal.column}: terminal {terminal.name} is declared but has no pattern, and is not "
                "the indent or dedent terminal of a layout, so no text can produce it; define it, or pass layout=Layout(...)"
                + caret(grammar.text, terminal.line, terminal.column)
            )
    if layout is None:
        return grammar
    if grammar.terminals[layout.newline].is_declared:
        raise GrammarError(f"grammar {shown}: the layout's newline terminal needs a pattern")
    return Grammar(
        name=grammar.name,
        terminals=grammar.terminals,
        nonterminals=grammar.nonterminals,
        rules=grammar.rules,
        start=grammar.start,
        ignored=grammar.ignored,
        layout=layout,
        lexing=grammar.lexing,
        text=grammar.text,
    )


def recognise_layout(grammar: Grammar) -> Layout | None:
    """Lark's convention for indentation: declared `_INDENT` and `_DEDENT` beside `_NEWLINE`; brackets are ``()``, ``[]``, ``{}``."""
    number = grammar.terminal_number
    by_literal = {t.literal: i for i, t in enumerate(grammar.terminals) if t.literal is not None}
    for newline, indent, dedent in _LAYOUT_NAMES:
        if newline in number and indent in number and dedent in number:
            if not all(grammar.terminals[number[name]].is_declared for name in (indent, dedent)):
                continue
            brackets = tuple(
                (by_literal[opening], by_literal[closing])
                for opening, closing in _BRACKETS
                if opening in by_literal and closing in by_literal
            )
            return Layout(number[newline], number[indent], number[dedent], brackets)
    return None


def _check(grammar: Grammar, shown: str) -> None:
    if grammar.start not in productive_symbols(grammar):
        start = grammar.symbol_name(grammar.start)
        line, column = position_of(grammar.text, rf"^\s*[!?]*{re.escape(start)}\s*(\.-?\d+)?\s*:")
        raise GrammarError(
            f"{shown}:{line}:{column}: start symbol {start!r} is unproductive: no finite text can be derived from it; "
            f"give it an alternative that does not lead back to itself{caret(grammar.text, line, column)}"
        )
