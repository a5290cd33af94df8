"""Arguments of a command, made from the signature and the docstring of the function that runs it.

A positional parameter is an argument, and a keyword-only one an option. A list may have several values, a bool is a
flag, and a Literal names the choices; `int | bool` is an option that may stand without a value. A dataclass stands for
the options that its fields describe. `name (PLACEHOLDER): text` in `Args:` is the help. `Annotated` adds a function
that converts the text, a tuple of choices, or a help text. Other sections of the docstring end the help.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NoReturn, TypeAlias, Union, get_args, get_origin, get_type_hints

from voxframe.validators import listed, nearest

#: Characters in a line of a description if argparse does not wrap it.
_HELP_WIDTH = 100
_ITEM = re.compile(r"(\w+)(?: \(([^)]+)\))?: (.*)", re.DOTALL)
#: Sections that are about Python.
_PYTHON = re.compile(r"(Args|Returns|Raises|Attributes):")


class Parser(argparse.ArgumentParser):
    """A parser with errors of one line, which name the nearest choice and the command that shows the help."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = [] if action.choices is None else list(action.choices)
        if choices and value not in choices:
            near = nearest(value, choices) or f"; choose from {listed(map(str, choices))}"
            raise argparse.ArgumentError(action, f"there is no {value!r}{near}")

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; `{self.prog} --help` lists the arguments\n")


#: A function that runs a command, or the help of a command and its actions by name.
Command: TypeAlias = Callable[..., int | None] | tuple[str, dict[str, Callable[..., int | None]]]


def define(parser: argparse.ArgumentParser, command: Command, without: Collection[str] = ()) -> None:
    """Give a parser the arguments and the help of a command, and its action as the default `run`.

    Args:
        without: Parameters that are no arguments.
    """
    description, epilog = _help_texts(command[0] if isinstance(command, tuple) else inspect.getdoc(command) or "")
    if "\n" in epilog:  # argparse would wrap its lines
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        description = textwrap.fill(description, _HELP_WIDTH)
    parser.description, parser.epilog = description, epilog
    if isinstance(command, tuple):
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        for name, function in command[1].items():
            line = (function.__doc__ or "").partition("\n")[0].removesuffix(".")
            define(actions.add_parser(name, help=line[:1].lower() + line[1:]), function)
    else:
        _add_all(parser, command, without)
        parser.set_defaults(run=lambda given: command(**_values(command, given)) or 0)


def _help_texts(text: str) -> tuple[str, str]:
    """Return the description and the end of the help."""
    blocks = re.split(r"\n\n+", text.strip())
    heads = [n for n, block in enumerate(blocks) if re.match(r"[A-Z][a-z ]+:(\n| \d)", block)]
    first = heads[0] if heads else len(blocks)
    texts = [
        re.sub(r"(?m)^[EF](?=(?:xamples|xit status|ormats|nvironment):)", lambda m: m[0].lower(), b)
        for b in blocks[first:]
        if not _PYTHON.match(b)
    ]
    return " ".join(" ".join(blocks[:first]).split()), "\n\n".join(texts)


def _parameters(target: Callable[..., object]) -> Iterator[tuple[inspect.Parameter, Any]]:
    hints = get_type_hints(target.__init__ if inspect.isclass(target) else target, include_extras=True)
    for parameter in inspect.signature(target).parameters.values():
        yield parameter, hints[parameter.name]


def _add_all(parser: argparse.ArgumentParser, target: Callable[..., object], without: Collection[str]) -> None:
    block = next((b for b in re.split(r"\n\n+", inspect.getdoc(target) or "") if b.startswith("Args:\n")), "")
    items = re.split(r"\n(?! )", textwrap.dedent(block.removeprefix("Args:\n")))
    helps = {match[1]: match for match in map(_ITEM.fullmatch, items) if match}
    for parameter, hint in _parameters(target):
        if dataclasses.is_dataclass(hint):
            _add_all(parser, hint, without)  # type: ignore[arg-type]  # a class is a function, too
        elif parameter.name not in without:
            is_option = parameter.kind is parameter.KEYWORD_ONLY or inspect.isclass(target)
            _add(parser, parameter, hint, helps.get(parameter.name), is_option=is_option)


def _unwrapped(hint: Any) -> tuple[list[Any], list[Any]]:
    """Return the types of a hint without None, and what Annotated adds to them."""
    parts = get_args(hint)
    if get_origin(hint) is Annotated:
        types, extras = _unwrapped(parts[0])
        return types, [*parts[1:], *extras]
    if get_origin(hint) in (Union, UnionType):
        pairs = [_unwrapped(part) for part in parts if part is not NoneType]
        return [t for types, _ in pairs for t in types], [extra for _, extras in pairs for extra in extras]
    return [hint], []


def _add(
    parser: argparse.ArgumentParser,
    parameter: inspect.Parameter,
    hint: Any,
    item: re.Match[str] | None,
    *,
    is_option: bool,
) -> None:
    """Add an argument or option. An option that is not given is not in the namespace: Python's default holds."""
    types, extras = _unwrapped(hint)
    if is_list := get_origin(types[0]) in (list, Sequence):
        types, inner = _unwrapped(get_args(types[0])[0])
        extras += inner
    text = next((extra for extra in extras if isinstance(extra, str)), None)
    if item is None and text is not None:
        item = _ITEM.fullmatch(text)
    choices = next((extra for extra in extras if isinstance(extra, tuple)), None)
    choices = get_args(types[0]) if get_origin(types[0]) is Literal else choices
    convert = next(filter(callable, extras), Path if Path in types else whole if int in types else None)
    settings: dict[str, Any] = {
        "default": argparse.SUPPRESS,
        "help": item and _help(item[3], parameter.default, repeats=is_option and is_list),
    }
    if text == argparse.SUPPRESS:
        settings["help"] = text
    if types == [bool]:
        settings["action"] = "store_true"
    else:
        metavar = (item and item[2]) or ("N" if int in types else None)
        settings |= {"type": convert, "choices": choices, "metavar": metavar}
        settings |= {"action": "append"} if is_option and is_list else {}
        settings |= {"nargs": "?", "const": True} if bool in types else {}
    optional = parameter.default is not parameter.empty
    if is_option:
        flag = "--" + parameter.name.rstrip("_").replace("_", "-")
        shorts = ["-o"] if flag == "--option" else []
        parser.add_argument(*shorts, flag, dest=parameter.name, **settings)
    else:
        nargs = ("*" if optional else "+") if is_list else "?" if optional else None
        settings["default"] = parameter.default if optional else None
        parser.add_argument(parameter.name, nargs=nargs, **settings)


def _help(text: str, default: object, *, repeats: bool) -> str:
    """Return the help of an argument: its text in a docstring, in lower case, with its default."""
    text = " ".join(text.split()).removesuffix(".").replace("%", "%%")
    text = re.sub(r"\.? ?None \(default\): (.*?)(?=\. |$)", r" (default: \1)", text)
    text = text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text
    text += "; may be repeated" if repeats else ""
    if isinstance(default, int | str | Path) and not isinstance(default, bool) and "default:" not in text:
        text += f" (default: {default})"
    return text


def _values(target: Callable[..., object], given: argparse.Namespace) -> dict[str, Any]:
    """Return the values of the parameters that were given on the command line."""
    values = {}
    for parameter, hint in _parameters(target):
        if dataclasses.is_dataclass(hint):
            values[parameter.name] = hint(**_values(hint, given))  # type: ignore[operator,arg-type]
        elif parameter.name in given:
            values[parameter.name] = getattr(given, parameter.name)
    return values


def whole(text: str) -> int:
    """Convert an argument to a whole number. The function that uses it checks its bounds."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None


def count(text: str) -> int:
    """Convert an argument to a whole number of at least 0."""
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text!r}")
    return int(text)


def amount(text: str) -> float:
    """Convert an argument to a number of at least 0."""
    value = _number(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of at least 0, got {text!r}")
    return value


def seconds(text: str) -> float:
    """Convert an argument to a number above 0."""
    value = _number(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, got {text!r}")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def folder(text: str) -> Path:
    """Convert an argument to the path of a directory; an empty one, such as an unset variable, is refused."""
    if not text:
        raise argparse.ArgumentTypeError("must be the path of a directory, got ''")
    return Path(text)
