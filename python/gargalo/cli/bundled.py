"""The examples that come with the package: what there is, and what each needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gargalo._toml import loads

FOLDER = Path(__file__).parent.parent / "examples"
FOLDERS = ("networks", "studies")
KINDS = ("scenarios", "studies", "networks", "sweeps", "programs")
WORD = re.compile(r"[\w/.-]+\.\w+")
COMMAND = re.compile(r"\bgargalo (?:run|sweep) (?:[^\n\\]|\\\n)+")


@dataclass(frozen=True)
class Example:
    """A file that can be copied and run."""

    path: Path

    @property
    def name(self) -> str:
        """Its name for the command: the path without the ending; of a study's first figure the study's name."""
        return self.place.removeprefix("studies/")

    @property
    def place(self) -> str:
        """Its path among the examples, without the ending."""
        return self.path.relative_to(FOLDER).with_suffix("").as_posix()

    @cached_property
    def text(self) -> str:
        """What the file says."""
        return self.path.read_text(encoding="utf-8")

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        if self.path.suffix == ".py":
            return "programs"
        if "\n[axes]" in self.text:
            return "sweeps"
        return "scenarios" if self.path.parent == FOLDER else self.path.parent.name

    @property
    def about(self) -> str:
        """One line: its description, or else the first sentence of the comment or docstring that it begins with."""
        if self.path.suffix == ".toml":
            described = loads(self.text).get("description")
            if isinstance(described, str):
                return described.rstrip(".")
        prose = (line.strip('#" %') for line in self.text.splitlines())
        first = next(p for p in prose if p.count(" ") > 2)
        return re.split(r"[.:](?: |$)", first)[0]

    @property
    def needs(self) -> list[Path]:
        """Files beside it that it names, and what these need: traces, scenarios of sweeps, classes."""
        found = [self.path]
        for path in found:
            if path.suffix not in (".toml", ".py"):
                continue
            words = WORD.findall(path.read_text(encoding="utf-8"))
            beside = [path.parent / word.removeprefix("examples/") for word in words]
            found += [p for p in dict.fromkeys(beside) if p.is_file() and p not in found]
        return found[1:]

    def command(self, place: str) -> str:
        """Return the command that runs a copy in a directory, empty for the working directory."""
        prefix = f"{place}/" if place else ""
        own = f"{prefix}{self.path.name}"
        if self.kind == "programs":
            written = COMMAND.search(self.text)
            if written is None:
                return f"python {own}"
            return " ".join(written[0].replace("\\\n", " ").split()).replace("examples/", prefix)
        if self.kind == "sweeps":
            return f"gargalo sweep {own}"
        in_lab = "\n[[commands]]" in self.text or "\n[hosts" in self.text
        return f"gargalo run {own}{' --world lab' if in_lab else ''}"

    def copies(self, place: str) -> dict[Path, str]:
        """Return the files to write into a directory, and their text; commands in comments name that place."""
        prefix = f"{place}/" if place else ""
        base = self.path.parent
        own = "" if base == FOLDER else f"(?:{base.name}/)?"
        return {
            path.relative_to(base): re.sub(
                rf"(?<![\w/])examples/{own}", prefix, path.read_text(encoding="utf-8")
            )
            for path in (self.path, *self.needs)
        }


def examples() -> list[Example]:
    """Return all examples, by kind and name."""
    files = [*FOLDER.glob("*.toml"), *FOLDER.glob("*.py")]
    files += [p for folder in FOLDERS for p in (FOLDER / folder).glob("*.toml")]
    return sorted(map(Example, files), key=lambda e: (KINDS.index(e.kind), e.name))


def find(word: str) -> Example | None:
    """Return the example of a name, or of the path that the documentation gives it."""
    name = word.removeprefix("./").removeprefix("examples/")
    stem = name.removesuffix(".toml").removesuffix(".py")
    return next((e for e in examples() if {e.name, e.place} & {name, stem}), None)
