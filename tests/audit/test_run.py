"""Engines that are wrong in known ways are found out, each with a shortest text."""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from maskwright.analysis.errors import GrammarError, MaskwrightError, UnknownNameError, VocabularyError
from maskwright.analysis.loading import parse_grammar
from maskwright.audit import AuditReport, Difference, audit, compare, remote
from maskwright.audit.report import EMPTY, INCONSISTENT, OVER, TRUE_REFUSED, UNCONSTRAINED, UNDER
from maskwright.maskstore.vocabulary.encoders import Encoder
from maskwright.stores.build import build_store
from maskwright.stores.store import Store
from maskwright.validation.corpus import CorpusError

TEXTS = ("[[a, b], [[c]], def]", "[]", "[ab, [[[[x]]]] ,y , [z ]] ", "[[], [a], b]", "[a,bc , [d, []]]")
Run = Callable[..., AuditReport]


def only(report: AuditReport, kind: str) -> Difference:
    (found,) = [difference for difference in report.differences if difference.kind == kind]
    return found


def test_a_right_engine_agrees(run_case: Run, encoder: Encoder) -> None:
    report = run_case()
    assert report.agrees and not report.differences
    assert report.texts == {compare.WHOLE: 5}
    counts = dict(report.counts)
    # every place of every text, its end included
    assert counts.pop("masks") == sum(len(encoder.encode(text)) + 1 for text in TEXTS)
    assert set(counts.values()) == {0} and set(report.rates.values()) == {0}
    assert report.microseconds["theirs"]["p50"] > report.microseconds["ours"]["p50"] > 0
    assert report.engine["name"] == "lists_engine:make" and report.engine["seconds"] > 0
    assert json.loads(json.dumps(report.to_dict()))["agrees"] is True


@pytest.mark.parametrize(
    ("case", "kind", "prefix", "token", "place", "sequence"),
    [
        ({"refuse": ["after", ","]}, TRUE_REFUSED, b"[[]", b",", "RSQB", "COMMA"),
        ({"refuse": ["open", "]"]}, TRUE_REFUSED, b"[", b"]", "LSQB", "RSQB"),
        ({"refuse": ["open", "q"]}, OVER, b"[", b"q", "LSQB", "WORD"),
        ({"refuse": ["end", ""]}, TRUE_REFUSED, b"[]", None, "RSQB", "end of text"),
        ({"allow": ["comma", ","]}, UNDER, b"[a,", b",", "COMMA", "COMMA"),
        ({"allow": ["open", "]]"]}, UNDER, b"[", b"]]", "LSQB", "RSQB RSQB"),
        ({"allow": ["word", "$"]}, UNDER, b"[a", b"$", "LSQB", "WORD then nothing that is a terminal"),
        ({"allow": ["start", ""]}, UNDER, b"", None, "the start", "end of text"),
    ],
)
def test_a_token_wrongly_refused_or_allowed(
    run_case: Run, case: dict, kind: str, prefix: bytes, token: bytes | None, place: str, sequence: str
) -> None:
    report = run_case(case=case)
    assert not report.agrees
    found = report.differences[0]
    assert (found.kind, found.prefix, found.before, found.sequence) == (kind, prefix, place, sequence)
    assert found.token == token if token is None else found.token is not None and found.token[1] == token
    assert found.is_shortest and found.positions > 0 and found.tokens >= found.positions
    name = "masks_under" if kind == UNDER else "masks_over"
    assert report.counts[name] >= found.positions and report.counts["masks_over"] * report.counts["masks_under"] == 0
    assert (found.true_refusals > 0) == (kind == TRUE_REFUSED) == (report.counts["true_refused"] > 0)
    if kind == TRUE_REFUSED:
        assert report.texts[compare.REFUSED] == report.counts["true_refused"]
    if kind == UNDER and token:
        assert "is not legal here" in found.why


def shortest_to(lists_engine: ModuleType, state: str) -> int:
    """The length of a shortest text that leads to a state, by trying all."""
    for length in itertools.count():
        for letters in itertools.product(b"[],a ", repeat=length):
            found = lists_engine.run(("start", 0), bytes(letters))
            if found is not None and found[0] == state:
                return length
    raise AssertionError


def seeded_cases(lists_engine: ModuleType, tokens: tuple[bytes, ...], seed: int) -> Iterator[tuple[dict, str]]:
    chosen = random.Random(seed)
    while True:
        state = chosen.choice(["open", "word", "after", "comma"])
        token = chosen.choice([token for token in tokens if token and set(token) <= set(b"[], abcxyz!")])
        # the place must not say more than the state, or shortest texts depend on where the corpus has it
        is_legal = [lists_engine.run((state, depth), token) is not None for depth in (1, 2)]
        if len(set(is_legal)) == 1:
            yield {("refuse" if is_legal[0] else "allow"): [state, token.decode()]}, state


@pytest.mark.parametrize("seed", range(6))
def test_seeded_cases_have_the_shortest_text(
    seed: int, run_case: Run, lists_engine: ModuleType, encoder: Encoder
) -> None:
    case, state = next(seeded_cases(lists_engine, encoder.vocabulary.tokens, seed))
    report = run_case(case=case)
    found = min(report.differences, key=lambda difference: len(difference.prefix))
    ((what, (_, token)),) = case.items()
    assert (found.kind == UNDER) == (what == "allow")
    assert found.token is not None and found.token[1] == token.encode()
    assert len(found.prefix) == shortest_to(lists_engine, state), found


def test_exceptions(run_case: Run) -> None:
    report = run_case(case={"raise": 3})
    found = only(report, "exception")
    assert found.prefix == b"[[[" and found.token is None and found.is_shortest
    assert found.message == "KeyError: 'depth N\\nand more'"
    assert report.counts["failed"] == 3 == report.texts[compare.FAILED] and len(report.differences) == 1


def test_masks_without_constraint_and_empty_ones(run_case: Run) -> None:
    report = run_case(case={"everything": 2})
    found = only(report, UNCONSTRAINED)
    assert found.prefix == b"[[" and len(report.differences) == 1
    # they are counted as such, not token by token
    assert report.counts["unconstrained"] == found.positions > 5 and report.counts["tokens_under"] == 0
    report = run_case(case={"nothing": 2})
    assert only(report, EMPTY).prefix == b"[[" and report.counts["true_refused"] == 4 == report.counts["empty"]
    assert only(report, EMPTY).true_refusals == 4 and report.texts == {compare.WHOLE: 1, compare.REFUSED: 4}


def test_a_mask_that_lies(run_case: Run) -> None:
    report = run_case(case={"lie": "x"})
    found = only(report, INCONSISTENT)
    assert found.prefix == b"[" and found.token is not None and found.token[1] == b"x"
    assert report.counts["failed"] == 1 == report.counts["true_refused"]


def test_crashes_end_no_audit_but_many_do(run_case: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = run_case(case={"die": 4})
    found = only(report, "crash")
    assert (
        found.prefix == b"[[[["
        and "exit code N" in found.message
        and report.texts == {compare.WHOLE: 4, compare.FAILED: 1}
    )
    monkeypatch.setattr(remote, "MOST_RESTARTS", 2)
    many = tmp_path / "many.jsonl"
    many.write_text('{"text": "[]"}\n' * 8)
    report = run_case(case={"die": 1}, paths=many, examples=0)
    assert "started again 2 times" in report.gave_up and report.texts == {compare.FAILED: 2, compare.NOT_DRAWN: 6}
    assert not report.differences and report.unlisted == {"crash": 1} and not report.agrees


def test_an_engine_that_does_not_answer(run_case: Run) -> None:
    report = run_case(case={"sleep": 4}, timeout=0.5)
    found = only(report, "no answer in time")
    assert not found.is_shortest and found.prefix == b"[ab, [[[[" and report.texts[compare.FAILED] == 1


def test_texts_that_leave_the_grammar(run_case: Run, tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in ("[a b]", "[a", "[a]", "", "[]x")))
    report = run_case(paths=path)
    assert report.agrees and report.texts == {compare.WHOLE: 1, compare.OUTSIDE: 4}
    report = run_case(paths=path, case={"allow": ["after", "b"]})
    found = only(report, UNDER)
    assert found.prefix == b"[a " and found.token is not None and found.token[1] == b"b"


def test_positions_are_drawn_by_the_seed(run_case: Run) -> None:
    case = {"refuse": ["after", "]"]}
    few = [run_case(case=case, max_positions=25, seed=seed).to_dict() for seed in (1, 1, 2)]
    for report in few:
        del report["seconds"], report["microseconds"], report["engine"]["seconds"]
    assert few[0] == few[1] != few[2]
    # what advance refuses is compared there, drawn or not
    assert few[0]["counts"]["masks"] <= 25 + few[0]["texts"].get(compare.REFUSED, 0)


def test_examples_are_limited_and_the_rest_is_counted(run_case: Run) -> None:
    report = run_case(case={"allow": ["open", "]]"]}, examples=0)
    assert not report.differences and report.unlisted == {UNDER: 1} and not report.agrees


def test_unreadable_texts_are_no_agreement(run_case: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(b"[a\xff]")
    report = run_case(paths=[path])
    assert not report.agrees and "not UTF-8 at byte 2" in report.unreadable[0][1] and report.counts["masks"] == 0


def test_an_engine_may_spell_through_the_tokenizer(
    run_case: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = (
        "import lists_engine\n"
        "class Session(lists_engine.Session):\n"
        "    def fill(self, words):\n"
        "        assert [self.tokens[t] for t in self.encode(b'[[a]]')] == [b'[[', b'a]', b']']\n"
        "        assert [self.tokens[t] for t in self.encode(b'\\xff')] == [b'\\xff']\n"
        "        super().fill(words)\n"
        "def make(text, vocabulary):\n"
        "    def session():\n"
        "        one = Session(vocabulary.tokens, vocabulary.eos, {})\n"
        "        one.encode = vocabulary.encode\n"
        "        return one\n"
        "    return session\n"
    )
    (tmp_path / "spelling.py").write_text(module)
    monkeypatch.chdir(tmp_path)
    assert run_case("spelling:make").agrees


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"engine": "llguidence"},
            UnknownNameError,
            "expected interegular, llguidance, outlines, syncode, xgrammar, or a function",
        ),
        ({"engine": "a:b:c"}, UnknownNameError, "no engine is named 'a:b:c'"),
        ({"engine": "no_module_here:make"}, MaskwrightError, "there is no module no_module_here"),
        ({"engine": "lists_engine:nothing"}, MaskwrightError, "lists_engine has no nothing"),
        ({"engine": "lists_engine:NUMBER"}, MaskwrightError, "of type int, which cannot be called"),
        (
            {"engine": "lists_engine:no_function"},
            MaskwrightError,
            "returned an object of type int; expected a function that makes a session",
        ),
        ({"engine": "lists_engine:no_session"}, MaskwrightError, "RuntimeError: this engine takes no such grammar"),
        ({"python": "/nowhere/python"}, MaskwrightError, "/nowhere/python cannot be run"),
        ({"python": "/bin/cat"}, MaskwrightError, "does not run as a Python"),
        ({"paths": "nowhere"}, CorpusError, "there is no such file"),
        ({"tokenizer": None}, VocabularyError, "name the tokenizer that encodes the texts"),
        ({"max_positions": 0}, MaskwrightError, "max_positions is 0; expected at least 1"),
        ({"timeout": 0}, MaskwrightError, "timeout is 0"),
        ({"engine_grammar": "none.ebnf"}, UnknownNameError, "none.ebnf"),
    ],
)
def test_bad_input(run_case: Run, options: dict, error: type[Exception], message: str) -> None:
    if options.get("python") == "/bin/cat" and not os.path.exists("/bin/cat"):
        pytest.skip("no /bin/cat")
    with pytest.raises(error, match=message):
        run_case(**options)


def test_nfa_stores_are_refused(store: Store, lists_engine: ModuleType, encoder: Encoder, corpus: str) -> None:
    other = build_store(parse_grammar(lists_engine.GRAMMAR, lexing="nfa"), encoder.vocabulary)
    with pytest.raises(GrammarError, match="no exact masks to audit against"):
        audit(other, corpus, "xgrammar", grammar_text="", tokenizer=encoder)  # type: ignore[arg-type]
