"""What users read when a token is refused in a JSON text of a schema."""

from __future__ import annotations

import pytest
from random_graphs import automaton

from maskwright.analysis.schema.shapes import (
    NO_NODE,
    Arrays,
    Contained,
    Numbers,
    Objects,
    SchemaGraph,
    Spellings,
    StringLiterals,
    Strings,
    Texts,
)
from maskwright.analysis.schema.spacing import everywhere, spacing_of
from maskwright.decoding.explain.explain import SchemaExplainer

NODES = (
    (
        Objects(
            (b"age", b"name", b"never", b"tags", b"word"),
            (1, 2, NO_NODE, 3, 4),
            (True, False, False, False, False),
            (5,),
            None,
            2,
            4,
        ),
    ),
    (Numbers(automaton("0|[1-9][0-9]*")),),
    (Strings(None, 2, 4),),
    (Arrays((), 6, 1, 2, None, True),),
    (Spellings((b"null", b"true")), StringLiterals((b"high", b"low"))),
    (Arrays((1, 0), NO_NODE, 0, 2, Contained(1, 1, (2,), NO_NODE)),),
    (StringLiterals((b"a", b"b")), Numbers(automaton("[0-9]+"))),
)
TEXTS = Texts(SchemaGraph(NODES, 0))

REFUSED = [
    (b"", b"[", "$: expected an object"),
    (b'{"name":', b"1", "$.name: expected a string"),
    (b'{"word":', b"[", '$.word: expected null, true, "high" or "low"'),
    (b'{"word":', b"nil", "$.word: expected null"),
    (b'{"word":"', b"x", '$.word: expected "high" or "low"'),
    (b'{"word":"hi', b'"', '$.word: expected "high" or "low"'),
    (b'{"name":"abcd', b"e", "$.name: the string is longer than 4 characters"),
    (b'{"name":"a', b'"', "$.name: the string is shorter than 2 characters"),
    (b'{"name":"ab"', b"}", '$: property "age" must be there'),
    (b'{"age":1', b"}", "$: at least 2 properties must be there, and there is 1"),
    (b"{", b"}", '$: property "age" must be there'),
    (b'{"age"', b"1", "$.age: expected : behind the name"),
    (b'{"age":1', b";", "$: expected ,"),
    (b'{"age":0', b"1", "$.age: no number that may stand here goes on with '1'"),
    (b'{"age":', b"-", "$.age: expected an integer"),
    (
        b'{"never',
        b'"',
        '$: property "never" may not be there; expected "age", "name", "tags", "word" or any other name',
    ),
    (b'{"age":1,"age', b'"', '$: property "age" is there already'),
    (b'{"x":["ab"],"x', b'"', '$: property "x" is there already'),
    (
        b'{"age":1,"a":["ab"],"b":["ab"],"c":["ab"]',
        b",",
        "$: no further property may come: there may be at most 4 properties",
    ),
    (b'{"a":["ab"],"b":["ab"],"c":["ab"],"', b"n", '$: no property that may come begins so: "n"; expected "age"'),
    (b'{"tags":[', b"]", "$.tags: at least 1 item must be there, and there are none"),
    (b'{"tags":[1,2', b",", "$.tags: no further item may come: there may be at most 2 items"),
    (b'{"tags":["a","', b"a", '$.tags[1]: the item would be equal to one before it, whatever follows; expected "b"'),
    (b'{"tags":["a",', b"[", '$.tags[1]: expected "b" or an integer'),
    (b'{"tags":["a"', b"x", "$.tags: expected , or ]"),
    (b'{"x":[', b"]", "$.x: at least 1 item that is asked for by `contains` must be there"),
    (b'{"name":"', b"\n", "$.name: control character 0x0a must be escaped in a string"),
    (b'{"name":"', b"\xff", "$.name: the bytes of the string are not valid UTF-8"),
    (b'{"name":"', b"\\x", "$.name: expected one of"),
    (b'{"name":"', b"\\u12x", "$.name: expected four hexadecimal digits"),
    (b'{"name":"\\ud83d', b"x", "second half of a surrogate pair; half a pair is no character"),
    (b'{"age":1,"name":"ab"}', b"x", "$: the text is complete, only white space may follow"),
    (b'{"age":1,"f o":["ab",{"name":"ab', b"\xff", '$["f o"][1].name: '),
]


@pytest.mark.parametrize(("text", "data", "message"), REFUSED)
def test_refusals(text: bytes, data: bytes, message: str) -> None:
    found = SchemaExplainer(TEXTS, "person").token(text, data, f"token 7 ({data!r})")
    assert not found.is_allowed
    assert found.summary.startswith(f"token 7 ({data!r}) is not legal here under person: ")
    assert message in found.summary
    assert any(message in attempt.why for attempt in found.attempts)
    assert found.position is not None and len(text) <= found.position.offset < len(text + data)
    assert message in str(found)


def test_numbers_that_are_equal_to_an_item() -> None:
    found = SchemaExplainer(TEXTS).token(b'{"tags":[1,01', b"]", "it")
    assert "$.tags[1]: the number may not end here: an item before it is equal" in found.summary


def test_spacing() -> None:
    explainer = SchemaExplainer(TEXTS._replace(spacing=everywhere(automaton(" ?"))))
    assert "$.age: a line feed may not stand here" in explainer.token(b'{"age":', b"\n", "it").summary
    needed = SchemaExplainer(TEXTS._replace(spacing=everywhere(automaton(" "))))
    assert "$: white space is expected here" in needed.token(b"", b"{", "it").summary
    natural = SchemaExplainer(TEXTS._replace(spacing=spacing_of("natural")))
    text = b'{"age":1,"name":"ab" '
    assert "$: expected }" in natural.token(text, b"1", "it").summary
    assert "$: expected }" in natural.token(text, b",", "it").summary
    assert "a blank may not stand here, unless the bracket may be closed" in natural.token(text[:8], b" ", "it").summary


def test_whole_texts() -> None:
    explainer = SchemaExplainer(TEXTS, "person")
    good = b'{"age":1,"name":"ab"}'
    assert explainer.text(good).is_whole and explainer.text(good).is_allowed
    begun = explainer.text(good[:-1])
    assert begun.is_allowed and begun.is_whole is False
    assert "tried: $: expected , or }" in str(begun)
    wrong = explainer.text(b'{"age":x}')
    assert wrong.summary == "not legal under person at line 1, column 8: $.age: expected an integer"
    assert b"0" in wrong.bytes_allowed and b"x" not in wrong.bytes_allowed
    assert "byte order mark" in explainer.text(b"\xef\xbb\xbf{}").summary


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "$: expected an object"),
        (b'{"age":1', "$: at least 2 properties must be there, and there is 1"),
        (b'{"name":"ab', "$.name: a string is under way"),
        (b'{"na', "$: the name of a property is under way"),
        (b'{"word":tr', "$.word: expected true"),
        (b'{"tags":[', "$.tags: at least 1 item must be there"),
        (b'{"tags":[1', "$.tags: expected , or ]"),
        (b'{"age"', "$.age: expected : behind the name"),
        (b'{"age":x', "not legal under person at line 1, column 8: $.age: expected an integer"),
    ],
)
def test_ends_of_texts(text: bytes, message: str) -> None:
    found = SchemaExplainer(TEXTS, "person").end(text, "token 2 (</s>)")
    assert not found.is_allowed and message in found.summary
    assert SchemaExplainer(TEXTS).end(b'{"age":1,"name":"ab"} ', "the end").is_allowed


def test_allowed_tokens() -> None:
    found = SchemaExplainer(TEXTS).token(b'{"age', b'":1', "it")
    assert found.is_allowed and found.summary == "it may come next"
    wrong = SchemaExplainer(TEXTS).token(b'{"age":x', b"1", "it")
    assert wrong.what == "the text" and "$.age: expected an integer" in wrong.summary
