"""Every bad grammar ends in a MaskwrightError that says what, where and what to do; nothing runs without end."""

from __future__ import annotations

import os
import random
import re
import time
from pathlib import Path

import pytest
from mask_bits import mask_of
from own_process import prints_the_same
from paths import TESTS
from shares import share
from written_cases import parameters

import maskwright as mw
from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError, UnknownNameError
from maskwright.analysis.grammar.lark_files import MAX_BYTES, caret
from maskwright.analysis.loading import lark_limits, lark_loader, load_grammar, parse_grammar

A = 'start: "a"\n'

# text, place, message
BAD = [
    *parameters("lark_errors", "bad"),
    (
        "A: /a{" + "9" * 5_000 + "}/\nB." + "9" * 5_000 + ': "b"\nstart: A B',
        "1:4",
        "Python's re refuses this pattern: Exceeds",
    ),
    (f'start: A\nA.{"9" * 5000}: "b"', "2:1002", "Exceeds the limit"),
    ('start: "\ud800"', "1:8", "surrogates not allowed"),
    ("start: " + "(" * 3000 + '"a"' + ")" * 3000, "1:108", "brackets stand more than 100 deep inside"),
]


@pytest.mark.parametrize(("text", "place", "message"), BAD)
def test_bad_texts(text: str, place: str | None, message: str) -> None:
    with pytest.raises(MaskwrightError) as caught:
        parse_grammar(text, name="g.lark")
    first, *rest = str(caught.value).split("\n")
    assert re.search(message, str(caught.value))
    assert len(re.findall(r"\d+[:,] ?(?:col|column )?\d+", first.replace("5..2", "").replace("{2,3}", ""))) <= 1, (
        "one place, not two"
    )
    if place is None:
        assert first.startswith("g.lark: ")
    else:
        assert first.startswith(f"g.lark:{place}: ")
        line, column = map(int, place.split(":"))
        shown, pointer = (line_[4:] for line_ in rest[-2:])
        assert pointer.strip() == "^"
        source = text.split("\n")[line - 1]
        assert source[column - 1 : column + 9].startswith(shown[pointer.index("^") :][:9]) or not source.isprintable()


GBNF = 'root ::= object\nobject ::= "{" ws "}"\nws ::= [ \\t\\n]*\n'
FOREIGN = {
    "GBNF": (
        GBNF,
        "1:7",
        "this is GBNF, llama.cpp's grammar language; expected a grammar in Lark's language: .*`name ::= ...`",
    ),
    "GBNF with a quote that opens": ('root ::= "\\"" [^"]* "\\""\n', None, "this is GBNF"),
    "W3C": ("Letter ::= [a-z]\nWord ::= Letter+\n", None, "this is EBNF as the W3C writes it, or GBNF"),
    "BNF": ('<start> ::= "a" | <b>\n<b> ::= "b"\n', "1:1", "this is BNF;"),
    "EBNF": ('letter = "a" | "b" ;\nword = letter , { letter } ;\n', "1:8", "this is EBNF .ISO 14977. or ABNF;"),
    "ABNF": ('rule = %x41 / "b"\n', None, "this is EBNF .ISO 14977. or ABNF;"),
    "PEG": ('start <- "a" / "b"\n', None, "this is a parsing expression grammar"),
    "ANTLR": ("grammar Foo;\nstart : 'a' ;\n", "1:9", "this is an ANTLR grammar;"),
    "yacc": ("%token A\n%%\nstart: A ;\n%%\n", "1:1", "this is a yacc grammar;"),
    "JSON Schema": (
        '{"$schema": "https://x.invalid", "type": "object"}',
        "1:1",
        r"this is a JSON Schema; .*: mw\.load_schema",
    ),
    "a schema without its name": ('{"properties": {"a": {"type": "integer"}}}', "1:1", "this is a JSON Schema;"),
    "a schema that was cut off": ('{"$schema": "https://x.invalid", "type": ', "1:1", "this is a JSON Schema;"),
    "JSON": ("[1, 2]", "1:1", "this is JSON; expected a grammar"),
    "a tokenizer": ('{"added_tokens": [], "model": {}}', "1:1", "this is a tokenizer.json; .*--tokenizer"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_other_grammar_languages_are_recognised(case: str, tmp_path: Path) -> None:
    """By what they say, under any name."""
    text, place, message = FOREIGN[case]
    for name in ("mine.lark", "mine.gbnf", "mine.json"):
        (tmp_path / name).write_text(text)
        with pytest.raises(GrammarError, match=rf"{name}:{place or ''}.*{message}"):
            load_grammar(tmp_path / name)


def test_what_lark_reads_is_no_other_language() -> None:
    from maskwright.analysis.grammar.foreign import language_of
    from maskwright.analysis.loading.names import grammar_text, known_grammars

    for name in known_grammars():
        assert language_of(grammar_text(name)) is None, name
    for text in ("", "\n", "x", "%import common.INT\nstart: INT", '// a = b\nstart: "="', "[", "{"):
        assert language_of(text) is None


@pytest.mark.parametrize("part", ["a" * 9, " ", "<", "=", "{", "{1,", '{"a":', "[", "::", "\n", "a=\n", '"', "_"])
def test_hints_are_linear(part: str) -> None:
    """Ten times the text takes at most some thirty times the time, and never seconds."""
    from maskwright.analysis.grammar.foreign import hint_at, language_of

    text = part * (300_000 // len(part))
    begin = time.process_time()
    language_of(text)
    hint_at(text, len(text) // 2)
    assert time.process_time() - begin < 3


MULTIPLIED = {
    "alternatives": 'start: ("a"|"b")~30',
    "optionals": "start: " + " ".join(f'["{letter}"]' for letter in "abcdefghijklmnopqrstuvwxyz"),
    "repeats": 'start: (((("a"~49)~49)~49)~49)~49',
    "repeats of groups": 'start: (("a"|"b"|"c")~0..40)*',
    "helper of a group": 'start: (("a"|"b")~12)+',
    "large repeats of groups": f"start: ({'|'.join(map(chr, range(97, 123)))})~60\n"
    + "\n".join(f'{chr(i)}: "{chr(i)}"' for i in range(97, 123)),
    "stars in repeats": 'start: ("a" | ("b")*)~12',
    "a star of a rule in repeats": 'start: (start | r0*)~9\nr0: "b"',
    "stars in a row": "start: " + " ".join(f'"{letter}"*' for letter in "abcdefghijklmnopqrstuvwxyz"),
    "a star in optionals of a star": 'start: (("a"* "b"?)~9 "c")*',
    "many helpers": "start: " + " ".join(f'(("a"|"b")~11 "c{i}")+' for i in range(20)),
    "many rules": "start: "
    + " | ".join(f"r{i}" for i in range(20))
    + "\n"
    + "".join(f'r{i}: ("a"|"b")~11\n' for i in range(20)),
}

GROWING = {
    "a template": 'start: f{"a"}\nf{x}: (x | "b")~30',
    "a rule as it is written": "start: " + '"a" ' * 100_001,
    "a terminal": 'start: A\nA: "x"~99999999999 | "b"',
    "terminals": "start: A0\n" + "".join(f"A{i}: A{i + 1} A{i + 1}\n" for i in range(40)) + 'A40: "x"\n',
    "template": 'start: f{"a"}\nf{x}: "b" | f{g{x}}\ng{y}: y',
    "template with doubling names": 'start: f{"a"}\nf{x}: f{g{x, x}}\ng{y, z}: y z',
    "templates": 'start: t0{"a"}\nt30{x}: x\na{x}: x "1"\nb{x}: x "2"\n'
    + "".join(f"t{i}{{x}}: t{i + 1}{{a{{x}}}} t{i + 1}{{b{{x}}}}\n" for i in range(30)),
}


@pytest.mark.parametrize("case", GROWING)
def test_growth_is_refused_at_its_cause(case: str) -> None:
    with pytest.raises(LimitError, match=r"(?s)^g\.lark:\d+:1: .*(grows? past|do not end within).*\^$"):
        parse_grammar(GROWING[case], name="g.lark")


@pytest.mark.parametrize("case", MULTIPLIED)
def test_what_would_multiply_gets_rules_of_its_own(case: str) -> None:
    start = time.process_time()
    assert len(parse_grammar(MULTIPLIED[case], conflicts="all").rules) < 200
    assert time.process_time() - start < 2


@pytest.mark.parametrize("seed", range(30))
def test_rules_of_their_own_change_no_text(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random rules multiplied out by Lark, and with nothing multiplied."""
    rng = random.Random(seed)

    def part(depth: int) -> str:
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(['"a"', '"b"', '"c"', "other", '"a" "b"', '"c"'])
        inside = " ".join(part(depth - 1) for _ in range(rng.randint(1, 2)))
        kind = rng.choice(["[{}]", "({})?", "({} | {})", "({})*", "({})+", "({})~2", "({} | {})~1..3", "(({})~0..2)"])
        return kind.format(inside, part(depth - 1))

    tokens = [b"</s>", b"a", b"b", b"c", b"d", b"ab", b"cd", b"da"]
    vocabulary = mw.Vocabulary.from_tokens(tokens, eos=[0])
    while True:
        text = f'start: {" ".join(part(2) for _ in range(3))} | {part(1)} "d"\nother: {part(1)} "d"'
        try:
            whole = mw.build_store(parse_grammar(text, lexing="longest", conflicts="all"), vocabulary)
            break
        except GrammarError:  # Lark multiplies some out to equal rules, others have no texts
            continue
    monkeypatch.setattr(lark_limits, "MAX_RULE_SIZE", 3)
    monkeypatch.setattr(lark_limits, "MAX_GROWN_SIZE", 1 << 41)
    monkeypatch.setattr(lark_limits, "_GROWS", 0)
    monkeypatch.setattr(lark_loader, "check_sizes", lambda builder, files: None)
    split = mw.build_store(parse_grammar(text, lexing="longest", conflicts="all"), vocabulary)
    for _ in range(4):
        one, other = whole.matcher(), split.matcher()
        for _ in range(8):
            found = mask_of(one)
            assert mask_of(other) == found, (text, one.said())
            if not found - {0}:
                break
            token = rng.choice(sorted(found - {0}))
            one.advance(token)
            other.advance(token)


@pytest.mark.slow
def test_what_is_large_but_finite_loads() -> None:
    assert len(parse_grammar('start: ("a"|"b")~12').rules) == 2**12
    assert len(parse_grammar('start: ("a"|"b"|"c")~60').rules) < 100
    assert len(parse_grammar('start: ("a"|"b")~60 ("c"|"d")~70 ("e"|"f")~80').rules) < 1_000
    assert len(parse_grammar('start: ("a"|"b"*)~8').rules) == 2**9 + 1
    assert len(parse_grammar('start: f{"a"}\nf{x}: x | "(" f{x} ")"').rules) == 3


@pytest.mark.parametrize("literal", ['"' + "\\" * 301 + "x", "/" + "\\" * 301 + "x"])
def test_open_literals_full_of_backslashes_do_not_hang(literal: str) -> None:
    with pytest.raises(GrammarError, match="begins here and does not end"):
        parse_grammar(A + f"b: {literal}\n")


def test_names_that_are_no_grammar(tmp_path: Path) -> None:
    (tmp_path / "jason.lark").write_text(A)
    cases = [
        ("", UnknownNameError, r"name is empty \(known: c, .*, lark:lark, lark:python; or a path to a .lark file\)"),
        ("lark:pyton", UnknownNameError, "Lark's wheel has no grammar 'lark:pyton'; did you mean 'lark:python'"),
        ("lark:../grammars/python", UnknownNameError, "Lark's wheel has no grammar"),
        ("pythn", UnknownNameError, "no grammar is named 'pythn'; did you mean 'python' or 'lark:python'"),
        (str(tmp_path / "json.lark"), UnknownNameError, "json.lark' does not exist; did you mean .*jason.lark"),
        (str(tmp_path / "jason.lark" / "x"), UnknownNameError, "does not exist"),
        (str(tmp_path), GrammarError, "is a directory; expected a .lark file"),
        ("x" * 100_000, GrammarError, r"'x{40}\.\.\.x{30}' cannot be read: File name too long"),
        ("a\0b", GrammarError, "cannot be read: .*embedded null (byte|character)"),
    ]
    for name, kind, message in cases:
        with pytest.raises(kind, match=message):
            load_grammar(name)


def test_neighbours_are_named_if_they_are_near_and_can_be_printed(tmp_path: Path) -> None:
    for name in (*(b"g%d.lark" % n for n in range(30)), b"z\xff.lark"):
        (tmp_path / os.fsdecode(name)).write_text(A)
    for missing in ("g77.lark", "z.lark"):
        with pytest.raises(UnknownNameError, match="does not exist; did you mean ") as raised:
            load_grammar(str(tmp_path / missing))
        text = str(raised.value)
        assert text.isprintable() and "udcff" not in text and text.count(str(tmp_path)) <= 4
        assert "(known: c, " in text and text.endswith("lark:python; or a path to a .lark file)")


def test_files_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "g.lark"
    for data, message in [
        (b"start: \xff", r"is not UTF-8: byte 0xff at offset 7; save it as UTF-8"),
        (A.encode("utf-16"), r"is not UTF-8: byte 0x.. at offset 0"),
        (b"\x7fELF\x00\x00", "g.lark: it holds a NUL character, so it is not a text file"),
        (b"", r"g\.lark is empty; expected rules"),
        (b"\xef\xbb\xbf", r"g\.lark is empty; expected rules"),
        (b"// nothing", "has no rule 'start'; .* none, it defines no rules"),
        (b" " * (MAX_BYTES + 1), "is longer than 16,777,216 bytes: it is not a grammar"),
    ]:
        path.write_bytes(data)
        with pytest.raises(GrammarError, match=message):
            load_grammar(path)
    if os.geteuid() != 0:
        path.chmod(0)
        with pytest.raises(GrammarError, match="cannot be read: Permission denied"):
            load_grammar(path)


def test_errors_in_imported_files_name_that_file(tmp_path: Path) -> None:
    main, part = tmp_path / "main.lark", tmp_path / "part.lark"
    main.write_text("start: x\n%import .part.x\n")
    cases = [
        ("x: (", r"part\.lark:1:5: Unclosed parenthesis"),
        ('x: y\ny: "a', r"part\.lark:2:4: a string or regular expression begins here"),
        ("z: x\nx: y", r"part\.lark:2:4: Rule 'part__y' used but not defined"),
        ('x: "a"\nx: "b"', r"Rule 'x' defined more than once"),
        (
            "%import .part.x\nx: x",
            r"main\.lark: more than 100 files are imported; do the imports of part form a circle",
        ),
        ("%import .gone.x\n", r"part\.lark:1:1: cannot import 'gone': grammar file .*gone\.lark' does not exist"),
    ]
    for text, message in cases:
        part.write_text(text)
        with pytest.raises(MaskwrightError, match=message):
            load_grammar(main)
    part.write_bytes(b"x: \xff")
    with pytest.raises(GrammarError, match=r"main\.lark:2:1: cannot import 'part': .*part\.lark' is not UTF-8"):
        load_grammar(main)
    part.unlink()
    part.mkdir()
    with pytest.raises(GrammarError, match=r"main\.lark:2:1: cannot import 'part': .* is a directory"):
        load_grammar(main)


def test_caret_points_into_long_lines_and_past_control_characters() -> None:
    line = "a" * 500 + "\t\x1b*" + "b" * 500
    shown, pointer = caret(line, 1, 503).split("\n")[1:]
    assert len(shown) < 130 and shown[pointer.index("^")] == "*" and "\x1b" not in shown
    assert caret("a", 2, 1) == ""


@pytest.mark.parametrize("seed", share(["3", "1", "2"], 1))
def test_messages_do_not_depend_on_hash_order(seed: str) -> None:
    code = """
from maskwright.analysis.loading import parse_grammar
for text in ('start: "a"\\n%ignore Q\\n%ignore P\\n%ignore R', 'start: "a"~2..'):
    try: parse_grammar(text)
    except ValueError as error: print(error)
"""
    assert prints_the_same(code, seed).count("\n") == 6


def mutated(text: str, rng: random.Random) -> str:
    """The text with a few pieces dropped, doubled, moved or replaced by what the grammar language is made of."""
    pieces = re.findall(r"\w+|\s+|[^\w\s]", text)
    extra = ['"', "/", "\\", "(", ")", "[", "]", "{", "}", "|", "~", "..", "->", ":", "%import ", "%declare ", "%ignore ",
             "%extend ", "%override ", "_", "A", "a", "9", "\n", "?", "!", ".", ",", "*", "start", "common.INT", "\u2028"]  # fmt: skip
    for _ in range(rng.randint(1, 4)):
        i, j = rng.randrange(len(pieces)), rng.randrange(len(pieces))
        action = rng.randrange(4)
        if action == 0:
            del pieces[i]
        elif action == 1:
            pieces[i] = rng.choice(extra)
        elif action == 2:
            pieces.insert(i, pieces[j])
        else:
            pieces.insert(i, rng.choice(extra))
    return "".join(pieces)


@pytest.mark.parametrize(
    ("name", "n_texts"),
    share([("lark", 20), ("python", 6), ("features", 30), ("lark", 300), ("python", 60), ("features", 300)], 3),
)
def test_mutated_grammars_load_or_fail_clearly(name: str, n_texts: int) -> None:
    folder = TESTS / "data" / "grammars"
    text = (folder / "features.lark").read_text() if name == "features" else load_grammar(f"lark:{name}").text
    start = "file_input" if name == "python" else "start"
    rng = random.Random(name)
    n_loaded = 0
    for _ in range(n_texts):
        candidate = mutated(text, rng)
        try:
            n_loaded += len(parse_grammar(candidate, name="g.lark", start=start, folder=folder).terminals) > 0
        except MaskwrightError as error:
            assert str(error).strip() and "Token(" not in str(error), candidate
    assert 0 < n_loaded < n_texts


def test_names_as_bytes(tmp_path: Path) -> None:
    """As paths may be; a text has to be decoded first."""
    assert load_grammar(b"json") == load_grammar("json")  # type: ignore[arg-type]
    assert load_grammar(b"lark:lark").name == "lark.lark"  # type: ignore[arg-type]
    (tmp_path / "own.lark").write_text('start: "a"')
    assert load_grammar(bytes(tmp_path / "own.lark")).name == "own.lark"  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match=r"^no grammar is named 'jsn'; did you mean 'json'"):
        load_grammar(b"jsn")  # type: ignore[arg-type]
    with pytest.raises(GrammarError, match=r"^the text of a grammar is of type bytes; .*decode it: data.decode\(\)"):
        load_grammar(b'start: "a"\n')  # type: ignore[arg-type]
