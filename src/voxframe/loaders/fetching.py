"""Tables of one transcript of a service: from the corpus if they are stored there, otherwise fetched and stored."""

from __future__ import annotations

import warnings
from collections.abc import Collection

import pyarrow as pa

from voxframe import frames
from voxframe.corpus import Corpus
from voxframe.corpus.importing import name_fetched
from voxframe.corpus.store import FINAL, View
from voxframe.errors import PayloadError
from voxframe.frames.repair import caller
from voxframe.loaders.sources import Remote
from voxframe.schema import CORPUS_TABLES


def cached_tables(
    corpus: Corpus, remote: Remote, names: Collection[str], *, refresh: bool = False, corrected: bool = True
) -> dict[str, pa.Table]:
    """Return tables of a transcript from the corpus if it has a final status there, otherwise from the service.

    Args:
        corpus: Corpus to read from and to store in.
        remote: The transcript.
        names: Requested tables.
        refresh: Fetch the transcript even if the corpus has it.
        corrected: Apply corrections.

    Returns:
        The tables by name. An unfinished transcript gives partial tables and a warning, and is not stored.

    Raises:
        PayloadError: The corpus does not have the transcript, and there is no client to fetch it.
        ServiceError: The service did not return the transcript.
    """
    if not refresh and remote.transcript_id in corpus:
        return corpus._query.arrow_tables(remote.transcript_id, names, corrected=corrected)
    # A finished handle holds the final response; another request would return the same.
    handle = None if refresh else remote.handle
    raw = handle.raw if handle is not None and handle.done else _ask(corpus, remote, "transcript")
    status = frames.transcript_tables(raw, ("transcripts",), remote.transcript_id)["transcripts"]["status"][0].as_py()
    if status in FINAL:
        source = getattr(remote.handle, "source", None)
        record = name_fetched(corpus._archive, remote.transcript_id, raw, source)
        tables = corpus._archive.put(remote.transcript_id, raw, recording=record).exact_tables()
        found = corpus._query.finished(remote.transcript_id, tables, corrected=corrected)
        return {name: found[name] for name in names}
    warnings.warn(
        f"transcript {remote.transcript_id} is still {status!r}: it was not stored, and its tables are empty "
        "until it is completed; wait for it with client.wait(id) and load it again",
        stacklevel=caller(),
    )
    tables = frames.transcript_tables(raw, names, remote.transcript_id)
    return {name: corpus._query.complete(name, tables[name]) for name in names}


def cached_export(
    corpus: Corpus, remote: Remote, view: View, *, refresh: bool = False, corrected: bool = True
) -> pa.Table:
    """Return the table of an export from the corpus if it is stored there, otherwise from the service.

    The transcript itself is stored first, because the words of an export are located in its table of words.

    Args:
        corpus: Corpus to read from and to store in.
        remote: The transcript.
        view: "sentences" or "paragraphs".
        refresh: Fetch the export even if the corpus has it.
        corrected: Apply corrections.

    Returns:
        The table; without rows if the transcript is not completed, because the service has no exports of it.

    Raises:
        PayloadError: The corpus does not have the export, and there is no client to fetch it.
        ServiceError: The service did not return the export.
    """
    transcripts = cached_tables(corpus, remote, ("transcripts",), corrected=False)["transcripts"]
    if transcripts["status"][0].as_py() != "completed":
        return CORPUS_TABLES[view].empty
    if refresh or (remote.fetch is not None and not corpus._archive.has(remote.transcript_id, view)):
        corpus._archive.put(remote.transcript_id, _ask(corpus, remote, view), view)
    return corpus._query.arrow(view, [remote.transcript_id], asked=True, corrected=corrected)


def _ask(corpus: Corpus, remote: Remote, view: View) -> bytes:
    if remote.fetch is None:
        if remote.transcript_id in corpus:
            what = "it again" if view == "transcript" else f"its {view}, which are not"
            raise PayloadError(
                f"{remote.transcript_id!r} is in {corpus!r}; to fetch {what}, pass client=voxframe.connect()"
            )
        if corpus._archive.has(remote.transcript_id, "transcript"):
            corpus._archive.status(remote.transcript_id)  # raises an error if it is damaged
        raise PayloadError(
            f"{remote.transcript_id!r} is neither a file nor a transcript in {corpus!r}; to fetch it from the service "
            "pass client=voxframe.connect(), else pass a payload or the path of a .json file"
        )
    return remote.fetch(view)
