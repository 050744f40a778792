//! The envelope: who may ask, in which order a request is judged, and JSON-RPC in each version.

use bhav::config::Config;
use fastrand::Rng;
use serde_json::{Value, json};

use super::assistant::{
    Assistant, META_CAPABILITIES, META_VERSION, NEW, OLD, VERSIONS, parts, post, refusal,
};
use crate::accounts::keys::{ALL, made, scene};
use crate::support::{Answer, Scene, Service, bearer};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// A service, the login of its user, and a key with all scopes.
fn stage(change: impl FnOnce(&mut Config)) -> (Scene, Service, String, String) {
    let (scene, service, login) = scene(change);
    let key = bearer(&made(&service, &login, ALL, "").1);
    (scene, service, login, key)
}

fn json_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

#[test]
fn each_version_is_greeted_as_it_wants() {
    let (_scene, service, _, key) = stage(|_| ());
    let new = Assistant::new(&service, &key, NEW);
    let found = new.result("server/discover", &json!({}));
    assert_eq!(found["supportedVersions"], json!(VERSIONS));
    assert_eq!(found["capabilities"], json!({"tools": {}}));
    assert!(found["ttlMs"].as_u64() > Some(0) && found["cacheScope"] == "public");
    let info = &found["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info, &json!({"name": "bhav", "version": bhav::ops::exit::VERSION}));
    for word in [
        "not investment advice",
        "never instructions",
        "null is unknown",
    ] {
        assert!(found["instructions"].as_str().unwrap().contains(word), "{word}");
    }
    for (wanted, given) in [
        (OLD[0], OLD[0]),
        (OLD[1], OLD[1]),
        (OLD[2], OLD[2]),
        ("2024-11-05", OLD[0]),
        ("1.0", OLD[0]),
        // Without a session it is spoken without `initialize`.
        (NEW, OLD[0]),
    ] {
        for version in VERSIONS {
            let params = json!({
                "protocolVersion": wanted,
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            });
            // It selects its era in a request that says anything else.
            let (headers, body) =
                Assistant::new(&service, &key, version).message("\"a\"", "initialize", &params);
            let answer = post(&service, &headers, &body);
            let result = &json_of(&answer)["result"];
            assert_eq!((answer.status, &result["protocolVersion"]), (200, &json!(given)));
            assert_eq!(result["serverInfo"]["name"], "bhav");
            assert_eq!(result["capabilities"], json!({"tools": {}}));
            assert!(result.get("resultType").is_none(), "{result}");
            assert_eq!(answer.header("mcp-session-id"), None);
        }
    }
    for version in OLD {
        assert_eq!(Assistant::new(&service, &key, version).result("ping", &json!({})), json!({}));
    }
}

#[test]
fn origin_key_rate_json_and_version_are_judged_in_this_order() {
    let (scene, service, login, key) = stage(|config| {
        config.auth.key_requests_per_minute = 3;
        config.http.allowed_origins = vec!["https://app.example".into()];
    });
    let unknown = "MCP-Protocol-Version: 1900-01-01\r\n";
    let bad_key = bearer(&format!("{}x", &key[22..80]));
    for origin in ["null", "https://evil.example", "http://localhost.evil", ""] {
        let headers = format!("Origin: {origin}\r\n{bad_key}{unknown}");
        post(&service, &headers, "{").expect_problem(403, "cross_site_request");
    }
    let twice = "Origin: https://app.example\r\nOrigin: https://app.example\r\n";
    post(&service, &format!("{twice}{key}"), PING).expect_problem(403, "cross_site_request");
    let answer = post(&service, &format!("{bad_key}{unknown}"), "{");
    answer.expect_problem(401, "key_invalid");
    assert!(
        answer
            .header("www-authenticate")
            .unwrap()
            .starts_with("Bearer")
    );
    let token = login
        .trim_start_matches("Authorization: Bearer ")
        .trim_end();
    let cookie = format!("Cookie: access_token_cookie={token}\r\nSec-Fetch-Site: same-origin\r\n");
    for nobody in ["", &login, &cookie, "Authorization: Basic YTpi\r\n"] {
        let answer = post(&service, &format!("{nobody}{unknown}"), "{");
        answer.expect_problem(401, "key_missing");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "no metadata elsewhere");
    }
    // None of these counted for the key. Three do.
    for (origin, body, expected) in [
        ("", "{", (400, -32_700)),
        ("Origin: https://app.example\r\n", "[]", (400, -32_600)),
        ("Origin: http://localhost\r\n", PING, (400, -32_022)),
    ] {
        let answer = post(&service, &format!("{origin}{key}{unknown}"), body);
        assert_eq!(refusal(&answer), expected, "{origin}{body}");
    }
    let answer = post(&service, &format!("{key}{unknown}"), "{");
    answer.expect_problem(429, "too_many_requests");
    assert_eq!(answer.header("retry-after"), Some("20"));
    scene.advance_ms(60_000);
    let answer = post(&service, &format!("{key}{unknown}"), PING);
    let error = &json_of(&answer)["error"];
    let data = json!({"supported": VERSIONS, "requested": "1900-01-01"});
    assert_eq!((answer.status, &error["code"], &error["data"]), (400, &json!(-32_022), &data));
    for path in [
        "oauth-protected-resource",
        "oauth-authorization-server",
        "oauth-x/mcp",
    ] {
        let target = format!("/.well-known/{path}");
        service
            .client()
            .request("GET", &target, "")
            .expect_problem(404, "not_found");
    }
}

#[test]
fn a_key_ends_at_once_and_scopes_of_writing_list_nothing() {
    let (_scene, service, login, _) = stage(|_| ());
    let scopes = r#""journal:write","trades:write""#;
    let (id, key) = made(&service, &login, scopes, "");
    let key = bearer(&key);
    for version in VERSIONS {
        assert!(Assistant::new(&service, &key, version).names().is_empty(), "{version}");
    }
    service
        .client()
        .request("DELETE", &format!("/api/keys/{id}"), &login);
    post(&service, &key, PING).expect_problem(401, "key_invalid");
}

#[test]
fn a_page_of_an_allowed_origin_may_ask() {
    let (_scene, service, _, key) =
        stage(|config| config.http.allowed_origins = vec!["https://app.example".into()]);
    let origin = "Origin: https://app.example\r\n";
    let headers = format!("{origin}Access-Control-Request-Method: POST\r\n");
    let preflight = service.client().request("OPTIONS", "/mcp", &headers);
    let allowed = preflight
        .header("access-control-allow-headers")
        .unwrap()
        .to_lowercase();
    for name in [
        "authorization",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
    ] {
        assert!(allowed.split(", ").any(|word| word == name), "{name}: {allowed}");
    }
    assert_eq!(preflight.header("access-control-allow-methods"), Some("OPTIONS, POST"));
    let answer = post(&service, &format!("{origin}{key}"), PING);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
}

#[test]
fn what_is_http_is_refused_as_everywhere() {
    let (_scene, service, _, key) = stage(|_| ());
    for method in ["GET", "HEAD", "DELETE", "PUT", "PATCH"] {
        let headers = format!("{key}Content-Length: 0\r\n");
        let answer = service.client().request(method, "/mcp", &headers);
        assert_eq!((answer.status, answer.header("allow")), (405, Some("OPTIONS, POST")));
    }
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=x",
    ] {
        let text = format!(
            "POST /mcp HTTP/1.1\r\nHost: a\r\n{key}Content-Type: {kind}\r\n\
             Content-Length: {}\r\n\r\n{PING}",
            PING.len()
        );
        service
            .client()
            .ask(text)
            .expect_problem(415, "unsupported_media_type");
    }
    post(&service, &format!("{key}Content-Encoding: gzip\r\n"), PING)
        .expect_problem(415, "unsupported_media_type");
    let large = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(65_536));
    post(&service, &key, &large).expect_problem(413, "body_too_large");
    let chunked = "POST /mcp HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
    service
        .client()
        .ask(chunked)
        .expect_problem(400, "malformed_request");
    post(&service, &format!("{key}If-Match: *\r\n"), PING)
        .expect_problem(412, "precondition_failed");
    let in_query = format!("/mcp?key={}", &key[22..].trim_end());
    let answer = service.client().send_json("POST", &in_query, "", PING);
    answer.expect_problem(400, "key_in_query");
    // Nothing is kept and nothing is streamed, whatever a client says.
    for lines in [
        "Mcp-Session-Id: 00000000-0000-0000-0000-000000000000\r\n",
        "Last-Event-ID: 7\r\n",
        "Accept: text/event-stream\r\n",
        "Accept: text/html\r\nAccept-Encoding: br\r\n",
        "MCP-Protocol-Version: 2025-06-18\r\nContent-Type: application/json\r\n",
    ] {
        let answer = post(&service, &format!("{key}{lines}"), PING);
        assert_eq!(answer.text(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "{lines}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("mcp-session-id"), None);
    }
}

#[test]
fn ids_come_back_as_they_were() {
    let (_scene, service, _, key) = stage(|_| ());
    let long = format!("\"{}\"", "x".repeat(1_022));
    for version in VERSIONS {
        let assistant = Assistant::new(&service, &key, version);
        for id in [
            "0",
            "-1",
            "123456789012345678901234567890",
            r#""""#,
            r#""\u0061/é""#,
            &long,
        ] {
            for (method, member) in [("tools/list", "result"), ("nothing", "error")] {
                let (headers, body) = assistant.message(id, method, &json!({}));
                let answer = post(&service, &headers, &body);
                let parts = parts(answer.text());
                assert_eq!(parts["id"].get(), id, "{}", answer.text());
                assert!(parts.contains_key(member), "{}", answer.text());
            }
        }
        for id in [
            "null",
            "1.5",
            "1.0",
            "1e2",
            "true",
            "[1]",
            "{}",
            r#""\ud83d""#,
        ] {
            let (headers, body) = assistant.message(id, "tools/list", &json!({}));
            let answer = post(&service, &headers, &body);
            assert_eq!(refusal(&answer), (400, -32_600), "{id}");
            assert!(!parts(answer.text()).contains_key("id"), "{}", answer.text());
        }
    }
}

#[test]
fn batches_are_refused_and_notifications_are_taken() {
    let (_scene, service, _, key) = stage(|_| ());
    for version in [
        "",
        "MCP-Protocol-Version: 2025-03-26\r\n",
        "MCP-Protocol-Version: 2026-07-28\r\n",
    ] {
        let headers = format!("{key}{version}");
        let batch = format!("[{PING},{PING}]");
        for body in [&*batch, "[]", "1", "null", "\"ping\""] {
            let answer = post(&service, &headers, body);
            assert_eq!(refusal(&answer), (400, -32_600), "{body}");
            assert!(!parts(answer.text()).contains_key("id"), "{}", answer.text());
        }
        for body in ["", "{", "nonsense", "{\"jsonrpc\":\"2.0\"", "\u{feff}{}"] {
            let answer = post(&service, &headers, body);
            assert_eq!(refusal(&answer), (400, -32_700), "{body}");
            assert!(!parts(answer.text()).contains_key("id"), "{}", answer.text());
        }
        for method in ["notifications/initialized", "notifications/cancelled", "x"] {
            let body = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
            let answer = post(&service, &headers, &body);
            assert_eq!((answer.status, &*answer.body), (202, &b""[..]), "{}", answer.head());
            assert_eq!(answer.header("content-type"), None);
            assert_eq!(answer.header("content-length"), Some("0"));
        }
        for body in [
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":["ping"]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#,
        ] {
            assert_eq!(refusal(&post(&service, &headers, body)), (400, -32_600), "{body}");
        }
    }
    let unknown = format!("{key}MCP-Protocol-Version: 1\r\n");
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(refusal(&post(&service, &unknown, notification)), (400, -32_022));
}

#[test]
fn an_unknown_method_or_tool_has_a_status_since_2026() {
    let (_scene, service, _, key) = stage(|_| ());
    let arguments = |name: &str| json!({"name": name, "arguments": {}});
    for version in VERSIONS {
        let assistant = Assistant::new(&service, &key, version);
        let is_new = version == NEW;
        let (method, params) = if is_new { (404, 400) } else { (200, 200) };
        let other = if is_new { "ping" } else { "server/discover" };
        for name in [
            other,
            "resources/list",
            "subscriptions/listen",
            "logging/setLevel",
            "",
            "é",
        ] {
            if is_new && name == "é" {
                continue; // No header can say it.
            }
            assert_eq!(assistant.refusal(name, &json!({})), (method, -32_601), "{version} {name}");
        }
        for name in ["nothing", "Quotes", "trades.csv", "openLots", "place_order"] {
            let refused = assistant.refusal("tools/call", &arguments(name));
            assert_eq!(refused, (params, -32_602), "{version} {name}");
        }
        for bad in [
            json!({}),
            json!({"name": 1}),
            json!({"name": "quotes", "arguments": []}),
        ] {
            assert_eq!(assistant.refusal("tools/call", &bad), (params, -32_602), "{bad}");
        }
        let next = assistant.refusal("tools/list", &json!({"cursor": "x"}));
        assert_eq!(next, (params, -32_602));
    }
}

/// A request of 2026-07-28: the version in its header and its `_meta`, the other header lines, and
/// whether it names its capabilities.
fn new_request(
    key: &str,
    header: Option<&str>,
    meta: Option<&str>,
    lines: &str,
    capabilities: Option<Value>,
) -> (String, String) {
    let header = header.map(|text| format!("mcp-protocol-version: {text}\r\n"));
    let mut inner = json!({});
    if let Some(meta) = meta {
        inner[META_VERSION] = json!(meta);
    }
    if let Some(capabilities) = capabilities {
        inner[META_CAPABILITIES] = capabilities;
    }
    let params = json!({"_meta": inner, "name": "search_instruments", "arguments": {"q": "x"}});
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    (format!("{key}{}{lines}", header.unwrap_or_default()), body)
}

#[test]
fn headers_repeat_the_body_since_2026() {
    let (_scene, service, _, key) = stage(|_| ());
    let good = "MCP-METHOD: tools/call\r\nmcp-name: search_instruments\r\n";
    let coded = "Mcp-Method: tools/call\r\nMcp-Name: =?base64?c2VhcmNoX2luc3RydW1lbnRz?=\r\n";
    let there = || Some(json!({}));
    let (new, old, unknown) = (Some(NEW), Some(OLD[0]), Some("2099-01-01"));
    for (header, meta, lines, capabilities, expected) in [
        (new, new, good, there(), (200, 0)),
        (new, new, coded, there(), (200, 0)),
        (None, new, good, there(), (400, -32_020)),
        (old, new, good, there(), (400, -32_020)),
        (unknown, new, good, there(), (400, -32_020)),
        (new, old, good, there(), (400, -32_020)),
        (new, unknown, good, there(), (400, -32_020)),
        (unknown, unknown, good, there(), (400, -32_022)),
        (None, unknown, good, there(), (400, -32_022)),
        (unknown, None, "", None, (400, -32_022)),
        (new, None, good, there(), (400, -32_602)),
        (new, new, good, None, (400, -32_602)),
        (new, new, good, Some(json!(1)), (400, -32_602)),
        (new, new, "Mcp-Name: search_instruments\r\n", there(), (400, -32_020)),
        (new, new, "Mcp-Method: tools/call\r\n", there(), (400, -32_020)),
        (new, new, &good.replace("tools/call", "tools/list"), there(), (400, -32_020)),
        (new, new, &good.replace("tools/call", "Tools/Call"), there(), (400, -32_020)),
        (new, new, &good.replace("search_instruments", "quotes"), there(), (400, -32_020)),
        (new, new, &coded.replace("?=", ""), there(), (400, -32_020)),
        (new, new, &coded.replace("base64", "BASE64"), there(), (400, -32_020)),
        (new, new, &format!("{good}Mcp-Method: tools/call\r\n"), there(), (400, -32_020)),
        // The older ones want none of this, and may say their version anywhere.
        (old, None, "", None, (200, 0)),
        (old, old, "Mcp-Method: other\r\n", there(), (200, 0)),
        (None, old, "", None, (200, 0)),
        (None, None, "", None, (200, 0)),
    ] {
        let (headers, body) = new_request(&key, header, meta, lines, capabilities);
        let answer = post(&service, &headers, &body);
        let shown = format!("{header:?} {meta:?} {lines}{}", answer.text());
        let code = json_of(&answer)["error"]["code"].as_i64().unwrap_or(0);
        assert_eq!((answer.status, code), expected, "{shown}");
    }
}

/// Whatever a stranger with a key sends, the answer is JSON-RPC and no fault of the service.
#[test]
fn mangled_messages_are_answered() {
    let (_scene, service, _, key) = stage(|_| ());
    let mut rng = Rng::with_seed(fastrand::u64(..));
    let seed = rng.get_seed();
    let mut client = service.client();
    let mut answered = [0; 2];
    for round in 0..400 {
        let assistant = Assistant::new(&service, &key, VERSIONS[round % 4]);
        let method = ["tools/list", "tools/call", "initialize", "ping"][rng.usize(..4)];
        let arguments = json!({"q": "in", "é": [1, "x"]});
        let params = json!({"name": "search_instruments", "arguments": arguments});
        let (headers, body) = assistant.message("\"a\\u0041\"", method, &params);
        let mut bytes = body.into_bytes();
        for _ in 0..rng.usize(..4) {
            if bytes.len() < 2 {
                break;
            }
            let at = rng.usize(..bytes.len());
            match rng.u8(..4) {
                0 => bytes[at] = rng.u8(..),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, b"{}[]\",:\\0"[rng.usize(..9)]),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let length = bytes.len();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{headers}\r\n"
        );
        let answer = client.ask([head.as_bytes(), &bytes].concat());
        let shown = format!("seed {seed}: {}: {}", String::from_utf8_lossy(&bytes), answer.text());
        assert!([200, 202, 400, 404].contains(&answer.status), "{shown}");
        if answer.status != 202 {
            let json = json_of(&answer);
            assert_eq!(json["jsonrpc"], "2.0", "{shown}");
            let is_error = json.get("error").is_some();
            assert_ne!(is_error, json.get("result").is_some(), "{shown}");
            answered[usize::from(is_error)] += 1;
        }
    }
    assert!(answered.iter().all(|count| *count > 20), "{answered:?}");
}
