//! Real servers for the tests beside the code, and the service's own way to them.

use std::sync::Arc;

use super::address::Address;
use crate::nodes::valkey::connection::Server;

pub(crate) use super::test_server::TestServer;

impl TestServer {
    pub(crate) fn address(&self) -> Address {
        Address::parse(&self.url()).unwrap()
    }

    /// A way to it, as the service has one.
    pub(crate) fn server(&self) -> Arc<Server> {
        Arc::new(Server::new(self.address(), None, None).unwrap())
    }
}
