//! Rules of the repository that a machine can check.

mod budget;
mod circles;
mod dependencies;
mod documentation;
mod layers;
mod packaging;
mod tidy;
mod web;
