"""All studies by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo import judging
from gargalo.studies.fidelity import STUDY as FIDELITY
from gargalo.studies.high_speed_tcp import STUDY as HIGH_SPEED_TCP
from gargalo.studies.mptcp_schedulers import STUDY as MPTCP_SCHEDULERS
from gargalo.studies.nsquic import STUDY as NSQUIC
from gargalo.studies.quic_stacks import STUDY as QUIC_STACKS
from gargalo.studies.userspace_bbr import STUDY as USERSPACE_BBR

if TYPE_CHECKING:
    from gargalo.studies.model import Study

STUDIES: dict[str, Study] = {
    s.name: s
    for s in (FIDELITY, HIGH_SPEED_TCP, MPTCP_SCHEDULERS, NSQUIC, QUIC_STACKS, USERSPACE_BBR)
}


def find(name: str) -> Study:
    """Return a study.

    Raises:
        KeyError: There is none of that name.

    """
    return judging.find("study", name, STUDIES)
