"""The scores table of an experiment: every rule on every test image, in one place."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from torch import nn

from osnb import metrics, scores, train
from osnb.base import tables
from osnb.base.labels import NEGATIVE
from osnb.base.outputs import Outputs
from osnb.datasets import Batches
from osnb.experiment import Experiment, layers
from osnb.experiment.parts import Parts
from osnb.experiment.trained import members
from osnb.train import methods

Rule = Callable[[Batches, Outputs], np.ndarray]  # (N,) of batches and what the network says


def scored(
    experiment: Experiment, network: nn.Module, parts: Parts, directory: Path
) -> dict[str, pd.DataFrame]:
    """Every table that a run's scores come as; see `Experiment.scores`.

    Raises:
        ValueError: OpenMax lacks images that are classified right, or a setting is out of range.
    """
    found = Scores(network, parts, Path(directory)).tables()
    watched = experiment.settings["watch"]["name"]
    if watched == "gamma" and not isinstance(network, nn.ModuleList):
        kept = next(Path(directory).rglob("best.pt"), Path(directory, "best.pt"))
        best = train.best(network, kept.parent)  # of C2AE in stage one's folder
        table = Scores(best, parts, Path(directory), rules="plain").table()
        if experiment.settings["training"]["name"] == "c2ae":
            table = table.drop(columns="own")  # its decoder knows the last epoch's features alone
        found["scores_best"] = table
    return found


class Scores:
    """What a trained network says of the test images, and the rules that read it.

    Attributes:
        network: for what needs its gradients or its parts: ODIN, a method's own score.
        still: for plain passes; the same network, or one that says the same in less time.
        selection: AUROC of each setting of the rules whose settings are chosen, or none.
    """

    def __init__(
        self,
        network: nn.Module,
        parts: Parts,
        directory: Path,
        rules: str | None = None,
        still: nn.Module | None = None,
    ):
        self.network, self.parts, self.directory = network, parts, directory
        self.still = network if still is None else still
        self.settings, self.known = parts.settings, parts.known
        self.selection: pd.DataFrame | None = None
        make = {"plain": dict, "fitted": self.fitted, "chosen": self.chosen}
        make |= {"latent": self.latent, "gaussians": self.gaussians}
        name = rules or self.settings["rules"]["name"]
        self.rules: Mapping[str, Rule] = self.own(name) if ":" in name else make[name]()

    @cached_property
    def sets(self) -> list[tuple]:
        """Source, groups, batches and outputs of every test set."""
        return [(*each, self.says(each[-1])) for each in self.parts.tests]

    def says(self, batches: Batches) -> Outputs:
        """What the networks of the run together say of an unshuffled pass.

        Monte Carlo dropout and ensembles answer with a mean, all others with their own output.
        """
        answer = self.settings["answer"]
        if answer["name"] == "mcdropout":
            drawn = {"samples": answer["samples"], "seed": self.settings["seed"]}
            return train.dropout(self.still, batches, **drawn)
        look = train.mirrored if answer["name"] == "mirrored" else train.predict
        outs = [look(each, batches) for each in members(self.still)]
        return outs[0] if len(outs) == 1 else scores.ensemble(outs, mean=answer["mean"])

    def tables(self) -> dict[str, pd.DataFrame]:
        """`scores`; `selection` where settings are chosen; `mean_softmax` where it is asked for."""
        found = {"scores": self.table()}
        if self.selection is not None:
            found["selection"] = self.selection
        if self.settings["means"]:
            found["mean_softmax"] = self.means()
        return found

    def table(self) -> pd.DataFrame:
        """One row per test image: who it is, and every rule's score."""
        return pd.concat([self.rows(*each) for each in self.sets], ignore_index=True)

    def rows(
        self, source: str, group: pd.Series | str, batches: Batches, out: Outputs
    ) -> pd.DataFrame:
        """Part of the table: images of one source, in batches of which the network says `out`."""
        rows, known = batches.rows, self.known
        columns = scores.columns(out, rows["label"].to_numpy(), known=known)
        for name, rule in scores.POST_HOC.items():
            if name != "feature_norm" or self.settings["answer"]["name"] == "one":
                columns[name] = rule(out, known=known)
        columns |= {name: rule(batches, out) for name, rule in self.rules.items()}
        if (method := self.settings["training"]["name"]) in methods.OWN:
            own = {"model": self.network, "batches": batches, "directory": self.directory}
            columns["own"] = methods.OWN.bind(method, known=known, **own)(out)
        table = rows.rename(columns={"wnid": "class"}).assign(source=source, group=group, **columns)
        return table[[*tables.COLUMNS, *(name for name in columns if name != "pred")]]

    def means(self) -> pd.DataFrame:
        """Mean softmax of each class's images over the known classes, one row per class."""
        found = []
        for source, _, batches, out in self.sets:
            softmax = pd.DataFrame(scores.softmax(out, known=self.known))
            mean = softmax.groupby(batches.rows["wnid"].to_numpy()).mean()
            found.append(mean.rename_axis("class").reset_index().round(5).assign(source=source))
        return pd.concat(found, ignore_index=True)

    def own(self, name: str) -> dict[str, Rule]:
        """A score of one's own, from module:name; its column has the name of the function."""
        _, how = layers.named(self.settings["rules"])
        return {name.partition(":")[2]: self._of(partial(scores.POST_HOC[name], **how))}

    def fitted(self) -> dict[str, Rule]:
        """OpenMax and Mahalanobis distance, fitted on training images, and ODIN."""
        how = self.settings["rules"]
        out, target = self._seen()
        return {
            "openmax": self._openmax(out, target, how["tail"], how["alpha"]),
            "mahalanobis": self._of(scores.mahalanobis(out, target, known=self.known)),
            "odin": self._stepped(how["temperature"], how["epsilon"]),
        }

    def latent(self) -> dict[str, Rule]:
        """OpenMax whose distances are between features, which CROSR fits on training images."""
        how = self.settings["rules"]
        return {"openmax": self._openmax(*self._seen(), how["tail"], how["alpha"], "features")}

    def gaussians(self) -> dict[str, Rule]:
        """CGDL's own score, fitted on training images."""
        return {"own": self._of(scores.class_gaussians(*self._seen(), known=self.known))}

    def chosen(self) -> dict[str, Rule]:
        """The same three, with settings by the AUROC of held-out known against external images.

        No test image is looked at. The AUROC of every setting goes into `selection`.
        """
        how = {k: v.split() for k, v in self.settings["rules"].items()}
        out, target = self._seen()
        tops = [int(alpha) for alpha in how["alphas"] if int(alpha) <= self.known]
        tails = [int(tail) for tail in how["tails"]]
        if not tops:
            came = self.settings["rules"]["alphas"]
            raise ValueError(f"alphas: need one of at most K = {self.known} classes; got {came}")
        self._openmax(out, target, max(tails), tops[0])  # refuses classes that lack right images
        pair = self.parts.held_out, self.parts.batches(self.parts.of("val", "negative"))
        heats, steps = (list(map(float, how[name])) for name in ("temperatures", "epsilons"))
        settings = product(tails, tops)
        fits = {setting: self._openmax(out, target, *setting) for setting in settings}
        says = [train.predict(self.still, batches) for batches in pair]
        compared = {setting: [rule(None, out) for out in says] for setting, rule in fits.items()}
        stepped = {}
        for heat in heats:
            sides = [self._odin(heat, steps, batches) for batches in pair]
            stepped |= {(heat, step): both for step, *both in zip(steps, *sides, strict=True)}
        found = {"odin": _ranked(stepped), "openmax": _ranked(compared)}
        self.selection = pd.concat(found, names=["rule"]).reset_index("rule")
        heat, step, tail, top = (x for each in found.values() for x in each.iloc[0, :2])
        best = {"odin": self._stepped(heat, step), "openmax": fits[int(tail), int(top)]}
        nearest = self._of(scores.mahalanobis(out, target, known=self.known))
        return best | {"mahalanobis": nearest}

    def _seen(self) -> tuple[Outputs, np.ndarray]:
        """What the network says of the training images, unshuffled, and their labels.

        Made images that a network has learnt as one more class are among them: G-OpenMax.
        """
        rows = self.parts.taught
        out, labels = train.predict(self.still, self.parts.batches(rows)), rows["label"].to_numpy()
        if self.settings["training"]["name"] != "osrci":
            return out, labels
        made = train.predict(self.still, methods.made(self.directory))
        both = Outputs(*map(np.concatenate, zip(out[:2], made[:2], strict=True)))
        return both, np.append(labels, [NEGATIVE] * len(made.logits))

    def _openmax(
        self, out: Outputs, target: np.ndarray, tail: int, alpha: int, of: str = "logits"
    ) -> Rule:
        """Log-odds of not being unknown."""
        how = self.settings["rules"]
        how = {"distance": how["distance"], "weights": how["recalibrated"], "of": of}
        how |= {"tail": tail, "alpha": alpha, "score": "log_odds"}
        return self._of(scores.openmax(out, target, known=self.known, **how))

    def _of(self, rule: Callable[..., np.ndarray]) -> Rule:
        """A rule that reads outputs alone."""
        return lambda _, said: np.asarray(rule(said, known=self.known), np.float64)

    def _odin(self, heat: float, steps: Sequence[float], batches: Batches) -> list[np.ndarray]:
        """Log-odds of the largest softmax after each of some steps, at a temperature."""
        outs = train.odin_steps(self.network, batches, temperature=heat, epsilons=steps)
        return [scores.max_softmax_log_odds(out, known=self.known) for out in outs]

    def _stepped(self, heat: float, step: float) -> Rule:
        return lambda batches, _: self._odin(heat, [step], batches)[0]


def _ranked(compared: Mapping[tuple, Sequence[np.ndarray]]) -> pd.DataFrame:
    """AUROC of held-out known against external images for every setting, the best one first."""
    rows = [(*setting, metrics.auroc(*sides)) for setting, sides in compared.items()]
    table = pd.DataFrame(rows, columns=["first", "second", "auroc"])
    return table.sort_values("auroc", ascending=False, kind="stable", ignore_index=True)
