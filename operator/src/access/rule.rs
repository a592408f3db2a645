//! Which right a route asks for: the one table.
//!
//! In: a method and the route that the router has chosen, in the router's own spelling, so that the table and the router
//! cannot read a path differently. Out: what the caller must be allowed. What no line names is denied.

use http::Method;

/// A verb on one of our resources, as RBAC writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Right {
    pub verb: &'static str,
    pub resource: &'static str,
    pub subresource: Option<&'static str>,
}

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nobody is asked who they are.
    Nothing,
    /// The right in the whole cluster, or in each watched namespace.
    AtScope(Right),
    /// The right in the namespace of the resource that `{id}` names.
    OfResource(Right),
    /// `get` on a path of this server, as `nonResourceURLs` names it.
    Path(&'static str),
}

/// Digests, states, receipts, objects: everything but content.
pub const LIST: Right = Right {
    verb: "list",
    resource: "watchedresources",
    subresource: None,
};

/// What servers answered, or values from it.
pub const CONTENT: Right = Right {
    verb: "get",
    resource: "watchedresources",
    subresource: Some("content"),
};

/// Withdrawing a subject's permission.
const REVOKE: Right = Right {
    verb: "create",
    resource: "mcpsubjects",
    subresource: Some("revocations"),
};

/// The stream that outlives the request's decision.
pub const EVENTS: &str = "/api/v1/events";

/// Which requests a line is about.
#[derive(Clone, Copy)]
enum Methods {
    /// GET and HEAD. What changes something needs a line of its own.
    Reading,
    Post,
    Any,
}

use Methods::{Any, Post, Reading};
use Need::{AtScope, Nothing, OfResource, Path};

const TABLE: &[(Methods, &str, Need)] = &[
    // Probes have no token, and the login page and what it loads come before there is one.
    (Any, "/healthz", Nothing),
    (Any, "/readyz", Nothing),
    (Any, "/assets/{name}", Nothing),
    (Any, "/login", Nothing),
    (Any, "/logout", Nothing),
    (Reading, "/metrics", Path("/metrics")),
    // Content.
    (
        Reading,
        "/api/v1/resources/{id}/content",
        OfResource(CONTENT),
    ),
    (
        Reading,
        "/api/v1/resources/{id}/versions/{ordinal}/text",
        OfResource(CONTENT),
    ),
    (
        Reading,
        "/api/v1/resources/{id}/supersede",
        OfResource(CONTENT),
    ),
    // Events carry old and new values in their supersede notes, of every namespace.
    (Reading, "/api/v1/outbox", AtScope(CONTENT)),
    (Post, "/api/v1/revocations", AtScope(REVOKE)),
    // The ledger without content.
    (Reading, "/api/openapi.json", AtScope(LIST)),
    (Reading, "/api/v1/servers", AtScope(LIST)),
    (Reading, "/api/v1/subjects", AtScope(LIST)),
    (Reading, "/api/v1/watches", AtScope(LIST)),
    (Reading, "/api/v1/indexes", AtScope(LIST)),
    (Reading, "/api/v1/resources", AtScope(LIST)),
    (Reading, "/api/v1/resources/{id}", AtScope(LIST)),
    (Reading, "/api/v1/resources/{id}/versions", AtScope(LIST)),
    (Reading, "/api/v1/resources/{id}/receipts", AtScope(LIST)),
    (Reading, "/api/v1/resources/{id}/timeline", AtScope(LIST)),
    (Reading, "/api/v1/overview", AtScope(LIST)),
    (Reading, "/api/v1/series", AtScope(LIST)),
    (Reading, EVENTS, AtScope(LIST)),
    // The pages. A resource's page asks for content besides, and shows the rest without.
    (Reading, "/", AtScope(LIST)),
    (Reading, "/resources", AtScope(LIST)),
    (Reading, "/resources/{id}", AtScope(LIST)),
    (Reading, "/servers", AtScope(LIST)),
    (Reading, "/indexes", AtScope(LIST)),
];

/// What a request of `method` to `route` needs; none: no line names it, and it is denied.
pub fn need(method: &Method, route: &str) -> Option<Need> {
    let reading = method == Method::GET || method == Method::HEAD;
    TABLE
        .iter()
        .find(|(methods, named, _)| {
            *named == route
                && match methods {
                    Reading => reading,
                    Post => method == Method::POST,
                    Any => true,
                }
        })
        .map(|(_, _, need)| *need)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_line_names_is_denied() {
        for (method, route) in [
            (Method::GET, "/api/{*rest}"),
            (Method::GET, "/api/v1/resources/{id}/secrets"),
            (Method::POST, "/api/v1/servers"),
            (Method::DELETE, "/api/v1/resources/{id}"),
            (Method::GET, ""),
        ] {
            assert_eq!(need(&method, route), None, "{method} {route}");
        }
    }

    #[test]
    fn withdrawing_a_permission_has_a_right_of_its_own() {
        assert_eq!(
            need(&Method::POST, "/api/v1/revocations"),
            Some(AtScope(REVOKE))
        );
        assert_eq!(need(&Method::PUT, "/api/v1/revocations"), None);
    }
}
