//! `/return/a` and `/return/b`: a broker's login sends the browser here with a one-time code.
//!
//! The answer redirects to the page of the sync, with the code behind `#`. Browsers send that part
//! to no server, so it gets into no log. The page fills in the code but sends nothing by itself,
//! because anyone can send a visitor here with a code of their own.

use zeroize::Zeroizing;

use crate::api::call::Handled;
use crate::api::query::Decoded;
use crate::base::Broker;
use crate::brokers::call::transport::push_encoded;
use crate::brokers::login_at;
use crate::http::settings::HttpSettings;
use crate::http::{BodyLimits, Method, Problem, Request, Response};

/// Largest form. Broker B's login may send one, with one field.
const FORM_BYTES_MAX: usize = 4 * 1024;
/// Longest code. Brokers' codes have some tens of characters.
const CODE_BYTES_MAX: usize = 512;

/// Sends the browser on to the page of the sync.
pub(crate) fn send_broker_return(
    broker: Broker,
    request: &Request<'_>,
    response: &mut Response<'_>,
) -> Handled {
    let code = match request.method() {
        Method::Post => code(broker, form(request)?)?,
        _ => code(broker, request.query().unwrap_or_default())?,
    };
    let mut location = Zeroizing::new(format!("/portfolio/sync/{}#code=", broker.as_str()));
    push_encoded(&mut location, &code);
    let headers = [
        ("Location", location.as_str()),
        ("Cache-Control", "no-store"),
        ("Referrer-Policy", "no-referrer"),
    ];
    response.body();
    response.send(303, "text/plain; charset=utf-8", &headers);
    Ok(())
}

/// Limits of the form. The HTTP layer refuses a larger one before it collects it.
pub(super) fn form_limits(settings: &HttpSettings) -> BodyLimits {
    let usual = settings.body_limits();
    BodyLimits {
        bytes_max: usual.bytes_max.min(FORM_BYTES_MAX),
        ..usual
    }
}

fn form<'a>(request: &Request<'a>) -> Result<&'a [u8], Problem> {
    let given = request.header("content-type").unwrap_or_default();
    let essence = given
        .split(|byte| *byte == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    if !essence.eq_ignore_ascii_case(b"application/x-www-form-urlencoded") {
        let detail = "Send the form as application/x-www-form-urlencoded.";
        return Err(Problem::new(415, "unsupported_media_type", detail));
    }
    Ok(request.body)
}

/// The only code among the pairs of a query or a form, whose names are matched in any case.
fn code(broker: Broker, pairs: &[u8]) -> Result<Zeroizing<String>, Problem> {
    let names = login_at(broker).code_names;
    let mut found = pairs.split(|byte| *byte == b'&').filter_map(|pair| {
        let at = memchr::memchr(b'=', pair)?;
        let name = decoded(&pair[..at])?;
        names
            .iter()
            .any(|known| known.eq_ignore_ascii_case(&name))
            .then(|| &pair[at + 1..])
    });
    let code = match (found.next(), found.next()) {
        (Some(code), None) => decoded(code).filter(|code| {
            let is_text = code.bytes().all(|byte| byte.is_ascii_graphic());
            is_text && (1..=CODE_BYTES_MAX).contains(&code.len())
        }),
        _ => None,
    };
    code.ok_or_else(|| {
        let code = login_at(broker).code_in_words;
        let detail = format!("The broker's login sent no usable {code} along.");
        Problem::new(400, "validation_failed", detail)
    })
}

fn decoded(raw: &[u8]) -> Option<Zeroizing<String>> {
    let bytes: Option<Vec<u8>> = Decoded(raw).map(Result::ok).collect();
    String::from_utf8(bytes?).ok().map(Zeroizing::new)
}
