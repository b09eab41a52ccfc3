"""RandAugment and AugMix: what is refused, and what leaves images alone."""

import pytest
import torch
from test_augment_pillow import draw

from osnb.datasets.augment import ALL, augmix, randaugment


@pytest.fixture
def images():
    return torch.randint(0, 256, (40, 3, 16, 12), generator=draw(0), dtype=torch.uint8)


@pytest.mark.parametrize("m", [-1, 31])
def test_a_magnitude_out_of_range_is_refused(m, images):
    with pytest.raises(ValueError, match=rf"need m in \[0, 30\]; got {m}"):
        randaugment(images, n=1, m=m, ops=ALL, generator=draw(0))


def test_a_severity_out_of_range_is_refused(images):
    with pytest.raises(ValueError, match=r"need severity in \[0.1, 10\]; got 11"):
        augmix(images, severity=11, generator=draw(0))


def test_an_unknown_operation_is_answered_with_the_known_ones(images):
    with pytest.raises(KeyError, match="'colour' is not one of: autocontrast, brightness"):
        randaugment(images, n=1, m=9, ops=["colour"], generator=draw(0))
