//! Streams through nginx in its default configuration, without settings for streams.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use bhav::rt::threads;

use super::stage::Stage;
use crate::support::wait::PATIENCE_MS;
use crate::support::{Client, EventReader, Process, STREAM, until};

/// One process, which uses its default HTTP/1.0 to the service.
fn config(dir: &str, address: &str) -> String {
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let paths: String = temporary
        .iter()
        .map(|kind| format!("{kind}_temp_path {dir}/{kind};\n"))
        .collect();
    format!(
        "daemon off; master_process off; pid {dir}/pid; error_log {dir}/error.log;\n\
         events {{}}\n\
         http {{\naccess_log off;\n{paths}\
         server {{ listen unix:{dir}/nginx.sock; location / {{ proxy_pass http://{address}; }} }}\n\
         }}\n"
    )
}

/// `None` if nginx is not installed.
fn nginx(dir: &Path, address: &str) -> Option<(Process, String)> {
    let shown = dir.display().to_string();
    let file = dir.join("nginx.conf");
    std::fs::write(&file, config(&shown, address)).unwrap();
    let mut command = Command::new("nginx");
    command
        .arg("-e")
        .arg(dir.join("error.log"))
        .arg("-c")
        .arg(file);
    let child = match command.stdin(Stdio::null()).stderr(Stdio::null()).spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        child => child.unwrap(),
    };
    Some((Process { child }, format!("unix:{shown}/nginx.sock")))
}

#[test]
fn each_event_passes_nginx_at_once_and_the_end_too() {
    let stage = Stage::running(|config| config.http.drain_timeout_ms = PATIENCE_MS);
    stage.publish(0, 1_000);
    let dir = tempfile::tempdir().unwrap();
    let Some((_nginx, front)) = nginx(dir.path(), stage.service.0.address()) else {
        // Skipped; `.ci/run` installs it.
        stage.service.stop();
        return;
    };
    until("nginx to listen", || Client::try_connect(&front).is_ok());
    let mut readers: Vec<EventReader> = ["gzip", "identity"]
        .into_iter()
        .map(|coding| {
            let request =
                format!("GET {STREAM} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n");
            EventReader::ask(Client::connect(&front), &request)
        })
        .collect();
    for reader in &mut readers {
        reader.event_named("snapshot");
    }
    assert_eq!(readers[0].head.header("content-encoding"), Some("gzip"));
    for number in 1..6 {
        let json = stage.publish(number, 1_000);
        for reader in &mut readers {
            assert_eq!(reader.event_named("snapshot").data, json);
        }
    }
    let Stage {
        service,
        scene: _scene,
    } = stage;
    let stopping = threads::spawn("stopping", move || service.stop()).unwrap();
    for reader in &mut readers {
        assert_eq!(reader.event(), None);
        assert!(reader.is_complete && reader.parser.retry != Some(3_000));
    }
    assert_eq!(stopping.join().unwrap(), 0);
}
