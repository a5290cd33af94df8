"""Where the embedded service keeps things in its data directory. Only names it made itself ever become paths."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Places:
    """The files and folders of one data directory.

    Attributes:
        root: The data directory.
    """

    root: Path

    @property
    def key(self) -> Path:
        """File that holds the key, readable by its owner only."""
        return self.root / "key"

    @property
    def database(self) -> Path:
        """SQLite database of jobs and uploads."""
        return self.root / "jobs.sqlite"

    @property
    def responses(self) -> Path:
        """SQLite database of the language model's answers."""
        return self.root / "llm.sqlite"

    @property
    def instances(self) -> Path:
        """Folder of one lock file per running service process."""
        return self.root / "instances"

    @property
    def uploads(self) -> Path:
        """Folder of uploaded media."""
        return self.root / "uploads"

    @property
    def jobs(self) -> Path:
        """Folder of a folder for each job."""
        return self.root / "jobs"

    def upload(self, upload_id: str) -> Path:
        """File of one upload."""
        return self.uploads / upload_id

    def job(self, job_id: str) -> Path:
        """Folder of one job: its downloaded media and its result. It is gone once the job is deleted."""
        return self.jobs / job_id

    def result(self, job_id: str) -> Path:
        """File of one job's result fields."""
        return self.job(job_id) / "result.json"

    def redacted(self, job_id: str, kind: str) -> Path:
        """File of one job's redacted audio, `kind` being mp3 or wav; there only when it is whole."""
        return self.job(job_id) / f"redacted.{kind}"

    def make(self) -> None:
        """Make the folders, closed to other users."""
        for folder in (self.root, self.instances, self.uploads, self.jobs):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees all of it or nothing, also after a power cut.

    Raises:
        FileNotFoundError: The folder is gone (its job was deleted).
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` last."""
    if os.name == "nt":  # a directory cannot be opened there, and a rename is journalled
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
