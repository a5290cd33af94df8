"""Export of DataFrames to files for other tools: data sets, captions, annotations and scoring formats."""

from voxframe.export.annotation_edits import read_edits
from voxframe.export.delta import open_delta
from voxframe.export.pii_masking import mask
from voxframe.export.writers import FORMATS, write
from voxframe.formats.corpora import label_studio, label_studio_config
from voxframe.formats.text_writers import audacity, ctm, docx, md, rttm, srt, stm, tsv, txt, vtt
from voxframe.formats.tiers import eaf, textgrid
from voxframe.formats.writing import ExportResult, Losses

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
