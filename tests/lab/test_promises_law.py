"""`explain` promises only what happens, on a few cases; `python -m lab fuzz --law promises`."""

from collections import Counter
from random import Random

import axlog
from lab.laws.promises_law import PromisesCase, check_promises, make_promises_case


def test_explain_promises_only_what_happens() -> None:
    seen: Counter[str] = Counter()
    for seed in range(24):
        seen += check_promises(make_promises_case(Random(seed)))
    assert seen["truth decided"] > 50
    assert any(name.startswith("truth not decided") for name in seen)


def test_explain_names_what_is_refused() -> None:
    doc = axlog.Document(streams=["orders", "shipped"])
    join = "match /document[orders/order/$x][not(shipped[order/$z][part/$z]{})] return $x"
    by_state = doc.watch(join.format(""))  # no order brings what must be absent
    assert by_state.explain().truth == "decided: possible"
    said = doc.watch(join.format("[not(void)]")).explain()
    assert said.truth is not None
    assert said.truth.startswith("not decided (AX501): $z is a join inside a `not`")
    assert f"truth       {said.truth}" in str(said)
    assert axlog.parse("<a/>").watch("//b").explain().truth is None  # no stream is open


def test_hidden_values_are_asked_about_when_no_open_stream_concerns_the_query() -> None:
    calls = [f'<ax:call xmlns:ax="urn:axlog" stream="{name}"{limit}/>' for name, limit in
             (("f", ""), ("g", ""), ("h", ' most="1"'))]  # fmt: skip
    case = PromisesCase(
        document="<r><p>{}</p><q>{}</q><e>{}</e></r>".format(*calls),
        query="match /r[p/a#t[k = $x]][not(q/d#s[k/$x])] where s - t < 1us return t.time, t.id",
        steps=(("f", "<a><k>1</k><w/></a>", 1),),
        facts=(),
        never="all",
        keep="needed",
    )
    check_promises(case)
