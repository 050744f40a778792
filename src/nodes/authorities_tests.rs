//! The claim on a real server.

use rustix::process::Signal;

use super::*;
use crate::base::Clock;
use crate::nodes::lease::{Answer, Ask, LeaseState, LeaseTimes, Request, Which};
use crate::nodes::valkey::installation::tests::installation;
use crate::nodes::valkey::testing::TestServer;

const LEASE_MS: u64 = 1_500;

fn claim(server: &TestServer) -> ValkeyClaim {
    ValkeyClaim::new(&server.server(), &installation(), LEASE_MS)
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let timer = Clock::system();
    while !holds() {
        assert!(timer.monotonic_ms() < 20_000, "{what}");
        std::thread::yield_now();
    }
}

fn presence(claim: &ValkeyClaim) -> Result<bool, AuthorityError> {
    claim.look().map(|look| look.is_free)
}

fn is_free(claim: &ValkeyClaim) -> bool {
    presence(claim) == Ok(true)
}

const GRANTED: fn(u64) -> Result<Grant, AuthorityError> = |epoch| Ok(Grant::Granted(Epoch(epoch)));

#[test]
fn one_holder_has_the_claim_until_it_runs_out_or_is_given_back() {
    let name = "one_holder_has_the_claim_until_it_runs_out_or_is_given_back";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let other_node = claim(&server);
    let claim = claim(&server);
    let a = Holder::new("a", 1);
    let b = Holder::new("b", 2);
    assert_eq!(claim.take(&a, Epoch(1)), Ok(Grant::Refused), "the server is young");
    eventually("a claim is free", || is_free(&claim));
    assert_eq!(claim.take(&a, Epoch(1)), GRANTED(1));
    assert_eq!(presence(&other_node), Ok(false));
    for attempt in [
        other_node.take(&b, Epoch(2)),
        other_node.renew(&b, Epoch(2)),
    ] {
        assert_eq!(attempt, Ok(Grant::Refused));
    }
    other_node.release(&b).unwrap();
    assert_eq!(claim.renew(&a, Epoch(3)), GRANTED(3), "the row counted on");
    claim.release(&a).unwrap();
    assert_eq!(other_node.take(&b, Epoch(4)), GRANTED(4));
    assert_eq!(claim.renew(&a, Epoch(3)), Ok(Grant::Refused));
    eventually("it runs out", || is_free(&claim));
    assert_eq!(claim.renew(&a, Epoch(3)), Ok(Grant::Refused), "another has led since");
    assert_eq!(claim.renew(&b, Epoch(4)), GRANTED(4), "nobody took it meanwhile");
}

#[test]
fn a_server_that_forgot_gives_no_claim_for_a_lease_and_lets_the_leader_renew() {
    let name = "a_server_that_forgot_gives_no_claim_for_a_lease_and_lets_the_leader_renew";
    let Some(mut server) = TestServer::start(name) else {
        return;
    };
    let claim = claim(&server);
    let timer = Clock::system();
    let a = Holder::new("a", 1);
    let b = Holder::new("b", 2);
    eventually("a claim is free", || is_free(&claim));
    claim.take(&a, Epoch(1)).unwrap();
    server.restart();
    let restarted_ms = timer.monotonic_ms();
    let mut first = None;
    eventually("somebody else may take it", || match claim.take(&b, Epoch(2)) {
        Ok(Grant::Granted(_)) => true,
        Ok(Grant::Refused) => {
            first.get_or_insert(());
            false
        }
        Err(_) => false,
    });
    // The server was up a moment before it answered the test.
    assert!(first.is_some() && timer.monotonic_ms() - restarted_ms > LEASE_MS - 300);
    server.restart();
    eventually("who leads renews at once", || claim.renew(&b, Epoch(2)) == GRANTED(2));
}

#[test]
fn a_call_of_a_stopped_server_ends_within_the_margin() {
    let name = "a_call_of_a_stopped_server_ends_within_the_margin";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let claim = claim(&server);
    let timer = Clock::system();
    claim.look().unwrap();
    server.signal(Signal::STOP);
    let begun_ms = timer.monotonic_ms();
    assert!(claim.look().is_err());
    let took_ms = timer.monotonic_ms() - begun_ms;
    assert!((DEADLINES.call_ms..DEADLINES.call_ms + 1_500).contains(&took_ms), "{took_ms}");
    server.signal(Signal::CONT);
}

/// Sends the node's request to the authority. The row always grants.
fn ask(node: &mut LeaseState, ask: &Ask, claim: &ValkeyClaim, now_ms: u64) {
    let grant =
        |granted: Result<Grant, AuthorityError>| granted.map_or(Answer::Failed, Answer::Grant);
    let answer = match (&ask.request, ask.which) {
        (Request::Release { .. }, Which::Row) => return,
        (Request::Take { epoch, .. }, Which::Row) => {
            Answer::Grant(Grant::Granted(Epoch(epoch.0 + 1)))
        }
        (Request::Renew { epoch, .. }, Which::Row) => Answer::Grant(Grant::Granted(*epoch)),
        (Request::Look, Which::Row) => return,
        (Request::Look, _) => claim.look().map_or(Answer::Failed, Answer::Look),
        (Request::Take { holder, epoch }, _) => grant(claim.take(holder, *epoch)),
        (Request::Renew { holder, epoch }, _) => grant(claim.renew(holder, *epoch)),
        (Request::Release { holder }, _) => return drop(claim.release(holder)),
    };
    node.answered(ask.id, ask.which, answer, now_ms);
}

#[test]
fn of_two_nodes_one_leads_and_the_other_follows_it_after_a_clean_stop() {
    let name = "of_two_nodes_one_leads_and_the_other_follows_it_after_a_clean_stop";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let claims = [claim(&server), claim(&server)];
    let times = LeaseTimes::of(LEASE_MS);
    let mut nodes = ["a", "b"].map(|name| LeaseState::new(times, name, true));
    let timer = Clock::system();
    let leads = |node: &LeaseState| node.leads(timer.monotonic_ms()).is_some();
    let mut random = fastrand::Rng::with_seed(3);
    let mut turn = |nodes: &mut [LeaseState; 2]| {
        for (node, claim) in nodes.iter_mut().zip(&claims) {
            for due in node.due(timer.monotonic_ms(), random.u64(..)) {
                ask(node, &due, claim, timer.monotonic_ms());
            }
        }
        let leading: Vec<usize> = (0..2).filter(|&node| leads(&nodes[node])).collect();
        assert!(leading.len() < 2);
        leading.first().copied()
    };
    let mut leader = None;
    eventually("one leads", || {
        leader = turn(&mut nodes);
        leader.is_some()
    });
    let leader = leader.unwrap();
    for due in nodes[leader].stop() {
        ask(&mut nodes[leader], &due, &claims[leader], timer.monotonic_ms());
    }
    let stopped_ms = timer.monotonic_ms();
    eventually("the other leads", || turn(&mut nodes) == Some(1 - leader));
    assert!(timer.monotonic_ms() - stopped_ms < LEASE_MS, "it need not wait for the lease");
}

#[test]
fn no_epoch_is_claimed_twice_and_a_look_says_which_is_the_highest() {
    let name = "no_epoch_is_claimed_twice_and_a_look_says_which_is_the_highest";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let claim = claim(&server);
    let holder = |attempt| Holder::new("a", attempt);
    eventually("a claim is free", || is_free(&claim));
    assert_eq!(claim.take(&holder(1), Epoch(51)), GRANTED(51));
    claim.release(&holder(1)).unwrap();
    // The database went back.
    for epoch in [4, 50, 51] {
        assert_eq!(claim.take(&holder(2), Epoch(epoch)), Ok(Grant::Refused), "{epoch}");
    }
    assert_eq!(claim.look().unwrap().highest, Epoch(51));
    assert_eq!(claim.take(&holder(3), Epoch(52)), GRANTED(52));
}

#[test]
fn an_epoch_that_no_row_gave_holds_nobody_up() {
    let Some(server) = TestServer::start("an_epoch_that_no_row_gave_holds_nobody_up") else {
        return;
    };
    let claim = claim(&server);
    eventually("a claim is free", || is_free(&claim));
    let timer = Clock::system();
    for (attempt, invented) in ["1000000000000000", "9e300", "inf", "nan", "rumour"]
        .iter()
        .enumerate()
    {
        let mut connection = server
            .server()
            .connect(timer.monotonic_ms() + 5_000)
            .unwrap();
        connection.end_by(timer.monotonic_ms() + 5_000);
        redis::cmd("SET")
            .arg("bhav:main:epoch")
            .arg(invented)
            .exec(&mut connection)
            .unwrap();
        let holder = Holder::new("a", attempt as u64);
        let epoch = 7 + attempt as u64;
        claim.look().unwrap();
        assert_eq!(claim.take(&holder, Epoch(epoch)), GRANTED(epoch), "{invented}");
        claim.release(&holder).unwrap();
    }
}
