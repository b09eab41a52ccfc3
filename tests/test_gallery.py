"""The README's table of artefacts says what the files in figures/ say."""

import re

import pandas as pd
import pytest

from osnb import gallery, repro

README = repro.root() / "README.md"


@pytest.fixture(scope="module")
def rows():
    return gallery.rows(repro.root(), "palechor2023")


@pytest.mark.parametrize("name", [*gallery.COMPARED, "findings"])
def test_the_readme_holds_what_the_committed_figures_say(name):
    root = repro.root()
    table = gallery.findings(root) if name == "findings" else gallery.rows(root, name)
    assert gallery.block(README.read_text(encoding="utf8"), name) == gallery.markdown(table)


def test_all_eleven_artefacts_have_a_row(rows):
    figures = [f"Figure {n}" for n in range(1, 7)]
    parts = [f"Table {n}" for n in (1, "2a", "2b", 3, 4, 5)]
    assert rows["artefact"].tolist() == [*figures, *parts]


def test_all_twenty_artefacts_of_the_second_paper_have_a_row():
    figures = ["Figure 1a", "Figure 1b", *(f"Figure {n}" for n in range(2, 12))]
    found = gallery.rows(repro.root(), "vaze2022")["artefact"].tolist()
    assert sorted(found) == sorted([*figures, *(f"Table {n}" for n in range(1, 10))])


def test_every_file_that_a_row_names_exists_with_its_stamp(rows):
    for link in re.findall(r"\(([^)]+)\)", " ".join(rows["files"])):
        assert (repro.root() / link).is_file()
        assert (repro.root() / link).with_suffix(".json").is_file()


def test_derived_artefacts_equal_the_paper(rows):
    rows = rows.set_index("artefact")
    assert rows.loc["Figure 1", "paper"] == rows.loc["Figure 1", "miniature"] == "116 / 30 / 151"
    assert rows.loc["Table 1", "miniature"] == "30 equal, derived"
    sizes = {"Table 3": 349, "Table 4": 116, "Table 5": 412}
    assert rows.loc[list(sizes), "miniature"].tolist() == [
        f"{n} equal, derived" for n in sizes.values()
    ]


@pytest.mark.parametrize(
    ("part", "theirs", "ours"),
    [
        ("Table 2", "28", "17 equal, derived; 11 need the images"),
        ("Figure 5", "photographs", "12 drawn classes"),
        ("Figure 9", "32 / 34 / 34", "10 / 8 / 8, drawn birds"),
        ("Figure 10", "76 / - / 22; 20 / 17 / 13", "76 / - / 22; 20 / 17 / 13, derived"),
        ("Figure 11", "1000 / 1000", "968 / 959 equal, derived"),
    ],
)
def test_splits_of_the_second_paper_are_compared_with_its_table_2(part, theirs, ours):
    found = gallery.artefacts(repro.root()).query("notebook == '20_vaze_splits'")
    row = found.set_index("part").loc[part]
    assert (row["theirs"], row["ours"]) == (theirs, ours)


def test_an_artefact_without_a_rule_of_comparison_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"need one of table_2, .*figure_11; got 'figure_0'"):
        gallery.COMPARED["vaze2022"](tmp_path, "figure_0")


def test_a_changed_number_changes_the_row(tmp_path):
    import shutil

    shutil.copytree(repro.root() / "figures", tmp_path / "figures")
    file = tmp_path / gallery.RESULTS / "mini" / "table_2a.csv"
    table = pd.read_csv(file)
    table.loc[(table["loss"] == "entropic") & (table["protocol"] == "p1"), "ours"] = 0.12345
    table.to_csv(file, index=False)
    rows = gallery.rows(tmp_path, "palechor2023").set_index("artefact")
    assert rows.loc["Figure 2", "miniature"].startswith("0.123 / ")


def test_the_mean_softmax_of_figure_6_is_exact_and_weighs_benchmarks_by_their_samples(tmp_path):
    bins = {"left": [0.0, 0.5], "right": [0.5, 1.0], "density": [0.5, 1.5]}
    parts = [("a", 3, 0.9), ("b", 1, 0.5)]  # of which no middle of a bin knows
    frames = [
        pd.DataFrame(bins).assign(benchmark=b, method="Baseline", kind="near", samples=n, mean=m)
        for b, n, m in parts
    ]
    pd.concat(frames).to_csv(tmp_path / "figure_6.csv", index=False)
    *_, ours = gallery.COMPARED["kim2021"](tmp_path, "figure_6")
    assert ours == "- / - / 0.80 / -; - / - / - / -"


def test_update_replaces_the_block_and_nothing_else(tmp_path):
    readme = tmp_path / "README.md"
    start, end = (mark.format(name="x") for mark in gallery.MARKS)
    readme.write_text(f"before\n{start}old\n{end}\nafter\n")
    gallery.update(readme, {"x": pd.DataFrame({"a": ["1"], "b": ["2"]})})
    table = "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    assert readme.read_text() == f"before\n{start}{table}{end}\nafter\n"
    assert gallery.block(readme.read_text(), "x") == table


# The list of artefacts

CELLS = {
    "paper": "palechor2023|vaze2022|kim2021",
    "artefact": r"(Figure|Table) [1-9]\d?",
    "kind": "figure|table",
    "title": "[A-Z].*[^.]",
    "notebook": r"[1-3]\d_(palechor|vaze|kim)_[a-z_]+( [1-3]\d_[a-z_]+)?",
    "files": r"(figure|table)_\d+[ab]?( (figure|table)_\d+b)?",
}


@pytest.fixture(scope="module")
def listed():
    return pd.read_csv(repro.PACKAGE / "gallery" / "artefacts.csv")


def test_44_artefacts_each_of_its_kind_once(listed):
    assert list(listed) == list(CELLS)
    for name, pattern in CELLS.items():
        assert listed[name].str.fullmatch(pattern).all()
    assert listed["kind"].value_counts().to_dict() == {"figure": 24, "table": 20}
    for row in listed.itertuples():
        kind, number = row.artefact.lower().split()
        assert row.kind == kind
        assert {re.sub("[ab]$", "", file) for file in row.files.split()} == {f"{kind}_{number}"}


@pytest.mark.parametrize(
    ("paper", "tables", "figures"), [("palechor2023", 5, 6), ("vaze2022", 9, 11), ("kim2021", 6, 7)]
)
def test_artefacts_are_numbered_without_a_gap(listed, paper, tables, figures):
    wanted = [f"Figure {n}" for n in range(1, figures + 1)]
    wanted += [f"Table {n}" for n in range(1, tables + 1)]
    assert listed.loc[listed["paper"] == paper, "artefact"].tolist() == wanted
