"""The streamlining post's counts under several recipes: what each reading of its words gives (docs/sources.md).

python reports/bench/post_counts.py [--grammar FILE --start RULE | --record]

With --grammar: the python.lark of another lark, as `pip download --no-deps lark==1.1.5` brings it (lark/grammars/python.lark in the wheel).
With --record: writes a record, which also has the counts of `maskwright analyze`, and the sizes of stores by terminals of context.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import write_record

import maskwright as mw
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa, build_terminal_nfa
from maskwright.maskstore.entries.build import post_size, post_terminals
from maskwright.maskstore.entries.entry_table import EntryTable
from maskwright.maskstore.entries.walk import Walk, collect_entries
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.vocabulary import post_tokens


class Recipe(NamedTuple):
    """A way to count.

    pieces : special and byte pieces that are read as their names, `<s>` and `<0x0A>`: "", "special" or "special and byte".
    distinct : whether pieces that are equal once their leading spaces are gone are counted once.
    backs_up : whether a lexeme that is unfinished at a token's end may also have ended earlier.
    all_states : whether the states in which no text can end are counted, too: those in which a terminal begins.
    spaces : which white space of pieces is stripped: "leading" spaces, "all" at both ends, or "none".
    """

    name: str
    pieces: str = ""
    distinct: bool = False
    backs_up: bool = True
    all_states: bool = False
    spaces: str = "leading"


RECIPES = (
    Recipe("`maskwright analyze`"),
    Recipe("`<s>`, `</s>` and `<unk>` are texts", pieces="special"),
    Recipe("... and byte pieces, `<0x0A>`", pieces="special and byte"),
    Recipe("no backing up at a token's end", backs_up=False),
    Recipe("equal pieces once", distinct=True),
    Recipe("initial states, too", all_states=True),
    Recipe("initial states, and special pieces are texts", pieces="special", all_states=True),
    Recipe("spaces are left as they are", spaces="none"),
    Recipe("white space stripped at both ends", spaces="all"),
)


DEFAULTS = ("lark:python", None, "mistral-7b-v0.1")


class RecipeWalk(Walk):
    """The walk of `analyze`, but for what a recipe changes."""

    def __init__(self, recipe: Recipe, grammar: mw.Grammar, nfa: TerminalNfa, tokens: list[bytes]) -> None:
        self.recipe = recipe
        super().__init__(grammar, nfa, tokens)

    @property
    def resting_states(self) -> list[int]:
        return list(range(self.nfa.n_states + 1)) if self.recipe.all_states else super().resting_states

    def _outcome_set(self, end_set: int, accepted: int, move: int, remainder_set: int, *more: object) -> int:
        remainder_set = remainder_set if self.recipe.backs_up or end_set < 0 else -1
        return super()._outcome_set(end_set, accepted, move, remainder_set, *more)  # type: ignore[arg-type]


def texts(recipe: Recipe, vocabulary: Vocabulary) -> list[bytes]:
    """The texts that a recipe reads."""
    if recipe.spaces == "leading":
        found = [token for _, token in post_tokens(vocabulary)]
    else:
        pieces = (token for i, token in enumerate(vocabulary.tokens) if i not in vocabulary.byte_pieces)
        found = [text for token in pieces if (text := token.strip() if recipe.spaces == "all" else token)]
    if recipe.pieces:
        found += [name.encode() for name in vocabulary.special.values()]
    if recipe.pieces == "special and byte":
        found += [f"<0x{vocabulary.tokens[piece][0]:02X}>".encode() for piece in sorted(vocabulary.byte_pieces)]
    return list(dict.fromkeys(found)) if recipe.distinct else found


def count(grammar: mw.Grammar, vocabulary: Vocabulary) -> Iterator[tuple[Recipe, int, int, int]]:
    """For each recipe the sequences behind `def`, all entries, and the rows of the token NFA."""
    grammar = replace(grammar, layout=None)
    nfa = build_terminal_nfa(post_terminals(grammar))
    of_def = np.flatnonzero((nfa.terminal == grammar.terminal_number["DEF"]) & nfa.is_accepting)
    for recipe in RECIPES:
        tokens = texts(recipe, vocabulary)
        walk = RecipeWalk(recipe, grammar, nfa, tokens)
        entries = collect_entries(grammar, walk, np.arange(len(tokens), dtype=np.int32))
        behind = next(len(state.sequences) for state in entries.states if state.state in of_def)
        yield recipe, behind, sum(len(state.sequences) for state in entries.states), entries.n_token_nfa_rows


def counts(grammar: mw.Grammar, vocabulary: Vocabulary) -> dict[str, Any]:
    """What the post counts, of `maskwright analyze`."""
    facts = mw.analyze(grammar, vocabulary, pairs=True, forecast=False, lint=False).to_dict()
    post, lexer = facts["entries"][0], build_terminal_nfa(post_terminals(grammar))
    assert (post["reading"], post["rules"]) == ("post", "lark")
    (behind,) = (s["original"] for s in facts["post_states"] if (s["terminal"], s["text"]) == ("DEF", "def"))
    return {
        "terminals": facts["grammar"]["terminals"],
        "declared": len(facts["grammar"]["declared"]),
        "nonterminals": facts["grammar"]["nonterminals"],
        "rules": facts["grammar"]["rules"],
        "lexer": facts["lexer"]["post"],
        "reading_transitions": int((lexer.next_state >= 0).sum(dtype=np.int64)),
        "accepting_states": int(lexer.is_accepting.sum()),
        "sound_lexer": facts["lexer"]["sound"],
        "classes": len(facts["interchange"]["classes"]),
        "terminals_in_classes": facts["interchange"]["terminals"],
        "behind_def": behind,
        "entries": {key: value for key, value in post.items() if key != "seconds"},
        "rows": facts["token_nfa"]["post"]["rows"],
        "resting_states": {"post": len(facts["post_states"]), "sound": len(facts["states"])},
        "parser_calls": facts["parser_calls"],
        "pair_contexts": facts["pair_contexts"],
    }


def by_context(grammar: mw.Grammar, vocabulary: Vocabulary) -> dict[str, Any]:
    """Sizes of the stores whose entries are kept by one terminal of context, and by two."""
    found = {}
    for context in (1, 2):
        begin = time.process_time()
        store = mw.build_store(grammar, vocabulary, context=context)
        seconds = time.process_time() - begin
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "store.safetensors"
            mw.save_store(store, path)
            size = path.stat().st_size
        assert isinstance(store, EntryTable)
        found[str(context)] = {
            "entries": store.n_entries,
            "cells": store.n_cells,
            "masks": len(store.masks),
            "mask_bytes": store.masks.n_bytes,
            "file_bytes": size,
            "cpu_seconds": round(seconds, 2),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grammar", default="lark:python")
    parser.add_argument("--start")
    parser.add_argument("--tokenizer", default="mistral-7b-v0.1")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if options.record and (options.grammar, options.start, options.tokenizer) != DEFAULTS:
        parser.error("--record is of lark:python and mistral-7b-v0.1")
    grammar = mw.load_grammar(options.grammar, start=options.start, lexing="nfa")
    nfa = build_terminal_nfa(post_terminals(grammar))
    print(
        f"{grammar.n_terminals} terminals, {sum(terminal.is_declared for terminal in grammar.terminals)} of them declared;"
    )
    print(f"{grammar.n_nonterminals} nonterminals, {len(grammar.rules)} rules;")
    print("{states} states, {transitions:,} transitions".format(**post_size(nfa)))
    print("| recipe | sequences behind `def` | entries | rows |\n|---|---|---|---|")
    vocabulary = mw.load_vocabulary(options.tokenizer)
    recipes = {}
    for recipe, behind, entries, rows in count(grammar, vocabulary):
        print(f"| {recipe.name} | {behind:,} | {entries:,} | {rows:,} |")
        recipes[recipe.name] = {"behind_def": behind, "entries": entries, "rows": rows}
    if options.record:
        facts = {
            "counts": counts(grammar, vocabulary),
            "recipes": recipes,
            "by_context": by_context(grammar, vocabulary),
        }
        write_record("post_counts", "python reports/bench/post_counts.py --record", facts)


if __name__ == "__main__":
    main()
