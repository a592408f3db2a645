//! Tokens: taken from a request, kept in a cookie, told apart by their digests.
//!
//! A token is in no `Debug`, no key and no message: only the `TokenReview` and the cookie get its text.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use http::{
    HeaderMap,
    header::{AUTHORIZATION, COOKIE},
};
use sha2::{Digest as _, Sha256};

/// The cookie's name.
const NAME: &str = "fencepost_token";

/// A `ServiceAccount`'s token has about a kilobyte; one with many groups several.
const MAX_BYTES: usize = 16 * 1024;

/// How long a login lasts at most: a working day.
const MAX_AGE_SECONDS: i64 = 8 * 3600;

/// What caches know a token by.
pub type TokenDigest = [u8; 32];

/// Text of the form of RFC 6750, section 2.1: it can be a header's and a cookie's value as it is.
pub struct Token(String);

/// What a request brings along.
pub enum Presented {
    Nothing,
    /// Bearer, and then what is no token.
    Malformed,
    Header(Token),
    /// Sent by a browser by itself, also when another site makes it ask.
    Cookie(Token),
}

impl Presented {
    /// The header goes before the cookie: whoever sets it means it.
    pub fn of(headers: &HeaderMap) -> Self {
        if let Some(text) = headers.get(AUTHORIZATION).and_then(bearer) {
            return Token::parse(text).map_or(Self::Malformed, Self::Header);
        }
        let mut pairs = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        match pairs.find(|(name, value)| *name == NAME && !value.is_empty()) {
            None => Self::Nothing,
            Some((_, value)) => Token::parse(value).map_or(Self::Malformed, Self::Cookie),
        }
    }
}

/// The text behind `Bearer`; the scheme's name is case-insensitive (RFC 9110, 11.1).
fn bearer(value: &http::HeaderValue) -> Option<&str> {
    // Bytes that are no text are no token either: an empty one is refused.
    let text = value.to_str().unwrap_or("Bearer ");
    let (scheme, rest) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| rest.trim())
}

impl Token {
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        ((1..=MAX_BYTES).contains(&text.len()) && text.bytes().all(allowed))
            .then(|| Self(text.to_owned()))
    }

    /// For the `TokenReview` alone.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn digest(&self) -> TokenDigest {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// `Set-Cookie` for a browser that has shown this token. The API server has judged the token; its own end only
    /// says how long keeping it makes sense.
    pub fn cookie(&self, now: DateTime<Utc>, https: bool) -> String {
        let left = self
            .expires_at()
            .map_or(MAX_AGE_SECONDS, |end| end.saturating_sub(now.timestamp()));
        let age = left.clamp(1, MAX_AGE_SECONDS);
        set_cookie(&self.0, age, https)
    }

    /// `exp` of a JWT (RFC 7519, 4.1.4), in seconds since 1970.
    fn expires_at(&self) -> Option<i64> {
        let mut parts = self.0.split('.');
        let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
        let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
        let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
        claims.get("exp")?.as_i64()
    }
}

/// `Set-Cookie` that takes the token away.
pub fn cleared_cookie(https: bool) -> String {
    set_cookie("", 0, https)
}

fn set_cookie(value: &str, age: i64, https: bool) -> String {
    let secure = if https { "; Secure" } else { "" };
    format!("{NAME}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn presented(headers: &[(&'static str, &'static str)]) -> (&'static str, String) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        match Presented::of(&map) {
            Presented::Nothing => ("nothing", String::new()),
            Presented::Malformed => ("malformed", String::new()),
            Presented::Header(token) => ("header", token.0),
            Presented::Cookie(token) => ("cookie", token.0),
        }
    }

    #[test]
    fn the_header_goes_before_the_cookie() {
        let cookie = ("cookie", "theme=dark; fencepost_token=c.d");
        assert_eq!(presented(&[]).0, "nothing");
        assert_eq!(presented(&[cookie]), ("cookie", "c.d".to_owned()));
        assert_eq!(
            presented(&[("authorization", "bearer a.b"), cookie]),
            ("header", "a.b".to_owned())
        );
        assert_eq!(
            presented(&[("authorization", "Basic YTpi"), cookie]).0,
            "cookie"
        );
        assert_eq!(
            presented(&[("authorization", "Bearer a b"), cookie]).0,
            "malformed"
        );
        assert_eq!(presented(&[("authorization", "Bearer ")]).0, "malformed");
        assert_eq!(presented(&[("cookie", "fencepost_token=")]).0, "nothing");
        assert_eq!(
            presented(&[("cookie", "fencepost_token=\"x\"")]).0,
            "malformed"
        );
    }

    #[test]
    fn a_login_ends_with_its_token_and_after_a_working_day() {
        let now = DateTime::from_timestamp(1_000_000, 0).unwrap();
        let jwt = |claims: &str| {
            let claims = URL_SAFE_NO_PAD.encode(claims);
            Token::parse(&format!("e30.{claims}.c2ln")).unwrap()
        };
        for (token, age) in [
            (jwt(r#"{"exp":1000600}"#), 600),
            (jwt(r#"{"exp":9000000}"#), 28_800),
            (jwt(r#"{"exp":1}"#), 1),
            (jwt("{}"), 28_800),
            (Token::parse("opaque").unwrap(), 28_800),
        ] {
            let cookie = token.cookie(now, false);
            assert!(
                cookie.ends_with(&format!(
                    "; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict"
                )),
                "{age}: {cookie}"
            );
        }
        assert!(
            Token::parse("opaque")
                .unwrap()
                .cookie(now, true)
                .ends_with("; Secure")
        );
    }

    #[test]
    fn what_cannot_be_a_header_is_no_token() {
        for bad in ["", " ", "a b", "a;b", "a\r\nb", "a\"b", "tökén"] {
            assert!(Token::parse(bad).is_none(), "{bad:?}");
        }
        assert!(Token::parse(&"a".repeat(MAX_BYTES + 1)).is_none());
        assert_eq!(Token::parse(" pasted\n").unwrap().reveal(), "pasted");
    }
}
