//! Registering, logging in and out, changing the password, going away.
//!
//! Called on the edge, where each step may park: for the store and for the hashing lane. Attempts
//! are counted before anything is hashed. Nothing here keeps a password longer than its call.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use secrecy::{ExposeSecret, SecretString};

use super::common_passwords::{self, Weakness};
use super::identity::Auth;
use super::identity::Caller;
use super::passwords::{CryptoError, Whose};
use super::tokens::{self, Unsigned};
use crate::limits::throttle::{Key, Throttled};
use crate::store::{Erased, NewUser, StoreError, User, UserSecrets};

/// Contract, sections 3 and 8.
pub const PASSWORD_CHARS_MIN: usize = 8;
pub const PASSWORD_CHARS_MAX: usize = 256;
pub const NAME_CHARS_MAX: usize = 100;
const UNREADY: &str = "what decides about tokens has not been loaded from the store yet";

/// A user with a new token.
#[derive(Debug)]
pub struct Session {
    pub user: User,
    pub token: String,
}

/// Why it was not done.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("the password is {}", .0.as_str())]
    WeakPassword(Weakness),
    /// Or the e-mail, which is not told.
    #[error("the password is wrong")]
    WrongPassword,
    /// Told only to who knows the password.
    #[error("the account is disabled")]
    Disabled,
    #[error("the operator takes no new accounts")]
    Closed,
    #[error("too many attempts")]
    Throttled { retry_after_ms: u64 },
    #[error(transparent)]
    Crypto(#[from] CryptoError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Unsigned(#[from] Unsigned),
}

impl From<Throttled> for AccountError {
    fn from(throttled: Throttled) -> Self {
        Self::Throttled { retry_after_ms: throttled.retry_after_ms }
    }
}

impl Auth {
    /// Adds a user. The e-mail is normalised, name and length of the password are checked already.
    ///
    /// # Errors
    /// [`AccountError`]; [`StoreError::EmailTaken`] in it.
    pub fn register(
        &self,
        email: String,
        name: Option<String>,
        password: SecretString,
        client: Option<IpAddr>,
    ) -> Result<Session, AccountError> {
        if !self.registration_open.load(Ordering::Relaxed) {
            return Err(AccountError::Closed);
        }
        self.expect_ready()?;
        // Not the account's attempts: anybody can name any e-mail, and no password is tried.
        self.registrations.admit(&[Key::Address(client)])?;
        refuse_weak(&password)?;
        // Spares the hash; the insert decides.
        if self.store.user_by_email(&email)?.is_some() {
            return Err(StoreError::EmailTaken.into());
        }
        let password_hash = self.passwords.hash(password, Whose::Stranger)?;
        let created_ms = self.clock.now_ms();
        let user = self.store.create_user(NewUser { email, name, password_hash, created_ms })?;
        self.remember(&user.email, client);
        self.session(user, 0)
    }

    /// A session for whoever knows the password. An unknown e-mail is answered as a wrong password
    /// is, after the same work.
    ///
    /// # Errors
    /// [`AccountError`].
    pub fn login(
        &self,
        email: &str,
        password: SecretString,
        client: Option<IpAddr>,
    ) -> Result<Session, AccountError> {
        self.expect_ready()?;
        let (own, whose) = match client {
            Some(address) if self.familiar.knows(email, address) => {
                (Key::Familiar(email, address), Whose::Known)
            }
            _ => (Key::Account(email), Whose::Stranger),
        };
        self.throttle.admit(&[Key::Address(client), own])?;
        let found = self.store.user_by_email(email)?;
        let secrets = self.proven(found, password, whose).inspect_err(|error| {
            if matches!(error, AccountError::WrongPassword) {
                self.wrong_passwords.increment();
            }
        })?;
        self.throttle.forgive(own);
        self.remember(email, client);
        self.settle_doubt(&secrets)?;
        let session = self.session(secrets.user, secrets.token_epoch)?;
        self.logins.increment();
        Ok(session)
    }

    /// Refuses the caller's token from now on.
    ///
    /// # Errors
    /// [`StoreError`]: then it is refused only until the service starts again.
    pub fn logout(&self, caller: &Caller) -> Result<(), StoreError> {
        let expires_ms = caller.expires_s.saturating_mul(1_000);
        if let Some(id) = tokens::token_id(&caller.token_id) {
            self.revoked.token(id, expires_ms);
        }
        self.store.revoke_token(&caller.token_id, expires_ms)
    }

    /// Changes the password and refuses every older token; gives a new one.
    ///
    /// # Errors
    /// [`AccountError`]. Where it is not known whether the password was changed, the older tokens
    /// are refused.
    pub fn change_password(
        &self,
        caller: &Caller,
        current: SecretString,
        new: SecretString,
        client: Option<IpAddr>,
    ) -> Result<Session, AccountError> {
        let secrets = self.proven_caller(caller, current, client)?;
        refuse_weak(&new)?;
        let new_hash = self.passwords.hash(new, Whose::Known)?;
        let id = secrets.user.id;
        let changed = self.store.change_password(id, &secrets.password_hash, &new_hash);
        if let Err(StoreError::Late) = &changed {
            self.doubt(&secrets);
        }
        // Another change came first: the password that was given is not the current one any more.
        let epoch = changed?.ok_or(AccountError::WrongPassword)?;
        self.session(secrets.user, epoch)
    }

    /// Erases the caller and everything stored for them.
    ///
    /// # Errors
    /// [`AccountError`]. Where it is not known whether it was done, all tokens are refused.
    pub fn erase(
        &self,
        caller: &Caller,
        password: SecretString,
        client: Option<IpAddr>,
    ) -> Result<Erased, AccountError> {
        let secrets = self.proven_caller(caller, password, client)?;
        let id = secrets.user.id;
        let erased = self.store.erase_user(id);
        if let Err(StoreError::Late) = &erased {
            self.doubt(&secrets);
        }
        let erased = erased?;
        self.revoked.erased(id);
        self.familiar.forget(&secrets.user.email);
        Ok(erased)
    }

    /// Whoever is at `client` knew the password.
    fn remember(&self, email: &str, client: Option<IpAddr>) {
        if let Some(address) = client {
            self.familiar.remember(email, address);
        }
    }

    /// The caller with what is stored of them, once their password has been proven again. Attempts
    /// with a token have a count of their own, which nobody without one can use up.
    fn proven_caller(
        &self,
        caller: &Caller,
        password: SecretString,
        client: Option<IpAddr>,
    ) -> Result<UserSecrets, AccountError> {
        let found = self.store.user_by_id(caller.id)?.ok_or(StoreError::NoSuchUser)?;
        let own = Key::User(caller.id.0);
        self.throttle.admit(&[Key::Address(client), own])?;
        let secrets = self.proven(Some(found), password, Whose::Known)?;
        self.throttle.forgive(own);
        self.remember(&secrets.user.email, client);
        Ok(secrets)
    }

    /// Checks the password, with the same work where there is no account, and renews a hash that is
    /// weaker than today's.
    fn proven(
        &self,
        found: Option<UserSecrets>,
        password: SecretString,
        whose: Whose,
    ) -> Result<UserSecrets, AccountError> {
        let stored = found.as_ref().map(|secrets| secrets.password_hash.as_str());
        let checked = self.passwords.check(password, stored, whose)?;
        let Some(mut secrets) = found.filter(|_| checked.good) else {
            return Err(AccountError::WrongPassword);
        };
        if secrets.disabled {
            return Err(AccountError::Disabled);
        }
        if let Some(better) = checked.better_hash {
            let id = secrets.user.id;
            match self.store.replace_hash(id, &secrets.password_hash, &better) {
                Ok(true) => secrets.password_hash = better,
                Ok(false) => {}
                // The next login tries again.
                Err(error) => tracing::warn!(%error, "a password hash was not renewed"),
            }
        }
        Ok(secrets)
    }

    /// It is not known whether a write that raises the user's epoch will still happen: refuses the
    /// tokens that it would refuse.
    fn doubt(&self, secrets: &UserSecrets) {
        self.revoked.doubt(secrets.user.id, secrets.token_epoch, self.clock.monotonic_ms());
    }

    /// At a login after [`doubt`](Self::doubt): what the store says now is what happened.
    fn settle_doubt(&self, secrets: &UserSecrets) -> Result<(), StoreError> {
        let now_ms = self.clock.monotonic_ms();
        match self.revoked.settle(secrets.user.id, secrets.token_epoch, now_ms) {
            true => Ok(()),
            false => Err(StoreError::Late),
        }
    }

    /// No token can be made before it is known for which database.
    fn expect_ready(&self) -> Result<(), StoreError> {
        match self.tokens().is_some() || self.recover() {
            true => Ok(()),
            false => Err(StoreError::Unavailable(UNREADY.to_owned())),
        }
    }

    /// With a token of the epoch that the store has just shown, which refuses those of others.
    fn session(&self, user: User, epoch: i64) -> Result<Session, AccountError> {
        let tokens = self.tokens().ok_or_else(|| StoreError::Unavailable(UNREADY.to_owned()))?;
        self.revoked.seen(user.id, epoch);
        let signed = tokens.sign(user.id, epoch, self.clock.now_ms())?;
        Ok(Session { user, token: signed.text })
    }
}

/// Refuses a new password that guessers try first.
///
/// # Errors
/// [`AccountError::WeakPassword`].
pub fn refuse_weak(password: &SecretString) -> Result<(), AccountError> {
    match common_passwords::weakness(password.expose_secret()) {
        Some(weakness) => Err(AccountError::WeakPassword(weakness)),
        None => Ok(()),
    }
}
