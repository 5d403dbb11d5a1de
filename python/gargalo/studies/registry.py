"""All studies by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo import _core
from gargalo.studies.high_speed_tcp import STUDY as HIGH_SPEED_TCP
from gargalo.studies.mptcp_schedulers import STUDY as MPTCP_SCHEDULERS
from gargalo.studies.nsquic import STUDY as NSQUIC
from gargalo.studies.userspace_bbr import STUDY as USERSPACE_BBR

if TYPE_CHECKING:
    from gargalo.studies.model import Study

STUDIES: dict[str, Study] = {
    s.name: s for s in (HIGH_SPEED_TCP, MPTCP_SCHEDULERS, NSQUIC, USERSPACE_BBR)
}


def find(name: str) -> Study:
    """Return a study.

    Raises:
        KeyError: There is none of that name; the message names the nearest.

    """
    if name in STUDIES:
        return STUDIES[name]
    near = _core.nearest(name, list(STUDIES))
    hint = f'did you mean "{near}"?' if near else f"there are: {', '.join(STUDIES)}"
    msg = f'there is no study "{name}"; {hint}'
    raise KeyError(msg)
