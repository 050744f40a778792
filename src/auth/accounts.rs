//! Accounts: register, log in and out, change the password, delete; and their API keys.
//!
//! Called on the edge. Each step may park, to wait for the store or the hashing lane. Attempts are
//! counted before a password is hashed: by this node on the edge, and together with those of other
//! nodes on the hashing lane. No password is kept beyond the call.

use std::net::IpAddr;

use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use crate::auth::email::Email;
use crate::auth::endings::{Ending, is_unwritten};
use crate::auth::identity::{Auth, Caller};
use crate::auth::key_form;
use crate::auth::keys::Registration;
use crate::auth::passwords::{CryptoError, HashClient, Weakness, Whose};
use crate::auth::throttle::{Key, Throttle};
use crate::auth::tokens::{TOKEN_LIFE_S, Unsigned};
use crate::auth::{passwords, tokens};
use crate::base::Scopes;
use crate::base::limiter::TooEarly;
use crate::http::Request;
use crate::store::{AccountId, ENDED_LISTED_MS, NewUser, StoreError, StoredKey, User, UserSecrets};
use crate::views::account::ErasedRows;

pub(crate) const PASSWORD_CHARS_MIN: usize = 8;
pub(crate) const PASSWORD_CHARS_MAX: usize = 256;
pub(crate) const NAME_CHARS_MAX: usize = 100;
/// Longest wait of a login for the store to take its network. The login does not need it.
const NETWORK_WAIT_MS: u64 = 1_000;
const UNREADY: &str = "what decides about tokens has not been loaded from the store yet";

/// A user with a new token.
#[derive(Debug)]
pub struct Session {
    pub user: User,
    pub token: String,
    /// Proves this login at a later one. It gives no access.
    pub proof: String,
}

/// An API key to make.
pub(crate) struct NewKey {
    pub name: String,
    pub scopes: Scopes,
    pub expires_ms: Option<i64>,
}

/// Why an account operation was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("the password is {}", .0.as_str())]
    WeakPassword(Weakness),
    /// The password is wrong, or there is no such account: clients cannot tell which.
    #[error("the password is wrong")]
    WrongPassword,
    /// The account is disabled. Returned only if the password is right.
    #[error("the account is disabled")]
    Disabled,
    #[error("the operator takes no new accounts")]
    Closed,
    #[error("too many attempts")]
    Throttled(TooEarly),
    #[error(transparent)]
    Crypto(#[from] CryptoError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Unsigned(#[from] Unsigned),
}

impl From<TooEarly> for AccountError {
    fn from(throttled: TooEarly) -> Self {
        Self::Throttled(throttled)
    }
}

impl Auth {
    /// Creates an account. The caller has checked the name and the password's length.
    ///
    /// # Errors
    /// [`AccountError`]; it contains [`StoreError::EmailTaken`] if the address has an account.
    pub(crate) fn register(
        &self,
        email: &Email,
        name: Option<String>,
        password: SecretString,
        client: Option<IpAddr>,
    ) -> Result<Session, AccountError> {
        if !self.is_registration_open() {
            return Err(AccountError::Closed);
        }
        self.expect_ready()?;
        // Counted by client and not by account, because anybody can name any e-mail address.
        let keys = [Key::Address(client)];
        self.registrations.admit(&keys)?;
        refuse_weak(&password)?;
        // An account of an earlier version may have another spelling of the address. For the one
        // spelling this only avoids the cost of hashing: the insert below decides.
        if self.store.user_by_spellings(&email.spellings)?.is_some() {
            return Err(StoreError::EmailTaken.into());
        }
        let attempt = self.registrations.shared_attempt(&keys);
        let asker = HashClient {
            whose: Whose::Stranger,
            attempt,
        };
        let password_hash = self.passwords.hash(password, asker).inspect_err(|error| {
            count_refusal(error, &self.registrations);
        })?;
        let created_ms = self.clock.now_ms();
        let new = NewUser {
            email: email.normal.clone(),
            name,
            password_hash,
            created_ms,
        };
        let registration = *self.registration.lock();
        let created = match registration {
            Registration::Open => self.store.create_user(new),
            Registration::First => self.store.create_first_user(new),
            Registration::Closed => return Err(AccountError::Closed),
        };
        let UserSecrets {
            user, token_epoch, ..
        } = created.map_err(|error| match error {
            StoreError::NotFirst => AccountError::Closed,
            error => error.into(),
        })?;
        self.changed();
        self.remember(&user, client);
        self.session(user, token_epoch)
    }

    /// Whether anybody may create an account.
    pub(crate) fn is_registration_open(&self) -> bool {
        let registration = *self.registration.lock();
        match registration {
            Registration::Open => true,
            Registration::First => !self.revoked.knows_any(),
            Registration::Closed => false,
        }
    }

    /// Logs in. An unknown e-mail address gives the same error as a wrong password, after the same
    /// work, so that nobody can find out which addresses have accounts.
    ///
    /// # Errors
    /// [`AccountError`].
    pub(crate) fn login(
        &self,
        email: &Email,
        password: SecretString,
        request: &Request<'_>,
    ) -> Result<Session, AccountError> {
        self.expect_ready()?;
        let client = request.client_address();
        let earlier = self.earlier_logins(request);
        let address = Key::Address(client);
        let mut found = None;
        if !earlier.is_empty() {
            // The account is read to compare it with the tokens. The attempt is counted first,
            // since a token of any account leads here.
            self.throttle.admit(&[address])?;
            found = self.store.user_by_spellings(&email.spellings)?;
        }
        let id = found.as_ref().map(|secrets| secrets.user.id);
        let proven = earlier.iter().find(|earlier| Some(earlier.id) == id);
        let (own, whose) = match (proven, client) {
            (Some(earlier), _) => (vec![Key::Earlier(earlier.token_id)], Whose::Known),
            (None, Some(address)) if self.knows_network(email, address) => {
                (vec![Key::Pair(&email.normal, address)], Whose::Known)
            }
            (None, client) => (self.throttle.of_stranger(&email.normal, client), Whose::Stranger),
        };
        let keys = [vec![address], own].concat();
        if earlier.is_empty() {
            self.throttle.admit(&keys)?;
            found = self.store.user_by_spellings(&email.spellings)?;
        } else {
            self.throttle.admit(&keys[1..])?;
        }
        let asker = HashClient {
            whose,
            attempt: self.throttle.shared_attempt(&keys),
        };
        let secrets = self
            .verify_password(found, password, asker)
            .inspect_err(|error| {
                if matches!(error, AccountError::WrongPassword) {
                    self.wrong_passwords.increment();
                }
            })?;
        keys[1..].iter().for_each(|own| self.throttle.forgive(*own));
        self.remember(&secrets.user, client);
        self.resolve_uncertain_epoch(&secrets)?;
        let session = self.session(secrets.user, secrets.token_epoch)?;
        self.logins.increment();
        Ok(session)
    }

    /// Revokes the caller's token.
    ///
    /// # Errors
    /// [`StoreError`]: the tokens are refused all the same, and that is written once the store can.
    pub(crate) fn logout(&self, logins: &[Caller]) -> Result<(), StoreError> {
        // In memory all of them first: none is good any more, whatever the store answers.
        let expiries: Vec<i64> = logins
            .iter()
            .map(|login| self.revoke_in_memory(login))
            .collect();
        let mut written = Ok(());
        for (login, expires_ms) in logins.iter().zip(expiries) {
            let id = login.token_id;
            if let Err(error) = self.store.revoke_token(&tokens::spelled(id), expires_ms) {
                if is_unwritten(&error) {
                    self.endings.add(Ending::Token { id, expires_ms });
                }
                written = Err(error);
            }
        }
        written?;
        self.changed();
        Ok(())
    }

    /// Revokes all tokens of the caller's account, and with `keys` all API keys.
    ///
    /// # Errors
    /// [`StoreError`]: all that was to be ended is refused all the same, and that is written once
    /// the store can.
    pub(crate) fn logout_everywhere(&self, caller: &Caller, keys: bool) -> Result<(), StoreError> {
        self.revoke_in_memory(caller);
        let ended = self.store.end_tokens(caller.id, keys);
        if let Err(StoreError::Late) = &ended {
            let now_ms = self.clock.monotonic_ms();
            self.revoked.mark_uncertain(caller.id, caller.epoch, now_ms);
        }
        self.end_unwritten(caller.id, keys, ended.as_ref().err());
        let epoch = ended?.ok_or(StoreError::NoSuchUser)?;
        self.revoked.seen(caller.id, epoch);
        if keys {
            self.refresh_keys(caller.id)?;
        }
        self.changed();
        Ok(())
    }

    /// Refuses every token of an account and, with `keys`, every API key, where the store could not
    /// end them, until it can.
    fn end_unwritten(&self, user: AccountId, keys: bool, why: Option<&StoreError>) {
        if !why.is_some_and(is_unwritten) {
            return;
        }
        self.revoked
            .end_all(user, self.clock.now_ms().div_euclid(1_000) + TOKEN_LIFE_S);
        if keys {
            self.api_keys.refuse_all(user);
        }
        self.endings.add(Ending::Account { user, keys });
    }

    /// Revokes the caller's token in this process, and returns when it expires.
    fn revoke_in_memory(&self, caller: &Caller) -> i64 {
        let expires_ms = caller.expires_s.saturating_mul(1_000);
        self.revoked.token(caller.token_id, expires_ms);
        expires_ms
    }

    /// Changes the password, revokes every older token and returns a new one.
    ///
    /// # Errors
    /// [`AccountError`]. If the store did not take the change, older tokens are refused all the
    /// same, and that is written once the store can.
    pub(crate) fn change_password(
        &self,
        caller: &Caller,
        current: SecretString,
        new: SecretString,
        client: Option<IpAddr>,
    ) -> Result<Session, AccountError> {
        let secrets = self.verify_caller(caller, current, client)?;
        refuse_weak(&new)?;
        let new_hash = self.passwords.hash(new, Whose::Known)?;
        let id = secrets.user.id;
        let changed = self
            .store
            .change_password(id, &secrets.password_hash, &new_hash);
        if let Err(StoreError::Late) = &changed {
            self.mark_epoch_uncertain(&secrets);
        }
        self.end_unwritten(id, false, changed.as_ref().err());
        // `None` means that another change came first, so the given password is no longer the
        // current one.
        let epoch = changed?.ok_or(AccountError::WrongPassword)?;
        self.changed();
        self.session(secrets.user, epoch)
    }

    /// Erases the caller's account and everything stored for it.
    ///
    /// # Errors
    /// [`AccountError`]. If the store did not take it, the account's tokens and API keys are
    /// refused all the same, and that is written once the store can.
    pub(crate) fn erase(
        &self,
        caller: &Caller,
        password: SecretString,
        client: Option<IpAddr>,
    ) -> Result<ErasedRows, AccountError> {
        let secrets = self.verify_caller(caller, password, client)?;
        let id = secrets.user.id;
        let erased = self.store.erase_user(id);
        if let Err(StoreError::Late) = &erased {
            self.mark_epoch_uncertain(&secrets);
        }
        self.end_unwritten(id, true, erased.as_ref().err());
        let erased = erased?.unwrap_or_default();
        self.revoked.erased(id);
        self.api_keys.forget(id);
        self.changed();
        self.known_networks.forget(&secrets.user.email);
        Ok(erased)
    }

    /// Makes an API key for the caller, and returns it with its text, which is not kept.
    ///
    /// # Errors
    /// [`AccountError`]; [`StoreError::TooMany`] if the account has as many as it may have.
    pub(crate) fn make_key(
        &self,
        caller: &Caller,
        NewKey {
            name,
            scopes,
            expires_ms,
        }: NewKey,
        password: SecretString,
        client: Option<IpAddr>,
    ) -> Result<(StoredKey, Zeroizing<String>), AccountError> {
        self.verify_caller(caller, password, client)?;
        self.settle_incarnation();
        let (id, text, hash) = key_form::generated()?;
        let created_ms = self.clock.now_ms();
        let user = caller.id;
        let used_ms = None;
        let used_from = None;
        let key = StoredKey {
            id,
            user,
            name,
            scopes,
            hash,
            created_ms,
            expires_ms,
            used_ms,
            used_from,
        };
        self.store.add_key(key.clone(), created_ms)?;
        self.refresh_keys(user)?;
        self.changed();
        Ok((key, text))
    }

    /// The user's API keys, the newest first: good ones, and those that expired lately.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) fn list_keys(&self, user: AccountId) -> Result<Vec<StoredKey>, StoreError> {
        let ended_ms = self.clock.now_ms() - ENDED_LISTED_MS;
        let mut keys = self.store.keys_of(vec![user])?.keys;
        keys.retain(|key| {
            key.expires_ms
                .is_none_or(|expires_ms| expires_ms > ended_ms)
        });
        Ok(self.with_last_uses(keys))
    }

    /// Every API key that is stored of the user, the newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) fn stored_keys(&self, user: AccountId) -> Result<Vec<StoredKey>, StoreError> {
        Ok(self.with_last_uses(self.store.stored_keys(user)?))
    }

    /// The keys, the newest first, with uses that are not stored yet.
    fn with_last_uses(&self, mut keys: Vec<StoredKey>) -> Vec<StoredKey> {
        keys.sort_by(|a, b| (b.created_ms, &a.id).cmp(&(a.created_ms, &b.id)));
        for key in &mut keys {
            let seen = self.api_keys.last_use(&key.id);
            if let Some(seen) = seen.filter(|seen| Some(seen.used_ms) > key.used_ms) {
                (key.used_ms, key.used_from) = (Some(seen.used_ms), seen.used_from);
            }
        }
        keys
    }

    /// Revokes an API key of the caller: refused from now on here, and within a second on other
    /// nodes. False if the caller has no such key.
    ///
    /// # Errors
    /// [`StoreError`]: the key is refused all the same, and that is written once the store can.
    pub(crate) fn revoke_key(&self, caller: &Caller, id: &str) -> Result<bool, StoreError> {
        let removed = self.store.remove_key(caller.id, id).inspect_err(|error| {
            if is_unwritten(error) && self.api_keys.refuse(caller.id, id) {
                self.endings.add(Ending::Key {
                    user: caller.id,
                    id: id.to_owned(),
                });
            }
        });
        let is_there = removed?;
        if is_there {
            self.refresh_keys(caller.id)?;
            self.changed();
        }
        Ok(is_there)
    }

    /// Whether an account with this address was lately used from the client's network.
    fn knows_network(&self, email: &Email, client: IpAddr) -> bool {
        email
            .spellings
            .iter()
            .any(|spelling| self.known_networks.knows(spelling, client))
    }

    /// Remembers the client's network for the account, after a correct password. A new one is
    /// stored before the login is answered, so that a kill does not lock its owner out; where the
    /// store cannot take it, it waits.
    fn remember(&self, user: &User, client: Option<IpAddr>) {
        let Some(address) = client else { return };
        self.known_networks.remember(&user.email, user.id, address);
        let new = self.known_networks.take_waiting_of(user.id);
        if new.is_empty() {
            return;
        }
        if let Err(error) = self.store.keep_login_networks(new.clone(), NETWORK_WAIT_MS) {
            tracing::debug!(%error, "the network of a login not written; it waits");
            self.known_networks.give_back(new);
        }
    }

    /// Checks the password of an authenticated caller and returns their account. Such attempts are
    /// counted by user, so that clients without a token cannot use them up.
    pub(super) fn verify_caller(
        &self,
        caller: &Caller,
        password: SecretString,
        client: Option<IpAddr>,
    ) -> Result<UserSecrets, AccountError> {
        let found = self
            .store
            .user_by_id(caller.id)?
            .ok_or(StoreError::NoSuchUser)?;
        let own = Key::User(caller.id.0);
        let keys = [Key::Address(client), own];
        self.throttle.admit(&keys)?;
        let asker = HashClient {
            whose: Whose::Known,
            attempt: self.throttle.shared_attempt(&keys),
        };
        let secrets = self.verify_password(Some(found), password, asker)?;
        self.throttle.forgive(own);
        self.remember(&secrets.user, client);
        Ok(secrets)
    }

    /// Checks the password, with the same work if there is no account. Renews a hash that was made
    /// with weaker parameters than the current ones.
    fn verify_password(
        &self,
        found: Option<UserSecrets>,
        password: SecretString,
        asker: HashClient,
    ) -> Result<UserSecrets, AccountError> {
        let stored = found.as_ref().map(|secrets| secrets.password_hash.as_str());
        let checked = self
            .passwords
            .check(password, stored, asker)
            .inspect_err(|error| {
                count_refusal(error, &self.throttle);
            })?;
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
                Err(error) => tracing::warn!(%error, "password hash not renewed"),
            }
        }
        Ok(secrets)
    }

    /// Refuses the tokens that a timed-out write would revoke by raising the user's token epoch,
    /// since the write may still happen.
    fn mark_epoch_uncertain(&self, secrets: &UserSecrets) {
        let now_ms = self.clock.monotonic_ms();
        self.revoked
            .mark_uncertain(secrets.user.id, secrets.token_epoch, now_ms);
    }

    /// Takes the epoch in the store as final once the write of
    /// [`mark_epoch_uncertain`](Self::mark_epoch_uncertain) cannot happen any more. Called at a
    /// login.
    fn resolve_uncertain_epoch(&self, secrets: &UserSecrets) -> Result<(), StoreError> {
        let now_ms = self.clock.monotonic_ms();
        match self
            .revoked
            .resolve(secrets.user.id, secrets.token_epoch, now_ms)
        {
            true => Ok(()),
            false => Err(StoreError::Late),
        }
    }

    /// Fails until the database's id is loaded, because tokens are made for one database.
    fn expect_ready(&self) -> Result<(), StoreError> {
        match self.tokens().is_some() || self.recover() {
            true => Ok(()),
            false => Err(StoreError::Unavailable(UNREADY.to_owned())),
        }
    }

    /// Makes a session with a token of `epoch`, which the store has just returned.
    fn session(&self, user: User, epoch: i64) -> Result<Session, AccountError> {
        self.settle_incarnation();
        let tokens = self
            .tokens()
            .ok_or_else(|| StoreError::Unavailable(UNREADY.to_owned()))?;
        self.revoked.seen(user.id, epoch);
        let now_ms = self.clock.now_ms();
        let token = tokens.sign(user.id, epoch, now_ms)?;
        let proof = tokens.sign_proof(user.id, now_ms)?;
        Ok(Session { user, token, proof })
    }
}

/// Counts a refusal by the limit of all nodes like one of this node's own.
fn count_refusal(error: &CryptoError, limit: &Throttle) {
    if matches!(error, CryptoError::Throttled(_)) {
        limit.count_refusal();
    }
}

/// Refuses a new password that attackers would try first.
///
/// # Errors
/// [`AccountError::WeakPassword`].
pub(crate) fn refuse_weak(password: &SecretString) -> Result<(), AccountError> {
    match passwords::weakness(password.expose_secret()) {
        Some(weakness) => Err(AccountError::WeakPassword(weakness)),
        None => Ok(()),
    }
}
