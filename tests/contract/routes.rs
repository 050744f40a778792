//! The routes, as the documents list them.

use bhav::api::ROUTES;

use crate::support::source::root;

#[test]
fn the_page_on_the_api_names_every_route() {
    let page = std::fs::read_to_string(root().join("docs/api.md")).unwrap();
    assert!(!ROUTES.is_empty());
    for route in ROUTES {
        let cell = format!("`{} {}", route.method.as_str(), route.path);
        assert!(page.contains(&cell), "{cell} is missing from docs/api.md");
        assert!(!route.doc.is_empty(), "{}", route.path);
    }
}
