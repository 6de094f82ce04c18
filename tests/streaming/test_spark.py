"""Translation of a column on Spark, started here with two cores."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regarde.errors import UsageError

pytest.importorskip("pandas")
sql = pytest.importorskip("pyspark.sql")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java", allow_module_level=True)

import regarde.spark  # noqa: E402


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patched.setenv("PYSPARK_PYTHON", sys.executable)
        patched.setenv("PYTHONPATH", ":".join(sys.path))
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.showConsoleProgress": "false",
        }
        builder = sql.SparkSession.builder.master("local[2,4]")  # with three more attempts
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


def rows(count: int) -> list[tuple[int, str | None]]:
    dice = random.Random(1)
    texts: list[str | None] = ["".join(dice.choices("abcdefgh", k=dice.randint(1, 7))) for _ in range(count)]
    texts[3], texts[5], texts[7] = None, "", "ab " * 30_000
    return list(enumerate(texts))


def answers(frame: Any) -> list[str | None]:
    return [row.translation for row in sorted(frame.collect(), key=lambda row: row.n)]


def expected(regarde, tiny: Path, given: list[tuple[int, str | None]]) -> list[str | None]:
    """What `regarde translate` writes; null for null, and for what it refuses."""
    lines = "".join(f"{text or ''}\n" for _, text in given).encode()
    found: list[str | None] = list(regarde("translate", tiny, stdin=lines).out.decode().split("\n")[:-1])
    found[3] = found[7] = None
    return found


def test_a_column_is_translated_as_regarde_translate_does_it(spark, regarde, tiny: Path) -> None:
    given = rows(2000)
    frame = spark.createDataFrame(given, "n int, text string").repartition(3)
    assert answers(regarde_spark(frame, tiny)) == expected(regarde, tiny, given)


def test_a_partition_whose_worker_is_killed_is_translated_anew(spark, regarde, tiny: Path) -> None:
    given = rows(20_000)
    frame = spark.createDataFrame(given, "n int, text string").repartition(6)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(answers(regarde_spark(frame, tiny))))
    thread.start()
    killed = 0
    while thread.is_alive() and not killed:
        with contextlib.suppress(OSError):  # of a process that has just ended
            for process in workers():
                os.kill(process, signal.SIGKILL)
                killed += 1
        time.sleep(0.01)
    thread.join()
    assert killed
    assert found == [expected(regarde, tiny, given)]


def test_a_column_that_is_not_there_is_an_error(spark, tiny: Path) -> None:
    frame = spark.createDataFrame([(1, "a")], "n int, text string")
    with pytest.raises(UsageError, match="column = 'words': the frame has n, text"):
        regarde.spark.translate(frame, tiny, column="words")
    with pytest.raises(UsageError, match="into = 'n': the frame has such a column already"):
        regarde.spark.translate(frame, tiny, column="text", into="n")


def regarde_spark(frame: Any, tiny: Path) -> Any:
    return regarde.spark.translate(frame, tiny, column="text")


def workers() -> list[int]:
    """The processes of Spark that have loaded a model, started by this one."""
    return [process for process in descendants(os.getpid()) if "_kernels" in Path(f"/proc/{process}/maps").read_text()]


def descendants(process: int) -> Iterator[int]:
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            yield child
            yield from descendants(child)
