//! The machine's clock jumps while the service runs.
//!
//! A process cannot be given a wall clock of its own, so the service runs inside the test, on the
//! one seam through which it sees time; `bhav status` is the real program.
