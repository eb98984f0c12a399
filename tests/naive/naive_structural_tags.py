"""Structural tags from the definition: all ways to read a text, followed token by token.

A way is a stack of what is still to come. A token is read byte by byte, or whole by a set of tokens
on top of a way; both may go on. Random tags, over a small vocabulary, are made here too.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any, NamedTuple

from maskwright.analysis.lexing.terminals import compile_pattern

_TEXTS = "</s> a b c ab < / </ > x x> <x> </x> ax >a bc </x c< b</x> a<x>"
VOCABULARY = _TEXTS.split()
"""Tokens by id; the first one ends a text."""
IDS = range(1, len(VOCABULARY))
HALVES = "\xc3\xa9"
"""The bytes of a character, each as the character of its number. Only free text takes them, both of them."""


class Free(NamedTuple):
    """Text without some strings. said : what of it was read. began : the token behind which it begins."""

    without: tuple[str, ...]
    most: int | None
    said: str = ""
    began: int | None = None


class Matched(NamedTuple):
    """A pattern. state : of its automaton."""

    pattern: str
    state: int = 0


class Whole(NamedTuple):
    """One token of a set."""

    ids: frozenset[int]


class Run(NamedTuple):
    """Tokens of a set, at most so many."""

    ids: frozenset[int]
    most: int | None
    began: int | None = None


class Many(NamedTuple):
    """Something from `least` to `most` times; None for any number."""

    what: Any
    least: int
    most: int | None


Way = tuple[Any, ...]


def language(form: dict[str, Any], texts: tuple[str, ...] = (), tokens: tuple[int, ...] = ()) -> Any:
    """What a format means: a str, or one of the above; a tuple is a sequence, a frozenset a choice.

    texts, tokens : the ends of the tag around it.
    """
    kind = form["type"]
    excluded = [_id(one) for one in form.get("exclude_tokens", ())]
    some = frozenset(IDS) - set(excluded) - set(tokens)

    def read(one: dict[str, Any]) -> Any:
        return language(one, texts, tokens)

    if kind == "const_string":
        return form["value"]
    if kind == "any_text":
        return Free((*form.get("excludes", ()), *texts), form.get("max_tokens"))
    if kind == "regex":
        return Matched(form["pattern"])
    if kind == "token":
        return Whole(frozenset({_id(form["token"])}))
    if kind == "exclude_token":
        return Whole(some)
    if kind == "any_tokens":
        return Run(some, form.get("max_tokens"))
    if kind == "sequence":
        return tuple(map(read, form["elements"]))
    if kind == "or":
        return frozenset(map(read, form["elements"]))
    if kind == "tag":
        return _tag(form)
    if kind in ("optional", "plus", "star"):
        least, most = {"optional": (0, 1), "plus": (1, None), "star": (0, None)}[kind]
        return Many(read(form["content"]), least, most)
    if kind == "repeat":
        return Many(read(form["content"]), form["min"], form["max"])
    if kind == "token_dispatch":
        triggers = [_id(token) for token, _ in form["rules"]]
        free: Any = Run(frozenset(IDS) - set(excluded) - set(triggers), None)
        either = frozenset((Whole(frozenset({_id(token)})), read(one)) for token, one in form["rules"])
        return (free, Many((either, free), 0, None)) if form["loop"] else (free, Many(either, 0, 1))
    either = frozenset(map(_tag, form["tags"]))
    if kind == "token_triggered_tags":
        free = Run(some - set(map(_id, form["trigger_tokens"])), None)
    else:
        free = Free((*form["triggers"], *form["excludes"], *texts), None)
    if form["at_least_one"]:
        return either if form["stop_after_first"] else (either, free, Many((either, free), 0, None))
    return (free, Many(either, 0, 1)) if form["stop_after_first"] else (free, Many((either, free), 0, None))


def _tag(form: dict[str, Any]) -> Any:
    ends = form["end"] if isinstance(form["end"], list) else [form["end"]]
    texts = tuple(one for one in ends if isinstance(one, str))
    tokens = tuple(_id(one["token"]) for one in ends if isinstance(one, dict))
    return _border(form["begin"]), language(form["content"], texts, tokens), frozenset(map(_border, ends))


def _border(one: Any) -> Any:
    return one if isinstance(one, str) else Whole(frozenset({_id(one["token"])}))


def _id(token: int | str) -> int:
    return VOCABULARY.index(token) if isinstance(token, str) else token


class Text:
    """A text of tokens. allowed : what may come next; the first token if the text is whole."""

    def __init__(self, form: dict[str, Any]) -> None:
        self._at = 0  # the tokens so far
        self._ways = _opened({(language(form),)}, 0)

    def _alive(self, ways: set[Way] | None = None) -> set[Way]:
        """The ways whose budget is not spent, if there are any. ways : those of the text, or some behind them."""
        ways = self._ways if ways is None else ways
        return {way for way in ways if not (way and _is_spent(way[0], self._at))} or ways

    def _behind_whole(self, token: int) -> set[Way]:
        tops = [way for way in self._alive() if way and isinstance(way[0], Whole | Run) and token in way[0].ids]
        return _opened({way[1:] if isinstance(way[0], Whole) else way for way in tops}, self._at + 1)

    def _behind_text(self, token: int) -> set[Way]:
        ways = self._alive()
        is_over = all(way and _is_spent(way[0], self._at) for way in ways)
        for character in VOCABULARY[token]:
            ways = _opened({after for way in ways for after in _stepped(way, character)}, self._at + 1)
            if is_over:  # a part ends its character, and no more
                ways = self._alive(ways)
        return ways

    def _behind(self, token: int) -> set[Way]:
        return self._behind_whole(token) | self._behind_text(token)

    def is_twice(self, token: int) -> bool:
        """Whether a token may come both whole and as text."""
        return bool(self._behind_whole(token)) and bool(self._behind_text(token))

    def allowed(self) -> set[int]:
        found = {token for token in IDS if self._behind(token)}
        return found | {0} if () in self._alive() else found

    def advance(self, token: int) -> None:
        self._ways = self._behind(token)
        self._at += 1


def _is_spent(top: Any, at: int) -> bool:
    return isinstance(top, Free | Run) and top.most is not None and at >= top.began + top.most


def _opened(ways: set[Way], at: int) -> set[Way]:
    """The ways with a terminal on top, or none. at : tokens behind which a part begins that begins here."""
    found: set[Way] = set()
    todo = list(ways)
    seen = set(todo)
    while todo:
        way = todo.pop()
        more: list[Way] = []
        top, rest = (way[0], way[1:]) if way else (None, ())
        if isinstance(top, Free | Run):
            if isinstance(top, Run) or top.said[-1:] != HALVES[0]:
                more.append(rest)
            if top.began is None:
                more = [rest, (top._replace(began=at), *rest)] if top.most != 0 else [rest]
            else:
                found.add(way)
        elif isinstance(top, Matched):
            found.add(way)
            if _automaton(top.pattern).is_accepting[top.state]:
                more.append(rest)
        elif isinstance(top, Many):
            if top.least == 0:
                more.append(rest)
            if top.most != 0:
                left = None if top.most is None else top.most - 1
                more.append((top.what, top._replace(least=max(top.least - 1, 0), most=left), *rest))
        elif isinstance(top, frozenset):
            more.extend((one, *rest) for one in top)
        elif isinstance(top, tuple) and not isinstance(top, Whole):
            more.append((*top, *rest))
        elif top == "":
            more.append(rest)
        else:
            found.add(way)
        todo.extend(one for one in more if one not in seen)
        seen.update(more)
    return found


def _stepped(way: Way, character: str) -> list[Way]:
    if not way:
        return []
    top, rest = way[0], way[1:]
    if isinstance(top, str):
        return [(top[1:], *rest)] if top[0] == character else []
    if isinstance(top, Free):
        said = top.said + character
        if (top.said[-1:] == HALVES[0]) != (character == HALVES[1]):
            return []
        if any(said.endswith(one) for one in top.without):
            return []
        return [(top._replace(said=said[-4:]), *rest)]
    if isinstance(top, Matched):
        state = _automaton(top.pattern).run(character.encode(), top.state)
        return [(top._replace(state=state), *rest)] if state >= 0 else []
    return []


@lru_cache
def _automaton(pattern: str) -> Any:
    return compile_pattern(pattern)


# -- random tags


def random_tag(rng: random.Random, depth: int = 3) -> dict[str, Any]:
    """A random format."""
    if depth <= 0 or rng.random() < 0.35:
        return _leaf(rng)
    kind = rng.randrange(9)
    if kind < 2:
        some = [random_tag(rng, depth - 1) for _ in range(rng.randrange(2, 4))]
        return {"type": ("sequence", "or")[kind], "elements": some}
    if kind < 4:
        return _random_tag(rng, depth)
    flags = {"at_least_one": rng.random() < 0.4, "stop_after_first": rng.random() < 0.4}
    if kind == 4:
        ids = rng.sample(IDS, rng.randrange(1, 3))
        tags = [_random_tag(rng, depth - 1, {"type": "token", "token": one}) for one in ids]
        return {"type": "token_triggered_tags", "trigger_tokens": ids, "tags": tags, **_excluded(rng), **flags}
    if kind == 5:
        rules = [[one, random_tag(rng, depth - 1)] for one in rng.sample(IDS, rng.randrange(1, 3))]
        return {"type": "token_dispatch", "rules": rules, "loop": rng.random() < 0.6, **_excluded(rng)}
    if kind == 6:
        tags = [_random_tag(rng, depth - 1, begin) for begin in ["<x>", "<b"][: rng.randrange(1, 3)]]
        excludes = rng.choice([[], ["c"]])
        return {"type": "triggered_tags", "triggers": ["<"], "tags": tags, "excludes": excludes, **flags}
    if kind == 7:
        return {"type": rng.choice(["optional", "plus", "star"]), "content": _random_tag(rng, depth - 1)}
    content = rng.choice([{"type": "const_string", "value": "ab"}, {"type": "regex", "pattern": "a?b"}])
    return {"type": "repeat", "min": rng.randrange(0, 2), "max": rng.randrange(2, 4), "content": content}


def _leaf(rng: random.Random) -> dict[str, Any]:
    kind = rng.randrange(7)
    if kind == 0:
        return {"type": "const_string", "value": rng.choice(["a", "ab", "<x", "bc"])}
    if kind < 3:
        excludes = rng.choice([[], [], [], ["</x>"], ["b"], ["ab"]])
        return {"type": "any_text", "excludes": excludes, **_budget(rng)}
    if kind == 3:
        return _token(rng, rng.choice(IDS))
    if kind == 4:
        return {"type": "exclude_token", **_excluded(rng)}
    if kind == 5:
        return {"type": "any_tokens", **_excluded(rng), **_budget(rng)}
    return {"type": "regex", "pattern": rng.choice(["[ab]+", "a?b", "(bc|a)*c"])}


def _random_tag(rng: random.Random, depth: int, begin: Any = None) -> dict[str, Any]:
    if begin is None:
        begin = rng.choice(["<x>", "<", "a"]) if rng.random() < 0.6 else _token(rng, rng.choice(IDS))
    end: Any = rng.choice(["</x>", ">", "</", ["</x>", "b"]]) if rng.random() < 0.6 else _token(rng, rng.choice(IDS))
    return {"type": "tag", "begin": begin, "content": random_tag(rng, depth - 1), "end": end}


def _token(rng: random.Random, one: int) -> dict[str, Any]:
    return {"type": "token", "token": one if rng.random() < 0.7 or not VOCABULARY[one].isascii() else VOCABULARY[one]}


def _excluded(rng: random.Random) -> dict[str, Any]:
    ids = rng.sample(IDS, rng.choice([0, 0, 1, 2, 4]))
    return {
        "exclude_tokens": [
            one if rng.random() < 0.7 or not VOCABULARY[one].isascii() else VOCABULARY[one] for one in ids
        ]
    }


def _budget(rng: random.Random) -> dict[str, int]:
    return {"max_tokens": rng.choice([0, 1, 1, 2, 3, 5])} if rng.random() < 0.5 else {}
