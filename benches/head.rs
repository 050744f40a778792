//! Cost of parsing a request head.

use bhav::http::Method;
use bhav::http::message::head::{Framing, Head, Parsed};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const MINIMAL: &str = "GET /api/market-snapshot HTTP/1.1\r\nHost: bhav.example.in\r\n\r\n";

/// A browser's request through a proxy and a content delivery network: 25 header lines.
const BROWSER: &str = "GET /api/live-prices?symbols=NSE%3AINFY%2CNSE%3AM%26M HTTP/1.1\r\n\
    Host: bhav.example.in\r\n\
    Connection: keep-alive\r\n\
    Cache-Control: no-cache\r\n\
    Pragma: no-cache\r\n\
    Sec-CH-UA: \"Chromium\";v=\"140\", \"Not=A?Brand\";v=\"24\"\r\n\
    Sec-CH-UA-Mobile: ?0\r\n\
    Sec-CH-UA-Platform: \"Linux\"\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
    Chrome/140.0.0.0 Safari/537.36\r\n\
    Accept: application/json, text/plain, */*\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\n\
    Accept-Language: en-IN,en;q=0.9,hi;q=0.8\r\n\
    Origin: https://dashboard.example.in\r\n\
    Referer: https://dashboard.example.in/market/indices\r\n\
    Sec-Fetch-Dest: empty\r\n\
    Sec-Fetch-Mode: cors\r\n\
    Sec-Fetch-Site: same-site\r\n\
    If-None-Match: \"6f1a0c5d2b7e4938-br\"\r\n\
    DNT: 1\r\n\
    Priority: u=1, i\r\n\
    X-Forwarded-For: 203.0.113.77, 198.51.100.9\r\n\
    X-Forwarded-Proto: https\r\n\
    X-Forwarded-Host: bhav.example.in\r\n\
    Via: 1.1 edge-bom2\r\n\
    X-Request-Id: 7d0f5a52c1e94f0f\r\n\
    Cookie: theme=dark; consent=necessary; session=5f3c2a9be1d84c07a6b3\r\n\r\n";

fn parse(bench: &mut Criterion, name: &str, text: &str, header_lines: usize) {
    let mut head = Head::default();
    let bytes = text.as_bytes();
    let mut group = bench.benchmark_group("head");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            let parsed = head.parse(std::hint::black_box(bytes), 100, 16 * 1024);
            assert_eq!(parsed, Parsed::Complete);
        });
    });
    group.finish();
    assert_eq!((head.bytes, head.headers.len()), (bytes.len(), header_lines));
    assert_eq!((head.method, head.framing, head.close), (Method::Get, Framing::None, false));
}

fn minimal(bench: &mut Criterion) {
    parse(bench, "minimal", MINIMAL, 1);
}

fn browser(bench: &mut Criterion) {
    parse(bench, "browser with 25 headers", BROWSER, 25);
}

criterion_group!(benches, minimal, browser);
criterion_main!(benches);
