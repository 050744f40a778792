//! The dashboard behind a proxy that wants a login of its own.

use std::io::ErrorKind;
use std::process::Command;

use super::pages::PAGES;
use crate::support::Scene;
use crate::support::source::root;

/// The values of an attribute-like text, `name="value"`.
fn value<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()
}

/// The browser fetches a manifest without cookies, and the proxy answers that with its login page,
/// unless the link asks for cookies.
#[test]
fn every_page_has_its_manifest_fetched_with_cookies() {
    let (_scene, service) = Scene::trading();
    let mut client = service.client();
    for path in PAGES {
        let page = client.get(path).with_status(200);
        let tags = page
            .text()
            .split('<')
            .filter(|tag| tag.starts_with("link "));
        let manifests: Vec<&str> = tags
            .filter(|tag| value(tag, "rel") == Some("manifest"))
            .collect();
        let [link] = manifests[..] else {
            panic!("{path}: {manifests:?}")
        };
        assert_eq!(value(link, "crossorigin"), Some("use-credentials"), "{path}: {link}");
        // Modules and their preloads come with cookies by themselves, but not where they are
        // fetched as if from anywhere.
        let anonymous = page.text().matches("crossorigin").count();
        assert_eq!(anonymous, 1, "{path}: nothing else is fetched in another way");
        let manifest = client.get(value(link, "href").unwrap()).with_status(200);
        let kind = manifest.header("content-type").unwrap().to_owned();
        assert!(kind.starts_with("application/manifest+json"), "{path}: {kind}");
    }
}

/// What the dashboard's module says of an answer that is a login page, and of what only looks like
/// one. Left out without node; `.ci/run` installs it. In a browser `tests/web/trouble.test.js` sees
/// it on the pages.
#[test]
fn a_login_page_in_place_of_an_answer_is_named_with_what_to_do() {
    let mut node = Command::new("node");
    node.arg("--test")
        .arg(root().join("tests/web/unit/login.test.js"));
    let output = match node.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        output => output.unwrap(),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("pass 2"), "{said}");
}
