"""SQL tables of jobs, uploads and webhooks, and the numbers of jobs per list filter.

Triggers keep the numbers up to date, because counting would read all jobs for each page of a list. In `totals`, ''
stands for any status or any day, and 0 for jobs whether throttled or not.
"""

from __future__ import annotations

_JOBS = """
CREATE TABLE IF NOT EXISTS jobs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL CHECK (status IN ('queued', 'processing', 'completed', 'error')),
    created TEXT NOT NULL,
    completed TEXT,
    request TEXT NOT NULL,
    media TEXT,
    error TEXT,
    holder TEXT,
    crashes INTEGER NOT NULL DEFAULT 0,
    throttled INTEGER,
    deleted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS jobs_status ON jobs (status);
CREATE TABLE IF NOT EXISTS uploads (id TEXT PRIMARY KEY, owner TEXT NOT NULL, created TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS webhooks (
    seq INTEGER PRIMARY KEY,
    job TEXT NOT NULL,
    event TEXT NOT NULL CHECK (event IN ('transcript', 'redacted_audio')),
    allowed INTEGER NOT NULL,
    header_value TEXT,
    tries INTEGER NOT NULL DEFAULT 0,
    due REAL,
    status_code INTEGER,
    UNIQUE (job, event)
);
CREATE INDEX IF NOT EXISTS webhooks_due ON webhooks (due);
"""


def _add(row: str, by: int) -> str:
    """Return the statement that adds `by` to each total of a job."""
    kinds = [
        f"SELECT {status} AS status, {day} AS day, {throttled} AS throttled"
        for status in ("''", f"{row}.status")
        for day in ("''", f"substr({row}.created, 1, 10)")
        for throttled in ("0", f"coalesce({row}.throttled, 0)")
    ]
    # UNION removes duplicates: a job that is not throttled counts once in each total.
    return (
        f"INSERT INTO totals SELECT status, day, throttled, {by} FROM ({' UNION '.join(kinds)}) WHERE 1 "  # noqa: S608
        f"ON CONFLICT DO UPDATE SET jobs = jobs + ({by});"
    )


_TOTALS = """
CREATE INDEX IF NOT EXISTS jobs_day ON jobs (substr(created, 1, 10));
CREATE INDEX IF NOT EXISTS jobs_status_day ON jobs (status, substr(created, 1, 10));
CREATE INDEX IF NOT EXISTS jobs_throttled ON jobs (throttled) WHERE throttled = 1;
CREATE TABLE IF NOT EXISTS totals (
    status TEXT NOT NULL, day TEXT NOT NULL, throttled INTEGER NOT NULL, jobs INTEGER NOT NULL,
    PRIMARY KEY (status, day, throttled)
) WITHOUT ROWID;
INSERT INTO totals SELECT * FROM (
    WITH either (n) AS (VALUES (0), (1))
    SELECT iif(s.n, status, ''), iif(d.n, substr(created, 1, 10), ''), t.n, count(*)
    FROM jobs, either AS s, either AS d, either AS t
    WHERE t.n = 0 OR throttled = 1 GROUP BY 1, 2, 3
) WHERE NOT EXISTS (SELECT 1 FROM totals);
CREATE TRIGGER IF NOT EXISTS totals_insert AFTER INSERT ON jobs BEGIN {inserted} END;
CREATE TRIGGER IF NOT EXISTS totals_update AFTER UPDATE OF status, throttled ON jobs BEGIN {removed} {inserted} END;
"""

#: Version of the tables.
VERSION = 2
#: Statements that create missing tables, triggers and indexes, and count existing jobs.
SCHEMA = _JOBS + _TOTALS.format(inserted=_add("NEW", 1), removed=_add("OLD", -1))
#: Number of jobs with a status ('' for any), created on a day ('' for any), throttled (1) or any (0).
TOTAL = "SELECT jobs FROM totals WHERE status = ? AND day = ? AND throttled = ?"
