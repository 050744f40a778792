//! Tests of the transport against a real socket: all faults below the HTTP status.

use std::io::Write;
use std::net::TcpListener;

use super::*;
use crate::brokers::testing::{Seen, answer, drip, linger, serve};

fn settings() -> UpstreamSettings {
    UpstreamSettings {
        response_bytes_max: 10_000,
        ..UpstreamSettings::default()
    }
}

fn get(url: &str) -> Result<Reply, TransportError> {
    fetch_with(&settings(), url)
}

fn fetch_with(settings: &UpstreamSettings, url: &str) -> Result<Reply, TransportError> {
    let transport = Transport::new(settings, url, "test", Redirects::WithinOrigin);
    transport.get(url, &[], CallLimits::usual(settings))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn connection_refused_is_unreachable() {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let error = get(&format!("http://{address}/")).unwrap_err();
    assert!(matches!(error, TransportError::Unreachable(_)), "{error:?}");
}

#[test]
fn a_head_that_does_not_come_times_out() {
    serve(
        |_, stream| linger(stream),
        |url, _| {
            let error = fetch_with(
                &UpstreamSettings {
                    read_timeout_ms: 300,
                    ..settings()
                },
                url,
            )
            .unwrap_err();
            assert!(matches!(error, TransportError::TimedOut { limit_ms: 300 }), "{error:?}");
        },
    );
}

#[test]
fn a_dripping_body_ends_at_the_total_deadline() {
    serve(
        |_, stream| {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
                .unwrap();
            drip(stream);
        },
        |url, _| {
            let error = fetch_with(
                &UpstreamSettings {
                    total_timeout_ms: 500,
                    ..settings()
                },
                url,
            )
            .unwrap_err();
            assert!(matches!(error, TransportError::TimedOut { limit_ms: 500 }), "{error:?}");
        },
    );
}

#[test]
fn a_truncated_body_is_not_an_answer() {
    serve(
        |_, stream| {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"sta")
                .unwrap();
        },
        |url, _| {
            let error = get(url).unwrap_err();
            assert!(matches!(error, TransportError::Broken(_)), "{error:?}");
        },
    );
}

#[test]
fn bytes_that_are_not_http_are_not_an_answer() {
    serve(
        |_, stream| stream.write_all(b"SSH-2.0-OpenSSH_9.6\r\n\r\n").unwrap(),
        |url, _| {
            let error = get(url).unwrap_err();
            assert!(matches!(error, TransportError::Broken(_)), "{error:?}");
        },
    );
}

#[test]
fn the_body_cap_is_exact() {
    serve(
        |request, stream| {
            let bytes = if request.target == "/most" {
                10_000
            } else {
                10_001
            };
            answer(stream, 200, "", &vec![b'x'; bytes]);
        },
        |url, _| {
            assert_eq!(get(&format!("{url}/most")).unwrap().body.len(), 10_000);
            let error = get(&format!("{url}/more")).unwrap_err();
            assert!(matches!(
                error,
                TransportError::TooLarge {
                    limit_bytes: 10_000
                }
            ));
        },
    );
}

#[test]
fn gzip_is_undone_and_a_bomb_is_counted_unpacked() {
    let fine = gzip(&[b' '; 9_000]);
    let bomb = gzip(&vec![b' '; 20_000_000]);
    assert!(bomb.len() < 100_000);
    serve(
        |request, stream| {
            let packed = if request.target == "/bomb" {
                &bomb
            } else {
                &fine
            };
            answer(stream, 200, "Content-Encoding: gzip\r\n", packed);
        },
        |url, _| {
            assert_eq!(get(&format!("{url}/fine")).unwrap().body.len(), 9_000);
            let error = get(&format!("{url}/bomb")).unwrap_err();
            assert!(matches!(error, TransportError::TooLarge { .. }), "{error:?}");
        },
    );
}

#[test]
fn a_tls_handshake_without_answer_ends_at_the_connect_deadline() {
    serve(
        |_, stream| linger(stream),
        |url, _| {
            let settings = UpstreamSettings {
                connect_timeout_ms: 300,
                ..settings()
            };
            let error = fetch_with(&settings, &url.replace("http://", "https://")).unwrap_err();
            assert!(matches!(error, TransportError::TimedOut { limit_ms: 300 }), "{error:?}");
        },
    );
}

#[test]
fn no_other_origin_is_ever_spoken_to() {
    serve(
        |_, stream| answer(stream, 200, "", b""),
        |url, seen| {
            let settings = settings();
            let port: u16 = url.rsplit(':').next().unwrap().parse().unwrap();
            for base in [
                "https://127.0.0.1".to_owned(),
                url.replace("http://", "https://"),
                url.replace("127.0.0.1", "localhost"),
                format!("http://127.0.0.1:{}", port ^ 1),
            ] {
                for redirects in [Redirects::Never, Redirects::WithinOrigin] {
                    let transport = Transport::new(&settings, &base, "test", redirects);
                    for transport in [transport.apart(), transport] {
                        let limits = CallLimits::usual(&settings);
                        let error = transport.get(url, &[], limits).unwrap_err();
                        assert!(matches!(error, TransportError::Redirected), "{base} {error:?}");
                    }
                }
            }
            assert!(seen().is_empty());
        },
    );
}

#[test]
fn redirects_are_followed_up_to_the_bound() {
    serve(
        |request, stream| match request.target.as_str() {
            "/once" => answer(stream, 302, "Location: /end\r\n", b""),
            "/end" => answer(stream, 200, "", b"there"),
            _ => answer(stream, 302, "Location: /loop\r\n", b""),
        },
        |url, seen| {
            assert_eq!(get(&format!("{url}/once")).unwrap().body, b"there");
            let error = get(&format!("{url}/loop")).unwrap_err();
            assert!(matches!(error, TransportError::Redirected), "{error:?}");
            assert_eq!(seen().iter().filter(|r| r.target == "/loop").count(), 3);
        },
    );
}

/// The results of a call by each method.
fn ask_all(transport: &Transport, url: &str) -> Vec<Result<Reply, TransportError>> {
    let limits = CallLimits::usual(&settings());
    let headers = [("authorization", "token a:b"), ("x-sessiontoken", "s")];
    vec![
        transport.get(url, &headers, limits),
        transport.delete(url, &headers, limits),
        transport.post_form(url, &headers, &[("request_token", "r")], limits),
        transport.fetch_with_json(url, &headers, b"{\"SessionToken\":\"s\"}", limits),
    ]
}

#[test]
fn a_redirect_leads_nowhere_for_brokers_and_never_to_another_origin() {
    let thief = |_: &Seen, stream: &mut std::net::TcpStream| answer(stream, 200, "", b"thanks");
    serve(thief, |elsewhere, stolen| {
        for status in [301, 302, 303, 307, 308] {
            let away = |request: &Seen, stream: &mut std::net::TcpStream| {
                let to = match request.target.as_str() {
                    "/away" => format!("{elsewhere}/take"),
                    "/relative" => format!("//{}/take", &elsewhere["http://".len()..]),
                    _ => "/here".to_owned(),
                };
                answer(stream, status, &format!("Location: {to}\r\n"), b"");
            };
            serve(away, |url, seen| {
                let never = Transport::new(&settings(), url, "test", Redirects::Never);
                let within = Transport::new(&settings(), url, "test", Redirects::WithinOrigin);
                for target in ["away", "relative", "same"] {
                    for result in ask_all(&never, &format!("{url}/{target}")) {
                        let error = result.unwrap_err();
                        assert!(matches!(error, TransportError::Redirected), "{status} {error:?}");
                    }
                }
                assert_eq!(seen().len(), 12, "not even to itself");
                for target in ["away", "relative"] {
                    for result in ask_all(&within, &format!("{url}/{target}")) {
                        let error = result.unwrap_err();
                        assert!(matches!(error, TransportError::Redirected), "{status} {error:?}");
                    }
                }
                assert_eq!(seen().len(), 20);
            });
        }
        assert!(stolen().is_empty(), "{:?}", stolen());
    });
}

#[test]
fn an_error_status_is_an_answer_with_its_headers() {
    serve(
        |_, stream| {
            let headers = "Content-Type: text/html\r\nRetry-After: 7\r\nX-Bhav-Simulator: 1\r\n";
            answer(stream, 503, headers, b"<html>down</html>");
        },
        |url, _| {
            let reply = get(url).unwrap();
            assert_eq!((reply.status, reply.simulated), (503, true));
            assert_eq!(reply.retry_after, Some(Duration::from_secs(7)));
            assert_eq!(reply.content_type.as_deref(), Some("text/html"));
            assert_eq!(reply.body, b"<html>down</html>");
        },
    );
}

#[test]
fn sends_forms_json_bodies_and_headers() {
    serve(
        |_, stream| answer(stream, 200, "", b"{}"),
        |url, seen| {
            let settings = settings();
            let limits = CallLimits::usual(&settings);
            let transport = Transport::new(&settings, url, "agent/1", Redirects::Never);
            let headers = [("authorization", "token a:b")];
            transport
                .post_form(url, &headers, &[("k", "a b&c")], limits)
                .unwrap();
            transport
                .fetch_with_json(url, &headers, b"{\"a\":1}", limits)
                .unwrap();
            let seen = seen();
            assert_eq!((seen[0].method.as_str(), seen[0].body.as_str()), ("POST", "k=a%20b%26c"));
            assert_eq!((seen[1].method.as_str(), seen[1].body.as_str()), ("GET", "{\"a\":1}"));
            assert_eq!(seen[1].header("content-type"), Some("application/json"));
            assert_eq!(seen[0].header("authorization"), Some("token a:b"));
            assert_eq!(seen[0].header("user-agent"), Some("agent/1"));
        },
    );
}

#[test]
fn a_bad_header_is_refused_without_being_shown() {
    let settings = settings();
    let error = Transport::new(&settings, "http://x", "t", Redirects::Never)
        .get("http://x/", &[("authorization", "token \n")], CallLimits::usual(&settings))
        .unwrap_err();
    assert!(!error.to_string().contains("token"), "{error}");
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
    for (value, expected_s) in [
        ("120", Some(120)),
        ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
        ("Sun, 06 Nov 1994 08:40:00 GMT", Some(0)),
        ("soon", None),
        ("-1", None),
    ] {
        assert_eq!(retry_after(value, date), expected_s.map(Duration::from_secs), "{value}");
    }
}

#[test]
fn queries_are_encoded() {
    let mut url = "http://h/quote".to_owned();
    push_query(&mut url, "i", "NSE:M&M");
    push_query(&mut url, "i", "NSE:NIFTY 50");
    assert_eq!(url, "http://h/quote?i=NSE%3AM%26M&i=NSE%3ANIFTY%2050");
}
