from __future__ import annotations

from ingestd.commands.demo.samples import SAMPLES, change_two_cells


def test_a_sample_becomes_an_entry_for_each_cell_with_the_text_of_the_file() -> None:
    budget, bench, bill = SAMPLES
    assert budget.entries("part_number,mass_kg,margin_percent\n00417,0.10,5\n") == {
        "00417.mass_kg": "0.10",
        "00417.margin_percent": "5",
    }
    assert len(bench.entries(bench.text)) == 640
    line = '{"part_number": "00417", "quantity": 2, "unit_cost_eur": 10.50, "supplier": "Besançon"}'
    assert bill.entries(line) == {"00417.quantity": "2", "00417.unit_cost_eur": "10.50", "00417.supplier": "Besançon"}


def test_cells_of_a_sample_have_different_keys() -> None:
    for sample in SAMPLES:
        records = len(sample.text.splitlines()) - sample.file.endswith(".csv")
        assert len(sample.entries(sample.text)) == records * len(sample.columns)


def test_changing_two_cells_changes_two_entries_and_reports_them() -> None:
    budget = SAMPLES[0]
    text, changes = change_two_cells(budget.text)
    before, after = budget.entries(budget.text), budget.entries(text)
    changed = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
    assert before.keys() == after.keys()
    assert changes == [f"{key} from {old} to {new}" for key, (old, new) in changed.items()]
    assert len(changes) == 2
