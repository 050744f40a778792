//! The secret that all nodes of a cluster have, `JWT_SECRET`, for what they derive keys from beside
//! tokens. A reload may change it.

use std::sync::Arc;

use arc_swap::ArcSwap;
use secrecy::{ExposeSecret, SecretString};

/// The one in force. Its `Debug` does not show it.
#[derive(Debug)]
pub struct NodeSecret(ArcSwap<SecretString>);

impl NodeSecret {
    pub fn new(secret: SecretString) -> Self {
        Self(ArcSwap::from_pointee(secret))
    }

    /// Another allocation than before if and only if it was changed.
    pub fn load(&self) -> Arc<SecretString> {
        self.0.load_full()
    }

    /// Puts another in its place.
    pub fn set(&self, secret: &SecretString) {
        if self.load().expose_secret() != secret.expose_secret() {
            self.0.store(Arc::new(secret.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_secret_is_a_change() {
        let secret = NodeSecret::new("one".into());
        let before = secret.load();
        secret.set(&"one".into());
        assert!(Arc::ptr_eq(&before, &secret.load()));
        secret.set(&"two".into());
        assert_eq!(secret.load().expose_secret(), "two");
        assert!(!format!("{secret:?}").contains("two"));
    }
}
