//! The pages before the dashboard: the form for a token, and a refusal in words.
//!
//! Plain documents with the dashboard's stylesheet, under a policy that allows no script at all.

use axum::{
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, WWW_AUTHENTICATE},
    },
    response::{IntoResponse as _, Response},
};
use fencepost_dashboard::Theme;
use fencepost_views::Problem;

use super::{assets::Bundle, pages::fixed_headers};

const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; \
                      frame-ancestors 'none'";

/// What the form says this time.
pub struct Shown<'a> {
    pub status: StatusCode,
    /// A path of this server, to go on to.
    pub next: &'a str,
    /// Why it is shown again.
    pub trouble: Option<&'a str>,
    /// The browser has a token already.
    pub has_cookie: bool,
}

/// Renders them; holds the addresses of what they load.
pub struct LoginPage {
    stylesheet: String,
    favicon: String,
}

impl Default for LoginPage {
    fn default() -> Self {
        Self::new()
    }
}

impl LoginPage {
    pub fn new() -> Self {
        let addresses = Bundle::embedded().addresses;
        Self {
            stylesheet: addresses.stylesheet,
            favicon: addresses.favicon,
        }
    }

    /// The form. `headers`: of the request, for the reader's theme.
    pub fn form(&self, headers: &HeaderMap, shown: &Shown) -> Response {
        let next = escaped(shown.next);
        let trouble = shown.trouble.map_or_else(String::new, |trouble| {
            format!(
                r#"<section class="trouble" role="alert"><h2>Not logged in</h2><p>{}</p></section>"#,
                escaped(trouble)
            )
        });
        // The cookie does not come along when a link on another site is followed; from here it does.
        let cookie = if shown.has_cookie {
            r#"<form method="post" action="/logout" class="filter-ends"><button type="submit">Log out</button></form>"#
                .to_owned()
        } else {
            format!(
                r#"<p class="muted">Logged in already, and come by a link? <a href="{next}">Open the page</a></p>"#
            )
        };
        let main = format!(
            r#"<div class="page-head"><h1>Log in</h1></div>{trouble}<form method="post" action="/login" class="card"><p>The cluster's API server says who you are and what you may read.</p><label class="field"><span>Token</span><input type="password" name="token" autocomplete="off" spellcheck="false" required autofocus></label><input type="hidden" name="next" value="{next}"><div class="filter-ends"><button type="submit" class="primary">Log in</button></div></form><section><p>A token of a ServiceAccount:</p><div class="command"><pre tabindex="0"><code>kubectl create token NAME --namespace NAMESPACE --duration 8h</code></pre></div></section>{cookie}"#
        );
        self.document(headers, shown.status, "Log in", &main)
    }

    /// A page that the caller may not see, or that nobody can be allowed now.
    pub fn refused(&self, headers: &HeaderMap, problem: &Problem) -> Response {
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::FORBIDDEN);
        let title = escaped(&problem.title);
        let main = format!(
            r#"<div class="page-head"><h1>{title}</h1></div><section class="trouble" role="alert"><p class="break">{}</p></section><p><a href="/login">Log in as somebody else</a></p>"#,
            escaped(&problem.detail)
        );
        self.document(headers, status, &title, &main)
    }

    fn document(
        &self,
        headers: &HeaderMap,
        status: StatusCode,
        title: &str,
        main: &str,
    ) -> Response {
        let cookies = headers.get(COOKIE).and_then(|cookie| cookie.to_str().ok());
        let theme = cookies.map(Theme::of_cookies).unwrap_or_default().word();
        let (stylesheet, favicon) = (&self.stylesheet, &self.favicon);
        let text = format!(
            r#"<!DOCTYPE html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><meta name="robots" content="noindex"><title>{title} · Fencepost</title><link rel="icon" href="{favicon}" type="image/svg+xml"><link rel="stylesheet" href="{stylesheet}"></head><body><header class="top"><div class="top-in"><a class="brand" href="/">Fencepost</a></div></header><main id="main">{main}</main></body></html>"#
        );
        let mut response = (status, fixed_headers(), text).into_response();
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        );
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        if status == StatusCode::UNAUTHORIZED {
            // RFC 9110, 11.6.1: an answer 401 names its scheme.
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Text as text, also within a quoted attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(
            escaped(r#""><script>'&"#),
            "&quot;&gt;&lt;script&gt;&#39;&amp;"
        );
    }
}
