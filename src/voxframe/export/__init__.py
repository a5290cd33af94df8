"""Export of DataFrames to files for other tools: data sets, captions, annotations and scoring formats."""

from voxframe.export.annotation_edits import read_edits
from voxframe.export.annotation_formats import eaf, label_studio, label_studio_config, textgrid
from voxframe.export.delta import open_delta
from voxframe.export.pii_masking import mask
from voxframe.export.result import ExportResult, Losses
from voxframe.export.text_formats import audacity, ctm, docx, md, rttm, srt, stm, tsv, txt, vtt
from voxframe.export.writers import FORMATS, write

__all__ = [
    "FORMATS",
    "ExportResult",
    "Losses",
    "audacity",
    "ctm",
    "docx",
    "eaf",
    "label_studio",
    "label_studio_config",
    "mask",
    "md",
    "open_delta",
    "read_edits",
    "rttm",
    "srt",
    "stm",
    "textgrid",
    "tsv",
    "txt",
    "vtt",
    "write",
]
