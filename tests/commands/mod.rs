//! The operator's commands through the real program, beside a running service or on its files.

mod database;
mod documents;
mod exit_codes;
mod passwords;
mod settings;
mod status;
mod token;
mod users;

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

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

/// A command with a terminal as its standard input; what it says is piped.
pub struct OnTerminal {
    child: Child,
    /// The person's end.
    master: File,
    /// What it has said so far.
    said: String,
}

impl OnTerminal {
    pub fn start(command: &mut Command) -> Self {
        let (master, slave) = terminal();
        command.stdin(slave).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        // Its end of the terminal goes with the command, so that reading ends.
        command.stdin(Stdio::null());
        Self { child, master, said: String::new() }
    }

    /// Waits until it has asked with `prompt`, then types `text` and Enter.
    pub fn answer(&mut self, prompt: &str, text: &str) {
        let asked = self.said.len();
        let err = self.child.stderr.as_mut().unwrap();
        while !self.said[asked..].ends_with(prompt) {
            let mut byte = [0];
            assert_eq!(err.read(&mut byte).unwrap(), 1, "never asked {prompt}: {}", self.said);
            self.said.push(char::from(byte[0]));
        }
        self.master.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// How it ended, and what the terminal showed of what was typed.
    pub fn end(mut self) -> (Ran, String) {
        let mut ran = ran(self.child.wait_with_output().unwrap());
        ran.err.insert_str(0, &self.said);
        let mut shown = Vec::new();
        // The end of a terminal is an error on Linux.
        let _ = self.master.read_to_end(&mut shown);
        (ran, String::from_utf8_lossy(&shown).into_owned())
    }
}

/// Both ends of a new terminal: the person's and the program's.
fn terminal() -> (File, File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let slave = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
    (File::from(master), File::from(slave))
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
