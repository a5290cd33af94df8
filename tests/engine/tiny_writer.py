"""A language model of 100 kB with random weights, for the real runtime: it reads anything and writes gibberish."""

from pathlib import Path

import numpy as np
import pytest

gguf = pytest.importorskip("gguf")
pytest.importorskip("xllamacpp")

_EMBEDDING, _HEADS, _FORWARD, _CONTEXT = 32, 2, 64, 4096


def write_model(path: Path, seed: int = 7) -> Path:
    """Write a GGUF file with one layer and a token for each byte."""
    words = [f"\u2581{word}" for word in "the of and to in that it is was for on are with they be at one have".split()]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
    kinds += [gguf.TokenType.NORMAL] * len(words)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(_CONTEXT)
    writer.add_embedding_length(_EMBEDDING)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_FORWARD)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_EMBEDDING // _HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(n) for n in range(len(tokens))])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    random = np.random.default_rng(seed)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, random.normal(0, 0.5, shape).astype(np.float32))

    add("token_embd.weight", len(tokens), _EMBEDDING)
    add("output.weight", len(tokens), _EMBEDDING)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(_EMBEDDING, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        add(f"blk.0.{name}.weight", _EMBEDDING, _EMBEDDING)
    add("blk.0.ffn_gate.weight", _FORWARD, _EMBEDDING)
    add("blk.0.ffn_up.weight", _FORWARD, _EMBEDDING)
    add("blk.0.ffn_down.weight", _EMBEDDING, _FORWARD)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
