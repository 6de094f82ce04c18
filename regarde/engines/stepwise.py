"""Forecasting with torch: the reference for the native engine, and the engine for other devices than the CPU."""

from __future__ import annotations

import numpy as np
import torch

from regarde.data.windows import Floats, WindowArrays
from regarde.engines.stepping import NextValue, PathWalk
from regarde.models.forecasting import ForecastModel, Window


class TorchForecastEngine:
    name = "torch"

    def __init__(self, model: ForecastModel, device: torch.device | str = "cpu") -> None:
        self.model = model.eval()
        self.likelihood: str = model.likelihood
        self.device = device

    @torch.no_grad()
    def start(self, windows: WindowArrays, history: int) -> PathWalk:
        window = Window.of(windows, history).to(self.device)
        return _TorchWalk(self, window)


class _TorchWalk:
    def __init__(self, engine: TorchForecastEngine, window: Window) -> None:
        self.engine = engine
        self.state = engine.model.start(window.past, window.series)

    @torch.no_grad()
    def repeat(self, paths: int) -> None:
        self.state = self.state.repeat(paths)

    @torch.no_grad()
    def step(self, inputs: Floats) -> NextValue:
        found = self.engine.model.step(torch.from_numpy(inputs).to(self.engine.device), self.state)
        self.state = found.state
        return NextValue(found.given.double().cpu().numpy(), found.weights.cpu().numpy().astype(np.float32))
