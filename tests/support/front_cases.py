"""Grammars in other engines' languages, in our own words: the constructs of llama.cpp's examples, each small."""

from __future__ import annotations

import random

import numpy as np
from naive_fronts import Recogniser

import maskwright as mw
from maskwright.analysis.grammar import Grammar

GBNF = {
    "json": r"""
# a JSON text
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [1-9] [0-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
""",
    "json list": r"""
root ::= arr
value ::= root-value | "[" ws (value ("," ws value)*)? "]"
root-value ::= "\"" [^"\\]* "\"" ws | [0-9]+ ws
arr ::= "[\n" ws (
    value
    (",\n" value)*
  )? "]"
ws ::= ([ \t\n] ws)?
""",
    "arithmetic": r"""
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
""",
    "c": r"""
root ::= (declaration)*
declaration ::= dataType identifier "(" parameter? ")" "{" statement* "}"
dataType  ::= "int" ws | "float" ws | "char" ws
identifier ::= [a-zA-Z_] [a-zA-Z_0-9]*
parameter ::= dataType identifier
statement ::=
    ( dataType identifier ws "=" ws expression ";" ) |
    ( identifier ws "=" ws expression ";" ) |
    ( "return" ws expression ";" ) |
    ( "while" "(" expression ")" "{" statement* "}" ) |
    ( singleLineComment )
expression ::= term (("+" | "-") term)*
term ::= identifier | [0-9]+ | "-" term | "(" ws expression ws ")"
singleLineComment ::= "//" [^\n]* "\n"
ws ::= ([ \t\n]+)
""",
    "chess": r"""
root    ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
move    ::= (pawn | nonpawn | castle) [+#]?
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn    ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle  ::= "O-O" "-O"?
""",
    "list": 'root ::= item+\nitem ::= "- " [^\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029]+ "\\n"',
    "japanese": r"""
root          ::= jp-char+ ([ \t\n] jp-char+)*
jp-char       ::= hiragana | katakana | punctuation | cjk
hiragana      ::= [ぁ-ゟ]
katakana      ::= [ァ-ヿ]
punctuation   ::= [、-〾]
cjk           ::= [\u4e00-\u9FFF]
""",
    "english": "root ::= en-char+ ([ \\t\\n] en-char+)*\nen-char ::= letter | digit | punctuation\nletter ::= [a-zA-Z]\n"
    "digit ::= [0-9]\npunctuation ::= [!\"#$%&'()*+,\\-./:;<=>?@[\\\\\\]^_`{|}~]",
    "left": 'root ::= sum\nsum ::= sum "+" product | product\nproduct ::= product "*" [a-c] | [a-c] | "(" sum ")"',
    "words": 'root ::= stmt (" " stmt)*\nstmt ::= "if" ident stmt? | ident\nident ::= [a-z]+ ""',
    "palindromes": 'root ::= "a" root "a" | "b" root "b" | "" | [ab]',
    "nested optional": 'root ::= "[" (item ("," item ("," item)?)?)? "]"\nitem ::= [0-9]+ | root',
    "any": 'root ::= "<" . . ">" root? | [^<>]{2,3}',
}
"""name -> a text in GBNF; all of them are EBNF of xgrammar too, but for `.`, an empty alternative, and `{2,3}` of sets."""


EVERY = mw.Vocabulary.from_tokens([b"</s>", *(bytes([byte]) for byte in range(256))], eos=[0])


def legal(grammar: mw.Grammar, *samples: str) -> list[bool]:
    """Of each sample whether the grammar has it."""
    store = mw.build_store(grammar, EVERY)
    return [is_legal(store, sample) for sample in samples]


def is_legal(store: mw.Store, text: str) -> bool:
    matcher = store.matcher()
    return matcher.try_bytes(text.encode()) and matcher.is_accepting()


def compare(
    grammar: Grammar, naive: Recogniser, vocabulary: mw.Vocabulary, seed: int, n_texts: int, n_steps: int
) -> int:
    """Holds each mask on the way of random texts against the recogniser; the number of masks."""
    store = mw.build_store(grammar, vocabulary)
    choose = random.Random(seed)
    n = 0
    mask = np.zeros(-(-vocabulary.size // 32), np.uint32)
    for _ in range(n_texts):
        data, matcher = b"", store.matcher()
        for _ in range(n_steps):
            matcher.fill(mask)
            naive.remember(data)
            bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: vocabulary.size].astype(bool)
            wanted = [naive.is_beginning(data + token) for token in vocabulary.tokens[1:]]
            assert bits[1:].tolist() == wanted, data
            assert bits[0] == matcher.is_accepting() == naive.matches(data), data
            n += 1
            allowed = [token for token, is_allowed in zip(vocabulary.tokens[1:], wanted, strict=True) if is_allowed]
            if not allowed:
                break
            token = choose.choice(allowed)
            matcher.advance_bytes(token)
            data += token
    return n


def random_gbnf(seed: int) -> str:
    """A random grammar of at most four rules, whose characters and literals overlap in many ways."""
    choose = random.Random(seed)
    names = ["root", "x", "y", "ws"][: choose.randint(2, 4)]
    sets = ["[ab]", "[a]", "[^a]", "[b-c]", "[^ ()]", ".", "[a-c]", "[é]", "[^\\n]"]
    texts = ['"a"', '"b"', '"ab"', '"abc"', '"("', '")"', '" "', '""']

    def part(depth: int) -> str:
        at = choose.random()
        if depth <= 0 or at < 0.45:
            return choose.choice([*texts, *sets[:2], choose.choice(sets), choose.choice(sets), *names, *names])
        if at < 0.7:
            return " ".join(part(depth - 1) for _ in range(choose.randint(2, 3)))
        if at < 0.85:
            return "(" + " | ".join(part(depth - 1) for _ in range(choose.randint(2, 3))) + ")"
        inner = part(0)
        return ('"a"' if inner == '""' else inner) + choose.choice(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}"])

    return "\n".join(f"{name} ::= " + " | ".join(part(2) for _ in range(choose.randint(1, 3))) for name in names)


TERMINALS = (
    *('"a"', '"b"', '"ab"', '"c"', '"abc"', '"ca"'),
    *("/a+/", "/[ab]+/", "/b+c/", "/[ac]+/", "/ab?/", "/c(a|b)*/"),
)


def random_llguidance(seed: int) -> tuple[str, bool]:
    """A random grammar over a choice of TERMINALS, and whether it ignores blanks."""
    choose = random.Random(seed)
    rules = ["start", "x", "y"][: choose.randint(1, 3)]
    terminals = choose.sample(TERMINALS, choose.randint(2, 5))
    ignores = choose.random() < 0.6

    def part(depth: int) -> str:
        at = choose.random()
        if depth <= 0 or at < 0.5:
            return choose.choice([*terminals, *terminals, *rules])
        if at < 0.75:
            return " ".join(part(depth - 1) for _ in range(choose.randint(2, 3)))
        if at < 0.87:
            return "(" + " | ".join(part(depth - 1) for _ in range(2)) + ")"
        return part(0) + choose.choice("*+?")

    lines = [f"{name}: " + " | ".join(part(2) for _ in range(choose.randint(1, 2))) for name in rules]
    return "\n".join(lines + ["%ignore / +/"] * ignores), ignores
