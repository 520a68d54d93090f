"""The changes of an XQuery view in one update have an order, the same in every process."""

import axlog


def test_changes_of_one_update_are_in_the_order_of_their_tuples() -> None:
    doc = axlog.parse(f"<r><log/>{''.join(f'<k>{n}</k>' for n in range(40))}</r>")
    view = doc.watch("for $k in /r/k return <s>{$k/text()}, {count(/r/log/e[n > number($k)])}</s>")
    changes = doc.update("insert node <e><n>100</n></e> into /r/log")
    shown = [str(change.row["value"]) for change in changes]
    assert shown == [f"<s>{n}, 1</s>" for n in range(40)]
    assert shown == view.items()


def test_changes_of_nodes_are_in_document_order() -> None:
    doc = axlog.parse(f"<r>{''.join(f'<k>{n}</k>' for n in range(40))}<e>x</e></r>")
    doc.watch("for $k in /r/k where $k < /r/e/number(.) order by number($k) descending return $k")
    changes = doc.update("replace value of node /r/e with 100")
    assert [str(change.row["value"]) for change in changes] == [str(n) for n in range(40)]
