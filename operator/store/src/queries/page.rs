//! Page sizes, and cutting a page out of one row more than it holds.

use fencepost_views::Page;
use serde::Serialize;

use super::{QueryError, cursor};

/// Items a page: 1 to 500.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize(u32);

impl PageSize {
    /// 500 resources are about 300 kB of JSON: an answer that a browser still takes in one go.
    pub const MAX: u32 = 500;
    pub const DEFAULT: Self = Self(50);
    /// For lists whose length is what people wrote by hand.
    pub const LARGEST: Self = Self(Self::MAX);

    pub fn new(limit: Option<u32>) -> Result<Self, QueryError> {
        match limit {
            None => Ok(Self::DEFAULT),
            Some(limit @ 1..=Self::MAX) => Ok(Self(limit)),
            Some(_) => Err(QueryError::bad(
                "limit",
                format!("must be 1 to {}", Self::MAX),
            )),
        }
    }

    pub fn get(self) -> u32 {
        self.0
    }

    /// What a query fetches: one more than the page holds tells whether there is a next page.
    pub(super) fn fetch(self) -> i64 {
        i64::from(self.0) + 1
    }

    /// Cuts the page; `key` is what the list is ordered by.
    pub(super) fn cut<R, K: Serialize, T>(
        self,
        mut rows: Vec<R>,
        key: impl Fn(&R) -> K,
        item: impl Fn(R) -> T,
    ) -> Page<T> {
        let held = self.0 as usize;
        let more = rows.len() > held;
        rows.truncate(held);
        let next = if more {
            rows.last().and_then(|row| cursor::encode(&key(row)))
        } else {
            None
        };
        Page {
            items: rows.into_iter().map(item).collect(),
            next,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_page_has_a_next_only_when_a_row_is_left() {
        let size = PageSize::new(Some(2)).unwrap();
        assert_eq!(size.cut(vec![1, 2], |n| *n, |n| n).next, None);
        let page = size.cut(vec![1, 2, 3], |n| *n, |n| n);
        assert_eq!((page.items, page.next), (vec![1, 2], cursor::encode(&2)));
    }

    #[test]
    fn sizes_outside_the_bounds_name_the_parameter() {
        for limit in [0, 501, u32::MAX] {
            assert!(matches!(
                PageSize::new(Some(limit)),
                Err(QueryError::BadParameter { field: "limit", .. })
            ));
        }
        assert_eq!(PageSize::new(None).unwrap().get(), 50);
    }
}
