//! The secret that all nodes of a cluster have, `JWT_SECRET`, for what they derive keys from beside
//! tokens, and those before it, `JWT_PREVIOUS_SECRETS`. A reload may change them.

use std::sync::Arc;

use arc_swap::ArcSwap;
use secrecy::{ExposeSecret, SecretString};

/// Those in force. Their `Debug` does not show them.
#[derive(Debug)]
pub struct Secrets {
    pub current: Arc<SecretString>,
    /// What was made with one of these is still known for ours.
    pub previous: Vec<SecretString>,
}

/// The secret in force, and those before it.
#[derive(Debug)]
pub struct NodeSecret(ArcSwap<Secrets>);

impl NodeSecret {
    /// Without one before it.
    pub fn new(current: SecretString) -> Self {
        Self::with(current, None)
    }

    /// `previous` as the settings have it: separated by commas.
    pub fn with(current: SecretString, previous: Option<&SecretString>) -> Self {
        let (current, previous) = (Arc::new(current), split(previous));
        Self(ArcSwap::from_pointee(Secrets { current, previous }))
    }

    /// Another allocation than before if and only if it was changed.
    pub fn load(&self) -> Arc<SecretString> {
        Arc::clone(&self.0.load().current)
    }

    /// The same with those before it: another allocation if any of them was changed.
    pub fn load_all(&self) -> Arc<Secrets> {
        self.0.load_full()
    }

    /// Puts others in their place.
    pub fn set(&self, current: &SecretString, previous: Option<&SecretString>) {
        let (held, previous) = (self.load_all(), split(previous));
        let is_same = held.current.expose_secret() == current.expose_secret();
        let texts = |secrets: &[SecretString]| -> Vec<String> {
            secrets.iter().map(|secret| secret.expose_secret().to_owned()).collect()
        };
        if is_same && texts(&held.previous) == texts(&previous) {
            return;
        }
        let current = if is_same { Arc::clone(&held.current) } else { Arc::new(current.clone()) };
        self.0.store(Arc::new(Secrets { current, previous }));
    }
}

fn split(previous: Option<&SecretString>) -> Vec<SecretString> {
    let text = previous.map_or("", |secrets| secrets.expose_secret());
    let each = text.split(',').map(str::trim).filter(|secret| !secret.is_empty());
    each.map(SecretString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_secret_is_a_change() {
        let secret = NodeSecret::new("one".into());
        let (before, all) = (secret.load(), secret.load_all());
        secret.set(&"one".into(), None);
        assert!(Arc::ptr_eq(&before, &secret.load()) && Arc::ptr_eq(&all, &secret.load_all()));
        secret.set(&"one".into(), Some(&" zero, ,nought".into()));
        assert!(Arc::ptr_eq(&before, &secret.load()) && !Arc::ptr_eq(&all, &secret.load_all()));
        assert_eq!(secret.load_all().previous[1].expose_secret(), "nought");
        secret.set(&"two".into(), Some(&"one".into()));
        assert_eq!(secret.load().expose_secret(), "two");
        assert!(!format!("{secret:?}").contains("two"));
    }
}
