"""What is written to a terminal: text that cannot steer it, tables, clock times."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

# Marks that turn the direction of what follows; text could make a line read as something it is not.
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def plain(text: object) -> str:
    r"""Text from anywhere as one line that can be printed: white space becomes spaces, control characters go.

    Example:
        >>> plain("a\x1b[31m\tb\n")
        'a[31m b'
    """
    line = " ".join(str(text).split())
    return "".join(c for c in line if unicodedata.category(c) not in ("Cc", "Cs") and c not in _TURNING)


def shorten(text: str, width: int) -> str:
    """The text, cut with an ellipsis where it is wider than `width` characters."""
    return text if len(text) <= width else text[: max(0, width - 1)].rstrip() + "…"


def columns(rows: Sequence[Sequence[object]], *, indent: str = "  ") -> str:
    """Rows as lines with aligned columns: numbers to the right, text to the left.

    Args:
        rows: Rows of cells, the first of them the headings. Numbers are formatted already where they need to be.
        indent: What each line begins with.
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


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) or (isinstance(cell, str) and cell[:1].isdigit())
