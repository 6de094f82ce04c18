"""Labels, tags and texts: the native engine, plain torch and ONNX Runtime with the same weights, drawn at random."""

from __future__ import annotations

import gc
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from decoders.protocol import EOS, Decoded, Decoding, Ids, Tool, by_length, timed
from decoders.searching import search_of
from safetensors.torch import save_file

from regarde import config as configs
from regarde.data.batch import collate_source
from regarde.engines.native import NativeEngine
from regarde.engines.reference import TorchEngine
from regarde.folder.precision import in_bytes
from regarde.models import ClassifierConfig, Model, ModelConfig, TaggerConfig, TransformerLanguageConfig
from regarde.models.classifier import certain
from regarde.native.settings import flattened
from regarde.text.tokenizers import BOS

SOURCE_VOCABULARY = 8000
LABELS, TAGS, CHARACTERS, PIECES = 10, 22, 100, 8000  # controls included
WORDS = (8, 30)  # of a text, at least and at most


def classifier(embedding: int, hidden: int) -> ModelConfig:
    return ClassifierConfig(embedding=embedding, hidden=hidden, size=hidden, cell="lstm")


def tagger(size: int, *, crf: bool) -> ModelConfig:
    return TaggerConfig(embedding=size, hidden=size, crf=crf, spelling=0)  # words alone, as ONNX Runtime reads them


def transformer(size: int) -> ModelConfig:
    return TransformerLanguageConfig(size=size, layers=3, heads=4, feed_forward=4 * size, positions="rotary")


READING = {  # with the words of a target's vocabulary
    "classifier-small": (classifier(128, 96), LABELS),
    "classifier, 256": (classifier(256, 256), LABELS),
    "tagger-small": (tagger(100, crf=False), TAGS),
    "tagger, 256": (tagger(256, crf=False), TAGS),
    "tagger-crf-small": (tagger(100, crf=True), TAGS),
    "tagger with a CRF, 256": (tagger(256, crf=True), TAGS),
}
WRITING = {
    "transformer-lm-small, characters": (transformer(128), CHARACTERS),
    "Transformer LM, 256, 8,000 pieces": (transformer(256), PIECES),
}


def built(config: ModelConfig, vocabulary: int) -> Model:
    torch.manual_seed(1)
    model = config.build(SOURCE_VOCABULARY, vocabulary)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("decoder.A"):
                parameter.normal_()
    return model.eval()


def texts(count: int) -> list[list[int]]:
    dice = random.Random(1)
    return [[dice.randrange(4, SOURCE_VOCABULARY) for _ in range(dice.randint(*WORDS))] for _ in range(count)]


class Native:
    """The native engine in both precisions."""

    def __init__(self, config: ModelConfig, vocabulary: int, model: Model) -> None:
        sizes = {"source": SOURCE_VOCABULARY, "target": vocabulary}
        settings = flattened({"model": configs.as_table(config), "vocabulary": sizes})
        tensors = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
        self.engines = {False: NativeEngine(settings, tensors), True: NativeEngine(settings, in_bytes(tensors))}

    def __call__(self, sources: Sequence[Ids], decoding: Decoding) -> Decoded:
        engine, search = self.engines[decoding.int8], search_of(decoding)
        engine.rows = decoding.batch
        calls = [sources] if decoding.batch > 1 else [[source] for source in sources]

        def decode(given: Sequence[Ids], decoding: Decoding) -> list[list[int]]:
            return [list(found[0].ids) for call in calls for found in engine.decode(call, search)]

        return timed(decode, sources, decoding)


class Plain:
    """A classifier or a tagger in torch: one forward pass, no search."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __call__(self, sources: Sequence[Ids], decoding: Decoding) -> Decoded:
        return timed(lambda given, decoding: by_length(self.answer, given, decoding.batch), sources, decoding)

    @torch.inference_mode()
    def answer(self, sources: Sequence[Ids]) -> list[list[int]]:
        model = self.model
        encoding = model.encode(collate_source(sources))
        if best := model.decoder.best(encoding):
            return [[*row, EOS] for row in best]
        memory = model.decoder.remember(encoding)
        if hasattr(memory, "P"):  # a tagger's scores of all words
            scores = certain(memory.P, torch.zeros_like(memory.P[..., 0], dtype=torch.bool)).log_softmax(dim=-1)
            return [[*row[: len(s)], EOS] for row, s in zip(scores.argmax(dim=-1).tolist(), sources, strict=True)]
        logits, _ = model.decoder.step(torch.full((len(sources),), BOS), model.decoder.start(encoding), memory)
        return [[label, EOS] for label in logits.log_softmax(dim=-1).argmax(dim=-1).tolist()]


class Writing:
    """A language model in torch, word by word; keys and values are kept."""

    def __init__(self, model: Model) -> None:
        self.engine = TorchEngine(model)

    def __call__(self, sources: Sequence[Ids], decoding: Decoding) -> Decoded:
        search = search_of(decoding)
        return timed(
            lambda given, _: [list(one[0].ids) for one in self.engine.decode(given, search)], sources, decoding
        )


Compare = Callable[[str, Decoding, dict[str, Callable[[Sequence[Ids], Decoding], Decoded]], Sequence[Ids]], None]


def compare_all(python: Path | None, only: str, compare: Compare) -> None:
    """Pass each model, its work and its decoders on; `python` is that of ONNX Runtime, if there is one."""
    torch.set_num_threads(1)
    gc.freeze()  # the collector would search all of torch, which nobody needs who predicts
    for name, (config, vocabulary) in READING.items():
        if only not in name:
            continue
        model = built(config, vocabulary)
        with tempfile.TemporaryDirectory() as place:
            weights = Path(place) / "weights.safetensors"
            save_file(model.state_dict(), weights)
            decoders = {"ours": Native(config, vocabulary, model), "torch": Plain(model)}
            tools = [Tool(python, "by_onnxruntime_labels.py", str(weights))] if python else []
            for tool in tools:
                decoders["ONNX Runtime"] = tool
            for int8 in (False, True):
                for batch, count in ((1, 100), (32, 512)):
                    compare(name, Decoding(beam=1, batch=batch, int8=int8), decoders, texts(count))
            for tool in tools:
                tool.__exit__()
    for name, (config, vocabulary) in WRITING.items():
        if only in name:
            model = built(config, vocabulary)
            decoders = {"ours": Native(config, vocabulary, model), "torch": Writing(model)}
            for int8 in (False, True):
                compare(name, Decoding(beam=1, batch=1, int8=int8, words=100), decoders, [[]])
