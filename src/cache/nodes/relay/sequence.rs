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
    /// Told later than what was heard, and with a lower number: numbers began anew.
    Anew,
}

/// What the whole state is to who has heard messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// Up to the message that was heard last.
    Known,
    New,
    /// It was told before what was heard: somebody put it back.
    Replayed,
}

/// The newest message that was heard: epoch, number, and when it was told by the server's clock.
#[derive(Debug, Default)]
pub(super) struct Sequence(Option<(Epoch, u64, u64)>);

impl Sequence {
    /// Judges a message and moves on to it, unless it is old.
    pub(super) fn hear(&mut self, epoch: Epoch, seq: u64, told_ms: u64) -> Place {
        let place = match self.0 {
            Some((last, number, heard_ms)) if (epoch, seq) <= (last, number) => {
                return if told_ms > heard_ms { Place::Anew } else { Place::Old };
            }
            Some((last, number, _)) if epoch == last && seq == number + 1 => Place::Next,
            // A new leader begins with all it has.
            Some((last, ..)) if epoch > last && seq == 1 => Place::Next,
            None if seq == 1 => Place::Next,
            _ => Place::AfterGap,
        };
        self.0 = Some((epoch, seq, told_ms));
        place
    }

    /// The whole state up to this message was read. One with a lower number counts if it was told
    /// later: the server forgot, or the database went back, and numbers began anew.
    pub(super) fn read(&mut self, epoch: Epoch, seq: u64, told_ms: u64) -> Kept {
        match self.0 {
            Some((last, number, _)) if (epoch, seq) == (last, number) => return Kept::Known,
            Some((last, number, heard_ms))
                if (epoch, seq) < (last, number) && told_ms <= heard_ms =>
            {
                return Kept::Replayed;
            }
            _ => {}
        }
        self.0 = Some((epoch, seq, told_ms));
        Kept::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_repeats_and_new_leaders_are_told_apart() {
        let mut sequence = Sequence::default();
        for (epoch, seq, told_ms, expected) in [
            (3, 5, 50, Place::AfterGap),
            (3, 6, 60, Place::Next),
            (3, 6, 60, Place::Old),
            (3, 8, 80, Place::AfterGap),
            (3, 7, 70, Place::Old),
            (2, 90, 75, Place::Old),
            (4, 1, 90, Place::Next),
            (3, 9, 85, Place::Old),
            (6, 2, 100, Place::AfterGap),
            (2, 1, 110, Place::Anew),
        ] {
            assert_eq!(sequence.hear(Epoch(epoch), seq, told_ms), expected, "{epoch} {seq}");
        }
        assert_eq!(sequence.read(Epoch(6), 2, 100), Kept::Known);
        assert_eq!(sequence.read(Epoch(6), 4, 120), Kept::New);
        assert_eq!(sequence.hear(Epoch(6), 4, 120), Place::Old);
        assert_eq!(sequence.hear(Epoch(6), 5, 130), Place::Next);
        assert_eq!(Sequence::default().hear(Epoch(9), 1, 1), Place::Next, "the first of all");
    }

    #[test]
    fn a_state_that_is_put_back_is_told_from_numbers_that_began_anew() {
        let mut sequence = Sequence::default();
        assert_eq!(sequence.read(Epoch(51), 900, 1_000), Kept::New);
        assert_eq!(sequence.read(Epoch(51), 899, 990), Kept::Replayed);
        assert_eq!(sequence.read(Epoch(4), 1, 900), Kept::Replayed);
        assert_eq!(sequence.hear(Epoch(51), 901, 1_010), Place::Next, "nothing was lost by it");
        assert_eq!(sequence.read(Epoch(4), 1, 1_200), Kept::New);
        assert_eq!(sequence.hear(Epoch(4), 2, 1_250), Place::Next);
    }
}
