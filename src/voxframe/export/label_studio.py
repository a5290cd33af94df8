"""Tasks for Label Studio: the turns of each transcript as pre-annotated regions of its audio.

Source of the format: https://labelstud.io/guide/predictions and the template "Automatic Speech Recognition using
Segments", https://labelstud.io/templates/automatic_speech_recognition_segments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import quoteattr

import pandas as pd

from voxframe.errors import PayloadError
from voxframe.export.annotation_tiers import tier_names
from voxframe.export.result import Losses, counted
from voxframe.export.segments import transcripts, turns
from voxframe.importers.tiers import speaker_of

_LABELS, _TEXT, _AUDIO = "labels", "transcription", "audio"


def label_studio(df: pd.DataFrame, *, audio: Mapping[str, str] | None = None, losses: Losses | None = None) -> str:
    """Return turns as Label Studio tasks: one per transcript, with a region for each turn.

    Import the text into a project with the labeling configuration of `label_studio_config`. `read_edits` reads what
    was changed in the JSON that Label Studio exports.

    Args:
        df: Words, or turns (`voxframe.load_utterances`).
        audio: URL of the recording by transcript id, as Label Studio reaches it. None (default): the column `audio_url`
            if there is one, otherwise empty.
        losses: Counter for values that a task cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing.

    Warns:
        ExportWarning: A task cannot hold a value.
    """
    tasks = []
    with counted(losses, "labelstudio") as lost:
        if audio is None and {"audio_url", "transcript_id"} <= set(getattr(df, "columns", ())):
            known = df.dropna(subset=["audio_url"]).drop_duplicates("transcript_id")
            audio = dict(zip(known["transcript_id"], known["audio_url"], strict=True))
        for transcript_id, segments in transcripts(df, "labelstudio", lost):
            names = tier_names(segments)
            result: list[dict[str, Any]] = []
            for n, turn in enumerate(turns(segments)):
                place = {"start": turn.start / 1000, "end": turn.end / 1000, "channel": 0}
                common = {"id": f"turn-{n}", "to_name": _AUDIO}
                speaker = speaker_of(names[turn.voice, turn.channel])
                result += [
                    {**common, "from_name": _LABELS, "type": "labels", "value": {**place, "labels": [speaker]}},
                    {**common, "from_name": _TEXT, "type": "textarea", "value": {**place, "text": [turn.text]}},
                ]
            data = {_AUDIO: (audio or {}).get(transcript_id, ""), "transcript_id": transcript_id}
            tasks.append({"data": data, "predictions": [{"model_version": "voxframe", "result": result}]})
    return json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"


def label_studio_config(df: pd.DataFrame) -> str:
    """Return the labeling configuration of a Label Studio project for the tasks of `label_studio`.

    Args:
        df: The same rows.

    Raises:
        OptionError: A column is missing.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "text": ["Hi!"], "start_ms": 0, "end_ms": 400, "speaker": "A"})
        >>> print(label_studio_config(words).splitlines()[2].strip())
        <Label value="A"/>
    """
    found = [speaker_of(name) for _, s in transcripts(df, "labelstudio", Losses()) for name in tier_names(s).values()]
    labels = "".join(f"    <Label value={quoteattr(name)}/>\n" for name in dict.fromkeys(found))
    return (
        f'<View>\n  <Labels name="{_LABELS}" toName="{_AUDIO}">\n{labels}  </Labels>\n'
        f'  <Audio name="{_AUDIO}" value="${_AUDIO}"/>\n'
        f'  <TextArea name="{_TEXT}" toName="{_AUDIO}" rows="2" editable="true" perRegion="true" required="true"/>\n'
        "</View>\n"
    )


def regions(text: str, transcript_id: str | None) -> list[tuple[str, str, int, int]]:
    """Return speaker, text, start and end (ms) of the regions of a task that Label Studio exported.

    Args:
        text: Exported JSON: the format "JSON", not "JSON-MIN".
        transcript_id: The transcript.

    Raises:
        PayloadError: There is no such task, or it has no annotation.
    """
    tasks = json.loads(text)
    mine = [task for task in tasks if task.get("data", {}).get("transcript_id") == transcript_id]
    if not mine:
        raise PayloadError(f"no task has the transcript_id {transcript_id!r} in its data; export the project as JSON")
    done = [one for task in mine for one in task.get("annotations", ()) if not one.get("was_cancelled")]
    if not done:
        raise PayloadError(f"the task of {transcript_id!r} has no annotation; submit it in Label Studio first")
    last = max(done, key=lambda one: str(one.get("updated_at", "")))
    found: dict[str, dict[str, Any]] = {}
    for one in last.get("result", ()):
        value = one.get("value", {})
        if {"start", "end"} <= value.keys():
            found.setdefault(one["id"], {}).update(value)
    return [
        (
            str((value.get("labels") or ["speech"])[0]),
            " ".join(" ".join(value.get("text") or ()).split()),
            round(value["start"] * 1000),
            round(value["end"] * 1000),
        )
        for value in found.values()
    ]
