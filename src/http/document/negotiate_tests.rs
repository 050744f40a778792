//! Tests of content negotiation: a table, and a comparison with a simple reference.

use std::collections::HashMap;

use proptest::prelude::{Strategy, any, prop, proptest};

use super::*;

#[test]
fn the_coding_with_the_highest_weight_is_chosen() {
    use Coding::{Br, Gzip, Identity};
    for (value, expected) in [
        ("gzip, deflate, br, zstd", Br),
        ("gzip, deflate, br", Br),
        ("gzip, deflate", Gzip),
        ("gzip,br", Br),
        ("GZIP", Gzip),
        ("x-gzip", Gzip),
        ("deflate, zstd", Identity),
        ("", Identity),
        ("*", Br),
        ("*;q=0", Identity),
        ("*;q=0, gzip;q=0.001", Gzip),
        ("gzip;q=1.0, br;q=0.5", Gzip),
        ("gzip;q=0.8, br;q=0.8", Br),
        ("br;q=0", Identity),
        ("br;q=0, *", Gzip),
        ("br;q=0, gzip;q=0.0", Identity),
        ("identity, gzip;q=0.5", Identity),
        ("identity;q=0.5, gzip;q=0.5", Gzip),
        ("identity;q=0, gzip;q=0.1", Gzip),
        ("identity;q=0", Identity),
        ("gzip;q=0.2, br;q=0.1, *;q=0.5", Identity),
        (" gzip\t; q=0.5 ,\tbr ;q=0.4 ", Gzip),
        ("br;q=0, br;q=1, gzip;q=0.1", Gzip),
        // Malformed elements are ignored.
        ("br;q=2", Identity),
        ("br;q=1.001, gzip", Gzip),
        ("br;q=0.1234, gzip", Gzip),
        ("br;q=, gzip;q=0.1", Gzip),
        ("br;level=9, gzip", Gzip),
        ("br;q=1;q=1, gzip", Gzip),
        (",,;,gzip,;q=1", Gzip),
    ] {
        assert_eq!(preferred_coding(Some(value.as_bytes())), expected, "{value:?}");
    }
    assert_eq!(preferred_coding(None), Identity);
}

/// The reference: the same rules, written simply, with strings, maps and floats.
fn slow_coding(value: &str) -> Coding {
    let mut weights: HashMap<String, f64> = HashMap::new();
    for element in value.split(',') {
        let blank = |c: char| c == ' ' || c == '\t';
        let parts: Vec<&str> = element
            .split(';')
            .map(|part| part.trim_matches(blank))
            .collect();
        let weight = match parts[1..] {
            [] => 1.0,
            [parameter] => {
                let Some((name, digits)) = parameter.split_once('=') else {
                    continue;
                };
                let plain = digits.len() <= 5
                    && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
                    && matches!(digits.find('.'), None | Some(1))
                    && (digits.len() == 1 || digits.contains('.'));
                match digits.parse::<f64>() {
                    Ok(weight) if plain && weight <= 1.0 && name.eq_ignore_ascii_case("q") => {
                        weight
                    }
                    _ => continue,
                }
            }
            _ => continue,
        };
        let name = parts[0].to_ascii_lowercase();
        let name = if name == "x-gzip" {
            "gzip".into()
        } else {
            name
        };
        weights.entry(name).or_insert(weight);
    }
    let weight = |name: &str| {
        *weights
            .get(name)
            .or_else(|| weights.get("*"))
            .unwrap_or(&0.0)
    };
    let mut best = (Coding::Identity, weight("identity"));
    for (coding, name) in [(Coding::Gzip, "gzip"), (Coding::Br, "br")] {
        if weight(name) > 0.0 && weight(name) >= best.1 {
            best = (coding, weight(name));
        }
    }
    best.0
}

fn header_like() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "gzip", "br", "identity", "*", "x-gzip", "BR", "deflate", ",", ", ", ";", ";q=", "; q=",
        "0", "1", ".", "0.5", "0.001", "1.000", "0.999", "2", " ", "\t", "=", "q", "é",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_header_gives_the_same_coding_as_the_reference(value in header_like()) {
        assert_eq!(preferred_coding(Some(value.as_bytes())), slow_coding(&value), "{value:?}");
    }

    #[test]
    fn no_bytes_give_a_coding_that_they_do_not_name(
        value in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let lowered = String::from_utf8_lossy(&value).to_ascii_lowercase();
        let names = |coding: &str| lowered.contains(coding) || lowered.contains('*');
        let is_named = match preferred_coding(Some(&value)) {
            Coding::Br => names("br"),
            Coding::Gzip => names("gzip"),
            Coding::Identity => true,
        };
        proptest::prop_assert!(is_named, "{lowered}");
    }
}
