"""The scores table's contract: bytes, refusals, and runs found by what their files say."""

import shutil

import finished
import numpy as np
import pandas as pd
import pytest
import yaml

from osnb.base import stamps, workbook
from osnb.evidence import own, tables


@pytest.fixture
def scores():
    """Four samples: two known, a negative, an unknown."""
    return finished.scores(0)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty project folder that `workbook` takes for ours."""
    monkeypatch.setattr(workbook, "root", lambda: tmp_path)
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    return tmp_path


def stamp(**parameters):
    """What a run with these parameters follows from."""
    found = {"notebook": "12_train", "run": parameters.get("run", "x"), "parameters": parameters}
    return found | {"settings": {}, "columns": {}, "inputs": {}, "goldens": {"cells": "c0de"}}


def finish(folder, scores, **parameters):
    tables.write(folder / "scores.parquet", scores, stamp(**parameters))


def describe(project, *names, size="mini"):
    for name in names:
        file = project / "params" / "12_train" / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump({"run": name, "size": size}))


def test_what_is_read_is_what_was_written(tmp_path, scores):
    tables.write(tmp_path / "s.parquet", scores, stamp(seed=3))
    back = tables.read(tmp_path / "s.parquet")
    assert back.attrs["parameters"] == {"seed": 3}
    assert back.columns.tolist() == scores.columns.tolist()
    assert back["max_logit"].tolist() == scores["max_logit"].tolist()  # to the last bit


def test_equal_tables_are_equal_files(tmp_path, scores):
    tables.write(tmp_path / "a.parquet", scores, {"seed": 0, "run": "x"})
    tables.write(tmp_path / "b.parquet", scores.copy(), {"run": "x", "seed": 0})
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda s: s.drop(columns="group"), r"lacks \['group'\]"),
        (lambda s: s.drop(columns="max_logit"), "at least one rule"),
        (lambda s: s.astype({"max_logit": np.float32}), "float32"),
        (lambda s: s.assign(sample="a"), "'a' has several"),
        (lambda s: s.assign(role="known"), "disagree"),
        (lambda s: s.assign(label=[0, 1, -1, -3]), "got -3"),
        (lambda s: s.assign(pred=[0, 0, 1, -1]), "got -1"),
        (lambda s: s.assign(max_logit=[1.0, np.nan, 0, 0]), r"\['max_logit'\] hold a NaN"),
    ],
)
def test_a_frame_that_breaks_the_contract_is_refused_and_nothing_is_written(
    tmp_path, scores, change, reason
):
    with pytest.raises(ValueError, match=reason):
        tables.write(tmp_path / "s.parquet", change(scores), {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", [lambda data: data[:-50], lambda _: b""])
def test_a_half_written_file_is_named(tmp_path, scores, damage):
    path = tmp_path / "s.parquet"
    tables.write(path, scores, {})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"s\.parquet is no whole scores table .* run its"):
        tables.read(path)


def test_the_stamp_is_beside_the_table_and_never_in_its_bytes(tmp_path, scores):
    tables.write(tmp_path / "s.parquet", scores, stamp(seed=3))
    before = (tmp_path / "s.parquet").read_bytes()
    tables.write(tmp_path / "s.parquet", scores, stamp(seed=4))
    assert (tmp_path / "s.parquet").read_bytes() == before
    found = stamps.read(tmp_path / "s.json")
    assert found["files"] == {"s.parquet": workbook.file_hash(tmp_path / "s.parquet")}
    assert found["content"] == {"s.parquet": stamps.columns(scores)}


def test_runs_are_found_by_their_stamps_and_the_missing_are_named(project, scores):
    describe(project, "mini_a", "mini_b", "mini_c")
    describe(project, "tiny_a", size="tiny")
    here = project / "runs" / "12_train"
    finish(here / "any-name", scores, run="mini_b", size="mini", seed=4)
    finish(here / "mini_a", scores, run="tiny_a", size="tiny", seed=4)
    runs = tables.collect("12_train", "mini")
    assert runs["run"].tolist() == ["mini_b"]
    assert runs["seed"].tolist() == [4]
    assert runs.attrs["missing"] == ["mini_a", "mini_c"]
    assert tables.gaps(runs) == "missing: mini_a, mini_c"


def test_a_run_without_its_stamp_or_with_an_edited_one_is_not_finished(project, scores):
    describe(project, "mini_a", "mini_b")
    for name in ("mini_a", "mini_b"):
        finish(project / "runs" / "12_train" / name, scores, run=name, size="mini")
    (project / "runs" / "12_train" / "mini_a" / "scores.json").write_text("{}")
    assert tables.collect("12_train", "mini").attrs["missing"] == ["mini_a"]


def test_of_a_table_that_another_run_s_was_copied_over_no_number_is_made(project, scores):
    describe(project, "mini_a", "mini_b")
    here = project / "figures" / "12_train"
    for name, table in (("mini_a", scores), ("mini_b", scores[1:])):
        finish(here / name, table, run=name, size="mini")
    shutil.copy(here / "mini_a" / "scores.parquet", here / "mini_b")
    for collect in (
        lambda: tables.collect("12_train", "mini"),
        lambda: own.collect("mini_b", "mini", score="max_logit", read=None),
    ):
        with pytest.raises(
            ValueError, match=r"12_train/mini_b: scores\.parquet .* has other bytes"
        ):
            collect()


def test_a_params_file_without_a_size_is_a_miniature(project, scores):
    describe(project, "mini_a", "mini_b")
    file = project / "params" / "12_train" / "mini_b.yaml"
    file.write_text("run: mini_b\n")
    assert tables.expected("12_train", "mini") == ["mini_a", "mini_b"]


def test_a_variant_counts_as_no_seed_of_the_original_and_is_named(project, scores):
    describe(project, "mini_a")
    file = project / "params" / "12_train" / "mini_a.yaml"
    file.write_text("run: mini_a\nsize: mini\nepochs: 10\n")
    here = project / "runs" / "12_train"
    as_said = {"size": "mini", "epochs": 10, "seed": 0}
    variants = {"mini_a-epochs20": {"epochs": 20}, "mini_a-seed2-epochs9": {"epochs": 9, "seed": 2}}
    repeats = {"mini_a": {}, "mini_a-seed1": {"seed": 1}, "mini_a-devices2": {"devices": 2}}
    for name, other in {**variants, **repeats, "mine": {}, "mini_ab": {}}.items():
        finish(here / name, scores, run=name, **as_said | other)
    runs = tables.collect("12_train", "mini")
    assert runs["run"].tolist() == sorted(repeats)
    assert runs.attrs == {"missing": [], "variants": sorted(["mine", "mini_ab", *variants])}
    named = ", ".join(runs.attrs["variants"])
    assert tables.gaps(runs) == f"missing: none; variants left out: {named}"


def test_experiments_that_no_table_can_tell_apart_are_refused_by_name(project, scores):
    describe(project, "mini_a", "mini_b")
    for name in ("mini_a", "mini_b"):
        folder = project / "runs" / "12_train" / name
        finish(folder, scores, run=name, size="mini", loss="softmax", seed=0)
    assert len(tables.collect("12_train", "mini", "run", "seed")) == 2
    with pytest.raises(ValueError, match="mini_a and mini_b are both loss softmax, seed 0: no"):
        tables.collect("12_train", "mini", "loss", "seed")


def test_a_run_takes_the_place_of_its_published_copy(project, scores):
    describe(project, "x", "y")
    finish(project / "figures" / "12_train" / "x", scores, run="x", size="mini")
    finish(project / "figures" / "12_train" / "y", scores, run="y", size="mini")
    finish(project / "runs" / "12_train" / "x", scores.iloc[:2], run="x", size="mini")
    runs = tables.collect("12_train", "mini")
    assert [len(tables.read(path)) for path in runs["path"]] == [2, 4]
    published = project / "figures" / "12_train" / "y"
    assert tables.inputs(runs)["y"] == stamps.data(published)


def test_no_run_at_all_says_how_to_make_them(project):
    describe(project, "paper_a", size="paper")
    with pytest.raises(FileNotFoundError, match=r"osnb run params/12_train/paper_\*\.yaml"):
        tables.collect("12_train", "paper")
    found = pd.DataFrame({"run": ["x"]})
    assert tables.some(found, "12_train/mini_*") is found
    with pytest.raises(FileNotFoundError, match=r"osnb run params/12_train/mini_b\*\.yaml"):
        tables.some(found[:0], "12_train/mini_b*")


def test_stacked_tables_carry_their_runs_parameters(project, scores):
    describe(project, "s0", "s1", size="m")
    for seed in (0, 1):
        finish(
            project / "runs" / "12_train" / f"s{seed}", scores, run=f"s{seed}", size="m", seed=seed
        )
    stacked = tables.stack(tables.collect("12_train", "m"), "seed")
    assert stacked["seed"].tolist() == [0] * 4 + [1] * 4
    assert stacked["run"].tolist() == ["s0"] * 4 + ["s1"] * 4


def test_a_csv_is_read_beside_the_scores_or_else_in_figures_and_a_missing_one_is_named(
    project, scores
):
    describe(project, "both", "kept", "none")
    for run in ("both", "kept", "none"):
        finish(project / "runs" / "12_train" / run, scores, run=run, size="mini", seed=3)
    wanted = [("runs", "both", 1), ("figures", "both", 2), ("figures", "kept", 4)]
    for base, run, value in [*wanted, ("figures", "none", 8)]:
        folder = project / base / "12_train" / run
        folder.mkdir(parents=True, exist_ok=True)
        pd.DataFrame({"value": [value]}).to_csv(folder / "means.csv", index=False)
        made = stamp(run=run, size="mini", seed=3)
        made |= {"goldens": {"cells": "other"}} if run == "none" else {}
        stamps.write(folder / "means.json", made | stamps.explained(folder, "means.csv"))
    runs = tables.collect("12_train", "mini")
    found = tables.artefacts(runs, "means", "seed")
    assert found.to_dict("list") == {"value": [1, 4], "run": ["both", "kept"], "seed": [3, 3]}
    assert found.attrs == {"missing": ["none"]}
    assert tables.artefacts(runs, "other", "seed").columns.tolist() == ["run", "seed"]


def test_outputs_of_every_epoch_are_stacked_too_and_no_run_gives_no_row(project, scores):
    describe(project, "plane", size="m")
    folder = project / "runs" / "12_train" / "plane"
    finish(folder, scores, run="plane", size="m", features=2)
    outputs = pd.DataFrame({"sample": ["a", "a"], "x": [0.0, 1.0], "epoch": [1, 2]})
    outputs.to_parquet(folder / "outputs.parquet")
    runs = tables.collect("12_train", "m")
    stacked = tables.stack(runs, "features", file="outputs")
    assert stacked["x"].tolist() == [0.0, 1.0]
    assert stacked["features"].tolist() == [2, 2]
    none = tables.stack(runs[runs["features"] > 2], "features", file="outputs")
    assert none.columns.tolist() == ["run", "features"]
    assert len(none) == 0
    assert tables.stack(none).columns.tolist() == [*tables.COLUMNS, "run"]


def test_published_tables_are_read_and_a_wrong_name_lists_them():
    assert len(tables.published("palechor2023", "table2")) == 18
    with pytest.raises(FileNotFoundError, match="table1, table2"):
        tables.published("palechor2023", "table9")


def test_a_comparison_keeps_dashes_and_missing_runs_visible():
    theirs = pd.DataFrame({"loss": ["S", "BG", "EOS"], "ccr": [0.5, np.nan, 0.7]})
    ours = pd.DataFrame({"loss": ["S", "BG"], "ccr": [0.4, 0.3], "run": ["r1", "r2"]})
    rows = tables.compare(theirs, ours, on=["loss"], value="ccr", comparable=True, tolerance=0.02)
    assert rows["run"].tolist() == ["r1", "r2", "not run"]
    assert rows["difference"].iloc[0] == pytest.approx(-0.1)
    assert rows["difference"].isna().tolist() == [False, True, True]
    assert rows["within"].tolist() == ["no", "", ""]
    assert tables.shown(rows)["paper"].tolist() == ["0.500", "-", "0.700"]
    rows = tables.compare(theirs, ours, on=["loss"], value="ccr", comparable=False, tolerance=0.02)
    assert rows["difference"].isna().all()
    assert set(rows["within"]) == {""}


def test_rows_that_only_ours_has_follow_if_asked_for():
    theirs = pd.DataFrame({"loss": ["S", "BG"], "ccr": [0.5, 0.7]})
    ours = pd.DataFrame({"loss": ["mine", "BG"], "ccr": [0.9, 0.3], "run": ["r1", "r2"]})
    on = {"on": ["loss"], "value": "ccr", "comparable": True, "tolerance": 0.02}
    assert tables.compare(theirs, ours, **on)["loss"].tolist() == ["S", "BG"]
    rows = tables.compare(theirs, ours, **on, more=True)
    assert rows["loss"].tolist() == ["S", "BG", "mine"]
    assert rows["run"].tolist() == ["not run", "r2", "r1"]
    assert tables.shown(rows)["paper"].tolist() == ["0.500", "0.700", "-"]


@pytest.mark.parametrize(("value", "within"), [(0.51, "yes"), (0.49, "yes"), (0.53, "no")])
def test_a_difference_is_within_the_tolerance_on_either_side(value, within):
    theirs = pd.DataFrame({"loss": ["S"], "ccr": [0.5]})
    ours = pd.DataFrame({"loss": ["S"], "ccr": [value], "run": ["r"]})
    on = {"on": ["loss"], "value": "ccr", "comparable": True}
    assert tables.compare(theirs, ours, **on, tolerance=0.02)["within"].tolist() == [within]


def uncertain():
    """Ours with an interval and with a standard deviation, of two losses; a third was not run."""
    theirs = pd.DataFrame({"loss": ["S", "BG", "E_OS"], "ccr": [0.5, 0.6, 0.7]})
    ours = pd.DataFrame(
        {"loss": ["S", "BG"], "ccr": [0.4, 0.3], "low": [0.3, 0.2], "high": [0.45, 0.41]}
        | {"over": "class", "sd_seeds": [0.0125, np.nan], "seeds": [3, 1], "run": ["r1", "r2"]}
    )
    on = {"on": ["loss"], "value": "ccr", "comparable": False, "tolerance": 0.02}
    return tables.compare(theirs, ours, **on)


def test_an_interval_and_the_spread_over_seeds_stand_under_heads_that_tell_them_apart():
    rows = tables.shown(uncertain(), digits=2)
    assert rows["95 % over classes"].tolist() == ["[0.30, 0.45]", "[0.20, 0.41]", "-"]
    assert rows["sd over seeds"].tolist() == ["0.01 (3)", "one seed", "-"]
    assert not {"low", "high", "over", "sd_seeds", "seeds"} & set(rows)
    rows = tables.shown(uncertain(), digits=2, sd_over="runs")  # such as those of other splits
    assert rows["sd over runs"].tolist() == ["0.01 (3)", "one run", "-"]
    assert "& sd over runs &" in tables.latex(uncertain(), sd_over="runs")


def test_latex_has_the_same_cells_and_reads_special_characters_as_text():
    text, rows = tables.latex(uncertain()), tables.shown(uncertain())
    lines = [" & ".join(cells).replace("_", r"\_") for cells in rows.itertuples(index=False)]
    assert [line for line in lines if line + r" \\" in text] == lines
    assert r"95 \% over classes" in text
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1
