//! Where the reader is on a resource's page: everything the address bar holds.

use leptos_router::params::ParamsMap;

use crate::lanes::Scale;
use crate::range::{self, Range};
use crate::{Base, data};

/// The view, as the address says it.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub id: String,
    pub range: Range,
    pub scale: Scale,
    /// Ordinals of the two versions compared.
    pub old: Option<i64>,
    pub new: Option<i64>,
    pub versions_after: Option<String>,
    pub receipts_after: Option<String>,
}

impl Place {
    pub fn of(id: &str, query: &ParamsMap) -> Self {
        let given = |name: &str| query.get(name).filter(|value| !value.is_empty());
        let ordinal = |name: &str| given(name).and_then(|value| value.parse().ok());
        Self {
            id: id.to_owned(),
            range: Range::parse(given("range").as_deref(), range::PICTURE, "15m"),
            scale: if given("scale").as_deref() == Some("order") {
                Scale::Order
            } else {
                Scale::Time
            },
            old: ordinal("old"),
            new: ordinal("new"),
            versions_after: given("versions"),
            receipts_after: given("receipts"),
        }
    }

    /// The whole address of this view.
    pub fn address(&self) -> String {
        let query = self
            .pairs()
            .into_iter()
            .fold(String::new(), |query, (name, value)| {
                format!(
                    "{query}{}{name}={}",
                    if query.is_empty() { '?' } else { '&' },
                    data::segment(&value)
                )
            });
        Base::here().to(&format!("/resources/{}{query}", data::segment(&self.id)))
    }

    /// What a form that changes one of them must carry along.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![("range", self.range.word.to_owned())];
        if self.scale == Scale::Order {
            pairs.push(("scale", "order".to_owned()));
        }
        let numbers = [("old", self.old), ("new", self.new)];
        pairs.extend(
            numbers
                .into_iter()
                .filter_map(|(name, value)| value.map(|value| (name, value.to_string()))),
        );
        let cursors = [
            ("versions", &self.versions_after),
            ("receipts", &self.receipts_after),
        ];
        pairs.extend(
            cursors
                .into_iter()
                .filter_map(|(name, value)| value.clone().map(|value| (name, value))),
        );
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_gives_the_view_back() {
        let mut query = ParamsMap::new();
        for (name, value) in [
            ("range", "1h"),
            ("scale", "order"),
            ("old", "10"),
            ("new", "11"),
            ("receipts", "a/b"),
        ] {
            query.insert(name, value.to_owned());
        }
        let place = Place::of("r 1", &query);
        assert_eq!(
            place.address(),
            "/resources/r%201?range=1h&scale=order&old=10&new=11&receipts=a%2Fb"
        );
    }
}
