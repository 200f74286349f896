"""Real data, a real model, and its loss."""

from gradacc_lessons.tasks.chat import chat
from gradacc_lessons.tasks.digits import digits
from gradacc_lessons.tasks.task import Task

__all__ = ["Task", "chat", "digits"]
