"""Methods whose step is that of `train.fit` with one more term, each a kind of `Run`.

- `Ranked`: CRL, confidence in the order of how often samples were right.
- `Exposed`: OE, images from outside, on which no class is likelier than another.
- `Mixed`: AugMix, three views of an image, about which the network says the same.
- `Placeholders`: PROSER, spare outputs that are best on mixtures of classes.
- `Virtual`: VOS, virtual outliers among the features, and a detector that tells them from images.
- `Conditional`: CGDL, for `models.ladder`, which has a place for each class.

`margin` and `density` are the own scores of PROSER and of OpenHybrid, which trains by plain steps.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.hooks import RemovableHandle

from osnb.base.outputs import Outputs
from osnb.datasets import augment
from osnb.train import checkpoint
from osnb.train.forward import device, first_look, forward
from osnb.train.loop import Run
from osnb.train.methods.arpl_cs import beside
from osnb.train.methods.osrci import endless

CORRECTNESS = "correctness"  # the name of the record of CRL in the checkpoint
DETECTOR = "detector"  # and that of the detector of VOS


@dataclass(kw_only=True)
class Ranked(Run):
    """Correctness ranking (CRL), Moon et al. 2020, as Kim et al. 2021 run it.

    Of two samples, the one that has been right more often shall be the more confident one: the
    model trains on `loss` and `crl` times `ranking`. A sample's partner is the next one of its
    batch; the last one's is the first. How often a sample has been right is counted from what the
    network said in training, after each step.

    Attributes:
        loss: such as `losses.softmax`.
        batches: as `datasets.batches` gives them: its `labels` are those of all N samples, and a
            copy with other `labels` gives the same images; here these are the samples' numbers.
        crl: price of the ranking; theirs is 1.

    Raises:
        ValueError: batches without `labels`, or a negative's among them.
    """

    crl: float = 1.0

    def __post_init__(self):
        labels = getattr(self.batches, "labels", None)
        if labels is None or labels.min() < 0:  # there is no class to be right about
            came = "none" if labels is None else labels.min().item()
            raise ValueError(f"need batches with `labels` >= 0, one per sample; got {came}")
        super().__post_init__()
        self.true = labels.to(self.where)
        record = nn.Module()  # how often each of N training samples has been right, (N,) int64
        record.register_buffer("right", torch.zeros_like(self.true))
        self.companions[CORRECTNESS] = record
        self.batches = copy.copy(self.batches)
        self.batches.labels = torch.arange(len(labels))

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(n,) whose mean the model minimises; then the record hears who was right."""
        true, right = self.true[labels], self.companions[CORRECTNESS].right
        out = forward(self.called, images, self.where, self.precision)
        confidence = out.logits.softmax(dim=1).max(dim=1).values
        price = ranking(confidence, right[labels], epochs=self.epochs)
        right.index_add_(0, labels, (out.logits.argmax(dim=1) == true).long())
        return self.loss(out, true) + self.crl * price


def ranking(confidence: Tensor, right: Tensor, *, epochs: int) -> Tensor:
    """Correctness ranking loss of each sample i and its partner j = i + 1, as released.

        R_i = max(0, -t (k_i - k_j) + |c_i - c_j|),   c = right / epochs
        t = -1 if c_i < c_j and k_i != k_j, or c_i = c_j and k_i > k_j;   else 1

    So of two samples that were right equally often, the difference of confidence is the price;
    Moon et al. 2020 ask nothing of such a pair.

    Args:
        confidence: (n,) k, in [0, 1]; theirs is the maximum of the softmax.
        right: (n,) int64, how often each has been right before.
        epochs: of the whole run, so that c is in [0, 1).

    Returns:
        (n,) in units of confidence, >= 0.
    """
    gap, lead = confidence - confidence.roll(-1), right - right.roll(-1)
    turned = ((lead < 0) & (gap != 0)) | ((lead == 0) & (gap > 0))
    return (torch.where(turned, gap, -gap) + lead.abs() / epochs).clamp(min=0)


@dataclass
class Beside:
    """Batches whose images are followed by those of a batch from outside; labels as they were."""

    batches: Callable
    outside: Callable

    def __len__(self) -> int:
        return len(self.batches)

    def __call__(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Images (n + m, ...) and labels (n,); which m follows from epoch and step."""
        others = endless(self.outside, (epoch - 1) * len(self) + start)
        for images, labels in self.batches(epoch, start):
            yield torch.cat([images, next(others).to(images.device)]), labels


@dataclass(kw_only=True)
class Exposed(Run):
    """Outlier exposure (OE), Hendrycks et al. 2019, as Kim et al. 2021 run it from scratch.

    Beside every batch goes one of images from outside, of which no class shall be the likeliest:
    the model trains on `loss` and `outside_weight` times the mean of `unevenness`. Both kinds go
    through the network in one pass, and share its batch norms, as released. Each epoch goes on
    with the images from outside where the epoch before it ended, and begins them anew, in another
    order, when all are used; as released it begins anew every epoch, and ends when either kind
    does.

    Attributes:
        loss: such as `losses.softmax`, of the given batches alone.
        outside: batches of external images, made as `batches` are; labels are not read. Theirs
            are twice as large as those of `batches`.
        outside_weight: price of the second term; theirs is 0.5.

    Raises:
        ValueError: images from outside of another shape.
    """

    outside: Callable
    outside_weight: float = 0.5

    def __post_init__(self):
        first = (next(iter(batches(1, 0)))[0] for batches in (self.batches, self.outside))
        shape, came = (tuple(images.shape[1:]) for images in first)
        if shape != came:
            raise ValueError(f"need outside images (channels, height, width) {shape}; got {came}")
        super().__post_init__()
        self.batches = Beside(self.batches, self.outside)

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(n,) whose mean the model minimises."""
        out, known = forward(self.called, images, self.where, self.precision), len(labels)
        price = self.outside_weight * unevenness(out.logits[known:]).mean()
        return self.loss(Outputs(*(part[:known] for part in out)), labels) + price


def unevenness(logits: Tensor) -> Tensor:
    """Cross-entropy against the uniform distribution, ln sum_c e^z_c - mean_c z_c.

    Args:
        logits: (N, K).

    Returns:
        (N,) in nats, >= ln K, which it is where all logits are equal.
    """
    return logits.logsumexp(dim=1) - logits.mean(dim=1)


@dataclass(kw_only=True)
class Mixed(Run):
    """AugMix with its Jensen-Shannon term, Hendrycks et al. 2020, as Kim et al. 2021 run it.

    The model trains on `loss` and `jsd_weight` times `divergence` of three views. The views of an
    image are itself, as the batch has it after crop and flip, and two draws of `augment.augmix`
    of it. They go through the network in one pass, and share its batch norms; `loss` is of the
    first view alone.

    Attributes:
        loss: such as `losses.softmax`.
        batches: of images in [0, 1], 1 or 3 channels; the views are made of their 256 levels.
        severity: of `augment.augmix`; theirs is 3 at 32 px, 1 for photographs.
        jsd_weight: price of the second term; theirs is 12.

    Raises:
        ValueError: images outside of [0, 1] in the first batch, such as normalised ones; a step
            raises what `augment.augmix` does.
    """

    severity: float
    jsd_weight: float = 12.0

    def __post_init__(self):
        images, _ = next(iter(self.batches(1, 0)))
        low, high = images.min().item(), images.max().item()
        if low < 0 or high > 1:
            raise ValueError(f"need images in [0, 1]; got {low:g} to {high:g}")
        super().__post_init__()

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(N,) whose mean the model minimises."""
        views = torch.cat([images, *(view(images, self.severity) for _ in range(2))])
        out = forward(self.called, views, self.where, self.precision)
        price = divergence(out.logits.view(3, len(labels), -1))
        clean = Outputs(*(part[: len(labels)] for part in out))
        return self.loss(clean, labels) + self.jsd_weight * price


def view(images: Tensor, severity: float) -> Tensor:
    """One draw of `augment.augmix` of each image, from torch's generator, which checkpoints hold.

    Args:
        images: (N, 1 or 3, H, W) in [0, 1].
        severity: in [0.1, 10].

    Returns:
        (N, 1 or 3, H, W) float32 in [0, 1].
    """
    levels = (images * 255).round().to(torch.uint8)
    return augment.augmix(levels, severity=severity, generator=torch.default_generator) / 255


def divergence(logits: Tensor) -> Tensor:
    """Jensen-Shannon divergence of what the network says about V views of an image.

        D(x) = (1 / V) sum_v KL(p_v || M),   M = clamp((1 / V) sum_v p_v, 1e-7, 1)

    Args:
        logits: (V, N, K).

    Returns:
        (N,) in nats, in [0, ln V] but for the clamp.
    """
    log_p = logits.log_softmax(dim=2)
    p = log_p.exp()
    mixture = p.mean(dim=0).clamp(1e-7, 1).log()
    return (p * (log_p - mixture)).sum(dim=2).mean(dim=0)


@dataclass(kw_only=True)
class Placeholders(Run):
    """Placeholders for the unknown (PROSER), Zhou et al. 2021, after `plain_epochs` of plain steps.

    Spare outputs learn to be second best on known samples, and best on mixtures of two classes.
    The model has K + P outputs. The last P are placeholders, of which the largest counts, f:

        logits(x) = (z_1, ..., z_K, f),   f = max_{c >= K} z_c

    Half of a batch pays `loss` on these K + 1 and `second` times `runner_up`. The other half is
    mixed with itself where `cut` says, each image with one of another class, and pays `mixed`
    times `loss` for class K. Scores drop the last column, as with `losses.background`: with P = 1
    exactly, with more a softmax also counts the placeholders that are not the largest. The
    released code scores max_{c < K} p_c - p_K at temperature 1024.

    As in the released code: halves of one batch, one share of the mixture for a batch, the
    default prices. Of two images of one class no mixture is made, as the paper says; the released
    code makes it. The released code begins with a trained network at a hundredth of its learning
    rate; here the rate is the schedule's.

    Attributes:
        model: with a `trunk` of layers in a row and a `head`, such as `models.conv`.
        batches: of known samples only.
        loss: for K + 1 logits and labels up to K, such as `losses.softmax`.
        epochs: in all.
        plain_epochs: epochs with `loss` on the first K logits alone.
        cut: layers of the trunk before the features are mixed.
        placeholders: P.
        second: price of the placeholder's being second best.
        mixed: price of the mixtures.
        alpha: shares of a mixture are drawn from Beta(alpha, alpha).

    Raises:
        ValueError: a cut that is not inside the trunk.
    """

    plain_epochs: int
    cut: int
    placeholders: int = 1
    second: float = 1.0
    mixed: float = 0.01
    alpha: float = 1.0

    def __post_init__(self):
        if not 0 < self.cut < len(self.model.trunk):
            raise ValueError(f"need a cut in [1, {len(self.model.trunk) - 1}]; got {self.cut}")
        super().__post_init__()

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(N,) whose mean the model minimises: in later epochs, the sum of both halves' means."""
        if len(self.history) < self.plain_epochs:
            out = forward(self.called, images, self.where, self.precision)
            return self.loss(out._replace(logits=out.logits[:, : -self.placeholders]), labels)
        half, whole = len(labels) // 2, len(labels)
        mixtures = self.mixtures(images[:half], labels[:half]) * (whole / max(half, 1))
        out = self.placed(images[half:])
        known = self.loss(out, labels[half:])
        known = known + self.second * self.loss(*runner_up(out, labels[half:]))
        return torch.cat([self.mixed * mixtures, known * (whole / (whole - half))])

    def placed(self, images: Tensor) -> Outputs:
        """Outputs with K + 1 logits, the last one the largest placeholder's."""
        out = forward(self.called, images, self.where, self.precision)
        return out._replace(logits=largest_spare(out.logits, -self.placeholders))

    def mixtures(self, images: Tensor, labels: Tensor) -> Tensor:
        """(N,) price of each image's mixture as class K, 0 where both are of one class."""
        partner = torch.randperm(len(labels))
        share = torch.distributions.Beta(self.alpha, self.alpha).sample().item()
        with mixing(self.model.trunk[self.cut - 1], partner, share):
            out = self.placed(images)
        price = self.loss(out, torch.full_like(labels, out.logits.shape[1] - 1))
        return torch.where(labels == labels[partner.to(labels.device)], 0.0, price)


def largest_spare(logits: Tensor, known: int) -> Tensor:
    """(N, K + 1) logits of (N, K + P): the first `known`, or all but so many, and a maximum."""
    first, spare = logits.tensor_split([known], dim=1)
    return torch.cat([first, spare.amax(dim=1, keepdim=True)], dim=1)


def mixing(layer: nn.Module, partner: Tensor, share: float) -> RemovableHandle:
    """Let a layer give share x + (1 - share) x[partner] of what it gives, x, in a with block."""
    return layer.register_forward_hook(
        lambda _layer, _given, x: share * x + (1 - share) * x[partner.to(x.device)]
    )


def runner_up(out: Outputs, labels: Tensor) -> tuple[Outputs, Tensor]:
    """What is left without the true class, of which the placeholder shall be best.

    Args:
        out: logits (N, K + 1), the placeholder's last.
        labels: (N,) int64 in [0, K).

    Returns:
        Outputs with logits (N, K), and labels (N,) that name the last of them.
    """
    count, columns = out.logits.shape
    others = torch.arange(columns, device=labels.device) != labels[:, None]
    rest = out.logits[others].view(count, columns - 1)
    return out._replace(logits=rest), torch.full_like(labels, columns - 2)


def margin(out: Outputs, *, known: int, temperature: float) -> np.ndarray:
    """A method's own score, max_{c < K} p_c - p_K, p the softmax of K + 1 logits over T.

    Args:
        out: logits (N, K + P), as `train.predict` gives them; the largest spare one counts.
        known: K.
        temperature: T. OSRCI takes 1; PROSER, as released, 1024, at which p is nearly linear in
            the logits.

    Returns:
        (N,) float64 in [-1, 1], higher for known samples.
    """
    logits = largest_spare(torch.from_numpy(out.logits).double(), known)
    share = (logits / temperature).softmax(dim=1)
    return (share[:, :known].amax(dim=1) - share[:, known]).numpy()


class Detector(nn.Module):
    """Which of two an image's logits z come from: an image, or a virtual outlier.

        E(z) = log sum_c max(w_c, 0) e^z_c,   (outlier, image) = softmax(a E + b)

    Attributes:
        weight: w (K,), drawn from U(0, 1).
        line: a and b, two each.
        queue: (K, Q, D), the newest features of each class.
        count: (K,) int64, how many of each class have been seen.
    """

    queue: Tensor
    count: Tensor

    def __init__(self, classes: int, length: int, features: int):
        super().__init__()
        self.weight, self.line = nn.Parameter(torch.rand(classes)), nn.Linear(1, 2)
        self.register_buffer("queue", torch.zeros(classes, length, features))
        self.register_buffer("count", torch.zeros(classes, dtype=torch.int64))

    def forward(self, logits: Tensor) -> Tensor:
        """(N, 2) logits of outlier and image, of logits (N, K)."""
        top = logits.amax(dim=1, keepdim=True)
        energy = (self.weight.relu() * (logits - top).exp()).sum(dim=1, keepdim=True).log() + top
        return self.line(energy)

    def remember(self, features: Tensor, labels: Tensor) -> None:
        """Put a batch's features (N, D) in the queues, each in the place of its class's oldest."""
        same, length = labels[:, None] == labels, self.queue.shape[1]
        place = (self.count[labels] + same.tril(-1).sum(dim=1)) % length
        kept = same.triu(1).sum(dim=1) < length  # no two of a batch fall on one place
        self.queue[labels[kept], place[kept]] = features[kept]
        self.count += torch.bincount(labels, minlength=len(self.count))

    def outliers(self, drawn: int, chosen: int) -> Tensor:
        """(K chosen, D): of `drawn` features of each class, those where the density is least.

        Of class c they are mu_c + L e, with e ~ N(0, I), mu_c the mean of its queue, and L L' the
        covariance about these means of all queues, plus 0.0001 I. Their density falls with |e|.
        """
        mean, width = self.queue.mean(dim=1), self.queue.shape[2]
        rest = (self.queue - mean[:, None]).flatten(0, 1)
        covariance = rest.T @ rest / len(rest) + 1e-4 * torch.eye(width, device=rest.device)
        e = torch.randn(len(mean), drawn, width, device=rest.device)
        far = e.square().sum(dim=2).topk(chosen, dim=1).indices
        e = e.gather(1, far[:, :, None].expand(-1, -1, width))
        return (mean[:, None] + e @ torch.linalg.cholesky(covariance).T).flatten(0, 1)


@dataclass(kw_only=True)
class Virtual(Run):
    """Virtual outlier synthesis (VOS), Du et al. 2022, as released for classification.

    The classifier trains beside a detector that tells images from virtual outliers: features drawn
    from a Gaussian about each class's mean, where that Gaussian is thinnest. It trains on `loss`,
    and after `plain_epochs`, once all queues are full, on its sum with

        vos_weight mean_{x, v} (-log p(image | x), -log p(outlier | v))

    where x is an image of the batch, v an outlier, which goes through the head alone, and p the
    detector's softmax. The score of Du et al. is the energy, without the detector's weights.

    Attributes:
        model: with a `head` of features, such as `models.conv`.
        batches: of known samples only.
        plain_epochs: theirs are 40 of 100.
        vos_weight: price of the detector's cross-entropy; theirs is 0.1.
        queue: features kept of each class; theirs are 1,000.
        drawn: features drawn of each class in a step; theirs are 10,000.
        outliers: of these, how many become outliers; theirs is 1.

    Raises:
        ValueError: a queue holds nothing, or more outliers are wanted than are drawn.
    """

    plain_epochs: int
    vos_weight: float = 0.1
    queue: int = 1000
    drawn: int = 10_000
    outliers: int = 1

    def __post_init__(self):
        if self.queue < 1 or not 0 < self.outliers <= self.drawn:
            raise ValueError(
                f"need queue > 0 and 0 < outliers <= drawn; got queue={self.queue}, "
                f"outliers={self.outliers}, drawn={self.drawn}"
            )
        out, _ = first_look(self.model, self.batches)
        super().__post_init__()
        with checkpoint.seeded(self.seed, DETECTOR):
            sizes = (out.logits.shape[1], self.queue, out.features.shape[1])
            self.companions[DETECTOR] = Detector(*sizes).to(self.where)

    def train(self):
        """The history, as of any run; the detector's weights train with the model's."""
        with beside(self.optimizer, self.companions[DETECTOR].parameters()):
            self.rates = checkpoint.rates(self.optimizer)
            return super().train()

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(N,) whose mean the model and the detector minimise."""
        detector = self.companions[DETECTOR]
        out = forward(self.called, images, self.where, self.precision)
        detector.remember(out.features.detach(), labels)
        known = self.loss(out, labels)
        if len(self.history) < self.plain_epochs or detector.count.min() < self.queue:
            return known
        virtual = self.headed(detector.outliers(self.drawn, self.outliers))
        said = detector(torch.cat([out.logits, virtual]))
        real = torch.arange(len(said), device=self.where) < len(labels)
        return known + self.vos_weight * cross_entropy(said, real.long())

    def headed(self, features: Tensor) -> Tensor:
        """Logits of features; a head that measures more gives a pair."""
        answer = self.model.head(features)
        return answer[0] if isinstance(answer, tuple) else answer


@dataclass(kw_only=True)
class Conditional(Run):
    """Conditional Gaussian distribution learning (CGDL), Sun et al. 2020, for `models.ladder`.

    Each class's images shall lie about a place of their own among the latent numbers, and be
    rebuilt from there. The score is the density of the likeliest class's Gaussian,
    `scores.class_gaussians`. It trains on `loss` and the price of rebuilding:

        J(x) = loss(x) + elbo_weight (|x - r(x)|^2 + beta KL_y(x))

    with beta going from 0 to 1 in a straight line over `warm_up` epochs. Sun et al. multiply `loss`
    by lambda = 100, which is the same but for the scale; their code counts the warm-up in steps.
    The second threshold of theirs, on |x - r(x)|^2, is not part of the score.

    Attributes:
        model: gives slack (N, 1 + K), the squared error and KL_k for each class k.
        elbo_weight: 1 / lambda.
        warm_up: epochs, theirs 50.
    """

    elbo_weight: float = 0.01
    warm_up: int = 50

    def values(self, images: Tensor, labels: Tensor) -> Tensor:
        """(N,) whose mean the model minimises."""
        out = forward(self.called, images, self.where, self.precision)
        epochs = len(self.history) + (self.step + 1) / len(self.batches)
        nearness = out.slack.gather(1, labels[:, None] + 1)[:, 0]
        elbo = out.slack[:, 0] + min(1.0, epochs / self.warm_up) * nearness
        return self.loss(out, labels) + self.elbo_weight * elbo


@torch.no_grad()
def density(out: Outputs, *, model: nn.Module) -> np.ndarray:
    """log p of the features by number of a feature, (N,) float64 in nats, higher for known samples.

    The own score of OpenHybrid (Zhang et al. 2020), whose classifier and flow train together on
    `losses.joint`, by plain steps, through the same features: the head `models.HEADS["flow"]` gives
    the logits and -log p of the features, by number of a feature. An image is unknown where p is
    small. No code was released; the encoders are those of `models`.

    Args:
        out: features (N, D), as `train.predict` gives them.
        model: with the head "flow"; is put in evaluation mode.
    """
    where = device(model)
    parts = torch.from_numpy(out.features).split(1024)
    slack = [model.eval().head(part.to(where))[1][:, 0].cpu() for part in parts]
    return -torch.cat(slack).double().numpy()
