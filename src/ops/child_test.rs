//! Runs a unit test again, alone in a child process, for tests of process-wide state: signal
//! handlers, the environment, the panic hook.

use std::process::{Command, Output};

/// Set in the child's environment.
const CHILD: &str = "BHAV_TEST_CHILD";

/// Whether this process was started by [`run`].
pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs the test `name` of the module `module` (`module_path!()`) in a child process and returns
/// what it printed. `prepare` completes the command.
///
/// # Panics
/// If the child did not run exactly this one test, as after a renaming, or the test failed.
pub(crate) fn run(module: &str, name: &str, prepare: impl FnOnce(&mut Command)) -> Output {
    let module = module.split_once("::").map_or(module, |(_, inside)| inside);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &format!("{module}::{name}"), "--nocapture"])
        .env(CHILD, "1");
    prepare(&mut command);
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("test result: ok. 1 passed"),
        "{module}::{name}: {printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_runs_no_test_is_a_failure() {
        let ran = || run(module_path!(), "a_test_that_is_not_there", |_| {});
        assert!(std::panic::catch_unwind(ran).is_err());
    }
}
