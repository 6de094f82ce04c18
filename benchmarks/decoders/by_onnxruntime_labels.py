"""ONNX Runtime with the weights of a classifier or a tagger of ours: python by_onnxruntime_labels.py WEIGHTS

The encoder is ONNX's own LSTM over both directions; in bytes, ONNX Runtime's DynamicQuantizeLSTM. The answer is a label
or tags with their log-probabilities, and of a classifier the attention: all that our engine returns. The conditional
random field is not in the graph: Viterbi is NumPy's, for a whole batch at once.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from by_onnxruntime import LOWEST, Array, Graph, padding
from numpy.typing import NDArray
from onnx import TensorProto, helper
from protocol import BOS, EOS, Decoding, Ids, by_length, serve
from safetensors.numpy import load_file

CONTROLS = 4  # which are neither labels nor tags


def encoder(graph: Graph, tensors: Mapping[str, Array]) -> str:
    """-> states (B, S, 2H); ONNX's order of gates is i, o, f, g, ours i, f, o, g"""
    W, R, B = [], [], []
    for direction in ("forwards", "backwards"):
        name = f"encoder.layers.0.{direction}"
        for found, tensor in ((W, "W.0.weight"), (R, "U.weight"), (B, "W.0.bias")):
            i, f, o, g = np.split(tensors[f"{name}.{tensor}"], 4)
            found.append(np.concatenate((i, o, f, g)))
    biases = graph.constant(np.stack([np.concatenate((one, np.zeros_like(one))) for one in B]))
    words = graph.one("Gather", graph.constant(tensors["encoder.embedding.table.weight"]), "ids")  # (B, S, E)
    turned = graph.one("Transpose", words, perm=[1, 0, 2])
    same = {"direction": "bidirectional", "hidden_size": R[0].shape[1]}
    if graph.int8:
        (W8, W_scale, W_zero), (R8, R_scale, R_zero) = (in_bytes(graph, np.stack(one)) for one in (W, R))
        given = [turned, W8, R8, biases, "lengths", "", "", "", W_scale, W_zero, R_scale, R_zero]
        both = graph.one("DynamicQuantizeLSTM", *given, domain="com.microsoft", **same)
    else:
        both = graph.one(
            "LSTM", turned, graph.constant(np.stack(W)), graph.constant(np.stack(R)), biases, "lengths", **same
        )
    return graph.one("Reshape", graph.one("Transpose", both, perm=[2, 0, 1, 3]), graph.numbers(0, 0, -1))


def in_bytes(graph: Graph, weight: Array) -> tuple[str, str, str]:
    """Weights of 7 bits with a scale for each row.  (2, G, I) -> (2, I, G), (2, G), zeros (2, G)"""
    scale = np.maximum(np.abs(weight).max(axis=2), 1e-12) / 63
    whole = np.rint(weight / scale[:, :, None]).astype(np.int8).transpose(0, 2, 1)
    zeros = np.zeros(scale.shape, dtype=np.int8)
    return graph.constant(whole), graph.constant(scale.astype(np.float32)), graph.constant(zeros)


def classifier(graph: Graph, tensors: Mapping[str, Array]) -> list[str]:
    """-> log-probabilities (B, labels), attention (B, S)"""
    states = encoder(graph, tensors)
    u = graph.one("Tanh", graph.product(states, tensors["decoder.W.weight"], bias=tensors["decoder.W.bias"]))
    scores = graph.one("MatMul", u, graph.constant(tensors["decoder.q"].T))  # (B, S, 1)
    scores = graph.one("Transpose", scores, perm=[0, 2, 1])  # (B, 1, S)
    scores = graph.one("Where", padding(graph, "words"), graph.constant(np.float32(LOWEST)), scores)  # EOS is not seen
    weights = graph.one("Softmax", scores, axis=-1)
    vector = graph.one("Squeeze", graph.one("MatMul", weights, states), graph.numbers(1))  # (B, 2H)
    W, b = tensors["decoder.W_s.weight"][CONTROLS:], tensors["decoder.W_s.bias"][CONTROLS:]
    return [graph.one("LogSoftmax", graph.product(vector, W, bias=b), axis=-1), weights]


def tagger(graph: Graph, tensors: Mapping[str, Array]) -> list[str]:
    """-> log-probabilities, of a random field the scores of single tags (B, S, tags)"""
    W, b = tensors["decoder.W.weight"][CONTROLS:], tensors["decoder.W.bias"][CONTROLS:]
    scores = graph.product(encoder(graph, tensors), W, bias=b)
    return [scores if "decoder.A" in tensors else graph.one("LogSoftmax", scores, axis=-1)]


def viterbi(P: Array, A: Array, lengths: NDArray[np.int32]) -> list[list[int]]:
    """The likeliest tagging of each row.  (B, S, V), A with the controls"""
    between, score, came = A[CONTROLS:, CONTROLS:], A[BOS, CONTROLS:] + P[:, 0], []
    for i in range(1, lengths.max()):
        sums = score[:, :, None] + between  # (B, V, V)
        back = sums.argmax(axis=1)
        further = np.take_along_axis(sums, back[:, None], axis=1)[:, 0] + P[:, i]
        going = (i < lengths)[:, None]
        score = np.where(going, further, score)
        came.append(np.where(going, back, np.arange(len(between))))  # past the end nothing changes
    tags = [(score + A[CONTROLS:, EOS]).argmax(axis=1)]
    for back in reversed(came):
        tags.append(np.take_along_axis(back, tags[-1][:, None], axis=1)[:, 0])
    return [row[:n] for row, n in zip(np.stack(tags[::-1], axis=1).tolist(), lengths, strict=True)]


class Sessions:
    """One for each precision, made when it is first needed."""

    def __init__(self, weights: Path) -> None:
        self.tensors = load_file(weights)
        self.made: dict[bool, onnxruntime.InferenceSession] = {}

    def session(self, *, int8: bool) -> onnxruntime.InferenceSession:
        if int8 not in self.made:
            graph = Graph("labels", int8=int8)
            found = (classifier if "decoder.W_s.weight" in self.tensors else tagger)(graph, self.tensors)
            inputs = [
                helper.make_tensor_value_info("ids", TensorProto.INT64, ["B", "S"]),
                helper.make_tensor_value_info("lengths", TensorProto.INT32, ["B"]),
                helper.make_tensor_value_info("words", TensorProto.INT32, ["B"]),
            ]
            outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in found]
            whole = helper.make_graph(graph.nodes, "labels", inputs, outputs, graph.constants)
            versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
            content = helper.make_model(whole, opset_imports=versions, ir_version=8).SerializeToString()
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            self.made[int8] = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        return self.made[int8]

    def __call__(self, sources: Sequence[Ids], decoding: Decoding) -> list[list[int]]:
        session = self.session(int8=decoding.int8)
        return by_length(lambda part: self.answer(session, part), sources, decoding.batch)

    def answer(self, session: onnxruntime.InferenceSession, sources: Sequence[Ids]) -> list[list[int]]:
        words = np.array([len(source) for source in sources], dtype=np.int32)
        ids = np.zeros((len(sources), words.max() + 1), dtype=np.int64)
        for row, source in zip(ids, sources, strict=True):
            row[: len(source) + 1] = [*source, EOS]
        scores = session.run(None, {"ids": ids, "lengths": words + 1, "words": words})[0]
        if "decoder.A" in self.tensors:
            found = viterbi(scores, self.tensors["decoder.A"], words)
        elif scores.ndim == 2:
            found = scores.argmax(axis=1, keepdims=True).tolist()
        else:
            found = [row[:n] for row, n in zip(scores.argmax(axis=2).tolist(), words, strict=True)]
        return [[CONTROLS + label for label in row] + [EOS] for row in found]


if __name__ == "__main__":
    serve(Sessions(Path(sys.argv[1])))
