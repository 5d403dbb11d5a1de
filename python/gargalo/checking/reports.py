"""What machines read of checks: JUnit's XML, and annotations of GitHub's workflows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from gargalo.checking.known import GONE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gargalo.checking.checked import Checked
    from gargalo.checking.known import Compared

ESCAPED = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
OF_VALUES = ((":", "%3A"), (",", "%2C"))


@dataclass(frozen=True)
class Reported:
    """One test of a suite, as CI servers show it."""

    name: str
    failures: Sequence[tuple[str, str]] = ()
    """What was not as expected: kind and text."""
    errors: Sequence[str] = ()
    """Why it could not be judged."""
    skipped: str = ""
    """Why it was not run, or does not count."""


@dataclass(frozen=True)
class Suite:
    """Tests that belong together."""

    name: str
    cases: Sequence[Reported]
    wall_s: float | None = None


def junit(suites: Sequence[Suite], command: str) -> str:
    """Return suites as JUnit's XML."""
    root = Xml.Element("testsuites", name=f"gargalo {command}")
    for suite in suites:
        made = Xml.SubElement(root, "testsuite", name=suite.name)
        for case in suite.cases:
            one = Xml.SubElement(made, "testcase", classname=suite.name, name=case.name)
            for error in case.errors:
                Xml.SubElement(one, "error", message=error)
            for kind, text in case.failures:
                Xml.SubElement(one, "failure", message=text, type=kind)
            if case.skipped:
                Xml.SubElement(one, "skipped", message=case.skipped)
        if suite.wall_s is not None:
            made.set("time", f"{suite.wall_s:.3f}")
        made.set("tests", str(len(suite.cases)))
        made.set("failures", str(sum(bool(c.failures) for c in suite.cases)))
        made.set("errors", str(sum(bool(c.errors) for c in suite.cases)))
        made.set("skipped", str(sum(bool(c.skipped) for c in suite.cases)))
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def suite_of(checked: Checked) -> Suite:
    """Return a case for the run of a scenario, or the runs of a sweep, and one for each figure."""
    cases = [Reported("run", [(f.kind, f.text) for f in checked.faults], checked.wrong)]
    for outcome in checked.outcomes:
        at = f"{outcome.cell}: " if outcome.cell else ""
        failures = [] if outcome.met else [("expectation", str(outcome))]
        cases.append(Reported(f"{at}{outcome.metric} {outcome.bound}", failures))
    return Suite(checked.file, cases, checked.wall_s)


def reported(name: str, number: int, told: Compared, *, passed: bool | None, text: str) -> Reported:
    """Return a result that is compared with known failures, which do not count.

    Args:
        name: Its own.
        number: Its index among the results.
        told: What was known of them.
        passed: Whether it passed; None: it does not apply.
        text: Why it does not apply, or what was seen instead of what was expected.

    """
    if passed is None:
        return Reported(name, skipped=text)
    if number in told.known:
        return Reported(name, skipped=f"known to fail: {told.known[number]}".rstrip(": "))
    if number in told.mended:
        return Reported(name, [("mended", GONE)])
    return Reported(name, [] if passed else [("failure", text)])


def write_junit(suites: Sequence[Suite], command: str, file: Path) -> None:
    """Write suites to a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(junit(suites, command), encoding="utf-8")


def annotated(checked: Checked) -> Iterator[str]:
    """Return lines that GitHub shows at the place of what is not as expected."""
    for wrong in checked.wrong:
        yield _error(checked.file, None, "cannot be judged", wrong)
    for fault in checked.faults:
        yield _error(checked.file, None, fault.kind, fault.text)
    for outcome in checked.missed:
        yield _error(checked.file, checked.line(outcome), "not as expected", str(outcome))


def _error(file: str, line: int | None, title: str, text: str) -> str:
    at = f",line={line}" if line is not None else ""
    return f"::error file={_escaped(file, OF_VALUES)}{at},title={_escaped(title, OF_VALUES)}::{_escaped(text)}"


def _escaped(text: str, more: Sequence[tuple[str, str]] = ()) -> str:
    for character, code in (*ESCAPED, *more):
        text = text.replace(character, code)
    return text
