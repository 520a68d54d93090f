"""Candidates of filters: few are listed by trigger, many found by columns, with equal results."""

from __future__ import annotations

from random import Random

import pytest

from axlog.document.parser import parse
from axlog.match import candidates
from axlog.match.candidates import Candidate, Candidates
from axlog.match.filter_pattern import FilterPattern
from axlog.match.message_forms import MessageForms
from axlog.query.pattern import Axis
from axlog.query.query import parse_query

NEEDS = 12


def _candidate(random: Random, number: int) -> tuple[int, Candidate]:
    source = parse_query(f"//a{number}", language="xpath").pattern
    pattern = FilterPattern(source, Axis.CHILD)
    trigger, *others = random.sample(range(NEEDS), random.randint(1, 4))
    meetings = frozenset(random.sample(range(100, 104), random.randint(0, 2)))
    pattern.keys.add(f"k{number}")
    entry = Candidate(frozenset(others), meetings, random.random() < 0.7, pattern.keys, pattern)
    return trigger, entry


@pytest.mark.parametrize("seed", range(20))
def test_columns_find_the_candidates_that_lists_find(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    kept = Candidates()
    names = [random.sample(range(30), 15) for _ in range(2)]
    messages = [
        MessageForms(parse(f"<m>{''.join(f'<a{n}/>' for n in each)}</m>").root, 0) for each in names
    ]
    listed = dict(enumerate(_candidate(random, number) for number in range(30)))
    for trigger, entry in listed.values():
        kept.add(trigger, entry)
    for _ in range(10):
        gone, (trigger, entry) = listed.popitem()
        kept.remove(trigger, entry.pattern)
        found = set(random.sample(range(NEEDS + 8), random.randint(0, NEEDS)))
        repeated = set(random.sample(range(100, 104), random.randint(0, 2)))
        met = [e for t, e in listed.values() if t in found and e.others <= found]
        holding = [e for e in met if e.is_settled and not e.meetings & repeated]
        left_open = [e.pattern for e in met if e not in holding]
        for many in (0, 1000):
            monkeypatch.setattr(candidates, "MANY", many)
            one, other = kept.met(found, repeated)
            assert sorted(map(id, one)) == sorted(map(id, holding)), gone
            assert sorted(map(id, other)) == sorted(map(id, left_open)), gone
            for message in messages:
                keys, checked, refuted = kept.kept(found, repeated, message)
                passed = [each for each in left_open if each.holds(message)]
                assert (checked, refuted) == (len(left_open), len(left_open) - len(passed)), gone
                held = [e.keys for e in met if e in holding or e.pattern in passed]
                assert sorted(map(id, keys)) == sorted(map(id, held)), gone
