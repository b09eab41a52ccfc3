"""How `osnb score` reads columns that others have named, and what it says of them."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from test_cli import osnb

from osnb import scores
from osnb.book.cli.scores import _own
from osnb.scores.own import SHARES


def columns(size=60, **more):
    """Samples of three classes and unknown ones, by numbers."""
    rng = np.random.default_rng(0)
    label = np.where(np.arange(size) % 3, rng.integers(0, 3, size), -2)
    pred = np.where(rng.random(size) < 0.8, np.maximum(label, 0), 1)
    return {"label": label, "pred": pred, "mine": rng.normal(size=size) + (label >= 0)} | more


def renamed(**names):
    return {names.get(name, name): values for name, values in columns().items()}


@pytest.mark.parametrize("label", ["label", "labels", "y_true", "target", "gt"])
@pytest.mark.parametrize("pred", ["pred", "y_pred", "prediction"])
def test_usual_names_are_read_as_ours_and_said(label, pred):
    plain, own = scores.own(columns()), scores.own(renamed(label=label, pred=pred))
    for name in ("label", "pred"):
        np.testing.assert_array_equal(getattr(own, name), getattr(plain, name))
    assert {*own.scores} == {"mine"}
    said = {
        f"column {name} is read as label" for name in (label,) if name not in ("label", "labels")
    }
    said |= {f"column {name} is read as pred" for name in (pred,) if name != "pred"}
    assert {*own.notes} == said


def test_our_own_name_comes_before_all_others():
    own = scores.own(columns(y_true=np.zeros(60), target=np.zeros(60)))
    np.testing.assert_array_equal(own.label, columns()["label"])
    assert {*own.scores} == {
        "mine",
        "y_true",
    }  # target is a score of our tables, which knows labels


def test_minus_one_alone_is_unknown_and_beside_minus_two_negative():
    label = columns()["label"]
    own = scores.own(columns() | {"label": np.where(label < 0, -1, label)})
    np.testing.assert_array_equal(own.label, label)
    assert own.notes == (
        "label -1 is read as unknown, since no label is -2; beside -2 it is negative",
    )
    label[:5] = -1
    both = scores.own(columns() | {"label": label})
    assert (both.label == -1).sum() == 5
    assert both.notes == ()


def test_a_column_of_file_names_is_the_sample_and_other_text_is_no_score():
    names = np.array([f"{i}.png" for i in range(60)])
    own = scores.own(columns(path=names, remark=np.full(60, "x")))
    assert own.sample.tolist() == names.tolist()
    assert {*own.scores} == {"mine"}
    assert own.notes == ("column path is read as sample", "no score, being text or empty: remark")


@pytest.mark.parametrize("kind", [object, str])
def test_labels_that_are_text_count_as_their_classes(kind):
    names = np.array(["cat", "dog", "owl", "unknown"], kind)  # -2 is the third: not asked for
    plain = columns()
    words = {"label": names[plain["label"]], "pred": names[plain["pred"]]}
    words["label"] = np.where(plain["label"] < 0, "unknown", words["label"]).astype(kind)
    own = scores.own(plain | words)
    np.testing.assert_array_equal(own.label, plain["label"])
    np.testing.assert_array_equal(own.pred, plain["pred"])
    assert own.classes == ("cat", "dog", "owl")


def test_samples_that_are_not_known_need_no_pred():
    plain = columns()
    known = plain["label"] >= 0
    own = scores.own(plain | {"pred": np.where(known, plain["pred"], np.nan)})
    np.testing.assert_array_equal(own.pred[known], plain["pred"][known])


def test_a_column_that_is_called_as_a_rule_of_the_logits_takes_its_place():
    logits = {"label": np.array([0, 1, -2]), "logits": np.eye(3)[:, :2]}
    own = scores.own(logits | {"max_logit": np.arange(3.0)})
    assert own.scores["max_logit"].tolist() == [0, 1, 2]


def test_numbers_that_are_written_as_text_are_numbers():
    plain = columns()
    own = scores.own(plain | {k: plain[k].astype(str).astype(object) for k in ("label", "pred")})
    np.testing.assert_array_equal(own.label, plain["label"])
    assert own.classes == ()


@pytest.mark.parametrize("names", [np.str_, object])
def test_numbers_of_classes_beside_words_of_roles_are_numbers(names):
    label = columns()["label"]
    label[:6:3] = -1
    words = {-2: "Unknown", -1: "negative"}
    own = scores.own(columns(label=np.array([words.get(x, str(x)) for x in label], names)))
    np.testing.assert_array_equal(own.label, label)
    assert own.classes == ()
    logits = {"label": np.array(["0", "1", "unknown"], names), "logits": np.eye(3)}
    assert scores.own(logits).label.tolist() == [0, 1, -2]
    named = {"label": logits["label"], "pred": np.array(["0", "b", "b"], names), "s": np.ones(3)}
    assert scores.own(named).classes == ("0", "1", "b")


def test_a_column_that_is_no_real_number_a_sample_is_no_score_unless_it_is_asked_for():
    more = {"features": np.ones((60, 2)), "epoch": np.array(3), "ok": np.ones(60, bool)}
    own = scores.own(columns(**more))
    assert {*own.scores} == {"mine"}
    assert own.notes == ("no score, of another shape or kind: features, epoch, ok",)
    logits = {"label": np.array([0, 1, -2]), "logits": 5 * np.eye(3), "features": np.ones((3, 2))}
    assert scores.own(logits).notes == ("no score, of another shape or kind: features",)
    for name in more:
        with pytest.raises(ValueError, match=f"{name} needs"):
            scores.own(columns(**more), names=[name])


def test_roles_are_read_in_any_case_and_a_class_that_is_never_predicted_is_named():
    words = {"label": ["cat", "dog", "Unknown", "owl"], "pred": ["cat", "dog", "cat", "dog"]}
    said = scores.own({name: np.array(x, object) for name, x in words.items()} | {"s": np.ones(4)})
    assert said.label.tolist() == [0, 1, -2, 2]
    assert said.classes == ("cat", "dog", "owl")
    assert any(note.startswith("never predicted: owl") for note in said.notes)


def test_a_verdict_names_the_class_as_the_file_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain = columns(400)
    names = np.array(["cat", "dog", "owl", "unknown"], object)
    label = np.where(plain["label"] < 0, "unknown", names[plain["label"]])
    pd.DataFrame(plain | {"label": label, "pred": names[plain["pred"]]}).to_csv(
        "a.csv", index=False
    )
    assert osnb("threshold", "a.csv", "--tpr", 0.9, "--out", "v.csv")[0] == 0
    found = pd.read_csv("v.csv")
    own = _own(tmp_path / "a.csv", 0, [])
    assert {*found["verdict"]} == {"reject", "accept cat", "accept dog", "accept owl"}
    assert own.classes == ("cat", "dog", "owl")


def test_a_sign_that_may_be_turned_is_said_and_one_that_is_not_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain = columns(300)
    unlucky = np.random.default_rng(2).normal(-0.35 * (plain["label"] >= 0))  # AUROC 0.42
    more = {"turned": -3 * plain["label"], "unlucky": unlucky}
    pd.DataFrame(plain | more).to_csv("a.csv", index=False)
    code, out, err = osnb("score", "a.csv", "--resamples", 30)
    assert (code, "auroc" in out) == (0, True)
    *few, line = err.splitlines()
    assert err.count("sign may be turned") == 1
    assert line.startswith("osnb: AUROC of turned is 0.000: its sign may be turned; higher has to")
    notes = json.loads(osnb("score", "a.csv", "--resamples", 30, "--json", "-")[1])["notes"]
    assert [f"osnb: {note}" for note in notes] == [*few, line]
    _, _, err = osnb("threshold", "a.csv", "--tpr", 0.9, "--score", "turned")
    assert err.splitlines()[0] == line


def test_logits_that_are_probabilities_are_said_to_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logits, label = np.random.default_rng(0).normal(0, 2, (60, 3)), np.arange(60) % 4 - 1
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    kinds = {"logits": logits, "shares": shares, "half": shares.astype(np.float16)}
    kinds["signed"] = logits - logits.mean(axis=1, keepdims=True) + 1 / 3  # their sums are 1 too
    for name, values in (kinds | {"logs": np.log(shares)}).items():
        np.savez(f"{name}.npz", labels=label, logits=values)
    said = {
        name for name in (*kinds, "logs") if SHARES in _own(tmp_path / f"{name}.npz", 0, []).notes
    }
    assert said == {"shares", "half"}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (renamed(label="lable"), r"needs a column label \(is it lable\?\); there are: lable, pred"),
        (renamed(pred="perd"), r"needs a column pred \(is it perd\?\)"),
        (columns() | {"label": np.full(60, "cat")}, "label and pred both need names of classes"),
        (columns() | {"mine": np.ones(60, complex)}, "mine needs numbers, .*; got complex128"),
        (columns() | {"mine": np.full(60, 2**63, np.uint64)}, "float64 holds exactly; got uint64"),
        (columns() | {"mine": np.full(60, 2**53 + 1)}, "float64 holds exactly; got int64"),
        (columns() | {"mine": np.full(60, -(2**53) - 1)}, "float64 holds exactly; got int64"),
        (columns() | {"mine": np.ones(60, np.longdouble)}, "holds exactly; got float128"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_was_perhaps_meant(given, reason):
    with pytest.raises(ValueError, match=reason):
        scores.own(given)


def test_integers_up_to_what_a_float_holds_are_scores():
    whole = np.arange(60) + 2**53 - 59
    np.testing.assert_array_equal(scores.own(columns(mine=whole)).scores["mine"], whole)


@pytest.mark.parametrize("name", ["label", "pred", "class", "sample"])
def test_a_lone_surrogate_in_a_name_is_refused_by_the_name(name):
    words = {"label": ["cat", "dog"], "pred": ["cat", "cat"], "class": ["a", "b"]}
    given = words | {"sample": ["1", "2"], "score": [0.5, 0.2]}
    given[name] = [given[name][0], "caf\udce9"]
    with pytest.raises(ValueError, match=r"needs names that UTF-8 can write; got 'caf.udce9'"):
        scores.own({key: np.array(value) for key, value in given.items()})


# Embeddings of a network that compares images with texts


def embeddings(known=3, words=5, size=90):
    """(labels, images, texts): images near to the text of their class, unknown ones to a word."""
    rng = np.random.default_rng(0)
    texts = rng.normal(size=(known + words, 8))
    labels = np.where(np.arange(size) % 3, np.arange(size) // 3 % known, -2)
    near = np.where(labels < 0, known + np.arange(size) % words, labels)
    return labels, texts[near] + rng.normal(size=(size, 8)), texts


def cosine(a, b):
    return math.fsum(a * b) / math.sqrt(math.fsum(a * a) * math.fsum(b * b))


def shares(image, texts, temperature):
    """Softmax of an image's cosines, in double precision by `math`."""
    powers = [math.exp(cosine(image, text) / temperature) for text in texts]
    return [power / math.fsum(powers) for power in powers]


def test_embeddings_are_scored_by_mcm_and_neglabel_from_one_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels, images, texts = embeddings()
    np.savez("e.npz", labels=labels, images=images, texts=texts)
    code, said, _ = osnb("score", "e.npz", "--known", 3, "--resamples", 10, "--json", "-")
    assert code == 0
    found = {(x["score"], x["measure"]): x["value"] for x in json.loads(said)["rows"]}
    assert {"mcm", "neglabel", "max_logit"} < {score for score, _ in found}
    by_hand = {
        "mcm": [max(shares(image, texts[:3], 1.0)) for image in images],
        "neglabel": [math.fsum(shares(image, texts, 0.01)[:3]) for image in images],
    }
    for name, values in by_hand.items():
        at_least = [
            (a > b) + 0.5 * (a == b)
            for a in np.array(values)[labels >= 0]
            for b in np.array(values)[labels < 0]
        ]
        assert found[name, "auroc"] == pytest.approx(np.mean(at_least), abs=2e-3)
    nearest = [np.argmax([cosine(image, text) for text in texts[:3]]) for image in images]
    right = np.mean([a == b for a, b in zip(nearest, labels, strict=True) if b >= 0])
    assert found["mcm", "accuracy"] == pytest.approx(right)
    words = ("--known", 3, "--score", "neglabel", "--tpr", 0.9, "--out", "v.csv")
    assert osnb("threshold", "e.npz", *words)[0] == 0
    assert {"accept 0", "reject"} < {*pd.read_csv("v.csv")["verdict"]}


def test_without_negative_words_there_is_no_neglabel_and_wrong_embeddings_are_refused():
    labels, images, texts = embeddings(words=1)
    found = scores.own({"labels": labels, "images": images, "texts": texts}).scores
    assert "mcm" in found
    assert "neglabel" not in found
    for wrong, reason in (
        ({"images": images[1:]}, "needs a label for each row; got 89 logits, 90"),
        ({"images": images[:, 1:]}, r"need \(N, D\) images and \(C, D\) texts"),
        ({"texts": texts[:2]}, "needs labels below 2 known classes; got 2"),
    ):
        with pytest.raises(ValueError, match=reason):
            scores.own({"labels": labels, "images": images, "texts": texts} | wrong)
    with pytest.raises(ValueError, match="needs a column images"):
        scores.own({"labels": labels, "texts": texts})
