"""Files of certificates: what is written can be checked, and what was altered is refused where it was."""

from __future__ import annotations

import copy
import itertools
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from grammars import make_grammar, random_grammar
from naive import is_prefix, prefixes
from typer.testing import CliRunner

from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.legality.certificate import CertificateError
from maskwright.analysis.legality.verdict import START
from maskwright.cli import app
from maskwright.report import certificates
from maskwright.report.certificates import certificates_to_dict, check_certificates, check_facts
from maskwright.report.lr_tables import Validation
from maskwright.report.question import ask

GRAMMAR = make_grammar("S : a S b | a b | c T\nT : T d | d")


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    """A proof of several situations, and a witness: b d can never follow b."""
    written: dict[str, Any] = json.loads(json.dumps(certificates_to_dict(ask(GRAMMAR, "b", "b d", ["exact"]))))
    assert "proof" in written["certificates"][0] and len(written["certificates"][0]["proof"]) > 1
    assert "witness" in written["certificates"][1]
    return written


def test_what_is_written_is_read(facts: dict[str, Any]) -> None:
    checked = check_facts(facts, GRAMMAR)
    assert checked.shown[0].startswith("b d after b: never: a certificate of")
    assert checked.shown[1].startswith("b d after b: not always: a stack of")
    assert all(each.endswith("checked, on LR tables that are validated") for each in checked.shown)
    assert checked.to_dict()["tables"] == "validated" and GRAMMAR.digest[:16] in str(checked)


def test_random_certificates_are_read() -> None:
    n = 0
    for seed in range(30):
        grammar = random_grammar(seed)
        for context, sequence in (((0,), (1,)), ((-1,), (0, 0)), ((1, 0), (0,))):
            try:
                answers = ask(grammar, context, sequence, ["exact"])
            except GrammarError:
                continue
            written = json.loads(json.dumps(certificates_to_dict(answers)))
            shown = check_facts(written, grammar).shown
            assert [each.split(": ", 1)[1] for each in shown] == list(answers.answers[0].grounds[:2])
            n += 1
    assert n > 30


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (lambda f: f.update(format="x"), "format is 'x', expected 'maskwright certificates 1'"),
        (lambda f: f.update(more=1), "the file has the members .*; expected an object with format, grammar, tables"),
        (lambda f: f.pop("tables"), "the file has the members"),
        (lambda f: f["grammar"].update(sha256="0"), "grammar: it is of the grammar .* with sha256 '0', not of"),
        (lambda f: f.update(grammar=[]), r"grammar is \[\]; expected an object with name, sha256"),
        (lambda f: f.update(tables="0"), "tables: they have sha256 '0', expected"),
        (lambda f: f.update(certificates={}), "certificates has {}; expected a list"),
        (lambda f: f.update(certificates=[]), "certificates is empty: there is nothing to check"),
        (lambda f: f["certificates"][1].pop("claim"), r"certificates\[1\] has the members"),
        (lambda f: f["certificates"][0]["proof"].pop(), r"certificates\[0\]: the proof is not closed"),
        (lambda f: f["certificates"][0]["proof"][0].pop(), r"certificates\[0\].proof\[0\] has 1 members"),
        (lambda f: f["certificates"][0]["proof"][0].__setitem__(0, "4"), r"certificates\[0\].proof\[0\] has \['4'\]"),
        (lambda f: f["certificates"][0]["proof"].append([99, [None]]), r"certificates\[0\]: Node.* is not a situation"),
        (lambda f: f["certificates"][0]["proof"][0].__setitem__(1, [[[1, 2]]]), "is not three numbers"),
        (lambda f: f["certificates"][0]["claim"].update(kind="always"), r"certificates\[0\]: "),
        (lambda f: f["certificates"][0]["claim"].update(kind=7), r"certificates\[0\].claim.kind is 7; expected never"),
        (lambda f: f["certificates"][0]["claim"].update(sequences=[[1]]), r"certificates\[0\]: the claim fails"),
        (lambda f: f["certificates"][0]["claim"].update(sequences=[[True]]), r"sequences\[0\] has \[True\]"),
        (lambda f: f["certificates"][0]["claim"].update(sequences=[[3, 99]]), "has no terminal number 99"),
        (lambda f: f["certificates"][0]["claim"].update(sequences=[]), r"certificates\[0\]: the claim has 0 sequences"),
        (lambda f: f["certificates"][0]["claim"].update(context=[]), r"certificates\[0\]: a question needs a context"),
        (
            lambda f: f["certificates"][1]["witness"].update(stack=[0, 99]),
            r"certificates\[1\]: the stack .* not feasible",
        ),
        (lambda f: f["certificates"][1]["witness"].update(stack=None), r"certificates\[1\].witness.stack has None"),
        (
            lambda f: f["certificates"][1]["witness"].update(prefix=[2]),
            r"certificates\[1\]: the prefix .* does not end",
        ),
        (lambda f: f["certificates"][1]["witness"].update(is_real=0), "is_real is 0; expected true or false"),
        (lambda f: f["certificates"][1]["witness"].update(is_real=False), r"certificates\[1\]: after the prefix"),
        (
            lambda f: f["certificates"][1]["witness"].update(
                is_real=False, prefix=[3, 3, *f["certificates"][1]["witness"]["prefix"][-1:]]
            ),
            r"certificates\[1\]: the prefix .* does not lead to the stack",
        ),
    ],
)
def test_altered_files_are_refused(facts: dict[str, Any], alter: Callable[[Any], Any], message: str) -> None:
    altered = copy.deepcopy(facts)
    alter(altered)
    with pytest.raises(CertificateError, match=message):
        check_facts(altered, GRAMMAR)


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (
            lambda f: f["certificates"][1]["witness"].update(prefix=[0] * 5_000),
            "witness.prefix has 5,000 terminals; the most",
        ),
        (
            lambda f: f["certificates"][0]["claim"].update(sequences=[[0] * 5_000]),
            r"sequences\[0\] has 5,000 terminals",
        ),
        (lambda f: f["certificates"][0]["claim"].update(context=[0] * 5_000), "claim.context has 5,000 terminals"),
    ],
)
def test_what_takes_too_long_to_check_is_refused_at_once(
    facts: dict[str, Any], alter: Callable[[Any], Any], message: str
) -> None:
    altered = copy.deepcopy(facts)
    alter(altered)
    with pytest.raises(LimitError, match=message):
        check_facts(altered, GRAMMAR)


def test_wrong_tables_check_nothing(facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "validate_lr_tables", lambda *_: Validation(("state 1 is wrong",)))
    with pytest.raises(CertificateError, match="makes of the grammar are WRONG: state 1 is wrong"):
        check_facts(facts, GRAMMAR)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    asked = ["analyze", "json", "--after", '"["', "--then", '","']
    run = runner.invoke(app, [*asked, "--certificates", "c.json"])
    assert run.exit_code == 0 and "wrote c.json" in run.output
    run = runner.invoke(app, ["analyze", "json", "--check-certificates", "c.json"])
    assert run.exit_code == 0 and "COMMA after LSQB: never: a certificate of 0 situations" in run.output
    run = runner.invoke(app, ["analyze", "json", "--check-certificates", "c.json", "--json", "-"])
    assert json.loads(run.stdout)["tables"] == "validated"
    Path("c.json").write_text(Path("c.json").read_text().replace('"always"', '"never"'))
    Path("torn.json").write_text("{")
    for options, message in [
        (["json", "--check-certificates", "c.json"], "c.json: certificates[1]: the claim holds on the stack"),
        (["json.compact", "--check-certificates", "c.json"], "c.json: grammar: it is of the grammar 'json'"),
        (["json", "--check-certificates", "torn.json"], "torn.json is not JSON"),
        (["json", "--check-certificates", "none.json"], "none.json cannot be read: No such file"),
        (["json", "--check-certificates", "c.json", "--then", "STRING"], "leave these out"),
        (["json", "--certificates", "d.json"], "add --then TERMINALS"),
        (
            ["json", "--then", '"["', "--engine", "paths", "--certificates", "d.json"],
            "only the engine exact gives certificates",
        ),
        (['{"type": "null"}', "--check-certificates", "c.json"], "is no grammar"),
    ]:
        run = runner.invoke(app, ["analyze", *options])
        assert run.exit_code == 2 and message in run.stderr.replace("\n", " "), (options, run.stderr)
    with pytest.raises(MaskwrightError, match="is a folder"):
        check_certificates(tmp_path, "json")


def first_refuted(grammar: Grammar, kind: str, context: tuple[int, ...], sequences: Sequence[tuple[int, ...]]) -> bool:
    """Whether some text of at most 5 terminals refutes a claim in the grammar's language."""
    is_start = context == (START,)
    befores = [()] if is_start else [word for word in prefixes(grammar, 5) if word[-1:] == context]
    for word in befores:
        legal = [is_prefix(grammar, word + sequence) for sequence in sequences]
        if legal[0] if kind == "never" else not legal[0] if kind == "always" else legal[0] != legal[1]:
            return True
    return False


def test_no_proof_shows_what_is_false_in_the_language() -> None:
    """Proofs without a situation, for claims at random: they pass where the stacks' tops decide the claim."""
    tally: Counter[tuple[str, bool, bool]] = Counter()
    for seed in range(40):
        grammar = random_grammar(seed)
        try:
            written = certificates_to_dict(ask(grammar, (START,), (0,), ["exact"]))
        except MaskwrightError:
            continue
        for context, kind, *sequences in itertools.product(
            ((START,), (0,), (1,)), ("never", "always", "jointly"), ((0,), (1,), (0, 1)), ((1,), (1, 0))
        ):
            sequences = sequences[: 1 + (kind == "jointly")]
            claim = {"kind": kind, "context": list(context), "sequences": [list(each) for each in sequences]}
            try:
                check_facts({**written, "certificates": [{"claim": claim, "proof": []}]}, grammar)
                has_passed = True
            except CertificateError:
                has_passed = False
            is_refuted = first_refuted(grammar, kind, context, sequences)
            tally[kind + " at the start" * (context == (START,)), has_passed, is_refuted] += 1
            assert not (has_passed and is_refuted), (seed, claim)
    for kind in ("never", "always", "jointly"):
        for name in (kind, f"{kind} at the start"):
            assert tally[name, True, False] > 3 and tally[name, False, True] > 3, tally
