"""Apply what was edited in an exported annotation file as corrections of its transcript."""

from __future__ import annotations

import os
import warnings
from typing import Any

import pandas as pd

from voxframe.corpus.edits import Corrections
from voxframe.corpus.query import Query
from voxframe.corpus.speakers import Speakers
from voxframe.errors import CorpusWarning, OptionError
from voxframe.export.annotation_edits import read_edits
from voxframe.formats.segments import with_turns
from voxframe.frames.repair import caller

_SHOWN = 5  # changes named in one warning


def apply_edits(
    query: Query, corrections: Corrections, speakers: Speakers, transcript_id: str, file: str | os.PathLike[str]
) -> pd.DataFrame:
    """Apply what was edited in a file; see `Corpus.apply_edits`."""
    words, turns = (query.table(name, [transcript_id]) for name in ("words", "utterances"))
    changes = read_edits(with_turns(words, turns), file)
    applied, refused = [], []
    # Times first: `word_idx` is that of the exported words, and a corrected text can have more or fewer words.
    for change in sorted(changes.itertuples(index=False), key=lambda change: change.action != "time"):
        try:
            applied.append(_applied(change, corrections, speakers, transcript_id))
        except OptionError as error:
            applied.append(False)
            refused.append(str(error))
    found = changes.sort_values("action", key=lambda action: action != "time", kind="stable")
    found = found.assign(applied=applied).sort_index()
    if not all(applied):
        left = found[~found["applied"]]
        shown = [f"{one.action} of turn {one.utterance_idx}" for one in left.head(_SHOWN).itertuples()] + refused[:1]
        warnings.warn(
            f"{len(left)} of {len(found)} changes in {os.fspath(file)!r} were not applied: {'; '.join(shown)}",
            CorpusWarning,
            stacklevel=caller(),
        )
    return found


def _applied(change: Any, corrections: Corrections, speakers: Speakers, transcript_id: str) -> bool:
    """Apply one change, and return False if there is no correction of its kind."""
    if change.action == "time":
        corrections.set_time(transcript_id, int(change.word_idx), int(change.start_ms), int(change.end_ms))
    elif change.action == "text":
        corrections.set(transcript_id, {int(change.utterance_idx): change.text})
    elif change.action == "speaker" and pd.isna(change.word_idx):
        speakers.set(transcript_id, turns={int(change.utterance_idx): change.speaker})
    else:
        return False
    return True
