//! The table of everything that can be diagnosed, by the service itself, whose health document and
//! page show it, and by `bhav status`: each with its cause and its cure.
//!
//! Constant data. `{}` in a cause is replaced by a detail that the service reported. No text
//! contains a secret.

use std::borrow::Cow;

use serde::Serialize;

use crate::base::Broker;
use crate::views::health::HealthTrouble;
use crate::views::states::{Severity, StoreState};
use crate::views::values::Instant;

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Diagnosis {
    /// Stable name for programs.
    pub name: &'static str,
    pub severity: Severity,
    pub cause: &'static str,
    pub cure: &'static str,
    /// The command of the cure, if one is enough.
    pub command: Option<&'static str>,
}

/// A diagnosis with its detail.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Trouble {
    pub name: Cow<'static, str>,
    pub severity: Severity,
    pub cause: String,
    pub cure: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Cow<'static, str>>,
    /// Since when the service has seen it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ist: Option<Instant>,
    /// When it will probably be over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ist: Option<Instant>,
    /// The login page, if logging in is the cure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login_url: Option<String>,
}

impl Diagnosis {
    /// The trouble, with `detail` in the place of `{}`.
    pub(crate) fn trouble(&self, detail: &str) -> Trouble {
        Trouble {
            name: self.name.into(),
            severity: self.severity,
            cause: self.cause.replace("{}", detail),
            cure: self.cure.into(),
            command: self.command.map(Cow::Borrowed),
            since_ist: None,
            until_ist: None,
            login_url: None,
        }
    }
}

impl From<&HealthTrouble> for Trouble {
    fn from(told: &HealthTrouble) -> Self {
        Self {
            name: told.name.clone(),
            severity: told.severity,
            cause: told.cause.clone(),
            cure: told.cure.clone(),
            command: told.command.clone(),
            since_ist: Some(told.since_ist),
            until_ist: told.until_ist,
            login_url: None,
        }
    }
}

macro_rules! diagnoses {
    ($(
        $id:ident $name:literal $severity:ident $cause:literal => $cure:literal
            $(=> $command:literal)?,
    )*) => {
        $(pub(crate) const $id: Diagnosis = Diagnosis {
            name: $name,
            severity: Severity::$severity,
            cause: $cause,
            cure: $cure,
            command: [$(Some($command),)? None][0],
        };)*
        /// All rows.
        #[cfg(test)]
        pub(crate) const TABLE: &[&Diagnosis] = &[$(&$id),*];
    };
}

diagnoses! {
    // The service itself.
    NOT_RUNNING "not_running" Down
        "The service is not running: {}"
        => "systemctl start bhav; why it ended: systemctl status bhav, journalctl -u bhav -n 50"
        => "systemctl start bhav",
    UNREACHABLE "unreachable" Down
        "The service does not answer: {}"
        => "systemctl status bhav; journalctl -u bhav -n 50; is --url or BHAV_LISTEN right?"
        => "systemctl status bhav",
    SILENT "silent" Down
        "An instance runs on this state directory but does not answer here: {}"
        => "check BHAV_LISTEN or give --url; if it hangs: systemctl restart bhav"
        => "systemctl restart bhav",
    NO_ROOM "no_answer_in_time" Down
        "The service runs, but takes no further connection or hangs: {}"
        => "all taken? raise BHAV_MAX_CONNECTIONS; else it hangs: systemctl restart bhav"
        => "systemctl restart bhav",
    ALL_TAKEN "connections_all_taken" Down
        "The service is alive, but takes no further connection: {}"
        => "raise BHAV_MAX_CONNECTIONS and LimitNOFILE (docs: Every connection is taken)",
    HANGS "hangs" Down
        "The service runs, but hangs: {}"
        => "the watchdog restarts it; if not: systemctl restart bhav; journalctl -u bhav"
        => "systemctl restart bhav",
    NOT_OURS "not_ours" Down
        "Another program answers at {}"
        => "check BHAV_LISTEN or give --url; find it: ss -ltnp",
    STARTING "starting" Down
        "The service has only just started"
        => "ask again in a few seconds",
    // Feeds and tokens.
    FEEDS_DEAD "feeds_dead" Degraded
        "No feed gives prices; what is served gets old and is marked so ({})"
        => "is this machine on the network? journalctl -u bhav; bhav token a brings broker A back"
        => "journalctl -u bhav",
    TOKEN_MISSING_A "broker_a_token_missing" Degraded
        "Broker A has no token; the public provider serves instead, slower"
        => "log in at the link, then run: bhav token a"
        => "bhav token a",
    TOKEN_DEAD_A "broker_a_token_dead" Degraded
        "Broker A's token is dead; the public provider serves instead, slower"
        => "log in at the link, then run: bhav token a (tokens end at 06:00 IST each day)"
        => "bhav token a",
    TOKEN_TAKEN_A "broker_a_new_token" Degraded
        "Broker A's token has just been given; its first prices are on the way"
        => "ask again in a few seconds",
    TOKEN_ENDING_A "broker_a_token_ending" Note
        "Broker A's token ends in less than an hour"
        => "after 06:00 IST log in at the link, then run: bhav token a"
        => "bhav token a",
    SESSION_ENDED_B "broker_b_session_ended" Note
        "Broker B's shared session has ended; users' own syncs do not need it"
        => "if you use it: log in at the link, then run: bhav token b"
        => "bhav token b",
    SESSION_ENDING_B "broker_b_session_ending" Note
        "Broker B's shared session ends in less than an hour"
        => "after midnight IST log in at the link, then run: bhav token b"
        => "bhav token b",
    BROKER_A_OFF "broker_a_off" Note
        "Broker A is not set up; the public provider serves alone, slower"
        => "for real-time prices: BROKERA_API_KEY, BROKERA_API_SECRET, restart, bhav token a",
    NO_MARKET_DATA "broker_a_no_market_data" Degraded
        "Broker A says that the app's plan has no market data"
        => "add market data to the app in the broker's developer console; it is asked again",
    RATE_LIMITED "provider_rate_limited" Degraded
        "A provider refuses for too many requests: {}"
        => "is the key used elsewhere too? else raise BHAV_BROKERA_QUOTE_INTERVAL_MS",
    BROKER_A_MUTE "broker_a_mute" Degraded
        "Broker A answers, but its prices stand still while the market trades"
        => "it is asked on by itself; if it lasts: the broker's status page, then its support",
    BROKER_A_FAILS "broker_a_fails" Degraded
        "Broker A does not give prices: {}"
        => "it is tried again by itself; if it lasts, see the broker's status page and the log",
    PUBLIC_FAILS "public_fails" Note
        "The public provider fails: {}; nothing stands behind broker A"
        => "it is tried again by itself; if it lasts: BHAV_PUBLIC_USER_AGENT, then the log",
    SNAPSHOT_OLD "snapshot_old" Degraded
        "The index snapshot is old and marked so"
        => "it mends itself with the next good answer of a feed; see the feeds above",
    SNAPSHOT_WAITS "snapshot_waits" Degraded
        "Broker A's last prices stay, marked as old, until the public provider has passed them: {}"
        => "nothing: prices never go back; with broker A again they are fresh at once",
    TIME_APART "exchange_time_apart" Degraded
        "This machine's clock is {} the times in the prices, which are not shown as fresh"
        => "timedatectl: set the clock right, let NTP keep it; if it is right, the feed is late"
        => "timedatectl",
    // The store and other files on disk.
    STORE_FULL "store_full" Degraded
        "The disk is full: accounts and portfolios are read, not written"
        => "free space on the disk of the state directory; it is noticed within seconds",
    STORE_READ_ONLY "store_read_only" Degraded
        "The database takes no writes"
        => "make the state directory writable for the service (owner, mount); it is noticed",
    STORE_CORRUPT "store_corrupt" Degraded
        "The database is damaged; prices are served, accounts are not"
        => "systemctl stop bhav.socket bhav.service; bhav restore BACKUP; start; check the disk",
    STORE_BUSY "store_busy" Degraded
        "Another program holds the database"
        => "find it (fuser on bhav.sqlite) and end it, or wait for its backup to finish",
    STORE_UNAVAILABLE "store_unavailable" Degraded
        "The database cannot be used ({})"
        => "journalctl -u bhav names the reason; put the file back, or bhav restore BACKUP"
        => "journalctl -u bhav",
    STORE_STUCK "store_stuck" Degraded
        "Writes to the database do not end: what is read is served, every change is refused"
        => "is the synchronous standby gone, the disk slow, a lock held? journalctl -u bhav"
        => "journalctl -u bhav",
    SIGNING_KEY_LOST "signing_key_lost" Degraded
        "The file with the signing key, jwt.key, is {}: the next start ends every login"
        => "put the file back before the next start, or leave it so if every login is to end",
    L2_OFF "second_level_off" Degraded
        "Prices are not kept over a restart: the second cache level cannot be opened"
        => "make the state directory writable; l2.sqlite may be deleted; then restart",
    PERSIST_FAILS "persist_fails" Degraded
        "Prices are not kept over a restart: writing them fails"
        => "free space on the disk of the state directory; the log has the reason",
    // Other machines.
    SHARED_SERVER_REFUSES "shared_server_refuses" Degraded
        "The shared server says no: {}"
        => "set the server's user or the setting right (docs: A Valkey or Redis server)",
    SHARED_SERVER_FOREIGN "shared_server_written_by_others" Note
        "Somebody other than the nodes has written {} on the shared server; the nodes replaced it"
        => "give the server a user with a password, and no other (docs: A Valkey or Redis server)",
    CLEAR_TEXT "clear_text" Note
        "What {} has sent to another machine can be read on the way"
        => "use https:// for a broker, rediss:// or sslmode=verify-full for the others",
    SHARED_SERVER_OPEN "shared_server_open" Note
        "The shared server takes anybody who reaches it: {} is not set"
        => "give the server a user with a password (docs: A Valkey or Redis server)",
    // The rest.
    CALENDAR_UNKNOWN "calendar_unknown" Degraded
        "Today is not in the calendar: the phase is a guess by weekday, and no close is official"
        => "bhav calendar says what is missing; give the exchange's list as BHAV_CALENDAR_FILE"
        => "bhav calendar",
    CALENDAR_ENDS "calendar_ends" Note
        "The calendar does not know: {}; no close of such a date is official"
        => "give the exchange's next list as BHAV_CALENDAR_FILE, or install a newer version",
    RELOAD_REFUSED "reload_refused" Degraded
        "A reload was refused at {}: what was changed since is not in force"
        => "bhav config check names what is wrong; then: systemctl reload bhav"
        => "bhav config check",
    BACKUP_FAILED "backup_failed" Note
        "The last backup failed; the last good one: {}"
        => "journalctl -u bhav-backup says why; then: systemctl start bhav-backup"
        => "journalctl -u bhav-backup",
    BACKUP_OLD "backup_old" Note
        "The last good backup was made {}"
        => "systemctl list-timers bhav-backup.timer; one now: systemctl start bhav-backup"
        => "systemctl start bhav-backup",
    BACKUP_NONE "backup_none" Note
        "No backup has been made yet"
        => "one each evening: systemctl enable --now bhav-backup.timer; now: start bhav-backup"
        => "systemctl enable --now bhav-backup.timer",
    INSTRUMENTS_FAIL "instruments_fail" Note
        "The day's list of instruments could not be fetched or is not believed; the last one serves"
        => "it is asked for again by itself; market.instruments_failure in health has the cause",
    CLOSE_FAILS "close_fails" Degraded
        "The revaluation at the close fails"
        => "it goes on where it stopped; the log has the reason, mostly the database",
    SIGNALS_FAIL "signals_fail" Degraded
        "The list of signals is missing or old: daily candles cannot be had or kept"
        => "it is tried again twice a minute; if it lasts, see the feeds and the log",
    NO_METRICS "no_metrics" Note
        "Metrics and probes are not served: {}"
        => "set BHAV_ADMIN_LISTEN to a free address, or to off, then restart",
    LANE_PANICKED "lane_panicked" Note
        "A job failed by a fault of the program ({})"
        => "please report it with the log's lines around \"panicked\"",
    LANE_REFUSED "lane_refused" Note
        "Work was refused or came too late since the start ({})"
        => "if it grows: a slow broker, a slow disk, or too many requests; see the log",
    LOG_LOST "log_lost" Note
        "The log is not read, or not fast enough: {}"
        => "systemctl restart bhav gives it a new reader; is systemd-journald well, its disk full?"
        => "systemctl restart bhav",
    CLOCK_OFF "clock_off" Degraded
        "The service's clock and this machine's differ by {}"
        => "is NTP running? timedatectl; BHAV_NOW must not be set in service"
        => "timedatectl",
    CLOCK_SET "clock_set" Note
        "The service's clock was set (BHAV_NOW, demo), {} from this machine's"
        => "fine for a demo; never set it in service",
    UNEXPLAINED "unexplained" Degraded
        "The service says that it is {}"
        => "ask it: curl its /api/health; the log has the cause",
}

/// That a broker's token ends soon.
pub(crate) fn token_ending(broker: Broker) -> &'static Diagnosis {
    match broker {
        Broker::A => &TOKEN_ENDING_A,
        Broker::B => &SESSION_ENDING_B,
    }
}

/// That a broker's token has ended; `None` where a feed that fails for it says so.
pub(crate) fn token_ended(broker: Broker) -> Option<&'static Diagnosis> {
    match broker {
        Broker::A => None,
        Broker::B => Some(&SESSION_ENDED_B),
    }
}

/// The diagnosis for a state of the store; `None` for "ok".
pub(crate) fn of_store(state: StoreState) -> Option<&'static Diagnosis> {
    match state {
        StoreState::Ok => None,
        StoreState::Full => Some(&STORE_FULL),
        StoreState::ReadOnly => Some(&STORE_READ_ONLY),
        StoreState::Corrupt => Some(&STORE_CORRUPT),
        StoreState::Busy => Some(&STORE_BUSY),
        StoreState::Stuck => Some(&STORE_STUCK),
        StoreState::Unavailable => Some(&STORE_UNAVAILABLE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_diagnosis_has_a_unique_name_and_short_texts() {
        for row in TABLE {
            for text in [row.cause, row.cure] {
                assert!((5..=100).contains(&text.len()), "{}: {}", row.name, text.len());
                assert!(text.is_ascii() && !text.contains("  "), "{}", row.name);
            }
            assert!(row.cause.starts_with(char::is_uppercase), "{}", row.name);
            // What can be copied is what one reads.
            assert!(row.command.is_none_or(|command| row.cure.contains(command)), "{}", row.name);
            assert_eq!(TABLE.iter().filter(|other| other.name == row.name).count(), 1);
        }
    }

    #[test]
    fn a_trouble_contains_the_reported_detail() {
        let told = UNREACHABLE.trouble("refused");
        assert_eq!(told.cause, "The service does not answer: refused");
        assert!(of_store(StoreState::Ok).is_none());
        assert_eq!(of_store(StoreState::Corrupt).unwrap().name, "store_corrupt");
    }
}
