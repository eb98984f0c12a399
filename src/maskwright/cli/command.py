"""The application, and how a function becomes one of its commands: its parameters, its help, its errors."""

from __future__ import annotations

import ast
import glob
import inspect
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import partial, wraps
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperArgument, TyperGroup

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.files import keeping_inputs
from maskwright.cli.common import say
from maskwright.cli.constraints import GrammarOptions
from maskwright.version import version

_PANELS = {
    "Constraint": (*GrammarOptions._fields, "rules"),
    "Model and tokenizer": ("model", "device", "tokenizer", "tokenizers"),
    "Output": ("output", "html", "drawing", "draw", "certificates", "json_file"),
}
"""Heading in a command's help -> the parameters whose options stand under it. Others come before them."""

_SHARED = """
grammar GRAMMAR : A built-in grammar (python, json, c, ...), a .lark file, or lark:NAME for a grammar of Lark's own wheel.
    A command with the option --from also takes a JSON schema (a .json file), a .gbnf or .ebnf file, or the text itself.
store GRAMMAR : A grammar (python, json, ..., a .lark file), a JSON schema (.json), or what --from says, with --tokenizer;
    or the file of a store that was built of one.
tokenizer -t T : A built-in name (mistral-7b-v0.1, mistral-7b-v0.3, tekken, python-tiny), or a path to a tokenizer.json, *.model,
    tekken*.json or *.tiktoken file or a folder with one.
suffixes --suffix .EXT : Suffix of the files in folders; may be repeated. By default what the grammar or schema suggests, else all
    files.
field NAME : The member of a JSON record that is its text.
limit N : At most this many texts.
rules : Lexing nfa: the form of the rules by which always legal entries are found; normalised finds more.
json_file --json FILE : Write the facts as JSON; - for standard output.
refresh : Build anew even if the cache holds the store.
"""
"""The parameters that several commands have, as `command` reads them."""

_DECLARATION = re.compile(r"^(\w+)((?: \S+)*) : (.*(?:\n    .*)*)", re.MULTILINE)

Rules = Literal["normalised", "lark"]
"""As `cached_store` and `build_store` have them."""
Positive = Annotated[int, {"min": 1}]
"""A number of things, of which one is the least."""


class _Commands(TyperGroup):
    """The commands. What they do is shown whole, arguments by their names alone, and options in panels."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the first paragraph of each command's help."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, " ".join((command.help or "").split("\n\n")[0].split())) for name, command in found if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command, or None. Newer typer would write GRAMMAR as ``{GRAMMAR}`` and ``GRAMMAR <str>``."""
        found = super().get_command(ctx, cmd_name)
        for each in () if found is None else found.params:
            if isinstance(each, TyperArgument):
                name = each.metavar if each.required else f"[{each.metavar}]"
                vars(each).update(get_usage_pieces=lambda _, name=name: [name], display_type_rich=lambda **_: None)
        if found is not None:
            vars(found).update(format_options=partial(_write_options, found))
        return found


def _write_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Write a command's arguments, then its options under their headings."""
    panels: dict[str, list[Any]] = {"Arguments": [], "Options": [], **{name: [] for name in _PANELS}}
    for each in command.get_params(ctx):
        if (row := each.get_help_record(ctx)) is not None:
            of_option = next((name for name, names in _PANELS.items() if each.name in names), "Options")
            panels["Arguments" if isinstance(each, TyperArgument) else of_option].append(row)
    for name, rows in panels.items():
        if rows:
            with formatter.section(name):
                formatter.write_dl(rows)


app = typer.Typer(
    name="maskwright",
    cls=_Commands,
    help="Masks for language models that must write code or JSON, from grammars, schemas and patterns.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(is_asked: bool) -> None:
    if is_asked:
        sys.stdout.write(f"maskwright {version()}\n")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """What may come before a command."""


def _names_of_grammars(incomplete: str) -> list[str]:
    """Shell completion for GRAMMAR: names of the library's grammars, folders, and files by suffix."""
    from maskwright.analysis.loading.names import known_grammars

    suffixes = (".lark", ".json", ".gbnf", ".ebnf")
    return [name for name in known_grammars() if name.startswith(incomplete)] + _files(incomplete, suffixes)


def _names_of_tokenizers(incomplete: str) -> list[str]:
    """Shell completion for --tokenizer: built-in names, folders and files."""
    from maskwright.maskstore.vocabulary.vocabulary import BUILT_IN

    return [name for name in BUILT_IN if name.startswith(incomplete)] + _files(incomplete)


def _files(incomplete: str, suffix: str | tuple[str, ...] = "") -> list[str]:
    """The folders, and the files with one of some suffixes, whose paths begin with `incomplete`."""
    found = sorted(glob.glob(f"{glob.escape(incomplete)}*"))
    return [
        path + "/" if os.path.isdir(path) else path for path in found if os.path.isdir(path) or path.endswith(suffix)
    ]


def _tokenizer(value: str | None) -> str | None:
    if value is not None and value.startswith("-"):
        raise typer.BadParameter(f"its value is missing: the next word is {value}; name a tokenizer behind it")
    return value


_MORE: Mapping[str, Mapping[str, Any]] = {
    "grammar": {"autocompletion": _names_of_grammars},
    "store": {"autocompletion": _names_of_grammars},
    "tokenizer": {"callback": _tokenizer, "autocompletion": _names_of_tokenizers},
    "limit": {"min": 1},
}
"""What typer is told besides of a parameter."""


def command(
    name: str | None = None, *, epilog: str | None = None, takes: Iterable[str] = GrammarOptions._fields
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command of `app`. What users can do wrong ends it with a message and exit code 2.

    takes : the fields of `GrammarOptions` that a parameter of that type stands for.

    Positional parameters become arguments, keyword-only ones options. The docstring begins with the
    command's help. Then it declares each parameter that `_SHARED` does not:

        name [--option] [-o] [METAVAR] : help, which goes on in indented lines

    An option is called as its parameter, unless another name is given. An annotation may have a
    dict with more that typer is told.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        doc = _doc(function)
        said = _declared(_SHARED) | _declared(doc)
        of_options, hints = _declared(_doc(GrammarOptions)), get_type_hints(GrammarOptions)
        given, found = "", list[inspect.Parameter]()
        for each in inspect.signature(function, eval_str=True).parameters.values():
            if each.annotation is not GrammarOptions:
                found.append(_parameter(each, said))
                continue
            given, defaults = each.name, GrammarOptions._field_defaults
            fields = [each.replace(name=field, default=defaults[field], annotation=hints[field]) for field in takes]
            found += [_parameter(field, of_options) for field in fields]

        @wraps(function)
        def run(**arguments: Any) -> None:
            if given:
                arguments[given] = GrammarOptions(**{field: arguments.pop(field) for field in takes})
            _run(function, arguments)

        annotations = {each.name: each.annotation for each in found}
        vars(run).update(__signature__=inspect.Signature(found), __annotations__=annotations)
        app.command(name, help=_DECLARATION.split(doc, maxsplit=1)[0], epilog=epilog)(run)
        return run

    return decorate


def _doc(thing: Any) -> str:
    """A docstring, also where Python leaves them out (-OO)."""
    if sys.flags.optimize > 1:
        (found,) = ast.parse(textwrap.dedent(inspect.getsource(thing))).body
        return ast.get_docstring(found) or ""  # type: ignore[arg-type]
    return inspect.cleandoc(thing.__doc__ or "")


def _declared(doc: str) -> dict[str, tuple[list[str], str]]:
    """The parameters that a docstring declares: the other words before the colon, and the help."""
    found = _DECLARATION.finditer(inspect.cleandoc(doc))
    return {each[1]: (each[2].split(), " ".join(each[3].split())) for each in found}


NeededTokenizer = Annotated[
    str | None,
    {"help": f"{_declared(_SHARED)['tokenizer'][1]} Required for a grammar or a schema; a store has its own."},
]
"""The tokenizer of a command that needs one unless it is given a store."""


def _parameter(each: inspect.Parameter, said: Mapping[str, tuple[list[str], str]]) -> inspect.Parameter:
    """A parameter as typer wants it. said : what is declared."""
    annotation, *notes = get_args(each.annotation) if get_origin(each.annotation) is Annotated else [each.annotation]
    words, text = said[each.name]
    metavar = next((word for word in words if not word.startswith("-")), None)
    more: dict[str, Any] = {"metavar": metavar, "help": text, **_MORE.get(each.name, {}), **dict(*notes)}
    if each.kind is not each.KEYWORD_ONLY:
        info: Any = typer.Argument(**more)
    else:
        flags = [word for word in words if word.startswith("-")]
        if not any(flag.startswith("--") for flag in flags):
            own = each.name.replace("_", "-")
            flags.insert(0, f"--{own}/--no-{own}" if each.default is True else f"--{own}")
        info = typer.Option(*flags, **more)
    return each.replace(kind=each.KEYWORD_ONLY, annotation=Annotated[annotation, info])


def _run(function: Callable[..., None], arguments: Mapping[str, Any]) -> None:
    """Call a command, and turn the errors that users can cause into a message and exit code 2, Ctrl-C into 130.

    The message goes to standard error. `check_writable` declares a command's outputs, and a
    declared output cannot be read as an input.
    """
    try:
        with keeping_inputs():
            function(**arguments)
    except MaskwrightError as error:
        said = str(error).replace("open (close=False)", "open (--no-close)").replace("by lenient=True", "by --lenient")
        say(f"error: {said}", is_error=True, style="red")
        raise typer.Exit(2) from None
    except MemoryError as error:
        said = f": {error}" if str(error) else ""
        say(f"error: there is not enough memory{said}; nothing was written", is_error=True, style="red")
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        say("interrupted; nothing was written", is_error=True)
        raise typer.Exit(130) from None
