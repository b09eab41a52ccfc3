"""Networks between images and numbers at 4 x 4 places, and a discriminator with its penalty.

Own and smaller than those of Neal et al. 2018, whose layers follow 32 px.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from osnb.methods.common import seeded


def generator(channels: int, size: int, *, width: int, latent: int) -> nn.Sequential:
    """From (N, latent, 4, 4) to images in [0, 1], a layer for every doubling of the edge.

    Arguments and errors are those of `encoder`.
    """
    wide = [latent, *_widths(size, width)[::-1]]
    layers: list[nn.Module] = []
    for ends in pairwise(wide):
        layers += [nn.ConvTranspose2d(*ends, 4, stride=2, padding=1, bias=False)]
        layers += [nn.BatchNorm2d(ends[1]), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Conv2d(wide[-1], channels, 3, padding=1), nn.Sigmoid())


def encoder(channels: int, size: int, *, width: int, latent: int) -> nn.Sequential:
    """From images to (N, latent, 4, 4), a layer for every halving of the edge.

    Args:
        channels: of an image.
        size: edge of an image, 8, 16, 32, ... px.
        width: channels of the layer nearest to the image; they double to 4 times that at most.
        latent: channels of the latent numbers.

    Raises:
        ValueError: another edge.
    """
    return nn.Sequential(
        *_shrinking(channels, size, width, nn.BatchNorm2d),
        nn.Conv2d(_widths(size, width)[-1], latent, 3, padding=1),
    )


def discriminator(channels: int, size: int, *, width: int) -> nn.Sequential:
    """From images to (N, 1), log odds of being real; without norms, for a penalty by image."""
    last = nn.Linear(16 * _widths(size, width)[-1], 1)
    return nn.Sequential(*_shrinking(channels, size, width, None), nn.Flatten(), last)


def _shrinking(
    channels: int, size: int, width: int, norm: Callable[[int], nn.Module] | None
) -> Iterator[nn.Module]:
    for ends in pairwise([channels, *_widths(size, width)]):
        yield nn.Conv2d(*ends, 4, stride=2, padding=1)
        if norm:
            yield norm(ends[1])
        yield nn.LeakyReLU(0.2)


def _widths(size: int, width: int) -> list[int]:
    """Channels after each halving of the edge, down to 4 places."""
    halvings = size.bit_length() - 3
    if halvings < 1 or size != 4 << halvings:
        raise ValueError(f"need images of 8, 16, 32, 64, ... px; got {size}")
    return [width * min(2**i, 4) for i in range(halvings)]


def steepness(judge: nn.Module, real: Tensor, made: Tensor) -> Tensor:
    """Gradient penalty of Gulrajani et al. 2017: E (|grad D(x)| - 1)^2 between real and made."""
    share = torch.rand(len(real), 1, 1, 1, device=real.device)
    between = (share * real + (1 - share) * made).requires_grad_()
    (slope,) = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
    return (slope.flatten(1).norm(dim=1) - 1).square().mean()


def companions(
    model: nn.Module, channels: int, size: int, *, seed: int, rate: float, width: int, latent: int
) -> dict[str, nn.Module | Optimizer]:
    """The three networks and their optimizers by name, where the model is."""
    where = next(model.parameters()).device
    with seeded(seed, "osrci"):
        parts = {
            "encoder": encoder(channels, size, width=width, latent=latent).to(where),
            "generator": generator(channels, size, width=width, latent=latent).to(where),
            "discriminator": discriminator(channels, size, width=width).to(where),
        }
    return parts | {f"{name}_optimizer": adam(part, rate=rate) for name, part in parts.items()}


def adam(part: nn.Module, *, rate: float) -> Adam:
    return Adam(part.parameters(), lr=rate, betas=(0.5, 0.999))
