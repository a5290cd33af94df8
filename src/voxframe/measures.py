"""The measures that `voxframe.analysis` and `voxframe.compare` compute: each name has one definition.

Docstrings of the functions and `voxframe.describe("measures")` are written from `MEASURES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Function = TypeVar("Function", bound="Callable[..., object]")


@dataclass(frozen=True)
class Measure:
    """Definition of a measure.

    Attributes:
        denominator: Quantity by which it is divided; empty for none.
        unit: Unit of the values; empty for a number without one.
        source: Publication that defines it; empty for plain sums and ratios.
    """

    name: str
    numerator: str
    denominator: str = ""
    unit: str = ""
    source: str = ""

    def __str__(self) -> str:
        unit = f" ({self.unit})" if self.unit else ""
        return f"`{self.name}`{unit}: {self.numerator}" + (f" / {self.denominator}" if self.denominator else "")


_TURNS = "Heldner and Edlund, Journal of Phonetics 38, 2010"
_EQUALITY = "Pielou, Journal of Theoretical Biology 13, 1966"
_FLUENCY = "Goldman-Eisler, Psycholinguistics, 1968"
_FILLED = "Clark and Fox Tree, Cognition 84, 2002"
_SURPRISE = "Dunning, Computational Linguistics 19, 1993"
_PRIOR = "Monroe, Colaresi and Quinn, Political Analysis 16, 2008"
_LOCATIONS = "Church and Hanks, Computational Linguistics 16, 1990"
_NIST = "NIST, Rich Transcription evaluation plan, 2009"

MEASURES = {
    measure.name: measure
    for measure in (
        # who talks, and how much
        Measure("talk_s", "time of turns, with the pauses inside them", unit="s"),
        Measure("share", "talk_s", "the time that `of` names: talk, speech or recordings of the group", "0 or more"),
        Measure("words_per_minute", "words", "talk time in minutes, with pauses inside turns", "words/min", _FLUENCY),
        Measure("duration_s", "length of the recordings", unit="s"),
        Measure("speech_s", "time in which anybody speaks; overlap counts once", unit="s"),
        Measure("silence_s", "time in which nobody speaks", unit="s"),
        Measure("speech_share", "speech_s", "duration_s", "0-1"),
        Measure("silence_share", "silence_s", "duration_s", "0-1"),
        Measure("overlap_s", "time in which several people speak", unit="s", source=_TURNS),
        Measure("overlap_base_s", "speech_s of recordings that can show overlap", unit="s"),
        Measure("overlap_share", "overlap_s", "overlap_base_s", "0-1"),
        Measure("gini", "mean absolute difference of all pairs of shares", "twice the mean share", "0-1", "Gini, 1912"),
        Measure(
            "entropy_bits", "-sum(p log2 p) over the shares p of the speakers", unit="bits", source="Shannon, 1948"
        ),
        Measure("evenness", "entropy_bits", "log2 of the number of speakers", "0-1", _EQUALITY),
        Measure("effective_speakers", "2 ** entropy_bits", unit="speakers", source="Hill, Ecology 54, 1973"),
        # how they talk
        Measure("articulation_s", "time of words, with silences in a turn that are too short for pauses", unit="s"),
        Measure("articulation_wpm", "words", "articulation_s in minutes", "words/min", _FLUENCY),
        Measure("window_wpm", "words", "length of the window in minutes, also if nobody speaks", "words/min"),
        Measure("pause_s", "time of pauses inside turns", unit="s"),
        Measure("mean_pause_ms", "pause_s", "pauses", "ms"),
        Measure("pauses_per_minute", "pauses", "talk time in minutes, with pauses inside turns", "1/min", _FLUENCY),
        Measure("fillers_per_100", "filled pauses", "100 words", source=_FILLED),
        Measure("questions_per_100", "questions", "100 words"),
        Measure("low_share", "words with a confidence below `low`", "words with a confidence", "0-1"),
        Measure("mean_confidence", "sum of the confidence of words", "words with a confidence", "0-1"),
        Measure("polarity", "positive sentences - negative sentences", "sentences", "-1 to 1"),
        Measure("word_share", "words in spans of the label", "words of the group", "0-1"),
        Measure("strength", "severity, relevance or confidence of the label, added up", "words of the label", "0-1"),
        # how they take turns
        Measure("mean_turn_s", "time of turns that have the floor", "turns", "s"),
        Measure("longest_turn_s", "length of the longest turn", unit="s"),
        Measure("median_offset_ms", "median time from the end of a turn to a transfer", unit="ms", source=_TURNS),
        Measure(
            "response_ms", "median offset of transfers after a question", unit="ms", source="Stivers, PNAS 106, 2009"
        ),
        Measure("transfer_overlap_share", "transfers that begin in overlap", "transfers to the speaker", "0-1"),
        Measure("interruption_share", "transfers that are interruptions", "transfers to the speaker", "0-1"),
        Measure("transfer_share", "transfers from one speaker to another", "transfers from that speaker", "0-1"),
        # which words
        Measure("per_1000", "occurrences in the group", "1000 words of the group"),
        Measure("other_per_1000", "occurrences in all other groups", "1000 words of all other groups"),
        Measure("g2", "log-likelihood ratio of a 2 by 2 table of counts", source=_SURPRISE),
        Measure("log_ratio", "log2 of the ratio of the relative frequencies", unit="doublings", source="Hardie, 2014"),
        Measure("log_odds", "difference of log odds with an informative prior", unit="nats", source=_PRIOR),
        Measure("z", "log_odds", "its standard deviation", source=_PRIOR),
        Measure("expected", "product of the counts of both words", "words", "pairs"),
        Measure("pmi", "log2 of count / expected", unit="bits", source=_LOCATIONS),
        Measure("t_score", "count - expected", "square root of count", source=_LOCATIONS),
        Measure("type_token_ratio", "different words", "words", "0-1"),
        Measure("yules_k", "10,000 times the excess of repeated words", "square of words", source="Yule, 1944"),
        # differences between groups and transcripts
        Measure("rate", "the numerator that was named", "the denominator that was named"),
        Measure("hedges_g", "difference of means", "pooled standard deviation, corrected", source="Hedges, 1981"),
        Measure("cliffs_delta", "pairs in which b is larger - pairs in which a is", "pairs", "-1 to 1", "Cliff, 1993"),
        Measure("wer", "substitutions + deletions + insertions of words", "words of the reference"),
        Measure("cer", "substitutions + deletions + insertions of characters", "characters of the reference"),
        Measure("cpwer", "edits of words under the best assignment of speakers", "words of the reference"),
        Measure("reference_s", "time of the speakers of the reference, added up", unit="s", source=_NIST),
        Measure("missed_s", "time of speakers that the hypothesis lacks", unit="s", source=_NIST),
        Measure("false_alarm_s", "time of speakers that the reference lacks", unit="s", source=_NIST),
        Measure("confusion_s", "time given to the wrong speaker", unit="s", source=_NIST),
        Measure("der", "missed_s + false_alarm_s + confusion_s", "reference_s", source=_NIST),
    )
}


def defines(*names: str) -> Callable[[Function], Function]:
    """Add the definitions of measures to the docstring of a function, before its examples."""
    lines = [f"        - {MEASURES[name]}" for name in names]

    def add(function: Function) -> Function:
        if function.__doc__:  # None under python -OO
            head, _, example = function.__doc__.partition("\n\n    Example:\n")
            listed = "\n".join(["", "", "    Measures:", *lines])
            function.__doc__ = f"{head}{listed}" + (f"\n\n    Example:\n{example}" if example else "")
        function.measures = names  # type: ignore[attr-defined]
        return function

    return add
