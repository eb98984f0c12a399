"""Names, paths, texts and lists of bytes do wherever a grammar, a vocabulary or a store does; and what users read of these types."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwright as mw

TOKENS = [b"<eos>", b"[", b"]", b",", b"1", b"12", b"]]"]
LISTS = 'start: "[" [start ("," start)*] "]" | INT\nINT: /[0-9]+/\n'


def test_a_store_of_names() -> None:
    store = mw.build_store("json", "python-tiny")
    assert isinstance(store, mw.AutomatonStore)
    assert (store.grammar.name, store.vocabulary.name) == ("json", "python-tiny")
    assert mw.cached_store("json", "python-tiny").grammar.digest == store.grammar.digest
    from maskwright.models import model_folder

    assert store.vocabulary == mw.load_vocabulary(model_folder())


def test_a_store_of_a_text_and_a_list_of_bytes() -> None:
    store = mw.build_store(LISTS, mw.Vocabulary.from_tokens(TOKENS, eos=[0]))
    assert isinstance(store, mw.AutomatonStore)
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
    for wrong in (None, 7, ["start"]):
        with pytest.raises(mw.GrammarError, match="a grammar is a name, a path or a text; this is a "):
            mw.build_store(wrong, TOKENS)  # type: ignore[arg-type]
    with pytest.raises(mw.UnknownNameError, match=r"no grammar is named 'jsn'; did you mean 'json'"):
        mw.build_store("jsn", TOKENS)
    with pytest.raises(mw.UnknownNameError, match=r"no vocabulary 'python-tny'.*did you mean python-tiny"):
        mw.build_store("json", "python-tny")
    with pytest.raises(mw.VocabularyError, match=r"token 1 is a str; expected bytes; encode it"):
        mw.Vocabulary.from_tokens([b"a", "b"])  # type: ignore[list-item]
    with pytest.raises(mw.VocabularyError, match="has no token that stands for a text"):
        mw.Vocabulary.from_tokens([])
    with pytest.raises(mw.VocabularyError, match=r"eos 9 is no token"):
        mw.Vocabulary.from_tokens(TOKENS, eos=[9])
    with pytest.raises(mw.VocabularyError, match=r"no vocabulary can be read from an object of type builtins\.int"):
        mw.build_store("json", 7)


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
    """The old spelling, without parentheses, gives the same with a warning."""
    grammar = mw.parse_grammar(LISTS, lexing=lexing)  # type: ignore[arg-type]
    store: Any = mw.build_store(grammar, mw.Vocabulary.from_tokens(TOKENS, eos=[0]))
    text = store.matcher() if lexing == "longest" else mw.ReferenceDecoder(store)
    ask = text.is_finished
    for token, accepting, finished in ((4, True, False), (0, True, True)):
        text.advance(token)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert text.is_accepting() is accepting and text.is_finished() is finished
            assert ask() is finished and type(text).is_finished(text) is finished
        for old in (
            bool,
            int,
            repr,
            hash,
            lambda found: found == True,  # noqa: E712
            lambda found: 7 + found,
        ):
            with pytest.warns(DeprecationWarning, match=r"is_finished is a method: write is_finished\(\)"):
                assert old(text.is_finished) == old(finished)  # type: ignore[operator]


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
        "decoding.engine.matcher.Matcher",
        "decoding.engine.matcher.Batch",
        "bool",
        "bool",
        "decoding.explain.explanation.Explanation",
        "maskstore.store.MaskStore | maskstore.automaton_store.AutomatonStore",
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
