"""`voxframe docs`: one reference page, made from docstrings, schema, options and parsers; it needs no network.

A general tool such as pdoc makes a page per module. Users know the names in `voxframe`, whatever their module is, and
need commands, tables and options beside them.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import re
import webbrowser
from collections.abc import Callable, Iterator
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import voxframe
from voxframe._files import write_atomic
from voxframe.accessor import Vox
from voxframe.cli import plain
from voxframe.corpus import Corpus
from voxframe.dictionary import describe
from voxframe.errors import MissingExtraError, OptionError, VoxframeError

_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1rem }
pre { overflow-x: auto; padding: .5rem; background: #8881; border-radius: 4px; font-size: 13px }
code { background: #8882; border-radius: 3px; padding: 0 .2em }
section { border-top: 1px solid #8885; margin-top: 1rem }
section section { margin-left: 1rem }
h3, h4 { font-family: monospace }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto }
td, th { border: 1px solid #8885; padding: .2em .5em; vertical-align: top }
nav a { margin-right: .7em; white-space: nowrap }
dt { font-family: monospace } dd { margin: 0 0 .3em 1.5em }
input { font: inherit; width: 100%; box-sizing: border-box; padding: .4em }
[hidden] { display: none }
"""
#: A subject at a time, or the entries of all subjects that have all words of the search; without it, the page has all.
_SCRIPT = """
const search = document.querySelector("input"), none = document.querySelector("[role=status]");
const intro = document.querySelector("header"), entries = [...document.querySelectorAll("article > section")];
search.hidden = false;
function show() {
  const words = search.value.toLowerCase().split(/\\s+/).filter(Boolean);
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const subject = target && target.closest("article");
  for (const entry of entries) {
    const text = entry.textContent.toLowerCase();
    entry.hidden = words.length ? !words.every((word) => text.includes(word)) : entry.parentNode !== subject;
  }
  for (const article of document.querySelectorAll("article"))
    article.hidden = !article.querySelector(":scope > section:not([hidden])");
  intro.hidden = words.length || subject;
  none.textContent = words.length && entries.every((entry) => entry.hidden) ? "Nothing has all these words." : "";
  if (target && !words.length) target.scrollIntoView();
}
search.addEventListener("input", show);
addEventListener("hashchange", () => { search.value = ""; show(); });
show();
"""
_SECTIONS = re.compile(r"(Args|Attributes|Returns|Yields|Raises|Warns|Examples?):")
_ITEM = re.compile(r"(\*{0,2}[\w., ]+?(?:\([\w., ]+\))?): (.*)", re.DOTALL)


def docs(*, out: Path | None = None) -> None:
    """Write the reference of this version as one HTML page, and open it in a browser.

    It has commands, the Python interface, tables, options of jobs and errors, and works without a network.

    Args:
        out (FILE): Write the page to this file, and open no browser.
    """
    from platformdirs import user_cache_path

    path = out or user_cache_path("voxframe", appauthor=False) / f"reference-{version('voxframe')}.html"
    if path.is_dir():
        raise OptionError(
            f"--out must be a file, but {str(path)!r} is a directory; name a file, such as reference.html"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, page().encode())
    except OSError as error:
        raise OptionError(f"cannot write {str(path)!r} ({error.strerror}); choose another file with --out") from error
    print(plain(path))
    if out is None and not webbrowser.open(path.absolute().as_uri()):
        print("there is no browser; open this file in one")


def page() -> str:
    """Return the reference as HTML. All text is escaped."""
    parts: list[tuple[str, dict[str, str]]] = [
        ("Commands", dict(_commands())),
        ("Python", dict(_python())),
        ("Tables", {name: _description(name) for name in [row[0] for row in describe().rows]}),
        ("Options of a job", {"options": _description("options")}),
        ("Errors", {"errors": docstring(voxframe.errors)} | dict(_errors())),
    ]
    body, contents = [], []
    for title, entries in parts:
        links = "".join(f'<a href="#{_id(title, name)}">{escape(name)}</a> ' for name in entries)
        contents.append(
            f'<details><summary><a href="#{_id(title, "all")}">{escape(title)}</a></summary>{links}</details>'
        )
        sections = (
            f'<section id="{_id(title, name)}"><h3>{escape(name)}</h3>{text}</section>'
            for name, text in entries.items()
        )
        body.append(f'<article><h2 id="{_id(title, "all")}">{escape(title)}</h2>{"".join(sections)}</article>')
    heading = f"voxframe {version('voxframe')}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(heading)}</title>'
        f'<style>{_STYLE}</style></head><body><h1 id="start"><a href="#start">{escape(heading)}</a></h1>'
        '<input type="search" aria-label="Search" placeholder="Search" hidden><p role="status"></p>'
        f"<nav>{''.join(contents)}</nav><header>{docstring(voxframe)}</header>{''.join(body)}"
        f"<script>{_SCRIPT}</script></body></html>\n"
    )


def _id(title: str, name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", f"{title}-{name}".lower())


def _commands() -> Iterator[tuple[str, str]]:
    from voxframe.cli import COMMANDS, build_parser
    from voxframe_server.__main__ import make_parser

    def add(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
        form: Callable[..., argparse.HelpFormatter] = parser.formatter_class
        parser.formatter_class = lambda prog: form(prog, width=100)
        yield parser.prog, f"<pre>{escape(parser.format_help())}</pre>"
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, command in action.choices.items():
                    yield from add(make_parser() if name == "serve" else command)

    yield from add(build_parser(COMMANDS))


def _python() -> Iterator[tuple[str, str]]:
    """Yield the public names, and the names that public modules list."""
    for name in dir(voxframe):
        with contextlib.suppress(MissingExtraError):  # a module of an extra that is not installed
            yield from _documented(name, getattr(voxframe, name))
        if name == "Corpus":
            for part, value in vars(Corpus("corpus")).items():
                if not part.startswith("_") and type(value).__module__.startswith("voxframe."):
                    yield f"corpus.{part}", _class(type(value))
    yield "df.vox", _class(Vox)


def _documented(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if inspect.ismodule(value):
        yield name, docstring(value)
        for inner in getattr(value, "__all__", ()):
            ours = getattr(getattr(value, inner), "__module__", None) or ""  # no constants and aliases
            if inner not in dir(voxframe) and ours.startswith("voxframe"):
                yield from _documented(f"{name}.{inner}", getattr(value, inner))
    elif inspect.isclass(value):
        yield name, _class(value)
    else:
        yield name, _signature(name, value) + docstring(value)


def _class(value: type) -> str:
    members = []
    for name in dir(value):
        # Members of libraries, such as those of a widget, have their own documentation.
        owner = next((base for base in value.__mro__ if name in vars(base)), object)
        if name.startswith("_") or not owner.__module__.startswith("voxframe"):
            continue
        member = getattr(value, name)
        if inspect.isroutine(member):
            members.append((name, _signature(name, member) + docstring(member)))
        elif isinstance(member, property):
            members.append((name, docstring(member)))
    sections = (f"<section><h4>{escape(name)}</h4>{text}</section>" for name, text in members)
    return _signature(value.__name__, value) + docstring(value) + "".join(sections)


def _signature(name: str, value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # of a library written in C
        return ""
    text = f"{name}{_unquoted(signature)}"
    if len(text) > 100:
        lines = list[str]()
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY and not any(line.startswith("    *") for line in lines):
                lines.append("    *,\n")
            lines.append(f"    {_unquoted(parameter)},\n")
        text = f"{name}(\n{''.join(lines)}){text.rpartition(')')[2]}"
    return f"<pre>{escape(text)}</pre>"


def _unquoted(part: inspect.Signature | inspect.Parameter) -> str:
    """Return a part of a signature without quotes around annotations."""
    return re.sub(r"""(: |-> )(['"])(.*?)\2""", r"\1\3", str(part))


def _description(name: str) -> str:
    return describe(name)._repr_html_()


def _errors() -> Iterator[tuple[str, str]]:
    for name, value in vars(voxframe.errors).items():
        if inspect.isclass(value) and issubclass(value, VoxframeError | Warning):
            yield name, docstring(value)


def docstring(value: object) -> str:
    """Return the Google-style docstring of an object as HTML. All text is escaped.

    Example:
        >>> class A:
        ...     '''Add `a` < b.'''
        >>> docstring(A)
        '<p>Add <code>a</code> &lt; b.</p>'
    """
    blocks = re.split(r"\n\s*\n", (inspect.getdoc(value) or "").strip())
    parts: list[tuple[str, str]] = []
    for block in filter(None, blocks):
        kind = "pre" if block.startswith((" ", ">>>", "|", "- ")) else "p"
        if kind == "pre" and parts and parts[-1][0] == "pre":  # an indented block with blank lines
            block = f"{parts.pop()[1]}\n\n{block}"
        parts.append((kind, block))
    return "".join(_block(kind, text) for kind, text in parts)


def _block(kind: str, text: str) -> str:
    head, _, body = text.partition("\n")
    if kind == "p" and _SECTIONS.fullmatch(head):
        inner = inspect.cleandoc(body)
        if head.startswith("Example"):
            return f"<h5>{escape(head)}</h5><pre>{escape(inner)}</pre>"
        items = [inner] if head in ("Returns:", "Yields:") else re.split(r"\n(?! )", inner)
        return f"<h5>{escape(head)}</h5><dl>{''.join(map(_item, items))}</dl>"
    return f"<pre>{escape(text)}</pre>" if kind == "pre" else f"<p>{_inline(text)}</p>"


def _item(text: str) -> str:
    match = _ITEM.fullmatch(text)
    if match is None:
        return f"<dd>{_inline(text)}</dd>"
    return f"<dt>{escape(match[1])}</dt><dd>{_inline(match[2])}</dd>"


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
