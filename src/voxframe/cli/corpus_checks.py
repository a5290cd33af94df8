"""What `voxframe doctor` finds out about a corpus."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from voxframe.corpus import Corpus
from voxframe.errors import VoxframeError
from voxframe.schema import TRANSCRIPT_TABLES

_LOOKED_AT = 50  # transcripts whose files are read; all would take minutes in a large corpus

#: States of jobs about which there is something to do.
_TO_DO = {
    "planned": "not sent; `voxframe submit` without sources goes on with them",
    "uploading": "not sent; `voxframe submit` without sources goes on with them",
    "submitting": "sent, and the answer was lost; `voxframe sync` finds out",
    "submitted": "at the service; `voxframe sync` fetches what has finished",
    "error": "failed; `voxframe jobs --state error` says why, `voxframe submit --failed` sends them again",
    "uncertain": "may be at the service; `voxframe sync` finds out where it can",
}


def corpus_checks(directory: Path | None) -> Iterator[tuple[bool, str]]:
    """Whether a corpus can be written and read, and what is left to do: good or not, and a line for a person."""
    corpus = Corpus(directory)
    if not corpus.path.exists() and directory is None:
        return
    where = f"corpus {corpus.path}"
    if not corpus.path.is_dir():
        yield False, f"{where}: there is no such directory; `voxframe submit --corpus` makes one"
        return
    if not os.access(corpus.path, os.W_OK):
        yield False, f"{where}: it can be read, and not written; give its directory to the user who runs voxframe"
    yield _files(corpus, where)
    yield from _snapshots(corpus, where)
    yield from _jobs(corpus, where)


def _files(corpus: Corpus, where: str) -> tuple[bool, str]:
    """Whether a sample of the files can be read."""
    ids = corpus.ids()
    some = ids[:: max(1, len(ids) // _LOOKED_AT)][:_LOOKED_AT]
    wrong: list[str] = []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for transcript_id in some:
            try:
                corpus.raw(transcript_id)
                for name in TRANSCRIPT_TABLES:
                    corpus.arrow(name, transcript_id)
            except VoxframeError as e:
                wrong.append(str(e))
    wrong += [str(warning.message) for warning in told]
    if wrong:
        return False, f"{where}: {wrong[0]}" + (f" (and {len(wrong) - 1} more like it)" if len(wrong) > 1 else "")
    looked = "" if len(some) == len(ids) else f" ({len(some)} of them looked at)"
    return True, f"{where}: {len(ids)} transcripts{looked}, {len(corpus.versions())} snapshots"


def _snapshots(corpus: Corpus, where: str) -> Iterator[tuple[bool, str]]:
    """Which sealed versions lack a file or have one of another length; hashes would take minutes."""
    for version in corpus.versions():
        try:
            sealed = corpus.load(version)
        except VoxframeError as e:
            yield False, f"{where}: {e}"
            continue
        for name, entry in sealed.manifest["tables"].items():
            path = sealed.path / name / "part-0.parquet"
            if not path.exists() or path.stat().st_size != entry["bytes"]:
                yield False, f"{where}: {path} is missing or damaged; `voxframe snapshot` seals a new version"
                break


def _jobs(corpus: Corpus, where: str) -> Iterator[tuple[bool, str]]:
    """Whether the ledger can be read, and what there is to do."""
    try:
        states = Counter(corpus.jobs()["state"])
        lost, stale = len(corpus.unanswered()), len(corpus.stale_corrections())
    except VoxframeError as e:
        yield False, str(e)
        return
    for state, advice in _TO_DO.items():
        if states[state]:
            yield state not in ("error", "uncertain"), f"{where}: {states[state]} jobs {advice}"
    if lost:
        advice = "`voxframe summarize --uncertain` asks again, which may be paid for twice"
        yield True, f"{where}: answers of a language model that were lost: {lost}, see Corpus.unanswered; {advice}"
    if stale:
        yield (
            True,
            f"{where}: {stale} corrections are of turns that are other ones by now, see Corpus.stale_corrections",
        )
