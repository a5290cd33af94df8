"""A tiny Whisper model that recognizes one fixed sentence in any sound, for tests of the code around a model.

Its output layer only knows the successor of each token. Its attention looks at one half second of sound per token, in
order, starting at 0.5 s.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ctranslate2.specs import WhisperSpec
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

#: In the order of the tokens of real models.
LANGUAGES = (
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml "
    "cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am "
    "yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su"
).split()
_SIZE = 64  # of a vector: more than there are half seconds in a window, or tokens that lead anywhere
_SURE = 30.0  # logit of the token that follows, where all others have 0
_START = "<|startoftranscript|>"


def make(
    folder: Path,
    says: Sequence[str],
    *,
    language: str = "en",
    lead: float = 3.0,
    multilingual: bool = True,
    loops: bool = False,
) -> Path:
    """Write the model.

    Args:
        folder: Where to.
        says: The tokens of its sentence, no two the same; one that begins a word begins with a space.
        language: The language it takes all speech for...
        lead: ...whose logit is by so much greater than that of each other.
        multilingual: Support languages other than English.
        loops: Repeat the sentence until the limit of tokens.
    """
    folder.mkdir(parents=True)
    spelled = [token.replace(" ", "\u0120") for token in says]
    text = list(dict.fromkeys([*sorted(pre_tokenizers.ByteLevel.alphabet()), *spelled]))
    text += [f"<unused {n}>" for n in range(50256 - len(text))]
    text += [""] if multilingual else []  # it is by this that the library knows
    special = ["<|endoftext|>", _START, *(f"<|{code}|>" for code in LANGUAGES), "<|translate|>", "<|transcribe|>"]
    special += ["<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
    tokens = [*text, *special, *(f"<|{n * 0.02:.2f}|>" for n in range(1501))]
    place = {token: n for n, token in enumerate(tokens)}

    spec = _blank(len(tokens))
    end = f"<|{len(says) * 0.5 + 1:.2f}|>"
    after_last = spelled[0] if loops else end
    chain = [*zip(("<|0.00|>", *spelled, end), (*spelled, after_last, "<|endoftext|>"), strict=True)]
    first = [("<|notimestamps|>", spelled[0]), ("<|transcribe|>", "<|0.00|>"), (_START, f"<|{language}|>")]
    if not multilingual:
        first[1:] = [(_START, "<|0.00|>")]
    unit = np.eye(_SIZE, dtype=np.float32)
    peak = (1 - 1 / _SIZE) / np.std(unit[0])  # what a norm makes of the one in a vector of zeros
    for n, (before, after) in enumerate(chain + first):
        spec.decoder.embeddings.weight[place[before], n] = 1
        spec.decoder.projection.weight[place[after], n] = (lead if after == f"<|{language}|>" else _SURE) / peak
        half_second = 1 + (min(n, len(says)) if n < len(chain) else 0)
        spec.decoder.layer[0].attention.linear[0].weight[half_second, n] = 1
    spec.decoder.layer[0].attention.linear[1].weight[:_SIZE] = unit
    spec.encoder.position_encodings.encodings[:] = unit[np.arange(1500) // 25]  # 50 frames a second
    spec.config.lang_ids = [place[f"<|{code}|>"] for code in LANGUAGES]
    spec.config.suppress_ids, spec.config.suppress_ids_begin = [], []
    spec.config.alignment_heads = [(0, 0)]
    spec.register_vocabulary(tokens)
    spec.validate()
    spec.save(str(folder))

    tokenizer = Tokenizer(models.BPE({token: place[token] for token in text}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(tokens[len(text) :])
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def _blank(tokens: int) -> WhisperSpec:
    """A model of one layer that passes on what comes: zeros, but for the scales of its norms."""
    spec = WhisperSpec(1, 2, 1, 2)
    encoder, decoder = spec.encoder, spec.decoder

    def zero(*shape: int) -> Any:
        return np.zeros(shape, np.float32)

    def norm(layer: Any) -> None:
        layer.gamma, layer.beta = zero(_SIZE) + 1, zero(_SIZE)

    def linear(layer: Any, size: int) -> None:
        layer.weight, layer.bias = zero(size, _SIZE), zero(size)

    for conv, channels in ((encoder.conv1, 80), (encoder.conv2, _SIZE)):
        conv.weight, conv.bias = zero(_SIZE, channels, 3), zero(_SIZE)
    for half, places in ((encoder, 1500), (decoder, 448)):
        half.position_encodings.encodings = zero(places, _SIZE)
        norm(half.layer_norm)
        attentions = [(half.layer[0].self_attention, (3 * _SIZE, _SIZE))]
        if half is decoder:
            attentions.append((decoder.layer[0].attention, (_SIZE, 2 * _SIZE, _SIZE)))
        for attention, sizes in attentions:
            norm(attention.layer_norm)
            for layer, size in zip(attention.linear, sizes, strict=True):
                linear(layer, size)
        feed = half.layer[0].ffn
        norm(feed.layer_norm)
        linear(feed.linear_0, _SIZE)
        linear(feed.linear_1, _SIZE)
    decoder.embeddings.weight, decoder.projection.weight = zero(tokens, _SIZE), zero(tokens, _SIZE)
    return spec
