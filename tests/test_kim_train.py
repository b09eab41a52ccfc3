"""What 31_kim_train refuses before and after training, its optimizers, and its third exercise."""

import ast
import json

import numpy as np
import pytest
import torch

from osnb import repro, tables

ROOT = repro.root()
CELLS = json.loads((ROOT / "notebooks" / "31_kim_train.ipynb").read_text(encoding="utf8"))["cells"]
CODE = [ast.parse("".join(x["source"])) for x in CELLS if x["cell_type"] == "code"]
PARAMETERS = repro.declared(ROOT / "notebooks" / "31_kim_train.ipynb")


def names(node):
    """What a statement binds and asks for."""
    used = {x.id for x in ast.walk(node) if isinstance(x, ast.Name)}
    return used | {x.name for x in ast.walk(node) if isinstance(x, ast.FunctionDef)}


def executed(*wanted, **given):
    """The namespace after those statements of the notebook that bind or assert one of the names."""
    found = [
        each
        for cell in CODE
        for each in cell.body
        if isinstance(each, ast.Assign | ast.Assert | ast.FunctionDef)
        and names(each.targets[0] if isinstance(each, ast.Assign) else each) & {*wanted}
        and (not isinstance(each, ast.FunctionDef) or each.name in wanted)
    ]
    space = PARAMETERS | given
    exec(compile(ast.Module(found, []), "31_kim_train", "exec"), space)
    return space


def refusals(**given):
    """The notebook's checks before its training; 10 known classes, if nothing else is given."""
    return executed("tops", "alone", "need", **({"known": 10} | given))


def test_alphas_above_the_number_of_known_classes_are_left_out():
    assert refusals(alphas="1 5 20")["tops"] == [1, 5]


def test_only_alphas_above_the_number_of_known_classes_are_refused_with_both():
    with pytest.raises(AssertionError, match="at most K = 10 known classes; got 20 30"):
        refusals(alphas="20 30")
    assert refusals(alphas="20 30", fitted=False)["tops"] == []


@pytest.mark.parametrize("given", [{"members": 3}, {"samples": 50}])
def test_fitted_rules_beside_several_networks_or_passes_are_refused_with_the_way_out(given):
    (setting,) = given.items()
    with pytest.raises(AssertionError, match="{}={}.*: set fitted=false".format(*setting)):
        refusals(**given)
    refusals(**given, fitted=False)


def test_too_few_right_training_images_for_openmax_name_the_class_and_the_way_out():
    class Scores:
        """Predicts what it is given."""

        @staticmethod
        def predicted(seen, *, known):
            assert known == 2
            return seen

    target = np.repeat([0, 1], 6)
    space = executed("enough", known=2, target=target, scores=Scores, np=np, tails="2 5")
    assert space["enough"](target) is target
    wrong = np.r_[target[:-2], 0, 0]
    with pytest.raises(AssertionError, match="class 1 has 4: train longer, or set fitted=false"):
        space["enough"](wrong)


def test_the_comment_of_fitted_says_what_very_few_epochs_need():
    (text,) = ["".join(x["source"]) for x in CELLS if "parameters" in x["metadata"].get("tags", [])]
    (line,) = [each for each in text.splitlines() if each.startswith("fitted: ")]
    assert "false" in line
    assert "very few epochs" in line


@pytest.mark.parametrize(("name", "nesterov"), [("sgd", True), ("sgd_plain", False)])
def test_sgd_has_momentum_and_the_plain_one_is_without_nesterov(name, nesterov):
    space = executed("if_sgd", "optimizers", torch=torch, learning_rate=0.1, weight_decay=0.01)
    (group,) = space["optimizers"][name]([torch.zeros(1, requires_grad=True)]).param_groups
    assert (group["momentum"], group["nesterov"]) == (0.9, nesterov)
    assert (group["lr"], group["weight_decay"]) == (0.1, 0.01)


def test_edl_moves_known_and_near_alike_and_the_far_ones_several_times_as_far_by_noise():
    """Exercise 3, on the committed scores."""
    text = "".join("".join(x["source"]) for x in CELLS)
    assert "known and near by about as much, the third several times as far" in text
    folder = ROOT / "figures" / "31_kim_train"
    plain, edl = (tables.read(folder / f"mini_{x}" / "scores.parquet") for x in ("baseline", "edl"))
    by = [each.groupby("group")["max_softmax"].mean() for each in (plain, edl)]
    moved = by[1] - by[0]
    assert (moved > 0).all()
    assert moved[""] == pytest.approx(moved["near"], abs=0.005)
    assert moved["far"] > 5 * moved[["", "near"]].max()
    by = [x[x["group"] == "far"].groupby("source")["max_softmax"].mean() for x in (plain, edl)]
    moved = by[1] - by[0]
    assert moved["gaussian_noise"] > 0.1 > 0.01 > abs(moved["synsets"])
    right = [((x["role"] == "known") & (x["pred"] == x["label"])).sum() for x in (plain, edl)]
    assert right == [200, 196]
