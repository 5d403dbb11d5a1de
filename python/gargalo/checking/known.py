"""Failures that are known: a file of them, so that a test fails by new ones only, and by old ones that are gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gargalo import _core, reading
from gargalo._toml import TOMLDecodeError, loads
from gargalo.checking.expectations import fits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PLACES = {
    "matrix": ("client", "server", "case"),
    "conformance": ("algorithm", "case"),
}
"""What names a failure, by what has them."""
WHY = "why"
GONE = "a known failure is gone; remove it from the file"


class KnownError(ValueError):
    """A file of known failures that is wrong: where, and why."""


@dataclass(frozen=True)
class Known:
    """One entry: which failures are meant, and why they are known."""

    place: Mapping[str, str]
    """Names by their kinds, as in `PLACES`; `*` at the end of one stands for any text."""
    why: str

    @property
    def is_exact(self) -> bool:
        """It means one result: all of its kind's names are given, and none stands for several."""
        whole = any(self.place.keys() == set(names) for names in PLACES.values())
        return whole and not any("*" in name for name in self.place.values())

    def fits(self, failure: Mapping[str, str]) -> bool:
        """Tell whether a failure is meant."""
        return self.place.keys() <= failure.keys() and all(
            fits(pattern, failure[kind]) for kind, pattern in self.place.items()
        )


def read(file: Path, kind: str) -> list[Known]:
    """Read the known failures of a kind; a file may have those of others, too.

    Raises:
        KnownError: It cannot be read, or an entry is wrong.

    """
    try:
        table = loads(reading.text(file))
    except OSError as e:
        msg = f"{file}: cannot be read: {reading.reason(e)}"
        raise KnownError(msg) from None
    except (UnicodeDecodeError, TOMLDecodeError) as e:
        msg = f"{file}: this is not TOML: {e}"
        raise KnownError(msg) from None
    entries = table.get("known", [])
    if not isinstance(entries, list) or not table.keys() <= {"known"}:
        msg = f"{file}: known failures are tables [[known]], and nothing else is there"
        raise KnownError(msg)
    found = [_entry(entry, f"{file}: entry {n}") for n, entry in enumerate(entries, 1)]
    own = set(PLACES[kind])
    return [known for known in found if known.place.keys() <= own]


def _entry(entry: Any, at: str) -> Known:
    kinds = {name for names in PLACES.values() for name in names}
    if not isinstance(entry, dict) or not all(isinstance(v, str) for v in entry.values()):
        msg = f'{at}: a table of texts is meant, as case = "retry"'
        raise KnownError(msg)
    for key in entry:
        if key not in kinds | {WHY}:
            near = _core.nearest(key, sorted(kinds | {WHY}))
            hint = f'did you mean "{near}"?' if near else f"known here: {', '.join(sorted(kinds))}"
            msg = f'{at}: unknown key "{key}"; {hint}'
            raise KnownError(msg)
    place = {k: v for k, v in entry.items() if k != WHY}
    if not place or not any(place.keys() <= set(names) for names in PLACES.values()):
        named = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in PLACES.items())
        msg = f"{at} names no failure: give some of one kind ({named})"
        raise KnownError(msg)
    return Known(place, entry.get(WHY, ""))


@dataclass(frozen=True)
class Compared:
    """Results by what was known of them; indices of the results."""

    new: Sequence[int]
    """Failed, and not known."""
    known: Mapping[int, str]
    """Failed, and known: why."""
    mended: Sequence[int]
    """Known to fail, and passed."""

    @property
    def as_known(self) -> bool:
        """Nothing is new, and nothing known is mended."""
        return not (self.new or self.mended)


def compare(
    results: Sequence[tuple[Mapping[str, str], bool | None]], known: Sequence[Known]
) -> Compared:
    """Compare results with what is known.

    Args:
        results: Of each its place, and whether it passed; None: it does not apply.
        known: Entries.

    """
    new: list[int] = []
    mended: list[int] = []
    expected: dict[int, str] = {}
    for n, (place, passed) in enumerate(results):
        entries = [k for k in known if k.fits(place)]
        if passed is None:
            continue
        if not passed and not entries:
            new.append(n)
        elif not passed:
            expected[n] = entries[0].why
        elif any(k.is_exact for k in entries):
            mended.append(n)
    return Compared(new, expected, mended)
