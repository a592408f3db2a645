//! One function a question: from the [`Source`](crate::source::Source) while the server renders, from
//! the JSON API in the browser. Both answer `Result<T, Problem>`.

use std::future::Future;

use fencepost_views::{
    ContentText, Index, Overview, Page, Problem, Receipt, Resource, ResourceDetail, ResourceFilter,
    Series, Server, Supersede, Timeline, Version,
};

use serde::{Deserialize, Serialize};

use crate::diff::{self, Difference};

/// What a question comes to.
pub type Answer<T> = Result<T, Problem>;

/// Declares a question: its arguments, its answer, and its address below `/api/v1/`.
macro_rules! question {
    ($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty, $address:expr) => {
        pub fn $name($($argument: $kind),*) -> impl Future<Output = Answer<$answer>> + Send + 'static {
            #[cfg(feature = "ssr")]
            {
                let source = here();
                async move { source?.$name($($argument),*).await }
            }
            #[cfg(not(feature = "ssr"))]
            {
                fetch::<$answer>($address)
            }
        }
    };
}

question!(overview(range: u32) -> Overview, format!("overview?range={range}"));
question!(series(range: u32) -> Series, format!("series?range={range}"));
question!(resources(filter: ResourceFilter) -> Page<Resource>, format!("resources{}", query(&filter)));
question!(resource(id: String) -> ResourceDetail, format!("resources/{}", segment(&id)));
question!(versions(id: String, after: Option<String>) -> Page<Version>,
    format!("resources/{}/versions{}", segment(&id), after_query(after.as_deref())));
question!(receipts(id: String, after: Option<String>) -> Page<Receipt>,
    format!("resources/{}/receipts{}", segment(&id), after_query(after.as_deref())));
question!(timeline(id: String, range: u32) -> Timeline,
    format!("resources/{}/timeline?range={range}", segment(&id)));
question!(version_text(id: String, ordinal: i64) -> ContentText,
    format!("resources/{}/versions/{ordinal}/text", segment(&id)));
question!(supersede(id: String, from: i64, to: i64) -> Option<Supersede>,
    format!("resources/{}/supersede?from={from}&to={to}", segment(&id)));
question!(servers() -> Page<Server>, "servers".to_owned());
question!(indexes() -> Page<Index>, "indexes".to_owned());

/// A page of versions, and two of them compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub page: Page<Version>,
    pub old: Option<i64>,
    pub new: Option<i64>,
    /// `Err` says why there is nothing to compare.
    pub difference: Result<Difference, String>,
    pub note: Option<Supersede>,
}

/// The versions with the difference of the chosen two, or of the page's newest two. The difference is made
/// where the question is asked, so that the page carries its lines and not both contents.
pub async fn comparison(
    id: String,
    after: Option<String>,
    old: Option<i64>,
    new: Option<i64>,
) -> Answer<Comparison> {
    let page = versions(id.clone(), after).await?;
    let listed = |place: usize| page.items.get(place).map(|version| version.ordinal);
    let (old, new) = (old.or_else(|| listed(1)), new.or_else(|| listed(0)));
    let (Some(from), Some(to)) = (old, new) else {
        let difference = Err("A difference needs two accepted versions.".to_owned());
        return Ok(Comparison {
            page,
            old,
            new,
            difference,
            note: None,
        });
    };
    let note = if from < to {
        supersede(id.clone(), from, to).await.ok().flatten()
    } else {
        None
    };
    let (from, to) = (
        version_text(id.clone(), from).await,
        version_text(id, to).await,
    );
    let difference = match (from, to) {
        (Ok(from), Ok(to)) => compare(&from, &to),
        (Err(problem), _) | (_, Err(problem)) => Err(problem.detail),
    };
    Ok(Comparison {
        page,
        old,
        new,
        difference,
        note,
    })
}

fn compare(from: &ContentText, to: &ContentText) -> Result<Difference, String> {
    let (Some(old), Some(new)) = (&from.text, &to.text) else {
        return Err("One of them is not text; compare their digests and sizes above.".to_owned());
    };
    let json = diff::is_json(from.mime_type.as_deref()) && diff::is_json(to.mime_type.as_deref());
    let mut difference = diff::difference(old, new, json);
    difference.cut |= from.truncated || to.truncated;
    Ok(difference)
}

#[cfg(feature = "ssr")]
fn here() -> Answer<std::sync::Arc<dyn crate::source::Source>> {
    leptos::prelude::use_context().ok_or_else(|| Problem {
        kind: "/problems/no-source".into(),
        title: "The page has no data".into(),
        status: 500,
        detail: "The server rendered this page without its ledger. This is a fault of the server; report it.".into(),
        object: None,
        field: None,
    })
}

/// Asks the API; any failure becomes a problem document that says what to do.
#[cfg(not(feature = "ssr"))]
fn fetch<T: serde::de::DeserializeOwned + 'static>(
    path: String,
) -> impl Future<Output = Answer<T>> + Send + 'static {
    use gloo_net::http::Request;
    let address = crate::Base::of_document().api(&path);
    send_wrapper::SendWrapper::new(async move {
        let unreachable = |detail: String| Problem {
            kind: "/problems/unreachable".into(),
            title: "Fencepost cannot be reached".into(),
            status: 0,
            detail,
            object: None,
            field: None,
        };
        let response = Request::get(&address).header("accept", "application/json").send().await.map_err(|_| {
            unreachable("The request did not get through. What you see is the last answer; it is asked again by itself.".into())
        })?;
        if response.ok() {
            return response.json::<T>().await.map_err(|error| {
                unreachable(format!("The answer has an unknown shape ({error}). Reload the page: the server may be newer."))
            });
        }
        let status = response.status();
        Err(response.json::<Problem>().await.unwrap_or_else(|_| {
            unreachable(format!(
                "The server answered {status}. See its log for the request to {address}."
            ))
        }))
    })
}

/// The address bar's and the API's filter are the same words.
pub fn query(filter: &ResourceFilter) -> String {
    let stale = filter.stale.map(|stale| stale.to_string());
    let limit = filter.limit.map(|limit| limit.to_string());
    let pairs = [
        ("q", filter.q.as_deref()),
        ("state", filter.state.as_deref()),
        ("server", filter.server.as_deref()),
        ("subject", filter.subject.as_deref()),
        ("watch", filter.watch.as_deref()),
        ("stale", stale.as_deref()),
        ("limit", limit.as_deref()),
        ("after", filter.after.as_deref()),
    ];
    pairs
        .iter()
        .filter_map(|(name, value)| value.map(|value| (name, value)))
        .fold(String::new(), |query, (name, value)| {
            let joint = if query.is_empty() { '?' } else { '&' };
            format!("{query}{joint}{name}={}", segment(value))
        })
}

#[cfg(not(feature = "ssr"))]
fn after_query(after: Option<&str>) -> String {
    after
        .map(|after| format!("?after={}", segment(after)))
        .unwrap_or_default()
}

/// Percent-encodes what is not unreserved in RFC 3986, so that a value stays one path segment or value.
pub fn segment(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes()
        .fold(String::with_capacity(text.len()), |mut encoded, byte| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                encoded.push(char::from(byte));
            } else {
                let _ = write!(encoded, "%{byte:02X}");
            }
            encoded
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_leave_its_place_in_an_address() {
        assert_eq!(segment("../x?y=1&z#/"), "..%2Fx%3Fy%3D1%26z%23%2F");
    }

    #[test]
    fn only_what_is_given_is_in_the_query() {
        assert_eq!(query(&ResourceFilter::default()), "");
        let filter = ResourceFilter {
            q: Some("a b".into()),
            stale: Some(true),
            ..ResourceFilter::default()
        };
        assert_eq!(query(&filter), "?q=a%20b&stale=true");
    }
}
