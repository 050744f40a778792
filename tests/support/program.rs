//! The real program: a command that ends, one that serves, and processes that tests control
//! themselves.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};

pub use rustix::process::Signal;

use super::client::Client;
use super::service::{Scene, TRADING, UNIVERSE};
use super::wait::until;

/// Passes the socket on standard input as systemd does.
const ACTIVATED: &str = "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\" 3<&0 </dev/null";

/// Path of the program.
pub const BHAV: &str = env!("CARGO_BIN_EXE_bhav");

/// The program with only these arguments: no environment, no input.
pub fn bhav(args: &[&str]) -> Command {
    let mut command = Command::new(BHAV);
    command.env_clear().args(args).stdin(Stdio::null());
    command
}

/// Same as [`bhav`], without the operator's listener: it has one default port, and many programs
/// run at once.
pub fn without_admin(args: &[&str]) -> Command {
    let mut command = bhav(args);
    command.env("BHAV_ADMIN_LISTEN", "off");
    command
}

/// The program as `$0` of a shell script, which starts it with the arguments that follow.
pub fn by_shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .env_clear()
        .args(["-c", script, BHAV])
        .stdin(Stdio::null());
    command
}

/// The program on a listening socket of the caller.
pub fn on_socket(socket: impl Into<OwnedFd>) -> Command {
    let mut command = by_shell(ACTIVATED);
    command.stdin(socket.into());
    command
}

/// `bhav serve` in the scene's world, on a free port.
pub fn serve(scene: &Scene, state: &Path) -> Command {
    let mut command = without_admin(&["serve", "--listen=127.0.0.1:0", &few_candles()]);
    command.args(scene.flags(state)).stderr(Stdio::null());
    command
}

/// The flag that spares a program the candles of fifty shares.
pub fn few_candles() -> String {
    format!("--universe-file={UNIVERSE}")
}

/// The flag for a state directory.
pub fn state_flag(state: &Path) -> String {
    format!("--state-dir={}", state.display())
}

/// A process that does not outlive the test.
pub struct Process {
    pub child: Child,
}

impl Process {
    pub fn start(command: &mut Command) -> Self {
        Self {
            child: command.spawn().unwrap(),
        }
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it, as a supervisor does, and expects that it ends well.
    #[track_caller]
    pub fn ends(&mut self) {
        self.terminate();
        assert_eq!(self.exit().code(), Some(0));
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal)
            .unwrap();
    }

    /// Waits for its end.
    pub fn exit(&mut self) -> ExitStatus {
        until("the program's end", || self.child.try_wait().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Most processes have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that serves.
pub struct Program {
    process: Process,
    /// Its output up to the line with its address.
    pub printed: String,
    pub address: String,
    /// Its output after that.
    stdout: BufReader<ChildStdout>,
}

impl Program {
    pub fn start(args: &[&str]) -> Self {
        Self::of(without_admin(args).stderr(Stdio::null()))
    }

    /// Runs `command` until it listens.
    pub fn of(command: &mut Command) -> Self {
        let mut process = Process::start(command.stdout(Stdio::piped()));
        let mut lines = BufReader::new(process.child.stdout.take().unwrap());
        let mut printed = String::new();
        let address = loop {
            let start = printed.len();
            assert_ne!(lines.read_line(&mut printed).unwrap(), 0, "it ended: {printed}");
            if let Some(address) = printed[start..].strip_prefix("listening on http://") {
                break address.trim().to_owned();
            }
        };
        Self {
            process,
            printed,
            address,
            stdout: lines,
        }
    }

    /// `bhav demo` in the middle of trading.
    pub fn demo(state: &Path) -> Self {
        let now = format!("--now={TRADING}");
        Self::start(&[
            "demo",
            "--listen=127.0.0.1:0",
            &state_flag(state),
            &now,
            &few_candles(),
        ])
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.address)
    }

    /// Its whole output, once it has ended.
    pub fn said(&mut self) -> String {
        let mut said = self.printed.clone();
        self.stdout.read_to_string(&mut said).unwrap();
        said
    }
}

impl Deref for Program {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Program {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// Exit code and output of a command.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// Checks the exit code.
    #[track_caller]
    pub fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.err);
        self
    }
}

pub fn run(command: &mut Command) -> Ran {
    ran(command.output().unwrap())
}

/// Runs a command with `input` on standard input.
pub fn run_with(command: &mut Command, input: &str) -> Ran {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    ran(child.wait_with_output().unwrap())
}

fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Exit code and output of a `serve` that is expected to end by itself.
pub fn refused(args: &[&str]) -> (Option<i32>, String) {
    let ran = run(bhav(&["serve", "--admin-listen=off"]).args(args));
    (ran.code, ran.err)
}

/// A command with a terminal as its standard input. Its output is piped.
pub struct OnTerminal {
    child: Child,
    /// The person's end of the terminal.
    master: File,
    /// Its output so far.
    said: String,
}

impl OnTerminal {
    pub fn start(command: &mut Command) -> Self {
        let (master, slave) = terminal();
        command
            .stdin(slave)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        // The command then has the only copy of its end of the terminal, so that reading ends with
        // it.
        command.stdin(Stdio::null());
        Self {
            child,
            master,
            said: String::new(),
        }
    }

    /// Waits for the `prompt`, then types `text` and Enter.
    pub fn answer(&mut self, prompt: &str, text: &str) {
        let asked = self.said.len();
        let err = self.child.stderr.as_mut().unwrap();
        while !self.said[asked..].ends_with(prompt) {
            let mut byte = [0];
            assert_eq!(err.read(&mut byte).unwrap(), 1, "never asked {prompt}: {}", self.said);
            self.said.push(char::from(byte[0]));
        }
        self.master
            .write_all(format!("{text}\n").as_bytes())
            .unwrap();
    }

    /// The command's result, and the echo that the terminal showed.
    pub fn end(mut self) -> (Ran, String) {
        let mut ran = ran(self.child.wait_with_output().unwrap());
        ran.err.insert_str(0, &self.said);
        let mut shown = Vec::new();
        // On Linux the end of a terminal is an error.
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
