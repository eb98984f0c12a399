"""Which terminal sequences can follow which?

In: a `Grammar`. Out: verdicts never, always and jointly legal, with grounds. Knows nothing of
lexing or tokens.
"""

from maskwright.analysis.legality.certificate import (
    CertificateError,
    Claim,
    LrState,
    Proof,
    Witness,
    check_certificate,
    spell,
)
from maskwright.analysis.legality.deciders import ALWAYS, NEVER, SOMETIMES, Deciders, Query
from maskwright.analysis.legality.exact import ExactDeciders, ExactVerdict
from maskwright.analysis.legality.explain import Explainer
from maskwright.analysis.legality.follow import build_follow_graph
from maskwright.analysis.legality.interchange import interchange_classes
from maskwright.analysis.legality.judge import Judge
from maskwright.analysis.legality.verdict import START, Verdict

__all__ = [
    "ALWAYS",
    "NEVER",
    "SOMETIMES",
    "START",
    "CertificateError",
    "Claim",
    "Deciders",
    "ExactDeciders",
    "ExactVerdict",
    "Explainer",
    "Judge",
    "LrState",
    "Proof",
    "Query",
    "Verdict",
    "Witness",
    "build_follow_graph",
    "check_certificate",
    "interchange_classes",
    "spell",
]
