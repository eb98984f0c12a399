"""Lexing, layout and masks by brute force: byte strings, words and Earley, from the definitions and from no fast code.

A *lexeme* is a terminal and its bytes so far. A text is read token by token; inside a token the longest match decides
where a lexeme ends, at a token's end every possibility stays open (`maskwright.maskstore.entries.walk` states the rule). A
`Reading` is one such possibility, with the word of terminals that the parser has seen. A token is allowed if some
reading of it is a viable prefix by Earley.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from grammars import make_grammar, random_grammar
from naive import Column, Earley, Word, productive

from maskwright.analysis.grammar import Grammar, Layout, Rule, Terminal
from maskwright.analysis.lexing.terminals import compile_terminals
from maskwright.analysis.loading import load_grammar
from maskwright.analysis.regex.dfa import Dfa
from maskwright.maskstore.tokens.events import ABSOLUTE, PLAIN, EventCodes, Move
from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary
from maskwright.stores.build import compile_entry_store
from maskwright.stores.entry_store import EntryStore

Lexeme: TypeAlias = tuple[int, bytes]
Lexemes: TypeAlias = tuple[Lexeme, ...]
Symbols: TypeAlias = tuple[int, ...]
Remainders: TypeAlias = frozenset[Word]


class Lexer:
    """The `nfa` lexer semantics over byte strings. The last of the lexemes is under way, the others have ended."""

    def __init__(self, grammar: Grammar) -> None:
        self.layout = grammar.layout
        self.automata: dict[int, Dfa] = {t: dfa for t, dfa in enumerate(compile_terminals(grammar)) if dfa is not None}
        self.fresh = lru_cache(maxsize=None)(self._fresh)

    def is_alive(self, lexeme: Lexeme) -> bool:
        return self.automata[lexeme[0]].run(lexeme[1]) >= 0

    def is_complete(self, lexeme: Lexeme) -> bool:
        return self.automata[lexeme[0]].matches(lexeme[1])

    def is_newline(self, terminal: int) -> bool:
        return self.layout is not None and terminal == self.layout.newline

    def can_end(self, lexeme: Lexeme) -> bool:
        """A lexeme ends where its terminal matches; a newline needs a line feed too, or it would have no column."""
        return self.is_complete(lexeme) and not (self.is_newline(lexeme[0]) and b"\n" not in lexeme[1])

    def column(self, text: bytes) -> int:
        """Columns of the spaces and tabs after the last line feed, or of all of them if there is none; as Lark counts them."""
        assert self.layout is not None and self.layout.tabs == "lark"
        last = text.split(b"\n")[-1]
        return last.count(b" ") + self.layout.tab_length * last.count(b"\t")

    def move(self, codes: EventCodes, piece: bytes) -> int:
        """What the piece of a newline does to its column, by number."""
        columns = self.column(piece)
        return codes.moves.number(Move(ABSOLUTE if b"\n" in piece else PLAIN, columns, columns))

    def _fresh(self, text: bytes) -> frozenset[Lexemes]:
        """All ways to read a text at whose start a lexeme begins."""
        found: set[Lexemes] = {((t, text),) for t in self.automata if self.is_alive((t, text))}
        ends = [n for n in range(1, len(text) + 1) if any(self.is_complete((t, text[:n])) for t in self.automata)]
        if ends and max(ends) < len(text):
            head, rest = text[: max(ends)], text[max(ends) :]
            found |= {((t, head), *more) for t in self.automata if self.can_end((t, head)) for more in self.fresh(rest)}
        return frozenset(found)

    def after(self, lexeme: Lexeme | None, token: bytes, *, anyhow: bool = False) -> frozenset[Lexemes]:
        """All ways to read a token while a lexeme is under way (None: at the text's start); it comes first in each.

        anyhow : the lexeme may have had a line feed before what is given of it.
        """
        if lexeme is None:
            return self.fresh(token)
        terminal, text = lexeme
        found: set[Lexemes] = {((terminal, text + token),)} if self.is_alive((terminal, text + token)) else set()
        ends = [n for n in range(len(token) + 1) if self.is_complete((terminal, text + token[:n]))]
        if ends and max(ends) < len(token):
            whole = (terminal, text + token[: max(ends)])
            if anyhow or self.can_end(whole):
                found |= {(whole, *more) for more in self.fresh(token[max(ends) :])}
        return frozenset(found)

    def symbols(self, codes: EventCodes, before: Lexeme | None, lexemes: Lexemes) -> Symbols:
        """The terminals begun in a token and layout's events, as the walk writes them."""
        found: list[int] = []
        begun = lexemes
        if before is not None:
            first, begun = lexemes[0], lexemes[1:]
            if begun and self.is_newline(first[0]):
                found.append(codes.leave(self.move(codes, first[1][len(before[1]) :])))
        for terminal, text in begun[:-1]:
            found.append(codes.newline_at(self.move(codes, text)) if self.is_newline(terminal) else terminal)
        return (*found, *(terminal for terminal, _ in begun[-1:]))


def texts_of_states(dfa: Dfa) -> dict[int, bytes]:
    """For each state that a non-empty text reaches, a shortest such text."""
    found: dict[int, bytes] = {}
    agenda = [(0, b"")]
    for state, text in agenda:  # grows while it is read
        for byte in np.flatnonzero(dfa.next_state[state] >= 0).tolist():
            target = int(dfa.next_state[state, byte])
            if target not in found:
                found[target] = text + bytes([byte])
                agenda.append((target, found[target]))
    return found


@dataclass(frozen=True)
class Reading:
    """One way to read a text.

    word : what the parser has seen. indents : open columns, outermost (0) first. depth : open brackets. lexeme : the
    one under way; its terminal is in the word already, unless it is ignored or dropped.
    """

    word: Word = ()
    indents: tuple[int, ...] = (0,)
    depth: int = 0
    lexeme: Lexeme | None = None


class Decoder:
    """All readings of a text, token by token."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary) -> None:
        self.grammar = grammar
        self.layout = grammar.layout
        self.vocabulary = vocabulary
        self.lexer = Lexer(grammar)
        self._earley = Earley(grammar)
        self._columns: dict[Word, tuple[Column, ...]] = {(): (self._earley.start,)}
        self.readings: frozenset[Reading] = frozenset([Reading()])

    def is_prefix(self, word: Word) -> bool:
        return bool(self._read(word)[-1])

    def _read(self, word: Word) -> tuple[Column, ...]:
        if word not in self._columns:
            before = self._read(word[:-1])
            self._columns[word] = self._earley.read(before, word[-1]) if before[-1] else before
        return self._columns[word]

    def begin(self, reading: Reading, terminal: int) -> Reading:
        """A lexeme begins: the parser sees its terminal, unless it is ignored, or a newline inside brackets."""
        if terminal in self.grammar.ignored or (self.lexer.is_newline(terminal) and reading.depth):
            return reading
        depth = reading.depth
        if self.layout is not None:
            depth += sum(terminal == opening for opening, _ in self.layout.brackets)
            depth = max(0, depth - sum(terminal == closing for _, closing in self.layout.brackets))
        return replace(reading, word=(*reading.word, terminal), depth=depth)

    def end(self, reading: Reading, lexeme: Lexeme) -> Reading | None:
        """A lexeme ends: if it is a newline outside brackets, its column opens a block, closes some, or fits none."""
        if self.layout is None or lexeme[0] != self.layout.newline or reading.depth:
            return reading
        column = self.lexer.column(lexeme[1])
        word, indents = reading.word, reading.indents
        if column > indents[-1]:
            return replace(reading, word=(*word, self.layout.indent), indents=(*indents, column))
        if column not in indents:
            return None
        closed = len(indents) - 1 - indents.index(column)
        kept = indents[: len(indents) - closed]
        return replace(reading, word=word + (self.layout.dedent,) * closed, indents=kept)

    def after(self, token: bytes) -> frozenset[Reading]:
        """The readings after one more token; none if it is not legal."""
        paths = ((before, path) for before in self.readings for path in self.lexer.after(before.lexeme, token))
        found = {self.follow(before, path) for before, path in paths}
        return frozenset(reading for reading in found if reading is not None)

    def follow(self, before: Reading, lexemes: Lexemes) -> Reading | None:
        """The reading after some lexemes, the first of which is the one under way, if there is one."""
        reading = before if before.lexeme is not None else self.begin(before, lexemes[0][0])
        for ended, begun in pairwise(lexemes):
            after = self.end(reading, ended)
            if after is None:
                return None
            reading = self.begin(after, begun[0])
        return replace(reading, lexeme=lexemes[-1]) if self.is_prefix(reading.word) else None

    def is_accepting(self) -> bool:
        """Whether some reading is a whole text: its lexeme is complete, and with open blocks closed it is a word."""
        for reading in self.readings:
            ended: Reading | None = reading
            if reading.lexeme is not None:
                is_dropped = self.lexer.is_newline(reading.lexeme[0]) and reading.depth
                complete = self.lexer.is_complete if is_dropped else self.lexer.can_end
                ended = self.end(reading, reading.lexeme) if complete(reading.lexeme) else None
            if ended is None:
                continue
            dedents = () if self.layout is None else (self.layout.dedent,) * (len(ended.indents) - 1)
            columns = self._read(ended.word + dedents)
            if columns[-1] and self._earley.is_word(columns):
                return True
        return False

    def allowed(self) -> set[int]:
        """The ids of the tokens that are legal here, EOS among them if the text is complete."""
        tokens = self.vocabulary.tokens
        legal = {token: bool(self.after(token)) for token in set(tokens) if token}
        return {i for i, token in enumerate(tokens) if token and legal[token]} | (
            set(self.vocabulary.eos) if self.is_accepting() else set()
        )

    def advance(self, token: int) -> None:
        self.readings = self.after(self.vocabulary.tokens[token])


def mask_ids(words: npt.NDArray[np.uint32]) -> set[int]:
    """The token ids whose bits are set."""
    return {32 * w + bit for w, word in enumerate(words.tolist()) for bit in range(32) if word >> bit & 1}


class WaysUp:
    """What rules can read of a word, and the derivation paths from a terminal to the start symbol, over sets of remainders.

    A remainder is a suffix of a word that is still to be read; () is read already, whatever comes. A derivation path passes one
    occurrence after another: of the terminal, of that rule's left-hand side, and so on.
    """

    def __init__(self, grammar: Grammar) -> None:
        alive = productive(grammar)
        rules = [rule for rule in grammar if alive.issuperset(rule.rhs)]
        reached = {grammar.start}
        while more := {symbol for rule in rules if rule.lhs in reached for symbol in rule.rhs} - reached:
            reached |= more
        self.start = grammar.start
        self.rules = [rule for rule in rules if rule.lhs in reached]
        self._spans: dict[Word, dict[int, frozenset[Word]]] = {}

    def read(self, symbols: Symbols, remainders: Remainders) -> Remainders:
        """What is left of the remainders after the symbols."""
        for symbol in symbols:
            remainders = frozenset(after for word in remainders for after in self._read_one(symbol, word))
        return remainders

    def _read_one(self, symbol: int, word: Word) -> Remainders:
        if not word:
            return frozenset([()])
        if word not in self._spans:  # the least fixed point; shorter words are settled, or only asked for
            spans: dict[int, Remainders] = {rule.lhs: frozenset() for rule in self.rules}
            self._spans[word] = spans
            before = None
            while before != spans:
                before = dict(spans)
                for rule in self.rules:
                    spans[rule.lhs] |= self.read(rule.rhs, frozenset([word]))
        spans = self._spans[word]
        return spans[symbol] if symbol in spans else frozenset([word[1:]] if symbol == word[0] else [])

    def implies(self, left: int, premise: Word, conclusion: Word) -> bool:
        """Every derivation path from `left` that reads the premise reads the conclusion."""
        agenda = [(left, frozenset([premise]), frozenset([conclusion]))]
        seen = set(agenda)
        for symbol, holds, wanted in agenda:  # grows while it is read
            if () in wanted or not holds:
                continue
            if () in holds and (symbol == self.start or not wanted):
                return False
            for rule in self.rules:
                for i, occurrence in enumerate(rule.rhs):
                    if occurrence == symbol:
                        after = rule.rhs[i + 1 :]
                        state = (rule.lhs, self.read(after, holds), self.read(after, wanted))
                        if state not in seen:
                            seen.add(state)
                            agenda.append(state)
        return True


# Random lexers, grammars with layout, and vocabularies.

TEMPLATES = (
    (".", None), ("..", None), ("...", None), ("ab", None), ("abc", None), ("(", None), (")", None), ("é", None),
    (None, r"[a-c]+"), (None, r"[a-c][a-c0-1]*"), (None, r"a(bc)*"), (None, r"[01]+"), (None, r"[01]+\.[01]*"),
    (None, r"[01]*\.[01]+"), (None, r"\"[^\"\n]*\""), (None, r"[àé]+"),
)  # fmt: skip
NEWLINES = (r"(\r?\n[\t ]*)+", r"(\n[\t ]*|#[^\n]*)+", r"\n[\t ]*", r"(\n[\t ]*|;)+", r"\r?\n(\t| )*")
ALPHABET = 'abc01.()"é à#;:,x\n\t\r'.encode()


def terminal_of(name: str, template: tuple[str | None, str | None]) -> Terminal:
    literal, pattern = template
    return Terminal(name=name, pattern=pattern if literal is None else re.escape(literal), literal=literal)


def dress(
    grammar: Grammar, terminals: Sequence[Terminal], ignored: Iterable[int] = (), layout: Layout | None = None
) -> Grammar:
    """The grammar's rules over other terminals, under lexing "nfa"; those beyond its own are in no rule."""
    n, shift = grammar.n_terminals, len(terminals) - grammar.n_terminals

    def move(symbol: int) -> int:
        return symbol if symbol < n else symbol + shift

    return Grammar(
        name=grammar.name,
        terminals=tuple(terminals),
        nonterminals=grammar.nonterminals,
        rules=tuple(Rule(move(rule.lhs), tuple(map(move, rule.rhs))) for rule in grammar),
        start=move(grammar.start),
        ignored=frozenset(ignored),
        layout=layout,
        lexing="nfa",
    )


def random_lexed_grammar(seed: int) -> Grammar:
    """Random rules over random terminals that overlap, often with ignored space, or ignoring one of the rules."""
    rng = random.Random(f"lexed {seed}")
    grammar = random_grammar(seed)
    chosen = rng.sample(TEMPLATES, grammar.n_terminals)
    terminals = [terminal_of(f"T{i}", template) for i, template in enumerate(chosen)]
    ignored = []
    if rng.random() < 0.6:
        ignored.append(len(terminals))
        terminals.append(terminal_of("SPACE", rng.choice([(" ", None), (None, " +"), (None, r"[ .]+")])))
    if rng.random() < 0.1:
        ignored.append(rng.randrange(grammar.n_terminals))
    return dress(grammar, terminals, ignored)


def random_layout_grammar(seed: int) -> Grammar:
    """Random rules with a layout: of any shape, or of lines and blocks; terminal names tell their roles."""
    rng = random.Random(f"layout {seed}")
    if rng.random() < 0.5:
        grammar = random_grammar(seed)
        roles = rng.sample("nidopxk", k=7)
        names = roles[: grammar.n_terminals] + sorted(set("nidop") - set(roles[: grammar.n_terminals]))
    else:
        grammar = make_grammar(_block_rules(rng), f"blocks-{seed}")
        names = [t.name for t in grammar.terminals]
        names += sorted(set("nidop") - set(names))
    patterns: dict[str, tuple[str | None, str | None]] = {
        "n": (None, rng.choice(NEWLINES)),
        "i": (None, None),
        "d": (None, None),
        "o": ("(", None),
        "p": (")", None),
        "x": rng.choice([(None, r"[a-c]+"), ("ab", None), (None, r"[01]+")]),
        "k": rng.choice([("ab", None), (".", None), (None, r"\.+")]),
        "c": (":", None),
        "m": (",", None),
    }
    has_two = "k" in names and "c" in names and rng.random() < 0.4
    patterns |= {"k": ("[", None), "c": ("]", None)} if has_two else {}
    terminals = [Terminal(name, None) if name in "id" else terminal_of(name, patterns[name]) for name in names]
    ignored = []
    if rng.random() < 0.7:
        ignored.append(len(terminals))
        terminals.append(terminal_of("SPACE", (None, rng.choice([" +", r"#[^\n]*", r"( |\\\n)+"]))))
    number = {name: i for i, name in enumerate(names)}
    brackets = [(number["o"], number["p"])] + ([(number["k"], number["c"])] if has_two else [])
    layout = Layout(number["n"], number["i"], number["d"], tuple(brackets), rng.choice([1, 2, 8]))
    return dress(grammar, terminals, ignored, layout)


def _block_rules(rng: random.Random) -> str:
    """Rules of lines and blocks, each piece in one of some ways to write it."""
    file = rng.choice(
        ["File : Line File | ", "File : File Line | ", "File : Lines | n File | \nLines : Line | Lines Line"]
    )
    line = rng.choice(
        ["Line : Simple n | k c Block", "Line : Simple n | Simple c Block | n", "Line : Simple n | k Simple c Block"]
    )
    block = rng.choice(["Block : n i Body d | Simple n", "Block : n i Body d", "Block : n i n Body d | n i Body d"])
    body = rng.choice(["Body : Line | Body Line", "Body : Line Body | Line", "Body : Line | Line Line"])
    simple = rng.choice(
        ["Simple : x | x o Args p", "Simple : x | Simple x | o Args p", "Simple : x | x o p | x o Args p"]
    )
    args = rng.choice(["Args : x | Args m x", "Args : | x | x m Args | o Args p", "Args : Simple | Simple n"])
    return "\n".join([file, line, block, body, simple, args])


def example(dfa: Dfa, rng: random.Random, max_length: int = 6) -> bytes:
    """Bytes of a lexeme, perhaps unfinished, from ALPHABET."""
    text, state = b"", 0
    while len(text) < max_length and not (text and dfa.is_accepting[state] and rng.random() < 0.4):
        choices = [byte for byte in ALPHABET if dfa.next_state[state, byte] >= 0]
        if not choices:
            break
        byte = rng.choice(choices)
        text, state = text + bytes([byte]), int(dfa.next_state[state, byte])
    return text


def random_vocabulary(grammar: Grammar, seed: int, size: int = 24) -> Vocabulary:
    """Tokens cut from what the terminals spell, one of them twice, and its single bytes; 0 is EOS, 1 has no bytes."""
    rng = random.Random(f"vocabulary {seed}")
    automata = [dfa for dfa in compile_terminals(grammar) if dfa is not None]
    tokens: list[bytes] = []
    while len(tokens) < size:
        text = b"".join(example(rng.choice(automata), rng) for _ in range(rng.randint(1, 4)))
        begin = rng.choice([0, 0, 0, rng.randrange(len(text) + 1)])
        token = text[begin : begin + rng.randint(1, 6)]
        if token and (token not in tokens or rng.random() < 0.1):
            tokens.append(token)
    tokens += [bytes([byte]) for byte in sorted(set(b"".join(tokens)) - {t[0] for t in tokens if len(t) == 1})]
    return Vocabulary(f"random-{seed}", (b"", b"", *tokens, tokens[0]), {0: "</s>"}, (0,))


@lru_cache(maxsize=1)
def python_grammar() -> Grammar:
    return load_grammar("lark:python", lexing="nfa")


@lru_cache(maxsize=2)
def python_store(streamlined: bool = True) -> EntryStore:
    """python.lark and Mistral 7B's vocabulary, built once for all tests of a run."""
    return compile_entry_store(python_grammar(), load_vocabulary("mistral-7b-v0.1"), streamlined=streamlined)
