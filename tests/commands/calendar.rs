//! `bhav calendar`: what is known, and what a file would change.

use std::fs;

use crate::support::{Ran, bhav, run};

fn calendar(args: &[&str]) -> Ran {
    run(bhav(&["calendar"]).args(args))
}

#[test]
fn a_calendar_file_is_checked_before_it_is_put_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calendar.toml");
    let check = |text: &str| {
        fs::write(&file, text).unwrap();
        calendar(&["--check", file.to_str().unwrap()])
    };
    let ran = check("[[holiday]]\ndate = \"2026-12-01\"\nname = \"Polling\"\n").with_code(0);
    let said = ran.out;
    assert!(said.contains("2026-12-01\n  now:  trading"), "{said}");
    assert!(said.contains("then: holiday, Polling"), "{said}");
    let said = check("").with_code(0).out;
    assert!(said.contains("changes no date"), "{said}");
    let faulty = "\n[[holiday]]\ndate = \"1 December\"\nname = \"Polling\"\n";
    let fault = check(faulty).with_code(64).err;
    assert!(fault.contains("calendar.toml:3: "), "{fault}");
}

#[test]
fn the_calendar_names_its_sources_and_its_ends() {
    let said = calendar(&["--year", "2026"]).with_code(0).out;
    for part in [
        "NSE/CMTR/76963",
        "2026-12-25 Fri  Christmas",
        "Where it ends",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}
