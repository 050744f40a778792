//! Key and secret of the server's own app at a broker. An operator may change them while the
//! service runs; a call that has begun goes on with those it took.

use std::sync::Arc;

use arc_swap::ArcSwap;
use secrecy::SecretString;

/// Each may be missing: without both nothing can be activated.
#[derive(Debug)]
pub struct AppKeys {
    pub api_key: Option<SecretString>,
    pub api_secret: Option<SecretString>,
}

/// The slot for the present ones.
#[derive(Debug)]
pub(super) struct AppKeySlot(ArcSwap<AppKeys>);

impl AppKeySlot {
    pub(super) fn new(api_key: Option<&SecretString>, api_secret: Option<&SecretString>) -> Self {
        Self(ArcSwap::from_pointee(AppKeys {
            api_key: api_key.cloned(),
            api_secret: api_secret.cloned(),
        }))
    }

    pub(super) fn set(&self, keys: AppKeys) {
        self.0.store(Arc::new(keys));
    }

    pub(super) fn load(&self) -> Arc<AppKeys> {
        self.0.load_full()
    }
}
