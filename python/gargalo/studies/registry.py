"""Studies by name: those that the entry points `gargalo.studies` of all installed distributions declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoints, entry_points

from gargalo import judging
from gargalo.studies.model import Study

GROUP = "gargalo.studies"


class StudyError(ValueError):
    """A study that a distribution declares cannot be used."""


class Installed(Mapping[str, Study]):
    """The studies by name; each is imported when it is asked for."""

    @cached_property
    def entries(self) -> EntryPoints:
        """What the distributions declare."""
        return entry_points(group=GROUP)

    def __contains__(self, name: object) -> bool:
        return name in self.entries.names

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.entries.names))

    def __len__(self) -> int:
        return len(self.entries.names)

    def __getitem__(self, name: str) -> Study:
        """Return a study.

        Raises:
            KeyError: There is none of that name.
            StudyError: It cannot be imported, is no study, or there are several.

        """
        found = {entry.value: entry for entry in self.entries.select(name=name)}
        if not found:
            raise KeyError(name)
        if len(found) > 1:
            msg = f'several studies are called "{name}": {", ".join(sorted(found))}'
            raise StudyError(msg)
        ((place, entry),) = found.items()
        try:
            study = entry.load()
        except Exception as e:
            msg = f'the study "{name}" cannot be imported from {place}: {type(e).__name__}: {e}'
            raise StudyError(msg) from e
        if not isinstance(study, Study) or study.name != name:
            msg = f'{place} is not a study called "{name}"'
            raise StudyError(msg)
        return study


STUDIES = Installed()


def find(name: str) -> Study:
    """Return a study.

    Raises:
        KeyError: There is none of that name.
        StudyError: It cannot be imported, is no study, or there are several.

    """
    return judging.find("study", name, STUDIES)
