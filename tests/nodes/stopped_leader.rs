//! A leader that is stopped for longer than its lease and then goes on, while another leads. For a
//! moment two nodes believe that they lead.

use std::collections::BTreeMap;

use bhav::base::Clock;
use bhav::rt::moving::Parker;
use crossbeam_channel::{Sender, bounded};
use sonic_rs::JsonValueTrait;

use super::clients::Clients;
use super::processes::{DEADLINE_MS, Fault, Member, NAMES, STEP_MS, World, registered};
use super::programs::entry;

/// Each time another node has become the leader.
const ROUNDS: u64 = 2;
/// How long clients look on after the leader of before goes on: longer than its answers are late,
/// and than the new leader's next rounds take.
const LOOK_ON_MS: u64 = 3_000;
/// A request to a stopped node waits for as long as that is stopped.
const STOPPED_MS: u64 = 60_000;

/// Looks at every node's epoch until `is_over`, and notes one that goes back.
fn look_on(
    clients: &Clients,
    epochs: &mut BTreeMap<usize, u64>,
    back: &mut Vec<String>,
    is_over: impl Fn() -> bool,
) {
    let parker = Parker::current();
    let begun = Clock::system();
    while !is_over() {
        assert!(begun.monotonic_ms() < STOPPED_MS, "never over: {:?}", clients.leader());
        clients.step();
        for node in 0..NAMES.len() {
            if !clients.runs(node) {
                continue;
            }
            let health = clients.send(node, DEADLINE_MS, "GET", "/api/health", "", "");
            let Some(epoch) = health.and_then(|health| health.json()["epoch"].as_u64()) else {
                continue;
            };
            let before = epochs.insert(node, epoch).unwrap_or_default();
            if epoch < before {
                back.push(format!("node {node}: epoch {epoch} after {before}"));
            }
        }
        parker.park(STEP_MS);
    }
}

#[test]
fn a_leader_that_slept_past_its_lease_is_heard_by_nobody_and_loses_nothing() {
    let name = "a_leader_that_slept_past_its_lease_is_heard_by_nobody_and_loses_nothing";
    let Some(mut world) = World::of(name) else {
        return;
    };
    let clients = Clients::of(world.members.iter().map(Member::address).collect());
    (0..NAMES.len()).for_each(|node| world.start(node, &clients));
    let auth = registered(&clients);
    clients.await_rest();
    let (mut epochs, mut back, mut asked) = (BTreeMap::new(), Vec::new(), Vec::new());
    let (running, stop): (Sender<()>, _) = bounded(0);
    std::thread::scope(|scope| {
        let _running = running;
        clients.watch(scope, &auth, &stop);
        for round in 1..=ROUNDS {
            look_on(&clients, &mut epochs, &mut back, || {
                clients.leader().is_some_and(|(_, epoch)| epoch == round)
            });
            let (slept, _) = clients.leader().unwrap();
            world.begin(Fault::Stop(slept), &clients);
            // What is asked of it meanwhile it does, late, when it goes on.
            let notes = format!("asked of node {slept} while it was stopped");
            let body = entry(&notes);
            let (clients, auth) = (&clients, &auth);
            let waits = scope.spawn(move || {
                clients.send(slept, STOPPED_MS, "POST", "/api/journal", auth, &body)
            });
            look_on(clients, &mut epochs, &mut back, || {
                clients
                    .leader()
                    .is_some_and(|(node, epoch)| epoch > round && node != slept)
            });
            world.end(Fault::Stop(slept), clients);
            let goes_on = Clock::system();
            look_on(clients, &mut epochs, &mut back, || goes_on.monotonic_ms() > LOOK_ON_MS);
            // It may have been away for too long to know whose token still counts.
            match waits.join().unwrap().map(|answer| answer.status) {
                Some(201) => asked.push(notes),
                other => assert_eq!(other, Some(503), "{notes}"),
            }
            let (leader, epoch) = clients.leader().unwrap();
            assert_eq!((leader != slept, epoch), (true, round + 1), "one more leader, no other");
        }
    });
    clients.await_rest();
    clients.await_same();
    let kept = [0, 1, 2].map(|node| clients.journal(node, &auth));
    let (counts, faults, acknowledged) = clients.end();
    let told = format!("{counts:?}, asked of the stopped: {asked:?}");
    assert_eq!(faults, [""; 0], "{told}");
    assert_eq!(back, [""; 0], "{told}");
    assert!(acknowledged.len() > 5 && !asked.is_empty(), "{told}");
    for kept in kept {
        let lost = acknowledged
            .iter()
            .chain(&asked)
            .filter(|notes| !kept.contains(*notes));
        assert_eq!(lost.collect::<Vec<_>>(), [""; 0], "lost: {told}");
    }
    // One stopped between its last look at its lease and a call makes one call too many.
    let stats = world.shared.scene.stats();
    assert!(stats["max_quote_calls_in_1s"].as_i64() <= Some(2), "{told}");
}
