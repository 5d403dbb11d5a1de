"""What the explorer's page has of a lesson: its outline at once, an explanation when a step has been answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo.exploring.text import plain

if TYPE_CHECKING:
    from gargalo.exploring.lessons.model import Lesson
    from gargalo.exploring.view import Part


def outline(lesson: Lesson) -> Part:
    """Return everything but explanations, whose figures are measured when they are asked for."""
    return {
        "name": lesson.name,
        "title": lesson.title,
        "teaches": lesson.teaches,
        "source": lesson.source,
        "needs": lesson.needs,
        "minutes": lesson.minutes,
        "text": lesson.text,
        "plain": plain(lesson.text),
        "steps": [
            {
                "title": s.title,
                "question": s.question,
                "choices": s.choices,
                "right": s.right,
                "changes": s.changes,
                "text": s.text,
                "panels": s.panels,
                "at_s": s.at_s,
                "ghost": s.ghost,
            }
            for s in lesson.steps
        ],
    }


def explained(lesson: Lesson, number: int) -> Part:
    """Return what is told after a step, which are counted from 1.

    Raises:
        LessonError: The step's run does not have one of its figures.

    """
    return {
        "paragraphs": lesson.explanation(number),
        "figures": [{"what": f.what, "shown": str(f)} for f in lesson.figures(number)],
    }
