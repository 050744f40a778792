//! Checks any order of joins, batches and give-ups against a model of plain lists.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::tests::{numbered, wide};
use super::{Flight, Wait};

#[derive(Clone, Debug)]
enum Step {
    Join(Vec<usize>),
    GiveUp(usize),
    Take(usize),
    SettleBatch(usize),
    PutBack(usize),
    Settle(Vec<usize>),
    SettleAll,
}

fn step() -> impl Strategy<Value = Step> {
    let some = || prop::collection::vec(0usize..8, 1..5);
    prop_oneof![
        4 => some().prop_map(Step::Join),
        1 => (0usize..4).prop_map(Step::GiveUp),
        3 => (1usize..5).prop_map(Step::Take),
        2 => (0usize..3).prop_map(Step::SettleBatch),
        1 => (0usize..3).prop_map(Step::PutBack),
        1 => some().prop_map(Step::Settle),
        1 => Just(Step::SettleAll),
    ]
}

/// The expected state, in plain lists without tickets.
#[derive(Default)]
struct Model {
    pending: Vec<usize>,
    flights: Vec<Vec<usize>>,
    waits: Vec<BTreeSet<usize>>,
}

impl Model {
    fn settle(&mut self, done: &[usize]) {
        self.pending.retain(|symbol| !done.contains(symbol));
        for list in &mut self.flights {
            list.retain(|symbol| !done.contains(symbol));
        }
        for wait in &mut self.waits {
            wait.retain(|symbol| !done.contains(symbol));
        }
    }

    fn holds(&self, symbol: usize) -> bool {
        self.pending.contains(&symbol) || self.flights.iter().any(|list| list.contains(&symbol))
    }
}

proptest! {
    #[test]
    fn it_behaves_as_the_model(steps in prop::collection::vec(step(), 1..60)) {
        let shared = wide();
        let mut model = Model::default();
        let mut waits: Vec<Wait> = Vec::new();
        let mut flights: Vec<Flight> = Vec::new();
        for step in steps {
            match step {
                Step::Join(names) => {
                    waits.push(shared.join(&numbered(names.iter().copied())).unwrap());
                    for symbol in &names {
                        if !model.holds(*symbol) {
                            model.pending.push(*symbol);
                        }
                    }
                    model.waits.push(names.into_iter().collect());
                }
                Step::GiveUp(at) if at < waits.len() => {
                    drop(waits.remove(at));
                    model.waits.remove(at);
                }
                Step::Take(max) => {
                    let taken = shared.take_pending(max);
                    let count = max.min(model.pending.len());
                    let expected: Vec<usize> = model.pending.drain(..count).collect();
                    prop_assert_eq!(taken.symbols(), numbered(expected.iter().copied()));
                    flights.push(taken);
                    model.flights.push(expected);
                }
                Step::SettleBatch(at) if at < flights.len() => {
                    drop(flights.remove(at));
                    let done = model.flights.remove(at);
                    model.settle(&done);
                }
                Step::PutBack(at) if at < flights.len() => {
                    flights.remove(at).put_back();
                    let back = model.flights.remove(at);
                    model.pending.splice(0..0, back);
                }
                Step::Settle(names) => {
                    shared.settle(&numbered(names.iter().copied()));
                    model.settle(&names);
                }
                Step::SettleAll => {
                    shared.settle(&numbered(0..8));
                    model.settle(&[0, 1, 2, 3, 4, 5, 6, 7]);
                }
                Step::GiveUp(_) | Step::SettleBatch(_) | Step::PutBack(_) => {}
            }
            let held = (0..8).filter(|symbol| model.holds(*symbol)).count();
            let waiting = model.waits.iter().filter(|wait| !wait.is_empty()).count();
            prop_assert_eq!(shared.stats().symbols, held);
            prop_assert_eq!(shared.stats().waiters, waiting);
            for (wait, left) in waits.iter().zip(&model.waits) {
                prop_assert_eq!(wait.is_settled(), left.is_empty());
            }
        }
        drop(flights);
        drop(shared.take_pending(usize::MAX));
        prop_assert!(waits.iter().all(Wait::is_settled));
        prop_assert_eq!(shared.stats().symbols, 0);
    }
}
