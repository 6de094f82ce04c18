"""`regarde models` as a command."""

from __future__ import annotations


def test_presets_are_listed_and_one_is_told_about(cli) -> None:
    listed = cli("models").out.decode().splitlines()
    assert any(line.startswith("rnnsearch-small ") for line in listed)
    page = cli("models", "rnnsearch-small").out.decode()
    assert page.startswith("rnnsearch-small: ")
    assert page.endswith("Train it: regarde train DATA --preset rnnsearch-small\n")
    assert "regarde export --to huggingface: no (model.kind = bahdanau" in page
    assert "regarde export --to huggingface: yes\n" in cli("models", "transformer-base").out.decode()


def test_parameters_are_counted_for_the_vocabulary_given(cli) -> None:
    from regarde.training import recipe
    from regarde.training.presets import preset

    model = recipe.parse(preset("rnnsearch-small").recipe).model.build(50, 50)
    page = cli("models", "rnnsearch-small", "--vocabulary", "50").out.decode()
    assert f"parameters: {model.parameter_count():,} with vocabularies of 50\n" in page


def test_an_unknown_preset_is_named_as_it_was_given(cli) -> None:
    line = cli("models", "rnnsearch-smal").fails(2)
    assert line.startswith('regarde: rnnsearch-smal: unknown preset. Did you mean "rnnsearch-small"?')
    assert 'Did you mean "transformer-small"?' in cli("models", "transfomer").fails(2)
    assert "rnnsearch-smal: unknown preset" in cli("train", "copy", "--preset", "rnnsearch-smal").fails(2)
