//! Pages and files: headers, codings, conditions, methods, and the switch.

use crate::support::{Answer, Client, Scene, TRADING, until};

pub(super) const PAGES: [&str; 17] = [
    "/",
    "/watch",
    "/login",
    "/portfolio",
    "/portfolio/sync/a",
    "/portfolio/sync/b",
    "/trend",
    "/signals",
    "/journal",
    "/trades",
    "/gains",
    "/integrity",
    "/account",
    "/status",
    "/api",
    "/s/NSE:INFY",
    "/s/NSE:NIFTY%2050",
];

/// The policy of the pages, literally.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors \
    'none'; require-trusted-types-for 'script'; trusted-types shell";

const CODINGS: [&str; 3] = ["br", "gzip", "identity"];

fn coded(client: &mut Client, path: &str, coding: &str) -> Answer {
    client.request("GET", path, &format!("Accept-Encoding: {coding}\r\n"))
}

/// The paths of the files that a page loads.
fn linked(page: &str) -> Vec<String> {
    let found = page.split('"').filter(|text| text.starts_with("/assets/"));
    found.map(str::to_owned).collect()
}

const PAGE_HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=()"),
];
/// Headers of a file, which has no permissions if it is opened by itself.
const FILE_HEADERS: [(&str, &str); 3] = [
    ("content-security-policy", "default-src 'none'"),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
];

fn expect_safe(answer: &Answer, path: &str) {
    let expected: &[_] = if path.starts_with("/assets/") {
        &FILE_HEADERS
    } else {
        &PAGE_HEADERS
    };
    for (name, value) in expected {
        assert_eq!(answer.header(name), Some(*value), "{path}");
    }
}

#[test]
fn every_page_and_file_comes_in_every_coding_with_its_headers() {
    let (_scene, service) = Scene::trading();
    let mut client = service.client();
    let mut files = linked(client.get("/").text());
    files.sort();
    files.dedup();
    assert!(files.len() > 8, "{files:?}");
    let pages = PAGES.iter().map(|path| ((*path).to_owned(), "no-cache"));
    let files = files
        .into_iter()
        .map(|path| (path, "public, max-age=31536000, immutable"));
    for (path, kept) in pages.chain(files) {
        let plain = coded(&mut client, &path, "identity");
        assert_eq!((plain.status, plain.header("content-encoding")), (200, None), "{path}");
        let mut tags = Vec::new();
        for coding in CODINGS {
            let is_coded = coding != "identity" && plain.body.len() >= 256;
            // On a busy machine the first request may get the uncompressed file.
            let answer = until("the compressed file", || {
                let answer = coded(&mut client, &path, coding);
                (answer.header("content-encoding").is_some() == is_coded).then_some(answer)
            });
            expect_safe(&answer, &path);
            assert_eq!(answer.header("cache-control"), Some(kept), "{path}");
            assert_eq!(answer.header("vary"), Some("Accept-Encoding"), "{path}");
            assert_eq!(answer.header("content-encoding"), is_coded.then_some(coding), "{path}");
            // The bytes of a picture are no text.
            if path.ends_with(".png") {
                assert!(plain.body.starts_with(b"\x89PNG"), "{path}");
            } else {
                assert_eq!(answer.decoded(), plain.text(), "{path} as {coding}");
            }
            let etag = answer.header("etag").unwrap().to_owned();
            let lines = format!("Accept-Encoding: {coding}\r\nIf-None-Match: {etag}\r\n");
            let again = client.request("GET", &path, &lines);
            assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
            let head = client.request("HEAD", &path, &format!("Accept-Encoding: {coding}\r\n"));
            let without_date = |answer: &Answer| {
                let headers = answer.headers.iter().filter(|(name, _)| name != "Date");
                headers.cloned().collect::<Vec<_>>()
            };
            assert_eq!((head.status, without_date(&head)), (200, without_date(&answer)), "{path}");
            tags.push(etag);
        }
        tags.dedup();
        assert_eq!(tags.len(), if plain.body.len() >= 256 { 3 } else { 1 }, "{path}");
    }
}

#[test]
fn the_service_worker_is_asked_for_anew_and_is_of_the_version_of_the_pages() {
    let (_scene, service) = Scene::trading();
    let mut client = service.client();
    let folder = linked(client.get("/").text()).remove(0);
    let version = folder.split('/').nth(2).unwrap();
    let worker = client.get("/worker.js");
    assert_eq!((worker.status, worker.header("cache-control")), (200, Some("no-cache")));
    assert_eq!(worker.header("content-type"), Some("text/javascript; charset=utf-8"));
    assert_eq!(worker.header("content-security-policy"), Some("default-src 'self'"));
    assert_eq!(worker.header("x-content-type-options"), Some("nosniff"));
    assert!(worker.text().contains(&format!("'shell {version}'")), "{}", worker.text());
    assert!(!worker.text().contains("%V%"));
    let tag = worker.header("etag").unwrap().to_owned();
    let again = client.request("GET", "/worker.js", &format!("If-None-Match: {tag}\r\n"));
    assert_eq!(again.status, 304);
}

#[test]
fn all_pages_are_one_document_and_know_no_user() {
    let (_scene, service) = Scene::trading();
    let token = service.register("asha@mail.example", "correct horse");
    let mut client = service.client();
    let page = client.get("/");
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    for path in PAGES {
        let own = client.request("GET", path, &format!("Cookie: access_token_cookie={token}\r\n"));
        assert_eq!(own.text(), page.text(), "{path}");
        assert_eq!(own.header("set-cookie"), None);
    }
}

#[test]
fn other_methods_and_other_paths_are_refused() {
    let (_scene, service) = Scene::trading();
    let mut client = service.client();
    let file = linked(client.get("/").text()).remove(0);
    for path in ["/", "/portfolio", &file, "/return/a"] {
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let answer = client.request(method, path, "Content-Length: 0\r\n");
            answer.expect_problem(405, "method_not_allowed");
            assert_eq!(answer.header("allow"), Some("GET, HEAD, OPTIONS"), "{method} {path}");
        }
        let answer = client.request("OPTIONS", path, "");
        assert_eq!(answer.status, 204);
        assert_eq!(answer.header("allow"), Some("GET, HEAD, OPTIONS"), "{path}");
    }
    let folder = &file[..file.rfind('/').unwrap()];
    let elsewhere = file.replace("/assets/", "/assets/0");
    let missing = [
        format!("{folder}/nothing.js"),
        format!("{folder}/jsconfig.json"),
        format!("{folder}/index.html"),
        format!("{folder}/"),
        format!("{folder}/../../Cargo.toml"),
        elsewhere,
        "/assets/".into(),
        "/portfolio//".into(),
        "/portfolio/sync/c".into(),
        "/return/c".into(),
        "/index.html".into(),
    ];
    for path in missing {
        client.get(&path).expect_problem(404, "not_found");
    }
}

#[test]
fn a_person_at_a_wrong_path_gets_a_page_and_a_program_a_problem() {
    let (_scene, service) = Scene::trading();
    let mut client = service.client();
    let document = client.get("/").text().to_owned();
    let person = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";
    for path in ["/nothing/", "/nothing", "/s/", "/index.html", "/s/a/b"] {
        let answer = client.request("GET", path, person);
        let kind = answer.header("content-type");
        assert_eq!((answer.status, kind), (404, Some("text/html; charset=utf-8")), "{path}");
        assert_eq!(answer.text(), document, "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        expect_safe(&answer, path);
        // A condition never turns "there is no such page" into "you have it".
        let etag = answer.header("etag").unwrap();
        let again = client.request("GET", path, &format!("{person}If-None-Match: {etag}\r\n"));
        assert_eq!(again.status, 404, "{path}");
        client
            .request("POST", path, &format!("{person}Content-Length: 0\r\n"))
            .expect_problem(404, "not_found");
        client.get(path).expect_problem(404, "not_found");
    }
    for path in ["/api/nothing", "/assets/nothing.js", "/return/c"] {
        client
            .request("GET", path, person)
            .expect_problem(404, "not_found");
    }
}

#[test]
fn a_slash_at_the_end_of_a_page_leads_to_the_page() {
    let (_scene, service) = Scene::trading();
    let mut client = service.client();
    for page in PAGES.into_iter().filter(|page| *page != "/") {
        for query in ["", "?request_token=a%20b&status=success"] {
            let answer = client.get(&format!("{page}/{query}"));
            assert_eq!(answer.status, 308, "{page}");
            assert_eq!(answer.header("location"), Some(&*format!("{page}{query}")));
            assert!(answer.body.is_empty());
        }
        assert_eq!(client.request("HEAD", &format!("{page}/"), "").status, 308, "{page}");
        client
            .request("POST", &format!("{page}/"), "Content-Length: 0\r\n")
            .expect_problem(405, "method_not_allowed");
    }
    // Elsewhere a slash names something else.
    for path in ["/api/health/", "/worker.js/", "/portfolio//", "/s/", "//"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
}

#[test]
fn switched_off_every_page_is_404_and_the_api_is_there() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config();
    let service = scene.start();
    let file = linked(service.get("/").text()).remove(0);
    service.stop();
    config.web.on = false;
    let service = scene.start_with(&config);
    let mut client = service.client();
    for path in PAGES
        .into_iter()
        .chain([file.as_str(), "/return/a?request_token=x", "/return/b"])
    {
        client.get(path).expect_problem(404, "not_found");
    }
    assert_eq!(client.get("/api/health").status, 200);
}
