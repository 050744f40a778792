//! Settings of accounts, tokens and password hashing.

use secrecy::SecretString;

/// Who may make an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// Whoever reaches the service.
    Open,
    /// Nobody.
    Closed,
}

/// Logging in.
#[derive(Debug, Clone)]
pub struct AuthSettings {
    /// Current signing key; without it one is made once and kept in the state directory.
    pub jwt_secret: Option<SecretString>,
    /// Keys that verify but sign no more, separated by commas.
    pub jwt_previous_secrets: Option<SecretString>,
    /// Who may make an account.
    pub registration: Registration,
    /// Per account and per client address; 0 switches the limit off.
    pub login_attempts_per_minute: u32,
    /// Per client address; 0 switches the limit off.
    pub registration_attempts_per_minute: u32,
    /// Memory of one password hash. The default is the floor that OWASP gives for two passes.
    pub argon2_memory_kib: u32,
    pub argon2_passes: u32,
    /// Threads that hash passwords; 0 is half of the cores, at least one.
    pub crypto_threads: usize,
    /// Hashes that may wait for a thread.
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
