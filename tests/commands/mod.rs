//! The operator's commands through the real program, next to a running service or on its files.

mod calendar;
mod database;
mod documents;
mod exit_codes;
mod foreign_settings;
mod healthcheck;
mod keys;
mod passwords;
mod settings;
mod status;
mod token;
mod users;

/// The text fits on one screen, whatever its content.
#[track_caller]
pub fn expect_screen(text: &str) {
    assert!(text.lines().count() < 24, "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80 || line.contains("https://"), "{line}");
    }
    assert!(!text.contains('\u{1b}'), "no colours but on a terminal: {text}");
}
