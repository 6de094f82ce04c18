"""Training beside other toolkits: the same pairs, the same sizes, the same steps, one core, in turns.

    python benchmarks/peers.py --data DIR --tools DIR --runs 5

DIR/train.de and DIR/train.en (or .gz) are the pairs. The other DIR holds one virtual environment for each tool:
onmt-env with OpenNMT-py, eole-env with eole. What is not installed is left out.

    A   one bidirectional LSTM, LSTM decoder, Luong's general score with input feeding, dropout 0.2
    B   Transformer 3 + 3, size 256, 4 heads, feed-forward 1024, dropout 0.1

Text is cut by one joint BPE model of 8,000 pieces. A run is 10 steps that do not count and `--steps` that do: whole
ones, with loading, dropout, label smoothing 0.1, clipping and Adam. The rate is target tokens per second of CPU time; a
ratio is that of the medians. Runs of all tools are taken in turns.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

WARM = 10
PIECES = 8000

CLOCK = """
import runpy, sys, time
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
torch.set_num_threads(1)
count = 0
def tick(*_):
    global count
    count += 1
    print(f"CLOCK {count} {time.process_time()}", file=sys.stderr, flush=True)
register_optimizer_step_post_hook(tick)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class Work:
    """One thing to compare."""

    name: str  # A or B
    pairs: int
    hidden: int
    tool: str
    floor: float  # the ratio we mean to reach at least


WORKS = (
    Work("A", 64, 512, "onmt", 1.25),
    Work("A", 16, 512, "onmt", 1.8),
    Work("A", 64, 128, "onmt", 1.8),
    Work("B", 64, 256, "eole", 1.15),
)


def cut(data: Path, place: Path) -> None:
    """The pairs as pieces of one joint model, and the list of pieces with their counts."""
    import sentencepiece

    for language in ("de", "en"):
        packed = data / f"train.{language}.gz"
        text = gzip.decompress(packed.read_bytes()) if packed.exists() else (data / f"train.{language}").read_bytes()
        (place / f"raw.{language}").write_bytes(text)
    sentencepiece.SentencePieceTrainer.train(
        input=f"{place}/raw.de,{place}/raw.en", model_prefix=f"{place}/joint", vocab_size=PIECES, model_type="bpe",
        character_coverage=1.0, num_threads=1, minloglevel=2,
    )  # fmt: skip
    model = sentencepiece.SentencePieceProcessor(model_file=f"{place}/joint.model")
    counts: Counter[str] = Counter()
    for language in ("de", "en"):
        with (place / f"train.{language}").open("w") as out:
            for line in (place / f"raw.{language}").read_text().splitlines():
                pieces = model.encode(line, out_type=str)
                counts.update(pieces)
                out.write(" ".join(pieces) + "\n")
    (place / "pieces").write_text("".join(f"{piece}\t{count}\n" for piece, count in counts.most_common()))


def yaml(tree: dict[str, object], indent: str = "") -> str:
    """Enough of YAML for the tools' configurations."""
    lines = []
    for key, value in tree.items():
        if isinstance(value, dict):
            lines.append(f"{indent}{key}:\n{yaml(value, indent + '  ')}")
        else:
            lines.append(f"{indent}{key}: {json.dumps(value)}\n")
    return "".join(lines)


def configuration(work: Work, place: Path, steps: int) -> dict[str, object]:
    """What each tool calls the same things."""
    corpus = {"path_src": str(place / "train.de"), "path_tgt": str(place / "train.en")}
    data = {
        "save_data": str(place / "saved"), "overwrite": True, "share_vocab": True, "seed": 1, "report_every": WARM,
        "src_vocab": str(place / "pieces"), "tgt_vocab": str(place / "pieces"),
        "src_vocab_size": PIECES, "tgt_vocab_size": PIECES, "data": {"corpus_1": corpus},
    }  # fmt: skip
    training: dict[str, object] = {
        "world_size": 1, "gpu_ranks": [], "batch_type": "sents", "batch_size": work.pairs, "normalization": "tokens",
        "bucket_size": 29000, "num_workers": 0, "save_checkpoint_steps": 10**6, "valid_steps": 10**6,
        "train_steps": WARM + steps + 1, "optim": "adam", "learning_rate": 0.001, "max_grad_norm": 5,
        "label_smoothing": 0.1,
    }  # fmt: skip
    if work.name == "A":
        return {
            **data, **training, "save_model": str(place / "model"), "encoder_type": "brnn", "decoder_type": "rnn",
            "rnn_type": "LSTM", "enc_layers": 1, "dec_layers": 1, "enc_hid_size": work.hidden,
            "dec_hid_size": work.hidden, "word_vec_size": work.hidden // 2, "global_attention": "general",
            "input_feed": 1, "dropout": [0.2], "attention_dropout": [0.0],
        }  # fmt: skip
    size = work.hidden
    inner = {**training, "model_path": str(place / "model"), "dropout": [0.1], "attention_dropout": [0.1]}
    model = {
        "architecture": "transformer", "hidden_size": size, "layers": 3, "heads": 4, "transformer_ff": 4 * size,
        "share_embeddings": True, "share_decoder_embeddings": True,
        "embeddings": {"word_vec_size": size, "position_encoding_type": "SinusoidalInterleaved"},
    }  # fmt: skip
    return {**data, "training": {**inner, "compute_dtype": "fp32"}, "model": model}


def their_rate(work: Work, tools: Path, place: Path, steps: int) -> float:
    """Target tokens per second of CPU time, by a clock of ours and the tool's own count of tokens."""
    settings, clock = place / f"{work.tool}.yaml", place / "clock.py"
    settings.write_text(yaml(configuration(work, place, steps)))
    clock.write_text(CLOCK)
    binary = tools / f"{work.tool}-env" / "bin"
    command = [str(binary / "onmt_train")] if work.tool == "onmt" else [str(binary / "eole"), "train"]
    done = subprocess.run(
        [str(binary / "python"), str(clock), *command, "--config", str(settings)],
        capture_output=True, text=True, check=True, env=one_thread(), cwd=place,
    )  # fmt: skip
    said = done.stderr + done.stdout
    clocks = {int(step): float(at) for step, at in re.findall(r"CLOCK (\d+) (\S+)", said)}
    tokens = {int(step): int(count) for step, count in re.findall(r"Step (\d+)/.*?bsz:\s*\d+/\s*(\d+)/", said)}
    last = WARM + steps
    counted = sum(count * WARM for step, count in tokens.items() if WARM < step <= last)
    return counted / (clocks[last] - clocks[WARM])


def our_rate(work: Work, place: Path, steps: int, additive: bool) -> float:
    """The same of ours, in this process."""
    import torch

    from regarde.attention.mechanisms import GlobalConfig
    from regarde.attention.multihead import MultiHeadConfig
    from regarde.attention.scores import AdditiveConfig, GeneralConfig
    from regarde.data.batch import Sequences, collate
    from regarde.data.sampling import batches
    from regarde.models import ModelConfig
    from regarde.models.bahdanau import BahdanauConfig
    from regarde.models.encoders import BidirectionalConfig
    from regarde.models.luong import LuongConfig
    from regarde.models.transformer import TransformerConfig
    from regarde.training.recipe import Adam, TrainingConfig
    from regarde.training.step import Stepper

    torch.set_num_threads(1)
    ids = {line.split("\t")[0]: 4 + i for i, line in enumerate((place / "pieces").read_text().splitlines())}
    sides = []
    for language in ("de", "en"):
        lines = (place / f"train.{language}").read_text().splitlines()
        sides.append(Sequences.of([[ids[piece] for piece in line.split()] for line in lines]))
    source, target = sides
    H = work.hidden
    both = BidirectionalConfig(hidden=H // 2)
    model: ModelConfig
    if work.name == "B":
        model = TransformerConfig(size=H, layers=3, heads=4, feed_forward=4 * H, dropout=0.1, tying="three-way")
        model = replace(model, attention=MultiHeadConfig(heads=4, dropout=0.1))
    elif additive:
        score = GlobalConfig(score=AdditiveConfig(size=H))
        model = BahdanauConfig(
            embedding=H // 2,
            hidden=H,
            maxout=H // 2,
            cell="lstm",
            encoder=both,
            attention=score,
            dropout=0.2,
            init="torch",
        )
    else:
        score = GlobalConfig(score=GeneralConfig())
        model = LuongConfig(
            embedding=H // 2, hidden=H, layers=1, encoder=both, attention=score, dropout=0.2, init="torch"
        )
    torch.manual_seed(1)
    training = TrainingConfig(optimizer=Adam(), label_smoothing=0.1, clip=5.0)
    stepper = Stepper(model.build(PIECES, PIECES), training, 100_000)
    order = batches(source.lengths, target.lengths, seed=1, epoch=0, pairs=work.pairs, tokens=0)
    tokens, began = 0, 0.0
    for step, rows in enumerate(order[: WARM + steps]):
        if step == WARM:
            tokens, began = 0, time.process_time()
        result = stepper(collate([source[row] for row in rows], [target[row] for row in rows]), step)
        tokens += result.tokens
    return tokens / (time.process_time() - began)


def one_thread() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def our_rate_apart(work: Work, place: Path, steps: int, additive: bool) -> float:
    """In a process of its own, as theirs is."""
    given = [*vars(work).values(), steps, additive]
    done = subprocess.run(
        [sys.executable, __file__, "--ours", json.dumps(given), "--place", str(place)],
        capture_output=True, text=True, check=True, env=one_thread(),
    )  # fmt: skip
    return float(done.stdout)


def row(*cells: object) -> None:
    print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tools", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--only", default="", help="a work such as A16/512")
    parser.add_argument("--ours", default="", help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ours:
        *work, steps, additive = json.loads(given.ours)
        print(our_rate(Work(*work), given.place, steps, additive))
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        cut(given.data, place)
        row("work", "batch | hidden", "tool", "its tokens/s", "ours", "ratio", "floor", "of all runs")
        row(*["---"] * 9)
        for work in WORKS:
            if (
                given.only not in f"{work.name}{work.pairs}/{work.hidden}"
                or not (given.tools / f"{work.tool}-env").exists()
            ):
                continue
            theirs, ours, additive = [], [], []
            for _ in range(given.runs):
                theirs.append(their_rate(work, given.tools, place, given.steps))
                ours.append(our_rate_apart(work, place, given.steps, False))
                if work.name == "A":
                    additive.append(our_rate_apart(work, place, given.steps, True))
            it, we = statistics.median(theirs), statistics.median(ours)
            pairs = ", ".join(f"{b / a:.2f}" for a, b in zip(theirs, ours, strict=True))
            sizes = f"{work.pairs} | {work.hidden}"
            row(work.name, sizes, work.tool, f"{it:,.0f}", f"{we:,.0f}", f"{we / it:.2f}", work.floor, pairs)
            if additive:
                other = statistics.median(additive)
                row("A, additive", sizes, "our Luong", f"{we:,.0f}", f"{other:,.0f}", f"{other / we:.2f}", 0.9, "")


if __name__ == "__main__":
    main()
