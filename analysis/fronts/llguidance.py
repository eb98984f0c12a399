r"""llguidance's Lark dialect: a text to a `Grammar`.

Rules have lower-case names and are context-free; terminals have upper-case names, and texts and
patterns in rules are terminals too. A terminal is matched as a whole, by Rust's regular expressions
(`rust_regex`), with ``&`` for and, ``~`` for not, and ``%regex {"substring_...": ...}``. Patterns
cannot be lazy.

llguidance lexes by context: of the terminals that its parser can take, and of what is ignored, the
longest match counts. Our contextual lexing does the same; these points are made alike:

- where a text is a lexeme of several terminals, all of them are followed. We lex it as one
  terminal, which stands in the rules for each of them; for two terminals of which neither has all
  texts of the other, a terminal of their common texts is made.
- what is ignored wins over a terminal with the same text. It cannot begin a text, unless
  ``%llguidance {"allow_initial_skip": true}`` says so; nor does it stand behind a text to which
  nothing can be added. So it is a terminal of the rules here.

Three differences remain:

- Where a lexeme fails behind a place where it could have ended, llguidance refuses the text, and we
  back up, as Lark does: with ``"." | ".."`` and ``"..."`` the text ``..x`` has two lexemes here.
- What llguidance's parser can take is known to it exactly. We know it as an LALR parser does, which
  may let more terminals compete.
- That nothing can be added to a text must be provable from the rules (`prefix_free`). Else what is
  ignored may stand at the end of a text here.

Source: llguidance, docs/syntax.md, parser/src/lark and parser/src/earley/lexer.rs.
"""

from __future__ import annotations

from collections.abc import Mapping

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import EmptyLanguageError, GrammarError, LimitError
from maskwright.analysis.fronts.assembly import assemble, without_unused
from maskwright.analysis.fronts.expressions import Expr, choice, non_empty, reference, repetition, sequence
from maskwright.analysis.fronts.llguidance_syntax import Alternatives, Atom, Document, Element, read_document
from maskwright.analysis.fronts.llguidance_terminals import Terminals
from maskwright.analysis.fronts.lowering import TERMINAL, lower
from maskwright.analysis.fronts.overlaps import disjoint
from maskwright.analysis.fronts.prefix_free import is_prefix_free
from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.grammar.grammar import Grammar, Lexing, Rule, Terminal
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.analysis.grammar.normalise import productive_symbols, reduce
from maskwright.analysis.lr.splits import default_conflicts


def parse_llguidance(text: str, name: str = "<llguidance>", lexing: Lexing = "contextual") -> Grammar:
    r"""The grammar of a text in llguidance's Lark dialect.

    name : the grammar's name, which error messages show.
    lexing : "contextual", as in llguidance; or "longest", by which all terminals compete
        everywhere. Then ``intx`` is one name even where only ``int`` could come.

    Raises: GrammarError, with the place, for bad syntax, an undefined name, a name defined twice,
    and for what cannot be said here: attributes of rules, parametric rules, special tokens, other
    grammars (``@name``, ``%json``, ``%lark``), look-arounds; GrammarError if several parses of one
    text would need different lexers; EmptyLanguageError if `start` has no finite text; LimitError
    if repetitions unfold to too many rules, or terminals to too many states.

    >>> print(parse_llguidance('start: "a" start | /[0-9]+/'))
    <Grammar <llguidance>: 2 terminals, 1 nonterminals, 2 rules, start 'start'>
    """
    reader = Reader(text, name)
    document = read_document(reader)
    if lexing not in ("contextual", "longest"):
        raise GrammarError(f"lexing is {clip(lexing)}; expected 'contextual' or 'longest'")
    try:
        return _compile(reader, document, lexing)
    except RecursionError as error:
        raise LimitError(f"grammar {name}: its terminals are nested too deeply in each other") from error


def _compile(reader: Reader, document: Document, lexing: Lexing) -> Grammar:
    if "start" not in document.rules:
        raise reader.error("there is no rule 'start', where the texts begin", 0)
    terminals = Terminals(reader, document)
    rules = _Rules(reader, document, terminals)
    used = rules.reachable("start")
    ignored = choice(non_empty(terminals.alternatives(one.body)) for one in document.ignored)
    expressions = list(rules.terminals.values())
    names = list(rules.terminals)
    if not ignored.is_never:
        expressions.append(ignored)
        names.append("%ignore")
    skip = None if ignored.is_never else len(expressions) - 1
    found = disjoint(expressions, skip, names, reader.name)
    lowered = lower(used, frozenset(), reader.name)
    lexical = [
        Terminal(
            _terminal_name(number, names, expr), str(expr.pattern), literal=expr.text, priority=found.priorities[number]
        )
        for number, expr in enumerate(found.terminals)
    ]
    alternatives = {TERMINAL + key: found.alternatives[i] for i, key in enumerate(rules.terminals)}
    grammar = assemble(lowered, lexical, alternatives, lexing, reader.name, reader.text)
    if grammar.start not in productive_symbols(grammar):
        raise EmptyLanguageError(
            str(
                reader.error(
                    "rule 'start' has no finite text: its rules lead back to themselves", document.rules["start"].at
                )
            ),
            grammar,
        )
    grammar = reduce(grammar)
    if skip is not None:
        grammar = _with_skip(grammar, skip, document.initial_skip)
    grammar = without_unused(grammar)
    conflicts = default_conflicts(grammar)
    if conflicts != "all":
        raise GrammarError(
            f"grammar {reader.name}: where it is ambiguous, parses of one text stand where different terminals compete; "
            "llguidance follows them all, and one lexer here cannot; left-factor the rules, or read it with lexing='longest', by which a "
            "keyword ends where a name would"
        )
    return grammar


def _terminal_name(number: int, names: list[str], expr: Expr) -> str:
    name = names[number] if number < len(names) else ""
    return name if name and name[0] != '"' and not name.startswith("/") else f"__{number}"


def _with_skip(grammar: Grammar, skip: int, initial: bool) -> Grammar:
    """The grammar with a terminal that is ignored in its rules, behind each other terminal.

    grammar : reduced. initial : whether it may also begin a text.

    Where no sentence is the beginning of another one, it cannot end a text. Then the symbols that
    can stand last have a second nonterminal, whose last terminal has nothing behind it.
    """
    n_terminals = grammar.n_terminals
    names = [*grammar.nonterminals, "%ignore"]
    between = n_terminals + len(names) - 1
    rules: list[Rule] = []
    copies: dict[int, int] = {}

    def padded(symbols: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(new for s in symbols for new in ((s, between) if s < n_terminals else (s,)))

    rules += [Rule(rule.lhs, padded(rule.rhs)) for rule in grammar.rules]
    rules += [Rule(between, ()), Rule(between, (between, skip))]
    start = grammar.start
    if is_prefix_free(grammar):
        agenda = [grammar.start]
        for lhs in agenda:  # grows while it is read
            copies[lhs] = n_terminals + len(names)
            names.append(f"{grammar.symbol_name(lhs)} (last)")
            for rule in grammar.rules_of[lhs]:
                if rule.rhs[-1] >= n_terminals and rule.rhs[-1] not in agenda:
                    agenda.append(rule.rhs[-1])
        for lhs, copy in copies.items():
            for rule in grammar.rules_of[lhs]:
                last = rule.rhs[-1]
                rules.append(Rule(copy, (*padded(rule.rhs[:-1]), copies.get(last, last))))
        start = copies[start]
    if initial:
        names.append("whole")
        rules.append(Rule(n_terminals + len(names) - 1, (between, start)))
        start = n_terminals + len(names) - 1
    return reduce(grammar.with_rules(tuple(names), tuple(rules), start))


class _Rules:
    """The rules as expressions over terminals.

    terminals : the name or source of each terminal that a rule uses -> its expression.
    """

    def __init__(self, reader: Reader, document: Document, terminals: Terminals) -> None:
        self.reader, self.document, self.named = reader, document, terminals
        self.terminals: dict[str, Expr] = {}
        self.by_pattern: dict[str, str] = {}

    def reachable(self, start: str) -> Mapping[str, Expr]:
        """The rules that a rule leads to, itself first."""
        found: dict[str, Expr] = {}
        self.agenda = {start: None}
        while len(found) < len(self.agenda):
            name = list(self.agenda)[len(found)]
            found[name] = self.alternatives(self.document.rules[name].body)
        return found

    def alternatives(self, body: Alternatives) -> Expr:
        """The expression of a body."""
        options = []
        for conjuncts in body:
            if len(conjuncts) > 1:
                at = conjuncts[1][0].atom.at if conjuncts[1] else None
                raise self.reader.error("& joins terminals only; give this definition a name in upper case", at)
            options.append(sequence(self.element(element) for element in conjuncts[0]))
        return choice(options)

    def element(self, element: Element) -> Expr:
        """The expression of an element."""
        return repetition(self.atom(element.atom), element.least, element.most)

    def atom(self, atom: Atom) -> Expr:
        """The expression of an atom; whatever is no group and no rule is a terminal."""
        if atom.kind == "group":
            return self.alternatives(atom.inner)
        if atom.kind == "maybe":
            return repetition(self.alternatives(atom.inner), 0, 1)
        if atom.kind == "name" and atom.text in self.document.rules:
            self.agenda.setdefault(atom.text)
            return reference(atom.text, atom.at)
        if atom.kind == "name" and not self.named.knows(atom.text):
            known = [*self.document.rules, *self.document.terminals, *self.document.imports]
            raise self.reader.error(f"{atom.text!r} is not defined{suggestion(atom.text, known[:2000])}", atom.at)
        expr = self.named.atom(atom)
        filled = non_empty(expr)
        if filled.is_never:
            return filled if not expr.is_nullable else sequence(())
        key = self.by_pattern.get(str(filled.pattern))
        if key is None:
            key = atom.text if atom.kind == "name" else f'"{filled.pattern}"' if filled.text else f"/{filled.pattern}/"
            self.by_pattern[str(filled.pattern)] = key
            self.terminals[key] = filled
        found = reference(TERMINAL + key, atom.at)
        return repetition(found, 0, 1) if expr.is_nullable else found
