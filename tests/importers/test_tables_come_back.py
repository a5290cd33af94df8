"""Exports of tables are read again as transcripts."""

import pytest

import voxframe


@pytest.mark.parametrize("format_name", ["csv", "tsv", "jsonl", "parquet"])
def test_an_exported_table_is_read_again(tmp_path, format_name):
    """The words and turns of two transcripts come back from a file of a table, with their speakers and times."""
    srt = "1\n00:00:01,000 --> 00:00:02,000\nAnn: Good day.\n\n2\n00:00:03,000 --> 00:00:04,000\nBen: Hello.\n"
    srt += "\n3\n00:00:05,000 --> 00:00:06,000\nAnn: Yes.\n\n4\n00:00:07,000 --> 00:00:08,000\nBen: No.\n"
    first = voxframe.Corpus(tmp_path / "first")
    for name in ("x", "y"):
        (tmp_path / f"{name}.srt").write_text(srt)
        first.add(tmp_path / f"{name}.srt")
    for table, columns in (
        ("words", ["transcript_id", "text", "speaker", "start_ms", "end_ms"]),
        ("utterances", ["transcript_id", "text", "speaker", "start_ms", "end_ms"]),
    ):
        if format_name == "tsv" and table != "words":
            continue
        target = tmp_path / f"{table}.{format_name}"
        first.export(target, format_name, tables=None if format_name == "tsv" else [table])
        second = voxframe.Corpus(tmp_path / f"second {table}")
        assert second.add(target).added == 2
        assert len(second.table(table)) == len(first.table(table))
        texts = [corpus.table(table)[columns[1:]].to_numpy().tolist() for corpus in (first, second)]
        assert sorted(texts[0]) == sorted(texts[1])
