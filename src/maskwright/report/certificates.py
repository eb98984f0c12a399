"""Files of certificates: what `exact` has answered, to be checked again by anybody.

In: answers to a question, or a file and a grammar. Out: a file; what each certificate in it shows.

A file is JSON: the grammar's name and digest, the digest of the rules and LR tables that the
certificates are about (`tables_digest`), and the certificates, in numbers of terminals, LR states
and nonterminals. The reader believes none of it. It makes the tables anew from a grammar of its
own, validates them, and checks each certificate on them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError
from maskwright.analysis.files import read_file_bytes
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.legality.certificate import (
    Certificate,
    CertificateError,
    Claim,
    Node,
    Pending,
    Proof,
    Simulator,
    Witness,
    check_certificate,
)
from maskwright.analysis.legality.exact import ExactDeciders
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.loading.sources import GrammarSource, as_grammar
from maskwright.analysis.nesting import read_json
from maskwright.report.lr_tables import Validation, tables_digest, validate_lr_tables
from maskwright.report.question import Answers, Question, names_of, said_of

FORMAT = "maskwright certificates 1"
MAX_BYTES = 1 << 24
"""The most bytes of a file that is read."""
MAX_TERMINALS = 4_096
"""The most terminals of a context, a sequence or a prefix: the parser is run on them, with all its
stacks."""


@dataclass(frozen=True)
class CheckedCertificates:
    """What the certificates of a file show, all of them checked.

    grammar, sha256 : its name and digest.
    tables : what is known of the LR tables, made anew.
    shown : for each certificate a sentence.
    """

    grammar: str
    sha256: str
    tables: Validation
    shown: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """All of it, JSON-ready."""
        return {
            "grammar": {"name": self.grammar, "sha256": self.sha256},
            "tables": str(self.tables),
            "not_shown": self.tables.not_shown,
            "certificates": list(self.shown),
        }

    def __str__(self) -> str:
        more = [f"LR tables: {self.tables}: {self.tables.not_shown}"] * bool(self.tables.not_shown)
        return "\n".join([f"{self.grammar} (sha256 {self.sha256[:16]})", *self.shown, *more])


def certificates_to_dict(answers: Answers) -> dict[str, Any]:
    """The certificates of answers, JSON-ready; `check_certificates` reads them.

    Raises: MaskwrightError if no engine gave any.
    """
    found = [each for answer in answers.answers for each in answer.certificates]
    if not found:
        raise MaskwrightError(
            "there are no certificates: only the engine exact gives them, where its LR tables are right"
        )
    grammar = answers.question.grammar
    deciders = ExactDeciders(grammar)
    return {
        "format": FORMAT,
        "grammar": {"name": grammar.name, "sha256": grammar.digest},
        "tables": tables_digest(deciders.grammar, deciders.tables),
        "certificates": [_to_dict(each) for each in found],
    }


def check_certificates(path: str | os.PathLike[str], grammar: GrammarSource) -> CheckedCertificates:
    """Check a file of certificates on LR tables that are made anew and validated.

    path : a file that `maskwright analyze --certificates` has written, or anybody.
    grammar : a grammar, or what `load_grammar` takes; the file must be of an equal one.

    Raises: CertificateError, saying where, for a file of another form, grammar or tables, and for a
        certificate that does not prove its claim, or where the tables made anew are wrong;
        MaskwrightError if the file cannot be read; LimitError as `check_certificate`.
    """
    named = os.fsdecode(path)
    try:
        data = read_file_bytes(named, MAX_BYTES, "a file of certificates", MaskwrightError)
    except OSError as error:
        raise MaskwrightError(f"{named} cannot be read: {error.strerror}") from error
    try:
        facts = read_json(data)
    except ValueError as error:
        raise CertificateError(f"{named} is not JSON: {error}") from error
    try:
        return check_facts(facts, as_grammar(grammar))
    except (CertificateError, LimitError) as error:
        raise type(error)(f"{named}: {error}") from error


def check_facts(facts: object, grammar: Grammar) -> CheckedCertificates:
    """The same of what a file holds. Raises: as `check_certificates`."""
    form, of, digest, listed = _members(facts, "the file", ("format", "grammar", "tables", "certificates"))
    if form != FORMAT:
        raise CertificateError(f"format is {clip(form)}, expected {FORMAT!r}")
    name, sha256 = _members(of, "grammar", ("name", "sha256"))
    if sha256 != grammar.digest:
        raise CertificateError(
            f"grammar: it is of the grammar {clip(name)} with sha256 {clip(sha256)}, not of {clip(grammar.name)} with "
            f"{grammar.digest}: of another text, or loaded with other options (--start, --lexing, --restrict, --soft, ...)"
        )
    deciders = ExactDeciders(grammar)
    own = tables_digest(deciders.grammar, deciders.tables)
    if digest != own:
        raise CertificateError(
            f"tables: they have sha256 {clip(digest)}, expected {own}, as this version makes them; ask the question again"
        )
    tables = validate_lr_tables(deciders.grammar, deciders.tables)
    if tables.faults:
        raise CertificateError(f"the LR tables that this version makes of the grammar are WRONG: {tables.faults[0]}")
    if not listed and isinstance(listed, list):
        raise CertificateError("certificates is empty: there is nothing to check")
    simulator = Simulator(deciders.tables)
    shown = []
    for number, each in enumerate(_list(listed, "certificates")):
        where = f"certificates[{number}]"
        found = _read(each, where)
        context = found.claim.context
        assert isinstance(context, tuple)  # `_read` has seen to it
        try:
            for sequence in found.claim.sequences:
                Question(grammar, context, sequence)
            check_certificate(simulator, found)
            _check_prefix(simulator, found)
        except (CertificateError, GrammarError) as error:
            raise CertificateError(f"{where}: {error}") from error
        except LimitError as error:
            raise LimitError(f"{where} cannot be checked: {error}") from error
        asked = [" ".join(names_of(grammar, terminals)) for terminals in (*found.claim.sequences, context)]
        shown.append(f"{' and '.join(asked[:-1])} after {asked[-1]}: {said_of(found, tables)}")
    return CheckedCertificates(grammar.name, sha256, tables, tuple(shown))


def _check_prefix(simulator: Simulator, found: Certificate) -> None:
    """Refuse a witness whose prefix does not lead to its stack.

    The parser follows every action here, so the text of a stack leads to it. With too many parses
    to tell, it may.
    """
    if isinstance(found, Proof):
        return
    context = found.claim.context
    assert isinstance(context, tuple)  # `_read` has seen to it
    if context[0] == START and found.prefix:
        raise CertificateError(
            f"the prefix {found.prefix} is not empty, though the context begins with the start of the text"
        )
    try:
        stacks = simulator.parse({(0,)}, found.prefix)
    except LimitError:
        return
    if found.stack not in stacks:
        raise CertificateError(f"the prefix {found.prefix} does not lead to the stack {found.stack}")


def _to_dict(certificate: Certificate) -> dict[str, Any]:
    """A claim with its witness, or with its proof.

    A node of a proof is [cell, outcomes]; an outcome is null, or [position, pops, nonterminal] for
    each reduction.
    """
    claim = certificate.claim
    assert isinstance(claim.context, tuple)  # a question is about terminals
    sequences = [list(each) for each in claim.sequences]
    said = {"kind": claim.kind, "context": list(claim.context), "sequences": sequences}
    if isinstance(certificate, Witness):
        stack, prefix = list(certificate.stack), list(certificate.prefix)
        return {"claim": said, "witness": {"stack": stack, "prefix": prefix, "is_real": certificate.is_real}}
    nodes: list[Any] = []
    for node in certificate.nodes:
        outcomes = [
            None if outcome is None else [[one.position, one.pops, one.nonterminal] for one in sorted(outcome)]
            for outcome in node.outcomes
        ]
        nodes.append([node.cell, outcomes])
    return {"claim": said, "proof": nodes}


def _read(facts: object, where: str) -> Certificate:
    """The certificate that `_to_dict` wrote. Raises CertificateError."""
    is_proof = isinstance(facts, dict) and "proof" in facts
    said, held = _members(facts, where, ("claim", "proof" if is_proof else "witness"))
    kind, context, sequences = _members(said, f"{where}.claim", ("kind", "context", "sequences"))
    if kind not in ("never", "always", "jointly"):
        raise CertificateError(f"{where}.claim.kind is {clip(kind)}; expected never, always or jointly")
    listed = enumerate(_list(sequences, f"{where}.claim.sequences"))
    words = tuple(_terminals(each, f"{where}.claim.sequences[{at}]") for at, each in listed)
    claim = Claim(kind, _terminals(context, f"{where}.claim.context"), words)
    if is_proof:
        nodes = enumerate(_list(held, f"{where}.proof"))
        return Proof(claim, tuple(_node(each, f"{where}.proof[{at}]") for at, each in nodes))
    stack, prefix, is_real = _members(held, f"{where}.witness", ("stack", "prefix", "is_real"))
    if not isinstance(is_real, bool):
        raise CertificateError(f"{where}.witness.is_real is {clip(is_real)}; expected true or false")
    terminals = _terminals(prefix, f"{where}.witness.prefix")
    return Witness(claim, _numbers(stack, f"{where}.witness.stack"), terminals, is_real)


def _node(facts: object, where: str) -> Node:
    pair = _list(facts, where)
    if len(pair) != 2:
        raise CertificateError(f"{where} has {len(pair)} members; expected a cell and its outcomes")
    outcomes: list[tuple[Pending, ...] | None] = []
    for outcome in _list(pair[1], where):
        if outcome is None:
            outcomes.append(None)
            continue
        triples = [_numbers(each, where) for each in _list(outcome, where)]
        if any(len(each) != 3 for each in triples):
            raise CertificateError(f"{where} has a pending reduction that is not three numbers")
        outcomes.append(tuple(Pending(*each) for each in triples))
    return Node(_numbers([pair[0]], where)[0], tuple(outcomes))


def _members(facts: object, where: str, names: Sequence[str]) -> list[Any]:
    """The values of an object that has just these members."""
    if not isinstance(facts, dict) or set(facts) != set(names):
        found = f"has the members {clip(sorted(facts))}" if isinstance(facts, dict) else f"is {clip(facts)}"
        raise CertificateError(f"{where} {found}; expected an object with {', '.join(names)}")
    return [facts[name] for name in names]


def _list(found: object, where: str) -> list[Any]:
    if not isinstance(found, list):
        raise CertificateError(f"{where} has {clip(found)}; expected a list")
    return found


def _numbers(found: object, where: str) -> tuple[int, ...]:
    listed = _list(found, where)
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in listed):
        raise CertificateError(f"{where} has {clip(found)}; expected integers")
    return tuple(listed)


def _terminals(found: object, where: str) -> tuple[int, ...]:
    terminals = _numbers(found, where)
    if len(terminals) > MAX_TERMINALS:
        raise LimitError(f"{where} has {len(terminals):,} terminals; the most that are checked are {MAX_TERMINALS:,}")
    return terminals
