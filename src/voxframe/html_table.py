"""A small table for notebooks: what a handle or a corpus shows of itself."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

#: Attribute of an element in which MathJax, which a notebook page runs, takes "$5 and $6" for money and no formula:
#: its second version knows the one name, its third the other.
PLAIN = 'class="tex2jax_ignore mathjax_ignore"'


def html_table(rows: Mapping[str, str], longest: int = 300) -> str:
    """Names and values as HTML in the page's own colours, so that it can be read in a light and a dark theme.

    Args:
        rows: Values by name; an empty one is left out. Neither is taken for markup.
        longest: Most characters of a value.

    Example:
        >>> html_table({"text": "<b>", "error": ""}).removeprefix(f"<table {PLAIN}>")
        '<tr><th style="text-align:left">text</th><td style="text-align:left">&lt;b&gt;</td></tr></table>'
    """
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value if len(value) <= longest else value[:longest] + "…")}</td></tr>'
        for name, value in rows.items()
        if value
    )
    return f"<table {PLAIN}>{cells}</table>"
