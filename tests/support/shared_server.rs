//! A Valkey or Redis server for one test: the same as in the tests of the cache itself.

use bhav::nodes::valkey::Address;

#[allow(
    dead_code,
    reason = "options and a look into its memory are of those tests alone"
)]
#[path = "../../src/nodes/valkey/test_server.rs"]
mod test_server;

pub(crate) use test_server::TestServer as SharedServer;

impl SharedServer {
    pub fn address(&self) -> Address {
        Address::parse(&self.url()).unwrap()
    }
}
