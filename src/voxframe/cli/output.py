"""Output of the commands: text that is safe to print, aligned columns, and tables."""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `voxframe models` needs no pandas
    import pandas as pd

_TEXT_ROWS = 20
_CELL = 48

# Unicode direction marks, which can make a line look like different text.
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def plain(text: object) -> str:
    r"""Return text on one line that is safe to print. White space becomes spaces; control characters are removed.

    Example:
        >>> plain("a\x1b[31m\tb\n")
        'a[31m b'
    """
    line = " ".join(str(text).split())
    return "".join(c for c in line if unicodedata.category(c) not in ("Cc", "Cs") and c not in _TURNING)


def shorten(text: str, width: int) -> str:
    """Return the text, cut to `width` characters with an ellipsis if it is longer."""
    return text if len(text) <= width else text[: max(0, width - 1)].rstrip() + "…"


def columns(rows: Sequence[Sequence[object]], *, indent: str = "  ") -> str:
    """Return rows as lines with aligned columns: numbers to the right, text to the left.

    Args:
        rows: Rows of cells; the first row holds the headings. Format numbers before the call.
        indent: Start of each line.
    """
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(len(row[n]) for row in cells) for n in range(len(cells[0]))]
    right = [_is_number(rows[-1][n]) for n in range(len(cells[0]))]
    lines = []
    for row in cells:
        parts = (
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        )
        lines.append(indent + "  ".join(parts).rstrip())
    return "\n".join(lines)


def write(df: pd.DataFrame, form: str, rows: int | None) -> None:
    """Print a table as text, or as CSV or JSON lines in the format of `voxframe export`.

    Args:
        df: The table.
        form: "text", "csv" or "json" (one object per line).
        rows: Maximum number of rows. None: all, or 20 as text. Text ends with the number of further rows.
    """
    if form == "text" and df.empty:
        print("no rows")
        return
    if form == "text":
        shown = df.head(_TEXT_ROWS if rows is None else rows)
        if len(shown):
            cells = shown.map(lambda cell: shorten(plain(cell), _CELL) if isinstance(cell, str) else cell)
            print(cells.astype(object).where(cells.notna(), "").to_string(index=False))
        if len(shown) < len(df):
            print(f"... {len(df) - len(shown)} more rows; --rows N prints N rows, --csv or --json all")
        return
    whole = df if rows is None else df.head(rows)
    if sys.stdout.isatty():  # data must not control a terminal; files and pipes get it unchanged
        whole = whole.map(lambda cell: plain(cell) if isinstance(cell, str) else cell)
    from voxframe.export.table_writer import arrow, text_of

    losses: Counter[str] = Counter()
    sys.stdout.write(text_of(arrow(whole, losses), "csv" if form == "csv" else "jsonl", losses).decode())
    for reason, count in losses.items():
        sys.stderr.write(f"voxframe: {count} {reason}\n")


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) or (isinstance(cell, str) and cell[:1].isdigit())
