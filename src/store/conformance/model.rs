//! Random operations of two users, compared with a model in memory.

use std::collections::BTreeMap;

use jiff::civil::{Date, date};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert_eq, prop_oneof, proptest};
use proptest::test_runner::Config;

use super::engine::{Engine, on_each_engine};
use super::samples::{derived, fields, holding, point, position, user};
use crate::base::{Account, Broker, Holding, Position, PositionKind, Synced};
use crate::portfolio::{DayPoint, PointSource};
use crate::store::{
    AccountId, Derive, Expected, JournalEntry, JournalFields, NewPortfolio, Portfolio, Revision,
    States, Store, StoreError, SyncState, Turn,
};

on_each_engine! {
    two_users_work_equals_the_model,
}

/// Random sequences of steps.
const CASES: u32 = 48;

/// The model of one user's data.
#[derive(Default)]
struct Model {
    portfolio: BTreeMap<Broker, (i64, Vec<Holding>, Vec<Position>)>,
    points: BTreeMap<Date, DayPoint>,
    journal: Vec<JournalEntry>,
    /// Revision of each entry as it was added.
    seen: BTreeMap<i64, Revision>,
}

#[derive(Clone, Debug)]
enum Step {
    Sync {
        broker: Broker,
        holdings: Vec<u8>,
        positions: Vec<u8>,
        day: i8,
    },
    DeletePortfolio,
    Add {
        day: i8,
        text: String,
    },
    /// Replaces an entry, chosen by its number among all that were ever added by either user. The
    /// change expects the entry as it was added, or any state.
    Replace {
        nth: usize,
        day: i8,
        text: String,
        as_added: bool,
    },
    Delete {
        nth: usize,
        as_added: bool,
    },
}

/// Text without a zero byte, which is refused before the store.
const TEXT: &str = "[^\\x00]{0,12}";

fn step() -> impl Strategy<Value = (bool, Step)> {
    let broker = any::<bool>().prop_map(|a| if a { Broker::A } else { Broker::B });
    let sync = (broker, vec(0..9u8, 0..5), vec(0..9u8, 0..4), 0..4i8).prop_map(
        |(broker, holdings, positions, day)| Step::Sync {
            broker,
            holdings,
            positions,
            day,
        },
    );
    let step = prop_oneof![
        4 => sync,
        1 => proptest::strategy::Just(Step::DeletePortfolio),
        4 => (0..4i8, TEXT).prop_map(|(day, text)| Step::Add { day, text }),
        3 => (0..12usize, 0..4i8, TEXT, any::<bool>())
            .prop_map(|(nth, day, text, as_added)| Step::Replace { nth, day, text, as_added }),
        2 => (0..12usize, any::<bool>())
            .prop_map(|(nth, as_added)| Step::Delete { nth, as_added }),
    ];
    (any::<bool>(), step)
}

fn day(number: i8) -> Date {
    date(2026, 11, 16 + number)
}

fn entry_fields(number: i8, text: &str) -> JournalFields {
    JournalFields {
        notes: (!text.is_empty()).then(|| text.to_owned()),
        tags: vec![text.to_owned()],
        ..fields(day(number), text)
    }
}

impl Model {
    fn portfolio(&self) -> Portfolio {
        let mut all = Portfolio::default();
        for (broker, (synced_ms, holdings, positions)) in &self.portfolio {
            all.holdings.extend(holdings.iter().cloned());
            all.positions.extend(positions.iter().cloned());
            let account = Account::at(*broker);
            let synced_ms = *synced_ms;
            all.syncs.push(SyncState {
                account,
                synced_ms,
                simulated: false,
                broker_user: None,
            });
        }
        all
    }

    fn journal(&self) -> Vec<JournalEntry> {
        let mut sorted = self.journal.clone();
        sorted.sort_by_key(|entry| std::cmp::Reverse((entry.fields.traded_on, entry.id)));
        sorted
    }

    /// Text as it is stored, tags as a JSON array.
    fn journal_bytes(&self) -> usize {
        let optional = |text: &Option<String>| text.as_deref().unwrap_or_default().len();
        let of = |fields: &JournalFields| {
            let tags = serde_json::to_string(&fields.tags).unwrap();
            let named = fields.symbol.len() + tags.len();
            named + optional(&fields.strategy) + optional(&fields.notes)
        };
        self.journal.iter().map(|entry| of(&entry.fields)).sum()
    }

    /// Applies `step` to the model and to the store, and compares their results.
    fn take(
        &mut self,
        store: &Store,
        id: AccountId,
        step: Step,
        now_ms: i64,
        added: &mut Vec<i64>,
    ) {
        match step {
            Step::Sync {
                broker,
                holdings,
                positions,
                day,
            } => {
                self.sync(store, id, (broker, &holdings, &positions), day, now_ms);
            }
            Step::DeletePortfolio => {
                let had = self.portfolio();
                let deleted = store.delete_portfolio(&Turn::alone(id)).unwrap();
                assert_eq!(deleted.holdings as usize, had.holdings.len());
                assert_eq!(deleted.positions as usize, had.positions.len());
                assert_eq!(deleted.pnl_snapshots as usize, self.points.len());
                self.portfolio.clear();
                self.points.clear();
            }
            Step::Add { day, text } => {
                let entry = store
                    .add_entry(id, entry_fields(day, &text), now_ms, None)
                    .unwrap();
                added.push(entry.id);
                self.seen.insert(entry.id, entry.revision());
                self.journal.push(entry);
            }
            Step::Replace {
                nth,
                day,
                text,
                as_added,
            } => {
                let Some(&entry_id) = added.get(nth) else {
                    return;
                };
                let fields = entry_fields(day, &text);
                let (expected, met) = self.expected(entry_id, as_added);
                let replaced = store.replace_entry(id, entry_id, fields.clone(), now_ms, expected);
                let mine = self.journal.iter_mut().find(|entry| entry.id == entry_id);
                if let Some(entry) = mine.filter(|_| met) {
                    (entry.fields, entry.updated_ms) = (fields, now_ms);
                    assert_eq!(replaced, Ok(Some(entry.clone())));
                } else {
                    assert_eq!(replaced, met.then_some(None).ok_or(StoreError::NotAsExpected));
                }
            }
            Step::Delete { nth, as_added } => {
                let Some(&entry_id) = added.get(nth) else {
                    return;
                };
                let (expected, met) = self.expected(entry_id, as_added);
                let had = self.journal.len();
                self.journal.retain(|entry| entry.id != entry_id || !met);
                let deleted = store.delete_entry(id, entry_id, expected);
                let gone = self.journal.len() < had;
                assert_eq!(deleted, met.then_some(gone).ok_or(StoreError::NotAsExpected));
            }
        }
    }

    fn sync(
        &mut self,
        store: &Store,
        id: AccountId,
        (broker, holdings, positions): (Broker, &[u8], &[u8]),
        number: i8,
        now_ms: i64,
    ) {
        let ticker = |n: &u8| format!("T{n}");
        let synced = Synced {
            holdings: holdings
                .iter()
                .map(|n| holding(broker, &ticker(n), &format!("{n}.50")))
                .collect(),
            positions: positions
                .iter()
                .map(|n| position(broker, PositionKind::Net, &ticker(n)))
                .collect(),
            ..Synced::default()
        };
        let expected = self.portfolio();
        let made = point(day(number), &now_ms.to_string(), PointSource::Sync);
        let written = derived(made.clone(), &synced);
        let answer = written.clone();
        let sent = synced.clone();
        let derive: Derive = Box::new(move |before, synced| {
            assert_eq!((&before.portfolio, synced), (&expected, &sent));
            answer.clone()
        });
        let rows = (now_ms, synced.holdings.clone(), synced.positions.clone());
        let done = store.replace_portfolio(
            &Turn::alone(id),
            NewPortfolio::of(Account::at(broker), now_ms, synced, derive),
        );
        assert_eq!(done, Ok(written.outcome));
        self.portfolio.insert(broker, rows);
        self.points.insert(made.date, made);
    }

    /// The precondition of a change, and whether it holds. For a missing entry it does not matter.
    fn expected(&self, entry_id: i64, as_added: bool) -> (Expected, bool) {
        let Some(added) = self.seen.get(&entry_id).filter(|_| as_added) else {
            return (Expected::default(), true);
        };
        let one_of = Some(States::These(vec![added.clone()]));
        let entry = self.journal.iter().find(|entry| entry.id == entry_id);
        let met = entry.is_none_or(|entry| entry.revision() == *added);
        (
            Expected {
                one_of,
                none_of: None,
            },
            met,
        )
    }
}

fn two_users_work_equals_the_model<E: Engine>() {
    proptest!(Config { cases: CASES, ..Config::default() }, |(steps in vec(step(), 1..40))| {
        let engine = E::fresh();
    let store = engine.open();
        let ids = [user(&store, "a@example.com"), user(&store, "b@example.com")];
        let mut models = [Model::default(), Model::default()];
        let mut added = Vec::new();
        for (now_ms, (second, step)) in (1i64..).zip(steps) {
            let at = usize::from(second);
            models[at].take(&store, ids[at], step, now_ms, &mut added);
        }
        drop(store);
        let store = engine.open();
        for (id, model) in ids.into_iter().zip(&models) {
            prop_assert_eq!(store.portfolio(id).unwrap(), model.portfolio());
            let points: Vec<_> = model.points.values().cloned().collect();
            prop_assert_eq!(store.points(id, day(0)).unwrap(), points);
            prop_assert_eq!(store.entries(id, None, 1_000).unwrap().entries, model.journal());
            prop_assert_eq!(store.journal_size(id).unwrap().text_bytes, model.journal_bytes());
            let erased = store.erase_user(id).unwrap().unwrap();
            prop_assert_eq!(erased.journal_entries as usize, model.journal.len());
        }
    });
}
