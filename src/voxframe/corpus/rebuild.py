"""Rebuild of the tables of a corpus from its payloads, on all cores.

`python -P -m voxframe.corpus.rebuild PATH VIEW` runs one worker process. It reads transcript ids from standard input as
JSON, one per line. For each it writes a line of JSON: an empty text, or an error message. The multiprocessing module is
not used, because it would run the caller's script again in every process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

from tqdm.auto import tqdm

from voxframe.corpus.archive import Archive
from voxframe.corpus.store import View
from voxframe.errors import CorpusError

_FEW = 32  # up to this number, rebuilding in this process is faster than starting another one


def rebuild(archive: Archive, workers: int | None, *, verify: bool, progress: bool) -> int:
    """Rebuild stale tables. Transcripts come before their exports, which need the words.

    Args:
        archive: The payloads and tables.
        workers: Number of processes. None: one per core.
        verify: Read files to their end.
        progress: Show a progress bar.

    Returns:
        Number of payloads with rebuilt tables.

    Raises:
        CorpusError: A payload is damaged, or the disk cannot be written. Raised after all others are done.
    """
    count, wrong = 0, list[str]()
    for view in get_args(View):
        ids = archive.stale(view, verify=verify)
        with tqdm(total=len(ids), desc=f"tables of {view}", disable=not progress or len(ids) <= _FEW) as bar:

            def tell(error: str, bar: Any = bar) -> None:
                bar.update()
                if error:
                    wrong.append(error)

            if len(ids) <= _FEW:
                for error in archive.rebuild_tables(ids, view):
                    tell(str(error or ""))
            else:
                _share(archive.path, view, ids, min(workers or os.cpu_count() or 1, len(ids)), tell)
        count += len(ids)
    if wrong:
        raise CorpusError("; ".join(wrong))
    return count


def _share(path: Path, view: View, ids: Sequence[str], workers: int, tell: Callable[[str], None]) -> None:
    """Rebuild the tables in worker processes, each with every n-th transcript."""
    command = [sys.executable, "-P", "-m", __name__, str(path), view]
    children = [
        subprocess.Popen(  # noqa: S603  ourselves
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        for _ in range(workers)
    ]
    try:
        threads = [
            threading.Thread(target=_mind, args=(child, ids[place::workers], tell), daemon=True)
            for place, child in enumerate(children)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)  # a timeout, so that Ctrl-C is handled
    finally:
        for child in children:
            child.kill()
            child.wait()


def _mind(child: subprocess.Popen[str], ids: Sequence[str], tell: Callable[[str], None]) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    with child.stdin, child.stdout:
        for done, transcript_id in enumerate(ids):
            try:
                child.stdin.write(json.dumps(transcript_id) + "\n")
                child.stdin.flush()
                answer = child.stdout.readline()
            except OSError:
                answer = ""
            if not answer:
                tell(f"a process that made tables again ended early, with {len(ids) - done} transcripts to do")
                return
            tell(json.loads(answer))
        child.stdin.close()
        if child.wait():
            tell("a process that made tables again could not write them")


def main() -> None:
    """Run a worker process."""
    archive = Archive(Path(sys.argv[1]))
    view: View = next(name for name in get_args(View) if name == sys.argv[2])
    for error in archive.rebuild_tables(map(json.loads, sys.stdin), view):
        sys.stdout.write(json.dumps(str(error or "")) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
