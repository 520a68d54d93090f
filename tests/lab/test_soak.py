"""The soak, for a few seconds: well-behaved requests succeed, attacks do not."""

import pytest

from lab.stress.soak import Sizes, run_soak

pytestmark = pytest.mark.system


def test_hostile_principals_do_not_stop_the_others() -> None:
    report = run_soak(6, Sizes(rate=30, slow_clients=60, slow_readers=4))
    assert report.faults == []
    quiet, hostile = report.phases
    assert quiet.latencies.count > 0  # how many depends on the machine
    assert hostile.latencies.count > 0
    assert report.answers["stranger: 401"] > 0
    assert report.answers["message entities: 422"] + report.answers["message deep: 422"] > 0
    assert not any(name.startswith("stranger: 2") for name in report.answers)
    assert hostile.usages[-1].threads <= quiet.usages[-1].threads + 10
