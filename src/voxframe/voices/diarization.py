"""Speakers of a recording: local speakers of short windows, clustered by voice.

1. The segmentation network reads windows of 10 s, one every 2.5 s, and tells up to three local speakers apart.
2. Each local speaker becomes a voice vector, from the frames in which nobody else speaks.
3. Vectors with enough speech are clustered: average linkage of cosine similarity. Other vectors join the closest
   cluster; local speakers of one window never share one.
4. At every frame, the overlapping windows vote for clusters, and the segmentation says how many speak at once. Of
   several, the one in front is who is most likely to speak alone.

Source of the method: H. Bredin, "pyannote.audio 2.1 speaker diarization pipeline", Interspeech 2023.

onnxruntime runs the two networks on one core. Their graphs are built from the official weights at first use, which
takes 3 s, and kept beside them in voxframe's cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from voxframe import models
from voxframe.errors import MissingExtraError
from voxframe.options import MAX_SPEAKERS
from voxframe.settings import plugin

Floats = NDArray[np.float32]

#: Samples per second of all sound in this package.
RATE = 16_000
#: Number of columns of voice vectors.
SIZE = 192
#: Seconds per frame of the segmentation.
FRAME_S = 270 / RATE
#: Frames of filter banks per second.
BANKS_PER_S = 100

_SETS = ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2))  # the speakers of each class of the segmentation
_SPEAKING = np.array([[speaker in group for speaker in range(3)] for group in _SETS], np.float32)
_LENGTH, _HOP, _FFT, _BANDS = 400, RATE // BANKS_PER_S, 512, 80
_LOWEST_HZ, _HIGHEST_HZ = 20.0, RATE / 2
_VERSION = 1  # of the graphs


class VoiceNetworks:
    """Both networks, from a folder with `segmentation.onnx` and `voice.onnx`."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # its blocks for the largest input stay with the process
        self._segmentation, self._voice = (
            onnxruntime.InferenceSession(str(folder / name), options, providers=["CPUExecutionProvider"])
            for name in ("segmentation.onnx", "voice.onnx")
        )

    def segment(self, windows: Floats) -> Floats:
        """Return the probabilities that each of three local speakers speaks, and that they speak alone.

        The windows are sound, -1 to 1, of shape (windows, samples); the result has the shape (windows, 2, frames, 3).
        Which speaker has which column differs between windows.
        """
        classes = np.exp(self._segmentation.run(None, {"sound": windows[:, None]})[0])
        return np.stack([classes @ _SPEAKING, classes[:, :, 1:4]], axis=1)

    def encode(self, banks: Floats) -> Floats:
        """Return the vector of length 1, shape (192,), of the voice in filter banks of shape (20 or more, 80)."""
        vector = self._voice.run(None, {"banks": (banks - banks.mean(axis=0))[None]})[0][0]
        return np.asarray(vector / np.linalg.norm(vector))


@cache
def load() -> VoiceNetworks:
    """Return the networks, one pair per process. Downloads nothing."""
    return VoiceNetworks(built())


def built() -> Path:
    """Return the folder with the graphs; build them if that was not done before, or if they are damaged."""
    if find_spec("onnxruntime") is None or find_spec("onnx") is None:
        raise MissingExtraError("local", "Telling voices apart")
    return models.derived(models.VOICES, _VERSION, _save, size=34_000_000)


def _save(source: Path, folder: Path) -> None:
    """Build the graphs."""
    import onnx

    from voxframe.voices import graphs
    from voxframe.voices.graphs import read_tensors

    onnx.save(graphs.segmentation(read_tensors(source / models.SEGMENTATION_FILE)), folder / "segmentation.onnx")
    onnx.save(graphs.voice_encoder(read_tensors(source / models.VOICES_FILE)), folder / "voice.onnx")


def filter_banks(sound: NDArray[np.int16]) -> Floats:
    """Return logarithmic mel filter banks as Kaldi computes them, without dither, for mono sound of 16 kHz.

    The array has the shape (frames, 80). Row n covers the 25 ms from 10 n ms; less than 25 ms of sound has no rows.
    Source: https://kaldi-asr.org/doc/feat.html, with its defaults except 80 bands at 16 kHz.
    """
    if len(sound) < _LENGTH:
        return np.zeros((0, _BANDS), np.float32)
    window, bands = _tables()
    frames = np.lib.stride_tricks.sliding_window_view(sound.astype(np.float32), _LENGTH)[::_HOP]
    frames = frames - frames.mean(axis=1, keepdims=True)
    frames = frames - np.float32(0.97) * np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    spectrum = np.fft.rfft(frames * window, _FFT)[:, : _FFT // 2]
    power = spectrum.real**2 + spectrum.imag**2
    return np.asarray(np.log(np.maximum(power.astype(np.float32) @ bands, np.finfo(np.float32).eps)), np.float32)


@cache
def _tables() -> tuple[Floats, Floats]:
    """Return Kaldi's window (a power of a Hann window), and its mel filters of shape (bins, bands)."""
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_LENGTH) / (_LENGTH - 1))) ** 0.85

    def mel(hertz: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(1127 * np.log(1 + hertz / 700))

    lowest, highest = mel(np.array([_LOWEST_HZ, _HIGHEST_HZ]))
    edges = np.linspace(lowest, highest, _BANDS + 2)
    bins = mel(np.arange(_FFT // 2) * RATE / _FFT)[:, None]
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return window.astype(np.float32), np.maximum(0, np.minimum(rising, falling)).astype(np.float32)


_WINDOW, _STEP = 10 * RATE, 5 * RATE // 2
_ENOUGH_S = 60.0  # of speech for the vector of a speaker whose spans are known
_BATCH = 4  # windows segmented at once
_LONGEST_S = 3.0  # of the speech behind a vector
_SHORTEST_S = 0.25
_ALONE_S = 0.4  # with less speech alone, a vector is made of speech beside others
_SURE_S = 0.6  # speech alone of a vector that is clustered
_MERGED = 0.42  # cosine similarity of two clusters above which they are one speaker
_HEARD = 0.03  # share of all speech below which a cluster is no speaker, within limits in seconds
_GIVEN = 0.3  # share of that length that is enough if the number of speakers is given
_HEARD_LEAST_S, _HEARD_MOST_S = 0.5, 3.0
_ROUNDED = 0.55  # added to the mean number of people who speak at once, before it is rounded down
_GAP_S = 0.25  # shorter pauses of a speaker are filled
_TURN_S = 0.2  # shorter spans are noise
_MOST = 2000  # vectors clustered at once; of more, similar ones near each other are joined first
_NEAR = 1000  # vectors in a row among which they are joined
_SIMILAR = 0.75  # their cosine similarity


class Span(NamedTuple):
    """Speech of one speaker.

    Attributes:
        start_ms: Start time, in ms.
        end_ms: End time.
        speaker: Number of the speaker, from 0 in order of first speech.
    """

    start_ms: int
    end_ms: int
    speaker: int


class Diarization(NamedTuple):
    """The speech of each speaker of a recording.

    Attributes:
        spans: Spans ordered by start. Those of different speakers may overlap.
        vectors: One voice vector of length 1 per speaker, float32, shape (speakers, columns).
        front: Spans without overlap: who is heard best while several speak. Empty if that is not known.
    """

    spans: list[Span]
    vectors: NDArray[np.float32]
    front: Sequence[Span] = ()


class Diarizer(Protocol):
    """Interface of a diarizer: a function that tells the speakers of a recording apart.

    `diarize` is built in. Another package adds one by naming it in the entry point group `voxframe.diarizers`; the
    environment variable `VOXFRAME_DIARIZER` chooses it:

        [project.entry-points."voxframe.diarizers"]
        parrot = "my_package:diarize"
    """

    def __call__(self, blocks: Iterable[NDArray[np.int16]], speakers: int | None = None) -> Diarization:
        """Return the spans and voice vectors of a recording: mono, 16 kHz, in pieces of any length."""
        ...


def find(name: str | None = None) -> Diarizer:
    """Return a diarizer by name. None (default): the one that `VOXFRAME_DIARIZER` names, else the one built in."""
    return cast("Diarizer", plugin("diarizer", name, "voices") or diarize)


@dataclass
class LocalSpeaker:
    """A speaker of one window."""

    window: int
    column: int
    seconds: float  # of speech in its vector, before it was cut to the longest length
    alone: bool
    vector: Floats


def diarize(blocks: Iterable[NDArray[np.int16]], speakers: int | None = None) -> Diarization:
    """Tell the speakers of a recording apart; see `Diarizer`."""
    networks = load()
    active: list[Floats] = []
    local: list[LocalSpeaker] = []

    def read(windows: list[tuple[NDArray[np.int16], Floats]]) -> None:
        sounds = np.stack([sound for sound, _ in windows]).astype(np.float32) / np.float32(32768)
        for (_, banks), speech in zip(windows, networks.segment(sounds), strict=True):
            local.extend(_local_speakers(networks, len(active), banks, speech[0]))
            active.append(speech)

    batch: list[tuple[NDArray[np.int16], Floats]] = []
    for window in _windows(blocks):
        if batch and (len(batch) == _BATCH or len(window[0]) != len(batch[0][0])):
            read(batch)
            batch.clear()
        batch.append(window)
    if batch:
        read(batch)
    return assemble(active, local, speakers)


def _windows(blocks: Iterable[NDArray[np.int16]]) -> Iterator[tuple[NDArray[np.int16], Floats]]:
    """Yield the sound and the filter banks of each window. Window n starts at n * _STEP; the last may be shorter."""
    sound, banks = np.zeros(0, np.int16), filter_banks(np.zeros(0, np.int16))
    hop, first = RATE // BANKS_PER_S, True

    def window(part: NDArray[np.int16]) -> tuple[NDArray[np.int16], Floats]:
        return part, np.concatenate([banks, filter_banks(part[len(banks) * hop :])])

    for block in blocks:
        sound = np.concatenate([sound, block])
        while len(sound) >= _WINDOW:
            part, banks = window(sound[:_WINDOW])
            yield part, banks
            sound, banks, first = sound[_STEP:], banks[_STEP // hop :], False
    if len(sound) > (_SHORTEST_S * RATE if first else _WINDOW - _STEP):
        yield window(sound)


def _local_speakers(networks: VoiceNetworks, window: int, banks: Floats, speech: Floats) -> Iterator[LocalSpeaker]:
    """Yield the speakers of a window who speak long enough for a vector."""
    speaking = speech > 0.5
    alone = speaking & (speaking.sum(axis=1, keepdims=True) == 1)
    for column in range(speech.shape[1]):
        is_alone = alone[:, column].sum() * FRAME_S >= _ALONE_S
        frames = np.flatnonzero((alone if is_alone else speaking)[:, column])
        seconds = len(frames) * FRAME_S
        if seconds < _SHORTEST_S:
            continue
        runs = np.split(frames, np.flatnonzero(np.diff(frames) > 1) + 1)
        runs.sort(key=len, reverse=True)
        frames = np.sort(np.concatenate(runs)[: round(_LONGEST_S / FRAME_S)])
        rows = np.unique((frames[:, None] * FRAME_S * BANKS_PER_S + np.arange(2)).astype(int))
        vector = networks.encode(banks[rows[rows < len(banks)]])
        yield LocalSpeaker(window, column, seconds, bool(is_alone), vector)


def assemble(active: Sequence[Floats], local: Sequence[LocalSpeaker], speakers: int | None) -> Diarization:
    """Return the spans and vectors of the speakers of a recording.

    Args:
        active: Probabilities that each local speaker speaks, and speaks alone: shape (2, frames, 3) per window.
        local: The local speakers.
        speakers: Number of speakers, if it is known.
    """
    if not local:
        return Diarization([], np.zeros((0, SIZE), np.float32))
    centres = _centres(local, speakers)
    firsts = [round(window * _STEP / RATE / FRAME_S) for window in range(len(active))]
    frames = max(first + speech.shape[1] for first, speech in zip(firsts, active, strict=True))
    at_once, seen = np.zeros(frames, np.float32), np.zeros(frames, np.float32)
    for first, speech in zip(firsts, active, strict=True):
        seen[first : first + speech.shape[1]] += 1
        at_once[first : first + speech.shape[1]] += speech[0].sum(axis=1)
    votes = np.zeros((2, frames, len(centres)), np.float32)
    for speaker, cluster in _assigned(local, centres):
        speech, first = active[speaker.window], firsts[speaker.window]
        votes[:, first : first + speech.shape[1], cluster] += speech[:, :, speaker.column]
    count = np.floor(at_once / seen + _ROUNDED).astype(int)
    rank = np.argsort(np.argsort(-votes[0], axis=1, kind="stable"), axis=1)
    return _ordered((rank < count[:, None]) & (votes[0] > 0), votes[1], centres)


def _centres(local: Sequence[LocalSpeaker], speakers: int | None) -> Floats:
    """Return the mean vector of each speaker of a recording."""
    sure = [speaker for speaker in local if speaker.alone and speaker.seconds >= _SURE_S] or list(local)
    vectors = np.stack([speaker.vector for speaker in sure])
    seconds = np.array([speaker.seconds for speaker in sure]) * _STEP / _WINDOW  # each moment is in several windows
    joined = _joined(vectors)
    labels = _clusters(_means(vectors, joined), np.bincount(joined, seconds).astype(float), speakers)[joined]
    return _means(vectors[labels >= 0], labels[labels >= 0])


def _means(vectors: Floats, labels: NDArray[np.int64]) -> Floats:
    """Return the mean of each label's vectors, of length 1."""
    sums = np.zeros((labels.max() + 1, vectors.shape[1]), np.float32)
    np.add.at(sums, labels, vectors)
    return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True))


def _joined(vectors: Floats) -> NDArray[np.int64]:
    """Return numbers that vectors share if they are near each other in time and similar. Few stay as they are."""
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(vectors) <= _MOST:
        return np.arange(len(vectors))
    numbers: list[NDArray[np.int64]] = []
    for part in np.array_split(vectors, -(-len(vectors) // _NEAR)):
        labels = fcluster(linkage(part, "average", "cosine"), 1 - _SIMILAR, "distance") - 1
        numbers.append(labels + (numbers[-1].max() + 1 if numbers else 0))
    return np.concatenate(numbers)


def _clusters(vectors: Floats, seconds: NDArray[np.float64], speakers: int | None) -> NDArray[np.int64]:
    """Return the number of the speaker of each vector, -1 if its cluster is too short for a speaker.

    With a number of speakers, the tree of clusters is cut where that many are long enough.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(vectors) == 1 or speakers == 1:
        return np.zeros(len(vectors), np.int64)
    tree = linkage(vectors, "average", "cosine")
    least = float(np.clip(_HEARD * seconds.sum(), _HEARD_LEAST_S, _HEARD_MOST_S))
    labels = fcluster(tree, 1 - _MERGED, "distance")
    if speakers is not None:
        cuts = [fcluster(tree, count, "maxclust") for count in range(speakers, min(len(vectors), 8 * speakers) + 1)]
        lengths = [np.sort(np.bincount(cut, seconds, speakers + 1))[-speakers] for cut in cuts]
        enough = [cut for cut, length in zip(cuts, lengths, strict=True) if length >= least * _GIVEN]
        labels = enough[0] if enough else cuts[int(np.argmax(lengths))] if cuts else np.arange(1, len(vectors) + 1)
    spoken = np.bincount(labels, seconds)
    order = np.argsort(-spoken, kind="stable")
    kept = order[: speakers or min(MAX_SPEAKERS, max(1, int((spoken >= least).sum())))]
    numbers = np.full(len(spoken), -1)
    numbers[kept] = np.arange(len(kept))
    return np.asarray(numbers[labels], np.int64)


def _assigned(local: Sequence[LocalSpeaker], centres: Floats) -> Iterator[tuple[LocalSpeaker, int]]:
    """Yield each local speaker with its cluster. Two of a window have the same one only if there are too few."""
    from scipy.optimize import linear_sum_assignment

    for _, group in groupby(local, key=lambda speaker: speaker.window):
        speakers = list(group)
        likeness = np.stack([speaker.vector for speaker in speakers]) @ centres.T
        if len(speakers) <= len(centres):
            rows, columns = linear_sum_assignment(-likeness)
        else:
            rows, columns = np.arange(len(speakers)), likeness.argmax(axis=1)
        yield from ((speakers[row], int(column)) for row, column in zip(rows, columns, strict=True))


def _ordered(speaking: NDArray[np.bool_], alone: Floats, centres: Floats) -> Diarization:
    """Return the spans of frames, with the speakers numbered in order of first speech."""
    gap, least = round(_GAP_S / FRAME_S), round(_TURN_S / FRAME_S)
    spans = sorted((start, end, speaker) for start, end, speaker in _runs(speaking, gap) if end - start >= least)
    kept = np.zeros_like(speaking)
    for start, end, speaker in spans:
        kept[start:end, speaker] = True
    best = np.where(kept, alone, -1).argmax(axis=1)[:, None]
    front = _runs(kept & (best == np.arange(len(centres))), 1)
    numbers = {speaker: number for number, speaker in enumerate(dict.fromkeys(speaker for _, _, speaker in spans))}

    def timed(runs: Iterable[tuple[int, int, int]]) -> list[Span]:
        to_ms = 1000 * FRAME_S
        return [Span(round(start * to_ms), round(end * to_ms), numbers[speaker]) for start, end, speaker in runs]

    return Diarization(timed(spans), centres[list(numbers)], timed(sorted(front)))


def _runs(mask: NDArray[np.bool_], gap: int) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and column of the runs of True in each column. Shorter gaps than `gap` are filled."""
    for column, values in enumerate(mask.T):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], values, [False]]).astype(np.int8))).reshape(-1, 2)
        if len(edges):
            breaks = np.flatnonzero(edges[1:, 0] - edges[:-1, 1] >= gap)
            starts, ends = edges[np.r_[0, breaks + 1], 0], edges[np.r_[breaks, len(edges) - 1], 1]
            yield from ((int(start), int(end), column) for start, end in zip(starts, ends, strict=True))


def speaker_vectors(blocks: Iterable[NDArray[np.int16]], spans: Sequence[Span], count: int | None = None) -> Floats:
    """Return the voice vector of each speaker, numbered from 0, from the spans in which nobody else speaks.

    The array has the shape (speakers, 192) and rows of length 1; NaN for a speaker with less than 0.25 s alone.
    """
    if count is None:
        count = max((span.speaker for span in spans), default=-1) + 1
    rows: list[list[Floats]] = [[] for _ in range(count)]
    lengths = [0] * count
    alone = _alone(spans)
    position = 0
    for block in blocks:
        first, banks = round(position * BANKS_PER_S / RATE), filter_banks(block)
        for start, end, speaker in alone:
            part = banks[max(0, start * BANKS_PER_S // 1000 - first) : max(0, end * BANKS_PER_S // 1000 - first)]
            if len(part) and lengths[speaker] < _ENOUGH_S * BANKS_PER_S:
                rows[speaker].append(part)
                lengths[speaker] += len(part)
        position += len(block)
    vectors = np.full((count, SIZE), np.nan, np.float32)
    size, least = round(_LONGEST_S * BANKS_PER_S), round(_SHORTEST_S * BANKS_PER_S)
    for speaker, parts in enumerate(rows):
        if lengths[speaker] >= least:
            banks = np.concatenate(parts)
            pieces = np.array_split(banks, -(-len(banks) // size))
            mean = np.mean([load().encode(piece) for piece in pieces], axis=0)
            vectors[speaker] = mean / np.linalg.norm(mean)
    return vectors


def _alone(spans: Sequence[Span]) -> list[Span]:
    """Return the parts of spans in which one speaker speaks, in order."""
    edges = sorted(
        [(span.start_ms, 1, span.speaker) for span in spans] + [(span.end_ms, -1, span.speaker) for span in spans]
    )
    speaking: Counter[int] = Counter()
    parts = []
    for (time, step, speaker), (following, _, _) in pairwise(edges):
        speaking[speaker] += step
        if not speaking[speaker]:
            del speaking[speaker]
        if following > time and len(speaking) == 1:
            parts.append(Span(time, following, next(iter(speaking))))
    return parts


def spans_of(times: Sequence[tuple[int | None, int | None]], voices: Diarization) -> list[int]:
    """Return the index of the span that each word, given by its times in ms, is in; -1 if there are no spans.

    A word goes to who speaks in most of it, and of several who speak at once, to the one in front. If two speak in it
    equally, it goes to the speaker of the word before, and so does a word without times. A word outside all spans goes
    to the nearest.
    """
    spans, front = (np.array(part, np.int64).reshape(-1, 3) for part in (voices.spans, voices.front or voices.spans))
    indexes, index = [], -1
    for start, end in times:
        if len(spans) and start is not None and end is not None:
            spoken = np.bincount(front[:, 2], np.maximum(0, _shared(front, start, end)))
            if spoken.max() > 0:
                before = int(spans[index, 2]) if index >= 0 else -1
                speaker = before if before >= 0 and spoken[before] == spoken.max() else spoken.argmax()
                index = int(np.where(spans[:, 2] == speaker, _shared(spans, start, end), -np.inf).argmax())
            else:
                index = int(_shared(spans, start, end).argmax())
        indexes.append(index)
    return indexes


def share_heard(times: Sequence[tuple[int | None, int | None]], spans: Sequence[Span]) -> float:
    """Return the share of the words during which somebody speaks. Words without times count as not heard."""
    arrays = np.array(spans, np.int64).reshape(-1, 3)
    timed = [(start, end) for start, end in times if start is not None and end is not None and len(arrays)]
    heard = sum(bool(_shared(arrays, start, end).max() > 0) for start, end in timed)
    return heard / max(len(times), 1)


def _shared(spans: NDArray[np.int64], start: int, end: int) -> NDArray[np.int64]:
    """Return the time that spans share with a word, in ms; negative: their distance."""
    return np.asarray(np.minimum(spans[:, 1], end) - np.maximum(spans[:, 0], start))


def labels_of(indexes: Sequence[int], spans: Sequence[Span]) -> list[str]:
    """Return the label of the speaker of each word: "A" for the speaker of the first word, then "B", and so on."""
    numbers: dict[int, int] = {}
    speakers = [spans[index].speaker if index >= 0 else 0 for index in indexes]
    return [label(numbers.setdefault(speaker, len(numbers))) for speaker in speakers]


def turns_of(speakers: Sequence[str | None], spans: Sequence[int | None]) -> list[int]:
    """Return the number of the turn of each word, given its speaker, and its span as `spans_of` returns it, if known.

    A turn ends at a word of another speaker, unless its own span goes on meanwhile: then turns overlap.
    """
    latest: dict[str | None, tuple[int, int | None]] = {}  # turn and span of the last word of each speaker
    turns, count = list[int](), 0
    for n, (speaker, span) in enumerate(zip(speakers, spans, strict=True)):
        goes_on = speaker in latest and (
            speakers[n - 1] == speaker or (span is not None and span == latest[speaker][1])
        )
        turns.append(latest[speaker][0] if goes_on else count)
        count += not goes_on
        latest[speaker] = turns[-1], span
    return turns


def label(speaker: int) -> str:
    """Return the label of a speaker: "A" to "Z", then "S26", "S27", ...

    Example:
        >>> label(0), label(3)
        ('A', 'D')
    """
    return chr(ord("A") + speaker) if speaker < 26 else f"S{speaker}"
