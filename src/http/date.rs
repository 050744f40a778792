pub fn imf_fixdate(unix_ms: i64) -> [u8; 29] {
    let t = jiff::Timestamp::from_millisecond(unix_ms)
        .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
        .to_zoned(jiff::tz::TimeZone::UTC)
        .strftime("%a, %d %b %Y %H:%M:%S GMT")
        .to_string();
    let mut o = [b' '; 29];
    o.copy_from_slice(t.as_bytes());
    o
}
