"""pytorch-ood's detectors as rules of ours, and rules of ours as its detectors.

It is no dependency of the package: ``pip install pytorch-ood``.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from osnb.base.catalogue import Catalogue
from osnb.base.outputs import Outputs
from osnb.datasets.vision import torchvision  # noqa: F401  # pytorch-ood needs its guard
from osnb.scores import Seen

from pytorch_ood import api, detector  # isort: skip

Rule = Callable[..., np.ndarray]
KINDS = ("features", "feature_maps", "logits")  # what a detector reads: its methods' names end so


def head(seen: Seen) -> nn.Linear:
    """The last layer of the known classes, which also takes feature maps of one pixel."""
    layer = nn.Linear(seen.weight.shape[1], seen.known)
    with torch.no_grad():
        layer.weight.copy_(torch.as_tensor(seen.weight[: seen.known]))
        layer.bias.copy_(torch.as_tensor(seen.bias[: seen.known]))
    return layer


def adapted(of: api.Detector, seen: Seen) -> Rule:
    """A detector of pytorch-ood as a rule, fitted on the training samples of known classes.

    Args:
        of: one with `predict_features`, `predict_feature_maps` or `predict_logits`.
        seen: what rules are fitted on; as everywhere there, in float32.

    Raises:
        ValueError: it reads something else, such as images.
    """
    kind = next((kind for kind in KINDS if hasattr(of, f"predict_{kind}")), None)
    if kind is None:
        raise ValueError(f"need a detector that predicts {', '.join(KINDS)}; got {of}")

    def read(out: Outputs) -> Tensor:
        given = torch.as_tensor(np.float32(out.logits if kind == "logits" else out.features))
        return given[:, :, None, None] if kind == "feature_maps" else given

    known = np.asarray(seen.labels) >= 0
    if of.requires_fit:
        part = Outputs(seen.out.logits[known, : seen.known], seen.out.features[known])
        getattr(of, f"fit_{kind}")(read(part), torch.as_tensor(seen.labels[known]))

    def rule(out: Outputs, *, known: int) -> np.ndarray:
        found = getattr(of, f"predict_{kind}")(read(Outputs(out.logits[:, :known], out.features)))
        return -found.detach().double().numpy()

    return rule


class Detector(api.FeaturesDetector):
    """A rule of `scores.FITTED`, or any fit of the same form, as a detector of pytorch-ood.

    Args:
        encoder: network that gives features (N, D), or None for `predict_features` alone.
        head: last layer, from features to logits.
        fit: ``fit(seen) -> rule``.
    """

    requires_fit = True

    def __init__(self, encoder: nn.Module | None, head: nn.Linear, fit: Callable[[Seen], Rule]):
        self.encoder, self.head, self.made = encoder, head, fit

    def says(self, features: Tensor) -> Outputs:
        """Logits and features, as rules take them."""
        with torch.no_grad():
            return Outputs(self.head(features).cpu().numpy(), features.cpu().numpy())

    def fit(self, data_loader) -> "Detector":
        """Fit on what the encoder gives for batches of images and labels."""
        from pytorch_ood.utils import extract_features

        return self.fit_features(*extract_features(data_loader, self.encoder, self.device or "cpu"))

    def fit_features(self, x: Tensor, y: Tensor) -> "Detector":
        """Fit on features (N, D) and labels (N,), those below 0 left out."""
        layer = (part.detach().cpu().numpy() for part in (self.head.weight, self.head.bias))
        known, labels = self.head.out_features, np.maximum(y.cpu().numpy(), -1)
        self.rule = self.made(Seen(self.says(x), labels, known, *layer))
        return self

    def predict_features(self, x: Tensor) -> Tensor:
        """Outlier scores (N,), float64."""
        return torch.as_tensor(-self.rule(self.says(x), known=self.head.out_features))

    def predict(self, x: Tensor) -> Tensor:
        """Outlier scores (N,) of what the encoder takes."""
        return self.predict_features(self.encoder(x))


def _maps(of: Callable, **settings) -> Callable[[Seen], Rule]:
    """A detector of feature maps, which shapes those of one pixel before the last layer."""

    def fit(seen: Seen) -> Rule:
        layer = head(seen)
        return adapted(of(None, lambda maps: layer(maps.flatten(1)), **settings), seen)

    return fit


def _headed(of: Callable, **settings) -> Callable[[Seen], Rule]:
    """A detector that takes the last layer as a module."""
    return lambda seen: adapted(of(None, head(seen), **settings), seen)


def grad_norm(seen: Seen) -> Rule:
    """GradNorm, in Huang et al. 2021, of the last layer's weights, whose input the features are."""
    made = detector.GradNorm(head(seen), param_filter=lambda name: name == "weight")
    return lambda out, *, known: (  # noqa: ARG005  # all of the head's columns are known
        -made.predict(torch.as_tensor(np.float32(out.features))).detach().double().numpy()
    )


ADAPTED = Catalogue(  # with pytorch-ood's settings
    react=_maps(detector.ReAct),
    vra=_maps(detector.VRA),
    scale=_maps(detector.SCALE),
    ash_s=_maps(detector.ASH, variant="ash-s"),
    ash_p=_maps(detector.ASH, variant="ash-p"),
    ash_b=_maps(detector.ASH, variant="ash-b"),
    lts=_headed(detector.LTS),
    nnguide=_headed(detector.NNGuide),
    pnml=_headed(detector.PNML),
    dice=lambda seen: adapted(detector.DICE(None, head(seen).weight, head(seen).bias, p=0.7), seen),
    gmm=lambda seen: adapted(detector.GMM(None), seen),
    grad_norm=grad_norm,
    temperature=lambda seen: adapted(detector.TemperatureScaling(None), seen),
)
