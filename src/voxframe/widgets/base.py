"""What all widgets share.

Every widget has

- `.result`, a DataFrame of what it shows, and `.code`, the lines that show the same again;
- a pane below that says in words what went wrong (`.error`), never nothing;
- a static picture in `text/html` beside the live view, for notebooks that are only read: exports and pages where no
  kernel runs show it, as it was when the cell ran. JupyterLab itself prefers the live view and, with the kernel gone,
  says "model not found", unless "Save Widget State Automatically" was on in its settings;
- state in traits, so that it is the same in every view and after the cell's output is drawn again.

A form made of ipywidgets derives from `Described` and an ipywidgets box. A widget with JavaScript of its own derives
from `ScriptedWidget` and names its scripts in `static/`, which are joined to one ES module: no build, no network.
"""

from __future__ import annotations

import html
from importlib import resources
from typing import Any, ClassVar

import anywidget
import pandas as pd
import traitlets

from voxframe.html_table import PLAIN
from voxframe.widgets.theme import voice_css


def static(*names: str) -> str:
    """Texts of files in `static/`, joined."""
    folder = resources.files("voxframe.widgets") / "static"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


class Described:
    """Result, code and static picture: what a person, a program and a saved notebook take from a widget."""

    @property
    def result(self) -> pd.DataFrame:
        """What the widget shows, as a DataFrame."""
        raise NotImplementedError

    @property
    def code(self) -> str:
        """Lines of Python that show the same again."""
        raise NotImplementedError

    def static_html(self) -> str:
        """The widget as HTML without scripts, everything in it escaped, and nothing of it taken for a formula."""
        return f"<div {PLAIN}>{self._still_html()}</div>"

    def _still_html(self) -> str:
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]  # the other base is a widget
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**data, "text/plain": repr(self), "text/html": self.static_html()}, metadata


class ScriptedWidget(Described, anywidget.AnyWidget):
    """A widget with JavaScript of its own.

    Attributes:
        error: What went wrong, shown below the widget; empty for nothing.
        title: What the widget calls itself.
    """

    #: Files in `static/`, without and with `.js` and `.css` respectively; `base` is always there.
    scripts: ClassVar[tuple[str, ...]] = ()
    styles: ClassVar[tuple[str, ...]] = ()

    error = traitlets.Unicode("").tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "scripts" in cls.__dict__:  # not the class that traitlets derives for every instance
            cls._esm = static(*(f"{name}.js" for name in ("base", *cls.scripts)))
            cls._css = voice_css() + static(*(f"{name}.css" for name in ("base", *cls.styles)))
        super().__init_subclass__(**kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title!r})"


def escaped(text: object) -> str:
    """A text for HTML, in an element or in a quoted attribute; null becomes "(unknown)".

    Example:
        >>> escaped("<b>"), escaped(None)
        ('&lt;b&gt;', '(unknown)')
    """
    return html.escape(text) if isinstance(text, str) else "(unknown)"
