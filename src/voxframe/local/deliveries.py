"""Notifications that are due, in the database of the jobs: each is taken, tried, and noted as told or as due again.

Who takes one takes it for a time. A process that dies on the way is not missed: its notification is due again after
that time, for whichever process sees it first. So one may arrive twice, and none is lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson

from voxframe.local.database import Database


@dataclass(frozen=True)
class Delivery:
    """A notification to deliver.

    Attributes:
        seq: Its row.
        job: Identifier of the transcript.
        event: "transcript" or "redacted_audio".
        status: Status of the transcript.
        url: Where to.
        allowed: Whether that address was allowed by name, wherever it resolves to.
        header: Name and value of a header that the receiver wants to see.
        tries: How often it was tried, this time included.
    """

    seq: int
    job: str
    event: str
    status: str
    url: str
    allowed: bool
    header: tuple[str, str] | None = field(repr=False)
    tries: int


class Deliveries:
    """The notifications of one data directory.

    Args:
        database: The database of its jobs.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def take(self, seconds: float) -> Delivery | None:
        """Take the one that has been due for longest, for so many seconds."""
        now = time.time()
        with self._database.transaction() as run:
            row = run(
                """UPDATE webhooks SET tries = tries + 1, due = ?
                WHERE seq = (SELECT seq FROM webhooks WHERE due <= ? ORDER BY due LIMIT 1) RETURNING *""",
                (now + seconds, now),
            ).fetchone()
            if row is None:
                return None
            job = run("SELECT status, asked FROM jobs WHERE id = ?", (row["job"],)).fetchone()
        asked = orjson.loads(job["asked"])
        name, value = asked.get("webhook_auth_header_name"), row["header_value"]
        return Delivery(
            row["seq"],
            row["job"],
            row["event"],
            job["status"],
            asked["webhook_url"],
            bool(row["allowed"]),
            (name, value) if name and value else None,
            row["tries"],
        )

    def again(self, delivery: Delivery, status_code: int | None, seconds: float) -> None:
        """Note a try that failed, to be repeated after so many seconds."""
        with self._database.transaction() as run:
            run(
                "UPDATE webhooks SET due = ?, status_code = coalesce(?, status_code) WHERE seq = ? AND due IS NOT NULL",
                (time.time() + seconds, status_code, delivery.seq),
            )

    def done(self, delivery: Delivery, status_code: int | None) -> None:
        """Note that one was told, or given up. What its receiver wanted to see is forgotten."""
        with self._database.transaction() as run:
            run(
                """UPDATE webhooks SET due = NULL, header_value = NULL, status_code = coalesce(?, status_code)
                WHERE seq = ?""",
                (status_code, delivery.seq),
            )
        if delivery.header:
            self._database.wipe()

    def give_back(self, taken: Iterable[int]) -> None:
        """Make deliveries due at once that were taken and not tried to the end."""
        with self._database.transaction() as run:
            for seq in taken:
                run(
                    "UPDATE webhooks SET due = ?, tries = tries - 1 WHERE seq = ? AND due IS NOT NULL",
                    (time.time(), seq),
                )

    def next_due(self) -> float | None:
        """Seconds until the next one is due; None where there is none."""
        due = self._database.rows("SELECT min(due) FROM webhooks")[0][0]
        return None if due is None else max(0.0, due - time.time())
