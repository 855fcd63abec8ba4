from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

from ranking_world import RankingWorld
from sqlalchemy import select

from steerboard.evaluation.ranking import queue
from steerboard.evaluation.ranking.presenters import campaign_row
from steerboard.evaluation.ranking.tables import RankingItem
from steerboard.platform.database import transaction


def prompts(given: object) -> list[str]:
    assert isinstance(given, dict)
    return [task["prompt"]["messages"][-1]["content"] for task in given["items"]]


def test_one_annotator_gets_every_item_once_and_then_hears_that_it_is_done(world: RankingWorld) -> None:
    world.evaluation(prompts=4)
    campaign = world.campaign()
    ann = world.annotator("ann")
    assert sorted(ann.rank_all(campaign)) == [f"what is {n}?" for n in range(4)]
    assert ann.next(campaign) == {"items": [], "left": 0, "done": 4, "state": "done"}
    assert world.figures(campaign)["done_items"] == 4


def test_a_reload_gives_the_same_tasks_again_and_only_then_new_ones(world: RankingWorld) -> None:
    world.evaluation(prompts=6)
    campaign = world.campaign()
    ann = world.annotator("ann")
    first = ann.next(campaign, ahead=2)
    assert ann.next(campaign, ahead=2)["items"] == first["items"]
    more = ann.next(campaign, ahead=3)
    assert more["items"][:2] == first["items"]
    assert (len(more["items"]), more["left"], more["done"], more["state"]) == (3, 6, 0, "ready")
    assert ann.submit(more["items"][0]).json() == {"left": 5, "done": 1}
    assert [task["id"] for task in ann.next(campaign, ahead=3)["items"]][:2] == [
        task["id"] for task in more["items"][1:]
    ]


def test_an_item_is_with_no_more_annotators_than_the_overlap(world: RankingWorld) -> None:
    world.evaluation(prompts=2)
    campaign = world.campaign(overlap=2)
    ann, bob, eve = (world.annotator(name) for name in ("ann", "bob", "eve"))
    assert prompts(ann.next(campaign, ahead=3)) == prompts(bob.next(campaign, ahead=3))
    waits = eve.next(campaign)
    assert (waits["items"], waits["state"], waits["left"]) == ([], "waiting", 2)
    assert set(world.holders().values()) == {2}


def test_items_get_their_rankings_one_after_another_in_one_random_order_for_all(world: RankingWorld) -> None:
    world.evaluation(prompts=8)
    campaign = world.campaign(overlap=2)
    ann, bob, eve = (world.annotator(name) for name in ("ann", "bob", "eve"))
    order = ann.rank_all(campaign, most=4)
    assert order != [f"what is {n}?" for n in range(4)]
    assert sorted(bob.rank_all(campaign, most=4)) == sorted(order)
    assert world.figures(campaign)["done_items"] == 4
    assert not set(eve.rank_all(campaign, most=4)) & set(order)


def test_what_has_rankings_already_comes_before_what_has_none(world: RankingWorld) -> None:
    world.evaluation(prompts=6)
    campaign = world.campaign(overlap=2)
    ann, bob = world.annotator("ann"), world.annotator("bob")
    for _ in range(3):
        ann.skip(ann.first(campaign))
    fourth = ann.first(campaign)
    ann.submit(fourth)
    assert bob.first(campaign)["prompt"] == fourth["prompt"]


def test_an_item_that_was_taken_between_look_and_lock_is_not_taken_again(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign()
    world.annotator("ann").first(campaign)
    bob = world.annotator("bob")
    with transaction(world.sessions) as session:
        row = campaign_row(session, world.project, uuid.UUID(campaign["id"]))
        item = session.scalars(select(RankingItem.id)).one()
        assert queue._take(session, row, bob.user_id, [item]) == 0
    assert len(world.tasks()) == 1


def test_a_lock_that_ran_out_frees_the_item_for_others(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign()
    ann, bob = world.annotator("ann"), world.annotator("bob")
    mine = ann.first(campaign)
    assert bob.next(campaign)["state"] == "waiting"
    world.expire()
    theirs = bob.first(campaign)
    assert theirs["id"] != mine["id"]
    assert ann.next(campaign)["items"] == []


def test_an_item_whose_lock_ran_out_comes_back_with_its_draft_when_nobody_took_it(world: RankingWorld) -> None:
    world.evaluation(prompts=2)
    campaign = world.campaign()
    ann = world.annotator("ann")
    mine = ann.first(campaign)
    assert ann.draft(mine, ranks={"A": 2, "B": 1}, comment="hm").status_code == 200
    world.expire()
    again = ann.first(campaign)
    assert again["id"] == mine["id"]
    assert (again["draft"]["ranks"], again["draft"]["comment"]) == ({"A": 2, "B": 1}, "hm")
    assert again["locked_until"] > mine["locked_until"]
    assert world.annotator("bob").first(campaign)["prompt"] != mine["prompt"]


def test_asking_for_more_renews_locks_of_which_half_is_over(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign(lock_seconds=600)
    ann = world.annotator("ann")
    mine = ann.first(campaign)
    assert ann.first(campaign)["locked_until"] == mine["locked_until"]
    world.owner.patch(world.path(campaign), json={"lock_seconds": 6000})
    assert ann.first(campaign)["locked_until"] > mine["locked_until"]


def test_a_paused_campaign_hands_out_nothing_new_and_takes_what_is_held(world: RankingWorld) -> None:
    world.evaluation(prompts=4)
    campaign = world.campaign()
    ann, bob = world.annotator("ann"), world.annotator("bob")
    held = ann.next(campaign, ahead=2)["items"]
    assert world.owner.patch(world.path(campaign), json={"state": "paused"}).json()["state"] == "paused"
    paused = ann.next(campaign, ahead=3)
    assert ([task["id"] for task in paused["items"]], paused["state"]) == ([task["id"] for task in held], "paused")
    assert (bob.next(campaign)["items"], bob.next(campaign)["state"]) == ([], "paused")
    assert ann.submit(held[0]).status_code == 200
    world.owner.patch(world.path(campaign), json={"state": "open"})
    assert bob.next(campaign)["state"] == "ready"


def test_a_closed_campaign_takes_nothing_and_keeps_what_came_too_late(world: RankingWorld) -> None:
    world.evaluation(prompts=4)
    campaign = world.campaign()
    ann = world.annotator("ann")
    done, held = ann.next(campaign, ahead=2)["items"]
    assert ann.submit(done).status_code == 200
    world.owner.patch(world.path(campaign), json={"state": "closed"})
    assert (ann.next(campaign)["items"], ann.next(campaign)["state"]) == ([], "closed")
    for late in (ann.submit(held), ann.skip(held), ann.undo(done), ann.draft(held, ranks={"A": 1})):
        assert (late.status_code, late.json()["code"]) == (409, "campaign_closed")
    assert world.figures(campaign)["rankings"] == 1
    assert ann.send("GET", "").json()["campaigns"][0]["left_for_me"] == 0
    assert world.annotator("bob").send("GET", "").json() == {"campaigns": []}


def test_a_raised_overlap_opens_done_items_to_others(world: RankingWorld) -> None:
    world.evaluation(prompts=3)
    campaign = world.campaign()
    ann, bob = world.annotator("ann"), world.annotator("bob")
    ann.rank_all(campaign)
    assert bob.next(campaign)["state"] == "done"
    raised = world.owner.patch(world.path(campaign), json={"overlap": 2})
    assert (raised.json()["done_items"], raised.json()["items"]) == (0, 3)
    assert ann.next(campaign)["state"] == "done"
    assert len(bob.rank_all(campaign)) == 3
    lowered = world.owner.patch(world.path(campaign), json={"overlap": 1})
    assert (lowered.status_code, lowered.json()["code"]) == (422, "overlap_lowered")


def test_every_annotator_gets_every_gold_item_and_one_in_so_many(world: RankingWorld) -> None:
    world.evaluation(prompts=12)
    campaign = world.campaign(gold_every=4)
    known = dict(zip(campaign["entrants"], (1, 2, 3), strict=True))
    for position in (3, 5, 8):
        assert world.owner.put(world.path(campaign, f"/gold/{position}"), json={"ranks": known}).status_code == 200
    gold = {f"what is {position}?" for position in (3, 5, 8)}
    orders = [world.annotator(name).rank_all(campaign) for name in ("ann", "bob")]
    assert all(gold <= set(order) and len(set(order)) == len(order) for order in orders)
    first = orders[0]
    assert [place for place, prompt in enumerate(first) if prompt in gold] == [3, 7, 11]
    assert sorted(orders[1]) == sorted(gold)
    assert [item["position"] for item in world.owner.get(world.path(campaign, "/gold")).json()["items"]] == [3, 5, 8]
    assert world.owner.delete(world.path(campaign, "/gold/5")).status_code == 204
    assert world.figures(campaign)["gold_items"] == 2


def test_gold_items_come_first_where_no_rate_is_given(world: RankingWorld) -> None:
    world.evaluation(prompts=6)
    campaign = world.campaign()
    known = dict(zip(campaign["entrants"], (1, 2, 2), strict=True))
    world.owner.put(world.path(campaign, "/gold/2"), json={"ranks": known})
    for name in ("ann", "bob"):
        assert prompts(world.annotator(name).next(campaign, ahead=2))[0] == "what is 2?"


def test_two_tabs_of_one_person_hold_the_same_tasks(world: RankingWorld) -> None:
    world.evaluation(prompts=8)
    campaign = world.campaign()
    ann = world.annotator("ann")
    with ThreadPoolExecutor(4) as pool:
        tabs = list(pool.map(lambda _: prompts(ann.next(campaign, ahead=2)), range(4)))
    assert all(tab == tabs[0] for tab in tabs)
    assert len(world.tasks()) == 2
