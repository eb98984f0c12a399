"""Names, paths, texts and lists of bytes do wherever a grammar, a vocabulary or a store does; and what users read of these types."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwright as mw

TOKENS = [b"<eos>", b"[", b"]", b",", b"1", b"12", b"]]"]
LISTS = 'start: "[" [start ("," start)*] "]" | INT\nINT: /[0-9]+/\n'


def test_a_store_of_names() -> None:
    store = mw.build_store("json", "python-tiny")
    assert isinstance(store, mw.Store)
    assert (store.grammar.name, store.vocabulary.name) == ("json", "python-tiny")
    assert mw.cached_store("json", "python-tiny").grammar.digest == store.grammar.digest
    from maskwright.models import model_folder

    assert store.vocabulary == mw.load_vocabulary(model_folder())


def test_a_store_of_a_text_and_a_list_of_bytes() -> None:
    store = mw.build_store(LISTS, mw.Vocabulary.from_tokens(TOKENS, eos=[0]))
    assert isinstance(store, mw.Store)
    words = np.zeros(1, np.uint32)
    matcher = store.matcher()
    matcher.advance_bytes(b"[1")
    matcher.fill(words)
    assert [i for i in range(len(TOKENS)) if words[0] >> i & 1] == [2, 3, 4, 5]
    again = mw.build_store(mw.parse_grammar(LISTS), TOKENS)
    assert again.vocabulary.eos == () and again.grammar == store.grammar


def test_every_function_takes_what_stands_for_a_grammar(tmp_path: Path) -> None:
    path = tmp_path / "lists.lark"
    path.write_text(LISTS)
    grammar = mw.load_grammar(path)
    for source in (grammar, path, str(path), LISTS):
        assert source is grammar or mw.load_grammar(source).rules == grammar.rules  # type: ignore[arg-type]
        assert mw.interchange_classes(source) == mw.interchange_classes(grammar)
        assert mw.Judge(source).grammar.rules == mw.Deciders(source).grammar.rules
        assert mw.normalise(source).rules == mw.normalise(grammar).rules
        assert mw.analyze(source, forecast=False).facts["grammar"]["rules"] == len(grammar.rules)
        codes = [finding.code for finding in mw.lint_grammar(source).findings]
        assert codes == [finding.code for finding in mw.lint_grammar(grammar).findings]
    assert mw.lint_grammar(LISTS, TOKENS).tokenizer == "<tokens>"


def test_stores_by_any_path(tmp_path: Path) -> None:
    store = mw.build_store(LISTS, TOKENS)
    path = tmp_path / "lists.safetensors"
    for shown in (path, str(path), os.fsencode(path)):
        mw.save_store(store, shown)
        assert repr(mw.load_store(shown)) == repr(store)
        assert mw.store_info(shown)["vocabulary"]["size"] == len(TOKENS)
    assert mw.load_store(path, grammar=LISTS, vocabulary=TOKENS).grammar == store.grammar
    with pytest.raises(mw.StoreError, match=r"was made for the vocabulary '<tokens>' .*, not for 'python-tiny'"):
        mw.load_store(path, vocabulary="python-tiny")
    for wrong in (None, 7, store):
        with pytest.raises(mw.MaskwrightError, match=r"the path of a store is .*; expected a str or a Path"):
            mw.load_store(wrong)  # type: ignore[arg-type]


def test_what_is_no_grammar_and_no_vocabulary() -> None:
    with pytest.raises(mw.GrammarError, match=r"^the text of a grammar is of type bytes; expected a str; decode it"):
        mw.parse_grammar(b'start: "a"')  # type: ignore[arg-type]
    with pytest.raises(mw.GrammarError, match=r"^the text of a grammar is of type NoneType; expected a str$"):
        mw.parse_grammar(None)  # type: ignore[arg-type]
    for wrong in (None, 7, [["start"]]):
        with pytest.raises(mw.GrammarError, match=r"a grammar is a name, a path or a text; this is an? "):
            mw.build_store(wrong, TOKENS)  # type: ignore[arg-type]
    with pytest.raises(mw.UnknownNameError, match=r"no grammar is named 'jsn'; did you mean 'json'"):
        mw.build_store("jsn", TOKENS)
    with pytest.raises(mw.UnknownNameError, match=r"no vocabulary 'x+ \.\.\. x+': neither a built-in name"):
        mw.load_vocabulary("x" * 5000)  # no file can have this name
    with pytest.raises(mw.UnknownNameError, match=r"no vocabulary 'python-tny'.*did you mean python-tiny"):
        mw.build_store("json", "python-tny")
    with pytest.raises(mw.VocabularyError, match=r"token 1 is a str; expected bytes; encode it"):
        mw.Vocabulary.from_tokens([b"a", "b"])  # type: ignore[list-item]
    with pytest.raises(mw.VocabularyError, match="has no token that stands for a text"):
        mw.Vocabulary.from_tokens([])
    with pytest.raises(mw.VocabularyError, match=r"eos 9 is not a token"):
        mw.Vocabulary.from_tokens(TOKENS, eos=[9])
    with pytest.raises(mw.VocabularyError, match=r"no vocabulary can be read from an object of type builtins\.int"):
        mw.build_store("json", 7)


def test_the_vocabulary_of_a_model_or_a_store() -> None:
    store = mw.build_store("json", mw.load_model())
    assert store.vocabulary == mw.load_vocabulary("python-tiny") == mw.load_vocabulary(store)
    assert mw.load_vocabulary(store, name="other", size=5000).size == 5000


LINES = "start: (/a/ _NL [_IN start _OUT])*\n_NL: /(\\n[\\t ]*)+/\n%declare _IN _OUT\n"
NO_TRUTHS: list[Any] = ["no", "", 0, 1, None, [], 0.0, np.int64(1), np.array([True])]


def indenter(**members: Any) -> Any:
    return mw.parse_grammar(
        LINES, layout=mw.Indenter(**{"newline": "_NL", "indent": "_IN", "dedent": "_OUT", **members})
    )


def layout(**members: Any) -> Any:
    grammar = indenter()
    return replace(grammar, layout=replace(grammar.layout, **members))


def broken_progress() -> None:
    """Takes nothing."""


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


FINE: Any = ("v", (b"", b"a"), {0: "e"}, (0,), frozenset())

WRONG: list[tuple[type[mw.MaskwrightError], Callable[[Any], object], list[Any], str]] = [
    (
        mw.VocabularyError,
        lambda wrong: mw.Vocabulary.from_tokens([b"a"], eos=wrong),
        [1, "a", b"a", True, 1.5],
        "^eos is .*; expected a list of tokens' ids or names",
    ),
    (
        mw.VocabularyError,
        lambda wrong: mw.Vocabulary.from_tokens([b"a"], eos=[wrong]),
        [None, 1.0, True, b"a", [], Unspeakable()],
        "a member of eos is .*; expected an id or a token's name",
    ),
    (mw.VocabularyError, lambda wrong: mw.load_vocabulary("python-tiny", eos=wrong), [1, True, 2.5], "^eos is "),
    (
        mw.VocabularyError,
        lambda wrong: mw.load_vocabulary("python-tiny", size=wrong),
        ["1", 1.5, True, [1], np.float32(9e5)],
        "^size is .*; expected an integer",
    ),
    (
        mw.VocabularyError,
        lambda wrong: mw.Vocabulary.from_tokens([b"a"], special=wrong),
        ["x", ["x"], 1, True, {1: "x"}, {None: 1}],
        "special is .*; expected names of tokens with their ids",
    ),
    (mw.VocabularyError, lambda wrong: mw.load_vocabulary("python-tiny", special=wrong), ["1", 0, [1]], "^special is "),
    (
        mw.VocabularyError,
        lambda wrong: mw.Vocabulary.from_tokens([b"a"], special={"x": wrong}),
        ["1", 1.5, True, None, [1]],
        "^special: the id of 'x' is .*; expected an integer",
    ),
    (mw.VocabularyError, lambda wrong: mw.Vocabulary.from_tokens([b"a"], name=wrong), [5, b"a", True], "^name is "),
    (
        mw.VocabularyError,
        lambda wrong: mw.Vocabulary("v", (b"", wrong), {0: "e"}, (0,)),
        ["a", None, 1],
        "^v: token 1 is .*; expected bytes",
    ),
    (
        mw.VocabularyError,
        lambda wrong: mw.Vocabulary("v", (b"", b"a"), {0: "e"}, (wrong,)),
        ["a", None, 0.0, False],
        "^v: an id of eos is .*; expected an integer",
    ),
    *(
        (mw.VocabularyError, lambda wrong, at=at: mw.Vocabulary(*(wrong if i == at else v for i, v in enumerate(FINE))), wrongs, "^v: ")
        for at, wrongs in ((1, [None, 5, {1}, (5,)]), (2, [None, [0], {0: 5}]), (3, [None, 0, True]), (4, [None, 1]))
    ),
    (mw.MaskwrightError, mw.ReferenceDecoder, [None, 5, "json"], "^the store is .*; expected an EntryStore"),
    (mw.MaskwrightError, lambda wrong: mw.save_store(made(), "nowhere", mode=wrong), ["x", None, 1.5], "^mode is .*; expected an integer"),
    (
        mw.GrammarError,
        lambda wrong: mw.parse_grammar(LISTS, soft=wrong),
        [True, 5, "if", [1], b"if"],
        "soft is .*; expected a list of string literals",
    ),
    (
        mw.GrammarError,
        lambda wrong: mw.parse_grammar(LISTS, restrict=wrong),
        [True, 5, [1], [None], False],
        "restrict is .*; expected a list of restrictions",
    ),
    (
        mw.GrammarError,
        lambda wrong: mw.parse_grammar(LISTS, folder=wrong),
        [True, b"1", 5, ["a"]],
        "^folder is .*; expected a str, a Path or None",
    ),
    (mw.GrammarError, lambda wrong: mw.parse_grammar(LISTS, name=wrong), [True, None, 5, b"a"], "^name is .*; expected a str"),
    (mw.GrammarError, lambda wrong: mw.parse_grammar(LISTS, display=wrong), [True, 0, 5, b"a"], "^display is "),
    (mw.GrammarError, lambda wrong: mw.parse_grammar(LISTS, start=wrong), [True, 0, ["start"]], "^start is .*; expected a str"),
    (mw.GrammarError, lambda wrong: mw.load_grammar("json", start=wrong), [True, 0, False, b"start"], "^start is "),
    (mw.GrammarError, lambda wrong: mw.parse_grammar(LISTS, layout=wrong), [True, "x", np.zeros(2), Unspeakable()], "^layout is "),
    *(
        (mw.UnknownNameError, lambda wrong, what=what: mw.parse_grammar(LISTS, **{what: wrong}), wrongs, "^no .* is named .*known: ")
        for what in ("lexing", "reserved", "conflicts")
        for wrongs in [["x", 0, True, ["x"], np.array(["x", "y"]), 10**5000, Unspeakable()]]
    ),
    *(
        (mw.GrammarError, lambda wrong, what=what: indenter(**{what: wrong}), [None, 5, b"_NL", True], f"^the indenter's {what} is ")
        for what in ("newline", "indent", "dedent", "tabs")
    ),
    (
        mw.GrammarError,
        lambda wrong: indenter(brackets=wrong),
        [True, "()", None, [1], [("a",)], ("(", ")"), ["a"], [("a", "b", "c")]],
        "^the indenter's brackets is .*; expected pairs of terminals' names",
    ),
    (mw.GrammarError, lambda wrong: indenter(brackets=[wrong]), [(1, 2), (b"(", b")")], "^a bracket of the indenter is "),
    *(
        (mw.GrammarError, lambda wrong, make=make: make(tab_length=wrong), wrongs, "tab_length is .*; expected an integer")
        for make in (indenter, layout)
        for wrongs in [["1", 1.5, 4.0, np.float32(4.5), True, np.True_, None, [4]]]
    ),
    *(
        (mw.GrammarError, lambda wrong, make=make: make(tab_length=wrong), [0, -1, 10**5000], "tab length is .*; expected 1 to")
        for make in (indenter, layout)
    ),
    *(
        (mw.GrammarError, lambda wrong, what=what: layout(**{what: wrong}), [None, "a", 1.5, True], f"^the layout's {what} is ")
        for what in ("newline", "indent", "dedent")
    ),
    (mw.GrammarError, lambda wrong: layout(brackets=wrong), [True, None, 5, "ab", [1]], "^the layout's brackets is "),
    (mw.GrammarError, lambda wrong: layout(tabs=wrong), [True, None, np.zeros(2)], "the layout's tabs are "),
    (
        mw.MaskwrightError,
        lambda wrong: mw.lint_grammar(LISTS, allow=wrong),
        [None, True, "no-text", [1], b"x"],
        "allow is .*; expected a list of codes",
    ),
    (mw.MaskwrightError, lambda wrong: mw.lint_grammar(LISTS, file=wrong), [True, 5, ["a"]], "^the path of the grammar is "),
    (
        mw.MaskwrightError,
        lambda wrong: mw.validate(wrong, "x"),
        [None, 5, True, ["a"]],
        "^the store is .*; expected a store, or its file",
    ),
    (mw.MaskwrightError, lambda wrong: mw.validate(made(), wrong), [None, 5, True], "^paths is .*; expected a path"),
    (mw.MaskwrightError, lambda wrong: mw.validate(made(), [wrong]), [None, 5, True], "^the path of texts is "),
    *(
        (mw.MaskwrightError, lambda wrong, what=what: mw.validate(made(), "x", **{what: wrong}), ["1", 1.5, True, [1]], f"^{what} is ")
        for what in ("jobs", "limit", "amount", "budget", "cuts", "seed")
    ),
    *(
        (mw.MaskwrightError, lambda wrong, what=what: mw.validate(made(), "x", **{what: wrong}), [5, True, [1]], what)
        for what in ("check", "reference", "field", "suffixes", "scheduler", "progress", "next_token")
    ),
    (mw.MaskwrightError, lambda wrong: mw.validate(made(), "x", reference_seconds=wrong), ["1", None, True], "^reference_seconds is "),
    (mw.MaskwrightError, lambda wrong: mw.validate(made(), "x", resume=wrong), [5, True], "^the path of a log of results is "),
    *(
        (
            mw.MaskwrightError,
            lambda wrong, call=call: call(progress=wrong),
            [5, "x", True, int, dict, Unspeakable, broken_progress, lambda a: None, lambda a, b, c, d: None],
            "^progress is .*; expected a function of three arguments",
        )
        for call in (
            lambda **options: mw.build_store(LISTS, TOKENS, **options),
            lambda **options: mw.cached_store(LISTS, TOKENS, **options),
            lambda **options: mw.analyze(LISTS, **options),
        )
    ),
    *(
        (mw.MaskwrightError, lambda wrong, call=call, what=what: call(**{what: wrong}), NO_TRUTHS, f"^{what} is .*; expected True or False")
        for call, whats in (
            (lambda **options: mw.build_store(LISTS, TOKENS, **options), ("allow_dead", "streamlined")),
            (lambda **options: mw.cached_store(LISTS, TOKENS, **options), ("refresh",)),
            (lambda **options: mw.analyze(LISTS, **options), ("pairs", "exact", "forecast", "lint")),
            (lambda **options: mw.interchange_classes(LISTS, **options), ("rewrite",)),
        )
        for what in whats
    ),
    *(
        (mw.MaskwrightError, lambda wrong, call=call: call(LISTS, rules=wrong), ["x", None, 5, np.zeros(2)], "^rules is .*; expected 'norm")
        for call in (
            lambda grammar, rules: mw.build_store(grammar, TOKENS, rules=rules),
            lambda grammar, rules: mw.cached_store(grammar, TOKENS, rules=rules),
            mw.Judge,
        )
    ),
]  # fmt: skip
"""An error, what raises it for an argument of the wrong kind, such arguments, and what the error says."""


@functools.cache
def made() -> Any:
    return mw.build_store(LISTS, TOKENS)


def test_arguments_of_the_wrong_kind() -> None:
    for kind, call, wrongs, message in WRONG:
        for wrong in wrongs:
            with pytest.raises(kind, match=message) as caught:
                call(wrong)
            assert len(str(caught.value)) < 1000


def test_numbers_and_truths_of_numpy_are_taken(tmp_path: Path) -> None:
    vocabulary = mw.Vocabulary.from_tokens(
        [b"a", b"\n", b"\t", b""],
        eos=np.array([3]),
        special={"<pad>": np.int64(4)},  # type: ignore[arg-type]
    )
    assert vocabulary == mw.Vocabulary.from_tokens([b"a", b"\n", b"\t", b""], eos=[3], special={"<pad>": 4})
    assert mw.load_vocabulary(vocabulary, size=np.int32(9)).size == 9  # type: ignore[arg-type]
    expected = mw.build_store(indenter(tab_length=4), vocabulary)
    for grammar in (
        indenter(tab_length=np.int64(4)),
        layout(tab_length=np.uint8(4), newline=np.int8(indenter().layout.newline)),
    ):
        assert grammar.digest == expected.grammar.digest and type(grammar.layout.tab_length) is int
        store = mw.build_store(grammar, vocabulary, allow_dead=np.False_)  # type: ignore[arg-type]
        mw.save_store(store, tmp_path / "store")
        assert mw.load_store(tmp_path / "store").grammar == expected.grammar


def test_restrictions_and_soft_keywords_may_come_one_by_one() -> None:
    """What can be read once only is read once: what is left out the second time would be masks that allow more."""
    text = 'start: (NAME | "if" NAME)+\nNAME: /[a-z]+/\n%ignore " "\n'
    assert mw.parse_grammar(text, soft=iter(["if"])) == mw.parse_grammar(text, soft=["if"])  # type: ignore[arg-type]
    one_by_one = mw.load_grammar("python", restrict=iter(["no_comments"]))  # type: ignore[arg-type]
    assert one_by_one == mw.load_grammar("python", restrict=["no_comments"]) != mw.load_grammar("python")


def test_a_vocabulary_of_tokens() -> None:
    vocabulary = mw.Vocabulary.from_tokens([b"a", b"", b"</s>"], eos=["</s>"], special={"<pad>": 1}, name="mine")
    assert repr(vocabulary) == "<Vocabulary mine: 3 ids, 2 special, eos 2>"
    assert vocabulary.tokens == (b"a", b"", b"") and vocabulary.special == {1: "<pad>", 2: "</s>"}
    assert mw.load_vocabulary(vocabulary) is vocabulary
    padded = mw.load_vocabulary(vocabulary, size=5, eos=[1], name="other")
    assert (padded.size, padded.eos, padded.name) == (5, (1,), "other") and vocabulary.size == 3


def test_matchers_and_batches_say_what_they_are() -> None:
    store: Any = mw.build_store(LISTS, mw.Vocabulary.from_tokens(TOKENS, eos=[0], name="seven"))
    matcher = store.matcher(max_rollback=4)
    assert repr(matcher) == "<Matcher <text> x seven: open, 0 of 4 tokens to roll back>"
    matcher.advance(5)
    matcher.advance(0)
    assert repr(matcher) == "<Matcher <text> x seven: ended, 2 of 4 tokens to roll back>"
    batch = store.batch(3)
    batch.advance([4, 1, -1])
    batch.advance([0, -1, -1])
    assert repr(batch) == "<Batch <text> x seven: 3 texts, 1 ended>"


@pytest.mark.parametrize("lexing", ["longest", "nfa"])
def test_is_finished_and_is_accepting_are_methods(lexing: str) -> None:
    grammar = mw.parse_grammar(LISTS, lexing=lexing)  # type: ignore[arg-type]
    store: Any = mw.build_store(grammar, mw.Vocabulary.from_tokens(TOKENS, eos=[0]))
    text = store.matcher() if lexing == "longest" else mw.ReferenceDecoder(store)
    for token, accepting, finished in ((4, True, False), (0, True, True)):
        text.advance(token)
        assert text.is_accepting() is accepting and text.is_finished() is finished


@pytest.mark.slow
def test_types_for_users(tmp_path: Path) -> None:
    """What `mypy --strict` says of a user's program."""
    pytest.importorskip("mypy")
    program = """
        from pathlib import Path

        import maskwright as mw

        store = mw.build_store("json", "python-tiny")
        reveal_type(store.matcher())
        reveal_type(store.batch(2, n_threads=2))
        reveal_type(store.matcher().is_finished())
        reveal_type(store.matcher().is_accepting())
        reveal_type(store.matcher().fork().explain(3))
        reveal_type(mw.load_store(Path("x")))
        reveal_type(mw.build_store({"type": "integer"}, "python-tiny"))
        reveal_type(mw.Vocabulary.from_tokens([b"a"], eos=[0]))
        mw.build_store(mw.parse_grammar("start: /a/"), [b"a", b"b"])
        if store.matcher().is_finished:
            print("never")
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "program.py"]
    environment = {**os.environ, "MYPYPATH": str(Path(mw.__file__).parents[1])}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    shown = [
        line.split("note: Revealed type is ")[1].strip('"') for line in run.stdout.splitlines() if "Revealed" in line
    ]
    names = [name.replace("maskwright.", "") for name in shown]
    assert names == [
        "decoding.matcher.Matcher",
        "decoding.batch.Batch",
        "bool",
        "bool",
        "decoding.explain.explanation.Explanation",
        "stores.store.Store | stores.entry_store.EntryStore | stores.schema_store.SchemaStore | stores.composed_store.ComposedStore",
        "stores.schema_store.SchemaStore",
        "maskstore.vocabulary.vocabulary.Vocabulary",
    ], run.stdout
    errors = [line for line in run.stdout.splitlines() if "error:" in line and "/maskwright/" not in line]
    assert len(errors) == 1 and "truthy-function" in errors[0], run.stdout


def test_figures_of_a_grammar_with_soft_keywords_are_those_of_lexing_nfa() -> None:
    """Streamlining is about lexing "nfa", which takes a keyword and a name alike: softened rules would be counted twice."""
    text = 'start: (NAME | "if" NAME)+\nNAME: /[a-z]+/\n%ignore " "\n'
    tokens = mw.Vocabulary.from_tokens([b"", b"i", b"f", b"if", b" ", b"x"], eos=[0])
    soft = mw.parse_grammar(text, soft=["if"])
    nfa = mw.parse_grammar(text, soft=["if"], lexing="nfa")
    assert soft.plain is not None and soft.plain.rules == nfa.rules != soft.rules and nfa.plain is None
    found, expected = (mw.analyze(grammar, tokens, forecast=False).facts["entries"] for grammar in (soft, nfa))
    assert [{**e, "seconds": 0} for e in found] == [{**e, "seconds": 0} for e in expected]


def test_the_oracle_follows_the_grammars_conflicts() -> None:
    from maskwright.validation.oracle import Oracle

    # before "b" a parser that shifts takes the first rule alone, and cannot read "abd"
    text = 'start: "a" "b" "c" | x "b" "d"\nx: "a"\n'
    for conflicts, expected in (("all", True), ("shift", False)):
        grammar = mw.parse_grammar(text, conflicts=conflicts)  # type: ignore[arg-type]
        assert Oracle(grammar).is_legal_text(b"abd") is expected and Oracle(grammar).is_legal_text(b"abc")
    assert not Oracle(mw.parse_grammar(text), "shift").is_legal_text(b"abd")
