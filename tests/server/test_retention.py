"""Removal of old media from the data directory."""

import os
import time

from voxframe_server.jobs.data_dir import RetentionPolicy, sweep

ASKED = {"audio_url": "https://example.com/a.wav"}


def done(jobs, data_dir, *, days, megabytes=1.0):
    """A completed job with media downloaded the given time ago."""
    job = working(jobs, data_dir, days=days, megabytes=megabytes)
    assert jobs.complete(job, "me")
    data_dir.result(job).write_bytes(b'{"text": "kept"}')
    return job


def working(jobs, data_dir, *, days, megabytes=1.0):
    """An unfinished job with media downloaded the given time ago."""
    jobs.add(ASKED, None, "owner", data_dir.job)
    job = jobs.claim("fetch", "me", 99).id
    aged(data_dir.job(job) / "media", days, megabytes)
    jobs.fetched(job, "me", f"jobs/{job}/media")
    assert jobs.claim("speech", "me", 99).id == job
    return job


def aged(path, days, megabytes=1.0):
    """A file of the given size in megabytes, last written the given time ago."""
    with path.open("wb") as file:
        file.truncate(round(megabytes * 1e6))
    os.utime(path, (time.time() - days * 86_400,) * 2)
    return path


def test_old_media_is_removed_and_its_transcript_stays(jobs, data_dir):
    """Downloads, uploads and redacted audio beyond their age are removed, unless an unfinished job needs them."""
    old, new, needed = (
        done(jobs, data_dir, days=31),
        done(jobs, data_dir, days=29),
        working(jobs, data_dir, days=99),
    )
    beeped = aged(data_dir.redacted(old, "mp3"), 31)
    jobs.add_upload("old", "owner")
    jobs.add_upload("wanted", "owner")
    for name in ("old", "wanted"):
        aged(data_dir.upload(name), 40)
    jobs.add(ASKED, "wanted", "owner", data_dir.job)
    sweep(jobs, data_dir, RetentionPolicy(days=30))
    assert [(data_dir.job(job) / "media").exists() for job in (old, new, needed)] == [False, True, True]
    assert not beeped.exists()
    assert data_dir.result(old).read_bytes() == b'{"text": "kept"}'
    assert jobs.get(old).status == "completed"
    assert jobs.get(old).media is None
    assert [data_dir.upload(name).exists() for name in ("old", "wanted")] == [False, True]
    assert not jobs.has_upload("old")


def test_the_oldest_media_is_removed_first(jobs, data_dir):
    """The oldest media is removed until the rest is within the size limit."""
    made = [done(jobs, data_dir, days=days, megabytes=400) for days in (1, 4, 2, 3)]
    sweep(jobs, data_dir, RetentionPolicy(gigabytes=1.0))
    assert [(data_dir.job(job) / "media").exists() for job in made] == [True, False, True, False]


def test_a_fresh_upload_can_be_used(jobs, data_dir):
    """An upload is kept for at least an hour, whatever the limits."""
    jobs.add_upload("fresh", "owner")
    aged(data_dir.upload("fresh"), 0.5 / 24)
    sweep(jobs, data_dir, RetentionPolicy(days=0, gigabytes=0))
    assert data_dir.upload("fresh").exists()
    aged(data_dir.upload("fresh"), 1.1 / 24)
    sweep(jobs, data_dir, RetentionPolicy(days=0))
    assert not data_dir.upload("fresh").exists()


def test_incomplete_files_are_removed(jobs, data_dir):
    """Old temporary files and folders of unrecorded jobs are removed; recent ones are kept."""
    job = done(jobs, data_dir, days=0)
    left = [aged(data_dir.job(job) / name, 1) for name in (".tmp1", "media.part")]
    fresh = aged(data_dir.job(job) / ".tmp2", 0)
    for name, days in (("nobody", 1), ("begun", 0)):
        (data_dir.jobs / name).mkdir()
        os.utime(data_dir.jobs / name, (time.time() - days * 86_400,) * 2)
    sweep(jobs, data_dir)
    assert not any(path.exists() for path in left)
    assert fresh.exists()
    assert sorted(path.name for path in data_dir.jobs.iterdir()) == sorted([job, "begun"])


def test_a_service_sweeps_by_its_options(start, web, silent_wav):
    """With `--keep-days`, a running server removes media and keeps transcripts and their exports."""
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
    assert "removed 2 media file(s)" in second.log.read_text()
    again = second.wait(second.create(upload.replace(first.url, second.url))["id"])
    assert again["status"] == "error"


def test_a_file_that_vanishes_meanwhile_is_skipped(jobs, data_dir):
    """A file that is deleted between its listing and its inspection does not keep old media from being removed."""
    (data_dir.uploads / "vanished").symlink_to(data_dir.uploads / "nothing")  # listed, but it cannot be inspected
    old = done(jobs, data_dir, days=31)
    sweep(jobs, data_dir, RetentionPolicy(days=30))
    assert not (data_dir.job(old) / "media").exists()
