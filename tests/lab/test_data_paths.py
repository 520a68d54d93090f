"""The data paths stay short: hand-overs between packages, counted (docs/design.md, section 2)."""

from lab.data_paths import feed_path, update_path


def test_a_message_is_handed_over_at_most_five_times() -> None:
    path = feed_path()
    assert len(path.hand_overs) <= 5, path.hand_overs
    assert {(above, below) for above, below, _ in path.hand_overs} <= {
        ("live", "document"), ("live", "match"), ("live", "views"),
    }  # fmt: skip


def test_a_statement_is_handed_over_at_most_eight_times() -> None:
    path = update_path()
    assert len(path.hand_overs) <= 8, path.hand_overs
    assert path.hand_overs[0][:2] == ("live", "query")
