//! The link against a TLS peer, with a certificate made for the test.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use tungstenite::handshake::server::{Request, Response};

use super::*;
use crate::base::Clock;
use crate::brokers::broker_a::ticker::dial::tests::dialer_trusting;
use crate::brokers::session::token::SharedToken;
use crate::rt::threads;

/// Sends every byte separately, so that no TLS record arrives whole.
struct Drip(TcpStream);

impl Read for Drip {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Drip {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(&bytes[..bytes.len().min(1)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// One connection of a peer whose certificate is for `localhost`.
struct Peer {
    address: SocketAddr,
    certificate: CertificateDer<'static>,
    /// Its thread returns the request and the client's first message, if the client got that far.
    thread: JoinHandle<Option<(String, Message)>>,
}

impl Peer {
    /// Sends `said` once.
    fn start(said: Vec<u8>) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(made.key_pair.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = threads::spawn("peer", move || {
            let (tcp, _) = listener.accept().unwrap();
            tcp.set_nodelay(true).unwrap();
            let session = ServerConnection::new(Arc::new(config)).unwrap();
            converse(StreamOwned::new(session, Drip(tcp)), said)
        });
        Self {
            address,
            certificate,
            thread: thread.unwrap(),
        }
    }

    fn endpoint(&self, host: &str) -> Endpoint {
        Endpoint::parse(&format!("wss://{host}:{}", self.address.port())).unwrap()
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        roots
    }
}

/// `None` when the client does not want to go on.
fn converse(
    stream: StreamOwned<ServerConnection, Drip>,
    said: Vec<u8>,
) -> Option<(String, Message)> {
    let mut asked = String::new();
    #[expect(clippy::result_large_err, reason = "the form is the library's")]
    let note = |request: &Request, response: Response| {
        asked = request.uri().to_string();
        Ok(response)
    };
    let mut socket = tungstenite::accept_hdr(stream, note).ok()?;
    socket.send(Message::binary(said)).ok()?;
    let first = socket.read().ok()?;
    while socket.read().is_ok() {}
    Some((asked, first))
}

fn token() -> Arc<Token> {
    let shared = SharedToken::default();
    let now = Clock::system().now();
    shared.set("t".into(), "k".into(), now);
    shared.valid(now).unwrap()
}

#[test]
fn a_trusted_peer_is_heard_however_its_records_are_cut() {
    let said: Vec<u8> = (0..=u8::MAX).cycle().take(2_000).collect();
    let peer = Peer::start(said.clone());
    let dialer = dialer_trusting(peer.roots());
    let mut link = Link::open(&dialer, &peer.endpoint("localhost"), &token())
        .ok()
        .unwrap();
    assert!(!link.simulated);
    let heard = (0..10_000).find_map(|_| match link.read(Duration::from_millis(20)) {
        Ok(None) => None,
        heard => Some(heard),
    });
    let Some(Ok(Some(Message::Binary(heard)))) = heard else {
        panic!("no binary message")
    };
    assert_eq!(heard, said);
    link.send(Message::text("hello")).unwrap();
    link.close(Duration::from_secs(10));
    let asked = peer.thread.join().unwrap();
    assert_eq!(asked, Some(("/?api_key=k&access_token=t".to_owned(), Message::text("hello"))));
}

#[test]
fn a_certificate_that_is_not_trusted_or_of_another_name_ends_it_before_the_token_is_sent() {
    let peer = Peer::start(Vec::new());
    let strange = dialer_trusting(RootCertStore::empty());
    let refused = Link::open(&strange, &peer.endpoint("localhost"), &token());
    assert_eq!(refused.err(), Some(Reason::Tls));
    assert_eq!(peer.thread.join().unwrap(), None);

    let peer = Peer::start(Vec::new());
    let dialer = dialer_trusting(peer.roots());
    let refused = Link::open(&dialer, &peer.endpoint("127.0.0.1"), &token());
    assert_eq!(refused.err(), Some(Reason::Tls));
    assert_eq!(peer.thread.join().unwrap(), None);
}
