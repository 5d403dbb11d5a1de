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
        # The steps of nsquic from one stack to another change a parameter at a time.
        judged = job.labels["reading"] == first and job.labels["experiment"] != "steps"
        flows = job.scenario.get("flows", ()) if judged else ()
        for flow in flows:
            for options in flow.get("transport", {}).values():
                if "congestion" in options:
                    assert isinstance(options["congestion"], str), job.labels
                    seen += 1
    assert seen
