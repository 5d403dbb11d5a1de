"""What machines read of checks: JUnit's XML, and annotations of GitHub's workflows."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gargalo.checking.checks import Checked

ESCAPED = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
OF_VALUES = ((":", "%3A"), (",", "%2C"))


def junit(found: Sequence[Checked]) -> str:
    """Return a suite for each scenario, with a case for the run and one for each figure."""
    root = Xml.Element("testsuites", name="gargalo check")
    for checked in found:
        suite = Xml.SubElement(root, "testsuite", name=checked.file, time=f"{checked.wall_s:.3f}")
        run = Xml.SubElement(suite, "testcase", classname=checked.file, name="run")
        for wrong in checked.wrong:
            Xml.SubElement(run, "error", message=wrong)
        for fault in checked.faults:
            Xml.SubElement(run, "failure", message=fault.text, type=fault.kind)
        for outcome in checked.outcomes:
            name = f"{outcome.metric} {outcome.bound}"
            case = Xml.SubElement(suite, "testcase", classname=checked.file, name=name)
            if not outcome.met:
                Xml.SubElement(case, "failure", message=str(outcome), type="expectation")
        cases = list(suite)
        suite.set("tests", str(len(cases)))
        suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
        suite.set("errors", str(sum(case.find("error") is not None for case in cases)))
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def write_junit(found: Sequence[Checked], file: Path) -> None:
    """Write the suites to a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(junit(found), encoding="utf-8")


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
