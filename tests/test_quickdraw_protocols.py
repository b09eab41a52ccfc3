"""Lists of Quick, Draw!'s classes: laws that all of them keep, and each rule read slowly."""

from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osnb.base.labels import UNKNOWN
from osnb.protocols import PROTOCOLS, hierarchy, kim, making, p1, quickdraw
from osnb.protocols.quickdraw import SPLITS, TUNING
from osnb.protocols.vaze import standard

TABLE = pd.read_csv(hierarchy.DATA / "quickdraw" / "synsets.csv", keep_default_na=False)
WNID = dict(zip(TABLE["name"], TABLE["wnid"], strict=True))
LISTS = [(name, split) for name, (_, n) in SPLITS.items() for split in (*range(n), TUNING)]
FINE = ("vehicles", "food", "mammals")
KIM = ("quickdraw_kim", "quickdraw_kim_cifar")
thing = st.sampled_from(quickdraw.things())
laws = settings(derandomize=True, database=None, deadline=None)


@cache
def rows(name, split):
    return PROTOCOLS.bind(name, split=split)()


def names(table, **chosen):
    for column, value in chosen.items():
        table = table[table[column] == value]
    return table["name"].tolist()


def known(name, split):
    return set(names(rows(name, split), role="known"))


@cache
def ways_up(wnid):
    """Every path from a synset to the root, by recursion."""
    above = [way for parent in hierarchy.parents(wnid) for way in ways_up(parent)]
    return [(wnid, *way) for way in above] or [(wnid,)]


def slow_ancestors(wnid):
    return {node for way in ways_up(wnid) for node in way[1:]}


@cache
def slow_steps(a, b):
    """The fewest steps over all pairs of paths."""
    pairs = ((x, y) for x in ways_up(a) for y in ways_up(b))
    return min(x.index(n) + y.index(n) for x, y in pairs for n in {*x} & {*y})


# The hierarchy, over all hypernyms.


@laws
@given(thing, thing)
def test_the_shortest_path_is_that_over_all_pairs_of_ways_up(a, b):
    assert hierarchy.shortest(a, b) == hierarchy.shortest(b, a) == slow_steps(a, b)
    assert hierarchy.shortest(a, b) <= hierarchy.distance(a, b)
    assert (hierarchy.shortest(a, b) == 0) == (a == b)


@laws
@given(thing)
def test_ancestors_are_all_that_lie_on_a_way_up_nearest_first(wnid):
    above = hierarchy.ancestors(wnid)
    assert set(above) == slow_ancestors(wnid)
    steps = [min(way.index(a) for way in ways_up(wnid) if a in way) for a in above]
    assert steps == sorted(steps)


def test_a_dog_is_a_mammal_and_an_apple_as_near_to_a_banana_as_to_a_pear():
    assert quickdraw.GROUPS["mammals"] in hierarchy.ancestors(WNID["dog"])
    apple = [hierarchy.shortest(WNID["apple"], WNID[name]) for name in ("pear", "banana")]
    assert apple == [2, 2]


def test_the_shortest_path_is_no_metric():
    bean, pear, peanut = (WNID[name] for name in ("string bean", "pear", "peanut"))
    around = hierarchy.shortest(bean, pear) + hierarchy.shortest(pear, peanut)
    assert around < hierarchy.shortest(bean, peanut)


# Laws of all lists.


def test_the_lists_of_the_benchmark_are_those_that_are_frozen():
    kept = pd.read_csv(hierarchy.DATA / "quickdraw" / "lists.csv")
    pd.testing.assert_frame_equal(quickdraw.frozen(), kept, check_dtype=False)


@pytest.mark.parametrize(("name", "split"), LISTS)
def test_no_class_is_twice_in_a_list_above_another_or_left_out(name, split):
    table = rows(name, split)
    assert table["wnid"].is_unique
    assert table["name"].is_unique
    wnids = set(table["wnid"])
    assert not {a for w in wnids for a in slow_ancestors(w)} & wnids
    far = table.get("group", pd.Series("", table.index)) == "far"
    kinds = TABLE.set_index("name")["kind"]
    assert set(kinds[table["name"][~far]]) == {"thing"}
    assert set(kinds[table["name"][far]]) <= {"shape", "sky", "landscape"}
    assert table["wnid"].tolist() == [WNID[n] for n in table["name"]]
    out = pd.read_csv(hierarchy.DATA / "quickdraw" / "left_out.csv", keep_default_na=False)
    assert not set(out["name"]) & set(table["name"])
    assert set(out["looks_like"]) - {""} <= set(quickdraw.drawings()["name"])


@pytest.mark.parametrize("name", SPLITS)
def test_no_class_is_known_both_where_settings_are_chosen_and_where_results_are_reported(name):
    for split in range(SPLITS[name][1]):
        assert not known(name, split) & known(name, TUNING)


@pytest.mark.parametrize("name", SPLITS)
def test_splits_differ_and_every_table_says_which_it_is_and_that_it_is_a_stand_in(name):
    splits = [*range(SPLITS[name][1]), TUNING]
    title = {split: rows(name, split).attrs["protocol"] for split in splits}
    assert all(text.startswith("Quick, Draw! in the place of ") for text in title.values())
    assert len(set(title.values())) == len(splits)
    lists = [rows(name, split)[["wnid", "role"]].to_csv() for split in splits]
    assert len(set(lists)) == len(splits)


@pytest.mark.parametrize("name", SPLITS)
def test_another_split_is_refused_with_those_there_are(name):
    with pytest.raises(ValueError, match=rf"need split 0.*, or {TUNING} to choose settings; got 7"):
        PROTOCOLS.bind(name, split=7)()
    with pytest.raises(ValueError, match="needs at least 2 known classes"):
        PROTOCOLS.bind(name, split=0)(available=[])


def test_things_have_no_other_below_them_and_every_thing_left_is_one_or_above_one():
    things = set(quickdraw.things())
    above = {a for w in things for a in slow_ancestors(w)}
    table = quickdraw.drawings().query("kind == 'thing'")
    assert set(table.index) - things == set(table.index) & above
    assert len(things) == 268


# Palechor et al. 2023.


@pytest.mark.parametrize("split", [0, TUNING])
def test_p1_and_p2_know_one_half_of_the_mammals_by_wnid(split):
    mammals = [w for w in quickdraw.things() if "n01861778" in slow_ancestors(w)]
    first, last = set(mammals[:11]), set(mammals[11:])
    halves = (first, last) if split == 0 else (last, first)
    p2 = rows("quickdraw_p2", split)
    of_role = p2.groupby("role")["wnid"].agg(set)
    assert (of_role["known"], of_role["negative"]) == halves
    p1_known = rows("quickdraw_p1", split).query("role == 'known'")
    assert set(p1_known["wnid"]) == halves[0]
    assert list(p1_known["label"]) == list(range(len(halves[0])))


@pytest.mark.parametrize("name", ["quickdraw_p1", "quickdraw_p2", "quickdraw_p3"])
@pytest.mark.parametrize("split", [0, TUNING])
def test_each_class_of_p1_to_p3_lies_below_its_superclass_and_each_one_below_is_in(name, split):
    table = rows(name, split)
    assert list(table) == list(p1())
    for above, part in table.groupby("superclass_wnid"):
        assert all(above in slow_ancestors(w) for w in part["wnid"])
        rest = set(quickdraw.things()) - set(table["wnid"])
        if above != "n01861778":  # half of the mammals are in no role of P1
            assert not [w for w in rest if above in {w} | slow_ancestors(w)]


@pytest.mark.parametrize(("split", "start"), [(0, 0), (TUNING, 1)])
def test_p3_shares_each_superclass_out_in_turn(split, start):
    turns = ("known", "negative", "known", "unknown", "known", "negative")
    table = rows("quickdraw_p3", split)
    shared = table.groupby("superclass_name")["role"].nunique().loc[lambda n: n > 1].index
    assert len(shared) == 9
    for _, part in table[table["superclass_name"].isin(shared)].groupby("superclass_name"):
        roles = part.sort_values("wnid")["role"].tolist()
        assert roles == [turns[(start + i) % 6] for i in range(len(roles))]


# Vaze et al. 2022.


@pytest.mark.parametrize("split", range(5))
def test_the_ten_and_the_two_hundred_stand_at_the_papers_places(split):
    there = standard("CIFAR10", split=split)["name"]
    instead = {"automobile": "car", "deer": "cow", "ship": "cruise ship"}
    assert names(rows("quickdraw_cifar10", split)) == [instead.get(n, n) for n in there]
    tiny = rows("quickdraw_tinyimagenet", split)
    places = standard("TinyImageNet", split=split)["wnid"].map(hierarchy.TINY_IMAGENET.index)
    order = sorted(tiny["wnid"])
    assert tiny["wnid"].tolist() == [order[i] for i in places]
    assert order == sorted(rows("quickdraw_tinyimagenet", 0)["wnid"])


def test_settings_for_tiny_imagenet_are_chosen_on_classes_outside_the_two_hundred():
    reported = set(rows("quickdraw_tinyimagenet", 0)["wnid"])
    tuning = set(rows("quickdraw_tinyimagenet", TUNING)["wnid"])
    assert reported | tuning == set(quickdraw.things())
    assert not reported & tuning


@pytest.mark.parametrize("split", [*range(5), TUNING])
def test_what_is_added_to_cifar_is_not_among_the_ten_above_or_below_them(split):
    few, many = (rows(f"quickdraw_cifar_plus_{n}", split) for n in (10, 50))
    places = set(quickdraw.ten(tuning=split == TUNING).values())
    assert set(names(few)) < set(names(many))
    for table, size in ((few, 10), (many, 50)):
        added = set(table.query("role == 'unknown'")["wnid"])
        assert (len(table), len(added)) == (4 + size, size)
        assert not added & places
        assert not any(
            slow_ancestors(a) & places or a in slow_ancestors(b) for a in added for b in places
        )


def test_the_ten_of_the_tuning_are_the_nearest_that_are_left():
    first, second = quickdraw.ten(tuning=False), quickdraw.ten(tuning=True)
    ten = set(first.values())
    related = {a for w in ten for a in slow_ancestors(w)}
    rest = [w for w in quickdraw.things() if w not in ten | related]
    rest = [w for w in rest if not slow_ancestors(w) & ten]
    for name, wnid in second.items():
        assert slow_steps(first[name], wnid) == min(slow_steps(first[name], w) for w in rest)
        rest.remove(wnid)
    assert not ten & set(second.values())


@pytest.mark.parametrize("group", FINE)
@pytest.mark.parametrize("split", range(5))
def test_hard_classes_are_as_near_to_a_known_one_as_medium_and_easy_ones_or_nearer(group, split):
    table = rows(f"quickdraw_ssb_{group}", split)
    inside = table.query("role == 'known'")["wnid"]
    near = {w: min(slow_steps(w, k) for k in inside) for w in table["wnid"]}
    hard, medium, easy = (
        [near[w] for w in table.loc[table["bin"] == name, "wnid"]]
        for name in ("hard", "medium", "easy")
    )
    assert max(hard) <= min(medium) <= max(medium) <= min(easy)
    assert np.mean(hard) < np.mean(easy)
    whole = [w for w in quickdraw.things() if quickdraw.GROUPS[group] in slow_ancestors(w)]
    assert sorted(table["wnid"]) == whole
    assert len(inside) == len(whole) // 2


@pytest.mark.parametrize("group", FINE)
def test_most_classes_of_a_fine_group_are_known_in_some_split_and_unknown_in_some(group):
    pooled = [rows(f"quickdraw_ssb_{group}", split) for split in range(5)]
    whole = {n for table in pooled for n in names(table)}
    for role in ("known", "unknown"):
        assert len({n for table in pooled for n in names(table, role=role)}) >= 0.75 * len(whole)


def test_settings_for_fine_groups_are_chosen_on_implements():
    tuned = [rows(f"quickdraw_ssb_{group}", TUNING) for group in FINE]
    assert all(table.equals(tuned[0]) for table in tuned)
    reported = {n for group in FINE for n in names(rows(f"quickdraw_ssb_{group}", 0))}
    assert not set(names(tuned[0])) & reported
    with pytest.raises(KeyError, match="food, mammals, vehicles"):
        quickdraw.ssb_fine(group="birds", split=0)


@pytest.mark.parametrize("split", [*range(3), TUNING])
def test_hard_things_have_the_least_summed_distance_and_easy_ones_the_largest(split):
    table = rows("quickdraw_ssb_things", split)
    inside = table.query("role == 'known'")["wnid"]
    rest = set(quickdraw.things()) - set(inside)
    total = pd.Series({w: sum(hierarchy.shortest(w, k) for k in inside) for w in rest})
    hard, easy = (total[table.loc[table["bin"] == name, "wnid"]] for name in ("hard", "easy"))
    between = total.drop([*hard.index, *easy.index])
    assert hard.max() <= between.min() <= between.max() <= easy.min()
    assert (len(inside), len(hard), len(easy)) == (50, 50, 50)


@pytest.mark.parametrize("split", [0, TUNING])
def test_a_closed_list_has_the_ten_of_the_other_data_set_near(split):
    table = rows("quickdraw_closed", split)
    near = set(table.query("bin == 'near'")["wnid"])
    assert near == set(quickdraw.ten(tuning=split == TUNING).values())
    assert table["label"].tolist() == [*range(50), *[UNKNOWN] * 10]
    assert table["group"].tolist() == [""] * 50 + ["near"] * 10


# Kim et al. 2021.


@pytest.mark.parametrize(("name", "split"), [x for x in LISTS if x[0] in KIM])
def test_near_things_share_a_parent_with_a_known_one_external_ones_do_not_and_scenes_are_far(
    name, split
):
    table = rows(name, split)
    wnids = table.groupby("group")["wnid"].agg(list)
    parents = {p for w in wnids[""] for p in hierarchy.parents(w)}
    assert all(parents & slow_ancestors(w) for w in wnids["near"])
    assert not any(parents & slow_ancestors(w) for w in wnids["external"])
    assert [len(wnids[g]) for g in ("", "external", "far")] == [40, 80, 24]
    assert 37 <= len(wnids["near"]) <= 40
    assert set(table.loc[table["group"] == "external", "role"]) == {"negative"}


def test_no_thing_is_known_in_two_draws_of_the_unified_benchmark_nor_of_its_other_one():
    sets = [known(name, split) for name in KIM for split in range(SPLITS[name][1])]
    sets.append(known("quickdraw_kim", TUNING))  # one for both
    assert known("quickdraw_kim_cifar", TUNING) == sets[-1]
    assert not any(a & b for a, b in combinations(sets, 2))
    assert len(sets) == 6
    order = kim.drawn(quickdraw.things(), "quickdraw")
    assert rows("quickdraw_kim", 1)["wnid"].tolist()[:40] == order[40:80]


@pytest.mark.parametrize("group", FINE)
def test_the_nearest_known_class_is_the_first_of_the_fewest_steps(group):
    table = rows(f"quickdraw_ssb_{group}", 1)
    known = table[table["role"] == "known"]
    found = making.nearest(table)
    assert found["wnid"].tolist() == table.loc[table["role"] == "unknown", "wnid"].tolist()
    for row in found.itertuples():
        steps = {k: hierarchy.shortest(row.wnid, k) for k in known["wnid"]}
        assert row.steps == min(steps.values())
        assert row.closest == min(steps, key=steps.get)
        assert row.closest_name == TABLE.set_index("wnid")["name"][row.closest]


def test_what_lies_above_a_known_class_is_an_ancestor_and_what_lies_below_a_descendant():
    dog, hound, canine, cat = "n02084071", "n02087551", "n02083346", "n02121620"
    found = making.relations([canine, hound, dog, cat], [dog])
    assert found == ["ancestor", "descendant", "", ""]


def test_in_the_place_of_cifar10_all_ten_are_known_and_ten_others_where_settings_are_chosen():
    tables = [PROTOCOLS.bind("quickdraw_closed_ten", split=split)() for split in (0, TUNING)]
    for table, tuning in zip(tables, (False, True), strict=True):
        assert set(table["wnid"]) == set(quickdraw.ten(tuning=tuning).values())
        assert table["label"].tolist() == list(range(10))
        assert set(table["role"]) == {"known"}
    assert {"car", "cruise ship", "frog"} <= set(tables[0]["name"])
    assert set(tables[0]["wnid"]).isdisjoint(tables[1]["wnid"])
    few = tables[0]["wnid"][:3]
    assert len(PROTOCOLS.bind("quickdraw_closed_ten", split=0)(available=few)) == 3
