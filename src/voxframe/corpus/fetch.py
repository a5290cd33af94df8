"""Transcripts from a service by way of a corpus: fetched once, then read from disk."""

from __future__ import annotations

import warnings

import pyarrow as pa

from voxframe import frames
from voxframe.corpus.corpus import EXPORTS, Corpus, is_final
from voxframe.corpus.sources import Remote
from voxframe.errors import PayloadError
from voxframe.schema import TABLES, TRANSCRIPT_TABLES


def cached_tables(
    corpus: Corpus, remote: Remote, names: tuple[str, ...], *, refresh: bool = False
) -> dict[str, pa.Table]:
    """Tables of a transcript, from the corpus where it is there in a final status, else from the service.

    Args:
        corpus: Where to look and to keep.
        remote: The transcript.
        names: Tables wanted, of a transcript or an export.
        refresh: Ask the service even where the corpus has it.

    Returns:
        The tables by name. A transcript that is not finished gives what there is, is not kept, and warns.

    Raises:
        PayloadError: The corpus does not have it and there is no client to ask.
        ServiceError: The service did not give it.
    """
    exports = [name for name in names if name in EXPORTS]
    here = remote.transcript_id in corpus
    tables: dict[str, pa.Table] = {}
    if not here or (refresh and len(exports) < len(names)):
        tables = _fetch(corpus, remote)
        here = is_final(tables["transcripts"])
    for name in names:
        if name in tables:
            continue
        if name in TRANSCRIPT_TABLES:
            tables[name] = corpus.arrow(name, remote.transcript_id)
        elif not here or corpus.arrow("transcripts", remote.transcript_id)["status"][0].as_py() != "completed":
            tables[name] = TABLES[name].arrow.empty_table()  # the service has no exports of these
        elif refresh or not corpus.has_export(remote.transcript_id, name):
            tables |= corpus.put(remote.transcript_id, _ask(corpus, remote, name), name)
        else:
            tables[name] = corpus.arrow(name, remote.transcript_id)
    return {name: tables[name] for name in names}


def _fetch(corpus: Corpus, remote: Remote) -> dict[str, pa.Table]:
    """The transcript's tables from the service, kept where it is in a final status."""
    raw = _ask(corpus, remote, "transcript")
    status = frames.transcript_tables(raw, ("transcripts",), remote.transcript_id)
    if is_final(status["transcripts"]):
        return corpus.put(remote.transcript_id, raw)
    tables = frames.transcript_tables(raw, transcript_id=remote.transcript_id)
    status = tables["transcripts"]["status"][0].as_py()
    warnings.warn(
        f"transcript {remote.transcript_id} is still {status!r}: nothing was kept, and tables are empty until it is "
        "completed; wait for it with client.wait(id) and load again",
        stacklevel=5,  # the line that called load_*
    )
    return tables


def _ask(corpus: Corpus, remote: Remote, view: str) -> bytes:
    if remote.client is None:
        raise PayloadError(
            f"{remote.transcript_id!r} is neither a file nor a transcript in {corpus!r}; to fetch it from the service "
            "pass client=voxframe.connect(), else pass a payload or the path of a .json file"
        )
    return remote.client.fetch(remote.transcript_id, view)
