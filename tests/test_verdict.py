"""`osnb verdict`: a class or a rejection for images that belong to no test set."""

import json

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from test_cli import osnb
from test_predict import out, read, small  # noqa: F401  # fixtures

from osnb import datasets, metrics


@pytest.fixture
def photos(small, out):  # noqa: F811
    """Sixty of the test's digits as png files; their rows of the run's scores table."""
    images, table = datasets.READERS["digits"](), read(out, "small")
    rows = table[table["source"] == "digits"].iloc[::5].head(60)
    places = pd.Series(range(len(images.rows)), images.rows["sample"])[rows["sample"]]
    datasets.write_png(images, places.to_numpy(), out / "photos" / "deep")
    return rows.assign(file=[f"deep/{i:03}.png" for i in range(60)]).set_index("file")


def told(*words):
    code, said, notes = osnb("verdict", *words, "--json", "-")
    assert code == 0, notes
    return json.loads(said), pd.DataFrame(json.loads(said)["rows"]).set_index("sample")


@pytest.mark.parametrize("rule", ["max_logit", "energy"])
def test_new_images_have_the_scores_of_the_test_and_a_verdict_each(photos, out, rule):  # noqa: F811
    at = float(photos[rule].median())
    _, rows = told("photos", "small", "--threshold", at, "--score", rule, "--out", "v.csv")
    assert [*rows.index] == [*photos.index]
    np.testing.assert_allclose(rows["score"], photos[rule], atol=1e-4)
    clear = (photos[rule] - at).abs() > 1e-3
    wanted = np.where(photos[rule] >= at, "accept " + rows["class"], "reject")
    assert (rows["verdict"] == wanted)[clear].all()
    assert {"reject"} < {*rows["verdict"]}
    known = read(out, "small").query("role == 'known'")
    named = known.groupby("label")["class"].first()
    assert [*("digit-" + rows["class"])] == [named[label] for label in photos["pred"]]
    kept = pd.read_csv("v.csv").set_index("sample")
    pd.testing.assert_series_equal(kept["verdict"], rows["verdict"])


@pytest.mark.parametrize(("rate", "at"), [("tpr", 0.8), ("fpr", 0.2)])
def test_a_threshold_is_chosen_on_all_test_images_with_its_bound(photos, out, rate, at):  # noqa: F811
    said, rows = told("photos", "small", f"--{rate}", at)
    table = read(out, "small")
    side = table["label"] >= 0 if rate == "tpr" else table["label"] == -2
    choose = {"tpr": metrics.tpr_threshold, "fpr": metrics.fpr_threshold}[rate]
    by_hand = choose(table.loc[side, "max_logit"].to_numpy(), **{rate: at})
    np.testing.assert_allclose(rows["threshold"], by_hand, atol=1e-4)
    assert f"chosen on the {len(table)} test images of digits" in said["notes"]
    assert any("with 95 % confidence" in note for note in said["notes"])


def test_what_does_not_decode_is_named_and_the_others_get_their_verdict(photos, out):  # noqa: F811
    (out / "photos" / "a.png").write_bytes(b"no image")
    (out / "list.csv").write_text("path\nphotos/deep/001.png\nphotos/a.png\n")
    said, rows = told("list.csv", "small", "--threshold", 0)
    assert [*rows["verdict"]][1:] == ["unreadable"]
    assert rows["score"].isna().tolist() == [False, True]
    assert "a.png does not decode" in " ".join(said["notes"])


def test_weights_in_a_file_give_the_verdicts_of_their_run(photos, small):  # noqa: F811
    weights = small.directory / "checkpoint.pt"
    words = ("--benchmark", "own/21_vaze_train/small.yaml", "--weights", weights)
    _, ours = told("photos", *words, "--threshold", 1)
    _, theirs = told("photos", "small", "--threshold", 1)
    pd.testing.assert_frame_equal(ours, theirs)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["photos", "small"], "one of --tpr, --fpr, --risk, --threshold"),
        (["photos", "small", "--tpr", ".9", "--threshold", "1"], "need one of --tpr"),
        (["photos", "small", "--tpr", ".9", "-p", "split=1"], "-p goes with --benchmark"),
        (["photos", "--tpr", ".9"], "need a finished RUN, or --benchmark"),
        (["none", "small", "--tpr", ".9"], "no such folder of images, csv file or image: none"),
        (
            ["photos", "small", "--tpr", ".9", "--score", "x"],
            "no score 'x': there are max_softmax, max_softmax_log_odds, max_logit",
        ),
        (["photos", "small", "--threshold", "nan"], "--threshold needs a number; got nan"),
        (["photos", "small", "--threshold", "1", "--share", ".5"], "--share goes with --tpr"),
        (
            ["photos/list.csv", "small", "--tpr", ".9", "--out", "photos/list.csv"],
            "list.csv is read",
        ),
        (["photos", "small", "--tpr", "1.5"], "needs a number in (0, 1); got 1.5"),
    ],
)
def test_what_cannot_be_decided_is_refused(words, reason, photos, out):  # noqa: F811
    (out / "photos" / "list.csv").touch()
    assert reason in refused("verdict", *words)
