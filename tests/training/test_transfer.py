"""A training that starts from another model: what it gets from there, what is kept of it, and how it goes on."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import regarde
from regarde import config
from regarde.data.batch import EncodedPairs
from regarde.data.formats import Pair
from regarde.data.mixing import MixedPairs
from regarde.errors import ConfigError, DataError, FolderError, RegardeWarning, UsageError
from regarde.folder.model import load
from regarde.folder.quantize import quantize
from regarde.text import CONTROLS, TextConfig
from regarde.training.start import Run
from regarde.training.transfer import SLOWER, continued
from tests.faults.conftest import FILES, GIVEN, MODELS
from tests.training.test_resume import RNN, SMALL, TABLE, assert_same, forget

STILL = "training.optimizer.rate=1e-12"
NEW = "".join(f"{n:02}\t{99 - n:02}\n" for n in range(40))
MORE = NEW.replace("\t9", "\tx")  # with a new symbol of the target
LABELS = "".join(f"{n:02}\t{'low' if n < 20 else 'high'}\n" for n in range(40))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {"my.tsv": TABLE, "new.tsv": NEW, "more.tsv": MORE, "labels.tsv": LABELS}.items():
        Path(name).write_text(text)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `base`, a run on my.tsv; nobody may change it."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        Path("my.tsv").write_text(TABLE)
        regarde.train("my.tsv", settings=RNN, out=home / "base")
    return home


@pytest.fixture
def base(home: Path) -> Path:
    """A copy of it beside the data."""
    return Path(shutil.copytree(home / "base", "base"))


def train(base: Path, *settings: str, data: str = "new.tsv", out: str = "run", steps: int = 12) -> Run:
    return regarde.train(data, start_from=base, settings=list(settings), out=out, steps=steps)


def weights(run: Path, step: int | None = None) -> dict[str, torch.Tensor]:
    """Those of a model, or of a checkpoint."""
    folder = run if step is None else run / "checkpoints" / f"step-{step}"
    return load_file(folder / "weights.safetensors")


def said(run: Path) -> str:
    return (run / "train.log").read_text()


def test_a_training_starts_from_the_weights_the_tokenizers_and_the_settings(base: Path) -> None:
    run = train(base)
    start, old = weights(run.folder, 0), weights(base)
    assert start.keys() == old.keys()
    assert all(torch.equal(start[name], old[name]) for name in old)
    assert not torch.equal(weights(run.folder, 12)["decoder.W_o.weight"], old["decoder.W_o.weight"])
    assert (run.folder / "target.vocab").read_bytes() == (base / "target.vocab").read_bytes()
    before, after = (config.read(folder / "config.toml") for folder in (base, run.folder))
    assert after["model"] == before["model"]
    assert after["training"]["batch_pairs"] == before["training"]["batch_pairs"] == 8
    assert after["data"]["name"] == "new.tsv"


@pytest.mark.parametrize("kind", MODELS)
def test_every_model_of_every_task_can_be_started_from(kind: str) -> None:
    data = GIVEN.get(kind, "my.tsv")
    Path(data).write_text(FILES[data])
    settings = [*SMALL, *MODELS[kind], "training.steps=1", "training.valid_every=1"]
    first = regarde.train(data, settings=settings, out="base")
    run = regarde.train(data, start_from=first.folder, settings=[STILL], steps=1, out="run")
    start, old = weights(run.folder, 0), weights(first.folder)
    assert all(torch.equal(start[name], old[name]) for name in old)


def test_the_rate_is_lower_once_unless_it_is_given(base: Path) -> None:
    def rate(run: Path) -> float:
        return float(config.read(run / "config.toml")["training"]["optimizer"]["rate"])

    run = train(base, steps=1).folder
    assert rate(run) == pytest.approx(SLOWER * rate(base))
    assert rate(train(run, steps=1, out="again").folder) == rate(run)
    given = regarde.train("new.tsv", start_from=base, rate=0.5, steps=1, out="given").folder
    assert rate(given) == 0.5


def test_a_grown_vocabulary_keeps_old_vectors_and_starts_new_ones_at_the_mean(base: Path) -> None:
    run = train(base, "training.transfer.vocabulary=grown", data="more.tsv", steps=1).folder
    start, old = weights(run, 0), weights(base)
    assert (run / "target.vocab").read_text() == (base / "target.vocab").read_text() + "x\n"
    for name in ("decoder.embedding.table.weight", "decoder.W_o.weight", "decoder.W_o.bias"):
        assert torch.equal(start[name][:-1], old[name])
        torch.testing.assert_close(start[name][-1], old[name][len(CONTROLS) :].mean(0))
    assert torch.equal(start["encoder.embedding.table.weight"], old["encoder.embedding.table.weight"])
    assert "1 token of the target" in said(run)


def test_a_grown_random_field_has_transitions_of_new_tags() -> None:
    Path("tags.conll").write_text(FILES["tags.conll"])
    Path("more.conll").write_text(FILES["tags.conll"].replace("I-TEN", "I-NEW"))
    settings = [*SMALL, *MODELS["tagger"], "training.steps=1", "text.source.kind=words"]
    first = regarde.train("tags.conll", settings=settings, out="base").folder
    grown = regarde.train(
        "more.conll", start_from=first, settings=["training.transfer.vocabulary=grown"], steps=1, out="run"
    )
    old, new = weights(first)["decoder.A"], weights(grown.folder, 0)["decoder.A"]
    assert new.shape == (len(old) + 1, len(old) + 1)
    assert torch.equal(new[:-1, :-1], old)
    torch.testing.assert_close(new[-1, :-1], old[len(CONTROLS) :].mean(0))


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
def test_new_pieces_start_at_the_mean_of_the_pieces_that_they_are_made_of(algorithm: str) -> None:
    words, others = ["house", "mouse", "louse", "horse"], ["houses", "mousetrap", "maison", "souris"]
    for name, chosen in (("one.tsv", words), ("two.tsv", words + others)):
        lines = [f"{chosen[n % len(chosen)]} {chosen[n * 7 // 3 % len(chosen)]}" for n in range(60)]
        Path(name).write_text("".join(f"{line}\t{line}\n" for line in lines))
    kind = [f"text.{side}.{key}" for side in ("source", "target") for key in ("kind=sentencepiece", "size=30")]
    kind += [f"text.{side}.model={algorithm}" for side in ("source", "target")]
    first = regarde.train("one.tsv", settings=[*RNN, *kind, "training.steps=1"], out="base").folder
    run = train(first, "training.transfer.vocabulary=grown", data="two.tsv", steps=1).folder
    before, after = load(first).text.source, load(run).text.source
    new = after.texts()[len(before) - len(CONTROLS) :]
    assert len(new) > 3
    assert after.texts()[: len(before) - len(CONTROLS)] == before.texts()
    assert after.decode(after.encode("maison souris")) == "maison souris"
    assert len(after.encode("maison souris")) < len(before.encode("maison souris"))
    old, start = (each["encoder.embedding.table.weight"] for each in (weights(first), weights(run, 0)))
    for number, text in enumerate(new, start=len(before)):
        ids = before.known_parts(text)
        whole = "".join(before.texts()[i - len(CONTROLS)] for i in ids)
        assert set(whole.strip()) <= set(text.strip())
        torch.testing.assert_close(start[number], old[ids].mean(0) if ids else old[len(CONTROLS) :].mean(0))


@pytest.mark.parametrize(
    ("part", "frozen"),
    [
        ("encoder", lambda name: name.startswith("encoder.")),
        ("embeddings", lambda name: "embedding" in name),
        ("decoder.attention", lambda name: name.startswith("decoder.attention.")),
    ],
)
def test_a_frozen_part_stays_as_it_is_and_the_optimizer_does_not_remember_it(base: Path, part: str, frozen) -> None:
    run = train(base, f'training.freeze=["{part}"]').folder
    last, old = weights(run, 12), weights(base)
    assert {name for name in old if torch.equal(last[name], old[name])} == set(filter(frozen, old))
    remembered = {key.rpartition("/")[0] for key in load_file(run / "checkpoints/step-12/optimizer.safetensors")}
    assert remembered == {name for name in old if not frozen(name)}


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "forecaster"])
def test_every_model_trains_with_frozen_embeddings(kind: str) -> None:
    data = GIVEN.get(kind, "my.tsv")
    Path(data).write_text(FILES[data])
    settings = [*SMALL, *MODELS[kind], "training.steps=1", "training.valid_every=1"]
    run = regarde.train(data, settings=[*settings, 'training.freeze=["embeddings"]'], out="run").folder
    first, last = weights(run, 0), weights(run, 1)
    moved = {name for name in first if not torch.equal(first[name], last[name])}
    assert moved
    assert not any("embed" in name for name in moved)


def test_the_pull_keeps_weights_near_those_at_the_start(base: Path) -> None:
    def moved(run: Path) -> float:
        last, old = weights(run, 12), weights(base)
        return float(sum((last[name] - old[name]).square().sum() for name in old))

    sgd = ["training.optimizer.kind=sgd", "training.optimizer.rate=0.1", "training.clip=0"]
    free, pulled = (train(base, *sgd, *more, out=f"{len(more)}") for more in ([], ["training.transfer.pull=5"]))
    assert moved(pulled.folder) < 0.75 * moved(free.folder)


def test_a_step_of_the_pull_is_the_gradient_of_half_the_squared_distance(base: Path) -> None:
    from regarde.training.start import ready, request

    wanted = request({"name": "new.tsv"}, start_from=base, settings=["training.transfer.pull=3"], out=Path("run"))
    with ready(wanted) as job:
        stepper = job.trainer.stepper
        name, parameter = next(iter(job.trainer.model.named_parameters()))
        stepper.origin = {name: parameter.detach() - 2}
        stepper._pull()
        torch.testing.assert_close(parameter.grad, torch.full_like(parameter, 6.0))
        stepper._pull()  # added to what is there
        torch.testing.assert_close(parameter.grad, torch.full_like(parameter, 12.0))


@pytest.mark.parametrize("step", [0, 3, 9])
def test_a_run_goes_on_bit_for_bit_without_the_model_that_it_started_from(base: Path, step: int) -> None:
    settings = ["training.transfer.pull=0.1", "training.transfer.mix=0.3", 'training.freeze=["encoder"]']
    whole = train(base, *settings, "training.transfer.vocabulary=grown", data="more.tsv", out="whole")
    shutil.copytree("whole", "cut")
    forget(Path("cut"), step)
    shutil.rmtree(base)
    assert_same(whole.folder, regarde.train("cut", resume=True).folder)


def test_the_origin_that_a_checkpoint_keeps_is_checked(base: Path) -> None:
    run = train(base, "training.transfer.pull=0.1", steps=4).folder
    path = run / "checkpoints/step-4/origin.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.warns(RegardeWarning, match="step-4 skipped: .*origin.safetensors: SHA-256 differs"):
        regarde.train(run, resume=True)


def encoded(count: int, first: str) -> EncodedPairs:
    text = TextConfig().train([("abcdefgh" * 9, "abcdefgh" * 9)])
    rows = [first * (1 + n % 7) for n in range(count)]
    return EncodedPairs.of(map(Pair, rows, rows), text)


def test_each_batch_has_its_share_of_old_rows_and_each_row_its_turn() -> None:
    mixed = MixedPairs.mixed(encoded(90, "a"), encoded(50, "b"), 0.25)
    seen, turns = set(), []
    for epoch in range(2):
        batches = mixed.epoch(seed=3, epoch=epoch, pairs=16, tokens=0)
        assert sorted(row for batch in batches for row in batch.tolist() if row < 90) == list(range(90))
        assert all(len(batch) <= 17 for batch in batches)
        assert all(abs((batch >= 90).mean() - 0.25) < 0.07 for batch in batches)
        turns += [row for batch in batches for row in batch.tolist() if row >= 90]
        seen.add(tuple(np.concatenate(batches).tolist()))
    assert len(turns) == 60
    assert set(turns) == set(range(90, 140))
    assert len(seen) == 2
    again = mixed.epoch(seed=3, epoch=1, pairs=16, tokens=0)
    assert tuple(np.concatenate(again).tolist()) in seen


def test_old_rows_do_not_make_a_batch_too_large() -> None:
    long = replace(encoded(50, "b"), dropped=0)
    mixed = MixedPairs.mixed(encoded(90, "a"), long, 0.5)
    for batch in mixed.epoch(seed=1, epoch=0, pairs=0, tokens=60):
        assert mixed.positions(batch) <= 60 or len(batch) == 1


def test_old_data_are_those_of_the_model_unless_others_are_named(base: Path) -> None:
    run = train(base, "training.transfer.mix=0.5", steps=1).folder
    assert config.read(run / "config.toml")["training"]["transfer"]["data"]["name"] == "my.tsv"
    other = train(
        base, "training.transfer.mix=0.5", "training.transfer.data.name=more.tsv", steps=1, out="other"
    ).folder
    assert config.read(other / "config.toml")["training"]["transfer"]["data"]["name"] == "more.tsv"
    assert "more.tsv, 50% of the rows" in (other / "README.md").read_text()
    assert weights(run, 1)["decoder.W_o.bias"].ne(weights(other, 1)["decoder.W_o.bias"]).any()


def test_an_encoder_starts_a_model_for_another_task(base: Path) -> None:
    run = train(base, "task.kind=classification", data="labels.tsv", steps=1).folder
    start, old = weights(run, 0), weights(base)
    of_encoder = {name for name in old if name.startswith("encoder.")}
    assert {name for name in start if name.startswith("encoder.")} == of_encoder
    assert all(torch.equal(start[name], old[name]) for name in of_encoder)
    assert (run / "source.vocab").read_bytes() == (base / "source.vocab").read_bytes()
    assert (run / "target.vocab").read_text().split() == ["high", "low"]


def test_the_encoder_of_a_transformer_starts_a_classifier() -> None:
    first = regarde.train("my.tsv", settings=[*SMALL, *MODELS["transformer"], "training.steps=1"], out="base").folder
    run = train(first, "task.kind=classification", data="labels.tsv", steps=1).folder
    start, old = weights(run, 0), weights(first)
    assert all(torch.equal(start[name], old[name]) for name in old if name.startswith("encoder."))


def test_a_model_in_bytes_is_started_from_in_floats(base: Path) -> None:
    quantize(base, Path("bytes"))
    run = train(Path("bytes"), STILL, steps=1).folder
    expected = load(Path("bytes")).model.state_dict()
    start = weights(run, 0)
    assert all(torch.equal(start[name], expected[name]) for name in expected)
    assert "matrices are in bytes" in said(run)


def test_card_and_settings_say_where_a_model_comes_from(base: Path, tmp_path: Path) -> None:
    run = train(base.resolve(), 'training.freeze=["encoder"]', steps=1).folder
    digest = hashlib.sha256((base / "manifest.json").read_bytes()).hexdigest()
    card = (run / "README.md").read_text()
    assert f"| started from | base (SHA-256 of its manifest {digest}) |" in card
    assert "| not trained | encoder |" in card
    assert str(tmp_path) not in card
    assert config.read(run / "config.toml")["training"]["transfer"]["sha256"] == digest


def test_shares_of_unknown_tokens_are_told_and_bounded(base: Path) -> None:
    Path("letters.tsv").write_text("".join(f"{'abcdefgh'[n % 8]}{n % 7}\t{n:02}\n" for n in range(40)))
    with pytest.raises(DataError, match=r"50% of the source tokens are unknown to base.*vocabulary=grown"):
        train(base, data="letters.tsv")
    run = train(base, "training.transfer.vocabulary=grown", data="letters.tsv", steps=1)
    assert "unknown: 0.0% of the source tokens, 0.0% of the target tokens" in said(run.folder)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (['training.freeze=["encodr"]'], ConfigError, 'unknown part of this model. Did you mean "encoder"?'),
        (['training.freeze=["encoder", "decoder"]'], ConfigError, "nothing is left to train"),
        (["model.hidden=9"], ConfigError, "The weights of base do not fit: .*Leave out --set model.hidden, or --from"),
        (["text.source.kind=words"], ConfigError, "text.source.kind: the tokenizers are those of base"),
        (["task.kind=modeling"], UsageError, "."),
        (["training.transfer.mix=0.3", "training.transfer.data.name=no.tsv"], DataError, "no.tsv: no such file"),
        (["training.transfer.sha256=0123"], DataError, "expected 0123"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_folder_is_made(base: Path, settings: list[str], error, message) -> None:
    with pytest.raises(error, match=message):
        train(base, *settings)
    assert not Path("run").exists()


def test_other_mistakes_are_one_line(cli, base: Path) -> None:
    assert "nix: no such folder" in cli("train", "new.tsv", "--from", "nix").fails(4)
    assert "not a model folder" in cli("train", "new.tsv", "--from", ".").fails(4)
    preset = cli("train", "new.tsv", "--from", base, "--preset", "cho-small")
    assert "--preset cho-small: the model to start from has its own settings" in preset.fails(2)
    series = cli("train", "new.tsv", "--from", base, "--set", "task.kind=forecasting")
    assert "--from" in series.fails(2)
    assert "without a model to start from" in cli("train", "new.tsv", "--set", "training.transfer.pull=1").fails(2)
    wrong = cli("train", "--from", base, "--resume", base)
    assert "leave these out" in wrong.fails(2)


def test_a_missing_folder_is_a_folder_error() -> None:
    with pytest.raises(FolderError):
        continued(Path("nix"))


def test_a_search_starts_every_trial_from_the_model(cli, base: Path) -> None:
    Path("space.toml").write_text('space."training.optimizer.rate" = {low = 1e-12, high = 2e-12}\n')
    done = cli(
        *("search-params", "new.tsv", "--from", base, "--space", "space.toml", "--out", "found", "--trials", 1),
        *("--set", "training.steps=2"),
    )
    assert done.code == 0, done.error
    best = weights(Path("found/trials/0001"))
    assert all(torch.allclose(best[name], tensor, atol=1e-6) for name, tensor in weights(base).items())
    assert json.loads(Path("found/report.json").read_text())["best"] == 1
