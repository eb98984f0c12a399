"""What is known to be wrong with other engines is found, where they are installed.

They are looked for in the Pythons that MASKWRIGHT_PEERS_PYTHON names (several as in PATH), in the `.venv-peers` that `make bench-peers`
makes, and in this one.
Where a newer version of an engine has been mended, the audit agrees, and the expectation here is to be changed.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from grammars import JSON
from paths import ROOT

from maskwright.analysis.loading import parse_grammar
from maskwright.audit import AuditReport, audit
from maskwright.audit.report import FORCED, OVER, TRUE_REFUSED, UNCONSTRAINED, UNDER
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.encoders import Encoder, load_encoder
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store


@functools.cache
def python_with(package: str) -> str | None:
    """A Python that has a package."""
    named = os.environ.get("MASKWRIGHT_PEERS_PYTHON", "").split(os.pathsep)
    for python in filter(None, (*named, str(ROOT / ".venv-peers" / "bin" / "python"), sys.executable)):
        if os.path.exists(python):
            code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
            if not subprocess.run([python, "-c", code], capture_output=True).returncode:
                return python
    return None


@functools.cache
def encoder() -> Encoder:
    """All bytes, and some longer tokens, the longest first."""
    longer = (b"}]", b'":', b"[{", b"de", b" import")
    vocabulary = Vocabulary("bytes", (b"", *(bytes([i]) for i in range(256)), *longer), {0: "</s>"}, (0,))
    inner = Encoder(vocabulary, lambda text: [])
    return Encoder(vocabulary, lambda text: inner.longest_tokens(text.encode()))


@functools.cache
def store_of(grammar: str, lexing: str) -> Store:
    return compile_store(parse_grammar(grammar, name="g", lexing=lexing), encoder().vocabulary)


def run(
    engine: str,
    package: str,
    grammar: str,
    texts: list[str],
    folder: Path,
    own: str | None = None,
    lexing: str = "contextual",
) -> AuditReport:
    python = python_with(package)
    if python is None:
        pytest.skip(f"{package} is not installed")
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return audit(
        store_of(grammar, lexing),
        path,
        engine,
        grammar_text=grammar,
        tokenizer=encoder(),
        engine_grammar=own,
        python=python,
    )


def found(report: AuditReport, kind: str) -> set[tuple[bytes, bytes]]:
    """Shortest texts and tokens; no token is the end of the text."""
    return {(one.prefix, b"" if one.token is None else one.token[1]) for one in report.differences if one.kind == kind}


def test_xgrammar_s_json_forbids_two_brackets_after_a_string(tmp_path: Path) -> None:
    texts = ['[{"k":1},{"k":[]}]', '[{"k":"v"}]', '[1,{"a":{"k":"v"}}]']
    report = run("xgrammar", "xgrammar", JSON, texts, tmp_path, "builtin:json")
    (worst,) = [one for one in report.differences if one.kind == TRUE_REFUSED]
    assert worst.token is not None and worst.token[1] == b"}]"
    assert worst.prefix == b'[{"":""' and worst.before.startswith("STRING") and worst.sequence == "RBRACE RSQB"
    # and white space before and after the value, which is legal
    assert any(one.sequence == "ignored text" and one.prefix == b"" for one in report.differences)
    assert report.counts["masks_under"] == 0


def test_llguidance_s_json(tmp_path: Path) -> None:
    report = run("llguidance", "llguidance", JSON, ['[{"k":"v"}]', '{"a": [true, null]}'], tmp_path)
    assert not found(report, TRUE_REFUSED) and report.counts["failed"] == 0
    assert {token.strip() for _, token in found(report, OVER)} == {b""} and report.counts["masks_under"] == 0


def test_llguidance_forces_the_tokenizer_s_own_spelling(tmp_path: Path) -> None:
    grammar = 'start: "[{" ("a" | "b") "}]"\n'
    report = run("llguidance", "llguidance", grammar, ["[{a}]", "[{b}]"], tmp_path)
    assert report.agrees and report.counts["masks_over"] == 0 < report.counts["forced"]
    assert (b"[{a", b"}]") in found(report, FORCED)


LATE = "start: AAA BX | ABZ\nAAA: /aaa/\nABZ: /a+b{1,4}z/\nBX: /b+x/\n"


def test_llguidance_looks_one_byte_ahead(tmp_path: Path) -> None:
    report = run("llguidance", "llguidance", LATE, ["aaabbx", "aabz"], tmp_path)
    assert found(report, TRUE_REFUSED) == {(b"aaab", b"x")}
    assert report.counts["masks_under"] == 0


def test_xgrammar_looks_as_far_as_it_must(tmp_path: Path) -> None:
    assert run("xgrammar", "xgrammar", LATE, ["aaabbx", "aabz"], tmp_path).agrees


DOTS = 'start: "from" ("." | "...")+ "import" NAME\nNAME: /[a-z]+/\n%ignore " "\n'


def test_llguidance_refuses_relative_imports(tmp_path: Path) -> None:
    report = run(
        "llguidance", "llguidance", DOTS, ["from .. import x", "from . import x", "from ... import x"], tmp_path
    )
    assert {prefix for prefix, _ in found(report, TRUE_REFUSED)} == {b"from.."}


@pytest.mark.parametrize("engine", ["llguidance", "xgrammar"])
def test_rules_that_never_end_are_entered(engine: str, tmp_path: Path) -> None:
    grammar = 'start: "a" | "b" endless\nendless: "c" endless\n'
    report = run(engine, engine, grammar, ["a"], tmp_path)
    assert found(report, UNDER) == {(b"", b"b")}
    assert len(report.differences) == 1


@pytest.mark.parametrize("engine", ["llguidance", "xgrammar"])
def test_keywords_run_into_names(engine: str, tmp_path: Path) -> None:
    grammar = 'start: DEF NAME\nDEF: "def"\nNAME: /[a-z]+/\n%ignore " "\n'
    report = run(engine, engine, grammar, ["def foo"], tmp_path, lexing="longest")
    assert any(prefix == b"def" and token.isalpha() for prefix, token in found(report, UNDER))
    assert report.counts["true_refused"] == 0


def test_outlines_agrees_on_a_regular_language(tmp_path: Path) -> None:
    own = tmp_path / "pairs.regex"
    own.write_text(r'\{"k": (0|[1-9][0-9]*)(, "k": (0|[1-9][0-9]*))*\}' + "\n")
    grammar = 'start: "{" pair (", " pair)* "}"\npair: "\\"k\\": " NUMBER\nNUMBER: /0|[1-9][0-9]*/\n'
    report = run("outlines", "outlines_core", grammar, ['{"k": 12, "k": 0}', '{"k": 7}'], tmp_path, str(own))
    assert report.agrees and report.counts["masks"] > 20
    own.write_text(r'\{"k": [1-9][0-9]*(, "k": (0|[1-9][0-9]*))*\}')
    report = run("outlines", "outlines_core", grammar, ['{"k": 12, "k": 0}', '{"k": 7}'], tmp_path, str(own))
    assert found(report, OVER) == {(b'{"k": ', b"0")}


def test_interegular_and_a_regex(tmp_path: Path) -> None:
    """Equal masks; and where `\\s` of `re` has blanks that interegular's lacks, the audit finds them."""
    own = tmp_path / "pairs.regex"
    own.write_text(r'\{"k": (0|[1-9][0-9]*)(, "[é-ü]+": (0|[1-9][0-9]*))*\}' + "\n")
    grammar = 'start: "{" "\\"k\\": " NUMBER (", " KEY NUMBER)* "}"\nKEY: /"[é-ü]+": /\nNUMBER: /0|[1-9][0-9]*/\n'
    report = run("interegular", "interegular", grammar, ['{"k": 12, "éü": 0}', '{"k": 7}'], tmp_path, str(own))
    assert report.agrees and report.counts["masks"] > 15
    own.write_text(r"a\sb")
    report = run("interegular", "interegular", "start: /a\\sb/\n", ["a b"], tmp_path, str(own))
    assert found(report, OVER) == {(b"a", b"\x1c")}
    assert report.counts["tokens_over"] == 8  # 1C to 1F, and what C2, E1, E2 and E3 begin
    with pytest.raises(ValueError, match="interegular reads regular expressions, neither Lark's"):
        run("interegular", "interegular", "start: /a/\n", ["a"], tmp_path)


def test_an_engine_that_refuses_the_grammar_says_why(tmp_path: Path) -> None:
    grammar = 'start: twice{"a"}\ntwice{x}: x x\n'
    with pytest.raises(
        ValueError, match=r"(?s)engine llguidance cannot be run: .*params not supported.*--engine-grammar"
    ):
        run("llguidance", "llguidance", grammar, ["aa"], tmp_path)


def test_syncode_lets_everything_through_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = python_with("syncode")
    if python is None:
        pytest.skip("syncode is not installed")
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<eos>": 0} | {character: i for i, character in enumerate(alphabet, start=1)}
    built = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    built.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    built.decoder = tokenizers.decoders.ByteLevel()
    built.add_special_tokens(["<eos>"])
    built.save(str(tmp_path / "tokenizer.json"))
    monkeypatch.setenv("SYNCODE_CACHE", f"{tmp_path}/syncode/")
    (tmp_path / "syncode").mkdir()
    (tmp_path / "one.json").write_text('[{"k":"v"},1]')
    tokenizer = load_encoder(tmp_path / "tokenizer.json")
    report = audit(
        compile_store(parse_grammar(JSON, name="json"), tokenizer.vocabulary),
        tmp_path / "one.json",
        "syncode",
        grammar_text=JSON,
        tokenizer=tmp_path / "tokenizer.json",
        engine_grammar="builtin:json",
        python=python,
    )
    assert {one.prefix for one in report.differences if one.kind == UNCONSTRAINED} == {b'"'}
    assert report.counts["unconstrained"] > 0
