//! The one error boundary: everything that is not an answer leaves as an RFC 9457 problem document.
//!
//! What a person can mend is said in `detail`; what only the operators can mend goes to the log, and
//! the asker learns no more than that.

use axum::{
    Json,
    extract::OriginalUri,
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use fencepost_store::{StoreError, queries::QueryError};
use fencepost_views::Problem;

use super::guard;

/// Seconds until a second try is worth while: the store's own reconnects take less.
const RETRY_SECONDS: &str = "5";

/// A request that got no answer.
#[derive(Debug)]
pub struct ApiError(Box<Problem>);

impl ApiError {
    fn new(status: StatusCode, kind: &str, title: &str, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem {
            kind: format!("/problems/{kind}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            object: None,
            field: None,
        }))
    }

    fn of(mut self, object: impl Into<String>) -> Self {
        self.0.object = Some(object.into());
        self
    }

    fn at(mut self, field: impl Into<String>) -> Self {
        self.0.field = Some(field.into());
        self
    }

    pub(super) fn bad_parameter(field: &str, detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "bad-parameter",
            "Bad parameter",
            detail,
        )
        .at(field)
    }

    pub(crate) fn no_such_resource(id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not-found",
            "No such resource",
            "The ledger has no resource of this id. Find it by its URI: /api/v1/resources?q=",
        )
        .of(id)
    }

    pub(super) fn no_such_version(id: &str, ordinal: impl std::fmt::Display) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not-found",
            "No such version",
            format!("No version of this resource was accepted with ordinal {ordinal}. See /api/v1/resources/{id}/versions"),
        )
        .of(id)
    }

    pub(super) fn version_not_kept(id: &str, ordinal: i64) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "content-not-stored",
            "Content not stored",
            format!(
                "The version with ordinal {ordinal} is known by its digest only: content.store is false for it, or \
                 content.keepVersions has let it go."
            ),
        )
        .of(id)
    }

    pub(super) fn content_not_stored(id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "content-not-stored",
            "Content not stored",
            "The accepted version is known by its digest only: content.store was false when it was accepted. Set it to \
             true in the WatchedResource; the next changed version is then stored.",
        )
        .of(id)
    }

    pub(super) fn nothing_accepted(id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "nothing-accepted",
            "No content yet",
            format!("No read of this resource has been accepted yet. See /api/v1/resources/{id}/receipts for why."),
        )
        .of(id)
    }

    pub(super) fn revoked(id: &str) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "revoked",
            "Permission withdrawn",
            "The subject's permission was withdrawn. Its content is not answered; versions and receipts stay readable.",
        )
        .of(id)
    }

    pub(super) fn tombstoned(id: &str) -> Self {
        Self::new(
            StatusCode::GONE,
            "tombstoned",
            "Resource gone",
            format!("The server no longer has this resource. See /api/v1/resources/{id}/receipts for the reads that found out."),
        )
        .of(id)
    }

    pub(super) fn past_bound(id: &str, why: &str) -> Self {
        Self::new(
            StatusCode::PRECONDITION_FAILED,
            "past-bound",
            "Content past its bound",
            format!("fresh=required, and the stored content is not known to be current ({why}). Ask without it to get it as it is."),
        )
        .of(id)
        .at("fresh")
    }

    pub(super) fn too_many_streams() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too-many-streams",
            "Too many event streams",
            "Every event stream of this replica is taken. Try again in a few seconds, or ask the lists from time to time.",
        )
    }

    pub(super) fn forbidden_host(hosts: &str) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "forbidden-host",
            "Host not served here",
            format!("This fencepost listens on loopback and answers only to {hosts}. A web page elsewhere must not read it."),
        )
        .at("Host")
    }

    /// No token came along, or one that is nobody's.
    pub(crate) fn unauthenticated() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthenticated",
            "Who asks?",
            "Send a token that the cluster's API server knows, as `Authorization: Bearer TOKEN`, or log in at /login. For a \
             ServiceAccount: kubectl create token NAME --namespace NAMESPACE",
        )
    }

    /// `asked`: verb, resource and namespace; `grant`: the kubectl line that would allow it.
    pub(crate) fn forbidden(user: &str, asked: &str, grant: &str, object: String) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "forbidden",
            "Not allowed",
            format!("User {user} may not {asked}. Who may grant it can do so with: {grant}"),
        )
        .of(object)
    }

    pub(crate) fn no_rule(method: &str, path: &str) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "forbidden",
            "Not allowed",
            format!("No access rule names {method} of this path, so nobody may. Look for a mistake in the address; /api/openapi.json has the paths that there are."),
        )
        .of(path)
    }

    pub(crate) fn from_another_site() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "another-site",
            "Asked by another site",
            "A page of another site made the browser send this. Do it from the dashboard, or send the token in the header.",
        )
        .at("Sec-Fetch-Site")
    }

    /// Nobody can say whether the caller may.
    pub(crate) fn access_undecided(detail: &str) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "access-undecided",
            "Access cannot be decided",
            format!("Nothing is answered while nobody can say who may ask: {detail}"),
        )
    }

    pub(crate) fn no_login(path: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "no-such-route",
            "No login here",
            "This fencepost asks nobody who they are; everything is open to whoever reaches it.",
        )
        .of(path)
    }

    /// As an answer with the headers that every answer bears, for those outside the API's router.
    pub(crate) async fn private(self) -> Response {
        guard::private(self.into_response()).await
    }

    pub(super) fn body_too_large(most: u64) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body-too-large",
            "Body too large",
            format!("A request body may have at most {most} bytes; no endpoint here takes one."),
        )
    }

    pub(super) fn too_slow(seconds: u64) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "database-away",
            "No answer in time",
            format!(
                "The database did not answer within {seconds} s. Try again; if this stays, see /readyz."
            ),
        )
    }

    /// The document itself, for those who do not speak HTTP.
    pub fn into_problem(self) -> Problem {
        *self.0
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::BadParameter { field, detail } => {
                Self::bad_parameter(field, format!("{field} {detail}."))
            }
            QueryError::Unavailable(source) => {
                tracing::warn!(error = %source, "the API could not ask the database");
                Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "database-away",
                    "Database away",
                    "The database does not answer. Try again in a few seconds; if this stays, see /readyz.",
                )
            }
            QueryError::Closed => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "shutting-down",
                "Shutting down",
                "This replica is ending. Ask another one or try again.",
            ),
            QueryError::Failed(source) => {
                tracing::error!(error = %source, "the API could not read the ledger's answer");
                Self::internal()
            }
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_)
            | StoreError::Unwritable { .. }
            | StoreError::Conflict(_) => {
                tracing::warn!(
                    category = error.category(),
                    "the API could not ask the store"
                );
                Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "database-away",
                    "Database away",
                    "The database does not answer. Try again in a few seconds; if this stays, see /readyz.",
                )
            }
            _ => {
                tracing::error!(category = error.category(), error = %error, "the API could not read the store's answer");
                Self::internal()
            }
        }
    }
}

impl ApiError {
    /// The metrics do not go into their text format.
    pub(super) fn unwritable(error: &prometheus::Error) -> Self {
        tracing::error!(error = %error, "the metrics could not be written");
        Self::internal()
    }

    fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "Fault of fencepost",
            "The answer could not be made. This is a fault of fencepost; its log says more. Please report it.",
        )
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self.0)).into_response();
        response.headers_mut().insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
        }
        response
    }
}

/// Whatever below `/api` is no route.
pub(super) async fn no_such_route(OriginalUri(uri): OriginalUri) -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "no-such-route",
        "No such route",
        "The API has no such path. See /api/openapi.json for those that it has.",
    )
    .of(uri.path())
}

/// The router's own refusal of a method, as a problem; its `Allow` stays.
pub(super) async fn as_problem(response: Response) -> Response {
    if response.status() != StatusCode::METHOD_NOT_ALLOWED {
        return response;
    }
    let allow = response.headers().get(axum::http::header::ALLOW).cloned();
    let methods = allow
        .as_ref()
        .and_then(|allow| allow.to_str().ok())
        .unwrap_or("GET")
        .replace(',', ", ");
    let mut problem = ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method-not-allowed",
        "Method not allowed",
        format!("This path answers {methods}."),
    )
    .into_response();
    if let Some(allow) = allow {
        problem
            .headers_mut()
            .insert(axum::http::header::ALLOW, allow);
    }
    problem
}
