"""Training, from a recipe to a run folder: prepare -> step -> validate -> save."""
