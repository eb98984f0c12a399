r"""Grammars in the peers' dialects, written from the `Grammar` that this package loads: python.lark without its indentation.

    python reports/bench/grammars/flatten.py [--check]        # writes python.lark, python_xgrammar.lark and python.kbnf beside this file

No peer loads python.lark as Lark ships it (templates, `%declare`, terminal priorities, look-arounds), and none has indentation.
What is changed; read with longest match, no change makes the language smaller, so that real files stay legal:

1. *Blocks are cut into pieces.* A rule ``if_stmt: IF test COLON suite elifs ELSE COLON suite`` becomes the pieces ``IF test COLON suite``,
   ``elif_`` and ``ELSE COLON suite``; a block that is opened contributes its header alone, and the start symbol is any sequence of
   pieces. INDENT and DEDENT are gone. (Making them empty instead would leave every open block's end to be guessed: an Earley
   parser then keeps an item for each, and slows down as the file grows.)
2. *Newlines* stay a terminal that ends statements. Every symbol inside brackets has a copy ``x_b`` in which newlines may follow each
   terminal, as Lark's `Indenter` drops them there. (Newlines as white space everywhere would be shorter, but both llguidance and xgrammar
   were slower on it in a trial.)
3. *Terminals*: STRING, LONG_STRING and DEC_NUMBER are written without look-arounds and lazy quantifiers; both forms are compiled here,
   and nothing is written if the languages differ. Priorities are dropped.
4. *Keywords*: in llguidance's dialect, which has a complement, NAME excludes them, so that ``if = 3`` stays illegal (``_`` is the
   exception: it is a name outside patterns). In xgrammar's and kbnf's a keyword may be a NAME.
5. xgrammar and kbnf have no lexer: adjacent words need no space there (``deffoo`` passes). In kbnf's each terminal takes the white
   space after it, and the text ends with a zero byte, since kbnf stops at the first text that is legal.

So they accept more than Python: any indentation, blocks in any order.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import maskwright as mw
from maskwright.analysis.grammar import Layout
from maskwright.analysis.lexing.terminals import compile_pattern, compile_terminal

HERE = Path(__file__).resolve().parent

REWRITTEN = {
    "STRING": r"""([ubfUBF]?[rR]?|[rR][ubfUBF])("([^"\\\n]|\\[^\n])*"|'([^'\\\n]|\\[^\n])*')""",
    "LONG_STRING": r"([ubfUBF]?[rR]?|[rR][ubfUBF])"
    r"""("{3}("{0,2}([^"\\]|\\(.|\n)))*"{3}|'{3}('{0,2}([^'\\]|\\(.|\n)))*'{3})""",
    "DEC_NUMBER": r"0(_?0)*|[1-9](_?[0-9])*",
}
"""Terminals whose look-arounds and lazy quantifiers no peer reads, as plain regular expressions of the same language."""

NEVER_A_KEYWORD = frozenset({"_"})

Alternative = tuple[str, ...]
Rules = dict[str, list[Alternative]]


@dataclass(frozen=True)
class Flat:
    """Rules over names: ``T_X`` is a terminal, anything else a rule.

    rules : name -> alternatives, the start symbol first.  patterns, literals : terminal -> what it matches.
    ignored : patterns of white space between terminals.
    """

    rules: Rules
    patterns: dict[str, str]
    literals: dict[str, str]
    ignored: tuple[str, ...]

    @property
    def keywords(self) -> list[str]:
        return sorted(text for text in self.literals.values() if text.isidentifier() and text not in NEVER_A_KEYWORD)


def terminal_name(grammar: mw.Grammar, number: int) -> str:
    return "T_" + grammar.terminals[number].name.strip("_").upper()


def plain_pattern(terminal: mw.Terminal) -> str:
    """The terminal's pattern without look-arounds; exits if the rewritten one has another language."""
    rewritten = REWRITTEN.get(terminal.name)
    if rewritten is None:
        return terminal.pattern or ""
    ours, theirs = compile_terminal(terminal), compile_pattern(rewritten)
    if ours.next_state.tobytes() != theirs.next_state.tobytes() or (ours.is_accepting != theirs.is_accepting).any():
        raise SystemExit(f"terminal {terminal.name}: {rewritten} is not the language of {terminal.pattern}")
    return rewritten


def pieces_of(grammar: mw.Grammar, layout: Layout) -> tuple[Rules, set[str]]:
    """The rules with every block cut into pieces (change 1), and the names that can contain a block."""
    opens = {layout.indent, layout.dedent}
    blocky = {rule.lhs for rule in grammar.rules if opens & set(rule.rhs)}
    while more := {rule.lhs for rule in grammar.rules if blocky & set(rule.rhs)} - blocky:
        blocky |= more

    def name(symbol: int) -> str:
        if not grammar.is_nonterminal(symbol):
            return terminal_name(grammar, symbol)
        return "r_" + re.sub(r"\W", "_", grammar.symbol_name(symbol)).lower()

    rules: Rules = {"start": [("piece",), ("start", "piece")], "piece": []}
    for rule in grammar.rules:
        if rule.lhs not in blocky:
            rules.setdefault(name(rule.lhs), []).append(tuple(map(name, rule.rhs)))
            continue
        segments: list[list[str]] = [[]]
        for symbol in rule.rhs:
            if symbol not in opens:
                segments[-1].append(name(symbol))
            if symbol in opens or symbol in blocky:
                segments.append([])
        kept = [tuple(segment) for segment in segments if segment]
        if kept:
            rules.setdefault(name(rule.lhs), []).append(kept[0])
            rules["piece"] += kept[1:]
    rules["piece"].append((name(grammar.start),))
    return rules, {name(symbol) for symbol in blocky}


def reduced(rules: Rules, blocky: set[str]) -> Rules:
    """The same language with one way to each piece: a piece that is one name of a block is written out; only reachable rules."""
    written: dict[Alternative, None] = {}
    seen: set[str] = set()
    todo = rules["piece"][::-1]
    while todo:
        alternative = todo.pop()
        if len(alternative) != 1 or alternative[0] not in blocky:
            written[alternative] = None
        elif alternative[0] not in seen:
            seen.add(alternative[0])
            todo += rules[alternative[0]][::-1]
    rules = {**rules, "piece": list(written)}
    found: Rules = {}
    reach = ["start"]
    while reach:
        symbol = reach.pop(0)
        if symbol not in found and symbol in rules:
            found[symbol] = list(dict.fromkeys(rules[symbol]))
            reach += [s for a in found[symbol] for s in a]
    return found


def with_newlines_in_brackets(rules: Rules, brackets: dict[str, str], newline: str) -> Rules:
    """Change 2: copies ``x_b`` of the symbols used between brackets, in which newlines may follow each terminal."""
    copies: Rules = {}
    wanted: list[str] = []
    closers = set(brackets.values())

    def copied(symbol: str) -> str:
        wanted.append(symbol)
        return symbol.lower() + "_b"

    def convert(alternative: Alternative, inside: bool) -> Alternative:
        converted, depth = [], int(inside)
        for symbol in alternative:
            depth -= symbol in closers
            depth += symbol in brackets
            converted.append(copied(symbol) if depth else symbol)
        if depth != inside:
            raise SystemExit(f"brackets do not match within {' '.join(alternative)}")
        return tuple(converted)

    result = {symbol: [convert(a, False) for a in alternatives] for symbol, alternatives in rules.items()}
    while wanted:
        symbol = wanted.pop(0)
        if (copy := symbol.lower() + "_b") not in copies:
            copies[copy] = [(symbol,), (symbol, "newlines")]
            if symbol in rules:
                copies[copy] = [convert(a, True) for a in rules[symbol]]
    return {**result, **copies, "newlines": [(newline,), ("newlines", newline)]}


def flatten(grammar: mw.Grammar) -> Flat:
    """The grammar after changes 1 to 3."""
    layout = grammar.layout
    if layout is None:
        raise SystemExit(f"{grammar.name} has no layout to flatten")
    rules = reduced(*pieces_of(grammar, layout))
    brackets = {terminal_name(grammar, a): terminal_name(grammar, b) for a, b in layout.brackets}
    rules = with_newlines_in_brackets(rules, brackets, terminal_name(grammar, layout.newline))
    used = {symbol for alternatives in rules.values() for a in alternatives for symbol in a} - set(rules)
    patterns, literals = {}, {}
    for number, terminal in enumerate(grammar.terminals):
        if (name := terminal_name(grammar, number)) in used:
            if terminal.literal is not None:
                literals[name] = terminal.literal
            else:
                patterns[name] = plain_pattern(terminal)
    # comments are part of NEWLINE, so they need not be ignored; without a lexer that chooses the longest match, they must not be
    ignored = [grammar.terminals[t].pattern or "" for t in sorted(grammar.ignored)]
    return Flat(rules, patterns, literals, tuple(pattern for pattern in ignored if not pattern.startswith("#")))


def escaped(pattern: str, delimiter: str) -> str:
    """The pattern as it stands between delimiters: control characters and the delimiter escaped."""
    pattern = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in pattern)
    return re.sub(rf"(?<!\\)((?:\\\\)*){delimiter}", rf"\1\\{delimiter}", pattern)


def lark_lines(flat: Flat, *, complement: bool) -> Iterator[str]:
    """llguidance's dialect, and without `complement` xgrammar's."""
    for lhs, alternatives in flat.rules.items():
        yield f"{lhs}: " + " | ".join(" ".join(a) if a else '""' for a in alternatives)
    for name, literal in flat.literals.items():
        yield f"{name}: {json.dumps(literal)}"
    for name, pattern in flat.patterns.items():
        without = f" & ~/{'|'.join(flat.keywords)}/" if complement and name == "T_NAME" else ""
        yield f"{name}: /{escaped(pattern, '/')}/{without}"
    for pattern in flat.ignored:
        yield f"%ignore /{escaped(pattern, '/')}/"


def kbnf_lines(flat: Flat) -> Iterator[str]:
    """kbnf's dialect (change 5)."""
    space = "|".join(flat.ignored)
    yield r'text ::= start #"\\x00";'
    for lhs, alternatives in flat.rules.items():
        yield f"{lhs} ::= " + " | ".join(" ".join(a) if a else "''" for a in alternatives) + ";"
    for name, pattern in {**{n: re.escape(t) for n, t in flat.literals.items()}, **flat.patterns}.items():
        quoted = (
            escaped(f"(?:{pattern})(?:{space})*", "/").replace("\\/", "/").replace("\\", "\\\\").replace('"', '\\"')
        )
        yield f'{name} ::= #"{quoted}";'


def files(grammar: mw.Grammar) -> dict[str, str]:
    """Name of a file -> its text."""
    flat = flatten(grammar)
    head = (
        f"{grammar.name} of Lark without indentation, written by flatten.py, which says what is changed. Do not edit."
    )
    return {
        "python.lark": "\n".join([f"// {head}", *lark_lines(flat, complement=True), ""]),
        "python_xgrammar.lark": "\n".join([f"// {head}", *lark_lines(flat, complement=False), ""]),
        "python.kbnf": "\n".join([f"(* {head} *)", *kbnf_lines(flat), ""]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a file is not what would be written"
    )
    arguments = parser.parse_args()
    for name, text in files(mw.load_grammar("lark:python")).items():
        path = HERE / name
        if not arguments.check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            raise SystemExit(f"{name} is not what flatten.py writes; run it without --check")


if __name__ == "__main__":
    main()
