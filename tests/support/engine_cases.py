"""Random grammars with overlapping terminals, vocabularies cut from their texts, and the rows of masks as sets."""

from __future__ import annotations

import dataclasses
import random
import re
import warnings
from functools import cache
from typing import get_args

from grammars import JSON, random_grammar

from maskwright.analysis.errors import LimitError, MaskwrightWarning
from maskwright.analysis.grammar.grammar import Grammar, Lexing, Reserved, Terminal
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.analysis.lr.splits import default_conflicts
from maskwright.maskstore.automaton.stack_automaton import StackAutomaton, build_automaton
from maskwright.maskstore.table.write import engine_table
from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

PATTERNS = (
    "a+", "ab?", "a|bc", "ab*c", "[ab]+", "(ab)+", "b+a", "[abc]c", "0(\\.0*)?", "0+", "\\.+", "\\.\\.\\.", "1(\\.|e[ab])?",
    "é+", "[aé]", "€b?", "x[^x]*x", "c(a|b){1,2}",
)  # fmt: skip
LITERALS = ("a", "b", "c", "ab", "abc", "aa", "..", ".", "0", "é", "ba", "cc", "bca")


def longest(text: str, name: str = "test") -> Grammar:
    """The grammar of a text in Lark's notation, under `longest` lexing unless a line of the text says otherwise."""
    lexing: Lexing | None = None if "maskwright: lexing" in text else "longest"
    return parse_grammar(text, name=name, lexing=lexing)


def random_longest_grammar(seed: int) -> Grammar:
    """`random_grammar` with terminals that overlap; blanks are ignored, so that any two lexemes can be kept apart.

    One in four has an ignored comment whose end can be long in coming.
    """
    rng = random.Random(seed)
    grammar = random_grammar(seed)
    chosen = rng.sample(
        [(p, None) for p in PATTERNS] + [(re.escape(text), text) for text in LITERALS], grammar.n_terminals
    )
    terminals = [
        Terminal(f"T{i}", pattern, literal=literal, priority=rng.choice((0, 0, 0, 1)))
        for i, (pattern, literal) in enumerate(chosen)
    ]
    ignored = [Terminal("BLANK", " ")] + ([Terminal("COMMENT", "#[^#]*#|#a")] if rng.random() < 0.25 else [])
    n, extra = grammar.n_terminals, len(ignored)

    def moved(symbol: int) -> int:
        return symbol if symbol < n else symbol + extra

    return dataclasses.replace(
        grammar,
        terminals=(*terminals, *ignored),
        rules=tuple(dataclasses.replace(r, lhs=moved(r.lhs), rhs=tuple(map(moved, r.rhs))) for r in grammar.rules),
        start=moved(grammar.start),
        ignored=frozenset(range(n, n + extra)),
        lexing="longest",
    )


LAYOUT_NEWLINES = (r"/(\r?\n[ \t]*)+/", r"/(\n[ \t]*|#[ab]*)+/", r"/(\n[ \t]*|#[^\n]*)+/", r"/(\n[ \t]*)+|##[ab]*/")

COMMENTS = (r"/#[ab]*/", r"/#[^\n]*/", r"/#[^#]*#/")


def random_layout_grammar(seed: int) -> Grammar:
    """Lines, blocks and brackets, with details at random."""
    rng = random.Random(seed)
    block = rng.choice(["_NEWLINE _INDENT st+ _DEDENT", "_NEWLINE _INDENT st+ _DEDENT | NAME _NEWLINE"])
    more = rng.choice(["", '| "if" v ":" block "or" ":" block', "| v _NEWLINE _INDENT st _DEDENT", '| "." _NEWLINE'])
    value = rng.choice(['NAME | "(" list ")"', 'NAME | "(" v ("+" v)* ")" | "[" "]"', 'v "+" v | NAME | "(" v ")"'])
    start = rng.choice(["(st | _NEWLINE)*", "st+", "_NEWLINE* st*", "(st | _NEWLINE)* v?", "v | st+"])
    text = f"""
start: {start}
st: v _NEWLINE | "if" v ":" block {more}
block: {block}
v: {value}
list: (v ",")* v?
NAME: /[ab]+{rng.choice(["", "f?", "(-[ab])?"])}/
COMMENT: {rng.choice(COMMENTS)}
_NEWLINE: {rng.choice(LAYOUT_NEWLINES)}
%ignore " "
%ignore COMMENT
%declare _INDENT _DEDENT
"""
    if rng.random() < 0.3:
        text = re.sub("(?m)^(%ignore )?COMMENT.*\n", "", text)
    if seed % 2:
        text = "// maskwright: tabs = consistent\n" + text.replace(r"[ \t]*", r"[ \t\f]*")
    return longest(text, f"layout-{seed}")


def random_contextual_grammar(seed: int) -> Grammar:
    """The grammars above under `contextual` lexing, or keywords beside the pattern that matches them, reserved or soft."""
    rng = random.Random(seed)
    reserved = random.Random(-seed).choice(get_args(Reserved))
    if rng.random() < 0.6:
        grammar = (random_layout_grammar if rng.random() < 0.4 else random_longest_grammar)(seed)
        return contextual(grammar, reserved)
    one, two, three = rng.sample(["a", "ab", "ba", "abc", "b"], 3)
    soft = rng.choice(["", f' | "{one}"', f' | "{one}" | "{two}"'])
    other = rng.choice(["..", "0", three])
    last = rng.choice(["st", "DOTS", "n?"])
    pattern = rng.choice(["[abc]+", "[abc]{2,}", "[ab]+c?"])
    text = f"""
start: st*
st: "{one}" n "." | n "{other}" n | "{two}" "0" {last}
n: NAME{soft}
NAME: /{pattern}/
DOTS: /\\.+/
%ignore " "
"""
    return contextual(longest(text, f"keywords-{seed}"), reserved)


def random_run_grammar(seed: int) -> Grammar:
    """Terminals with a run of any length inside that others match too: keywords of two words, comments behind blanks."""
    rng = random.Random(seed)
    blanks = ["[ .]+", " +", r"[ \n]*", r"( |\n )+", r"[ \n]+", " *"]
    parts = ["a", "b", "ab", "[ab]", "#", "b#?"]

    def run() -> str:
        last = rng.choice(["", "", "[ab]*", rng.choice(blanks) + "b"])
        return rng.choice(parts) + rng.choice(blanks) + rng.choice(parts) + last

    terminals = {
        "LONG": run(),
        "OTHER": run(),
        "COMMENT": rng.choice(blanks) + "#" + rng.choice(["", r"[^\n]*", "[ab ]*", "[ab]+#"]),
        "NAME": rng.choice(["[abc]+", "[ab]", "a+", "[ab]+"]),
        "NL": rng.choice([r"\n", r"\n+", r"(\n *)+", r"\."]),
        "DOT": r"\.",
        "WS": rng.choice([" +", " ", r"[ \n]+", r" +|\n"]),
    }
    ignored = rng.sample(["WS", "COMMENT", "NL"], rng.randint(1, 3))
    sides = [
        each
        for each in ("LONG", "LONG", "OTHER", "NAME", "NL", "DOT", '"a"', '"b"', '"#"', "COMMENT")
        if each not in ignored
    ]
    rules = [" ".join(rng.choices(sides, k=rng.randint(1, 3))) for _ in range(rng.randint(2, 4))]
    text = "\n".join(
        [
            f"start: item{rng.choice('*+')}",
            f"item: {' | '.join(rules)}",
            *(f"{name}: /{pattern}/" for name, pattern in terminals.items()),
            *(f"%ignore {name}" for name in ignored),
        ]
    )
    grammar = longest(text, f"runs-{seed}")
    return grammar if rng.random() < 0.3 else contextual(grammar, rng.choice(get_args(Reserved)))


def contextual(grammar: Grammar, reserved: Reserved) -> Grammar:
    """The same under `contextual` lexing, with conflicts as `load_grammar` decides them."""
    return settled(dataclasses.replace(grammar, lexing="contextual", reserved=reserved))


def settled(grammar: Grammar) -> Grammar:
    """The same with conflicts as `load_grammar` decides them where nobody says."""
    return dataclasses.replace(grammar, conflicts=default_conflicts(dataclasses.replace(grammar, conflicts="all")))


STRING_TERMINALS = {"FE": '"\'"', "FX": '"\'b"', "SPEC": "/[^{}']+/", "OPEN": '"{"'}
STRING_TEXTS = ("[^{}']+", "[^{}'\\n]+", "([^{}']|{{)+", "[ab ]+", "[^{}']", "(\\\\.|[^{}'\\\\])+", "[^'{}]*b")


def random_verbatim_grammar(seed: int) -> Grammar:
    """Verbatim terminals: any of a random grammar, or the insides of strings with holes, in lines and blocks or not."""
    rng = random.Random(seed)
    if rng.random() < 0.4:
        grammar = (random_layout_grammar if rng.random() < 0.3 else random_longest_grammar)(seed)
        layout = grammar.layout
        inserted = set() if layout is None else {layout.newline, layout.indent, layout.dedent}
        others = [t for t in range(grammar.n_terminals) if t not in inserted | grammar.ignored]
        chosen = frozenset(rng.sample(others, rng.randint(1, min(3, len(others)))))
        return settled(dataclasses.replace(grammar, verbatim=chosen))
    fe = rng.choice(["FE", "FE", "(FE | FX)"])
    string = rng.choice([f"FS part* {fe}", f"FS part* {fe}", f"FS TEXT? {fe}", f"FS part (part part)* {fe}"])
    hole = rng.choice(
        ['"{" v "}"', '"{" v (":" SPEC)? "}"', '"{" v "}" | "{" "}"', 'OPEN v? "}"', '"{" v ":" part* "}"']
    )
    value = rng.choice(
        ["NAME | string", "NAME | string | NAME v", "string+ | NAME", '(NAME | string) ("+" v)? | "(" v ")"']
    )
    patterns = STRING_TERMINALS | {
        "FS": rng.choice(["/f'/", "/f?'/", "/f+'/"]),
        "TEXT": f"/{rng.choice(STRING_TEXTS)}/",
        "NAME": rng.choice(["/[abf]+/", "/[ab]+/", "/f?[ab]+/"]),
        "COMMENT": "/#[ab']*/",
    }
    verbatim = rng.choice(["TEXT FE SPEC", "TEXT SPEC", "TEXT FE FX SPEC"]).split()
    rules = [f"v: {value}", f"string: {string}"] + ([f"part: TEXT | {hole}"] if "part" in string else [])
    ignored = rng.choice([['" "', "COMMENT"], ['" "'], []])
    if rng.random() < 0.4:
        newline = rng.choice(LAYOUT_NEWLINES)
        rules += ["start: (st | _NEWLINE)*", 'st: v _NEWLINE | "if" v ":" _NEWLINE _INDENT st+ _DEDENT']
        rules += [f"_NEWLINE: {newline}", "%declare _INDENT _DEDENT"]
        ignored = [one for one in ignored if one != "COMMENT" or "#" not in newline]
    else:
        rules.append(rng.choice(["start: v*", 'start: v ("," v)*', "start: v?"]))
    rules += [f"%ignore {one}" for one in ignored]
    used = [name for name in patterns if re.search(rf"\b{name}\b", "\n".join(rules))]
    lines = [*rules, *(f"{name}: {patterns[name]}" for name in used)]
    lines += [f"// maskwright: verbatim = {name}" for name in verbatim if name in used]
    return longest("\n".join(lines), f"strings-{seed}")


MAKERS = [random_longest_grammar, random_layout_grammar, random_contextual_grammar, random_verbatim_grammar]
"""Random grammars of all kinds that the engine reads."""


def samples(grammar: Grammar, rng: random.Random, n: int) -> list[bytes]:
    """Strings of terminals, spelled at random, some with blanks or newlines between."""
    pieces = [t.literal for t in grammar.terminals if t.literal] + [
        "a",
        "b",
        "c",
        "ab",
        "é",
        "€",
        "x",
        ".",
        "0",
        "1e",
        " ",
        "#",
        "\n",
    ]
    pieces += (
        ["\n ", "\n  ", ":\n ", "\n\n", "\t", "if a", "(\n", ")", "\r\n", ":\n\t", "\n \t", "\n\t ", "\n        "]
        if grammar.layout
        else []
    )
    pieces += (
        ["f'", "'", "{", "}", "f'a{", "'}", "}b'", "a b'", "'#'", "\n '", "f' \n{", "{{", "\\\\'"]
        if grammar.verbatim
        else []
    )
    return ["".join(rng.choices(pieces, k=rng.randint(1, 5))).encode() for _ in range(n)]


def random_vocabulary(grammar: Grammar, seed: int, size: int = 40) -> Vocabulary:
    """All bytes that the grammar's texts need, and cuts of such texts; end of text is the last id but padding."""
    rng = random.Random(seed)
    texts = samples(grammar, rng, 30)
    single = sorted(set(b"".join([*texts, b"abcx01.e#z \n", "é€".encode()])))
    tokens = [bytes([byte]) for byte in single]
    for _ in range(size):
        text = b"".join(rng.choices(texts, k=2))
        begin = rng.randrange(len(text))
        tokens.append(text[begin : begin + rng.randint(2, 6)])
    rng.shuffle(tokens)
    n = len(tokens)
    return Vocabulary(f"cut-{seed}", (*tokens, b"", b"", b""), {n: "</s>", n + 1: "<unk>"}, (n,))


def vocabulary_of(*tokens: bytes, singles: bytes = b"") -> Vocabulary:
    """Tokens, then single bytes, then one end-of-text id."""
    every = (*tokens, *(bytes([byte]) for byte in singles))
    return Vocabulary("small", (*every, b""), {len(every): "</s>"}, (len(every),))


@cache
def real_automaton(name: str) -> tuple[StackAutomaton, Store]:
    """python.lark ("python") or JSON ("json") with Mistral-7B's vocabulary: the automaton and the store of it, built once."""
    grammar = longest(JSON, "json") if name == "json" else load_grammar("lark:python", lexing="longest")
    vocabulary = load_vocabulary("mistral-7b-v0.1")
    automaton = build_automaton(grammar, vocabulary)
    return automaton, Store(grammar, vocabulary, engine_table(grammar, vocabulary, automaton), automaton.counts)


def real_store(name: str) -> Store:
    return real_automaton(name)[1]


def compile_strictly(grammar: Grammar, vocabulary: Vocabulary) -> Store:
    """As `compile_store`. Raises: LimitError for a lexer that holds on where its twin backs up without end."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*back up over more", MaskwrightWarning)
        try:
            return compile_store(grammar, vocabulary)
        except MaskwrightWarning as warning:
            raise LimitError(str(warning)) from None
