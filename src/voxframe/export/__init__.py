"""DataFrames to files that other tools read: data sets, captions, annotations, and what scoring tools take."""

from voxframe.export.captions import srt, vtt
from voxframe.export.lines import audacity, ctm, rttm, stm
from voxframe.export.personal import mask
from voxframe.export.tiers import eaf, textgrid
from voxframe.export.writing import FORMATS, write

__all__ = ["FORMATS", "audacity", "ctm", "eaf", "mask", "rttm", "srt", "stm", "textgrid", "vtt", "write"]
