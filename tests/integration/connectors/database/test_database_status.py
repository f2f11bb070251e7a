"""`ingestd status` shows how changes are found, and what would improve it."""

from typing import Any


def notices(connector: Any) -> list[str]:
    (partition,) = connector.partitions()
    for _ in connector.read(partition, None):
        pass
    return list(connector.notices())


def test_a_source_of_changes_reports_its_method_and_the_improvement(postgresql: Any) -> None:
    name = postgresql.name("p")
    postgresql.do(f"CREATE TABLE {name} (id INTEGER)")
    followed = postgresql.connector(table=name, key="id", mode="changes")
    assert list(followed.notices()) == []  # it was not read yet
    found, guarantee = notices(followed)
    assert found == "Changes are found by the method 'xmin'."
    assert guarantee.startswith("Each reading finds every ")
    whole = postgresql.connector(query=f"SELECT * FROM {name}", key="id", mode="changes")
    expected = (
        "Changes are found by the method 'whole'. Set cursor to a column with the time of each row's last change."
    )
    assert notices(whole)[0] == expected


def test_a_source_of_snapshots_reports_no_method(postgresql: Any) -> None:
    postgresql.do(f"CREATE TABLE {postgresql.name('p')} (id INTEGER)")
    assert notices(postgresql.connector(table=postgresql.name("p"))) == []
