"""A lesson on paper: the questions, then what the runs show, then the answers, each beginning on a page of its own."""

from __future__ import annotations

import base64
import re
from html import escape
from typing import TYPE_CHECKING

from gargalo.exploring.frozen import asset, digest
from gargalo.exploring.lessons.model import LETTERS
from gargalo.pictures.metrics import overlay, picture
from gargalo.pictures.paper import draw, encoded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gargalo.exploring.lessons.model import Lesson, Step

SHOWN = 2
"""Pictures of a step, side by side: the first of its panels."""
WIDTH_IN = 3.6
LINES = 3
"""For the answer to an open question."""


def sheet(lesson: Lesson) -> str:
    """Return the page: one HTML file without scripts, for a printer or a browser.

    Raises:
        LessonError: A run does not have a figure that its explanation quotes.

    """
    style = asset("sheet.css")
    policy = f"default-src 'none'; img-src data:; style-src {digest(style)}"
    steps = list(enumerate(lesson.steps, 1))
    parts = [
        f"<h1>{escape(lesson.title)}</h1>",
        f"<p>{escape(lesson.teaches)}</p>",
        f"<p class='about'>{escape(lesson.source)}. Before: {_prose(lesson.needs)} About {lesson.minutes} minutes.</p>",
        f"<pre>{escape(lesson.text.strip())}</pre>",
        "<section><h2>Questions</h2>",
        *(_question(n, step) for n, step in steps),
        "</section><section><h2>What the runs show</h2>",
        *(_shown(lesson, n, step) for n, step in steps),
        "</section><section><h2>Answers</h2>",
        *(_answer(lesson, n, step) for n, step in steps),
        "</section>",
    ]
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(lesson.title)}</title><style>{style}</style></head>\n<body>"
        + "\n".join(parts)
        + "</body></html>\n"
    )


def _question(number: int, step: Step) -> str:
    choices = "".join(
        f"<li><span class='box'></span>{letter}) {_prose(choice)}</li>"
        for letter, choice in zip(LETTERS, step.choices, strict=False)
    )
    answer = f"<ul>{choices}</ul>" if choices else "<p class='line'></p>" * LINES
    return (
        f"<article><h3>{number}. {escape(step.title)}</h3>"
        f"<p>{_prose(step.question)}</p>{answer}</article>"
    )


def _changes(step: Step) -> str:
    lines = "\n".join(step.changes)
    return f"<pre>{escape(lines)}</pre>" if lines else ""


def _shown(lesson: Lesson, number: int, step: Step) -> str:
    pictures = "".join(_pictures(lesson, number, step))
    return (
        f"<article><h3>{number}. {escape(step.title)}</h3>{_changes(step)}"
        f"<div class='pictures'>{pictures}</div></article>"
    )


def _pictures(lesson: Lesson, number: int, step: Step) -> Iterable[str]:
    for metric in step.panels[:SHOWN]:
        chart = picture(lesson.run(number), metric)
        if step.ghost:
            before = picture(lesson.run(number - 1), metric)
            chart = overlay([("now", chart), ("before", before)])
        drawn = encoded(draw(chart, width_in=WIDTH_IN, font_pt=8), "svg")
        data = base64.b64encode(drawn).decode()
        yield f"<img alt='{escape(chart.title)} over time' src='data:image/svg+xml;base64,{data}'>"


def _answer(lesson: Lesson, number: int, step: Step) -> str:
    right = ""
    if step.right is not None:
        choice = step.choices[LETTERS.index(step.right)]
        right = f"<p><b>{step.right}) {_prose(choice)}</b></p>"
    told = "".join(f"<p>{_prose(p)}</p>" for p in lesson.explanation(number))
    rows = "".join(
        f"<tr><td>{escape(f.what)}</td><td>{escape(str(f))}</td></tr>"
        for f in lesson.figures(number)
    )
    return (
        f"<article><h3>{number}. {escape(step.title)}</h3>{right}{told}<table>{rows}</table></article>"
    )  # fmt: skip


def _prose(text: str) -> str:
    """Return a text with what is between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
