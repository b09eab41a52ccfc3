"""Who is known, negative and unknown: rows of classes. `PROTOCOLS` names them all.

`palechor` and `kim` hold rules over the hierarchy, `vaze` the published lists of Vaze et al. 2022
and small ones on data that ships with the package, `making` the ways in which such lists are made,
`roles` a csv file's.
"""

from functools import partial

from osnb.base.catalogue import Catalogue
from osnb.protocols import kim, quickdraw, vaze
from osnb.protocols.palechor import (
    P3_ROLES,
    SPLITS,
    class_counts,
    class_list,
    counts,
    describe,
    file_lists,
    ilsvrc_files,
    images,
    moved,
    p1,
    p2,
    p3,
    superclasses,
    with_negatives,
)
from osnb.protocols.roles import read_csv, roles_csv
from osnb.protocols.vaze import closed, duplicates, ssb, standard, whole

PROTOCOLS = Catalogue(
    cifar10=partial(standard, "CIFAR10"),
    cifar40=kim.cifar40,
    cifar_plus_10=partial(standard, "CIFAR+10"),
    cifar_plus_50=partial(standard, "CIFAR+50"),
    closed=closed,
    digits=vaze.digit_classes,
    imagenet200=kim.imagenet200,
    mini_digits=vaze.mini_digits,
    mnist=partial(standard, "MNIST"),
    p1=p1,
    p2=p2,
    p3=p3,
    quickdraw_closed_ten=quickdraw.closed_ten,
    roles_csv=roles_csv,
    ssb_aircraft=partial(ssb, "aircraft"),
    ssb_cars=partial(ssb, "cars"),
    ssb_cub=partial(ssb, "cub"),
    ssb_imagenet=partial(ssb, "imagenet"),
    svhn=partial(standard, "SVHN"),
    tiny_kim=kim.tiny_kim,
    tinyimagenet=partial(standard, "TinyImageNet"),
    **{name: make for name, (make, _) in quickdraw.SPLITS.items()},
)
