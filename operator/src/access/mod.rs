//! Who may ask Fencepost what, in a cluster (`docs/access.md`).
//!
//! In: requests of anybody. Out: requests of callers whom the API server knows (`TokenReview`) and allows
//! (`SubjectAccessReview`), and refusals for the rest. What no rule names is denied, and so is everything while the API server
//! cannot be asked. A token is in no log, error, metric or answer.

mod gate;
mod kubernetes;
mod login;
mod narrowed;
mod question;
mod review;
mod rule;
mod token;

use axum::{Router, extract::OriginalUri, middleware, response::Response, routing::any};
use fencepost_store::queries::Queries;

pub use kubernetes::KubernetesAccess;
pub use rule::{Need, Right, need};

use crate::api::ApiError;
use gate::Gate;

/// Who may ask what.
#[derive(Clone)]
pub enum Access {
    /// Whoever reaches the address.
    Open,
    /// `TokenReview` and `SubjectAccessReview` decide.
    Kubernetes(KubernetesAccess),
}

/// Lays the control around everything that one listener serves. `queries`: says in which namespace a resource's content is.
pub fn controlled(router: Router, access: Access, queries: &Queries) -> Router {
    match access {
        Access::Open => router
            .route("/login", any(no_login))
            .route("/logout", any(no_login)),
        Access::Kubernetes(access) => {
            let gate = Gate::new(access, queries.clone());
            router
                .merge(login::router(gate.clone()))
                .layer(middleware::from_fn_with_state(gate, gate::admit))
        }
    }
}

async fn no_login(OriginalUri(uri): OriginalUri) -> Response {
    ApiError::no_login(uri.path()).private().await
}
