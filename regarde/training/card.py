"""The model card: what a model is, in words, for whoever finds its folder."""

from __future__ import annotations

from regarde.evaluation.metrics import METRICS
from regarde.models.interface import Model
from regarde.training.checkpoint import State
from regarde.training.recipe import Recipe, length


def model_card(recipe: Recipe, model: Model, state: State) -> str:
    """Markdown for the folder's README.md."""
    data = recipe.data
    found = "none yet"
    if state.last:
        metric = METRICS[recipe.training.metric].show(state.last.value)
        found = f"loss {state.last.loss:.4f}, {metric}, after {state.last.step:,} steps"
    name = data.name or f"{data.source} and {data.target}"
    languages = f"{recipe.source_language or 'not stated'} -> {recipe.target_language or 'not stated'}"
    return f"""# A {recipe.model.kind} model trained with Regarde

| | |
|---|---|
| model | {recipe.model.kind}, {model.parameter_count():,} parameters |
| languages | {languages} |
| source tokens | {recipe.text.source.kind} |
| target tokens | {recipe.text.target.kind} |
| data | {name} (SHA-256 of the training pairs {data.sha256[:16]}…) |
| trained | {state.step:,} steps, of {length(recipe.training)}; seed {recipe.training.seed} |
| validation | {found} |

    regarde translate THIS_FOLDER < sentences.txt
    regarde show THIS_FOLDER "a sentence"

config.toml holds every setting; manifest.json the SHA-256 of each file.
"""
