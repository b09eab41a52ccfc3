"""Artefacts and what they compare, as stamps in figures/ tell it."""

import json

import pandas as pd
import pytest

from osnb.evidence import gallery, tables
from tests.tools import pages


def stamp(folder, name, headline, size="mini", run="mini"):
    """The stamp of an artefact."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {"run": run, "parameters": {"size": size}, "headline": headline}
    (folder / f"{name}.json").write_text(json.dumps(content))


def test_a_headline_of_no_row_is_none():
    none = pd.Series([], dtype=float)
    assert tables.headline("rho, " + none.astype(str), "not stated", none, unit=none) == []


def test_a_headline_is_shown_as_it_was_saved_numbers_beside_each_other(tmp_path):
    rows = tables.headline("CCR", [0.5, None], pd.Series([0.12345, 0.5]))
    rows += tables.headline("classes", 76, 76, of="figure_2")
    rows += tables.headline("rho", 0.95, 0.3, unit="5 points")
    stamp(tmp_path, "table_1", rows)
    stamp(tmp_path, "figure_2", [])
    told = gallery.headline(tmp_path, "table_1")
    assert told["compared"] == "CCR; rho"
    assert told["theirs"] == "0.500 / -; 0.950"
    assert told["ours"] == "0.123 / 0.500; 0.300 (5 points)"
    other = gallery.headline(tmp_path, "figure_2")
    assert other == {"compared": "classes", "theirs": "76", "ours": "76"}


def test_what_print_says_of_all_is_said_once():
    assert gallery._text(None, "") == "-"
    rows = tables.headline(pd.Series(["a", "b"]), "drawn", pd.Series([1, 2]))
    assert [row["what"] for row in rows] == ["a", "b"]
    assert {row["paper"] for row in rows} == {"drawn"}


def test_every_artefact_has_a_row_for_each_run_that_made_it(tmp_path):
    for size in ("mini", "tiny"):
        folder = tmp_path / "figures" / "13_palechor_results" / size
        told = tables.headline("CCR", 0.5, 0.25 if size == "mini" else 0.75)
        stamp(folder, "table_2a", told, size=size, run=size)
        answers = tables.headline("It is so.", "holds", pd.Series(["P1 holds", "P2 holds"]))
        stamp(folder, "findings", answers, size=size, run=size)
    path = tmp_path / "figures" / "13_palechor_results" / "mini" / "table_2a.csv"
    path.write_text("ours\n0.25\n")
    found = gallery.artefacts(tmp_path)
    made = found[found["part"] == "Table 2a"]
    assert made[["run", "ours"]].to_numpy().tolist() == [["mini", "0.250"], ["tiny", "0.750"]]
    assert (found.loc[found["part"] != "Table 2a", "run"] == "").all()
    (row,) = pages.rows(tmp_path, "palechor2023").to_dict("records")
    assert (row["artefact"], row["paper"], row["miniature"]) == ("Table 2a", "0.500", "0.250")
    assert row["photographs at 32 px"] == "0.750"
    link = "mini: [csv](13_palechor_results/mini/table_2a.csv)"
    assert row["files"] == f"{link}; tiny: "  # a file that is not there is no link
    (row,) = pages.findings(tmp_path).to_dict("records")
    assert row["miniature"] == "P1 holds; P2 holds"


def compared(folder, name, ours):
    """An artefact that compares printed numbers with ours; None is an empty cell."""
    stamp(folder, name, [], size=folder.name, run=folder.name)
    paper = [0.1] * len(ours)
    pd.DataFrame({"paper": paper, "ours": ours}).to_csv(folder / f"{name}.csv", index=False)


def test_an_artefact_shows_what_its_fullest_run_fills_of_all_its_parts(tmp_path):
    folder = tmp_path / "figures" / "13_palechor_results"
    compared(folder / "mini", "table_2a", [0.1, None, 0.3])
    compared(folder / "tiny", "table_2a", [None, None, 0.3])
    compared(folder / "mini", "table_2b", [0.1, 0.2])
    kim = tmp_path / "figures" / "30_kim_benchmark" / "mini"
    compared(kim, "table_4", [1, 2])
    shown = gallery.shown(gallery.artefacts(tmp_path)).set_index(["paper", "artefact"])
    assert len(shown) == 44
    row = shown.loc["palechor2023", "Table 2"]
    assert (row["shows"], row["cells"]) == ("stand-in", "4 of 5")
    assert "Drawings" in row["missing"]
    assert shown.loc["palechor2023", "Figure 1"]["shows"] == "not made"
    assert tuple(shown.loc["kim2021", "Table 4"]) == ("full", "2 of 2", "")
    told = "44 artefacts: 1 show what the paper's does, 1 are stand-ins, 42 are not made."
    assert gallery.counted(shown) == told


def test_a_full_artefact_with_an_empty_cell_is_a_part(tmp_path):
    compared(tmp_path / "figures" / "30_kim_benchmark" / "mini", "table_4", [1, None])
    shown = gallery.shown(gallery.artefacts(tmp_path)).set_index(["paper", "artefact"])
    assert shown.loc["kim2021", "Table 4"].tolist()[:2] == ["part", "1 of 2"]
    (row,) = pages.rows(tmp_path, "kim2021").to_dict("records")
    assert row["shows"] == "part, 1 of 2"


def test_what_is_not_full_says_in_a_sentence_what_is_missing():
    listed = pd.read_csv(gallery.LISTED, keep_default_na=False)
    assert set(listed["shows"]) <= set(gallery.SHOWS) - {"not made"}
    assert (listed["missing"].str.endswith(".") == (listed["shows"] != "full")).all()


def test_the_front_page_has_ten_rows_and_the_first_number_of_each(tmp_path):
    folder = tmp_path / "figures" / "10_palechor_protocols" / "mini"
    rows = tables.headline("classes", 0.5, 0.25) + tables.headline("in order", 0.7, 0.8)
    stamp(folder, "table_3", rows)
    for notebook, file in (("20_vaze_splits", "table_2"), ("30_kim_benchmark", "table_4")):
        stamp(tmp_path / "figures" / notebook / "mini", file, tables.headline("x", 1, 2))
    front = pages.front(tmp_path)
    assert list(front) == [
        "of",
        "artefact",
        "compared",
        "paper",
        "miniature",
        "photographs at 32 px",
    ]
    assert len(front) == 10
    row = front.set_index(["of", "artefact"]).loc[("palechor2023", "Table 3")]
    assert row.tolist() == ["classes", "0.500", "0.250", ""]


def test_update_replaces_the_block_and_nothing_else(tmp_path):
    readme = tmp_path / "README.md"
    start, end = (mark.format(name="x") for mark in gallery.MARKS)
    readme.write_text(f"before\n{start}old\n{end}\nafter\n")
    pages.update(readme, {"x": pd.DataFrame({"a": ["1"], "b": ["2"]})})
    table = "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    assert readme.read_text() == f"before\n{start}{table}{end}\nafter\n"
    assert gallery.block(readme.read_text(), "x") == table


@pytest.mark.parametrize("lost", [0, 1])
def test_a_readme_that_lacks_a_mark_is_left_as_it_is(tmp_path, lost):
    readme, marks = tmp_path / "README.md", [mark.format(name="x") for mark in gallery.MARKS]
    text = f"{marks[1 - lost]}old\nafter\n"
    readme.write_text(text)
    with pytest.raises(ValueError, match=f"needs {marks[0]} and, below it, {marks[1]}"):
        pages.update(readme, {"x": "new"})
    assert readme.read_text() == text


def test_ours_stand_under_what_they_are_of_and_a_dash_where_a_run_lacks_it():
    assert gallery.beside("a; b; c", "c; a", "3; 1") == "1; -; 3"
    assert gallery.beside("a", "a", "17 equal; 11 need images") == "17 equal; 11 need images"
    assert gallery.beside("a", "", "") == ""
