"""Tasks: the sources and targets of models. Each file contains one task, and a task defines only:

    read         files -> rows, each a pair of texts: source and target
    tokenizers   how both become tokens
    metric       how an answer is judged while a model trains
    models       the kinds of models for the task, and `preset`, the one that is trained by default

A label is a text of one token, tags are as many words as there are tokens, and the source of a language model is empty.
So search, evaluation and serving handle rows, tokens and answers, and do not depend on the task. Forecasting is the
exception: its rows are series of numbers, its answers forecasts. Training handles both alike.
"""

from typing import get_args

from regarde.tasks.classification import ClassificationTask
from regarde.tasks.forecasting import ForecastingTask
from regarde.tasks.interface import Sides, Task
from regarde.tasks.modeling import ModelingTask
from regarde.tasks.questions import QuestionsTask
from regarde.tasks.tagging import TaggingTask
from regarde.tasks.translation import TranslationTask

TaskConfig = TranslationTask | ClassificationTask | TaggingTask | ModelingTask | QuestionsTask | ForecastingTask
TRANSLATION = TranslationTask()
TASKS: dict[str, TaskConfig] = {task.kind: task() for task in get_args(TaskConfig)}

OF_MODEL: dict[str, TaskConfig] = {kind: task for task in reversed(TASKS.values()) for kind in task.models}
"""The task of each kind of model that is for one task only; if several tasks share a kind, the first."""


def suits(task: TaskConfig, model: str) -> bool:
    """Whether a kind of model is for a task."""
    return model in task.models or (task.generates and model not in OF_MODEL)


__all__ = [
    "OF_MODEL",
    "TASKS",
    "TRANSLATION",
    "ClassificationTask",
    "ForecastingTask",
    "ModelingTask",
    "QuestionsTask",
    "Sides",
    "TaggingTask",
    "Task",
    "TaskConfig",
    "TranslationTask",
    "suits",
]
