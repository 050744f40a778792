//! Concurrent portfolio requests: reads during changes, simultaneous changes, full lanes.

use std::sync::atomic::{AtomicBool, Ordering};

use bhav::base::Broker;
use crossbeam_channel::{Sender, unbounded};
use sonic_rs::JsonValueTrait;

use super::user::{DATA, HOLDINGS, POSITIONS, User, rows};
use crate::support::until;

#[test]
fn nothing_read_is_older_than_what_was_acknowledged() {
    let user = User::new();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Keeps the cached answers hot, so that an old one could reappear at any moment.
        for target in [HOLDINGS, "/api/portfolio/holdings?broker=b"] {
            let (user, over) = (&user, &over);
            scope.spawn(move || {
                let mut client = user.service.client();
                while !over.load(Ordering::Relaxed) {
                    assert_eq!(client.request("GET", target, &user.auth).status, 200);
                }
            });
        }
        for _ in 0..12 {
            user.synced("b");
            for target in [HOLDINGS, "/api/portfolio/holdings?broker=b"] {
                assert_eq!(rows(&user.get(target).json(), "holdings").len(), 12);
            }
            let deleted = user.service.client().request("DELETE", DATA, &user.auth);
            assert_eq!(deleted.status, 200);
            for target in [HOLDINGS, "/api/portfolio/holdings?broker=b"] {
                assert_eq!(rows(&user.get(target).json(), "holdings").len(), 0);
            }
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn two_syncs_at_once_take_turns() {
    let user = User::new();
    user.scene
        .fault("broker_a.holdings", r#"{"kind":"delay","delay_ms":400,"count":1}"#);
    // A user's second login ends the first session, so the second sync is at the other broker.
    let orders = [user.order("a"), user.order("b")];
    std::thread::scope(|scope| {
        for (route, body) in orders {
            let user = &user;
            scope.spawn(move || {
                user.service.post(route, &user.auth, &body).with_status(200);
            });
        }
    });
    assert_eq!(rows(&user.get(HOLDINGS).json(), "holdings").len(), 24);
}

/// Fills a lane's threads and queue until the returned value is dropped.
fn filled(lane: &bhav::rt::Lane, threads: u64) -> Sender<()> {
    let (release, gate) = unbounded::<()>();
    loop {
        let gate = gate.clone();
        // Read before the job is refused: a thread that begins afterwards makes room again.
        let busy = lane.stats().running == threads;
        let job = lane.submit(60_000, move || {
            // Ends when the sender is dropped.
            let _ = gate.recv();
        });
        if job.is_err() && busy {
            return release;
        }
    }
}

#[test]
fn full_lanes_refuse_at_once_and_what_is_kept_is_served() {
    let user = User::new();
    user.synced("a");
    assert_eq!(user.get(HOLDINGS).status, 200);
    let state = user.service.0.server().shared().service.state();
    let held = filled(&state.brokers[Broker::B].lane, 8);
    let answer = user.sync("b");
    answer.expect_problem(503, "sync_busy");
    assert!(answer.header("retry-after").is_some());
    // The other broker has a lane of its own.
    user.synced("a");
    drop(held);
    assert_eq!(user.get(HOLDINGS).status, 200);
    let held = filled(&state.portfolio.lane, 2);
    user.get(POSITIONS).expect_problem(503, "portfolio_busy");
    assert_eq!(user.get("/api/portfolio/export").status, 200, "on a lane of its own");
    assert_eq!(user.get(HOLDINGS).status, 200);
    drop(held);
    let held = filled(&state.portfolio.export_lane, 1);
    user.get("/api/portfolio/export")
        .expect_problem(503, "portfolio_busy");
    drop(held);
    until("the lane to work again", || (user.get(POSITIONS).status == 200).then_some(()));
    let answers = until("the counters in health", || {
        let answers = user.service.health()["cache_answers"].clone();
        answers["hits"]
            .as_u64()
            .filter(|hits| *hits > 0)
            .map(|_| answers)
    });
    assert!(answers["bytes"].as_u64().unwrap() > 1_000 && answers["users"] == 1);
}

#[test]
fn a_portfolio_is_read_while_the_threads_that_compute_are_all_at_work() {
    let user = User::new();
    // It reads what is held, to judge the list.
    user.service.await_instruments();
    user.synced("a");
    let state = user.service.0.server().shared().service.state();
    let lane = &state.portfolio.lane;
    let (release, gate) = unbounded::<()>();
    for _ in 0..2 {
        let gate = gate.clone();
        let _ = lane.submit(60_000, move || gate.recv()).unwrap();
    }
    until("both threads to be at work", || (lane.stats().running == 2).then_some(()));
    let reads = || state.store.health().readers.completed;
    let before = reads();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| user.get(POSITIONS).status);
        until("the request to wait for a thread", || (lane.stats().depth == 1).then_some(()));
        assert_eq!(reads(), before + 1, "its rows are there");
        drop(release);
        assert_eq!(asked.join().unwrap(), 200);
    });
}

#[test]
fn a_user_with_too_many_changes_under_way_is_refused() {
    let user = User::new();
    let state = user.service.0.server().shared().service.state();
    let id = user.get("/api/portfolio/export").json()["user"]["id"]
        .as_i64()
        .unwrap();
    let lock = state.portfolio.locks.take(id, 0).ok();
    let refused = std::thread::scope(|scope| {
        let deletions: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    user.service
                        .client()
                        .request("DELETE", DATA, &user.auth)
                        .status
                })
            })
            .collect();
        until("all but one to wait", || {
            let locks = &state.portfolio.locks;
            ((locks.waiting(), locks.refused.value()) == (3, 1)).then_some(())
        });
        user.sync("a").expect_problem(409, "sync_in_progress");
        drop(lock);
        deletions
            .into_iter()
            .map(|sent| sent.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert_eq!(refused.iter().filter(|status| **status == 200).count(), 3);
    assert_eq!(refused.iter().filter(|status| **status == 409).count(), 1);
}
