//! The other end of the Kubernetes client: answers reviews from a table and writes down what was asked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    body::{Body, to_bytes},
    http::{Request, Response, StatusCode},
};
use kube::Client;
use serde_json::{Value, json};

/// May everything. The token is what a search of answers and logs looks for.
pub const ADMIN: &str = "admin-3f9c1d77.secret";
/// Known, and may nothing.
pub const NOBODY: &str = "nobody-b07a55e1.secret";

/// How the API server is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Up,
    /// Connections fail.
    Away,
    /// The operator may not create reviews.
    Forbids,
    /// Answers with what is no review, and repeats the request in it.
    Babbles,
    /// Refuses the request as invalid, and repeats it.
    Rejects,
}

struct Table {
    mood: Mood,
    /// Token to user.
    users: BTreeMap<String, String>,
    /// `user: what`, and `*` for everything.
    allowed: Vec<(String, String)>,
    asked: Vec<String>,
    token_reviews: usize,
}

/// The table. Clones share it.
#[derive(Clone)]
pub struct Cluster(Arc<Mutex<Table>>);

impl Cluster {
    pub fn new() -> Self {
        let user = |token: &str, name: &str| (token.to_owned(), name.to_owned());
        Self(Arc::new(Mutex::new(Table {
            mood: Mood::Up,
            users: [user(ADMIN, "ada"), user(NOBODY, "noel")].into(),
            allowed: vec![("ada".to_owned(), "*".to_owned())],
            asked: Vec::new(),
            token_reviews: 0,
        })))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap()
    }

    pub fn client(&self) -> Client {
        let cluster = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let cluster = cluster.clone();
            async move { cluster.answer(request).await }
        });
        Client::new(service, "default")
    }

    pub fn is(&self, mood: Mood) {
        self.table().mood = mood;
    }

    pub fn knows(&self, token: &str, user: &str) {
        self.table().users.insert(token.to_owned(), user.to_owned());
    }

    /// `what` as [`Self::asked`] writes it.
    pub fn allow(&self, user: &str, what: &str) {
        self.table()
            .allowed
            .push((user.to_owned(), what.to_owned()));
    }

    pub fn withdraw(&self, user: &str) {
        self.table().allowed.retain(|(allowed, _)| allowed != user);
    }

    /// What was asked about since the last call, in order: `list watchedresources.fencepost.dev @agents`.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.table().asked)
    }

    /// `TokenReview`s since the last call.
    pub fn token_reviews(&self) -> usize {
        std::mem::take(&mut self.table().token_reviews)
    }

    async fn answer(
        &self,
        request: Request<kube::client::Body>,
    ) -> Result<Response<Body>, std::io::Error> {
        let (parts, body) = request.into_parts();
        let bytes = to_bytes(Body::new(body), 1 << 20).await.unwrap();
        assert_eq!(parts.method, "POST");
        let review: Value = serde_json::from_slice(&bytes).unwrap();
        let mut table = self.table();
        let path = parts.uri.path();
        match table.mood {
            Mood::Up => {}
            Mood::Away => return Err(std::io::Error::other("connection refused")),
            Mood::Forbids => {
                return Ok(answer(StatusCode::FORBIDDEN, &status(403, "forbidden")));
            }
            Mood::Babbles => return Ok(answer(StatusCode::CREATED, &json!([review]))),
            Mood::Rejects => {
                let status = status(422, &format!("invalid: {review}"));
                return Ok(answer(StatusCode::UNPROCESSABLE_ENTITY, &status));
            }
        }
        let verdict = match path {
            "/apis/authentication.k8s.io/v1/tokenreviews" => table.token_review(&review),
            "/apis/authorization.k8s.io/v1/subjectaccessreviews" => table.access_review(&review),
            other => panic!("{other} is no review"),
        };
        let mut review = review;
        review["status"] = verdict;
        Ok(answer(StatusCode::CREATED, &review))
    }
}

impl Table {
    fn token_review(&mut self, review: &Value) -> Value {
        assert_eq!(review["apiVersion"], "authentication.k8s.io/v1");
        assert_eq!(review["kind"], "TokenReview");
        self.token_reviews += 1;
        match self.users.get(review["spec"]["token"].as_str().unwrap()) {
            None => json!({"authenticated": false, "error": "unknown"}),
            Some(user) => json!({"authenticated": true, "user": {
                "username": user, "uid": format!("uid-of-{user}"), "groups": ["people", "system:authenticated"],
                "extra": {"example.com/origin": ["table"]}
            }}),
        }
    }

    fn access_review(&mut self, review: &Value) -> Value {
        assert_eq!(review["apiVersion"], "authorization.k8s.io/v1");
        assert_eq!(review["kind"], "SubjectAccessReview");
        let spec = &review["spec"];
        let user = spec["user"].as_str().unwrap();
        // All that the API server has said of the caller goes back to it.
        assert_eq!(spec["uid"], format!("uid-of-{user}"));
        assert_eq!(spec["groups"], json!(["people", "system:authenticated"]));
        assert_eq!(spec["extra"], json!({"example.com/origin": ["table"]}));
        let what = described(spec);
        let allowed = self
            .allowed
            .iter()
            .any(|(allowed, right)| allowed == user && (right == "*" || *right == what));
        self.asked.push(what);
        json!({"allowed": allowed})
    }
}

fn described(spec: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    if let Some(path) = spec.get("nonResourceAttributes") {
        assert!(spec.get("resourceAttributes").is_none());
        return format!("{} {}", text(&path["verb"]), text(&path["path"]));
    }
    let about = &spec["resourceAttributes"];
    let mut described = format!(
        "{} {}.{}",
        text(&about["verb"]),
        text(&about["resource"]),
        text(&about["group"])
    );
    if let Some(subresource) = about.get("subresource") {
        described.push('/');
        described.push_str(&text(subresource));
    }
    described.push_str(" @");
    described.push_str(&about.get("namespace").map_or_else(|| "*".to_owned(), text));
    described
}

fn status(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message})
}

fn answer(status: StatusCode, body: &Value) -> Response<Body> {
    Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap()
}
