//! Users as an operator's commands list and change them, beside the running services. Called on a
//! command's main thread; blocks.

use std::sync::Arc;

use super::condition::Condition;
use super::deadline::Deadline;
use super::target::Target;
use super::transaction::{Connections, Purpose};
use crate::base::Clock;
use crate::store::settings::StoreSettings;
use crate::store::statements::{accounts, users};
use crate::store::traits::UserDirectory;
use crate::store::transact::WRITE_DEADLINE_MS;
use crate::store::tx::{Failure, Tx};
use crate::store::url::StoreUrl;
use crate::store::{
    AccountId, DatabaseIdentity, MaintenanceError, NewUser, OpenError, User, UserChange,
    UserSummary,
};

/// A connection beside the services.
pub(crate) struct PostgresUsers {
    connections: Arc<Connections>,
    clock: Clock,
}

impl PostgresUsers {
    /// Connects to a database with the current schema. Only the service migrates an older one.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub(crate) fn open(url: &StoreUrl, settings: &StoreSettings) -> Result<Self, MaintenanceError> {
        let clock = Clock::system();
        let target = Target::new(url, settings).map_err(OpenError::from)?;
        let connections = Connections::new(target, Condition::new(&clock));
        connections.expect_current(&Deadline::in_ms(WRITE_DEADLINE_MS, &clock))?;
        Ok(Self { connections, clock })
    }

    fn run<T>(
        &self,
        purpose: &Purpose,
        work: impl Fn(&dyn Tx) -> Result<T, Failure>,
    ) -> Result<T, MaintenanceError> {
        let deadline = Deadline::in_ms(WRITE_DEADLINE_MS, &self.clock);
        Ok(self.connections.run(purpose, WRITE_DEADLINE_MS, &deadline, &work)?)
    }
}

impl UserDirectory for PostgresUsers {
    fn page(&self, after: AccountId, limit: usize) -> Result<Vec<UserSummary>, MaintenanceError> {
        self.run(&Purpose::Read, |tx| users::page(tx, after, limit))
    }

    fn find(&self, id_or_email: &str) -> Result<Option<UserSummary>, MaintenanceError> {
        self.run(&Purpose::Read, |tx| users::find(tx, id_or_email))
    }

    fn add(&mut self, user: NewUser) -> Result<Option<User>, MaintenanceError> {
        self.run(&Purpose::Write(Vec::new()), |tx| users::add(tx, &user))
    }

    fn set_password(&mut self, id: AccountId, hash: &str) -> Result<Option<i64>, MaintenanceError> {
        self.run(&Purpose::Write(vec![id]), |tx| users::set_password(tx, id, hash))
    }

    fn change(
        &mut self,
        id: AccountId,
        change: UserChange,
    ) -> Result<Option<i64>, MaintenanceError> {
        self.run(&Purpose::Write(vec![id]), |tx| users::change(tx, id, change))
    }

    fn renew_identity(&mut self, is_copy: bool) -> Result<DatabaseIdentity, MaintenanceError> {
        self.run(&Purpose::Write(Vec::new()), |tx| accounts::renew_identity(tx, is_copy))
    }

    fn noticed(&self, _number: i64) -> Result<Option<bool>, MaintenanceError> {
        Ok(None)
    }
}
