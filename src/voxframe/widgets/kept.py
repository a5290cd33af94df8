"""Names and corrections made in a player, kept by a corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pandas as pd

from voxframe.corpus import Corpus

#: Names by label, who speaks in single turns, and corrected texts of turns, both by `utterance_idx` as text.
Said: TypeAlias = tuple[dict[str, str], dict[str, str], dict[str, str]]


@dataclass(frozen=True)
class Kept:
    """One transcript of a corpus, as far as people correct it.

    Attributes:
        corpus: The corpus that has it.
        transcript_id: Its identifier.
    """

    corpus: Corpus
    transcript_id: str

    def said(self) -> Said:
        """What was said about it so far."""
        rows = self.corpus.speaker_names(self.transcript_id)
        by_label = rows[rows["utterance_idx"].isna()]
        by_turn = rows[rows["utterance_idx"].notna()]
        names = dict(zip(by_label["speaker"], by_label["speaker_name"], strict=True))
        labels = {name: label for label, name in names.items()}  # a turn of a label goes by the label's name
        turns = zip(by_turn["utterance_idx"], by_turn["speaker_name"], strict=True)
        return names, {str(turn): labels.get(name, name) for turn, name in turns}, self._corrections()

    def keep(self, before: Said, now: Said) -> Said:
        """Keep what changed between two states.

        Returns:
            What the corpus has then.

        Raises:
            VoxframeError: The corpus cannot keep it.
        """
        names, turns, texts = (_changed(a, b) for a, b in zip(before, now, strict=True))
        if names or turns:
            self.corpus.name_speakers(self.transcript_id, names, turns=_numbered(turns))
        if texts:
            self.corpus.correct_turns(self.transcript_id, _numbered(texts))
        return self.said()

    def _corrections(self) -> dict[str, str]:
        rows = self.corpus.corrections(self.transcript_id)
        return {str(turn): text for turn, text in zip(rows["utterance_idx"], rows["text"], strict=True)}


def kept(corpus: Corpus | None, words: pd.DataFrame) -> Kept | None:
    """Where what people say about the transcript of some words is kept; None where no corpus has it."""
    if corpus is None or "transcript_id" not in words.columns:
        return None
    ids = words["transcript_id"].unique()
    if len(ids) != 1 or ids[0] not in corpus:
        return None
    return Kept(corpus, str(ids[0]))


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str | None]:
    """What is different now; None for what is gone."""
    return {key: now.get(key) for key in before.keys() | now.keys() if before.get(key) != now.get(key)}


def _numbered(changed: Mapping[str, str | None]) -> dict[int, str | None]:
    return {int(turn): to for turn, to in changed.items()}
