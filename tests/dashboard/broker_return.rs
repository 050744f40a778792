//! `/return/a` and `/return/b`: the code goes behind `#` and into no log.

use crate::support::{Answer, Scene, Service};

fn started() -> (Scene, Service) {
    let (scene, service) = Scene::trading();
    (scene, service)
}

fn form(service: &Service, more: &str, body: &str) -> Answer {
    service.client().ask(format!(
        "POST /return/b HTTP/1.1\r\nHost: localhost\r\nOrigin: https://broker.example\r\n\
         Sec-Fetch-Site: cross-site\r\n{more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    ))
}

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

fn expect_on(answer: &Answer, location: &str) {
    assert_eq!((answer.status, answer.header("location")), (303, Some(location)));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    assert!(answer.body.is_empty());
}

#[test]
fn the_code_goes_to_the_page_of_the_sync_behind_the_number_sign() {
    let (_scene, service) = started();
    for (path, location) in [
        (
            "/return/a?request_token=abc123&action=login&status=success",
            "/portfolio/sync/a#code=abc123",
        ),
        ("/return/a?status=success&REQUEST_TOKEN=abc", "/portfolio/sync/a#code=abc"),
        ("/return/b?apisession=12345678", "/portfolio/sync/b#code=12345678"),
        ("/return/b?API_Session=87654321", "/portfolio/sync/b#code=87654321"),
        ("/return/b?api%5Fsession=a%2Bb%26c%23", "/portfolio/sync/b#code=a%2Bb%26c%23"),
    ] {
        expect_on(&service.get(path), location);
        let head = service.client().request("HEAD", path, "");
        assert_eq!((head.status, head.header("location")), (303, Some(location)));
    }
    expect_on(&form(&service, FORM, "API_Session=123&x=1"), "/portfolio/sync/b#code=123");
    let charset = "Content-Type: application/x-www-form-urlencoded; charset=UTF-8\r\n";
    expect_on(&form(&service, charset, "apisession=9"), "/portfolio/sync/b#code=9");
}

#[test]
fn what_is_no_code_is_refused() {
    let (_scene, service) = started();
    let long = "a".repeat(513);
    for path in [
        "/return/a",
        "/return/a?request_token=",
        "/return/a?request_token=a&request_token=b",
        "/return/a?request_token=a%20b",
        "/return/a?request_token=a%0D%0ASet-Cookie:x",
        "/return/a?request_token=%C3%A4",
        "/return/a?request_token=%zz",
        "/return/a?apisession=1",
        "/return/b?request_token=1",
        "/return/b?apisession=1&API_Session=2",
        &format!("/return/a?request_token={long}"),
    ] {
        let answer = service.get(path);
        answer.expect_problem(400, "validation_failed");
        assert_eq!(answer.header("location"), None);
    }
    let longest = "a".repeat(512);
    let location = format!("/portfolio/sync/a#code={longest}");
    expect_on(&service.get(&format!("/return/a?request_token={longest}")), &location);
    form(&service, FORM, "nothing=1").expect_problem(400, "validation_failed");
    form(&service, "", "apisession=1").expect_problem(415, "unsupported_media_type");
    let large = format!("x={}&apisession=1", "y".repeat(4_096));
    let refused = form(&service, FORM, &large).expect_problem(413, "body_too_large");
    assert!(refused.to_string().contains("at most 4 KiB"), "{refused}");
    let longest = format!("x={}&apisession=1", "y".repeat(4_096 - "x=&apisession=1".len()));
    expect_on(&form(&service, FORM, &longest), "/portfolio/sync/b#code=1");
}
