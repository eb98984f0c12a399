"""What `maskwright complete` says of a completion: facts, verdicts, both texts side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from maskwright.decoding.generation import Completion
    from maskwright.serving.requests import RequestStore

REASONS = {
    "end": "the model ended it",
    "stop": "a stop string came",
    "complete": "it was complete",
    "tokens": "the token budget was used up",
    "seconds": "the time was up",
}
"""Reason why a completion ended -> words for the summary."""


def facts_of(prompt: str, found: Completion, reference: str | None, store: RequestStore) -> dict[str, Any]:
    """What is said of a completion, JSON-ready."""

    whole = prompt + found.data.decode(errors="replace")
    return {
        "completion": found.data.decode(errors="replace"),
        "closing": found.closing.decode(errors="replace"),
        "reason": found.reason,
        "is_complete": found.is_complete,
        "tokens": len(found.tokens),
        "seconds": round(found.seconds, 4),
        "seconds_first_token": round(found.first_seconds, 4),
        "seconds_model": round(found.model_seconds, 4),
        "seconds_masks": round(found.mask_seconds, 4),
        "seconds_endings": round(found.ending_seconds, 4),
        "model_calls": found.model_calls,
        "forced": found.forced,
        "relaxed": found.relaxed,
        "masks": found.masks,
        "predicted": found.predicted,
        "interventions": [
            {"index": one.index, "token": one.token, "probability": round(one.probability, 6)}
            for one in found.interventions
        ],
        "verdict": _judged_by_schema(whole, store)
        if reference is None and store.engine == "schema"
        else judged(whole, reference, store.name),
    }


def _judged_by_schema(text: str, store: Any) -> dict[str, str] | None:
    from maskwright.validation.instances import InstanceJudge

    if store.constraint.kind != "schema":
        return None  # nobody else judges texts of a pattern
    said = InstanceJudge(store.constraint).judge(text)
    return {"by": said.by, "answer": said.answer, "message": said.message}


def judged(text: str, reference: str | None, grammar: str) -> dict[str, str] | None:
    """What a reference parser says of a text; None if nobody judges it. reference : by default the grammar's."""
    from maskwright.validation.references import make_reference, reference_for

    judge = make_reference(reference if reference is not None else reference_for(grammar))
    if judge is None:
        return None
    try:
        found = judge.judge(text)
    finally:
        judge.close()
    return {"by": judge.name, "answer": found.answer, "message": found.message}


def show_both(prompt: str, found: Completion, free: Completion, facts: dict[str, Any]) -> None:
    """Print what was written under masks beside what the model writes without."""
    table = Table(expand=True)
    both = (("under the grammar", found, facts), ("without masks", free, facts["unconstrained"]))
    for heading, _, _ in both:
        table.add_column(heading, ratio=1, overflow="fold")
    cells = []
    for _, each, said in both:
        kept = each.data[: len(each.data) - len(each.closing)].decode(errors="replace")
        cells.append(Text.assemble((prompt, "dim"), kept, (said["closing"], "yellow")))
    table.add_row(*cells)
    if facts["verdict"] is not None:
        table.add_section()
        table.add_row(*(_verdict(said) for _, _, said in both))
    table.add_section()
    table.add_row(_intervened(found), "")
    Console(highlight=False).print(table)


def _intervened(found: Completion) -> str:
    """How often the masks forbade the model's own choice, and how much on average, in words."""
    n = len(found.interventions)
    if not n:
        return "no intervention: no mask forbade the model's own choice"
    share = sum(one.probability for one in found.interventions) / n
    what = f"{n} intervention{'s' if n > 1 else ''}: where masks forbade the model's own choice"
    return f"{what}, they took away {100 * share:.0f} % of the model's probability, at those tokens"


def _verdict(facts: dict[str, Any]) -> str:
    verdict = facts["verdict"]
    return f"{verdict['by']}: {verdict['answer']}" + (f" ({verdict['message']})" if verdict["message"] else "")


def summary(found: Completion, facts: dict[str, Any]) -> str:
    """A completion in one line."""
    share = found.mask_seconds / found.seconds if found.seconds else 0.0
    closed = f", closed with {len(found.closing)} byte{'s' * (len(found.closing) != 1)}" if found.closing else ""
    parts = [
        f"{len(found.tokens)} tokens in {found.seconds:.2f} s, the first after {found.first_seconds:.2f} s, {100 * share:.1f} % in masks",
        f"{REASONS[found.reason]}{closed}",
    ]
    if facts["verdict"] is not None:
        parts.append(_verdict(facts))
    return "; ".join(parts)
