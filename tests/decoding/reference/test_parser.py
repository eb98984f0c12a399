"""The LALR parser that follows all conflicts: against Lark's parser where there are none, against Earley everywhere."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator

import pytest
from grammars import make_grammar, random_grammar
from lark import Lark, Token
from lark.exceptions import UnexpectedInput
from lark.lexer import Lexer as LarkLexer
from lark.parsers.lalr_interactive_parser import InteractiveParser
from naive import Earley, is_word, prefixes, productive
from naive_store import python_grammar
from shares import share

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.lr.loops import endless_cycle
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.decoding.reference.parser import ENDED, Parser, Shifted, Stacks

CHUNK = 20


def has_hidden_left_recursion(grammar: Grammar) -> bool:
    """Some nonterminal derives itself after one or more symbols that may be empty."""
    alive = productive(grammar)
    rules = [rule for rule in grammar if alive.issuperset(rule.rhs)]
    nullable: set[int] = set()
    while more := {rule.lhs for rule in rules if nullable.issuperset(rule.rhs)} - nullable:
        nullable |= more
    corners = {
        (rule.lhs, symbol, i > 0)
        for rule in rules
        for i, symbol in enumerate(rule.rhs)
        if grammar.is_nonterminal(symbol) and nullable.issuperset(rule.rhs[:i])
    }
    while True:
        longer = {(a, d, h or k) for a, b, h in corners for c, d, k in corners if b == c} - corners
        if not longer:
            return any(a == b and hidden for a, b, hidden in corners)
        corners |= longer


def parser_of(grammar: Grammar) -> Parser:
    return Parser(build_lr_tables(grammar), grammar.name)


def shift(parser: Parser, stacks: Stacks, terminal: int) -> Stacks:
    return parser.shift(stacks, int(parser.tables.terminal_column[terminal])).stacks


def read(parser: Parser, word: tuple[int, ...]) -> Stacks:
    stacks: Stacks = (parser.start,)
    for terminal in word:
        stacks = shift(parser, stacks, terminal)
        if not stacks:
            break
    return stacks


@pytest.mark.parametrize("chunk", share(range(16), 1))
def test_accepts_what_earley_accepts(chunk: int) -> None:
    """Every word up to some length: is it a prefix, and is it a word of the language?"""
    n_conflicted = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        grammar = random_grammar(seed)
        parser, earley = parser_of(grammar), Earley(grammar)
        n_conflicted += parser.tables.n_conflicts > 0
        length = 4 if grammar.n_terminals < 4 else 3
        known = prefixes(grammar, length)
        for word in itertools.chain.from_iterable(
            itertools.product(range(grammar.n_terminals), repeat=n) for n in range(length + 1)
        ):
            if word[:-1] in known:
                stacks = read(parser, word)
                assert bool(stacks) == (word in known), (seed, word)
                if stacks:
                    assert parser.accepts_end(stacks) == earley.is_word(earley.read_word(word)), (seed, word)
    assert n_conflicted > CHUNK // 4


def test_some_of_these_grammars_have_hidden_left_recursion() -> None:
    assert sum(has_hidden_left_recursion(random_grammar(seed)) for seed in range(16 * CHUNK)) >= 16


@pytest.mark.parametrize("chunk", share(range(6), 1))
def test_conflict_free_grammars_parse_as_in_lark(chunk: int) -> None:
    """Lark's interactive parser over the same rules takes the same terminals at every step."""
    n_compared = 0
    for seed in range(1000 + chunk * CHUNK, 1000 + (chunk + 1) * CHUNK):
        grammar, rng = random_grammar(seed), random.Random(seed)
        parser = parser_of(grammar)
        if parser.tables.n_conflicts or endless_cycle(reduce(grammar)) is not None:
            continue
        for _ in range(5):
            theirs, stacks = interactive_parser(grammar), read(parser, ())
            for _ in range(8):
                accepts: set[str] = theirs.accepts()  # type: ignore[no-untyped-call]
                legal = {int(name[1:]) for name in accepts if name != "$END"}
                mine = {t for t in range(grammar.n_terminals) if shift(parser, stacks, t)}
                assert mine == legal, seed
                assert parser.accepts_end(stacks) == ("$END" in accepts), seed
                assert len(stacks) == 1
                n_compared += 1
                if not legal:
                    break
                terminal = rng.choice(sorted(legal))
                theirs.feed_token(Token(f"T{terminal}", "x"))
                stacks = shift(parser, stacks, terminal)
    assert n_compared > 2 * CHUNK


def interactive_parser(grammar: Grammar) -> InteractiveParser:
    """Lark's, for the productive rules, terminal t being called Tt and nonterminal n being called nn."""
    alive = productive(grammar)

    def name(symbol: int) -> str:
        return f"n{symbol}" if grammar.is_nonterminal(symbol) else f"T{symbol}"

    lines = []
    for lhs, rules in grammar.rules_of.items():
        bodies = [" ".join(map(name, rule.rhs)) for rule in rules if alive.issuperset(rule.rhs)]
        lines += [f"{name(lhs)}: " + " | ".join(dict.fromkeys(bodies))] if bodies else []
    text = "\n".join([*lines, "%declare " + " ".join(f"T{t}" for t in range(grammar.n_terminals))])
    return Lark(text, parser="lalr", start=name(grammar.start), lexer=_NoLexer).parse_interactive()


class _NoLexer(LarkLexer):
    """Tokens are fed by hand."""

    def __init__(self, configuration: object) -> None:
        pass

    def lex(self, lexer_state: object, parser_state: object) -> Iterator[Token]:
        return iter(())


@pytest.mark.parametrize(
    "text", ["S : N S a | b\nN : c | ", "S : S S | a | ", "S : A\nA : B A a | a\nB : N N\nN : n | "]
)
def test_hidden_left_recursion_is_followed(text: str) -> None:
    grammar = make_grammar(text)
    assert has_hidden_left_recursion(grammar)
    parser, known = parser_of(grammar), prefixes(grammar, 5)
    for word in itertools.chain.from_iterable(
        itertools.product(range(grammar.n_terminals), repeat=n) for n in range(6)
    ):
        stacks = read(parser, word)
        assert bool(stacks) == (word in known)
        assert parser.accepts_end(stacks) == is_word(grammar, word)


def test_readings_that_multiply_are_refused() -> None:
    """Two reductions for every terminal, of which only the end of the text needs one: 2^n stacks after n terminals."""
    grammar = make_grammar("S : A S x | B S y | \nA : a\nB : a")
    parser = parser_of(grammar)
    stacks = read(parser, ())
    begin = time.process_time()
    with pytest.raises(
        LimitError,
        match="more than 10000 readings of the text: their number grows with its length; make its rules less ambiguous",
    ):
        for _ in range(20):
            stacks = shift(parser, stacks, grammar.terminal_number["a"])
    assert len(stacks) == 2**13
    assert time.process_time() - begin < 10


def test_cycles_and_ambiguity_are_followed() -> None:
    for text in ("S : A\nA : A | a", "S : S S | a", "S : A a\nA : B | a\nB : A | a"):
        grammar = make_grammar(text)
        parser, earley = parser_of(grammar), Earley(grammar)
        for n in range(8):
            stacks = read(parser, (0,) * n)
            columns = earley.read_word((0,) * n)
            assert bool(stacks) == bool(columns[-1])
            if stacks:
                assert parser.accepts_end(stacks) == earley.is_word(columns)


def test_nothing_comes_after_the_end() -> None:
    parser = parser_of(make_grammar("S : a"))
    ended = parser.shift(read(parser, (0,)), parser.end_column)
    assert ended.stacks == (ENDED,) and not ended.refusing
    assert parser.shift(ended.stacks, 0) == Shifted((), (ENDED,))


def test_what_is_cut_is_no_error() -> None:
    grammar = make_grammar("S : A S x | B S y | \nA : a\nB : a")
    parser = Parser(build_lr_tables(grammar), grammar.name, 5, is_cut=True)
    stacks: Stacks = (parser.start,)
    for _ in range(4):
        stacks = shift(parser, stacks, grammar.terminal_number["a"])
    assert stacks


def test_what_is_cut_is_cut_to_the_limit() -> None:
    grammar = make_grammar("S : A S x | B S y | C S z | \nA : a\nB : a\nC : a")
    parser = Parser(build_lr_tables(grammar), grammar.name, 5, is_cut=True)
    stacks: Stacks = (parser.start,)
    for _ in range(4):
        stacks = shift(parser, stacks, grammar.terminal_number["a"])
        assert 0 < len(stacks) <= 5


def test_the_limit_on_reductions_is_for_all_stacks_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 16 stacks makes some two hundred, within the limit; all of them do not."""
    monkeypatch.setattr("maskwright.decoding.reference.parser.MOST_AT_ONCE", 1_000)
    rows = [f"R{i} : A R{i + 1} x | B R{i + 1} y" for i in range(4)] + ["R4 : z X0", "A : a", "B : a"]
    rows += [f"X{i} : X{i + 1} X{i + 1}" for i in range(6)] + ["X6 : C | D", "C : ", "D : "]
    grammar = make_grammar("S : R0 e\n" + "\n".join(rows))
    letters = grammar.terminal_number
    parser = parser_of(grammar)
    stacks = parser.shift_all((parser.start,), [*[letters["a"]] * 4, letters["z"]])
    assert len(stacks) == 16
    assert parser.shift(stacks[:1], letters["x"]).refusing
    with pytest.raises(LimitError, match="takes more than 1000 steps to read one terminal"):
        parser.shift(stacks, letters["x"])


def test_stacks_are_shared() -> None:
    parser = parser_of(make_grammar("S : a S | a"))
    first, second = (read(parser, (0, 0, 0)) for _ in range(2))
    assert first is second and first[0].below is read(parser, (0, 0))[0]
    assert read(parser_of(make_grammar("S : a b")), (1,)) == ()


@pytest.mark.slow
def test_python_goes_past_a_conflict_that_lark_resolves_wrongly() -> None:
    grammar = python_grammar()
    parser = parser_of(grammar)
    assert parser.tables.n_conflicts > 0
    number = grammar.terminal_number
    literal = {t.literal: i for i, t in enumerate(grammar.terminals) if t.literal is not None}

    def word(text: str) -> tuple[int, ...]:
        named = {**literal, "NAME": number["NAME"], "NUM": number["DEC_NUMBER"], "NL": number["_NEWLINE"]}
        named |= {"IN": number["_INDENT"], "OUT": number["_DEDENT"]}
        return tuple(named[piece] for piece in text.split())

    case = "match NAME : NL IN case NAME ( NAME = NUM{} ) : NL IN pass NL OUT OUT"
    for comma in ("", " ,"):
        stacks = read(parser, word(case.format(comma)))
        assert stacks and parser.accepts_end(stacks)
    assert not read(parser, word("case NAME )"))
    lark = Lark.open_from_package("lark", "python.lark", ["grammars"], parser="lalr", start="file_input", postlex=None)
    theirs = lark.parse_interactive()
    with pytest.raises(UnexpectedInput):
        for terminal in word(case.format(" ,")):
            theirs.feed_token(Token(grammar.terminals[terminal].name, "x"))


def test_an_empty_language_is_refused() -> None:
    with pytest.raises(GrammarError, match="start symbol 'S' is unproductive"):
        parser_of(make_grammar("S : a S"))
