"""llguidance on the work of reports/bench/schemas.py: python schema_llguidance.py WORK.json"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path = [path for path in sys.path if Path(path or ".").resolve() != FOLDER]  # its llguidance.py is not the package

import llguidance  # noqa: E402
import numpy as np  # noqa: E402


def measured() -> ModuleType:
    """The measure of schemas.py, without the product that it imports."""
    text = (FOLDER.parent / "schemas.py").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "maskwright" not in line and not line.startswith("from common")]
    spec = importlib.util.spec_from_loader("schemas", loader=None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    exec(compile("\n".join(lines), "schemas.py", "exec"), module.__dict__)
    return module


class Tokenizer:
    """What `TokenizerWrapper` asks for: see llguidance.py beside this file."""

    bos_token_id = None

    def __init__(self, content: dict[str, Any]) -> None:
        special = {int(number): name for number, name in content["special"].items()}
        tokens = [bytes.fromhex(token) for token in content["tokens"]]
        self.eos_token_id = content["eos"][0]
        self.tokens = [b"\xff" + special[i].encode() if i in special else token for i, token in enumerate(tokens)]
        self.special_token_ids = sorted(special)
        self._number = {token: i for i, token in enumerate(tokens) if token and i not in special}
        self._longest = max(map(len, self._number))

    def __call__(self, text: str | bytes) -> list[int]:
        data = text.encode() if isinstance(text, str) else bytes(text)
        found, at = [], 0
        while at < len(data):
            sizes = range(min(self._longest, len(data) - at), 0, -1)
            width = next((n for n in sizes if data[at : at + n] in self._number), 0)
            if not width:
                break
            found.append(self._number[data[at : at + width]])
            at += width
        return found


def main() -> None:
    content = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    n_words = (len(content["tokens"]) + 31) // 32
    begin = time.process_time()
    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer(content)), n_vocab=len(content["tokens"]))
    prepared = time.process_time() - begin
    bitmask = np.zeros((1, n_words), np.int32)

    class Matcher:
        def __init__(self, matcher: Any) -> None:
            self.words = bitmask.view(np.uint32)[0]
            self.fill = partial(matcher.unsafe_compute_mask_ptr, bitmask.ctypes.data, bitmask.nbytes)
            self.advance = matcher.consume_token

    def compiled(schema: Any) -> Any:
        grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
        first = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
        if first.is_error():
            raise ValueError(first.get_error())
        return lambda: Matcher(first.deep_copy())

    facts = measured().measure(content["work"], n_words, compiled, lambda: None)
    print(json.dumps({"version": version("llguidance"), "tokenizer, CPU s": prepared, **facts}))


if __name__ == "__main__":
    main()
