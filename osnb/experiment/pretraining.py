"""Whether a backbone could have seen a class before: as far as timm's tags and WordNet tell."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from osnb.protocols import hierarchy

LISTS = {  # files of timm with the classes of a data set, by the word of a tag that names it
    "in1k": "imagenet_synsets",
    "in12k": "imagenet12k_synsets",
    "in21k": "imagenet21k_goog_synsets",
    "in22k": "imagenet22k_synsets",
}
OTHERS = re.compile(  # words of tags that name images without a list of classes
    "webli|laion|clip|openai|datacomp|lvd|dfn|yfcc|ig1b|swsl|wsl|ssl|swag|seer|jft|merged|radio|sam"
    "|sail|pali|dino|eupe|qwen|gemma|naver|cc12m|inat|cvnets|snap|apple"
)


def seen(network: Mapping[str, Any], name: str) -> str:
    """Whether the pretraining of a network could have seen a class: yes, no or not known.

    Yes: a noun of the class's name is a class of a data set in the backbone's tag (of
    `vit_tiny_patch16_224.augreg_in21k_ft_in1k`, in21k and in1k), or lies above or below one in
    WordNet. No: there are no weights in a file, or all data sets in the tag have lists and none
    has such a noun. Not known: there is no tag, or one of other data sets, or WordNet has no such
    noun. Images without a label in a data set may show anything, so no is no proof.

    Args:
        network: settings of an experiment's network.
        name: of the class, or its wnid.
    """
    if not network.get("weights"):
        return "no"
    tag = network.get("backbone", "").partition(".")[2]
    there = [_listed(LISTS[word]) for word in tag.split("_") if word in LISTS]
    nouns = hierarchy.named(name)
    near = {*nouns}.union(*map(hierarchy.ancestors, nouns), *map(hierarchy.descendants, nouns))
    if any(near & classes for classes in there):
        return "yes"
    return "no" if nouns and all(there) and there and not OTHERS.search(tag) else "not known"


@cache
def _listed(name: str) -> frozenset[str]:
    """The wnids of a file of timm, whose import would take seconds; none without timm."""
    timm = find_spec("timm")
    file = Path(str(timm.origin)).parent / "data" / "_info" / f"{name}.txt" if timm else Path(name)
    return frozenset(file.read_text().split()) if file.is_file() else frozenset()
