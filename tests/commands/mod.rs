//! The operator's commands through the real program, beside a running service or on its files.

mod database;
mod documents;
mod status;
mod token;
mod users;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// How a command ended and what it said.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// The program with these arguments and nothing else: no environment, nothing to read.
pub fn bhav(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bhav"));
    command.env_clear().args(args).stdin(Stdio::null());
    command
}

pub fn run(command: &mut Command) -> Ran {
    ran(command.output().unwrap())
}

/// With `input` to read.
pub fn run_with(command: &mut Command, input: &str) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    ran(child.wait_with_output().unwrap())
}

fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The flag for a state directory.
pub fn state_flag(state: &Path) -> String {
    format!("--state-dir={}", state.display())
}

/// A screen is one screen, whatever it says.
#[track_caller]
pub fn expect_screen(text: &str) {
    assert!(text.lines().count() < 24, "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80 || line.contains("https://"), "{line}");
    }
    assert!(!text.contains('\u{1b}'), "no colours but on a terminal: {text}");
}
