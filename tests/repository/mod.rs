//! Rules of the repository that a machine can check.

mod documentation;
mod layers;
mod packaging;
mod tidy;
