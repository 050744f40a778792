//! Asks the server which of our commands it refuses, without changing anything on it.

use redis::{Cmd, RedisResult, Value};

use super::connection::Connection;
use super::error::ValkeyError;
use super::keys::Keys;
use super::refusals::Refusal;

/// In the place of a name below the namespace that nothing else uses.
const NAME: &str = "NAME";

/// Every command that a node sends or one of its scripts runs, and that it cannot do without; each
/// in a form that changes nothing. An odd number of fields is an error after access was checked.
pub(super) const COMMANDS: &[&[&str]] = &[
    &["INFO", "server"],
    &["TIME"],
    &["GET", NAME],
    &["EXISTS", NAME],
    &["DEL", NAME],
    &["SET", NAME, "x", "XX", "PX", "1"],
    &["PEXPIRE", NAME, "1"],
    &["HGET", NAME, "x"],
    &["HMGET", NAME, "x"],
    &["HGETALL", NAME],
    &["HLEN", NAME],
    &["HSCAN", NAME, "0"],
    &["HDEL", NAME, "x"],
    &["HSET", NAME, "x", "x", "odd"],
    &["ZADD", NAME, "XX", "1", "x"],
    &["ZCARD", NAME],
    &["ZPOPMIN", NAME, "0"],
    &["SCRIPT", "LOAD", "return 1"],
    &["EVALSHA", "0000000000000000000000000000000000000000", "0"],
    &["MULTI"],
    &["EXEC"],
    &["PUBLISH", NAME, ""],
];

/// What the server refuses to this connection, each once.
///
/// # Errors
/// [`ValkeyError`] where it does not answer.
pub(super) fn refused(
    connection: &mut Connection,
    keys: &Keys,
) -> Result<Vec<Refusal>, ValkeyError> {
    let name = keys.access();
    let mut found = Vec::new();
    for words in COMMANDS {
        let mut command = Cmd::new();
        for word in *words {
            command.arg(if *word == NAME { name.as_str() } else { word });
        }
        let answered: RedisResult<Value> = command.query(connection);
        let Err(error) = answered else { continue };
        let ValkeyError::Refused { detail, refusal } = ValkeyError::of(&error) else {
            return Err(ValkeyError::of(&error));
        };
        // The form of a command, or a script that nobody loaded, is no matter of access.
        let of_the_form = ["ERR", "NOSCRIPT", "EXECABORT"].contains(&detail.as_str());
        if !of_the_form && !found.contains(&refusal) {
            found.push(refusal);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Clock;
    use crate::cache::valkey::Namespace;
    use crate::cache::valkey::testing::TestServer;

    #[test]
    fn every_command_of_a_script_is_in_the_list() {
        let scripts = [
            include_str!("../l2/valkey/store.lua"),
            include_str!("../nodes/claim/look.lua"),
            include_str!("../nodes/claim/claim.lua"),
            include_str!("../nodes/claim/release.lua"),
            include_str!("../nodes/limits/admit.lua"),
            include_str!("../nodes/relay/publish.lua"),
        ];
        for script in scripts {
            for call in script.split("redis.call('").skip(1) {
                let name = call.split('\'').next().unwrap();
                assert!(COMMANDS.iter().any(|words| words[0] == name), "{name}");
            }
        }
    }

    #[test]
    fn a_server_that_refuses_nothing_is_left_as_it_was() {
        let name = "a_server_that_refuses_nothing_is_left_as_it_was";
        let Some(server) = TestServer::start(name) else { return };
        let until_mono_ms = Clock::system().monotonic_ms() + 10_000;
        let mut connection = server.server().connect(until_mono_ms).unwrap();
        connection.end_by(until_mono_ms);
        let keys = Keys::of(&Namespace::unused());
        assert_eq!(refused(&mut connection, &keys).unwrap(), []);
        let kept: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
        assert!(kept.is_empty(), "{kept:?}");
        let rules = ["ACL", "SETUSER", "default", "-info", "-publish", "resetkeys", "~other:*"];
        let mut command = Cmd::new();
        for word in rules {
            command.arg(word);
        }
        command.exec(&mut connection).unwrap();
        let command = |name: &str| Refusal::Command(name.to_owned());
        assert_eq!(
            refused(&mut connection, &keys).unwrap(),
            [command("INFO"), Refusal::Keys, command("PUBLISH")]
        );
    }
}
