//! The blocks of docs/proxies.md whose programs no test starts: they are YAML, name what exists,
//! and keep the numbers of the page's table.
//!
//! Left out where Python cannot read YAML; `.ci/run` installs what it needs.

use std::io::Write;
use std::process::{Command, Stdio};

use bhav::http::settings::HttpSettings;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::proxies::{NAME, PAGE, left_out};

/// YAML as JSON. What comes twice in one mapping is refused, which YAML's readers pass over.
const TO_JSON: &str = "
import json, sys, yaml
class Strict(yaml.SafeLoader):
    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f'twice: {keys}'
        return super().construct_mapping(node, deep)
json.dump(yaml.load(sys.stdin, Strict), sys.stdout)
";

/// The block of a section as JSON.
fn block(section: &str) -> Option<Value> {
    let (_, section) = PAGE
        .split_once(&format!("\n## {section}\n"))
        .expect("the section");
    let (_, after) = section.split_once("```yaml\n").expect("a block");
    let block = after.split_once("```").unwrap().0;
    let mut command = Command::new("python3");
    command
        .args(["-c", TO_JSON])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut python = command.stderr(Stdio::piped()).spawn().ok()?;
    python
        .stdin
        .take()
        .unwrap()
        .write_all(block.as_bytes())
        .unwrap();
    let output = python.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("No module named 'yaml'") {
        return None;
    }
    assert!(output.status.success(), "{said}\n{block}");
    Some(sonic_rs::from_slice(&output.stdout).unwrap())
}

fn names(value: &Value) -> Vec<String> {
    let object = value
        .as_object()
        .unwrap_or_else(|| panic!("{value} is no mapping"));
    object.iter().map(|(name, _)| name.to_owned()).collect()
}

#[track_caller]
fn expect_names(value: &Value, known: &[&str]) {
    for name in names(value) {
        assert!(known.contains(&name.as_str()), "{name} is not one of {known:?}");
    }
}

/// A duration of seconds.
fn seconds(value: &Value) -> u64 {
    let text = value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"));
    text.strip_suffix('s')
        .and_then(|digits| digits.parse().ok())
        .expect(text)
}

/// As the table wants it: closed before the service closes, which is tried in vain otherwise.
#[track_caller]
fn expect_closed_first(value: &Value) {
    let idle_ms = HttpSettings::default().idle_timeout_ms;
    assert!(seconds(value) * 1_000 < idle_ms, "{value}");
}

fn own_url() -> String {
    format!("http://{}", HttpSettings::default().listen)
}

#[test]
fn the_block_of_traefik_names_what_exists_and_keeps_the_pages_numbers() {
    let Some(whole) = block("Traefik") else {
        return left_out("python3 with yaml");
    };
    assert_eq!(names(&whole), ["http"]);
    let http = &whole["http"];
    expect_names(http, &["routers", "services", "serversTransports"]);
    for router in names(&http["routers"]) {
        let router = &http["routers"][router.as_str()];
        expect_names(router, &["rule", "entryPoints", "service", "tls"]);
        assert_eq!(router["rule"].as_str(), Some(format!("Host(`{NAME}`)").as_str()));
        let service = router["service"].as_str().unwrap();
        assert!(names(&http["services"]).contains(&service.to_owned()), "{service}");
        assert!(router["tls"]["certResolver"].is_str() && router["entryPoints"].is_array());
    }
    for service in names(&http["services"]) {
        let service = &http["services"][service.as_str()];
        assert_eq!(names(service), ["loadBalancer"]);
        let balancer = &service["loadBalancer"];
        let known = [
            "servers",
            "passHostHeader",
            "responseForwarding",
            "serversTransport",
        ];
        expect_names(balancer, &known);
        let servers = balancer["servers"].as_array().unwrap();
        assert_eq!((servers.len(), servers[0]["url"].as_str()), (1, Some(own_url().as_str())));
        // The browser's host, and each event at once.
        assert_eq!(balancer["passHostHeader"].as_bool(), Some(true));
        assert_eq!(balancer["responseForwarding"]["flushInterval"].as_str(), Some("-1"));
        let transport = balancer["serversTransport"].as_str().unwrap();
        let timeouts = &http["serversTransports"][transport]["forwardingTimeouts"];
        expect_names(timeouts, &["responseHeaderTimeout", "idleConnTimeout"]);
        expect_closed_first(&timeouts["idleConnTimeout"]);
        assert!(seconds(&timeouts["responseHeaderTimeout"]) > 30, "{timeouts}");
    }
}

#[test]
fn the_block_of_cloudflared_names_what_exists_and_keeps_the_pages_numbers() {
    let Some(whole) = block("cloudflared") else {
        return left_out("python3 with yaml");
    };
    assert_eq!(names(&whole), ["ingress"]);
    let rules = whole["ingress"].as_array().unwrap();
    let (last, others) = rules.as_slice().split_last().unwrap();
    // The program refuses to start where the last rule does not take everything.
    assert_eq!(
        (names(last), last["service"].as_str()),
        (vec!["service".into()], Some("http_status:404"))
    );
    assert_eq!(others.len(), 1);
    let rule = &others[0];
    expect_names(rule, &["hostname", "service", "originRequest"]);
    assert_eq!(rule["hostname"].as_str(), Some(NAME));
    assert_eq!(rule["service"].as_str(), Some(own_url().as_str()));
    // With `httpHostHeader` every change by cookie would be refused, as the page says.
    assert_eq!(names(&rule["originRequest"]), ["keepAliveTimeout"]);
    expect_closed_first(&rule["originRequest"]["keepAliveTimeout"]);
}
