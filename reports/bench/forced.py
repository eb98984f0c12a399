"""Tokens that can only be one, along real texts: ours under canonical masks, beside llguidance's fast-forward tokens.

python reports/bench/forced.py [--peers-path SITE_PACKAGES] [--documents N]
python reports/bench/forced.py --flexible

Each text is read as a loop that has forced tokens would read it: where tokens are forced they are read, and counted if they are those
of the text; elsewhere its next token is read. `wrong` counts places where what is forced is not what the text has, which is then read all
the same. The share is of all tokens of the texts that both engines read to the end, with tekken as the tokenizer of both.

For ours it is also counted what forced bytes give without canonical masks (llguidance's article): at each place with forced bytes,
whether these, tokenized by themselves with nothing held back, are the tokens of the text there (`apart`); and how many tokens
`mw.tokenize_partial` makes of them (`held`), which are always the text's (`held_wrong` counts others).

With --flexible only that is counted, as llguidance's article does: schemas leave white space open (style `any`), instances are as
`json.dumps` writes them, and a run of forced bytes counts once (`runs`; `apart`, as above).

Instances of the evaluation data's SchemaStore are written compactly, their keys in the order of the schema, as both engines are told.
Schemas that one of them refuses, and texts that one of them does not read, are left out and counted. Our keys have the escapes that JSON
wants (`escapes="minimal"`), as llguidance's always have. Python and SQL are real sources, under the library's grammars; tool calls are
those of Hermes' form with a schema of the SchemaStore. These three have no peer here.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from common import add_data, has_records, shared_records, write_record
from member_order import MemberOrder
from rich.console import Console
from rich.progress import track
from rich.table import Table

import maskwright as mw
from maskwright.maskstore.vocabulary.encoders import load_encoder

TOKENIZER = "tekken"
LONGEST = 4000
SCHEMAS = "jsonschema/schemastore"
"""Tokens of a text at most."""
EACH = 3
"""With --flexible: one schema of so many."""
OF_BYTES = ("places", "apart", "held", "held_wrong")
"""What is counted of forced bytes."""


class Ours:
    """Forced tokens of a store's texts."""

    def __init__(self, store: Any, tokens: mw.CanonicalTokens, tokenize: Any) -> None:
        self.matcher, self.state, self._tokenize = store.matcher(), tokens.start(), tokenize

    def of_bytes(self, true: list[int]) -> dict[str, int]:
        """What the forced bytes here give without canonical masks. true : the tokens that the text has next."""
        data = self.matcher.forced_bytes()
        if not data:
            return {}
        apart = self._tokenize(data.decode("utf-8", "replace"))
        held, _ = mw.tokenize_partial(self.state, data)
        return {
            "places": 1,
            "apart": int(apart == true[: len(apart)]),
            "held": len(held),
            "held_wrong": int(held != true[: len(held)]),
        }

    def forced(self) -> list[int]:
        return mw.forced_tokens(self.matcher, self.state)

    def read(self, token: int) -> bool:
        if not self.matcher.is_allowed(token):
            return False
        self.matcher.advance(token)
        self.state.advance(token)
        return True


class Guidance:
    """Fast-forward tokens of llguidance's texts; its ids are tekken's without the special tokens before them."""

    def __init__(self, matcher: Any, shift: int) -> None:
        self.matcher, self.shift = matcher, shift

    def forced(self) -> list[int]:
        return [token + self.shift for token in self.matcher.compute_ff_tokens()]

    def read(self, token: int) -> bool:
        return bool(self.matcher.consume_token(token - self.shift))


def along(engine: Ours | Guidance, text: list[int]) -> dict[str, int] | None:
    """How many tokens of a text are forced; None if the engine does not read it."""
    at = n_forced = n_calls = n_wrong = 0
    of_bytes: Counter[str] = Counter()
    while at < len(text):
        if isinstance(engine, Ours):
            of_bytes.update(engine.of_bytes(text[at:]))
        found = engine.forced()[: len(text) - at]
        if found and found != text[at : at + len(found)]:
            n_wrong += 1
            found = []
        n_forced += len(found)
        n_calls += not found
        for token in found or text[at : at + 1]:
            if not engine.read(token):
                return None
            at += 1
    return {"tokens": at, "forced": n_forced, "calls": n_calls, "wrong": n_wrong, **of_bytes}


def summed(rows: list[dict[str, int]]) -> dict[str, Any]:
    total: dict[str, Any] = {key: sum(row[key] for row in rows) for key in ("tokens", "forced", "calls", "wrong")}
    of_bytes = {key: sum(row.get(key, 0) for row in rows) for key in OF_BYTES}
    share = round(100 * total["forced"] / max(1, total["tokens"]), 2)
    return {"texts": len(rows), **total, "share_percent": share, **(of_bytes if of_bytes["places"] else {})}


class Peer:
    """llguidance with tekken, if it is there."""

    def __init__(self) -> None:
        import llguidance
        import llguidance.tiktoken
        from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

        tekken: Any = MistralTokenizer.v3(is_tekken=True).instruct_tokenizer.tokenizer
        self.version = llguidance.__version__ if hasattr(llguidance, "__version__") else ""
        self.shift = int(tekken.num_special_tokens)
        self._new = llguidance.LLMatcher
        model = tekken._model
        self._tokenizer = llguidance.tiktoken.lltokenizer_from_encoding(
            model, n_vocab=model.n_vocab + 1, eos_token=model.n_vocab
        )

    def compiled(self, schema: Any) -> Any:
        """A function that begins a text; None if the schema is refused."""
        plain = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
        given = schema | {"x-guidance": plain} if isinstance(schema, dict) else schema
        first = self._new(self._tokenizer, self._new.grammar_from_json_schema(json.dumps(given)), log_level=0)
        return None if first.is_error() else lambda: Guidance(first.deep_copy(), self.shift)


def of_schemas(tokens: mw.CanonicalTokens, tokenize: Any, peer: Peer | None, documents: int) -> dict[str, Any]:
    rows: dict[str, list[dict[str, int]]] = {"ours": [], "llguidance": []}
    left_out = {"ours, schemas": 0, "llguidance, schemas": 0, "ours, texts": 0, "llguidance, texts": 0}
    for record in track(list(shared_records(SCHEMAS)), "schemas", transient=True):
        schema = record["schema"]
        order = MemberOrder(schema)
        makers: dict[str, Any] = {}
        try:
            store = mw.build_store(
                mw.load_schema(schema, whitespace="compact", key_order="schema", escapes="minimal"), TOKENIZER
            )
            makers["ours"] = lambda store=store: Ours(store, tokens, tokenize)
        except mw.MaskwrightError:
            left_out["ours, schemas"] += 1
        if peer:
            makers["llguidance"] = peer.compiled(schema)
            left_out["llguidance, schemas"] += makers["llguidance"] is None
        if any(maker is None for maker in makers.values()) or "ours" not in makers:
            continue
        for test in [test for test in record["tests"] if test["valid"]][:documents]:
            text = tokenize(json.dumps(order.ordered(test["data"]), ensure_ascii=False, separators=(",", ":")))
            if not 0 < len(text) <= LONGEST:
                continue
            found = {name: along(maker(), text) for name, maker in makers.items()}
            for name, one in found.items():
                left_out[f"{name}, texts"] += one is None
            for name, one in found.items():
                if one is not None and None not in found.values():
                    rows[name].append(one)
    return {"left_out": left_out, **{name: summed(some) for name, some in rows.items() if some}}


def nothing_held_back(tokenize: Any) -> dict[str, int]:
    """Runs of forced bytes along instances of schemas that leave white space open, and of how many their own tokens are the text's."""
    found = {"schemas": 0, "texts": 0, "runs": 0, "apart": 0}
    n_bytes = [len(each) for each in mw.load_vocabulary(TOKENIZER).tokens]
    for record in track(list(shared_records(SCHEMAS))[::EACH], "schemas", transient=True):
        try:
            read = mw.load_schema(record["schema"], whitespace="any", key_order="schema", escapes="minimal")
            store = mw.build_store(read, TOKENIZER)
        except mw.MaskwrightError:
            continue
        found["schemas"] += 1
        order = MemberOrder(record["schema"])
        for test in [test for test in record["tests"] if test["valid"]][:1]:
            text = tokenize(json.dumps(order.ordered(test["data"]), ensure_ascii=False))
            if 0 < len(text) <= LONGEST and (one := runs_along(store.matcher(), text, n_bytes, tokenize)):
                found["texts"] += 1
                found["runs"] += one[0]
                found["apart"] += one[1]
    return found


def runs_along(matcher: Any, text: list[int], n_bytes: list[int], tokenize: Any) -> tuple[int, int] | None:
    """The runs of forced bytes along a text, and those that are spelled alike apart; None if the text is refused.

    n_bytes : of each token.
    """
    left = n_runs = n_apart = 0
    for at, token in enumerate(text):
        if left <= 0 and (data := matcher.forced_bytes()):
            left = len(data)
            apart = tokenize(data.decode("utf-8", "replace"))
            n_runs += 1
            n_apart += apart == text[at : at + len(apart)]
        if not matcher.is_allowed(token):
            return None
        matcher.advance(token)
        left -= n_bytes[token]
    return n_runs, n_apart


def of_grammar(name: str, source: str, tokens: mw.CanonicalTokens, tokenize: Any, n: int) -> dict[str, Any]:
    store = mw.cached_store(name, TOKENIZER)
    rows = []
    for record in shared_records(source):
        text = max((value for value in record.values() if isinstance(value, str)), key=len)
        if len(text) < 4 * LONGEST and (one := along(Ours(store, tokens, tokenize), tokenize(text))) is not None:
            rows.append(one)
        if len(rows) == n:
            break
    return summed(rows)


def of_tool_calls(tokens: mw.CanonicalTokens, tokenize: Any, n: int) -> dict[str, Any]:
    """Calls `<tool_call>{"name": ..., "arguments": ...}</tool_call>` of tools whose arguments a schema of the evaluation data describes."""
    rows = []
    for i, record in enumerate(shared_records(SCHEMAS)):
        valid = [test["data"] for test in record["tests"] if test["valid"]]
        name = f"write_settings_{i}"
        tag = {
            "type": "structural_tag",
            "format": {
                "type": "tag",
                "begin": f'<tool_call>\n{{"name": "{name}", "arguments": ',
                "content": {"type": "json_schema", "json_schema": record["schema"]},
                "end": "}\n</tool_call>",
            },
        }
        try:
            store = mw.build_store(mw.read_structural_tag(tag, whitespace="compact", escapes="minimal"), TOKENIZER)
        except mw.MaskwrightError:
            continue
        order = MemberOrder(record["schema"])
        for value in valid[:2]:
            body = json.dumps(order.ordered(value), ensure_ascii=False, separators=(",", ":"))
            text = f'<tool_call>\n{{"name": "{name}", "arguments": {body}}}\n</tool_call>'
            if len(text) < 4 * LONGEST and (one := along(Ours(store, tokens, tokenize), tokenize(text))) is not None:
                rows.append(one)
        if len(rows) >= n:
            break
    return summed(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--peers-path", type=Path, help="a folder of packages with llguidance")
    parser.add_argument("--documents", type=int, default=2, help="texts of a schema at most")
    parser.add_argument("--texts", type=int, default=60, help="texts of Python, SQL and tool calls")
    parser.add_argument("--flexible", action="store_true", help="only what is forced where white space is open")
    add_data(parser)
    options = parser.parse_args()
    facts: dict[str, Any]
    if options.flexible:
        facts = {"tokenizer": TOKENIZER, "schemas": nothing_held_back(load_encoder(TOKENIZER).tokenize)}
        print(facts)
        write_record("forced-flexible", "python reports/bench/forced.py --flexible", facts)
        return
    if options.peers_path:
        sys.path.append(str(options.peers_path.resolve()))
    try:
        peer = Peer()
    except ImportError as error:
        peer = None
        print(f"llguidance is not there ({error}): measured without it", file=sys.stderr)
    begin = time.process_time()
    tokens, tokenize = mw.load_canonical(TOKENIZER), load_encoder(TOKENIZER).tokenize
    facts = {"tokenizer": TOKENIZER}
    if has_records(SCHEMAS):
        facts["schemas"] = of_schemas(tokens, tokenize, peer, options.documents)
    for name, source in (("python", "source/python"), ("sql", "source/sql_statements")):
        if has_records(source):
            facts[name] = of_grammar(name, source, tokens, tokenize, options.texts)
    if "schemas" in facts or len(facts) == 1:
        facts["tool calls"] = of_tool_calls(tokens, tokenize, options.texts)
    facts["cpu_s"] = round(time.process_time() - begin, 1)
    console = Console()
    table = Table("texts", "engine", "number", "tokens", "forced", "share, %", "calls", "wrong", *OF_BYTES)
    for name in [name for name in ("schemas", "python", "sql", "tool calls") if name in facts]:
        engines = {key: one for key, one in facts[name].items() if "llguidance" in facts[name] or key == "ours"}
        engines = engines if name == "schemas" else {"ours": facts[name]}
        for engine, one in engines.items():
            if engine != "left_out":
                names = ("texts", "tokens", "forced", "share_percent", "calls", "wrong", *OF_BYTES)
                values = (one.get(key, "") for key in names)
                table.add_row(name, engine, *map(str, values))
    console.print(table)
    console.print(facts["schemas"]["left_out"] if "schemas" in facts else "")
    write_record(
        "forced",
        " ".join(["python", "reports/bench/forced.py", *(["--peers-path SITE_PACKAGES"] if peer else [])]),
        facts,
    )


if __name__ == "__main__":
    main()
