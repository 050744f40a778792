//! `bhav completions` and `bhav man`, generated from the definitions of the command line. Main
//! thread.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::operator::{print, refuse};
use crate::ops::Exit;

const PROGRAM: &str = "bhav";

/// The definition of the command `completions`.
pub(crate) fn completions_command() -> Command {
    let shell = Arg::new("shell").value_name("SHELL").required(true);
    let shells = [Shell::Bash, Shell::Zsh, Shell::Fish];
    Command::new("completions")
        .about("Print completions for a shell")
        .arg(
            shell
                .value_parser(clap::builder::EnumValueParser::<Shell>::new())
                .help("The shell"),
        )
        .after_help(format!("Packaged for {}.", shells.map(|shell| shell.to_string()).join(", ")))
}

/// The definition of the command `man`.
pub(crate) fn man_command() -> Command {
    let folder = Arg::new("folder").value_name("DIR").required(true);
    Command::new("man")
        .about("Write the manual pages, one per command")
        .arg(
            folder
                .value_parser(value_parser!(PathBuf))
                .help("An existing folder"),
        )
}

/// `bhav completions`.
pub(crate) fn completions(matches: &ArgMatches, mut program: Command) -> ExitCode {
    let shell: &Shell = matches.get_one("shell").expect("clap demands it");
    let mut text = Vec::new();
    clap_complete::generate(*shell, &mut program, PROGRAM, &mut text);
    // Generated from our own definitions, so it is UTF-8.
    print(&String::from_utf8_lossy(&text))
}

/// Writes a page for the program and each of its commands.
fn write_pages(mut program: Command, folder: &Path) -> io::Result<()> {
    program = program.disable_help_subcommand(true);
    program.build();
    let mut left = vec![program];
    while let Some(command) = left.pop() {
        left.extend(
            command
                .get_subcommands()
                .filter(|below| !below.is_hide_set())
                .cloned(),
        );
        let page = Man::new(command);
        let mut text = Vec::new();
        page.render(&mut text)?;
        let text = with_lines_kept(&String::from_utf8_lossy(&text));
        fs::write(folder.join(page.get_filename()), text)?;
    }
    Ok(())
}

/// Keeps the line breaks of examples and exit codes, which roff would join into paragraphs.
fn with_lines_kept(page: &str) -> String {
    let mut text = String::with_capacity(page.len() + 16);
    let mut kept = false;
    for line in page.lines() {
        if line.starts_with(".SH") {
            if kept {
                text.push_str(".fi\n");
            }
            kept = line == ".SH EXTRA";
            text.push_str(line);
            text.push_str(if kept { "\n.nf\n" } else { "\n" });
        } else {
            text.push_str(line);
            text.push('\n');
        }
    }
    if kept {
        text.push_str(".fi\n");
    }
    text
}

/// `bhav man`.
pub(crate) fn man(matches: &ArgMatches, program: Command) -> ExitCode {
    let folder = matches
        .get_one::<PathBuf>("folder")
        .map_or(Path::new("."), PathBuf::as_path);
    match write_pages(program, folder) {
        Ok(()) => Exit::Ok.into(),
        Err(error) => refuse(&format!("{}: {error}", folder.display()), Exit::StateDir),
    }
}
