//! Real servers for unit tests, and the service's own connections to them.

use std::sync::Arc;

use super::address::Address;
use crate::nodes::valkey::dial::Server;

pub(crate) use super::test_server::TestServer;

impl TestServer {
    pub(crate) fn address(&self) -> Address {
        Address::parse(&self.url()).unwrap()
    }

    /// The service's connection settings for this server.
    pub(crate) fn server(&self) -> Arc<Server> {
        Arc::new(Server::new(self.address(), None, None).unwrap())
    }
}
