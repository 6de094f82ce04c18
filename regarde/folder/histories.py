"""history.jsonl of a forecaster's folder: the last values of each series, to forecast from (see data/series.py)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from regarde.data.series import SeriesSet
from regarde.data.tables import series_of_lines
from regarde.errors import DataError, FolderError, unreadable
from regarde.folder.manifest import HISTORY
from regarde.tasks.forecasting import ForecastingTask


@dataclass(frozen=True, eq=False)
class Histories:
    """The end of each series that a model was trained on, in the order of the model's vectors of series."""

    series: SeriesSet

    def save(self, folder: Path) -> None:
        (folder / HISTORY).write_text("".join(f"{line}\n" for line in self.series.as_lines()), encoding="utf-8")


def load_histories(folder: Path, task: ForecastingTask) -> SeriesSet:
    """The histories of a verified folder."""
    path = folder / HISTORY
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        return series_of_lines(lines, str(path), frequency=task.frequency, season=task.season)
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError):
            raise FolderError(unreadable(path, error, "Restore it, or train again.")) from None
        raise FolderError(f"{path}: not valid UTF-8. Restore it, or train again.") from None
    except DataError as error:
        raise FolderError(f"{error} Restore the folder, or train again.") from None
