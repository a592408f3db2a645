//! Who may ask what: real tokens, real reviews, roles bound with kubectl.

use fencepost_tests::{faulty::FaultyServer, wait};
use reqwest::{StatusCode, redirect::Policy};

use crate::world::{LAZY, Operator, SOON, World, server, watch};

const URI: &str = "config://limits";

async fn status(operator: &Operator, path: &str, token: Option<&str>) -> StatusCode {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut request = http.get(format!("{}{path}", operator.base));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    request.send().await.unwrap().status()
}

/// A service account of the namespace, with a role of that name bound to it, and its token.
async fn account(world: &World, name: &str, grants: &[&[&str]]) -> String {
    world.kubectl(&["create", "serviceaccount", name]).await;
    for (index, grant) in grants.iter().enumerate() {
        let role = format!("{name}-{index}");
        let mut create = vec!["create", "role", &role];
        create.extend(*grant);
        world.kubectl(&create).await;
        let role_flag = format!("--role={role}");
        let bound = format!("--serviceaccount={}:{name}", world.namespace.name());
        world
            .kubectl(&["create", "rolebinding", &role, &role_flag, &bound])
            .await;
    }
    world
        .kubectl(&["create", "token", name])
        .await
        .trim()
        .to_owned()
}

const LIST: &[&str] = &["--verb=list", "--resource=watchedresources.fencepost.dev"];
const CONTENT: &[&str] = &[
    "--verb=get",
    "--resource=watchedresources.fencepost.dev/content",
];

#[tokio::test]
async fn reviews_decide_who_reads_what() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let world = World::start("access").await;
    let binding = world.allow_reviews().await;
    let operator = world.operator_with("a", &["--access", "kubernetes"]).await;
    operator.is_ready().await;
    world
        .apply(&(server(&faulty.url()) + &watch("limits", &[URI], LAZY)))
        .await;
    world.wait_for("condition=Ready", "watch/limits").await;

    let nobody = account(&world, "nobody", &[]).await;
    let viewer = account(&world, "viewer", &[LIST]).await;
    let reader = account(&world, "reader", &[LIST, CONTENT]).await;
    let list = "/api/v1/resources";
    for (token, wanted) in [
        (None, 401),
        (Some("not-a-token"), 401),
        (Some(nobody.as_str()), 403),
        (Some(viewer.as_str()), 200),
    ] {
        assert_eq!(
            status(&operator, list, token).await.as_u16(),
            wanted,
            "{list}"
        );
    }
    let page = client()
        .get(format!("{}{list}", operator.base))
        .bearer_auth(&viewer)
        .send()
        .await
        .unwrap();
    let page: serde_json::Value = page.json().await.unwrap();
    let id = page["items"][0]["id"].as_str().unwrap();
    let content = format!("/api/v1/resources/{id}/content");
    assert_eq!(status(&operator, &content, Some(&viewer)).await, 403);
    assert_eq!(status(&operator, &content, Some(&reader)).await, 200);

    by_the_login_page(&operator, &viewer).await;
    metrics_are_a_right_of_their_own(&world, &operator, &viewer, &nobody).await;
    // A right that is taken back ends within seconds.
    world.kubectl(&["delete", "rolebinding", "viewer-0"]).await;
    wait::until("the viewer is shut out", SOON, async || {
        match status(&operator, list, Some(&viewer)).await.as_u16() {
            403 => Ok(()),
            other => Err(other),
        }
    })
    .await;
    let (cluster, scrape) = (
        world.cluster.get(),
        format!("{}-scrape", world.namespace.name()),
    );
    for object in ["clusterrole", "clusterrolebinding"] {
        cluster
            .kubectl(["delete", object, &scrape, &binding, "--ignore-not-found"])
            .await
            .ok();
    }
    let logged = operator.process.output().join("\n");
    for token in [&nobody, &viewer, &reader] {
        assert!(!logged.contains(token.as_str()), "a token was logged");
    }
}

fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .build()
        .unwrap()
}

/// The dashboard: to the login page, and from there with a cookie.
async fn by_the_login_page(operator: &Operator, viewer: &str) {
    let http = client();
    let html = |path: &str| {
        http.get(format!("{}{path}", operator.base))
            .header("accept", "text/html")
    };
    let sent = html("/resources").send().await.unwrap();
    assert_eq!(sent.status(), 303);
    assert!(
        sent.headers()["location"]
            .to_str()
            .unwrap()
            .starts_with("/login")
    );
    let login = http
        .post(format!("{}/login", operator.base))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("token={viewer}&next=%2Fresources"))
        .send()
        .await
        .unwrap();
    assert_eq!(login.status(), 303, "{login:?}");
    let cookie = login.headers()["set-cookie"].to_str().unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let pair = cookie.split(';').next().unwrap();
    let page = html("/resources")
        .header("cookie", pair)
        .send()
        .await
        .unwrap();
    assert_eq!(page.status(), 200);
    let page = page.text().await.unwrap();
    assert!(page.contains(URI), "the page shows what is watched");
    assert!(!page.contains(viewer), "and no token");
}

/// Probes ask nobody.
async fn metrics_are_a_right_of_their_own(
    world: &World,
    operator: &Operator,
    viewer: &str,
    scraper: &str,
) {
    assert_eq!(status(operator, "/metrics", Some(viewer)).await, 403);
    let scrape = format!("{}-scrape", world.namespace.name());
    let cluster = world.cluster.get();
    cluster
        .kubectl([
            "create",
            "clusterrole",
            &scrape,
            "--verb=get",
            "--non-resource-url=/metrics",
        ])
        .await
        .ok();
    let bound = format!("--serviceaccount={}:nobody", world.namespace.name());
    let role = format!("--clusterrole={scrape}");
    cluster
        .kubectl(["create", "clusterrolebinding", &scrape, &role, &bound])
        .await
        .ok();
    wait::until("the scraper is let in", SOON, async || {
        match status(operator, "/metrics", Some(scraper)).await.as_u16() {
            200 => Ok(()),
            other => Err(other),
        }
    })
    .await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(status(operator, path, None).await, 200);
    }
}
