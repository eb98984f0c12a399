"""What Lark, llguidance and xgrammar say of a grammar and of texts, for public_grammars.py; without maskwright.

Reads {"folder", "entry", "texts"} from its input and prints {"name", "verdicts"}, a verdict for each text, or
{"error", "message"}. xgrammar reads GBNF and EBNF. Where Lark's LALR parser refuses what a repository reads with
Earley, "lalr" is its message, and there are no verdicts.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from pathlib import Path
from typing import Any

SECONDS = 60


def lark_options(entry: dict[str, Any], path: Path) -> dict[str, Any]:
    from lark.indenter import Indenter

    options: dict[str, Any] = {"start": entry["start"], "source_path": str(path), "import_paths": [str(path.parent)]}
    said = entry.get("indenter")
    if said:
        members = {
            "NL_type": said["newline"],
            "INDENT_type": said["indent"],
            "DEDENT_type": said["dedent"],
            "OPEN_PAREN_types": [left for left, _ in said["brackets"]],
            "CLOSE_PAREN_types": [right for _, right in said["brackets"]],
            "tab_len": said["tab_length"],
        }
        options["postlex"] = type("Said", (Indenter,), members)()
    if entry.get("regex"):
        options["regex"] = True
    if entry.get("flags"):
        options["g_regex_flags"] = sum(getattr(re, flag.upper()) for flag in entry["flags"])
    return options


def by_lark(folder: Path, entry: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    """Verdicts of the LALR parser; if it refuses what the repository reads with Earley, whether Earley takes it."""
    import lark

    path = folder / entry["file"]
    text = path.read_text(encoding="utf-8")
    found: dict[str, Any] = {"name": "lark " + lark.__version__}
    try:
        parser = lark.Lark(text, parser="lalr", lexer=entry["lexer"], **lark_options(entry, path))
    except Exception as error:  # Lark raises many kinds, also re.error and its own assertions
        found |= {"lalr": f"{type(error).__name__}: {error}"[:600]}
        try:
            if entry["parser"] != "earley":
                raise
            options = lark_options(entry, path)
            lexer = "basic" if options.get("postlex") else "dynamic"
            lark.Lark(text, parser="earley", lexer=lexer, **options)
        except Exception as other:
            return found | {"error": type(other).__name__, "message": str(other)[:600]}
        return found | {"name": "lark, Earley"}
    verdicts: list[bool | None] = []
    for each in texts:
        try:
            parser.parse(each)
            verdicts.append(True)
        except lark.exceptions.UnexpectedInput:
            verdicts.append(False)
        except Exception as error:  # an indenter's DedentError, and assertions
            verdicts.append(False if "Dedent" in type(error).__name__ else None)
    return found | {"verdicts": verdicts}


def by_llguidance(folder: Path, entry: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    import llguidance

    found: dict[str, Any] = {"name": "llguidance"}
    given = [{"lark_grammar": (folder / entry["file"]).read_text(encoding="utf-8")}]
    given += [{"name": name, **each} for name, each in (entry.get("grammars") or {}).items()]
    grammar = json.dumps({"grammars": given})
    tokenizer = llguidance.LLTokenizer("byte")
    message = llguidance.LLMatcher.validate_grammar(grammar, tokenizer)
    if message:
        return found | {"error": "refused", "message": message[:600]}
    verdicts = []
    for each in texts:
        matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
        data = list(each.encode())
        verdicts.append(matcher.try_consume_tokens(data) == len(data) and bool(matcher.is_accepting()))
    return found | {"verdicts": verdicts}


def by_xgrammar(folder: Path, entry: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    import xgrammar
    from xgrammar.testing import _is_grammar_accept_string

    found: dict[str, Any] = {"name": "xgrammar"}
    try:
        grammar = xgrammar.Grammar.from_ebnf((folder / entry["file"]).read_text(encoding="utf-8"))
    except Exception as error:
        return found | {"error": type(error).__name__, "message": str(error)[:600]}
    return found | {"verdicts": [bool(_is_grammar_accept_string(grammar, each)) for each in texts]}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    given = json.load(sys.stdin)
    judge = {"lark": by_lark, "llguidance": by_llguidance}.get(given["entry"]["language"], by_xgrammar)
    print(json.dumps(judge(Path(given["folder"]), given["entry"], given["texts"])))


if __name__ == "__main__":
    main()
