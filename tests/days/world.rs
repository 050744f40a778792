//! The world of a day and the service in it, in the one thread of a stage.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use bhav::api::Api;
use bhav::app::{ReadFiles, assemble};
use bhav::base::clock::instant;
use bhav::base::{Clock, ManualClock};
use bhav::brokers::speak_to;
use bhav::config::Config;
use bhav::http::connection::exchange::Offline;
use bhav::http::settings::HttpSettings;
use bhav::http::{BodyLimits, Problem, Request, Response, Serve, Upload};
use bhav::market::MarketSettings;
use bhav::ops::state_lock::InstanceLock;
use bhav::rt::moving::Parker;
use bhav::rt::staged::Stage;
use bhav::sim::{Sessions, SimSettings};
use bhav::store::FILE_NAME;
use bhav::warmers::Warmers;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use sonic_rs::Value;

use super::dates::{Dates, Kind, empty_file};
use super::peer::SimPeer;

/// Two shares in place of the fifty whose candles a first start would fetch.
const UNIVERSE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/universe.txt");
/// Events that a failure shows.
const EVENTS_SHOWN: usize = 60;
/// Longest that a service takes to store what it has when it is stopped.
const STOP_MS: u64 = 5_000;

/// What happened, in order: the last events for a person, and a digest of all.
pub struct Events {
    pub digest: u64,
    pub count: u64,
    last: VecDeque<String>,
}

impl Events {
    fn note(&mut self, line: String) {
        // FNV-1a.
        for byte in line.bytes().chain([b'\n']) {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.count += 1;
        if self.last.len() == EVENTS_SHOWN {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    /// The last of them, a line each.
    pub fn shown(&self) -> String {
        self.last.iter().map(|line| format!("  {line}\n")).collect()
    }
}

impl Default for Events {
    fn default() -> Self {
        Self {
            digest: 0xcbf2_9ce4_8422_2325,
            count: 0,
            last: VecDeque::new(),
        }
    }
}

/// The outside world: clock, exchange, disk.
pub struct World {
    pub clock: ManualClock,
    pub peer: Arc<SimPeer>,
    pub stage: Stage,
    pub events: Rc<RefCell<Events>>,
    pub dates: Dates,
    /// Whether the operator's calendar says what the exchange's does.
    pub is_told: Cell<bool>,
    /// The operator's calendar.
    calendar_file: PathBuf,
    disk: tempfile::TempDir,
}

impl World {
    /// On the morning of the first of the dates that `rng` draws.
    pub fn new(seed: u64, rng: &mut fastrand::Rng, events: &Rc<RefCell<Events>>) -> Self {
        // In memory where that can be had: a day commits some hundred times.
        let disk = tempfile::Builder::new()
            .prefix("bhav-day")
            .tempdir_in("/dev/shm");
        let disk = disk.or_else(|_| tempfile::tempdir()).unwrap();
        let dates = Dates::draw(rng, disk.path());
        let clock = Clock::manual(at(dates.played[0], 8 * 3_600));
        let stage = Stage::set(&clock, seed);
        let sessions = Sessions::new(dates.trades_on()).at_hours_of(Arc::clone(&dates.calendar));
        let settings = SimSettings {
            // The same prices for all: a new seed would make years of candles anew.
            seed: 1,
            sessions,
            ..SimSettings::default()
        };
        let upstream = Config::default().upstream;
        let peer =
            SimPeer::new(settings, &clock, upstream.read_timeout_ms, upstream.total_timeout_ms);
        let peer = Arc::new(peer);
        speak_to(Some(peer.clone()));
        let calendar_file = empty_file(disk.path());
        let events = Rc::clone(events);
        let is_told = Cell::new(dates.kind != Kind::HoursChange);
        Self {
            clock,
            peer,
            stage,
            events,
            dates,
            is_told,
            calendar_file,
            disk,
        }
    }

    pub fn note(&self, what: &str) {
        let at = self.clock.now();
        self.events.borrow_mut().note(format!("{at:.3} {what}"));
    }

    pub fn control(&self, method: &str, target: &str, body: &str) -> Value {
        let (status, document) = self.peer.control(method, target, body);
        assert_eq!(status, 200, "{method} {target} {body}: {}", text(&document));
        sonic_rs::from_slice(&document).unwrap()
    }

    /// Where the database is.
    pub fn database(&self) -> PathBuf {
        self.disk.path().join(FILE_NAME)
    }

    /// Starts the service as `serve` does, but for its listeners. At the close it values so many
    /// users at a time.
    pub fn start(&self, page_users: usize) -> Node {
        self.note("the service starts");
        let mut config = Config {
            state_dir: self.disk.path().into(),
            ..Config::default()
        };
        config.close.page_users = page_users;
        config.market.universe_file = Some(UNIVERSE.into());
        config.market.calendar_file = Some(self.calendar_file.clone());
        // And three indices, which are only drawn.
        config.market.candles_beyond_max = 3;
        config.broker_a.url = SimPeer::url("a");
        config.broker_a.api_key = Some("simkeya".into());
        config.broker_a.access_token = Some("simtokena".into());
        config.broker_b.url = SimPeer::url("b");
        config.public.url = SimPeer::url("p");
        (config.broker_a.lane_threads, config.broker_b.lane_threads) = (2, 1);
        // As many passes as by default; the memory is what takes the time.
        config.auth.argon2_memory_kib = 1_024;
        config.auth.login_attempts_per_minute = 0;
        config.auth.registration_attempts_per_minute = 0;
        config.upstream.sync_attempts_per_minute = 0;
        let lock = Arc::new(InstanceLock::of(&config.state_dir));
        // A program that another test starts shares the lock of the instance before between its
        // fork and its exec. Without the lock this one would keep no prices.
        while lock.hold().is_err() {
            Parker::current().park(1);
        }
        let built = assemble(&config, &lock, &self.clock).unwrap();
        let warmers = Warmers::start(built.context, built.mailbox, built.reporter).unwrap();
        let api = Arc::new(Api::new(built.state));
        Node {
            api,
            clock: self.clock.clone(),
            warmers,
            lock,
            market: config.market,
        }
    }

    /// The operator puts the changed hours into the calendar's file, and has the process that runs
    /// read it again.
    pub fn change_hours(&self, node: Option<&Node>) {
        self.note("the operator's calendar changes");
        self.dates.write(&self.calendar_file);
        if let Some(node) = node {
            let mut faults = Vec::new();
            let files = ReadFiles::read(&node.market, &mut faults).expect("a calendar");
            files.put_in_force(node.api.state(), &node.warmers);
        }
        self.is_told.set(true);
    }

    /// The phases that a document may show which was made within the last `ms`.
    pub fn phases_within(&self, ms: i64) -> Option<[&'static str; 2]> {
        let now = self.clock.now();
        let before = now - SignedDuration::from_millis(ms);
        self.is_told
            .get()
            .then(|| [self.dates.phase(now), self.dates.phase(before)])
    }

    /// Stops the service as a signal does.
    pub fn stop(&self, node: Node) {
        self.note("the service stops");
        let store = Arc::clone(&node.api.state().store);
        node.warmers.stop();
        let until = self.clock.monotonic_ms() + STOP_MS;
        self.stage.run_until(until, || true);
        store.close();
        drop((node.api, node.lock, store));
        self.stage.kill();
    }

    /// The process ends at once. What it had written stays, and what was being written may be torn.
    /// Whether the prices that it had kept are still there.
    pub fn kill(&self, node: Node, rng: &mut fastrand::Rng) -> bool {
        self.note("the service is killed");
        let written = files(self.disk.path());
        // What unwinds closes files, which a process that ends at once does not.
        self.stage.kill();
        drop(node);
        self.put_back(&written);
        let noise: Vec<u8> = (0..rng.usize(1..4_000)).map(|_| rng.u8(..)).collect();
        match rng.u8(..6) {
            0 => {
                self.note("half a frame is behind the database's last commit");
                let log = self.disk.path().join(format!("{FILE_NAME}-wal"));
                let mut bytes = fs::read(&log).unwrap_or_default();
                bytes.extend(&noise);
                fs::write(log, bytes).unwrap();
                true
            }
            1 => {
                self.note("the second level is nonsense");
                fs::write(self.disk.path().join("l2.sqlite"), noise).unwrap();
                false
            }
            _ => true,
        }
    }

    /// Into the same files: the service tells a database that was replaced by its inode.
    fn put_back(&self, written: &BTreeMap<PathBuf, Vec<u8>>) {
        for gone in files(self.disk.path())
            .into_keys()
            .filter(|path| !written.contains_key(path))
        {
            fs::remove_file(gone).unwrap();
        }
        for (path, bytes) in written {
            fs::write(path, bytes).unwrap();
        }
    }

    /// Time passes without a service.
    pub fn sleep_until(&self, at: Timestamp) {
        let left_ms = at.as_millisecond() - self.clock.now_ms();
        self.clock.advance_ms(left_ms.max(1_500));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        speak_to(None);
    }
}

fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    paths
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

/// A process of the service.
pub struct Node {
    pub api: Arc<Api>,
    clock: Clock,
    warmers: Warmers,
    lock: Arc<InstanceLock>,
    market: MarketSettings,
}

impl Node {
    /// A connection of its own, without a socket.
    pub fn client(&self) -> Client {
        let service = Shared(Arc::clone(&self.api));
        Client(Offline::new(&HttpSettings::default(), &self.clock, service))
    }
}

/// The service behind every client's connection.
struct Shared(Arc<Api>);

impl Serve for Shared {
    fn kinds(&self) -> usize {
        self.0.kinds()
    }

    fn serve<'a>(&'a self, request: &Request<'_>, reply: &mut Response<'a>) {
        self.0.serve(request, reply);
    }

    fn body_limits(&self, head: &Request<'_>, settings: &HttpSettings) -> BodyLimits {
        self.0.body_limits(head, settings)
    }

    fn admit(&self, head: &Request<'_>) -> Result<i64, Problem> {
        self.0.admit(head)
    }

    fn refuse_upload(&self, head: &Request<'_>, problem: &Problem, reply: &mut Response<'_>) {
        self.0.refuse_upload(head, problem, reply);
    }

    fn serve_upload<'a>(&'a self, request: &Request<'_>, upload: Upload, reply: &mut Response<'a>) {
        self.0.serve_upload(request, upload, reply);
    }
}

pub struct Client(Offline<Shared>);

/// An answer's status and body.
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Client {
    /// `token` may be empty.
    pub fn ask(&mut self, method: &str, target: &str, token: &str, body: &str) -> Answer {
        self.ask_with(method, target, token, "application/json", body)
    }

    /// With a body of this media type.
    pub fn ask_with(
        &mut self,
        method: &str,
        target: &str,
        token: &str,
        media: &str,
        body: &str,
    ) -> Answer {
        let mut request = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n");
        if !token.is_empty() {
            request += &format!("Authorization: Bearer {token}\r\n");
        }
        if method == "POST" {
            let length = body.len();
            request += &format!("Content-Type: {media}\r\nContent-Length: {length}\r\n");
        }
        let answer = self.0.exchange(format!("{request}\r\n{body}").as_bytes());
        let end = answer
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap()
            + 4;
        let status = text(&answer[9..12]).parse().unwrap();
        Answer {
            status,
            body: answer[end..].to_vec(),
        }
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        sonic_rs::from_slice(&self.body).unwrap()
    }

    pub fn text(&self) -> String {
        text(&self.body)
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The instant so many seconds after midnight, in India.
pub fn at(date: Date, second: u64) -> Timestamp {
    instant(date.at(0, 0, 0, 0)) + SignedDuration::from_secs(second as i64)
}
