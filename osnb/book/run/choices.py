"""What data a run needs, and whether they are there; no room is imported."""

from osnb.base import workbook
from osnb.book import runs

# what a reader of osnb.datasets needs in its folder, any of: patterns, as far as a name tells
NEEDS = {
    "aircraft": ("images_variant_train.txt",),
    "caltech256": ("256_ObjectCategories", "*.*"),
    "cars": ("cars_annos.mat",),
    "cifar10": ("cifar-10-batches-py",),
    "cifar10_parquet": ("cifar10_jpeg.parquet",),
    "cifar100": ("cifar-100-python",),
    "cub": ("images.txt",),
    "fashion_mnist": ("FashionMNIST",),
    "folder": ("n*",),
    "food101": ("food-101/images", "images"),
    "ilsvrc": ("train", "ILSVRC/Data/CLS-LOC/train"),
    "imagenet21k": ("imagenet21k_val", "val", "n*"),
    "isun": ("iSUN",),
    "lsun_crop": ("LSUN",),
    "lsun_fix": ("*",),
    "lsun_resize": ("LSUN_resize",),
    "mnist": ("MNIST",),
    "places365": ("places365_standard/val", "val"),
    "places365_large": ("places365_standard/val", "val"),
    "svhn": ("train_32x32.mat",),
    "textures": ("dtd/images", "images"),
    "tinyimagenet": ("train",),
    "tinyimagenet_fix": ("train",),
    "tinyimagenet_parquet": ("tinyimagenet32_jpeg.parquet",),
}


def lacking(plan) -> str:
    """A sentence on the data that a run's readers would not find; empty if nothing is missing."""
    if "data" not in plan.parameters:
        return ""
    settings = runs.settled(plan.parameters)[0] or plan.parameters
    reader = settings.get("reader", {"name": ""})["name"]
    folder = workbook.data(plan.parameters["data"])
    texts = f"{reader} {settings.get('also', '')} {plan.parameters.get('dataset', '')}"
    for name in sorted({*texts.split()} & NEEDS.keys()):
        if not any(any(folder.glob(pattern)) for pattern in NEEDS[name]):
            places = " or ".join(NEEDS[name])
            return f"the reader {name} needs {places} in {folder} (data, else $OSNB_DATA)"
    return ""
