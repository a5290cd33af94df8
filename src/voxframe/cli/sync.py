"""`voxframe sync`: what has finished, into the corpus."""

from __future__ import annotations

from pathlib import Path

from voxframe.cli.submit import report
from voxframe.corpus import Corpus
from voxframe.errors import CorpusError


def sync(directory: Path | None, *, wait: bool, adopt: bool, as_json: bool) -> int:
    """Fetch finished transcripts and say what is left.

    Args:
        directory: Corpus directory; None is the default corpus.
        wait: Whether to go on until nothing is left at the service.
        adopt: Whether to bring in everything else the service has.
        as_json: Whether to print the counts as JSON.

    Returns:
        Exit status: 1 where a job failed or is uncertain.

    Raises:
        CorpusError: There is no corpus at that place, and nothing to adopt into a new one.
        ServiceError: The service cannot be used at the moment.
    """
    corpus = Corpus(directory)
    if directory is not None and not adopt and not corpus.path.is_dir():
        raise CorpusError(f"there is no corpus at {corpus.path}; `voxframe submit` makes one")
    found = corpus.adopt() if adopt else None
    done = corpus.sync(wait=wait)
    return report(done.after(found) if found is not None else done, corpus.path, as_json=as_json)
