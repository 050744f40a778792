//! An environment of its own for a program: a mount namespace with a small disk. It needs no
//! privilege if the system lets users make namespaces.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Size of the disk: enough for a start, and soon full.
const DISK_KIB: u32 = 3 * 1024;

/// Dropping it ends everything mounted in it.
pub struct Room {
    keeper: Child,
}

impl Room {
    /// Mounts the small disk over `directory`.
    pub fn with_disk(directory: &Path) -> Self {
        let script = format!(
            "mount -t tmpfs -o size={DISK_KIB}k,mode=700 bhav \"$0\" && echo ready && exec cat"
        );
        let mut keeper = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(keeper.stdout.as_mut().unwrap())
            .read_line(&mut said)
            .unwrap();
        assert_eq!(
            said, "ready\n",
            "this test needs user and mount namespaces; where AppArmor forbids them: \
             sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        );
        Self { keeper }
    }

    /// `program` inside the room; its process id is the child's.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let target = self.keeper.id().to_string();
        command.args([
            "--preserve-credentials",
            "--user",
            "--mount",
            "--target",
            &target,
        ]);
        command.arg(program).env_clear().stdin(Stdio::null());
        command
    }

    /// Runs a script inside, with `directory` as `$0`.
    #[track_caller]
    pub fn sh(&self, script: &str, directory: &Path) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut command = self.command("sh");
        let output = command
            .env("PATH", path)
            .args(["-c", script])
            .arg(directory)
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}
