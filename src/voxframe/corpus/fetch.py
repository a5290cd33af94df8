"""Transcripts from a service by way of a corpus: fetched once, then read from disk."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Collection

import pyarrow as pa

from voxframe import frames
from voxframe.corpus.corpus import Corpus
from voxframe.corpus.sources import Remote
from voxframe.corpus.speaker_names import with_names
from voxframe.corpus.store import FINAL, View
from voxframe.errors import PayloadError
from voxframe.schema import CORPUS_TABLES


def cached_tables(
    corpus: Corpus, remote: Remote, names: Collection[str], *, refresh: bool = False
) -> dict[str, pa.Table]:
    """Tables of a transcript, from the corpus where it is there in a final status, else from the service.

    Args:
        corpus: Where to look and to keep.
        remote: The transcript.
        names: Tables wanted.
        refresh: Ask the service even where the corpus has it.

    Returns:
        The tables by name. A transcript that is not finished gives what there is, is not kept, and warns.

    Raises:
        PayloadError: The corpus does not have it and there is no client to ask.
        ServiceError: The service did not give it.
    """
    if not refresh and remote.transcript_id in corpus:
        return {name: corpus.arrow(name, remote.transcript_id) for name in names}
    # A handle that has seen the end holds the answer; asking once more would bring the same.
    handle = None if refresh else remote.handle
    raw = handle.raw if handle is not None and handle.done else _ask(corpus, remote, "transcript")
    status = frames.transcript_tables(raw, ("transcripts",), remote.transcript_id)["transcripts"]["status"][0].as_py()
    if status in FINAL:
        tables = corpus.put(remote.transcript_id, raw)
    else:
        tables = frames.transcript_tables(raw, names, remote.transcript_id)
        warnings.warn(
            f"transcript {remote.transcript_id} is still {status!r}: nothing was kept, and tables are empty until it "
            "is completed; wait for it with client.wait(id) and load again",
            stacklevel=_outside(),
        )
    return {name: with_names(tables[name], {}) for name in names}


def cached_export(corpus: Corpus, remote: Remote, view: View, *, refresh: bool = False) -> pa.Table:
    """Table of an export, from the corpus where it is there, else from the service.

    The transcript itself is brought into the corpus first: an export's words are found in its table of words.

    Args:
        corpus: Where to look and to keep.
        remote: The transcript.
        view: "sentences" or "paragraphs".
        refresh: Ask the service even where the corpus has it.

    Returns:
        The table, with no rows where the transcript is not completed: the service has no exports of these.

    Raises:
        PayloadError: The corpus does not have it and there is no client to ask.
        ServiceError: The service did not give it.
    """
    transcripts = cached_tables(corpus, remote, ("transcripts",))["transcripts"]
    if transcripts["status"][0].as_py() != "completed":
        return CORPUS_TABLES[view].empty
    if not refresh and corpus.has_export(remote.transcript_id, view):
        return corpus.arrow(view, remote.transcript_id)
    return corpus.put(remote.transcript_id, _ask(corpus, remote, view), view)[view]


def _outside() -> int:
    """Stack level, seen from the caller, of the nearest line that is not voxframe's own."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals["__name__"].split(".")[0] == "voxframe":
        level, frame = level + 1, frame.f_back
    return level


def _ask(corpus: Corpus, remote: Remote, view: View) -> bytes:
    if remote.client is None:
        if remote.transcript_id in corpus:
            what = "it again" if view == "transcript" else f"its {view}, which are not"
            raise PayloadError(
                f"{remote.transcript_id!r} is in {corpus!r}; to fetch {what}, pass client=voxframe.connect()"
            )
        raise PayloadError(
            f"{remote.transcript_id!r} is neither a file nor a transcript in {corpus!r}; to fetch it from the service "
            "pass client=voxframe.connect(), else pass a payload or the path of a .json file"
        )
    return remote.client.fetch(remote.transcript_id, view)
