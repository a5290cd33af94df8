"""Transcripts in portions that one language-model request takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from voxframe.corpus.reading import identifiers
from voxframe.errors import OptionError
from voxframe.options import LLM_HOURS, LLM_INPUT_DEFAULT, LLM_TRANSCRIPTS

if TYPE_CHECKING:
    from voxframe.corpus.corpus import Corpus

#: Characters of a text. A token is rarely less than two of them, whatever the language.
MOST_CHARACTERS = 2 * LLM_INPUT_DEFAULT


@dataclass(frozen=True)
class Portion:
    """What one request is about.

    Attributes:
        ids: Transcripts.
        text: What they say, where that is sent; None where the service looks them up.
    """

    ids: tuple[str, ...]
    text: str | None = None


def portions(corpus: Corpus, transcripts: Any) -> list[Portion]:
    """Portions of a selection, in its order; those with names or corrections behind the others, as texts.

    Transcripts in which nothing is said are left out: a service refuses a whole request for one of them.

    Args:
        corpus: Where they are.
        transcripts: An identifier, several, or a table with a column `transcript_id`; None is every completed one.

    Raises:
        CorpusError: One is not here, or no identifier.
        OptionError: There is none, one is not completed, or nothing is said in any.
    """
    ids = None if transcripts is None else identifiers(transcripts)
    known = corpus.table("transcripts", ids, columns=["transcript_id", "status", "audio_duration_s"])
    if ids is not None and (undone := known[known["status"] != "completed"]["transcript_id"].to_list()):
        raise OptionError(f"transcript {undone[0]!r} is not completed; only completed ones have text. Leave it out")
    known = known[known["status"] == "completed"]
    if known.empty:
        raise OptionError(f"{corpus!r} has no completed transcript that was asked for; check what selected them")
    spoken = [any(corpus.part(name, i) is not None for name in ("words", "utterances")) for i in known["transcript_id"]]
    known = known[spoken]
    if known.empty:
        raise OptionError(f"nothing is said in the transcripts that were asked for in {corpus!r}")
    named = {*corpus.speaker_names(known["transcript_id"])["transcript_id"]}
    named |= {*corpus.corrections(known["transcript_id"])["transcript_id"]}
    lengths = (known["audio_duration_s"].fillna(0) / 3600).tolist()
    hours: dict[str, float] = dict(zip(known["transcript_id"].tolist(), lengths, strict=True))
    by_id = [Portion(tuple(group)) for group in within_limits({i: h for i, h in hours.items() if i not in named})]
    return by_id + list(as_texts(corpus, [i for i in hours if i in named]))


def texts_together(texts: Iterable[str]) -> list[str]:
    """Texts joined to as few as a request takes each."""
    found: list[str] = []
    for text in texts:
        if found and len(found[-1]) + 2 + len(text) <= MOST_CHARACTERS:
            found[-1] += f"\n\n{text}"
        else:
            found.append(text)
    return found


def within_limits(hours: dict[str, float]) -> Iterator[list[str]]:
    """Identifiers, as many and as long together as a request takes.

    Args:
        hours: Length of each transcript in hours, by its identifier.
    """
    group: list[str] = []
    total = 0.0
    for transcript_id, length in hours.items():
        if group and (len(group) == LLM_TRANSCRIPTS or total + length > LLM_HOURS):
            yield group
            group, total = [], 0.0
        group.append(transcript_id)
        total += length
    if group:
        yield group


def as_texts(corpus: Corpus, ids: Sequence[str]) -> Iterator[Portion]:
    """Texts of transcripts with the names of their speakers, as many together as a request takes."""
    held: list[str] = []
    text = ""
    for transcript_id in ids:
        for piece in _pieces(_lines(corpus, transcript_id)):
            if held and len(text) + 2 + len(piece) > MOST_CHARACTERS:
                yield Portion(tuple(held), text)
                held, text = [], ""
            text = f"{text}\n\n{piece}" if text else piece
            if transcript_id not in held:
                held.append(transcript_id)
    if held:
        yield Portion(tuple(held), text)


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    piece = ""
    for line in (whole[at : at + MOST_CHARACTERS] for whole in lines for at in range(0, len(whole), MOST_CHARACTERS)):
        if piece and len(piece) + 1 + len(line) > MOST_CHARACTERS:
            yield piece
            piece = ""
        piece = f"{piece}\n{line}" if piece else line
    if piece:
        yield piece


def _lines(corpus: Corpus, transcript_id: str) -> Iterator[str]:
    """A line a turn, with who says it and as it was corrected."""
    turns = corpus.table("utterances", transcript_id)
    if turns.empty:
        from voxframe.analysis import turns as grouped

        turns = grouped(corpus.table("words", transcript_id))
    from voxframe.analysis.columns import voices

    corrected = dict(corpus.corrections(transcript_id)[["utterance_idx", "text"]].itertuples(index=False, name=None))
    for place, (who, said) in enumerate(zip(voices(turns), turns["text"], strict=True)):
        text = corrected.get(place, said)
        if isinstance(text, str) and text.strip():
            yield f"{who}: {text}" if isinstance(who, str) else text
