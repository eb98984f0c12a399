"""`maskwright learn`: count which tokens come where in some texts, so that a model needs fewer passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maskwright.analysis.errors import MaskwrightError
from maskwright.cli.command import NeededTokenizer, command
from maskwright.cli.common import check_writable, load_any_store, progress_bars, say, write_json
from maskwright.cli.constraints import DEFAULTS, OF_SCHEMAS, GrammarOptions


@command(
    epilog="Example: maskwright learn schema.json answers.jsonl --tokenizer MODEL -o answers.counts",
    takes=("syntax", *OF_SCHEMAS),
)
def learn(
    store: str,
    paths: list[str],
    *,
    output: Path,
    tokenizer: NeededTokenizer = None,
    suffixes: list[str] | None = None,
    field: str = "text",
    limit: int | None = None,
    options: GrammarOptions = DEFAULTS,
    json_file: Path | None = None,
) -> None:
    """Count which tokens come where in texts of a grammar: `maskwright complete --counts` then takes fewer passes of the model.

    paths PATH... : Texts: files, folders, globs, .jsonl files.
    output -o FILE : Where the counts are written.
    """
    from maskwright.decoding.generation import TokenCounts
    from maskwright.maskstore.vocabulary.encoders import encoder_of
    from maskwright.validation.corpus import check_paths, find_corpus, suffixes_of

    if str(output) == "-":
        raise MaskwrightError("counts are not written to standard output; name a file")
    check_writable(output, json_file, inputs=(store, tokenizer, *paths))
    check_paths(paths)
    loaded = load_any_store(store, tokenizer, options)
    encoder = encoder_of(loaded.vocabulary, tokenizer)
    name = getattr(getattr(loaded, "grammar", None), "name", "")
    own = suffixes_of(name)
    corpus = find_corpus(paths, tuple(suffixes or (own and (*own, ".json", ".txt"))), field)
    counts = TokenCounts(loaded.vocabulary)
    facts = _learn(counts, loaded, encoder, corpus, limit)
    if not facts["tokens"]:
        raise MaskwrightError(
            "no token of these texts is legal at its place, so there is nothing to count: is it the right grammar?"
        )
    counts.save(output)
    if write_json(json_file, facts):
        say(
            f"wrote {output}: {facts['tokens']:,} tokens of {facts['texts']:,} texts at {facts['places']:,} places; "
            f"{facts['cut']:,} texts were legal only at their beginning, {facts['unreadable']:,} could not be read"
        )


def _learn(counts: Any, store: Any, encoder: Any, corpus: Any, limit: int | None) -> dict[str, int]:
    """Count the tokens of a corpus. Returns what was counted, ready for JSON."""
    from maskwright.validation.corpus import Unreadable

    facts = {"texts": 0, "tokens": 0, "cut": 0, "unreadable": 0}
    done, unreadable = 0, ""
    with progress_bars() as progress:
        for text in corpus:
            done += text.weight
            progress("learning", min(done, corpus.n_bytes), max(corpus.n_bytes, 1))
            if isinstance(text, Unreadable):
                facts["unreadable"] += 1
                unreadable = unreadable or f"{text.name}: {text.reason}"
                continue
            tokens = encoder.exact_tokens(text.text).tokens
            n = counts.learn(store.matcher(), tokens)
            facts["texts"] += 1
            facts["tokens"] += n
            facts["cut"] += n < len(tokens)
            if facts["texts"] == limit:
                break
    if not facts["texts"]:
        raise MaskwrightError(f"no text could be read, so there is nothing to count; the first is {unreadable}")
    return {**facts, "places": len(counts)}
