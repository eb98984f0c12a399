"""`maskwright warm-up`: put stores into the cache before they are needed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.analysis.errors import MaskwrightError
from maskwright.cli.command import command
from maskwright.cli.common import check_writable, progress_bars, say, write_json
from maskwright.cli.constraints import DEFAULTS, OF_LARK, GrammarOptions

if TYPE_CHECKING:
    from maskwright.serving.warming import Warmed


@command(
    "warm-up",
    epilog="Example: MASKWRIGHT_CACHE=/opt/masks maskwright warm-up json python --tokenizer tokenizer.json --readable",
    takes=(*OF_LARK, "syntax"),
)
def warm_up(
    grammars: list[str] | None = None,
    *,
    tokenizers: list[str] | None = None,
    options: GrammarOptions = DEFAULTS,
    library: bool = False,
    readable: bool = False,
    json_file: Path | None = None,
) -> None:
    """Put stores into the cache before they are needed, as when an image is built.

    The environment variable MASKWRIGHT_CACHE names the cache folder. Without a grammar only the engines' code is made ready.

    grammars [GRAMMAR...] : Names, .lark files or lark:NAME; schemas, compositions: what requests will bring.
    tokenizers --tokenizer -t T : A tokenizer; may be given several times.
    library : All grammars that come along, too.
    readable : Let all users read the cache: for an image that others run.
    """
    from maskwright.analysis.loading.names import known_grammars
    from maskwright.maskstore.vocabulary import load_vocabulary
    from maskwright.serving.warming import warm_constraint, warm_engines

    named = list(grammars or ())
    check_writable(json_file, inputs=(*named, *(tokenizers or ())))
    if not tokenizers:
        raise MaskwrightError("a mask store is for one tokenizer: name at least one (--tokenizer)")
    if library:
        named += [name for name in known_grammars() if name not in named]
    loaded: list[Any] = [options.read(grammar) for grammar in named]
    tell = partial(say, is_error=str(json_file) == "-")
    rows: list[dict[str, Any]] = []
    engines: list[dict[str, Any]] = []
    for tokenizer in tokenizers:
        vocabulary = load_vocabulary(tokenizer)
        seconds = round(warm_engines(vocabulary, lambda said: tell(f"note: {said}")), 3)
        engines.append({"tokenizer": vocabulary.name, "tokens": vocabulary.size, "cpu_seconds": seconds})
        for constraint in loaded:
            with progress_bars() as progress:
                made = warm_constraint(constraint, vocabulary, progress=progress, readable=readable)
            rows += _rows(constraint, vocabulary.name, made)
            for row in rows[-max(1, len(made.paths)) :]:
                where = f"{row['bytes'] / 1e6:.1f} MB, " if row["path"] else "no file, "
                tell(
                    f"{row['grammar']} x {row['tokenizer']}: {where}in {row['cpu_seconds']:.1f} s of processor time"
                    f"{': ' + row['path'] if row['path'] else ', as each time'}"
                )
    write_json(json_file, {"stores": rows, "engines": engines})


def _rows(constraint: Any, tokenizer: str, made: Warmed) -> list[dict[str, Any]]:
    """A row for each file that was made of a constraint; one without a file if there is none."""
    seconds = round(made.cpu_seconds, 3)
    facts = {"grammar": constraint.name, "tokenizer": tokenizer}
    if not made.paths:
        return [{**facts, "path": None, "bytes": 0, "cpu_seconds": seconds}]
    return [{**facts, "path": str(path), "bytes": path.stat().st_size, "cpu_seconds": seconds} for path in made.paths]
