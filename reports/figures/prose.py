"""Where a page says a figure: numbers with a unit, numbers of a decimal point or of thousands, and cells of tables that are all numbers.

Code, and what commands print in it, are examples: their numbers are no figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
VERSION = r"\d+(?:\.\d+)+"
_NAMES = (
    "Python|CPython|Go|TOML|SQLite|vLLM|xgrammar|llguidance|glrmask|outlines-core|Outlines|Unicode|Lark|lark|transformers|Mistral-7B|"
    "RFC|ECMA|CUDA|torch|SGLang|llama-cpp-python|mlx-lm|kbnf|maskwright|gcc|section|sections|Apache|arXiv|draft|drafts|JSON|version|"
    "versions|release|releases|paragraph|code|December|November|notebooks?"
)
"""What stands before a version, a section or another number that counts nothing."""
MEASURES = (
    r"CPU[ -]s(?:econds?)?|us|ms|s|M|k|seconds?|minutes?|hours?|days?|MB|GB|MiB|GiB|kB|KB|kilobytes?|megabytes?|gigabytes?|bytes?|bits?|"
    r"microseconds?|milliseconds?|times|cores?"
)
_THINGS = (
    "tokens?|masks?|rows?|entries|entry|texts?|files?|nodes?|edges?|schemas?|instances?|patterns?|completions?|prefixes|places?|positions?|"
    "queries|query|pairs?|statements?|mutants?|passes|pass|steps?|threads?|states?|names?|ids?|levels?|frames?|characters?|columns?|programs?|"
    "requests?|constraints?|drafts?|calls?|prompts?|groups?|alternatives?|readings?|visits?|lines?|items?|members?|records?|languages?|"
    "grammars?|terminals?|sequences?|classes|values?|keywords?|modules?|regions?|slots?|copies|kinds?|digits?|layers?|documents?|reports?|"
    "questions?|cells?|tests?|sources?|processes|devices?|cases?|parts?|conflicts?|ways?|others|ones|per cent|ops|imports?|attributes?"
)
_SMALL = (
    "do|does|not|can|may|the|if|an?|is|are|as|where|which|that|than|and|or|in|on|at|for|to|of|by|with|without|it|they|has|have|when|"
    "behind|between|before|after"
)
_UNIT = re.compile(
    rf"\s?%|\s?x(?!\w)|-?\s(?:{MEASURES})(?![\w-])|-(?:{MEASURES})(?![\w-])|"
    rf"\s(?:of (?:the |its )?)?(?:(?!(?:{_SMALL})\s)[a-z][a-z'-]*\s){{0,2}}(?:{_THINGS})(?!\w)"
)
_LIST = re.compile(rf"(?:\s\([^()]*\))?(?:,|\s(?:and|to|or|of|instead of|of the|of the other|->|/))\s{NUMBER}(?!\.?\d)")
"""A further number that shares its unit with the one before."""
_NUMBER = re.compile(rf"(?<![\w.,/#=:])(?<![^\s|][+-]){NUMBER}(?!(?!x\b)\w|\.\d|-\d|,\d)")
_VERSION = re.compile(rf"(?:{_NAMES})(?:\s>=)?\s$")
_HIDDEN = re.compile(
    r"^(?P<fence>```|~~~).*?^(?P=fence)|(?<=\n\n)(?:    [^\n]*\n)+|<!--.*?-->|(?<!`)`[^`\n]+(?:\n[^`\n]+)?`(?!`)|\]\([^)]*\)|https?://\S+|"
    r"^\#+ [^\n]*$",
    re.DOTALL | re.MULTILINE,
)
_SPELLED = re.compile(
    r"\b(?:half an?|one and a half|"
    r"an? (?:third|quarter|fifth|tenth|hundredth) of an?|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|"
    r"thirty|forty|fifty|sixty|ninety|(?:a|some|two|three|a few) hundred|hundreds of|(?:a|some|a few) thousand|thousands of) "
    r"(?:CPU[ -])?(?:(?:micro|milli|nano)?seconds?|minutes?|hours?|(?:kilo|mega|giga)?bytes?|[kKMG]i?B)\b",
    re.IGNORECASE,
)
"""A number in words that has a unit of time or memory."""
_CELL = re.compile(rf"[\s\d.,/()x%*~:+-]|{MEASURES}")


def visible(text: str) -> str:
    """The page with blanks for code, comments, headings and targets of links: each character where it was."""
    return _HIDDEN.sub(lambda hidden: re.sub(r"[^\n]", " ", hidden[0]), text)


def figures(text: str) -> Iterator[tuple[int, int]]:
    """Begin and end of each number of the page that is a figure."""
    shown = visible(text)
    cells = {span for line in re.finditer(r"^\|.*\|$", shown, re.MULTILINE) for span in _numbers_of_cells(line)}
    for found in _NUMBER.finditer(shown):
        if found.span() in cells or _is_figure(shown, found):
            yield found.span()
    yield from _spelled(shown)


def numbers(text: str) -> Iterator[tuple[int, int]]:
    """Begin and end of each number, a figure or not."""
    yield from (found.span() for found in re.finditer(NUMBER, text))
    yield from _spelled(text)


def _spelled(text: str) -> Iterator[tuple[int, int]]:
    yield from (found.span() for found in _SPELLED.finditer(text.replace("\n", " ")))


def _is_figure(shown: str, found: re.Match[str]) -> bool:
    """Whether it has a unit, or says by itself that it was counted or measured."""
    if "," in found[0]:
        return True
    if _UNIT.match(shown, found.end()):
        return True
    if "." in found[0]:
        return not _VERSION.search(shown, max(0, found.start() - 20), found.start())
    end = found.end()
    while further := _LIST.match(shown, end):
        end = further.end()
        if _UNIT.match(shown, end):
            return True
    return False


def _numbers_of_cells(line: re.Match[str]) -> Iterator[tuple[int, int]]:
    for cell in re.finditer(r"[^|]+", line[0]):
        if re.search(r"\d", cell[0]) and not _CELL.sub("", cell[0]):
            for found in _NUMBER.finditer(line.string, line.start() + cell.start(), line.start() + cell.end()):
                yield found.span()
