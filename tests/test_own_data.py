"""Runs on the papers' own data beside print: what takes a difference, and what must not."""

import numpy as np
import pandas as pd
import pytest
from finished import collecting

from osnb.base import tables as written
from osnb.evidence import tables
from tests.tools import own_data

CELL = {"quoted": "", "epochs": 100, "own_epochs": 100, "over": "splits", "of": 5, "trainings": 5}
CELL |= {"missing": "", "task": "unknown", "source": "", "printed": "msp"}
LACKS = {"missing": "lsun_fix svhn", "over": "seeds"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, ""),
        ({"own_epochs": 600}, ""),
        ({"quoted": "Neal et al., 2018"}, "quoted from Neal et al., 2018, trained otherwise"),
        ({"quoted": "Neal", "own_epochs": 9}, "quoted from Neal, trained otherwise"),
        ({"own_epochs": 200, "epochs": 600}, "epochs 200 of 600"),
        ({"of": 1}, "1 of 5 splits"),
        ({"of": 1, "trainings": 1}, ""),  # a third party's split, held against that split
        ({"of": 1, "over": "seeds"}, ""),
        (LACKS | {"task": "near"}, ""),
        (LACKS | {"task": "wrong"}, ""),
        (LACKS | {"task": "far"}, ""),  # a set that is there and whole
        ({"task": "far", "source": "DTD"}, "10 of 47 textures"),
        ({"task": "wrong", "printed": "openmax"}, "classes are Baseline's, in print OpenMax's own"),
        ({"task": "near", "printed": "openmax"}, ""),
        (LACKS | {"own_epochs": 4}, "epochs 4 of 100, far sets that are not there: lsun_fix, svhn"),
        (LACKS, "far sets that are not there: lsun_fix, svhn"),
    ],
)
def test_a_cell_takes_a_difference_from_its_like_alone(change, reason):
    assert own_data.barred(CELL | change) == reason


def test_cells_are_those_of_print():
    cells = own_data.cells()

    def one(**where):
        (row,) = cells[(cells[[*where]] == pd.Series(where)).all(axis=1)].to_dict("records")
        return row

    mls = one(artefact="Table 5", place="tinyimagenet", printed="mls", metric="oscr")
    assert (mls["value"], mls["epochs"], mls["quoted"]) == (0.743, 600, "")
    assert one(artefact="Table 1", place="tinyimagenet", printed="mls")["value"] == 0.83
    third = {"artefact": "third party's run", "metric": "auroc"}
    assert one(**third, split="2")["value"] == 0.84346
    assert one(**third, split="2")["trainings"] == 1
    assert (cells["artefact"] == "third party's run").sum() == 5 * 3
    quoted = one(artefact="Table 1", place="cifar10", printed="msp")["quoted"]
    assert quoted == "Neal et al., 2018"
    pooled = one(place="cifar", printed="baseline", task="unknown", metric="aurc")
    assert (pooled["value"], pooled["over"]) == (0.7355, "seeds")


def scores(seed, known, unknown, each=12):
    """A scores table of so many known and unknown classes, of which a tenth is predicted wrong."""
    rng, classes = np.random.default_rng(seed), np.arange(known + unknown).repeat(each)
    label = np.where(classes < known, classes, -2)
    pred = np.where(rng.random(len(label)) < 0.9, classes, classes + 1) % known
    table = pd.DataFrame({"sample": [f"s{i:05}" for i in range(len(label))], "source": "x"})
    table["role"] = np.where(label < 0, "unknown", "known")
    table = table.assign(group="", **{"class": classes.astype(str)}, label=label, pred=pred)
    for rule in ("max_softmax_log_odds", "max_logit", "max_softmax"):
        table[rule] = rng.normal(size=len(label)) + (label >= 0)
    return table


@pytest.fixture
def collected(monkeypatch, tmp_path):
    """Makes `tables.collect` find runs of one benchmark, a row of settings each."""

    def put(known, unknown, *runs):
        rows = []
        for i, run in enumerate(runs):
            path = tmp_path / f"{i}" / "scores.parquet"
            written.write(path, scores(i, known, unknown), {})
            usual = {"run": f"r{i}", "path": str(path), "method": "softmax", "regime": "baseline"}
            usual |= {"size": "paper", "network": "vgg32", "seed": 0, "precision": "bfloat16"}
            rows.append(
                usual | {"also": "", "reader": "x", "protocol": "cifar10", "epochs": 100} | run
            )
        collecting(monkeypatch, ("21_vaze_train", "paper"), rows)
        return own_data.table(resamples=20)

    return put


def test_a_plain_split_stands_beside_that_split_of_the_third_party(collected):
    made = collected(
        6, 4, {"benchmark": "cifar10", "split": 2}, {"benchmark": "cifar10", "split": 3}
    )
    each = made[made["artefact"] == "third party's run"].set_index(["split", "metric"])
    table = scores(0, 6, 4)
    known = table[table["label"] >= 0]
    accuracy = (known["pred"] == known["label"]).mean()
    assert each.loc[("2", "accuracy"), "ours"] == pytest.approx(accuracy)
    assert each.loc[("2", "accuracy"), "difference"] == pytest.approx(accuracy - 0.9135)
    assert set(each.index.get_level_values("split")) == {"2", "3"}
    assert set(each["unit"]) == {"sample"}  # ten classes are too few to be drawn
    assert each["reason"].str.contains("images compressed once more, precision bfloat16").all()
    (one,) = made[made["artefact"] == "Table 1"].to_dict("records")
    assert np.isnan(one["difference"])
    whole = "quoted from Neal et al., 2018, trained otherwise, 2 of 5 splits, precision bfloat16"
    assert (one["reason"], one["epochs"]) == (whole, "100")  # of theirs the table says nothing


def test_a_training_cut_short_takes_no_difference_and_says_so(collected):
    splits = [{"benchmark": "tinyimagenet", "split": i, "regime": "strong"} for i in range(5)]
    whole = collected(20, 30, *[split | {"epochs": 600} for split in splits])
    short = collected(20, 30, *splits)
    longer = [split | {"epochs": 600} for split in splits[:-1]]
    mixed = collected(20, 30, *longer, splits[-1] | {"epochs": 200})
    said, both = ", precision bfloat16", "epochs 200 of 600, 1 of 5 splits"
    assert set(mixed["reason"]) == {"4 of 5 splits" + said, both + said}  # no mean of both
    assert whole["difference"].notna().all()
    assert set(whole["epochs"]) == {"600 of 600"}
    assert set(whole["unit"]) == {"class"}
    assert short["difference"].isna().all()
    assert set(short["reason"]) == {"epochs 100 of 600" + said}
    assert own_data.counted(short).startswith("0 of 5 can be compared")
    same = [split | {"epochs": 600, "precision": "float32"} for split in splits]
    far_off = collected(20, 30, *same).query("within == 'further'")
    assert set(far_off["reason"]) == {"no reason found: same settings"}
    few = collected(20, 30, *[split | {"epochs": 600} for split in splits[:4]])
    assert set(few["reason"]) == {"4 of 5 splits" + said}
    sd = [scores(i, 20, 30).query("label >= 0").eval("pred == label").mean() for i in range(5)]
    row = whole[whole["metric"] == "accuracy"].iloc[0]
    assert (row["ours"], row["sd"]) == pytest.approx((np.mean(sd), np.std(sd, ddof=1)))


def test_the_page_counts_what_is_near_and_the_front_page_has_as_many_rows_as_before(collected):
    splits = [{"benchmark": "tinyimagenet", "split": i, "method": "released"} for i in range(5)]
    made = collected(20, 30, *[split | {"regime": "strong", "epochs": 600} for split in splits])
    near = (made["difference"].abs() <= 0.01 + 1e-9).sum()
    text = own_data.counted(made)
    assert text.startswith(f"5 of 5 can be compared: {near} within one point")
    assert text.endswith("of the 5, 0 are of a third party's run and 1 are printed twice")  # MLS
    page = own_data.shown(made)
    assert len(page) == len(made)
    assert page["remark"].str.contains("the authors' weights").sum() == 5
    columns = ["of", "artefact", "compared", "paper", "miniature"]
    others = pd.DataFrame("x", range(10), columns)
    front = own_data.front(made, others)
    assert len(front) == 10
    assert (front["own data"] != "x").sum() == 4  # the AUROC of MLS stands in two tables
    assert list(front) == ["of", "artefact", "compared", "paper", "own data"]
    third = made.assign(artefact=own_data.THIRD)  # whose numbers are not the paper's
    assert (own_data.front(third, others)["own data"] == "x").all()


def kim_scores(seed):
    """A scores table of CIFAR-40: 20 known classes, 21 near ones, 3 of textures."""
    table = scores(seed, 20, 24).assign(max_softmax_log_odds=lambda x: x["max_logit"])
    unknown = table["role"] == "unknown"
    far = unknown & table["class"].isin(sorted(table.loc[unknown, "class"].unique())[:3])
    table["group"] = np.select([far, unknown], ["far", "near"], "")
    table["source"] = np.where(far, "textures", "cifar100")
    table["openmax"] = table["odin"] = table["mahalanobis"] = table["max_logit"]
    return table


KIM = {"method": "softmax", "seed": 0, "benchmark": "cifar40", "split": 0, "regime": "baseline"}
KIM |= {"network": "resnet20", "size": "paper", "precision": "float32", "also": "textures"}
KIM |= {"reader": "cifar100 tinyimagenet_parquet", "protocol": "cifar40", "epochs": 200}


def test_the_shortest_runs_of_each_draw_stand_beside_print(tmp_path, monkeypatch):
    names, rows = ["cifar40", "cifar40_draw1", "cifar40_draw2"], []
    for i, name in enumerate([*names, names[0]]):
        path = tmp_path / f"{i}" / "scores.parquet"
        written.write(path, kim_scores(i), {})
        run = {"run": f"r{i}", "path": str(path), "benchmark": name}
        rows.append(KIM | run | {"epochs": 40 if i < 3 else 200})
    rows.append(rows[0] | {"run": "crl", "method": "crl"})
    monkeypatch.setattr(tables, "collect", lambda *_: pd.DataFrame(rows))
    made = own_data.draws(resamples=20)
    assert [*made["draw"]] == ["first", "second", "third", "print"]
    assert [*made["epochs"]] == ["40", "40", "40", "200"]
    for i in range(3):
        known = kim_scores(i).query("role == 'known'")
        accuracy = (known["label"] == known["pred"]).mean()
        assert made["wrong: accuracy"][i].startswith(f"{accuracy:.3f} [")
    assert [*made.iloc[3, 3:]] == ["0.744", "0.075", "0.722", "0.865"]


def test_a_training_in_two_precisions_stands_beside_itself(tmp_path, monkeypatch):
    rows = []
    for i, precision in enumerate(["float32", "bfloat16"] * 2 + ["float32"]):
        path = tmp_path / f"{i}" / "scores.parquet"
        written.write(path, kim_scores(i), {})
        rows.append(KIM | {"path": str(path), "seed": i // 2, "precision": precision})
    monkeypatch.setattr(tables, "collect", lambda *_: pd.DataFrame(rows))
    made = own_data.precisions()
    assert [*made["seed"]] == ["0", "1", "float32 less bfloat16"]  # seed 2 has no like
    right = [kim_scores(i).query("label >= 0").eval("pred == label").mean() for i in range(4)]
    assert [*made["accuracy, bfloat16"][:2]] == [f"{x:.4f}" for x in right[1::2]]
    gaps = np.subtract(right[::2], right[1::2])
    spread = f"{gaps.mean():+.4f}, deviation {gaps.std(ddof=1):.4f}"
    assert made["accuracy, float32"][2] == spread


def test_networks_of_one_method_are_cells_of_their_own_and_have_precisions_of_their_own(
    tmp_path, monkeypatch
):
    written.write(tmp_path / "scores.parquet", kim_scores(0), {})
    run = KIM | {"run": "r", "path": str(tmp_path / "scores.parquet")}
    both = pd.DataFrame([run, run | {"run": "s", "network": "resnet18"}])
    monkeypatch.setattr(tables, "collect", lambda name, _: both if "kim" in name else both[:0])
    monkeypatch.setattr(own_data, "OF", {"31_kim_train": own_data.OF["31_kim_train"]})
    made = own_data.ours(resamples=20)
    assert set(made["of"]) == {1}
    assert set(made["run"]) == {"r", "s"}
    assert own_data.precisions().empty  # nothing was trained in bfloat16
    slim = both.assign(precision="bfloat16", network="resnet18")[:1]
    monkeypatch.setattr(tables, "collect", lambda *_: pd.concat([both, slim]))
    assert [*own_data.precisions()["network"]] == ["resnet18", ""]


def test_a_far_set_of_few_classes_has_an_interval_over_images_and_others_one_over_classes(
    tmp_path, monkeypatch
):
    written.write(tmp_path / "scores.parquet", kim_scores(0), {})
    run = KIM | {"run": "r", "path": str(tmp_path / "scores.parquet")}
    rows = [run, run | {"run": "oe", "method": "oe"}]
    collecting(monkeypatch, ("31_kim_train", "paper"), rows)
    alone = {"place": "cifar", "task": "far", "source": "DTD", "images": "textures"}
    alone |= {"variation": 0.95, "rougher": "known", "solved": "solved"}
    monkeypatch.setattr(own_data.kim2021, "variation", lambda _: pd.DataFrame([alone]))
    made = own_data.table(resamples=20)
    assert set(made.loc[made["source"] == "DTD", "unit"]) == {"sample"}
    assert set(made.loc[made["source"] == "CIFAR-60", "unit"]) == {"class"}
    text = own_data.shown(made)
    told = "total variation alone: AUROC 0.950 solved"
    assert text["remark"].str.endswith(told).sum() == (made["source"] == "DTD").sum() > 0
    codec = text["remark"].str.contains("told by their codec")
    assert (codec == (made["method"] == "oe")).all()
    assert codec.any()


def test_no_run_gives_no_row(monkeypatch):
    collecting(monkeypatch, None, [])
    made = own_data.table()
    assert len(made) == 0
    assert own_data.counted(made).startswith("0 of 0")


def small_networks(monkeypatch, *runs):
    """Runs of the fast regime, one of another and one of other images: (split, method, overrides,
    predictions, and the seed if it is not 0)."""
    found, scored = [], {}
    for i, (split, method, overrides, pred, *seed) in enumerate([*runs, runs[0], runs[0]]):
        columns = {"split": split, "seed": sum(seed), "method": method}
        columns["regime"] = "strong" if i == len(runs) else "fast"
        columns["benchmark"] = "tinyimagenet" if i > len(runs) else "cifar10"
        stamp = {"columns": columns, "settings": {"epochs": 12}}
        found.append((i, stamp | {"parameters": {"overrides": overrides}}))
        table = pd.DataFrame({"role": ["known"] * 4 + ["unknown"] * 2, "pred": [*pred, 1, 1]})
        table = table.assign(label=[0, 1, 0, 1, -2, -2], max_logit=[5.0, 4, 3, 1, 2, 0])
        scored[i] = table.assign(max_softmax_log_odds=[5.0, 4, 3, 2.5, 2, 0])
    monkeypatch.setattr(tables, "read", scored.get)
    monkeypatch.setattr(own_data.stamps, "finished", lambda *_: iter(found))


def test_fast_runs_stand_beside_the_third_partys_run_of_their_split(monkeypatch):
    small_networks(monkeypatch, (2, "softmax", "answer=mirrored", [0, 1, 0, 0]))
    (row,) = own_data.fast().to_dict("records")
    assert (row["split"], row["epochs"], row["otherwise"]) == ("2", "12", "")
    assert (row["accuracy"], row["MSP"], row["MLS"]) == ("0.750", "1.000", "0.875")  # 7 of 8 pairs
    assert (row["VGG32: accuracy"], row["VGG32: MSP"]) == ("0.913", "0.843")  # known_runs


def test_an_ingredient_is_what_it_adds_to_the_same_split_without_it(monkeypatch):
    right, one, two = [0, 1, 0, 1], [0, 1, 0, 0], [0, 1, 1, 0]
    smoothed, own = "answer=mirrored epochs=12 smoothing=0.2", "answer=mirrored epochs=12"
    rows = [(4, "softmax", smoothed, one), (3, "softmax", smoothed, right), (2, "arpl", own, two)]
    rows += [(2, "softmax", own, one), (3, "softmax", own, two), (4, "softmax", own, two)]
    rows += [(0, "softmax", smoothed, right)]  # of a split on which the regime has no own run
    rows += [(4, "softmax", smoothed, right, 1), (4, "softmax", own, two, 1)]
    small_networks(monkeypatch, *rows)
    arpl, smoothing = own_data.ingredients().to_dict("records")
    assert (arpl["otherwise"], arpl["splits"]) == ("method=arpl", "2")
    assert arpl["accuracy"] == "-0.250 (-0.250)"
    assert (smoothing["otherwise"], smoothing["splits"]) == ("smoothing=0.2", "3, 4")
    assert smoothing["accuracy"] == "+0.438 (+0.500, +0.375)"  # splits count alike, not runs
    assert (arpl["runs"], smoothing["runs"]) == ("1", "3")
    assert smoothing["MLS"] == "+0.000 (+0.000, +0.000)"
    assert own_data.fast()["otherwise"].value_counts().to_dict() == {"": 5, "smoothing=0.2": 4}
    short = own_data.fast_means().set_index(["otherwise", "method"])
    assert short.loc[("smoothing=0.2", "softmax"), ["splits", "runs"]].to_list() == ["0, 3, 4", "4"]
    accuracy = short.loc[("smoothing=0.2", "softmax"), "accuracy"]
    assert accuracy == "0.958 (1.000, 1.000, 0.875)"  # two seeds of split 4, .75 and 1
    theirs = short.loc[("a third party's VGG32", "softmax")]  # known_runs, of the same splits
    assert theirs["MSP"] == "0.859 (0.867, 0.843, 0.856, 0.870)"
    assert theirs["MLS"] == ""


def test_without_a_fast_run_there_is_no_ingredient(monkeypatch):
    monkeypatch.setattr(own_data.stamps, "finished", lambda *_: iter([]))
    assert own_data.ingredients().empty
    assert own_data.fast().empty
    assert own_data.fast_means().empty


def test_norms_are_of_cross_entropy_networks_that_kept_them(monkeypatch):
    columns = {"benchmark": "cifar10", "split": 2, "network": "vgg32", "method": "softmax"}
    stamps, scored = [], {}
    for at, method in enumerate(["softmax", "arpl", "softmax", "released"]):
        stamps.append((at, {"columns": columns | {"method": method}, "settings": {"epochs": 100}}))
        table = pd.DataFrame(
            {"role": ["known", "known", "unknown", "unknown"], "pred": 0, "label": 0}
        )
        table["feature_norm"], table["max_logit"] = [4.0, 2, 3, 1], [9.0, 9, 8, 8]
        scored[at] = table.assign(max_softmax_log_odds=[1.0, 2, 3, 4])
    scored[2] = scored[2].drop(columns="feature_norm")
    monkeypatch.setattr(tables, "read", scored.get)
    monkeypatch.setattr(own_data.stamps, "finished", lambda *_: iter(stamps))
    own, released = own_data.norms().to_dict("records")
    assert own == released
    assert (own["norm, known"], own["norm, unknown"]) == ("3.000", "2.000")
    assert own["known over unknown"] == "1.500"
    assert (own["AUROC: norm"], own["MSP"], own["MLS"]) == ("0.750", "0.000", "1.000")
    assert own["way up"] == "0.500"  # from .5 to .75, where MLS goes to 1
    assert (own["benchmark"], own["split"], own["epochs"]) == ("cifar10", "2", "100")


def test_claims_without_a_number_are_left_out_and_others_keep_their_interval(monkeypatch):
    row = {"paper": "kim2021", "section": "Sec. 4", "claim": "A above B.", "where": "cifar"}
    row |= {"answer": "holds", "number": 0.0256, "low": 0.0189, "high": 0.0375}
    row |= {"runs": "a-epochs40, a-epochs40-seed1, b-split1, a-epochs40-seed2; far sets: x, y"}
    asked = []

    def decide(papers, sizes):
        asked.append(sizes)
        return pd.DataFrame([row, row | {"number": np.nan, "answer": "undecided"}])

    monkeypatch.setattr(own_data.claims, "decide", decide)
    (found,) = own_data.decided().to_dict("records")
    assert asked == [["paper"]]
    assert (found["answer"], found["number"]) == ("holds", "+0.026 [0.019, 0.037]")
    assert (
        found["runs"] == "a-epochs40 (3), b; far sets: x, y"
    )  # seeds and splits of one recipe are counted
