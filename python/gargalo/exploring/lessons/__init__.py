"""Lessons of the explorer: a scenario, and steps that each ask before they show.

A lesson is a file in TOML beside this one, with its name. `model` reads it, `figures` measures what its explanations
quote, `sheet` writes it as a page for paper.
"""

from __future__ import annotations

from gargalo.exploring.lessons.figures import Figure
from gargalo.exploring.lessons.model import Lesson, LessonError, Step, lesson, names

__all__ = ["Figure", "Lesson", "LessonError", "Step", "lesson", "names"]
