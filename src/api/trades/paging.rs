//! Pages of a computed list. A cursor names the last item of its page, and where that stood: if the
//! list has changed, the page goes on behind that item, or else at that place. Pure.

use sha2::{Digest, Sha256};

use crate::api::cursor;
use crate::api::query::{one, parameter, whole};
use crate::http::Problem;
use crate::store::AccountId;

/// The kind of list, for its cursors.
const LIST: &str = "ledger cursor";

/// The part of a list that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageOf {
    user: AccountId,
    after: Option<Position>,
    limit: usize,
}

/// Where a page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    /// Items before the next page.
    place: u32,
    item: [u8; 8],
}

/// Reads `cursor` and `limit`.
///
/// # Errors
/// 400.
pub(super) fn page_of(
    query: &[u8],
    user: AccountId,
    limit_default: usize,
    limit_max: usize,
) -> Result<PageOf, Problem> {
    let expected = format!("A number from 1 to {limit_max}.");
    let limit = parameter(query, "limit", expected, whole(1..=limit_max))?;
    let after = match one(query, "cursor")? {
        Some(text) => Some(open(user, &text).ok_or_else(cursor_invalid)?),
        None => None,
    };
    Ok(PageOf {
        user,
        after,
        limit: limit.unwrap_or(limit_default),
    })
}

impl PageOf {
    /// The page of `all`, and the cursor of the next. `name` is what an item has to itself.
    pub(super) fn of<'a, T>(
        &self,
        all: &'a [T],
        name: impl Fn(&T) -> String,
    ) -> (&'a [T], Option<String>) {
        let first = match self.after {
            None => 0,
            Some(Position { place, item }) => {
                let place = place as usize;
                let is_it = |at: &T| hash(&name(at)) == item;
                let stood = place.checked_sub(1).and_then(|at| all.get(at));
                match stood.is_some_and(is_it) {
                    true => place,
                    false => all.iter().position(is_it).map_or(place, |at| at + 1),
                }
            }
        };
        let first = first.min(all.len());
        let end = first.saturating_add(self.limit).min(all.len());
        let next = all[first..end]
            .last()
            .filter(|_| end < all.len())
            .map(|last| {
                let place = u32::try_from(end).unwrap_or(u32::MAX);
                seal(
                    self.user,
                    Position {
                        place,
                        item: hash(&name(last)),
                    },
                )
            });
        (&all[first..end], next)
    }
}

fn seal(user: AccountId, Position { place, item }: Position) -> String {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&place.to_be_bytes());
    bytes[4..].copy_from_slice(&item);
    cursor::seal(LIST, user, &bytes)
}

fn open(user: AccountId, text: &str) -> Option<Position> {
    let position = cursor::open(LIST, user, text)?;
    let (place, item) = position.split_first_chunk::<4>()?;
    Some(Position {
        place: u32::from_be_bytes(*place),
        item: item.try_into().ok()?,
    })
}

fn hash(name: &str) -> [u8; 8] {
    let hash = Sha256::digest(name.as_bytes());
    std::array::from_fn(|at| hash[at])
}

fn cursor_invalid() -> Problem {
    let detail = "This is no next_cursor of a page of yours. Begin with the first page.";
    Problem::new(400, "cursor_invalid", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: AccountId = AccountId(7);

    fn page(all: &[u32], cursor: Option<&str>) -> (Vec<u32>, Option<String>) {
        let query =
            cursor.map_or("limit=3".to_owned(), |cursor| format!("limit=3&cursor={cursor}"));
        let page = page_of(query.as_bytes(), USER, 10, 20).unwrap();
        let (part, next) = page.of(all, u32::to_string);
        (part.to_vec(), next)
    }

    #[test]
    fn pages_follow_each_other_and_a_changed_list() {
        let all: Vec<u32> = (0..8).collect();
        let (first, cursor) = page(&all, None);
        assert_eq!(first, [0, 1, 2]);
        let (second, next) = page(&all, cursor.as_deref());
        assert_eq!(second, [3, 4, 5]);
        let (last, none) = page(&all, next.as_deref());
        assert_eq!((last, none), (vec![6, 7], None));
        // Others came before it; then it is gone.
        let more: Vec<u32> = [90, 91].into_iter().chain(all.clone()).collect();
        assert_eq!(page(&more, cursor.as_deref()).0, [3, 4, 5]);
        let without: Vec<u32> = all.into_iter().filter(|item| *item != 2).collect();
        assert_eq!(page(&without, cursor.as_deref()).0, [4, 5, 6]);
        assert_eq!(page(&[], cursor.as_deref()), (vec![], None));
    }

    #[test]
    fn a_cursor_is_valid_only_unchanged_and_for_its_user() {
        let text = page(&[1, 2, 3, 4], None).1.unwrap();
        assert!(open(USER, &text).is_some());
        assert_eq!(open(AccountId(8), &text), None);
        for at in 0..text.len() {
            let mut forged = text.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            assert_eq!(open(USER, &forged), None, "{forged}");
        }
        for bad in ["", "A", "====", "é", &text[1..], &text.repeat(2)] {
            assert_eq!(open(USER, bad), None, "{bad}");
        }
    }
}
