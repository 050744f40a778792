//! Serialises enums from other modules by their names in the API.

use serde::{Serialize, Serializer};

use super::health::FeedWord;
use crate::base::{Broker, PositionKind, Source, Symbol};
use crate::market::Phase;
use crate::portfolio::PointSource;
use crate::signals::Direction;

macro_rules! written_as_str {
    ($($noun:ty),*) => {$(
        impl Serialize for $noun {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    )*};
}

written_as_str!(Broker, Direction, FeedWord, Phase, PointSource, PositionKind, Source, Symbol);
