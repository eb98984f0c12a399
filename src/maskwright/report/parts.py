"""What several reports share: words, and tables for a terminal."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


def counted(n: int, one: str, many: str = "") -> str:
    """A number with its noun in the singular or plural.

    one : the singular. many : the plural; by default the singular with an s.

    >>> counted(1, "class", "classes"), counted(2, "class", "classes"), counted(1200, "rule")
    ('1 class', '2 classes', '1,200 rules')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


class Words(string.Formatter):
    """Fills templates.

    A format that begins with a letter is the noun that a number counts, in the singular, and behind
    a bar in the plural if that has no s: ``{n:class|classes}``.
    """

    def format_field(self, value: Any, format_spec: str) -> str:
        """A value in words, as of a field of a template."""
        if format_spec[:1].isalpha():
            return counted(value, *format_spec.split("|"))
        return format(value, format_spec)


def filled(facts: Mapping[str, Any], templates: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Rows of a table: names, and templates filled with facts by `Words`.

    A template with a field that the facts do not have makes no row.

    >>> filled({"a": {"n": 1200}}, [("n", "{a[n]:token} of them"), ("others", "{b}")])
    {'n': '1,200 tokens of them'}
    """
    rows = {}
    for name, template in templates:
        try:
            rows[name] = Words().vformat(template, (), facts)
        except KeyError:
            continue
    return rows


def table(*heads: str, rows: Iterable[Iterable[RenderableType | int]] = (), title: str | None = None) -> Table:
    """A table without lines.

    heads : the columns' titles; ">" at the beginning aligns right.
    rows : cells; a str is taken as it is, without markup; an int is bold.
    """
    from rich.table import Table
    from rich.text import Text

    named = any(head.strip(">") for head in heads)
    made = Table(
        box=None,
        show_header=named,
        header_style="dim",
        padding=(0, 2, 0, 0),
        pad_edge=False,
        title=title,
        title_justify="left",
        title_style="bold",
    )
    for head in heads:
        right = head.startswith(">")
        made.add_column(head.lstrip(">"), justify="right" if right else "left", no_wrap=right)
    for row in rows:
        shown = (Text(f"{cell:,}", style="bold") if isinstance(cell, int) else cell for cell in row)
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in shown))
    return made
