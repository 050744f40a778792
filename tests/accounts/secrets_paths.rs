//! The paths that credentials take through the program, each with values of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sonic_rs::JsonValueTrait;

use super::secrets::World;
use crate::support::canaries::{Canaries, escaped};
use crate::support::upstream::{Said, Upstream};
use crate::support::{Answer, Client, until};

/// One broker's routes, ours and the simulator's.
pub struct Side {
    name: &'static str,
    sync: &'static str,
    activate: &'static str,
    code: &'static str,
    mint: &'static str,
    session: &'static str,
    read: &'static str,
}

pub const A: Side = Side {
    name: "a",
    sync: "/api/portfolio/sync",
    activate: "/brokera/activate",
    code: "request_token",
    mint: "broker_a/request_token",
    session: "broker_a.session",
    read: "broker_a.holdings",
};

pub const B: Side = Side {
    name: "b",
    sync: "/api/portfolio/brokerb-sync",
    activate: "/brokerb/activate",
    code: "api_session",
    mint: "broker_b/api_session",
    session: "broker_b.customerdetails",
    read: "broker_b.dematholdings",
};

/// The simulator's faults, and the status of a sync for each.
const FAULTS: &[(&str, u16)] = &[
    (r#"{"kind":"refuse"}"#, 502),
    (r#"{"kind":"delay","delay_ms":30000}"#, 504),
    (r#"{"kind":"drip","bytes_per_s":20}"#, 504),
    (r#"{"kind":"truncate"}"#, 502),
    (r#"{"kind":"rate_limit"}"#, 429),
    (r#"{"kind":"error_in_200"}"#, 502),
    (r#"{"kind":"html_5xx"}"#, 502),
    (r#"{"kind":"redirect","location":"/a/elsewhere"}"#, 502),
    (r#"{"kind":"wrong_types"}"#, 502),
    (r#"{"kind":"missing_fields"}"#, 502),
    (r#"{"kind":"expired_token"}"#, 401),
];

/// The credentials of one sync.
struct Order {
    key: String,
    secret: String,
    code: String,
}

impl Order {
    fn new(world: &World, path: &str) -> Self {
        let make = |kind| world.canaries.make(kind, path);
        Self {
            key: make("api_key"),
            secret: make("api_secret"),
            code: make("one-time code"),
        }
    }

    fn json(&self, side: &Side) -> String {
        let Self { key, secret, code } = self;
        let name = side.code;
        format!(r#"{{"api_key":"{key}","api_secret":"{secret}","{name}":"{code}"}}"#)
    }
}

/// A numbered app of the simulator, so that no limit of one key is reached.
fn known(world: &World, number: usize) -> String {
    format!("{}-{number}", world.key)
}

fn minted(world: &World, side: &Side) -> String {
    world.scene.control("POST", side.mint, "{}").json()[side.code]
        .as_str()
        .unwrap()
        .to_owned()
}

/// One JSON request on a connection of its own.
pub fn post(world: &World, target: &str, headers: &str, body: &str) -> Answer {
    world.client().send_json("POST", target, headers, body)
}

/// The sync succeeds. Its secret is in the body plainly, and then in escapes.
pub fn accepted(world: &World, side: &Side) {
    let user = world.user(&format!("accepted-{}", side.name));
    for (number, secret) in [world.secret.clone(), escaped(&world.secret)]
        .into_iter()
        .enumerate()
    {
        let order = Order {
            key: known(world, number),
            secret,
            code: minted(world, side),
        };
        post(world, side.sync, &user, &order.json(side)).with_status(200);
    }
    chunked(world, side, &user);
    in_pieces(world, side, &user);
}

fn chunked(world: &World, side: &Side, user: &str) {
    let code = minted(world, side);
    let order = Order {
        key: known(world, 2),
        secret: world.secret.clone(),
        code,
    };
    let body = order.json(side);
    let (first, second) = body.split_at(body.len() / 2);
    let text = format!(
        "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{user}\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        side.sync,
        first.len(),
        second.len()
    );
    assert_eq!(world.client().ask(&text).status, 200);
}

/// Each piece is sent and read before the next.
fn in_pieces(world: &World, side: &Side, user: &str) {
    let code = minted(world, side);
    let order = Order {
        key: known(world, 3),
        secret: world.secret.clone(),
        code,
    };
    let body = order.json(side);
    let head = head(side.sync, user, body.len(), "Connection: close\r\n");
    let mut client = world.client();
    client.write(head);
    for piece in body.as_bytes().chunks(17) {
        client.write(piece);
        // An answer to another connection shows that the edge has run since.
        assert_eq!(world.client().get("/brokera/status").status, 200);
    }
    assert!(client.rest().starts_with("HTTP/1.1 200"));
}

fn head(target: &str, user: &str, length: usize, more: &str) -> String {
    format!(
        "POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{user}{more}\r\n"
    )
}

/// Syncs that the broker refuses.
pub fn refused(world: &World, side: &Side) {
    let user = world.user(&format!("refused-{}", side.name));
    let wrong = |path: &str, set: &dyn Fn(&mut Order)| {
        let mut order = Order::new(world, &format!("{} {path}", side.name));
        set(&mut order);
        let answer = post(world, side.sync, &user, &order.json(side));
        assert_eq!(answer.status, 401, "{path}: {}", answer.text());
    };
    wrong("wrong key", &|_| {});
    wrong("wrong secret", &|order| {
        order.key = known(world, 10);
        order.code = minted(world, side);
    });
    wrong("wrong code", &|order| {
        order.key = known(world, 11);
        order.secret.clone_from(&world.secret);
    });
    wrong("a key that cannot be sent", &|order| order.key += "\\n");
    wrong("no user's code", &|order| order.secret = escaped(&order.secret));
    for secret in ["", ",\"secret\":null"]
        .into_iter()
        .map(str::to_owned)
        .chain((0..2).map(|n| {
            let guess = world
                .canaries
                .make("wrong admin secret", &format!("{} {n}", side.name));
            format!(",\"secret\":\"{guess}\"")
        }))
    {
        let code = world
            .canaries
            .make("one-time code", "an activation without the secret");
        let body = format!("{{\"{}\":\"{code}\"{secret}}}", side.code);
        let status = post(world, side.activate, "", &body).status;
        assert!(matches!(status, 401 | 403 | 409 | 429), "{status}");
    }
}

/// Every fault, at the exchange of the code, at the first read after it, and at an activation.
pub fn misbehaving(world: &World, side: &Side) {
    let user = world.user(&format!("misbehaving-{}", side.name));
    let only_a: &[_] = &[(r#"{"kind":"no_permission"}"#, 403)];
    let faults = FAULTS
        .iter()
        .chain(if side.name == "a" { only_a } else { &[] });
    for (number, (fault, status)) in faults.enumerate() {
        for (place, route) in [side.session, side.read].into_iter().enumerate() {
            // A broker that fails three times in a row is not asked for some seconds.
            working(world, side, &user, 100 + 2 * number + place);
            let mut order = Order::new(world, &format!("{} {fault} at {route}", side.name));
            // A fault that spoils a good answer needs one.
            let rewrites = fault.contains("wrong_types") || fault.contains("missing_fields");
            if route == side.read || rewrites {
                order.key = known(world, 20 + number);
                order.secret.clone_from(&world.secret);
                order.code = minted(world, side);
            }
            world.scene.fault(route, &counted(fault, 2));
            // The broker may be in its cooldown from just before.
            let answer = until("a turn at the broker", || {
                let answer = post(world, side.sync, &user, &order.json(side));
                (answer.status != 429 || *status == 429).then_some(answer)
            });
            assert_eq!(answer.status, *status, "{fault} at {route}: {}", answer.text());
            if route == side.session {
                activate(world, side, fault);
            }
            clear(world, route);
        }
    }
}

/// A sync that succeeds.
fn working(world: &World, side: &Side, user: &str, number: usize) {
    let (key, secret) = (known(world, number), world.secret.clone());
    let order = Order {
        key,
        secret,
        code: minted(world, side),
    };
    // The broker may be in its cooldown from just before.
    let answer = until("a turn at the broker", || {
        let answer = post(world, side.sync, user, &order.json(side));
        (answer.status != 429).then_some(answer)
    });
    answer.with_status(200);
}

/// The administrator's secret is right, the code is wrong, and the broker has the fault too.
fn activate(world: &World, side: &Side, path: &str) {
    let code = world
        .canaries
        .make("one-time code", &format!("{} activation {path}", side.name));
    let secret = &world.admin_secret;
    let body = format!("{{\"{}\":\"{code}\",\"secret\":\"{secret}\"}}", side.code);
    let status = post(world, side.activate, "", &body).status;
    assert!(status >= 400, "{path}: {status}");
}

/// Faults of one side end by themselves, since the other side's must stay.
fn counted(fault: &str, count: u32) -> String {
    fault.replace('}', &format!(",\"count\":{count}}}"))
}

/// Uses up the rest of a fault at `route`.
fn clear(world: &World, route: &str) {
    let path = match route {
        "broker_a.session" => "POST /a/session/token",
        "broker_a.holdings" => "GET /a/portfolio/holdings",
        "broker_b.customerdetails" => "GET /b/customerdetails",
        _ => "GET /b/dematholdings",
    };
    until("the end of a fault", || {
        let set = world
            .scene
            .control("GET", "faults", "")
            .text()
            .contains(route);
        if set {
            let text = format!("{path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
            world.scene.upstream().write(text);
        }
        (!set).then_some(())
    });
}

/// Bodies and requests that reach no handler or no broker.
pub fn misshapen(world: &World, side: &Side) {
    let user = world.user(&format!("misshapen-{}", side.name));
    let body = |path: &str| Order::new(world, &format!("{} {path}", side.name)).json(side);
    let send = |path: &str, body: &str, status: u16| {
        let answer = post(world, side.sync, &user, body);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
    };
    let whole = body("broken JSON");
    send("no end", &whole[..whole.len() - 1], 400);
    send("no comma", &whole.replacen("\",", "\"", 1), 400);
    send("text behind", &format!("{whole}{whole}"), 400);
    send("no quote", &whole.replacen(":\"", ":", 2), 400);
    send("bad escape", &whole.replace('~', "\\x~"), 400);
    send("in a list", &format!("[{whole}]"), 400);
    let twice = body("twice");
    send("twice", &format!("{},{}", &twice[..twice.len() - 1], &twice[1..]), 400);
    send("wrong type", &body("a list").replace(":\"", ":[\"").replace("\",", "\"],"), 400);
    let long = body("too long").replace("\":\"", &format!("\":\"{}", "x".repeat(600)));
    send("too long", &long, 400);
    let large = body("too large").replacen('{', &format!("{{\"a\":\"{}\",", "x".repeat(70_000)), 1);
    send("too large", &large, 413);
    let behind = body("large behind");
    let filler = "x".repeat(70_000);
    send(
        "large behind",
        &format!("{},\"a\":\"{filler}\"}}", &behind[..behind.len() - 1]),
        413,
    );
    for headers in ["", "Authorization: Bearer no.such.token\r\n"] {
        assert_eq!(post(world, side.sync, headers, &body("no user")).status, 401);
    }
    let plain = body("wrong content type");
    for kind in ["text/plain", "application/json; charset=latin1"] {
        let text = head(side.sync, &user, plain.len(), "").replace("application/json", kind);
        assert_eq!(world.client().ask(format!("{text}{plain}")).status, 415);
    }
    let text = head(side.sync, &user, 0, "Transfer-Encoding: chunked\r\n");
    let bad = body("bad chunks");
    for rest in [
        format!("{:x}\r\n{bad}", bad.len() / 2),
        format!("{:x}\r\n{bad}\r\nzz\r\n", bad.len()),
    ] {
        let text = text.replace("Content-Length: 0\r\n", "");
        assert_eq!(world.client().ask(format!("{text}{rest}\r\n\r\n")).status, 400);
    }
    let elsewhere = body("no such path");
    for target in ["/api/portfolio/syncs", "/api/portfolio/holdings"] {
        assert!(matches!(post(world, target, &user, &elsewhere).status, 404 | 405));
    }
}

/// The client ends or stalls before its request or its answer is complete.
pub fn broken_off(world: &World, side: &Side) {
    let user = world.user(&format!("broken-{}", side.name));
    let part = |path: &str, share: usize| {
        let body = Order::new(world, &format!("{} {path}", side.name)).json(side);
        let text = format!("{}{body}", head(side.sync, &user, body.len(), ""));
        let mut client = world.client();
        client.write(&text.as_bytes()[..text.len() - body.len() * share / 4]);
        client
    };
    drop(part("gone in the body", 2));
    part("half closed", 2).finish();
    assert!(part("stalled", 2).rest().starts_with("HTTP/1.1 408"));
    world
        .scene
        .fault(side.session, r#"{"kind":"delay","delay_ms":30000,"count":1}"#);
    let waiting = part("gone before the answer", 0);
    let asked = |route: &str| {
        let faults = world.scene.control("GET", "faults", "");
        !faults.text().contains(route)
    };
    until("the broker was asked", || asked(side.session).then_some(()));
    drop(waiting);
}

/// More syncs of one user than may wait, and a full lane.
pub fn crowded(world: &World, side: &Side) {
    let (one, other) = (world.user("crowded-one"), world.user("crowded-other"));
    let json = |path: &str| Order::new(world, path).json(side);
    // Shorter than a sync's deadline: one that ran out would count as the broker's failure.
    world
        .scene
        .fault(side.session, r#"{"kind":"delay","delay_ms":1200}"#);
    let open = |headers: &str, target: &str, body: &str| {
        let mut client = world.client();
        let more = "Connection: close\r\n";
        let text = format!("{}{body}", head(target, headers, body.len(), more));
        client.write(text);
        client
    };
    let mut waiting: Vec<Client> = (0..6)
        .map(|_| open(&one, side.sync, &json("one user at once")))
        .collect();
    // On a slow machine the first syncs have given up before the lane is full.
    until("a sync that finds the lane full", || {
        waiting.extend((0..80).map(|_| {
            let code = world.canaries.make("one-time code", "a full lane");
            open("", side.activate, &format!("{{\"{}\":\"{code}\"}}", side.code))
        }));
        let said = open(&other, side.sync, &json("a full lane")).rest();
        said.contains("sync_busy").then_some(())
    });
    let said: Vec<String> = waiting.iter_mut().map(Client::rest).collect();
    let told = |code: &str| said.iter().filter(|text| text.contains(code)).count();
    assert!(told("sync_in_progress") >= 1 && told("upstream_busy") >= 1, "{said:?}");
    world.scene.control("DELETE", "faults", "");
}

/// Activations of each broker's shared session.
const ACTIVATIONS: usize = 2;

/// A broker that accepts every code and returns canaries as sessions.
pub fn accepting(canaries: &Arc<Canaries>) -> Upstream {
    let canaries = Arc::clone(canaries);
    let activations = [AtomicUsize::new(0), AtomicUsize::new(0)];
    Upstream::start(move |asked| {
        let of = |ours: bool| {
            let broker = usize::from(asked.target == "/customerdetails");
            let kind = match ours.then(|| activations[broker].fetch_add(1, Ordering::SeqCst)) {
                // The last session is in use while the program runs.
                Some(number) if number + 1 == ACTIVATIONS => "shared session",
                Some(_) => "replaced session",
                None => "session token",
            };
            canaries.make(kind, &asked.target)
        };
        let ours = asked.body.contains("server-key");
        Said::json(match asked.target.as_str() {
            "/session/token" => {
                format!(r#"{{"status":"success","data":{{"access_token":"{}"}}}}"#, of(ours))
            }
            "/customerdetails" => {
                format!(r#"{{"Success":{{"session_token":"{}"}},"Status":200}}"#, of(ours))
            }
            "/portfolio/holdings" => r#"{"status":"success","data":[]}"#.to_owned(),
            "/portfolio/positions" => {
                r#"{"status":"success","data":{"net":[],"day":[]}}"#.to_owned()
            }
            _ => r#"{"Success":null,"Status":200,"Error":"No Data Found"}"#.to_owned(),
        })
    })
}

/// Syncs and activations that work, with a secret of its own for each.
pub fn activated(world: &World) {
    for side in [&A, &B] {
        let user = world.user(&format!("activated-{}", side.name));
        for number in 0..3 {
            let order = Order::new(world, &format!("{} success {number}", side.name));
            post(world, side.sync, &user, &order.json(side)).with_status(200);
        }
        let secret = &world.admin_secret;
        for _ in 0..ACTIVATIONS {
            let code = world
                .canaries
                .make("one-time code", "an activation that works");
            let body = format!("{{\"{}\":\"{code}\",\"secret\":\"{secret}\"}}", side.code);
            let answer = until("room for a call", || {
                let answer = post(world, side.activate, "", &body);
                (answer.status != 429).then_some(answer)
            });
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    }
}
