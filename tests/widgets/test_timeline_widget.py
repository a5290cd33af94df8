from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
import traitlets

import voxframe
from voxframe.colors import COLORS
from voxframe.errors import PayloadWarning
from voxframe.widgets import Timeline

PAYLOADS = Path(__file__).parents[2] / "data" / "payloads"


@pytest.fixture(scope="module")
def turns() -> pd.DataFrame:
    return voxframe.load_utterances(PAYLOADS / "interview.json")


def spans(**columns) -> pd.DataFrame:
    return pd.DataFrame({"transcript_id": "t", **columns})


def test_a_selection_is_the_rows_that_overlap_the_interval(turns):
    """The selection excludes rows that only touch the interval; without an interval the result has all rows."""
    timeline = Timeline(turns)
    assert len(timeline.selection) == 0
    assert list(timeline.selection.columns) == list(turns.columns)
    assert timeline.result is turns
    timeline.interval = [int(turns["end_ms"][2]), int(turns["start_ms"][5])]
    assert timeline.selection["utterance_idx"].to_list() == [3, 4]
    assert timeline.result.equals(timeline.selection)


def test_the_code_shows_the_same_again(turns):
    """Run with the same DataFrame, `.code` gives a timeline with the same view and selection."""
    timeline = Timeline(turns, by="channel")
    timeline.view, timeline.interval = [10_000, 60_000], [20_000, 40_000]
    names: dict = {"df": turns}
    exec(timeline.code, names)
    assert names["timeline"].view == timeline.view
    assert names["timeline"]._names == timeline._names
    assert names["selection"].equals(timeline.selection)
    assert len(timeline.selection) > 0


def test_the_code_of_a_subclass_shows_the_widget_that_it_extends(turns):
    """`.code` of a class of the user, which has a signature of its own, calls the class of voxframe."""

    class Mine(Timeline):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)

    assert Mine(turns, by="channel").code == Timeline(turns, by="channel").code


def test_lanes_are_in_the_order_of_speaking_and_rows_sorted_in_them():
    """The first speaker is on top, rows without times are left out, and a null speaker has a lane."""
    df = spans(
        speaker=["B", "A", None, "A", "B", "B"],
        start_ms=pd.array([500, 300, 100, 200, None, 50], "Int64"),
        end_ms=pd.array([600, 400, 150, 250, 10, 40], "Int64"),
    )
    timeline = Timeline(df)
    read = {name: np.frombuffer(data, "<i4").tolist() for name, data in timeline._columns.items()}
    assert timeline._names == ["(unknown)", "A", "B"]
    assert read["row"] == [2, 3, 1, 0]
    assert read["first"] == [0, 1, 3, 4]
    assert (read["start"], read["end"]) == ([100, 200, 300, 500], [150, 250, 400, 600])


def test_a_speaker_has_the_colour_of_the_plots(turns):
    """A and B have the first two of the shared colours, whoever speaks first."""
    later = Timeline(turns[turns["speaker"] == "B"].assign(speaker="A"))
    assert [COLORS[n] for n in Timeline(turns)._colors] == list(COLORS[:2])
    assert later._colors == [0]


def test_invalid_input_is_refused_with_a_next_step(turns):
    """Bands of two transcripts, too many lanes, a missing column, another type and a reversed interval raise errors."""
    two = pd.concat([turns, turns.assign(transcript_id="other")])
    with pytest.raises(ValueError, match="bands of Timeline draws one transcript, the DataFrame has 2"):
        Timeline(turns, bands=two)
    assert len(Timeline(two)._names) == 4
    assert len(Timeline(two, by="transcript_id")._names) == 2
    with pytest.raises(ValueError, match="gives 201 lanes, at most 200"):
        Timeline(spans(start_ms=range(201), end_ms=range(1, 202), text=map(str, range(201))), by="text")
    with pytest.raises(ValueError, match="lacks end_ms"):
        Timeline(turns.drop(columns="end_ms"))
    with pytest.raises(TypeError, match="not list"):
        Timeline([])
    with pytest.raises(traitlets.TraitError, match=r"interval must be \[start, end\]"):
        Timeline(turns).interval = [5, 1]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict]] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.seen.append((tag, dict(attrs)))


def test_the_static_html_has_escaped_names_and_every_bar():
    """Speaker names with markup are escaped in the SVG, and every span has a bar."""
    hostile = "\"><script>window.hurt=1</script><img src=x onerror='window.hurt=1'>"
    df = spans(speaker=[hostile, "B"], start_ms=[0, 500], end_ms=[500, 1000])
    timeline = Timeline(df, title=hostile)
    bundle, _ = timeline._repr_mimebundle_()
    tags = Tags()
    tags.feed(bundle["text/html"])
    assert [tag for tag, _ in tags.seen] == ["div", "p", "strong", "img"]
    image = tags.seen[-1][1]
    assert set(image) == {"style", "alt", "src"}
    svg = ET.fromstring(unquote(image["src"].removeprefix("data:image/svg+xml,")))
    assert {element.tag.split("}")[1] for element in svg.iter()} == {"svg", "text", "path"}
    paths = [element.get("d") for element in svg.iter() if element.tag.endswith("path")]
    assert paths == ["M130.0 4h295.0v16h-295.0z", "M425.0 28h295.0v16h-295.0z"]
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_an_empty_dataframe_is_shown():
    """A DataFrame without rows has static HTML and a result."""
    with pytest.warns(PayloadWarning, match="no transcripts were given"):
        timeline = Timeline(voxframe.load_words([]))
    assert timeline.result.empty
    assert "<img" in timeline.static_html()
    assert repr(timeline) == "Timeline(0 spans, 0 lanes, 0:00 to 0:00)"


def test_the_static_html_of_a_million_spans_is_small():
    """For a million rows, the static HTML stays below 50 KB, and no text is sent to the browser."""
    start = np.arange(1_000_000) * 40
    df = spans(speaker=np.where(start % 1200 < 600, "A", "B"), start_ms=start, end_ms=start + 30, text="word")
    timeline = Timeline(df)
    assert len(timeline.static_html()) < 50_000
    assert len(timeline._columns["start"]) == 4_000_000


def test_a_page_is_self_contained_and_runs_no_other_script(turns, tmp_path):
    """The page allows its one script by hash, has no external references, and data cannot close its element."""
    hostile = "</script><script>window.hurt=1</script>"
    timeline = Timeline(turns.assign(text=hostile))
    timeline.names = {"A": hostile}
    timeline.to_html(tmp_path / "t.html")
    page = (tmp_path / "t.html").read_text()
    tags = Tags()
    tags.feed(page)
    assert [tag for tag, _ in tags.seen].count("script") == 2
    assert hostile not in page
    assert not [attrs for _, attrs in tags.seen if "src" in attrs or "href" in attrs]
    policy = next(attrs["content"] for tag, attrs in tags.seen if tag == "meta" and "http-equiv" in attrs)
    assert "default-src 'none'; script-src 'sha256-" in policy
    assert "http" not in policy
