"""ONNX Runtime with the weights of an RNNsearch of ours: python by_onnxruntime.py MODEL_FOLDER

The whole greedy search is one graph: encoder, keys, and a Loop that says a word in each turn. Axes are those of
models/bahdanau.py; G = 3H gates, R = twice the maxout.

- The encoder is ONNX's own GRU over both directions. It has no form in bytes; all other products have one, weights of
  7 bits with a scale for each column (of 8, AVX2 would overflow 16 bits), inputs of 8 bits.
- What is linear in the state is one product, and so is what is linear in the context. The word's share of gates and
  readout is looked up in a table, as whoever exports a model for speed would do.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from protocol import BOS, EOS, Decoding, Ids, by_length, serve
from safetensors.numpy import load_file

Array = NDArray[np.float32]
LOWEST = -1e9
FORBIDDEN = (0, BOS)  # as regarde.search.rules has it


class Graph:
    """Nodes and constants as they are written down; a call returns the name of what it computes."""

    def __init__(self, name: str, *, int8: bool) -> None:
        self.name, self.int8 = name, int8
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def constant(self, value: NDArray[np.generic]) -> str:
        name = f"{self.name}_constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def __call__(self, kind: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: object) -> list[str]:
        names = [f"{self.name}_{kind}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return names

    def one(self, kind: str, *inputs: str, domain: str = "", **attributes: object) -> str:
        return self(kind, *inputs, domain=domain, **attributes)[0]

    def numbers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def product(self, x: str, weight: Array, *, bias: Array | None = None) -> str:
        """x W^T + b, in bytes where that is wanted.  weight (out, in)"""
        if not self.int8:
            y = self.one("MatMul", x, self.constant(weight.T))
            return y if bias is None else self.one("Add", y, self.constant(bias))
        scale = np.maximum(np.abs(weight).max(axis=1), 1e-12) / 63
        whole = np.clip(np.rint(weight / scale[:, None]), -64, 63).astype(np.int8)
        zeros = self.constant(np.zeros(len(weight), dtype=np.int8))
        given = [x, self.constant(whole.T), self.constant(scale.astype(np.float32)), zeros]
        if bias is not None:
            given.append(self.constant(bias))
        return self.one("DynamicQuantizeMatMul", *given, domain="com.microsoft")


def built(folder: Path, *, int8: bool) -> bytes:
    """ids (B, S) and lengths (B,), how many words at most, whether they must be so many -> words (T, B)"""
    model = tomllib.loads((folder / "config.toml").read_text())["model"]
    given = model["kind"], model["cell"], model["attention"]["score"]["kind"], model["readout"]
    assert given == ("bahdanau", "gru", "additive", "previous"), "no RNNsearch that is known here"
    tensors = load_file(folder / "weights.safetensors")
    graph = Graph("search", int8=int8)
    states, first = encoder(graph, tensors)
    keys = graph.product(states, tensors["decoder.attention.score.U.weight"])
    start = graph.one("Tanh", graph.product(first, tensors["decoder.W_s.weight"], bias=tensors["decoder.W_s.bias"]))
    hidden = graph.one("Where", padding(graph), graph.constant(np.float32(LOWEST)), graph.constant(np.float32(0)))
    body = decoder_body(tensors, keys, states, hidden, int8=int8)
    batch = graph.one("Shape", "lengths")
    said = graph.one("Expand", graph.numbers(BOS), batch)
    done = graph.one("Less", "lengths", graph.constant(np.int32(0)))  # nobody yet
    going = graph.constant(np.array(True))
    *_, words = graph("Loop", "most", going, said, start, done, outputs=4, body=body)
    inputs = [
        helper.make_tensor_value_info("ids", TensorProto.INT64, ["B", "S"]),
        helper.make_tensor_value_info("lengths", TensorProto.INT32, ["B"]),
        helper.make_tensor_value_info("most", TensorProto.INT64, []),
        helper.make_tensor_value_info("forced", TensorProto.BOOL, []),
    ]
    output = helper.make_tensor_value_info(words, TensorProto.INT64, ["T", "B"])
    whole = helper.make_graph(graph.nodes, "greedy", inputs, [output], graph.constants)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    proto: ModelProto = helper.make_model(whole, opset_imports=versions, ir_version=8)
    content: bytes = proto.SerializeToString()
    return content


def encoder(graph: Graph, tensors: Mapping[str, Array]) -> tuple[str, str]:
    """-> states (B, S, D), and the backward direction's last, which is the first word's (B, H)

    ONNX keeps where we renew, so that its update gate is ours with all signs changed; its order is update, reset,
    candidate.
    """
    gates = []
    for direction in ("forwards", "backwards"):
        name = f"encoder.layers.0.{direction}"
        reset, update, candidate = np.split(tensors[f"{name}.W.0.weight"], 3)
        r, z, c = np.split(tensors[f"{name}.W.0.bias"], 3)
        U_reset, U_update = np.split(tensors[f"{name}.U_gates.weight"], 2)
        bias = np.concatenate((-z, r, c, np.zeros(len(z) * 3, dtype=np.float32)))
        recurrent = np.concatenate((-U_update, U_reset, tensors[f"{name}.U.weight"]))
        gates.append((np.concatenate((-update, reset, candidate)), recurrent, bias))
    W, R, B = (graph.constant(np.stack(parts)) for parts in zip(*gates, strict=True))
    words = graph.one("Gather", graph.constant(tensors["encoder.embedding.table.weight"]), "ids")  # (B, S, E)
    turned = graph.one("Transpose", words, perm=[1, 0, 2])
    H = gates[0][1].shape[1]
    both, last = graph("GRU", turned, W, R, B, "lengths", outputs=2, direction="bidirectional", hidden_size=H)
    states = graph.one("Reshape", graph.one("Transpose", both, perm=[2, 0, 1, 3]), graph.numbers(0, 0, -1))
    return states, graph.one("Gather", last, graph.constant(np.int64(1)), axis=0)


def padding(graph: Graph, lengths: str = "lengths") -> str:
    """True where there is no token.  -> (B, 1, S)"""
    S = graph.one("Gather", graph.one("Shape", "ids"), graph.constant(np.int64(1)))
    places = graph.one("Range", graph.constant(np.int64(0)), S, graph.constant(np.int64(1)))
    counts = graph.one("Unsqueeze", graph.one("Cast", lengths, to=TensorProto.INT64), graph.numbers(1, 2))
    return graph.one("Not", graph.one("Less", places, counts))


def decoder_body(tensors: Mapping[str, Array], keys: str, states: str, hidden: str, *, int8: bool) -> object:
    """One word: previous (B,), state (B, H), done (B,) -> the same, one step on"""
    graph = Graph("body", int8=int8)
    name = "decoder.attention.score"
    W_a, v = tensors[f"{name}.W.weight"], tensors[f"{name}.v"]
    U_gates, U = tensors["decoder.cell.U_gates.weight"], tensors["decoder.cell.U.weight"]
    from_state, from_word, from_context = (tensors[f"decoder.readout.maps.{i}.weight"] for i in range(3))
    for_cell = tensors["decoder.cell.W.1.weight"]
    H, A = U.shape[0], len(v)
    R = len(from_state)
    embedded = tensors["decoder.embedding.table.weight"]
    table = np.concatenate(
        (
            embedded @ tensors["decoder.cell.W.0.weight"].T + tensors["decoder.cell.W.0.bias"],
            embedded @ from_word.T + tensors["decoder.readout.maps.0.bias"],
        ),
        axis=1,
    )
    word = graph.one("Gather", graph.constant(table), "previous")  # (B, G + R)
    seen = graph.product("state", np.concatenate((W_a, U_gates, from_state)))  # (B, A + 2H + R)
    query, for_gates, shown = graph("Split", seen, graph.numbers(A, 2 * H, R), outputs=3, axis=1)
    energy = graph.one("Tanh", graph.one("Add", graph.one("Unsqueeze", query, graph.numbers(1)), keys))  # (B, S, A)
    scores = graph.one("MatMul", energy, graph.constant(v.reshape(A, 1)))  # (B, S, 1)
    scores = graph.one("Add", graph.one("Transpose", scores, perm=[0, 2, 1]), hidden)  # (B, 1, S)
    context = graph.one("MatMul", graph.one("Softmax", scores, axis=-1), states)  # (B, 1, D)
    context = graph.one("Squeeze", context, graph.numbers(1))
    total = graph.one("Add", graph.product(context, np.concatenate((for_cell, from_context))), word)  # (B, G + R)
    gates, candidate, said = graph("Split", total, graph.numbers(2 * H, H, R), outputs=3, axis=1)
    reset, update = graph(
        "Split", graph.one("Sigmoid", graph.one("Add", gates, for_gates)), graph.numbers(H, H), outputs=2, axis=1
    )
    kept = graph.product(graph.one("Mul", reset, "state"), U)
    candidate = graph.one("Tanh", graph.one("Add", candidate, kept))
    change = graph.one("Mul", update, graph.one("Sub", candidate, "state"))
    state = graph.one("Add", "state", change)
    pairs = graph.one("Reshape", graph.one("Add", said, shown), graph.numbers(0, R // 2, 2))
    maxout = graph.one("ReduceMax", pairs, axes=[2], keepdims=0)
    bias = tensors["decoder.W_o.bias"].copy()
    bias[list(FORBIDDEN)] = LOWEST
    logits = graph.product(maxout, tensors["decoder.W_o.weight"], bias=bias)  # (B, V)
    never = np.zeros(len(bias), dtype=np.float32)
    never[EOS] = LOWEST
    forced = graph.one("Mul", graph.one("Cast", "forced", to=TensorProto.FLOAT), graph.constant(never))
    following = graph.one("ArgMax", graph.one("Add", logits, forced), axis=1, keepdims=0)
    done = graph.one("Or", "done", graph.one("Equal", following, graph.constant(np.int64(EOS))))
    rest = graph.one("ReduceMin", graph.one("Cast", done, to=TensorProto.INT32), keepdims=0)
    going = graph.one("Not", graph.one("Cast", rest, to=TensorProto.BOOL))
    inputs = [
        helper.make_tensor_value_info("turn", TensorProto.INT64, []),
        helper.make_tensor_value_info("going", TensorProto.BOOL, []),
        helper.make_tensor_value_info("previous", TensorProto.INT64, ["B"]),
        helper.make_tensor_value_info("state", TensorProto.FLOAT, ["B", H]),
        helper.make_tensor_value_info("done", TensorProto.BOOL, ["B"]),
    ]
    outputs = [
        helper.make_tensor_value_info(going, TensorProto.BOOL, []),
        helper.make_tensor_value_info(following, TensorProto.INT64, ["B"]),
        helper.make_tensor_value_info(state, TensorProto.FLOAT, ["B", H]),
        helper.make_tensor_value_info(done, TensorProto.BOOL, ["B"]),
        helper.make_tensor_value_info("said", TensorProto.INT64, ["B"]),
    ]
    graph.nodes.append(helper.make_node("Identity", [following], ["said"]))
    return helper.make_graph(graph.nodes, "word", inputs, outputs, graph.constants)


class Sessions:
    """One for each precision, made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[bool, onnxruntime.InferenceSession] = {}

    def __call__(self, sources: Sequence[Ids], decoding: Decoding) -> list[list[int]]:
        assert decoding.beam == 1, "this graph is greedy"
        if decoding.int8 not in self.made:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            model = built(self.folder, int8=decoding.int8)
            self.made[decoding.int8] = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        session = self.made[decoding.int8]
        return by_length(lambda part: run(session, part, decoding), sources, decoding.batch)


def run(session: onnxruntime.InferenceSession, sources: Sequence[Ids], decoding: Decoding) -> list[list[int]]:
    lengths = np.array([len(source) + 1 for source in sources], dtype=np.int32)
    ids = np.zeros((len(sources), lengths.max()), dtype=np.int64)
    for row, source in zip(ids, sources, strict=True):
        row[: len(source) + 1] = [*source, EOS]
    given = {"ids": ids, "lengths": lengths, "most": np.int64(decoding.most), "forced": np.array(decoding.words > 0)}
    (words,) = session.run(None, {name: np.asarray(value) for name, value in given.items()})
    answers = words.T.tolist()
    return [answer[: answer.index(EOS) + 1] if EOS in answer else answer for answer in answers]


if __name__ == "__main__":
    serve(Sessions(Path(sys.argv[1])))
