"""Hyperparameter search: a declared space of settings, searched by Optuna, one training for each trial."""
