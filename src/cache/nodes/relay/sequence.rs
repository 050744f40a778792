//! Which message follows which, by epoch and number. Pure.

use crate::base::Epoch;

/// What a message is to who has heard those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The next.
    Next,
    /// Messages before it were missed.
    AfterGap,
    /// Heard already, or of a leader that was replaced.
    Old,
}

/// The newest message that was heard.
#[derive(Debug, Default)]
pub(super) struct Sequence(Option<(Epoch, u64)>);

impl Sequence {
    /// Judges a message and moves on to it, unless it is old.
    pub(super) fn hear(&mut self, epoch: Epoch, seq: u64) -> Place {
        let place = match self.0 {
            Some(heard) if (epoch, seq) <= heard => return Place::Old,
            Some((last, number)) if epoch == last && seq == number + 1 => Place::Next,
            // A new leader begins with all it has.
            Some((last, _)) if epoch > last && seq == 1 => Place::Next,
            None if seq == 1 => Place::Next,
            _ => Place::AfterGap,
        };
        self.0 = Some((epoch, seq));
        place
    }

    /// The whole state up to this message was read; whether that is another than was heard. What
    /// the server keeps counts even if it is lower: it is written before the message is told, so a
    /// higher number was no leader's, or the server forgot.
    pub(super) fn read(&mut self, epoch: Epoch, seq: u64) -> bool {
        self.0.replace((epoch, seq)) != Some((epoch, seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_repeats_and_new_leaders_are_told_apart() {
        let mut sequence = Sequence::default();
        for (epoch, seq, expected) in [
            (3, 5, Place::AfterGap),
            (3, 6, Place::Next),
            (3, 6, Place::Old),
            (3, 8, Place::AfterGap),
            (3, 7, Place::Old),
            (2, 90, Place::Old),
            (4, 1, Place::Next),
            (3, 9, Place::Old),
            (6, 2, Place::AfterGap),
        ] {
            assert_eq!(sequence.hear(Epoch(epoch), seq), expected, "{epoch} {seq}");
        }
        assert!(!sequence.read(Epoch(6), 2) && sequence.read(Epoch(6), 4));
        assert_eq!(sequence.hear(Epoch(6), 4), Place::Old);
        assert_eq!(sequence.hear(Epoch(6), 5), Place::Next);
        assert_eq!(Sequence::default().hear(Epoch(9), 1), Place::Next, "the first of all");
        // Somebody invents an epoch.
        assert_eq!(sequence.hear(Epoch(u64::MAX), 1), Place::Next);
        assert_eq!(sequence.hear(Epoch(6), 6), Place::Old);
        assert!(sequence.read(Epoch(6), 6));
        assert_eq!(sequence.hear(Epoch(6), 7), Place::Next);
    }
}
