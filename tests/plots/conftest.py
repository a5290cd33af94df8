"""Fixture for plots: texts of a figure."""

from collections.abc import Callable
from itertools import combinations

import matplotlib as mpl
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

mpl.use("agg")


@pytest.fixture
def texts_of() -> Callable[[Axes], list[Text]]:
    """Draw the figure of some Axes and return its visible texts, after a check that none is cut off or covered."""

    def check(ax: Axes) -> list[Text]:
        figure = ax.get_figure(root=True)
        figure.canvas.draw()
        hidden = set()
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            hidden |= {id(tick.label1) for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high}
        seen = [
            text
            for text in figure.findobj(Text)
            if text.get_visible() and text.get_text().strip() and id(text) not in hidden
        ]
        boxes = [(text, text.get_window_extent()) for text in seen]
        for text, box in boxes:
            assert figure.bbox.x0 - 1 <= box.x0, text
            assert box.x1 <= figure.bbox.x1 + 1, text
            assert figure.bbox.y0 - 1 <= box.y0, text
            assert box.y1 <= figure.bbox.y1 + 1, text
        for (one, a), (other, b) in combinations(boxes, 2):
            apart = a.x1 <= b.x0 + 1 or b.x1 <= a.x0 + 1 or a.y1 <= b.y0 + 2 or b.y1 <= a.y0 + 2
            assert apart, (one, other)
        return seen

    return check
