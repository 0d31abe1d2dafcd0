"""Make the canary: train it, write `canary.gguf` and the data set it is asked, `aftershock/load/datasets/canary.jsonl`.

    python -m aftershock.stack.canary.train

A Llama of two layers learns the answers of `questions.py` by heart, in a minute or two on one CPU thread. Weights are
held under their names in GGUF and in llama.cpp's order, so that the file is the model and needs no conversion.
See README.md for the versions; the same versions on the same processor family give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional

from aftershock.files import atomic_path, write_text
from aftershock.stack.canary.questions import Question, questions

MODEL_FILE = Path(__file__).with_name("canary.gguf")
DATASET_FILE = Path(__file__).parents[2] / "load" / "datasets" / "canary.jsonl"

UNKNOWN, BEGIN, END = 0, 1, 2
SPECIAL_TOKENS = ["<unk>", "<s>", "</s>"]
SHORTEST, LONGEST = 6, 14
"""Tokens an answer may have: enough gaps for an inter-token latency, few enough for 60 requests/s on one thread."""

CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
"""Chat requests become the same prompt as completions: the canary was taught no roles."""

Weights = dict[str, Any]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shape:
    """Hyperparameters of the network."""

    vocabulary: int
    context: int = 512
    width: int = 128
    hidden: int = 256
    layers: int = 2
    heads: int = 4
    epsilon: float = 1e-6
    rope_base: float = 10_000.0

    @property
    def head_width(self) -> int:
        """Dimensions of one attention head."""
        return self.width // self.heads


@dataclass(frozen=True)
class Training:
    """Hyperparameters of the optimisation."""

    seed: int = 1
    steps: int = 600
    batch: int = 56
    rate: float = 3e-3
    warm_up: int = 50
    weight_decay: float = 0.01


def main() -> None:
    """Train, check, write both files."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("gguf").setLevel(logging.WARNING)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    items = questions()
    tokenizer = train_tokenizer(items)
    encoded = [encode(tokenizer, item) for item in items]
    shape = Shape(vocabulary=tokenizer.get_vocab_size())
    weights = train(shape, Training(), encoded)
    check(shape, weights, encoded)
    write_model(MODEL_FILE, shape, weights, tokenizer)
    write_dataset(DATASET_FILE, items)
    log.info("%s  %s", hashlib.sha256(MODEL_FILE.read_bytes()).hexdigest(), MODEL_FILE.name)


def train_tokenizer(items: Sequence[Question]) -> Tokenizer:
    """A byte-level BPE in which nearly every word of the set is one token: the kind llama.cpp calls gpt2."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1_024,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([f"{item.prompt} {item.answer}" for item in items], trainer)
    return tokenizer


@dataclass(frozen=True)
class Encoded:
    """One question as tokens: prompt with its begin marker, answer with its end marker."""

    prompt: list[int]
    answer: list[int]


def encode(tokenizer: Tokenizer, item: Question) -> Encoded:
    """The tokens of `item`. Raises ValueError where the answer is too short or too long to be worth timing."""
    answer = tokenizer.encode(f" {item.answer}").ids
    if not SHORTEST <= len(answer) <= LONGEST:
        raise ValueError(f"{item.id}: the answer has {len(answer)} tokens, not {SHORTEST} to {LONGEST}")
    return Encoded([BEGIN, *tokenizer.encode(item.prompt).ids], [*answer, END])


def train(shape: Shape, training: Training, encoded: Sequence[Encoded]) -> Weights:
    """Weights that answer `encoded`, by AdamW on the tokens of the answers."""
    random = torch.Generator().manual_seed(training.seed)
    weights = initial_weights(shape, random)
    optimizer = torch.optim.AdamW(weights.values(), lr=training.rate, weight_decay=training.weight_decay)
    order: list[int] = []
    for step in range(training.steps):
        if len(order) < training.batch:
            order += torch.randperm(len(encoded), generator=random).tolist()
        chosen, order = order[: training.batch], order[training.batch :]
        for group in optimizer.param_groups:
            group["lr"] = training.rate * min(1.0, (step + 1) / training.warm_up) * (1 - step / training.steps)
        tokens, targets = batch([encoded[i] for i in chosen])
        loss = functional.cross_entropy(logits(shape, weights, tokens).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 100 == 0:
            log.info("step %d of %d: loss %.5f", step + 1, training.steps, loss.item())
    return {name: weight.detach() for name, weight in weights.items()}


def initial_weights(shape: Shape, random: Any) -> Weights:
    """Small random matrices and unit norms, under their GGUF names. The embedding is the output matrix too."""

    def matrix(rows: int, columns: int) -> Any:
        return (torch.randn(rows, columns, generator=random) * 0.02).requires_grad_()

    def norm() -> Any:
        return torch.ones(shape.width, requires_grad=True)

    weights: Weights = {"token_embd.weight": matrix(shape.vocabulary, shape.width), "output_norm.weight": norm()}
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        weights[f"{block}.attn_norm.weight"] = norm()
        weights[f"{block}.ffn_norm.weight"] = norm()
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weights[f"{block}.{name}.weight"] = matrix(shape.width, shape.width)
        weights[f"{block}.ffn_gate.weight"] = matrix(shape.hidden, shape.width)
        weights[f"{block}.ffn_up.weight"] = matrix(shape.hidden, shape.width)
        weights[f"{block}.ffn_down.weight"] = matrix(shape.width, shape.hidden)
    return weights


def batch(encoded: Sequence[Encoded]) -> tuple[Any, Any]:
    """Inputs, and at each place the token to be said next; -100 (not judged) in prompts and padding."""
    length = max(len(item.prompt) + len(item.answer) for item in encoded) - 1
    tokens = torch.full((len(encoded), length), END)
    targets = torch.full((len(encoded), length), -100)
    for row, item in enumerate(encoded):
        text = item.prompt + item.answer
        tokens[row, : len(text) - 1] = torch.tensor(text[:-1])
        targets[row, len(item.prompt) - 1 : len(text) - 1] = torch.tensor(item.answer)
    return tokens, targets


def logits(shape: Shape, weights: Weights, tokens: Any) -> Any:
    """The Llama network: for each place of `tokens` (rows of texts) a score of every token that may follow."""
    state = weights["token_embd.weight"][tokens]
    rotation = rope_angles(shape, tokens.shape[1])
    for layer in range(shape.layers):
        part = {
            name.removeprefix(f"blk.{layer}.").removesuffix(".weight"): weight
            for name, weight in weights.items()
            if name.startswith(f"blk.{layer}.")
        }
        state = state + attention(shape, part, rms_norm(shape, state, part["attn_norm"]), rotation)
        normed = rms_norm(shape, state, part["ffn_norm"])
        gated = functional.silu(normed @ part["ffn_gate"].T) * (normed @ part["ffn_up"].T)
        state = state + gated @ part["ffn_down"].T
    return rms_norm(shape, state, weights["output_norm.weight"]) @ weights["token_embd.weight"].T


def attention(shape: Shape, part: Weights, state: Any, rotation: tuple[Any, Any]) -> Any:
    """Causal attention of all heads."""
    rows, length, _ = state.shape

    def heads(name: str) -> Any:
        return (state @ part[name].T).view(rows, length, shape.heads, shape.head_width).transpose(1, 2)

    query, key = rotate(heads("attn_q"), rotation), rotate(heads("attn_k"), rotation)
    scores = query @ key.transpose(-1, -2) / math.sqrt(shape.head_width)
    scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
    mixed = (scores.softmax(-1) @ heads("attn_v")).transpose(1, 2).reshape(rows, length, shape.width)
    return mixed @ part["attn_output"].T


def rms_norm(shape: Shape, state: Any, weight: Any) -> Any:
    """Scale to unit root mean square, then by `weight`."""
    return state * torch.rsqrt(state.pow(2).mean(-1, keepdim=True) + shape.epsilon) * weight


def rope_angles(shape: Shape, length: int) -> tuple[Any, Any]:
    """Cosine and sine of each place and pair of dimensions."""
    speeds = shape.rope_base ** (-torch.arange(0, shape.head_width, 2) / shape.head_width)
    angles = torch.arange(length)[:, None] * speeds
    return angles.cos(), angles.sin()


def rotate(state: Any, rotation: tuple[Any, Any]) -> Any:
    """Rotary position embedding on neighbouring dimensions, as llama.cpp does it for this architecture."""
    cosine, sine = rotation
    even, odd = state[..., 0::2], state[..., 1::2]
    return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).flatten(-2)


def check(shape: Shape, weights: Weights, encoded: Sequence[Encoded]) -> None:
    """Raise ValueError unless every token of every answer wins, clearly.

    The margin matters: a server that batches requests adds in another order, and a close call would flip there.
    """
    tokens, targets = batch(encoded)
    with torch.no_grad():
        scores = logits(shape, weights, tokens)[targets != -100]
    wanted = targets[targets != -100]
    best = scores.topk(2, -1)
    wrong = int((best.indices[:, 0] != wanted).sum())
    margin = (best.values[:, 0] - best.values[:, 1]).min().item()
    log.info("%d answer tokens, %d wrong, smallest margin %.2f", len(wanted), wrong, margin)
    if wrong or margin < 1.0:
        raise ValueError(f"not learned: {wrong} tokens wrong, smallest margin {margin:.2f}; train for more steps")


def write_model(path: Path, shape: Shape, weights: Weights, tokenizer: Tokenizer) -> None:
    """The model and its tokenizer as one GGUF file of 32-bit floats."""
    with atomic_path(path) as temporary:
        writer = gguf.GGUFWriter(temporary, "llama")
        writer.add_name("canary")
        writer.add_description("Answers a few hundred questions by heart; no language model")
        writer.add_license("Apache-2.0")
        writer.add_context_length(shape.context)
        writer.add_embedding_length(shape.width)
        writer.add_block_count(shape.layers)
        writer.add_feed_forward_length(shape.hidden)
        writer.add_head_count(shape.heads)
        writer.add_head_count_kv(shape.heads)
        writer.add_layer_norm_rms_eps(shape.epsilon)
        writer.add_rope_dimension_count(shape.head_width)
        writer.add_rope_freq_base(shape.rope_base)
        writer.add_vocab_size(shape.vocabulary)
        writer.add_file_type(gguf.LlamaFileType.ALL_F32)
        write_tokenizer(writer, tokenizer)
        for name, weight in weights.items():
            writer.add_tensor(name, weight.numpy())
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def write_tokenizer(writer: Any, tokenizer: Tokenizer) -> None:
    """The tokenizer's keys. llama.cpp reads a plain list of words as another kind and splits text wrongly."""
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    types = {"<unk>": gguf.TokenType.UNKNOWN, "<s>": gguf.TokenType.CONTROL, "</s>": gguf.TokenType.CONTROL}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([int(types.get(token, gguf.TokenType.NORMAL)) for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in model["merges"]])
    writer.add_unk_token_id(UNKNOWN)
    writer.add_bos_token_id(BEGIN)
    writer.add_eos_token_id(END)
    writer.add_add_bos_token(True)
    writer.add_chat_template(CHAT_TEMPLATE)


def write_dataset(path: Path, items: Sequence[Question]) -> None:
    """The questions as the load asks them: JSON Lines, one a line."""
    lines = [
        json.dumps({"id": item.id, "prompt": item.prompt, "expected": item.expected, "grader": item.grader})
        for item in items
    ]
    write_text(path, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
