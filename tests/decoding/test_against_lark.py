"""What a user's grammar takes, held against Lark's own LALR parser with its contextual lexer.

Lark takes the first terminal in its order that matches, we the longest match: that is the one difference, but for rules that derive no
text, which Lark keeps. So texts are read by Lark as it is, and by Lark with a lexer that takes the longest match among the terminals that
Lark's parser can take. We agree with the second on every text.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest
from engine_cases import vocabulary_of
from lark import Lark, Token
from lark.exceptions import GrammarError as LarkGrammarError
from lark.exceptions import LarkError
from lark.indenter import PythonIndenter
from lark.lexer import BasicLexer, ContextualLexer, TerminalDef, TextSlice
from naive import Column, Earley
from shares import share

from maskwright.analysis.errors import GrammarError, IllegalTokenError, LimitError
from maskwright.analysis.grammar import Grammar, Lexing
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.analysis.lr.loops import endless_cycle
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

PATTERNS = {
    "[a-z]+": ["a", "if", "of", "do", "iff", "b", "ab"],
    "[a-z]{2,3}": ["if", "ab", "iff", "dof"],
    "[ab]+": ["a", "b", "ab", "bba"],
    "a+b?": ["a", "aab", "aa"],
    "[0-9]+": ["0", "12", "1"],
    "[0-9]+(\\.[0-9]+)?": ["0", "1.5", "12"],
    "\\.+": [".", "..", "..."],
    "[=<]+": ["=", "==", "<", "<="],
    "[^\\n;]+": ["a", " x.", "if", "= 1", "<"],
    "[a-z.]+": ["a", "a.b", ".", "if.", "of"],
    "(ab)+": ["ab", "abab"],
}
SPELLED = r"if of do a ab b . ... = == < <= ( ) ; 0 i 1. \n x"
LITERALS = tuple(SPELLED.split())
BYTES = tuple(bytes([byte]) for byte in sorted(set(b"abdfiox.=<();01235 \n")))
VOCABULARY = Vocabulary(
    "bytes", (*BYTES, b"if", b" a", b"..", b"==", b"ab", b"; ", b""), {len(BYTES) + 6: "</s>"}, (len(BYTES) + 6,)
)

ASCII = Vocabulary("ascii", (*(bytes([byte]) for byte in range(128)), b""), {128: "</s>"}, (128,))


class LongestLexer(BasicLexer):
    """Lark's lexer, but for the longest match among its terminals; of equal ones the one that is first in our order."""

    def _build_scanner(self) -> Any:
        scanner = super()._build_scanner()
        self.callback = {}  # what tells keywords from names: the order does so here
        return scanner

    def match(self, text: TextSlice, pos: int) -> tuple[str, str] | None:
        self.scanner  # noqa: B018 (builds it)
        found = None
        for terminal in self.ranked():
            matched = self.re.compile(terminal.pattern.to_regexp(), self.g_regex_flags).match(text.text, pos)
            if matched and matched.end() > (pos if found is None else pos + len(found[0])):
                found = matched[0], terminal.name
        return found

    def ranked(self) -> list[TerminalDef]:
        return sorted(
            self.terminals,
            key=lambda t: (
                -t.priority, type(t.pattern).__name__ != "PatternStr", -t.pattern.max_width, -len(t.pattern.value), t.name
            ),
        )  # fmt: skip


class LongestContextualLexer(ContextualLexer):
    BasicLexer = LongestLexer


def random_text(seed: int) -> str:
    """A grammar in Lark's notation: rules with the usual operators over literals and patterns that overlap."""
    rng = random.Random(seed)
    patterns = rng.sample(list(PATTERNS), rng.randint(1, 3))
    terminals = [f"T{number}" for number in range(len(patterns))]
    literals = [f'"{one}"' for one in rng.sample(LITERALS, rng.randint(2, 5))]
    rules = ["start", "x", "y", "z"][: rng.randint(2, 4)]

    def item(lhs: int, depth: int) -> str:
        later = rules[lhs + 1 :]
        kind = rng.random()
        if kind < 0.35 and later:
            found = rng.choice(later)
        elif kind < 0.42 and depth:
            found = f"({alternatives(lhs, depth - 1)})"
        elif kind < 0.46:
            found = f'"(" {rng.choice(rules)} ")"'
            return found if rng.random() < 0.7 else f"({found})?"
        else:
            found = rng.choice([*terminals, *literals, *literals])
        return found + rng.choice([*[""] * 9, "?", "*", "+"])

    def alternatives(lhs: int, depth: int) -> str:
        n = rng.choice([1, 1, 2, 2, 3])
        # alternatives that begin with terminals of their own are seldom beyond LALR(1)
        first = rng.sample([*terminals, *literals], n) if rng.random() < 0.7 else [""] * n
        return " | ".join(
            " ".join([one, *(item(lhs, depth) for _ in range(rng.randint(1, 3)))]).strip() for one in first
        )

    lines = [f"{name}: {alternatives(number, 1)}" for number, name in enumerate(rules)]
    lines += [
        f"{name}{rng.choice(['', '', '', '.1'])}: /{pattern}/"
        for name, pattern in zip(terminals, patterns, strict=True)
    ]
    if rng.random() < 0.5:
        lines.append('%ignore " "')
    return "\n".join(lines) + "\n"


class Parsers:
    """A grammar's store, and the two parsers of Lark."""

    def __init__(self, text: str) -> None:
        self.larks = Lark(text, parser="lalr")
        self.longest = Lark(text, parser="lalr", _plugins={"ContextualLexer": LongestContextualLexer})
        grammar = parse_grammar(text, conflicts="shift")
        if len(reduce(grammar).rules) < len(grammar.rules):
            raise GrammarError("some rule is unproductive")  # Lark keeps it, and what it could take competes
        self.grammar: Grammar = grammar
        self.store: Store = compile_store(grammar, VOCABULARY)

    def takes(self, text: str) -> bool:
        return legal(self.store, text)

    def texts(self, rng: random.Random) -> Iterator[str]:
        """Texts that Lark's parser takes terminal by terminal, written with a blank between lexemes or none; and what the masks allow."""
        spelled: dict[str, list[str]] = {
            t.name: [t.pattern.value]
            if type(t.pattern).__name__ == "PatternStr"
            else PATTERNS.get(t.pattern.value, [" "])
            for t in self.larks.terminals
        }
        for _ in range(6):
            parser = self.larks.parse_interactive()
            words: list[str] = []
            for _ in range(rng.randint(1, 9)):
                choices = sorted(parser.accepts() - {"$END"})
                if not choices or ("$END" in parser.accepts() and rng.random() < 0.2):
                    break
                name = rng.choice(choices)
                words.append(rng.choice(spelled[name]))
                parser.feed_token(Token(name, words[-1]))
            yield rng.choice(["", "", " "]).join(words)
            if len(words) > 1:
                words.pop(rng.randrange(len(words)))
                yield "".join(words)
        for _ in range(6):
            matcher, read = self.store.matcher(), b""
            for _ in range(rng.randint(1, 12)):
                allowed = [i for i in range(len(VOCABULARY.tokens) - 1) if matcher.is_allowed(i)]
                if not allowed:
                    break
                matcher.advance(chosen := rng.choice(allowed))
                read += VOCABULARY.tokens[chosen]
                if matcher.is_accepting() and rng.random() < 0.3:
                    break
            yield read.decode()


def legal(store: Store, text: str) -> bool:
    matcher = store.matcher()
    try:
        matcher.advance_bytes(text.encode())
    except IllegalTokenError:
        return False
    return matcher.is_accepting()


def parses(lark: Lark, text: str) -> bool:
    try:
        lark.parse(text)
    except LarkError:
        return False
    return True


@cache
def prepared(seed: int) -> Parsers | None:
    """None where Lark, or our engine, refuses the grammar for a reason that it names."""
    try:
        return Parsers(random_text(seed))
    except LarkGrammarError:  # reduce/reduce conflicts, rules that are defined twice
        return None
    except (GrammarError, LimitError) as error:
        reasons = ("differ sooner", "for ever", "unproductive", "no text comes to an end")
        assert any(reason in str(error) for reason in reasons), error
        return None


def check(seed: int) -> tuple[int, int, int]:
    """Texts of a random grammar: how many were read, taken, and read otherwise by Lark's order of terminals."""
    parsers = prepared(seed)
    if parsers is None:
        return 0, 0, 0
    rng = random.Random(seed)
    n_read = n_taken = n_other = 0
    for text in parsers.texts(rng):
        mine, by_longest, by_order = parsers.takes(text), parses(parsers.longest, text), parses(parsers.larks, text)
        assert mine == by_longest, f"seed {seed}: {text!r} is {'taken' if mine else 'refused'}\n{random_text(seed)}"
        n_read += 1
        n_taken += mine
        n_other += by_order != mine
    return n_read, n_taken, n_other


def totals(seeds: range) -> tuple[int, int, int]:
    found = [check(seed) for seed in seeds]
    return sum(n for n, _, _ in found), sum(n for _, n, _ in found), sum(n for _, _, n in found)


@pytest.mark.parametrize("n", share([25, 60], 1))
def test_we_take_what_larks_parser_takes_by_the_longest_match(n: int) -> None:
    n_read, n_taken, _ = totals(range(n))
    assert n_read > 8 * n and n_taken > 2 * n


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(1000, 1500), range(1500, 2000)], ids=str)
def test_we_take_what_larks_parser_takes_by_the_longest_match_on_many_grammars(seeds: range) -> None:
    n_read, n_taken, n_other = totals(seeds)
    assert n_read > 5_000 and n_taken > 1_300 and 0 < n_other < n_read / 20


def test_lark_takes_its_first_match_and_we_the_longest() -> None:
    text = "start: A | B\nA.1: /a/\nB: /ab/\n"
    parsers = Parsers(text)
    assert parsers.takes("ab") and parses(parsers.longest, "ab") and not parses(parsers.larks, "ab")


@pytest.mark.parametrize(
    ("text", "taken", "refused"),
    [
        ('start: "x" A\nA: /[a-z]+/\n', ["xfoo", "xx"], ["x", "foo"]),
        (
            'start: "Thought: " TEXT "\\nAction: " TOOL "\\nInput: " TEXT "\\n"\nTOOL: "search" | "add"\nTEXT: /[^\\n]+/\n',
            ["Thought: Action: search\nAction: search\nInput: Thought: x\n"],
            ["Thought: hi\nAction: sum\n", "Thought: \n"],
        ),
        ('start: N "is" N\nN: /[a-z]+/\n%ignore " "\n', ["is is is", "a isz"], ["a is", "is a is a"]),
    ],
)
def test_only_what_the_parser_can_take_competes(text: str, taken: list[str], refused: list[str]) -> None:
    larks = Lark(text, parser="lalr")
    store = compile_store(parse_grammar(text), ASCII)
    for one in taken:
        assert legal(store, one) and parses(larks, one), one
    for one in refused:
        assert not legal(store, one) and not parses(larks, one), one


def test_reserved_words_are_names_nowhere() -> None:
    text = 'start: N "is" N | N "=" N\nN: /[a-z=]+/\n%ignore " "\n'
    none, words, every = (
        compile_store(parse_grammar(text, reserved=reserved), ASCII) for reserved in ("none", "words", "all")
    )
    assert [legal(store, "is is is") for store in (none, words, every)] == [True, False, False]
    assert [legal(store, "a isz") for store in (none, words, every)] == [True, False, False]
    assert [legal(store, "= = a") for store in (none, words, every)] == [True, True, False]
    assert all(legal(store, "a is b") for store in (none, words, every))


@pytest.mark.slow
@pytest.mark.parametrize("lexing", share(["longest", "contextual"], 1))
def test_what_larks_own_grammar_of_python_takes(lexing: Lexing) -> None:
    """The table of docs/grammars/lark.md. Read by context, it is what Lark takes."""
    larks = Lark.open_from_package(
        "lark", "python.lark", ["grammars"], parser="lalr", postlex=PythonIndenter(), start="file_input"
    )
    store = compile_store(load_grammar("lark:python", lexing=lexing), ASCII)
    by_longest = {"from ... import x\n": False, "x = y isz\n": False, "x.if\n": False, "match(x)\n": True}
    by_longest |= {"for _ in x:\n    pass\n": True, "match x:\n    case 1:\n        pass\n": True, "if = 1\n": False}
    for text, taken in by_longest.items():
        assert legal(store, text) is (taken if lexing == "longest" else parses(larks, text)), text


def random_repetitions(seed: int, words: Sequence[str] = "abc") -> str:
    """A grammar in Lark's notation over three letters, or some of these words, in which much that is repeated may be empty."""
    rng = random.Random(seed)
    rules = ["start", "x", "y"][: rng.randint(1, 3)]
    if words != "abc":
        words = rng.sample(words, rng.randint(2, 4))

    def item(number: int, depth: int) -> str:
        later = rules[number + 1 :]
        one = f"({body(number, depth - 1)})" if depth and rng.random() < 0.4 else f'"{rng.choice(words)}"'
        return (rng.choice(later) if later and rng.random() < 0.5 else one) + rng.choice(["", "", "?", "*", "+"])

    def body(number: int, depth: int) -> str:
        return " | ".join(
            " ".join(item(number, depth) for _ in range(rng.choice([1, 1, 2, 3]))) for _ in range(rng.choice([1, 1, 2]))
        )

    return "".join(f"{name}: {body(number, 2)}\n" for number, name in enumerate(rules))


def check_repetitions(seed: int, *, only_larks: bool = False) -> bool:
    """Whether a grammar has endless derivations, and if so are all texts up to a length, and masks after them, as they should be?

    The masks are those of Earley's recogniser, which bears cycles, on the author's rules. What Lark takes is taken.
    only_larks : whether to pass over grammars that Lark refuses for reduce/reduce conflicts.
    """
    text = random_repetitions(seed)
    grammar = parse_grammar(text, lexing="longest")
    if endless_cycle(reduce(grammar)) is None:
        return False
    try:
        larks = Lark(text, parser="lalr")
    except LarkGrammarError:
        if only_larks:
            return False
        larks = None
    letters = [t.literal or "" for t in grammar.terminals]
    tokens = [*letters, "ab", "ba", "ca", "abc"]
    vocabulary = vocabulary_of(*(token.encode() for token in tokens))
    store = compile_store(grammar, vocabulary)
    earley = Earley(grammar)

    @cache
    def columns(word: str) -> tuple[Column, ...] | None:
        """Earley's columns after a text, None if it is no beginning of a word."""
        if not word:
            return (earley.start,)
        before = columns(word[:-1])
        if before is None or word[-1] not in letters:
            return None
        found = earley.read(before, letters.index(word[-1]))
        return found if found[-1] else None

    contextual = None if larks is None else compile_store(parse_grammar(text), vocabulary)
    for word in ("".join(w) for n in range(5) for w in itertools.product(letters, repeat=n)):
        read = columns(word)
        if read is None:
            assert not legal(store, word)
            continue
        is_word = earley.is_word(read)
        matcher = store.matcher()
        matcher.advance_bytes(word.encode())
        allowed = {token for token in tokens if columns(word + token) is not None}
        try:
            found = {token for i, token in enumerate(tokens) if matcher.is_allowed(i)}
        except LimitError as error:
            assert "readings" in str(error), (text, word)
            return False
        assert found == allowed, (text, word)
        assert matcher.is_accepting() == is_word, (text, word)
        if larks is not None and contextual is not None and parses(larks, word):
            assert is_word and legal(contextual, word), (text, word)
    return True


@pytest.mark.parametrize("n", share([24, 40], 1))
def test_repetitions_of_what_may_be_empty_are_read(n: int) -> None:
    assert sum(check_repetitions(seed) for seed in range(n)) > n // 4


@pytest.mark.parametrize("n", share([100, 300], 1))
def test_repetitions_that_lark_takes_are_read(n: int) -> None:
    assert sum(check_repetitions(seed, only_larks=True) for seed in range(100, 100 + n)) > n // 100


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(1000, 1400), range(1400, 1800)], ids=str)
def test_repetitions_of_what_may_be_empty_are_read_of_many_grammars(seeds: range) -> None:
    assert sum(map(check_repetitions, seeds)) > 100


WORDS = ["".join(word) for n in range(6) for word in itertools.product("abc", repeat=n)]


def check_overlapping_repetitions(seeds: range) -> int:
    """All that Lark's parser takes by the longest match is taken, of endless grammars whose words overlap.

    Returned: how many of them are read under "all".
    """
    n_checked = 0
    for seed in seeds:
        text = random_repetitions(seed, ["a", "b", "ab", "ba", "aa", "c"])
        if endless_cycle(reduce(parse_grammar(text, conflicts="all"))) is None:
            continue
        try:
            larks = Lark(text, parser="lalr", _plugins={"ContextualLexer": LongestContextualLexer})
        except LarkGrammarError:
            continue
        grammar = parse_grammar(
            text
        )  # decides how conflicts are read, which takes longer than to ask whether it is endless
        try:
            store = compile_store(grammar, vocabulary_of(singles=b"abc"))
        except GrammarError as error:
            assert grammar.conflicts == "shift", text
            if "no text comes to an end" in str(error):
                assert not any(parses(larks, word) for word in WORDS), text
            else:
                assert "infinite ambiguity" in str(error), text
            continue
        n_checked += grammar.conflicts == "all"
        for word in WORDS:
            assert not parses(larks, word) or legal(store, word), (text, word)
    return n_checked


@pytest.mark.parametrize("n", share([50, 150], 1))
def test_overlapping_repetitions_that_lark_takes_are_read(n: int) -> None:
    assert check_overlapping_repetitions(range(n)) > n // 75


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(1000, 3000), range(3000, 5000)], ids=str)
def test_overlapping_repetitions_that_lark_takes_are_read_of_many_grammars(seeds: range) -> None:
    assert check_overlapping_repetitions(seeds) > 10


def test_endless_rules_apart_from_what_competes_are_followed() -> None:
    """The cycle has nothing to do with the conflict: `+` and then `!` or `?`, which both parses have to see."""
    text = 'start: item+ ";" (p | q)\nitem: "a"?\np: x "+" "!"\nq: y "+" "?"\nx: NAME\ny: NAME\nNAME: /[a-z]+/\n'
    grammar = parse_grammar(text)
    assert grammar.conflicts == "all"
    store = compile_store(grammar, ASCII)
    assert all(legal(store, one) for one in ("a;z+!", ";z+?", "aaa;z+?"))
    assert not legal(store, "a;z+")


def test_sections_that_may_be_empty() -> None:
    text = 'start: section+ "."\nsection: header? item*\nheader: "[" N "]"\nitem: N "=" N\nN: /[a-z]+/\n'
    larks, store = Lark(text, parser="lalr"), compile_store(parse_grammar(text), ASCII)
    for one in [".", "[a].", "[a]b=c[d]e=f.", "[a][b].", "a=b[c].", "[a]b=.", "[a.", "=", "[a]b=c[d]e."]:
        assert legal(store, one) == parses(larks, one), one


@pytest.mark.parametrize(
    "text",
    [
        'start: s*\ns: "x"? "y"*',
        'start: (("x"?)* "y"?)+',
        'start: t\nt: t t | "x"? | "y"',
        'start: n start?\nn: "x"? | "y"',
    ],
)
def test_long_texts_of_repetitions_are_read(text: str) -> None:
    """The readings that are followed do not grow with the text."""
    matcher = compile_store(parse_grammar(text), ASCII).matcher()
    for _ in range(300):
        matcher.advance_bytes(b"xyyxx")
        assert matcher.is_accepting()


ENDLESS_AND_LEXED = """
start: a "e" X X
a: p a q | "m"
p:
q: "e" Y
X: "x"
Y: "xx"
"""


def test_endless_rules_do_not_change_what_competes() -> None:
    """Rewritten, the rules have a state where X and Y compete, and `xx` would be a Y: so conflicts are decided as Lark decides them."""
    assert parses(Lark(ENDLESS_AND_LEXED, parser="lalr"), "mexx")
    grammar = parse_grammar(ENDLESS_AND_LEXED)
    assert grammar.conflicts == "shift"
    store = compile_store(grammar, vocabulary_of(b"xx", singles=b"mex"))
    assert legal(store, "mexx")
    with pytest.raises(
        LimitError, match=r"endless derivations of one text .*, and the terminals that compete depend on them"
    ):
        compile_store(parse_grammar(ENDLESS_AND_LEXED, conflicts="all"), vocabulary_of(singles=b"mex"))
