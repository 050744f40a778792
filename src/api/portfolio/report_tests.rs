//! What a sync tells.
