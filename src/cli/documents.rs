//! `bhav completions` and `bhav man`: made from the command line's own definitions, so that they
//! cannot tell of another program. Main thread.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;

use super::operator::{print, refuse};
use crate::ops::Exit;

const PROGRAM: &str = "bhav";

/// `completions`' part of the command line.
pub fn completions_command() -> Command {
    let shell = Arg::new("shell").value_name("SHELL").required(true);
    let shells = [Shell::Bash, Shell::Zsh, Shell::Fish];
    Command::new("completions")
        .about("Print completions for a shell")
        .arg(shell.value_parser(clap::builder::EnumValueParser::<Shell>::new()).help("Which one"))
        .after_help(format!("Packaged for {}.", shells.map(|shell| shell.to_string()).join(", ")))
}

/// `man`'s part of the command line.
pub fn man_command() -> Command {
    let folder = Arg::new("folder").value_name("DIR").required(true);
    Command::new("man")
        .about("Write the manual pages, one per command")
        .arg(folder.value_parser(value_parser!(PathBuf)).help("An existing folder"))
}

/// `bhav completions`.
pub fn completions(matches: &ArgMatches, mut program: Command) -> ExitCode {
    let Some(shell) = matches.get_one::<Shell>("shell") else {
        unreachable!("clap demands it");
    };
    let mut text = Vec::new();
    clap_complete::generate(*shell, &mut program, PROGRAM, &mut text);
    // Made of the definitions' own text.
    print(&String::from_utf8_lossy(&text))
}

/// `bhav man`.
pub fn man(matches: &ArgMatches, program: Command) -> ExitCode {
    let folder = matches.get_one::<PathBuf>("folder").map_or(Path::new("."), PathBuf::as_path);
    match clap_mangen::generate_to(program, folder) {
        Ok(()) => Exit::Ok.into(),
        Err(error) => refuse(&format!("{}: {error}", folder.display()), Exit::StateDir),
    }
}
