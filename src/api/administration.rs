//! Recognises the administrator, and runs the activations that one asks for.
//!
//! An activation runs on the lane for users' calls to that broker, which is separate from the
//! feed's, and the handler parks. The code and the secret are in wiped memory for the length of the
//! call.

use arc_swap::ArcSwap;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::api::body::Fields;
use crate::api::broker_errors::{BrokerRoute, broker_problem, broker_timed_out};
use crate::api::errors::too_early;
use crate::api::lane::on;
use crate::api::portfolio_errors::activation_busy;
use crate::auth::throttle::{Key, Throttle};
use crate::base::{Broker, ByBroker, Clock};
use crate::brokers::session::token::TokenStatus;
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::{BrokerError, login_at};
use crate::http::{Problem, Request};
use crate::rt::Lane;

/// Wrong secrets that an address may send at once, and again each minute. An administrator sends
/// none.
pub(super) const ATTEMPTS_PER_MINUTE: u32 = 5;

/// The limit of a secret in the settings.
pub(super) const SECRET_CHARS_MAX: usize = 4_096;

/// Real codes have some tens of characters.
pub(super) const CODE_CHARS_MAX: usize = 256;

/// Time in the lane's queue on top of the longest exchange.
pub(super) const QUEUE_MS: u64 = 2_000;

/// The administrator's secret for each broker, if one is set.
pub(crate) type AdminSecrets = ByBroker<Option<SecretString>>;

/// Recognises the administrator and runs activations.
pub(crate) struct Administration {
    pub(crate) secrets: ArcSwap<AdminSecrets>,
    attempts: Throttle,
    deadline_ms: u64,
}

impl Administration {
    /// The administrator is recognised by `secrets`. An activation may take as long as a call to a
    /// broker.
    pub(crate) fn new(secrets: AdminSecrets, upstream: &UpstreamSettings, clock: Clock) -> Self {
        Self {
            secrets: ArcSwap::from_pointee(secrets),
            attempts: Throttle::new(ATTEMPTS_PER_MINUTE, clock),
            deadline_ms: upstream.total_timeout_ms.max(upstream.sync_timeout_ms) + QUEUE_MS,
        }
    }

    /// Fails unless the request comes from the administrator: it has the secret or, if none is set,
    /// comes from a program on this machine.
    fn admit(
        &self,
        request: &Request<'_>,
        fields: &mut Fields<'_>,
        secret: Option<&SecretString>,
    ) -> Result<(), Problem> {
        let Some(secret) = secret else {
            let detail = "Without an administrator's secret in the settings only a program on the \
                          server's own machine may do this.";
            let refused = || Problem::new(403, "admin_local_only", detail);
            return request.is_direct_local().then_some(()).ok_or_else(refused);
        };
        let address = Key::Address(request.client_address());
        self.attempts.admit(&[address]).map_err(|throttled| {
            let detail = "Too many attempts from this address.";
            too_early("too_many_attempts", detail, throttled)
        })?;
        let given = fields
            .optional_secret("secret", SECRET_CHARS_MAX)
            .unwrap_or_default();
        if !same(&given, secret.expose_secret()) {
            tracing::warn!(client = ?request.client_address(), "wrong administrator's secret");
            let detail = "The administrator's secret is missing or wrong.";
            return Err(Problem::new(403, "admin_secret_invalid", detail));
        }
        self.attempts.forgive(address);
        Ok(())
    }

    /// Runs `exchange` on the lane of `broker`, with the one-time code of the administrator's
    /// request, and parks until it has ended.
    pub(super) fn activate(
        &self,
        request: &Request<'_>,
        broker: Broker,
        lane: &Lane,
        exchange: impl FnOnce(&str) -> Result<TokenStatus, BrokerError> + Send + 'static,
    ) -> Result<TokenStatus, Problem> {
        let mut fields = Fields::of(request)?;
        self.admit(request, &mut fields, self.secrets.load_full()[broker].as_ref())?;
        let [_, name] = login_at(broker).code_names;
        let code = fields.secret(name, CODE_CHARS_MAX);
        fields.done()?;
        let late = || broker_timed_out(broker, BrokerRoute::Activation);
        let exchange = move || Ok(exchange(code.expose_secret()));
        let activated = on(lane, self.deadline_ms, activation_busy, late, exchange)?;
        activated.map_err(|error| broker_problem(error, broker, BrokerRoute::Activation))
    }
}

/// Compares digests in constant time, so that the time taken shows neither the secret nor its
/// length.
pub(super) fn same(given: &str, secret: &str) -> bool {
    let given = Sha256::digest(given);
    let secret = Sha256::digest(secret);
    given.as_slice().ct_eq(secret.as_slice()).into()
}
