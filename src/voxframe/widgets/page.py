"""Self-contained pages: a widget with its data, scripts and style in one HTML file that opens from the disk."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from voxframe.widgets.base import ScriptedWidget, escaped, static

_STYLE = """body { margin: 24px auto; max-width: 1100px; padding: 0 12px; background: light-dark(#ffffff, #16181c); }
:root { color-scheme: light dark; }
"""


def write_page(widget: ScriptedWidget, path: str | os.PathLike[str], **changes: Any) -> None:
    """Write a widget as a page.

    No script but the widget's own can run in it: the page's content security policy names it by its hash.

    Args:
        widget: The widget; its traits as they are now.
        path: Where to write.
        **changes: Traits that are different in the page.
    """
    state = {
        name: getattr(widget, name)
        for name in widget.keys
        if name not in {"layout", "tabbable", "tooltip", "comm"}
        and not name.startswith(("_dom", "_esm", "_css"))
        and not name.startswith(("_model", "_view", "_anywidget"))
    } | changes
    # Data may say anything; "<" in a JSON text can be written so that it ends no element.
    data = json.dumps(state, default=_plain).replace("<", "\\u003c")
    names = [f"{name}.js" for name in ("base", *widget.scripts, "page")]
    script = static(*names).replace("export default ", "const makeWidget = ", 1) + "\nstartPage(makeWidget());\n"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; media-src * data: blob: file:"
    )
    Path(path).write_text(
        f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>{escaped(widget.title)}</title>
<style>
{_STYLE}{widget._css}</style>
</head>
<body>
<main id="widget"></main>
<script type="application/json" id="state">{data}</script>
<script type="module">{script}</script>
</body>
</html>
""",
        encoding="utf-8",
    )


def _plain(value: object) -> object:
    """Bytes as JSON."""
    if isinstance(value, bytes | memoryview):
        return {"$bytes": base64.b64encode(value).decode()}
    raise TypeError(f"{type(value).__name__} cannot be in a page")
