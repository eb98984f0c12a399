"""The Domino paper's tasks by Python's own parsers: is a text one of them? And texts of each, drawn at random.

What the grammars domino.* of the library are held against, by tests/analysis/library and by reports/bench/reach.py.
"""

from __future__ import annotations

import json
import random
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

WORDS = (
    "Ann", "two", "and", "5", "é", "EU", "[x]", "a > b", "O'Neil", "step", "answer", "PER", "42 + 1", "", "leather",
    "{", ",",
)  # fmt: skip

# ---- Are they texts of the task?


def is_gsm8k(text: str) -> bool:
    pairs = as_json(text)
    if names(pairs) != ["thoughts", "answer"] or not isinstance(pairs[0][1], list) or not pairs[0][1]:
        return False
    kinds = [("step", str), ("calculation", str), ("result", float)]
    return isinstance(pairs[1][1], float) and all(has_members(thought, kinds) for thought in pairs[0][1])


def is_conll(text: str) -> bool:
    pairs = as_json(text)
    if names(pairs) != ["entities"] or not isinstance(pairs[0][1], list) or isinstance(pairs[0][1], Pairs):
        return False
    kinds = [("entity", str), ("type", str)]
    return all(has_members(one, kinds) and one[1][1] in ("PER", "ORG", "LOC", "MISC") for one in pairs[0][1])


def is_person(text: str) -> bool:
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return False
    # what the tree does not show: only elements, named entities and characters
    return root.tag == "person" and is_one_person(root) and not re.search(r"<[!?]|&#|<[^>]*/>", text)


def is_rpg(text: str) -> bool:
    lines = text.split("\n")
    if len(lines) != 12 or (lines[0], lines[-1]) != ("{", "}"):
        return False
    kinds = ("id", "description", "name", "age", "armor", "weapon", "class", "mantra", "strength", "items")
    for number, (name, line) in enumerate(zip(kinds, lines[1:-1], strict=True)):
        head, tail = f'    "{name}": ', "" if number == len(kinds) - 1 else ","
        if not (line.startswith(head) and line.endswith(tail)) or not is_hole(
            name, line[len(head) : len(line) - len(tail)]
        ):
            return False
    return True


class Pairs(list[Any]):
    """The members of an object in their order."""


def as_json(text: str) -> Any:
    def refuse(name: str) -> object:
        raise ValueError(name)

    try:
        return json.loads(text, object_pairs_hook=Pairs, parse_int=float, parse_constant=refuse)
    except ValueError:
        return None


def names(value: Any) -> list[str] | None:
    return [name for name, _ in value] if isinstance(value, Pairs) else None


def has_members(value: Any, kinds: list[tuple[str, type]]) -> bool:
    return names(value) == [name for name, _ in kinds] and all(
        isinstance(found, kind) for (_, found), (_, kind) in zip(value, kinds, strict=True)
    )


def is_one_person(element: ElementTree.Element) -> bool:
    tags = [child.tag for child in element]
    if tags not in (["name", "age", "job"], ["name", "age", "job", "friends"]) or not is_bare(element):
        return False
    name, age, job, *friends = element
    if [child.tag for child in job] != ["title", "salary"] or not is_bare(job):
        return False
    leaves = [(name, r"(?s).+"), (age, r"[0-9]{1,3}"), (job[0], r"(?s).+"), (job[1], r"[0-9]+(\.[0-9]{1,2})?")]
    if not all(is_leaf(leaf, pattern) for leaf, pattern in leaves):
        return False
    return all(is_bare(one) and all(child.tag == "person" and is_one_person(child) for child in one) for one in friends)


def is_bare(element: ElementTree.Element) -> bool:
    texts = [element.text, *(child.tail for child in element)]
    return not element.attrib and all(not (text or "").strip(" \t\r\n") for text in texts)


def is_leaf(element: ElementTree.Element, pattern: str) -> bool:
    return not element.attrib and not len(element) and re.fullmatch(pattern, element.text or "", re.ASCII) is not None


def is_hole(name: str, text: str) -> bool:
    if name in ("age", "strength"):
        return text.isascii() and text.isdigit() and str(int(text)) == text and int(text) < 1000
    if name == "armor":
        return text in ('"leather"', '"chainmail"', '"plate"')
    if name == "weapon":
        return text in ('"sword"', '"axe"', '"mace"', '"spear"', '"bow"', '"crossbow"')
    value = as_json(text)
    if name != "items":
        return isinstance(value, str) and text == text.strip(" \t\r")
    if not (isinstance(value, list) and not isinstance(value, Pairs) and len(value) == 5):
        return False
    decoder, at = json.JSONDecoder(), 1
    for number in range(5):  # the blanks between them are given too
        if text[at : at + 1] != '"':
            return False
        at = decoder.raw_decode(text, at)[1]
        at += 2 if number < 4 and text[at : at + 2] == ", " else 0
    return text[at:] == "]"


# ---- Texts of the tasks


def any_words(chosen: random.Random) -> str:
    return " ".join(chosen.choices(WORDS, k=chosen.randint(1, 5)))


def draw_gsm8k(chosen: random.Random) -> str:
    thoughts = [
        {
            "step": any_words(chosen),
            "calculation": any_words(chosen),
            "result": chosen.choice((0, -3, 2.5, 1e30, 12345)),
        }
        for _ in range(chosen.randint(1, 4))
    ]
    value = {"thoughts": thoughts, "answer": chosen.randrange(1000)}
    return json.dumps(value, indent=chosen.choice((None, 2)), ensure_ascii=chosen.random() < 0.5)


def draw_conll(chosen: random.Random) -> str:
    entities = [
        {"entity": any_words(chosen), "type": chosen.choice(("PER", "ORG", "LOC", "MISC"))}
        for _ in range(chosen.randrange(4))
    ]
    return json.dumps({"entities": entities}, indent=chosen.choice((None, 2)), ensure_ascii=chosen.random() < 0.5)


def draw_person(chosen: random.Random, depth: int = 3) -> str:
    def leaf(tag: str, text: str) -> str:
        return f"<{tag}>{text.replace('&', '&amp;').replace('<', '&lt;') or 'x'}</{tag}>"

    gap = chosen.choice(("", "\n", "  "))
    parts = [leaf("name", any_words(chosen)), leaf("age", str(chosen.randrange(120)))]
    parts.append(f"<job>{leaf('title', any_words(chosen))}{gap}{leaf('salary', str(chosen.randrange(10**5)))}</job>")
    if depth and chosen.random() < 0.6:
        friends = [draw_person(chosen, depth - 1) for _ in range(chosen.randrange(3))]
        parts.append(f"<friends>{gap.join(friends)}</friends>")
    return f"<person>{gap.join(parts)}{gap}</person>"


def draw_rpg(chosen: random.Random) -> str:
    holes: dict[str, Any] = {name: any_words(chosen) for name in ("id", "description", "name")}
    holes["age"] = chosen.randrange(200)
    holes["armor"] = chosen.choice(("leather", "chainmail", "plate"))
    holes["weapon"] = chosen.choice(("sword", "axe", "mace", "spear", "bow", "crossbow"))
    holes |= {"class": any_words(chosen), "mantra": any_words(chosen), "strength": chosen.randrange(100)}
    holes["items"] = [any_words(chosen) for _ in range(5)]
    lines = [f'    "{name}": {json.dumps(value, ensure_ascii=chosen.random() < 0.5)}' for name, value in holes.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


IS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {"json_gsm8k": is_gsm8k, "conll": is_conll, "xml_person": is_person, "rpg_template": is_rpg}
)
DRAW: Mapping[str, Callable[[random.Random], str]] = MappingProxyType(
    {"json_gsm8k": draw_gsm8k, "conll": draw_conll, "xml_person": draw_person, "rpg_template": draw_rpg}
)


def texts(task: str, n: int, seed: int = 1) -> Iterator[str]:
    chosen = random.Random(seed)
    for _ in range(n):
        yield DRAW[task](chosen)


def mutants(task: str, n: int, seed: int = 2) -> Iterator[tuple[str, bool]]:
    """Texts with a piece or two dropped, doubled or swapped, and whether they still are of the task."""
    chosen = random.Random(seed)
    for text in texts(task, n, seed):
        pieces = re.findall(r"\w+|\s+|.", text)
        for _ in range(chosen.randint(1, 2)):
            at, change = chosen.randrange(len(pieces)), chosen.randrange(4)
            if change == 0:
                del pieces[at]
            elif change == 1:
                pieces.insert(at, pieces[at])
            elif change == 2:
                pieces[at : at + 2] = pieces[at : at + 2][::-1]
            else:
                pieces[at] = chosen.choice(pieces)
        mutant = "".join(pieces)
        yield mutant, IS[task](mutant)


def positive(task: str, n_texts: int = 1_000, n_mutants: int = 4_000) -> Iterator[tuple[str, bytes]]:
    """Names and texts that are of the task."""
    for number, text in enumerate(texts(task, n_texts)):
        yield f"text {number}", text.encode()
    for number, (text, is_legal) in enumerate(mutants(task, n_mutants)):
        if is_legal:
            yield f"mutant {number}", text.encode()


def negative(task: str, n_mutants: int = 4_000) -> Iterator[tuple[str, bytes, int, int]]:
    """Names and texts that are not, and where they may go wrong: anywhere."""
    for number, (text, is_legal) in enumerate(mutants(task, n_mutants)):
        if not is_legal:
            yield f"mutant {number}", text.encode(), 0, len(text.encode())
