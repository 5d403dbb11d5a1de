"""Studies run the stacks of the profiles, not stacks of their own."""

from __future__ import annotations

import pytest
from gargalo.studies import STUDIES
from gargalo.studies.running import jobs_of


@pytest.mark.parametrize("name", [s.name for s in STUDIES.values() if s.readings])
def test_the_first_reading_names_congestion_controls_without_parameters(name):
    study = STUDIES[name]
    first = study.readings[0].name
    seen = 0
    for job in jobs_of(study, study.profiles["quick"]):
        flows = job.scenario.get("flows", ()) if job.labels["reading"] == first else ()
        for flow in flows:
            for options in flow.get("transport", {}).values():
                if "congestion" in options:
                    assert isinstance(options["congestion"], str), job.labels
                    seen += 1
    assert seen
