//! The installation of a node on a server that others may reach: the namespace of its keys, and the
//! key with which it signs messages and kept values.
//!
//! The namespace is the operator's, or that of the database, which a node may not know yet when it
//! starts. Anyone who reaches the server can write anything. A value without a tag of ours is
//! counted, logged once for each cause, and changes nothing.
//!
//! A signed value is `tag(32) epoch(8) number(8) body`, numbers big-endian. The tag is HMAC-SHA256
//! over the kind, the namespace and the key, each behind its length in one byte, and all that
//! follows the tag. So a value cannot be moved to another symbol, another kind or another
//! namespace. The HMAC's key is derived from `JWT_SECRET` for this purpose; values signed under one
//! of `JWT_PREVIOUS_SECRETS` are still read. The number orders the values of a kind: that of a
//! message, or the time at which the value was sent, vouched for or stored.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use arc_swap::ArcSwapOption;
use ring::{hkdf, hmac};
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::address::Namespace;
use crate::base::limiter::{Limiter, Rate};
use crate::base::{Clock, wipe};
use crate::cache::l2::{DISTRUSTED, Kind};
use crate::nodes::valkey::connection::ValkeyError;
use crate::nodes::valkey::keys::{Keys, SIGNED_BYTES};
use crate::nodes::valkey::{NodeSecret, Secrets};
use crate::store::{Epoch, Store, small_file};

/// Purpose of the signing key.
const PURPOSE: &str = "what nodes tell each other";
const TAG_BYTES: usize = SIGNED_BYTES - 16;
/// Interval of log lines about one cause.
const LINE_MS: u64 = 600_000;

/// Derives a key of 32 bytes for one purpose from `secret`, which also signs tokens.
pub(crate) fn derive(secret: &[u8], purpose: &str) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, b"bhav").extract(secret);
    let info = [purpose.as_bytes()];
    let expanded = extracted.expand(&info, hkdf::HKDF_SHA256);
    let filled = expanded.and_then(|material| material.fill(&mut *key));
    filled.expect("32 bytes are what the hash gives at once");
    key
}

/// The kind of a signed value. Its key is a symbol, a record's key, or nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signed {
    /// A message of the leader.
    Message,
    /// A message of the leader without quotes, as the server keeps it.
    Head,
    /// A quote of the relay, as the server keeps it.
    Quote,
    /// The symbols that a node wants.
    Wanted,
    /// A notice that there are changes to read.
    Changes,
    /// A token of the day, which is encrypted under a key of its own.
    Sealed,
    /// The claim of the leader, with its holder.
    Claim,
    /// The highest epoch that wrote anything.
    Fence,
    /// Epoch and number of the newest message.
    Place,
    /// A record of the second level.
    Record(Kind),
}

impl Signed {
    fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Head => "head",
            Self::Quote => "relayed quote",
            Self::Wanted => "wanted",
            Self::Changes => "changes",
            Self::Sealed => "sealed token",
            Self::Claim => "claim",
            Self::Fence => "epoch",
            Self::Place => "place of a message",
            Self::Record(Kind::Quote) => "kept quote",
            Self::Record(Kind::Instruments) => "kept instruments",
        }
    }
}

/// Causes of distrust in a value on the server, in the order of [`DISTRUSTED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distrust {
    /// No node with this installation's `JWT_SECRET` signed the value for its place.
    Forged,
    /// The value is signed, but not one of this version.
    Unreadable,
    /// The value is signed, but was received before or is older than those received.
    Replayed,
}

impl Distrust {
    fn in_words(self) -> &'static str {
        match self {
            Self::Forged => "was not signed for its place with this JWT_SECRET",
            Self::Unreadable => "is signed, and of another version of this program",
            Self::Replayed => "was signed long ago and is told again",
        }
    }
}

/// The content of a signed value.
pub(crate) struct Opened<'a> {
    pub(crate) epoch: Epoch,
    pub(crate) number: u64,
    pub(crate) body: &'a [u8],
}

/// The keys' names and the signing keys of the namespace and the secrets in force.
pub(crate) struct NamespaceKeys {
    pub(crate) keys: Keys,
    namespace: Arc<Known>,
    secrets: Arc<Secrets>,
    signing: hmac::Key,
    /// Keys of the secrets before.
    previous: Vec<hmac::Key>,
}

impl NamespaceKeys {
    fn new(namespace: &Arc<Known>, secrets: Arc<Secrets>) -> Self {
        let key = |secret: &SecretString| {
            let derived = derive(secret.expose_secret().as_bytes(), PURPOSE);
            hmac::Key::new(hmac::HMAC_SHA256, &*derived)
        };
        let (signing, previous) =
            (key(&secrets.current), secrets.previous.iter().map(key).collect());
        wipe::scrub();
        let keys = Keys::of(&namespace.name);
        let namespace = Arc::clone(namespace);
        Self {
            keys,
            namespace,
            secrets,
            signing,
            previous,
        }
    }

    /// The namespace of these keys.
    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace.name
    }

    fn context(&self, kind: Signed, key: &[u8]) -> Vec<u8> {
        let parts = [
            kind.name().as_bytes(),
            self.namespace().as_str().as_bytes(),
            key,
        ];
        // None is longer: kinds are ours, namespaces and keys are bounded.
        parts
            .iter()
            .flat_map(|part| [&[part.len() as u8][..], part].concat())
            .collect()
    }

    /// The value as it is sent or kept.
    pub(crate) fn sign(
        &self,
        kind: Signed,
        key: &str,
        (epoch, number): (Epoch, u64),
        body: &[u8],
    ) -> Vec<u8> {
        let mut signed = vec![0; TAG_BYTES];
        signed.reserve_exact(16 + body.len());
        signed.extend_from_slice(&epoch.0.to_be_bytes());
        signed.extend_from_slice(&number.to_be_bytes());
        signed.extend_from_slice(body);
        let mut tag = hmac::Context::with_key(&self.signing);
        tag.update(&self.context(kind, key.as_bytes()));
        tag.update(&signed[TAG_BYTES..]);
        signed[..TAG_BYTES].copy_from_slice(tag.sign().as_ref());
        signed
    }

    /// The content of a value that a node of ours signed for this place; `None` for any other.
    pub(crate) fn open<'a>(&self, kind: Signed, key: &[u8], value: &'a [u8]) -> Option<Opened<'a>> {
        let (tag, rest) = value.split_at_checked(TAG_BYTES)?;
        let (epoch, body) = rest.split_first_chunk::<8>()?;
        let (number, body) = body.split_first_chunk::<8>()?;
        // No key of ours is longer, and its length takes one byte.
        let told = (key.len() <= usize::from(u8::MAX))
            .then(|| [&self.context(kind, key)[..], rest].concat())?;
        let mut keys = std::iter::once(&self.signing).chain(&self.previous);
        keys.any(|key| hmac::verify(key, &told, tag).is_ok())
            .then(|| Opened {
                epoch: Epoch(u64::from_be_bytes(*epoch)),
                number: u64::from_be_bytes(*number),
                body,
            })
    }
}

/// A namespace, and whether the operator or the database itself has named it.
struct Known {
    name: Namespace,
    is_sure: bool,
}

impl Known {
    /// The namespace of the database with this id.
    fn of_database(cluster: &str) -> Option<Namespace> {
        Namespace::parse(&format!("db-{}", cluster.to_ascii_lowercase())).ok()
    }
}

/// The id of the database that this node last used, for a start while the database is away.
const CLUSTER_FILE: &str = "cluster";

/// The installation. Shared by everything that uses the server.
pub struct Installation {
    /// The file with the id of the database; `None` where the operator gave a namespace.
    kept: Option<PathBuf>,
    /// The secret from which keys are derived.
    pub(crate) secret: Arc<NodeSecret>,
    known: ArcSwapOption<Known>,
    /// The keys for the namespace and secrets at the last call of `namespace_keys()`.
    namespace_keys: ArcSwapOption<NamespaceKeys>,
    timer: Clock,
    distrusted: [AtomicU64; DISTRUSTED.len()],
    lines: [Limiter; DISTRUSTED.len()],
}

impl Installation {
    /// An installation whose namespace is not known yet.
    fn new(secret: &Arc<NodeSecret>) -> Self {
        Self {
            kept: None,
            secret: Arc::clone(secret),
            known: ArcSwapOption::empty(),
            namespace_keys: ArcSwapOption::empty(),
            timer: Clock::system(),
            distrusted: Default::default(),
            lines: [(); DISTRUSTED.len()].map(|()| Limiter::new(Rate::every_ms(LINE_MS))),
        }
    }

    /// An installation with a namespace that the operator gave.
    pub fn named(namespace: Namespace, secret: &Arc<NodeSecret>) -> Self {
        let installation = Self::new(secret);
        installation.name(namespace, true);
        installation
    }

    /// An installation with the namespace of the database or, while that is away, of the one used
    /// last. A node that knows neither cannot reach the others until the database replies. Blocks.
    pub(crate) fn of_database(store: &Store, state_dir: &Path, secret: &Arc<NodeSecret>) -> Self {
        let path = state_dir.join(CLUSTER_FILE);
        let installation = Self {
            kept: Some(path.clone()),
            ..Self::new(secret)
        };
        installation.identify(store);
        if installation.namespace().is_none()
            && let Ok(Some(kept)) = small_file::read(&path)
            && let Ok(cluster) = String::from_utf8(kept)
        {
            installation.belongs_to(cluster.trim(), false);
        }
        installation
    }

    /// Asks the database for its id, unless the operator gave a namespace. Blocks.
    pub(crate) fn identify(&self, store: &Store) {
        let Some(path) = &self.kept else { return };
        match store.identity() {
            Ok(identity) if self.belongs_to(&identity.cluster, true) => {
                tracing::info!(
                    namespace = self.namespace().as_ref().map(Namespace::as_str),
                    "namespace on the shared server: the database's own id"
                );
                if let Err(error) = small_file::replace(path, identity.cluster.as_bytes()) {
                    tracing::warn!(%error, "cannot keep the database's id for a start without it");
                }
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "cannot read the database's id"),
        }
    }

    /// Sets the namespace. `is_sure` means that the operator or the database gave it, and not this
    /// node's last run.
    fn name(&self, name: Namespace, is_sure: bool) {
        let known = self.known.load();
        if known
            .as_ref()
            .is_some_and(|known| known.name == name && known.is_sure >= is_sure)
        {
            return;
        }
        self.known.store(Some(Arc::new(Known { name, is_sure })));
    }

    /// Sets the namespace of the database with this id. Returns whether it was another before.
    fn belongs_to(&self, cluster: &str, is_sure: bool) -> bool {
        let before = self.namespace();
        if let Some(name) = Known::of_database(cluster) {
            self.name(name, is_sure);
        }
        self.namespace() != before
    }

    /// The namespace, as far as it is known.
    pub(crate) fn namespace(&self) -> Option<Namespace> {
        self.known.load().as_ref().map(|known| known.name.clone())
    }

    /// The keys in force.
    pub(crate) fn namespace_keys(&self) -> Result<Arc<NamespaceKeys>, ValkeyError> {
        let known = self.known.load_full().ok_or(ValkeyError::NoNamespace)?;
        let secrets = self.secret.load_all();
        if let Some(namespace_keys) = self.namespace_keys.load_full()
            && Arc::ptr_eq(&namespace_keys.secrets, &secrets)
            && Arc::ptr_eq(&namespace_keys.namespace, &known)
        {
            return Ok(namespace_keys);
        }
        let namespace_keys = Arc::new(NamespaceKeys::new(&known, secrets));
        self.namespace_keys.store(Some(Arc::clone(&namespace_keys)));
        Ok(namespace_keys)
    }

    /// Same as `namespace_keys`, for the lease. Fails unless the namespace is sure, so that a node
    /// with another database's namespace cannot lead.
    pub(crate) fn sure_namespace_keys(&self) -> Result<Arc<NamespaceKeys>, ValkeyError> {
        let is_sure = self
            .known
            .load()
            .as_ref()
            .is_some_and(|known| known.is_sure);
        if is_sure {
            self.namespace_keys()
        } else {
            Err(ValkeyError::NoNamespace)
        }
    }

    /// Counts a distrusted value, and logs each cause from time to time.
    pub(crate) fn distrust(&self, cause: Distrust, what: Signed) {
        self.distrusted[cause as usize].fetch_add(1, Relaxed);
        if self.is_due(cause) {
            let what = what.name();
            let why = cause.in_words();
            tracing::warn!(what, why, "a value on the shared server is not trusted");
        }
    }

    /// Whether a cause has had no line for ten minutes. The line is then taken as written.
    fn is_due(&self, cause: Distrust) -> bool {
        self.lines[cause as usize]
            .admit(self.timer.monotonic_ms())
            .is_ok()
    }

    /// The counts by cause.
    pub(crate) fn distrusted(&self) -> [u64; DISTRUSTED.len()] {
        self.distrusted.each_ref().map(|count| count.load(Relaxed))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";

    /// The installation of unit tests.
    pub(crate) fn installation() -> Arc<Installation> {
        of("main", SECRET, None)
    }

    pub(crate) fn of(name: &str, secret: &str, previous: Option<&str>) -> Arc<Installation> {
        let previous = previous.map(SecretString::from);
        let secret = Arc::new(NodeSecret::with(secret.into(), previous.as_ref()));
        Arc::new(Installation::named(Namespace::parse(name).unwrap(), &secret))
    }

    const PLACE: (Epoch, u64) = (Epoch(7), 42);

    #[test]
    fn a_value_is_read_where_it_was_signed_for_and_nowhere_else() {
        let namespace_keys = installation().namespace_keys().unwrap();
        let signed = namespace_keys.sign(Signed::Quote, "NSE:INFY", PLACE, b"price");
        let opened = namespace_keys
            .open(Signed::Quote, b"NSE:INFY", &signed)
            .unwrap();
        assert_eq!((opened.epoch, opened.number, opened.body), (Epoch(7), 42, &b"price"[..]));
        for (kind, key) in [
            (Signed::Quote, "NSE:TCS"),
            (Signed::Record(Kind::Quote), "NSE:INFY"),
            (Signed::Message, "NSE:INFY"),
        ] {
            assert!(namespace_keys.open(kind, key.as_bytes(), &signed).is_none(), "{kind:?} {key}");
        }
        for (name, secret) in [
            ("other", SECRET),
            ("main", "another secret of another cluster"),
        ] {
            let other = of(name, secret, None).namespace_keys().unwrap();
            assert!(other.open(Signed::Quote, b"NSE:INFY", &signed).is_none(), "{name}");
        }
    }

    /// Nodes of other versions read and write the same bytes.
    #[test]
    fn a_value_of_each_kind_has_this_tag() {
        let namespace_keys = installation().namespace_keys().unwrap();
        for (kind, key, tag) in [
            (Signed::Message, "", "946a6abc13aa0bc8"),
            (Signed::Head, "", "5f843efaf17e0d67"),
            (Signed::Quote, "NSE:INFY", "a761bc102abaf64e"),
            (Signed::Wanted, "", "bd68ce0910907105"),
            (Signed::Changes, "", "841e28d0708f22df"),
            (Signed::Sealed, "", "2c6745bafd147e1a"),
            (Signed::Claim, "", "711ce4ec74467e31"),
            (Signed::Fence, "", "654703e3114cbf02"),
            (Signed::Place, "", "43f63bd0a068ac29"),
            (Signed::Record(Kind::Quote), "NSE:INFY", "1e787f731572acb1"),
            (Signed::Record(Kind::Instruments), "list", "601510700737f815"),
        ] {
            let signed = namespace_keys.sign(kind, key, PLACE, b"body");
            let (found, rest) = signed.split_at(TAG_BYTES);
            assert_eq!(rest, b"\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x2abody");
            let hex: String = found[..8]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(hex, tag, "{kind:?}");
        }
    }

    #[test]
    fn each_cause_of_distrust_has_one_line_in_ten_minutes() {
        assert_eq!(LINE_MS, 10 * 60 * 1_000);
        let installation = installation();
        assert!(installation.is_due(Distrust::Forged));
        for _ in 0..1_000 {
            installation.distrust(Distrust::Forged, Signed::Quote);
            assert!(!installation.is_due(Distrust::Forged));
        }
        assert!(installation.is_due(Distrust::Replayed), "another cause has a line of its own");
        assert_eq!(installation.distrusted()[Distrust::Forged as usize], 1_000);
    }

    #[test]
    fn no_changed_or_cut_value_is_read() {
        let namespace_keys = installation().namespace_keys().unwrap();
        let signed = namespace_keys.sign(Signed::Message, "", PLACE, b"price");
        for at in 0..signed.len() {
            let mut changed = signed.clone();
            changed[at] ^= 1;
            assert!(
                namespace_keys
                    .open(Signed::Message, b"", &changed)
                    .is_none(),
                "{at}"
            );
            assert!(
                namespace_keys
                    .open(Signed::Message, b"", &signed[..at])
                    .is_none(),
                "{at}"
            );
        }
    }

    #[test]
    fn what_a_previous_secret_signed_is_read_while_it_is_named() {
        let old = of("main", "the secret of yesterday of 32 bytes", None);
        let signed = old
            .namespace_keys()
            .unwrap()
            .sign(Signed::Message, "", PLACE, b"price");
        let new = of("main", SECRET, Some("the secret of yesterday of 32 bytes"));
        let namespace_keys = new.namespace_keys().unwrap();
        assert!(namespace_keys.open(Signed::Message, b"", &signed).is_some());
        new.secret.set(&SECRET.into(), None);
        assert!(
            new.namespace_keys()
                .unwrap()
                .open(Signed::Message, b"", &signed)
                .is_none()
        );
    }

    #[test]
    fn a_namespace_that_is_only_remembered_lets_nobody_lead() {
        let secret = Arc::new(NodeSecret::new(SECRET.into()));
        let installation = Installation::new(&secret);
        assert!(installation.namespace_keys().is_err());
        let name = |text| Namespace::parse(text).unwrap();
        installation.name(name("before"), false);
        assert!(
            installation.namespace_keys().is_ok() && installation.sure_namespace_keys().is_err()
        );
        installation.name(name("now"), true);
        assert_eq!(
            installation
                .sure_namespace_keys()
                .unwrap()
                .namespace()
                .as_str(),
            "now"
        );
        installation.name(name("now"), false);
        assert!(installation.sure_namespace_keys().is_ok());
    }

    #[test]
    fn what_is_not_believed_is_counted_by_its_cause() {
        let installation = installation();
        for cause in [Distrust::Forged, Distrust::Forged, Distrust::Replayed] {
            installation.distrust(cause, Signed::Message);
        }
        assert_eq!(installation.distrusted(), [2, 0, 1]);
    }
}
