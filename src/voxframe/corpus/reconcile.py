"""Submissions whose answer was lost, looked for in the service's list."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from voxframe.corpus.ledger import LOST, Job, Ledger, now
from voxframe.corpus.send import service_name
from voxframe.options import LIST_LIMIT

if TYPE_CHECKING:
    from voxframe.service import Client
    from voxframe.service.listing import Item

#: A request that was cut off may still be on its way so many seconds later: longer than any gateway holds one.
SETTLE_S = 120.0
#: The clocks here and there, and their zones, may differ by so much.
_CLOCKS_APART = timedelta(days=1)


def reconcile(ledger: Ledger, client: Client) -> int:
    """Find out what became of submissions whose answer was lost.

    Each was sent with an address that no other has. Where the list shows it, it was made. That it is not there proves
    something only when the request had time to arrive, and when the list shows, under the address it was sent with, a
    job that was sent later: then this is the right account, at a service that repeats addresses, in a list that is up
    to date. What is not decided is left "uncertain".

    Args:
        ledger: The submissions.
        client: The service.

    Returns:
        How many were found.

    Raises:
        ServiceError: The list could not be had; nothing is changed.
    """
    service = service_name(client)
    lost = ledger.jobs(service, LOST)
    if not lost:
        return 0
    begun = now()
    listed = _listed(client, min((job.sent for job in lost if job.sent is not None), default=None))
    seen_until = _seen_until(ledger.jobs(service), listed)
    found = 0
    for key in (job.key for job in lost):
        with ledger.turn(key, wait=False) as held:
            job = ledger.find(key) if held else None  # otherwise somebody is just sending it
            if job is None or job.state not in LOST:
                continue
            item = listed.get(job.address or "") or listed.get(job.transcript_id or "")
            if item is not None:
                ledger.save(job, state="submitted", transcript_id=item.id, error=None)
                found += 1
            elif _never_arrived(job, begun, seen_until):
                ledger.save(job, state="planned", error="the request never reached the service")
            elif job.state == "submitting":
                ledger.save(job, state="uncertain", error="the process ended before the service had answered")
    return found


def history(client: Client, since: datetime | None) -> Iterator[Item]:
    """Transcripts of the service from the newest back to a moment, with a day's margin; all where it is None."""
    older = 0
    for item in client.transcripts():
        yield item
        made = item.created and item.created.astimezone(UTC).replace(tzinfo=None)
        older = older + 1 if made and since and made < since - _CLOCKS_APART else 0
        if older > LIST_LIMIT:  # not at the first: a single date may be wrong
            return


def _listed(client: Client, since: datetime | None) -> dict[str, Item]:
    """Transcripts made since a moment, by the address of their audio and by identifier; of two the older."""
    listed: dict[str, Item] = {}
    for item in history(client, since):
        listed[item.id] = item
        if item.audio_url is not None:
            listed[item.audio_url] = item
    return listed


def _seen_until(jobs: list[Job], listed: dict[str, Item]) -> datetime | None:
    """When the latest job was sent that the list shows under the address it was sent with."""
    shown = (
        job.sent
        for job in jobs
        if job.sent is not None
        and job.transcript_id is not None
        and job.address in listed
        and listed[job.address].id == job.transcript_id
    )
    return max(shown, default=None)


def _never_arrived(job: Job, begun: datetime, seen_until: datetime | None) -> bool:
    if job.sent is None or job.transcript_id is not None or seen_until is None:
        return False
    return seen_until > job.sent and begun - job.sent >= timedelta(seconds=SETTLE_S)
