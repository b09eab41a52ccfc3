"""Rows to batches: readers of data on disk, sets that ship with the package, and `batches`."""

from functools import partial

from osnb.base.catalogue import Catalogue
from osnb.datasets import archives, own, quickdraw, readers, small
from osnb.datasets.images import Batches, BrokenImage, Images, batches, joined, like, resident
from osnb.datasets.own import conversions, new_images, write_png
from osnb.datasets.small import counted, some
from osnb.protocols.vaze import digit_classes

READERS = Catalogue(
    aircraft=archives.aircraft,
    caltech256=archives.caltech256,
    cars=archives.cars,
    cifar10=partial(small.torchvision_set, name="CIFAR10", file="cifar10.parquet"),
    cifar10_parquet=partial(small.packed, file="cifar10_jpeg.parquet", column="name"),
    cifar100=partial(small.torchvision_set, name="CIFAR100", file="cifar100.parquet"),
    cub=archives.cub,
    digits=small.digits,
    fashion_mnist=partial(small.torchvision_set, name="FashionMNIST"),
    folder=readers.folder,
    font_digits=partial(small.glyphs, characters="0123456789", side=32),
    font_letters=partial(small.glyphs, side=32),
    food101=partial(archives.far, name="food101", resize=256, crop=224),
    gaussian_noise=partial(small.noise, name="gaussian_noise"),
    glyphs=small.glyphs,
    ilsvrc=readers.ilsvrc,
    imagenet21k=readers.imagenet21k,
    isun=partial(archives.odin_set, name="isun"),
    lsun_crop=partial(archives.odin_set, name="lsun_crop"),
    lsun_fix=archives.lsun_fix,
    lsun_resize=partial(archives.odin_set, name="lsun_resize"),
    mnist=partial(small.torchvision_set, name="MNIST", file=small.MNIST),
    mnist_rgb=small.mnist_rgb,
    omniglot_few=quickdraw.omniglot_few,
    own_images=own.own_images,
    patterns=small.patterns,
    places365=partial(archives.far, name="places365"),
    places365_large=partial(archives.far, name="places365", resize=256, crop=224),
    quickdraw=quickdraw.quickdraw,
    rademacher_noise=partial(small.noise, name="rademacher_noise"),
    scenes=archives.scenes,
    svhn=partial(small.torchvision_set, name="SVHN"),
    textures=archives.textures,
    tinyimagenet=readers.tinyimagenet,
    tinyimagenet_fix=readers.tinyimagenet_fix,
    tinyimagenet_parquet=partial(small.packed, file="tinyimagenet32_jpeg.parquet", column="wnid"),
    uniform_noise=partial(small.noise, name="uniform_noise"),
)
