//! One node, with authorities whose answers the test gives.

use super::*;

const LEASE_MS: u64 = 5_000;

fn node(has_claim: bool) -> LeaseState {
    LeaseState::new(LeaseTimes::of(LEASE_MS), "a", has_claim)
}

const fn looked(is_free: bool, highest: u64) -> Answer {
    Answer::Look(Look {
        is_free,
        highest: Epoch(highest),
    })
}

/// The only request that is due.
fn only(asks: Vec<Ask>) -> Ask {
    assert_eq!(asks.len(), 1, "{asks:?}");
    asks.into_iter().next().unwrap()
}

fn granted(epoch: u64) -> Answer {
    Answer::Grant(Grant::Granted(Epoch(epoch)))
}

const FREE: Answer = looked(true, 0);
const REFUSED: Answer = Answer::Grant(Grant::Refused);

/// A node that leads since 300 ms with both leases, in epoch 7.
fn leader() -> LeaseState {
    let mut node = node(true);
    let look = only(node.due(0, 1));
    assert_eq!((look.which, &look.request), (Which::Claim, &Request::Look));
    node.answered(look.id, Which::Claim, FREE, 50);
    let take = only(node.due(100, 2));
    assert!(take.which == Which::Row && matches!(take.request, Request::Take { .. }));
    node.answered(take.id, Which::Row, granted(7), 150);
    assert_eq!(node.leads(150), None, "one of two");
    let claim = only(node.due(200, 3));
    let Request::Take {
        epoch: Epoch(7), ..
    } = claim.request
    else {
        panic!("{claim:?}")
    };
    node.answered(claim.id, Which::Claim, granted(7), 300);
    node
}

#[test]
fn a_deadline_counts_from_before_the_request_and_ends_a_margin_early() {
    let node = leader();
    // The claim was asked for last, at 200.
    let until_mono_ms = 200 + LEASE_MS - 1_000;
    assert_eq!(node.leads(300), Some((Epoch(7), until_mono_ms)));
    assert_ne!(node.leads(until_mono_ms - 1), None);
    assert_eq!(node.leads(until_mono_ms), None);
}

#[test]
fn without_a_claim_the_row_alone_decides() {
    let mut node = node(false);
    let take = only(node.due(0, 1));
    node.answered(take.id, Which::Row, granted(1), 10);
    let until_mono_ms = LEASE_MS - 1_000;
    assert_eq!(node.leads(10), Some((Epoch(1), until_mono_ms)));
    let renewal = only(node.due(1_000, 2));
    assert!(matches!(renewal.request, Request::Renew { .. }));
}

#[test]
fn a_taken_claim_is_not_followed_by_a_look_at_the_row() {
    let mut node = node(true);
    let look = only(node.due(0, 1));
    node.answered(look.id, Which::Claim, looked(false, 0), 10);
    assert!(node.due(20, 2).is_empty());
    let again = only(node.due(1_250, 3));
    assert_eq!(again.request, Request::Look);
}

#[test]
fn a_row_without_its_claim_is_given_back_and_the_next_attempt_is_another_holder() {
    let mut node = node(true);
    let mut holders = Vec::new();
    for (now_ms, answer) in [(0, REFUSED), (2_000, Answer::Failed)] {
        let look = only(node.due(now_ms, now_ms));
        node.answered(look.id, Which::Claim, FREE, now_ms);
        let take = only(node.due(now_ms, now_ms));
        node.answered(take.id, Which::Row, granted(3), now_ms);
        let claim = only(node.due(now_ms, now_ms));
        node.answered(claim.id, Which::Claim, answer, now_ms + 10);
        let back = node.due(now_ms + 20, 5);
        let released = back.iter().map(|ask| match &ask.request {
            Request::Release { holder } => (ask.which, holder.clone()),
            other => panic!("{other:?}"),
        });
        let released: Vec<_> = released.collect();
        assert_eq!(
            released.iter().map(|one| one.0).collect::<Vec<_>>(),
            [Which::Row, Which::Claim]
        );
        holders.push(released[0].1.clone());
        assert_eq!(node.leads(now_ms + 20), None);
    }
    assert_ne!(holders[0], holders[1]);
}

/// Renews once at `now_ms`, and answers as given.
fn renew(node: &mut LeaseState, now_ms: u64, row: Answer, claim: Answer) {
    let asks = node.due(now_ms, now_ms);
    assert_eq!(asks.len(), 2, "both at the same time: {asks:?}");
    for ask in asks {
        let answer = if ask.which == Which::Row { row } else { claim };
        node.answered(ask.id, ask.which, answer, now_ms + 20);
    }
}

#[test]
fn either_authority_keeps_it_and_without_both_it_ends() {
    for (row, claim) in [(granted(7), Answer::Failed), (Answer::Failed, granted(7))] {
        let mut node = leader();
        let mut now_ms = 1_200;
        while now_ms < 60_000 {
            renew(&mut node, now_ms, row, claim);
            assert_ne!(node.leads(now_ms + 999), None);
            now_ms += 1_000;
        }
        let last_ms = now_ms - 1_000;
        let mut at_ms = now_ms;
        while at_ms < last_ms + 4_000 {
            renew(&mut node, at_ms, Answer::Failed, Answer::Failed);
            at_ms += 1_000;
        }
        assert_ne!(node.leads(last_ms + 3_999), None);
        assert_eq!(node.leads(last_ms + 4_000), None);
    }
}

#[test]
fn a_lease_that_another_has_ends_at_once() {
    let mut node = leader();
    renew(&mut node, 1_200, REFUSED, Answer::Failed);
    assert_ne!(node.leads(1_300), None, "the claim is left");
    renew(&mut node, 2_200, REFUSED, REFUSED);
    assert_eq!(node.leads(2_300), None);
}

#[test]
fn a_renewal_that_comes_after_the_deadline_brings_nothing_back() {
    let mut node = leader();
    let asks = node.due(3_500, 9);
    for ask in &asks {
        node.answered(ask.id, ask.which, granted(7), 4_200);
    }
    assert_eq!(node.leads(4_200), None);
    let farewells = node.due(4_200, 10);
    assert!(
        farewells
            .iter()
            .any(|ask| matches!(ask.request, Request::Release { .. }))
    );
}

#[test]
fn the_epoch_follows_the_row_and_goes_with_the_next_renewal() {
    let mut node = leader();
    renew(&mut node, 1_200, granted(9), granted(7));
    let Some((epoch, _)) = node.leads(1_300) else {
        panic!("{node:?}")
    };
    assert_eq!(epoch, Epoch(9));
    for ask in node.due(2_200, 1) {
        assert!(
            matches!(
                ask.request,
                Request::Renew {
                    epoch: Epoch(9),
                    ..
                }
            ),
            "{ask:?}"
        );
    }
    // A row that was restored from a backup counts lower: it is not ours.
    let asks = node.due(3_600, 1);
    assert!(asks.is_empty(), "under way: {asks:?}");
}

#[test]
fn a_stopped_leader_lets_go_and_never_leads_again() {
    let mut node = leader();
    let asks = node.stop();
    assert_eq!(asks.len(), 2);
    assert_eq!(node.leads(310), None);
    assert!(
        (400..20_000)
            .step_by(100)
            .all(|now_ms| node.due(now_ms, now_ms).is_empty())
    );
}

#[test]
fn an_answer_that_never_comes_counts_as_a_failure() {
    let mut node = leader();
    let lost = node.due(1_200, 1);
    assert!(node.due(2_200, 1).is_empty(), "one at a time");
    let next = node.due(3_200, 1);
    assert_eq!(next.len(), 2);
    for ask in lost {
        node.answered(ask.id, ask.which, granted(7), 3_300);
    }
    assert_eq!(node.leads(4_200), None, "too late to be believed");
}

#[test]
fn a_row_that_went_back_is_asked_for_an_epoch_above_all_that_is_known_of() {
    let mut node = node(true);
    let look = only(node.due(0, 1));
    node.answered(look.id, Which::Claim, looked(true, 51), 10);
    let take = only(node.due(20, 2));
    let Request::Take {
        epoch: Epoch(51), ..
    } = take.request
    else {
        panic!("{take:?}")
    };
    node.answered(take.id, Which::Row, granted(52), 30);
    let claim = only(node.due(40, 3));
    node.answered(claim.id, Which::Claim, granted(52), 50);
    assert!(matches!(node.leads(60), Some((Epoch(52), _))));
}

#[test]
fn whoever_leads_by_its_claim_alone_takes_the_free_row_in_a_new_epoch() {
    let mut node = leader();
    renew(&mut node, 1_200, REFUSED, granted(7));
    let asks = node.due(2_300, 1);
    let row = asks.iter().find(|ask| ask.which == Which::Row).unwrap();
    assert!(
        matches!(
            row.request,
            Request::Take {
                epoch: Epoch(7),
                ..
            }
        ),
        "{row:?}"
    );
    for ask in &asks {
        node.answered(
            ask.id,
            ask.which,
            granted(if ask.which == Which::Row { 8 } else { 7 }),
            2_320,
        );
    }
    assert!(matches!(node.leads(2_400), Some((Epoch(8), _))));
    for ask in node.due(3_400, 1) {
        assert!(
            matches!(
                ask.request,
                Request::Renew {
                    epoch: Epoch(8),
                    ..
                }
            ),
            "{ask:?}"
        );
    }
}

#[test]
fn a_leader_whose_word_is_refused_lets_go_and_tries_again_after_a_pause() {
    let mut node = leader();
    node.refused(Epoch(6), 350, 0);
    assert_ne!(node.leads(360), None, "another leadership's");
    node.refused(Epoch(7), 400, 0);
    assert_eq!(node.leads(410), None);
    assert_eq!(node.due(410, 1).len(), 2, "both are given back");
    assert!(
        (420..1_400)
            .step_by(20)
            .all(|now_ms| node.due(now_ms, 0).is_empty())
    );
    assert_eq!(only(node.due(1_400, 0)).request, Request::Look);
}
