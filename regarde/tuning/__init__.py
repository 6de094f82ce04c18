"""Which settings of a recipe are best: a declared space, searched by Optuna, one training a trial."""
