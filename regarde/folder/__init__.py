"""The model folder: written and read (model), verified (manifest), opened by the engine that fits (loading)."""
