"""Compare two transcripts of one recording, or a transcript with a reference: DataFrame in, DataFrame out.

`align` pairs the words of both, and `disagreements` lists where they differ, with times to listen to. `error_rates`,
`time_differences` and `compare_engines` compute measures of an alignment. `cpwer` and `diarization_error_rate` compare
speakers without an alignment, because speaker labels of two transcripts need not have the same names.

Example:
    >>> rates = error_rates(align("The cat sat.", "the cat sat down"))
    >>> rates[["words", "insertions", "wer"]].values.tolist()
    [[3.0, 1.0, 0.3333333333333333]]
"""

from voxframe.compare.alignment import RULES, align, disagreements, normalized
from voxframe.compare.error_rates import compare_engines, cpwer, diarization_error_rate, error_rates, time_differences

__all__ = [
    "RULES",
    "align",
    "compare_engines",
    "cpwer",
    "diarization_error_rate",
    "disagreements",
    "error_rates",
    "normalized",
    "time_differences",
]
