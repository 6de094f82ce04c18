"""Evaluation: metrics by established libraries, comparisons of models, and attention against gold links."""
