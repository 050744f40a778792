//! Reads secrets from the terminal or a file into memory that is wiped.
//!
//! Main thread of a command. Typed secrets are not echoed, and no secret is printed.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::io::{Errno, read};
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

use crate::cli::operator::say;

/// Longest secret accepted: a pasted address with a code, or a password. Terminals limit a line to
/// the same length.
pub(crate) const BYTES_MAX: usize = 4_096;

/// Stands for standard input in place of a file name.
pub(crate) const STDIN: &str = "-";

/// Whether standard input is a terminal, so that a person can be asked.
pub(crate) fn is_terminal() -> bool {
    isatty(stdin())
}

/// Reads one line of standard input after `invite` has printed the prompt, without echo on a
/// terminal.
///
/// # Errors
/// The reason as a message.
pub(super) fn ask(invite: impl FnOnce()) -> Result<Zeroizing<String>, String> {
    // Switch the echo off before the prompt: a person may type as soon as the prompt shows.
    let _no_echo = NoEcho::begin();
    invite();
    let input = Input::read(stdin(), |bytes| bytes.contains(&b'\n'))
        .map_err(|error| format!("standard input: {error}"))?;
    text(
        input
            .bytes()
            .split(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default(),
    )
}

/// Reads a file of one line, or standard input if `path` is [`STDIN`]. Warns about a file that
/// others may read.
///
/// # Errors
/// The reason as a message.
pub(crate) fn from_file(path: &Path) -> Result<Zeroizing<String>, String> {
    let of_path = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let input = if path == Path::new(STDIN) {
        Input::read(stdin(), |_| false)
    } else {
        let file = File::open(path).map_err(|error| of_path(&error))?;
        warn_if_open(&file, path);
        Input::read(file.as_fd(), |_| false)
    };
    let input = input.map_err(|error| of_path(&error))?;
    let bytes = input.bytes();
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.contains(&b'\n') {
        return Err(of_path(&"more than one line"));
    }
    text(line).map_err(|why| of_path(&why))
}

fn warn_if_open(file: &File, path: &Path) {
    if file
        .metadata()
        .is_ok_and(|about| about.is_file() && about.mode() & 0o077 != 0)
    {
        let path = path.display();
        say(&format!("bhav: warning: others may read {path}; chmod 600 it\n"));
    }
}

/// Input in memory that is wiped. On the heap and of fixed size, so that neither moving nor growing
/// leaves copies behind.
struct Input {
    /// One byte longer than [`BYTES_MAX`], so that longer input is noticed.
    buffer: Zeroizing<Vec<u8>>,
    filled: usize,
}

impl Input {
    /// Reads to the end or until `done`. Does not use the standard library's buffered input, which
    /// would keep a copy.
    fn read(from: BorrowedFd<'_>, done: impl Fn(&[u8]) -> bool) -> rustix::io::Result<Self> {
        let mut input = Self {
            buffer: Zeroizing::new(vec![0; BYTES_MAX + 1]),
            filled: 0,
        };
        while input.filled < input.buffer.len() && !done(input.bytes()) {
            match read(from, &mut input.buffer[input.filled..]) {
                Ok(0) => break,
                Ok(count) => input.filled += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(input)
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }
}

fn text(line: &[u8]) -> Result<Zeroizing<String>, String> {
    if line.len() > BYTES_MAX {
        return Err(format!("more than {BYTES_MAX} bytes"));
    }
    match std::str::from_utf8(line) {
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => Err("not UTF-8 text".to_owned()),
    }
}

/// Switches the terminal's echo off until dropped.
struct NoEcho(Option<Termios>);

impl NoEcho {
    fn begin() -> Self {
        if !is_terminal() {
            return Self(None);
        }
        let before = tcgetattr(stdin()).ok();
        if let Some(mut silent) = before.clone() {
            silent.local_modes.remove(LocalModes::ECHO);
            // If the terminal refuses, the secret is shown to the person who types it.
            let _ = tcsetattr(stdin(), OptionalActions::Now, &silent);
        }
        Self(before)
    }
}

impl Drop for NoEcho {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(stdin(), OptionalActions::Now, before);
            say("\n");
        }
    }
}
