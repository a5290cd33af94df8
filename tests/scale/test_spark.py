from pathlib import Path

import pytest

import voxframe
from voxframe.schema import CORPUS_TABLES, TABLES

#: Spark's name for each type of the data dictionary.
_TYPES = {
    "string": "string",
    "int64": "bigint",
    "double": "double",
    "bool": "boolean",
    "timestamp[us, tz=UTC]": "timestamp",
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
def test_spark_reads_the_store_and_exports(
    corpus: voxframe.Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark reads stored and exported tables with the types of the data dictionary and all rows."""
    sql = pytest.importorskip("pyspark.sql")
    corpus.export(tmp_path / "set", partition_by="speaker", tables="words")
    settings = {"ui.enabled": "false", "driver.host": "127.0.0.1", "sql.session.timeZone": "UTC"}
    settings["sql.shuffle.partitions"] = "1"
    # Compiling code well and collecting garbage in many threads is no use in a process that ends after a few seconds.
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    spark = (
        sql.SparkSession.builder.master("local[1]")
        .config(map={f"spark.{name}": value for name, value in settings.items()})
        .getOrCreate()
    )
    try:
        read = {name: spark.read.parquet(str(corpus.path / "tables" / name)) for name in ("words", "transcripts")}
        exported = spark.read.parquet(str(tmp_path / "set" / "words"))
        for name, tables, frame in (*((n, TABLES, f) for n, f in read.items()), ("words", CORPUS_TABLES, exported)):
            assert dict(frame.dtypes) == {field.name: _TYPES[str(field.type)] for field in tables[name].arrow}
            assert frame.count() == len(corpus.table(name))
        row = read["words"].orderBy("transcript_id", "word_idx").first()
        first = corpus.table("words").iloc[0]
        assert {name: row[name] for name in ("text", "start_ms", "confidence", "speaker")} == {
            name: first[name] for name in ("text", "start_ms", "confidence", "speaker")
        }
    finally:
        spark.stop()
