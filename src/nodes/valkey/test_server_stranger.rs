//! A stranger on the shared server, for tests: what he writes under a key, in each wrong type,
//! form, size, number and life. Unit tests and integration tests share this file.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A command of the server's own protocol.
pub(crate) type Command = Vec<Vec<u8>>;

/// One thing that a stranger does to a key.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    /// The key, below the namespace, and what happens to it.
    pub(crate) name: String,
    pub(crate) commands: Vec<Command>,
}

/// A key of the table: its name below the namespace, and its type.
pub(crate) type KeyRow = (&'static str, &'static str);

const MIB: usize = 1024 * 1024;
/// Above what any hash of the relay may have.
const FIELDS: usize = 10_001;
const DEADLINE: Duration = Duration::from_secs(5);

fn command(words: &[&[u8]]) -> Command {
    words.iter().map(|word| word.to_vec()).collect()
}

/// A value in the form of a signed one, whose tag nobody made.
fn unsigned(epoch: u64, number: u64, body: &[u8]) -> Vec<u8> {
    [
        &[7; 32][..],
        &epoch.to_be_bytes(),
        &number.to_be_bytes(),
        body,
    ]
    .concat()
}

/// Everything that a stranger does to the keys of these rows, whose names begin with `prefix`. In
/// the name of a row `*` becomes one bucket.
pub(crate) fn acts(prefix: &str, rows: &[KeyRow]) -> Vec<Act> {
    rows.iter().flat_map(|row| acts_on(prefix, *row)).collect()
}

fn acts_on(prefix: &str, (name, kept_type): KeyRow) -> Vec<Act> {
    let name = name.replace('*', "0badcafe");
    let key = [prefix.as_bytes(), name.as_bytes()].concat();
    let key = &key[..];
    let mut acts = Vec::new();
    let mut act = |what: &str, commands: Vec<Command>| {
        acts.push(Act {
            name: format!("{name}: {what}"),
            commands,
        });
    };
    let delete = || command(&[b"DEL", key]);
    for (of_type, write) in [
        ("string", command(&[b"SET", key, b"x"])),
        ("list", command(&[b"RPUSH", key, b"x"])),
        ("hash", command(&[b"HSET", key, b"x", b"x"])),
        ("set", command(&[b"SADD", key, b"x"])),
        ("zset", command(&[b"ZADD", key, b"1", b"x"])),
        ("stream", command(&[b"XADD", key, b"*", b"x", b"x"])),
    ] {
        if of_type != kept_type {
            act(&format!("a {of_type}"), vec![delete(), write]);
        }
    }
    match kept_type {
        "string" => {
            for (what, value) in texts() {
                act(&what, vec![command(&[b"SET", key, &value])]);
                if name == "leader" {
                    let set = command(&[b"SET", key, &value, b"PX", b"86400000"]);
                    act(&format!("{what}, for a day"), vec![set]);
                }
            }
        }
        "hash" => {
            for (what, fields) in hashes() {
                let mut words = command(&[b"HSET", key]);
                words.extend(fields);
                act(what, vec![words]);
            }
        }
        _ => {
            for score in ["-inf", "inf", "0", "9223372036854775807", "1e300"] {
                act(score, vec![command(&[b"ZADD", key, score.as_bytes(), b"somebody"])]);
            }
            let big = vec![b'k'; MIB];
            act("a member of 1 MiB", vec![command(&[b"ZADD", key, b"1", &big])]);
        }
    }
    act("without an end", vec![command(&[b"PERSIST", key])]);
    act("a long life", vec![command(&[b"PEXPIRE", key, b"999999999999"])]);
    act("1 ms to live", vec![command(&[b"PEXPIRE", key, b"1"])]);
    act("gone", vec![delete()]);
    acts
}

/// Wrong forms, sizes and numbers of a string.
fn texts() -> Vec<(String, Vec<u8>)> {
    let evil = b"evil/0123456789abcdef";
    let mut texts: Vec<(String, Vec<u8>)> = [
        "garbage",
        "",
        "0 evil/evil",
        "999999999 evil/evil",
        "1 evil/0123456789abcdef",
        "-1",
        "0",
        "9223372036854775807",
        "18446744073709551616",
        "1e300",
        "inf",
        "nan",
        "0x7fffffffffffffff",
    ]
    .iter()
    .map(|text| (format!("'{text}'"), text.as_bytes().to_vec()))
    .collect();
    for epoch in [0, 1, 2, 900_000, 1_u64 << 53, i64::MAX as u64, u64::MAX] {
        for number in [0, 4_000_000_000_000] {
            let what = format!("unsigned, epoch {epoch}, number {number}");
            texts.push((what, unsigned(epoch, number, evil)));
        }
    }
    texts.push(("unsigned without a body".to_owned(), unsigned(9, 9, b"")));
    texts.push(("unsigned and cut".to_owned(), unsigned(9, 9, b"")[..47].to_vec()));
    texts.push(("binary".to_owned(), (0..=255).collect()));
    texts.push(("1 MiB".to_owned(), vec![b'9'; MIB]));
    texts
}

/// Wrong fields of a hash: those of the relay, and those that nobody knows.
fn hashes() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let field = |name: &str, value: &[u8]| vec![name.as_bytes().to_vec(), value.to_vec()];
    let many = (0..FIELDS)
        .flat_map(|at| field(&format!("NSE:S{at}"), b"x"))
        .collect();
    let large = (0..20)
        .flat_map(|at| field(&format!("NSE:S{at}"), &vec![b'x'; MIB]))
        .collect();
    vec![
        ("an unknown field", field("NSE:INFY", b"garbage")),
        ("an empty field", field("", b"")),
        ("a field that is no text", vec![vec![0xff, 0xfe], vec![0]]),
        ("a field in the form of ours", field("NSE:INFY", &unsigned(9, 9, b"x"))),
        ("a head of nobody", field("head", b"garbage")),
        ("a head in the form of ours", field("head", &unsigned(9, 9, b"x"))),
        ("a head of 1 MiB", field("head", &vec![0; MIB])),
        ("a place of nobody", field("place", b"1 1000000")),
        ("a place before ours", field("place", &unsigned(1, 0, b""))),
        ("a place far ahead", field("place", &unsigned(1, 1 << 40, b""))),
        ("the last place of all", field("place", &unsigned(u64::MAX, u64::MAX, b""))),
        ("the numbers of an earlier version", {
            [field("epoch", b"1"), field("seq", b"9223372036854775807")].concat()
        }),
        ("thousands of fields", many),
        ("20 MiB", large),
    ]
}

/// A client that speaks the server's own protocol, and has none of the nodes' secrets.
pub(crate) struct Stranger(BufReader<UnixStream>);

impl Stranger {
    /// `None` if the server is away.
    pub(crate) fn connect(socket: &Path) -> Option<Self> {
        let stream = UnixStream::connect(socket).ok()?;
        stream.set_read_timeout(Some(DEADLINE)).ok()?;
        stream.set_write_timeout(Some(DEADLINE)).ok()?;
        Some(Self(BufReader::new(stream)))
    }

    /// Does all of it. Errors of the server are of no interest to him; `None` if it is away.
    pub(crate) fn act(&mut self, act: &Act) -> Option<()> {
        act.commands
            .iter()
            .try_for_each(|words| self.send(words).map(drop))
    }

    /// Sends a command and returns the reply, if that is a string.
    pub(crate) fn send(&mut self, words: &[Vec<u8>]) -> Option<Vec<u8>> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend(format!("${}\r\n", word.len()).bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        self.0.get_mut().write_all(&bytes).ok()?;
        let mut line = String::new();
        self.0.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let length = line
            .strip_prefix('$')
            .and_then(|length| length.trim_end().parse().ok());
        let Some(length) = length else {
            return Some(Vec::new());
        };
        let mut value = vec![0; length];
        self.0.read_exact(&mut value).ok()?;
        self.0.read_exact(&mut [0; 2]).ok()?;
        Some(value)
    }
}
