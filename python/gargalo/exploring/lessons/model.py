"""What a lesson consists of, and how its file is read."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gargalo._toml import TOMLDecodeError, loads
from gargalo.explaining.model import RECORDED
from gargalo.exploring.lessons.figures import STATISTICS, Expectation, UnknownFigureError
from gargalo.exploring.text import Edit, edited
from gargalo.exploring.watching import classes
from gargalo.running import Text, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gargalo.exploring.lessons.figures import Figure
    from gargalo.results import Run

HERE = Path(str(files("gargalo.exploring"))) / "lessons"
EXAMPLES = HERE.parent.parent / "examples"
LETTERS = "abcd"
"""By which the choices of a question are named."""
QUOTE = re.compile(r"\{(?:(\d+)\.)?([a-z_]\w*)\}")
"""A figure in an explanation: `{name}` of its own step, `{2.name}` of the second."""


class LessonError(ValueError):
    """A file of a lesson that is not as it must be; it names the file and the key."""


@dataclass(frozen=True)
class Step:
    """A question, a change of the scenario, and what the run then shows."""

    title: str
    question: str
    choices: tuple[str, ...]
    """Named a, b, and so on; without any the question is open."""
    right: str | None
    """The letter of the right one."""
    edits: tuple[Edit, ...]
    text: str
    """The scenario with these edits and those of all steps before."""
    panels: tuple[str, ...]
    """What to look at: names of metrics, as `gargalo plot --metric` has them."""
    at_s: float | None
    """The instant to look at."""
    ghost: bool
    """Whether the run of the step before stays behind this one as A."""
    explanation: str
    """Paragraphs; `{name}` is a figure of `expect`, `{2.name}` one of the second step."""
    expect: tuple[Expectation, ...]

    @property
    def changes(self) -> list[str]:
        """The edits as a reader sees them, one a line."""
        found = []
        for e in self.edits:
            place = ".".join(map(str, e.place))
            found.append(f"{place} is removed" if e.remove else f"{place} = {_written(e.value)}")
        return found


@dataclass(frozen=True, eq=False)
class Lesson:
    """A story about transport protocols."""

    name: str
    title: str
    teaches: str
    """In a sentence."""
    source: str
    """The RFC or the paper."""
    needs: str
    """What a reader should know before."""
    minutes: int
    text: str
    """The scenario to begin with."""
    path: Path
    """The file beside which its traces are."""
    steps: tuple[Step, ...]
    plugin: Path | None = None
    """A Python file with a congestion control, for readers to edit."""

    def run(self, number: int) -> Run:
        """Run the scenario of a step, which are counted from 1, with the lesson's own classes."""
        return _run(self, number)

    def figures(self, number: int) -> tuple[Figure, ...]:
        """Return the figures that a step expects, as its run has them.

        Raises:
            LessonError: The run does not have one.

        """
        return _figures(self, number)

    def explanation(self, number: int) -> list[str]:
        """Return the paragraphs of a step's explanation, with the figures as they were measured."""

        def measured(found: re.Match[str]) -> str:
            step, name = int(found[1] or number), found[2]
            return str(next(f for f in self.figures(step) if f.name == name))

        told = QUOTE.sub(measured, self.steps[number - 1].explanation)
        return [" ".join(p.split()) for p in told.split("\n\n")]

    def controllers(self) -> Mapping[str, type]:
        """Return the congestion controls of the lesson's own file, by name."""
        return {} if self.plugin is None else _classes(self.plugin)


def names() -> list[str]:
    """Return the names of all lessons, the first to read first."""
    found = [p.stem for p in HERE.glob("*.toml")]
    order = {name: n for n, name in enumerate(ORDER)}
    return sorted(found, key=lambda name: (order.get(name, len(order)), name))


ORDER = (
    "aimd",
    "bufferbloat",
    "round-trips",
    "bbr",
    "head-of-line",
    "handover",
    "l4s",
    "radio",
    "starvation",
    "own-controller",
)
"""Each needs no more than those before it; a lesson that is not here comes after them."""


@functools.cache
def lesson(name: str) -> Lesson:
    """Return a lesson by its name.

    Raises:
        LessonError: There is none, or its file is wrong.

    """
    if name not in names():
        msg = f'there is no lesson "{name}"; there are {", ".join(names())}'
        raise LessonError(msg)
    return read(HERE / f"{name}.toml")


def read(file: Path) -> Lesson:
    """Read a lesson from its file.

    Raises:
        LessonError: The file is wrong; it says which key.

    """
    try:
        table = loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, TOMLDecodeError) as e:
        msg = f"{file.name}: {e}"
        raise LessonError(msg) from None
    given = Table(file.name, "", table)
    scenario, path = given.text("scenario"), file
    if "\n" not in scenario:
        path = EXAMPLES / f"{scenario}.toml"
        if not path.is_file():
            raise given.wrong("scenario", f"there is no example {scenario!r}")
        scenario = path.read_text(encoding="utf-8")
    plugin = given.optional("plugin", str)
    if plugin is not None and not (file.parent / plugin).is_file():
        raise given.wrong("plugin", f"there is no {plugin} beside it")
    steps: list[Step] = []
    for inner in given.tables("steps"):
        steps.append(_step(inner, scenario if not steps else steps[-1].text, steps))
    made = Lesson(
        name=file.stem,
        title=given.text("title"),
        teaches=given.text("teaches"),
        source=given.text("source"),
        needs=given.text("needs"),
        minutes=int(given.number("minutes")),
        text=scenario,
        path=path,
        steps=tuple(steps),
        plugin=None if plugin is None else file.parent / plugin,
    )
    if not steps:
        raise given.wrong("steps", "a lesson has at least one")
    given.end()
    return made


def _step(given: Table, text: str, before: list[Step]) -> Step:
    choices = tuple(given.texts("choices", default=()))
    if len(choices) not in (0, 2, 3, 4):
        raise given.wrong("choices", "a question has two to four choices, or none")
    right = given.optional("right", str)
    if choices and right not in LETTERS[: len(choices)]:
        raise given.wrong("right", f"is one of {', '.join(LETTERS[: len(choices)])}")
    if not choices and right is not None:
        raise given.wrong("right", "an open question has no right choice")
    edits = _edits(given)
    try:
        changed = edited(text, edits)
    except ValueError as e:
        raise given.wrong("set", str(e)) from None
    ghost = bool(given.optional("ghost", bool))
    if ghost and not before:
        raise given.wrong("ghost", "there is no step before the first")
    at_s = given.optional("at_s", float)
    made = Step(
        title=given.text("title"),
        question=given.text("question"),
        choices=choices,
        right=right,
        edits=edits,
        text=changed,
        panels=tuple(given.texts("panels")),
        at_s=at_s,
        ghost=ghost,
        explanation=given.text("explanation"),
        expect=tuple(_expectation(inner) for inner in given.tables("expect")),
    )
    if not made.expect:
        raise given.wrong("expect", "a step has at least one figure that shows what it says")
    for found in QUOTE.finditer(made.explanation):
        number = int(found[1] or len(before) + 1)
        known = [*before, made][number - 1 : number]
        if not known or found[2] not in [e.name for e in known[0].expect]:
            raise given.wrong("explanation", f"no figure of step {number} is named {found[2]}")
    given.end()
    return made


def _edits(given: Table) -> tuple[Edit, ...]:
    """Return the changes of `set`, dotted keys as those of `--set`, and of `remove`."""
    changes = given.optional("set", dict) or {}
    removed = given.texts("remove", default=())
    return (
        *(Edit(_place(key), value) for key, value in changes.items()),
        *(Edit(_place(key), remove=True) for key in removed),
    )


def _place(key: str) -> tuple[str | int, ...]:
    return tuple(int(k) if k.isdigit() else k for k in key.split("."))


def _expectation(given: Table) -> Expectation:
    statistic, during = given.optional("statistic", str), given.optional("during", list)
    if statistic is not None and statistic not in STATISTICS:
        raise given.wrong("statistic", f"is one of {', '.join(STATISTICS)}")
    if during is not None and (
        len(during) != 2 or not all(isinstance(t, (int, float)) for t in during)
    ):
        raise given.wrong("during", "is two times in seconds, as [5, 10]")
    made = Expectation(
        name=given.text("name"),
        what=given.text("what"),
        metric=given.text("metric"),
        flow=given.optional("flow", str),
        path=given.optional("path", str),
        link=given.optional("link", str),
        during=None if during is None else (float(during[0]), float(during[1])),
        statistic=statistic,
        over=given.optional("over", str),
        least=given.optional("least", float),
        most=given.optional("most", float),
    )
    if made.least is None and made.most is None:
        raise given.wrong("least", "an expectation has least, most, or both")
    given.end()
    return made


@dataclass(frozen=True)
class Table:
    """A table of a lesson's file, whose keys are taken one by one."""

    file: str
    place: str
    content: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "taken", set())

    def wrong(self, key: str, why: str) -> LessonError:
        """Return the error of a key."""
        return LessonError(f"{self.file}: {self.place}{key}: {why}")

    def optional(self, key: str, kind: type) -> Any:
        """Return a value that may be missing."""
        self.__dict__["taken"].add(key)
        value = self.content.get(key)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if value is not None and not isinstance(value, kind):
            raise self.wrong(key, f"is {value!r:.40}, not a {_KINDS[kind]}")
        return value

    def text(self, key: str) -> str:
        """Return a text that must be there."""
        value: str | None = self.optional(key, str)
        if not value or not value.strip():
            raise self.wrong(key, "is missing")
        return value.strip("\n") if key != "scenario" else value.lstrip("\n")

    def number(self, key: str) -> float:
        """Return a number that must be there."""
        value: float | None = self.optional(key, float)
        if value is None:
            raise self.wrong(key, "is missing")
        return value

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> list[str]:
        """Return a list of texts; without `default` it must be there."""
        value = self.optional(key, list)
        if value is None and default is not None:
            return list(default)
        if not value or not all(isinstance(v, str) for v in value):
            raise self.wrong(key, "is missing, or is not a list of texts")
        return [str(v) for v in value]

    def tables(self, key: str) -> Iterator[Table]:
        """Give the tables of a list."""
        for n, inner in enumerate(self.optional(key, list) or ()):
            if not isinstance(inner, dict):
                raise self.wrong(f"{key}.{n}", "is not a table")
            yield Table(self.file, f"{self.place}{key}.{n}.", inner)

    def end(self) -> None:
        """Refuse keys that nobody asked for."""
        for key in self.content:
            if key not in self.__dict__["taken"]:
                raise self.wrong(key, "is not a key of lessons")


_KINDS = {str: "text", bool: "true or false", float: "number", list: "list", dict: "table"}


def _written(value: Any) -> str:
    """Return a value as TOML has it, on one line."""
    text = edited("x = 0\n", [Edit(("x",), value)])
    return text.removeprefix("x = ").rstrip("\n")


@functools.lru_cache(maxsize=8)
def _run(of: Lesson, number: int) -> Run:
    # Recorded as the page's run is: the same bytes.
    text = Text(of.steps[number - 1].text, of.path)
    return run(text, set=RECORDED, controllers=of.controllers())


@functools.lru_cache(maxsize=128)
def _figures(of: Lesson, number: int) -> tuple[Figure, ...]:
    done, found = of.run(number), []
    for e in of.steps[number - 1].expect:
        try:
            found.append(e.measured(done))
        except UnknownFigureError as error:
            msg = f"{of.name}.toml: steps.{number - 1}.expect: {e.name}: {error}"
            raise LessonError(msg) from None
    return tuple(found)


@functools.cache
def _classes(file: Path) -> Mapping[str, type]:
    return classes(file)["congestion"]
