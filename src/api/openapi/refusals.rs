//! How operations refuse: statuses with their error codes. Those that several operations have get a
//! name.

use serde_json::{Map, Value, json};

/// A status with its possible error codes.
#[derive(Clone, Copy)]
pub(super) struct Refusal {
    status: u16,
    /// Name in `components.responses`; `None` if it is written into its operation.
    name: Option<&'static str>,
    codes: &'static [&'static str],
}

const fn shared(name: &'static str, status: u16, codes: &'static [&'static str]) -> Refusal {
    Refusal { status, name: Some(name), codes }
}

/// A refusal of a single operation.
pub(super) const fn own(status: u16, codes: &'static [&'static str]) -> Refusal {
    Refusal { status, name: None, codes }
}

pub(super) const BODY_INVALID: Refusal =
    shared("BodyInvalid", 400, &["malformed_json", "validation_failed", "malformed_request"]);
pub(super) const QUERY_INVALID: Refusal =
    shared("QueryInvalid", 400, &["validation_failed", "malformed_request"]);
pub(super) const SYNC_UNAUTHORIZED: Refusal = shared(
    "SyncUnauthorized",
    401,
    &["token_missing", "token_invalid", "broker_session_invalid", "broker_credentials_invalid"],
);
pub(super) const CODE_REFUSED: Refusal = shared("CodeRefused", 401, &["broker_session_invalid"]);
pub(super) const PASSWORD_UNAUTHORIZED: Refusal =
    shared("PasswordUnauthorized", 401, &["token_missing", "token_invalid", "invalid_credentials"]);
pub(super) const UNIDENTIFIED: Refusal =
    shared("Unidentified", 401, &["token_missing", "token_invalid"]);
pub(super) const NOT_THE_ADMINISTRATOR: Refusal =
    shared("NotTheAdministrator", 403, &["admin_local_only", "admin_secret_invalid"]);
pub(super) const ACTIVATION_FORBIDDEN: Refusal = shared(
    "ActivationForbidden",
    403,
    &[
        "admin_local_only",
        "admin_secret_invalid",
        "broker_account_problem",
        "broker_two_factor_problem",
    ],
);
pub(super) const SYNC_FORBIDDEN: Refusal = shared(
    "SyncForbidden",
    403,
    &[
        "cross_site_request",
        "broker_not_permitted",
        "broker_account_problem",
        "broker_two_factor_problem",
    ],
);
pub(super) const CROSS_SITE: Refusal = shared("CrossSite", 403, &["cross_site_request"]);
pub(super) const NO_SUCH_ENTRY: Refusal =
    shared("NoSuchEntry", 404, &["entry_not_found", "not_found"]);
pub(super) const NO_CANDLES: Refusal =
    shared("NoCandles", 404, &["candles_not_found", "not_found"]);
pub(super) const BROKER_NOT_READY: Refusal =
    shared("BrokerNotReady", 409, &["broker_not_configured", "broker_key_refused"]);
pub(super) const JOURNAL_FULL: Refusal = shared("JournalFull", 409, &["limit_reached"]);
pub(super) const SYNC_CONFLICT: Refusal =
    shared("SyncConflict", 409, &["sync_in_progress", "broker_user_changed", "limit_reached"]);
pub(super) const PRECONDITION_FAILED: Refusal =
    shared("PreconditionFailed", 412, &["precondition_failed"]);
pub(super) const BODY_TOO_LARGE: Refusal = shared("BodyTooLarge", 413, &["body_too_large"]);
pub(super) const UNSUPPORTED_MEDIA_TYPE: Refusal =
    shared("UnsupportedMediaType", 415, &["unsupported_media_type"]);
pub(super) const BROKER_LIMITED: Refusal =
    shared("BrokerLimited", 429, &["too_many_attempts", "broker_rate_limited"]);
pub(super) const TOO_MANY_WRITES: Refusal = shared("TooManyWrites", 429, &["too_many_writes"]);
pub(super) const TOO_MANY_ATTEMPTS: Refusal =
    shared("TooManyAttempts", 429, &["too_many_attempts"]);
pub(super) const SYNC_BAD_GATEWAY: Refusal = shared(
    "SyncBadGateway",
    502,
    &["broker_unavailable", "broker_answer_invalid", "broker_address_refused", "broker_redirected"],
);
pub(super) const ACTIVATION_BAD_GATEWAY: Refusal = shared(
    "ActivationBadGateway",
    502,
    &["broker_unavailable", "broker_answer_invalid", "broker_redirected"],
);
pub(super) const PASSWORD_UNAVAILABLE: Refusal = shared(
    "PasswordUnavailable",
    503,
    &["login_busy", "store_busy", "store_late", "store_unavailable"],
);
pub(super) const PORTFOLIO_UNAVAILABLE: Refusal = shared(
    "PortfolioUnavailable",
    503,
    &["store_unavailable", "store_busy", "store_late", "portfolio_busy"],
);
pub(super) const CANDLES_UNAVAILABLE: Refusal = shared(
    "CandlesUnavailable",
    503,
    &["store_unavailable", "store_busy", "store_late", "portfolio_busy", "candles_busy"],
);
pub(super) const SIGNALS_NOT_READY: Refusal =
    shared("SignalsNotReady", 503, &["signals_not_ready"]);
pub(super) const STORE_UNAVAILABLE: Refusal =
    shared("StoreUnavailable", 503, &["store_unavailable", "store_busy", "store_late"]);
pub(super) const LOGOUT_UNAVAILABLE: Refusal =
    shared("LogoutUnavailable", 503, &["store_unavailable", "store_busy", "store_late"]);
pub(super) const SYNC_UNAVAILABLE: Refusal =
    shared("SyncUnavailable", 503, &["store_unavailable", "sync_busy", "store_busy", "store_late"]);
pub(super) const ACTIVATION_UNAVAILABLE: Refusal =
    shared("ActivationUnavailable", 503, &["upstream_busy"]);
pub(super) const BROKER_TIMEOUT: Refusal = shared("BrokerTimeout", 504, &["broker_timeout"]);

impl Refusal {
    pub(super) fn status(&self) -> u16 {
        self.status
    }

    /// Adds it to the `responses` of an operation and, if it has a name, to the `shared` responses
    /// of the document.
    pub(super) fn put(&self, responses: &mut Map<String, Value>, shared: &mut Map<String, Value>) {
        let described = match self.name {
            Some(name) => {
                shared.entry(name).or_insert_with(|| self.described());
                json!({"$ref": format!("#/components/responses/{name}")})
            }
            None => self.described(),
        };
        responses.insert(self.status.to_string(), described);
    }

    fn described(&self) -> Value {
        let Self { status, codes, .. } = self;
        let mut headers = Map::new();
        for name in ["X-Request-Id", "Cache-Control"].iter().chain(self.headers()) {
            let reference = json!({"$ref": format!("#/components/headers/{name}")});
            headers.insert(name.strip_prefix("May-").unwrap_or(name).to_owned(), reference);
        }
        json!({
            "description": self.meaning(),
            "headers": headers,
            "content": {"application/problem+json": {"schema": {
                "allOf": [{"$ref": "#/components/schemas/Problem"}],
                "properties": {"status": {"const": status}, "code": {"enum": codes}},
            }}},
        })
    }

    fn headers(&self) -> &'static [&'static str] {
        match (self.status, self.name) {
            (401, _) => &["WWW-Authenticate"],
            (409 | 502, _) => &["May-Retry-After"],
            (415, _) => &["May-Accept-Encoding"],
            (503, Some("LogoutUnavailable")) => &["Retry-After", "May-Set-Cookie"],
            (429 | 503, _) => &["Retry-After"],
            _ => &[],
        }
    }

    fn meaning(&self) -> &'static str {
        match (self.status, self.name) {
            (400, _) => "The request is not valid; nothing was done.",
            (401, Some("CodeRefused")) => {
                "The broker does not accept the one-time code: it is wrong, used or expired."
            }
            (401, _) => "No valid access token, or wrong credentials.",
            (403, Some("ActivationForbidden")) => "Not permitted, by the service or by the broker.",
            (403, _) => "Not permitted.",
            (404, _) => "Not found.",
            (409, _) => "Conflicts with the current state.",
            (412, _) => "`If-Match` or `If-None-Match` does not hold; nothing was done.",
            (413, _) => "The body is larger than the limit, 64 KiB by default.",
            (415, _) => "The body is not `application/json` in UTF-8, or has a `Content-Encoding`.",
            (429, Some("TooManyWrites")) => {
                "The user has changed too much within a minute, 600 changes at once by default \
                 and ten a second after that; nothing was written."
            }
            (429, _) => "Too many attempts.",
            (502, _) => "The broker failed; nothing was changed.",
            (503, _) => "Temporarily unavailable; retry after `Retry-After`.",
            (504, _) => "The broker did not answer in time; nothing was changed.",
            (other, _) => panic!("{other} has no meaning yet"),
        }
    }
}
