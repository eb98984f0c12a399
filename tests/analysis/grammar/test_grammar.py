"""The grammar object: its JSON form, its digest, and what it refuses."""

from __future__ import annotations

import copy
import json
import pickle
import re
from dataclasses import replace
from typing import Any

import pytest
from grammars import grammars
from hypothesis import given, settings
from hypothesis import strategies as st
from own_process import prints_the_same
from shares import check_examples, share

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar import Grammar, Layout, Rule, Terminal
from maskwright.analysis.loading import load_grammar, parse_grammar

LAYOUT_TEXT = """start: (line | _NEWLINE _INDENT start _DEDENT)+
line: "(" /x/i ")" | A
A.2: "a"
UNUSED: "u"
_NEWLINE: /\\n */
%declare _INDENT _DEDENT
%ignore " "
"""


@pytest.fixture(scope="module")
def small() -> Grammar:
    return parse_grammar(LAYOUT_TEXT, name="small")


def through_json(grammar: Grammar) -> Grammar:
    return Grammar.from_dict(json.loads(json.dumps(grammar.to_dict())))


def test_round_trip(small: Grammar) -> None:
    for grammar in (small, load_grammar("lark:python"), replace(small, layout=None, lexing="nfa", conflicts="shift")):
        again = through_json(grammar)
        assert again == grammar and again.digest == grammar.digest and hash(again) == hash(grammar)


@settings(deadline=None, max_examples=60)
@given(grammars())
def test_round_trip_of_random_grammars(grammar: Grammar) -> None:
    assert through_json(grammar) == grammar


def test_digest_is_that_of_the_content(small: Grammar) -> None:
    assert small.digest == parse_grammar(LAYOUT_TEXT, name="small").digest
    changed = [
        replace(small, name="other"),
        replace(small, rules=small.rules[::-1]),
        replace(small, ignored=frozenset()),
        replace(small, layout=None),
        replace(small, lexing="longest"),
        replace(small, reserved="all"),
        replace(small, reserved="words"),
        replace(small, conflicts="shift"),
        replace(small, text=""),
        replace(small, unused_terminals=()),
        replace(small, terminals=(replace(small.terminals[0], priority=7), *small.terminals[1:])),
    ]
    assert len({grammar.digest for grammar in [small, *changed]}) == len(changed) + 1


def test_digest_survives_pickling_and_copying(small: Grammar) -> None:
    fresh = parse_grammar(LAYOUT_TEXT, name="small")
    for grammar in (pickle.loads(pickle.dumps(fresh)), pickle.loads(pickle.dumps(small)), copy.deepcopy(small)):
        assert grammar == small and grammar.digest == small.digest
    assert b"lark.lexer" not in pickle.dumps(load_grammar("lark:python"))


@pytest.mark.parametrize(
    ("name", "seed"), share([("lark:lark", "77"), *(("lark:python", seed) for seed in ("77", "0", "1"))], 1)
)
def test_digest_does_not_depend_on_hash_order(name: str, seed: str) -> None:
    code = f"""
from maskwright.analysis.loading import load_grammar, normalise
from maskwright.analysis.grammar.normalise import inline_unit_only
grammar = load_grammar({name!r})
print(grammar.digest, normalise(grammar).digest, inline_unit_only(grammar).digest)
"""
    assert len(prints_the_same(code, seed).split()) == 3


CHANGES: list[tuple[str, Any, str]] = [
    ("name", 3, "name is of type int; expected str"),
    ("lexing", "shortest", "lexing is 'shortest'"),
    ("lexing", None, "lexing is of type NoneType"),
    ("conflicts", "some", "conflicts is 'some'"),
    ("conflicts", 0, "conflicts is of type int"),
    ("text", ["a"], "text is of type list"),
    ("start", True, "start is of type bool; expected int"),
    ("start", 1.0, "start is of type float"),
    ("start", 0, "start symbol number 0 is not a nonterminal"),
    ("start", -1, "start symbol number -1 is not a nonterminal"),
    ("start", 10**40, "is not a nonterminal"),
    ("terminals", None, "terminals is of type NoneType; expected list"),
    ("terminals", {"A": 1}, "terminals is of type dict"),
    ("terminals", ["A"], "a member of terminals is of type str; expected list"),
    ("terminals", [["A", "a"]], "a terminal has 2 fields; expected 7"),
    ("terminals", [[1, "a", "", None, 0, 0, 0]], "a terminal's name is of type int"),
    ("terminals", [["A", 5, "", None, 0, 0, 0]], "pattern or literal of terminal A is of type int"),
    ("terminals", [["A", "a", None, None, 0, 0, 0]], "flags of terminal A is of type NoneType"),
    ("terminals", [["A", "a", "", None, "0", 0, 0]], "priority, line or column of terminal A is of type str"),
    (
        "terminals",
        [[name, "a", "", None, 10**20, 0, 0] for name in "ABCDEFGH"],
        "a priority or place that is not a 32-bit number",
    ),
    ("terminals", [["A", "a", "", None, 0, 0, 0]] * 8, "two terminals are named 'A'"),
    ("nonterminals", "start", "nonterminals is of type str"),
    ("nonterminals", [0], "a member of nonterminals is of type int"),
    ("nonterminals", [], "is not a nonterminal"),
    ("rules", 5, "rules is of type int"),
    ("rules", [[]], "a rule has no left side"),
    ("rules", [8], "a member of rules is of type int"),
    ("rules", [["8", 1]], "a member of a rule is of type str"),
    ("rules", [[8, False]], "a member of a rule is of type bool"),
    ("rules", [[0, 1]], "uses a symbol number outside"),
    ("rules", [[8, -1]], "uses a symbol number outside"),
    ("rules", [[8, 10**40]], "uses a symbol number outside"),
    ("ignored", [1, "2"], "a member of ignored is of type str"),
    ("ignored", [99], "an ignored symbol is not a terminal"),
    ("ignored", [-1], "an ignored symbol is not a terminal"),
    ("unused_terminals", [None], "a member of unused_terminals is of type NoneType"),
    ("layout", [], "layout is of type list; expected dict"),
    ("layout", {}, r"the layout has the members \[\]"),
    ("layout.newline", "0", "the layout's newline is of type str"),
    ("layout.indent", -1, "the layout names a symbol that is not a terminal"),
    ("layout.dedent", 8, "the layout names a symbol that is not a terminal"),
    ("layout.tab_length", 0, "tab length is 0; expected 1 to 1000"),
    ("layout.tab_length", 10**30, "tab length is 10+; expected 1 to 1000"),
    ("layout.tabs", 8, "the layout's tabs is of type int; expected str"),
    ("layout.tabs", "8", "the layout's tabs are '8'; expected lark or consistent"),
    ("layout.brackets", [[0]], "a bracket pair does not have two members"),
    ("layout.brackets", [[0, 10**9]], "the layout names a symbol that is not a terminal"),
    ("layout.brackets", [[0, 0]], "the layout gives one terminal two roles"),
    ("layout.brackets", 7, "brackets is of type int"),
]


@pytest.mark.parametrize(("key", "value", "message"), CHANGES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CHANGES)])
def test_hostile_data(small: Grammar, key: str, value: Any, message: str) -> None:
    assert (small.n_terminals, small.n_nonterminals) == (8, 3)
    data = small.to_dict()
    *folder, last = key.split(".")
    (data[folder[0]] if folder else data)[last] = value
    with pytest.raises(GrammarError, match=message):
        Grammar.from_dict(data)


def test_missing_keys_and_wrong_wholes(small: Grammar) -> None:
    assert Grammar.from_dict(small.to_dict() | {"reserved": "words"}).reserved == "words"
    older = {key: value for key, value in small.to_dict().items() if key != "reserved"}
    assert small.reserved == "none" and Grammar.from_dict(older).reserved == "all"  # what contextual lexing meant then
    with pytest.raises(GrammarError, match="reserved is 'most'"):
        Grammar.from_dict(small.to_dict() | {"reserved": "most"})
    for key in older:
        data = small.to_dict()
        del data[key]
        with pytest.raises(GrammarError, match=f"it has no '{key}'"):
            Grammar.from_dict(data)
    wholes: list[Any] = [None, [], "grammar", 5]
    for whole in wholes:
        with pytest.raises(GrammarError, match=f"the whole is of type {type(whole).__name__}; expected dict"):
            Grammar.from_dict(whole)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("n", share([20, 200], 1))
def test_random_damage_is_a_grammar_error_or_another_grammar(n: int) -> None:
    check_examples(check_damage, n, st.data())


def check_damage(data: st.DataObject) -> None:
    damaged = parse_grammar('start: "a" start | B\nB: /b/').to_dict()
    key = data.draw(st.sampled_from(sorted(damaged)))
    if isinstance(damaged[key], list) and damaged[key] and data.draw(st.booleans()):
        damaged[key][data.draw(st.integers(0, len(damaged[key]) - 1))] = data.draw(JSON)
    else:
        damaged[key] = data.draw(JSON)
    try:
        grammar = Grammar.from_dict(damaged)
    except GrammarError as error:
        assert re.search(r"not a grammar written by maskwright|^grammar ", str(error))
    else:
        assert through_json(grammar) == grammar


def test_constructor_refuses_what_is_no_grammar() -> None:
    a = Terminal("A", "a")
    with pytest.raises(GrammarError, match=r"grammar g: rule .* uses a symbol number outside 0\.\.1"):
        Grammar("g", (a,), ("S",), (Rule(1, (2,)),), start=1)
    with pytest.raises(GrammarError, match=r"rule .* uses a symbol number outside"):
        Grammar("g", (a,), ("S",), (Rule(0, (0,)),), start=1)
    with pytest.raises(GrammarError, match="gives one terminal two roles"):
        Grammar("g", (a,), ("S",), (), start=1, layout=Layout(0, 0, 0, ()))


def test_shown_forms(small: Grammar) -> None:
    assert str(small).startswith("<Grammar small: 8 terminals, 3 nonterminals, ")
    assert "line : LPAR __ANON_0 RPAR" in [small.rule_text(rule) for rule in small]
    assert small.display_name(small.terminal_number["__ANON_0"]) == "/x/i"
