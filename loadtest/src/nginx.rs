//! The nginx peer: a configuration that returns the snapshot from memory with `return 200`.

use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::harness::Programs;
use crate::snapshot::{self, Snapshot};

/// nginx reads one configuration word into a buffer of 4,096 bytes.
const WORD_BYTES_MAX: usize = 4_000;

/// The command of an nginx that serves `snapshot`.
pub fn command(programs: &Programs, address: SocketAddr, snapshot: &Snapshot) -> Result<Command> {
    let program = programs.nginx.as_ref().context("nginx is not installed")?;
    let configuration = configuration(address, &snapshot.headers, &snapshot.body)?;
    let file = programs.work_folder.join("nginx.conf");
    fs::write(&file, configuration).context("write nginx.conf")?;
    let mut command = Command::new(program);
    command
        .arg("-p")
        .arg(&programs.work_folder)
        .arg("-c")
        .arg(&file)
        .args(["-e", "stderr"]);
    Ok(command)
}

/// Where nginx is, if it is installed.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let others = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let folders = std::env::split_paths(&path).chain(others);
    folders
        .map(|folder| folder.join("nginx"))
        .find(|file| file.is_file())
}

/// Renders the configuration. Everything that costs and that the other peers do not do is off.
fn configuration(listen: SocketAddr, headers: &[(String, String)], body: &str) -> Result<String> {
    let body = quoted(body);
    let bytes = body.len();
    let fits = bytes <= WORD_BYTES_MAX;
    ensure!(fits, "a body of {bytes} bytes is too long for nginx's return; leave nginx out");
    let mut header_lines = String::new();
    let mut content_type = "application/json";
    for (name, value) in headers {
        if name.eq_ignore_ascii_case("content-type") {
            content_type = value;
        } else {
            let value = quoted(value);
            let _ = writeln!(header_lines, "      add_header {name} {value};");
        }
    }
    let content_type = quoted(content_type);
    let path = snapshot::PATH;
    // reuseport spreads connections evenly over the workers; without it one worker may take most.
    Ok(format!(
        "worker_processes 2;
daemon off;
pid nginx.pid;
error_log stderr error;
events {{
  worker_connections 19000;
}}
http {{
  access_log off;
  server_tokens off;
  keepalive_timeout 3600s;
  keepalive_requests 1000000000;
  client_body_temp_path temp;
  proxy_temp_path temp;
  fastcgi_temp_path temp;
  uwsgi_temp_path temp;
  scgi_temp_path temp;
  geo $dollar {{ default \"$\"; }}
  server {{
    listen {listen} backlog=4096 reuseport;
    location = {path} {{
      default_type {content_type};
{header_lines}      return 200 {body};
    }}
  }}
}}
"
    ))
}

/// A configuration word: quotes and backslashes escaped, and `$`, which cannot be escaped, taken
/// from a variable.
fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('\'', "\\'")
        .replace('$', "${dollar}");
    format!("'{escaped}'")
}

#[cfg(test)]
mod tests {
    use super::{configuration, quoted};

    #[test]
    fn quoting() {
        assert_eq!(quoted(r#"{"a":"b\n$1'"}"#), r#"'{"a":"b\\n${dollar}1\'"}'"#);
    }

    #[test]
    fn too_long_a_body_is_refused() {
        let listen = "127.0.0.1:80".parse().expect("an address");
        assert!(configuration(listen, &[], &"x".repeat(5_000)).is_err());
        assert!(configuration(listen, &[], &"x".repeat(3_400)).is_ok());
    }
}
