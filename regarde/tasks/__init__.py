"""What is given and what is wanted. One file = one task; a task says, and does nothing else:

    read         files -> rows, each a pair of texts: what is given, what is wanted
    tokenizers   how both become tokens
    metric       how an answer is judged while a model trains
    models       which kinds of models answer it, and `preset`, the one that is trained unless another is named

A label is a text of one token, tags are as many words as there are tokens, and of a language model nothing is given: so
search, evaluation and serving handle rows, tokens and answers, and never ask for the task. Of forecasting, numbers are
given and wanted: its rows are series, its answers forecasts; training handles both alike.
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
"""The task of each kind of model that does not translate; if several tasks share a kind, the first."""


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
