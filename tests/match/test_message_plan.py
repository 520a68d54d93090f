"""The two halves of the short way apart: plans that read messages, joins that take their bags."""

from __future__ import annotations

import pickle

import pytest

from axlog.errors import StreamError
from axlog.live.document import Document
from axlog.live.internals import maintained, streams_of
from axlog.live.options import Options
from axlog.samples import orders
from lab.benchmarks.messages import Message, plain
from lab.generators import active

MESSAGES = plain(orders.messages(400))


def monitor() -> Document:
    return Document(
        orders.DOCUMENT,
        views={"late": orders.LATE, "in time": orders.ON_TIME},
        options=Options(keep="needed"),
    )


def halves(make: Document, messages: list[Message]) -> list[object]:
    """Messages read by pickled plans, as another process would, and joined here."""
    streaming = streams_of(make).engine
    plans = {s: pickle.loads(pickle.dumps(streaming.plan(s))) for s in make.streams()}
    found: list[object] = []
    for stream, message, at in messages:
        time = round(at * 1_000_000)
        bags = plans[stream].bags(message, time)
        assert bags is not None
        found.append(streaming.apply_all([(stream, pickle.loads(pickle.dumps(bags)), time)]))
    return found


def test_differential_halves_apart_make_the_same_changes() -> None:
    whole = monitor()
    wanted = [whole.feed(stream, message, at=at) for stream, message, at in MESSAGES]
    assert halves(monitor(), MESSAGES) == wanted
    assert any(wanted)


def test_many_messages_at_once_make_the_changes_of_one_after_the_other() -> None:
    whole, apart = monitor(), monitor()
    heard: list[object] = []
    for view in apart.views.values():
        view.subscribe(heard.append)
    wanted = [c for stream, message, at in MESSAGES for c in whole.feed(stream, message, at=at)]
    streaming = streams_of(apart).engine
    plans = {s: plan for s in apart.streams() if (plan := streaming.plan(s)) is not None}
    found = [
        (stream, plans[stream].bags(message, round(at * 1e6)) or (), round(at * 1e6))
        for stream, message, at in MESSAGES
    ]
    assert streaming.apply_all(found[:150]) + streaming.apply_all(found[150:]) == wanted == heard
    assert maintained(apart).forgotten == len(MESSAGES)


def test_deadlines_pass_before_a_message_that_was_read_elsewhere() -> None:
    """The second message uses up the key of a row whose instant has passed, so says nothing."""
    call = '<ax:call xmlns:ax="urn:axlog" stream="{}"/>'

    def made() -> Document:
        return Document(
            f"<r><own><i><p>v0</p></i></own><b>{call.format('b')}</b><c>{call.format('c')}</c></r>",
            views={
                "v": "match /r[own/i/p/$p][b/i[p/$p]/k/$k#s][c/i/k/$k#t] where s = t return $p, $k"
            },
            facts=["key b/i by k trusted"],
            options=Options(keep="needed"),
        )

    messages: list[Message] = [
        ("c", b"<i><k>v2</k></i>", 2e-6),
        ("b", b"<i><p>v1</p><k>v2</k></i>", 5e-6),
        ("b", b"<i><p>v0</p><k>v3</k></i>", 6e-6),
        ("c", b"<i><k>v9</k></i>", 9e-6),
    ]
    whole = made()
    wanted = [whole.feed(stream, message, at=at) for stream, message, at in messages]
    assert [[change.op for change in changes] for changes in wanted] == [[], [], [], ["never"]]
    assert halves(made(), messages) == wanted


@pytest.mark.parametrize("seed", range(4))
def test_differential_halves_of_random_documents(seed: int) -> None:
    made = active.workload(seed=seed)
    messages = plain(active.updates(made, 60, seed=seed))
    whole, apart = (
        Document(made.document, views={"v": made.pattern}, options=Options(keep="needed"))
        for _ in range(2)
    )
    wanted = [whole.feed(stream, message, at=at) for stream, message, at in messages]
    assert halves(apart, messages) == wanted


@pytest.mark.parametrize("cut", [0, 1, 57, 399])
def test_state_goes_on_in_another_document(cut: int) -> None:
    whole, first, second = monitor(), monitor(), monitor()
    wanted = [whole.feed(stream, message, at=at) for stream, message, at in MESSAGES]
    found = [first.feed(stream, message, at=at) for stream, message, at in MESSAGES[:cut]]
    second.feed(*MESSAGES[-1][:2], at=0)  # what it has is replaced
    streams_of(second).engine.restore(pickle.loads(pickle.dumps(streams_of(first).engine.state())))
    found += [second.feed(stream, message, at=at) for stream, message, at in MESSAGES[cut:]]
    assert found == wanted
    assert second.view("late").rows() == whole.view("late").rows()
    assert streams_of(second).engine.state() == streams_of(whole).engine.state()


def test_message_that_must_become_nodes_has_no_bags() -> None:
    plan = streams_of(monitor()).engine.plan("orders")
    assert plan is not None
    assert plan.bags(b"<order/><order/>", 0) is None
    assert plan.bags(b"<order>", 0) is None
    assert plan.bags(b"<?xml version='1.1'?><order/>", 0) is None
    assert plan.bags(b"<?xml version='1.0'?><order/>", 0) is not None
    assert plan.bags(b"<other/>", 0) is not None


def test_stream_without_a_plan_takes_no_bags() -> None:
    doc = Document(
        '<r><ax:call xmlns:ax="urn:axlog" stream="f" mode="one-shot"/></r>',
        views={"v": "match /r/a#n return n.id"},
    )
    assert streams_of(doc).engine.plan("f") is None
    with pytest.raises(StreamError, match="no plan"):
        streams_of(doc).engine.apply_all([("f", (), 0)])


@pytest.mark.parametrize("query", [orders.LATE, orders.ON_TIME, orders.WITHIN])
def test_state_with_keys_and_deadlines_goes_on_in_another_document(query: str) -> None:
    first, second, whole = (
        Document(
            orders.DOCUMENT, views={"v": query}, facts=orders.KEYS, options=Options(keep="needed")
        )
        for _ in range(3)
    )
    messages = plain(orders.messages(300, rate=0.002))
    wanted = [whole.feed(stream, message, at=at) for stream, message, at in messages]
    for stream, message, at in messages[:140]:
        first.feed(stream, message, at=at)
    streams_of(second).engine.restore(pickle.loads(pickle.dumps(streams_of(first).engine.state())))
    assert streams_of(second).engine.next_deadline() == streams_of(first).engine.next_deadline()
    found = [second.feed(stream, message, at=at) for stream, message, at in messages[140:]]
    assert found == wanted[140:]
    assert second.end("shipments") == whole.end("shipments")
