"""Changes of a scenario's text that leave everything else as its author wrote it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import tomlkit
from tomlkit.exceptions import TOMLKitError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Key: TypeAlias = "str | int"


class Edit(NamedTuple):
    """One change: the place, as `("flows", 0, "start")`, and the new value; without one the place is removed."""

    place: tuple[Key, ...]
    value: Any = None
    remove: bool = False

    @classmethod
    def read(cls, given: Any) -> Edit:
        """Return the change that a request describes.

        Raises:
            ValueError: It describes none.

        """
        place: Any = given.get("place") if isinstance(given, dict) else None
        if (
            not isinstance(place, list)
            or not place
            or not all(isinstance(k, (str, int)) for k in place)
        ):
            msg = f"an edit needs a place, a list of keys and numbers: {given!r:.80}"
            raise ValueError(msg)
        if "value" in given and given["value"] is None:
            msg = f"the value of {'.'.join(map(str, place))} is null, which TOML does not have"
            raise ValueError(msg)
        return cls(tuple(place), given.get("value"), "value" not in given)


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return the text of a scenario with changes made in it; comments, order and blanks stay.

    Raises:
        ValueError: The text is not TOML, or a place does not exist.

    """
    if not edits:
        return text
    try:
        document = tomlkit.parse(text)
        for edit in edits:
            _apply(document, edit)
        return tomlkit.dumps(document)
    except TOMLKitError as e:
        msg = f"the text cannot be changed: {e}"
        raise ValueError(msg) from None


def _apply(document: Any, edit: Edit) -> None:
    *above, last = edit.place
    at = document
    for depth, key in enumerate(above):
        try:
            at = at[key]
        except (KeyError, IndexError, TypeError):
            if edit.remove or not isinstance(key, str) or not hasattr(at, "keys"):
                raise _unknown(edit) from None
            # What is missing comes as one value: a table of the rest of the place.
            value = edit.value
            for name in reversed(edit.place[depth + 1 :]):
                value = {name: value}
            at[key] = _item(value)
            return
    try:
        if edit.remove:
            del at[last]
        elif isinstance(at, list) and last == len(at):
            at.append(_row(at, edit.value))
        else:
            at[last] = _item(edit.value)
    except (KeyError, IndexError, TypeError):
        raise _unknown(edit) from None


def _unknown(edit: Edit) -> ValueError:
    return ValueError(f"there is no {'.'.join(map(str, edit.place))} in the scenario")


def _row(rows: Any, value: Any) -> Any:
    """Return a new member of a list: a table of its own among tables."""
    if isinstance(rows, tomlkit.items.AoT) and isinstance(value, dict):
        table = tomlkit.table()
        for key, inner in value.items():
            table[key] = _item(inner)
        return table
    return _item(value)


def _item(value: Any) -> Any:
    """Return a value as TOML has it: tables within a line."""
    if isinstance(value, dict):
        table = tomlkit.inline_table()
        for key, inner in value.items():
            table[key] = _item(inner)
        return table
    if isinstance(value, list):
        array = tomlkit.array()
        for inner in value:
            array.append(_item(inner))
        return array
    return tomlkit.item(value)


def plain(text: str) -> Mapping[str, Any]:
    """Return what a scenario's text says, without what it leaves to defaults.

    Raises:
        ValueError: The text is not TOML.

    """
    try:
        found: Mapping[str, Any] = tomlkit.parse(text).unwrap()
    except TOMLKitError as e:
        raise ValueError(str(e)) from None
    return found
