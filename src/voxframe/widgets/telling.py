"""Failures in the pane below a widget: nobody sees an exception that a click raised."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from voxframe.errors import CorpusWarning, PayloadWarning, VoxframeError


class Telling(Protocol):
    """A widget with a pane for what went wrong."""

    error: str


@contextmanager
def telling(widget: Telling) -> Iterator[None]:
    """Show in the pane of a widget what goes wrong inside, and what is warned of; clear it where nothing does.

    A fault of voxframe itself is told as such and raised.
    """
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("ignore")
        for kind in (PayloadWarning, CorpusWarning):
            warnings.simplefilter("always", kind)
        said = ""
        try:
            yield
        except (VoxframeError, ValueError) as e:
            said = str(e)
        except Exception as e:
            widget.error = f"voxframe failed here ({type(e).__name__}); that is a fault of voxframe, please report it"
            raise
    widget.error = "\n".join(filter(None, [said, *(str(warning.message) for warning in warned)]))
