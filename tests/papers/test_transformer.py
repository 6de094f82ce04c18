"""Vaswani et al. 2017, clause by clause, against slow float64 loops written from the paper; and its variants."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor

from regarde.attention import GlobalConfig, MultiHead, MultiHeadConfig
from regarde.attention.scores import AdditiveConfig
from regarde.data.batch import Batch, collate
from regarde.errors import ConfigError, DataError
from regarde.layers.blocks import DecoderBlock, EncoderBlock, KeysAndValues, SelfAttention, Shape
from regarde.layers.positions import Learned, Rotary, Sinusoidal
from regarde.models import Model
from regarde.models.transformer import TransformerConfig
from regarde.text.tokenizers import PAD
from regarde.training import presets
from regarde.training import recipe as recipes
from regarde.training.loss import word_loss
from regarde.training.recipe import Recipe
from regarde.training.step import seeded

D, N, F = 12, 3, 7  # model size, heads, inner size
K = D // N
SOURCE, TARGET = [7, 5, 8, 4], [6, 4, 9]
CONFIG = TransformerConfig(size=D, layers=2, decoder_layers=3, heads=N, feed_forward=F, tying="two-way", longest=20)
VARIANTS = {
    f"{norm}-{positions}": dataclasses.replace(CONFIG, norm=norm, positions=positions)
    for norm in ("post", "pre")
    for positions in ("sinusoidal", "learned", "rotary")
}
NEARLY_ALL = 0.999999  # dropped: of a few hundred numbers nothing is left
SHAPE = Shape(size=D, heads=N, feed_forward=F, norm="post", dropout=0.0, self_attention_dropout=0.0)


def to_source(**options: object) -> MultiHead:
    """The paper's attention to the source."""
    return MultiHeadConfig(heads=N, **options).build(D, D)


def build(config: TransformerConfig, source: int = 9, target: int = 10) -> Model:
    """A model in float64 with weights of its own at every place, norms and biases too."""
    with seeded(11):
        model = config.build(source, target)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.double().eval()


@pytest.fixture(params=VARIANTS, scope="module")
def config(request: pytest.FixtureRequest) -> TransformerConfig:
    return VARIANTS[request.param]


@pytest.fixture(scope="module")
def model(config: TransformerConfig) -> Model:
    return build(config)


def batch() -> Batch:
    return collate([SOURCE, [5], [8, 6]], [TARGET, [7, 5], [4]])


class Paper:
    """Sections 3.1 to 3.5, one word and one head at a time."""

    def __init__(self, model: Model, config: TransformerConfig) -> None:
        self.p = {name: value.numpy() for name, value in model.state_dict().items()}
        self.config = config

    def wave(self, pos: int) -> np.ndarray:
        """3.5: PE(pos, 2i) = sin(pos / 10000^(2i / d)), PE(pos, 2i + 1) = cos(the same)."""
        angles = [pos / 10_000 ** (2 * i / D) for i in range(D // 2)]
        return np.array([f(angle) for angle in angles for f in (math.sin, math.cos)])

    def embed(self, side: str, ids: list[int]) -> list[np.ndarray]:
        """3.4 and 3.5: sqrt(d) e(word), and the position added."""
        rows = [math.sqrt(D) * self.p[f"{side}.entry.embed.table.weight"][i] for i in ids]
        if self.config.positions == "sinusoidal":
            return [row + self.wave(pos) for pos, row in enumerate(rows)]
        if self.config.positions == "learned":
            return [row + self.p[f"{side}.entry.where.table.weight"][pos] for pos, row in enumerate(rows)]
        return rows

    def turned(self, x: np.ndarray, pos: int) -> np.ndarray:
        """Su et al. 2021, equation 14: a rotation in each plane of two neighboring places."""
        if self.config.positions != "rotary":
            return x
        R = np.zeros((K, K))
        for i in range(K // 2):
            a = pos * 10_000 ** (-2 * i / K)
            R[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]
        return R @ x

    def norm(self, name: str, x: np.ndarray) -> np.ndarray:
        centered = x - x.mean()
        return centered / np.sqrt((centered**2).mean() + 1e-5) * self.p[f"{name}.weight"] + self.p[f"{name}.bias"]

    def attend(self, q: np.ndarray, k: list[np.ndarray], v: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Equation 1, for one query of one head."""
        e = np.array([math.exp(sum(q[i] * key[i] for i in range(K)) / math.sqrt(K)) for key in k])
        a = e / e.sum()
        return sum(w * value for w, value in zip(a, v, strict=True)), a

    def self_attention(self, name: str, x: list[np.ndarray], *, causal: bool) -> list[np.ndarray]:
        W_q, W_k, W_v = np.split(self.p[f"{name}.W_qkv.weight"], 3)
        heads = [slice(n * K, (n + 1) * K) for n in range(N)]
        joined = []
        for here, word in enumerate(x):
            seen = list(enumerate(x))[: here + 1] if causal else list(enumerate(x))
            found = [
                self.attend(
                    self.turned(W_q[h] @ word, here),
                    [self.turned(W_k[h] @ other, there) for there, other in seen],
                    [W_v[h] @ other for _, other in seen],
                )[0]
                for h in heads
            ]
            joined.append(self.p[f"{name}.W_o.weight"] @ np.concatenate(found))
        return joined

    def cross_attention(
        self, name: str, x: list[np.ndarray], states: list[np.ndarray]
    ) -> tuple[list[np.ndarray], np.ndarray]:
        W_q, (W_k, W_v) = self.p[f"{name}.W_q.weight"], np.split(self.p[f"{name}.W_kv.weight"], 2)
        weights = np.zeros((N, len(x), len(states)))
        joined = []
        for here, word in enumerate(x):
            found = []
            for n in range(N):
                h = slice(n * K, (n + 1) * K)
                context, weights[n, here] = self.attend(
                    W_q[h] @ word, [W_k[h] @ s for s in states], [W_v[h] @ s for s in states]
                )
                found.append(context)
            joined.append(self.p[f"{name}.W_o.weight"] @ np.concatenate(found))
        return joined, weights

    def feed_forward(self, name: str, x: list[np.ndarray]) -> list[np.ndarray]:
        """Equation 2."""
        W_1, b_1, W_2, b_2 = (self.p[f"{name}.{n}"] for n in ("W_1.weight", "W_1.bias", "W_2.weight", "W_2.bias"))
        return [W_2 @ np.maximum(0, W_1 @ word + b_1) + b_2 for word in x]

    def enter(self, name: str, x: list[np.ndarray]) -> list[np.ndarray]:
        return [self.norm(f"{name}.norm", word) for word in x] if self.config.norm == "pre" else x

    def leave(self, name: str, x: list[np.ndarray], y: list[np.ndarray]) -> list[np.ndarray]:
        """3.1: LayerNorm(x + Sublayer(x)); pre-norm has had its norm at the entrance."""
        added = [a + b for a, b in zip(x, y, strict=True)]
        return added if self.config.norm == "pre" else [self.norm(f"{name}.norm", word) for word in added]

    def top(self, side: str, x: list[np.ndarray]) -> list[np.ndarray]:
        return [self.norm(f"{side}.norm", word) for word in x] if self.config.norm == "pre" else x

    def encode(self, ids: list[int]) -> list[np.ndarray]:
        x = self.embed("encoder", ids)
        for i in range(self.config.layers):
            block = f"encoder.blocks.{i}"
            y = self.self_attention(f"{block}.attention", self.enter(f"{block}.around_attention", x), causal=False)
            x = self.leave(f"{block}.around_attention", x, y)
            y = self.feed_forward(f"{block}.feed_forward", self.enter(f"{block}.around_feed_forward", x))
            x = self.leave(f"{block}.around_feed_forward", x, y)
        return self.top("encoder", x)

    def decode(self, source: list[int], target: list[int]) -> tuple[np.ndarray, np.ndarray]:
        states = self.encode([*source, 3])
        x = self.embed("decoder", [2, *target])
        layers = []
        for i in range(self.config.decoder_layers or self.config.layers):
            block = f"decoder.blocks.{i}"
            y = self.self_attention(f"{block}.attention", self.enter(f"{block}.around_attention", x), causal=True)
            x = self.leave(f"{block}.around_attention", x, y)
            y, weights = self.cross_attention(f"{block}.cross", self.enter(f"{block}.around_cross", x), states)
            layers.append(weights)
            x = self.leave(f"{block}.around_cross", x, y)
            y = self.feed_forward(f"{block}.feed_forward", self.enter(f"{block}.around_feed_forward", x))
            x = self.leave(f"{block}.around_feed_forward", x, y)
        E = self.p["decoder.entry.embed.table.weight"]
        return np.array([E @ word for word in self.top("decoder", x)]), np.array(layers)


@torch.no_grad()
def test_the_whole_model_equals_the_paper_in_every_layer_and_head(model: Model, config: TransformerConfig) -> None:
    decoded = model(collate([SOURCE], [TARGET]))
    logits, attention = Paper(model, config).decode(SOURCE, TARGET)
    assert decoded.attention.shape == (1, 3, N, 4, 5)
    np.testing.assert_allclose(decoded.logits[0].numpy(), logits, atol=1e-11)
    np.testing.assert_allclose(decoded.attention[0].numpy(), attention, atol=1e-11)


@torch.no_grad()
def test_cached_stepping_equals_teacher_forcing(model: Model) -> None:
    decoded = model(batch())
    encoding = model.encode(batch().source)
    memory, state = model.decoder.remember(encoding), model.decoder.start(encoding)
    for t, previous in enumerate(batch().previous.unbind(1)):
        logits, state = model.decoder.step(previous, state, memory)
        torch.testing.assert_close(logits, decoded.logits[:, t], atol=1e-11, rtol=0)
    torch.testing.assert_close(state.past, decoded.attention, atol=1e-11, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("cuts", [(0, 1, 4), (0, 2, 3, 4), (0, 3, 4)])
def test_words_in_chunks_equal_words_at_once(model: Model, cuts: tuple[int, ...]) -> None:
    decoded = model(batch())
    encoding = model.encode(batch().source)
    memory, state = model.decoder.remember(encoding), model.decoder.start(encoding)
    for a, b in pairwise(cuts):
        logits, state = model.decoder.unroll(batch().previous[:, a:b], state, memory)
        torch.testing.assert_close(logits, decoded.logits[:, a:b], atol=1e-11, rtol=0)
        assert [words.keys.shape for words in state.caches] == [(3, b, N, K)] * 3
    torch.testing.assert_close(state.past, decoded.attention, atol=1e-11, rtol=0)


@torch.no_grad()
def test_padding_changes_nothing(model: Model) -> None:
    together, alone = model(batch()), model(collate([[8, 6]], [[4]]))
    torch.testing.assert_close(together.logits[2, :2], alone.logits[0], atol=1e-11, rtol=0)
    torch.testing.assert_close(together.attention[2, ..., :2, :3], alone.attention[0], atol=1e-11, rtol=0)
    assert (together.attention[2, ..., 3:] == 0).all()


def test_a_tied_output_trains_the_embedding_of_padding_and_no_input_reads_it() -> None:
    with seeded(3):
        tied = TransformerConfig(size=12, layers=2, heads=3, feed_forward=10, dropout=0.0).build(11, 11)
    pairs = collate([[7, 5, 8, 6], [8]], [[6, 4], [4, 9, 5]])
    (table,) = {id(m.weight): m.weight for m in tied.modules() if isinstance(m, torch.nn.Embedding)}.values()
    word_loss(tied(pairs).logits, pairs.target_ids).backward()
    assert table.grad[PAD].abs().max() > 0
    with torch.no_grad():
        before = tied(pairs).logits
        table[PAD] = 7.0
        after = tied(pairs).logits
    said = pairs.target_mask
    torch.testing.assert_close(after[said][:, PAD + 1 :], before[said][:, PAD + 1 :], atol=0, rtol=0)


@torch.no_grad()
def test_a_later_word_changes_no_earlier_logit(model: Model) -> None:
    one, other = (model(collate([SOURCE], [target])).logits[0] for target in ([6, 4, 9], [6, 5, 9]))
    torch.testing.assert_close(one[:2], other[:2], atol=0, rtol=0)
    assert ((one[2:] - other[2:]).abs().amax(dim=-1) > 1e-3).all()


def test_the_gradient_reaches_every_parameter(model: Model) -> None:
    model.zero_grad()
    word_loss(model(batch()).logits, batch().target_ids).backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


@torch.no_grad()
def test_nothing_computed_is_left_on_a_module(model: Model) -> None:
    model(batch())
    assert not any(torch.is_tensor(value) for module in model.modules() for value in vars(module).values())
    assert list(model.buffers()) == []


@torch.no_grad()
def test_the_decoder_has_nothing_of_the_source_but_the_top_layer(model: Model) -> None:
    encoding = model.encode(batch().source)
    assert encoding.states.shape == (3, 5, D)
    assert encoding.final.shape == (3, 0)


def test_scores_are_divided_by_the_root_of_the_key_size() -> None:
    with torch.no_grad():
        attention = to_source()
        attention.W_q.weight.copy_(torch.eye(D))
        attention.W_kv.weight[:D].copy_(torch.eye(D))
        x, states = torch.randn(1, 1, D), torch.randn(1, 2, D)
        _, weights = attention(x, attention.remember(states, torch.ones(1, 2, dtype=torch.bool)))
    for n in range(N):
        q, k = x[0, 0, n * K : (n + 1) * K], states[0, :, n * K : (n + 1) * K]
        torch.testing.assert_close(weights[0, n, 0], (k @ q / math.sqrt(K)).softmax(dim=0))


@torch.no_grad()
def test_embeddings_are_scaled_by_the_root_of_the_model_size() -> None:
    entry = build(VARIANTS["post-rotary"]).decoder.entry  # rotary positions add nothing
    ids = torch.tensor([[4, 9]])
    torch.testing.assert_close(entry(ids, 0), entry.embed.table(ids) * math.sqrt(D))


def test_sinusoidal_positions_follow_the_formula_at_any_position() -> None:
    found = Sinusoidal().place(torch.zeros(1, 3, D, dtype=torch.float64), first=5000)[0]
    for row, pos in zip(found, (5000, 5001, 5002), strict=True):
        for i in range(D // 2):
            angle = pos / 10_000 ** (2 * i / D)
            assert row[2 * i].item() == pytest.approx(math.sin(angle), abs=1e-11)
            assert row[2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-11)


def rotary_product(q: Tensor, k: Tensor, q_at: int, k_at: int) -> Tensor:
    nothing = torch.zeros_like(q)
    turned = [Rotary().turn(torch.cat((x, x, nothing), dim=2), at) for x, at in ((q, q_at), (k, k_at))]
    return turned[0][:, :, 0].flatten() @ turned[1][:, :, 1].flatten()


def test_a_product_of_turned_vectors_depends_on_their_distance_alone() -> None:
    with seeded(4):
        q, k, v = torch.randn(3, 1, 1, 1, 1, K, dtype=torch.float64)
    near, far_on = rotary_product(q, k, 7, 3), rotary_product(q, k, 1007, 1003)
    torch.testing.assert_close(near, far_on, atol=1e-11, rtol=0)
    assert abs(near - rotary_product(q, k, 3, 7)) > 1e-3
    turned = Rotary().turn(torch.cat((q, k, v), dim=2), 9)
    torch.testing.assert_close(turned[:, :, 0].norm(), q.norm())
    assert torch.equal(turned[:, :, 2:], v)


def test_half_precision_tells_late_positions_apart() -> None:
    late = Sinusoidal().place(torch.zeros(1, 2, D, dtype=torch.bfloat16), first=3000)[0]
    assert not torch.equal(late[0], late[1])


def test_learned_positions_refuse_longer_training_and_let_a_search_go_on() -> None:
    learned = Learned(3, D)
    with pytest.raises(DataError, match=r"A sentence of 4 tokens, but model\.longest = 3 .* model\.longest=4"):
        learned.train().place(torch.zeros(1, 2, D), first=2)
    beyond = learned.eval().place(torch.zeros(1, 2, D), first=2)[0]
    torch.testing.assert_close(beyond[1], learned.table.weight[2])


def parameters(tying: str, vocabularies: tuple[int, int]) -> int:
    return dataclasses.replace(CONFIG, tying=tying).build(*vocabularies).parameter_count()


def test_tying_saves_a_matrix_each_time() -> None:
    assert parameters("none", (9, 10)) - parameters("two-way", (9, 10)) == 10 * D
    assert parameters("two-way", (10, 10)) - parameters("three-way", (10, 10)) == 10 * D


@torch.no_grad()
@pytest.mark.parametrize("tying", ["none", "two-way", "three-way"])
def test_a_tied_matrix_is_saved_once_and_still_tied_when_loaded(tying: str) -> None:
    config = dataclasses.replace(CONFIG, tying=tying)
    model = build(config, 10, 10)
    content = safetensors.torch.save(model.state_dict())  # refuses tensors that share their memory
    with torch.device("meta"):
        again = config.build(10, 10)
    again.load_state_dict(safetensors.torch.load(content), assign=True)
    torch.testing.assert_close(again.eval()(batch()).logits, model(batch()).logits)
    before = again(batch()).logits, again.encode(batch().source).states
    again.decoder.entry.embed.table.weight[7] += 1.0  # word 7 is in a source, in no `previous` of sentence 0
    after = again(batch()).logits, again.encode(batch().source).states
    assert torch.equal(before[0][0, :, 7], after[0][0, :, 7]) == (tying == "none")
    assert torch.equal(before[1], after[1]) == (tying != "three-way")


def test_three_way_tying_needs_one_vocabulary() -> None:
    with pytest.raises(ConfigError, match=r"got 9 source and 10 target words\. Use --set text\.shared=true"):
        TransformerConfig(size=D, heads=N).build(9, 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 10, "heads": 4}, "size = 10, heads = 4: expected a size that its heads divide"),
        ({"size": 15, "heads": 3}, r"sinusoidal positions need an even size\. Use size = 18\."),
        ({"size": 6, "heads": 2, "positions": "rotary"}, r"rotary positions need an even size / heads\. Use size = 8"),
    ],
)
def test_impossible_sizes_say_why(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TransformerConfig(**options)


@pytest.mark.parametrize(("norm", "norms"), [("pre", 0), ("post", 3)])
def test_dropout_falls_on_the_output_of_each_sublayer(norm: str, norms: int) -> None:
    """All of it dropped, x alone is left: as it was with pre-norm, normed three times with post-norm."""
    block = DecoderBlock(dataclasses.replace(SHAPE, norm=norm, dropout=NEARLY_ALL), to_source()).train()
    x = torch.randn(2, 4, D)
    source = block.cross.remember(torch.randn(2, 5, D), torch.ones(2, 5, dtype=torch.bool))
    expected = x
    for _ in range(norms):
        expected = torch.nn.functional.layer_norm(expected, (D,))
    nothing = KeysAndValues(x.new_zeros(2, 0, N, K), x.new_zeros(2, 0, N, K))
    state = nothing, source, x.new_zeros(2, N, 0, 5), lambda y: y
    with seeded(2):
        torch.testing.assert_close(block(x, *state).x, expected)
        torch.testing.assert_close(block.without_weights(x, *state), expected)


def test_dropout_falls_on_the_sums_of_embeddings_and_positions() -> None:
    entry = dataclasses.replace(CONFIG, dropout=NEARLY_ALL).build(9, 10).train().encoder.entry
    with seeded(2):
        assert (entry(torch.tensor([[4, 5]]), 0) == 0).all()


def test_encoder_blocks_drop_the_same_places() -> None:
    block = EncoderBlock(dataclasses.replace(SHAPE, norm="pre", dropout=NEARLY_ALL)).train()
    x = torch.randn(2, 5, D)
    with seeded(2):
        torch.testing.assert_close(block(x, None, lambda y: y), x)


def test_attention_dropout_changes_what_comes_back_but_not_the_weights_returned() -> None:
    with seeded(2), torch.no_grad():
        cross, x = to_source(dropout=0.5), torch.randn(2, 6, D)
        memory = cross.remember(x, torch.ones(2, 6, dtype=torch.bool))
        (dropped, weights), (whole, expected) = cross.train()(x, memory), cross.eval()(x, memory)
        torch.testing.assert_close(weights, expected)
        assert not torch.allclose(dropped, whole)
        assert not torch.allclose(cross.train().context(x, memory, x.new_zeros(2, cross.heads, 0, 6)), whole)
        alone = SelfAttention(dataclasses.replace(SHAPE, self_attention_dropout=0.5))
        projected = alone.project(x, lambda y: y)
        assert not torch.allclose(alone.train()(projected), alone.eval()(projected))


@torch.no_grad()
def test_pre_norm_ends_in_a_norm() -> None:
    with seeded(1):
        states = VARIANTS["pre-sinusoidal"].build(9, 10).eval().encode(batch().source).states
    torch.testing.assert_close(states.mean(dim=-1), torch.zeros(3, 5), atol=1e-5, rtol=0)
    torch.testing.assert_close(states.var(dim=-1, correction=0), torch.ones(3, 5), atol=1e-3, rtol=0)


def test_each_of_the_fused_matrices_starts_as_if_it_lay_alone() -> None:
    with seeded(1):
        model = TransformerConfig(size=64, layers=1, heads=4, feed_forward=32, tying="two-way").build(300, 400)
    block = model.decoder.blocks[0]
    bound = math.sqrt(6 / (64 + 64))  # Glorot and Bengio 2010, equation 16
    for matrix in (*block.attention.W_qkv.weight.chunk(3), *block.cross.W_kv.weight.chunk(2), block.cross.W_q.weight):
        assert matrix.abs().max().item() == pytest.approx(bound, rel=0.01)
    assert block.feed_forward.W_1.bias.abs().sum() == 0
    table = model.decoder.entry.embed.table.weight
    assert table.std().item() == pytest.approx(64**-0.5, rel=0.05)
    assert (table[0] == 0).all()


@pytest.mark.parametrize(("attention", "heads"), [(None, N), (2, 2)])
def test_attention_to_the_source_has_the_heads_of_the_model_unless_it_says_otherwise(
    attention: int | None, heads: int
) -> None:
    model = dataclasses.replace(CONFIG, attention=MultiHeadConfig(heads=attention)).build(9, 10)
    assert [block.cross.heads for block in model.decoder.blocks] == [heads] * 3
    assert model(batch()).attention.shape[1:3] == (3, heads)


@torch.no_grad()
def test_each_layer_looks_at_the_source_by_an_attention_of_its_own() -> None:
    """Bahdanau's, say: query and states as wide as the model, the context the states themselves."""
    model = build(dataclasses.replace(CONFIG, attention=GlobalConfig(score=AdditiveConfig(size=5))))
    source = batch().source
    encoding = model.encode(source)
    x = torch.randn(3, 4, D, dtype=torch.float64)
    for block, memory in zip(model.decoder.blocks, model.decoder.remember(encoding).layers, strict=True):
        context, weights = block.cross(x, memory)
        score = block.cross.score
        for b, t in np.ndindex(3, 4):
            length = int(source.lengths[b])
            e = [
                score.v @ torch.tanh(score.W.weight @ x[b, t] + score.U.weight @ h) for h in encoding.states[b, :length]
            ]
            a = torch.stack(e).softmax(dim=0)
            torch.testing.assert_close(weights[b, 0, t, :length], a)
            torch.testing.assert_close(context[b, t], a @ encoding.states[b, :length])
    attention = model(batch()).attention
    assert attention.shape == (3, 3, 1, 4, 5)
    assert (attention[:, 0] - attention[:, 1]).abs().max() > 1e-3


def preset(name: str) -> Recipe:
    return recipes.parse(presets.preset(name).recipe)


@pytest.mark.parametrize(
    ("name", "size", "feed_forward", "heads", "dropout", "millions"),
    [("transformer-base", 512, 2048, 8, 0.1, 65), ("transformer-big", 1024, 4096, 16, 0.3, 213)],
)
def test_the_presets_are_those_of_table_3(
    name: str, size: int, feed_forward: int, heads: int, dropout: float, millions: int
) -> None:
    model = preset(name).model
    assert isinstance(model, TransformerConfig)
    assert (model.size, model.feed_forward, model.heads, model.dropout) == (size, feed_forward, heads, dropout)
    assert (model.layers, model.decoder_layers) == (6, None)
    assert (model.norm, model.positions, model.tying) == ("post", "sinusoidal", "three-way")
    with torch.device("meta"):
        built = model.build(37_000, 37_000)
    assert built.parameter_count() == pytest.approx(millions * 10**6, rel=0.04)


@pytest.mark.parametrize("name", ["transformer-base", "transformer-big"])
def test_the_presets_are_trained_and_searched_as_in_section_5(name: str) -> None:
    recipe = preset(name)
    training, optimizer = recipe.training, recipe.training.optimizer
    assert (optimizer.kind, optimizer.beta1, optimizer.beta2, optimizer.epsilon) == ("adam", 0.9, 0.98, 1e-9)
    assert training.label_smoothing == 0.1
    assert (recipe.search.kind, recipe.search.size, recipe.search.alpha) == ("beam", 4, 0.6)
    for n in (1, 100, 4000, 4001, 100_000):  # equation 3
        expected = recipe.model.size**-0.5 * min(n**-0.5, n * 4000**-1.5)
        assert optimizer.rate * training.schedule.at(n - 1, training.steps) == pytest.approx(expected, rel=1e-4)
