//! What the product does as seen from outside, in one binary so that it links once.

#[cfg(test)]
mod http;
#[cfg(test)]
mod support;
