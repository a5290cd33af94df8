"""Reading of GGUF files that are written here byte by byte."""

import struct
from pathlib import Path

import numpy as np

from voxframe.models.gguf import GGUFFile

TEXT, UINT32, FLOAT32, LIST = 8, 4, 6, 9
F32, Q4_K, Q6_K = 0, 12, 14


def text(value: str) -> bytes:
    """Text of the format: its length and its bytes."""
    return struct.pack("<Q", len(value.encode())) + value.encode()


def write(path: Path, tensors: list[tuple[str, list[int], int, bytes]]) -> Path:
    """Write a file with a few settings and the given tensors: name, dimensions (fastest first), layout and data."""
    settings = text("model.layers") + struct.pack("<II", UINT32, 28)
    settings += text("model.epsilon") + struct.pack("<If", FLOAT32, 0.5)
    settings += text("tokens") + struct.pack("<IIQ", LIST, TEXT, 2) + text("Ġé") + text("b")
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 3) + settings
    data = b""
    for name, shape, layout, content in tensors:
        data += bytes(-len(data) % 32)
        header += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, layout, len(data))
        data += content
    path.write_bytes(header + bytes(-len(header) % 32) + data)
    return path


def q4_k(block: bytes) -> list[float]:
    """The 256 weights of a block, one by one, as llama.cpp's reference describes the layout."""
    scale, least = struct.unpack("<2e", block[:4])
    packed, halves = block[4:16], block[16:]
    weights = []
    for part in range(8):
        if part < 4:
            factor, minimum = packed[part] & 63, packed[part + 4] & 63
        else:
            factor = (packed[part + 4] & 15) | (packed[part - 4] >> 6 << 4)
            minimum = (packed[part + 4] >> 4) | (packed[part] >> 6 << 4)
        shared = halves[part // 2 * 32 : part // 2 * 32 + 32]
        numbers = [byte >> 4 if part % 2 else byte & 15 for byte in shared]
        weights += [scale * factor * number - least * minimum for number in numbers]
    return weights


def q6_k(block: bytes) -> list[float]:
    """The same for 6 bits."""
    low, high, scales = block[:128], block[128:192], struct.unpack("<16b", block[192:208])
    (scale,) = struct.unpack("<e", block[208:])
    weights = []
    for at in range(256):
        half, within = divmod(at, 128)
        quarter, place = divmod(within, 32)
        four = low[half * 64 + (quarter % 2) * 32 + place] >> (4 if quarter >= 2 else 0) & 15
        two = high[half * 32 + place] >> (2 * quarter) & 3
        weights.append(scale * scales[at // 16] * ((four | two << 4) - 32))
    return weights


def test_settings_and_weights_of_every_layout(tmp_path: Path) -> None:
    """Numbers, text and lists of the settings, and 4-, 6- and 32-bit weights, are those that were written."""
    some = np.random.default_rng(1)
    four = [struct.pack("<2e", 0.25, 0.5) + some.bytes(140) for _ in range(6)]
    six = [some.bytes(208) + struct.pack("<e", 0.125) for _ in range(2)]
    file = GGUFFile(
        write(
            tmp_path / "model.gguf",
            [
                ("norm", [3], F32, struct.pack("<3f", 1, 2.5, -3)),
                ("four", [512, 3], Q4_K, b"".join(four)),
                ("six", [256, 2], Q6_K, b"".join(six)),
            ],
        )
    )
    assert file.settings == {"model.layers": 28, "model.epsilon": 0.5, "tokens": ["Ġé", "b"]}
    np.testing.assert_array_equal(file["norm"], np.array([1, 2.5, -3], np.float32))
    expected = np.array([weight for block in four for weight in q4_k(block)], np.float32).reshape(3, 512)
    np.testing.assert_allclose(file["four"], expected, rtol=1e-6)
    expected = np.array([weight for block in six for weight in q6_k(block)], np.float32).reshape(2, 256)
    np.testing.assert_allclose(file["six"], expected, rtol=1e-6)
    assert file["four"].dtype == np.float32
