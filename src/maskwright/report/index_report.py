"""What the automaton over tokens of a pattern looks like, and what text it forces.

In: a pattern and a vocabulary. Out: facts, and rows for a terminal.
"""

from __future__ import annotations

from typing import Any

from maskwright.analysis.errors import LimitError
from maskwright.analysis.schema.text_patterns import Regex
from maskwright.maskstore.index import build_index
from maskwright.maskstore.vocabulary import Vocabulary

MOST_CHAINS = 100
"""Chains that the facts list."""

MOST_PAIRS = 1 << 22
"""A larger index is not made for a report: it would take seconds."""

_SHOWN = 40


def index_facts(regex: Regex, vocabulary: Vocabulary) -> dict[str, Any]:
    """The facts of a pattern's index, ready for JSON.

    Returns `too_large` and the reason alone where the index is large.
    """
    try:
        index = build_index(regex, vocabulary, most_pairs=MOST_PAIRS)
    except LimitError as error:
        return {"too_large": str(error)}
    forced = [found for state in index.states if (found := index.forced_token(int(state))) is not None]
    chains = index.chains
    return {
        "states": index.n_states,
        "final_states": len(index.final_states),
        "transitions": index.n_transitions,
        "token_classes": index.n_classes,
        "forced_states": len(forced),
        "states_with_one_token": sum(is_only for _, is_only in forced),
        "chains": len(chains),
        "longest_chains": [
            {
                "start": chain.start,
                "end": chain.end,
                "tokens": list(chain.tokens),
                "text": chain.text.decode("utf-8", "backslashreplace"),
                "is_only": chain.is_only,
            }
            for chain in sorted(chains, key=lambda chain: (-len(chain.text), chain.start))[:MOST_CHAINS]
        ],
    }


def index_rows(facts: dict[str, Any]) -> dict[str, str]:
    """Rows that show the facts of `index_facts`: name -> text."""
    if "too_large" in facts:
        return {"token states": "not counted, the index is large"}
    states, forced = facts["states"], facts["forced_states"]
    rows = {
        "token states": f"{states:,}, {facts['final_states']:,} of them final",
        "transitions": f"{facts['transitions']:,}, by {facts['token_classes']:,} classes of tokens",
        "forced": f"{forced:,} states ({forced / states:.0%}), {facts['states_with_one_token']:,} of them with one token; "
        f"{facts['chains']:,} chains",
    }
    if facts["longest_chains"]:
        longest = facts["longest_chains"][0]
        shown = longest["text"] if len(longest["text"]) <= _SHOWN else longest["text"][: _SHOWN - 3] + "..."
        rows["longest chain"] = f"{shown!r}, {len(longest['tokens'])} tokens"
    return rows
