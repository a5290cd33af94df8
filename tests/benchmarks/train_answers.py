"""Fit the model that finds answers: `python -m tests.benchmarks train_answers` writes its weights.

It needs `pip install torch transformers` and an hour on two cores; how far it comes depends on their speed. The texts
and questions are those of tests/engine/analyses/labelled/answers_training, which were written for it,
answers_training.txt and answers_dev.txt.

The weights of the package come from three runs, the second and third each from the weights before (`--start`): 45
minutes with a rate of 1.5e-3, without dropout and without the files details, explained, life_interviews,
phone_and_shops and working_meetings; 15 minutes with a rate of 5e-4 and the first two of these; 56 minutes with a rate
of 7e-4 and all. In the last two, the mean of the weights over about the last 100 steps was kept, the numbers `parts`,
`beside` and `nothing` had 20 times the rate, and other programs used half of the processor.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from tests.benchmarks import labelled, meaning
from voxframe import models
from voxframe_engine.answers import is_question
from voxframe_engine.answers.ranking import BEFORE, BEGIN, BLOCK, END, WEIGHTS

_RANK = 16  # of the changes of a matrix
_SIZE = 128  # of the vector of a token
_WARM_UP = 30  # steps until the greatest rate is reached
_DROPOUT = 0.1  # without it, the model learns the texts by heart
_TOGETHER = 2  # texts per step: the sentences of one are wrong answers to the questions about the other
_LONGEST = 44  # tokens of a sentence
_ROWS = 16  # sequences of tokens that are encoded together
_WITHOUT_TEXT = 0.3  # weight of questions without the text that they are about


class Text(NamedTuple):
    """Sentences, and questions with the places of their answers; none if the text does not answer it."""

    sentences: list[str]
    questions: list[tuple[str, list[int]]]


def texts() -> list[Text]:
    """Return the texts to learn from."""
    folder = labelled.LABELLED / "answers_training"
    names = [
        "answers_training.txt",
        "answers_dev.txt",
        *(f"{folder.name}/{path.name}" for path in folder.glob("*.txt")),
    ]
    return [
        Text([line.text for line in lines], [(question, _places(lines, gold)) for question, *gold in questions])
        for name in sorted(names)
        for lines, questions in meaning.conversations(name)
    ]


def _places(lines: Sequence[Any], gold: Sequence[str]) -> list[int]:
    if gold == ["-"]:
        return []
    return [at for at, line in enumerate(lines) if any(words.lower() in line.text.lower() for words in gold)]


class _Changed(nn.Module):
    """A linear layer with a change of low rank (LoRA: Hu and others, 2021)."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer
        layer.weight.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(_RANK, layer.in_features) / math.sqrt(layer.in_features))
        self.up = nn.Parameter(torch.zeros(layer.out_features, _RANK))

    def forward(self, rows: Tensor) -> Tensor:
        return self.layer(rows) + functional.linear(functional.linear(rows, self.down), self.up)


class Model(nn.Module):
    """The model of `voxframe_engine.answers.ranking`, to be fitted."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.official = load_file(folder / "model.safetensors")
        config = transformers.BertConfig.from_pretrained(folder)
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = _DROPOUT
        self.bert = transformers.BertModel(config, add_pooling_layer=False)
        loaded = self.bert.load_state_dict(self.official, strict=False)  # it also has a pooler
        assert not loaded.missing_keys
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.bert.embeddings.requires_grad_(False)
        for layer in self.bert.encoder.layer:
            attention = layer.attention.self
            for name in ("query", "key", "value"):
                setattr(attention, name, _Changed(getattr(attention, name)))
            for part in (layer.attention.output, layer.intermediate, layer.output):
                part.dense = _Changed(part.dense)
        width = config.hidden_size
        self.projection = nn.Linear(width, _SIZE, bias=False)
        nn.init.orthogonal_(self.projection.weight)
        self.importance = nn.Parameter(torch.zeros(width))
        self.parts = nn.Parameter(torch.tensor([10.0, 10.0]))
        self.beside = nn.Parameter(torch.tensor([0.2, 0.1, 0.3, -1.0]))
        self.nothing = nn.Parameter(torch.tensor([*[0.0] * width, 8.0]))

    def forward(self, questions: Sequence[str], found: Sequence[Text]) -> Tensor:
        """Return a logit for each question and each sentence of the texts, and for none of them."""
        asked, known = self._states([[BEGIN, *self._tokens(one), END] for one in questions])
        said, here = self._sentences([one.sentences for one in found])
        alike = torch.einsum("qad,snd->qsan", self._projected(asked), self._projected(said))
        best = alike.masked_fill(~here[None, :, None], -1).amax(-1)
        weights = torch.exp(asked @ self.importance).masked_fill(~known, 0)
        own = self.parts[0] * (best * (weights / weights.sum(-1, keepdim=True))[:, None]).sum(-1)
        own = own + self.parts[1] * _mean(asked, known) @ _mean(said, here).T
        asks = torch.tensor([is_question(one) for text in found for one in text.sentences])
        is_first = torch.cat([torch.arange(len(text.sentences)) for text in found]) == 0
        before = torch.where(is_first, own, own.roll(1, 1))
        after = torch.where(is_first.roll(-1), own, own.roll(-1, 1))
        after_question = (asks.roll(1) & ~is_first).float()
        by_before, by_after, by_question, by_form = self.beside
        total = own + (by_before + by_question * after_question) * (before - own) + by_after * (after - own)
        nothing = asked[:, 0] @ self.nothing[:-1] + self.nothing[-1]
        return torch.cat([total + by_form * asks, nothing[:, None]], 1)

    def _sentences(self, found: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Return the states of the tokens of each sentence of all texts, encoded in blocks."""
        rows: list[list[int]] = []
        spans = []  # row, start and end of each sentence
        for sentences in found:
            tokens = [self._tokens(one) for one in sentences]
            for start in range(0, len(tokens), BLOCK):
                row = [BEGIN, *(number for one in tokens[max(start - BEFORE, 0) : start] for number in one)]
                for one in tokens[start : start + BLOCK]:
                    spans.append((len(rows), len(row), len(row) + len(one)))
                    row += one
                rows.append([*row, END])
        states, _ = self._states(rows)
        longest = max(end - start for _, start, end in spans)
        said = torch.stack([functional.pad(states[r, a:b], (0, 0, 0, longest - (b - a))) for r, a, b in spans])
        here = torch.arange(longest)[None] < torch.tensor([end - start for _, start, end in spans])[:, None]
        return said, here

    def _states(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Return the states of the tokens of each row, and which are tokens. Rows of similar length go together."""
        longest = max(map(len, rows))
        here = torch.zeros(len(rows), longest, dtype=torch.bool)
        numbers = torch.zeros(here.shape, dtype=torch.long)
        for place, row in enumerate(rows):
            numbers[place, : len(row)], here[place, : len(row)] = torch.tensor(row), True
        states, order = [], sorted(range(len(rows)), key=lambda place: len(rows[place]))
        for some in (order[at : at + _ROWS] for at in range(0, len(order), _ROWS)):
            width = len(rows[some[-1]])
            found = self.bert(numbers[some, :width], attention_mask=here[some, :width].long()).last_hidden_state
            states.append(functional.pad(found, (0, 0, 0, longest - width)))
        return torch.cat(states)[torch.tensor(order).argsort()], here

    def _tokens(self, text: str) -> list[int]:
        numbers: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return numbers[:_LONGEST]

    def _projected(self, states: Tensor) -> Tensor:
        return functional.normalize(self.projection(states), dim=-1)

    def weights(self) -> dict[str, np.ndarray]:
        """Return what `answer_weights.npz` holds."""
        return {
            name: (tensor - base).detach().numpy().astype(np.float16) for name, (tensor, base) in self._stored().items()
        }

    def load(self, path: Path) -> None:
        """Continue from stored weights."""
        with torch.no_grad(), np.load(path) as weights:
            for name, (tensor, base) in self._stored().items():
                tensor.copy_(base + torch.tensor(weights[name].astype(np.float32)))

    def _stored(self) -> dict[str, tuple[Tensor, Tensor]]:
        """Return each tensor that is stored, and what is subtracted from it: its official value, or 0."""
        zero = torch.tensor(0.0)
        found = {name: (getattr(self, name), zero) for name in ("importance", "parts", "beside", "nothing")}
        found["projection"] = self.projection.weight, zero
        for name, tensor in self.bert.named_parameters():
            if name.endswith((".up", ".down")):
                layer, _, factor = name.rpartition(".")
                found[f"{layer}.weight.{factor}"] = tensor, zero
            elif tensor.requires_grad:
                official = name.replace(".layer.weight", ".weight").replace(".layer.bias", ".bias")
                found[official] = tensor, self.official[official]
        return found


def _mean(states: Tensor, here: Tensor) -> Tensor:
    return functional.normalize((states * here[..., None]).sum(1) / here.sum(1, keepdim=True), dim=-1)


def _loss(model: Model, found: Sequence[Text]) -> Tensor:
    """Cross-entropy of the right sentence, or none; of the right one among all; and of none without the text."""
    logits = model([question for text in found for question, _ in text.questions], found)
    starts = np.cumsum([0, *(len(text.sentences) for text in found)])
    right = torch.full_like(logits, -math.inf)
    others = torch.zeros_like(logits)
    row = 0
    for start, end, text in zip(starts, starts[1:], found, strict=False):
        for _, places in text.questions:
            right[row, [start + place for place in places] or [-1]] = 0
            others[row, start:end] = -math.inf
            row += 1
    is_answered = right[:, -1] < 0
    chosen = logits[is_answered, :-1]
    return (
        -torch.logsumexp(logits.log_softmax(-1) + right, -1).mean()
        - torch.logsumexp(chosen.log_softmax(-1) + right[is_answered, :-1], -1).mean()
        - _WITHOUT_TEXT * (logits + others).log_softmax(-1)[:, -1].mean()
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit the model and write its weights."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks train_answers", description=__doc__)
    parser.add_argument("--to", type=Path, default=WEIGHTS, help="file to write")
    parser.add_argument("--minutes", type=float, default=60, help="time to take (default 60)")
    parser.add_argument("--rate", type=float, default=7e-4, help="greatest rate (default 7e-4)")
    parser.add_argument("--start", type=Path, help="weights to continue from (default: those of the encoder)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of texts and the first weights (default 0)")
    given = parser.parse_args(arguments)
    torch.manual_seed(given.seed)
    chance, examples = random.Random(given.seed), texts()
    model = Model(models.find(models.SENTENCES, download=False))
    if given.start:
        model.load(given.start)
    model.train()
    fitted = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(fitted, weight_decay=0.01)
    start, losses = time.monotonic(), list[float]()
    order: list[Text] = []
    while (part := (time.monotonic() - start) / 60 / given.minutes) < 1:
        if len(order) < _TOGETHER:
            order = chance.sample(examples, len(examples))
        found, order = order[:_TOGETHER], order[_TOGETHER:]
        for group in optimizer.param_groups:
            group["lr"] = given.rate * min(1, (len(losses) + 1) / _WARM_UP) * max(0.02, 1 - part)
        loss = _loss(model, found)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(fitted, 1.0)
        optimizer.step()
        losses.append(loss.item())
        if len(losses) % 50 == 0:
            print(f"{len(losses) * _TOGETHER / len(examples):.1f} rounds, loss {np.mean(losses[-50:]):.3f}", flush=True)
    np.savez_compressed(given.to, **model.weights())
