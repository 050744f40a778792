//! The simulator's routes by name: a fault is set for one route, for those of an upstream, or for
//! all. Pure.

use crate::sim::fault_kinds::Upstream;

/// The routes of the login pages.
pub(crate) const LOGIN_A: &str = "broker_a.login";
pub(crate) const LOGIN_B: &str = "broker_b.login";

/// Name and path of each route. A path that ends in a slash matches everything below it.
const ROUTES: [(&str, &str); 23] = [
    (LOGIN_A, "/a/connect/login"),
    ("broker_a.session", "/a/session/token"),
    ("broker_a.profile", "/a/user/profile"),
    ("broker_a.quote", "/a/quote"),
    ("broker_a.ohlc", "/a/quote/ohlc"),
    ("broker_a.ltp", "/a/quote/ltp"),
    ("broker_a.historical", "/a/instruments/historical/"),
    ("broker_a.instruments", "/a/instruments"),
    ("broker_a.instruments", "/a/instruments/"),
    ("broker_a.holdings", "/a/portfolio/holdings"),
    ("broker_a.positions", "/a/portfolio/positions"),
    ("broker_a.trades", "/a/trades"),
    ("broker_a.ticker", "/a/ticker"),
    (LOGIN_B, "/b/apiuser/login"),
    ("broker_b.customerdetails", "/b/customerdetails"),
    ("broker_b.dematholdings", "/b/dematholdings"),
    ("broker_b.portfolioholdings", "/b/portfolioholdings"),
    ("broker_b.portfoliopositions", "/b/portfoliopositions"),
    ("broker_b.trades", "/b/trades"),
    ("broker_b.master", "/b-master/"),
    ("public.spark", "/p/v7/finance/spark"),
    ("public.spark_v8", "/p/v8/finance/spark"),
    ("public.chart", "/p/v8/finance/chart/"),
];

const GROUPS: [&str; 3] = ["broker_a", "broker_b", "public"];

/// Every name a fault can be set for, apart from `*`.
pub(crate) fn names_and_groups() -> Vec<&'static str> {
    let mut names: Vec<_> = GROUPS
        .into_iter()
        .chain(ROUTES.map(|(name, _)| name))
        .collect();
    names.dedup();
    names
}

/// Whether faults can be set for `name`.
pub(crate) fn is_route_or_group(name: &str) -> bool {
    name == "*" || names_and_groups().contains(&name)
}

/// Whether a fault set for `pattern` concerns `route`.
pub(crate) fn covers(pattern: &str, route: &str) -> bool {
    pattern == "*"
        || pattern == route
        || route
            .strip_prefix(pattern)
            .is_some_and(|rest| rest.starts_with('.'))
}

/// The route at `path`, and the remainder of the path. A path without the prefix of an upstream is
/// broker A's, because its vendor's client keeps nothing but the host of the root that it is given.
pub(crate) fn find(path: &str) -> Option<(&'static str, &str)> {
    let find = |start: &str| {
        ROUTES.iter().find_map(|&(name, at)| {
            let rest = path.strip_prefix(at.strip_prefix(start)?)?;
            (rest.is_empty() != at.ends_with('/')).then_some((name, rest))
        })
    };
    find("").or_else(|| find("/a"))
}

/// The upstream that a route belongs to.
pub(crate) fn upstream_of(route: &str) -> Upstream {
    match route.split('.').next() {
        Some("broker_a") => Upstream::BrokerA,
        Some("broker_b") => Upstream::BrokerB,
        _ => Upstream::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_routes_by_their_whole_path() {
        for (path, expected) in [
            ("/a/quote", Some(("broker_a.quote", ""))),
            ("/a/quote/ohlc", Some(("broker_a.ohlc", ""))),
            ("/a/quotes", None),
            ("/a/instruments", Some(("broker_a.instruments", ""))),
            ("/a/instruments/NSE", Some(("broker_a.instruments", "NSE"))),
            ("/a/instruments/historical/1/day", Some(("broker_a.historical", "1/day"))),
            ("/p/v8/finance/chart/%5ENSEI", Some(("public.chart", "%5ENSEI"))),
            ("/b/", None),
            ("/", None),
            ("/quote", Some(("broker_a.quote", ""))),
            ("/instruments/NSE", Some(("broker_a.instruments", "NSE"))),
            ("/customerdetails", None),
        ] {
            assert_eq!(find(path), expected, "{path}");
        }
        assert!(covers("broker_a", "broker_a.quote") && covers("*", "public.spark"));
        assert!(
            !covers("broker_a.quote", "broker_a.ohlc")
                && !covers("public.spark", "public.spark_v8")
        );
    }
}
