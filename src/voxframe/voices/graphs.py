"""The two networks as ONNX graphs, built from the weights of their official checkpoints.

- Segmentation 3.0 (A. Plaquet and H. Bredin, "Powerset multi-class cross entropy loss for neural speaker diarization",
  Interspeech 2023): sinc filters (M. Ravanelli and Y. Bengio, 2018), two convolutions, four LSTM layers, three linear
  ones.
- CAM++ (H. Wang et al., "CAM++: a fast and efficient network for speaker verification", Interspeech 2023): convolutions
  over time and frequency, three blocks of densely connected layers whose outputs are masked by their context, then mean
  and deviation over time.

A checkpoint of torch is read without torch and without running anything in it: a zip archive in which `*/data.pkl`
describes the objects, and `*/data/KEY` holds the numbers of each storage
(https://docs.pytorch.org/docs/stable/notes/serialization.html). Every class that is not known here becomes an empty
object.
"""

from __future__ import annotations

import collections
import pickle
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Tensors = dict[str, NDArray[Any]]

_DTYPES = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "BoolStorage": "?",
    "ByteStorage": "u1",
}


def read_tensors(path: Path) -> Tensors:
    """Return the tensors of a checkpoint by name; those of `state_dict` if it is a Lightning checkpoint."""
    try:
        with zipfile.ZipFile(path) as archive:
            described = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
            with archive.open(described) as file:
                content = _Reader(file, archive, described.removesuffix("data.pkl")).load()
    except (zipfile.BadZipFile, StopIteration, KeyError, TypeError, pickle.UnpicklingError, EOFError) as error:
        raise ValueError(f"{path} is not a torch checkpoint ({type(error).__name__}: {error})") from error
    return dict(content.get("state_dict", content))


class _Placeholder:
    """Stands for an object of any class that is not a tensor."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __setstate__(self, _: object) -> None: ...

    def __setitem__(self, *_: object) -> None: ...

    def append(self, _: object) -> None: ...

    def extend(self, _: object) -> None: ...


class _Reader(pickle.Unpickler):
    """Unpickler that makes tensors, dictionaries and empty objects only."""

    def __init__(self, file: Any, archive: zipfile.ZipFile, root: str) -> None:
        super().__init__(file)
        self._archive, self._root = archive, root

    def find_class(self, module: str, name: str) -> Callable[..., Any] | type | str:
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if module == "torch" and name in _DTYPES:
            return name
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        return type(name, (_Placeholder,), {})

    def persistent_load(self, reference: Any) -> NDArray[Any]:
        _, kind, key, _, _ = reference
        return np.frombuffer(self._archive.read(f"{self._root}data/{key}"), _DTYPES[kind])


def _tensor(storage: NDArray[Any], offset: int, size: Sequence[int], stride: Sequence[int], *_: object) -> NDArray[Any]:
    """Return a copy of the part of a storage that is a tensor."""
    last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    if min((offset, *stride)) < 0 or last >= len(storage):
        raise pickle.UnpicklingError("a tensor reaches beyond its storage")
    strides = [step * storage.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], size, strides).copy()


_OPSET, _IR_VERSION = 17, 8
_RATE, _LOWEST_HZ = 16_000, 50.0
_GATES = (0, 3, 1, 2)  # torch: input, forget, cell, output; ONNX: input, output, forget, cell


class _Graph:
    """An ONNX graph under construction. Its methods add nodes and return the names of their outputs."""

    def __init__(self, weights: Tensors) -> None:
        self.weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def constant(self, name: str, value: NDArray[Any]) -> str:
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def integers(self, *values: int) -> str:
        return self.constant("_".join(("integers", *map(str, values))), np.array(values, np.int64))

    def weight(self, name: str) -> str:
        return self.constant(name, self.weights[name].astype(np.float32))

    def affine(self, kind: str, x: str, name: str, **attributes: Any) -> str:
        """Add a node whose other inputs are the weight and, if it has one, the bias of a layer."""
        inputs = [f"{name}.{part}" for part in ("weight", "bias") if f"{name}.{part}" in self.weights]
        return self.add(kind, x, *map(self.weight, inputs), **attributes)

    def model(self, output: str, inputs: tuple[str, list[Any]], outputs: tuple[str, list[Any]]) -> onnx.ModelProto:
        self._nodes.append(helper.make_node("Identity", [output], [outputs[0]]))
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (inputs, outputs)]
        graph = helper.make_graph(self._nodes, outputs[0], values[:1], values[1:], list(self._constants.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
        onnx.checker.check_model(model)
        return model


def segmentation(weights: Tensors) -> onnx.ModelProto:
    """Return the graph of Segmentation 3.0.

    Input `sound`: float32 (batch, 1, samples at 16 kHz). Output `classes`: float32 (batch, frames, 7), the
    log-probabilities of each set of up to two of three speakers, one frame per 270 samples.
    """
    graph = _Graph(weights)
    x = graph.affine("InstanceNormalization", "sound", "sincnet.wav_norm1d", epsilon=1e-5)
    for layer in range(3):
        if layer == 0:
            x = graph.add("Abs", graph.add("Conv", x, graph.constant("sinc", _sinc_filters(weights)), strides=[10]))
        else:
            x = graph.affine("Conv", x, f"sincnet.conv1d.{layer}")
        x = graph.add("MaxPool", x, kernel_shape=[3], strides=[3])
        x = graph.affine("InstanceNormalization", x, f"sincnet.norm1d.{layer}", epsilon=1e-5)
        x = graph.add("LeakyRelu", x, alpha=0.01)
    x = graph.add("Transpose", x, perm=[2, 0, 1])
    for layer in range(4):
        x = graph.add("LSTM", x, *_lstm(graph, layer), hidden_size=128, direction="bidirectional")
        x = graph.add("Reshape", graph.add("Transpose", x, perm=[0, 2, 1, 3]), graph.integers(0, 0, -1))
    x = graph.add("Transpose", x, perm=[1, 0, 2])
    for name in ("linear.0", "linear.1", "classifier"):
        product = graph.add("MatMul", x, graph.constant(name, weights[f"{name}.weight"].T.astype(np.float32)))
        x = graph.add("Add", product, graph.weight(f"{name}.bias"))
        if name != "classifier":
            x = graph.add("LeakyRelu", x, alpha=0.01)
    x = graph.add("LogSoftmax", x, axis=-1)
    return graph.model(x, ("sound", ["batch", 1, "samples"]), ("classes", ["batch", "frames", 7]))


def _sinc_filters(weights: Tensors) -> NDArray[np.float32]:
    """Return the band-pass filters, shape (80, 1, 251): 40 even ones, then 40 odd ones."""
    low_hz, band_hz, window, n = (
        weights[f"sincnet.conv1d.0.filterbank.{name}"] for name in ("low_hz_", "band_hz_", "window_", "n_")
    )
    low = _LOWEST_HZ + np.abs(low_hz)
    high = np.clip(low + _LOWEST_HZ + np.abs(band_hz), _LOWEST_HZ, _RATE / 2)
    band = high - low
    lows, highs = low @ n, high @ n
    halves = (
        (np.sin(highs) - np.sin(lows), 2 * band, 1),
        (np.cos(lows) - np.cos(highs), np.zeros_like(band), -1),
    )
    filters = []
    for half, centre, sign in halves:
        left = half / (n / 2) * window
        filters.append(np.concatenate([left, centre, sign * left[:, ::-1]], axis=1) / (2 * band))
    return np.concatenate(filters)[:, None].astype(np.float32)


def _lstm(graph: _Graph, layer: int) -> list[str]:
    """Return the weights of both directions of an LSTM layer: input, recurrent and bias."""

    def gates(name: str) -> NDArray[np.float32]:
        parts = np.split(graph.weights[f"lstm.{name}"], 4)
        return np.concatenate([parts[gate] for gate in _GATES]).astype(np.float32)

    sides = (f"l{layer}", f"l{layer}_reverse")
    biases = [np.concatenate([gates(f"bias_ih_{side}"), gates(f"bias_hh_{side}")]) for side in sides]
    return [
        graph.constant(f"input{layer}", np.stack([gates(f"weight_ih_{side}") for side in sides])),
        graph.constant(f"recurrent{layer}", np.stack([gates(f"weight_hh_{side}") for side in sides])),
        graph.constant(f"bias{layer}", np.stack(biases)),
    ]


def voice_encoder(weights: Tensors) -> onnx.ModelProto:
    """Return the graph of CAM++.

    Input `banks`: float32 (batch, frames at 100 per second, 80), logarithmic filter banks without their mean over time.
    Output `vectors`: float32 (batch, 192), not normalized.
    """
    graph = _Graph(weights)
    x = _head(graph, graph.add("Unsqueeze", graph.add("Transpose", "banks", perm=[0, 2, 1]), graph.integers(1)))
    x = graph.affine("Conv", x, "xvector.tdnn.linear", strides=[2], pads=[2, 2])
    x = _norm_relu(graph, x, "xvector.tdnn.nonlinear.batchnorm")
    for block, (layers, dilation) in enumerate(((12, 1), (24, 2), (16, 2)), 1):
        for layer in range(1, layers + 1):
            x = graph.add("Concat", x, _dense(graph, x, f"xvector.block{block}.tdnnd{layer}.", dilation), axis=1)
        x = _norm_relu(graph, x, f"xvector.transit{block}.nonlinear.batchnorm")
        x = graph.affine("Conv", x, f"xvector.transit{block}.linear")
    x = _norm_relu(graph, x, "xvector.out_nonlinear.batchnorm")
    mean = graph.add("ReduceMean", x, axes=[2], keepdims=1)
    away = graph.add("Sub", x, mean)
    frames = graph.add("Sub", graph.add("Shape", x, start=2, end=3), graph.integers(1))
    squares = graph.add("ReduceSum", graph.add("Mul", away, away), graph.integers(2), keepdims=1)
    deviation = graph.add("Sqrt", graph.add("Div", squares, graph.add("Cast", frames, to=TensorProto.FLOAT)))
    x = graph.affine("Conv", graph.add("Concat", mean, deviation, axis=1), "xvector.dense.linear")
    x = graph.add("Squeeze", _norm(graph, x, "xvector.dense.nonlinear.batchnorm"), graph.integers(2))
    return graph.model(x, ("banks", ["batch", "frames", 80]), ("vectors", ["batch", 192]))


def _head(graph: _Graph, x: str) -> str:
    square: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    x = _norm_relu(graph, graph.affine("Conv", x, "head.conv1", **square), "head.bn1")
    for layer in ("layer1", "layer2"):
        for block, step in ((0, 2), (1, 1)):
            name = f"head.{layer}.{block}."
            y = graph.affine("Conv", x, f"{name}conv1", strides=[step, 1], **square)
            y = graph.affine("Conv", _norm_relu(graph, y, f"{name}bn1"), f"{name}conv2", **square)
            y = _norm(graph, y, f"{name}bn2")
            if f"{name}shortcut.0.weight" in graph.weights:
                x = _norm(graph, graph.affine("Conv", x, f"{name}shortcut.0", strides=[step, 1]), f"{name}shortcut.1")
            x = graph.add("Relu", graph.add("Add", x, y))
    x = graph.affine("Conv", x, "head.conv2", strides=[2, 1], **square)
    return graph.add("Reshape", _norm_relu(graph, x, "head.bn2"), graph.integers(0, 320, -1))


def _dense(graph: _Graph, x: str, name: str, dilation: int) -> str:
    """Add a layer whose output is masked by its context: the mean of all frames plus that of each 100 frames."""
    x = graph.affine("Conv", _norm_relu(graph, x, f"{name}nonlinear1.batchnorm"), f"{name}linear1")
    x = _norm_relu(graph, x, f"{name}nonlinear2.batchnorm")
    local = graph.affine("Conv", x, f"{name}cam_layer.linear_local", dilations=[dilation], pads=[dilation, dilation])
    means = graph.add("AveragePool", x, kernel_shape=[100], strides=[100], ceil_mode=1)
    nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    spread = graph.add("Resize", means, "", graph.constant("scales", np.array([1, 1, 100], np.float32)), **nearest)
    frames = graph.add("Shape", x, start=2, end=3)
    spread = graph.add("Slice", spread, graph.integers(0), frames, graph.integers(2))
    context = graph.add("Add", graph.add("ReduceMean", x, axes=[2], keepdims=1), spread)
    mask = graph.add("Relu", graph.affine("Conv", context, f"{name}cam_layer.linear1"))
    return graph.add("Mul", local, graph.add("Sigmoid", graph.affine("Conv", mask, f"{name}cam_layer.linear2")))


def _norm(graph: _Graph, x: str, name: str) -> str:
    mean = graph.weights[f"{name}.running_mean"]
    scale = graph.weights.get(f"{name}.weight", np.ones_like(mean))
    shift = graph.weights.get(f"{name}.bias", np.zeros_like(mean))
    values = {"scale": scale, "shift": shift, "mean": mean, "variance": graph.weights[f"{name}.running_var"]}
    inputs = [graph.constant(f"{name}:{part}", value.astype(np.float32)) for part, value in values.items()]
    return graph.add("BatchNormalization", x, *inputs, epsilon=1e-5)


def _norm_relu(graph: _Graph, x: str, name: str) -> str:
    return graph.add("Relu", _norm(graph, x, name))
