"""Forecasting: the source is the past of a series, the target its next values. Rows are series, not texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NoReturn

from regarde.config import Bound, Count
from regarde.data.formats import Pair
from regarde.data.windows import Scaling, WindowShape
from regarde.errors import ConfigError, UsageError
from regarde.tasks.interface import Sides, Task
from regarde.text.sides import TokenizerConfig

Steps = Annotated[int, Bound(0, 10_000)]
Lag = Annotated[int, Bound(1, 10_000)]


@dataclass(frozen=True)
class ForecastingTask(Task):
    """Series of numbers; what is not set is inferred from them."""

    models: ClassVar[tuple[str, ...]] = ("deepar", "forecaster")
    preset: ClassVar[str] = "forecaster-small"
    noun: ClassVar[str] = "a forecaster"
    row: ClassVar[str] = "series"
    example: ClassVar[str] = "regarde forecast"
    numbers: ClassVar[bool] = True
    metrics: ClassVar[tuple[str, ...]] = ("crps", "mase", "smape", "coverage")
    course: ClassVar[tuple[str, ...]] = ("deepar-small", "forecaster-small")
    kind: Literal["forecasting"] = "forecasting"
    horizon: Steps = 0  # Values to forecast; 0: two seasons, fewer for short series.
    history: Steps = 0  # Past values that a model reads; 0: seven seasons or two horizons, fewer for short series.
    frequency: str = ""  # Time between two values: h, 15min, D, W, M; not set: inferred from the time stamps.
    season: Count = 0  # Values after which a series repeats; 0: inferred from the frequency.
    lags: tuple[Lag, ...] = ()  # Steps back to the earlier values that each step also reads; not set: by the season.
    scaling: Scaling = "standard"  # How a window is scaled: standard, mean of |z|, paper (1 + mean), or none.
    direct: bool = False  # Forecast each step from the past alone, not from the values drawn before it.
    weighted: bool = True  # Draw windows in proportion to the scale of their series, as the paper does; or evenly.

    def __post_init__(self) -> None:
        if self.season > 10_000:
            raise ConfigError(f"season = {self.season}: expected at most 10,000.")

    @property
    def shape(self) -> WindowShape:
        return WindowShape(self.history, self.horizon, self.lags, self.scaling, max(1, self.season), self.direct)

    def metric(self, target: TokenizerConfig, pairs: Sequence[Pair]) -> str:
        return "crps"

    def tokenizers(self, pairs: Sequence[Pair]) -> Sides:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UsageError("A forecaster reads numbers, not text. Use regarde forecast.")
