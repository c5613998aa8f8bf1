"""How frames follow each other."""

from __future__ import annotations

from nearcast.service.push.stream_reader import Pace


def test_few_readers_wait_little_and_many_wait_their_share() -> None:
    pace = Pace(shortest_s=0.005, frames_per_s=1000)
    assert {pace.gap_s(1, number == 0) for number in range(50)} == {0.005}
    gaps = [pace.gap_s(2, True) for _ in range(500)]
    assert gaps == sorted(gaps)
    assert gaps[-1] == 0.5
    # Those of the second before count still, those of long ago do not.
    assert pace.gap_s(3, True) == 0.5
    assert pace.gap_s(9, True) == 0.005
