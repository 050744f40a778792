//! How often a stream asks for a symbol without a quote: by what the sources are asked, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use serde_json::Value;

use crate::support::upstream::{Said, Upstream};
use crate::support::{Client, EventReader, STREAM, Scene, TRADING, until};

/// What a source says of the symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gives {
    /// An answer without it.
    Nothing,
    /// A price that nobody believes.
    Zero,
}

/// One of the two sources in front of the simulator, without a quote of one symbol. Notes each
/// request that names it, by the scene's clock.
fn source(scene: &Scene, is_public: bool, symbol: &str, gives: Gives) -> (Upstream, Times) {
    let name = symbol.strip_prefix("NSE:").unwrap();
    let named = if is_public {
        format!("{name}.NS")
    } else {
        symbol.to_owned()
    };
    let base = if is_public {
        scene.sim.public_url()
    } else {
        scene.sim.broker_a_url()
    };
    let path = base.split_once("://").unwrap().1;
    let path = path.find('/').map_or("", |at| &path[at..]).to_owned();
    let address = scene.sim.addr().to_string();
    let clock = scene.clock.clone();
    let times = Times::default();
    let noted = times.clone();
    let upstream = Upstream::start(move |asked| {
        let target = asked.target.replace("%3A", ":").replace("%2C", ",");
        let mut names = target.split(['=', '&', ',']);
        let _underway = noted.begin();
        if names.any(|it| it == named) {
            noted.asked.lock().push(clock.monotonic_ms());
        }
        let lines = asked.head.lines().skip(1);
        let kept = lines.filter(|line| !line.to_ascii_lowercase().starts_with("accept-encoding"));
        let head: String = kept.map(|line| format!("{line}\r\n")).collect();
        let method = asked.head.split(' ').next().unwrap();
        let answer = Client::connect(&address)
            .ask(format!("{method} {path}{} HTTP/1.1\r\n{head}{}", asked.target, asked.body));
        let text = answer.decoded();
        let body = serde_json::from_str(&text).map_or(text, |mut json: Value| {
            edit(&mut json, &named, gives);
            json.to_string()
        });
        let content_type = answer
            .header("content-type")
            .unwrap_or("text/csv")
            .to_owned();
        Said {
            status: answer.status,
            content_type,
            ..Said::json(body)
        }
    });
    (upstream, times)
}

fn edit(json: &mut Value, named: &str, gives: Gives) {
    if let Some(results) = json
        .pointer_mut("/spark/result")
        .and_then(Value::as_array_mut)
    {
        results.retain(|result| result["symbol"] != named);
    }
    let Some(data) = json.get_mut("data").and_then(Value::as_object_mut) else {
        return;
    };
    match gives {
        Gives::Nothing => drop(data.remove(named)),
        Gives::Zero => {
            if let Some(quote) = data.get_mut(named) {
                quote["last_price"] = 0.into();
            }
        }
    }
}

#[derive(Clone, Default)]
struct Times {
    asked: Arc<Mutex<Vec<u64>>>,
    underway: Arc<AtomicUsize>,
    /// Looks in a row at which the clock was held.
    held: Arc<AtomicUsize>,
}

/// Most of them, some two seconds: a request whose answer never comes must not stop the clock.
const HELD_MAX: usize = 100;

/// A request that is not answered yet.
struct Underway(Arc<AtomicUsize>);

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Times {
    fn begin(&self) -> Underway {
        self.underway.fetch_add(1, Relaxed);
        Underway(Arc::clone(&self.underway))
    }

    /// Moves the scene's clock, unless a request waits for its answer. On a busy machine the clock
    /// would pass the deadline of the call, which is then made again.
    fn advance(&self, scene: &Scene, step_ms: u64) {
        if self.underway.load(Relaxed) == 0 || self.held.fetch_add(1, Relaxed) >= HELD_MAX {
            self.held.store(0, Relaxed);
            scene.advance_ms(step_ms as i64);
        }
    }

    /// Time between two requests, of the first three. One that follows within `repeats_ms` repeats
    /// a call that failed: on a busy machine the clock of a test passes an answer's deadline.
    fn between(&self, repeats_ms: u64) -> Option<[u64; 2]> {
        let times = self.asked.lock();
        let mut firsts: Vec<u64> = Vec::new();
        let mut before = None;
        for at in times.iter().copied() {
            if before.is_none_or(|before| at - before > repeats_ms) {
                firsts.push(at);
            }
            before = Some(at);
        }
        let [first, second, third, ..] = firsts[..] else {
            return None;
        };
        Some([second - first, third - second])
    }
}

/// The page on the API says each of these times.
#[test]
fn a_symbol_without_a_quote_is_asked_for_again_as_the_page_says() {
    for (is_public, symbol, gives, seconds) in [
        (false, "NSE:WIPRO", Gives::Zero, 5),
        (false, "NSE:WIPRO", Gives::Nothing, 60),
        (true, "NSE:WIPRO", Gives::Nothing, 60),
        (false, "NSE:NOSUCH", Gives::Nothing, 15 * 60),
        (true, "NSE:NOSUCH", Gives::Nothing, 15 * 60),
    ] {
        let what = format!("{symbol}, public {is_public}, {gives:?}");
        let scene = Scene::still_at(TRADING);
        let (upstream, times) = source(&scene, is_public, symbol, gives);
        let mut config = scene.config();
        if is_public {
            config.broker_a.access_token = None;
            config.public.url = upstream.url();
        } else {
            config.broker_a.url = upstream.url();
        }
        let service = scene.start_with(&config);
        let mut step_ms: u64 = 250;
        // Steps of a quarter of a minute pass the deadlines of calls: some are made twice, some are
        // lost. On a slow machine so do the usual ones.
        let is_long = seconds >= 900;
        let repeats_ms = match seconds {
            900.. => 60_000,
            60.. => 10_000,
            _ => 0,
        };
        until("the lists and prices", || {
            times.advance(&scene, step_ms);
            let is_fresh = service
                .get("/api/index/snapshot")
                .text()
                .contains("\"stale\":false");
            (is_fresh && (is_public || service.has_instruments())).then_some(())
        });
        let mut reader =
            EventReader::open(&service, &format!("{STREAM}?symbols=NSE:TCS,{symbol}"), "");
        let between = until(&what, || {
            times.advance(&scene, step_ms);
            reader.look();
            // Once it is told as unavailable, long steps do.
            while let Some(event) = reader.ready() {
                if event
                    .data
                    .contains(&format!("\"unavailable\":[\"{symbol}\"]"))
                {
                    step_ms = step_ms.max(seconds * 1_000 / 60);
                }
            }
            times
                .between(repeats_ms)
                .ok_or_else(|| format!("{:?}", times.asked.lock()))
        });
        let least_ms = seconds * 1_000;
        let lost_ms = if is_long { least_ms + repeats_ms } else { 0 };
        let most_ms = least_ms + 12_000 + 2 * step_ms + lost_ms;
        // The first call goes out some time after the stream has begun to count.
        let [first_ms, next_ms] = between;
        assert!(next_ms + 1_000 + step_ms >= least_ms, "{what}: {between:?}");
        assert!(first_ms <= most_ms && next_ms <= most_ms, "{what}: {between:?}");
    }
}
