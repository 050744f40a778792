//! The surface as the documents tell it.

use bhav::api::ROUTES;

use crate::support::source::root;

#[test]
fn the_readme_names_every_route() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(!ROUTES.is_empty());
    for route in ROUTES {
        let cell = format!("`{} {}", route.method.as_str(), route.path);
        assert!(readme.contains(&cell), "{cell} is missing from README.md");
        assert!(!route.doc.is_empty(), "{}", route.path);
    }
}
