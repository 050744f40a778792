//! Every wrong value under every key of the table, on a real server: who leads leads on, another
//! leads soon after he is gone, and what nodes keep and tell each other goes on.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use crate::base::limiter::Rate;
use crate::base::{Clock, Symbol};
use crate::cache::l2::{Kind, SecondLevel};
use crate::nodes::authorities::ValkeyClaim;
use crate::nodes::lease::{
    Answer, Ask, Authority, AuthorityError, Grant, Holder, LeaseState, LeaseTimes, Look, Request,
    Which,
};
use crate::nodes::limits::SharedLimits;
use crate::nodes::relay::Publisher;
use crate::nodes::relay::follower::{Follower, Inbox};
use crate::nodes::relay::update::tests::{least, quote};
use crate::nodes::relay::update::{Aged, Update};
use crate::nodes::second_level::ValkeyL2;
use crate::nodes::valkey::installation::tests::{SECRET, of};
use crate::nodes::valkey::test_server_stranger::{Act, KeyRow, Stranger, acts};
use crate::nodes::valkey::testing::TestServer;
use crate::nodes::valkey::{Installation, KEPT, KeptType, SIGNED_BYTES, Server};
use crate::store::Epoch;

/// The default lease, of which the page says that another node leads within some seven seconds.
const LEASE_MS: u64 = 5_000;
const LEADS_WITHIN_MS: u64 = 7_000;
/// Passes that a claim needs one after the other: a look, a take, and what the answer changes. On a
/// busy machine each may be late.
const LATE_PASSES: u64 = 3;
const PATIENCE_MS: u64 = 30_000;
const STEP_MS: u64 = 40;
/// A pass this late says that the machine stood still: three of them cost a node its lease without
/// any stranger. Cases that had one begin again.
const STOOD_STILL_MS: u64 = 700;
const BEGINS_MAX: usize = 20;
/// A stranger who does not stop writes this often.
const AGAIN_MS: u64 = 100;

fn rows() -> Vec<KeyRow> {
    KEPT.iter()
        .map(|row| (row.name, row.kept_type.as_str()))
        .collect()
}

fn stranger(server: &TestServer) -> Stranger {
    Stranger::connect(&server.socket()).unwrap()
}

/// The database's row, which may hang.
#[derive(Default)]
struct Row {
    epoch: u64,
    holder: Option<Holder>,
    until_ms: u64,
    hangs: bool,
}

impl Row {
    fn answer(&mut self, request: &Request, now_ms: u64) -> Option<Answer> {
        if self.hangs {
            return None;
        }
        let is_free = self.holder.is_none() || self.until_ms < now_ms;
        let grant = match request {
            Request::Look => {
                let highest = Epoch(self.epoch);
                return Some(Answer::Look(Look { is_free, highest }));
            }
            Request::Take { holder, epoch } if is_free => {
                self.epoch = self.epoch.max(epoch.0) + 1;
                self.holder = Some(holder.clone());
                true
            }
            Request::Renew { holder, .. } => self.holder.as_ref() == Some(holder),
            Request::Take { .. } => false,
            Request::Release { holder } => {
                self.holder.take_if(|held| held == holder);
                return Some(Answer::Failed);
            }
        };
        if grant {
            self.until_ms = now_ms + LEASE_MS;
            return Some(Answer::Grant(Grant::Granted(Epoch(self.epoch))));
        }
        Some(Answer::Grant(Grant::Refused))
    }
}

/// Parts of a case, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Begin,
    /// One writes while all is well.
    Rest,
    /// The database hangs.
    Hang,
    /// The leader is stopped, as by SIGSTOP, for longer than his lease.
    Stopped,
    /// The next leader ends in good order.
    GoodOrder,
    Done,
}

/// Two nodes in a namespace of their own, and what a stranger does there.
struct Case {
    act: Act,
    goes_on: bool,
    acted_ms: u64,
    stepped_ms: Option<u64>,
    claims: [ValkeyClaim; 2],
    nodes: [LeaseState; 2],
    is_stopped: [bool; 2],
    row: Row,
    part: Part,
    since_ms: u64,
    leader: usize,
    /// Time without a leader after a stop, and after a clean end.
    took_ms: [u64; 2],
}

impl Case {
    /// The case of that number, in the namespace of its `begins`-th beginning.
    fn new(server: &Arc<Server>, at: usize, begins: usize) -> Self {
        let namespace = format!("case{at}begin{begins}");
        let (act, goes_on) = lease_acts(&format!("bhav:{namespace}:")).swap_remove(at);
        let installation = of(&namespace, SECRET, None);
        let claim = || ValkeyClaim::new(server, &installation, LEASE_MS);
        let node = |name| LeaseState::new(LeaseTimes::of(LEASE_MS), name, true);
        Self {
            act,
            goes_on,
            acted_ms: 0,
            stepped_ms: None,
            claims: [claim(), claim()],
            nodes: [node("a"), node("b")],
            is_stopped: [false; 2],
            row: Row::default(),
            part: Part::Begin,
            since_ms: 0,
            leader: 0,
            took_ms: [0; 2],
        }
    }

    fn step(&mut self, now_ms: u64, random: &mut fastrand::Rng, stranger: &mut Stranger) {
        if self.goes_on && self.part != Part::Begin && now_ms >= self.acted_ms + AGAIN_MS {
            self.write(now_ms, stranger);
        }
        for at in 0..2 {
            if self.is_stopped[at] {
                continue;
            }
            for ask in self.nodes[at].due(now_ms, random.u64(..)) {
                self.ask(at, &ask, now_ms);
            }
        }
        let leading: Vec<usize> = (0..2)
            .filter(|at| self.nodes[*at].leads(now_ms).is_some())
            .collect();
        assert!(leading.len() < 2, "two leaders: {} in {:?}", self.act.name, self.part);
        self.judge(leading.first().copied(), now_ms, stranger);
    }

    fn write(&mut self, now_ms: u64, stranger: &mut Stranger) {
        stranger.act(&self.act).unwrap();
        self.acted_ms = now_ms;
    }

    fn ask(&mut self, at: usize, ask: &Ask, now_ms: u64) {
        let claim = &self.claims[at];
        let grant =
            |granted: Result<Grant, AuthorityError>| granted.map_or(Answer::Failed, Answer::Grant);
        let answer = match (&ask.request, ask.which) {
            (request, Which::Row) => self.row.answer(request, now_ms),
            (Request::Look, _) => Some(claim.look().map_or(Answer::Failed, Answer::Look)),
            (Request::Take { holder, epoch }, _) => Some(grant(claim.take(holder, *epoch))),
            (Request::Renew { holder, epoch }, _) => Some(grant(claim.renew(holder, *epoch))),
            (Request::Release { holder }, _) => {
                drop(claim.release(holder));
                None
            }
        };
        if let Some(answer) = answer {
            self.nodes[at].answered(ask.id, ask.which, answer, now_ms);
        }
    }

    fn judge(&mut self, leading: Option<usize>, now_ms: u64, stranger: &mut Stranger) {
        let name = &self.act.name;
        let lasts_ms = now_ms - self.since_ms;
        match self.part {
            Part::Begin => {
                let Some(leader) = leading else { return };
                self.leader = leader;
                self.begin(Part::Rest, now_ms, stranger);
            }
            Part::Rest | Part::Hang => {
                assert_eq!(leading, Some(self.leader), "{name} in {:?}", self.part);
                if self.goes_on && self.part == Part::Hang {
                    if lasts_ms > 2 * LEASE_MS {
                        self.part = Part::Done;
                    }
                } else if self.part == Part::Rest && lasts_ms > LEASE_MS && !self.goes_on {
                    self.row.hangs = true;
                    self.begin(Part::Hang, now_ms, stranger);
                } else if lasts_ms > 2 * LEASE_MS {
                    self.row.hangs = false;
                    self.is_stopped[self.leader] = true;
                    self.begin(Part::Stopped, now_ms, stranger);
                }
            }
            Part::Stopped => match leading {
                Some(leader) if leader != self.leader => {
                    self.took_ms[0] = lasts_ms;
                    self.is_stopped[self.leader] = false;
                    self.leader = leader;
                    for ask in self.nodes[leader].stop() {
                        self.ask(leader, &ask, now_ms);
                    }
                    self.begin(Part::GoodOrder, now_ms, stranger);
                }
                _ => assert!(lasts_ms < PATIENCE_MS, "{name}: nobody leads"),
            },
            Part::GoodOrder if leading.is_some() => {
                self.took_ms[1] = lasts_ms;
                self.part = Part::Done;
                if let (true, Some(leader)) = (self.goes_on, leading) {
                    // Last, since nobody sees a claim that is written over again and again: when
                    // the row is free once more, the leader needs it before another takes it.
                    (self.leader, self.row.hangs) = (leader, true);
                    self.begin(Part::Hang, now_ms, stranger);
                }
            }
            Part::GoodOrder => assert!(lasts_ms < PATIENCE_MS, "{name}: nobody leads"),
            Part::Done => {}
        }
    }

    fn begin(&mut self, part: Part, now_ms: u64, stranger: &mut Stranger) {
        (self.part, self.since_ms) = (part, now_ms);
        self.write(now_ms, stranger);
    }
}

/// The acts on the lease's own keys each by itself, those on each other key together; and some of
/// the first ones again and again.
fn lease_acts(prefix: &str) -> Vec<(Act, bool)> {
    let (own, others): (Vec<KeyRow>, Vec<KeyRow>) = rows()
        .into_iter()
        .partition(|(name, _)| ["leader", "epoch"].contains(name));
    let own = acts(prefix, &own);
    let again: Vec<Act> = own.iter().step_by(3).cloned().collect();
    let others = others.into_iter().map(|row| {
        let commands = acts(prefix, &[row])
            .into_iter()
            .flat_map(|act| act.commands)
            .collect();
        Act {
            name: format!("{}: everything", row.0),
            commands,
        }
    });
    let once = own.into_iter().chain(others).map(|act| (act, false));
    once.chain(again.into_iter().map(|act| (act, true)))
        .collect()
}

/// Each wrong value once in each part, and some of them every 100 ms.
#[test]
fn whatever_a_stranger_writes_under_any_key_one_node_leads_soon_and_leads_on() {
    let name = "whatever_a_stranger_writes_under_any_key_one_node_leads_soon_and_leads_on";
    let Some(test_server) = TestServer::start(name) else {
        return;
    };
    let server = test_server.server();
    let timer = Clock::system();
    let mut stranger = stranger(&test_server);
    let mut random = fastrand::Rng::with_seed(5);
    let count = lease_acts("").len();
    let mut cases: Vec<Case> = (0..count).map(|at| Case::new(&server, at, 1)).collect();
    let mut begins = vec![1; count];
    let mut longest_ms = 0;
    while cases.iter().any(|case| case.part != Part::Done) {
        let begun_ms = timer.monotonic_ms();
        for (at, case) in cases.iter_mut().enumerate() {
            if case.part == Part::Done {
                continue;
            }
            // Each case has the time as it is then: the others' calls take some.
            let now_ms = timer.monotonic_ms();
            if case
                .stepped_ms
                .is_some_and(|before_ms| now_ms > before_ms + STOOD_STILL_MS)
            {
                begins[at] += 1;
                assert!(begins[at] <= BEGINS_MAX, "the machine stands still too often");
                *case = Case::new(&server, at, begins[at]);
            }
            case.stepped_ms = Some(now_ms);
            case.step(now_ms, &mut random, &mut stranger);
        }
        longest_ms = longest_ms.max(timer.monotonic_ms() - begun_ms);
        while timer.monotonic_ms() < begun_ms + STEP_MS {
            std::thread::yield_now();
        }
    }
    let late_ms = LATE_PASSES * longest_ms.saturating_sub(STEP_MS);
    let most_begins = begins.iter().max().unwrap();
    let mut told = format!("{count} cases, begun {most_begins} times at most");
    told += &format!(", late by {late_ms} ms at most");
    for (at, what) in ["stopped", "ended in good order"].iter().enumerate() {
        let took = |goes_on| {
            let of = cases.iter().filter(move |case| case.goes_on == goes_on);
            of.map(|case| (case.took_ms[at], case.act.name.as_str()))
        };
        for goes_on in [false, true] {
            let least = took(goes_on).min().unwrap();
            let most = took(goes_on).max().unwrap();
            told += &format!("; {what}, goes on {goes_on}: {} to {most:?} ms", least.0);
            assert!(most.0 < LEADS_WITHIN_MS + late_ms, "{told}");
        }
    }
    // Bypasses the harness, so that the figures can be read after a run.
    std::io::stderr()
        .write_all(format!("{told}\n").as_bytes())
        .unwrap();
}

/// A node that hears one symbol's price, in paise.
pub(super) fn follower(
    server: &Arc<Server>,
    installation: &Arc<Installation>,
) -> (Follower, Arc<AtomicI64>) {
    let heard = Arc::new(AtomicI64::new(0));
    let kept = Arc::clone(&heard);
    let inbox = Inbox {
        update: Box::new(move |update| {
            let is_it = |aged: &&Aged| aged.quote.symbol.as_str() == "NSE:A";
            if let Some(aged) = update.quotes.iter().find(is_it) {
                let paise = i64::try_from(aged.quote.last_price.mantissa()).unwrap();
                kept.store(paise, SeqCst);
            }
            Ok(())
        }),
        sealed: Box::new(|_| ()),
        changed: Box::new(|| ()),
    };
    (Follower::start(server, installation, inbox).unwrap(), heard)
}

/// A message with one quote.
pub(super) fn update(aged: Aged) -> Update {
    let mut update = least();
    update.quotes = vec![aged];
    update
}

pub(super) fn eventually(what: &str, mut holds: impl FnMut() -> bool) -> u64 {
    let timer = Clock::system();
    while !holds() {
        assert!(timer.monotonic_ms() < PATIENCE_MS, "{what}");
        std::thread::yield_now();
    }
    timer.monotonic_ms()
}

#[test]
fn whatever_a_stranger_writes_what_nodes_tell_keep_and_count_goes_on() {
    let name = "whatever_a_stranger_writes_what_nodes_tell_keep_and_count_goes_on";
    let Some(test_server) = TestServer::start(name) else {
        return;
    };
    let server = test_server.server();
    let mut stranger = stranger(&test_server);
    let installation = of("main", SECRET, None);
    let leader = Publisher::new(&server, &installation, "a");
    let l2 = ValkeyL2::new(&server, &installation, 1_000);
    l2.set_epoch(Epoch(1));
    let limits = SharedLimits::new(&server, &installation);
    let rate = Rate::new(1, 1_000);
    let (node, heard) = follower(&server, &installation);
    eventually("subscribed", || node.reading().loads > 0);
    let symbol = Symbol::parse("NSE:A").unwrap();
    let mut paise = 100;
    let mut longest_ms = 0;
    let counts: &dyn crate::base::limiter::SharedCounts = &limits;
    let count = || counts.admit("login", &[b"asha@example.org"], rate, 1);
    assert_eq!(count(), Ok(()));
    for act in acts("bhav:main:", &rows()) {
        let name = &act.name;
        paise += 1;
        let tell = |paise| {
            let aged = Aged {
                quote: quote(symbol.as_str(), paise),
                age_ms: 0,
            };
            leader.publish(Epoch(1), update(aged))
        };
        assert_eq!(tell(paise), Ok(()), "{name}");
        stranger.act(&act).unwrap();
        // A node that starts just then reads what is kept, and hears what is told next.
        let (late, heard_late) = follower(&server, &installation);
        eventually(name, || late.reading().loads > 0);
        paise += 1;
        assert_eq!(tell(paise), Ok(()), "{name}");
        for heard in [&heard, &heard_late] {
            longest_ms = longest_ms.max(eventually(name, || heard.load(SeqCst) == paise));
        }
        stranger.act(&act).unwrap();
        let items = [("NSE:A".to_owned(), vec![7; 60])];
        for kind in [Kind::Quote, Kind::Instruments] {
            assert!(l2.load_all(kind).is_ok(), "{name}");
            assert!(l2.store(kind, &items, 1_000).is_ok(), "{name}");
            assert!(l2.load(kind, "NSE:A").unwrap().is_some(), "{name}");
        }
        assert_eq!(count(), Ok(()), "{name}");
    }
    assert_eq!(node.reading().gaps, 0);
    assert!(longest_ms < 3_000, "{longest_ms}");
    assert!(!server.refusals.foreign().is_empty() && server.refusals.in_force().is_empty());
}

/// Has a node write everything that nodes keep on the server. Returns the holder of its claim.
fn write_everything(server: &Arc<Server>, installation: &Arc<Installation>) -> Holder {
    let claim = ValkeyClaim::new(server, installation, LEASE_MS);
    eventually("a claim is free", || claim.look().is_ok_and(|look| look.is_free));
    let holder = Holder::new(&"n".repeat(100), u64::MAX);
    let epoch = Epoch(u64::MAX >> 12);
    assert_eq!(claim.take(&holder, epoch), Ok(Grant::Granted(epoch)));
    let aged = Aged {
        quote: quote("NSE:A", 100),
        age_ms: 0,
    };
    Publisher::new(server, installation, "a")
        .publish(epoch, update(aged))
        .unwrap();
    let l2 = ValkeyL2::new(server, installation, 1_000);
    l2.set_epoch(epoch);
    for kind in [Kind::Quote, Kind::Instruments] {
        l2.store(kind, &[("NSE:A".to_owned(), vec![7; 60])], 1_000)
            .unwrap();
    }
    let limits = SharedLimits::new(server, installation);
    let counts: &dyn crate::base::limiter::SharedCounts = &limits;
    counts
        .admit("login", &[b"asha@example.org"], Rate::new(600_000, 3), 1)
        .unwrap();
    holder
}

/// After a round of everything, the server has the keys of the table, in its types, forms, sizes
/// and lives, and no others.
#[test]
fn what_nodes_keep_is_what_the_table_says() {
    let Some(test_server) = TestServer::start("what_nodes_keep_is_what_the_table_says") else {
        return;
    };
    let server = test_server.server();
    let mut stranger = stranger(&test_server);
    let installation = of("main", SECRET, None);
    let holder = write_everything(&server, &installation);

    let until_ms = server.timer.monotonic_ms() + 5_000;
    let mut connection = server.connect(until_ms).unwrap();
    connection.end_by(until_ms);
    let mut names: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    names.sort();
    let mut found = Vec::new();
    for name in &names {
        let row = KEPT
            .iter()
            .find(|row| match row.name.strip_suffix('*') {
                Some(begins) => name.starts_with(&format!("bhav:main:{begins}")),
                None => *name == format!("bhav:main:{}", row.name),
            })
            .unwrap_or_else(|| panic!("{name} is not in the table"));
        found.push(row.name);
        let mut ask = |words: &[&str]| -> redis::Value {
            redis::cmd(words[0])
                .arg(&words[1..])
                .query(&mut connection)
                .unwrap()
        };
        let kept_type: String = redis::from_redis_value(ask(&["TYPE", name])).unwrap();
        assert_eq!(kept_type, row.kept_type.as_str(), "{name}");
        let count = match row.kept_type {
            KeptType::Text => "STRLEN",
            KeptType::Hash => "HLEN",
            KeptType::SortedSet => "ZCARD",
        };
        let size: usize = redis::from_redis_value(ask(&[count, name])).unwrap();
        assert!(size <= row.size_max, "{name}: {size}");
        let life_ms: i64 = redis::from_redis_value(ask(&["PTTL", name])).unwrap();
        assert!((1..=row.life_ms_max as i64).contains(&life_ms), "{name}: {life_ms}");
    }
    found.sort_unstable();
    let mut expected = KEPT.map(|row| row.name);
    expected.sort_unstable();
    assert_eq!(found, expected);
    let get = |name: &str| [b"GET".to_vec(), format!("bhav:main:{name}").into_bytes()];
    let held = stranger.send(&get("leader")).unwrap();
    assert_eq!(&held[SIGNED_BYTES..], holder.as_str().as_bytes());
    assert_eq!(stranger.send(&get("epoch")).unwrap().len(), SIGNED_BYTES);
}
