"""Patterns of ECMA 262 at random, and what Node.js says of them.

`python tests/support/ecma_patterns.py` writes the answers of the Node.js that is installed to data/cases/ecma_patterns.json.
"""

from __future__ import annotations

import json
import random
import subprocess

from paths import ROOT
from random_patterns import random_pattern

FILE = ROOT / "tests" / "data" / "cases" / "ecma_patterns.json"

SINGLES = (
    "a", "b", "é", "😀", ".", "[ab]", "[^a]", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"\.", "-", r"\/", " ", "_",
    "1", "^", "$",
)  # fmt: skip
SINGLES += (
    r"\x61",
    r"\u0062",
    r"\u{1F600}",
    r"\ud83d\ude00",
    r"\cJ",
    r"\t",
    r"\0",
    r"[\d-]",
    r"[a-cé]",
    r"[^\s]",
    r"[\b]",
    "(?:)",
    r"\b",
    r"\B",
)
SINGLES += (
    r"\p{L}",
    r"\P{Lu}",
    r"\p{Lu}",
    r"[\p{Nd}_]",
    r"[\u{1F5FF}-\u{1F601}]",
    r"[\-a]",
    r"[\]a]",
    r"[\^b]",
    r"[^\W_]",
    "[]",
    "[^]",
)
REPEATS = ("*", "+", "?", "{1,2}", "{2}", "{0,3}", "{1,}", "*?", "+?", "{0,1}?", "{0}")
AROUND = (
    "({})", "(?:{})", "(?={})", "(?!{})", "(?<={})", "(?<!{})", "^{}$", "^{}", "{}$", "(^|{})", "({}|$)",
    "(?<name>{})",
)  # fmt: skip
LETTERS = "ab1_ -.x/\n\té😀AZ\xa0\u2028٣\0]^"

PROGRAM = """
const cases = JSON.parse(require("fs").readFileSync(0));
const answer = ([pattern, texts]) => {
  let compiled;
  try { compiled = new RegExp(pattern, "u"); } catch (error) { return null; }
  return texts.map(text => compiled.test(text) ? "1" : "0").join("");
};
console.log(JSON.stringify(cases.map(answer)));
"""

Case = tuple[str, list[str]]


def random_cases(seed: int, n: int, n_texts: int) -> list[Case]:
    """Patterns, each with texts.

    Node.js looks for empty matches in the middle of a surrogate pair, against ECMA 262, so there are no such pairs in texts
    where one can be empty and yet ask for something.
    """
    rng = random.Random(seed)
    found = []
    for _ in range(n):
        pattern = random_pattern(rng, rng.randint(1, 4), SINGLES, REPEATS, AROUND)
        if pattern.count("(?<name>") > 1:
            pattern = pattern.replace("(?<name>", "(")
        letters = LETTERS.replace("😀", "") if any(part in pattern for part in (r"\B", "(?!", "(?<!")) else LETTERS
        texts = [
            "".join(rng.choice(letters if rng.random() < 0.4 else "ab1 ") for _ in range(rng.randint(0, 6)))
            for _ in range(n_texts)
        ]
        found.append((pattern, sorted(set(texts))))
    return found


def of_node(cases: list[Case]) -> list[str | None]:
    """For each case whether the pattern is found in each text, as digits; None for what is no pattern with the flag `u`."""
    run = subprocess.run(["node", "-e", PROGRAM], input=json.dumps(cases), capture_output=True, text=True, check=True)
    answers: list[str | None] = json.loads(run.stdout)
    return answers


if __name__ == "__main__":
    made = random_cases(262, 600, 12)
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    lines = [json.dumps([pattern, texts, answer]) for (pattern, texts), answer in zip(made, of_node(made), strict=True)]
    FILE.write_text(f'{{"node": "{version}", "cases": [\n' + ",\n".join(lines) + "\n]}\n", encoding="utf-8")
