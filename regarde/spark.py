"""Translation of a column of a Spark data frame: `regarde.spark.translate(frame, "runs/mine", column="text")`.

Each Python worker of Spark loads the model once and answers the rows of its partitions with the same filter as `regarde
translate`. A partition is translated anew when its worker is lost: Spark does that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regarde.errors import UsageError
from regarde.streaming.copies import RemoteWorker, files_of
from regarde.streaming.filter import FilterConfig

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame


def translate(
    frame: DataFrame, run: str | Path | Sequence[str | Path], *, column: str, into: str = "translation", **options: Any
) -> DataFrame:
    """The frame with one more column: the answers to the texts of `column`.

    `run` is a model folder on this machine, or several for an ensemble; its files travel with the job. `options` are
    those of regarde.streaming.filter.FilterConfig, for example beam=4 or long="split". A row without text stays null;
    so is the answer to a text that is refused because it is too long.
    """
    from pyspark.sql.types import StringType, StructType

    runs = [run] if isinstance(run, str | Path) else list(run)
    if column not in frame.columns:
        raise UsageError(f"column = {column!r}: the frame has {', '.join(frame.columns)}. Give one of them.")
    if into in frame.columns:
        raise UsageError(f"into = {into!r}: the frame has such a column already. Give another name.")
    worker = RemoteWorker.of(FilterConfig(runs=tuple(map(str, runs)), **{"threads": 1, **options}))
    folders = [files_of(str(each)) for each in runs]

    def answered(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        import pyarrow

        for batch in batches:
            answers = worker.here(folders).answers(batch.column(column).to_pylist())
            columns = [*batch.columns, pyarrow.array(answers, pyarrow.string())]
            yield pyarrow.RecordBatch.from_arrays(columns, names=[*batch.schema.names, into])

    return frame.mapInArrow(answered, StructType([*frame.schema.fields]).add(into, StringType()))
