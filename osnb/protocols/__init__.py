"""Who is known, negative and unknown: rows of classes. `PROTOCOLS` names them all.

`palechor` and `kim` hold rules over the hierarchy, `vaze` the published lists of Vaze et al. 2022,
`making` the ways in which such lists are made, `outside` negatives for a protocol without any,
`miniature` small ones on data that ships with the package. `spelling` looks a class of another data
set up in the hierarchy.
"""

from functools import partial

from osnb.catalogue import Catalogue
from osnb.protocols.kim import cifar40, imagenet200, mini_kim, tiny_kim
from osnb.protocols.miniature import (
    mini_closed,
    mini_digits,
    mini_kim_digits,
    mini_ssb_fine,
    mini_ssb_imagenet,
    mini_tinyimagenet,
)
from osnb.protocols.moved import class_counts, moved
from osnb.protocols.outside import with_negatives
from osnb.protocols.palechor import (
    P1_KNOWN,
    P1_NEGATIVE,
    P1_UNKNOWN,
    P2_SHARED,
    P2_UNKNOWN,
    P3_ROLES,
    P3_SHARED,
    P3_UNKNOWN,
    Member,
    ilsvrc_files,
    p1,
    p2,
    p3,
)
from osnb.protocols.shared import (
    CLASS_LIST,
    LEAST,
    SPLITS,
    class_list,
    counts,
    describe,
    file_lists,
    images,
    superclasses,
)
from osnb.protocols.vaze import closed, duplicates, ssb, standard, whole

__all__ = [
    "CLASS_LIST",
    "LEAST",
    "P1_KNOWN",
    "P1_NEGATIVE",
    "P1_UNKNOWN",
    "P2_SHARED",
    "P2_UNKNOWN",
    "P3_ROLES",
    "P3_SHARED",
    "P3_UNKNOWN",
    "PROTOCOLS",
    "SPLITS",
    "Member",
    "class_counts",
    "class_list",
    "closed",
    "counts",
    "describe",
    "duplicates",
    "file_lists",
    "ilsvrc_files",
    "images",
    "moved",
    "p1",
    "p2",
    "p3",
    "ssb",
    "standard",
    "superclasses",
    "whole",
    "with_negatives",
]

PROTOCOLS = Catalogue(
    cifar10=partial(standard, "CIFAR10"),
    cifar40=cifar40,
    cifar_plus_10=partial(standard, "CIFAR+10"),
    cifar_plus_50=partial(standard, "CIFAR+50"),
    closed=closed,
    imagenet200=imagenet200,
    mini_closed=mini_closed,
    mini_digits=mini_digits,
    mini_kim=mini_kim,
    mini_kim_digits=mini_kim_digits,
    mini_ssb_fine=mini_ssb_fine,
    mini_ssb_imagenet=mini_ssb_imagenet,
    mini_tinyimagenet=mini_tinyimagenet,
    mnist=partial(standard, "MNIST"),
    p1=p1,
    p2=p2,
    p3=p3,
    ssb_aircraft=partial(ssb, "aircraft"),
    ssb_cars=partial(ssb, "cars"),
    ssb_cub=partial(ssb, "cub"),
    ssb_imagenet=partial(ssb, "imagenet"),
    svhn=partial(standard, "SVHN"),
    tiny_kim=tiny_kim,
    tinyimagenet=partial(standard, "TinyImageNet"),
)
