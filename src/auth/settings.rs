//! Settings of accounts, tokens and password hashing.

use secrecy::SecretString;

/// Who may create an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// Any client.
    Open,
    /// Any client, until the database has its first account.
    First,
    /// Nobody but the operator, with `bhav user add`.
    Closed,
}

/// Settings of accounts, tokens and password hashing.
#[derive(Debug, Clone)]
pub struct AuthSettings {
    /// Current signing key. If not given, one is generated once and kept in the state directory.
    pub jwt_secret: Option<SecretString>,
    /// Earlier keys, which verify and no longer sign, separated by commas.
    pub jwt_previous_secrets: Option<SecretString>,
    pub registration: Registration,
    /// By account and by client network; 0 is no limit.
    pub login_attempts_per_minute: u32,
    /// By client network; 0 is no limit.
    pub registration_attempts_per_minute: u32,
    /// Memory of one password hash. The default is OWASP's minimum for two passes.
    pub argon2_memory_kib: u32,
    pub argon2_passes: u32,
    /// Threads that hash passwords; 0 is half of the cores, at least one.
    pub crypto_threads: usize,
    /// Most hashes that wait for a thread.
    pub crypto_queue_max: usize,
}

impl Default for AuthSettings {
    fn default() -> Self {
        Self {
            jwt_secret: None,
            jwt_previous_secrets: None,
            registration: Registration::Open,
            login_attempts_per_minute: 10,
            registration_attempts_per_minute: 10,
            argon2_memory_kib: 19_456,
            argon2_passes: 2,
            crypto_threads: 0,
            crypto_queue_max: 64,
        }
    }
}
