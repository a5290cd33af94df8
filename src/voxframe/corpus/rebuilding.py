"""Makes the tables of a corpus again from its raw payloads, on all cores.

Run as `python -P -m voxframe.corpus.rebuilding PATH VIEW` this is one of the processes that share the work: identifiers
come in as JSON, a line each, and for each a line goes out: "" or what went wrong. (Not multiprocessing: that would run
the script of whoever calls `rebuild` once more in every process.)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from tqdm.auto import tqdm

from voxframe.corpus.store import View
from voxframe.errors import CorpusError, VoxframeError

if TYPE_CHECKING:
    from voxframe.corpus.corpus import Corpus

_FEW = 32  # so many are made in this process sooner than another one starts


def rebuild(corpus: Corpus, workers: int | None, *, verify: bool, progress: bool) -> int:
    """Make stale tables again; transcripts before their exports, which need the words.

    Args:
        corpus: The corpus.
        workers: Processes; None is one a core.
        verify: Whether files are read to their end.
        progress: Whether to show how far it is.

    Returns:
        How many answers had their tables made again.

    Raises:
        CorpusError: A raw payload is damaged, or the disk cannot be written; all others are done by then.
    """
    count, wrong = 0, list[str]()
    for view in get_args(View):
        ids = corpus.stale(view, verify=verify)
        with tqdm(total=len(ids), desc=f"tables of {view}", disable=not progress or len(ids) <= _FEW) as bar:

            def tell(error: str, bar: Any = bar) -> None:
                bar.update()
                if error:
                    wrong.append(error)

            if len(ids) <= _FEW:
                for transcript_id in ids:
                    tell(_make(corpus, view, transcript_id))
            else:
                _share(corpus.path, view, ids, min(workers or os.cpu_count() or 1, len(ids)), tell)
        count += len(ids)
    if wrong:
        raise CorpusError("; ".join(wrong))
    return count


def _share(path: Path, view: View, ids: Sequence[str], workers: int, tell: Callable[[str], None]) -> None:
    """Let processes of their own make the tables, each every n-th."""
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
                thread.join(0.2)  # Ctrl-C is heard between
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


def _make(corpus: Corpus, view: View, transcript_id: str) -> str:
    """Make the tables of one answer again; what went wrong, or nothing."""
    try:
        corpus.put_again(transcript_id, view)
    except VoxframeError as e:
        return str(e)
    return ""


def main() -> None:
    """Work as one of the processes."""
    from voxframe.corpus.corpus import Corpus

    corpus = Corpus(sys.argv[1])
    view: View = next(name for name in get_args(View) if name == sys.argv[2])
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_make(corpus, view, json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
