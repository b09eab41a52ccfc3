"""What weights that are there already say of any test set, or of new images; nothing is trained."""

import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from torch import Tensor, nn

from osnb import datasets, models, train
from osnb.base import user, workbook
from osnb.base.outputs import Outputs
from osnb.datasets.augment import AUGMENT
from osnb.experiment import Experiment
from osnb.experiment.examined import answered, called
from osnb.experiment.parts import STILL, Parts, sized
from osnb.experiment.scored import Scores
from osnb.experiment.trained import members, normalised
from osnb.scores.own import shares
from osnb.train.forward import first_look

MOVED = 4e-6  # of logits and features, in units of the largest one where that is above 1


def predicted(
    experiment: Experiment, parts: Parts, files: Sequence[Path], *, model: str = ""
) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """The tables of an experiment with weights from files, and digests of what they rest on.

    Args:
        experiment, parts, files, model: as for `loaded`.

    Returns:
        Tables by name, as of `Scores.tables`; by name, sha256 of each file, digests of the rows and
        pixels read, and how many batch norms were folded.
    """
    made = loaded(experiment, parts, files, model=model)
    sums = digests(files, model)
    for i, pair in enumerate(zip(members(made.network), members(made.still), strict=True)):
        before, left = map(models.outside.norms, pair)
        sums[f"norms/{i}"] = f"{before - left} of {before} folded into convolutions"
    return made.tables(), parts.inputs | sums


def digests(files: Sequence[Path], model: str) -> dict[str, str]:
    """Digests of files of weights, and of somebody's own network if there is one, by name."""
    sums = {f"weights/{i}": workbook.file_hash(file) for i, file in enumerate(files)}
    return sums | ({f"model/{model}": workbook.file_hash(user.file(model))} if model else {})


def loaded(
    experiment: Experiment, parts: Parts, files: Sequence[Path], *, model: str = ""
) -> Scores:
    """What a network with weights from files says, and the rules that read it.

    Batch norm is folded into the convolutions of a copy, so that scores may differ from those of
    the training's own table by `MOVED`; the copy of a network that it moves further is not used.
    ODIN, which needs gradients, and a method's own score read the network itself.

    Args:
        experiment: who is known, which rules, which network.
        parts: of the experiment.
        files: of the weights, one for each member of an ensemble; what a method has kept beside
            its network is looked for in the folder of the first.
        model: module:name of somebody's own network, called with classes=K; it gives logits
            (N, K) or `Outputs`. Else it is the experiment's.

    Raises:
        ValueError: a file has the weights of another network, there are too few or too many, or
            the own network is none for these images and classes.
    """
    if model:
        networks = [own(model, parts) for _ in parts.train]
    else:
        networks = members(experiment.network(parts))
    if len(networks) != len(files):
        raise ValueError(f"need {len(networks)} files of weights; got {len(files)}")
    for member, file in zip(networks, files, strict=True):
        models.weighted(member, Path(file)).eval()  # whatever it is asked from here on
    still = [models.folded(member) for member in networks]
    pairs = [
        [(Answering(each) if model else each).to(train.device()) for each in pair]
        for pair in zip(networks, still, strict=True)
    ]
    if model:
        answered(model, "a network, with images (N, C, S, S)", pairs[0][0], parts)
        for note in shares(first_look(pairs[0][0], parts.test)[0].logits.cpu().numpy()):
            print(f"{model}: {note}", file=sys.stderr)
    pairs = [(one, other if _alike(one, other, parts) else one) for one, other in pairs]
    whole, still = (nn.ModuleList(x) if len(x) > 1 else x[0] for x in zip(*pairs, strict=True))
    return Scores(whole, parts, Path(files[0]).parent, still=still)


def _alike(network: nn.Module, other: nn.Module, parts: Parts) -> bool:
    """Whether both say the same of the first test images, within `MOVED` of the largest number."""
    said = [first_look(each, parts.test)[0] for each in (network, other)]
    return all(
        bool((one - two).abs().max() <= MOVED * one.abs().max().clamp(min=1))
        for one, two in zip(said[0][:2], said[1][:2], strict=True)
    )


def of_new(made: Scores, place: Path) -> tuple[pd.DataFrame, datasets.Batches]:
    """Scores of images that belong to no test set, and the batches that they came in.

    Args:
        made: of a network, from `loaded`.
        place: a folder of images, a csv file that lists them, or one image. They are read as the
            benchmark's own images are: at their length and window, or else at their size whole.

    Returns:
        A scores table, all labels UNKNOWN; batches, whose `given` rows are all images and whose
        `skipped` says which do not decode.
    """
    shape, how = made.parts.images.shape, sized(made.parts.settings)
    images = datasets.new_images(place, shape=shape, resize=how.get("resize", shape[-1]))
    still = {"batch_size": STILL, "seed": 0, "shuffle": False, "transform": AUGMENT["none"]}
    batches = datasets.batches(images, images.rows, broken="skip", **still)
    with warnings.catch_warnings(action="ignore"):  # `skipped` names them
        said = made.says(batches)
    return made.rows("new", "", batches, said), batches


def own(name: str, parts: Parts) -> nn.Module:
    """Somebody's own network, from module:name; it normalises images if the settings say so.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it takes no classes=K, or what it gives is no network.
    """
    classes = parts.outputs
    if re.search(r"\b(timm|torchvision)\b", user.file(name).read_text(encoding="utf8")):
        from osnb.datasets.vision import torchvision  # noqa: F401  # behind its guard
    made = called(name, f"network(*, classes={classes})", user.load(name), classes=classes)
    if not isinstance(made, nn.Module):
        raise ValueError(f"{name} must give a torch.nn.Module; got {type(made).__name__}")
    return normalised(made, parts)


class Answering(nn.Module):
    """A network that gives logits, answering in `Outputs`; features are its last layer's input.

    That is the linear layer called last. Without one they are the logits.
    """

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network, self.features = network, Tensor()
        for layer in (part for part in network.modules() if isinstance(part, nn.Linear)):
            layer.register_forward_pre_hook(self._keep, with_kwargs=True)

    def _keep(self, _layer: nn.Module, given: tuple[Tensor, ...], named: dict[str, Tensor]) -> None:
        self.features = (*given, *named.values())[0]

    def forward(self, images: Tensor) -> Outputs:
        """Logits (N, K) of images (N, C, H, W), and the features (N, D) of the last layer."""
        self.features = Tensor()
        out = self.network(images)
        if isinstance(out, Outputs):
            return out
        if not isinstance(out, Tensor):
            raise TypeError(f"it has to give logits (N, K) alone, not a {type(out).__name__}")
        fits = self.features.ndim > 1 and len(self.features) == len(out)
        return Outputs(out.float(), self.features.flatten(1) if fits else out)
