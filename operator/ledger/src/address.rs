//! Which watched resource a notification's URI speaks of.
//!
//! The specification lets an update name a sub-resource of the subscribed URI. `ancestors` gives the
//! URIs that could be meant, nearest first; the caller looks each up among what is watched.

/// The proper prefixes of `uri` that end before `/`, `?` or `#` (or with `/`), nearest first.
/// Stops at the scheme: `docs://` alone is nobody's ancestor.
pub fn ancestors(uri: &str) -> impl Iterator<Item = &str> {
    let floor = uri.find("://").map_or_else(
        || uri.find(':').map_or(uri.len(), |colon| colon + 1),
        |scheme| scheme + 3,
    );
    uri.char_indices()
        .rev()
        .filter(move |(at, c)| *at > floor && matches!(c, '/' | '?' | '#'))
        .flat_map(move |(at, c)| {
            // `docs://a/` is watched as often as `docs://a`.
            let with_slash = (c == '/' && at + 1 < uri.len()).then(|| &uri[..=at]);
            with_slash.into_iter().chain(Some(&uri[..at]))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_first_down_to_the_authority() {
        let found: Vec<_> = ancestors("docs://team/a/b?x#y").collect();
        assert_eq!(
            found,
            [
                "docs://team/a/b?x",
                "docs://team/a/b",
                "docs://team/a/",
                "docs://team/a",
                "docs://team/",
                "docs://team"
            ]
        );
    }

    #[test]
    fn a_uri_without_parts_has_none() {
        assert_eq!(ancestors("docs://team").count(), 0);
        assert_eq!(ancestors("mailto:a").count(), 0);
        assert_eq!(ancestors("no scheme").count(), 0);
        assert_eq!(
            ancestors("docs:///ä/ö").collect::<Vec<_>>(),
            ["docs:///ä/", "docs:///ä"]
        );
    }
}
