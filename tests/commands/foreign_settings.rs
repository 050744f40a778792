//! Settings as other systems write them: `docker run --env-file`, systemd, Kubernetes, Compose,
//! Windows. What `config check` says of each: the value that is taken, a warning, or a refusal with
//! its cure.

use std::fmt::Write as _;

use crate::support::{Ran, bhav, run};

/// What `config check` makes of it.
enum Said {
    /// Good: standard output has these.
    Good(&'static [&'static str]),
    /// Refused: standard error has these.
    Bad(&'static [&'static str]),
}
use Said::{Bad, Good};

/// The line of a setting that was taken.
const THREE_THREADS: &str = "BHAV_EDGE_THREADS=3  # ";
/// A key that is long enough to sign.
const SIGNS: &str = "0123456789abcdef0123456789abcdef";

#[track_caller]
fn expect(what: &str, ran: &Ran, said: &Said) {
    let (code, text, parts) = match said {
        Good(parts) => (0, &ran.out, parts),
        Bad(parts) => (64, &ran.err, parts),
    };
    assert_eq!(ran.code, Some(code), "{what}: {}{}", ran.out, ran.err);
    for part in *parts {
        assert!(text.contains(part), "{what}: `{part}` is missing from:\n{text}");
    }
    if matches!(said, Bad(_)) {
        assert!(text.contains("\n    cure: "), "{what}: {text}");
    }
    assert!(!ran.out.contains("key123456") && !ran.err.contains("key123456"), "{what}");
}

#[test]
fn variables_that_other_programs_set() {
    for (name, value, said) in [
        // docker run --env-file keeps quotation marks and what is after a value.
        (
            "BROKERA_API_KEY",
            "\"key123456\"",
            Good(&[
                "BROKERA_API_KEY=***",
                "# warning: BROKERA_API_KEY (environment) stands in quotation marks",
            ]),
        ),
        ("BROKERA_API_KEY", "'key123456'", Good(&["stands in quotation marks"])),
        ("BROKERA_API_KEY", "\"\"", Good(&["BROKERA_API_KEY=  # not set"])),
        (
            "BROKERA_API_KEY",
            "\"key123456",
            Bad(&["BROKERA_API_KEY=***", "a quotation mark at one"]),
        ),
        ("BROKERA_API_KEY", "“key123456”", Bad(&["a quotation mark at one end"])),
        (
            "BROKERA_API_KEY",
            "key123456 # of the app",
            Bad(&["has a space", "character 10"]),
        ),
        (
            "BHAV_EDGE_THREADS",
            "\"3\"",
            Good(&["BHAV_EDGE_THREADS=3  # environment", "quotation"]),
        ),
        (
            "BHAV_EDGE_THREADS",
            "3 # cores",
            Bad(&["looks like a comment", "a line of its own"]),
        ),
        ("BHAV_EDGE_THREADS", " 3 ", Good(&["BHAV_EDGE_THREADS=3  # environment\n"])),
        (
            "BHAV_STATE_DIR",
            "/srv/bhav # data",
            Good(&["# warning: BHAV_STATE_DIR", "` #`"]),
        ),
        // A secret of Kubernetes that was made with `echo`.
        (
            "BROKERA_API_SECRET",
            "key123456\n",
            Good(&["BROKERA_API_SECRET=***  # environment\n"]),
        ),
        (
            "BROKERA_API_SECRET",
            "key123456\n\nmore",
            Bad(&["character 10 is a line break"]),
        ),
    ] {
        expect_variable(name, value, &said);
    }
}

#[test]
fn variables_that_nothing_has_replaced_or_that_were_copied() {
    for (name, value, said) in [
        ("JWT_SECRET", "$(SIGNING_KEY)", Bad(&["JWT_SECRET=***", "nothing has replaced"])),
        (
            "BHAV_STATE_DIR",
            "${HOME}/bhav",
            Bad(&["nothing has replaced", "write the value itself"]),
        ),
        // Copied from a page or a chat.
        (
            "BROKERA_API_KEY",
            "key\u{200b}123456",
            Bad(&["character 4 is a zero-width space"]),
        ),
        (
            "BROKERA_ACCESS_TOKEN",
            "key123456\u{a0}",
            Bad(&["character 10 is a space that is not"]),
        ),
        (
            "BROKERA_ADMIN_SECRET",
            "green\u{ad}parrot",
            Bad(&["character 6 is a soft hyphen"]),
        ),
        (
            "BHAV_LISTEN",
            "127.0.0.1:80\u{200e}",
            Bad(&["a mark of writing direction", "BHAV_LISTEN="]),
        ),
    ] {
        expect_variable(name, value, &said);
    }
}

#[track_caller]
fn expect_variable(name: &str, value: &str, said: &Said) {
    let ran = run(bhav(&["config", "check"]).env(name, value));
    expect(&format!("{name}={value:?}"), &ran, said);
}

#[test]
fn words_units_and_addresses_of_other_systems() {
    for (name, value, said) in [
        // YAML makes booleans of words, and a variable is then called true or false.
        ("BHAV_ADMIN_LISTEN", "false", Good(&["BHAV_ADMIN_LISTEN=off  # environment"])),
        ("BHAV_WEB", "False", Good(&["BHAV_WEB=false  # environment"])),
        ("BHAV_WEB", "no", Good(&["BHAV_WEB=false  # environment"])),
        ("BHAV_WEB", "enabled", Bad(&["BHAV_WEB=enabled", "give true or false"])),
        ("BHAV_ADMIN_LISTEN", "true", Bad(&["is not IP:PORT", "or off"])),
        // Units and separators.
        (
            "BHAV_HTTP_IDLE_TIMEOUT_MS",
            "75s",
            Bad(&["a word after the number", "give 75000,"]),
        ),
        (
            "BHAV_HTTP_BODY_BYTES_MAX",
            "64KB",
            Bad(&["a word after the number", "give 65536,"]),
        ),
        ("BHAV_MAX_CONNECTIONS", "10_000", Bad(&["separators", "give 10000"])),
        ("BHAV_MAX_CONNECTIONS", "10,000", Bad(&["separators", "give 10000"])),
        (
            "BHAV_MAX_CONNECTIONS",
            "1e4",
            Bad(&["is not a whole number", "give a whole number"]),
        ),
        ("BHAV_MAX_CONNECTIONS", "unlimited", Bad(&["is not a whole number"])),
        // Addresses and origins that never match.
        (
            "BHAV_ALLOWED_ORIGINS",
            "https://dash.example.com:443",
            Good(&["BHAV_ALLOWED_ORIGINS=https://dash.example.com  # environment"]),
        ),
        (
            "BHAV_ALLOWED_ORIGINS",
            "https://dash.example.com/app",
            Bad(&["after the host", "give https://dash.example.com "]),
        ),
        ("BHAV_ALLOWED_ORIGINS", "[\"https://dash.example.com\"]", Bad(&["is no origin"])),
        ("BHAV_ALLOWED_ORIGINS", "null", Bad(&["without an origin"])),
        (
            "BHAV_TRUSTED_PROXIES",
            "172.17.0.0/16,::ffff:10.0.0.1",
            Good(&["BHAV_TRUSTED_PROXIES=172.17.0.0/16,10.0.0.1  # environment"]),
        ),
        (
            "BHAV_TRUSTED_PROXIES",
            "172.17.0.1/16",
            Bad(&[
                "not the network's first",
                "give 172.17.0.0/16 for the network",
            ]),
        ),
        (
            "BHAV_TRUSTED_PROXIES",
            "127.0.0.1,caddy",
            Bad(&["has the entry caddy, which is a name"]),
        ),
        ("BHAV_TRUSTED_PROXIES", "172.17.0.1 172.17.0.2", Bad(&["is no IP address"])),
        (
            "BHAV_PUBLIC_URL",
            "https://query1.example.com/ # mirror",
            Bad(&["like a comment"]),
        ),
    ] {
        expect_variable(name, value, &said);
    }
}

#[test]
fn addresses_to_listen_at_as_strangers_write_them() {
    for (name, value, said) in [
        // Of a browser, without an IP, without brackets, out of range.
        (
            "BHAV_LISTEN",
            "http://127.0.0.1:8080",
            Bad(&["is not IP:PORT", "127.0.0.1:8080"]),
        ),
        ("BHAV_LISTEN", "localhost:8080", Bad(&["is not IP:PORT", "127.0.0.1:8080"])),
        ("BHAV_LISTEN", ":8080", Bad(&["is not IP:PORT", "127.0.0.1:8080"])),
        ("BHAV_LISTEN", "*:8080", Bad(&["is not IP:PORT", "127.0.0.1:8080"])),
        ("BHAV_LISTEN", "::1:8080", Bad(&["is not IP:PORT", "[::1]:8080"])),
        ("BHAV_LISTEN", "127.0.0.1:80808", Bad(&["is not IP:PORT", "127.0.0.1:8080"])),
        ("BHAV_LISTEN", "", Good(&["BHAV_LISTEN=127.0.0.1:8080  # default"])),
        (
            "BHAV_LISTEN",
            "unix:~/bhav.sock",
            Bad(&["begins with ~", "write the whole path"]),
        ),
    ] {
        expect_variable(name, value, &said);
    }
}

#[test]
fn lists_as_strangers_write_them() {
    for (name, value, said) in [
        (
            "BHAV_ALLOWED_ORIGINS",
            "localhost:8080/",
            Bad(&["has no scheme", "http://localhost:80"]),
        ),
        (
            "BHAV_ALLOWED_ORIGINS",
            "http://localhost:8080/, https://A.example,",
            Good(&["BHAV_ALLOWED_ORIGINS=http://localhost:8080,https://a.example  # env"]),
        ),
        ("BHAV_ALLOWED_ORIGINS", ",", Good(&["BHAV_ALLOWED_ORIGINS=  # environment"])),
        (
            "BHAV_ALLOWED_ORIGINS",
            "*",
            Bad(&["would allow every site", "give origins such as"]),
        ),
        (
            "BHAV_ALLOWED_ORIGINS",
            "https://*.example.com",
            Bad(&["a wildcard", "list each"]),
        ),
        (
            "BHAV_ALLOWED_ORIGINS",
            "http://::1:3000",
            Bad(&["is no origin", "give origins"]),
        ),
        (
            "BHAV_TRUSTED_PROXIES",
            "127.0.0.1, ::1,",
            Good(&["BHAV_TRUSTED_PROXIES=127.0.0.1,::1  # environment"]),
        ),
        (
            "BHAV_TRUSTED_PROXIES",
            "[::1]",
            Bad(&["has brackets", "give ::1 without brackets"]),
        ),
        (
            "BHAV_TRUSTED_PROXIES",
            "10.0.0.1:443",
            Bad(&["has a port", "give 10.0.0.1 alone"]),
        ),
        ("BHAV_TRUSTED_PROXIES", "traefik", Bad(&["is a name", "its network does not"])),
        ("BHAV_TRUSTED_PROXIES", "*", Bad(&["is no IP address", "10.0.0.0/8"])),
    ] {
        expect_variable(name, value, &said);
    }
}

#[test]
fn paths_and_words_as_strangers_write_them() {
    for (name, value, said) in [
        // What is replaced elsewhere.
        ("BHAV_STATE_DIR", "~/bhav", Bad(&["begins with ~", "write the whole path"])),
        (
            "BHAV_STATE_DIR",
            "$HOME/bhav",
            Bad(&["begins with a variable", "the whole path"]),
        ),
        ("BHAV_STATE_DIR", "%h/bhav", Bad(&["begins with a specifier", "the whole path"])),
        ("BHAV_STATE_DIR", "file:///srv/bhav", Bad(&["is a URL", "the whole path"])),
        ("BHAV_STATE_DIR", "./~bhav", Good(&["BHAV_STATE_DIR=./~bhav  # environment"])),
        ("BHAV_UNIVERSE_FILE", "~/shares.txt", Bad(&["begins with ~", "the whole path"])),
        ("BROKERA_API_KEY_FILE", "~/key", Bad(&["begins with ~", "the whole path"])),
        // Words that mean something to another program: as a part's name each would silence all.
        ("BHAV_LOG", "warning", Bad(&["warning is no level", "give error, warn, info"])),
        ("BHAV_LOG", "verbose", Bad(&["verbose is no level", "give error, warn, info"])),
        ("BHAV_LOG", "INFO", Good(&["BHAV_LOG=INFO  # environment"])),
        (
            "BHAV_LOG",
            "warn,bhav::http=debug",
            Good(&["BHAV_LOG=warn,bhav::http=debug  # env"]),
        ),
        // Typed on a telephone.
        (
            "BHAV_ALLOWED_ORIGINS",
            "“https://a.example”",
            Bad(&["a quotation mark at one end"]),
        ),
        (
            "BHAV_STATE_DIR",
            "/srv/\u{a0}bhav",
            Bad(&["character 6 is a space that is not"]),
        ),
        ("BHAV_WEB", "On", Good(&["BHAV_WEB=true  # environment"])),
        (
            "BHAV_HTTP_IDLE_TIMEOUT_MS",
            "5s",
            Bad(&["a word after the number", "give 5000,"]),
        ),
        ("BHAV_MAX_CONNECTIONS", "5_000", Bad(&["separators", "give 5000"])),
    ] {
        expect_variable(name, value, &said);
    }
}

/// Lists of shares as other programs write them: no price would ever come for one of these.
#[test]
fn universes_of_other_programs() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let taken = format!("BHAV_UNIVERSE_FILE={path}  # environment");
    for text in [
        "NSE:INFY\nNSE:M&M # cars\n",
        "\u{feff}NSE:INFY\r\nBSE:SBIN\r\n",
        "Symbol,Name\n\"NSE:INFY\",\"Infosys, Ltd.\"\n",
    ] {
        std::fs::write(path, text).unwrap();
        let ran = run(bhav(&["config", "check"]).env("BHAV_UNIVERSE_FILE", path)).with_code(0);
        assert!(ran.out.contains(&taken), "{text}: {}", ran.out);
    }
    for (line, said) in [
        ("nse:infy", "write NSE:INFY"),
        ("INFY", "write NSE:INFY or BSE:INFY"),
        ("NSE:INFY-EQ", "write NSE:INFY"),
        ("INFY.NS", "write NSE:INFY"),
        ("SBIN.BO", "write BSE:SBIN"),
        ("NSE:INFY.NS", "write NSE:INFY"),
        ("INFY:NSE", "write NSE:INFY"),
        ("NASDAQ:INFY", "NASDAQ is not quoted; write a share of NSE: or BSE:"),
        ("NFO:INFY26NOVFUT", "NFO is not quoted"),
        ("NSE:NIFTY 50", "is an index"),
        ("BSE:SENSEX", "is an index"),
        ("INE009A01021", "is an ISIN; write exchange and ticker"),
        ("NSE:INFY,NSE:TCS,", "NSE:TCS is not read: write one symbol a line"),
        ("NSE:INFY;NSE:TCS", "not EXCHANGE:TICKER"),
        ("“NSE:INFY”", "not EXCHANGE:TICKER"),
        ("NSE:INF\u{200b}Y", "Character 8 is a zero-width space"),
        ("NSE:SBIN", "NSE:SBIN comes twice"),
    ] {
        std::fs::write(path, format!("NSE:SBIN\n{line}\n")).unwrap();
        let ran = run(bhav(&["config", "check"]).env("BHAV_UNIVERSE_FILE", path)).with_code(64);
        let place = format!("{path}:2: ");
        let told = ran.err.contains(&place) && ran.err.contains(said);
        assert!(told && ran.err.contains("\n    cure: "), "{line}: {}", ran.err);
    }
}

#[test]
fn settings_files_of_other_systems() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let wide: Vec<u8> = "\u{feff}BHAV_EDGE_THREADS=3\r\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (text, said) in [
        (
            &b"\xef\xbb\xbfBHAV_EDGE_THREADS=3\r\nBHAV_WEB=off\r\n"[..],
            Good(&[THREE_THREADS, "WEB=false"]),
        ),
        (&wide, Bad(&["BHAV_ENV_FILE=", "is UTF-16", "iconv -f UTF-16 -t UTF-8"])),
        (b"BHAV_LOG=\"warn\xff\"\n", Bad(&["is not UTF-8: byte 15"])),
        (b"BHAV_EDGE_THREADS = 3\n", Good(&[THREE_THREADS])),
        (b"BHAV_EDGE_THREADS= \"3\" \n", Good(&[THREE_THREADS])),
        (b"  BHAV_EDGE_THREADS=3\n; a comment\n# another\n\n", Good(&[THREE_THREADS])),
        (b"BHAV_EDGE_THREADS=3 # cores\n", Bad(&["line 1", "looks like a comment"])),
        (b"export BHAV_EDGE_THREADS=3\n", Bad(&["line 1: begins with a word of a shell"])),
        (b"BHAV_EDGE_THREADS: 3\n", Bad(&["line 1: is NAME: value as in YAML"])),
        (
            b"[Service]\nEnvironment=BHAV_EDGE_THREADS=3\n",
            Bad(&["line 1: is no NAME=value"]),
        ),
        (b"BHAV_LOG=\"info\n", Bad(&["line 1: has no closing quote"])),
        (b"BHAV_LOG=info,\\\n  warn\n", Bad(&["line 1: continues on the next line"])),
        (
            b"BHAV_EDGE_THREADS=3\nBHAV_EDGE_THREADS=4\n",
            Bad(&["line 2: ", "in line 1 already"]),
        ),
        (
            b"BHAV_EDGE_THREADS=\"'3'\"\n",
            Good(&[THREE_THREADS, "line 1) stands in quotation marks"]),
        ),
        (b"", Good(&["BHAV_EDGE_THREADS=0  # default"])),
    ] {
        std::fs::write(file.path(), text).unwrap();
        let ran = run(bhav(&["config", "check"]).env("BHAV_ENV_FILE", file.path()));
        expect(&String::from_utf8_lossy(text), &ran, &said);
    }
}

/// Every way to a secret's file takes off the same and refuses the same.
#[test]
fn files_of_secrets_from_other_systems() {
    let directory = tempfile::tempdir().unwrap();
    let wide: Vec<u8> = "\u{feff}key123456"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let long = "x".repeat(4_097);
    for (bytes, said) in [
        (&b"\xef\xbb\xbfkey123456\r\n"[..], Good(&["BROKERA_API_KEY=***"])),
        (b"key123456\r\n", Good(&["BROKERA_API_KEY=***"])),
        (b"key123456\n\n", Good(&["BROKERA_API_KEY=***"])),
        (b"\"key123456\"\n", Good(&["BROKERA_API_KEY", "stands in quotation marks"])),
        (&wide, Bad(&["is UTF-16", "iconv"])),
        (b"", Bad(&["is empty"])),
        (b"\xef\xbb\xbf\r\n", Bad(&["is empty"])),
        (b"\"\"\n", Bad(&["is empty"])),
        (b"key123456\xff", Bad(&["is not UTF-8: byte 10"])),
        (b" key123456\n", Bad(&["has a space", "character 1"])),
        (b"key123456\t\n", Bad(&["character 10 is a tab"])),
        (b"key\xe2\x80\x8b123456\n", Bad(&["character 4 is a zero-width space"])),
        (b"key123456\nsecond\n", Bad(&["character 10 is a line break"])),
        (b"BROKERA_API_KEY = key123456\n", Bad(&["has a space"])),
        (long.as_bytes(), Bad(&["is longer than 4096 bytes"])),
    ] {
        let credential = directory.path().join("BROKERA_API_KEY");
        std::fs::write(&credential, bytes).unwrap();
        let path = credential.to_str().unwrap();
        let quoted = format!("\"{path}\"");
        for (name, value) in [
            ("CREDENTIALS_DIRECTORY", directory.path().to_str().unwrap()),
            ("BROKERA_API_KEY_FILE", path),
            ("BROKERA_API_KEY_FILE", &quoted),
        ] {
            let ran = run(bhav(&["config", "check"]).env(name, value));
            let what = format!("{name}={value}: {}", String::from_utf8_lossy(bytes));
            expect(&what, &ran, &said);
        }
    }
}

#[test]
fn a_key_in_quotation_marks_signs_as_the_key_without_them() {
    let mut seen = String::new();
    for value in [
        SIGNS.to_owned(),
        format!("\"{SIGNS}\""),
        format!("\u{feff}'{SIGNS}'\r\n"),
    ] {
        let ran = run(bhav(&["config", "check"]).env("JWT_SECRET", &value)).with_code(0);
        let _ = write!(seen, "{}", ran.out.matches("JWT_SECRET (environment) stands").count());
    }
    assert_eq!(seen, "011");
    // Of what is left, 32 bytes are asked for.
    let short = format!("\"{}\"", &SIGNS[1..]);
    let ran = run(bhav(&["config", "check"]).env("JWT_SECRET", short)).with_code(64);
    assert!(ran.err.contains("shorter than 32 bytes"), "{}", ran.err);
}
