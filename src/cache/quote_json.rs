//! A quote as `GET /api/portfolio/live-prices` writes it (contract, section 4).
//!
//! Made once when a quote is inserted, by the thread that inserts it; the edge only copies it.
//! Whether a quote is stale depends on when it is read, so the object ends open, after `"stale":`.

use crate::base::{Quote, decimal, ist};

/// The object without its last value: everything up to and including `"stale":`.
pub(super) fn open_object(quote: &Quote) -> Box<[u8]> {
    let mut out = Vec::with_capacity(192);
    out.extend_from_slice(b"{\"symbol\":\"");
    // A well-formed symbol holds nothing that JSON escapes (base::symbol).
    out.extend_from_slice(quote.symbol.as_str().as_bytes());
    out.extend_from_slice(b"\",\"last_price\":");
    decimal::write_json(&mut out, quote.last_price);
    out.extend_from_slice(b",\"change\":");
    number_or_null(&mut out, quote.change());
    out.extend_from_slice(b",\"change_pct\":");
    number_or_null(&mut out, quote.change_pct());
    out.extend_from_slice(b",\"as_of\":\"");
    out.extend_from_slice(ist::iso(quote.as_of).as_bytes());
    out.push(b'"');
    if let Some(delay_s) = quote.delay_s {
        out.extend_from_slice(b",\"delay_s\":");
        out.extend_from_slice(itoa::Buffer::new().format(delay_s).as_bytes());
    }
    out.extend_from_slice(b",\"source\":\"");
    out.extend_from_slice(quote.source.as_str().as_bytes());
    out.push(b'"');
    if quote.simulated {
        out.extend_from_slice(b",\"simulated\":true");
    }
    out.extend_from_slice(b",\"stale\":");
    out.into_boxed_slice()
}

/// What closes an object that [`open_object`] left open.
pub(super) fn closing(stale: bool) -> &'static [u8] {
    if stale { b"true}" } else { b"false}" }
}

fn number_or_null(out: &mut Vec<u8>, value: Option<rust_decimal::Decimal>) {
    match value {
        Some(number) => decimal::write_json(out, number),
        None => out.extend_from_slice(b"null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Source, Symbol};

    fn written(quote: &Quote, stale: bool) -> String {
        let mut bytes = open_object(quote).into_vec();
        bytes.extend_from_slice(closing(stale));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn writes_the_contract_s_fields_in_order() {
        let mut quote = Quote {
            symbol: Symbol::parse("NSE:M&M").unwrap(),
            last_price: decimal::parse("1412.95").unwrap(),
            previous_close: decimal::parse("1389.65"),
            as_of: "2026-11-20T10:00:00Z".parse().unwrap(),
            timed: true,
            asked: "2026-11-20T10:00:01Z".parse().unwrap(),
            delay_s: None,
            source: Source::BrokerA,
            simulated: false,
        };
        assert_eq!(
            written(&quote, false),
            "{\"symbol\":\"NSE:M&M\",\"last_price\":1412.95,\"change\":23.3,\"change_pct\":1.68,\
             \"as_of\":\"2026-11-20T15:30:00+05:30\",\"source\":\"broker_a\",\"stale\":false}"
        );
        quote.previous_close = None;
        quote.simulated = true;
        quote.source = Source::Public;
        quote.delay_s = Some(901);
        assert_eq!(
            written(&quote, true),
            "{\"symbol\":\"NSE:M&M\",\"last_price\":1412.95,\"change\":null,\"change_pct\":null,\
             \"as_of\":\"2026-11-20T15:30:00+05:30\",\"delay_s\":901,\"source\":\"public\",\
             \"simulated\":true,\
             \"stale\":true}"
        );
    }
}
