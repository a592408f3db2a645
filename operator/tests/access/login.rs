//! Logging in and out with a browser.

use axum::http::StatusCode;

use crate::{
    app::App,
    cluster::{ADMIN, Mood},
};

const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml");

#[tokio::test]
async fn a_browser_is_sent_to_the_form_and_back() {
    let app = App::without_database();
    for (path, login) in [
        ("/", "/login"),
        (
            "/resources?q=a%20b&state=ACTIVE",
            "/login?next=%2Fresources%3Fq%3Da%2520b%26state%3DACTIVE",
        ),
        ("//evil.example/x", "/login"),
    ] {
        let answer = app.get(path, &[HTML]).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{path}");
        assert_eq!(answer.header("location"), login);
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    // Programs are told, also when a browser shows their address.
    for path in ["/api/v1/servers", "/metrics"] {
        assert_eq!(
            app.get(path, &[HTML]).await.status,
            StatusCode::UNAUTHORIZED
        );
    }
    // A cookie that has ended leads to the form too.
    let headers = [HTML, ("cookie", "fencepost_token=ended")];
    assert_eq!(
        app.get("/servers", &headers).await.status,
        StatusCode::SEE_OTHER
    );
}

#[tokio::test]
async fn the_form_is_plain_and_loads_nothing_from_elsewhere() {
    let app = App::without_database();
    let answer = app.get("/login?next=%2Fservers", &[HTML]).await;
    assert_eq!(answer.status, StatusCode::OK);
    let policy = answer.header("content-security-policy").to_owned();
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(
        !policy.contains("script-src") && !policy.contains("unsafe"),
        "{policy}"
    );
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("content-type", "text/html; charset=utf-8"),
    ] {
        assert_eq!(answer.header(name), value);
    }
    let page = String::from_utf8(answer.bytes).unwrap();
    assert!(!page.contains("<script"), "{page}");
    assert!(page.contains(r#"type="password""#));
    assert!(page.contains("kubectl create token"));
    assert!(page.contains(r#"name="next" value="/servers""#));
    // What it loads is served without a token.
    let stylesheet = page.split(r#"rel="stylesheet" href=""#).nth(1).unwrap();
    let stylesheet = stylesheet.split('"').next().unwrap();
    let asset = app.get(stylesheet, &[]).await;
    assert_eq!(asset.status, StatusCode::OK);
    assert!(asset.header("cache-control").contains("immutable"));
    assert_eq!(app.cluster.token_reviews(), 0);
}

#[tokio::test]
async fn next_is_text_and_a_path_of_ours() {
    let app = App::without_database();
    for next in [
        "%2F%2Fevil.example",
        "%2F%5Cevil.example",
        "https%3A%2F%2Fevil.example",
        "",
    ] {
        let page = app.get(&format!("/login?next={next}"), &[]).await;
        let page = String::from_utf8(page.bytes).unwrap();
        assert!(page.contains(r#"name="next" value="/""#), "{next}");
        let answer = app
            .form("/login", &[], &format!("token={ADMIN}&next={next}"))
            .await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (StatusCode::SEE_OTHER, "/")
        );
    }
    let page = app.get("/login?next=%2F%22%3E%3Cscript%3E", &[]).await;
    let page = String::from_utf8(page.bytes).unwrap();
    assert!(
        page.contains(r#"value="/&quot;&gt;&lt;script&gt;""#),
        "{page}"
    );
}

#[tokio::test]
async fn a_good_token_becomes_a_cookie_that_opens() {
    let app = App::without_database();
    let form = format!("token=+{ADMIN}%0A&next=%2Fservers%3Fa%3Db");
    let answer = app.form("/login", &[], &form).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_eq!(answer.header("location"), "/servers?a=b");
    let cookie = answer.header("set-cookie").to_owned();
    assert_eq!(
        cookie,
        format!("fencepost_token={ADMIN}; Path=/; Max-Age=28800; HttpOnly; SameSite=Strict")
    );
    let pair = cookie.split(';').next().unwrap();
    let answer = app.get("/api/openapi.json", &[("cookie", pair)]).await;
    assert_eq!(answer.status, StatusCode::OK);
    let proxied = [("x-forwarded-proto", "https, http")];
    let answer = app.form("/login", &proxied, &form).await;
    assert!(answer.header("set-cookie").ends_with("; Secure"));
}

#[tokio::test]
async fn a_wrong_token_stays_at_the_form() {
    let app = App::without_database();
    for token in ["unknown", "", "a+b", "%00"] {
        let form = format!("token={token}&next=%2Fservers");
        let answer = app.form("/login", &[], &form).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{token}");
        assert!(answer.headers.get("set-cookie").is_none());
        let page = String::from_utf8(answer.bytes).unwrap();
        assert!(page.contains("does not know this token"), "{page}");
        assert!(page.contains(r#"value="/servers""#), "where to go is kept");
        assert!(token.is_empty() || !page.contains(&format!(r#"value="{token}""#)));
    }
    app.cluster.is(Mood::Away);
    let answer = app.form("/login", &[], &format!("token={ADMIN}")).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        String::from_utf8(answer.bytes)
            .unwrap()
            .contains("cannot be reached")
    );
}

#[tokio::test]
async fn logging_out_takes_the_cookie_away() {
    let app = App::without_database();
    let cookie = format!("fencepost_token={ADMIN}");
    let answer = app.form("/logout", &[("cookie", &cookie)], "").await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (StatusCode::SEE_OTHER, "/login")
    );
    assert_eq!(
        answer.header("set-cookie"),
        "fencepost_token=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"
    );
    // A link or an image elsewhere cannot log anybody out, or in.
    assert_eq!(
        app.get("/logout", &[]).await.status,
        StatusCode::METHOD_NOT_ALLOWED
    );
    let elsewhere = [("sec-fetch-site", "cross-site")];
    assert_eq!(
        app.form("/logout", &elsewhere, "").await.status,
        StatusCode::FORBIDDEN
    );
    let answer = app
        .form("/login", &elsewhere, &format!("token={ADMIN}"))
        .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert!(answer.headers.get("set-cookie").is_none());
}

#[tokio::test]
async fn where_all_is_open_there_is_no_login() {
    let app = App::open();
    for path in ["/login", "/logout"] {
        assert_eq!(app.get(path, &[HTML]).await.problem()["status"], 404);
        assert_eq!(
            app.form(path, &[], "token=x").await.problem()["status"],
            404
        );
    }
    assert_eq!(app.get("/metrics", &[]).await.status, StatusCode::OK);
    assert_eq!(
        app.get("/api/openapi.json", &[]).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn every_page_leads_to_the_log_out_where_somebody_logged_in() {
    let cookie = format!("fencepost_token={ADMIN}");
    let app = App::without_database();
    let page = app.get("/servers", &[("cookie", &cookie)]).await;
    let page = String::from_utf8(page.bytes).unwrap();
    assert!(page.contains("data-account"), "{page}");
    assert!(page.contains(r#"<a href="/login""#), "{page}");
    let open = App::open().get("/servers", &[]).await;
    let open = String::from_utf8(open.bytes).unwrap();
    assert!(!open.contains("data-account"), "{open}");
}
