//! PostgreSQL as the store's conformance suite uses it, directly and through a pooler that gives
//! each transaction another connection.

use std::marker::PhantomData;

use super::test_server::{Server, pooler, server};
use crate::base::Clock;
use crate::store::conformance::engine::Engine;
use crate::store::settings::{StoreSettings, StoreUrl};
use crate::store::{Store, UserDirectory};

/// A schema owned by a role of its own.
pub(crate) struct Schema {
    role: String,
    url: StoreUrl,
}

impl Schema {
    pub(crate) fn through(through: &Server) -> Self {
        let role = server().unwrap().fresh_role();
        let url = StoreUrl::parse(&through.url(&role)).unwrap();
        Self { role, url }
    }

    pub(crate) fn store(&self) -> Store {
        Store::on_server(&self.url, &StoreSettings::default(), &Clock::system()).unwrap()
    }

    pub(crate) fn role(&self) -> &str {
        &self.role
    }

    pub(crate) fn url(&self) -> &StoreUrl {
        &self.url
    }

    fn directory(&self) -> UserDirectory {
        let settings = StoreSettings {
            url: Some(self.url.clone()),
            ..StoreSettings::default()
        };
        UserDirectory::open("".as_ref(), &settings).unwrap()
    }

    pub(crate) fn execute(&self, statement: &str) -> Result<(), String> {
        server().unwrap().execute(&self.role, statement).map(drop)
    }
}

/// How the tests reach the server; `None` if that server or pooler is not installed.
pub(crate) trait Way {
    fn end() -> Option<&'static Server>;
}

pub(crate) struct Straight;

impl Way for Straight {
    fn end() -> Option<&'static Server> {
        server()
    }
}

pub(crate) struct Pooler;

impl Way for Pooler {
    fn end() -> Option<&'static Server> {
        pooler()
    }
}

pub(crate) struct Through<W>(Schema, PhantomData<W>);

impl<W: Way> Engine for Through<W> {
    fn is_there() -> bool {
        W::end().is_some()
    }

    fn fresh() -> Self {
        Self(Schema::through(W::end().unwrap()), PhantomData)
    }

    fn open(&self) -> Store {
        self.0.store()
    }

    fn users(&self) -> UserDirectory {
        self.0.directory()
    }

    fn execute(&self, statement: &str) -> Result<(), String> {
        self.0.execute(statement)
    }
}

pub(crate) type Direct = Through<Straight>;
pub(crate) type Pooled = Through<Pooler>;
