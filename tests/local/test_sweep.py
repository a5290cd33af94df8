"""What is removed from the data directory as time passes, and what stays."""

import os
import time

from voxframe.local.sweep import Keep, sweep

ASKED = {"audio_url": "https://example.com/a.wav"}


def done(jobs, places, *, days, megabytes=1.0):
    """A job whose media was downloaded so long ago, and which is completed."""
    job = working(jobs, places, days=days, megabytes=megabytes)
    assert jobs.complete(job, "me")
    places.result(job).write_bytes(b'{"text": "kept"}')
    return job


def working(jobs, places, *, days, megabytes=1.0):
    """A job whose media was downloaded so long ago, and which is not finished."""
    jobs.add(ASKED, None, "owner", places.job)
    job = jobs.claim("fetch", "me", 99).id
    aged(places.job(job) / "media", days, megabytes)
    jobs.fetched(job, "me", f"jobs/{job}/media")
    assert jobs.claim("speech", "me", 99).id == job
    return job


def aged(path, days, megabytes=1.0):
    """A file of so many megabytes (of nothing) that was written so long ago."""
    with path.open("wb") as file:
        file.truncate(round(megabytes * 1e6))
    os.utime(path, (time.time() - days * 86_400,) * 2)
    return path


def test_old_media_goes_and_its_transcript_stays(jobs, places):
    """Downloads, uploads and redacted audio past their age; what a job still needs is not touched, however old."""
    old, new, needed = (
        done(jobs, places, days=31),
        done(jobs, places, days=29),
        working(jobs, places, days=99),
    )
    beeped = aged(places.redacted(old, "mp3"), 31)
    jobs.add_upload("old", "owner")
    jobs.add_upload("wanted", "owner")
    for name in ("old", "wanted"):
        aged(places.upload(name), 40)
    jobs.add(ASKED, "wanted", "owner", places.job)
    sweep(jobs, places, Keep(days=30))
    assert [(places.job(job) / "media").exists() for job in (old, new, needed)] == [False, True, True]
    assert not beeped.exists()
    assert places.result(old).read_bytes() == b'{"text": "kept"}'
    assert jobs.get(old).status == "completed"
    assert jobs.get(old).media is None
    assert [places.upload(name).exists() for name in ("old", "wanted")] == [False, True]
    assert not jobs.has_upload("old")


def test_the_oldest_go_first_where_there_is_too_much(jobs, places):
    """Down to the size that is allowed, and no further."""
    made = [done(jobs, places, days=days, megabytes=400) for days in (1, 4, 2, 3)]
    sweep(jobs, places, Keep(gigabytes=1.0))
    assert [(places.job(job) / "media").exists() for job in made] == [True, False, True, False]


def test_a_fresh_upload_can_be_used(jobs, places):
    """Whatever the limits, an upload has an hour to be asked for."""
    jobs.add_upload("fresh", "owner")
    aged(places.upload("fresh"), 0.5 / 24)
    sweep(jobs, places, Keep(days=0, gigabytes=0))
    assert places.upload("fresh").exists()
    aged(places.upload("fresh"), 1.1 / 24)
    sweep(jobs, places, Keep(days=0))
    assert not places.upload("fresh").exists()


def test_what_a_kill_left_in_folders_is_removed(jobs, places):
    """Temporary files, and the folder of a job that was never noted; not what was written a moment ago."""
    job = done(jobs, places, days=0)
    left = [aged(places.job(job) / name, 1) for name in (".tmp1", "media.part")]
    fresh = aged(places.job(job) / ".tmp2", 0)
    for name, days in (("nobody", 1), ("begun", 0)):
        (places.jobs / name).mkdir()
        os.utime(places.jobs / name, (time.time() - days * 86_400,) * 2)
    sweep(jobs, places)
    assert not any(path.exists() for path in left)
    assert fresh.exists()
    assert sorted(path.name for path in places.jobs.iterdir()) == sorted([job, "begun"])


def test_a_service_sweeps_by_its_options(start, web, silent_wav):
    """`--keep-days` of a running service: the media goes, the transcript and its exports do not."""
    first = start("--allow-origin", web.origin)
    upload = first.upload(silent_wav)
    made = [first.wait(first.create(url)["id"])["id"] for url in (web.page("/a.wav", silent_wav), upload)]
    first.stop()
    media = [*first.data_dir.glob("jobs/*/media"), *first.data_dir.glob("uploads/*")]
    assert len(media) == 2
    for path in media:
        os.utime(path, (time.time() - 7200,) * 2)
    second = start("--keep-days", "0.05")
    until = time.monotonic() + 20
    while any(path.exists() for path in media):
        assert time.monotonic() < until, second.log.read_text()
        time.sleep(0.05)
    assert [second.transcript(job)["status"] for job in made] == ["completed"] * 2
    assert second.get(f"/v2/transcript/{made[0]}/sentences").status_code == 200
    assert "2 media file(s) were removed" in second.log.read_text()
    again = second.wait(second.create(upload.replace(first.url, second.url))["id"])
    assert again["status"] == "error"
