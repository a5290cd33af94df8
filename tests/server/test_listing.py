"""Lists of transcripts: order, pages and filters."""

import json
from datetime import UTC, datetime

import pytest

from voxframe.options import STATUSES
from voxframe_server.jobs import JobStore
from voxframe_server.jobs.data_dir import DataDir


@pytest.fixture(scope="module")
def listed(service, silent_wav):
    """Ids of seven transcripts, oldest first: five failed, two completed."""
    ids = [service.create(f"http://192.0.2.1/{n}.mp3")["id"] for n in range(5)]
    url = service.upload(silent_wav)
    ids += [service.create(url)["id"] for _ in range(2)]
    for transcript_id in ids:
        service.wait(transcript_id)
    return ids


def page(service, **query):
    """Return a page."""
    answer = service.get("/v2/transcript", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids(listing):
    """Return the ids of a page in order."""
    return [item["id"] for item in listing["transcripts"]]


def test_newest_comes_first_with_the_fields_of_the_api(service, listed, payload_folder):
    """A page has ten transcripts by default, newest first, with the fields of the example."""
    found = page(service)
    assert ids(found) == listed[::-1]
    example = json.loads((payload_folder / "TranscriptList.json").read_text())
    assert found["page_details"].keys() == example["page_details"].keys()
    assert found["page_details"]["limit"] == 10
    for item in found["transcripts"]:
        assert item.keys() == example["transcripts"][0].keys()
        assert item["resource_url"] == f"{service.url}/v2/transcript/{item['id']}"
        assert len(item["created"]) == len("2023-09-04T17:02:23.506984")
        assert (item["completed"] is not None) == (item["status"] == "completed")
        assert (item["error"] is not None) == (item["status"] == "error")


def test_prev_url_leads_to_older_transcripts(service, listed):
    """Following prev_url returns every transcript once, newest first; the last page has no prev_url."""
    seen, found = [], page(service, limit=3)
    while True:
        seen += ids(found)
        assert found["page_details"]["result_count"] == 7
        if found["page_details"]["prev_url"] is None:
            break
        found = service.session.get(found["page_details"]["prev_url"], timeout=10).json()
    assert seen == listed[::-1]


def test_next_url_leads_to_newer_transcripts(service, listed):
    """A page after an id is the next newer one, in the same order."""
    oldest = page(service, limit=3, before_id=listed[2])
    assert ids(oldest) == [listed[1], listed[0]]
    newer = service.session.get(oldest["page_details"]["next_url"], timeout=10).json()
    assert ids(newer) == [listed[4], listed[3], listed[2]]
    assert newer["page_details"]["current_url"] == oldest["page_details"]["next_url"]
    newest = service.session.get(newer["page_details"]["next_url"], timeout=10).json()
    assert ids(newest) == [listed[6], listed[5]]
    assert newest["page_details"]["next_url"] is None


def test_between_two_ids(service, listed):
    """Both bounds together return the transcripts between them."""
    assert ids(page(service, after_id=listed[1], before_id=listed[5])) == [listed[4], listed[3], listed[2]]


@pytest.mark.parametrize("spelling", ["completed", "TranscriptStatus.completed", "COMPLETED"])
def test_status_filter_takes_the_spellings_of_clients(service, listed, spelling):
    """The status filter accepts the spellings of clients and is kept in the links."""
    found = page(service, status=spelling, limit=1)
    assert ids(found) == [listed[6]]
    assert found["page_details"]["result_count"] == 2
    older = service.session.get(found["page_details"]["prev_url"], timeout=10).json()
    assert ids(older) == [listed[5]]
    assert older["page_details"]["prev_url"] is None


def test_created_on_filter(service, listed):
    """The filter returns the transcripts of a day, or none."""
    days = {service_day[:10] for service_day in (item["created"] for item in page(service)["transcripts"])}
    assert sum(len(ids(page(service, created_on=day))) for day in days) == 7
    assert datetime.now(UTC).date().isoformat() in days
    empty = page(service, created_on="2001-01-01")
    assert empty["transcripts"] == []
    assert empty["page_details"]["prev_url"] is None
    assert empty["page_details"]["next_url"] is None


def test_throttled_only_in_any_case(service, listed):
    """True returns no transcript if none is throttled; false returns all."""
    for value in ("True", "true", "1"):
        assert page(service, throttled_only=value)["transcripts"] == []
    for value in ("False", "false", "0"):
        assert len(page(service, throttled_only=value)["transcripts"]) == 7


def test_unknown_parameters_are_ignored(service, listed):
    """Unknown query parameters do not affect a list."""
    assert len(page(service, from_the_future="1", status="", before_id="")["transcripts"]) == 7


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"limit": "0"}, "200"),
        ({"limit": "201"}, "200"),
        ({"limit": "-1"}, "200"),
        ({"limit": "1.5"}, "limit"),
        ({"limit": "²"}, "limit"),
        ({"limit": "9" * 5000}, "limit"),
        ({"status": "done"}, "queued, processing, completed, error"),
        ({"created_on": "yesterday"}, "YYYY-MM-DD"),
        ({"throttled_only": "perhaps"}, "throttled_only"),
        ({"before_id": "none"}, "before_id"),
        ({"after_id": "none"}, "after_id"),
    ],
)
def test_an_invalid_parameter_is_a_400(service, query, named):
    """An invalid parameter is named together with its allowed values."""
    answer = service.get("/v2/transcript", params=query)
    assert answer.status_code == 400
    assert named in answer.json()["error"]


TODAY = "2026-03-04"
FILTERS = {
    "all": {},
    "of a status": {"status": "completed"},
    "of a day": {"created_on": TODAY},
    "of a status and day": {"status": "error", "created_on": TODAY},
    "throttled": {"throttled_only": True},
    "of no day that is": {"created_on": "2001-01-01"},
}


def stocked(folder, count):
    """Create a database with jobs of all statuses over several days; the newest 40 are of one day."""
    data_dir = DataDir(folder)
    data_dir.make()
    jobs = JobStore(data_dir.database)
    with jobs.database.transaction() as run:
        for number in range(count):
            day = TODAY if number >= count - 40 else f"2026-02-{1 + number % 28:02}"
            values = (f"id{number}", STATUSES[number % 4], f"{day}T00:00:00.000000", number % 10 == 7 or None)
            run("INSERT INTO jobs (id, status, created, request, throttled) VALUES (?, ?, ?, '{}', ?)", values)
    return jobs


@pytest.mark.parametrize("name", FILTERS)
def test_a_page_has_the_number_of_all_jobs_of_its_filters(tmp_path, name):
    """The total of a page is the number of jobs that its filters select, on all pages."""
    jobs = stocked(tmp_path, 500)
    where = {
        "all": "1",
        "of a status": "status = 'completed'",
        "of a day": f"created LIKE '{TODAY}%'",
        "of a status and day": f"status = 'error' AND created LIKE '{TODAY}%'",
        "throttled": "throttled",
        "of no day that is": "0",
    }[name]
    (counted,) = jobs.database.rows(f"SELECT count(*) FROM jobs WHERE {where}")[0]
    newest = jobs.page(2, **FILTERS[name])
    older = jobs.page(2, **FILTERS[name], before=newest.jobs[0].seq) if newest.jobs else newest
    assert (newest.total, older.total) == (counted, counted)
    jobs.close()
