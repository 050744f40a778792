//! The evaluation: `candles` reads a folder, `report` computes the figures.

mod candles;
mod report;

pub use candles::Folder;
pub use report::{report, summary};
