//! Query parameters: each is asked for by name, and what nobody asked for is refused.
//!
//! A filter that is spelled wrongly and ignored would answer more than was asked, silently.

use std::str::FromStr;

use axum::{extract::FromRequestParts, http::request::Parts};
use chrono::TimeDelta;
use fencepost_store::queries::PageSize;
use uuid::Uuid;

use super::problem::ApiError;

/// Parameters of one request: more than any endpoint has.
const MAX_PARAMETERS: usize = 32;

/// The longest window: what the dashboard offers.
pub(super) const MAX_RANGE_SECONDS: i64 = 7 * 24 * 3600;

/// The parameters of a request that nobody has asked for yet.
pub(super) struct Parameters {
    left: Vec<(String, String)>,
}

impl<S: Send + Sync> FromRequestParts<S> for Parameters {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::parse(parts.uri.query().unwrap_or_default())
    }
}

impl Parameters {
    fn parse(query: &str) -> Result<Self, ApiError> {
        let mut left: Vec<(String, String)> = Vec::new();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            if left.iter().any(|(seen, _)| *seen == name) {
                return Err(ApiError::bad_parameter(
                    &name,
                    format!("{name} is given twice; give it once."),
                ));
            }
            // Postgres takes no NUL in a text, and nothing that it holds has one.
            if value.contains('\0') || name.contains('\0') {
                return Err(ApiError::bad_parameter(
                    &name.replace('\0', "\u{fffd}"),
                    "A parameter may not contain NUL.",
                ));
            }
            left.push((name.into_owned(), value.into_owned()));
            if left.len() > MAX_PARAMETERS {
                return Err(ApiError::bad_parameter(
                    "",
                    format!("At most {MAX_PARAMETERS} parameters."),
                ));
            }
        }
        Ok(Self { left })
    }

    /// A parameter's text. One left empty, as a form sends it, is one not given.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let place = self.left.iter().position(|(given, _)| given == name)?;
        Some(self.left.swap_remove(place).1).filter(|value| !value.is_empty())
    }

    /// A parameter as `T`; `wanted` says what would be right.
    pub(super) fn parsed<T: FromStr>(
        &mut self,
        name: &str,
        wanted: &str,
    ) -> Result<Option<T>, ApiError> {
        self.text(name)
            .map(|value| {
                value
                    .parse()
                    .map_err(|_| ApiError::bad_parameter(name, format!("{name} must be {wanted}.")))
            })
            .transpose()
    }

    pub(super) fn required<T: FromStr>(&mut self, name: &str, wanted: &str) -> Result<T, ApiError> {
        self.parsed(name, wanted)?.ok_or_else(|| {
            ApiError::bad_parameter(name, format!("{name} is missing; it must be {wanted}."))
        })
    }

    pub(super) fn limit(&mut self) -> Result<Option<u32>, ApiError> {
        self.parsed("limit", &format!("a number from 1 to {}", PageSize::MAX))
    }

    pub(super) fn page_size(&mut self) -> Result<PageSize, ApiError> {
        Ok(PageSize::new(self.limit()?)?)
    }

    /// A window that ends now: seconds, or a number with `s`, `m`, `h` or `d`.
    pub(super) fn range(&mut self, default_seconds: i64) -> Result<TimeDelta, ApiError> {
        let Some(text) = self.text("range") else {
            return Ok(TimeDelta::seconds(default_seconds));
        };
        range(&text).ok_or_else(|| {
            ApiError::bad_parameter(
                "range",
                "range must be 1 to 604800 seconds, or be written like 15m, 6h or 7d.",
            )
        })
    }

    /// Refuses what nobody has asked for.
    pub(super) fn end(self) -> Result<(), ApiError> {
        match self.left.first() {
            None => Ok(()),
            Some((name, _)) => Err(ApiError::bad_parameter(
                name,
                "This endpoint has no such parameter. See /api/openapi.json for those that it has.",
            )),
        }
    }
}

fn range(text: &str) -> Option<TimeDelta> {
    let digits = text.trim_end_matches(['s', 'm', 'h', 'd']);
    let unit = match text.get(digits.len()..)? {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => return None,
    };
    let seconds = digits
        .parse::<u32>()
        .ok()
        .map(i64::from)?
        .checked_mul(unit)?;
    (1..=MAX_RANGE_SECONDS)
        .contains(&seconds)
        .then(|| TimeDelta::seconds(seconds))
}

/// A resource's id in a path. What is no id names no resource.
pub(super) fn resource_id(text: &str) -> Result<Uuid, ApiError> {
    Uuid::parse_str(text).map_err(|_| ApiError::no_such_resource(text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn field(error: ApiError) -> Option<String> {
        error.into_problem().field
    }

    #[test]
    fn what_nobody_asked_for_is_named() {
        let mut parameters = Parameters::parse("limit=3&stat=ACTIVE").unwrap();
        assert_eq!(parameters.limit().unwrap(), Some(3));
        assert_eq!(
            field(parameters.end().unwrap_err()).as_deref(),
            Some("stat")
        );
        assert!(Parameters::parse("q=").unwrap().text("q").is_none());
    }

    #[test]
    fn given_twice_or_with_nul_is_refused() {
        assert_eq!(
            field(Parameters::parse("q=a&q=b").err().unwrap()).as_deref(),
            Some("q")
        );
        assert_eq!(
            field(Parameters::parse("q=%00").err().unwrap()).as_deref(),
            Some("q")
        );
    }

    #[test]
    fn ranges_are_seconds_or_words() {
        assert_eq!(range("3600"), range("1h"));
        assert_eq!(range("15m"), Some(TimeDelta::minutes(15)));
        assert_eq!(range("7d"), Some(TimeDelta::days(7)));
        for bad in [
            "0",
            "8d",
            "1w",
            "h",
            "-1h",
            "1.5h",
            "1hh",
            "99999999999999999999",
            "4294967295d",
        ] {
            assert_eq!(range(bad), None, "{bad}");
        }
    }
}
