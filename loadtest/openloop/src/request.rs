//! The bytes that are sent: rendered once, before the run.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

/// Renders a GET. The headers are what a simple API client sends: few enough for may_minihttp,
/// which closes the connection at the seventeenth.
pub fn render_get(target: SocketAddr, path: &str) -> Vec<u8> {
    format!(
        "GET {path} HTTP/1.1\r\nHost: {target}\r\nUser-Agent: openloop/0.1\r\n\
         Accept: application/json\r\nAccept-Language: en-IN,en;q=0.9\r\n\r\n"
    )
    .into_bytes()
}

/// Path of a live-prices request for these symbols. Symbols are percent-encoded where they must
/// be (`NSE:M&M`, `NSE:NIFTY 50`).
pub fn live_prices_path<'a>(symbols: impl IntoIterator<Item = &'a str>) -> String {
    let mut path = String::from("/api/portfolio/live-prices?symbols=");
    for (position, symbol) in symbols.into_iter().enumerate() {
        if position > 0 {
            path.push(',');
        }
        for byte in symbol.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b':' | b'-' | b'_' | b'.' => {
                    path.push(char::from(byte));
                }
                _ => path.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    path
}

/// Reads a list of symbols, one a line; blank lines and lines that start with `#` are skipped.
///
/// # Errors
/// The file cannot be read.
pub fn read_symbols(path: &Path) -> io::Result<Vec<String>> {
    Ok(fs::read_to_string(path)?
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect())
}

/// Reads whole requests: a JSON list of texts.
///
/// # Errors
/// The file cannot be read or is no such list.
pub fn read_requests(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    let texts: Vec<String> = serde_json::from_slice(&fs::read(path)?)?;
    Ok(texts.into_iter().map(String::into_bytes).collect())
}

/// Live-prices requests of `clients` clients, each for its own random choice of `per_client` out
/// of `symbols`. The same seed gives the same requests.
pub fn mixed_requests(
    target: SocketAddr,
    symbols: &[String],
    clients: usize,
    per_client: usize,
    seed: u64,
) -> Vec<Vec<u8>> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..clients)
        .map(|_| {
            let chosen = rng.choose_multiple(symbols.iter(), per_client);
            render_get(target, &live_prices_path(chosen.iter().map(|s| s.as_str())))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{live_prices_path, mixed_requests};

    #[test]
    fn reserved_characters_are_encoded() {
        assert_eq!(
            live_prices_path(["NSE:M&M", "NSE:NIFTY 50"]),
            "/api/portfolio/live-prices?symbols=NSE:M%26M,NSE:NIFTY%2050"
        );
    }

    #[test]
    fn clients_differ_and_a_seed_repeats_them() {
        let target = "127.0.0.1:80".parse().expect("an address");
        let symbols: Vec<String> = (0..400).map(|n| format!("NSE:S{n}")).collect();
        let first = mixed_requests(target, &symbols, 20, 50, 7);
        assert_eq!(first, mixed_requests(target, &symbols, 20, 50, 7));
        assert_ne!(first, mixed_requests(target, &symbols, 20, 50, 8));
        let distinct: HashSet<_> = first.iter().collect();
        assert_eq!(distinct.len(), 20);
        for request in &first {
            let commas = request.iter().filter(|&&b| b == b',').count();
            // 49 between the symbols and one in Accept-Language.
            assert_eq!(commas, 50);
        }
    }
}
