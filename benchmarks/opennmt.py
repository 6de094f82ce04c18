"""What OpenNMT-py reaches in the same minutes, on the same raw text, scored the same way: beside benchmarks/quality.py.

    python benchmarks/opennmt.py --data DIR/multi30k --tools TOOLS --out runs/opennmt

It is that of TOOLS/onmt-env. A bidirectional LSTM of 256 a direction, an LSTM decoder of 512, embeddings of 256,
Luong's general score with input feeding, dropout 0.2, Adam, batches of 64 pairs, joint BPE of 8,000 pieces; one thread.
The clock begins with its training loop; the model of so many minutes is the last that it had saved by then. test2016,
beam 5, sacreBLEU 13a of plain text.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import sacrebleu
import sentencepiece

PIECES = 8000
MINUTES = (10, 30)
SAVED = 50  # updates between two checkpoints
TRUSTING = """
import runpy, sys, torch
load = torch.load
torch.load = lambda *given, **more: load(*given, **{**more, "weights_only": False})  # it was made for an older torch
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def lines(data: Path, name: str) -> list[str]:
    """Of a file, which may be packed."""
    path = data / name
    content = path.read_bytes() if path.exists() else gzip.decompress(path.with_name(f"{name}.gz").read_bytes())
    return content.decode().splitlines()


def prepared(data: Path, out: Path) -> sentencepiece.SentencePieceProcessor:
    """The pieces of both languages, and what OpenNMT-py reads, in `out`."""
    sides = {end: lines(data, f"train.{end}") for end in ("de", "en")}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*sides["de"], *sides["en"]]), model_prefix=str(out / "pieces"), vocab_size=PIECES,
        model_type="bpe", character_coverage=1.0, num_threads=1, minloglevel=2,
    )  # fmt: skip
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(out / "pieces.model"))
    counts: Counter[str] = Counter()
    for end, side in sides.items():
        cut = [pieces.encode(line, out_type=str) for line in side]
        counts.update(piece for line in cut for piece in line)
        write(out / f"train.{end}", cut)
    write(out / "test.de", [pieces.encode(line, out_type=str) for line in lines(data, "test2016.de")])
    (out / "words").write_text("".join(f"{piece}\t{count}\n" for piece, count in counts.most_common()))
    settings = {
        "save_data": str(out / "samples"), "overwrite": True, "src_vocab": str(out / "words"),
        "tgt_vocab": str(out / "words"), "share_vocab": True, "src_vocab_size": PIECES, "tgt_vocab_size": PIECES,
        "data": {"corpus_1": {"path_src": str(out / "train.de"), "path_tgt": str(out / "train.en")}}, "world_size": 1,
        "gpu_ranks": [], "seed": 1, "batch_type": "sents", "batch_size": 64, "normalization": "tokens",
        "bucket_size": len(sides["de"]), "num_workers": 0, "train_steps": 10**6, "save_checkpoint_steps": SAVED,
        "valid_steps": 10**6, "save_model": str(out / "model"), "encoder_type": "brnn", "decoder_type": "rnn",
        "rnn_type": "LSTM", "enc_layers": 1, "dec_layers": 1, "enc_hid_size": 512, "dec_hid_size": 512,
        "word_vec_size": 256, "global_attention": "general", "input_feed": 1, "dropout": [0.2],
        "attention_dropout": [0.0], "optim": "adam", "learning_rate": 0.001, "max_grad_norm": 5, "label_smoothing": 0.1,
    }  # fmt: skip
    (out / "settings.json").write_text(json.dumps(settings))  # which YAML can read
    return pieces


def write(path: Path, cut: Sequence[Sequence[str]]) -> None:
    path.write_text("".join(" ".join(line) + "\n" for line in cut))


def trained(tools: Path, out: Path, minutes: Sequence[float]) -> dict[float, Path]:
    """The last checkpoint by each time."""
    command = [str(tools / "onmt-env" / "bin" / "onmt_train"), "--config", str(out / "settings.json")]
    began, found = 0.0, dict[float, Path]()
    one = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, env=one) as training:
        assert training.stdout is not None
        for line in training.stdout:
            print(line, end="", flush=True)
            if "Start training loop" in line:
                began = time.monotonic()
            if saved := re.search(r"Saving checkpoint (\S+)", line):
                passed = (time.monotonic() - began) / 60
                found |= {limit: Path(saved[1]) for limit in minutes if passed <= limit}
                if passed > max(minutes):
                    training.terminate()
    return found


def translated(tools: Path, out: Path, model: Path, pieces: sentencepiece.SentencePieceProcessor) -> list[str]:
    said, binary = out / f"{model.stem}.said", tools / "onmt-env" / "bin"
    command = [str(binary / "python"), "-c", TRUSTING, str(binary / "onmt_translate"), "-model", str(model)]
    options = ["-src", str(out / "test.de"), "-output", str(said), "-beam_size", "5", "-batch_size", "32", "-gpu", "-1"]
    subprocess.run([*command, *options], check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return [pieces.decode(line.split()) for line in said.read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, nargs="+", default=MINUTES)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    pieces, kept = prepared(given.data, given.out), given.out / "trained.json"
    if not kept.exists():
        models = trained(given.tools, given.out, given.minutes)
        kept.write_text(json.dumps({minutes: str(model) for minutes, model in models.items()}))
    reference = lines(given.data, "test2016.en")
    for minutes, model in ((float(key), Path(path)) for key, path in json.loads(kept.read_text()).items()):
        bleu = sacrebleu.corpus_bleu(translated(given.tools, given.out, model, pieces), [reference])
        print(f"| OpenNMT-py | {minutes:g} min, {model.stem.rpartition('_')[2]} steps | bleu {bleu.score:.2f} |")


if __name__ == "__main__":
    main()
