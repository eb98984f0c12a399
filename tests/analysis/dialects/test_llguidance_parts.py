"""Languages inside llguidance's dialect. Verdicts are those of llguidance 1.9.1, where nothing else is said."""

from __future__ import annotations

import json

import pytest

import maskwright as mw

SPECIAL = {"<|end|>": 256, "<|call|>": 257, "<|x|>": 258}
BYTES = mw.load_vocabulary([*(bytes([i]) for i in range(256)), b"", b"", b""], eos=[256], special=SPECIAL, name="bytes")


def verdict(constraint, text) -> bool:
    """Whether a text, of bytes and special tokens, is legal."""
    matcher = mw.build_store(constraint, BYTES).matcher()
    for token in text.encode() if isinstance(text, str) else text:
        if not matcher.is_allowed(token):
            return False
        matcher.advance(token)
    return matcher.is_accepting()


JSON = '%json {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "string"}}}'
TOOLS = """start: (f_foo | f_bar)* f_end
f_end: TEXT
TEXT: /(.|\\n)*/
f_foo_hd[lazy]: TEXT "<function"
f_foo: f_foo_hd "=foo>" %json {"type": "object"} "</function>"
f_bar_hd[lazy]: TEXT "<function"
f_bar: f_bar_hd "=bar>" /[0-9]+/ "</function>"
"""
CASES = [
    (
        f'start: "a" {JSON} "z"',
        {"a{}z": True, 'a{"b":1,"a":"x"}z': True, 'a{"a":"x","b":1}z': False, 'a{ "b" : 1 }z': True},
    ),
    (f'start: "a" {JSON} "z"', {'a{"c":1,"b":1}z': False, 'a{"b":1,"c":[ 1 ]}z': True, 'a{"b":1,\n\n"c":1}z': True}),
    ('start: "a" %json {} "z"\n%ignore " "', {"a{} z": True, "a{}z ": False, "a{\n}z": True}),
    (
        'start: "a" (%json {"type": "integer"} | %json {"type": "string"}) "z"',
        {"a1z": True, 'a"x"z': True, "az": False},
    ),
    (
        'start: "a" %lark {\nstart: "b" x\nx: "c"+\n%ignore " "\n} "d"\n%ignore "_"',
        {"abcd": True, "abc cd": True, "abd": False},
    ),
    (
        'start: "a" %lark {\nstart: "b" x\nx: "c"+\n%ignore " "\n} "d"\n%ignore "_"',
        {"ab c_d": True, "a bcd": False, "abc d": True},
    ),
    (TOOLS, {"hi": True, "hi<function": False, "hi<function=bar>12</function>": True, "hi<function=bar>x": False}),
    (TOOLS, {"hi<function=foo>{}</function> x": True, "<function=foo>{}</function><function": False}),
    ('start: <|call|>+ "b"', {(257, 257, 98): True, (98,): False}),
    ('start: <[257-258]> "b"', {(257, 98): True, (258, 98): True, (98,): False}),
    ('start: <[97,99-100]>+ "b"', {(97, 98): True, (99, 100, 97, 98): True, (98, 98): False, (98,): False}),
    ('start: <[^98-99]> "b"', {(97, 98): True, (257, 98): True, (98, 98): False, (99, 98): False}),
    ('start: <[*]> "b"', {(98, 98): True, (258, 98): True, (98,): False}),
    # of `max_tokens`: llguidance reads as much into x as it can ("ab"), and cuts it off where /(aa)*/ cannot end ("ab")
    ('start: x "b"\nx[max_tokens=2]: /[ab]+/', {"ab": True, "abb": True, "aab": True, "aaab": False, "b": False}),
    ('start: x "b"\nx[max_tokens=1]: /(aa)*/', {"b": True, "aab": True, "ab": False, "aaaab": False}),
    ('start: "c" (x ",")+\nx[max_tokens=1]: /a+/\n%ignore " "', {"ca,a ,": True, "caa,": False, "c": False}),
]


@pytest.mark.parametrize(("text", "said"), CASES)
def test_parts_as_in_llguidance(text: str, said: dict[str, bool]) -> None:
    found = mw.read_constraint(text)
    assert isinstance(found, mw.Composition) and mw.read_constraint(text, "llguidance").parts
    # behind a part, llguidance ignores what the host ignores only once it has left the part: "ab c_d" is not legal there
    assert {one: verdict(found, one) for one in said} == said


def test_all_ways_to_cut_a_text_are_followed() -> None:
    """llguidance reads as much as it can into a part, and refuses the first two."""
    found = mw.read_llguidance('start: "a" %json {"type": "integer"} "1z"')
    assert [verdict(found, text) for text in ("a11z", "a111z", "a1z")] == [True, True, False]


def test_references_and_lists_of_grammars() -> None:
    text = 'start: "a" @foo "z"'
    for found in (
        mw.read_llguidance(text, grammars={"foo": 'start: "b"+'}),
        mw.read_llguidance(text, grammars={"foo": mw.load_regex("b+")}),
        mw.read_constraint(
            json.dumps({"grammars": [{"lark_grammar": text}, {"name": "foo", "lark_grammar": 'start: "b"+'}]})
        ),
    ):
        assert [verdict(found, one) for one in ("abz", "abbz", "az")] == [True, True, False]
    schemas = {"grammars": [{"lark_grammar": text}, {"name": "foo", "json_schema": {"type": "integer"}}]}
    assert [verdict(mw.read_llguidance(schemas), one) for one in ("a12z", "abz")] == [True, False]
    alone = mw.read_llguidance({"grammars": [{"json_schema": {"type": "integer"}}]})
    assert [verdict(alone, one) for one in ("12", "x")] == [True, False]
    nested = mw.read_llguidance('start: @one "."', grammars={"one": 'start: "x" @two', "two": 'start: "y"'})
    assert [verdict(nested, one) for one in ("xy.", "x.")] == [True, False]


def test_a_line_that_names_a_part_is_no_dialect() -> None:
    """`%regex` stands in both; at the beginning of a line with a name it is Lark's with parts."""
    found = mw.read_constraint('start: "x" S\n%regex S /a+b/\n')
    assert [verdict(found, text) for text in ("xaab", "xa")] == [True, False]
    with pytest.raises(mw.GrammarError, match="%regex is not supported here"):
        mw.read_constraint('start: "x" S\n%regex S /a+b/\n', "llguidance")


def test_a_text_without_parts_is_a_grammar() -> None:
    assert isinstance(mw.read_llguidance('start: "a"{2}'), mw.Grammar)
    unused = mw.read_llguidance('start: "a" | never <|x|>\nnever: "b" never\nother: %json {}')
    assert isinstance(unused, mw.Grammar)


def test_circles_and_deep_nesting_are_refused() -> None:
    with pytest.raises(mw.GrammarError, match="grammar @a needs itself: a -> b -> a"):
        mw.read_llguidance("start: @a", grammars={"a": "start: @b", "b": "start: @a"})
    chain = {f"g{i}": f'start: "x" @g{i + 1}' for i in range(9)}
    with pytest.raises(mw.LimitError, match=r"(inside|name) one another"):
        mw.read_llguidance("start: @g0", grammars=chain | {"g9": "start: /a/"})
    with pytest.raises(mw.LimitError, match="inside one another"):
        mw.read_llguidance("start: " + '%lark { start: "x" ' * 9 + "/a/" + "}" * 9)
    with pytest.raises(mw.GrammarError, match="the grammars are"):
        mw.read_llguidance("start: /a/", grammars=[])


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ('start: %lark {\nstart: "b" <[97]> "a"\n}', b""),
        ('start: "c" %lark {\nstart: "b" <|x|> "a"\n} "d"', b"cb"),
        ("start: %lark {\nstart: <|call|> <[98-99]>+\n}", b""),
        ('start: %lark {\nstart: "a" %lark {\nstart: <|x|> "b" <[*]>\n}\n}', b"a"),
    ],
)
def test_endings_have_the_tokens_that_inner_parts_take_whole(text: str, begin: bytes) -> None:
    matcher = mw.build_store(mw.read_constraint(text, "llguidance"), BYTES).matcher()
    for byte in begin:
        matcher.advance(byte)
    for token in matcher.shortest_ending().tokens:
        matcher.advance(token)
    assert matcher.is_accepting()
